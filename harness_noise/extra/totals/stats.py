"""Mean, spread and next run of R totals, on one metric scale. Everything is about the questions that were asked.

Sources:
  [Hahn]   Hahn & Meeker (1991), Statistical Intervals, §4.7: one further observation of a normal population
  [Welch]  Welch (1947), Biometrika 34
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from ...arrays import FloatArray
from ...stats.tolerances import ROUNDING

Bounds = tuple[float, float] | None


class SpreadOfTotals(NamedTuple):
    """R totals in four numbers. What is not identified is NaN."""

    R: int
    mean: float
    sd: float
    """Standard deviation between runs, ddof = 1, NaN for one run."""

    @property
    def se(self) -> float:
        """Standard error of the mean, NaN for one run or for runs that do not differ."""
        return math.nan if self.varies_not else self.sd / math.sqrt(self.R)

    @property
    def varies_not(self) -> bool:
        """True if the runs' total scores do not vary, or are too few, so that there is no interval."""
        return not self.sd > ROUNDING * max(1.0, abs(self.mean))


def spread(scores: FloatArray) -> SpreadOfTotals:
    """Return number, mean and standard deviation (ddof 1) of (R,) total scores."""
    return SpreadOfTotals(len(scores), float(scores.mean()), float(scores.std(ddof=1)) if len(scores) > 1 else math.nan)


def quantile(p: float, df: float) -> float:
    """Return the quantile p of Student's t distribution with these degrees of freedom."""
    return float(special.stdtrit(df, p))


def limits(center: float, half: float, bounds: Bounds) -> tuple[float, float]:
    """Return (center − half, center + half), clipped to the metric's range."""
    low, high = bounds or (-math.inf, math.inf)
    return float(np.clip(center - half, low, high)), float(np.clip(center + half, low, high))


def most_of_answers(mean: float, n: int, bounds: tuple[float, float]) -> float:
    """Return the largest SD of a total that independent answers could cause: √(p(1 − p)/n) on the scale.

    Answers to the same questions make √(Σ p_i(1 − p_i))/n, which is less if questions differ in difficulty.
    """
    low, high = bounds
    p = min(max((mean - low) / (high - low), 0.0), 1.0)
    return (high - low) * math.sqrt(p * (1 - p) / n)


def exceeds(of: SpreadOfTotals, sd: float, level: float = 0.95) -> bool:
    """Return True if runs differ significantly more than this SD, by a χ² test."""
    if of.varies_not or not sd > 0:
        return False
    return bool((of.R - 1) * of.sd**2 / sd**2 > special.chdtri(of.R - 1, 1 - level))


def of_answers_alone(values: FloatArray) -> float:
    """Return the SD of a run's mean that answer noise alone would cause, from (n, R) means by question and run.

    w = (1/n²) Σ_r Σ_i r_ir² / (R − 1), r_ir what is left when the means of questions and runs are taken out.
    """
    n, R = values.shape
    left = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    return float(math.sqrt((left**2).sum() / (R - 1) * n / max(n - 1, 1)) / n)


class Distance(NamedTuple):
    """A difference of means with its standard error."""

    diff: float
    se: float
    df: float


def welch(a: SpreadOfTotals, b: SpreadOfTotals) -> Distance:
    """Return A − B of two sets of totals with Welch's standard error and df [Welch]. NaN if neither varies."""
    first, second = (0.0 if of.varies_not else of.sd**2 / of.R for of in (a, b))
    variance = first + second
    if variance == 0:
        return Distance(a.mean - b.mean, math.nan, math.nan)
    df = variance**2 / (first**2 / (a.R - 1) + second**2 / (b.R - 1))
    return Distance(a.mean - b.mean, math.sqrt(variance), df)


def next_run(one: float, b: SpreadOfTotals) -> Distance:
    """Return one run's distance to the mean of R runs, with the standard error of a further run [Hahn]."""
    se = math.nan if b.varies_not else b.sd * math.sqrt(1 + 1 / b.R)
    return Distance(one - b.mean, se, b.R - 1.0)


def tails(of: Distance, null: float) -> tuple[float, float]:
    """Return P(T ≤ t) and P(T ≥ t) for a distance, if the true difference is `null`."""
    t = (of.diff - null) / of.se
    return float(special.stdtr(of.df, t)), float(special.stdtr(of.df, -t))
