"""Metrics that are not means (bleu, F1, perplexity, …): their noise by resampling clusters of questions.

With θ_k the metric over all answers of repeat k, the reported value is the mean of θ_k. V is its
cluster-bootstrap variance, var_prediction the variance of the K values θ_k, and
var_data = V − var_prediction/K. Intervals are percentile intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import InputError, NothingSharedError
from .estimators import resampling, tests
from .estimators.contrast import BoolArray, FloatArray, IntArray, cluster_codes
from .pairing import pair
from .results import Difference, Estimate, finite
from .samples import root
from .scores import CALLS, CorpusScores, Run, reproduces
from .settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
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

    def _from_sums(self, sums: FloatArray) -> FloatArray:
        assert self.item.value is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.item.value(sums), dtype=np.float64)

    def _call(self, rows: IntArray, k: int) -> float:
        assert self.item.aggregate is not None
        answers = [row[k] for i in rows if k < len(row := self.item.records[i]) and row[k] is not None]
        try:
            return float(self.item.aggregate(answers)) if answers else math.nan
        except (ArithmeticError, ValueError):  # a resample without any positive, an empty reference
            return math.nan

    def _call_mixed(self, other: _Side, exchanged: BoolArray, k: int) -> float:
        """The metric of repeat k with the other run's answers where `exchanged`."""
        assert self.item.aggregate is not None
        answers = []
        for i, j, swap in zip(self.rows, other.rows, exchanged, strict=True):
            row = other.item.records[j] if swap else self.item.records[i]
            answer = row[k % len(row)] if row else None
            if answer is not None:
                answers.append(answer)
        try:
            return float(self.item.aggregate(answers)) if answers else math.nan
        except (ArithmeticError, ValueError):
            return math.nan


def _side(item: CorpusScores, rows: Sequence[int] | None = None, clusters: tuple[str, ...] | None = None) -> _Side:
    if (item.stats is None or item.value is None) == (item.aggregate is None):
        raise ValueError(f"{item.task}, {item.metric}: give records and aggregate, or stats and value")
    used = np.arange(len(item.questions)) if rows is None else np.asarray(rows, dtype=np.intp)
    if item.stats is not None:
        answered = np.isfinite(item.stats).any(axis=2).sum(axis=1) > 0
    else:
        answered = np.array([any(record is not None for record in row) for row in item.records], dtype=np.bool_)
    labels = clusters if clusters is not None else item.clusters
    used = used[answered[used]]
    if labels is None:
        return _Side(item, used, np.arange(len(used)), len(used))
    return _Side(item, used, *cluster_codes([labels[i] for i in used]))


@dataclass(frozen=True, slots=True)
class _Noise:
    """Noise of Σ ± (mean over repeats), None where it is not identified."""

    value: float | None
    each: tuple[float | None, ...]
    variance: float | None
    var_data: float | None
    var_prediction: float | None
    var_total: float | None
    distribution: resampling.Distribution | None
    diagnostics: frozenset[str]


def _refuse_runs(item: CorpusScores, settings: Settings) -> None:
    if settings.repeats_are == "runs":
        raise InputError(
            f"{item.task}, {item.metric}: --repeats-are runs is for metrics that are means of question scores; leave "
            "this one out with --metric"
        )


