"""The public function `label_sample`: which answers people are to label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..settings import Settings
from .keywords import Choices, Request

if TYPE_CHECKING:
    from typing import Unpack

    from ..io.paths import PathInput
    from ..io.sources import Source
    from ..results.labels import LabelSample


def label_sample(
    runs: Source | Sequence[Source],
    n: str | float = 100,
    output: PathInput | None = None,
    *,
    by_score: bool = False,
    blind: bool = True,
    force: bool = False,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> LabelSample:
    """Draw the answers that people label, so that `labels` can correct the judge's scores.

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
        The answers in a random order, so that the first of them are a random part, too.

    Raises
    ------
    InputError
        Input that cannot be used, no such part, or a file that is there already.

    References
    ----------
    Särndal, Swensson & Wretman (1992), "Model Assisted Survey Sampling", §3.6.
    """
    from ..analysis.labels import label_sample as sample
    from ..io.sources import listed
    from ..report.text import write_label_sample

    request = Request.of("label", settings, choices)
    if output is not None and Path(str(output)).exists() and not force:
        raise InputError(f"{output} is there already, and may hold labels: name another file, or say `force=True`")
    found = sample(request.runs(listed(runs)), n, by_score=by_score, blind=blind, seed=request.settings.seed)
    if output is not None:
        write_label_sample(found, Path(str(output)))
    return found
