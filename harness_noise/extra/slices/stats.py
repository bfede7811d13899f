"""Statistics of slices: a test that all means are equal, slices against the rest, and shrunken means.

Clusters may cross slices. Slices are to the questions what tasks are to a group (`cluster_variance`): residuals are
taken within each slice and summed by cluster, so that the covariance of all slice means is CR2's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from ...arrays import FloatArray, IntArray
from ...stats.cluster_variance import satterthwaite
from ...stats.intervals import critical

FEWEST = 4
"""Slices from which something can be said of how slices are spread [Morris]."""


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """The means of S slices and what their noise shares."""

    means: FloatArray
    """(S,)"""
    sizes: FloatArray
    """(S,) questions."""
    scores: FloatArray
    """(G, S) CR2 scores: their cross product is the covariance of the means."""
    D: FloatArray
    """(G, S) and `q`: under working independence the scores of slice s have the covariance diag(D_s) − q_s q_sᵀ."""
    q: FloatArray
    identified: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    """(S,) whether a slice has two clusters."""


def joint(d: FloatArray, slices: IntArray, clusters: IntArray) -> Joint:
    """Return the (S,) means of d on slices 0 … S − 1, with what their joint CR2 covariance is made of.

    Clusters 0 … G − 1 may cross the slices.
    """
    S, G = int(slices.max()) + 1, int(clusters.max()) + 1
    sizes = np.bincount(slices, minlength=S).astype(np.float64)
    means = np.bincount(slices, weights=d, minlength=S) / sizes
    e = d - means[slices]
    e[np.abs(e) <= 1e-12 * max(1.0, float(np.abs(d).max(initial=0.0)))] = 0.0
    cell = clusters * S + slices
    sums, n_gs = (np.bincount(cell, weights=w, minlength=G * S).reshape(G, S).astype(np.float64) for w in (e, None))
    identified = (n_gs > 0).sum(axis=0) > 1
    s2 = 1 / np.where(n_gs < sizes, 1 - n_gs / sizes, 1.0)
    D = s2 * n_gs / sizes**2
    return Joint(means, sizes, np.sqrt(s2) * sums / sizes, D, np.sqrt(s2) * n_gs / sizes**1.5, identified)


@dataclass(frozen=True, slots=True)
class EqualMeansTest:
    """The test that the means of all slices are equal."""

    statistic: float
    df: float
    df_residual: float
    p_value: float


def heterogeneity(d: FloatArray, slices: IntArray, clusters: IntArray) -> EqualMeansTest | None:
    """Test that all slices have one mean (Brown–Forsythe F* with clusters). None if it cannot be tested.

    None if no two slices have two clusters, or nothing varies.

    F* = Σ n_s (d̄_s − d̄)² / tr(A V), A = diag(n) − nnᵀ/N, V the CR2 covariance of the slice means; for independent
    questions tr(A V) = Σ (1 − n_s/N) s²_s [Brown]. Numerator df tr(AV)²/tr(AVAV) [Box; Mehrotra],
    denominator df by Satterthwaite with each slice's own variance. Slices are weighted by their size and not by their
    estimated precision: one whose few answers happen to agree would else decide.
    """
    by_slice = joint(d, slices, clusters)
    keep = np.flatnonzero(by_slice.identified)
    if len(keep) < 2:
        return None
    n, means = by_slice.sizes[keep], by_slice.means[keep]
    U, D, q = by_slice.scores[:, keep], by_slice.D[:, keep], by_slice.q[:, keep]
    A = np.diag(n) - np.outer(n, n) / n.sum()
    AV = A @ (U.T @ U)
    trace = float(np.trace(AV))
    if trace <= 1e-24 * max(1.0, float(np.abs(d).max())) ** 2:
        return None
    df = trace**2 / float((AV * AV.T).sum())
    # Var(tr(A V)) = 2 Σ_st A_st² v_s v_t Σ_gh c_ghs c_ght, c_s = diag(D_s) − q_s q_sᵀ, v_s the slice's variance
    q2 = q * q
    base = D.sum(axis=0) - q2.sum(axis=0)
    v = np.diag(U.T @ U) / base
    products = D.T @ D - D.T @ q2 - q2.T @ D + (q.T @ q) ** 2
    spread = float((A**2 * np.outer(v, v) * products).sum())
    df_residual = float(satterthwaite(trace, spread))
    statistic = float(means @ A @ means) / trace
    return EqualMeansTest(statistic, df, df_residual, float(stats.f.sf(statistic, df, df_residual)))


def against_rest(d: FloatArray, slices: IntArray, clusters: IntArray) -> FloatArray:
    """Return (S,) p-values that a slice's mean equals the mean of all other questions. NaN if unknown.

    t of d̄_s − d̄_rest with CR2 over clusters and Satterthwaite's df. The slice's own part of the variance is no smaller
    than that of as many questions of average variance: a handful of right answers has none of its own, and is no proof
    of a slice without wrong ones.
    """
    whole = joint(d, slices, clusters)
    S, N = len(whole.sizes), float(len(d))
    out = np.full(S, np.nan)
    unit = pooled_unit(whole)
    for s in range(S):
        if not whole.identified[s] or whole.sizes[s] > N - 2:
            continue
        two = joint(d, (slices != s).astype(np.intp), clusters)
        if not two.identified.all():
            continue
        u = two.scores[:, 0] - two.scores[:, 1]
        own = float(two.scores[:, 0] @ two.scores[:, 0])
        V = float(u @ u) - own + max(own, unit / float(whole.sizes[s]))
        D, q = two.D, two.q
        trace = float(D.sum() - (q * q).sum())
        D, gram = D.sum(axis=1), q.T @ q
        trace2 = float(D @ D - 2 * D @ (q * q).sum(axis=1) + (gram * gram).sum())
        if np.sqrt(V) <= 1e-12 * max(1.0, float(np.abs(d).max())):
            continue
        t = (two.means[0] - two.means[1]) / np.sqrt(V)
        out[s] = 2 * special.stdtr(satterthwaite(trace, trace2), -abs(t))
    return out


def pooled_unit(by_slice: Joint) -> float:
    """Return the variance of one question with its clustering: slice size × variance, averaged over slices, else 0."""
    keep = by_slice.identified
    n = by_slice.sizes[keep]
    V = np.einsum("gs,gs->s", by_slice.scores[:, keep], by_slice.scores[:, keep])
    return float(n @ (n * V)) / float(n.sum()) if keep.any() else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Shrunken:
    """Slice means drawn towards their centre, NaN where a slice is not identified."""

    values: FloatArray
    low: FloatArray
    high: FloatArray
    spread: float
    """τ, the standard deviation of the true slice means."""


def shrink(means: FloatArray, variances: FloatArray, level: float) -> Shrunken | None:
    """Return empirical Bayes means and intervals of slices, shrunk to their mean [Morris]. None if < 4, or variance 0.

    τ² by Morris' weighted moments [Morris, §5], shrinkage
    B_s = (S − 3)/(S − 1) V_s/(V_s + τ²), and intervals that know that μ and τ² are estimates.

    Args:
        means: (S,) NaN where a slice has none.
        variances: (S,) of the means, all above 0: `pooled_unit` over the number of questions. A slice's own is small
            where it happens to have few errors, and would tie its weight to its mean.
        level: coverage, on average over the slices.
    """
    keep = np.isfinite(means) & np.isfinite(variances)
    S = int(keep.sum())
    if S < FEWEST or not (variances[keep] > 0).all():
        return None
    y, V = means[keep], variances[keep]
    tau2 = 0.0
    for _ in range(1000):
        w = 1 / (V + tau2)
        mu = float(w @ y) / float(w.sum())
        new = max(0.0, float(w @ (S / (S - 1) * (y - mu) ** 2 - V)) / float(w.sum()))
        if abs(new - tau2) <= 1e-12 * (tau2 + float(V.mean())):
            break
        tau2 = new
    w = 1 / (V + tau2)
    mu = float(w @ y) / float(w.sum())
    B = (S - 3) / (S - 1) * V * w
    mean_V = float(w @ V) / float(w.sum())
    values = y - B * (y - mu)
    share = S * w / float(w.sum())
    v = 2 / (S - 3) * B**2 * (mean_V + tau2) * w
    s2 = V * (1 - (1 - share / S) * B) + v * (y - mu) ** 2
    half = critical(level) * np.sqrt(s2)
    out = np.full((3, len(means)), np.nan)
    out[:, keep] = values, values - half, values + half
    return Shrunken(out[0], out[1], out[2], float(np.sqrt(tau2)))
