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

from ..arrays import BoolArray, FloatArray, IntArray, blank
from ..data.clusters import both_ways
from ..data.matching import pair
from ..data.native_values import MISMATCH, reproduces
from ..data.scores import CALLS, CorpusScores, Run
from ..errors import InputError, NothingSharedError
from ..results.diagnostics import UNSPLIT
from ..results.rows import Estimate, estimate
from ..settings import Settings, check_scale
from ..stats import decision, intervals, resampling
from ..stats.cluster_variance import Variance, cells, clustered_variance
from ..stats.contrast import cluster_codes, design
from ..stats.intervals import effective_flips
from ..stats.moments import Moments, undefined_moments
from ..stats.pairs import Leads, sides_of
from ..stats.tolerances import FEW_CARRY, FEW_CARRY_DIFFERENCE, FEW_RESAMPLED, ROUNDING, SLACK
from .difference import by_bootstrap
from .ranges import hull, outside
from .rows import Evidence, Interval, RowDecision, about, mean_fields, row_of

_LEFT_OUT = 200
"""Clusters up to which a metric that has to be called is called without each; with more the jackknife's variance
is the bootstrap's."""


@dataclass(frozen=True, eq=False)
class Side:
    """The answers of one run to the n questions that are used."""

    part: CorpusScores
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
        by_cell = cells(design(len(self), None if len(self) == self.G else self.codes))
        return by_cell.df().item() if by_cell.identified.all() else math.nan

    def _of_sums(self, sums: FloatArray) -> FloatArray:
        assert self.part.value is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.part.value(sums), dtype=np.float64)

    def _call(self, rows: IntArray, k: int) -> float:
        """The metric of the k-th answers; NaN where there are none, or where it has no value."""
        assert self.part.aggregate is not None
        answers = [row[k] for i in rows if k < len(row := self.records[i]) and row[k] is not None]
        try:
            return float(self.part.aggregate(answers)) if answers else math.nan
        except (ArithmeticError, ValueError):  # a resample without any positive, an empty reference
            return math.nan


def _answered(part: CorpusScores) -> BoolArray:
    """(n,) the questions that have an answer.

    Raises:
        InputError: they are clustered in two crossed ways.
    """
    if (part.stats is None or part.value is None) == (part.aggregate is None):
        raise ValueError(f"{part.task}, {part.metric}: give records and aggregate, or stats and value")
    if both_ways(part.clusters) is not None:
        raise InputError(
            f"{part.task}, {part.metric}: a metric that is no mean is resampled by whole clusters of one kind, and "
            "these questions are clustered in two crossed ways: name one with `cluster`, or leave this metric out with "
            "`metrics`"
        )
    if part.stats is not None:
        return np.asarray(np.isfinite(part.stats).any(axis=(1, 2)))
    return np.array([any(record is not None for record in row) for row in part.records], dtype=np.bool_)


def _side(part: CorpusScores, rows: IntArray, labels: Sequence[str] | None) -> Side:
    """The answers to some questions, with the cluster labels of these."""
    codes, G = (np.arange(len(rows)), len(rows)) if labels is None else cluster_codes(labels)
    if part.stats is not None:
        return Side(part, part.stats[rows], (), part.stats.shape[1], codes, G)
    repeats = max((len(row) for row in part.records), default=0)
    return Side(part, None, [part.records[i] for i in rows], repeats, codes, G)


def _alone(part: CorpusScores) -> Side:
    """All answers of one run."""
    rows = np.flatnonzero(_answered(part))
    return _side(part, rows, None if part.clusters is None else [part.clusters[i] for i in rows])


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
class SumNoise:
    """Σ ± (mean over repeats), and its noise."""

    m: Moments
    """(1,)"""
    codes: frozenset[str]
    each: tuple[float, ...]
    """The mean over repeats of every side; NaN where there is none."""
    variance: float = math.nan
    """The variance that intervals take, by the jackknife."""
    distribution: resampling.Distribution | None = None
    """None where nothing varies, too."""
    carried_by: float = math.inf
    """The effective number of clusters that the metric rests on, as a rare class's positives; infinite if unknown."""


