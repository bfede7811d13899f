"""Ranks: who is above whom within each question, and which rank each of many models may have, all right together.

[Mogstad]: from all pairwise comparisons tested
together, model j is at best behind all that are shown to be better, and at worst before all shown to be worse.
The tests are one max-T step-down over all ordered pairs [Romano], with signs flipped by cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import AnyArray, BoolArray, FloatArray, IntArray
from .contrast import Design
from .tolerances import ROUNDING

MOST_LEVELS = 128
"""Ranks within a question up to which they are gone through one after the other, for all questions at once."""
FEWEST_TO_SPLIT = 4
"""Clusters (questions) of which halves say anything."""


def dense_ranks(x: FloatArray) -> tuple[AnyArray, int]:
    """Return (N, M) ranks of the values within each row, −1 for NaN, and the number of ranks.

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
    """Return (M, M) expected wins of model A over model B, summed over questions: P(answer of A > answer of B).

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
    """Return A's and B's expected wins over all pairs of their answers, from (n, K_A) and (n, K_B) scores."""
    if not all(((x == 0) | (x == 1)).all() for x in (a, b)):
        above = answers_above((a, b))
        return float(above[0, 1]), float(above[1, 0])
    right, pairs = (a.sum(axis=1), b.sum(axis=1)), a.shape[1] * b.shape[1]  # whole numbers: the counts are exact
    return float(right[0] @ (b.shape[1] - right[1])) / pairs, float(right[1] @ (a.shape[1] - right[0])) / pairs


WORK = 100_000_000
"""Statistics of one step, by which the draws of very many models are limited."""
FEWEST_DRAWS = 500
STEPS = 5
"""Steps of the step-down. Any number is valid, and more steps rarely find more."""


@dataclass(frozen=True, slots=True, eq=False)
class RankSets:
    """Ranks 1 … M, 1 the best."""

    low: IntArray
    """(M,) the best rank that a model may have."""
    high: IntArray
    """(M,) the worst."""
    ties: IntArray
    """(M,) number of other models from which a model is not shown to differ."""
    better: BoolArray
    """(M, M) whether the row's model is shown to be better than the column's."""


def from_decisions(better: BoolArray) -> RankSets:
    """Return the ranks each model may have, from an (M, M) matrix of which model is shown to be better."""
    M = len(better)
    low, high = 1 + better.sum(axis=0), M - better.sum(axis=1)
    ties = M - 1 - (better | better.T).sum(axis=1)
    return RankSets(low.astype(np.intp), high.astype(np.intp), ties.astype(np.intp), better)


def rank_sets(sums: FloatArray, level: float, rng: np.random.Generator, draws: int = 2000) -> RankSets:
    """Return for each of M models the set of ranks it may have, all sets right together at this level.

    Args:
        sums: (G, M) each model's scores summed by cluster, higher is better; all models on the same questions.
        level: probability that all sets hold their model's rank in truth.
        rng: draws the signs.
        draws: of signs, fewer for hundreds of models; the identity is one more.

    The statistic of a pair is T = Σ_g x_g / √Σ x_g², x the differences of its sums, the monotone transform
    t = T √((G − 1)/(G − T²)) of Student's. Under "equal" the signs of a symmetric x are fair coins, so that the test
    is exact at any number of clusters, and leans on the central limit theorem for skewed ones only; with five
    clusters or fewer nothing can be significant at 95%, and nothing is. Signs are flipped for all pairs at once,
    which keeps their dependence: many models that answer alike cost little.
    """
    G, M = sums.shape
    draws = int(min(draws, max(FEWEST_DRAWS, WORK // max(1, M * M))))
    centred = sums - sums.mean(axis=1, keepdims=True)
    better = np.zeros((M, M), dtype=np.bool_)
    inverse = _inverse_lengths(centred, max(1.0, float(np.abs(sums).max(initial=0.0))))
    is_open = inverse > 0
    if G < 2 or not is_open.any():
        return from_decisions(better)
    total = centred.sum(axis=0)
    T = (total[:, None] - total[None, :]) * inverse
    flipped = np.ascontiguousarray(((2 * rng.integers(0, 2, (draws, G)) - 1) @ centred).T)
    for _ in range(STEPS):
        # the identity is one of the draws
        top = np.append(_largest(flipped, np.where(is_open, inverse, 0.0)), T[is_open].max())
        critical = np.sort(top)[int(np.ceil(level * (draws + 1))) - 1]
        decided = is_open & (critical + 1e-12 * abs(critical) < T)
        if not decided.any():
            break
        better |= decided
        is_open &= ~decided
    return from_decisions(better)


def _inverse_lengths(sums: FloatArray, scale: float) -> FloatArray:
    """Return (M, M) 1/‖x‖ of the cluster sums x of each pair's differences, 0 if a pair does not differ."""
    M = sums.shape[1]
    out = np.zeros((M, M))
    for a in range(M):
        length = np.linalg.norm(sums - sums[:, a : a + 1], axis=0)
        np.divide(1.0, length, out=out[a], where=length > 1e-12 * scale)
    return out


