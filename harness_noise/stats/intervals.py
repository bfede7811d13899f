"""Confidence intervals for a mean and for a paired difference, that hold in small samples.

Few flips: the far limit of a difference where few questions, or clusters, differ at all.

Three wins of 500 and no loss: mean and variance come from the same three questions, so a symmetric
interval is too short on the side away from 0. There the limit is also that of the sample with two
pseudo-clusters added, which are as far from the mean as any cluster is, one on each side of 0: what
[Agresti; Bonett] do for 0/1 scores, for scores of any kind, clusters and groups.

Clusters may differ in size, and size must not pass for a flip: 231 of 500 questions in one cluster and a true
difference of .5 make one sum larger than all others together. So the pseudo-sums are deviations from the mean, and
flips are counted among `level_sums`, which are those of clusters of one size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..arrays import BoolArray, FloatArray, blank, put
from ..choices import IntervalMethod
from ..settings import Estimator
from .cluster_variance import Cells
from .contrast import Design, sum_by
from .tolerances import FEW_FAILURES, ROUNDING, SKEWED, SLACK, SMALLEST

Number = TypeVar("Number", float, FloatArray)
MOST = 60.0
"""Effective flips from which on the t interval is kept, by simulation (`benchmarks/coverage.py`), as is the next."""
SHARE = 0.25
"""Their share of the clusters from which on it is kept: normal differences have a third of them."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtendedSample:
    """Mean, variance and degrees of freedom of the extended samples. NaN where t's limit stands alone."""

    mean: FloatArray
    variance: FloatArray
    df: FloatArray


def effective_flips(sums: FloatArray) -> FloatArray:
    """Return (Σ S²)²/Σ S⁴ over the last axis, the effective number of clusters that differ. NaN if all S are 0."""
    top = np.abs(sums).max(axis=-1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = (sums / top) ** 2
        return np.asarray(squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1))


