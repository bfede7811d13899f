"""From an estimate to a decision: interval, p-values, equivalence, verdict and diagnostics, for one difference or many.

All of it works on arrays of any length. `decide` says what each difference says for itself, `apply_adjustment` gives
the verdicts once p is adjusted over their families: every row of `compare`, metric of a whole corpus, profile, pair of
counts and pair of many runs goes through both. A verdict over all rows reads the one-sided p-values of the same
decision, so that no two of them can disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..arrays import AnyArray, BoolArray, FloatArray, IntArray
from ..choices import BONETT_PRICE, T
from ..data.units import Equivalent
from ..errors import of_choice
from ..settings import Settings
from .intervals import ExtendedSample, Limits, critical, t_limits
from .power import noncentrality
from .tolerances import FEW_DF, ROUNDING, SMALLEST, short_of

WORDS = ("not separable", "A better", "B better")
"""Verdicts by code. The fourth is `equivalent within M`."""
SAME, A, B, EQUIVALENT = range(4)
SKEW_P = 0.05
"""p of the pooled skewness below which the rows are reported as skewed alike, if that matters."""
MOST_SHIFT = 0.15
"""The most that skewness may shift Stouffer's z by. The z of inverse variance may shift by twice as much.

A test at 5% then rejects a true null in 5.3% (6%). A difference of 0/1 scores is skewed as soon as it is a
difference, and shifts far less.
"""


def verdicts_by_code(margin: float | None) -> tuple[str, ...]:
    """Return the verdict texts in the order of their integer codes, "equivalent" last if there is a margin."""
    return WORDS if margin is None else (*WORDS, Equivalent(margin))


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """P differences, and what is known of their noise. NaN is "not identified"."""

    diff: FloatArray
    variance: FloatArray
    df: FloatArray
    zero: BoolArray
    """Nothing varies: every question (cluster) has the same difference."""
    p_zero: FloatArray
    """The p that decides there, from the sign test, or for unpaired runs from their small-sample interval."""
    small: Callable[[float], Limits[FloatArray]] | None = None
    """Level → the small-sample limits there, None if the metric has no known range."""
    far: ExtendedSample | None = None
    """The source of the far limits, if few questions (clusters) differ."""
    small_name: str = BONETT_PRICE.name
    width: FloatArray | float = math.inf
    """Width of the metric's range, beyond which no difference can lie."""
    side: FloatArray | None = None
    """1 if A leads on more questions (clusters) than B, −1 if B does, None without a sign test."""


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """Results of a test other than t's for P differences, and of an interval other than t's."""

    p: FloatArray | None = None
    """Two-sided p of no difference, None for t's."""
    at: Callable[[float], FloatArray] | None = None
    """Another null than 0 → its two-sided p. None: the test has no limits, unless it is t's."""
    side: FloatArray | None = None
    """The sign that p supports, None for the sign of the difference."""
    statistic: FloatArray | None = None
    by_p: bool = False
    """True if p < 1 − level shows a difference, as for a test without its own interval. Otherwise the interval does."""
    of_all: bool = False
    """True if it also decides if nothing varies."""
    limits: Callable[[float], Limits[float] | Limits[FloatArray]] | None = None
    """Level → its own limits. None: the limits are t's."""
    interval: str = T.name


def by_sign(of: Differences) -> Test:
    """Return the exact sign test of P differences, from how many questions or clusters each side leads on.

    If neither side leads anywhere, p is 1.

    A few large differences can make the mean negative while A leads on more questions: then neither is called better.
    """
    return Test(np.where(np.isnan(of.p_zero), 1.0, of.p_zero), side=of.side, by_p=True, of_all=True)


