"""Power of the two-sided t test, the questions and answers that a comparison needs, and their inverses.

T = (z + δ)/s with z standard normal and s² = χ²_df/df has the noncentral t distribution [Johnson1995,
ch. 31]. With few degrees of freedom the library's has no number, or takes seconds, where δ is large; there
the chance of |T| > t is taken by quadrature over z.

The formula is that of [Miller, eqs. 9–10], with σ²/K for each of the two runs and the noncentral t of the
new design in place of the normal distribution: the variance of the new run is an estimate, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from ..arrays import FloatArray
from .tolerances import ROUNDING, SLACK

FEW = 8.0
"""Degrees of freedom below which power is an integral of ours."""

_DEGREE = 48


def power_t(nc: FloatArray | float, alpha: float, df: FloatArray | float) -> FloatArray:
    """Return the power of a two-sided t test of level alpha for each `nc`, the true difference in standard errors.

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
    """Return powers of t tests, one per element, from scipy's noncentral t. Its NaN counts as 0."""
    below, above = (np.nan_to_num(special.nctdtr(df, nc, x)) for x in (-t, t))
    return np.asarray(below + 1 - above, dtype=np.float64)


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Return (96,) nodes and (96,) weights of a Gauss–Legendre quadrature, computed once."""
    nodes, weights = np.polynomial.legendre.leggauss(96)
    return nodes, weights


def _integrated_over_z(nc: FloatArray, df: FloatArray, t: FloatArray) -> FloatArray:
    """Return powers of t tests with few degrees of freedom, one per element, by numerical integration."""
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
    """Return the difference, in SEs, that a t test detects with `power`, one per df. Refuse alpha ≥ power.

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
    """Return noncentralities, one for each of these degrees of freedom, cached by arguments."""
    return _solve(alpha, power, np.array(df))


@lru_cache(maxsize=256)
def _curve(alpha: float, power: float) -> FloatArray:
    """Return (48,) Chebyshev coefficients of log noncentrality as a function of 1/df in [0, 1].

    The function is analytic there, so that few coefficients suffice.
    """
    u = np.cos(np.pi * (np.arange(_DEGREE) + 0.5) / _DEGREE)
    values = np.log(_solve(alpha, power, 2 / (u + 1)))
    return np.asarray(chebyshev.chebfit(u, values, _DEGREE - 1), dtype=np.float64)


def _solve(alpha: float, power: float, df: FloatArray) -> FloatArray:
    """Find by bisection, for each df, the noncentrality at which a t test has this power."""
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
"""Units beyond which no size makes sense."""


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
        """Return the variance per question at `repeats` answers: ω² + σ²/K.

        An estimate of the data variance ω² below 0 counts as 0.
        """
        return max(0.0, self.omega2) + self.sigma2 / repeats

    @property
    def sigma2(self) -> float:
        """Prediction noise of one answer per question, summed over the contrast's runs."""
        return self.sigma2_a + (self.sigma2_b or 0.0)

    @property
    def runs(self) -> int:
        """Number of runs in the contrast: 1 for a mean, 2 for a difference."""
        return 1 if self.sigma2_b is None else 2

    def inflated(self, design_effect: float | None) -> Variances:
        """Return the variances with the data variance ω² multiplied by the design effect, if there is one."""
        return self if design_effect is None else replace(self, omega2=self.omega2 * design_effect)


@dataclass(frozen=True, slots=True)
class Units:
    """All that a design is counted in: questions, or clusters of the size seen."""

    size: float = 1.0
    """Questions of one unit."""
    freedom: float = 1.0
    """Degrees of freedom that one more unit brings: 1, or less where clusters are of unequal size."""

    def df(self, n: float) -> float:
        """Return the degrees of freedom of a t test on n questions, at least 1.

        That is n − 1, or the number of clusters − 1, or in proportion to those of the pilot run.
        """
        return max(1.0, self.freedom * n / self.size - 1)

    def questions(self, units: int) -> int:
        """Return the number of questions in this many units (questions or clusters), rounded up."""
        return math.ceil(units * self.size - SLACK)


QUESTIONS = Units()


def required_units(variance: float, effect: float, alpha: float, power: float, units: Units = QUESTIONS) -> int:
    """Return the fewest units (questions, clusters) with which a t test has `power` for `effect`. Refuse over 10^12.

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
    """Return the smallest effect that n questions detect with this power, nc·√(variance/n) [Miller, eq. 10]."""
    return float(noncentrality(alpha, power, units.df(n))) * math.sqrt(variance / n)


def achieved_power(variance: float, n: float, effect: float, alpha: float, units: Units = QUESTIONS) -> float:
    """Return the power of a two-sided t test on n questions, for a true difference `effect`. 1 without variance."""
    if variance == 0:
        return 1.0
    return float(power_t(effect / math.sqrt(variance / n), alpha, units.df(n)))


def rule_of_thumb(p: float) -> Variances:
    """Return planning variances for A − B from an accuracy p: p(1 − p) in total, all data noise [Wang, §4.1.2].

    It does not say how much of that is prediction noise, so all of it is counted as data noise:
    more answers per question are never promised to help.
    """
    return Variances(p * (1 - p), 0.0, 0.0)


def beta_variance(p: FloatArray, solved: float = 1.0) -> FloatArray:
    """Return the variance p(1 − p/solved) of answers at accuracy p, if a share `solved` is solvable [Wang, §4.1.3]."""
    return p * (1 - p / solved) if solved > 0 else np.zeros_like(p)
