"""Metrics that are not means (bleu, F1, perplexity, …): their noise by resampling clusters of questions.

With θ_k the metric over all answers of repeat k, the reported value is the mean of θ_k. V is its
cluster-bootstrap variance, var_prediction the variance of the K values θ_k, and
var_data = V − var_prediction/K. Intervals have the degrees of freedom of the clusters and the variance
of the jackknife over them, which is the larger one where clusters are few: Wilson's for a metric in a
known range, else percentile intervals with t's tails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..data.clusters import both_ways
from ..data.matching import pair
from ..data.native_values import MISMATCH, reproduces
from ..data.scores import CALLS, CorpusScores, Run
from ..errors import InputError, NothingSharedError
from ..results.diagnostics import UNSPLIT
from ..results.forms import finite
from ..results.rows import Estimate, estimate
from ..settings import Settings, check_scale
from ..stats import decision, intervals, resampling
from ..stats.cluster_variance import Variance, cells, clustered_variance
from ..stats.contrast import cluster_codes, design
from ..stats.decision import detectable_distance
from ..stats.intervals import effective_flips
from ..stats.moments import Moments, undefined_moments
from ..stats.tolerances import FEW_CARRY, FEW_CARRY_DIFFERENCE, FEW_RESAMPLED, ROUNDING, SLACK
from .difference import RowDecision, by_bootstrap
from .ranges import outside
from .sample import noise_fields

_LEFT_OUT = 200
"""Clusters up to which a metric that has to be called is called without each; with more the jackknife's variance
is the bootstrap's."""


@dataclass(frozen=True, eq=False)
class Side:
    """The answers of one run to the n questions that are used."""

    item: CorpusScores
    stats: FloatArray | None
    """(n, K, S) what is summed over the questions; None where the metric has to be called."""
    records: Sequence[Sequence[Any]]
    """n rows of answers, else."""
    repeats: int
    codes: IntArray
    """(n,) cluster code of each question."""
    G: int

    def __len__(self) -> int:
        return len(self.codes)

    def values(self) -> FloatArray:
        """(K,) the metric of each repeat, over all questions."""
        if self.stats is not None:
            return self._of_sums(np.nansum(self.stats, axis=0))
        return self.with_counts(np.ones((1, self.G))).ravel()

    def with_counts(self, counts: FloatArray) -> FloatArray:
        """(B, K) the metric of each repeat, with every cluster as often as (B, G) counts say."""
        if self.stats is not None:
            return self._of_sums(np.tensordot(counts, self.sums, axes=1))
        drawn = (np.repeat(np.arange(len(self)), times[self.codes]) for times in counts.astype(np.intp))
        return np.array([[self._call(rows, k) for k in range(self.repeats)] for rows in drawn])

    @cached_property
    def sums(self) -> FloatArray:
        """(G, K, S) sums over the questions of each cluster."""
        assert self.stats is not None
        stats = np.nan_to_num(self.stats)
        out = np.zeros((self.G, *stats.shape[1:]))
        np.add.at(out, self.codes, stats)
        return out

    def left_out(self) -> FloatArray | None:
        """(G,) the mean over repeats of the metric without each cluster; None where that takes too many calls."""
        if self.stats is not None:
            return np.asarray(self._of_sums(self.sums.sum(axis=0) - self.sums).mean(axis=-1))
        return None if self.G > _LEFT_OUT else np.asarray(self.with_counts(1 - np.eye(self.G)).mean(axis=1))

    def df(self) -> float:
        """Degrees of freedom of the clusters: those of CR2 for a mean over the same questions."""
        found = cells(design(len(self), None if len(self) == self.G else self.codes))
        return found.df().item() if found.identified.all() else math.nan

    def _of_sums(self, sums: FloatArray) -> FloatArray:
        assert self.item.value is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.item.value(sums), dtype=np.float64)

    def _call(self, rows: IntArray, k: int) -> float:
        """The metric of the k-th answers; NaN where there are none, or where it has no value."""
        assert self.item.aggregate is not None
        answers = [row[k] for i in rows if k < len(row := self.records[i]) and row[k] is not None]
        try:
            return float(self.item.aggregate(answers)) if answers else math.nan
        except (ArithmeticError, ValueError):  # a resample without any positive, an empty reference
            return math.nan


