"""Which of many pairs differ on few questions, and their extended samples; see `flips`.

n_f is a ratio of sums over questions (clusters, by their `level_sums`) of (x_a − x_b)² and (x_a − x_b)⁴, so matrix
products of powers give it for all pairs. Only pairs that are few by them, or nearly, are looked at one by one.
"""

from __future__ import annotations

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .flips import MOST, SHARE, Extension, Far, extended_questions, extended_task, level_sums
from .ranks import one_hot

CHUNK = 400_000
"""Entries of a pairs × questions block that is worked on at once (3 MB, so that it stays in a cache)."""
_NEAR = 1.001
_CANCELLED = 1e-6


def of_task(
    x: FloatArray, W: BoolArray, clusters: IntArray | None, a: IntArray, b: IntArray, estimator: Estimator = "cr2"
) -> Far:
    """The extended samples of the pairs (a[i], b[i]) on one task; NaN where flips are not few.

    Args:
        x: (N, M) question means, 0 where a model has none.
        W: (N, M) where it has one.
        clusters: (N,) codes; None: independent questions.
        a: (P,) columns of the first models.
        b: (P,) columns of the second.
        estimator: of the variance.
    """
    P, whole = len(a), bool(W.all())
    maybe = np.ones(P, dtype=np.bool_)
    if clusters is None:
        maybe = _maybe_few(x, None if whole else W, a, b)
    else:
        _, pattern = np.unique(np.packbits(W, axis=0), axis=1, return_inverse=True)
        pattern = pattern.reshape(-1)
        hot = one_hot(clusters, int(clusters.max(initial=-1)) + 1)
        for code in np.unique(pattern):  # pairs that lack the same questions have the same clusters
            pairs = np.flatnonzero((pattern[a] == code) & (pattern[b] == code))
            rows = np.flatnonzero(W[:, pattern == code].any(axis=1))
            if len(pairs) and len(rows):
                used = hot[rows]
                level = _level(np.asarray(used.T @ x[rows]), np.asarray(used.sum(axis=0), dtype=np.float64).reshape(-1))
                maybe[pairs] = _maybe_few(level, None, a[pairs], b[pairs])
    out = Far.none(P)
    order = np.arange(len(x)) if clusters is None else np.argsort(clusters, kind="stable")
    starts = None if clusters is None else np.flatnonzero(np.diff(clusters[order], prepend=-1))
    xt, wt = np.ascontiguousarray(x[order].T), np.ascontiguousarray(W[order].T)
    for rows in chunks(np.flatnonzero(maybe), len(x)):
        d = xt[a[rows]] - xt[b[rows]]
        shared = np.ones((1, len(x)), dtype=np.bool_) if whole else wt[a[rows]] & wt[b[rows]]
        if not whole:
            d *= shared
        if starts is None:
            out.put(rows, _of_questions(d, shared, estimator))
            continue
        sums, sizes = (np.add.reduceat(block, starts, axis=1, dtype=np.float64) for block in (d, shared))
        out.put(rows, extended_task(sums, sizes, estimator))
    return out


def _level(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """(G′, M) `level_sums` of M models from their (G, M) sums over the same questions, `sizes` of them by cluster."""
    here = sizes > 0
    n_c, S = sizes[here], sums[here].T
    mean = S.mean(axis=1)
    return level_sums(S - np.outer(mean, n_c / n_c.mean()), mean, n_c * (1 - n_c / n_c.sum())).T


def _of_questions(d: FloatArray, shared: BoolArray, estimator: Estimator) -> Far:
    """The extended samples of (P, N) differences of independent questions; `d`, 0 where not shared, is overwritten."""
    total, n = d.sum(axis=1), shared.sum(axis=1).astype(np.float64)
    high, low = (end(d, axis=1, where=shared, initial=-sign * np.inf) for end, sign in ((np.max, 1), (np.min, -1)))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, largest = total / n, np.maximum(np.abs(high), np.abs(low))
        d /= largest[:, None]
        d *= d
        two = d.sum(axis=1)
        n_f = two**2 / np.einsum("ij,ij->i", d, d)
        return extended_questions(n_f, two * largest**2, np.maximum(high - mean, mean - low), total, n, estimator)


def of_group(sums: FloatArray, extension: Extension, a: IntArray, b: IntArray) -> Far:
    """The extended samples of pairs that all have the same questions.

    Args:
        sums: (C, M) sums of the models' means by cluster and task.
        extension: of the design of these questions.
        a: (P,) columns of the first models.
        b: (P,) columns of the second.
    """
    out = Far.none(len(a))
    columns = np.ascontiguousarray(sums.T)
    level = extension.level_sums(columns).T
    for rows in chunks(np.flatnonzero(_maybe_few(level, None, a, b)), len(sums)):
        out.put(rows, extension(columns[a[rows]] - columns[b[rows]]))
    return out


def chunks(rows: IntArray, width: int) -> list[IntArray]:
    """The rows in parts whose blocks of that width stay in a cache."""
    step = max(1, CHUNK // max(1, width))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _maybe_few(sums: FloatArray, W: BoolArray | None, a: IntArray, b: IntArray) -> BoolArray:
    """Pairs whose flips are few, or so nearly that rounding could decide.

    Args:
        sums: (G, M) the `level_sums` of each model; of one question its mean.
        W: (G, M) where it has any; None: everywhere.
        a: (P,) columns of the first models.
        b: (P,) columns of the second.
    """
    if W is None:
        z = sums - sums.mean(axis=1, keepdims=True)  # the difference stays, the powers get small
        n = np.full(len(a), float(len(sums)))
        squared = z * z
        two, four = squared.sum(axis=0), (squared * squared).sum(axis=0)
        own2, own4 = two[a] + two[b], four[a] + four[b]
    else:
        shown = W.astype(np.float64)
        centre = (sums * shown).sum(axis=1, keepdims=True) / np.maximum(shown.sum(axis=1, keepdims=True), 1)
        z = (sums - centre) * shown
        n = (shown.T @ shown)[a, b]
        squared = z * z
        two, four = squared.T @ shown, (squared * squared).T @ shown
        own2, own4 = two[a, b] + two[b, a], four[a, b] + four[b, a]
    cubes = z.T @ (squared * z)
    squares = own2 - 2 * (z.T @ z)[a, b]
    fourth = own4 - 4 * (cubes[a, b] + cubes[b, a]) + 6 * (squared.T @ squared)[a, b]
    doubtful = (squares <= _CANCELLED * own2) | (fourth <= _CANCELLED * own4)
    few: BoolArray = squares * squares < _NEAR * np.minimum(MOST, SHARE * n) * fourth
    few |= doubtful
    return few
