"""The noise of metrics that are not means: clusters of questions drawn again, left out, or exchanged by two runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.clusters import both_ways
from ..data.scores import CALLS, CorpusScores
from ..errors import InputError
from ..results.diagnostics import UNSPLIT
from ..results.forms import finite
from ..settings import Settings
from ..stats import resampling
from ..stats.arrays import BoolArray, FloatArray, IntArray
from ..stats.cluster_variance import Variance, cells, clustered_variance
from ..stats.contrast import cluster_codes, design
from ..stats.decision import noise_codes
from ..stats.intervals import effective_flips
from ..stats.tolerances import ROUNDING

_LEFT_OUT = 200
"""Clusters up to which a metric that has to be called is called without each; with more the jackknife's variance
is the bootstrap's."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The answers of one run, on the questions that are used."""

    item: CorpusScores
    rows: IntArray
    codes: IntArray
    """(n,) cluster code of each of these questions."""
    G: int

    @property
    def repeats(self) -> int:
        item = self.item
        return item.stats.shape[1] if item.stats is not None else max((len(row) for row in item.records), default=0)

    def values(self) -> FloatArray:
        """(K,) the metric of each repeat, over all questions."""
        if self.item.stats is not None:
            return self._from_sums(np.nansum(self.item.stats[self.rows], axis=0))
        return np.array([self._call(self.rows, k) for k in range(self.repeats)])

    def resampler(self) -> Callable[[IntArray], FloatArray]:
        """(rows, G) drawn clusters → (rows,) the mean over repeats of the metric with them.

        What all batches of draws share is computed here: there are the more of them, the more clusters.
        """
        if self.item.stats is not None:
            sums = self.sums(range(self.repeats))

            def from_sums(picked: IntArray) -> FloatArray:
                totals = resampling.counts(picked, self.G) @ sums.reshape(self.G, -1)
                means: FloatArray = self._from_sums(totals.reshape(-1, *sums.shape[1:])).mean(axis=-1)
                return means

            return from_sums
        members = np.split(self.rows[np.argsort(self.codes, kind="stable")], np.cumsum(np.bincount(self.codes))[:-1])

        def by_calls(picked: IntArray) -> FloatArray:
            out = np.empty(len(picked))
            for b, clusters in enumerate(picked):
                rows = np.concatenate([members[c] for c in clusters])
                out[b] = np.mean([self._call(rows, k) for k in range(self.repeats)])
            return out

        return by_calls

    def sums(self, repeats: Sequence[int]) -> FloatArray:
        """(G, len(repeats), S) sums over the questions of each cluster."""
        assert self.item.stats is not None
        stats = np.nan_to_num(self.item.stats[self.rows])[:, list(repeats)]
        out = np.zeros((self.G, *stats.shape[1:]))
        np.add.at(out, self.codes, stats)
        return out

    def left_out(self) -> FloatArray | None:
        """(G,) the mean over repeats of the metric without each cluster; None where that takes too many calls."""
        if self.item.stats is not None:
            sums = self.sums(range(self.repeats))
            means: FloatArray = self._from_sums(sums.sum(axis=0) - sums).mean(axis=-1)
            return means
        if self.G > _LEFT_OUT:
            return None
        rest = (self.rows[self.codes != c] for c in range(self.G))
        return np.array([np.mean([self._call(rows, k) for k in range(self.repeats)]) for rows in rest])

    def df(self) -> float:
        """Degrees of freedom of the clusters: those of CR2 for a mean over the same questions."""
        n = len(self.rows)
        found = cells(design(n, None if n == self.G else self.codes))
        return found.df().item() if found.identified.all() else math.nan

    def _from_sums(self, sums: FloatArray) -> FloatArray:
        assert self.item.value is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.item.value(sums), dtype=np.float64)

    def _call(self, rows: IntArray, k: int) -> float:
        return self._aggregate([row[k] for i in rows if k < len(row := self.item.records[i]) and row[k] is not None])

    def _call_mixed(self, other: Side, exchanged: BoolArray, k: int) -> float:
        """The metric of repeat k with the other run's answers where `exchanged`."""
        answers = []
        for i, j, swap in zip(self.rows, other.rows, exchanged, strict=True):
            row = other.item.records[j] if swap else self.item.records[i]
            answer = row[k % len(row)] if row else None
            if answer is not None:
                answers.append(answer)
        return self._aggregate(answers)

    def _aggregate(self, answers: list[Any]) -> float:
        """The metric of these answers; NaN of none, or where it has no value."""
        assert self.item.aggregate is not None
        try:
            return float(self.item.aggregate(answers)) if answers else math.nan
        except (ArithmeticError, ValueError):  # a resample without any positive, an empty reference
            return math.nan