def _noise(sides: Sequence[_Side], signs: Sequence[float], settings: Settings, paired: bool) -> _Noise:
    found: set[str] = set()
    values = [side.values() for side in sides]
    each = tuple(finite(float(np.mean(value))) if len(value) else None for value in values)
    known = all(value is not None for value in each)
    value = sum(a * v for a, v in zip(signs, each, strict=True) if v is not None) if known else None
    if any(len(side.rows) < 2 for side in sides):
        found.add("too_few_questions")
    elif any(side.G < 2 for side in sides):
        found.add("too_few_clusters")
    if found or value is None:
        return _Noise(value, each, None, None, None, None, None, frozenset(found or {"too_few_questions"}))
    B = settings.resamples
    if any(side.item.stats is None for side in sides):
        B = min(B, CALLS)
    rng = np.random.default_rng(settings.seed)
    total = np.zeros(B)
    resampled = [side.resampler() for side in sides]
    # paired: one draw of clusters serves both runs
    for group in [list(range(len(sides)))] if paired else [[r] for r in range(len(sides))]:
        start = 0
        for picked in resampling.draws(sides[group[0]].G, B, rng):
            rows = slice(start, start + len(picked))
            start = rows.stop
            for r in group:
                total[rows] += signs[r] * resampled[r](picked)
    kept = np.sort(total[np.isfinite(total)])
    if len(kept) < B / 2:
        return _Noise(value, each, None, None, None, None, None, frozenset({"too_few_questions"}))
    distribution: resampling.Distribution | None = resampling.Distribution(value, kept, 0.0)
    V = float(kept.var(ddof=1))
    if math.sqrt(V) <= 1e-12 * max(1.0, *(float(np.abs(theta).max()) for theta in values)):
        V, distribution = 0.0, None  # a point is no interval
        found.add("zero_variance")
    prediction = data = 0.0
    for side, theta, a in zip(sides, values, signs, strict=True):
        if side.repeats < 2:
            found.add("single_repeat")
            continue
        spread = float(np.var(theta, ddof=1))
        if spread <= (1e-12 * max(1.0, float(np.abs(theta).max()))) ** 2:
            found.add("identical_repeats")
        prediction += a * a * spread
        data += a * a * spread / side.repeats
    found |= {code for side in sides for code in side.item.diagnostics}
    identified = not found & {"single_repeat", "identical_repeats"}
    if identified and data > V:
        found.add("negative_data_variance")
    return _Noise(
        value, each, V, V - data if identified else None, prediction if identified else None,
        V + prediction - data, distribution, frozenset(found),
    )  # fmt: skip


