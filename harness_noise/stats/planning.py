"""Power of the two-sided t test, the questions and answers that a comparison needs, and their inverses.

T = (z + δ)/s with z standard normal and s² = χ²_df/df has the noncentral t distribution [Johnson1995,
ch. 31]. With few degrees of freedom the library's has no number, or takes seconds, where δ is large; there
the chance of |T| > t is taken by quadrature over z.

The formula is that of [Miller, eqs. 9–10], with σ²/K for each of the two runs and the noncentral t of the
planned design in place of the normal distribution: the variance of the new run is an estimate, too.
  [Särndal] Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, ch. 6
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from ..arrays import FloatArray
from .tolerances import ROUNDING, SLACK

FEW = 8.0
"""Degrees of freedom below which power is an integral of ours."""

_DEGREE = 48


def power_t(nc: FloatArray | float, alpha: float, df: FloatArray | float) -> FloatArray:
    """Return P(|T| > t_{1−α/2, df}) for a noncentral t with noncentrality `nc`, both directions counted.

    Args:
        nc: true difference over its standard error, of any shape that goes with `df`.
        alpha: two-sided level, in (0, 1).
        df: degrees of freedom above 0; infinite ones are the normal limit.

    Returns:
        The power, of the common shape; NaN where an argument is NaN or df is not above 0.
    """
    shift, freedom = np.broadcast_arrays(np.abs(np.asarray(nc, dtype=np.float64)), np.asarray(df, dtype=np.float64))
    t = np.asarray(-special.stdtrit(freedom, alpha / 2), dtype=np.float64)
    out = np.full(shift.shape, np.nan)
    defined = ~np.isnan(shift) & (freedom > 0)
    for some, way in ((defined & (freedom >= FEW), _noncentral), (defined & (freedom < FEW), _integrated_over_z)):
        out[some] = way(shift[some], freedom[some], t[some])
    return out


def _noncentral(nc: FloatArray, df: FloatArray, t: FloatArray) -> FloatArray:
    """Return the power by the library. A probability that it cannot compute, because it rounds to 0, is 0."""
    below, above = (np.nan_to_num(special.nctdtr(df, nc, x)) for x in (-t, t))
    return np.asarray(below + 1 - above, dtype=np.float64)


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Return Gauss and Legendre's nodes and weights, only when they are needed."""
    nodes, weights = np.polynomial.legendre.leggauss(96)
    return nodes, weights


def _integrated_over_z(nc: FloatArray, df: FloatArray, t: FloatArray) -> FloatArray:
    """Return E_z of P(s < (z + nc)/t), and the same of −nc. s has its singular point at 0, so z + nc is a power."""
    total, (nodes, weights) = np.zeros(len(nc)), _quadrature()
    for shift in (nc, -nc):
        low = np.maximum(0.0, shift - 9.0) ** 0.25
        high = np.maximum(0.0, shift + 9.0) ** 0.25
        half = (high - low) / 2
        w = low[:, None] + half[:, None] * (nodes + 1)
        z = w**4 - shift[:, None]
        density = np.exp(-z * z / 2) * (4 / np.sqrt(2 * np.pi)) * w**3
        below = special.gammainc(df[:, None] / 2, df[:, None] / 2 * (w**4 / t[:, None]) ** 2)
        total += half * ((density * below) @ weights)
    return np.minimum(total, 1.0)


