"""Few flips: the far limit of a difference where few questions, or clusters, differ at all.

Three wins of 500 and no loss: mean and variance come from the same three questions, so a symmetric
interval is too short on the side away from 0. There the limit is also that of the sample with two
pseudo-clusters added, one as far in A's favour as any cluster is and one as far in B's: what Agresti &
Caffo (2000) and Bonett & Price (2012) do for 0/1 scores, for scores of any kind, clusters and groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .cluster_variance import Cells, cells, each_its_clusters, question_factor, task_df
from .contrast import Design
from .tolerances import SLACK, SMALLEST

MOST = 60.0
"""Effective flips from which on the t interval is kept."""
SHARE = 0.25
"""The same as a share of the clusters: normal differences have a third of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Far:
    """Mean, variance and degrees of freedom of the extended samples; NaN where t's limit stands alone."""

    mean: FloatArray
    variance: FloatArray
    df: FloatArray

    @classmethod
    def none(cls, P: int) -> Far:
        """Of P differences, to be filled in."""
        return cls(*np.full((3, P), np.nan))

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.mean, self.variance, self.df

    def take(self, rows: IntArray | BoolArray) -> Far:
        return Far(self.mean[rows], self.variance[rows], self.df[rows])

    def put(self, at: IntArray | BoolArray, found: Far) -> None:
        """Fill in those of some differences."""
        for mine, column in zip(self.columns(), found.columns(), strict=True):
            mine[at] = column


def effective_flips(sums: FloatArray) -> FloatArray:
    """(…,) n_f = (Σ S_c²)²/Σ S_c⁴ of (…, G) cluster sums: m equal ones among zeros give m; NaN if all are 0."""
    top = np.abs(sums).max(axis=-1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = (sums / top) ** 2
        found: FloatArray = squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1)
    return found


def are_few(n_f: FloatArray, G: FloatArray | float) -> BoolArray:
    """Whether so few flips call for the far limit; a count on the boundary is not few, however it was rounded."""
    few: BoolArray = n_f < np.minimum(MOST, SHARE * G) * (1 - SLACK)
    return few


def extended(d: FloatArray, plan: Design, estimator: Estimator = "cr2") -> Far | None:
    """The extended sample of one difference, (1,) each; None where its flips are not few.

    Args:
        d: (n,) differences.
        plan: their weights, tasks and clusters; where the tasks are the sample they are the clusters.
        estimator: of the variance.
    """
    sums = np.bincount(plan.clusters, weights=plan.weights * d, minlength=plan.n_clusters).astype(np.float64)
    if not are_few(effective_flips(sums), plan.n_clusters):
        return None
    found = cells(plan)
    far = Extension(found, estimator)(found.sums(d)[None, :])
    return None if np.isnan(far.mean[0]) else far


class Extension:
    """Two pseudo-clusters added to a design that many differences share.

    Each has the mean weight of a cluster, 1/G, spread over the tasks as the questions are, and the sum
    +max|S_c| or −max|S_c|, the same mean score in every task.
    """

    def __init__(self, found: Cells, estimator: Estimator) -> None:
        self.cells = found
        G, n_t = found.n_clusters, found.task_sizes
        tasks = np.flatnonzero(n_t > 0)
        grown = 1 + 2 / G
        self.n_t, self.tasks = np.maximum(n_t, SMALLEST), tasks
        self.grown = grown
        self.sizes = np.concatenate([found.sizes, n_t[tasks] / G, n_t[tasks] / G])
        self.whole = replace(
            found,
            sizes=self.sizes,
            strata=np.concatenate([found.strata, tasks, tasks]),
            clusters=np.concatenate([found.clusters, np.full(len(tasks), G), np.full(len(tasks), G + 1)]),
            weights=found.weights / grown,
            n_clusters=G + 2,
        )
        self.factors, self.df = self.whole.factors(estimator), self.whole.df()

    def cluster_sums(self, sums: FloatArray) -> FloatArray:
        """(P, G) weighted sums of the clusters from (P, C) sums of the cells."""
        return _by_cluster(sums * self.cells.weights[self.cells.strata], self.cells)

    def __call__(self, sums: FloatArray) -> Far:
        """Far of P differences from their (P, C) cell sums; NaN where the flips are not few."""
        found, whole, G = self.cells, self.whole, self.cells.n_clusters
        S = self.cluster_sums(sums)
        few = are_few(effective_flips(S), G)
        top = np.abs(S).max(axis=1, initial=0.0)
        mean_t = _by_stratum(sums, found, len(self.n_t)) / (self.n_t * self.grown)
        pseudo = top[:, None] * self.n_t[self.tasks]
        e = np.concatenate([sums, pseudo, -pseudo], axis=1) - self.sizes * mean_t[:, whole.strata]
        left = _by_cluster(e * self.factors, whole)
        mean = mean_t @ (whole.weights * self.n_t * self.grown)
        variance = (left**2).sum(axis=1)
        return Far(*(np.where(few, column, np.nan) for column in (mean, variance, np.full(len(mean), self.df))))


