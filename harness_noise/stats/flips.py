"""Few flips: the far limit of a difference where few questions, or clusters, differ at all.

Three wins of 500 and no loss: mean and variance come from the same three questions, so a symmetric
interval is too short on the side away from 0. There the limit is also that of the sample with two
pseudo-clusters added, which are as far from the mean as any cluster is, one on each side of 0: what Agresti &
Caffo (2000) and Bonett & Price (2012) do for 0/1 scores, for scores of any kind, clusters and groups.

Clusters may differ in size, and size must not pass for a flip: 231 of 500 questions in one cluster and a true
difference of .5 make one sum larger than all others together. So the pseudo-sums are deviations from the mean, and
flips are counted among `level_sums`, which are those of clusters of one size.
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


def level_sums(deviations: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """(…, G) cluster sums as they were if all clusters had one size; where they have, the sums themselves.

    The deviations are brought to one variance under working independence, and each cluster gets the same share of the
    mean back: independent questions with a difference of any size have G/3 effective flips, whatever the sizes.

    Args:
        deviations: (…, G) sums less the mean's share, S_c − d̄ n_c.
        mean: (…,) Σ S_c / G, what a cluster of mean size has.
        spread: (…, G) proportional to the variance of each deviation, n_c (1 − n_c/n); 0 where there is no cluster.
    """
    here = spread > 0
    G = np.maximum(here.sum(axis=-1, keepdims=True), 1)
    scale = np.sqrt(spread.sum(axis=-1, keepdims=True) / G / np.where(here, spread, np.inf))
    out: FloatArray = deviations * scale + here * mean[..., None]
    return out


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
    found = cells(plan)
    far = Extension(found, estimator)(found.sums(d)[None, :])
    return None if np.isnan(far.mean[0]) else far


class Extension:
    """Two pseudo-clusters added to a design that many differences share.

    Each has the mean weight of a cluster, 1/G, spread over the tasks as the questions are, and the sum
    ±max|S_c − d̄ a_c|, with a_c the weight of cluster c in the mean: the same mean score in every task.
    """

    def __init__(self, found: Cells, estimator: Estimator) -> None:
        self.cells, self.estimator = found, estimator
        a = found.weights[found.strata]
        self.shares, squares = (_by_cluster((x * found.sizes)[None, :], found)[0] for x in (a, a * a))
        self.spread = squares * (1 - self.shares)

    def level_sums(self, sums: FloatArray) -> FloatArray:
        """(P, G) what flips are counted by, from (P, C) sums of the cells; linear in them."""
        return level_sums(*self._deviations(sums), self.spread)

    def _deviations(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(P, G) deviations of the clusters' weighted sums from the mean, and (P,) that mean over G."""
        S = _by_cluster(sums * self.cells.weights[self.cells.strata], self.cells)
        mean = S.sum(axis=1)
        return S - mean[:, None] * self.shares, mean / self.cells.n_clusters

    def __call__(self, sums: FloatArray) -> Far:
        """Far of P differences from their (P, C) cell sums; NaN where the flips are not few."""
        found = self.cells
        deviations, mean = self._deviations(sums)
        few = are_few(effective_flips(level_sums(deviations, mean, self.spread)), found.n_clusters)
        if not few.any():
            return Far.none(len(few))
        tasks = np.flatnonzero(found.task_sizes > 0)
        n_t = np.maximum(found.task_sizes, SMALLEST)
        grown = 1 + 2 / found.n_clusters
        whole = self._whole(tasks, grown)
        mean_t = _by_stratum(sums, found, len(n_t)) / (n_t * grown)
        pseudo = np.abs(deviations).max(axis=1, initial=0.0)[:, None] * n_t[tasks]
        e = np.concatenate([sums, pseudo, -pseudo], axis=1) - whole.sizes * mean_t[:, whole.strata]
        left = _by_cluster(e * whole.factors(self.estimator), whole)
        mean = mean_t @ (whole.weights * n_t * grown)
        df = np.full(len(mean), whole.df())
        return Far(*(np.where(few, column, np.nan) for column in (mean, (left**2).sum(axis=1), df)))

    def _whole(self, tasks: IntArray, grown: float) -> Cells:
        """The design with the two pseudo-clusters, which makes every task `grown` times as large."""
        found, G = self.cells, self.cells.n_clusters
        each = found.task_sizes[tasks] / G
        return replace(
            found,
            sizes=np.concatenate([found.sizes, each, each]),
            strata=np.concatenate([found.strata, tasks, tasks]),
            clusters=np.concatenate([found.clusters, np.full(len(tasks), G), np.full(len(tasks), G + 1)]),
            weights=found.weights / grown,
            n_clusters=G + 2,
        )


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
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.sum(axis=1) / n
        deviations = sums - mean[:, None] * sizes
        few = are_few(effective_flips(level_sums(deviations, mean * n / G, sizes * (1 - sizes / n[:, None]))), G)
        top = np.abs(deviations).max(axis=1, initial=0.0)[:, None]
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
        top: max |d − d̄|.
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
    """`extended_task` of differences that are −1, 0 or 1: `flips` are not 0, and wins less losses are `total`."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / n
    counts = (flips + total) / 2, (flips - total) / 2, n - flips
    top = np.maximum.reduce([(m > SLACK) * np.abs(value - mean) for m, value in zip(counts, (1, -1, 0), strict=True)])
    return extended_questions(flips, flips, top, total, n, estimator)
