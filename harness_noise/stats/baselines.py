"""A new run against the mean of R stored runs of one configuration, where runs differ by more than their answers.

What runs differ by is known from R means alone, with R − 1 degrees of freedom. A plug-in estimate with Satterthwaite's
degrees of freedom has up to 6% false alarms of 2.5% with two runs. The p-value here is fiducial [Fisher1935]: the
variance between runs takes every value that the R means leave possible, and p is the mean of Student's tail over these
values. p falls as the null rises, so that limits are its roots, and p, limit and verdict agree.

Sources:
  [Fisher1935]  Fisher (1935), Annals of Eugenics 6(4): the fiducial argument
  [Searle]      Searle, Casella & McCulloch (1992), Variance Components, §4.5: the two-way table question × run
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from scipy import special

from ..arrays import FloatArray
from ..settings import Estimator
from .contrast import Design
from .decision import Differences, Test
from .intervals import ExtendedSample, Limits
from .moments import Moments, RunComponent, mean_variance
from .tolerances import ROUNDING

FEW_RUNS = 5
"""Up to so many baseline runs the spread between them is hardly known, and a test against them sees less."""
_POINTS = 1500
"""Midpoint quantiles of χ² that stand for the values which the variance between runs may have."""


@cache
def _quantiles(df: int) -> FloatArray:
    """Return (1500,) quantiles of the χ² distribution with `df`, at the midpoints of steps of equal probability."""
    return np.asarray(special.chdtri(df, 1 - (np.arange(_POINTS) + 0.5) / _POINTS))


@dataclass(frozen=True, slots=True)
class RunSpread:
    """All that R runs of one configuration say of the variance between runs."""

    runs: int
    between: float
    """b: the variance of one run's mean, Σ (B_r − B.)²/(R − 1)."""
    within: float
    """w: what of it answers alone would make, clustered as the difference is."""
    share: float
    """c: how often the variance between runs counts in the difference: once for the new run, 1/R for their mean."""
    possible: FloatArray = field(init=False, repr=False, compare=False)
    """(1500,) values that runs may add to the variance of the difference, equally likely."""

    def __post_init__(self) -> None:
        left = self.share * np.maximum(self.between * (self.runs - 1) / _quantiles(self.runs - 1) - self.within, 0.0)
        object.__setattr__(self, "possible", left)

    @property
    def variance(self) -> float:
        """Variance that runs add to a difference from the baselines' mean: c · max(b − w, 0) [Searle, §4.5]."""
        return self.share * max(0.0, self.between - self.within)

    def tail(self, distance: float, variance: float, df: float) -> float:
        """Return P(T ≤ `distance`/s) of one distance (estimate minus null), averaged over possible run variances in s.

        Args:
            distance: of the estimate from the null.
            variance: of the difference without what runs add.
            df: its degrees of freedom.
        """
        s = np.sqrt(variance + self.possible)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.where((s == 0) & (distance == 0), 0.0, distance / s)
        return float(special.stdtr(df, t).mean())

    def reach(self, variance: float, df: float, level: float) -> float:
        """Return the half-width of the two-sided interval of this level, allowing for the unknown run variance."""
        from scipy.optimize import brentq  # not on the way of every command

        def missing(distance: float) -> float:
            return self.tail(distance, variance, df) - 0.5 - level / 2

        high = 2 * math.sqrt(variance + self.variance) or 1.0
        while missing(high) < 0:
            high *= 3
        return float(brentq(missing, 0.0, high, xtol=1e-12 * high, rtol=1e-12))


def run_spread(
    values: FloatArray, component: RunComponent, design: Design, estimator: Estimator, scale: float
) -> RunSpread:
    """Estimate how much more R ≥ 2 runs of one configuration differ than the noise of their answers explains.

    Args:
        values: (n, R) of the baseline, a column for each run; every question is there in all of them.
        component: of the same values.
        design: weights, tasks and clusters of the n questions.
        estimator: of the variance over clusters.
        scale: ρ, what the values were multiplied by: the new run's part is on the scale of the runs themselves.
    """
    R = component.runs
    residuals = values - values.mean(axis=1, keepdims=True)
    within = mean_variance(residuals.T, design, estimator).variance.sum() / (R - 1)
    return RunSpread(R, component.between, float(within), 1 / scale**2 + 1 / R)


def with_new_run(m: Moments, spread: RunSpread, level: float) -> Moments:
    """Return moments of (new run − mean of R runs) with the variance between runs, and df for its limits at `level`.

    The standard error is the plug-in estimate. Its degrees of freedom are those with which t has the limits of
    `by_runs` at this level, so that what is said of power has them, too.
    """
    variance = m.variance + spread.variance
    V, df = float(m.variance[0]), float(m.df[0])
    if math.isnan(V) or not variance[0] > 0:
        return m
    times = spread.reach(V, df, level) / math.sqrt(float(variance[0]))
    zero = m.zero_variance & (spread.between <= ROUNDING**2)
    return replace(m, variance=variance, df=np.array([_freedom(times, level, df)]), zero_variance=zero)


def _freedom(times: float, level: float, most: float) -> float:
    """Return the degrees of freedom, from 0.1 to `most`, at which t's two-sided critical value is `times`."""
    from scipy.optimize import brentq

    def farther(log_df: float) -> float:
        return float(special.stdtrit(math.exp(log_df), 0.5 + level / 2)) - times

    low, high = math.log(0.1), math.log(most)
    return most if farther(high) >= 0 else math.exp(brentq(farther, low, high)) if farther(low) > 0 else 0.1


def by_runs(of: Differences, questions: Moments, spread: RunSpread, few: ExtendedSample | None) -> Test:
    """Return a `Test` of one new run − mean of R baseline runs, with the variance between runs included.

    Args:
        of: the difference.
        questions: its moments without what runs add.
        spread: what runs add.
        few: what its far limit comes from, where few questions differ.
    """
    diff, V, df = float(of.diff[0]), float(questions.variance[0]), float(questions.df[0])
    far = None if few is None or np.isnan(few.mean[0]) else tuple(float(x[0]) for x in (few.mean, few.variance, few.df))

    def at(null: float) -> FloatArray:
        below = spread.tail(diff - null, V, df)
        above = 1 - below
        if far is not None:
            beyond = spread.tail(far[0] - null, far[1], far[2])
            below = max(below, beyond) if diff >= -ROUNDING and null > diff else below
            above = max(above, 1 - beyond) if diff <= ROUNDING and null < diff else above
        return np.array([min(1.0, 2 * min(below, above))])

    def limits(level: float) -> Limits[float]:
        half = spread.reach(V, df, level)
        low, high = diff - half, diff + half
        if far is not None:
            middle, half = far[0], spread.reach(far[1], far[2], level)
            low = min(low, middle - half) if diff <= ROUNDING else low
            high = max(high, middle + half) if diff >= -ROUNDING else high
        return Limits(low, high)

    return Test(at(0.0), at=at, by_p=True, limits=limits)
