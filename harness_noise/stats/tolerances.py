"""The thresholds that several rooms share, each with one name."""

from __future__ import annotations

from typing import Any

from ..data.units import ROUNDING as ROUNDING

FEW_DF = 10.0
"""Degrees of freedom below which a standard error is said to come from few clusters."""
FEWEST_DF = 4.0
"""Degrees of freedom below which a coefficient's p and interval are said not to be reliable [Tipton]."""
FEWEST_STUDENTISED = 6
"""Clusters (questions) below which nothing is studentised by resampling: with three the interval may be a point, and
with four 7 to 11% of no differences are called one."""
FEW_FAILURES = 10
"""Questions (clusters) that hold a wrong answer, or a right one, below which an interval near the end is uncertain."""
HEAVY_DF = 30.0
"""Degrees of freedom below which a few large clusters among many small ones decide how uncertain an end is."""
SKEWED = 0.2
"""Skewness of a mean above which the limit on the side of the long tail is moved.

Normal values have it in 7% of samples of 20, and in 1% of 30. Wilson's interval allows for some, and is moved if half
as much is left.
"""
SKEWED_MEASURE = 0.1
"""`SKEWED` for the mean of a measure, such as cost, or of its paired differences: samples that have missed a long tail
are the least skewed ones, and their intervals the most often too short."""
FEWEST_REPEATED = 10
"""Questions with two answers from which more questions than these may borrow their variance: the mean of fewer
s², each of two or three answers, says next to nothing."""
FEW_RESAMPLED = 30
"""Questions (clusters) below which the interval of a metric over all of them at once is said to be rough."""
FEW_CARRY = 5.0
"""Effective number of questions (clusters) that carry such a metric, (Σ u²)²/Σ u⁴ of its jackknife values u, below
which its interval is said to be rough: F1 of a class of 2 to 50%, 30 to 500 questions, then covers or has the code in
at least 94.5% of simulated runs."""
FEW_CARRY_DIFFERENCE = 3.0
"""`FEW_CARRY` for a difference, whose t interval needs fewer: it covers at least 94%, from 20 questions."""
RARE_CATEGORY = 3.0
"""Effective number of questions (clusters) that show how much a category's scores vary, (Σ e²)²/Σ e⁴ of its residuals,
below which the interval of its coefficient is said to be rough: categories of 3 to 30 questions of 120 or 500 then
cover or have the code in at least 94.5% of simulated fits."""
SLACK = 1e-9
"""The most that a number may be off a boundary, a whole number or a range on which it was computed to lie."""
SMALLEST = 1e-300
"""Divisors are kept above it."""
FEWEST_UNITS = 30
"""Questions (clusters) of the part below which nothing is learnt from references or a judge: with 24 the interval
covers 92 to 94%, with 33 95%."""


def short_of(df: Any, threshold: float) -> Any:
    """Return True where `df` is below the threshold by more than rounding error.

    Exactly ten, rounded in a sum, are not fewer than ten.
    """
    return df < threshold - SLACK
