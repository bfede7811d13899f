"""From two runs to Differences: paired by question, tested on the kernel's contrast."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.clusters import in_words
from ..data.matching import Pairing, pair, pair_runs
from ..data.scores import Group, Run, Scores
from ..errors import InputError, NothingSharedError
from ..results.forms import finite, merge_notes
from ..results.rows import Comparison, Difference, Flip
from ..settings import Settings
from ..stats import decision, intervals, resampling, tests
from ..stats.contrast import Contrast, Design, question_stats
from ..stats.flips import Far, extended
from ..stats.intervals import ConfidenceInterval
from ..stats.moments import Moments, moments
from ..stats.wild import Wild, wild_test
from . import corpus
from .matching import align
from .sample import (
    Sample,
    as_scores,
    check_margin,
    group_parts,
    group_shares,
    kernel,
    noise_fields,
    nothing,
    root,
    sample,
    score_range,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..stats.arrays import FloatArray

__all__ = ["Pairing", "compare_runs", "estimate_difference", "pair"]


def _correlation(x: FloatArray, y: FloatArray) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return finite(float(np.corrcoef(x, y)[0, 1]))


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
        return "bootstrap" in (self.settings.test, self.settings.interval)

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
        found = _Judgement(
            _single(ci), name, statistic, p_value, p_value, bool(ci.exclude()), _within(narrow, settings)
        )  # fmt: skip
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
    if settings.interval == "t":
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


def _check(settings: Settings) -> None:
    if settings.interval not in ("auto", "t", "bootstrap"):
        raise InputError(
            f"interval {settings.interval} is for one run; a difference has t (with Bonett-Price where nothing "
            "varies) or bootstrap: use --interval t"
        )


def _difference(
    parts_a: Sequence[Scores], parts_b: Sequence[Scores], run_a: Run, run_b: Run, settings: Settings,
    group: Group | None = None,
) -> tuple[Judged, tuple[str, ...]]:  # fmt: skip
    """A − B of one task, or of the tasks of a group."""
    _check(settings)
    check_margin(settings, (*parts_a, *parts_b))
    if settings.unpaired:
        return _unpaired(parts_a, parts_b, run_a, run_b, settings, group), ()
    remarks: list[str] = []
    if settings.runs_shared:
        side_by_side = [pair_runs(one, other) for one, other in zip(parts_a, parts_b, strict=True)]
        parts_a, parts_b = [item[0] for item in side_by_side], [item[1] for item in side_by_side]
        remarks = [item[2] for item in side_by_side]
    pairing = align(parts_a, parts_b, group_shares(parts_a, group))
    a, b = pairing.a, pairing.b
    if len(a) == 0:
        task, other = group.name if group else parts_a[0].task, group.name if group else parts_b[0].task
        differs = f"the tasks differ ({task} and {other})" if task != other else task
        raise NothingSharedError(
            f"{differs}: {run_a.name} and {run_b.name} have no question in common "
            f"({pairing.only_a} and {pairing.only_b} questions); compare runs of one benchmark, name the column "
            "that identifies a question (--columns question=…), or use --unpaired"
        )
    found: set[str] = set()
    if a.empty:  # a task of the group is not shared at all
        m = m_a = m_b = nothing(len(a), len(set(a.labels or range(len(a)))))
        evidence, clustered = _Evidence(m, settings), a.labels is not None
    else:
        plan = a.design()
        if settings.runs_shared:
            a, b, whole = _run_by_run(a, b)
            c, m = kernel([whole], [1.0], plan, settings)
        else:
            c, m = kernel([a, b], [1.0, -1.0], plan, settings)
        _, m_a = kernel([a], [1.0], plan, settings)
        _, m_b = kernel([b], [1.0], plan, settings)
        bounds = score_range((a, b), settings)
        far = None if settings.questions_are == "fixed" else _far(c, m, plan, settings)
        evidence = _Evidence(m, settings, c.d, plan, bounds=bounds, far=far)
        clustered = plan.clustered and settings.questions_are == "population"
        if m.zero_variance and not (np.abs(c.d) > 1e-12).any():
            found.add("identical_scores")
    if pairing.only_a or pairing.only_b:
        found.add("unpaired_questions")
    if pairing.different_prompts:
        found.add("different_prompts")
    wins = tests.expected_wins(a.values, b.values)
    unpaired = None if m_a.variance is None or m_b.variance is None else math.sqrt(m_a.variance + m_b.variance)
    row = _row(
        evidence, (a, b), (m_a, m_b), (parts_a, parts_b), (run_a, run_b), group,
        found=found, clustered=clustered, p_sign=evidence.sign_test(),
        n_only_a=pairing.only_a,
        n_only_b=pairing.only_b,
        wins_a=wins[0],
        wins_b=wins[1],
        ties=wins[2],
        correlation=_correlation(a.stats.mean, b.stats.mean),
        se_unpaired=unpaired,
        cluster=pairing.cluster,
    )  # fmt: skip
    return row, (*pairing.notes, *remarks)


def _run_by_run(a: Sample, b: Sample) -> tuple[Sample, Sample, Sample]:
    """Both samples where run j answered in both, and their differences d_ij, which are one sample of K runs.

    Raises:
        InputError: a question that the two models answered in no common run.
    """
    d = a.values - b.values
    holes = np.isnan(d)
    if holes.all(axis=1).any():
        raise InputError(
            f"{a.name}: {int(holes.all(axis=1).sum())} questions have no run that both models answered: --runs-shared "
            "cannot pair them; count missing answers as wrong (--missing zero), or leave --runs-shared out"
        )
    x, y = (np.where(holes, np.nan, item.values) for item in (a, b))
    one, other, both = (question_stats(values) for values in (x, y, d))
    return (
        replace(a, values=x, stats=one),
        replace(b, values=y, stats=other),
        replace(a, values=d, stats=both, identical=a.identical or b.identical),
    )


def _far(c: Contrast, m: Moments, plan: Design, settings: Settings) -> Far | None:
    """What the far limit comes from; where repeats are runs, the variance between runs is in it too."""
    if m.variance is None or m.df is None or m.zero_variance:
        return None
    far = extended(c.d, plan, settings.se)
    if far is not None and plan.crossed is not None:  # it knows the clusters of one way
        far = Far(far.mean, np.maximum(far.variance, m.variance), np.minimum(far.df, m.df))
    if far is None or settings.repeats_are != "runs":
        return far
    of_questions = moments(c, plan, settings.se).variance or 0.0
    variance = np.maximum(far.variance + (m.variance - of_questions), m.variance)
    return Far(far.mean, variance, np.minimum(far.df, m.df))


def _unpaired(
    parts_a: Sequence[Scores], parts_b: Sequence[Scores], run_a: Run, run_b: Run, settings: Settings,
    group: Group | None,
) -> Judged:  # fmt: skip
    """A − B of two independent samples of questions: V_A + V_B, Welch's degrees of freedom.

    Every question of both runs counts: n_questions = n_A + n_B, none is shared, so n_only_a = n_A
    and n_only_b = n_B; what needs pairs (wins, correlation, sign test) is null.
    """
    a, b = (sample(parts, group_shares(parts, group)) for parts in (parts_a, parts_b))
    if a.empty or b.empty:
        raise NothingSharedError(
            f"{group.name if group else parts_a[0].task}: {run_a.name} or {run_b.name} has no scored question"
        )
    plans = a.design(), b.design()
    (c_a, m_a), (c_b, m_b) = (kernel([x], [1.0], plan, settings) for x, plan in zip((a, b), plans, strict=True))
    m = _welch(m_a, m_b)
    evidence = _Evidence(
        m, settings, sides=((c_a.d, plans[0]), (c_b.d, plans[1])), bounds=score_range((a, b), settings)
    )  # fmt: skip
    return _row(
        evidence, (a, b), (m_a, m_b), (parts_a, parts_b), (run_a, run_b), group,
        found={"unpaired"}, clustered=plans[0].clustered or plans[1].clustered, p_sign=None,
        n_only_a=len(a),
        n_only_b=len(b),
        wins_a=None,
        wins_b=None,
        ties=None,
        correlation=None,
        se_unpaired=root(m.variance),
        cluster=next((part.cluster_spec for part in (*parts_a, *parts_b) if part.cluster_spec), None),
    )  # fmt: skip


def _welch(a: Moments, b: Moments) -> Moments:
    """The difference of two independent means; degrees of freedom of Satterthwaite (1946), Welch (1947)."""

    def plus(x: float | None, y: float | None) -> float | None:
        return None if x is None or y is None else x + y

    df = None
    variance = plus(a.variance, b.variance)
    if variance is not None and a.df is not None and b.df is not None:
        assert a.variance is not None
        assert b.variance is not None
        spread = a.variance**2 / a.df + b.variance**2 / b.df
        df = variance**2 / spread if spread > 0 else min(a.df, b.df)
    # of the parts' codes, those that are about a variance or its degrees of freedom are found again
    of_parts = {"zero_variance", "negative_data_variance", "few_clusters"}
    return Moments(
        n=a.n + b.n,
        n_clusters=a.n_clusters + b.n_clusters,
        mean=None if a.mean is None or b.mean is None else a.mean - b.mean,
        variance=variance,
        df=df,
        naive=plus(a.naive, b.naive),
        var_data=plus(a.var_data, b.var_data),
        var_prediction=plus(a.var_prediction, b.var_prediction),
        var_total=plus(a.var_total, b.var_total),
        icc=None,
        zero_variance=a.zero_variance and b.zero_variance,
        diagnostics=tuple(sorted({*a.diagnostics, *b.diagnostics} - of_parts)),
    )


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


def decided(judged: Sequence[Judged], settings: Settings) -> list[Difference]:
    """The rows with their adjusted p-values and the verdicts that follow from them."""
    p = np.array([np.nan if item.p is None else item.p for item in judged], dtype=np.float64)
    p_adjusted = decision.adjusted(p, settings.adjust, [item.family for item in judged])
    rows = [item.row for item in judged]
    codes, taken_back = decision.verdicts(
        np.array([item.separable for item in judged], dtype=np.bool_), p, p_adjusted,
        np.array([((row.diff or 0.0) > 0) == (row.higher_is_better is not False) for row in rows], dtype=np.bool_),
        np.array([item.equivalent for item in judged], dtype=np.bool_), settings.level,
    )  # fmt: skip
    words = decision.words(settings.margin)
    return [
        replace(
            row,
            p_adjusted=None if row.p_value is None else finite(adjusted),
            verdict=words[code],
            diagnostics=tuple(sorted({*row.diagnostics, "not_after_adjustment"})) if back else row.diagnostics,
        )
        for row, adjusted, code, back in zip(rows, p_adjusted, codes, taken_back, strict=True)
    ]


def estimate_difference(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[object] | None = None, level: float = 0.95, **settings: Any
) -> Difference:
    """A − B of two runs' scores on the same questions, paired, with its noise.

    Args:
        a: (n, K_A) scores, NaN where a repeat is missing; or (n,).
        b: (n, K_B) scores of the same n questions in the same order.
        clusters: (n,) labels of the questions that belong together; None: independent.
        level: coverage of the confidence interval, in (0, 1).
        **settings: `se`, `test`, `margin`, … as in `Settings`; with `unpaired` a and b are scores of
            different questions, n_A and n_B of them.

    Raises:
        ValueError: arrays that do not fit together, no shared question, a level outside (0, 1).

    Source: Wang (2025), §3.3, all K_A × K_B pairs of answers; Miller (2024), §4.
    """
    choices = Settings(level=level, **settings)
    if choices.unpaired and clusters is not None:
        raise InputError("unpaired arrays have no common clusters: compare two Runs that carry their own")
    parts_a, parts_b = (as_scores(x, clusters, choices.missing) for x in (a, b))
    if not choices.unpaired and len(parts_a.questions) != len(parts_b.questions):
        raise ValueError(f"{len(parts_a.questions)} questions in a and {len(parts_b.questions)} in b")
    scored = [np.isnan(part.values).sum(axis=1) < part.values.shape[1] for part in (parts_a, parts_b)]
    if not choices.unpaired and not np.any(scored[0] & scored[1]):
        raise ValueError("no question has a score in both a and b")
    run_a, run_b = Run(model="A", name="a", harness="array"), Run(model="B", name="b", harness="array")
    return decided([_difference([parts_a], [parts_b], run_a, run_b, choices)[0]], choices)[0]


def compare_runs(pairs: Sequence[tuple[Run, Run]], settings: Settings, n_questions: int = 0) -> Comparison:
    """A − B for every pair of runs and everything that both measured; p-values adjusted over families of rows.

    Args:
        pairs: (A, B) runs; rows of all of them are in the families.
        settings: the test, its level and the rest.
        n_questions: how many of the questions that flipped most to list for each row.

    What two runs measured on different questions is left out with a note, if they share anything else.

    Raises:
        InputError: nothing in common; says what each run has.
    """
    rows: list[Judged] = []
    flips: list[Flip] = []
    notes: list[str] = []
    for run_a, run_b in pairs:
        start = len(rows)
        groups = [
            (group, parts_a, parts_b)
            for group in run_a.groups
            if (parts_a := group_parts(run_a, group)) and (parts_b := group_parts(run_b, group))
        ]
        family = _families([group for group, _, _ in groups])
        wholes = corpus.matched(run_a, run_b)
        matched, remarks = _matched(run_a, run_b, alone=not groups and not wholes)
        notes += [*run_a.notes, *run_b.notes, *remarks]
        left_out: list[NothingSharedError] = []
        for one, other in matched:
            with _collected(left_out):
                judged, found = _difference([one], [other], run_a, run_b, settings)
                rows.append(replace(judged, family=family.get(one.task, "")))
                notes += found
                if n_questions and not settings.unpaired:
                    flips += _flips(one, other, run_a, run_b, n_questions)
        for group, parts_a, parts_b in groups:
            with _collected(left_out):
                rows.append(_difference(parts_a, parts_b, run_a, run_b, settings, group)[0])
        for whole_a, whole_b in wholes:
            with _collected(left_out):
                row, equivalent = corpus.corpus_difference(whole_a, whole_b, run_a, run_b, settings)
                separable = row.verdict in decision.WORDS[1:]
                rows.append(Judged(row, row.p_value, separable, equivalent, family.get(whole_a.task, "")))
        if left_out and len(rows) == start:
            raise left_out[0]
        notes += [f"left out: {error}" for error in left_out]
        rows[start:] = [
            replace(item, row=replace(item.row, run_a=run_a.name, run_b=run_b.name)) for item in rows[start:]
        ]
    if unknown := dict.fromkeys(item.row.metric for item in rows if item.row.higher_is_better is None):
        notes.append(f"{', '.join(unknown)}: the run does not say whether higher is better; it counts as better")
    families = tuple(item.family for item in rows)
    return Comparison(
        settings.to_dict(), tuple(decided(rows, settings)), merge_notes(notes), tuple(flips), families=families
    )


def _families(groups: Sequence[Group]) -> dict[str, str]:
    """Task → the group whose subtasks are its family, the smallest where it is in several.

    Tasks that are in no group, and the rows of the groups themselves, are the first family.
    """
    by_size = sorted(groups, key=lambda group: -len(group.tasks))
    return {task: group.name for group in by_size for task in group.tasks}


@contextmanager
def _collected(errors: list[NothingSharedError]) -> Iterator[None]:
    """One task without a shared question must not take the others with it."""
    try:
        yield
    except NothingSharedError as error:
        errors.append(error)


def _matched(run_a: Run, run_b: Run, alone: bool) -> tuple[list[tuple[Scores, Scores]], list[str]]:
    """Scores of the same task, metric and scorer; or the only one of each run.

    `alone`: nothing else (a group, a corpus metric) can be compared.
    """
    where = {(item.task, item.metric, item.scorer): item for item in run_b.scores}
    matched = [(item, where[key]) for item in run_a.scores if (key := (item.task, item.metric, item.scorer)) in where]
    if matched or not alone:
        return matched, [*_only(run_a, run_b), *_only(run_b, run_a)]
    if len(run_a.scores) == len(run_b.scores) == 1:
        one, other = run_a.scores[0], run_b.scores[0]
        return [(one, other)], [f"compared {_name(one)} of {run_a.name} with {_name(other)} of {run_b.name}"]
    raise InputError(
        f"{run_a.name} and {run_b.name} measured nothing in common. The first has {_list(run_a.scores)}; the second "
        f"has {_list(run_b.scores)}. Name one of each with --task, --metric and --scorer"
    )


def _name(item: Scores) -> str:
    return " / ".join(part for part in (item.task, item.metric, item.scorer) if part and part != "none")


def _only(run: Run, other: Run) -> list[str]:
    """What one run alone measured: nobody should take the table for all there is."""
    there = {(item.task, item.metric, item.scorer) for item in other.scores}
    lone = tuple(item for item in run.scores if (item.task, item.metric, item.scorer) not in there)
    return [f"only {run.name} has {_list(lone)}: not compared"] if lone else []


def _list(scores: Sequence[Scores]) -> str:
    names = [_name(item) for item in scores]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ("; ".join(names[:6]) or "no scores") + more


def _flips(one: Scores, other: Scores, run_a: Run, run_b: Run, limit: int) -> list[Flip]:
    found = pair(one.questions, other.questions)
    with np.errstate(invalid="ignore"):
        stats_a = question_stats(one.values).mean[found.rows_a]
        stats_b = question_stats(other.values).mean[found.rows_b]
    d = stats_a - stats_b
    order = np.argsort(-np.abs(d), kind="stable")
    order = order[np.isfinite(d[order]) & (d[order] != 0)][:limit]
    texts, rows = one.questions.shown(), found.rows_a
    if not texts:
        texts, rows = other.questions.shown(), found.rows_b
    return [
        Flip(
            one.task, one.metric, one.scorer, run_a.model, run_b.model,
            question=one.questions.keys[found.rows_a[k]],
            text=texts[rows[k]] if texts else None,
            cluster=one.clusters[found.rows_a[k]] if one.clusters else None,
            mean_a=float(stats_a[k]), mean_b=float(stats_b[k]), diff=float(d[k]),
        )
        for k in order
    ]  # fmt: skip
