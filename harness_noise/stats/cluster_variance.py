"""The clustered variance of a mean and its degrees of freedom: CR0 to CR3, over tasks and clusters that cross them.

What the four estimators are stands here and nowhere else: `leverage_factor` and `small_sample_factor`. A design that
many contrasts share gives them all one matrix of cluster scores S with V = diag(SᵀS), and SᵀS for all their
differences (`cluster_scores`); differences that each have clusters of their own take `each_its_clusters`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Estimator, FloatArray, IntArray
from .contrast import Design
from .tolerances import SLACK


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a weighted mean, and the degrees of freedom it is known with."""

    value: float
    df: float


def leverage_factor(leverage: FloatArray, estimator: Estimator) -> FloatArray:
    """What a cluster's residuals are multiplied by: (1 − h)^(−1/2) in CR2, (1 − h)^(−1) in CR3, else 1 [Bell]."""
    if estimator not in ("cr2", "cr3"):
        return np.ones_like(leverage)
    left = 1 - leverage
    return 1 / (np.sqrt(left) if estimator == "cr2" else left)


def small_sample_factor(G: FloatArray | float, estimator: Estimator) -> FloatArray | float:
    """What V is multiplied by: G/(G − 1) in CR1, else 1."""
    return G / (G - 1) if estimator == "cr1" else 1.0


def question_factor(n: FloatArray | float, estimator: Estimator) -> FloatArray:
    """V of a mean of n independent questions over Σ e²: each is its own cluster, of leverage 1/n."""
    n = np.asarray(n, dtype=np.float64)
    return np.asarray((leverage_factor(1 / n, estimator) / n) ** 2 * small_sample_factor(n, estimator))


def clustered_variance(e: FloatArray, plan: Design, estimator: Estimator = "cr2") -> Variance | None:
    """Variance of Σ a_i d_i from the residuals `e` = d_i − (mean of its task); None with G < 2.

    CR2 for a weighted mean of task means, clusters crossing tasks:
    V = Σ_c [Σ_t (w_t/n_t) (1 − n_ct/n_t)^(−1/2) Σ_{i∈c∩t} e_i]², which for one task is
    V = (1/n²) Σ_c (Σ_{i∈c} e_i)² / (1 − n_c/n) [BM; PT eq. 5 for an intercept-only model].
    CR0 leaves the leverage out [Miller, eq. 4]; CR1 multiplies that by G/(G − 1); CR3 has the leverage's
    full inverse in place of the square root, the jackknife [Bell]. The degrees of freedom depend on the
    design alone: Satterthwaite under working independence [Bell], for all four.
    A task of non-zero weight with one cluster has no residual to learn from: None. Where the tasks are
    the sample, e = d̄_t − d̄ and each task is a cluster of leverage w_t.
    """
    found = cells(plan)
    if not found.identified:
        return None
    S = found.scores(found.sums(e), estimator)
    return Variance(float(S @ S), found.df())


