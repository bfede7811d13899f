"""Who is above whom: comparisons of all models on all questions, by ranks within each question."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .arrays import BoolArray, FloatArray, IntArray
from .tolerances import ROUNDING

BLOCK = 8_000_000
"""Entries of the indicator tables that are multiplied at once (32 MB); sums stay exact in single precision."""

NDInt = np.ndarray[tuple[int, ...], np.dtype[np.int32]]


def one_hot(codes: IntArray, G: int) -> sparse.csr_array:
    """(n, G) sparse matrix with a 1 in column codes[i] of row i: a product with it sums over codes."""
    n = len(codes)
    return sparse.csr_array((np.ones(n), (np.arange(n), codes)), shape=(n, G))


def dense_ranks(x: FloatArray, W: BoolArray, *, exact: bool = False) -> tuple[NDInt, int]:
    """(N, M) rank of each value among the values of its row, −1 where masked; and the number of ranks.

    Means and sums that differ by rounding only share a rank; `exact` tells any two values apart.
    """
    N, M = x.shape
    if N == 0 or M == 0:
        return np.zeros((N, M), dtype=np.int32), 1
    values = np.where(W, x, np.inf)
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    rounding = 64 * np.finfo(np.float64).eps * np.abs(np.where(W, x, 0.0)).max(axis=1)
    tolerance = 0.0 if exact else np.maximum(ROUNDING, rounding)[:, None]
    with np.errstate(invalid="ignore"):
        steps = np.diff(ordered, axis=1) > tolerance
    ranks = np.zeros((N, M), dtype=np.int32)
    np.cumsum(steps, axis=1, out=ranks[:, 1:])
    out = np.empty_like(ranks)
    np.put_along_axis(out, order, ranks, axis=1)
    out[~W] = -1
    return out, int(out.max(initial=0)) + 1


def count_above(ranks: NDInt, levels: int) -> FloatArray:
    """(M, M) number of rows in which column a ranks above column b; −1 is masked."""
    N, M = ranks.shape
    total = np.zeros((M, M))
    if levels <= max(16, min(64, M // 8)):
        # Σ over levels of (a at the level)ᵀ (b below it), several levels in one product
        above = np.arange(1, levels, dtype=np.int32)
        step = max(1, BLOCK // max(1, N * M))
        for first in range(0, levels - 1, step):
            level = above[first : first + step, None, None]
            at = (ranks == level).astype(np.float32).reshape(-1, M)
            below = ((ranks < level) & (ranks >= 0)).astype(np.float32).reshape(-1, M)
            total += at.T @ below
        return total
    upper = np.ascontiguousarray(ranks.T)
    lower = np.where(upper < 0, np.int32(2**31 - 1), upper)
    for m in range(M):
        total[m] = np.count_nonzero(upper[m] > lower, axis=1)
    return total


def answers_above(answers: tuple[FloatArray, ...]) -> FloatArray:
    """(M, M) Σ_i P(A_ij > B_ik) for any scores."""
    sizes = [values.shape[1] for values in answers]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    stacked = np.concatenate(answers, axis=1)
    scored = ~np.isnan(stacked)
    ranks, levels = dense_ranks(np.where(scored, stacked, 0.0), scored, exact=True)
    M, N = len(answers), len(stacked)
    owners = np.repeat(np.arange(M), sizes)
    weight = np.empty_like(stacked)
    for m in range(M):
        block = slice(starts[m], starts[m + 1])
        weight[:, block] = 1 / np.maximum(scored[:, block].sum(axis=1, keepdims=True), 1)
    weight[~scored] = 0.0
    total = np.zeros((M, M))
    owner = one_hot(owners, M)
    if levels <= 128:
        below = np.zeros((N, M))
        for level in range(levels):
            at = np.where(ranks == level, weight, 0.0) @ owner
            total += at.T @ below
            below = below + at
        return total
    for rank, share in zip(ranks, weight, strict=True):
        at = np.zeros((int(rank.max(initial=0)) + 1, M))
        np.add.at(at, (np.maximum(rank, 0), owners), share)  # what is masked has no share
        below = np.zeros_like(at)
        np.cumsum(at[:-1], axis=0, out=below[1:])
        total += owner.T @ (share[:, None] * below[np.maximum(rank, 0)])
    return total
