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
from dataclasses import replace

import numpy as np

from ..data.matching import pair
from ..data.native_values import MISMATCH, reproduces
from ..data.scores import CorpusScores, Run
from ..errors import InputError, NothingSharedError
from ..results.forms import finite
from ..results.rows import Estimate
from ..settings import Settings, check_scale
from ..stats import decision, intervals
from ..stats.arrays import FloatArray
from ..stats.contrast import cluster_codes
from ..stats.decision import detectable_distance
from ..stats.moments import data_limit
from ..stats.tolerances import FEW_CARRY, FEW_CARRY_DIFFERENCE, FEW_RESAMPLED, ROUNDING, SLACK
from .corpus_noise import CorpusNoise, Side, noise_of, side_of, swap_p
from .evidence import RowDecision, by_bootstrap
from .ranges import outside
from .sample import root


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
    item: CorpusScores, noise: CorpusNoise, bounds: tuple[float, float] | None, settings: Settings
) -> tuple[intervals.Limits[float] | None, str]:
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
    return intervals.rescaled(intervals.wilson(p, n, float(intervals.critical(level, df))), bounds), name


def _rests_on_few(noise: CorpusNoise, fewest: float) -> bool:
    """Whether fewer clusters than these carry the metric, as a rare class's positives do."""
    return noise.known is not None and noise.carried_by is not None and noise.carried_by < fewest


def _df(noise: CorpusNoise) -> float | None:
    return None if noise.known is None else finite(noise.known.df)


def _data_upper(noise: CorpusNoise) -> float | None:
    if noise.known is None or noise.distribution is None:
        return None
    if noise.variance is None or noise.var_data is None:
        return None
    return root(data_limit(noise.variance, noise.known.df, noise.var_data).item())


def estimate_corpus(item: CorpusScores, run: Run, settings: Settings) -> Estimate:
    """A corpus metric, averaged over repeats, with its noise by the cluster bootstrap."""
    settings.check("corpus", f"{item.task}, {item.metric}")
    side = side_of(item)
    noise = noise_of([side], [1.0], settings, paired=True)
    theta = side.values()
    found = set(noise.diagnostics) | _codes(item, theta)
    bounds = _range(item, theta, settings)
    ci, interval = _interval(item, noise, bounds, settings)
    if ci is not None and (side.G < FEW_RESAMPLED or _rests_on_few(noise, FEW_CARRY)):
        found.add("few_resampled")
    return Estimate(
        task=item.task,
        metric=item.metric,
        scorer=item.scorer,
        model=run.model,
        run=run.name,
        higher_is_better=item.higher_is_better,
        n_questions=len(side.rows),
        n_clusters=side.G,
        repeats_min=side.repeats,
        repeats_max=side.repeats,
        mean=noise.value,
        se=root(noise.variance),
        ci_low=ci.low if ci else None,
        ci_high=ci.high if ci else None,
        level=settings.level,
        df=_df(noise),
        interval=interval,
        range=bounds,
        se_total=root(noise.var_total),
        se_data=root(noise.var_data),
        se_prediction=root(noise.var_prediction),
        se_naive=None,
        var_data=finite(noise.var_data),
        var_prediction=finite(noise.var_prediction),
        design_effect=None,
        n_effective=None,
        icc=None,
        estimator="bootstrap",
        n_missing=item.n_missing,
        se_data_upper=_data_upper(noise),
        cluster=item.cluster_spec if item.clusters is not None else None,
        diagnostics=tuple(sorted(found)),
        mde=detectable_distance(root(noise.variance), _df(noise), settings.level),
    )


def _codes(item: CorpusScores, theta: FloatArray) -> set[str]:
    """The diagnostics that one run's metric brings along; `theta` is its value on each repeat."""
    codes = set(item.diagnostics)
    if item.native is None or not len(theta):
        return codes
    ours = float(theta[0] if item.native_is_first else theta.mean())
    return codes if reproduces(ours, item.native) else codes | {MISMATCH}