def _answered(item: CorpusScores) -> BoolArray:
    """(n,) the questions that have an answer.

    Raises:
        InputError: they are clustered in two crossed ways.
    """
    if (item.stats is None or item.value is None) == (item.aggregate is None):
        raise ValueError(f"{item.task}, {item.metric}: give records and aggregate, or stats and value")
    if both_ways(item.clusters) is not None:
        raise InputError(
            f"{item.task}, {item.metric}: a metric that is no mean is resampled by whole clusters of one kind, and "
            "these questions are clustered in two crossed ways: name one with `cluster`, or leave this metric out with "
            "`metrics`"
        )
    if item.stats is not None:
        return np.asarray(np.isfinite(item.stats).any(axis=(1, 2)))
    return np.array([any(record is not None for record in row) for row in item.records], dtype=np.bool_)


def _side(item: CorpusScores, rows: IntArray, labels: Sequence[str] | None) -> Side:
    """The answers to some questions, with the cluster labels of these."""
    codes, G = (np.arange(len(rows)), len(rows)) if labels is None else cluster_codes(labels)
    if item.stats is not None:
        return Side(item, item.stats[rows], (), item.stats.shape[1], codes, G)
    repeats = max((len(row) for row in item.records), default=0)
    return Side(item, None, [item.records[i] for i in rows], repeats, codes, G)


def _alone(item: CorpusScores) -> Side:
    """All answers of one run."""
    rows = np.flatnonzero(_answered(item))
    return _side(item, rows, None if item.clusters is None else [item.clusters[i] for i in rows])


def _shared(a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run) -> tuple[tuple[Side, Side], tuple[int, int]]:
    """Both sides on the questions that both have, and how many more each has."""
    pairs = pair(a.questions, b.questions)
    if not pairs.rows_a:
        raise NothingSharedError(
            f"{a.task}: {run_a.name} and {run_b.name} have no question in common; or use `unpaired=True`"
        )
    answered_a, answered_b = _answered(a), _answered(b)
    both = answered_a[pairs.rows_a] & answered_b[pairs.rows_b]
    rows_a, rows_b = np.array(pairs.rows_a)[both], np.array(pairs.rows_b)[both]
    clusters, rows = (a.clusters, rows_a) if a.clusters is not None else (b.clusters, rows_b)
    labels = None if clusters is None else [clusters[i] for i in rows]
    only = int(answered_a.sum()) - len(rows_a), int(answered_b.sum()) - len(rows_b)
    return (_side(a, rows_a, labels), _side(b, rows_b, labels)), only


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Σ ± (mean over repeats), and its noise."""

    m: Moments
    each: tuple[float | None, ...]
    """The mean over repeats of every side; None where there is none."""
    variance: float = math.nan
    """The variance that intervals take, by the jackknife."""
    distribution: resampling.Distribution | None = None
    """None where nothing varies, too."""
    carried_by: float | None = None
    """The effective number of clusters that the metric rests on; None where that is not known."""

    def rests_on_few(self, fewest: float) -> bool:
        """Whether fewer clusters than these carry the metric, as a rare class's positives do."""
        return self.carried_by is not None and self.carried_by < fewest


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
    each = [Variance(jackknife_variance(theta), side.df()) for theta, side in zip(values, sides, strict=False)]
    if paired:
        return each[0], carry
    total = sum(of_side.value for of_side in each)
    spread = sum(of_side.value**2 / of_side.df for of_side in each)
    return Variance(total, total**2 / spread if spread > 0 else min(of_side.df for of_side in each)), carry


def jackknife_variance(theta: FloatArray) -> float:
    """The jackknife's variance from the (G,) values without each cluster: that of the mean of Tukey's pseudo-values."""
    G = len(theta)
    found = clustered_variance((G - 1) * (theta.mean() - theta), design(G))
    assert found is not None  # fewer than two clusters are refused before
    return found.value


def _resamples(sides: Sequence[Side], settings: Settings) -> int:
    """How many resamples are drawn: fewer of a metric that has to be called."""
    return min(settings.resamples, CALLS) if any(side.stats is None for side in sides) else settings.resamples


