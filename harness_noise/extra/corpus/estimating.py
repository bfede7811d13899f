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
from functools import cached_property, partial
from typing import Any

import numpy as np

from ...analysis.drawn import by_bootstrap
from ...analysis.ranges import check_range, hull, outside_message
from ...analysis.rows import Evidence, Interval, RowDecision, compared_fields, mean_fields, row_of
from ...arrays import BoolArray, FloatArray, IntArray, blank
from ...choices import BOOTSTRAP, INTERVALS, T_TEST, TESTS, WILSON, T
from ...data.clusters import split_crossed
from ...data.matching import pair_questions
from ...data.native_values import MISMATCH, reproduces
from ...data.questions import by_name
from ...data.scores import CALLS, CorpusScores, Run
from ...errors import InputError, NothingSharedError
from ...results.diagnostics import UNSPLIT
from ...results.rows import Estimate, estimate
from ...settings import Settings, check_scale
from ...stats import decision, intervals, resampling
from ...stats.cluster_variance import Variance, cells, clustered_variance
from ...stats.contrast import cluster_codes, design
from ...stats.data_limit import chi_square
from ...stats.intervals import OneMean, effective_flips
from ...stats.moments import Moments, undefined_moments
from ...stats.pairs import Leads, sides_of
from ...stats.tolerances import FEW_CARRY, FEW_CARRY_DIFFERENCE, FEW_RESAMPLED, ROUNDING, SLACK
from .grouping import delete_one_variance, jackknife_blocks, key_of, seen_of

_MOST_BLOCKS = 500
"""Blocks of clusters that a metric which has to be called is called without."""
_LEFT_OUT = 200
"""The most clusters for which a called metric is called without each. With more, the jackknife is the bootstrap's
variance."""


@dataclass(frozen=True, eq=False)
class Side:
    """The answers of one run to the n questions that are used."""

    part: CorpusScores
    stats: FloatArray | None
    """(n, K, S) values that are summed over the questions, None if the metric must be called."""
    records: Sequence[Sequence[Any]]
    """n rows of answers, else."""
    repeats: int
    codes: IntArray
    """(n,) cluster code of each question."""
    G: int

    def __len__(self) -> int:
        return len(self.codes)

    def values(self) -> FloatArray:
        """Return (K,) values of the corpus metric, one for each repeat, each over all questions."""
        return self.with_counts(np.ones((1, self.G))).ravel()

    def with_counts(self, counts: FloatArray) -> FloatArray:
        """Return (B, K) the metric in B resamples. `counts` (B, G) is how often each cluster is drawn in each."""
        if self.stats is not None:
            return self._of_sums(np.tensordot(counts, self.sums, axes=1))
        drawn = (np.repeat(np.arange(len(self)), times[self.codes]) for times in counts.astype(np.intp))
        return np.array([[self.call(rows, k) for k in range(self.repeats)] for rows in drawn])

    @cached_property
    def sums(self) -> FloatArray:
        """(G, K, S) sums of the questions' statistics over each cluster, NaN as 0."""
        assert self.stats is not None
        stats = np.nan_to_num(self.stats)
        out = np.zeros((self.G, *stats.shape[1:]))
        np.add.at(out, self.codes, stats)
        return out

    def left_out(self) -> FloatArray | None:
        """Return (G,) the metric without one cluster at a time, averaged over repeats. None: too many calls."""
        if self.stats is not None:
            return np.asarray(self._of_sums(self.sums.sum(axis=0) - self.sums).mean(axis=-1))
        return None if self.G > _LEFT_OUT else np.asarray(self.with_counts(1 - np.eye(self.G)).mean(axis=1))

    @property
    def called(self) -> bool:
        """True if the metric is a function that is called on records and is no order statistic."""
        return self.stats is None and self.part.of_rows != "order"

    def without(self, blocks: IntArray) -> FloatArray:
        """Return (B,) the metric without each block of clusters, mean over repeats. `blocks` (G,) numbers them."""
        if self.stats is not None:
            inside = np.zeros((int(blocks.max()) + 1, *self.sums.shape[1:]))
            np.add.at(inside, blocks, self.sums)
            return np.asarray(self._of_sums(self.sums.sum(axis=0) - inside).mean(axis=1))
        rows, of = np.arange(len(self)), blocks[self.codes]
        each = [[self.call(rows[of != b], k) for k in range(self.repeats)] for b in range(int(blocks.max()) + 1)]
        return np.asarray(np.array(each).mean(axis=1))

    def df(self) -> float:
        """Return the Bell–McCaffrey degrees of freedom (CR2) of a mean over these clustered questions. NaN if none."""
        by_cell = cells(design(len(self), None if len(self) == self.G else self.codes))
        return by_cell.df.item() if by_cell.identified.all() else math.nan

    def _of_sums(self, sums: FloatArray) -> FloatArray:
        assert self.part.value is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.part.value(sums), dtype=np.float64)

    def call(self, rows: IntArray, k: int) -> float:
        """Call the metric on the records of repeat `k` in these question rows. NaN if it has no value there."""
        return self.of_items([row[k] for i in rows if k < len(row := self.records[i]) and row[k] is not None])

    def of_items(self, answers: list[Any]) -> float:
        """Call the metric's aggregation on records. NaN for none, ArithmeticError or ValueError. Others are raised."""
        assert self.part.aggregate is not None
        try:
            return float(self.part.aggregate(answers)) if answers else math.nan
        except (ArithmeticError, ValueError):  # a resample without any positive, an empty reference
            return math.nan


