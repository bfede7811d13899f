"""Ranks: who is above whom within each question, and which rank each of many models may have, all right together.

[Mogstad]: from all pairwise comparisons tested
together, model j is at best behind all that are shown to be better, and at worst before all shown to be worse.
The tests are one max-T step-down over all ordered pairs [Romano], with signs flipped by cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import AnyArray, FloatArray
from .tolerances import ROUNDING

MOST_LEVELS = 128
"""Ranks within a question up to which they are gone through one after the other, for all questions at once."""


def dense_ranks(x: FloatArray) -> tuple[AnyArray, int]:
    """Return (N, M) ranks within each row (0 lowest, ties equal, −1 for NaN), and the number of ranks.

    Values that differ by rounding only share a rank.
    """
    order = np.argsort(x, axis=1, kind="stable")
    largest = np.fmax.reduce(np.abs(x), axis=1, keepdims=True, initial=0.0)
    tolerance = np.maximum(ROUNDING, 64 * np.finfo(np.float64).eps * largest)
    with np.errstate(invalid="ignore"):
        steps = np.diff(np.take_along_axis(x, order, axis=1), axis=1) > tolerance
    ranks = np.zeros(x.shape, dtype=np.int32)
    np.cumsum(steps, axis=1, out=ranks[:, 1:])
    out = np.empty_like(ranks)
    np.put_along_axis(out, order, ranks, axis=1)
    out[np.isnan(x)] = -1
    return out, int(out.max(initial=0)) + 1


def answers_above(answers: Sequence[FloatArray]) -> FloatArray:
    """Return (M, M) expected wins of model A (row) over B: Σ over questions of P(A's answer scores higher).

    Scores that differ only by rounding count as equal.

    Args:
        answers: (N, K_m) scores of each of the M models, NaN where there is none.
    """
    sizes = np.array([values.shape[1] for values in answers])
    stacked, starts = np.concatenate(answers, axis=1), np.cumsum(sizes) - sizes
    owners = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.add.reduceat(~np.isnan(stacked), starts, axis=1, dtype=np.float64)
    ranks, levels = dense_ranks(stacked)
    most = np.maximum(counts.max(axis=0, initial=0.0), 1.0)
    share = np.where(ranks < 0, 0.0, (most / np.maximum(counts, 1))[:, owners])  # whole numbers without gaps
    total = np.zeros((len(sizes), len(sizes)))
    if levels <= MOST_LEVELS:
        below = np.zeros((len(stacked), len(sizes)))
        for level in range(levels):
            at = np.add.reduceat(np.where(ranks == level, share, 0.0), starts, axis=1)
            total += at.T @ below
            below += at
        return total / np.outer(most, most)
    for rank, part in zip(ranks, share, strict=True):
        at = np.zeros((levels, len(sizes)))
        np.add.at(at, (rank, owners), part)  # what is masked has no share
        below = np.cumsum(at, axis=0) - at
        total += np.add.reduceat(part[:, None] * below[rank], starts, axis=0)
    return total / np.outer(most, most)


def wins(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """Return A's and B's expected wins: over questions, the share of answer pairs in which one scores higher."""
    if not all(((x == 0) | (x == 1)).all() for x in (a, b)):
        above = answers_above((a, b))
        return float(above[0, 1]), float(above[1, 0])
    right, pairs = (a.sum(axis=1), b.sum(axis=1)), a.shape[1] * b.shape[1]  # whole numbers: the counts are exact
    return float(right[0] @ (b.shape[1] - right[1])) / pairs, float(right[1] @ (a.shape[1] - right[0])) / pairs
