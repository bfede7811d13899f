"""The public functions on arrays of runs that are looked at before their end: `compare_in_sequence` and its kin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.ranges import Ends, score_range
from ...analysis.sample import as_scores, checked_names
from ...api.keywords import Computing, chosen_settings
from ...data.numbers import number_array
from ...errors import InputError
from ...settings import Settings
from ...stats.contrast import question_stats
from ..boundaries import GAMMA, LOOKS, Looks, Spending, critical_values
from ..subsets import full_benchmark, part_of
from .growing import Pair
from .rules import AskingOrder, StoppingRule

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    from ...arrays import NamesLike
    from ...results.parts import FullBenchmark, Sequential


def boundaries(
    looks: int = 5,
    level: float | None = None,
    spending: Spending = "hsd",
    gamma: float = GAMMA,
    *,
    settings: Settings | None = None,
) -> tuple[float, ...]:
    """Return the critical |z| at each of `looks` looks at equal information, α/2 on each side.

    Parameters
    ----------
    looks
        How often is looked, 1 … 50; the last look has all the information.
    level
        1 − the error α of the whole procedure; 0.95.
    spending
        How fast that error is spent on each side: Hwang, Shih & DeCani's family, or the types of O'Brien & Fleming's or
        Pocock's boundaries.
    gamma
        γ of that family; with a larger one more is spent early.
    settings
        Its level, if `level` is not given.

    Returns
    -------
    tuple of float
        (`looks`,) critical values of |z|, the first look's first.

    Raises
    ------
    InputError
        `looks` outside 1 to 50, `level` outside (0, 1), `gamma` outside ±40, or another word as `spending`.

    References
    ----------
    Hwang, Shih & DeCani (1990); Lan & DeMets (1983); Armitage, McPherson & Rowe (1969) for the integration.
    """
    chosen = chosen_settings("boundaries", settings, {"level": level})
    StoppingRule(looks=looks, level=chosen.level, spending=spending)
    if isinstance(looks, str):
        raise InputError(
            "looks 'anytime' has no boundaries in z: they widen with every question. Give a number of looks"
        )
    if not -40 <= gamma <= 40:
        raise InputError(f"gamma {gamma:g} is not within ±40")
    return critical_values([(k + 1) / looks for k in range(looks)], round(1 - chosen.level, 12), spending, gamma)


def compare_in_sequence(
    a: ArrayLike,
    b: ArrayLike,
    clusters: NamesLike | None = None,
    level: float | None = None,
    *,
    complete: ArrayLike | None = None,
    looks: Looks = LOOKS,
    spending: Spending = "hsd",
    order: AskingOrder = "breadth",
    futility: bool = True,
    effect: float | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Computing],
) -> Sequential:
    """Replay in one random order a comparison that stops when it is decided, on two runs whose answers are all there.

    Parameters
    ----------
    a
        (n, K_A) scores, NaN where a repeat is missing; or (n,).
    b
        (n, K_B) scores of the same n questions in the same order, of a run that is finished.
    clusters
        (n,) names, equal for questions that belong together, asked together; None: independent.
    level
        1 − the error of the whole procedure; 0.95.
    complete
        (n, R) question means of other runs that are finished, NaN where one has none; None: B alone says what A's part
        of the questions says of them all.
    looks
        How often is looked, at equal steps of information; "anytime" looks after every block.
    spending
        See `boundaries`.
    order
        "breadth": one answer to every question, then the second answers, and so on; "depth": all answers to a question
        before the next question.
    futility
        Also stop where the rest would not decide it with a probability of 95%; costs no error.
    effect
        A planned difference: futility then spends its error of type II, in place of that probability.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace: with a `margin` it also stops where A and B are equivalent within it; `seed` is
        that of the random order of the questions (whole clusters); `se` is the variance estimator of the clusters'
        scores, where the regression on what is known has ``"cr2"`` only.

    Returns
    -------
    Sequential
        The `sequential` object: decision, answers asked, estimate and interval that are valid after stopping, on the
        scale of the scores.

    Raises
    ------
    InputError
        A choice out of range, such as `looks` outside 1 to 50, or too few questions (clusters) for a look before the
        end.
    ValueError
        Other numbers of questions in `a` and `b`, or names of another length.

    References
    ----------
    Jennison & Turnbull (2000); Lan & DeMets (1983); Waudby-Smith et al. (2024) for "anytime".
    """
    chosen = chosen_settings("compare_in_sequence", settings, {**choices, "level": level})
    rule = StoppingRule(
        looks=looks,
        margin=chosen.margin or 0.0,
        level=chosen.level,
        seed=chosen.seed,
        spending=spending,
        futility=futility,
        effect=effect,
        asking=order,
    )
    parts = [as_scores(x, clusters, chosen.missing) for x in (a, b)]
    n = len(parts[0].questions)
    if n != len(parts[1].questions):
        raise ValueError(f"{n} questions in a and {len(parts[1].questions)} in b")
    X = np.empty((n, 0)) if complete is None else number_array(complete, "means of `complete`")
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or len(X) != n:
        raise ValueError(f"complete must have one row for each of the {n} questions")
    scored = np.array([~np.isnan(part.values).all(axis=1) for part in parts]).all(axis=0)
    return replace(Pair.of(parts[:1], parts[1:], settings=chosen), references=X[scored]).run(rule).sequential


def estimate_from_part(
    scores: ArrayLike,
    asked: ArrayLike,
    complete: ArrayLike,
    clusters: NamesLike | None = None,
    level: float | None = None,
    *,
    strata: NamesLike | None = None,
    against: ArrayLike | None = None,
    chances: ArrayLike | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Computing],
) -> FullBenchmark:
    """Return the mean (or A − B) over all N questions of a benchmark from m answered at random. Refuse any other m.

    Parameters
    ----------
    scores
        (m, K) scores of the questions that were asked, NaN where a repeat is missing; or (m,).
    asked
        (m,) indexes into the N questions, in the order of `scores`.
    complete
        (N, R) question means of runs that have answered all of them, NaN where one has not.
    clusters
        (N,) names, equal for what was drawn together; None: single questions.
    level
        Coverage of the interval; 0.95.
    strata
        (N,) names of the tasks in which questions were drawn in proportion; None: one task.
    against
        (N,) question means of a second run that has answered all N questions. The result is then the difference: the
        mean of `scores`, estimated with this run and the complete ones, minus the second run's mean, which is known.
    chances
        (m,) probabilities with which the questions were drawn, equal within a cluster; None: all questions of a stratum
        had the same.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace: `range` keeps the interval within the metric's.

    Returns
    -------
    FullBenchmark
        The `full_benchmark` object, on the scale of the scores; the plain mean of the part if that has fewer than 30
        questions (clusters).

    Raises
    ------
    InputError
        A part that does not look random (the first m, as `--limit` takes them), all N questions, an index twice, arrays
        of other lengths, a level outside (0, 1), or scores outside `range`.

    References
    ----------
    Särndal, Swensson & Wretman (1992), ch. 6, the generalised regression estimator, cross-fitted.
    """
    chosen = chosen_settings("estimate_from_part", settings, {**choices, "level": level})
    X, rows = number_array(complete, "means of `complete`").copy(), np.asarray(asked)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError("complete must be an (N, R) array, and asked (m,) indexes of questions")
    N = len(X)
    answered = as_scores(scores, missing=chosen.missing)
    stats = question_stats(answered.values)
    unlike = np.ma.is_masked(asked) or len(stats) != len(rows) or len(np.unique(rows)) != len(rows)
    if unlike or not np.isin(rows, np.arange(N)).all():
        raise InputError(f"asked must be one index below {N} for each of the {len(stats)} questions, each once")
    for keyword, names in (("clusters", clusters), ("strata", strata)):
        if names is not None and len(names) != N:
            raise InputError(f"{len(names)} {keyword} for the {N} questions of the complete runs")
        if names is not None:
            checked_names(keyword, names, N)
    scored = stats.count > 0
    pi = None if chances is None else number_array(chances, "chances")
    if pi is not None and (pi.shape != rows.shape or not ((pi > 0) & (pi <= 1)).all()):
        raise InputError(f"chances must be {len(rows)} probabilities above 0, one for each question that was asked")
    drawn = None if pi is None else pi[scored]
    part = part_of(rows[scored].astype(np.intp), N, clusters, strata, drawn=pi is not None, chances=drawn)
    other = None if against is None else number_array(against, "means of `against`")
    if other is not None and (other.shape != (N,) or not np.isfinite(other).all()):
        raise InputError(f"`against` must be {N} question means, one for each question of `complete`, none missing")
    runs = tuple(f"complete run {r + 1}" for r in range(X.shape[1]))
    bounds = chosen.range
    if bounds is not None:
        sides = [answered] if other is None else [answered, as_scores(other)]
        score_range([Ends.of([side]) for side in sides], chosen)
    if bounds is not None and other is not None:
        bounds = (bounds[0] - bounds[1], bounds[1] - bounds[0])
    return full_benchmark(stats.mean[scored], part, X, runs, chosen.level, against=other, bounds=bounds)