def _answered(part: CorpusScores) -> BoolArray:
    """Return (n,) True for answered questions. InputError: crossed clusters. ValueError: records and stats, or neither.

    Raises:
        InputError: they are clustered in two crossed ways.
    """
    if (part.stats is None or part.value is None) == (part.aggregate is None):
        raise ValueError(f"{part.task}, {part.metric}: give records and aggregate, or stats and value")
    if split_crossed(part.clusters) is not None:
        raise InputError(
            f"{part.task}, {part.metric}: a metric that is not a mean is resampled by whole clusters of one kind, and "
            "these questions are clustered in two crossed ways: name one with `cluster`, or leave this metric out with "
            "`metrics`"
        )
    if part.stats is not None:
        return np.asarray(np.isfinite(part.stats).any(axis=(1, 2)))
    return np.array([any(record is not None for record in row) for row in part.records], dtype=np.bool_)


def _side(part: CorpusScores, rows: IntArray, clusters: Sequence[str] | None) -> Side:
    """Return one run's answers to these question rows, with its clusters numbered. Each question alone if None."""
    codes, G = (np.arange(len(rows)), len(rows)) if clusters is None else cluster_codes(clusters)
    if part.stats is not None:
        return Side(part, part.stats[rows], (), part.stats.shape[1], codes, G)
    repeats = max((len(row) for row in part.records), default=0)
    return Side(part, None, [part.records[i] for i in rows], repeats, codes, G)


def _ordered_by_key(part: CorpusScores, rows: IntArray) -> IntArray:
    """Return an array of these question rows sorted by names, so that random draws do not depend on file order."""
    keys = part.questions.keys
    return np.array(sorted(rows.tolist(), key=lambda i: by_name(keys[i])), dtype=np.intp)


def _clustered_by_records(part: CorpusScores) -> CorpusScores:
    """Return the metric clustered by the key it groups records by. Unchanged if it has clusters or no such key.

    A mean over categories of their means is still a function of the records: its categories are not clusters.
    """
    if part.clusters is not None or part.aggregate is None or part.of_rows is not None:
        return part
    side = _side(part, np.arange(len(part.questions)), None)
    rows = [i for i, row in enumerate(part.records) if row and row[0] is not None]

    def call(items: list[Any]) -> float:
        try:
            return side.of_items(items)
        except Exception:  # noqa: BLE001  anybody's code, which may not take a name that it does not know
            return math.nan

    # whether it groups at all takes few calls, and what it groups by many
    if len(rows) < 2 or seen_of(partial(side.call, k=0), len(side)) != "grouped":
        return part
    found = key_of(call, [part.records[i][0] for i in rows])
    if found is None:
        return part
    of = dict(zip(rows, found.groups, strict=True))
    groups = tuple(of.get(i, f"\x1f{i}") for i in range(len(part.questions)))
    return replace(part, clusters=groups, cluster_spec=f"what the metric groups by ({found.name})")