def _jackknife(sides: Sequence[Side], signs: Sequence[float], V: float, paired: bool) -> tuple[Variance, float]:
    """The variance of Σ ± metric by leaving out clusters [Efron1981], and how many clusters carry it.

    The variance is V where the metric cannot be computed without each cluster. Sides that are independent samples have
    Satterthwaite's degrees of freedom, as in Welch's test. The clusters that carry it are (Σ u²)²/Σ u⁴ with u what each
    moves: of a rare class's F1 the true and false positives and the misses, however many questions there are. Infinite
    where leaving out takes too many calls.
    """
    fewest = min(side.df() for side in sides)
    left = [side.left_out() for side in sides]
    values = [a * theta for a, theta in zip(signs, left, strict=True) if theta is not None]
    if len(values) < len(sides):
        return Variance(V, fewest), math.inf
    if not all(np.isfinite(theta).all() for theta in values):
        return Variance(V, fewest), 0.0  # a cluster without which there is no such metric carries all of it
    values = [np.sum(values, axis=0)] if paired else values
    carry = float(np.nan_to_num(effective_flips(np.concatenate([theta - theta.mean() for theta in values]))))
    each = [Variance(jackknife_variance(theta), side.df()) for theta, side in zip(values, sides, strict=False)]
    total = sum(of_side.value for of_side in each)
    spread = sum(of_side.value**2 / of_side.df for of_side in each)
    return Variance(total, total**2 / spread if len(each) > 1 and spread > 0 else min(x.df for x in each)), carry


def jackknife_variance(theta: FloatArray) -> float:
    """The jackknife's variance from the (G,) values without each cluster: that of the mean of Tukey's pseudo-values."""
    G = len(theta)
    variance = clustered_variance((G - 1) * (theta.mean() - theta), design(G))
    assert variance is not None  # fewer than two clusters are refused before
    return variance.value


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
        G = together[0][0].G
        for rows, picked in resampling.draws(G, B, rng):
            counts = resampling.counts(picked, G)
            for side, sign in together:
                total[rows] += sign * side.with_counts(counts).mean(axis=1)
    return total


def _noise(sides: Sequence[Side], signs: Sequence[float], settings: Settings) -> SumNoise:
    """The contrast of the sides, which are paired unless the settings say that they are not, with its noise."""
    paired, values = not settings.unpaired, [side.values() for side in sides]
    each = tuple(float(np.mean(theta)) if len(theta) else math.nan for theta in values)
    value, fewest = float(np.dot(signs, each)), min(side.G for side in sides)
    samples = sides[:1] if paired else sides
    n, G = sum(map(len, samples)), sum(side.G for side in samples)
    m = replace(undefined_moments(np.array([float(n)]), np.array([float(G)])), mean=np.array([value]))
    total = np.empty(0) if fewest < 2 or not math.isfinite(value) else _resampled(sides, signs, settings, paired)
    kept = np.sort(total[np.isfinite(total)])
    if len(kept) < max(1, len(total) / 2):
        code = "too_few_clusters" if fewest < 2 <= min(map(len, sides)) else "too_few_questions"
        return SumNoise(m, frozenset({code}), each)
    V = float(kept.var(ddof=1))
    jackknife, carry = _jackknife(sides, signs, V, paired)
    flat = math.sqrt(V) <= ROUNDING * max(1.0, *(float(np.abs(theta).max()) for theta in values))
    codes, prediction, data = set[str](), 0.0, 0.0
    for side, theta in zip(sides, values, strict=True):
        codes.update(side.part.diagnostics)
        if side.repeats < 2:
            codes.add("single_repeat")
            continue
        spread = float(np.var(theta, ddof=1))
        if spread <= (ROUNDING * max(1.0, float(np.abs(theta).max()))) ** 2:
            codes.add("identical_scores_only" if side.part.answers_differ else "identical_repeats")
        prediction += spread
        data += spread / side.repeats
    V = 0.0 if flat else V
    of_data, of_answers = (math.nan, math.nan) if codes & UNSPLIT else (V - data, prediction)
    codes |= decision.noise_codes(jackknife.df, zero=flat, var_data=of_data)
    numbers = {"variance": V, "df": jackknife.df, "var_data": of_data, "var_prediction": of_answers}
    columns = {name: np.array([x]) for name, x in (numbers | {"var_total": V + prediction - data}).items()}
    m = replace(m, **columns, zero_variance=np.array([flat]))
    if flat:  # a point is no interval
        return SumNoise(m, frozenset(codes), each, jackknife.value, carried_by=0.0)
    return SumNoise(m, frozenset(codes), each, jackknife.value, resampling.Distribution(value, kept, 0.0), carry)