def _decide(
    noise: CorpusNoise, sides: Sequence[Side], bounds: tuple[float, float] | None, settings: Settings, test: str
) -> decision.Decision:
    """The t test with the clusters' degrees of freedom, or the bootstrap or permutation test that is asked for."""
    known, distribution = noise.known, noise.distribution
    V, df = (np.nan, np.nan) if known is None else (known.value, known.df)
    diff = np.nan if noise.value is None else noise.value
    flat = known is not None and distribution is None
    of = decision.Differences(
        np.array([diff]),
        np.array([V]),
        np.array([df]),
        np.array([flat]),
        p_zero=np.array([np.nan]),
        width=math.inf if bounds is None else bounds[1] - bounds[0],
    )
    by = decision.Test()
    if distribution is not None and "bootstrap" in (test, settings.interval_of_difference):
        by = by_bootstrap(distribution.expanded(V, df), settings, "percentile")
    if distribution is not None and test == "permutation":
        by = replace(by, p=np.array([swap_p(sides, settings)]), by_p=True)
    return decision.decide(of, settings, by)


def _shared(a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run) -> tuple[tuple[Side, Side], tuple[int, int]]:
    """Both sides on the questions that both have, and how many more each has."""
    pairs = pair(a.questions, b.questions)
    if not pairs.rows_a:
        raise NothingSharedError(
            f"{a.task}: {run_a.name} and {run_b.name} have no question in common; or use `unpaired=True`"
        )
    scored_a, scored_b = set(side_of(a).rows.tolist()), set(side_of(b).rows.tolist())
    both = [(i, j) for i, j in zip(pairs.rows_a, pairs.rows_b, strict=True) if i in scored_a and j in scored_b]
    rows_a, rows_b = [i for i, _ in both], [j for _, j in both]
    labels = None
    if a.clusters is not None:
        labels = [a.clusters[i] for i in rows_a]
    elif b.clusters is not None:
        labels = [b.clusters[j] for j in rows_b]
    codes, G = (np.arange(len(both)), len(both)) if labels is None else cluster_codes(labels)
    sides = (Side(a, np.asarray(rows_a, dtype=np.intp), codes, G), Side(b, np.asarray(rows_b, dtype=np.intp), codes, G))
    return sides, (len(scored_a) - len(both), len(scored_b) - len(both))


def corpus_difference(a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run, settings: Settings) -> RowDecision:
    """A − B of a corpus metric: both are recomputed on the same resampled clusters of questions.

    There is no sign test of questions that have no score of their own.
    """
    settings.check("corpus_difference", f"{a.task}, {a.metric}")
    if settings.unpaired:
        sides = side_of(a), side_of(b)
        only = len(sides[0].rows), len(sides[1].rows)
        n, G = sum(only), sides[0].G + sides[1].G
    else:
        sides, only = _shared(a, b, run_a, run_b)
        n, G = len(sides[0].rows), sides[0].G
    noise = noise_of(sides, [1.0, -1.0], settings, paired=not settings.unpaired)
    codes = set(noise.diagnostics).union(*(_codes(item, side_of(item).values()) for item in (a, b)))
    if noise.distribution is not None and _rests_on_few(noise, FEW_CARRY_DIFFERENCE):
        codes.add("few_resampled")
    codes |= {"unpaired"} if settings.unpaired else {"unpaired_questions"} if any(only) else set()
    bounds = settings.range or a.bounds or b.bounds
    check_scale("margin", settings.margin, bounds, a.metric)
    test = settings.test if settings.test in ("bootstrap", "permutation") else "t"
    if "zero_variance" in codes and noise.value is not None and abs(noise.value) <= ROUNDING:
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
        n_questions=n,
        n_clusters=G,
        n_only_a=only[0],
        n_only_b=only[1],
        repeats_a=sides[0].repeats,
        repeats_b=sides[1].repeats,
        mean_a=noise.each[0],
        mean_b=noise.each[1],
        diff=noise.value,
        se=root(noise.variance),
        level=settings.level,
        df=_df(noise),
        test=test,
        se_data_upper=_data_upper(noise),
        n_missing=a.n_missing + b.n_missing,
        se_total=root(noise.var_total),
        se_data=root(noise.var_data),
        se_prediction=root(noise.var_prediction),
        var_data=noise.var_data,
        var_prediction=noise.var_prediction,
        cluster=next((x.cluster_spec for x in (a, b) if x.clusters is not None), None),
    )