def noncentrality(alpha: float, power: float, df: FloatArray | float) -> FloatArray:
    """Return the noncentrality at which the two-sided t test of level `alpha` has `power`. Times se it is the MDE.

    Args:
        alpha: two-sided level, in (0, 1).
        power: wanted chance of |T| > t, above alpha and below 1.
        df: degrees of freedom of any shape; infinite ones give the normal limit, z_{1−α/2} + z_power but
            for the chance of significance in the wrong direction.

    Returns:
        One number for each df, to some 1e-12 of itself; NaN where df is NaN or not above 0.

    Raises:
        ValueError: a power not above alpha, which a noncentrality of 0 already has, or values out of (0, 1).
    """
    if not 0 < alpha < power < 1:
        raise ValueError(f"power {power:g} must be above alpha {alpha:g}, and both inside (0, 1)")
    freedom = np.asarray(df, dtype=np.float64)
    out = np.full(freedom.shape, np.nan)
    by_curve = (freedom >= 1) & (freedom.size > _DEGREE)  # to find a few takes less than the curve itself
    if by_curve.any():
        with np.errstate(divide="ignore"):
            out[by_curve] = np.exp(chebyshev.chebval(2 / freedom[by_curve] - 1, _curve(alpha, power)))
    others = (freedom > 0) & ~by_curve
    if others.any():
        out[others] = _cached_noncentralities(alpha, power, tuple(freedom[others].tolist()))
    return out


@lru_cache(maxsize=256)
def _cached_noncentralities(alpha: float, power: float, df: tuple[float, ...]) -> FloatArray:
    """Return noncentralities of a few df, which are solved once for all models of a leaderboard."""
    return _solve(alpha, power, np.array(df))


@lru_cache(maxsize=256)
def _curve(alpha: float, power: float) -> FloatArray:
    """Return Chebyshev coefficients of log nc as a function of 1/df in [0, 1], in which it is analytic."""
    u = np.cos(np.pi * (np.arange(_DEGREE) + 0.5) / _DEGREE)
    values = np.log(_solve(alpha, power, 2 / (u + 1)))
    return np.asarray(chebyshev.chebfit(u, values, _DEGREE - 1), dtype=np.float64)


def _solve(alpha: float, power: float, df: FloatArray) -> FloatArray:
    """Solve for nc by bisection, because the power grows with nc."""
    low = np.zeros(len(df))
    high = np.full(len(df), special.ndtri(power) - special.ndtri(alpha / 2) + 1.0)
    high = np.maximum(high, 1.0)
    while (short := power_t(high, alpha, df) < power).any():
        high[short] *= 2
    for _ in range(60):
        middle = (low + high) / 2
        short = power_t(middle, alpha, df) < power
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return (low + high) / 2


MOST = 10**12
"""Units beyond which no plan makes sense."""


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances per question of a contrast (n times those of the mean)."""

    omega2: float
    """Data noise, ω²."""
    sigma2_a: float
    """Prediction noise of one answer of A, σ²_A."""
    sigma2_b: float | None = None
    """(…) the same of B, None if the contrast is a single run."""

    def at(self, repeats: float) -> float:
        """Return ω² + σ²_A/K + σ²_B/K. An estimate of ω² below 0 counts as 0."""
        return max(0.0, self.omega2) + self.sigma2 / repeats

    @property
    def sigma2(self) -> float:
        """Prediction noise of one answer of every run."""
        return self.sigma2_a + (self.sigma2_b or 0.0)

    @property
    def runs(self) -> int:
        """Runs of the contrast."""
        return 1 if self.sigma2_b is None else 2

    def inflated(self, design_effect: float | None) -> Variances:
        """Return the variances with ω² times the design effect of clusters that it does not hold."""
        return self if design_effect is None else replace(self, omega2=self.omega2 * design_effect)


@dataclass(frozen=True, slots=True)
class Units:
    """All that a design is counted in: questions, or clusters of the size seen."""

    size: float = 1.0
    """Questions of one unit."""
    freedom: float = 1.0
    """Degrees of freedom that one more unit brings: 1, or less where clusters are of unequal size."""

    def df(self, n: float) -> float:
        """Return the degrees of freedom of a design with n questions: n − 1, G − 1, or the pilot's in proportion, at
        least 1."""
        return max(1.0, self.freedom * n / self.size - 1)

    def questions(self, units: int) -> int:
        """Return questions of that many units, rounded up."""
        return math.ceil(units * self.size - SLACK)


QUESTIONS = Units()


def required_units(variance: float, effect: float, alpha: float, power: float, units: Units = QUESTIONS) -> int:
    """Return the fewest units, at least 2, with n = nc² · variance / δ² [Miller, eq. 9], nc the noncentrality.

    Raises:
        ValueError: more than 10¹² of them.
    """

    def enough(count: int) -> bool:
        return detectable_effect(variance, count * units.size, alpha, power, units) <= effect * (1 + ROUNDING)

    counts = range(2, MOST)
    first = bisect_left(counts, True, key=enough)
    if first == len(counts):
        raise ValueError(f"an effect of {effect:g} needs more than 10^12 units at a variance of {variance:g}")
    return counts[first]


def detectable_effect(variance: float, n: float, alpha: float, power: float, units: Units = QUESTIONS) -> float:
    """Return δ = nc √(variance/n) [Miller, eq. 10], nc the noncentrality with that power at the design's df."""
    return float(noncentrality(alpha, power, units.df(n))) * math.sqrt(variance / n)