def _side_of_run(part: CorpusScores) -> Side:
    """Return all of one run's answers under a corpus metric, in order of question names, with their clusters."""
    rows = _ordered_by_key(part, np.flatnonzero(_answered(part)))
    return _side(part, rows, None if part.clusters is None else [part.clusters[i] for i in rows])


def _shared_answers(
    a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run
) -> tuple[tuple[Side, Side], tuple[int, int]]:
    """Return both runs' answers to shared questions, and the numbers of A's and B's other ones. Refuse if none is."""
    pairs = pair_questions(a.questions, b.questions)
    if not pairs.rows_a:
        raise NothingSharedError(
            f"{a.task}: {run_a.name} and {run_b.name} have no question in common. Or use `unpaired=True`"
        )
    answered_a, answered_b = _answered(a), _answered(b)
    both = answered_a[pairs.rows_a] & answered_b[pairs.rows_b]
    rows_a, rows_b = np.array(pairs.rows_a)[both], np.array(pairs.rows_b)[both]
    place = np.argsort(rows_a)
    in_order = place[np.searchsorted(rows_a[place], _ordered_by_key(a, rows_a))]
    rows_a, rows_b = rows_a[in_order], rows_b[in_order]
    of_all, rows = (a.clusters, rows_a) if a.clusters is not None else (b.clusters, rows_b)
    clusters = None if of_all is None else [of_all[i] for i in rows]
    only = int(answered_a.sum()) - len(rows_a), int(answered_b.sum()) - len(rows_b)
    return (_side(a, rows_a, clusters), _side(b, rows_b, clusters)), only


@dataclass(frozen=True, slots=True, eq=False)
class SumNoise:
    """Σ ± (mean over repeats), and its noise."""

    m: Moments
    """(1,)"""
    codes: frozenset[str]
    each: tuple[float, ...]
    """The mean over repeats of every side, NaN if there is none."""
    variance: float = math.nan
    """The variance that intervals take, by the jackknife."""
    distribution: resampling.Distribution | None = None
    """The resampled values, None also if nothing varies."""
    carried_by: float = math.inf
    """Effective number of clusters that the metric rests on, as a rare class's positives, infinite if unknown."""
    by_deletion: bool = False
    """True if the metric was called without each cluster, and nothing was resampled."""

    @property
    def flat(self) -> bool:
        """True if the corpus metric does not vary at all, or nothing is known of its noise."""
        return self.distribution is None and not (self.by_deletion and self.variance > 0)


def _jackknife(sides: Sequence[Side], signs: Sequence[float], V: float, paired: bool) -> tuple[Variance, float]:
    """Return `Variance` (jackknife, V if that has none) of Σ sign × metric, and how many clusters carry it [Efron1981].

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
        return Variance(
            V, fewest
        ), 0.0  # without this cluster the metric does not exist, so the metric rests on it alone
    values = [np.sum(values, axis=0)] if paired else values
    carry = float(np.nan_to_num(effective_flips(np.concatenate([theta - theta.mean() for theta in values]))))
    each = [Variance(jackknife_variance(theta), side.df()) for theta, side in zip(values, sides, strict=False)]
    total = sum(of_side.value for of_side in each)
    spread = sum(of_side.value**2 / of_side.df for of_side in each)
    return Variance(total, total**2 / spread if len(each) > 1 and spread > 0 else min(x.df for x in each)), carry


def jackknife_variance(theta: FloatArray) -> float:
    """Return the jackknife variance of a metric, a float, from its G ≥ 2 values without one cluster at a time."""
    G = len(theta)
    variance = clustered_variance((G - 1) * (theta.mean() - theta), design(G))
    assert variance is not None  # fewer than two clusters are refused before
    return variance.value


def _resamples(sides: Sequence[Side], settings: Settings) -> int:
    """Return the number of resamples to draw: the setting's, or fewer if the metric is a called function."""
    return min(settings.resamples, CALLS) if any(side.stats is None for side in sides) else settings.resamples


