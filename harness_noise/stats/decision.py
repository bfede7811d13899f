"""From an estimate to a decision: interval, p-values, equivalence, verdict and diagnostics, for one difference or many.

All of it works on arrays of any length. `decide` says what each difference says for itself, `apply_adjustment` gives
the verdicts once p is adjusted over their families: every row of `compare`, metric of a whole corpus, profile, pair of
counts and column of `arena` goes through both, and the gate reads the same limits, so that no two of them can disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..arrays import AnyArray, BoolArray, FloatArray, IntArray
from ..settings import Settings
from .intervals import ExtendedSample, Limits, critical, t_limits
from .planning import noncentrality
from .tolerances import FEW_DF, ROUNDING, SMALLEST, short_of

WORDS = ("not separable", "A better", "B better")
"""Verdicts by code; the fourth is `equivalent within M`."""
SAME, A, B, EQUIVALENT = range(4)
SKEW_P = 0.05
"""Below this p of the pooled skewness the rows are said to be skewed alike, if that matters."""
MOST_SHIFT = 0.15
"""What skewness may shift Stouffer's z by (and twice that the z of inverse variance): a test at 5 % then rejects a true
null in 5.3 % (6 %). A difference of 0/1 scores is skewed as soon as it is one, and shifts far less."""


def words(margin: float | None) -> tuple[str, ...]:
    """The verdicts by code, with the margin's where there is one."""
    return WORDS if margin is None else (*WORDS, f"equivalent within {margin:g}")


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """P differences, and what is known of their noise; NaN is "not identified"."""

    diff: FloatArray
    variance: FloatArray
    df: FloatArray
    zero: BoolArray
    """Nothing varies: every question (cluster) has the same difference."""
    p_zero: FloatArray
    """The p that decides there, by the sign test; of unpaired runs, by their small-sample interval."""
    small: Callable[[float], Limits[FloatArray]] | None = None
    """Level → the small-sample limits there; None where no range of the metric is known."""
    far: ExtendedSample | None = None
    """What the far limits come from, where few questions (clusters) differ."""
    small_name: str = "bonett-price"
    width: FloatArray | float = math.inf
    """Width of the metric's range, beyond which no difference can lie."""


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """What a test other than t's says of P differences, and an interval other than t's."""

    p: FloatArray | None = None
    """None: t's."""
    statistic: FloatArray | None = None
    by_p: bool = False
    """Whether p < 1 − level calls a difference, as of a test without an interval that goes with it; else the interval
    does."""
    of_all: bool = False
    """Whether it decides where nothing varies, too."""
    limits: Callable[[float], Limits[float] | Limits[FloatArray]] | None = None
    """Level → its own limits; None: t's stand beside it."""
    interval: str = "t"


def by_sign(p: FloatArray) -> Test:
    """The sign test as the test of P differences; where nothing differs nothing is shown, p = 1."""
    return Test(np.where(np.isnan(p), 1.0, p), by_p=True, of_all=True)


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What each of P differences says for itself, before its family is looked at; NaN is null."""

    ci_low: FloatArray
    ci_high: FloatArray
    interval: AnyArray
    """Whose interval it is; "none" where there is none."""
    statistic: FloatArray
    p_value: FloatArray
    p: FloatArray
    """What is adjusted: the p-value, or that of the rule that stands in where it is null."""
    mde: FloatArray
    separable: BoolArray
    """What the single interval, or test, says."""
    equivalent: BoolArray
    """What the two one-sided tests say."""

    def numbers(self) -> dict[str, FloatArray]:
        """The columns that a result shows, by their names."""
        names = ("ci_low", "ci_high", "statistic", "p_value", "mde")
        return {name: getattr(self, name) for name in names}


def decide(of: Differences, settings: Settings, test: Test | None = None) -> Decision:
    """Interval, p-value and two one-sided tests of each difference by itself.

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
        equivalent = np.zeros(len(se), dtype=np.bool_)
        if settings.margin is not None:
            equivalent = _limits(of, se, varies, two_one_sided(level), test).within(settings.margin)
    shown = ~(np.isnan(limits.low) | np.isnan(limits.high))
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
    )


