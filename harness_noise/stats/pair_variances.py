"""The variances of all pairs, from matrix products; and from their questions where products cancel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .cluster_variance import cells, each_its_clusters, question_factor, task_df
from .contrast import design
from .pair_flips import chunks
from .pair_table import Table
from .tolerances import ROUNDING, SLACK

CANCELLED = 1e-4
"""A difference of sums of squares below this share of the sums is computed again from the questions."""
NOTHING = 1e-20
"""As is one below this number."""


class Products:
    """Sums over the questions that A and B share, of every pair (a[i], b[i]) of a table's models.

    S(F) are those of a table F, (N, M) and 0 where a model has no score: for A's and for B's column of F.
    """

    def __init__(self, table: Table, a: IntArray, b: IntArray) -> None:
        self.table, self.a, self.b = table, a, b
        self.W = ~np.isnan(table.mean)
        self.whole = bool(self.W.all())
        self.x = table.mean if self.whole else np.where(self.W, table.mean, 0.0)
        self.shown = None if self.whole else self.W.astype(np.float64)
        self.n = np.full(len(a), float(len(self.W))) if self.shown is None else (self.shown.T @ self.shown)[a, b]
        self.sum_a, self.sum_b = self(self.x)
        # Residuals from each model's own mean, which keep the products small.
        self.centre = self.x.sum(axis=0) / np.maximum(self.W.sum(axis=0), 1)
        self.e = self.x - self.centre if self.whole else np.where(self.W, self.x - self.centre, 0.0)
        gram = self.e.T @ self.e
        self.cross = self.product = gram[a, b]
        if self.whole:
            own = gram.diagonal()
            self.ss_a, self.ss_b = own[a], own[b]
        else:
            (q_a, q_b), (r_a, r_b) = self(self.e * self.e), self(self.e)
            self.ss_a, self.ss_b = q_a - r_a**2 / self.n, q_b - r_b**2 / self.n
            self.product = self.cross - r_a * r_b / self.n
        self.ss_d = self.ss_a + self.ss_b - 2 * self.product

    def __call__(self, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.shown is None:
            total = F.sum(axis=0)
            return total[self.a], total[self.b]
        sums = F.T @ self.shown
        return sums[self.a, self.b], sums[self.b, self.a]

    @cached_property
    def binary(self) -> bool:
        """All means are 0 or 1."""
        return bool(((self.x == 0) | (self.x == 1)).all())

    @cached_property
    def raw(self) -> FloatArray:
        """Σ x_a x_b."""
        c_a, c_b = self.centre[self.a], self.centre[self.b]
        raw: FloatArray = self.cross + c_b * self.sum_a + c_a * self.sum_b - self.n * c_a * c_b
        return np.rint(raw) if self.binary else raw

    def correlation(self) -> FloatArray:
        """Of the two models' means; NaN where one of them is constant, whose sum of squares becomes 0 here."""
        found: FloatArray = self.product / np.sqrt(self.ss_a * self.ss_b)
        flat_a, flat_b = (self._constant(*side) for side in ((self.a, self.ss_a), (self.b, self.ss_b)))
        found[flat_a | flat_b | (self.n < 2)] = np.nan
        self.ss_a[flat_a] = 0.0
        self.ss_b[flat_b] = 0.0
        return found

    def _constant(self, side: IntArray, ss: FloatArray) -> BoolArray:
        """In which pairs the model `side` has one and the same mean on every shared question."""
        x, W = self.x, self.W
        low = (x if self.whole else np.where(W, x, np.inf)).min(axis=0, initial=np.inf)
        high = (x if self.whole else np.where(W, x, -np.inf)).max(axis=0, initial=-np.inf)
        found: BoolArray = (low == high)[side]
        if self.whole:
            return found
        tiny = np.flatnonzero(~found & (ss <= SLACK * np.maximum(1.0, np.abs(high))[side] ** 2))
        for rows in chunks(tiny, len(x)):
            shared = W.T[self.a[rows]] & W.T[self.b[rows]]
            values = x.T[side[rows]]
            found[rows] = np.where(shared, values, np.inf).min(axis=1) >= np.where(shared, values, -np.inf).max(axis=1)
        return found