def _resampled(sides: Sequence[Side], signs: Sequence[float], settings: Settings, paired: bool) -> FloatArray:
    """Return (B,) values of Σ sign × metric in bootstrap resamples of clusters. Paired runs share each draw."""
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
    """Return Σ sign × metric over runs and its noise: by bootstrap, if called by jackknife, or codes why none."""
    paired, values = not settings.unpaired, [side.values() for side in sides]
    each = tuple(float(np.mean(theta)) if len(theta) else math.nan for theta in values)
    value, fewest = float(np.dot(signs, each)), min(side.G for side in sides)
    samples = sides[:1] if paired else sides
    n, G = sum(map(len, samples)), sum(side.G for side in samples)
    m = replace(undefined_moments(np.array([float(n)]), np.array([float(G)])), mean=np.array([value]))
    if fewest >= 2 and math.isfinite(value) and (called := [side for side in sides if side.called]):
        seen = {seen_of(partial(side.call, k=0), len(side)) for side in called if side.part.of_rows is None}
        grouped = {"grouped_metric"} if "grouped" in seen else set[str]()
        by_row = any(len(side) == side.G for side in sides)
        if "few" in seen or (grouped and by_row):
            return SumNoise(m, frozenset({"grouped_metric"} if grouped and by_row else {"few_resampled"}), each)
        return _split(m, sides, values, each, _deleted(sides, signs, paired), grouped)
    total = np.empty(0) if fewest < 2 or not math.isfinite(value) else _resampled(sides, signs, settings, paired)
    kept = np.sort(total[np.isfinite(total)])
    if len(kept) < max(1, len(total) / 2):
        code = "too_few_clusters" if fewest < 2 <= min(map(len, sides)) else "too_few_questions"
        return SumNoise(m, frozenset({code}), each)
    V = float(kept.var(ddof=1))
    jackknife, carry = _jackknife(sides, signs, V, paired)
    known = SumNoise(m, frozenset(), each, jackknife.value, resampling.Distribution(value, kept, 0.0), carry)
    return _split(m, sides, values, each, (known, Variance(V, jackknife.df)), set())


def _split(
    m: Moments,
    sides: Sequence[Side],
    values: Sequence[FloatArray],
    each: tuple[float, ...],
    known: tuple[SumNoise, Variance],
    codes: set[str],
) -> SumNoise:
    """Return the noise with V split by K repeats: prediction = spread, data = V − spread/K (K = 1: NaN). Adds codes."""
    noise, (V, df) = known[0], (known[1].value, known[1].df)
    if math.isnan(V):
        return SumNoise(m, frozenset({"few_resampled"}), each)
    flat = math.sqrt(V) <= ROUNDING * max(1.0, *(float(np.abs(theta).max()) for theta in values))
    prediction, data = 0.0, 0.0
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
    codes |= decision.noise_codes(df, zero=flat, var_data=of_data)
    numbers = {"variance": V, "df": df, "var_data": of_data, "var_prediction": of_answers}
    numbers["data_upper"] = chi_square(V, df, V - of_data).upper()
    columns = {name: np.array([x]) for name, x in (numbers | {"var_total": V + prediction - data}).items()}
    m = replace(m, **columns, zero_variance=np.array([flat]))
    if flat:  # a point is not an interval
        return SumNoise(m, frozenset(codes), each, 0.0, carried_by=0.0, by_deletion=noise.by_deletion)
    return replace(noise, m=m, codes=frozenset(codes), each=each)


def _deleted(sides: Sequence[Side], signs: Sequence[float], paired: bool) -> tuple[SumNoise, Variance]:
    """Return noise and variance of a metric that is a called function, by jackknife over ≤ 500 blocks of clusters.

    It is not resampled with replacement: a question that is drawn twice may be merged into one by the metric itself.
    """
    blocks = [jackknife_blocks(side.G, _MOST_BLOCKS) for side in sides]
    theta = [sign * side.without(of) for side, sign, of in zip(sides, signs, blocks, strict=True)]
    theta = [np.sum(theta, axis=0)] if paired else theta
    parts = [(delete_one_variance(x), side.df()) for x, side in zip(theta, sides, strict=False)]
    V, spread = sum(v for v, _ in parts), sum(v**2 / df for v, df in parts)
    df = V**2 / spread if len(parts) > 1 and spread > 0 else min(df for _, df in parts)
    carry = float(np.nan_to_num(effective_flips(np.concatenate([x - x.mean() for x in theta]))))
    noise = SumNoise(undefined_moments(np.zeros(1), np.zeros(1)), frozenset(), (), V, None, carry, by_deletion=True)
    return noise, Variance(V, df)


