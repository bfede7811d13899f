"""Power of the two-sided t test, and its inverse.

T = (z + δ)/s with z standard normal and s² = χ²_df/df has the noncentral t distribution [Johnson1995,
ch. 31]. With few degrees of freedom the library's has no number, or takes seconds, where δ is large; there
the chance of |T| > t is taken by quadrature over z.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from ..arrays import FloatArray

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