class OneSided(NamedTuple):
    """One-sided p-values of a difference at −M and at M, M the margin or 0. NaN where the test has none there."""

    below_low: float
    """Small: the difference is shown to lie below −M."""
    above_low: float
    """Small: it is shown to lie above −M."""
    below_high: float
    """Small: it is shown to lie below M."""
    above_high: float
    """Small: it is shown to lie above M."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The own decision of each of P differences, before its family is known. NaN is null."""

    ci_low: FloatArray
    ci_high: FloatArray
    interval: AnyArray
    """The method of the interval, "none" without one."""
    statistic: FloatArray
    p_value: FloatArray
    p: FloatArray
    """The p that is adjusted: the p-value, or that of the rule that replaces it if it is null."""
    mde: FloatArray
    separable: BoolArray
    """The verdict of the single interval or test."""
    equivalent: BoolArray
    """The verdict of the two one-sided tests."""
    one_sided: FloatArray
    """(P, 4) `OneSided` of each."""

    def numbers(self) -> dict[str, FloatArray]:
        """Return {name: (P,) column} of limits, t statistic, p-value and smallest detectable difference."""
        names = ("ci_low", "ci_high", "statistic", "p_value", "mde")
        return {name: getattr(self, name) for name in names}


def decide(of: Differences, settings: Settings, test: Test | None = None) -> Decision:
    """Return interval, p-value and equivalence tests of P differences, before any adjustment for multiple tests.

    The interval is t's, or the test's own where it has one, and reaches its far limit. A difference is called by its
    interval, or by p where the test says so. Where nothing varies there is no t: the interval is a small-sample rule's
    and the sign test decides, p being 1 where the difference is 0.

    Args:
        of: the differences and their noise.
        settings: the level of the intervals, 1 − α, and the margin of the two one-sided tests.
        test: None: t's.
    """
    test, level = test or Test(), settings.level
    alpha = 1 - level
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(np.maximum(of.variance, 0.0))
        varies = ~np.isnan(se) & ~of.zero
        statistic = np.where(varies, of.diff / se, np.nan)
        p_value = np.where(varies, 2 * special.stdtr(of.df, -np.abs(statistic)), np.nan)
        if test.p is not None:
            statistic = np.full(len(se), np.nan) if test.statistic is None else test.statistic
            p_value = np.where(varies, test.p, np.nan)
        limits = _limits(of, se, varies, level, test)
        called = p_value < alpha if test.by_p else limits.exclude()
        same = of.zero & (np.abs(of.diff) <= ROUNDING)
        p_value = np.where(same, 1.0, p_value)
        p = np.where(of.zero & ~same, of.p_zero, p_value)
        separable = np.where(of.zero, ~same & (of.p_zero < alpha), varies & called)
        if test.of_all and test.p is not None:
            p_value = p = np.where(np.isnan(se), np.nan, test.p)
            separable = p < alpha
        if test.side is not None:
            separable &= test.side == np.sign(of.diff)
        equivalent = np.zeros(len(se), dtype=np.bool_)
        if settings.margin is not None:
            equivalent = _limits(of, se, varies, two_one_sided(level), test).within(settings.margin)
        margin = settings.margin or 0.0
        ends = [
            _one_sided_p(of, se, varies, bound, p, test, level) for bound in ([-margin, margin] if margin else [0.0])
        ]
    # an interval that does not hold its own estimate is never written, whatever made it
    shown = ~(np.isnan(limits.low) | np.isnan(limits.high)) & limits.hold(of.diff)
    names = np.where(shown, np.where(of.zero, of.small_name, test.interval), "none").astype(object)
    mde = minimum_detectable(np.where(varies, se, np.nan), of.df, level)
    return Decision(
        np.where(shown, limits.low, np.nan),
        np.where(shown, limits.high, np.nan),
        names,
        statistic,
        p_value,
        p,
        mde,
        separable,
        equivalent,
        np.array([column for end in (ends[0], ends[-1]) for column in end]).T,
    )