def _range(part: CorpusScores, theta: FloatArray, settings: Settings) -> tuple[float, float] | None:
    """Return the corpus metric's range: the setting's, else the declared, else None. Refuse values outside it."""
    bounds = settings.range or part.bounds
    values = theta[np.isfinite(theta)]
    if bounds is None or len(values) == 0:
        return bounds
    low, high = float(values.min()), float(values.max())
    if low < bounds[0] - SLACK or high > bounds[1] + SLACK:
        raise InputError(outside_message(f"{part.task}, {part.metric}", low, high, bounds, settings))
    return bounds


def _interval(part: CorpusScores, noise: SumNoise, bounds: tuple[float, float] | None, settings: Settings) -> Interval:
    """Return an interval: as set, else Wilson in a known range, else bootstrap (jackknife: t), or none. May refuse."""
    mean, df, flat = noise.m.mean.item(), noise.m.df.item(), noise.flat
    by_default = settings.interval == INTERVALS.default
    chosen = (T if noise.by_deletion else BOOTSTRAP) if by_default else INTERVALS[settings.interval]
    check_range(f"{part.task}, {part.metric}", chosen, bounds)
    if noise.by_deletion and chosen is BOOTSTRAP:
        raise InputError(_cannot_resample(part, "interval"))
    if bounds is not None and (by_default or flat):
        chosen = WILSON
    if math.isnan(df) or not math.isfinite(mean) or (flat and not chosen.on_share):  # a point is not an interval
        return Interval()
    if chosen is BOOTSTRAP and noise.distribution is None:
        chosen = T
    se = math.sqrt(noise.variance)
    of = OneMean(mean=mean, se=se, df=df, level=settings.level, bounds=None, method="percentile")
    if noise.distribution is not None:
        of = replace(of, distribution=partial(noise.distribution.expanded, noise.variance, df))
    if chosen.on_share and bounds is not None:
        width, G = bounds[1] - bounds[0], int(noise.m.n_clusters[0])
        p = min(max((mean - bounds[0]) / width, 0.0), 1.0)
        size = intervals.binomial_size(p, 0.0 if flat else se / width, math.inf, G, G)
        of = replace(of, bounds=bounds, share=p, size=size)
    limits, _ = intervals.of_mean(chosen, of)
    return Interval() if limits is None else Interval(limits, chosen.name)


def _cannot_resample(part: CorpusScores, option: str) -> str:
    return (
        f"{part.task}, {part.metric}: a metric that the task's own code computes is not resampled, because it may "
        f"group rows: leave `{option}` out, or use `{option}='t'`"
    )


def estimate_corpus(part: CorpusScores, run: Run, settings: Settings) -> Estimate:
    """Return a run's corpus metric (such as F1), averaged over repeats, with its standard error and interval."""
    settings.check("corpus", f"{part.task}, {part.metric}")
    part = _clustered_by_records(part)
    side = _side_of_run(part)
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
        "estimator": "jackknife" if noise.by_deletion else "bootstrap",
        "n_missing": part.n_missing,
        "cluster": part.cluster_spec if part.clusters is not None else None,
        "diagnostics": tuple(sorted(codes)),
    }
    return estimate(**fields)


def _codes(part: CorpusScores, theta: FloatArray) -> set[str]:
    """Return a corpus metric's diagnostics, `mean_mismatch` if the harness's value is not that of repeats `theta`."""
    codes = set(part.diagnostics)
    if part.native is None or not len(theta):
        return codes
    ours = float(theta[0] if part.native_is_first else theta.mean())
    return codes if reproduces(ours, part.native) else codes | {MISMATCH}