def _resampled(sides: Sequence[Side], signs: Sequence[float], settings: Settings, paired: bool) -> FloatArray:
    """(B,) values of the contrast with clusters drawn with replacement; paired, one draw serves both runs."""
    B = _resamples(sides, settings)
    rng = np.random.default_rng(settings.seed)
    total = np.zeros(B)
    signed = list(zip(sides, signs, strict=True))
    for together in [signed] if paired else [[of_side] for of_side in signed]:
        G, start = together[0][0].G, 0
        for picked in resampling.draws(G, B, rng):
            rows = slice(start, start + len(picked))
            start = rows.stop
            counts = resampling.counts(picked, G)
            for side, sign in together:
                total[rows] += sign * side.with_counts(counts).mean(axis=1)
    return total


def _noise(sides: Sequence[Side], signs: Sequence[float], settings: Settings) -> Noise:
    """The contrast of the sides, which are paired unless the settings say that they are not, with its noise."""
    paired = not settings.unpaired
    values = [side.values() for side in sides]
    each = tuple(finite(float(np.mean(theta))) if len(theta) else None for theta in values)
    value = finite(sum(a * (math.nan if x is None else x) for a, x in zip(signs, each, strict=True)))
    samples = sides[:1] if paired else sides
    n, G = sum(map(len, samples)), sum(side.G for side in samples)
    fewest = min(side.G for side in sides)
    total = np.empty(0) if fewest < 2 or value is None else _resampled(sides, signs, settings, paired)
    kept = np.sort(total[np.isfinite(total)])
    if value is None or len(kept) < max(1, len(total) / 2):
        code = "too_few_clusters" if fewest < 2 <= min(map(len, sides)) else "too_few_questions"
        return Noise(replace(undefined_moments(n, G, code), mean=value), each)
    V = float(kept.var(ddof=1))
    known, carry = _jackknife(sides, signs, V, paired)
    flat = math.sqrt(V) <= ROUNDING * max(1.0, *(float(np.abs(theta).max()) for theta in values))
    codes, prediction, data = set[str](), 0.0, 0.0
    for side, theta, a in zip(sides, values, signs, strict=True):
        codes.update(side.item.diagnostics)
        if side.repeats < 2:
            codes.add("single_repeat")
            continue
        spread = float(np.var(theta, ddof=1))
        if spread <= (ROUNDING * max(1.0, float(np.abs(theta).max()))) ** 2:
            codes.add("identical_scores_only" if side.item.answers_differ else "identical_repeats")
        prediction += a * a * spread
        data += a * a * spread / side.repeats
    V = 0.0 if flat else V
    of_data, of_answers = (None, None) if codes & UNSPLIT else (V - data, prediction)
    codes |= decision.noise_codes(known.df, zero=flat, var_data=of_data)
    m = Moments(
        n,
        G,
        value,
        variance=V,
        df=finite(known.df),
        naive=None,
        var_data=of_data,
        var_prediction=of_answers,
        var_total=V + prediction - data,
        zero_variance=flat,
        diagnostics=tuple(codes),
    )
    if flat:  # a point is no interval
        return Noise(m, each, known.value, carried_by=0.0)
    return Noise(m, each, known.value, resampling.Distribution(value, kept, 0.0), carry)


def _range(item: CorpusScores, theta: FloatArray, settings: Settings) -> tuple[float, float] | None:
    """Lowest and highest value of the metric, where they are said or declared: one value is no ground for a guess."""
    bounds = settings.range or item.bounds
    known = theta[np.isfinite(theta)]
    if bounds is None or len(known) == 0:
        return bounds
    low, high = float(known.min()), float(known.max())
    if low < bounds[0] - SLACK or high > bounds[1] + SLACK:
        raise InputError(outside(f"{item.task}, {item.metric}", low, high, bounds, said=settings.range is not None))
    return bounds


