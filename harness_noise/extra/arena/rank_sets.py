"""Ranks that each of many models may have, all right together, the stability of their order, and selection.

[Mogstad]: from all pairwise comparisons tested
together, model j is at best behind all that are shown to be better, and at worst before all shown to be worse.
The tests are one max-T step-down over all ordered pairs [Romano], with signs flipped by cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...stats.contrast import Design
from ..ranks import RankSets, from_decisions

FEWEST_TO_SPLIT = 4
"""Clusters (questions) of which halves say anything."""


WORK = 100_000_000
"""Statistics of one step, by which the draws of very many models are limited."""


FEWEST_DRAWS = 500


STEPS = 5
"""Steps of the step-down. Any number is valid, and more steps rarely find more."""


def rank_sets(sums: FloatArray, level: float, rng: np.random.Generator, draws: int = 2000) -> RankSets:
    """Return `RankSets` from (G, M) cluster sums: (M,) lowest and highest ranks, all true at once at this level.

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
    """Return (M, M) 1/‖x‖ of the cluster sums x of each pair's differences. 0 if two models are equal."""
    M = sums.shape[1]
    out = np.zeros((M, M))
    for a in range(M):
        length = np.linalg.norm(sums - sums[:, a : a + 1], axis=0)
        np.divide(1.0, length, out=out[a], where=length > 1e-12 * scale)
    return out


def _largest(flipped: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return (draws,) the largest test statistic of all pairs, from (M, draws) sums whose signs are already flipped."""
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
    """Resample clusters of (G, M) sums, and return how similar the order stays: median Kendall tau, same best.

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
    """Mean and lead of the best model on questions that did not choose it, and how often it is chosen. NaN: none."""

    mean: float
    lead: float
    """Over the second best, which the same questions chose."""
    same: float
    """Share of the halves that choose the model which all questions choose."""


def chosen_by_half(values: FloatArray, plan: Design, rng: np.random.Generator, splits: int = 200) -> Chosen:
    """Return `Chosen`: best two models of a random half of clusters, measured on the other half. NaN below 4 clusters.

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
    """Return (M,) weighted means of the models over the questions that are `there`. NaN if a task has none."""
    whole = np.bincount(plan.strata, plan.weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = whole / np.bincount(plan.strata, plan.weights * there, minlength=len(whole))
        return np.asarray((scale[plan.strata] * plan.weights * there) @ values)