def achieved_power(variance: float, n: float, effect: float, alpha: float, units: Units = QUESTIONS) -> float:
    """Return the chance that the two-sided t test finds δ, in whichever direction."""
    if variance == 0:
        return 1.0
    return float(power_t(effect / math.sqrt(variance / n), alpha, units.df(n)))


def best_repeats(v: Variances, cost_question: float, cost_answer: float, k_max: int) -> int:
    """Return the K ≤ k_max that makes the variance smallest for a budget, the same for every run.

    Var ∝ (ω² + Σσ²/K)(c_q + M·c_a·K) for M runs, whose real minimum is
    √(σ²/ω² · c_q/c_a) for one run and √((σ²_A + σ²_B)/ω² · c_q/(2c_a)) for two.
    """
    scale = v.at(1) * (cost_question + v.runs * cost_answer)  # so that ties are ties, and the smaller K wins
    return min(
        range(1, k_max + 1), key=lambda K: (round(v.at(K) * (cost_question + v.runs * cost_answer * K) / scale, 12), K)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """All that the next money buys: another question, another answer to each, or another judge call for each answer."""

    variance: float
    """The judge's own variance on one answer, for one call. For two runs it is the sum."""
    question: float
    """Share by which the variance of the mean falls with more questions that cost 1% more in all."""
    answer: float
    """With one more answer to every question, for each 1% that this adds to the cost."""
    judge: float
    """With a second judge call for every answer, likewise."""
    best_repeats: int
    """Answers per question that, with `best_calls`, make the variance smallest for a budget."""
    best_calls: int
    """Judge calls per answer."""


def spending(v: Variances, judge: float, costs: tuple[float, float, float], repeats: int, k_max: int) -> Spending:
    """Return where the next money lowers the variance most, at K answers and one judge call for each.

    Var ∝ (ω² + Σσ²_m/K + Σσ²_j/(K·J)) (c_q + M·K·(c_a + J·c_j)) for M runs, with σ² = σ²_m + σ²_j of one answer that
    is graded once.

    Args:
        v: σ² of each run holds the judge's part.
        judge: Σσ²_j over the runs; what exceeds Σσ² does not count.
        costs: of a question, of an answer, and of a judge call.
        repeats: K.
        k_max: the most answers per question, and calls per answer, that are considered.
    """
    judge = min(judge, v.sigma2)

    def variance(K: int, J: int) -> float:
        return max(0.0, v.omega2) + (v.sigma2 - judge + judge / J) / K

    def cost(K: int, J: int) -> float:
        return costs[0] + v.runs * K * (costs[1] + J * costs[2])

    def gain(K: int, J: int) -> float:
        fall = 1 - variance(K, J) / variance(repeats, 1)
        return 0.01 * fall / (cost(K, J) / cost(repeats, 1) - 1)

    counts = range(1, k_max + 1)
    scale = variance(1, 1) * cost(1, 1)  # so that ties are ties, and the smaller numbers win
    best = min(product(counts, counts), key=lambda KJ: (round(variance(*KJ) * cost(*KJ) / scale, 12), KJ))
    return Spending(
        variance=judge,
        question=0.01,
        answer=gain(repeats + 1, 1),
        judge=gain(repeats, 2),
        best_repeats=best[0],
        best_calls=best[1],
    )


def repeats_by_task(prediction: Sequence[float], sizes: Sequence[int], answers: int, k_max: int) -> list[int]:
    """Return answers per question of every task, at least 1, that minimise Σ v_t/K_t for Σ n_t·K_t ≤ `answers`.

    One more goes where it takes most off the variance for its price, as long as any fits. What it takes off falls with
    K, so this is the best there is until what is left is too little for the task that should have it.

    Args:
        prediction: (T,) prediction variance v_t of the mean over all tasks that is each task's, at one answer.
        sizes: (T,) questions n_t.
        answers: of all tasks together.
        k_max: the most to one question.
    """
    K, left = [1] * len(sizes), answers - sum(sizes)
    while True:
        gains = [
            v / (k * (k + 1) * n) if k < k_max and n <= left else 0.0
            for v, k, n in zip(prediction, K, sizes, strict=True)
        ]
        best = max(range(len(sizes)), key=gains.__getitem__)
        if gains[best] <= 0:
            return K
        K[best] += 1
        left -= sizes[best]


def labelled_variance(variance: float, r2: float, n_labels: float, n_judged: int) -> float:
    """Return V = σ²[(1 − R²)(1/m − 1/N) + 1/N] of a mean of N judged questions that labels of m of them correct.

    The labels' variance σ² is left over all N, and of what the judge does not predict, 1 − R², only m are seen
    [Särndal].
    """
    return variance * ((1 - r2) * (1 / n_labels - 1 / n_judged) + 1 / n_judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """The number of judged questions that people must label."""

    n_judged: int
    """Questions that the judge scores."""
    r2: float
    """The share of the labels' variance that the judge predicts."""
    variance: float
    """The labels' variance per question that the plan starts from. For two runs it is that of their difference."""
    n_labels: int | None
    """Questions to label so that the corrected mean reaches the goal, null if labels of all `n_judged` do not."""
    n_labels_alone: int
    """Questions to label without a judge."""
    se: float
    """Standard error of the corrected mean with `n_labels`, or with labels of all questions if that is null."""


def labels_needed(
    variance: float, r2: float, n_judged: int, units: Units, enough: Callable[[float, float], bool]
) -> int | None:
    """Return the fewest questions to label, of `n_judged`, in whole clusters. None: all are too few.

    Args:
        variance: of the labels, per question, with the clustering in it.
        r2: the share of it that the judge predicts.
        n_judged: questions that have the judge's score.
        units: what is drawn.
        enough: whether this variance of the mean, with so many labels, is small enough; it is for all larger numbers.
    """

    def at(count: int) -> int:
        return min(units.questions(count), n_judged)

    def enough_at(count: int) -> bool:
        return enough(labelled_variance(variance, r2, at(count), n_judged), at(count))

    counts = range(2, math.ceil(n_judged / units.size - SLACK) + 1)
    first = bisect_left(counts, True, key=enough_at)
    return at(counts[first]) if first < len(counts) else None


def rule_of_thumb(p: float) -> Variances:
    """Return Var[A − B] ≈ p(1 − p) in total [Wang, §4.1.2].

    It does not say how much of that is prediction noise, so all of it is counted as data noise:
    more answers per question are never promised to help.
    """
    return Variances(p * (1 - p), 0.0, 0.0)


def beta_variance(p: FloatArray, solved: float = 1.0) -> FloatArray:
    """Return s · (p/s)(1 − p/s) with s the share `solved` of the questions that any model solves [Wang, §4.1.3]."""
    return p * (1 - p / solved) if solved > 0 else np.zeros_like(p)


def beta_theory(p: float, solved: float = 1.0) -> Variances:
    """Return variances for question difficulties ~ Beta(p, 1 − p), the same for both models: all is prediction noise.

    E[u(1 − u)] = p(1 − p)/2 for each model. With only a share `solved` of the questions solvable
    the rest adds none: `beta_variance` in total.
    """
    each = float(beta_variance(np.array(p), solved)) / 2
    return Variances(0.0, each, each)