def _range(part: CorpusScores, theta: FloatArray, settings: Settings) -> tuple[float, float] | None:
    """Lowest and highest value of the metric, where they are said or declared: one value is no ground for a guess."""
    bounds = settings.range or part.bounds
    values = theta[np.isfinite(theta)]
    if bounds is None or len(values) == 0:
        return bounds
    low, high = float(values.min()), float(values.max())
    if low < bounds[0] - SLACK or high > bounds[1] + SLACK:
        raise InputError(outside(f"{part.task}, {part.metric}", low, high, bounds, said=settings.range is not None))
    return bounds


def _interval(part: CorpusScores, noise: SumNoise, bounds: tuple[float, float] | None, settings: Settings) -> Interval:
    """Wilson at p(1 − p)/V in a known range, else the bootstrap's percentiles with t's tails; or what is asked for."""
    wanted, level, mean, df = settings.interval, settings.level, noise.m.mean.item(), noise.m.df.item()
    if wanted == "clopper-pearson" or (wanted in ("wilson", "korn-graubard") and bounds is None):
        raise InputError(
            f"{part.task}, {part.metric}: a metric over all questions at once has no interval {wanted}"
            + ("" if bounds is not None else " without a known range (`range=(LOW, HIGH)`)")
            + ": use `interval='bootstrap'` or t"
        )
    flat = noise.distribution is None
    name = ("bootstrap" if bounds is None else "wilson") if wanted == "auto" or (flat and bounds) else wanted
    if math.isnan(df) or not math.isfinite(mean):
        return Interval()
    if name in ("t", "bootstrap"):
        if noise.distribution is None:  # a point is no interval
            return Interval()
        if name == "t":
            return Interval(intervals.t_interval(mean, math.sqrt(noise.variance), df, level), name)
        return Interval(noise.distribution.expanded(noise.variance, df).interval(level, "percentile"), name)
    assert bounds is not None
    width, G = bounds[1] - bounds[0], int(noise.m.n_clusters[0])
    p = min(max((mean - bounds[0]) / width, 0.0), 1.0)
    n = intervals.binomial_size(p, 0.0 if flat else math.sqrt(noise.variance) / width, math.inf, G, G)
    if name == "korn-graubard":
        return Interval(intervals.rescaled(intervals.korn_graubard(p, n, math.inf, df, level), bounds), name)
    return Interval(intervals.rescaled(intervals.wilson(p, n, float(intervals.critical(level, df))), bounds), name)


def estimate_corpus(part: CorpusScores, run: Run, settings: Settings) -> Estimate:
    """A corpus metric, averaged over repeats, with its noise by the cluster bootstrap."""
    settings.check("corpus", f"{part.task}, {part.metric}")
    side = _alone(part)
    noise = _noise([side], [1.0], replace(settings, unpaired=False))
    theta = side.values()
    codes, bounds = noise.codes | _codes(part, theta), _range(part, theta, settings)
    interval = _interval(part, noise, bounds, settings)
    if interval.name != "none" and (side.G < FEW_RESAMPLED or noise.carried_by < FEW_CARRY):
        codes |= {"few_resampled"}
    fields = mean_fields(part.key, run, noise.m, settings, interval, clustered=False) | {
        "higher_is_better": part.higher_is_better,
        "repeats_min": side.repeats,
        "repeats_max": side.repeats,
        "range": bounds,
        "estimator": "bootstrap",
        "n_missing": part.n_missing,
        "cluster": part.cluster_spec if part.clusters is not None else None,
        "diagnostics": tuple(sorted(codes)),
    }
    return estimate(**fields)