def cluster_scores(E: FloatArray, plan: Design, estimator: Estimator = "cr2") -> FloatArray | None:
    """(G, M) scores S of M contrasts on the same questions: V = diag(SᵀS), of their differences by SᵀS.

    Args:
        E: (n, M) residuals of each, as in `clustered_variance`.
        plan: the weights, tasks and clusters of the questions.
        estimator: of the variance; its small-sample factor is in S.

    Returns:
        None where a task of non-zero weight has fewer than two clusters.
    """
    found = cells(plan)
    return found.scores(found.sums(E), estimator) if found.identified else None


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A design by cluster × task: all that a clustered variance needs to know of the questions."""

    sizes: FloatArray
    """(C,) questions in each cell, n_ct; of tasks that are the sample their weights."""
    clusters: IntArray
    """(C,) cluster codes, ascending."""
    strata: IntArray
    """(C,) task codes."""
    weights: FloatArray
    """(T,) weight of one question of each task in the mean, a_t = w_t/n_t."""
    n_clusters: int
    of: IntArray | None = None
    """(n,) cell of each question; None: each has its own, in order."""
    shares: FloatArray | None = None
    """(n,) what a question counts for in the sum of its cell; None: 1."""

    @property
    def task_sizes(self) -> FloatArray:
        """(T,) n_t."""
        out: FloatArray = np.bincount(self.strata, weights=self.sizes, minlength=len(self.weights)).astype(np.float64)
        return out

    @property
    def leverage(self) -> FloatArray:
        """(C,) n_ct/n_t; 0 in a task without weight."""
        out: FloatArray = self.sizes / self.task_sizes[self.strata]
        return np.where(self.weights[self.strata] > 0, out, 0.0)

    @property
    def identified(self) -> bool:
        """At least two clusters in every task of non-zero weight."""
        whole = self.sizes == self.task_sizes[self.strata]
        return self.n_clusters > 1 and not bool((whole & (self.weights[self.strata] > 0)).any())

    def sums(self, values: FloatArray) -> FloatArray:
        """(C,) or (C, M) sums by cell of (n,) or (n, M) values."""
        if self.shares is not None:
            values = (values.T * self.shares).T
        return values if self.of is None else sum_by(self.of, values, len(self.sizes))

    def factors(self, estimator: Estimator) -> FloatArray:
        """(C,) what the residual sum of a cell counts for in the score of its cluster."""
        small = np.sqrt(small_sample_factor(self.n_clusters, estimator))
        out: FloatArray = self.weights[self.strata] * leverage_factor(self.leverage, estimator) * small
        return out

    def scores(self, sums: FloatArray, estimator: Estimator) -> FloatArray:
        """(G,) or (G, M) cluster scores from residual sums by cell."""
        values = (sums.T * self.factors(estimator)).T
        alone = len(self.clusters) == self.n_clusters
        return values if alone else sum_by(self.clusters, values, self.n_clusters)

    def df(self) -> float:
        """Satterthwaite's degrees of freedom under working independence.

        P_cd = Σ_t a_t² s_ct s_dt (n_ct δ_cd − n_ct n_dt/n_t) = diag(D) − U Uᵀ; both traces without P.
        """
        if len(self.weights) == 1:
            return float(task_df(self.leverage))
        G = self.n_clusters
        a, n_t = self.weights[self.strata], self.task_sizes[self.strata]
        s = leverage_factor(self.leverage, "cr2")
        D = np.bincount(self.clusters, weights=a * a * s * s * self.sizes, minlength=G)
        u = a * s * self.sizes / np.sqrt(n_t)
        uu = np.bincount(self.clusters, weights=u * u, minlength=G)
        trace2 = D @ D - 2 * D @ uu + _gram_norm2(u, self.clusters, self.strata, (G, len(self.weights)))
        return float(satterthwaite(D.sum() - uu.sum(), trace2))


def cells(plan: Design) -> Cells:
    """The questions of a design by cluster × task; where the tasks are the sample, one cell and cluster for each."""
    if plan.between_tasks:
        share = np.bincount(plan.clusters, weights=plan.weights, minlength=plan.n_clusters).astype(np.float64)
        used = share > 0
        G = int(used.sum())
        of = np.maximum(np.cumsum(used) - 1, 0)[plan.clusters]  # a question of a task without weight adds 0
        return Cells(share[used], np.arange(G), np.zeros(G, dtype=np.intp), np.ones(1), G, of, plan.weights)
    G, T = plan.n_clusters, int(plan.strata.max(initial=0)) + 1
    weights = np.zeros(T)
    weights[plan.strata] = plan.weights
    if len(plan.strata) == G and (plan.clusters == np.arange(G)).all():
        return Cells(np.ones(G), plan.clusters, plan.strata, weights, G)
    if T == 1:
        found, of = np.arange(G), plan.clusters
    else:
        found, of = np.unique(plan.clusters * T + plan.strata, return_inverse=True)
    cluster, stratum = np.divmod(found, T)
    sizes: FloatArray = np.bincount(of, minlength=len(found)).astype(np.float64)
    return Cells(sizes, cluster, stratum, weights, G, of)


def sum_by(codes: IntArray, values: FloatArray, size: int) -> FloatArray:
    """(size,) or (size, M) sums of the (n,) or (n, M) values with the same code."""
    if values.ndim == 1:
        return np.bincount(codes, weights=values, minlength=size).astype(np.float64)
    from .ranks import one_hot

    return np.asarray(one_hot(codes, size).T @ values)


def each_its_clusters(sums: FloatArray, sizes: FloatArray, estimator: Estimator) -> FloatArray:
    """(…,) variances of means of one task where every difference has clusters of its own, two of them or more.

    Args:
        sums: (…, G) sums of the values by cluster.
        sizes: (…, G) questions in each; 0 where a difference has none of the cluster.
        estimator: of the variance.
    """
    n = sizes.sum(axis=-1, keepdims=True)
    e = sums - sizes * (sums.sum(axis=-1, keepdims=True) / n)
    S = leverage_factor(sizes / n, estimator) / n * e
    out: FloatArray = (S * S).sum(axis=-1) * small_sample_factor((sizes > 0).sum(axis=-1).astype(np.float64), estimator)
    return out


def task_df(leverage: FloatArray) -> FloatArray:
    """(…,) degrees of freedom of one task from the (…, G) shares n_c/n of its clusters; as `Cells.df`."""
    D = leverage / (1 - leverage)
    uu = D * leverage
    return satterthwaite(leverage.sum(axis=-1), (D * D - 2 * D * uu).sum(axis=-1) + uu.sum(axis=-1) ** 2)


def satterthwaite(trace: FloatArray | float, trace2: FloatArray | float) -> FloatArray:
    """tr(P)²/tr(P²); a whole number where only rounding keeps it from being one (balanced clusters)."""
    df = np.asarray(trace**2 / trace2)
    whole = np.rint(df)
    return np.where(np.abs(df - whole) < SLACK * df, whole, df)


def _gram_norm2(u: FloatArray, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> float:
    """‖UᵀU‖² (Frobenius) of the sparse G × T matrix U."""
    from scipy.sparse import csr_array

    U = csr_array((u, (rows, columns)), shape=shape)
    gram = U.T @ U
    return float((gram.data**2).sum())