def _swap_p(sides: Sequence[_Side], settings: Settings) -> float:
    """Permutation p: under the null the two runs' answers to a cluster could as well be exchanged."""
    a, b = sides
    if (a.item.stats is None) != (b.item.stats is None):
        raise InputError(
            f"{a.item.task}, {a.item.metric}: one run has its sums and the other its records, so their answers cannot "
            "be exchanged: use --test bootstrap"
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


def _swapper(one: _Side, other: _Side) -> Callable[[BoolArray], FloatArray]:
    """(rows, G) clusters to swap → (rows,) the mean over repeats of `one`'s metric with `other`'s answers there.

    Two runs may have different numbers of repeats: repeat k meets repeat k modulo the other's number.
    """
    K = max(one.repeats, other.repeats)
    if one.item.stats is not None and other.item.stats is not None:
        own, others = (
            side.sums([k % side.repeats for k in range(K)]).reshape(side.G, -1) for side in (one, other)
        )  # fmt: skip
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


def estimate_corpus(item: CorpusScores, run: Run, settings: Settings) -> Estimate:
    """A corpus metric, averaged over repeats, with its noise by the cluster bootstrap."""
    _refuse_runs(item, settings)
    side = _side(item)
    noise = _noise([side], [1.0], settings, paired=True)
    found = set(noise.diagnostics) | set(item.diagnostics)
    theta = side.values()
    if item.native is not None and len(theta):
        ours = float(theta[0] if item.native_is_first else theta.mean())
        if not reproduces(ours, item.native):
            found.add("mean_mismatch")
    ci = noise.distribution.interval(settings.level, "percentile") if noise.distribution else None
    return Estimate(
        task=item.task, metric=item.metric, scorer=item.scorer, model=run.model, run=run.name,
        higher_is_better=item.higher_is_better,
        n_questions=len(side.rows), n_clusters=side.G, repeats_min=side.repeats, repeats_max=side.repeats,
        mean=noise.value, se=root(noise.variance),
        ci_low=ci.low if ci else None, ci_high=ci.high if ci else None, level=settings.level, df=None,
        interval="bootstrap" if ci else "none",
        se_total=root(noise.var_total), se_data=root(noise.var_data), se_prediction=root(noise.var_prediction),
        se_naive=None, var_data=finite(noise.var_data), var_prediction=finite(noise.var_prediction),
        design_effect=None, n_effective=None, icc=None, estimator="bootstrap", n_missing=item.n_missing,
        cluster=item.cluster_spec if item.clusters is not None else None, diagnostics=tuple(sorted(found)),
    )  # fmt: skip


def matched(run_a: Run, run_b: Run) -> list[tuple[CorpusScores, CorpusScores]]:
    """The corpus metrics that both runs have."""
    where = {(item.task, item.metric, item.scorer): item for item in run_b.corpus}
    return [
        (item, where[key]) for item in run_a.corpus if (key := (item.task, item.metric, item.scorer)) in where
    ]  # fmt: skip


def corpus_difference(a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run, settings: Settings) -> Difference:
    """A − B of a corpus metric: both are recomputed on the same resampled clusters of questions."""
    _refuse_runs(a, settings)
    if settings.unpaired:
        sides = _side(a), _side(b)
        only = len(sides[0].rows), len(sides[1].rows)
        n, G = sum(only), sides[0].G + sides[1].G
    else:
        found = pair(a.questions, b.questions)
        if not found.rows_a:
            raise NothingSharedError(
                f"{a.task}: {run_a.name} and {run_b.name} have no question in common; or use --unpaired"
            )
        here, there = _side(a), _side(b)
        scored_a, scored_b = set(here.rows.tolist()), set(there.rows.tolist())
        both = [(i, j) for i, j in zip(found.rows_a, found.rows_b, strict=True) if i in scored_a and j in scored_b]
        rows_a, rows_b = [i for i, _ in both], [j for _, j in both]
        labels = None
        if a.clusters is not None:
            labels = [a.clusters[i] for i in rows_a]
        elif b.clusters is not None:
            labels = [b.clusters[j] for j in rows_b]
        codes, G = (np.arange(len(both)), len(both)) if labels is None else cluster_codes(labels)
        sides = (
            _Side(a, np.asarray(rows_a, dtype=np.intp), codes, G),
            _Side(b, np.asarray(rows_b, dtype=np.intp), codes, G),
        )
        only, n = (len(scored_a) - len(both), len(scored_b) - len(both)), len(both)
    noise = _noise(sides, [1.0, -1.0], settings, paired=not settings.unpaired)
    codes_found = set(noise.diagnostics) | set(a.diagnostics) | set(b.diagnostics)
    codes_found |= {"unpaired"} if settings.unpaired else {"unpaired_questions"} if any(only) else set()
    ci = p = None
    test = "bootstrap"
    words = "not separable"
    higher = a.higher_is_better if a.higher_is_better is not None else b.higher_is_better
    if "zero_variance" in codes_found and noise.value is not None and abs(noise.value) <= 1e-12:
        p = 1.0
        codes_found.add("identical_scores")
    elif noise.distribution is not None and noise.value is not None:
        ci = noise.distribution.interval(settings.level, "percentile")
        test = "permutation" if settings.test == "permutation" else "bootstrap"
        p = _swap_p(sides, settings) if test == "permutation" else noise.distribution.p_value(method="percentile")
        wide = noise.distribution.interval(max(0.0, 2 * settings.level - 1), "percentile")
        if p < 1 - settings.level if test == "permutation" else not ci.low <= 0 <= ci.high:
            words = "A better" if (noise.value > 0) == (higher is not False) else "B better"
        elif settings.margin is not None and -settings.margin < wide.low and wide.high < settings.margin:
            words = f"equivalent within {settings.margin:g}"
    variance = noise.variance
    return Difference(
        task=a.task, metric=a.metric, scorer=a.scorer, higher_is_better=higher,
        model_a=run_a.model, model_b=run_b.model, n_questions=n, n_clusters=G, n_only_a=only[0], n_only_b=only[1],
        repeats_a=sides[0].repeats, repeats_b=sides[1].repeats, mean_a=noise.each[0], mean_b=noise.each[1],
        diff=noise.value, se=root(variance), ci_low=ci.low if ci else None, ci_high=ci.high if ci else None,
        level=settings.level, df=None, statistic=None, p_value=p, p_adjusted=p, test=test, p_sign=None,
        wins_a=None, wins_b=None, ties=None, correlation=None, se_unpaired=None,
        se_total=root(noise.var_total), se_data=root(noise.var_data), se_prediction=root(noise.var_prediction),
        var_data=finite(noise.var_data), var_prediction=finite(noise.var_prediction), design_effect=None,
        mde=tests.minimum_detectable(math.sqrt(variance), settings.level) if variance else None,
        verdict=words, n_missing=a.n_missing + b.n_missing,
        cluster=next((x.cluster_spec for x in (a, b) if x.clusters is not None), None),
        diagnostics=tuple(sorted(codes_found)),
    )  # fmt: skip
