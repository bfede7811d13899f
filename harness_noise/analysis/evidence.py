"""From the evidence of one difference to its interval, p and verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.clusters import in_words
from ..data.scores import Group, Run, Scores
from ..results.forms import finite
from ..results.rows import Difference
from ..settings import Settings
from ..stats import decision, intervals, resampling, tests
from ..stats.contrast import Design
from ..stats.flips import Far
from ..stats.intervals import ConfidenceInterval
from ..stats.moments import Moments
from ..stats.wild import Wild, wild_test
from .sample import Sample, noise_fields

if TYPE_CHECKING:
    from ..stats.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What the interval and the tests of one difference are computed from."""

    m: Moments
    settings: Settings
    d: FloatArray | None = None
    """(n,) paired differences; None where the runs are unpaired."""
    plan: Design | None = None
    sides: tuple[tuple[FloatArray, Design], tuple[FloatArray, Design]] | None = None
    """Values and design of each run, where the runs are unpaired."""
    bounds: tuple[float, float] | None = None
    """Lowest and highest value of the metric, where they are known."""
    far: Far | None = None
    """What the far limit comes from, where few questions (clusters) differ."""

    @property
    def resampled(self) -> bool:
        return self.settings.interval_of_difference == "bootstrap"

    @cached_property
    def distribution(self) -> resampling.Distribution | None:
        """The bootstrap's, read with the closed-form variance."""
        found = self._bootstrap()
        if found is None or self.m.variance is None or self.m.df is None:
            return None
        return found.expanded(self.m.variance, self.m.df)

    def limits(self, level: float) -> decision.Limits | None:
        """None where the bootstrap that was asked for is not possible."""
        m = self.m
        assert m.mean is not None
        assert m.variance is not None
        assert m.df is not None
        if not self.resampled:
            return decision.t_limits(m.mean, math.sqrt(m.variance), m.df, level, self.far)
        if self.distribution is None:
            return None
        ci = self.distribution.interval(level)
        return decision.Limits(np.array(ci.low), np.array(ci.high)).reaching(m.mean, self.far, level)

    def _bootstrap(self) -> resampling.Distribution | None:
        rng = np.random.default_rng(self.settings.seed)
        if self.sides is not None:
            return resampling.bootstrap(*self.sides[0], self.settings.resamples, rng, minus=self.sides[1])
        assert self.d is not None
        assert self.plan is not None
        return resampling.bootstrap(self.d, self.plan, self.settings.resamples, rng)

    def wild(self) -> Wild:
        assert self.d is not None
        assert self.plan is not None
        return wild_test(self.d, self.plan, self.settings.resamples, np.random.default_rng(self.settings.seed))

    def small_sample(self, level: float) -> ConfidenceInterval | None:
        """The interval where every difference is the same: a small-sample rule for a metric with a range."""
        if self.bounds is None:
            return None
        lowest, width = self.bounds[0], self.bounds[1] - self.bounds[0]
        if self.sides is not None:
            (x, plan_a), (y, plan_b) = self.sides
            p, q = ((float(plan.weights @ d) - lowest) / width for d, plan in ((x, plan_a), (y, plan_b)))
            ci = intervals.agresti_caffo(p, plan_a.n_clusters, q, plan_b.n_clusters, level)
            return intervals.rescaled(ci, (0.0, width))
        assert self.d is not None
        assert self.plan is not None
        G = self.plan.n_clusters
        share = np.bincount(self.plan.clusters, weights=self.plan.weights, minlength=G).astype(np.float64)
        means = np.bincount(self.plan.clusters, weights=self.plan.weights * self.d, minlength=G) / share
        # one task: plain cluster means; several: each cluster by its weight in the group's mean
        ci = intervals.bonett_price(means / width, level, share if self.plan.strata.any() else None)
        return intervals.rescaled(ci, (0.0, width))

    def sign_test(self) -> float | None:
        if (
            self.d is None
            or self.plan is None
            or self.plan.crossed is not None
            or self.settings.questions_are == "fixed"
        ):
            return None
        # within one task a weight would change nothing; across tasks a cluster's sum is a weighted one
        d = self.plan.weights * self.d * len(self.d) if self.plan.strata.any() else self.d
        return tests.sign_test(d, self.plan.clusters if self.plan.clustered else None)


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What one row says for itself, before its family is looked at."""

    ci: ConfidenceInterval | None = None
    interval: str = "none"
    statistic: float | None = None
    p_value: float | None = None
    p: float | None = None
    """What is adjusted: the p-value, or that of the rule that stands in where it is null."""
    separable: bool = False
    equivalent: bool = False


def _judge(evidence: _Evidence, p_sign: float | None) -> _Judgement:
    """Interval, p-value and two one-sided tests of the chosen test.

    The interval is the t interval, or the bootstrap's where that was asked for; sign and permutation
    tests have none of their own, so they call a difference by p < 1 − level. So does the wild bootstrap,
    whose interval holds the nulls that it does not reject.
    """
    m, settings = evidence.m, evidence.settings
    if m.variance is None or m.df is None or m.mean is None:
        return _Judgement()
    alpha = 1 - settings.level
    if m.zero_variance:
        found = _without_variance(evidence, p_sign)
    else:
        ci, narrow = evidence.limits(settings.level), evidence.limits(max(0.0, 1 - 2 * alpha))
        if ci is None or narrow is None:
            return _Judgement()
        name = "bootstrap" if evidence.resampled else "t"
        statistic = p_value = None
        if settings.test == "t":
            statistic, p_value = tests.t_test(m.mean, math.sqrt(m.variance), m.df)
        elif settings.test == "bootstrap":
            assert evidence.distribution is not None
            p_value = evidence.distribution.p_value()
        separable = bool(ci.exclude())
        if settings.test == "bootstrap" and name == "t" and p_value is not None:  # the interval is not this test's
            separable = p_value < alpha
        found = _Judgement(_single(ci), name, statistic, p_value, p_value, separable, _within(narrow, settings))
        if settings.test == "wild":
            return _by_wild(evidence, found)
    if settings.test not in ("sign", "permutation"):
        return found
    if settings.test == "sign":
        p = 1.0 if p_sign is None else p_sign
    else:
        assert evidence.d is not None
        assert evidence.plan is not None
        rng = np.random.default_rng(settings.seed)
        p = resampling.sign_flip_p(evidence.d, evidence.plan, settings.resamples, rng)
    return replace(found, p_value=p, p=p, separable=p < alpha)


def _by_wild(evidence: _Evidence, by_t: _Judgement) -> _Judgement:
    """The p-value of the wild bootstrap; its interval unless t's was asked for, none where a side has no end."""
    settings, resampled = evidence.settings, evidence.wild()
    p = float(resampled.p_value()[0])
    found = replace(by_t, p_value=p, p=p, separable=p < 1 - settings.level)
    if settings.interval_of_difference == "t":
        return found
    ci, narrow = (
        decision.Limits(*resampled.limits(level)).reaching(resampled.estimate, evidence.far, level)
        for level in (settings.level, max(0.0, 2 * settings.level - 1))
    )
    finite_ends = bool(np.isfinite([ci.low, ci.high]).all())
    return replace(
        found,
        ci=_single(ci) if finite_ends else None,
        interval="wild" if finite_ends else "none",
        equivalent=_within(narrow, settings),
    )