def _interval(
    item: CorpusScores, noise: Noise, bounds: tuple[float, float] | None, settings: Settings
) -> tuple[intervals.Limits[float] | None, str]:
    """Wilson at p(1 − p)/V in a known range, else the bootstrap's percentiles with t's tails; or what is asked for."""
    wanted, m, V, level = settings.interval, noise.m, noise.variance, settings.level
    if wanted == "clopper-pearson" or (wanted in ("wilson", "korn-graubard") and bounds is None):
        raise InputError(
            f"{item.task}, {item.metric}: a metric over all questions at once has no interval {wanted}"
            + ("" if bounds is not None else " without a known range (`range=(LOW, HIGH)`)")
            + ": use `interval='bootstrap'` or t"
        )
    if m.mean is None or m.df is None:
        return None, "none"
    flat = noise.distribution is None
    name = ("bootstrap" if bounds is None else "wilson") if wanted == "auto" or (flat and bounds) else wanted
    if name in ("t", "bootstrap"):
        if noise.distribution is None:  # a point is no interval
            return None, "none"
        if name == "t":
            return intervals.t_interval(m.mean, math.sqrt(V), m.df, level), name
        return noise.distribution.expanded(V, m.df).interval(level, "percentile"), name
    assert bounds is not None
    width = bounds[1] - bounds[0]
    p = min(max((m.mean - bounds[0]) / width, 0.0), 1.0)
    n = intervals.binomial_size(p, 0.0 if flat else math.sqrt(V) / width, math.inf, m.n_clusters, m.n_clusters)
    if name == "korn-graubard":
        return intervals.rescaled(intervals.korn_graubard(p, n, math.inf, m.df, level), bounds), name
    return intervals.rescaled(intervals.wilson(p, n, float(intervals.critical(level, m.df))), bounds), name


def estimate_corpus(item: CorpusScores, run: Run, settings: Settings) -> Estimate:
    """A corpus metric, averaged over repeats, with its noise by the cluster bootstrap."""
    settings.check("corpus", f"{item.task}, {item.metric}")
    side = _alone(item)
    noise = _noise([side], [1.0], replace(settings, unpaired=False))
    m, theta = noise.m, side.values()
    codes = {*m.diagnostics, *_codes(item, theta)}
    bounds = _range(item, theta, settings)
    ci, interval = _interval(item, noise, bounds, settings)
    if ci is not None and (side.G < FEW_RESAMPLED or noise.rests_on_few(FEW_CARRY)):
        codes.add("few_resampled")
    columns = noise_fields(m, clustered=False)
    return estimate(
        task=item.task,
        metric=item.metric,
        scorer=item.scorer,
        model=run.model,
        run=run.name,
        higher_is_better=item.higher_is_better,
        n_questions=m.n,
        n_clusters=m.n_clusters,
        repeats_min=side.repeats,
        repeats_max=side.repeats,
        mean=m.mean,
        ci_low=ci.low if ci else None,
        ci_high=ci.high if ci else None,
        level=settings.level,
        df=m.df,
        interval=interval,
        range=bounds,
        estimator="bootstrap",
        n_missing=item.n_missing,
        cluster=item.cluster_spec if item.clusters is not None else None,
        diagnostics=tuple(sorted(codes)),
        mde=detectable_distance(columns["se"], m.df, settings.level),
        **columns,
    )


def _codes(item: CorpusScores, theta: FloatArray) -> set[str]:
    """The diagnostics that one run's metric brings along; `theta` is its value on each repeat."""
    codes = set(item.diagnostics)
    if item.native is None or not len(theta):
        return codes
    ours = float(theta[0] if item.native_is_first else theta.mean())
    return codes if reproduces(ours, item.native) else codes | {MISMATCH}


def _decide(
    noise: Noise, sides: Sequence[Side], bounds: tuple[float, float] | None, settings: Settings, test: str
) -> decision.Decision:
    """The t test with the clusters' degrees of freedom, or the bootstrap or permutation test that is asked for."""
    m, distribution = noise.m.columns(), noise.distribution
    width = math.inf if bounds is None else bounds[1] - bounds[0]
    nothing = np.array([np.nan])
    of = decision.Differences(m.mean, np.array([noise.variance]), m.df, m.zero_variance, nothing, width=width)
    by = decision.Test()
    if distribution is not None and "bootstrap" in (test, settings.interval_of_difference):
        by = by_bootstrap(distribution.expanded(noise.variance, m.df.item()), settings, "percentile")
    if distribution is not None and test == "permutation":
        by = replace(by, p=np.array([_swap_p(sides[0], sides[1], settings)]), by_p=True)
    return decision.decide(of, settings, by)


