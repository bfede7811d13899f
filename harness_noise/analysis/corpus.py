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
from dataclasses import dataclass

import numpy as np

from ..data.matching import pair
from ..data.native_values import reproduces
from ..data.scores import CorpusScores, Run
from ..errors import InputError, NothingSharedError
from ..results.forms import finite
from ..results.rows import Difference, Estimate
from ..settings import Settings, check_scale
from ..stats import intervals, tests
from ..stats.arrays import FloatArray
from ..stats.contrast import cluster_codes
from .corpus_noise import Noise, Side, noise_of, side_of, swap_p
from .ranges import outside
from .sample import data_limit, root


def _range(item: CorpusScores, theta: FloatArray, settings: Settings) -> tuple[float, float] | None:
    """Lowest and highest value of the metric, where they are said or declared: one value is no ground for a guess."""
    bounds = settings.range or item.bounds
    known = theta[np.isfinite(theta)]
    if bounds is None or len(known) == 0:
        return bounds
    low, high = float(known.min()), float(known.max())
    if low < bounds[0] - 1e-9 or high > bounds[1] + 1e-9:
        raise InputError(outside(f"{item.task}, {item.metric}", low, high, bounds, said=settings.range is not None))
    return bounds


def _interval(
    item: CorpusScores, noise: Noise, bounds: tuple[float, float] | None, settings: Settings
) -> tuple[intervals.ConfidenceInterval | None, str]:
    """Wilson at p(1 − p)/V in a known range, else the bootstrap's percentiles with t's tails; or what is asked for."""
    wanted = settings.interval
    if wanted == "clopper-pearson" or (wanted in ("wilson", "korn-graubard") and bounds is None):
        raise InputError(
            f"{item.task}, {item.metric}: a metric over all questions at once has no interval {wanted}"
            + ("" if bounds is not None else " without a known range (`range=(LOW, HIGH)`)")
            + ": use `interval='bootstrap'` or t"
        )
    if noise.known is None or noise.value is None:
        return None, "none"
    V, df, level = noise.known.value, noise.known.df, settings.level
    flat = noise.distribution is None
    name = ("bootstrap" if bounds is None else "wilson") if wanted == "auto" or (flat and bounds) else wanted
    if name == "t" and not flat:
        return intervals.t_interval(noise.value, math.sqrt(V), df, level), name
    if name in ("t", "bootstrap"):
        if noise.distribution is None:  # a point is no interval
            return None, "none"
        return noise.distribution.expanded(V, df).interval(level, "percentile"), name
    assert bounds is not None
    width = bounds[1] - bounds[0]
    p = min(max((noise.value - bounds[0]) / width, 0.0), 1.0)
    G = noise.n_clusters
    n = intervals.binomial_size(p, 0.0 if flat else math.sqrt(V) / width, math.inf, G, G)
    if name == "korn-graubard":
        return intervals.rescaled(intervals.korn_graubard(p, n, math.inf, df, level), bounds), name
    return intervals.rescaled(intervals.wilson(p, n, intervals.t_quantile(level, df)), bounds), name


def _df(noise: Noise) -> float | None:
    return None if noise.known is None else finite(noise.known.df)


def _data_upper(noise: Noise) -> float | None:
    if noise.known is None or noise.distribution is None:
        return None
    return root(data_limit(noise.variance, noise.known.df, noise.var_data))


def estimate_corpus(item: CorpusScores, run: Run, settings: Settings) -> Estimate:
    """A corpus metric, averaged over repeats, with its noise by the cluster bootstrap."""
    settings.check("corpus", f"{item.task}, {item.metric}")
    side = side_of(item)
    noise = noise_of([side], [1.0], settings, paired=True)
    found = set(noise.diagnostics) | set(item.diagnostics)
    theta = side.values()
    if item.native is not None and len(theta):
        ours = float(theta[0] if item.native_is_first else theta.mean())
        if not reproduces(ours, item.native):
            found.add("mean_mismatch")
    bounds = _range(item, theta, settings)
    ci, interval = _interval(item, noise, bounds, settings)
    return Estimate(
        task=item.task, metric=item.metric, scorer=item.scorer, model=run.model, run=run.name,
        higher_is_better=item.higher_is_better,
        n_questions=len(side.rows), n_clusters=side.G, repeats_min=side.repeats, repeats_max=side.repeats,
        mean=noise.value, se=root(noise.variance),
        ci_low=ci.low if ci else None, ci_high=ci.high if ci else None, level=settings.level, df=_df(noise),
        interval=interval, range=bounds,
        se_total=root(noise.var_total), se_data=root(noise.var_data), se_prediction=root(noise.var_prediction),
        se_naive=None, var_data=finite(noise.var_data), var_prediction=finite(noise.var_prediction),
        design_effect=None, n_effective=None, icc=None, estimator="bootstrap", n_missing=item.n_missing,
        se_data_upper=_data_upper(noise),
        cluster=item.cluster_spec if item.clusters is not None else None, diagnostics=tuple(sorted(found)),
    )  # fmt: skip


