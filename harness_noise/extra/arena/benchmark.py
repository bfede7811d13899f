"""Statistics of a benchmark from a whole leaderboard: which questions carry signal, and how much noise is usual."""

from __future__ import annotations

import re

import numpy as np
from scipy import special

from ...arrays import AnyArray, BoolArray, FloatArray
from ...stats.ranks import dense_ranks
from ...stats.tolerances import SLACK

BLOCK = 2_000_000
"""Scores whose tau is taken at once (some 100 MB)."""


def kendall_tau(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (n,) Kendall's tau-b of questions with models' means on the others, (n,) p of a tau as low. NaN: constant.

    The question itself is left out of the mean (item against the rest): with it, noise alone correlates
    with itself and averages above 0.

    Args:
        scores: (N, M) question means, NaN where a model has none.

    Returns:
        (N,) tau, NaN where the scores or the means are constant; and (N,) how often a question to which all
        orders of the models are equally likely has a tau as low: normal, with the variance of S = concordant
        less discordant pairs under ties [Kendall, ch. 4] and a continuity correction.

    Models without a score on a question, or without another question, are left out of its tau.
    """
    there = ~np.isnan(scores)
    count = there.sum(axis=0)
    total = np.where(there, scores, 0.0).sum(axis=0)
    tau, low = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    step = max(1, BLOCK // max(1, scores.shape[1]))
    for first in range(0, len(scores), step):
        block = slice(first, first + step)
        W = there[block] & (count > 1)
        x = np.where(W, scores[block], 0.0)
        ranks, levels = dense_ranks(np.where(W, x, np.nan))
        rest, places = dense_ranks(np.where(W, (total - x) / np.maximum(count - 1, 1), np.nan))
        S = _concordance(ranks, rest)
        tied_x, tied_rest = _ties(ranks, levels), _ties(rest, places)
        m = W.sum(axis=1).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = np.sqrt((m * (m - 1) - tied_x[0]) * (m * (m - 1) - tied_rest[0])) / 2
            spread = (m * (m - 1) * (2 * m + 5) - tied_x[2] - tied_rest[2]) / 18
            spread += tied_x[0] * tied_rest[0] / (2 * m * (m - 1))
            spread += np.where(m > 2, tied_x[1] * tied_rest[1] / (9 * m * (m - 1) * (m - 2)), 0.0)
            tau[block] = np.where(scale > 0, S / scale, np.nan)
            # S moves in steps of 2, or 1 where both are tied: half of a step of 2 is the cautious choice
            low[block] = np.where(scale > 0, special.ndtr((S + 1) / np.sqrt(spread)), np.nan)
    return tau, low


def _concordance(x: AnyArray, y: AnyArray) -> FloatArray:
    """Return (N,) concordant minus discordant pairs of models per question, from two rank tables (−1: masked)."""
    out = np.zeros(len(x))
    # small numbers are compared fast, and nothing is above or below NaN
    columns, others = (np.ascontiguousarray(np.where(r < 0, np.nan, r).T, np.float32) for r in (x, y))
    for a in range(1, len(columns)):
        out += (_signs(columns, a) * _signs(others, a)).sum(axis=0)
    return out


def _signs(columns: AnyArray, a: int) -> AnyArray:
    """Return (a, N) signs of column a minus each earlier column 0 … a − 1."""
    return np.asarray((columns[a] > columns[:a]).view(np.int8) - (columns[a] < columns[:a]).view(np.int8))


def _ties(ranks: AnyArray, levels: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return three (n,) sums over groups of t tied models: t(t − 1), t(t − 1)(t − 2), t(t − 1)(2t + 5)."""
    N = len(ranks)
    flat = (np.arange(N)[:, None] * (levels + 1) + ranks + 1).ravel()
    t = np.bincount(flat, minlength=N * (levels + 1)).reshape(N, levels + 1)[:, 1:].astype(np.float64)
    two = t * (t - 1)
    return two.sum(axis=1), (two * (t - 2)).sum(axis=1), (two * (2 * t + 5)).sum(axis=1)


CHANCE = 0.05
"""The most that the chance of a suspect without cause may be for one question."""


def suspects(tau: FloatArray, low: FloatArray) -> BoolArray:
    """Return (N,) True for questions on which better models do worse: tau < 0, with a p below 1/N and below 5%.

    The chance of a tau as low is below 1/N of the N questions that have one (and below 5%): if no
    question had anything to do with the models' quality, fewer than one suspect would be expected.
    """
    n = int(np.isfinite(low).sum())
    return np.asarray((tau < 0) & (low < min(CHANCE, 1 / max(n, 1))))


def fit_beta(values: FloatArray) -> tuple[float, float] | None:
    """Return (a, b) of the Beta with these values' mean and variance. None for values all alike or only 0 and 1."""
    mean, var = float(values.mean()), float(values.var())
    widest = mean * (1 - mean)
    if not SLACK * widest < var < (1 - SLACK) * widest:  # all alike, or nothing but 0 and 1
        return None
    size = widest / var - 1
    return mean * size, (1 - mean) * size


_SIZE = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)


def size_in_name(name: str) -> tuple[str, float] | None:
    """Parse the model size in a name: `llama-3-8b` gives (`llama-3-*`, 8.0), 8x7b 56.0. None for no size or several.

    Names without a size, or with several, have none.
    """
    matches = list(_SIZE.finditer(name.replace("_", "-")))
    if len(matches) != 1:
        return None
    match = matches[0]
    billions = float(match[2]) * int(match[1] or 1) * (1.0 if match[3].lower() == "b" else 1e-3)
    return f"{name[: match.start()]}*{name[match.end() :]}", billions
