"""From an estimate to a decision: interval, p-values, equivalence and verdict, for one difference or many.

All of it works on arrays of any length; `compare`, `arena`, a benchmark's profile and the gate read the
same limits, so that no two of them can disagree.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from .arrays import BoolArray, FloatArray, IntArray
from .flips import Far
from .tests import benjamini_hochberg, holm

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

WORDS = ("not separable", "A better", "B better")
"""Verdicts by code; the fourth is `equivalent within M`."""
SAME, A, B, EQUIVALENT = range(4)


def words(margin: float | None) -> tuple[str, ...]:
    """The verdicts by code, with the margin's where there is one."""
    return WORDS if margin is None else (*WORDS, f"equivalent within {margin:g}")


def critical(df: ArrayLike, p: float) -> FloatArray:
    """The p-quantile of Student's t; the normal one for infinite df."""
    df = np.asarray(df, dtype=np.float64)
    return np.where(np.isinf(df), special.ndtri(p), special.stdtrit(np.where(np.isinf(df), 1.0, df), p))


def below(t: ArrayLike, df: ArrayLike) -> FloatArray:
    """P(T < t) of Student's t; the normal one for infinite df."""
    t, df = np.asarray(t, dtype=np.float64), np.asarray(df, dtype=np.float64)
    return np.where(np.isinf(df), special.ndtr(t), special.stdtr(np.where(np.isinf(df), 1.0, df), t))


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """A confidence interval of each difference, NaN where there is none."""

    low: FloatArray
    high: FloatArray

    def reaching(self, estimate: ArrayLike, far: Far | None, level: float) -> Limits:
        """The same, but no nearer than the limit of the extended sample on the side away from 0."""
        if far is None:
            return self
        estimate = np.asarray(estimate, dtype=np.float64)
        reach = critical(far.df, 0.5 + level / 2) * np.sqrt(far.variance)
        return Limits(
            np.where(estimate <= 0, np.fmin(self.low, far.mean - reach), self.low),
            np.where(estimate >= 0, np.fmax(self.high, far.mean + reach), self.high),
        )

    def exclude(self, value: float = 0.0) -> BoolArray:
        """Whether `value` lies outside; False where there is no interval."""
        out: BoolArray = (self.low > value) | (self.high < value)
        return out

    def within(self, margin: float) -> BoolArray:
        """Two one-sided tests (Schuirmann 1987) of level α: the (1 − 2α) interval lies inside ±margin."""
        out: BoolArray = (-margin < self.low) & (self.high < margin)
        return out


def t_limits(estimate: ArrayLike, se: ArrayLike, df: ArrayLike, level: float, far: Far | None = None) -> Limits:
    """estimate ± t·se; away from 0 the limit of the extended sample, if it is farther.

    Args:
        estimate: differences.
        se: their standard errors.
        df: degrees of freedom of these.
        level: coverage, in (0, 1).
        far: what `flips` says of them; None, or NaN in it, leaves t's limits to the last digit. Where
            the estimate is 0 both limits are far ones.
    """
    estimate = np.asarray(estimate, dtype=np.float64)
    half = critical(df, 0.5 + level / 2) * np.asarray(se)
    return Limits(estimate - half, estimate + half).reaching(estimate, far, level)


def adjusted(p: ArrayLike, method: str, families: Sequence[Hashable] | None = None) -> FloatArray:
    """Adjusted p-values, over those that are known of each family; NaN stays NaN.

    Args:
        p: (P,) p-values.
        method: holm, bh or none.
        families: (P,) labels; None: one family.
    """
    out = np.array(p, dtype=np.float64)
    known = ~np.isnan(out)
    if method == "none":
        return out
    adjust = {"holm": holm, "bh": benjamini_hochberg}[method]
    if families is None:
        out[known] = adjust(out[known])
        return out
    members: dict[Hashable, list[int]] = {}
    for i in np.flatnonzero(known).tolist():
        members.setdefault(families[i], []).append(i)
    for rows in members.values():
        out[rows] = adjust(out[rows])
    return out


def verdicts(
    separable: BoolArray,
    p: FloatArray,
    p_adjusted: FloatArray,
    a_better: BoolArray,
    equivalent: BoolArray,
    level: float,
) -> tuple[IntArray, BoolArray]:
    """Verdict codes from the adjusted p-values, and the rows that their single interval would call separable.

    Args:
        separable: what the single interval, or test, says.
        p: the p-value that goes with it.
        p_adjusted: the same, adjusted in its family.
        a_better: where A is ahead, in the metric's direction.
        equivalent: what the two one-sided tests say.
        level: 1 − α.
    """
    with np.errstate(invalid="ignore"):
        taken_back = separable & (p_adjusted >= 1 - level) & (p_adjusted > p)
    codes = np.where(separable & ~taken_back, np.where(a_better, A, B), np.where(equivalent, EQUIVALENT, SAME))
    return codes.astype(np.intp), taken_back


def two_sided(low: ArrayLike, high: ArrayLike, level: float) -> FloatArray:
    """Two-sided p of 0 for a normal interval that is symmetric about its centre; consistent with it at `level`."""
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    z = (low + high) / (high - low) * special.ndtri(0.5 + level / 2)
    out: FloatArray = 2 * special.ndtr(-np.abs(z))
    return out


def p_beyond(estimate: ArrayLike, limit: ArrayLike, df: ArrayLike, level: float, bound: float) -> FloatArray:
    """One-sided p of "the truth is not below `bound`", read off the upper limit of the interval of `level`.

    The t statistic (estimate − bound)/s, with s the half-width on that side over t's critical value: the
    standard error itself where the interval is t's; for any other interval, bootstrap or small-sample,
    p < (1 − level)/2 exactly if the limit lies below the bound.
    """
    estimate, limit = np.asarray(estimate, dtype=np.float64), np.asarray(limit, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        s = np.maximum(limit - estimate, 0.0) / critical(df, 0.5 + level / 2)
        t = (estimate - bound) / s
    return below(np.where(np.isnan(t) & (estimate == bound), 0.0, t), df)
