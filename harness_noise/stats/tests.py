"""Tests of a paired difference, and what goes with them: wins, adjusted p-values, MDE."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from .arrays import FloatArray, IntArray
from .planning import noncentrality
from .tolerances import ROUNDING, SMALLEST

SKEW_P = 0.05
"""Below this p of the pooled skewness the rows are said to be skewed alike, if that matters."""
MOST_SHIFT = 0.15
"""What skewness may shift Stouffer's z by (and twice that the z of inverse variance): a test at 5 % then rejects a true
null in 5.3 % (6 %). A difference of 0/1 scores is skewed as soon as it is one, and shifts far less."""


def t_test(estimate: float, se: float, df: float) -> tuple[float, float]:
    """(t, two-sided p) of estimate / se."""
    t = estimate / se
    return t, float(2 * special.stdtr(df, -abs(t)))


def welch_p(x: FloatArray, y: FloatArray) -> float:
    """Two-sided p of Welch's test that two independent samples, of two values or more each, have one mean."""
    a, b = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    gap = float(x.mean() - y.mean())
    if a + b <= ROUNDING**2:
        return 1.0 if abs(gap) <= ROUNDING else 0.0
    df = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
    return t_test(gap, float(np.sqrt(a + b)), float(df))[1]


@dataclass(frozen=True, slots=True)
class Skew:
    """What one row adds to the test of the skewness that all rows share."""

    third: float
    """Σ (z³ − 3z) over the standardised values z of its questions (clusters), 0 in expectation where they are
    symmetric; −3z allows for the mean, which is estimated."""
    spread: float
    """Σ (z³ − 3z)², its variance."""
    shift: float
    """−γ/(2√G), which skewness γ adds to the expectation of t [Johnson 1978]."""

    def turned(self) -> Skew:
        """That of the values with the other sign."""
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
    """Holm (1979) step-down adjusted p-values."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    scaled = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    out = np.empty_like(values)
    out[order] = np.minimum(scaled, 1.0)
    return out


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Benjamini & Hochberg (1995) step-up adjusted p-values."""
    from scipy.stats import false_discovery_control  # takes long to import

    values = np.asarray(p, dtype=np.float64)
    out: FloatArray = false_discovery_control(values) if len(values) else values
    return out


def detectable_distance(se: float | None, df: float | None, level: float) -> float | None:
    """How far a mean must be from a fixed number to be found so; None where its noise is not known, or is none."""
    distance = float(minimum_detectable(se, df, level)) if se and df else math.nan
    return distance if math.isfinite(distance) else None


def minimum_detectable(se: ArrayLike, df: ArrayLike, level: float, power: float = 0.80) -> FloatArray:
    """The difference found significant with the given power: the noncentrality of t that has it, times se.

    NaN where se or df is, and where the test of this level finds more than `power` of anything.
    """
    alpha = 1 - level
    if alpha >= power:
        return np.full(np.broadcast_shapes(np.shape(se), np.shape(df)), np.nan)
    out: FloatArray = noncentrality(alpha, power, np.asarray(df, dtype=np.float64)) * np.asarray(se)
    return out