def side_of(item: CorpusScores) -> Side:
    if (item.stats is None or item.value is None) == (item.aggregate is None):
        raise ValueError(f"{item.task}, {item.metric}: give records and aggregate, or stats and value")
    if item.stats is not None:
        answered = np.isfinite(item.stats).any(axis=2).sum(axis=1) > 0
    else:
        answered = np.array([any(record is not None for record in row) for row in item.records], dtype=np.bool_)
    labels = item.clusters
    if both_ways(labels) is not None:
        raise InputError(
            f"{item.task}, {item.metric}: a metric that is no mean is resampled by whole clusters of one kind, and "
            "these questions are clustered in two crossed ways: name one with `cluster`, or leave this metric out with "
            "`metrics`"
        )
    used = np.flatnonzero(answered)
    if labels is None:
        return Side(item, used, np.arange(len(used)), len(used))
    return Side(item, used, *cluster_codes([labels[i] for i in used]))


@dataclass(frozen=True, slots=True)
class CorpusNoise:
    """CorpusNoise of Σ ± (mean over repeats), None where it is not identified."""

    value: float | None
    each: tuple[float | None, ...]
    variance: float | None
    var_data: float | None
    var_prediction: float | None
    var_total: float | None
    known: Variance | None
    """The variance that intervals take, by the jackknife, and its degrees of freedom."""
    distribution: resampling.Distribution | None
    diagnostics: frozenset[str]
    n_clusters: int = 0
    carried_by: float | None = None
    """The effective number of clusters that the metric rests on; None where that is not known."""


def _jackknife(sides: Sequence[Side], signs: Sequence[float], V: float, paired: bool) -> tuple[Variance, float | None]:
    """The variance of Σ ± metric by leaving out clusters [Efron & Stein 1981], and how many clusters carry it.

    The variance is V where the metric cannot be computed without each cluster. Sides that are independent samples have
    Satterthwaite's degrees of freedom, as in Welch's test. The clusters that carry it are (Σ u²)²/Σ u⁴ with u what each
    moves: of a rare class's F1 the true and false positives and the misses, however many questions there are. None
    where leaving out takes too many calls.
    """
    left = [side.left_out() for side in sides]
    values = [a * theta for a, theta in zip(signs, left, strict=True) if theta is not None]
    if len(values) < len(sides) or not all(np.isfinite(theta).all() for theta in values):
        # a cluster without which there is no such metric carries all of it
        return Variance(V, min(side.df() for side in sides)), None if len(values) < len(sides) else 0.0
    values = [np.sum(values, axis=0)] if paired else values
    carry = float(np.nan_to_num(effective_flips(np.concatenate([theta - theta.mean() for theta in values]))))
    if paired:
        return Variance(_spread(values[0]), sides[0].df()), carry
    each = [Variance(_spread(theta), side.df()) for theta, side in zip(values, sides, strict=True)]
    total = sum(item.value for item in each)
    parts = sum(item.value**2 / item.df for item in each)
    return Variance(total, total**2 / parts if parts > 0 else min(item.df for item in each)), carry


def _spread(theta: FloatArray) -> float:
    """The jackknife's variance from the (G,) values without each cluster: that of the mean of Tukey's pseudo-values."""
    G = len(theta)
    found = clustered_variance((G - 1) * (theta.mean() - theta), design(G))
    assert found is not None  # fewer than two clusters are refused before
    return found.value


def _resampled(sides: Sequence[Side], signs: Sequence[float], settings: Settings, paired: bool) -> FloatArray:
    """(B,) values of the contrast with clusters drawn with replacement; paired, one draw serves both runs."""
    B = settings.resamples
    if any(side.item.stats is None for side in sides):
        B = min(B, CALLS)
    rng = np.random.default_rng(settings.seed)
    total = np.zeros(B)
    resampled = [side.resampler() for side in sides]
    for group in [list(range(len(sides)))] if paired else [[r] for r in range(len(sides))]:
        start = 0
        for picked in resampling.draws(sides[group[0]].G, B, rng):
            rows = slice(start, start + len(picked))
            start = rows.stop
            for r in group:
                total[rows] += signs[r] * resampled[r](picked)
    return total


