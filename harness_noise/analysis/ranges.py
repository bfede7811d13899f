"""The range of a metric: declared, asked for, or guessed, and what missing answers could change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import FloatArray
from ..choices import IntervalMethod
from ..data.matching import pair_questions
from ..data.measures import UNBOUNDED
from ..data.notes import Note
from ..data.scores import Scores
from ..data.units import is_proportion
from ..errors import InputError, parameter
from ..settings import Settings, check_scale
from ..stats.contrast import question_stats
from ..stats.tolerances import SLACK


def hull(ranges: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    """Return the smallest (low, high) that contains all these ranges. None if there is none or one is None."""
    limits = [bounds for bounds in ranges if bounds is not None]
    if not limits or len(limits) < len(ranges):
        return None
    return min(low for low, _ in limits), max(high for _, high in limits)


def name_of(parts: Sequence[Scores]) -> str:
    """Return the text "task, metric" of the first of these scores, for messages."""
    return ", ".join(filter(None, (parts[0].task, parts[0].metric)))


class Ends(NamedTuple):
    """The lowest and highest score of one run, on one task or on those of a group. NaN where it has none."""

    name: str
    low: float
    high: float
    bounds: tuple[float, float] | None
    proportion: bool

    @classmethod
    def of(cls, parts: Sequence[Scores]) -> Ends:
        """Return the scores' lowest and highest (of corrected means: their bounds), with the range they declare."""
        each = [x.bounds or () if x.corrected is not None else x.values for x in parts]
        return cls.seen(parts, each, hull([part.bounds for part in parts]))

    @classmethod
    def seen(cls, parts: Sequence[Scores], values: Sequence[ArrayLike], bounds: tuple[float, float] | None) -> Ends:
        """Return `Ends` with the lowest and highest of `values`, computed from the scores `parts`. NaN is ignored."""
        scores = [np.asarray(x, dtype=np.float64) for x in values]
        low = float(reduce(np.fmin, (np.fmin.reduce(x, axis=None, initial=np.nan) for x in scores)))
        high = float(reduce(np.fmax, (np.fmax.reduce(x, axis=None, initial=np.nan) for x in scores)))
        return cls(name_of(parts), low, high, bounds, is_proportion(parts[0].metric))


def widths(runs: Sequence[Ends], settings: Settings) -> FloatArray:
    """Return (M, M) highest minus lowest possible score for each pair of runs. NaN if unknown or unlimited."""
    kinds: dict[tuple[object, ...], list[int]] = {}
    for i, run in enumerate(runs):
        kinds.setdefault(run[1:], []).append(i)
    out = np.full((len(runs), len(runs)), np.nan)
    for some, others in combinations_with_replacement(kinds.values(), 2):
        bounds = score_range([runs[some[0]], runs[others[0]]], settings)
        width = np.nan if bounds is None else bounds[1] - bounds[0]
        out[np.ix_(some, others)] = out[np.ix_(others, some)] = width
    return out


def score_range(samples: Sequence[Ends], settings: Settings) -> tuple[float, float] | None:
    """Return a metric's range, set, declared or guessed, or None. Refuse scores outside if set, or if all declare it.

    What `--range` says counts, then what the adapters declare. If neither says anything, scores that all
    lie in [0, 1] are taken to have that range, unless they are all 0 or all 1 and the metric's name does not
    say that they are right or wrong: a percentage may be 0 throughout.

    Raises:
        InputError: a score outside the range that was said or declared.
    """
    ends = [sample for sample in samples if not math.isnan(sample.low)]
    if not ends:
        return settings.range
    low, high = min(sample.low for sample in ends), max(sample.high for sample in ends)
    declared = hull([sample.bounds for sample in samples if sample.bounds is not None])
    bounds = settings.range or declared
    if bounds == UNBOUNDED:
        return None
    if bounds is not None:
        slack = SLACK * (bounds[1] - bounds[0])
        if bounds[0] - slack <= low and high <= bounds[1] + slack:
            return bounds
        if settings.range is None and any(sample.bounds is None for sample in samples):
            return None
        raise InputError(outside_message(samples[0].name, low, high, bounds, settings))
    if low < 0 or high > 1:
        return None
    constant = low == high and low in (0.0, 1.0)
    return None if constant and not all(sample.proportion for sample in samples) else (0.0, 1.0)