def _without_variance(evidence: _Evidence, p_sign: float | None) -> _Judgement:
    """Where every difference is the same the sign test decides; without pairs, the small-sample interval."""
    settings = evidence.settings
    alpha = 1 - settings.level
    ci, narrow = (evidence.small_sample(level) for level in (settings.level, max(0.0, 1 - 2 * alpha)))
    p_value = 1.0 if abs(evidence.m.mean or 0.0) <= 1e-12 else None
    p, name = p_value, "bonett-price"
    separable = p_value is None and p_sign is not None and p_sign < alpha
    if p is None:
        p = p_sign
    if evidence.sides is not None:
        name = "agresti-caffo"
        separable = ci is not None and not ci.low <= 0 <= ci.high
        if p is None and ci is not None:
            p = float(decision.two_sided(ci.low, ci.high, settings.level))
    equivalent = narrow is not None and _within(decision.Limits(np.array(narrow.low), np.array(narrow.high)), settings)
    return _Judgement(ci, name if ci else "none", None, p_value, p, separable, equivalent)


def _single(limits: decision.Limits) -> ConfidenceInterval:
    return ConfidenceInterval(float(limits.low.item()), float(limits.high.item()))


def _within(limits: decision.Limits, settings: Settings) -> bool:
    return settings.margin is not None and bool(limits.within(settings.margin))