def noise_of(sides: Sequence[Side], signs: Sequence[float], settings: Settings, paired: bool) -> CorpusNoise:
    found: set[str] = set()
    values = [side.values() for side in sides]
    each = tuple(finite(float(np.mean(value))) if len(value) else None for value in values)
    value = None
    if all(item is not None for item in each):
        value = sum(a * v for a, v in zip(signs, each, strict=True) if v is not None)
    if any(len(side.rows) < 2 for side in sides):
        found.add("too_few_questions")
    elif any(side.G < 2 for side in sides):
        found.add("too_few_clusters")
    if found or value is None:
        return CorpusNoise(value, each, None, None, None, None, None, None, frozenset(found or {"too_few_questions"}))
    total = _resampled(sides, signs, settings, paired)
    kept = np.sort(total[np.isfinite(total)])
    if len(kept) < len(total) / 2:
        return CorpusNoise(value, each, None, None, None, None, None, None, frozenset({"too_few_questions"}))
    distribution: resampling.Distribution | None = resampling.Distribution(value, kept, 0.0)
    V = float(kept.var(ddof=1))
    known, carry = _jackknife(sides, signs, V, paired)
    flat = math.sqrt(V) <= ROUNDING * max(1.0, *(float(np.abs(theta).max()) for theta in values))
    if flat:
        V, distribution, carry = 0.0, None, 0.0  # a point is no interval
    prediction = data = 0.0
    for side, theta, a in zip(sides, values, signs, strict=True):
        if side.repeats < 2:
            found.add("single_repeat")
            continue
        spread = float(np.var(theta, ddof=1))
        if spread <= (ROUNDING * max(1.0, float(np.abs(theta).max()))) ** 2:
            found.add("identical_scores_only" if side.item.answers_differ else "identical_repeats")
        prediction += a * a * spread
        data += a * a * spread / side.repeats
    found |= {code for side in sides for code in side.item.diagnostics}
    identified = not found & UNSPLIT
    of_data, of_answers = (V - data, prediction) if identified else (None, None)
    found |= noise_codes(known.df, zero=flat, var_data=of_data)
    fewest, all_noise = min(side.G for side in sides), V + prediction - data
    codes = frozenset(found)
    return CorpusNoise(value, each, V, of_data, of_answers, all_noise, known, distribution, codes, fewest, carry)


def swap_p(sides: Sequence[Side], settings: Settings) -> float:
    """Permutation p: under the null the two runs' answers to a cluster could as well be exchanged."""
    a, b = sides
    if (a.item.stats is None) != (b.item.stats is None):
        raise InputError(
            f"{a.item.task}, {a.item.metric}: one run has its sums and the other its records, so their answers cannot "
            "be exchanged: use `test='bootstrap'`"
        )
    G = a.G
    B = settings.resamples if a.item.stats is not None and b.item.stats is not None else min(settings.resamples, CALLS)
    rng = np.random.default_rng(settings.seed)
    swapped_a, swapped_b = _swapper(a, b), _swapper(b, a)
    as_it_is = np.zeros((1, G), dtype=np.bool_)
    observed = float(np.abs(swapped_a(as_it_is) - swapped_b(as_it_is))[0])
    limit = observed - 1e-10 * max(1.0, observed)
    extreme = known = 0
    for start in range(0, B, 64):
        swap = rng.random((min(64, B - start), G)) < 0.5
        found = np.abs(swapped_a(swap) - swapped_b(swap))
        known += int(np.isfinite(found).sum())
        extreme += int((found >= limit).sum())
    return (extreme + 1) / (known + 1)


def _swapper(one: Side, other: Side) -> Callable[[BoolArray], FloatArray]:
    """(rows, G) clusters to swap → (rows,) the mean over repeats of `one`'s metric with `other`'s answers there.

    Two runs may have different numbers of repeats: repeat k meets repeat k modulo the other's number.
    """
    K = max(one.repeats, other.repeats)
    if one.item.stats is not None and other.item.stats is not None:
        own, others = (side.sums([k % side.repeats for k in range(K)]).reshape(side.G, -1) for side in (one, other))
        whole, change = own.sum(axis=0), others - own

        def from_sums(swap: BoolArray) -> FloatArray:
            totals = whole + swap.astype(np.float64) @ change
            means: FloatArray = one._from_sums(totals.reshape(len(swap), K, -1)).mean(axis=-1)
            return means

        return from_sums

    def by_calls(swap: BoolArray) -> FloatArray:
        out = np.empty(len(swap))
        for b, row in enumerate(swap):
            exchanged = row[one.codes]
            out[b] = np.mean([one._call_mixed(other, exchanged, k) for k in range(K)])
        return out

    return by_calls
