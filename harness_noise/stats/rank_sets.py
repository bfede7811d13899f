"""Which rank each of many models may have, all statements right together.

Mogstad, Romano, Shaikh & Wilhelm (2024), Review of Economic Studies 91: from all pairwise comparisons tested
together, model j is at best behind all that are shown to be better, and at worst before all shown to be worse.
The tests are one max-T step-down over all ordered pairs (Romano & Wolf 2005), with signs flipped by cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .arrays import BoolArray, FloatArray, IntArray

CELLS = 4_000_000
"""Statistics that are held at once (32 MB)."""
STEPS = 10
"""Steps of the step-down; any number is valid, and more hardly ever find more."""


@dataclass(frozen=True, slots=True, eq=False)
class RankSets:
    """Ranks 1 … M, 1 the best."""

    low: IntArray
    """(M,) the best rank that a model may have."""
    high: IntArray
    """(M,) the worst."""
    ties: IntArray
    """(M,) how many others a model cannot be told from."""
    better: BoolArray
    """(M, M) whether the row's model is shown to be better than the column's."""


def from_decisions(better: BoolArray) -> RankSets:
    """Rank sets from (M, M) decisions that are right together."""
    M = len(better)
    low, high = 1 + better.sum(axis=0), M - better.sum(axis=1)
    ties = M - 1 - (better | better.T).sum(axis=1)
    return RankSets(low.astype(np.intp), high.astype(np.intp), ties.astype(np.intp), better)


def rank_sets(sums: FloatArray, level: float, rng: np.random.Generator, draws: int = 2000) -> RankSets:
    """Simultaneous rank sets of M models.

    Args:
        sums: (G, M) each model's scores summed by cluster, higher is better; all models on the same questions.
        level: probability that all sets hold their model's rank in truth.
        rng: draws the signs.
        draws: of signs; the identity is one more.

    The statistic of a pair is T = Σ_g x_g / √Σ x_g², x the differences of its sums, the monotone transform
    t = T √((G − 1)/(G − T²)) of Student's. Under "equal" the signs of a symmetric x are fair coins, so that the test
    is exact at any number of clusters, and leans on the central limit theorem for skewed ones only; with five
    clusters or fewer nothing can be significant at 95 %, and nothing is. Signs are flipped for all pairs at once,
    which keeps their dependence: many models that answer alike cost little.
    """
    G, M = sums.shape
    a, b = np.triu_indices(M, 1)
    centred = sums - sums.mean(axis=1, keepdims=True)
    scale = _lengths(centred, a, b)
    varies = scale > 1e-12 * max(1.0, float(np.abs(sums).max(initial=0.0)))
    a, b, scale = a[varies], b[varies], scale[varies]
    better = np.zeros((M, M), dtype=np.bool_)
    if G < 2 or len(a) == 0:
        return from_decisions(better)
    total = centred.sum(axis=0)
    T = (total[a] - total[b]) / scale
    flipped = (2 * rng.integers(0, 2, (draws, G)) - 1) @ centred
    open_a, open_b = np.ones(len(a), dtype=np.bool_), np.ones(len(a), dtype=np.bool_)
    for _ in range(STEPS):
        top = _largest(flipped, (a, b), scale, open_a, open_b)
        highest = max(T[open_a].max(initial=-np.inf), (-T[open_b]).max(initial=-np.inf))
        # the identity is one of the draws
        critical = np.sort(np.append(top, highest))[int(np.ceil(level * (draws + 1))) - 1]
        bound = critical + 1e-12 * abs(critical)
        found_a, found_b = open_a & (bound < T), open_b & (bound < -T)
        if not (found_a.any() or found_b.any()):
            break
        better[a[found_a], b[found_a]] = True
        better[b[found_b], a[found_b]] = True
        open_a &= ~found_a
        open_b &= ~found_b
    return from_decisions(better)


def _lengths(sums: FloatArray, a: IntArray, b: IntArray) -> FloatArray:
    """(P,) √Σ_g x_g² of each pair's differences."""
    out = np.empty(len(a))
    step = max(1, CELLS // len(sums))
    for first in range(0, len(a), step):
        block = slice(first, first + step)
        out[block] = np.linalg.norm(sums[:, a[block]] - sums[:, b[block]], axis=0)
    return out


def _largest(
    flipped: FloatArray, pairs: tuple[IntArray, IntArray], scale: FloatArray, open_a: BoolArray, open_b: BoolArray
) -> FloatArray:
    """(draws,) largest statistic over the ordered pairs that are still open."""
    out = np.full(len(flipped), -np.inf)
    for is_open, (a, b) in ((open_a, pairs), (open_b, pairs[::-1])):
        a, b, inverse = a[is_open], b[is_open], 1 / scale[is_open]
        step = max(1, CELLS // max(1, len(a)))
        for first in range(0, len(out), step):
            block = flipped[first : first + step]
            T = (block[:, a] - block[:, b]) * inverse
            out[first : first + step] = np.maximum(out[first : first + step], T.max(axis=1, initial=-np.inf))
    return out


@dataclass(frozen=True, slots=True)
class Stability:
    """How the order of the models fares when other questions of the kind are asked."""

    tau: float
    """Median of Kendall's tau between the order found and that of resampled questions."""
    same_best: float
    """Share of resamples that have the same model first."""


def stability(sums: FloatArray, sizes: FloatArray, rng: np.random.Generator, draws: int = 500) -> Stability:
    """Resample whole clusters and order the models again.

    Args:
        sums: (G, M) scores summed by cluster, higher is better.
        sizes: (G,) questions of each cluster.
        rng: draws the clusters.
        draws: of the bootstrap.

    A resample is noisier than the questions were: it shows their noise once more, on top of what they have.
    """
    G, M = sums.shape
    counts = rng.multinomial(G, np.full(G, 1 / G), size=draws).astype(np.float64)
    means = (counts @ sums) / (counts @ sizes)[:, None]
    found = sums.sum(axis=0)
    a, b = np.triu_indices(M, 1)
    order: NDArray[np.float64] = np.sign(np.round(found[a] - found[b], 9))
    tau = np.empty(draws)
    for i, row in enumerate(means):
        new = np.sign(np.round(row[a] - row[b], 12))
        either = np.sqrt(np.count_nonzero(new) * np.count_nonzero(order))
        tau[i] = float(new @ order) / either if either else np.nan
    best = np.flatnonzero(found >= found.max() - 1e-9)
    leads = means >= means.max(axis=1, keepdims=True) - 1e-12
    # where several share the first place, each has its part of it
    share = (leads[:, best].sum(axis=1) / leads.sum(axis=1)).mean()
    return Stability(float(np.nanmedian(tau)) if np.isfinite(tau).any() else 1.0, float(share))