def level_sums(deviations: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Return (…, G) cluster sums (deviation + share of the mean), rescaled as if clusters had equal sizes.

    The deviations are brought to one variance under working independence, and each cluster gets the same share of the
    mean back: independent questions with a difference of any size have G/3 effective flips, whatever the sizes.

    Args:
        deviations: (…, G) sums less the mean's share, S_c − d̄ n_c.
        mean: (…,) Σ S_c / G, what a cluster of mean size has.
        spread: (…, G) proportional to the variance of each deviation, n_c (1 − n_c/n); 0 where there is no cluster.
    """
    here = spread > 0
    G = np.maximum(here.sum(axis=-1, keepdims=True), 1)
    scale = np.sqrt(spread.sum(axis=-1, keepdims=True) / G / np.where(here, spread, np.inf))
    return np.asarray(deviations * scale + here * mean[..., None])


def are_few(n_f: FloatArray, G: FloatArray | float) -> BoolArray:
    """Return True for each difference with so few flips that the limit away from 0 must be extended.

    A count on the boundary is not few, however it was rounded.
    """
    return np.asarray(n_f < np.minimum(MOST, SHARE * G) * (1 - SLACK))


class Extension:
    """Two pseudo-clusters added to the designs of P differences.

    Each has the mean weight of a cluster, 1/G, spread over the tasks as the questions are, and the sum
    ±max|S_c − d̄ a_c|, with a_c the weight of cluster c in the mean: the same mean score in every task.
    """

    def __init__(self, design: Cells, estimator: Estimator) -> None:
        self.cells, self.estimator = design, estimator
        a = design.weights[:, design.strata]
        self.shares, squares = (design.by_cluster(x * design.sizes) for x in (a, a * a))
        self.spread = squares * (1 - self.shares)

    def level_sums(self, sums: FloatArray) -> FloatArray:
        """Return (P, G) cluster sums rescaled as if clusters had equal sizes, from (P, C) sums by cell."""
        return level_sums(*self._deviations(sums), self.spread)

    def _deviations(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (P, G) deviations of the clusters' weighted sums from expected, and (P,) mean per cluster."""
        S = self.cells.by_cluster(sums * self.cells.weights[:, self.cells.strata])
        mean = S.sum(axis=1)
        return S - mean[:, None] * self.shares, mean / self.cells.n_clusters

    def __call__(self, sums: FloatArray) -> ExtendedSample:
        """Return mean, variance, df of P samples (cell sums) with two made-up clusters added. NaN if enough differ."""
        with np.errstate(invalid="ignore", divide="ignore"):
            deviations, mean = self._deviations(sums)
            few = are_few(effective_flips(level_sums(deviations, mean, self.spread)), self.cells.n_clusters)
            out = blank(ExtendedSample, len(few))
            if few.any():
                put(out, few, self._extend(self.cells.take(few), sums[few], np.abs(deviations[few]).max(axis=1)))
        return out

    def _extend(self, design: Cells, sums: FloatArray, top: FloatArray) -> ExtendedSample:
        """Add two made-up clusters to the cell sums, `top` above and below the mean. Return mean, variance and df."""
        n_t, T = design.task_sizes, design.weights.shape[1]
        G = design.n_clusters[:, None]
        grown = 1 + 2 / G
        tasks, first = np.arange(T), int(design.clusters[-1]) + 1
        whole = Cells(
            sizes=np.concatenate([design.sizes, n_t / G, n_t / G], axis=1),
            strata=np.concatenate([design.strata, tasks, tasks]),
            clusters=np.concatenate([design.clusters, np.full(T, first), np.full(T, first + 1)]),
            weights=design.weights / grown,
        )
        mean_t = design.by_task(sums) / np.maximum(n_t * grown, SMALLEST)
        pseudo = top[:, None] * n_t
        e = np.concatenate([sums, pseudo, -pseudo], axis=1) - whole.sizes * mean_t[:, whole.strata]
        left = whole.scores(e, self.estimator)
        mean = (mean_t * whole.weights * n_t * grown).sum(axis=1)
        return ExtendedSample(mean, (left**2).sum(axis=1), np.broadcast_to(whole.df, mean.shape))


@dataclass(frozen=True, slots=True, eq=False)
class Limits(Generic[Number]):
    """A confidence interval, or one of each of P differences: NaN where there is none."""

    low: Number
    high: Number

    def widened_to(self, estimate: ArrayLike, far: ExtendedSample | None, level: float) -> Limits[FloatArray]:
        """Return (P,) limits, those away from 0 moved out to the extended sample's if wider. None moves none.

        None, or NaN in it, leaves the limits to the last digit; where the estimate is 0 both are far ones.
        """
        low, high = np.asarray(self.low, dtype=np.float64), np.asarray(self.high, dtype=np.float64)
        if far is None:
            return Limits(low, high)
        estimate = np.asarray(estimate, dtype=np.float64)
        reach = critical(level, far.df) * np.sqrt(far.variance)
        return Limits(
            np.where(estimate <= ROUNDING, np.fmin(low, far.mean - reach), low),
            np.where(estimate >= -ROUNDING, np.fmax(high, far.mean + reach), high),
        )

    def exclude(self, value: float = 0.0) -> BoolArray:
        """Return True for each interval that `value` lies outside of, False if it is inside or there is none."""
        return np.asarray((self.low > value) | (self.high < value))

    def hold(self, estimate: ArrayLike) -> BoolArray:
        """Return True for each estimate within its limits (up to rounding), or if there is no interval."""
        estimate = np.asarray(estimate, dtype=np.float64)
        slack = SLACK * np.maximum(1.0, np.abs(estimate))
        return np.asarray(~((self.low > estimate + slack) | (self.high < estimate - slack)))

    def within(self, margin: float) -> BoolArray:
        """Return True for each interval that lies wholly inside ±margin, which shows equivalence [Schuirmann]."""
        return np.asarray((-margin < self.low) & (self.high < margin))


def critical(level: float, df: ArrayLike = math.inf) -> FloatArray:
    """Return two-sided critical values of Student's t at this level, one for each df (normal if infinite)."""
    return np.asarray(special.stdtrit(np.asarray(df, dtype=np.float64), 0.5 + level / 2))


def t_limits(estimate: ArrayLike, se: ArrayLike, df: ArrayLike, level: float) -> Limits[FloatArray]:
    """Return two arrays of limits, those of the t intervals estimate ± t·se for arrays of estimates."""
    estimate = np.asarray(estimate, dtype=np.float64)
    half = critical(level, df) * np.asarray(se)
    return Limits(estimate - half, estimate + half)


def t_interval(mean: float, se: float, df: float, level: float) -> Limits[float]:
    """Return the t interval mean ± t·se of one mean, as two floats."""
    ends = t_limits(mean, se, df, level)
    return Limits(float(ends.low), float(ends.high))


def wilson(p: float, n: float, critical: float) -> Limits[float]:
    """Return the Wilson score interval [Wilson] for a proportion p from n > 0 (effective) observations."""
    c2 = critical**2
    centre = (p + c2 / (2 * n)) / (1 + c2 / n)
    half = critical / (1 + c2 / n) * math.sqrt(p * (1 - p) / n + c2 / (4 * n * n))
    # p lies inside; at 0 and 1 it is an end, which rounding must not move
    return Limits(min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneMean:
    """All that an interval of a mean may use. The functions of `choices.INTERVALS` take it."""

    mean: float
    se: float
    df: float
    """Degrees of freedom of the standard error."""
    level: float
    bounds: tuple[float, float] | None
    """Lowest and highest value of the metric."""
    skewness: float = 0.0
    """Skewness of the mean, 0 if it is not known."""
    least: float = SKEWED
    """Skewness up to which no limit is moved."""
    share: float = math.nan
    """The mean's share of the range, in [0, 1]."""
    size: float = math.nan
    """The number of independent 0/1 answers that determine the share as well (`binomial_size`)."""
    answers: float = math.inf
    """0/1 answers that there are."""
    exact: bool = False
    """0/1 scores, one for each question, without clusters."""
    distribution: Callable[[], Any] = lambda: None
    """Returns the bootstrap distribution of the mean, None if it cannot be resampled."""
    studentised: Callable[[], FloatArray | None] = lambda: None
    """Returns resampled t statistics, None if the mean cannot be resampled."""
    method: Any = "bca"
    """The bootstrap method that turns the distribution into limits."""

    @property
    def t(self) -> float:
        """The critical value of Student's t at this level and these degrees of freedom."""
        return float(critical(self.level, self.df))


def t_of_mean(of: OneMean) -> Limits[float]:
    """Return the two-sided t confidence interval of a mean, from its standard error and degrees of freedom."""
    return t_interval(of.mean, of.se, of.df, of.level)


def tail_shift_of_t(of: OneMean) -> float:
    """Return the shift, by skewness, of one limit of a mean's t interval, in standard errors. < 0: lower limit."""
    return tail_shift(of.skewness, 0.0, of.t, of.least)


def wilson_of_mean(of: OneMean) -> Limits[float]:
    """Return the Wilson interval of a mean's share of its range, in [0, 1], at its effective sample size."""
    return wilson(of.share, of.size, of.t)


def tail_shift_of_wilson(of: OneMean) -> float:
    """Return the shift of a mean's Wilson limit by skewness beyond a binomial's, in standard errors."""
    return tail_shift(of.skewness, binomial_skewness(of.share, of.size), of.t)


def clopper_pearson_of_mean(of: OneMean) -> Limits[float]:
    """Return the exact binomial (Clopper–Pearson) interval, in [0, 1], of the share of right answers."""
    return clopper_pearson(of.share, of.answers, of.level)


def why_not_binomial(of: OneMean) -> str:
    """Return a message that Clopper–Pearson needs one unclustered 0/1 answer per question, "" if that holds."""
    if of.exact:
        return ""
    return (
        "is exact only for 0/1 scores with one answer per question and no clusters: use "
        "`interval='korn-graubard'`, its extension"
    )


def korn_graubard_of_mean(of: OneMean) -> Limits[float]:
    """Return the Korn–Graubard interval, in [0, 1], of the share of clustered or repeated right answers."""
    return korn_graubard(of.share, of.size, of.answers, of.df, of.level)


def of_mean(choice: IntervalMethod, of: OneMean) -> tuple[Limits[float] | None, float]:
    """Return a mean's interval by this method (None: not resampled), and in SEs how far skewness moves a limit."""
    ends: Limits[float] | None = choice.call("of_mean", of)
    if ends is None:
        return None, 0.0
    shift: float = 0.0 if choice.tail is None else choice.call("tail", of)
    width = 1.0
    if choice.on_share:
        assert of.bounds is not None
        width = of.bounds[1] - of.bounds[0]
    if choice.tail_moves:
        ends = with_moved_limit(ends, shift * of.se / width)
    if choice.on_share:
        assert of.bounds is not None
        return rescaled(within(ends, 0.0, 1.0), of.bounds), shift
    return within(ends, *of.bounds) if of.bounds and choice.within_range else ends, shift


def binomial_skewness(p: float, n: float) -> float:
    """Return the skewness of the share p of right answers among n independent 0/1 answers."""
    variance = n * p * (1 - p)
    return (1 - 2 * p) / math.sqrt(variance) if variance > 0 else 0.0


def tail_shift(skewness: float, allowed: float, critical: float, least: float = SKEWED) -> float:
    """Return the SEs by which skewness beyond `allowed` moves out the upper (> 0) or lower (< 0) limit. 0 to `least`.

    A Studentised mean of skewness γ has the quantile t + γ(1 + 2t²)/6 where Student's has t [Hall, eq. 2.38].
    Only the limit that becomes farther by it is moved.

    Args:
        skewness: of the mean, γ.
        allowed: what the interval has allowed for already.
        critical: t.
        least: the skewness up to which nothing is moved.
    """
    left = math.copysign(max(0.0, abs(skewness) - max(0.0, math.copysign(allowed, skewness * allowed))), skewness)
    if abs(skewness) <= least or abs(left) <= least / 2:
        return 0.0
    return left * (1 + 2 * critical**2) / 6


def with_moved_limit(interval: Limits[float], by: float) -> Limits[float]:
    """Return the interval with its upper limit raised by `by`, or its lower limit lowered if `by` is negative."""
    return Limits(interval.low + min(by, 0.0), interval.high + max(by, 0.0))


def in_range(mean: ArrayLike, bounds: tuple[float, float]) -> FloatArray:
    """Return an array of means clipped to the metric's range. Values within rounding of an end become that end."""
    low, high = bounds
    slack, mean = SLACK * (high - low), np.asarray(mean, dtype=np.float64)
    return np.where(mean > high - slack, high, np.where(mean < low + slack, low, mean))


def within(interval: Limits[float], low: float, high: float) -> Limits[float]:
    """Return the confidence interval cut off at `low` and `high`."""
    return Limits(max(low, interval.low), min(high, interval.high))


def binomial_size(p: float, se: float, n_answers: float, n_clusters: int, mixed: int) -> float:
    """Return the effective sample size p(1 − p)/se², at most `n_answers`. With se = 0 the number of clusters.

    The effective sample size of [Korn], with what few failures leave unknown.

    Args:
        p: the mean.
        se: its standard error.
        n_answers: 0/1 answers that there are, which it cannot exceed; infinite for graded scores, which vary less.
        n_clusters: of the questions; the number of questions where these are independent.
        mixed: clusters that hold a score below the highest, or above the lowest, whichever are fewer.

    With se = 0 and all scores at one end it is the number of clusters: nothing is known of how failures go
    together. One failure tells little more, so up to `FEW_FAILURES` clusters that hold one 1/n goes in equal
    steps from 1/G to se²/(p(1 − p)), and the limit does not jump.
    """
    unknown = max(0.0, 1 - mixed / min(FEW_FAILURES, n_clusters))
    variance = max(p * (1 - p), 0.0)
    least = 1 / n_clusters  # 1/n, where nothing is known
    inverse = se**2 / variance if variance > 0 else 0.0
    if inverse < least:
        inverse = (1 - unknown) * inverse + unknown * least
    inverse = max(inverse, 1 / n_answers)
    return 1 / (inverse or least)


def clopper_pearson(p: float, n: float, level: float) -> Limits[float]:
    """Return the exact binomial interval of a share p of n answers, where n and p·n may be fractions [Korn]."""
    alpha = 1 - level
    x = p * n
    low = 0.0 if x <= 0 else float(special.betaincinv(x, n - x + 1, alpha / 2))
    high = 1.0 if x >= n else float(special.betaincinv(x + 1, n - x, 1 - alpha / 2))
    return Limits(low, high)


def korn_graubard(p: float, n_effective: float, n_answers: float, df: float, level: float) -> Limits[float]:
    """Return the Clopper–Pearson interval at the effective sample size n_eff · (z/t_df)², at most n_answers [Korn]."""
    n = min(n_effective * float(critical(level) / critical(level, df)) ** 2, n_answers)
    return clopper_pearson(p, n, level)


def rescaled(interval: Limits[float], bounds: tuple[float, float]) -> Limits[float]:
    """Convert an interval of a share in [0, 1] to the metric's scale `bounds`."""
    low, high = bounds
    width = high - low
    return Limits(low + width * interval.low, min(high, low + width * interval.high))


def bonett_price(
    gain: FloatArray, loss: FloatArray, n: FloatArray | float, width: FloatArray | float, level: float
) -> Limits[FloatArray]:
    """Return (P,) limits of the adjusted Wald interval [Bonett] of paired mean differences, for those without variance.

    Used where the differences have no variance, so that a t interval would be a point.

    Args:
        gain: mean of max(d, 0), weighted as the mean of d is.
        loss: mean of max(−d, 0).
        n: questions (clusters).
        width: of the metric's range.
        level: coverage.
    """
    p1, p2 = (n * gain / width + 1) / (n + 2), (n * loss / width + 1) / (n + 2)
    half = critical(level) * np.sqrt((p1 + p2 - (p1 - p2) ** 2) / (n + 2))
    return Limits(width * np.maximum(-1.0, p1 - p2 - half), width * np.minimum(1.0, p1 - p2 + half))


def agresti_caffo(p: FloatArray, n: float, q: FloatArray, m: float, level: float) -> Limits[FloatArray]:
    """Return limits, elementwise, of the adjusted Wald interval [Agresti] of p − q, independent proportions of n and m.

    The unpaired counterpart of `bonett_price`: one success and one failure are added to each.
    """
    p1, p2 = (p * n + 1) / (n + 2), (q * m + 1) / (m + 2)
    half = critical(level) * np.sqrt(p1 * (1 - p1) / (n + 2) + p2 * (1 - p2) / (m + 2))
    return Limits(np.maximum(-1.0, p1 - p2 - half), np.minimum(1.0, p1 - p2 + half))


@dataclass(frozen=True, slots=True)
class RangeEnds:
    """The way the scores of a run lie between the ends of their range."""

    bounds: tuple[float, float]
    binary: bool
    """No score lies between the ends: right or wrong."""
    mixed: int
    """Clusters that hold a score below the highest, or above the lowest, whichever are fewer."""
    failing: float
    """Effective number of such clusters, (Σ f_c)²/Σ f_c² of their failures: one cluster may hold most of them.

    Of right and wrong answers, and where most scores lie at that end, no more than the highest failure rates of the
    clusters' questions add up to: a question that fails once in twenty times, or by a twentieth, tells less of how
    failures are spread than one that fails."""
    heavy: float
    """(Σ f_c²)²/Σ f_c⁴, which a few large clusters decide."""


def range_ends(values: FloatArray, mean: FloatArray, design: Design, bounds: tuple[float, float]) -> RangeEnds:
    """Return `RangeEnds` of (n, K) scores: clusters that leave an end of the range, of the end with fewer."""
    low, high = bounds
    scored = values[~np.isnan(values)]
    with np.errstate(invalid="ignore"):
        holds = [(values < high).any(axis=1), (values > low).any(axis=1)]
    mixed = min(len(np.unique(design.clusters[rows])) for rows in holds)
    binary = bool(((scored == low) | (scored == high)).all())
    failing, heavy = [], []
    for side in (high - mean, mean - low):
        rates = np.maximum(side, 0.0) / (high - low)
        sums = sum_by(design.clusters, design.weights * rates, design.n_clusters)
        effective = float(sums.sum() ** 2 / max(sums @ sums, SMALLEST))
        worst = np.zeros(design.n_clusters)
        np.maximum.at(worst, design.clusters, rates)
        whole = binary or 2 * np.count_nonzero(rates) < len(rates)
        failing.append(min(effective, float(worst.sum())) if whole else effective)
        heavy.append(float(effective_flips(sums)) if sums.any() else 0.0)
    return RangeEnds(bounds, binary, mixed, min(failing), min(heavy))