def matched(run_a: Run, run_b: Run) -> list[tuple[CorpusScores, CorpusScores]]:
    """The corpus metrics that both runs have."""
    where = {(item.task, item.metric, item.scorer): item for item in run_b.corpus}
    return [
        (item, where[key]) for item in run_a.corpus if (key := (item.task, item.metric, item.scorer)) in where
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Tested:
    ci: intervals.ConfidenceInterval | None
    se: float | None
    """Of the jackknife: what the interval and the test are made with."""
    statistic: float | None
    p_value: float | None
    test: str
    words: str
    """The verdict of this row alone."""
    interval: str = "none"
    equivalent: bool = False
    """What the two one-sided tests say."""


def _tested(noise: Noise, sides: Sequence[Side], settings: Settings, higher: bool | None) -> _Tested:
    """The t test with the clusters' degrees of freedom, or the bootstrap or permutation test that is asked for.

    There is no sign test of questions that have no score of their own.
    """
    test = settings.test if settings.test in ("bootstrap", "permutation") else "t"
    diff, distribution = noise.value, noise.distribution
    if noise.known is None or distribution is None or diff is None:
        same = noise.known is not None and diff is not None and abs(diff) <= 1e-12
        return _Tested(None, None, None, 1.0 if same else None, test, "not separable")
    se, df, level = math.sqrt(noise.known.value), noise.known.df, settings.level
    wide = max(0.0, 2 * level - 1)
    statistic, p = tests.t_test(diff, se, df)
    ci, narrow = intervals.t_interval(diff, se, df, level), intervals.t_interval(diff, se, df, wide)
    if settings.interval_of_difference == "bootstrap":
        found = distribution.expanded(noise.known.value, df)
        ci, narrow = found.interval(level, "percentile"), found.interval(wide, "percentile")
        p = found.p_value(method="percentile") if test == "bootstrap" else p
    if test == "permutation":
        p = swap_p(sides, settings)
    words = "not separable"
    equivalent = settings.margin is not None and -settings.margin < narrow.low and narrow.high < settings.margin
    by_p = test == "permutation" or (test == "bootstrap" and settings.interval_of_difference == "t")
    if p < 1 - level if by_p else not ci.low <= 0 <= ci.high:
        words = "A better" if (diff > 0) == (higher is not False) else "B better"
    return _Tested(
        ci,
        se,
        statistic if test == "t" else None,
        p,
        test,
        words,
        settings.interval_of_difference,
        equivalent,
    )


def corpus_difference(
    a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run, settings: Settings
) -> tuple[Difference, bool]:
    """A − B of a corpus metric: both are recomputed on the same resampled clusters of questions.

    The verdict is that of this row alone; beside it, whether the two one-sided tests find it equivalent.
    """
    settings.check("corpus_difference", f"{a.task}, {a.metric}")
    if settings.unpaired:
        sides = side_of(a), side_of(b)
        only = len(sides[0].rows), len(sides[1].rows)
        n, G = sum(only), sides[0].G + sides[1].G
    else:
        found = pair(a.questions, b.questions)
        if not found.rows_a:
            raise NothingSharedError(
                f"{a.task}: {run_a.name} and {run_b.name} have no question in common; or use `unpaired=True`"
            )
        here, there = side_of(a), side_of(b)
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
            Side(a, np.asarray(rows_a, dtype=np.intp), codes, G),
            Side(b, np.asarray(rows_b, dtype=np.intp), codes, G),
        )
        only, n = (len(scored_a) - len(both), len(scored_b) - len(both)), len(both)
    noise = noise_of(sides, [1.0, -1.0], settings, paired=not settings.unpaired)
    codes_found = set(noise.diagnostics) | set(a.diagnostics) | set(b.diagnostics)
    codes_found |= {"unpaired"} if settings.unpaired else {"unpaired_questions"} if any(only) else set()
    higher = a.higher_is_better if a.higher_is_better is not None else b.higher_is_better
    check_scale("margin", settings.margin, settings.range or a.bounds or b.bounds, a.metric)
    tested = _tested(noise, sides, settings, higher)
    if "zero_variance" in codes_found and noise.value is not None and abs(noise.value) <= 1e-12:
        codes_found.add("identical_scores")
    ci = tested.ci
    row = Difference(
        task=a.task, metric=a.metric, scorer=a.scorer, higher_is_better=higher,
        model_a=run_a.model, model_b=run_b.model, n_questions=n, n_clusters=G, n_only_a=only[0], n_only_b=only[1],
        repeats_a=sides[0].repeats, repeats_b=sides[1].repeats, mean_a=noise.each[0], mean_b=noise.each[1],
        diff=noise.value, se=root(noise.variance), ci_low=ci.low if ci else None, ci_high=ci.high if ci else None,
        level=settings.level, df=_df(noise), statistic=tested.statistic, p_value=tested.p_value,
        p_adjusted=tested.p_value, test=tested.test, p_sign=None, se_data_upper=_data_upper(noise),
        wins_a=None, wins_b=None, ties=None, correlation=None, se_unpaired=None,
        se_total=root(noise.var_total), se_data=root(noise.var_data), se_prediction=root(noise.var_prediction),
        var_data=finite(noise.var_data), var_prediction=finite(noise.var_prediction), design_effect=None,
        mde=None if not tested.se else finite(
            tests.minimum_detectable(tested.se, noise.known.df if noise.known else math.inf, settings.level).item()
        ),
        verdict=tested.words, interval=tested.interval, n_missing=a.n_missing + b.n_missing,
        cluster=next((x.cluster_spec for x in (a, b) if x.clusters is not None), None),
        diagnostics=tuple(sorted(codes_found)),
    )  # fmt: skip
    return row, tested.equivalent