def _swap_p(a: Side, b: Side, settings: Settings) -> float:
    """Permutation p: under the null the two runs' answers to a cluster could as well be exchanged."""
    if (a.stats is None) != (b.stats is None):
        raise InputError(
            f"{a.item.task}, {a.item.metric}: one run has its sums and the other its records, so their answers cannot "
            "be exchanged: use `test='bootstrap'`"
        )
    rng, B = np.random.default_rng(settings.seed), _resamples((a, b), settings)
    both_a = _one_below_the_other(a, b)
    both_b = replace(both_a, item=b.item)

    def distance(swap: BoolArray) -> FloatArray:
        with_a, with_b = (np.concatenate(ways, axis=1).astype(np.float64) for ways in ((~swap, swap), (swap, ~swap)))
        return np.asarray(np.abs(both_a.with_counts(with_a).mean(axis=1) - both_b.with_counts(with_b).mean(axis=1)))

    observed = distance(np.zeros((1, a.G), dtype=np.bool_)).item()
    limit = observed - 1e-10 * max(1.0, observed)
    extreme = known = 0
    for start in range(0, B, 64):
        found = distance(rng.random((min(64, B - start), a.G)) < 0.5)
        known += int(np.isfinite(found).sum())
        extreme += int((found >= limit).sum())
    return (extreme + 1) / (known + 1)


def _one_below_the_other(a: Side, b: Side) -> Side:
    """The answers of both as 2G clusters, A's first.

    Two runs may have different numbers of repeats: repeat k meets repeat k modulo the other's number.
    """
    K = max(a.repeats, b.repeats)
    codes = np.concatenate([a.codes, a.G + b.codes])
    if a.stats is not None and b.stats is not None:
        stats = np.concatenate(
            [side.stats[:, np.arange(K) % side.repeats] for side in (a, b) if side.stats is not None]
        )
        return Side(a.item, stats, (), K, codes, 2 * a.G)
    records = [[row[k % len(row)] for k in range(K)] if row else [] for row in (*a.records, *b.records)]
    return Side(a.item, None, records, K, codes, 2 * a.G)


def corpus_difference(a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run, settings: Settings) -> RowDecision:
    """A − B of a corpus metric: both are recomputed on the same resampled clusters of questions.

    There is no sign test of questions that have no score of their own.
    """
    settings.check("corpus_difference", f"{a.task}, {a.metric}")
    if settings.unpaired:
        sides = _alone(a), _alone(b)
        only = len(sides[0]), len(sides[1])
    else:
        sides, only = _shared(a, b, run_a, run_b)
    noise = _noise(sides, [1.0, -1.0], settings)
    m = noise.m
    codes = set(m.diagnostics).union(*(_codes(item, _alone(item).values()) for item in (a, b)))
    if noise.distribution is not None and noise.rests_on_few(FEW_CARRY_DIFFERENCE):
        codes.add("few_resampled")
    codes |= {"unpaired"} if settings.unpaired else {"unpaired_questions"} if any(only) else set()
    bounds = settings.range or a.bounds or b.bounds
    check_scale("margin", settings.margin, bounds, a.metric)
    test = settings.test if settings.test in ("bootstrap", "permutation") else "t"
    if m.zero_variance and m.mean is not None and abs(m.mean) <= ROUNDING:
        codes.add("identical_scores")
    return RowDecision.of(
        _decide(noise, sides, bounds, settings, test),
        codes,
        task=a.task,
        metric=a.metric,
        scorer=a.scorer,
        higher_is_better=a.higher_is_better if a.higher_is_better is not None else b.higher_is_better,
        model_a=run_a.model,
        model_b=run_b.model,
        n_questions=m.n,
        n_clusters=m.n_clusters,
        n_only_a=only[0],
        n_only_b=only[1],
        repeats_a=sides[0].repeats,
        repeats_b=sides[1].repeats,
        mean_a=noise.each[0],
        mean_b=noise.each[1],
        diff=m.mean,
        level=settings.level,
        df=m.df,
        test=test,
        n_missing=a.n_missing + b.n_missing,
        cluster=next((x.cluster_spec for x in (a, b) if x.clusters is not None), None),
        **noise_fields(m, clustered=False),
    )
