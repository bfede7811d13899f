"""P differences on the same questions at once: the numbers of `comparison.difference_of_scores` without a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import HUGE, BoolArray, FloatArray, NamesLike, rows_of
from ..choices import INTERVALS, T
from ..data.numbers import number_array
from ..data.scores import Run, Scores
from ..errors import InputError
from ..results.rows import Difference
from ..settings import Settings, check_scale
from ..stats import decision
from ..stats.contrast import QuestionStats, design, question_stats
from ..stats.data_limit import DataLimit, terms
from ..stats.moments import moving_together_p
from ..stats.pairs import difference_columns, from_questions, paired, variance_flags
from ..stats.ranks import wins
from .comparison import difference_of_arrays
from .difference import Compared
from .ranges import Ends, score_range
from .rows import RowDecision, decide_rows
from .sample import SHARED_NOISE_P, as_scores

CHUNK = 4_000_000
"""Scores that are worked on at once."""


def each_difference(
    a: ArrayLike,
    b: ArrayLike,
    clusters: NamesLike | None,
    crossed: tuple[NamesLike, NamesLike] | None,
    settings: Settings,
) -> tuple[Difference, ...]:
    """Return A − B with noise of each of P pairs, each tested by itself. Refuse other than (P, n, K_A) and (P, n, K_B).

    Pairs with missing answers go one by one, and so do all if settings ask for more than the t test of paired
    questions: then every pair may have another design.

    Args:
        a: (P, n, K_A) scores, NaN where an answer is missing.
        b: (P, n, K_B).
        clusters: (n,) names; None: independent questions.
        crossed: two sets of names, in place of `clusters`.
        settings: how to compute.

    Raises:
        ValueError: arrays that do not fit together.
    """
    x, y = number_array(a), number_array(b)
    if x.ndim != 3 or y.ndim != 3 or len(x) != len(y):
        raise InputError(f"P pairs are (P, n, K) arrays both, not of shape {x.shape} and {y.shape}")
    at_once = (np.abs(x) <= HUGE).all(axis=(1, 2)) & (np.abs(y) <= HUGE).all(axis=(1, 2))
    at_once &= (
        crossed is None and x.shape[1] == y.shape[1] > 0 and min(x.shape[2], y.shape[2]) > 0 and _needs_only_t(settings)
    )
    rows = np.flatnonzero(at_once)
    step = max(1, CHUNK // max(1, x[0].size + y[0].size)) if len(rows) else 1
    parts = [rows[i : i + step] for i in range(0, len(rows), step)]
    found = [row for part in parts for row in _difference_rows(x[part], y[part], clusters, settings)]
    named = [replace(row, family=str(i)) for i, row in enumerate(found)]
    out = dict(zip(rows.tolist(), decide_rows(named, settings), strict=True))
    for i in np.flatnonzero(~at_once).tolist():
        out[i] = difference_of_arrays(x[i], y[i], clusters, crossed, settings)
    return tuple(out[i] for i in range(len(x)))


def _needs_only_t(settings: Settings) -> bool:
    """Return True if all but level, se, margin, range, adjust, missing, seed and resamples are the paired t test's."""
    same = ("level", "se", "margin", "range", "adjust", "missing", "seed", "resamples")
    plain = Settings(**{name: getattr(settings, name) for name in same})
    return replace(settings, interval=INTERVALS.default) == plain and settings.interval in (INTERVALS.default, T.name)


def _difference_rows(
    a: FloatArray, b: FloatArray, clusters: NamesLike | None, settings: Settings
) -> Iterator[RowDecision]:
    """Yield the row of A − B, before its verdict, for each of P pairs of complete (P, n, K) score arrays."""
    first = [as_scores(x[0], clusters) for x in (a, b)]
    questions, runs = design(a.shape[1], first[0].clusters), [_question_stats_of_runs(a), _question_stats_of_runs(b)]
    parts, codes, c, limit = from_questions(runs, questions, settings.se)
    m, far, lead = parts["of"], parts["far"], parts["leads"]
    limit = limit or terms(c, questions, m.variance, m.df, settings.se)
    widths = np.array([_width(*ends, settings) for ends in zip(_score_limits(a), _score_limits(b), strict=True)])
    own = decision.decide(paired(m, lead, far, widths), settings)
    won = np.array([wins(x, y) for x, y in zip(a, b, strict=True)])
    sides = replace(parts["sides"], wins_a=won[:, 0], wins_b=won[:, 1])
    columns = difference_columns(m, lead, sides, questions.clustered, lower=False)
    flags = codes | variance_flags(m, questions) | {"few_flips": ~np.isnan(far.mean), "identical_scores": lead.same}
    flags["shared_repeat_noise"] = _repeats_shift(a) | _repeats_shift(b)
    common = _common_fields(first, settings)
    binary = _binary(a) & _binary(b)
    for i in range(len(a)):
        numbers: dict[str, Any] = {name: column[i].item() for name, column in columns.items()}
        numbers |= {"_zero_one": bool(binary[i]), "_data_limit": DataLimit([limit.row(i)])}
        has = [code for code, of in flags.items() if of[i]]
        yield RowDecision.of(rows_of(own, np.array([i])), has, **common | numbers)


def _question_stats_of_runs(values: FloatArray) -> QuestionStats:
    """Return the (P, n) mean, variance and count of each question's K repeats, from (P, n, K) scores."""
    P, n, K = values.shape
    flat = question_stats(values.reshape(P * n, K))
    return QuestionStats(flat.mean.reshape(P, n), flat.var.reshape(P, n), flat.count.reshape(P, n))


def _common_fields(first: Sequence[Scores], settings: Settings) -> dict[str, Any]:
    """Return the fields of a difference's row that are equal for all P pairs: names, level, test, clusters."""
    a, b = (Run(model=name, name=name.lower(), harness="array") for name in "AB")
    common = Compared([first[0]], [first[1]], a, b).about()
    common |= {"level": settings.level, "test": settings.test_of_difference, "estimand": settings.estimand}
    return common | {"cluster": first[0].cluster_spec, "equal_answers": None, "judge_flips": None}


def _score_limits(values: FloatArray) -> list[Ends]:
    """Return each of P runs' lowest and highest score as `Ends`, with the range (0, 1) if all lie in it."""
    low, high = values.min(axis=(1, 2)).tolist(), values.max(axis=(1, 2)).tolist()
    shares = [(0.0, 1.0) if x >= 0 and y <= 1 else None for x, y in zip(low, high, strict=True)]
    return [Ends("score", x, y, share, proportion=False) for x, y, share in zip(low, high, shares, strict=True)]


def _width(a: Ends, b: Ends, settings: Settings) -> float:
    """Return highest minus lowest possible score, NaN if unknown. Refuse a margin as wide as that.

    Raises:
        InputError: a margin that is as wide.
    """
    bounds = score_range([a, b], settings)
    check_scale("margin", settings.margin, bounds, "score")
    return np.nan if bounds is None else bounds[1] - bounds[0]


def _repeats_shift(values: FloatArray) -> BoolArray:
    """Return (P,) True for runs in which an F test finds that repeats shift as a whole. False if n or K is 1."""
    several = values.shape[1] > 1 and values.shape[2] > 1
    return moving_together_p(values) < SHARED_NOISE_P if several else np.zeros(len(values), dtype=np.bool_)


def _binary(values: FloatArray) -> BoolArray:
    """Return (P,) True for runs whose scores are all 0 or 1."""
    return np.asarray(((values == 0) | (values == 1)).all(axis=(1, 2)))
