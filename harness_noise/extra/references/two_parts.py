"""A − B over N questions of which A and B have answered two different random subsets, with complete reference runs.

Each mean is estimated by regression on the references (`partial`), and what is subtracted is the other estimate.

Sources:
  [Särndal] Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, ch. 6; two overlapping simple samples
            have the covariance S_AB (m_AB/(m_A m_B) − 1/N)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import FloatArray, IntArray
from ...stats.contrast import sum_by
from ...stats.tolerances import FEWEST_UNITS
from ..partial import FromPart, Part, cross_fit, features

FEWEST_COMMON = 20
"""Common clusters below which the covariance of the residuals is not known."""


class TwoParts(NamedTuple):
    """The difference, and what is known of its parts."""

    estimate: FromPart
    overlap_known: bool
    """True if the covariance of the residuals is known. Otherwise the worst one is taken."""


class _Side(NamedTuple):
    """One of the two runs."""

    fitted: FloatArray
    """(N,) predictions."""
    residual: FloatArray
    """(m,) centred."""
    mean: float
    """The estimated mean of all N questions."""
    sums: FloatArray
    """(G,) residuals by cluster, per question of a cluster of mean size, NaN if none was asked."""
    m: int
    """Clusters."""
    df: float


def _side(y: FloatArray, part: Part, Z: FloatArray, codes: IntArray, G: int) -> _Side | None:
    design = part.design()
    df = design.n_clusters - 1.0 - Z.shape[1]
    if design.n_clusters < FEWEST_UNITS or df < 1:
        return None
    residual, fitted = cross_fit(y, Z, Z[part.asked], part, design)
    mean = float(fitted.mean() + residual.mean())
    residual = residual - residual.mean()
    asked = codes[part.asked]
    sums = sum_by(asked, residual, G) * (G / len(codes))
    sums = np.where(np.bincount(asked, minlength=G) > 0, sums, np.nan)
    return _Side(fitted, residual, mean, sums, design.n_clusters, df)


def two_parts(y_a: FloatArray, part_a: Part, y_b: FloatArray, part_b: Part, X: FloatArray) -> TwoParts | None:
    """Estimate A − B over all N questions from two random subsets, by regression. None: too small or split clusters.

    Args:
        y_a: (m_A,) question means of A.
        part_a: which questions they are.
        y_b: (m_B,) those of B.
        part_b: which questions they are.
        X: (N, R) question means of the references, NaN where one has none.

    Returns:
        None where a part is too small for a regression or has no more than a part of some cluster, or nothing varies.
    """
    _, codes, sizes = np.unique(part_a.clusters, return_inverse=True, return_counts=True)
    G, N = len(sizes), len(codes)
    for part in (part_a, part_b):  # the variance is that of clusters that were drawn whole
        asked = np.bincount(codes[part.asked], minlength=G)
        if ((asked > 0) & (asked < sizes)).any():
            return None
    Z = features(X, min(part_a.design().n_clusters, part_b.design().n_clusters))
    if Z.shape[1] == 0:
        return None
    a, b = _side(y_a, part_a, Z, codes, G), _side(y_b, part_b, Z, codes, G)
    if a is None or b is None:
        return None
    # the regression has used up its degrees of freedom
    squares = [np.nansum(side.sums**2) / side.df for side in (a, b)]
    both = ~np.isnan(a.sums) & ~np.isnan(b.sums)
    overlap, known = both.sum() / (a.m * b.m) - 1 / G, bool(both.sum() >= FEWEST_COMMON)
    covariance = (
        np.cov(a.sums[both], b.sums[both])[0, 1] if known else 0.0 if overlap >= 0 else np.sqrt(np.prod(squares))
    )
    each = [square * (1 / side.m - 1 / G) for square, side in zip(squares, (a, b), strict=True)]
    these = float(sum(each) - 2 * covariance * overlap)  # [Särndal]
    of_parts = sum(x**2 / side.df for x, side in zip(each, (a, b), strict=True))
    if these <= 0 or of_parts <= 0:
        return None
    df = float(sum(each) ** 2 / of_parts)
    predicted = a.fitted - b.fitted
    influence = sum_by(codes, (predicted - predicted.mean()) / N, G)
    for side, part, sign in ((a, part_a, 1.0), (b, part_b, -1.0)):
        influence = influence + sign * sum_by(codes[part.asked], side.residual / len(side.residual), G)
    population = float((influence**2).sum() * G / (G - 1))
    gain = _paired(y_a, part_a, y_b, part_b, codes)
    return TwoParts(
        FromPart(
            a.mean - b.mean, these, df, max(population, these), min(df, G - 1.0),
            gain=None if gain is None else gain / these,
        ),
        known or overlap >= 0,
    )  # fmt: skip


def _paired(y_a: FloatArray, part_a: Part, y_b: FloatArray, part_b: Part, codes: IntArray) -> float | None:
    """Return the variance of the paired mean difference on shared questions. None if < 2 of them or their clusters."""
    common, at_a, at_b = np.intersect1d(part_a.asked, part_b.asked, return_indices=True)
    if len(common) < 2:
        return None
    d = y_a[at_a] - y_b[at_b]
    _, of = np.unique(codes[common], return_inverse=True)
    sums = np.bincount(of, weights=d - d.mean())
    if len(sums) < 2:
        return None
    return float((sums**2).sum() * len(sums) / (len(sums) - 1) / len(d) ** 2 * (1 - len(d) / len(codes)))
