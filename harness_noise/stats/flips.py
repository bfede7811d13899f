"""Few flips: the far limit of a difference where few questions, or clusters, differ at all.

Three wins of 500 and no loss: mean and variance come from the same three questions, so a symmetric
interval is too short on the side away from 0. There the limit is also that of the sample with two
pseudo-clusters added, one as far in A's favour as any cluster is and one as far in B's: what Agresti &
Caffo (2000) and Bonett & Price (2012) do for 0/1 scores, for scores of any kind, clusters and groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray
from .cluster_variance import Cells, cells, cells_variance, satterthwaite
from .contrast import Design

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


def effective_flips(sums: FloatArray) -> FloatArray:
    """(…,) n_f = (Σ S_c²)²/Σ S_c⁴ of (…, G) cluster sums: m equal ones among zeros give m; NaN if all are 0."""
    top = np.abs(sums).max(axis=-1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = (sums / top) ** 2
        found: FloatArray = squares.sum(axis=-1) ** 2 / (squares**2).sum(axis=-1)
    return found


def are_few(n_f: FloatArray, G: FloatArray | float) -> BoolArray:
    """Whether so few flips call for the far limit; a count on the boundary is not few, however it was rounded."""
    few: BoolArray = n_f < np.minimum(MOST, SHARE * G) * (1 - 1e-9)
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
    if not plan.between_tasks:
        found = cells(d, plan)
    else:  # one stratum, in which a task has the size that is its weight
        share: FloatArray = np.bincount(plan.clusters, weights=plan.weights).astype(np.float64)
        used = share > 0
        G = int(used.sum())
        found = Cells(sums[used], share[used], np.arange(G), np.zeros(G, dtype=np.intp), np.ones(1), G)
    far = Extension(found, estimator)(found.sums[None, :])
    return None if np.isnan(far.mean[0]) else far


class Extension:
    """Two pseudo-clusters added to a design that many differences share.

    Each has the mean weight of a cluster, 1/G, spread over the tasks as the questions are, and the sum
    +max|S_c| or −max|S_c|, the same mean score in every task.
    """

    def __init__(self, found: Cells, estimator: Estimator) -> None:
        self.cells, self.estimator = found, estimator
        G, T = found.n_clusters, len(found.weights)
        n_t = np.bincount(found.strata, weights=found.sizes, minlength=T)
        tasks = np.flatnonzero(n_t > 0)
        grown = 1 + 2 / G
        self.n_t, self.tasks = np.maximum(n_t, 1e-300), tasks
        strata = np.concatenate([found.strata, tasks, tasks])
        self.sizes = np.concatenate([found.sizes, n_t[tasks] / G, n_t[tasks] / G])
        clusters = np.concatenate([found.clusters, np.full(len(tasks), G), np.full(len(tasks), G + 1)])
        self.whole = Cells(self.sizes, self.sizes, clusters, strata, found.weights / grown, G + 2)
        self.grown = grown
        nothing = cells_variance(replace(self.whole, sums=np.zeros(len(strata))), estimator)
        assert nothing is not None
        self.df = nothing.df
        scale = 1 / np.sqrt(1 - self.sizes / (n_t * grown)[strata])
        scale = {"cr2": scale, "cr3": scale * scale}.get(estimator, np.ones_like(scale))
        self.factors = self.whole.weights[strata] * scale
        self.small_sample = (G + 2) / (G + 1) if estimator == "cr1" else 1.0

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
        variance = (left**2).sum(axis=1) * self.small_sample
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
    top = np.abs(sums).max(axis=1, initial=0.0)
    few = are_few(effective_flips(sums), G)
    with np.errstate(invalid="ignore", divide="ignore"):
        grown = n * (1 + 2 / G)
        mean = sums.sum(axis=1) / grown
        power = {"cr2": 1, "cr3": 2}.get(estimator, 0)
        kept, pseudo = 1 - sizes / grown[:, None], 1 - 1 / (G + 2)
        e = sums - sizes * mean[:, None]
        left = (e * e / kept**power).sum(axis=1)
        left = left + 2 * (top**2 + (n / G * mean) ** 2) / pseudo**power
        variance = left / grown**2 * ((G + 2) / (G + 1) if estimator == "cr1" else 1.0)
        # as in `cells_variance`, with the two pseudo-clusters beside the sums over the others
        D, D_p = sizes / kept / grown[:, None] ** 2, n / G / pseudo / grown**2
        uu, uu_p = D * sizes / grown[:, None], D_p * (n / G) / grown
        taken = uu.sum(axis=1) + 2 * uu_p
        trace = D.sum(axis=1) + 2 * D_p - taken
        trace2 = (D * D - 2 * D * uu).sum(axis=1) + 2 * (D_p**2 - 2 * D_p * uu_p) + taken**2
    df = satterthwaite(trace, trace2)
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
    variance = left / {"cr0": grown**2, "cr3": (grown - 1) ** 2}.get(estimator, grown * (grown - 1))
    return Far(*(np.where(few, column, np.nan) for column in (mean, variance, grown - 1)))


def extended_flips(flips: FloatArray, total: FloatArray, n: FloatArray, estimator: Estimator = "cr2") -> Far:
    """The same of differences that are −1, 0 or 1: `flips` of them are not 0, and wins less losses are `total`."""
    return extended_questions(flips, flips, np.ones_like(flips), total, n, estimator)
