"""The clustered variance of a mean and its degrees of freedom: CR0 to CR3, for one or two ways of clustering.

Clusters may cross tasks.

What the four estimators are stands here and nowhere else, in functions that `choices.ESTIMATORS` names. A design gives
every contrast on its questions cluster scores S with V = Σ S²; contrasts that lack different questions have cells of
different sizes, one row for each.

Sources, cited at the lines that use them:
  [Bell]         Bell & McCaffrey (2002), Survey Methodology 28(2): CR2, CR3 and Satterthwaite's degrees of freedom
  [Miller]       Miller (2024), Adding error bars to evals, arXiv 2411.00640
  [Pustejovsky]  Pustejovsky & Tipton (2018), J. Business & Economic Statistics 36(4)
  [Cameron2011]  Cameron, Gelbach & Miller (2011), J. Business & Economic Statistics 29(2): two crossed ways
  [Searle]       Searle, Casella & McCulloch (1992), Variance Components, ch. 4: two-way random effects
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..choices import CR2, ESTIMATORS
from ..settings import Estimator
from .contrast import Design, once, sum_by
from .tolerances import SLACK, SMALLEST

_BLOCK = 64
"""Rows of a Gram matrix that are there at once: of hundreds of tasks with the same questions it is dense."""


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a weighted mean, and the degrees of freedom it is known with."""

    value: float
    df: float


def leverage_factor(leverage: FloatArray, estimator: Estimator) -> FloatArray:
    """Return factors for residuals of clusters with leverages h: CR2 1/√(1 − h), CR3 1/(1 − h), else 1 [Bell]."""
    factors: FloatArray = ESTIMATORS[estimator].call("leverage", leverage)
    return factors


def small_sample_factor(G: FloatArray, estimator: Estimator) -> FloatArray:
    """Return factors, one per G in the array, for variances from G clusters: G/(G − 1) in CR1, else 1."""
    factors: FloatArray = ESTIMATORS[estimator].call("small_sample", G)
    return factors


def no_adjustment(of: FloatArray) -> FloatArray:
    """Return ones in the array's shape, for variance estimators that do not adjust for leverage or cluster count."""
    return np.ones_like(of)


def cr1_factor(G: FloatArray) -> FloatArray:
    """Return CR1's small-sample factors G/(G − 1), one for each number G of clusters in the array."""
    return G / (G - 1)


def cr2_factor(leverage: FloatArray) -> FloatArray:
    """Return CR2's factors (1 − h)^(−1/2) of residuals, one for each cluster's leverage h in the array [Bell]."""
    return np.asarray(1 / np.sqrt(1 - leverage))


def cr3_factor(leverage: FloatArray) -> FloatArray:
    """Return CR3's (jackknife) factors (1 − h)^(−1) of residuals, one for each cluster's leverage h [Bell]."""
    return 1 / (1 - leverage)


OF_RESIDUALS: Estimator = CR2.name
"""Estimator of the variance of a regression's residuals. With another choice there is no regression."""


def clustered_variance(e: FloatArray, design: Design, estimator: Estimator = "cr2") -> Variance | None:
    """Return the cluster-robust variance and df of a weighted mean, from residuals `e`. None if a task has one cluster.

    CR2 for a weighted mean of task means, clusters crossing tasks:
    V = Σ_c [Σ_t (w_t/n_t) (1 − n_ct/n_t)^(−1/2) Σ_{i∈c∩t} e_i]², which for one task is
    V = (1/n²) Σ_c (Σ_{i∈c} e_i)² / (1 − n_c/n) [Bell; Pustejovsky, eq. 5 for an intercept-only model].
    CR0 leaves the leverage out [Miller, eq. 4]; CR1 multiplies that by G/(G − 1); CR3 has the leverage's
    full inverse in place of the square root, the jackknife [Bell]. The degrees of freedom depend on the
    design alone: Satterthwaite under working independence [Bell], for all four.
    A task with one cluster has no residual to learn from: None. Where the tasks are
    the sample, e = d̄_t − d̄ and each task is a cluster of leverage w_t.
    """
    by_cell = cells(design)
    if not by_cell.identified.all():
        return None
    return Variance(by_cell.variances(e[None, :], estimator).item(), by_cell.df.item())


def cluster_scores(E: FloatArray, design: Design, estimator: Estimator = "cr2") -> FloatArray | None:
    """Return (M, G) cluster sums S of M means' residuals: SSᵀ is their covariance. None: too few clusters in a task.

    Args:
        E: (M, n) residuals of each, as in `clustered_variance`.
        design: the weights, tasks and clusters of the questions.
        estimator: of the variance; its small-sample factor is in S.

    Returns:
        None where a task has fewer than two clusters.
    """
    by_cell = cells(design)
    return by_cell.scores(by_cell.sums(E), estimator) if by_cell.identified.all() else None