def _codes(part: CorpusScores, theta: FloatArray) -> set[str]:
    """The diagnostics that one run's metric brings along; `theta` is its value on each repeat."""
    codes = set(part.diagnostics)
    if part.native is None or not len(theta):
        return codes
    ours = float(theta[0] if part.native_is_first else theta.mean())
    return codes if reproduces(ours, part.native) else codes | {MISMATCH}


def _test(noise: SumNoise, sides: Sequence[Side], test: str, settings: Settings) -> decision.Test:
    """The bootstrap or the permutation test where it is asked for; else t's."""
    tested = decision.Test()
    if noise.distribution is None:
        return tested
    if "bootstrap" in (test, settings.interval_of_difference):
        tested = by_bootstrap(noise.distribution.expanded(noise.variance, noise.m.df.item()), settings, "percentile")
    if test == "permutation":
        tested = replace(tested, p=np.array([_swap_p(sides[0], sides[1], settings)]), by_p=True)
    return tested


def _swap_p(a: Side, b: Side, settings: Settings) -> float:
    """Permutation p: under the null the two runs' answers to a cluster could as well be exchanged."""
    if (a.stats is None) != (b.stats is None):
        raise InputError(
            f"{a.part.task}, {a.part.metric}: one run has its sums and the other its records, so their answers cannot "
            "be exchanged: use `test='bootstrap'`"
        )
    rng, B = np.random.default_rng(settings.seed), _resamples((a, b), settings)
    both_a = _one_below_the_other(a, b)
    both_b = replace(both_a, part=b.part)

    def distance(swap: BoolArray) -> FloatArray:
        with_a, with_b = (np.concatenate(ways, axis=1).astype(np.float64) for ways in ((~swap, swap), (swap, ~swap)))
        return np.asarray(np.abs(both_a.with_counts(with_a).mean(axis=1) - both_b.with_counts(with_b).mean(axis=1)))

    observed = distance(np.zeros((1, a.G), dtype=np.bool_)).item()
    limit = observed - 1e-10 * max(1.0, observed)
    extreme = n_finite = 0
    for start in range(0, B, 64):
        distances = distance(rng.random((min(64, B - start), a.G)) < 0.5)
        n_finite += int(np.isfinite(distances).sum())
        extreme += int((distances >= limit).sum())
    return (extreme + 1) / (n_finite + 1)


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
        return Side(a.part, stats, (), K, codes, 2 * a.G)
    records = [[row[k % len(row)] for k in range(K)] if row else [] for row in (*a.records, *b.records)]
    return Side(a.part, None, records, K, codes, 2 * a.G)


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
    m, unknown = noise.m, np.full(1, math.nan)
    codes = noise.codes.union(*(_codes(part, _alone(part).values()) for part in (a, b)))
    if noise.distribution is not None and noise.carried_by < FEW_CARRY_DIFFERENCE:
        codes |= {"few_resampled"}
    codes |= {"unpaired"} if settings.unpaired else {"unpaired_questions"} if any(only) else set()
    codes |= {"identical_scores"} if m.zero_variance[0] and abs(m.mean[0]) <= ROUNDING else set()
    bounds = settings.range or hull([x.bounds for x in (a, b) if x.bounds is not None])
    check_scale("margin", settings.margin, bounds, a.metric)
    width = math.inf if bounds is None else bounds[1] - bounds[0]
    of = decision.Differences(m.mean, np.array([noise.variance]), m.df, m.zero_variance, unknown, width=width)
    test = settings.test if settings.test in ("bootstrap", "permutation") else "t"
    means = [replace(undefined_moments(m.n, m.n_clusters), mean=np.array([mean])) for mean in noise.each]
    own = sides_of([np.array([x]) for x in only], [np.array([side.repeats]) for side in sides], means, unknown)
    evidence = Evidence(m, of, _test(noise, sides, test, settings), blank(Leads, 1), own)
    spec = next((x.cluster_spec for x in (a, b) if x.clusters is not None), None)
    return row_of(evidence, codes, settings, **about([a], [b], run_a, run_b), test=test, cluster=spec)