def _largest(flipped: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return (draws,) the largest test statistic over all pairs in each random sign flip, at least 0."""
    M, draws = flipped.shape
    out = np.zeros(draws)
    for a in range(M):
        b = np.flatnonzero(inverse[a])
        if len(b):
            T = (flipped[a] - flipped[b]) * inverse[a, b, None]
            np.maximum(out, T.max(axis=0), out=out)
    return out


@dataclass(frozen=True, slots=True)
class Stability:
    """Similarity of the models' order when their questions are resampled. It is not a test of who is better."""

    tau: float
    """Median of Kendall's tau between the order found and that of resampled questions, NaN if no model differs."""
    same_best: float
    """Share of resamples in which the same model is first."""


def stability(sums: FloatArray, sizes: FloatArray, rng: np.random.Generator, draws: int = 500) -> Stability:
    """Resample whole clusters with replacement and count how alike the models' order stays.

    Args:
        sums: (G, M) scores summed by cluster, higher is better.
        sizes: (G,) questions of each cluster.
        rng: draws the clusters.
        draws: of the bootstrap.

    A resample is noisier than the questions were: it shows their noise once more, on top of what they have.
    """
    G = len(sums)
    counts = rng.multinomial(G, np.full(G, 1 / G), size=draws).astype(np.float64)
    means = (counts @ sums) / (counts @ sizes)[:, None]
    totals = sums.sum(axis=0)
    order = np.sign(np.round(totals[:, None] - totals[None, :], 9))
    tau = np.empty(draws)  # Kendall's τ_b of signs: for few models a tenth of the time of the library's
    for i, row in enumerate(np.round(means, 12)):
        new = np.sign(row[:, None] - row[None, :])
        either = np.sqrt(np.count_nonzero(new) * np.count_nonzero(order))
        tau[i] = float((new * order).sum()) / either if either else np.nan
    best = np.flatnonzero(totals >= totals.max() - 1e-9)
    leads = means >= means.max(axis=1, keepdims=True) - 1e-12
    # where several share the first place, each has its part of it
    share = (leads[:, best].sum(axis=1) / leads.sum(axis=1)).mean()
    return Stability(float(np.nanmedian(tau)) if np.isfinite(tau).any() else np.nan, float(share))


@dataclass(frozen=True, slots=True)
class Chosen:
    """All that the best of several models has on questions that did not choose it. NaN where they cannot be split."""

    mean: float
    lead: float
    """Over the second best, which the same questions chose."""
    same: float
    """Share of the halves that choose the model which all questions choose."""


def chosen_by_half(values: FloatArray, plan: Design, rng: np.random.Generator, splits: int = 200) -> Chosen:
    """Choose the two best models on half of the clusters and measure them on the other half, over random halves.

    The halves are independent, so that of models which are equally good the chosen one has no lead on average. The
    maximum on the questions that chose it has one, and the bootstrap's estimate of that bias is too small by a third.

    Args:
        values: (N, M) question means, none missing, higher is better.
        plan: the design of the N questions.
        rng: draws the halves.
        splits: each of them is used both ways.
    """
    first = np.full(plan.n_clusters, plan.strata.max(initial=0) + 1)
    np.minimum.at(first, plan.clusters, plan.strata)  # clusters of a task are dealt out in turn
    best = np.argsort(plan.weights @ values, kind="stable")[-1]
    measured = []
    for _ in range(splits):
        order = np.lexsort((rng.random(plan.n_clusters), first))
        half = np.empty(plan.n_clusters, dtype=np.intp)
        half[order] = (np.arange(plan.n_clusters) + rng.integers(2)) % 2
        sides = [_mean_of(values, plan, half[plan.clusters] == side) for side in (0, 1)]
        for here, there in (sides, sides[::-1]):
            second, winner = np.argsort(here, kind="stable")[-2:]
            measured.append((there[winner], there[winner] - there[second], float(winner == best)))
    out = np.mean(measured, axis=0).tolist() if plan.n_clusters >= FEWEST_TO_SPLIT else [math.nan] * 3
    return Chosen(*(out if np.isfinite(out).all() else [math.nan] * 3))


def _mean_of(values: FloatArray, plan: Design, there: BoolArray) -> FloatArray:
    """Return (M,) means of the models over only the questions that are `there`, tasks weighted as in the design.

    NaN where a task has none of them.
    """
    whole = np.bincount(plan.strata, plan.weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = whole / np.bincount(plan.strata, plan.weights * there, minlength=len(whole))
        return np.asarray((scale[plan.strata] * plan.weights * there) @ values)
