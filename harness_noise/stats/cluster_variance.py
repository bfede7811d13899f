"""The clustered variance of a mean and its degrees of freedom: CR0 to CR3, over tasks and clusters that cross them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Estimator, FloatArray, IntArray
from .contrast import Design


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a weighted mean, and the degrees of freedom it is known with."""

    value: float
    df: float


def clustered_variance(e: FloatArray, plan: Design, estimator: Estimator = "cr2") -> Variance | None:
    """Variance of Σ a_i d_i from the residuals `e` = d_i − (mean of its task); None with G < 2.

    CR2 for a weighted mean of task means, clusters crossing tasks:
    V = Σ_c [Σ_t (w_t/n_t) (1 − n_ct/n_t)^(−1/2) Σ_{i∈c∩t} e_i]², which for one task is
    V = (1/n²) Σ_c (Σ_{i∈c} e_i)² / (1 − n_c/n) [BM; PT eq. 5 for an intercept-only model].
    CR0 leaves the leverage out [M, eq. 4]; CR1 multiplies that by G/(G − 1); CR3 has the leverage's
    full inverse in place of the square root, the jackknife [BM]. The degrees of freedom depend on the
    design alone: Satterthwaite under working independence [BM], for all four.
    A task of non-zero weight with one cluster has no residual to learn from: None.
    """
    if len(e) < 2 or plan.n_clusters < 2:
        return None
    return cells_variance(cells(e, plan), estimator)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Values summed by cluster and task: all that a clustered variance needs to know of the questions."""

    sums: FloatArray
    """(C,) sum of the values in each cell."""
    sizes: FloatArray
    """(C,) questions in each cell, n_ct."""
    clusters: IntArray
    """(C,) cluster codes, ascending."""
    strata: IntArray
    """(C,) task codes."""
    weights: FloatArray
    """(T,) weight of one question of each task in the mean, a_t = w_t/n_t."""
    n_clusters: int


def cells(values: FloatArray, plan: Design) -> Cells:
    """The values of all questions by cluster × task."""
    G, T = plan.n_clusters, int(plan.strata.max()) + 1
    if T == 1:
        cell_cluster, cell_stratum, cell_of = np.arange(G), np.zeros(G, dtype=np.intp), plan.clusters
    else:
        found, cell_of = np.unique(plan.clusters * T + plan.strata, return_inverse=True)
        cell_cluster, cell_stratum = np.divmod(found, T)
    weights = np.zeros(T)
    weights[plan.strata] = plan.weights
    sums, sizes = (np.bincount(cell_of, weights=w).astype(np.float64) for w in (values, None))
    return Cells(sums, sizes, cell_cluster, cell_stratum, weights, G)


def cells_variance(found: Cells, estimator: Estimator) -> Variance | None:
    """The variance of `clustered_variance` from sums of residuals by cell."""
    G, T, n_ct = found.n_clusters, len(found.weights), found.sizes
    cell_cluster, cell_stratum = found.clusters, found.strata
    n_t = np.bincount(cell_stratum, weights=n_ct, minlength=T)[cell_stratum]
    a = found.weights[cell_stratum]
    used = a > 0
    if (n_ct[used] == n_t[used]).any():
        return None
    s = 1 / np.sqrt(np.where(used, 1 - n_ct / n_t, 1.0))
    scale = {"cr2": s, "cr3": s * s}.get(estimator, np.ones_like(s))
    sums = np.bincount(cell_cluster, weights=a * scale * found.sums, minlength=G)
    V = float(sums @ sums) * (G / (G - 1) if estimator == "cr1" else 1.0)

    # P_cd = Σ_t a_t² s_ct s_dt (n_ct δ_cd − n_ct n_dt/n_t) = diag(D) − U Uᵀ; both traces without P.
    D = np.bincount(cell_cluster, weights=a * a * s * s * n_ct, minlength=G)
    u = a * s * n_ct / np.sqrt(n_t)
    uu = np.bincount(cell_cluster, weights=u * u, minlength=G)
    trace = D.sum() - uu.sum()
    trace2 = D @ D - 2 * D @ uu + _gram_norm2(u, cell_cluster, cell_stratum, (G, T))
    return Variance(V, float(satterthwaite(trace, trace2)))


def between_task_variance(means: FloatArray, shares: FloatArray, estimator: Estimator = "cr2") -> Variance | None:
    """Variance of Σ w_t d̄_t when the T tasks are the sample; None with T < 2.

    V = Σ w_t² (d̄_t − d̄)² / (1 − w_t), with the degrees of freedom of CR2, w_t in place of n_c/n.
    """
    w = shares[shares > 0]
    T = len(w)
    if T < 2:
        return None
    e = means[shares > 0] - float(shares @ means)
    leverage = {"cr2": 1 - w, "cr3": (1 - w) ** 2}.get(estimator, np.ones(T))
    V = float((w * e) ** 2 @ (1 / leverage)) * (T / (T - 1) if estimator == "cr1" else 1.0)
    D, u2 = w / (1 - w), w**2 / (1 - w)
    trace = D.sum() - u2.sum()
    trace2 = D @ D - 2 * D @ u2 + u2.sum() ** 2
    return Variance(V, float(satterthwaite(trace, trace2)))


def satterthwaite(trace: FloatArray | float, trace2: FloatArray | float) -> FloatArray:
    """tr(P)²/tr(P²); a whole number where only rounding keeps it from being one (balanced clusters)."""
    df = np.asarray(trace**2 / trace2)
    whole = np.rint(df)
    return np.where(np.abs(df - whole) < 1e-9 * df, whole, df)


def _gram_norm2(u: FloatArray, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> float:
    """‖UᵀU‖² (Frobenius) of the sparse G × T matrix U."""
    if shape[1] == 1:
        return float(u @ u) ** 2
    from scipy.sparse import csr_array

    U = csr_array((u, (rows, columns)), shape=shape)
    gram = U.T @ U
    return float((gram.data**2).sum())