@dataclass(frozen=True, eq=False)
class Cells:
    """Designs by cluster × task: all that a clustered variance needs to know of the questions.

    Q is 1 where all contrasts have the same questions, else their number.
    """

    sizes: FloatArray
    """(Q, C) questions in each cell, n_ct, or the weights of tasks that are the sample."""
    clusters: IntArray
    """(C,) cluster codes 0 … G−1, ascending."""
    strata: IntArray
    """(C,) task codes."""
    weights: FloatArray
    """(Q, T) weight of one question of each task in the mean, a_t = w_t/n_t."""
    of: IntArray | None = None
    """(n,) cell of each question, None if each has its own, in order."""
    shares: FloatArray | None = None
    """(Q, C) weight of a question in the sum of its cell, None for 1."""
    known: dict[Estimator, FloatArray] = field(default_factory=dict, init=False, repr=False)
    """The `factors` that were asked for, by estimator."""

    def take(self, rows: IntArray | BoolArray) -> Cells:
        """Return the cells of only the selected means (rows of `sizes`). As they are if all means share one row."""
        if len(self.sizes) == 1:
            return self
        shares = None if self.shares is None else self.shares[rows]
        return replace(self, sizes=self.sizes[rows], weights=self.weights[rows], shares=shares)

    @cached_property
    def n_clusters(self) -> FloatArray:
        """(Q,) numbers of clusters with at least one question."""
        return np.asarray((self.by_cluster(self.sizes) > 0).sum(axis=1).astype(np.float64))

    @cached_property
    def task_sizes(self) -> FloatArray:
        """(Q, T) numbers of questions in each task."""
        return self.by_task(self.sizes)

    @cached_property
    def leverage(self) -> FloatArray:
        """(Q, C), Q contrasts, C cells (cluster × task): a cell's share of its task's questions. 0 in an empty task."""
        return np.asarray(self.sizes / np.maximum(self.task_sizes, SMALLEST)[:, self.strata])

    @cached_property
    def identified(self) -> BoolArray:
        """(Q,) True if every task has at least two clusters, so that a variance can be estimated."""
        whole = (self.sizes == self.task_sizes[:, self.strata]) & (self.sizes > 0)
        return np.asarray((self.n_clusters > 1) & ~whole.any(axis=1))

    def by_cluster(self, values: FloatArray) -> FloatArray:
        """Sum (…, C) values of cells (cluster × task) to (…, G) sums by cluster."""
        G = int(self.clusters[-1]) + 1 if len(self.clusters) else 0
        return values if len(self.clusters) == G else sum_by(self.clusters, values, G)

    def by_task(self, values: FloatArray) -> FloatArray:
        """Sum (…, C) values of cells (cluster × task) to (…, T) sums by task."""
        return sum_by(self.strata, values, self.weights.shape[1])

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum (P, n) values of questions (times their share if tasks are the sample) to (P, C) sums by cell."""
        out = values if self.of is None else sum_by(self.of, values, self.sizes.shape[1])
        return out if self.shares is None else out * self.shares

    def weighted_sums(self, values: FloatArray) -> FloatArray:
        """Sum (P, n) values of questions to (P, G) sums by cluster, each question with its weight in the mean."""
        weights = self.weights[:, self.strata] if self.shares is None else np.ones((1, 1))
        return self.by_cluster(self.sums(values) * weights)

    def factors(self, estimator: Estimator) -> FloatArray:
        """Return (Q, C) factors (weight × leverage correction) for each cell's residual sum in a variance estimator."""
        if estimator not in self.known:
            small = np.sqrt(small_sample_factor(self.n_clusters, estimator))
            factors = self.weights[:, self.strata] * leverage_factor(self.leverage, estimator) * small[:, None]
            self.known[estimator] = factors
        return self.known[estimator]

    def scores(self, sums: FloatArray, estimator: Estimator) -> FloatArray:
        """Return (P, G) weighted cluster sums, whose squares add up to the variance, from (P, C) residual sums."""
        return self.by_cluster(sums * self.factors(estimator))

    def variances(self, e: FloatArray, estimator: Estimator) -> FloatArray:
        """Return (P,) cluster-robust variances of P means, from (P, n) residuals. NaN if a task has < 2 clusters."""
        with np.errstate(invalid="ignore", divide="ignore"):
            S = self.scores(self.sums(e), estimator)
            return np.where(self.identified, np.einsum("pg,pg->p", S, S), np.nan)

    @cached_property
    def df(self) -> FloatArray:
        """(Q,) Satterthwaite degrees of freedom of the clustered variance, under working independence [Bell].

        P_cd = Σ_t a_t² s_ct s_dt (n_ct δ_cd − n_ct n_dt/n_t) = diag(D) − U Uᵀ; both traces without P.
        """
        a, leverage = self.weights[:, self.strata], self.leverage
        with np.errstate(invalid="ignore", divide="ignore"):
            u2 = (a * leverage_factor(leverage, "cr2")) ** 2 * self.sizes
            D = self.by_cluster(u2)
            u2 = u2 * leverage
            uu = self.by_cluster(u2)
            alone = uu.shape[1] == u2.shape[1]
            norm = (self.by_task(u2) ** 2).sum(axis=1) if alone else self._gram_norm2(np.sqrt(u2))
            return satterthwaite((D - uu).sum(axis=1), (D * D - 2 * D * uu).sum(axis=1) + norm)

    def _gram_norm2(self, U: FloatArray) -> FloatArray:
        """Return (Q,) squared Frobenius norms ‖UUᵀ‖² of sparse G × T matrices U, computed in blocks."""
        from scipy.sparse import csr_array

        ways, shape = [self.clusters, self.strata], [int(self.clusters[-1]) + 1, self.weights.shape[1]]
        if shape[0] > shape[1]:
            ways, shape = ways[::-1], shape[::-1]
        each = (csr_array((u, tuple(ways)), shape=tuple(shape)) for u in U)
        starts = range(0, shape[0], _BLOCK)
        return np.array([sum(float(((u[i : i + _BLOCK] @ u.T).data ** 2).sum()) for i in starts) for u in each])