def two_one_sided(level: float) -> float:
    """1 − 2α: the level of the interval that two one-sided tests of level α read."""
    return max(0.0, 2 * level - 1)


def _limits(of: Differences, se: FloatArray, varies: BoolArray, level: float, test: Test) -> Limits[FloatArray]:
    """The limits of the test, or t's, with far ones, within the metric's range; where nothing varies the small-sample
    rule's. NaN: none."""
    near = t_limits(of.diff, se, of.df, level) if test.limits is None else test.limits(level)
    own = near.widened_to(of.diff, of.far, level)
    ends = varies & np.isfinite(own.low) & np.isfinite(own.high)
    own = Limits(np.clip(own.low, -of.width, of.width), np.clip(own.high, -of.width, of.width))
    low, high = np.full((2, len(se)), np.nan)
    if of.small is not None and of.zero.any():
        small = of.small(level)
        low, high = np.where(of.zero, small.low, np.nan), np.where(of.zero, small.high, np.nan)
    return Limits(np.where(ends, own.low, low), np.where(ends, own.high, high))


def noise_flags(df: FloatArray, *, zero: BoolArray, var_data: FloatArray) -> dict[str, BoolArray]:
    """The diagnostics that a variance and its degrees of freedom give reason for, as (P,) columns."""
    return {"few_clusters": short_of(df, FEW_DF), "zero_variance": zero, "negative_data_variance": var_data < 0}


def noise_codes(df: float, *, zero: bool = False, var_data: float = math.nan) -> set[str]:
    """`noise_flags` of one mean or difference; NaN is "not identified"."""
    flags = noise_flags(np.asarray(df), zero=np.asarray(zero), var_data=np.asarray(var_data))
    return {code for code, has in flags.items() if has}


def adjusted(p: ArrayLike, method: str, families: Sequence[Hashable] | None = None) -> FloatArray:
    """Adjusted p-values, over those that are known of each family; NaN stays NaN.

    Args:
        p: (P,) p-values.
        method: holm, bh or none.
        families: (P,) labels; None: one family.
    """
    out, members = np.array(p, dtype=np.float64), dict[Hashable, list[int]]()
    if method == "none":
        return out
    for i in np.flatnonzero(~np.isnan(out)).tolist():
        members.setdefault(None if families is None else families[i], []).append(i)
    for rows in members.values():
        out[rows] = {"holm": holm, "bh": benjamini_hochberg}[method](out[rows])
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What is said of P differences in view of their families."""

    p_adjusted: FloatArray
    """NaN where the p-value itself is."""
    codes: IntArray
    """Verdicts, into `words`."""
    words: tuple[str, ...]
    lost_to_adjustment: BoolArray
    """Where the single interval (test) would call a difference and the adjusted p does not."""


def apply_adjustment(
    own: Decision, a_better: BoolArray, settings: Settings, families: Sequence[Hashable] | None = None
) -> Verdicts:
    """The verdicts, from p adjusted over the family of each difference.

    Args:
        own: what each says for itself.
        a_better: where A is ahead, in the metric's direction.
        settings: level, margin and the method of adjustment.
        families: (P,) labels; None: one family.
    """
    p = adjusted(own.p, settings.adjust, families)
    with np.errstate(invalid="ignore"):
        lost = own.separable & (p >= 1 - settings.level) & (p > own.p)
    codes = np.where(own.separable & ~lost, np.where(a_better, A, B), np.where(own.equivalent, EQUIVALENT, SAME))
    shown = np.where(np.isnan(own.p_value), np.nan, p)
    return Verdicts(shown, codes.astype(np.intp), words(settings.margin), lost)


def two_sided(low: ArrayLike, high: ArrayLike, level: float) -> FloatArray:
    """Two-sided p of 0 for a normal interval that is symmetric about its centre; consistent with it at `level`."""
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    z = (low + high) / (high - low) * critical(level)
    return np.asarray(2 * special.ndtr(-np.abs(z)))


def p_beyond(estimate: ArrayLike, limit: ArrayLike, df: ArrayLike, level: float, bound: float) -> FloatArray:
    """One-sided p of "the truth is not below `bound`", read off the upper limit of the interval of `level`.

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
    """Two-sided p of Welch's test that two independent samples, of two values or more each, have one mean."""
    a, b = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    gap = float(x.mean() - y.mean())
    if a + b <= ROUNDING**2:
        return 1.0 if abs(gap) <= ROUNDING else 0.0
    df = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
    return float(2 * special.stdtr(df, -abs(gap / np.sqrt(a + b))))