def _by_cluster(values: FloatArray, found: Cells) -> FloatArray:
    """(P, G) sums over the cells of each cluster, whose codes ascend."""
    if len(found.clusters) == found.n_clusters:
        return values
    starts = np.flatnonzero(np.diff(found.clusters, prepend=-1))
    out: FloatArray = np.add.reduceat(values, starts, axis=1)
    return out


def _by_stratum(values: FloatArray, found: Cells, T: int) -> FloatArray:
    """(P, T) sums over the cells of each task."""
    hot = np.zeros((len(found.strata), T))
    hot[np.arange(len(found.strata)), found.strata] = 1.0
    out: FloatArray = values @ hot
    return out


def extended_task(sums: FloatArray, sizes: FloatArray, estimator: Estimator = "cr2") -> Far:
    """`Extension` for one task, where every difference may have its own clusters.

    Args:
        sums: (P, G) sums of the differences by cluster.
        sizes: (P, G), or (1, G), questions in each; 0 where a pair has none of the cluster.
        estimator: of the variance.
    """
    n = sizes.sum(axis=1)
    G = (sizes > 0).sum(axis=1).astype(np.float64)
    top = np.abs(sums).max(axis=1, initial=0.0)[:, None]
    few = are_few(effective_flips(sums), G)
    with np.errstate(invalid="ignore", divide="ignore"):
        pseudo = np.broadcast_to((n / G)[:, None], (len(n), 2))
        sizes = np.concatenate([sizes, pseudo], axis=1)
        grown = sizes.sum(axis=1)
        mean = sums.sum(axis=1) / grown
        variance = each_its_clusters(np.concatenate([sums, top, -top], axis=1), sizes, estimator)
        df = task_df(sizes / grown[:, None])
    return Far(*(np.where(few, column, np.nan) for column in np.broadcast_arrays(mean, variance, df)))


def extended_questions(
    n_f: FloatArray,
    squares: FloatArray,
    top: FloatArray,
    total: FloatArray,
    n: FloatArray,
    estimator: Estimator = "cr2",
) -> Far:
    """`extended_task` of independent questions, from sums over them.

    Args:
        n_f: (P,) effective flips.
        squares: Σ d².
        top: max |d|.
        total: Σ d.
        n: questions.
        estimator: of the variance.
    """
    few = (squares > 0) & are_few(n_f, n)
    grown = n + 2
    mean = total / grown
    left = squares + 2 * top**2 - grown * mean**2
    variance = left * question_factor(grown, estimator)
    return Far(*(np.where(few, column, np.nan) for column in (mean, variance, grown - 1)))


def extended_flips(flips: FloatArray, total: FloatArray, n: FloatArray, estimator: Estimator = "cr2") -> Far:
    """The same of differences that are −1, 0 or 1: `flips` of them are not 0, and wins less losses are `total`."""
    return extended_questions(flips, flips, np.ones_like(flips), total, n, estimator)
