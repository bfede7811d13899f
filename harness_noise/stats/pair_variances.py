"""The clustered variances of all pairs, from matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .cluster_variance import clustered_variance
from .contrast import design
from .pair_flips import chunks
from .pair_table import Table
from .ranks import one_hot

_CANCELLED = 1e-4
"""A difference of sums of squares below this share of the sums is computed again from the questions."""


class _Sums:
    """Σ_i F_ia over the questions that A and B share, for A's and for B's column of F."""

    def __init__(self, W: BoolArray, whole: bool, a: IntArray, b: IntArray) -> None:
        self.whole, self.a, self.b = whole, a, b
        self.W = W.astype(np.float64) if not whole else None
        if self.W is None:
            self.n = np.full(len(a), float(len(W)))
        else:
            self.n = (self.W.T @ self.W)[a, b]

    def __call__(self, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F is (N, M), 0 where the model has no score."""
        if self.W is None:
            total = F.sum(axis=0)
            return total[self.a], total[self.b]
        sums = F.T @ self.W
        return sums[self.a, self.b], sums[self.b, self.a]


@dataclass(slots=True, eq=False)
class _Variances:
    """(P,) columns that `_direct` corrects in place."""

    variance: FloatArray
    df: FloatArray
    naive: FloatArray
    variance_a: FloatArray
    variance_b: FloatArray
    n_clusters: FloatArray


def _constant(
    x: FloatArray, W: BoolArray, whole: bool, a: IntArray, b: IntArray, side: IntArray, ss: FloatArray
) -> BoolArray:
    """In which pairs the model `side` has one and the same mean on every shared question."""
    low = (x if whole else np.where(W, x, np.inf)).min(axis=0, initial=np.inf)
    high = (x if whole else np.where(W, x, -np.inf)).max(axis=0, initial=-np.inf)
    found: BoolArray = (low == high)[side]
    if whole:
        return found
    tiny = np.flatnonzero(~found & (ss <= 1e-9 * np.maximum(1.0, np.abs(high))[side] ** 2))
    for rows in chunks(tiny, len(x)):
        shared = W.T[a[rows]] & W.T[b[rows]]
        values = x.T[side[rows]]
        found[rows] = np.where(shared, values, np.inf).min(axis=1) >= np.where(shared, values, -np.inf).max(axis=1)
    return found


def _clustered(
    clusters: IntArray, e: FloatArray, W: BoolArray, a: IntArray, b: IntArray, naive: FloatArray, estimator: Estimator
) -> tuple[_Variances, BoolArray]:
    """Clustered variances of pairs whose models lack the same questions, and which pairs are still open."""
    P = len(a)
    out = _Variances(np.full(P, np.nan), np.full(P, np.nan), naive, *np.full((3, P), np.nan))
    open_ = np.ones(P, dtype=np.bool_)
    _, pattern = np.unique(np.packbits(W, axis=0), axis=1, return_inverse=True)
    pattern = pattern.reshape(-1)
    for code in np.unique(pattern):
        models = np.flatnonzero(pattern == code)
        rows = np.flatnonzero(W[:, models[0]])
        pairs = np.flatnonzero((pattern[a] == code) & (pattern[b] == code))
        if len(pairs) == 0 or len(rows) < 2:
            continue
        plan = design(len(rows), clusters[rows])
        found = clustered_variance(np.zeros(len(rows)), plan, estimator)
        out.n_clusters[pairs] = plan.n_clusters
        if found is None:
            open_[pairs] = False
            continue
        n, G = len(rows), plan.n_clusters
        sums = one_hot(plan.clusters, G).T @ e[np.ix_(rows, models)]
        sums *= _leverage(np.bincount(plan.clusters).astype(np.float64), n, estimator)[:, None]
        small_sample = G / (G - 1) if estimator == "cr1" else 1.0
        gram = sums.T @ sums * (small_sample / n**2)
        at = np.full(W.shape[1], -1)
        at[models] = np.arange(len(models))
        i, j = at[a[pairs]], at[b[pairs]]
        own = gram.diagonal()
        out.variance_a[pairs], out.variance_b[pairs] = own[i], own[j]
        out.variance[pairs] = own[i] + own[j] - 2 * gram[i, j]
        out.df[pairs] = found.df
        open_[pairs] = out.variance[pairs] <= _CANCELLED * (own[i] + own[j]) + 1e-20
    return out, open_