def check_margin(settings: Settings, parts: Iterable[Scores]) -> None:
    """Refuse an equivalence margin that is as wide as the metric's whole range, or wider.

    Raises:
        InputError: a margin as large as the whole range.
    """
    if settings.margin is not None:
        parts = list(parts)
        scale = score_range([Ends.of([part]) for part in parts], settings)
        check_scale("margin", settings.margin, scale, parts[0].metric if parts else "")


def scales_differ(parts_a: Sequence[Scores], parts_b: Sequence[Scores]) -> bool:
    """Return True if one run's scores lie in [0, 1] and the other run's look like percentages (above 20)."""
    a, b = (Ends.seen(parts, [part.values for part in parts], None) for parts in (parts_a, parts_b))
    small, large = sorted((a.high, b.high))
    return min(a.low, b.low) >= 0 and 0 < small <= 1 and 20 < large <= 100


def outside_message(name: str, low: float, high: float, bounds: tuple[float, float], settings: Settings) -> str:
    """Return the error message that scores from `low` to `high` lie outside the range `bounds`."""
    whose, leave = f"`range=({bounds[0]:g}, {bounds[1]:g})`", "one of the two out: with the range alone"
    if settings.range is None:
        whose, leave = f"the declared range [{bounds[0]:g}, {bounds[1]:g}]", "it out: then"
    if low == 0 < bounds[0] and "zero" in settings.missing:
        return (
            f"{name}: {parameter('missing', settings.missing)} counts missing answers as 0, which is not within "
            f"{whose}. Leave {leave}, what the missing answers could change is shown"
        )
    return (
        f"{name}: the scores go from {low:g} to {high:g}, which is not within {whose}. Give the lowest and the "
        "highest value that the metric can take, `range=(LOW, HIGH)`, and name the metric with `metrics` if others "
        "have another range"
    )


def zeros_below(parts: Iterable[Scores], settings: Settings) -> list[Note]:
    """Return a note per metric if missing answers count as 0, and 0 is below every other score (grades 1–10).

    Scores in [0, 1] have a 0. The others may be grades from 1 to 10, unless a range with a 0 is known.
    """
    each: dict[tuple[str, str, str], list[Scores]] = {}
    for part in parts:
        each.setdefault(part.key, []).append(part)
    return [note for some in each.values() for note in _zeros_below(some, settings)]


def _zeros_below(parts: Sequence[Scores], settings: Settings) -> list[Note]:
    n = sum(part.n_zero for part in parts)
    if not n or (settings.range or hull([part.bounds for part in parts])) is not None:
        return []
    values = np.concatenate([part.values.ravel() for part in parts])
    seen = values[np.isfinite(values) & (values != 0)]
    if (values == 0).sum() > n or not seen.size or seen.min() < 0 or seen.max() <= 1:
        return []
    count = "1 missing answer counts" if n == 1 else f"{n:,} missing answers count"
    said = (
        f"{count} as 0, below the lowest score seen, {seen.min():g}. If the scale has no 0, leave "
        f"{parameter('missing', settings.missing)} out and give the scale's ends (for grades from 1 to 10, "
        "`range=(1, 10)`): then what the missing answers could change is shown"
    )
    return [Note("missing_matters", said).of(parts[0].task, parts[0].metric)]


MISSING_SHARE = 1 / 3
"""Share of the SE: a mean that is off by so much leaves a 95% interval 93.7% coverage, and less from there on."""
Range = tuple[float, float]