def _one_sided_p(
    of: Differences, se: FloatArray, varies: BoolArray, bound: float, p: FloatArray, test: Test, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return (P,) one-sided p-values that the difference is below `bound`, and that it is above.

    At 0 they are halves of the two-sided p. Elsewhere they are the test's own there; where few questions differ, on the
    side away from 0, no smaller than those of the extended sample, whose limit counts there. So p < (1 − level)/2
    exactly if the limit lies beyond the bound.
    """
    side = np.sign(np.where(np.abs(of.diff - bound) <= ROUNDING, 0.0, of.diff - bound))
    if bound == 0:
        return _halves(p, side if test.side is None else test.side)
    if test.p is None:
        t = (of.diff - bound) / se
        below, above = special.stdtr(of.df, t), special.stdtr(of.df, -t)
    else:
        below, above = _halves(np.full(len(se), np.nan) if test.at is None else test.at(bound), side)
    if of.far is not None:
        t = (of.far.mean - bound) / np.sqrt(of.far.variance)
        far = special.stdtr(of.far.df, t), special.stdtr(of.far.df, -t)
        below = np.where(of.diff >= -ROUNDING, np.fmax(below, far[0]), below)
        above = np.where(of.diff <= ROUNDING, np.fmax(above, far[1]), above)
    below, above = np.where(varies, below, np.nan), np.where(varies, above, np.nan)
    if not of.zero.any() or test.of_all:
        return below, above
    # every question differs by one amount: the small-sample limits, or without them the sign test of that amount
    half = of.p_zero / 2
    flat = np.where(side >= 0, 1.0, half), np.where(side >= 0, half, 1.0)
    if of.small is not None:
        ends = of.small(level)
        shown = p_beyond(of.diff, ends.high, math.inf, level, bound)
        flat = shown, p_beyond(-of.diff, -np.asarray(ends.low), math.inf, level, -bound)
    return np.where(of.zero, flat[0], below), np.where(of.zero, flat[1], above)


def _halves(p: FloatArray, side: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split (P,) two-sided p-values into one-sided: p/2 on the estimate's side, 1 − p/2 on the other. Return both."""
    below = np.where(side < 0, p / 2, np.where(side > 0, 1 - p / 2, 0.5))
    return np.where(np.isnan(p), np.nan, below), np.where(np.isnan(p), np.nan, 1 - below)


def two_one_sided(level: float) -> float:
    """Return the confidence level 1 − 2α whose interval decides an equivalence test of level α."""
    return max(0.0, 2 * level - 1)


def _limits(of: Differences, se: FloatArray, varies: BoolArray, level: float, test: Test) -> Limits[FloatArray]:
    """Return two (P,) limits of P differences, cut to ± the range's width. NaN if there is no interval.

    If nothing varies, they are those of the small-sample rule.
    """
    near = t_limits(of.diff, se, of.df, level) if test.limits is None else test.limits(level)
    own = near.widened_to(of.diff, of.far, level)
    ends = varies & np.isfinite(own.low) & np.isfinite(own.high)
    own = Limits(*(_no_rounding(np.minimum(np.maximum(x, -of.width), of.width)) for x in (own.low, own.high)))
    low, high = np.full((2, len(se)), np.nan)
    if of.small is not None and of.zero.any():
        small = of.small(level)
        low, high = np.where(of.zero, small.low, np.nan), np.where(of.zero, small.high, np.nan)
    return Limits(np.where(ends, own.low, low), np.where(ends, own.high, high))


def _no_rounding(limits: FloatArray) -> FloatArray:
    """Return the array of limits, with 0 in place of those that differ from 0 by rounding error only."""
    return np.where(np.abs(limits) <= ROUNDING, 0.0, limits)


def noise_flags(df: FloatArray, *, zero: BoolArray, var_data: FloatArray) -> dict[str, BoolArray]:
    """Return {diagnostic code: (P,) flags} for few clusters, zero variance and negative data variance."""
    return {"few_clusters": short_of(df, FEW_DF), "zero_variance": zero, "negative_data_variance": var_data < 0}


def noise_codes(df: float, *, zero: bool = False, var_data: float = math.nan) -> set[str]:
    """Return the codes few_clusters, zero_variance, negative_data_variance that hold for one mean or difference."""
    flags = noise_flags(np.asarray(df), zero=np.asarray(zero), var_data=np.asarray(var_data))
    return {code for code, has in flags.items() if has}


def adjusted(p: ArrayLike, method: str, families: Sequence[Hashable] | None = None) -> FloatArray:
    """Return (P,) p-values adjusted in each family by Holm, Benjamini–Hochberg or not at all. NaN stays and is no test.

    NaN stays NaN and is not counted as a test.

    Args:
        p: (P,) p-values.
        method: holm, bh or none.
        families: (P,) names; None: one family.
    """
    out, members = np.array(p, dtype=np.float64), dict[Hashable, list[int]]()
    if method == "none":
        return out
    for i in np.flatnonzero(~np.isnan(out)).tolist():
        members.setdefault(None if families is None else families[i], []).append(i)
    for rows in members.values():
        out[rows] = of_choice("adjust", method, {"holm": holm, "bh": benjamini_hochberg})(out[rows])
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """All that is said of P differences in view of their families."""

    p_adjusted: FloatArray
    """NaN where the p-value itself is."""
    codes: IntArray
    """Verdicts, into `verdicts_by_code`."""
    words: tuple[str, ...]
    lost_to_adjustment: BoolArray
    """True if the single interval (test) shows a difference and the adjusted p does not."""


def apply_adjustment(
    own: Decision, a_better: BoolArray, settings: Settings, families: Sequence[Hashable] | None = None
) -> Verdicts:
    """Return `Verdicts` (codes, adjusted p) on P differences, by p adjusted within families. No p: not separable.

    Args:
        own: what each says for itself.
        a_better: where A is ahead, in the metric's direction.
        settings: level, margin and the method of adjustment.
        families: (P,) names; None: one family.
    """
    p = adjusted(own.p, settings.adjust, families)
    with np.errstate(invalid="ignore"):
        lost = own.separable & (p >= 1 - settings.level) & (p > own.p)
    codes = np.where(own.separable & ~lost, np.where(a_better, A, B), np.where(own.equivalent, EQUIVALENT, SAME))
    shown = np.where(np.isnan(own.p_value), np.nan, p)
    return Verdicts(shown, codes.astype(np.intp), verdicts_by_code(settings.margin), lost)


def two_sided(low: ArrayLike, high: ArrayLike, level: float) -> FloatArray:
    """Return the two-sided p-value of "it is 0" that a symmetric normal interval (low, high) implies.

    Consistent with it at `level`.
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    z = (low + high) / (high - low) * critical(level)
    return np.asarray(2 * special.ndtr(-np.abs(z)))


def p_beyond(estimate: ArrayLike, limit: ArrayLike, df: ArrayLike, level: float, bound: float) -> FloatArray:
    """Return one-sided p, elementwise, against "the truth is ≥ bound", by t scaled to an upper limit at `level`.

    The t statistic (estimate − bound)/s, with s the half-width on that side over t's critical value: the
    standard error itself where the interval is t's; for any other interval, bootstrap or small-sample,
    p < (1 − level)/2 exactly if the limit lies below the bound.
    """
    estimate, limit = np.asarray(estimate, dtype=np.float64), np.asarray(limit, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        s = np.maximum(limit - estimate, 0.0) / critical(level, df)
        t = (estimate - bound) / s
    t = np.where(np.isnan(t) & (estimate == bound), 0.0, t)
    return np.asarray(special.stdtr(np.asarray(df, dtype=np.float64), t))


def welch_p(x: FloatArray, y: FloatArray) -> float:
    """Return the two-sided p of Welch's t test that samples x and y have equal means. No variance: 1 if so, else 0."""
    a, b = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    gap = float(x.mean() - y.mean())
    if a + b <= ROUNDING**2:
        return 1.0 if abs(gap) <= ROUNDING else 0.0
    df = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
    return float(2 * special.stdtr(df, -abs(gap / np.sqrt(a + b))))


@dataclass(frozen=True, slots=True)
class Skew:
    """All that one row adds to the test of the skewness that all rows share."""

    third: float
    """Σ (z³ − 3z) over the standardised values z of its questions (clusters), 0 in expectation if they are symmetric.

    The term −3z allows for the mean, which is estimated.
    """
    spread: float
    """Σ (z³ − 3z)², its variance."""
    shift: float
    """−γ/(2√G), which skewness γ adds to the expectation of t [Johnson]."""

    def turned(self) -> Skew:
        """Return the skewness statistics of the values with their signs reversed."""
        return Skew(-self.third, self.spread, -self.shift)


def skew_of(sums: FloatArray) -> Skew | None:
    """Return a row's skewness statistics for a joint test over rows, from (G,) centred cluster sums. None if all 0."""
    scale = float(np.abs(sums).max(initial=0.0))
    if scale <= SMALLEST:
        return None
    z = sums / scale
    z = z / math.sqrt(float(z @ z) / len(z))
    third = z**3 - 3 * z
    shift = -float((z**3).mean()) / (2 * math.sqrt(len(z)))
    return Skew(float(third.sum()), float(third @ third), shift)


def skewed_alike(rows: Sequence[Skew]) -> bool:
    """Return True if rows are skewed in one direction so much that their t tests together are too extreme."""
    spread = sum(row.spread for row in rows)
    if not spread > 0:
        return False
    z = sum(row.third for row in rows) / math.sqrt(spread)
    shift = sum(row.shift for row in rows) / math.sqrt(len(rows))
    return 2 * float(special.ndtr(-abs(z))) < SKEW_P and abs(shift) > MOST_SHIFT


def sign_p(wins: IntArray, losses: IntArray) -> FloatArray:
    """Return (P,) two-sided p-values of the exact sign test (McNemar) of wins against losses. NaN if both are 0.

    Args:
        wins: questions on which A is ahead, ties dropped; where they have clusters, clusters by the sign of their sums,
            because questions of one cluster are not independent.
        losses: those on which B is ahead.
    """
    decided = wins + losses
    p = np.minimum(1.0, 2 * special.bdtr(np.minimum(wins, losses).astype(np.float64), decided, 0.5))
    return np.where(decided > 0, p, np.nan)


def holm(p: ArrayLike) -> FloatArray:
    """Return (P,) p-values adjusted by Holm's step-down method for the family-wise error rate [Holm].

    NaN, where nothing was tested, stays NaN and counts in no family.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)  # NaN last
    scaled = np.maximum.accumulate(values[order] * (np.count_nonzero(~np.isnan(values)) - np.arange(len(values))))
    out = np.empty_like(values)
    out[order] = np.minimum(scaled, 1.0)
    return out


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Return (P,) p-values adjusted by Benjamini–Hochberg's step-up method for the false discovery rate [Benjamini]."""
    from scipy.stats import false_discovery_control  # takes long to import

    values = np.asarray(p, dtype=np.float64)
    return np.asarray(false_discovery_control(values) if len(values) else values)


def detectable_distance(se: float, df: float, level: float) -> float:
    """Return the distance from a fixed number at which a t test on a mean has 80% power, or NaN.

    NaN where its noise is not known, or is none.
    """
    return float(minimum_detectable(se, df, level)) if se and df else math.nan


def minimum_detectable(se: ArrayLike, df: ArrayLike, level: float, power: float = 0.80) -> FloatArray:
    """Return the true differences, one per SE, that a t test of this level detects with this power. Else NaN.

    NaN where se or df is, and where the test of this level finds more than `power` of anything.
    """
    alpha = 1 - level
    if alpha >= power:
        return np.full(np.broadcast_shapes(np.shape(se), np.shape(df)), np.nan)
    return np.asarray(noncentrality(alpha, power, np.asarray(df, dtype=np.float64)) * np.asarray(se))