def cells(design: Design, shown: BoolArray | None = None) -> Cells:
    """Return a design's `Cells`, its questions by cluster × task, for cluster-robust variances. Cached without `shown`.

    Where the tasks are the sample, one cell and cluster for each.

    Args:
        design: the design of all n questions.
        shown: (P, n) the questions that each contrast has; None: all of them.
    """
    return once(design, "cells", lambda: _cells(design, None)) if shown is None else _cells(design, shown)


def _cells(design: Design, shown: BoolArray | None) -> Cells:
    weights, counts = task_weights(design, shown)
    G, T = design.n_clusters, weights.shape[1]
    if design.between_tasks:
        task = np.zeros(G, dtype=np.intp)
        task[design.clusters] = design.strata
        share = weights[:, task]
        ones = np.ones((len(weights), 1))
        return Cells(share * counts[:, task], np.arange(G), np.zeros(G, dtype=np.intp), ones, design.clusters, share)
    each = np.ones((1, len(design.strata))) if shown is None else shown.astype(np.float64)
    if len(design.strata) == G and (design.clusters == np.arange(G)).all():
        return Cells(each, design.clusters, design.strata, weights)
    if T == 1:
        codes, of = np.arange(G), design.clusters
    else:
        codes, of = np.unique(design.clusters * T + design.strata, return_inverse=True)
    cluster, stratum = np.divmod(codes, T)
    return Cells(sum_by(of, each, len(codes)), cluster, stratum, weights, of)