@dataclass(slots=True, eq=False)
class Variances:
    """(P,) columns; those of the pairs that are looked at again are corrected in place."""

    diff: FloatArray
    variance: FloatArray
    df: FloatArray
    naive: FloatArray
    variance_a: FloatArray
    variance_b: FloatArray
    n_clusters: FloatArray
    signs_a: IntArray
    signs_b: IntArray
    biggest: FloatArray
    """max |d|, of the pairs that were looked at again; else 0."""

    def without_unknown(self, n: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Make NaN of what is not identified and 0 of rounding; returns where each is so."""
        unknown = (n < 2) | (self.n_clusters < 2)
        for column in (self.variance, self.df, self.naive, self.variance_a, self.variance_b):
            column[unknown] = np.nan
        zero = ~unknown & ((ROUNDING * np.maximum(1.0, self.biggest)) ** 2 >= self.variance)
        for column in (self.variance, self.variance_a, self.variance_b):
            column[column <= ROUNDING**2] = 0.0
        self.variance[zero] = 0.0
        return unknown, zero


def by_products(S: Products, estimator: Estimator) -> tuple[Variances, IntArray]:
    """The columns as matrix products give them, and the pairs that have to be looked at again."""
    P, n, table = len(S.a), S.n, S.table
    doubtful = S.ss_d <= CANCELLED * (S.ss_a + S.ss_b) + NOTHING * n
    naive = S.ss_d * question_factor(n, "cr2")
    signs, biggest = np.zeros((2, P), dtype=np.intp), np.zeros(P)
    diff = (S.sum_a - S.sum_b) / n
    if table.clusters is None:
        factor = question_factor(n, estimator)
        own = (S.ss_d * factor, n - 1.0, naive, S.ss_a * factor, S.ss_b * factor, n.copy())
        columns = Variances(diff, *own, signs[0], signs[1], biggest)
    else:
        V, df, V_a, V_b, G = np.full((5, P), np.nan)
        columns = Variances(diff, V, df, naive, V_a, V_b, G, signs[0], signs[1], biggest)
        doubtful |= _by_pattern(S, table.clusters, columns, estimator)
    return columns, np.flatnonzero(doubtful & (n > 0))


def _by_pattern(S: Products, clusters: IntArray, out: Variances, estimator: Estimator) -> BoolArray:
    """Clustered variances of pairs whose models lack the same questions; returns which pairs are still open."""
    open_ = np.ones(len(S.a), dtype=np.bool_)
    _, pattern = np.unique(np.packbits(S.W, axis=0), axis=1, return_inverse=True)
    pattern = pattern.reshape(-1)
    for code in np.unique(pattern):
        models = np.flatnonzero(pattern == code)
        rows = np.flatnonzero(S.W[:, models[0]])
        pairs = np.flatnonzero((pattern[S.a] == code) & (pattern[S.b] == code))
        if len(pairs) == 0 or len(rows) < 2:
            continue
        found = cells(design(len(rows), clusters[rows]))
        out.n_clusters[pairs] = found.n_clusters
        if not found.identified:
            open_[pairs] = False
            continue
        scores = found.scores(found.sums(S.e[np.ix_(rows, models)]), estimator)
        at = np.full(S.W.shape[1], -1)
        at[models] = np.arange(len(models))
        V, own_a, own_b = of_pairs(scores, at[S.a[pairs]], at[S.b[pairs]])
        out.variance[pairs], out.variance_a[pairs], out.variance_b[pairs] = V, own_a, own_b
        out.df[pairs] = found.df()
        open_[pairs] = V - CANCELLED * (own_a + own_b) <= NOTHING
    return open_


def of_pairs(S: FloatArray, a: IntArray, b: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Variances of the differences a − b, of a and of b, from (G, M) cluster scores."""
    gram = S.T @ S
    own = gram.diagonal()
    return own[a] + own[b] - 2 * gram[a, b], own[a], own[b]


def look_again(S: Products, rows: IntArray, out: Variances, estimator: Estimator) -> None:
    """Means and variances of some pairs from their questions, written in place."""
    clusters, x = S.table.clusters, S.x
    order = np.arange(len(x)) if clusters is None else np.argsort(clusters, kind="stable")
    starts = None if clusters is None else np.flatnonzero(np.diff(clusters[order], prepend=-1))
    xt, wt = np.ascontiguousarray(x[order].T), np.ascontiguousarray(S.W[order].T)
    for part in chunks(rows, len(x)):
        shared = wt[S.a[part]] & wt[S.b[part]]
        n = shared.sum(axis=1).astype(np.float64)
        values_a, values_b = xt[S.a[part]] * shared, xt[S.b[part]] * shared
        d = values_a - values_b
        out.biggest[part] = np.maximum(d.max(axis=1), -d.min(axis=1))
        e = _residual(d, shared, n)
        out.diff[part] = d.sum(axis=1) / n
        out.naive[part] = (e**2).sum(axis=1) * question_factor(n, "cr2")
        if starts is None:
            each = [e, _residual(values_a, shared, n), _residual(values_b, shared, n)]
            factor = question_factor(n, estimator)
            found = [(item**2).sum(axis=1) * factor for item in each]
        else:
            sizes, *each, sums = (
                np.add.reduceat(block, starts, axis=1, dtype=np.float64) for block in (shared, e, values_a, values_b, d)
            )
            found = [each_its_clusters(item, sizes, estimator) for item in each]
            out.df[part] = task_df(sizes / n[:, None])
            out.n_clusters[part] = (sizes > 0).sum(axis=1)
            tolerance = ROUNDING * np.maximum(1.0, np.abs(sums).max(axis=1))[:, None]
            out.signs_a[part] = (sums > tolerance).sum(axis=1)
            out.signs_b[part] = (sums < -tolerance).sum(axis=1)
        out.variance[part], out.variance_a[part], out.variance_b[part] = found


def _residual(values: FloatArray, shared: BoolArray, n: FloatArray) -> FloatArray:
    """(P, N) deviations of `values`, 0 where not shared, from each pair's mean; rounding error set to 0."""
    e: FloatArray = (values - (values.sum(axis=1) / n)[:, None]) * shared
    top = np.maximum(values.max(axis=1), -values.min(axis=1))
    e[np.abs(e) <= ROUNDING * np.maximum(1.0, top)[:, None]] = 0.0
    return e