@dataclass(frozen=True, slots=True)
class Skew:
    """What one row adds to the test of the skewness that all rows share."""

    third: float
    """Σ (z³ − 3z) over the standardised values z of its questions (clusters), 0 in expectation where they are
    symmetric; −3z allows for the mean, which is estimated."""
    spread: float
    """Σ (z³ − 3z)², its variance."""
    shift: float
    """−γ/(2√G), which skewness γ adds to the expectation of t [Johnson]."""

    def turned(self) -> Skew:
        """The skewness of the values with the other sign."""
        return Skew(-self.third, self.spread, -self.shift)


def skew_of(sums: FloatArray) -> Skew | None:
    """The skewness of (G,) centred values of questions, or sums of clusters; None where they do not vary."""
    scale = float(np.abs(sums).max(initial=0.0))
    if scale <= SMALLEST:
        return None
    z = sums / scale
    z = z / math.sqrt(float(z @ z) / len(z))
    third = z**3 - 3 * z
    shift = -float((z**3).mean()) / (2 * math.sqrt(len(z)))
    return Skew(float(third.sum()), float(third @ third), shift)


def skewed_alike(rows: Sequence[Skew]) -> bool:
    """Whether the rows share a skewness that is significant and shifts the z of all rows together too far."""
    spread = sum(row.spread for row in rows)
    if not spread > 0:
        return False
    z = sum(row.third for row in rows) / math.sqrt(spread)
    shift = sum(row.shift for row in rows) / math.sqrt(len(rows))
    return 2 * float(special.ndtr(-abs(z))) < SKEW_P and abs(shift) > MOST_SHIFT


def sign_p(wins: IntArray, losses: IntArray) -> FloatArray:
    """(…,) two-sided p of the exact sign test (McNemar); NaN where nothing differs.

    Args:
        wins: questions on which A is ahead, ties dropped; where they have clusters, clusters by the sign of their sums,
            because questions of one cluster are not independent.
        losses: those on which B is ahead.
    """
    decided = wins + losses
    p = np.minimum(1.0, 2 * special.bdtr(np.minimum(wins, losses).astype(np.float64), decided, 0.5))
    return np.where(decided > 0, p, np.nan)


def holm(p: ArrayLike) -> FloatArray:
    """Step-down adjusted p-values [Holm]."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    scaled = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    out = np.empty_like(values)
    out[order] = np.minimum(scaled, 1.0)
    return out


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Step-up adjusted p-values [Benjamini]."""
    from scipy.stats import false_discovery_control  # takes long to import

    values = np.asarray(p, dtype=np.float64)
    return np.asarray(false_discovery_control(values) if len(values) else values)


def detectable_distance(se: float, df: float, level: float) -> float:
    """How far a mean must be from a fixed number to be found so; NaN where its noise is not known, or is none."""
    return float(minimum_detectable(se, df, level)) if se and df else math.nan


def minimum_detectable(se: ArrayLike, df: ArrayLike, level: float, power: float = 0.80) -> FloatArray:
    """The difference found significant with the given power: the noncentrality of t that has it, times se.

    NaN where se or df is, and where the test of this level finds more than `power` of anything.
    """
    alpha = 1 - level
    if alpha >= power:
        return np.full(np.broadcast_shapes(np.shape(se), np.shape(df)), np.nan)
    return np.asarray(noncentrality(alpha, power, np.asarray(df, dtype=np.float64)) * np.asarray(se))