def _row(
    evidence: _Evidence, samples: tuple[Sample, Sample], each: tuple[Moments, Moments],
    parts: tuple[Sequence[Scores], Sequence[Scores]], runs: tuple[Run, Run], group: Group | None,
    *, found: set[str], clustered: bool, p_sign: float | None, cluster: str | None, **fields: Any,
) -> Judged:  # fmt: skip
    m, settings = evidence.m, evidence.settings
    first = parts[0][0]
    higher = first.higher_is_better if first.higher_is_better is not None else parts[1][0].higher_is_better
    judgement = _judge(evidence, p_sign)
    found |= set(m.diagnostics).union(*(part.diagnostics for side in parts for part in side))
    if m.zero_variance:
        found.add("zero_variance")
    if evidence.far is not None:
        found.add("few_flips")
    if m.df is not None and m.df < 10:
        found.add("few_clusters")
    if m.var_data is not None and m.var_data < 0:
        found.add("negative_data_variance")
    noise = noise_fields(m, clustered)
    if "uses_all_repeats" in found:
        found.discard("single_repeat")
        noise["se_total"] = None
    mde = None
    if m.variance is not None and m.df is not None and not m.zero_variance:
        mde = float(tests.minimum_detectable(math.sqrt(m.variance), m.df, settings.level))
    row = Difference(
        task=group.name if group is not None else first.task,
        metric=first.metric,
        scorer=first.scorer,
        higher_is_better=higher,
        model_a=runs[0].model,
        model_b=runs[1].model,
        n_questions=m.n,
        n_clusters=m.n_clusters,
        repeats_a=int(samples[0].stats.count.max(initial=0)),
        repeats_b=int(samples[1].stats.count.max(initial=0)),
        mean_a=finite(each[0].mean),
        mean_b=finite(each[1].mean),
        diff=finite(m.mean),
        ci_low=judgement.ci.low if judgement.ci else None,
        ci_high=judgement.ci.high if judgement.ci else None,
        level=settings.level,
        df=finite(m.df),
        statistic=finite(judgement.statistic),
        p_value=finite(judgement.p_value),
        p_adjusted=finite(judgement.p_value),
        test=settings.test,
        interval=judgement.interval,
        p_sign=finite(p_sign),
        mde=finite(mde),
        verdict=decision.WORDS[0],
        n_missing=sum(part.n_missing for side in parts for part in side),
        cluster=in_words(cluster) if clustered else None,
        estimand=settings.estimand,
        diagnostics=tuple(sorted(found)),
        **noise,
        **fields,
    )
    return Judged(row, judgement.p, judgement.separable, judgement.equivalent)


@dataclass(frozen=True, slots=True)
class Judged:
    """A row before its verdict, which depends on the other rows of its family."""

    row: Difference
    p: float | None
    """What is adjusted over the family."""
    separable: bool
    """What the row's own interval or test says."""
    equivalent: bool
    family: str = ""
