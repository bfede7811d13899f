"""The questions and answers that a comparison needs, and what a size can detect.

The formula is that of [Miller, eqs. 9–10], with σ²/K for each of the two runs and the noncentral t of the
new design in place of the normal distribution: the variance of the new run is an estimate, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray
from ..stats.power import noncentrality, power_t
from ..stats.tolerances import ROUNDING, SLACK

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
    most: float = math.inf
    """The largest variance per question that scores in their known range can have, infinite if there is none."""

    def at(self, repeats: float) -> float:
        """Return the variance per question at `repeats` answers: ω² + σ²/K.

        An estimate of the data variance ω² below 0 counts as 0, and one above what is possible as the most possible.
        """
        return min(self.most, max(0.0, self.omega2) + self.sigma2 / repeats)

    def at_most(self, repeats: float) -> bool:
        """Return True if the range of the scores decides the variance at `repeats` answers, not its estimate."""
        return math.isfinite(self.most) and max(0.0, self.omega2) + self.sigma2 / repeats >= self.most

    def bounded(self, most: float) -> Variances:
        """Return the variances with none above `most`, whatever the number of answers."""
        return replace(self, omega2=min(self.omega2, most), most=most)

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
        return (
            self
            if design_effect is None
            else replace(self, omega2=self.omega2 * design_effect, most=self.most * max(1.0, design_effect))
        )


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