def _test(noise: SumNoise, sides: Sequence[Side], settings: Settings) -> decision.Test:
    """Return a corpus difference's test: bootstrap or permutation if set, else t. Refuse what cannot be resampled."""
    if noise.flat:
        return decision.Test()
    if noise.by_deletion and BOOTSTRAP.name in (settings.test, settings.interval_of_difference):
        raise InputError(_cannot_resample(sides[0].part, "test" if settings.test == BOOTSTRAP.name else "interval"))
    chosen = TESTS[settings.test_of_difference]
    own = {"by_t": by_t, "by_resampling": by_resampling, "by_permutation": by_permutation}.get(str(chosen.of_corpus))
    tested: decision.Test = own(noise, sides, settings) if own else chosen.call("of_corpus", noise, sides, settings)
    if settings.interval_of_difference == BOOTSTRAP.name and noise.distribution is not None:
        read = by_resampling(noise, sides, settings)
        tested = replace(tested, limits=read.limits, interval=read.interval)
    return tested


def by_t(noise: SumNoise, sides: Sequence[Side], settings: Settings) -> decision.Test:
    """Return an empty test for a corpus difference, which stands for the default: Student's t."""
    return decision.Test()


def by_resampling(noise: SumNoise, sides: Sequence[Side], settings: Settings) -> decision.Test:
    """Return the bootstrap's p-value and percentile interval of a corpus difference. t if nothing was resampled."""
    if noise.distribution is None:
        return decision.Test()
    return by_bootstrap(noise.distribution.expanded(noise.variance, noise.m.df.item()), settings, "percentile")


def by_permutation(noise: SumNoise, sides: Sequence[Side], settings: Settings) -> decision.Test:
    """Return the permutation test of a corpus difference, which swaps A's and B's answers by cluster."""
    return decision.Test(np.array([_swap_p(sides[0], sides[1], settings)]), by_p=True)


def _swap_p(a: Side, b: Side, settings: Settings) -> float:
    """Return the permutation p of a corpus difference, answers swapped by cluster. Refuse sums against records."""
    if (a.stats is None) != (b.stats is None):
        raise InputError(
            f"{a.part.task}, {a.part.metric}: one run has its sums and the other its records, so their answers cannot "
            "be exchanged: leave `test` out, or use `test='t'`"
        )
    rng, B = np.random.default_rng(settings.seed), _resamples((a, b), settings)
    both_a = _stacked_sides(a, b)
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


def _stacked_sides(a: Side, b: Side) -> Side:
    """Return both runs' answers as one table with 2G clusters: A's G clusters first, then B's.

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
    """Return A − B of a corpus metric before its verdict, over shared questions (`unpaired`: all). Refuse if none is.

    There is no sign test of questions that have no score of their own.
    """
    settings.check("corpus_difference", f"{a.task}, {a.metric}")
    a, b = _clustered_by_records(a), _clustered_by_records(b)
    if settings.unpaired:
        sides = _side_of_run(a), _side_of_run(b)
        only = len(sides[0]), len(sides[1])
    else:
        sides, only = _shared_answers(a, b, run_a, run_b)
    noise = _noise(sides, [1.0, -1.0], settings)
    m, unknown = noise.m, np.full(1, math.nan)
    codes = noise.codes.union(*(_codes(part, _side_of_run(part).values()) for part in (a, b)))
    if not noise.flat and noise.carried_by < FEW_CARRY_DIFFERENCE:
        codes |= {"few_resampled"}
    codes |= {"unpaired"} if settings.unpaired else {"unpaired_questions"} if any(only) else set()
    codes |= {"identical_scores"} if m.zero_variance[0] and abs(m.mean[0]) <= ROUNDING else set()
    bounds = settings.range or hull([x.bounds for x in (a, b) if x.bounds is not None])
    check_scale("margin", settings.margin, bounds, a.metric)
    width = math.inf if bounds is None else bounds[1] - bounds[0]
    of = decision.Differences(m.mean, np.array([noise.variance]), m.df, m.zero_variance, unknown, width=width)
    asked = settings.test_of_difference
    test = T_TEST.name if TESTS[asked].of_corpus == T_TEST.of_corpus else asked
    means = [replace(undefined_moments(m.n, m.n_clusters), mean=np.array([mean])) for mean in noise.each]
    own = sides_of([np.array([x]) for x in only], [np.array([side.repeats]) for side in sides], means, unknown)
    evidence = Evidence(m, of, _test(noise, sides, settings), blank(Leads, 1), own)
    spec = next((x.cluster_spec for x in (a, b) if x.clusters is not None), None)
    return row_of(evidence, codes, settings, **compared_fields([a], [b], run_a, run_b), test=test, cluster=spec)
