"""The public functions on human labels: `label_sample` draws answers, `estimate_with_labels` corrects a judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...api.keywords import Choices, Computing, Request, chosen_settings
from ...errors import InputError
from ...io.paths import PathInput
from ...io.sources import Sources, listed
from ...settings import Settings

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    from ...arrays import NamesLike
    from ...results.rows import Estimate
    from .results import LabelSample


def label_sample(
    runs: Sources,
    n: str | float = 100,
    output: PathInput | None = None,
    *,
    by_score: bool = False,
    blind: bool = True,
    force: bool = False,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> LabelSample:
    """Draw answers for people to label, so that `labels` can correct a judge's scores. Write them to `output`, if any.

    Whole clusters are drawn, each task in proportion, and of each question one answer of each run. The file that is
    written records the seed and the probabilities, and can be filled in with a spreadsheet.

    Parameters
    ----------
    runs
        A path, a Run or several of them: models that are to be compared are labelled on the same questions.
    n
        Questions to be labelled, or a share of them such as ``"20%"``.
    output
        A CSV file to write; None: none.
    by_score
        Draw questions of uncertain score more often; the file holds the probabilities.
    blind
        Show neither the model nor the judge's score.
    force
        Replace a file that is there, with the labels that it may hold.
    settings
        `seed` of the drawing and `cluster` are obeyed. None: the defaults.
    **choices
        `seed`, `cluster`, and how paths are read: see `Choices`.

    Returns
    -------
    LabelSample
        The answers in a random order, so that the first of them are a random subset, too.

    Raises
    ------
    InputError
        Runs that cannot be read, an `n` that is neither a share nor a number of questions, or, without `force`, a file
        that is there.

    References
    ----------
    Särndal, Swensson & Wretman (1992), "Model Assisted Survey Sampling", §3.6.
    """
    from .drawing import label_sample as sample
    from .writing import write_label_sample

    sources = listed(runs)
    request = Request.of("label", settings, choices, sources=sources)
    if output is not None and Path(str(output)).exists() and not force:
        raise InputError(f"{output} is there already, and may hold labels: name another file, or say `force=True`")
    drawn = sample(request.runs(sources), n, by_score=by_score, blind=blind, seed=request.settings.seed)
    if output is not None:
        write_label_sample(drawn, Path(str(output)))
    return drawn


def estimate_with_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    clusters: NamesLike | None = None,
    level: float | None = None,
    *,
    at_random: bool = False,
    settings: Settings | None = None,
    **choices: Unpack[Computing],
) -> Estimate:
    """Return the mean that people would give, from a judge's scores of all answers and human labels of a random subset.

    Parameters
    ----------
    scores
        (n, K) scores that a judge gave, NaN where one is missing; or (n,).
    labels
        (n,) human labels on the same scale, the mean if several people labelled a question, NaN without a label.
        Or (n, K) labels of the single answers. The subset must be random, with whole clusters.
    clusters
        (n,) names, equal for questions that belong together; None: independent questions.
    level
        Coverage of the confidence interval, in (0, 1); 0.95.
    at_random
        The labelled part is random, though it does not look so.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`interval`, `range`).

    Returns
    -------
    Estimate
        On the scale of the labels, with `judge`: the judge's own mean, its bias with a standard error, and the gain
        against labels alone. It has the code ``judge_corrected``.

    Raises
    ------
    ValueError
        Labels of clusters that do not fit the scores. As an InputError: human labels of another shape or off the
        scale, fewer than two labelled questions (clusters), a subset that does not look random (unless `at_random`),
        infinite scores, or settings that these scores cannot have.

    References
    ----------
    Angelopoulos, Duchi & Zrnic (2023), arXiv:2311.01453; Särndal, Swensson & Wretman (1992), ch. 6.

    Examples
    --------
    >>> import harness_noise as hn
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < 0.6
    >>> judge = np.where(rng.random(500) < 0.9, truth, 1.0)
    >>> row = hn.estimate_with_labels(judge, np.where(rng.random(500) < 0.2, truth, np.nan))
    >>> round(float(judge.mean()), 3), round(row.mean, 3), round(row.se, 3), row.diagnostics
    (0.598, 0.598, 0.025, ('few_failures', 'judge_corrected'))
    """
    from ...analysis.mean import estimate_scores
    from ...analysis.sample import as_scores
    from ...io.first_answers import first_of
    from .correcting import LabelOptions, label_arrays

    chosen = chosen_settings("estimate_with_labels", settings, {**choices, "level": level})
    judged = first_of(as_scores(scores, clusters, chosen.missing))
    return estimate_scores(label_arrays(judged, labels, LabelOptions(at_random, arrays=True), chosen), chosen)