def mean_if_missing(parts: Sequence[Scores], shares: Sequence[float] | None, bounds: Range | None) -> Range | None:
    """Return the means if missing answers had the lowest, or the highest, score. None if nothing is missing or unknown.

    None where nothing is missing, the ends of the range are not known, or the scores do not tell which of the
    answers they lack were asked for. `shares` are those of `shares_if_whole`.
    """
    if bounds is None or shares == [] or not _missing_are_located(parts):
        return None
    low, high = (_mean_with_filled(parts, shares, end) for end in bounds)
    return None if math.isnan(low) else (low, high)


def difference_if_missing(
    parts_a: Sequence[Scores],
    parts_b: Sequence[Scores],
    shares: Sequence[float] | None,
    bounds: Range | None,
    *,
    unpaired: bool = False,
) -> Range | None:
    """Return the lowest and highest A − B that the missing answers allow. None if nothing is missing or unknown.

    None as for a mean.
    """
    if bounds is None or shares == [] or not _missing_are_located([*parts_a, *parts_b]):
        return None
    if not unpaired:
        shared = [
            pair_questions(part_a.questions, part_b.questions) for part_a, part_b in zip(parts_a, parts_b, strict=True)
        ]
        parts_a = [part.take(rows.rows_a) for part, rows in zip(parts_a, shared, strict=True)]
        parts_b = [part.take(rows.rows_b) for part, rows in zip(parts_b, shared, strict=True)]
    low, high = (
        _mean_with_filled(parts_a, shares, x) - _mean_with_filled(parts_b, shares, y) for x, y in (bounds, bounds[::-1])
    )
    return None if math.isnan(low) else (low, high)


BETWEEN = 9
"""Scores between the ends of the range that are tried for those that are missing: t is not monotone in them."""


def are_graded(parts: Iterable[Scores], bounds: Range) -> bool:
    """Return True if some score is neither the lowest nor the highest value of the range `bounds`."""
    return any(not np.isin(part.values[~np.isnan(part.values)], bounds).all() for part in parts)


def _missing_are_located(parts: Sequence[Scores]) -> bool:
    """Return True if answers are missing and it is known to which question and repeat they belong."""
    return any(part.n_missing > part.n_zero for part in parts) and all(part.lost is not None for part in parts)


def fill(part: Scores, value: float) -> Scores:
    """Return the scores with all missing answers scored `value`, and no answer counted as missing."""
    return replace(part, values=filled_scores(part, value), native=None, n_missing=0, missing={})


def filled_scores(part: Scores, value: float) -> FloatArray:
    """Return the (n, K) scores with `value` in place of all missing answers."""
    lost = part.lost
    return part.values if lost is None else np.where(lost, value, part.values)


def _mean_with_filled(parts: Sequence[Scores], shares: Sequence[float] | None, value: float) -> float:
    """Return the mean over tasks, weighted by `shares` or by size, if all missing answers had this value.

    NaN if a task that has a weight has no answer, or none has a question.
    """
    weights = shares or [float(len(part.values)) for part in parts]
    means = [question_stats(filled_scores(part, value)).mean for part in parts]
    seen = [(mean[~np.isnan(mean)], w) for mean, w in zip(means, weights, strict=True) if w > 0]
    if not seen or not all(len(mean) for mean, _ in seen):
        return math.nan
    return float(np.average([mean.mean() for mean, _ in seen], weights=[w for _, w in seen]))


def check_range(where: str, chosen: IntervalMethod, bounds: tuple[float, float] | None) -> None:
    """Refuse an interval method that needs a metric with a range (such as Wilson's) if the range is unknown.

    Raises:
        InputError: it says how to give one.
    """
    if chosen.on_share and bounds is None:
        raise InputError(
            f"{where}: interval {chosen.name} is for a metric with a range, as scores in [0, 1] have one: give it "
            "with `range=(LOW, HIGH)`, or use `interval='t'`"
        )
