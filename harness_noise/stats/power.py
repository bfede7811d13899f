"""Power of the two-sided t test, and the noncentrality that gives a wanted power; on arrays.

T = (z + δ)/s with z standard normal and s² = χ²_df/df, so the chance of |T| > t is a smooth integral over
either of the two (Johnson, Kotz & Balakrishnan 1995, ch. 31). Both are taken by quadrature: library
routines for the noncentral t lose their digits or give NaN where df is below 3.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from .arrays import FloatArray

FEW = 8.0
"""Degrees of freedom below which the integral runs over z, else over s: each where it is the smoother one."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_STEPS = np.linspace(-14.0, 10.0, 241)
_DEGREE = 48
_BLOCK = 4_000


def power_t(nc: FloatArray | float, alpha: float, df: FloatArray | float) -> FloatArray:
    """P(|T| > t_{1−α/2, df}) for a noncentral t with noncentrality `nc`, both directions counted.

    Args:
        nc: true difference over its standard error, of any shape that goes with `df`.
        alpha: two-sided level, in (0, 1).
        df: degrees of freedom above 0; infinite ones are the normal limit.

    Returns:
        The power, of the common shape; NaN where an argument is NaN or df is not above 0.
    """
    shift, freedom = np.broadcast_arrays(np.abs(np.asarray(nc, dtype=np.float64)), np.asarray(df, dtype=np.float64))
    shape = shift.shape
    shift, freedom = shift.ravel(), freedom.ravel()
    out = np.full(len(shift), np.nan)
    known = ~np.isnan(shift) & (freedom > 0)
    normal = known & np.isinf(freedom)
    critical = -special.ndtri(alpha / 2)
    out[normal] = special.ndtr(shift[normal] - critical) + special.ndtr(-shift[normal] - critical)
    for some, way in ((known & (freedom < FEW), _over_z), (known & ~normal & (freedom >= FEW), _over_s)):
        where = np.flatnonzero(some)
        for first in range(0, len(where), _BLOCK):
            block = where[first : first + _BLOCK]
            t = np.asarray(-special.stdtrit(freedom[block], alpha / 2), dtype=np.float64)
            out[block] = way(shift[block], freedom[block], t)
    return out.reshape(shape)


def _over_z(nc: FloatArray, df: FloatArray, t: FloatArray) -> FloatArray:
    """E_z of P(s < (z + nc)/t), and the same of −nc; s has its singular point at 0, so z + nc is a power."""
    total = np.zeros(len(nc))
    for shift in (nc, -nc):
        low = np.maximum(0.0, shift - 9.0) ** 0.25
        high = np.maximum(0.0, shift + 9.0) ** 0.25
        half = (high - low) / 2
        w = low[:, None] + half[:, None] * (_NODES + 1)
        z = w**4 - shift[:, None]
        density = np.exp(-z * z / 2) * (4 / np.sqrt(2 * np.pi)) * w**3
        below = special.gammainc(df[:, None] / 2, df[:, None] / 2 * (w**4 / t[:, None]) ** 2)
        total += half * ((density * below) @ _WEIGHTS)
    return np.minimum(total, 1.0)


def _over_s(nc: FloatArray, df: FloatArray, t: FloatArray) -> FloatArray:
    """E of Φ(nc − t s) + Φ(−nc − t s) over log s, whose spread is 1/√(2 df), by the trapezoidal rule."""
    x = _STEPS / np.sqrt(2 * df[:, None])
    logarithm = df[:, None] * (x - np.expm1(2 * x) / 2)
    density = np.exp(logarithm)
    s = np.exp(x) * t[:, None]
    found = special.ndtr(nc[:, None] - s) + special.ndtr(-nc[:, None] - s)
    power: FloatArray = (density * found).sum(axis=1) / density.sum(axis=1)
    return power


def noncentrality(alpha: float, power: float, df: FloatArray | float) -> FloatArray:
    """The noncentrality at which the two-sided t test of level `alpha` has `power`; times se it is the MDE.

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
    usual = freedom >= 1
    with np.errstate(divide="ignore"):
        out[usual] = np.exp(chebyshev.chebval(2 / freedom[usual] - 1, _curve(alpha, power)))
    rare = (freedom > 0) & ~usual
    if rare.any():
        out[rare] = _solve(alpha, power, freedom[rare])
    return out


@lru_cache(maxsize=256)
def _curve(alpha: float, power: float) -> FloatArray:
    """Chebyshev coefficients of log nc as a function of 1/df in [0, 1], where it is analytic."""
    u = np.cos(np.pi * (np.arange(_DEGREE) + 0.5) / _DEGREE)
    values = np.log(_solve(alpha, power, 2 / (u + 1)))
    return np.asarray(chebyshev.chebfit(u, values, _DEGREE - 1), dtype=np.float64)


def _solve(alpha: float, power: float, df: FloatArray) -> FloatArray:
    """Bisection: the power grows with nc."""
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