def task_weights(design: Design, shown: BoolArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Return (Q, T) the weight in the mean of one question of each task, and (Q, T) the tasks' question counts.

    NaN where a task with a share of its own has no question.
    """
    if shown is not None:
        return _task_weights(design, shown)
    return once(design, "task_weights", lambda: _task_weights(design, None))


def _task_weights(design: Design, shown: BoolArray | None) -> tuple[FloatArray, FloatArray]:
    T = max(int(design.strata.max(initial=0)) + 1, 0 if design.shares is None else len(design.shares))
    each = np.ones((1, len(design.strata))) if shown is None else shown
    counts = sum_by(design.strata, each, T)
    shares = design.shares_of(counts)
    if shares is not None:
        each_share = shares / np.maximum(counts, 1)
        return np.where((counts > 0) | (shares == 0), each_share, np.nan), counts
    if shown is not None:
        return np.broadcast_to(1 / np.maximum(counts.sum(axis=1, keepdims=True), 1), counts.shape), counts
    weights = np.zeros((1, T))
    weights[0, design.strata] = design.weights
    return weights, counts


def satterthwaite(trace: FloatArray | float, trace2: FloatArray | float) -> FloatArray:
    """Return Satterthwaite's df trace²/trace2, elementwise, rounded if within rounding error of an integer."""
    with np.errstate(invalid="ignore", divide="ignore"):
        df = np.asarray(trace**2 / trace2)
        whole = np.rint(df)
        return np.where(np.abs(df - whole) < SLACK * df, whole, df)


def crossed_variance(e: FloatArray, design: Design, estimator: Estimator = "cr2") -> Variance | None:
    """Return variance and Satterthwaite's df with crossed clusters: V_A + V_B − V_AB, at least either. None: too few.

    None where either way has a task with fewer than two clusters.

    The clusters are a sample either way: of templates and of languages, for example. V = V_A + V_B − V_AB
    [Cameron2011], each way as in `clustered_variance`. With CR0 and CR1 V_AB is the same for the clusters A ∩ B, which
    is what other programs print; its expectation holds a part of the effects of A and B, so that V is too small where a
    way has few clusters. With CR2 and CR3 it comes from what is left after both effects, (MS_A + MS_B − MS_AB)/n for
    balanced data [Searle]. V is never below V_A and V_B: by simulation that keeps 94–97% (92–94% with skewed effects,
    up to 99% without any), where V alone falls to 92% if there is no effect of either. Degrees of freedom:
    Satterthwaite over the three, but no fewer than those of the way that has fewer. Where every cluster of one way lies
    in one cluster of the other, the other way is all.

    Args:
        e: (n,) residuals d_i − (mean of its task).
        design: weights, tasks and `crossed`.
        estimator: of each variance.
    """
    assert design.crossed is not None
    cells, cell = np.unique(np.stack(design.crossed), axis=1, return_inverse=True)
    n_cells, cell = cells.shape[1], cell.reshape(-1)
    ways = [_one_way(e, design, codes, estimator) for codes in design.crossed]
    first, second = ways
    if first is None or second is None:
        return None
    sizes = [int(codes.max()) + 1 for codes in design.crossed]
    if n_cells in sizes:  # nested
        return ways[1 - sizes.index(n_cells)]
    both = _interaction(e, design, cell) if ESTIMATORS[estimator].by_effects else None
    if both is None:
        both = _one_way(e, design, cell, estimator)
    if both is None:
        return None
    three = (first, second, both)
    spread = sum(term.value**2 / term.df for term in three)
    V = max(first.value + second.value - both.value, first.value, second.value)
    fewest = min(first.df, second.df)
    return Variance(V, max(V**2 / spread, fewest) if spread > 0 else fewest)


def _one_way(e: FloatArray, design: Design, codes: IntArray, estimator: Estimator) -> Variance | None:
    return clustered_variance(
        e, replace(design, clusters=codes, n_clusters=int(codes.max()) + 1, crossed=None), estimator
    )


def _interaction(e: FloatArray, design: Design, cell: IntArray) -> Variance | None:
    """Return variance and df from the intersections A ∩ B of two crossed clusterings. None if no residual is left.

    It is scaled to be unbiased for independent questions of equal variance. The way with more clusters is eliminated
    from the normal equations first, so that the system is no larger than the other way. None without any residual.
    """
    from scipy.sparse import csr_array  # most commands need nothing of scipy but its special functions

    assert design.crossed is not None
    a = design.weights
    large, small = sorted(design.crossed, key=lambda codes: -int(codes.max()))
    task = np.unique(design.strata, return_inverse=True)[1]
    n, most, fewer = len(e), int(large.max()) + 1, int(small.max()) + 1
    p, n_cells = fewer + int(task.max()) + 1, int(cell.max()) + 1
    rows = np.concatenate([np.arange(n)] * 2)
    Z = csr_array((np.ones(2 * n), (rows, np.concatenate([small, fewer + task]))), shape=(n, p))
    first = csr_array((np.ones(n), (np.arange(n), large)), shape=(n, most))
    size = np.bincount(large).astype(np.float64)
    C = (first.T @ Z).toarray() / size[:, None]  # means of Z over the clusters of the large way
    S = (Z.T @ Z).toarray() - (C.T * size) @ C
    values, vectors = np.linalg.eigh(S)
    kept = values > SLACK * max(1.0, float(values[-1]))
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    mean_e = np.bincount(large, weights=e) / size
    r = (e - mean_e[large]) - (
        (Z @ (coefficients := inverse @ (Z.T @ (e - mean_e[large])))) - (C @ coefficients)[large]
    )
    # Σ_c u_cᵀ(I − H)u_c, where u_c is a on the questions of cell c and H projects on all the effects
    total = np.bincount(cell, weights=a)
    of_large = np.zeros(n_cells, dtype=np.intp)
    of_large[cell] = large
    left = (csr_array((a, (cell, np.arange(n))), shape=(n_cells, n)) @ Z).toarray() - total[:, None] * C[of_large]
    free = float(a @ a - (total**2 / size[of_large]).sum() - np.einsum("cp,cp->", left @ inverse, left))
    df = n_cells - most - int(kept.sum())
    if df < 1 or free <= SLACK * float(a @ a):
        return None
    scores = np.bincount(cell, weights=a * r)
    return Variance(float(a @ a) * float(scores @ scores) / free, float(df))
