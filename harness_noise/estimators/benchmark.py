"""What a whole leaderboard says of its benchmark: which questions carry signal, and how much noise is usual."""

from __future__ import annotations

import re

import numpy as np

from .contrast import BoolArray, FloatArray, IntArray
from .ranks import NDInt, dense_ranks


def kendall_tau(scores: FloatArray, quality: FloatArray) -> FloatArray:
    """Kendall's tau-b of each question's scores with the models' quality; NaN where either is constant.

    Args:
        scores: (N, M) question means, NaN where a model has none.
        quality: (M,) mean of each model.

    Models without a score on a question are left out of its tau.
    """
    order = np.argsort(quality, kind="stable")
    x, q = scores[:, order], quality[order]
    W = ~np.isnan(x) & ~np.isnan(q)
    ranks, levels = dense_ranks(np.where(W, x, 0.0), W)
    sign = np.sign(q[:, None] - q[None, :])
    sign[np.isnan(sign)] = 0.0
    concordance = _concordance(ranks, W, sign, levels)
    m = W.sum(axis=1).astype(np.float64)
    pairs = m * (m - 1) / 2
    tied_x = _tied(ranks, levels)
    groups = np.cumsum(np.concatenate([[0], np.diff(q) > 0]))
    tied_q = np.zeros(len(x))
    for g in np.flatnonzero(np.bincount(groups) > 1):
        tied_q += _pairs_of(W[:, groups == g].sum(axis=1))
    scale = np.sqrt((pairs - tied_x) * (pairs - tied_q))
    with np.errstate(invalid="ignore", divide="ignore"):
        tau: FloatArray = np.divide(concordance, scale)
    tau[~(scale > 0)] = np.nan
    return tau


def _pairs_of(count: IntArray | FloatArray) -> FloatArray:
    c: FloatArray = np.asarray(count, dtype=np.float64)
    pairs: FloatArray = c * (c - 1) / 2
    return pairs


def _concordance(ranks: NDInt, W: BoolArray, sign: FloatArray, levels: int) -> FloatArray:
    """(N,) Σ over pairs with x_a > x_b of the sign of the quality of a less that of b."""
    N, M = ranks.shape
    total = np.zeros(N)
    if levels <= max(16, M // 8):
        for level in range(1, levels):
            at = (ranks == level).astype(np.float64)
            below = ((ranks >= 0) & (ranks < level)).astype(np.float64)
            total += (at * (below @ sign.T)).sum(axis=1)
        return total
    columns = np.ascontiguousarray(ranks.T)
    for a in range(1, M):
        step = np.sign(columns[a] - columns[:a])
        step[(columns[:a] < 0) | (columns[a] < 0)] = 0
        total += sign[a, :a] @ step
    return total


def _tied(ranks: NDInt, levels: int) -> FloatArray:
    """(N,) pairs of models that tie on each question."""
    N = len(ranks)
    flat = (np.arange(N)[:, None] * (levels + 1) + ranks + 1).ravel()
    counts = np.bincount(flat, minlength=N * (levels + 1)).reshape(N, levels + 1)[:, 1:]
    tied: FloatArray = _pairs_of(counts).sum(axis=1)
    return tied


def fit_beta(values: FloatArray) -> tuple[float, float] | None:
    """(a, b) of the Beta distribution with the mean and variance of `values`; None where none has them."""
    mean, var = float(values.mean()), float(values.var())
    if not 0 < mean < 1 or not 0 < var < mean * (1 - mean):
        return None
    size = mean * (1 - mean) / var - 1
    return mean * size, (1 - mean) * size


_SIZE = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)


def size_of(name: str) -> tuple[str, float] | None:
    """(family, parameters in billions) where a model's name gives its size: `llama-3-8b` → `llama-3-*`, 8.

    Names without a size, or with several, have none.
    """
    found = list(_SIZE.finditer(name.replace("_", "-")))
    if len(found) != 1:
        return None
    match = found[0]
    billions = float(match[2]) * int(match[1] or 1) * (1.0 if match[3].lower() == "b" else 1e-3)
    return f"{name[: match.start()]}*{name[match.end() :]}", billions