def _leverage(sizes: FloatArray, n: FloatArray | int, estimator: Estimator) -> FloatArray:
    """The factor (1 − n_c/n)^(−1/2) of CR2, its square of CR3, 1 otherwise."""
    if estimator not in ("cr2", "cr3"):
        return np.ones_like(sizes)
    left = 1 - sizes / n
    return 1 / (np.sqrt(left) if estimator == "cr2" else left)


def _small_sample(n: FloatArray, estimator: Estimator) -> FloatArray:
    """What n V is of the mean square Σ e²/n where every question is its own cluster: CR1 and CR2 are one."""
    return {"cr0": 1 / n, "cr3": n / (n - 1.0) ** 2}.get(estimator, 1 / (n - 1.0))


def _direct(
    table: Table, x: FloatArray, W: BoolArray, a: IntArray, b: IntArray, rows: IntArray, out: _Variances,
    diff: FloatArray, signs_a: IntArray, signs_b: IntArray, estimator: Estimator,
) -> FloatArray:  # fmt: skip
    """Means and variances of some pairs from their questions, written in place; returns max |d| of each."""
    order = np.arange(len(x)) if table.clusters is None else np.argsort(table.clusters, kind="stable")
    xt, wt = np.ascontiguousarray(x[order].T), np.ascontiguousarray(W[order].T)
    starts = None
    if table.clusters is not None:
        starts = np.flatnonzero(np.diff(table.clusters[order], prepend=-1))
    biggest = []
    for part in chunks(rows, len(x)):
        shared = wt[a[part]] & wt[b[part]]
        n = shared.sum(axis=1).astype(np.float64)[:, None]
        values_a, values_b = xt[a[part]] * shared, xt[b[part]] * shared
        d = values_a - values_b
        top = np.maximum(d.max(axis=1), -d.min(axis=1))
        biggest.append(top)
        e = _residual(d, shared, n)
        diff[part] = d.sum(axis=1) / n[:, 0]
        out.naive[part] = (e**2).sum(axis=1) / n[:, 0] / (n[:, 0] - 1)
        if starts is None:
            factor = (_small_sample(n, estimator) / n)[:, 0]
            out.variance[part] = (e**2).sum(axis=1) * factor
            out.variance_a[part] = (_residual(values_a, shared, n) ** 2).sum(axis=1) * factor
            out.variance_b[part] = (_residual(values_b, shared, n) ** 2).sum(axis=1) * factor
            continue
        sizes, sums_a, sums_b, sums, left = (
            np.add.reduceat(block, starts, axis=1, dtype=np.float64) for block in (shared, values_a, values_b, d, e)
        )
        G = (sizes > 0).sum(axis=1).astype(np.float64)
        alone = (G < 2)[:, None]
        factor = (G / (G - 1) if estimator == "cr1" else 1.0) / n[:, 0] ** 2
        scale = _leverage(np.where(alone, 0.0, sizes), n, estimator)
        out.variance[part] = ((scale * left) ** 2).sum(axis=1) * factor
        for column, own in ((out.variance_a, sums_a), (out.variance_b, sums_b)):
            centred = own - sizes * (own.sum(axis=1, keepdims=True) / n)
            column[part] = ((scale * centred) ** 2).sum(axis=1) * factor
        # Satterthwaite: D, the diagonal of P, and u uᵀ, what is taken from it; see `clustered_variance`.
        D = np.where(alone, 0.0, sizes / (n * (n - sizes)))
        uu = D * sizes / n
        trace = (D - uu).sum(axis=1)
        df = trace**2 / ((D * D - 2 * D * uu).sum(axis=1) + uu.sum(axis=1) ** 2)
        out.df[part] = np.where(np.abs(df - np.rint(df)) < 1e-9 * df, np.rint(df), df)
        out.n_clusters[part] = G
        tolerance = 1e-12 * np.maximum(1.0, np.abs(sums).max(axis=1))[:, None]
        signs_a[part] = (sums > tolerance).sum(axis=1)
        signs_b[part] = (sums < -tolerance).sum(axis=1)
    return np.concatenate(biggest)


def _residual(values: FloatArray, shared: BoolArray, n: FloatArray) -> FloatArray:
    """(P, N) deviations of `values`, 0 where not shared, from each pair's mean; rounding error set to 0."""
    e: FloatArray = (values - values.sum(axis=1, keepdims=True) / n) * shared
    top = np.maximum(values.max(axis=1), -values.min(axis=1))
    e[np.abs(e) <= 1e-12 * np.maximum(1.0, top)[:, None]] = 0.0
    return e
