"""From two runs to a row: paired by question, tested on the kernel's contrast, and decided with its family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..arrays import FloatArray, blank, columns_of
from ..data.clusters import in_words
from ..data.matching import pair_runs
from ..data.scores import Group, Run, Scores, causes_of
from ..errors import InputError, NothingSharedError
from ..results.rows import PEOPLE
from ..settings import Settings, all_count_as_zero
from ..stats import decision
from ..stats.contrast import Design, question_stats
from ..stats.decision import Differences, by_sign, noise_codes, two_sided
from ..stats.intervals import Limits, agresti_caffo
from ..stats.moments import Moments
from ..stats.pairs import Leads, Sides, correlation, far_limits, leads, paired, sides_of
from ..stats.ranks import answers_above
from .ranges import MISSING_SHARE, Ends, check_margin, difference_if_missing, scales_differ, score_range
from .rows import Evidence, RowDecision, about, row_of
from .sample import (
    Aligned,
    Estimated,
    Sample,
    align,
    codes_of,
    group_shares,
    kernel,
    nothing_of,
    outer_note,
    own_group,
    sample,
)

if TYPE_CHECKING:
    from ..stats.resampling import Distribution, Method


@dataclass(frozen=True, slots=True)
class Compared:
    """What one row compares: a task of two runs, or the tasks of a group."""

    parts_a: Sequence[Scores]
    parts_b: Sequence[Scores]
    run_a: Run
    run_b: Run
    group: Group | None = None

    @property
    def parts(self) -> tuple[Scores, ...]:
        return (*self.parts_a, *self.parts_b)

    @property
    def task(self) -> str:
        return self.parts_a[0].task if self.group is None else self.group.name

    def bounds(self, settings: Settings) -> tuple[float, float] | None:
        """Lowest and highest value of the metric, by all scores of the two runs."""
        return score_range([Ends.of(self.parts_a), Ends.of(self.parts_b)], settings)

    def codes(self) -> set[str]:
        """The diagnostics that the scores of both runs bring along."""
        sides = ((self.parts_a, self.run_a), (self.parts_b, self.run_b))
        return set[str]().union(
            *(codes_of(parts, None if self.group is None else own_group(run, self.group)) for parts, run in sides)
        )

    def about(self) -> dict[str, Any]:
        """The fields of the row that say what it is about."""
        more = {"task": self.task, "unit": self.parts_a[0].unit, "missing": causes_of(self.parts)}
        return about(self.parts_a, self.parts_b, self.run_a, self.run_b) | more


def _no_interval(level: float) -> Limits[float]:
    return Limits(math.nan, math.nan)


Samples: TypeAlias = Sequence[tuple[FloatArray, Design]]
"""The paired differences and their design; of unpaired runs the values and design of each."""


def _asked_for(of: Differences, samples: Samples, settings: Settings) -> decision.Test:
    """The test and the interval of one difference that were asked for.

    Sign and permutation tests have no interval of their own, so they call a difference by p. So does the wild
    bootstrap, whose interval holds the nulls that it does not reject.
    """
    test, varies, rng = decision.Test(), not of.zero[0], np.random.default_rng(settings.seed)
    if np.isnan(of.variance[0]):
        return test
    if "bootstrap" in (settings.test, settings.interval) and varies:
        test = _bootstrapped(of, samples, settings)
    if settings.interval == "bootstrap-t" and varies:
        test = replace(test, limits=_studentised(of, samples, settings), interval="bootstrap-t")
    if settings.test == "wild" and varies:
        from ..stats.resampling import by_wild, wild_test

        test = by_wild([(np.arange(1), wild_test(*samples[0], settings.resamples, rng))], 1, settings)
    elif settings.test == "sign":
        test = replace(by_sign(of.p_zero), limits=test.limits, interval=test.interval)
    elif settings.test == "permutation":
        from ..stats.resampling import sign_flip_p

        p = np.array([sign_flip_p(*samples[0], settings.resamples, rng)])
        test = replace(test, p=p, by_p=True, of_all=True)
    return test


def _bootstrapped(of: Differences, samples: Samples, settings: Settings) -> decision.Test:
    """The bootstrap's interval, and its p if that is the test; read with the closed-form variance."""
    from ..stats.resampling import bootstrap

    minus = samples[1] if len(samples) > 1 else None
    distribution = bootstrap(*samples[0], settings.resamples, np.random.default_rng(settings.seed), minus=minus)
    if distribution is None or np.isnan(of.df[0]):
        return decision.Test(np.array([np.nan]), limits=_no_interval, interval="bootstrap")
    return by_bootstrap(distribution.expanded(of.variance.item(), of.df.item()), settings)


def _studentised(of: Differences, samples: Samples, settings: Settings) -> Callable[[float], Limits[float]]:
    """Level → the bootstrap-t interval; NaN where it cannot be resampled."""
    from ..stats.resampling import bootstrap_t, studentised

    t = studentised(*samples[0], settings.resamples, np.random.default_rng(settings.seed))
    return _no_interval if t is None else partial(bootstrap_t, of.diff.item(), math.sqrt(of.variance.item()), t)


def by_bootstrap(distribution: Distribution, settings: Settings, method: Method = "bca") -> decision.Test:
    """The interval of one bootstrap distribution, and its p if the bootstrap is the test."""
    p = np.array([distribution.p_value(method=method)]) if settings.test == "bootstrap" else None
    if settings.interval_of_difference != "bootstrap":  # the interval is t's, and not this test's
        return decision.Test(p, by_p=True)
    return decision.Test(p, limits=partial(distribution.interval, method=method), interval="bootstrap")


def run_difference(compared: Compared, settings: Settings) -> tuple[RowDecision, list[str]]:
    """A − B of one task, or of the tasks of a group, and what is to be said of it.

    Of a group nothing is said of its questions and their clusters, which the rows of its tasks do.
    """
    check_margin(settings, compared.parts)
    notes: list[str] = []
    if scales_differ(compared.parts_a, compared.parts_b):
        notes.append(
            f"{compared.parts_a[0].task} {compared.parts_a[0].metric}: the scores of one run lie between 0 and 1, "
            "those of the other between 0 and 100: is one of them in per cent? Bring both to one scale"
        )
    if settings.unpaired:
        row = _unpaired(compared, settings)
    else:
        if settings.runs_shared:
            side_by_side = [pair_runs(*both) for both in zip(compared.parts_a, compared.parts_b, strict=True)]
            parts_a, parts_b, how = zip(*side_by_side, strict=True)
            compared = replace(compared, parts_a=parts_a, parts_b=parts_b)
            notes += how
        pairing = align(compared.parts_a, compared.parts_b, group_shares(compared.parts_a, compared.group))
        if len(pairing.a) == 0:
            raise NothingSharedError(_no_question(compared, pairing))
        row = _paired(compared, pairing, settings)
        with_clusters = next((part for part in compared.parts if part.clusters is not None), compared.parts_a[0])
        notes = [*pairing.notes, *notes, *outer_note(with_clusters, row.codes)]
    missing = _if_missing(row, compared, settings)
    if missing:
        row = replace(row, codes=row.codes | {"missing_matters"})
    return row, [*(notes if compared.group is None else ()), *missing]


def _if_missing(row: RowDecision, compared: Compared, settings: Settings) -> list[str]:
    """What answers that are missing could change, where that is much."""
    n_missing, se, sides = row.fields["n_missing"], row.fields["se"], (compared.parts_a, compared.parts_b)
    if not n_missing or not math.isfinite(se) or all_count_as_zero(settings.missing):
        return []
    shares = group_shares(compared.parts_a, compared.group)
    ends = difference_if_missing(*sides, shares, compared.bounds(settings), unpaired=settings.unpaired)
    if ends is None or ends[1] - ends[0] <= MISSING_SHARE * se:
        return []
    low, high = (f"{end:.3g}".replace("-", "−") for end in ends)
    return [
        f"{row.fields['task']} {row.fields['metric']}: {n_missing:,} answers are missing, and A − B lies between "
        f"{low} and {high} whatever they would have been worth"
    ]


def _no_question(compared: Compared, pairing: Aligned) -> str:
    run_a, run_b, task, other = compared.run_a, compared.run_b, compared.task, compared.parts_b[0].task
    differs = f"the tasks differ ({task} and {other})" if compared.group is None and task != other else task
    why = f": {'; '.join(pairing.notes)}" if pairing.notes else ""
    return (
        f"{differs}: {run_a.name} and {run_b.name} have no question in common "
        f"({pairing.only_a} and {pairing.only_b} questions{why}); compare runs of one benchmark, name the column "
        "that identifies a question whatever its words (`columns={'question': …}`), or use `unpaired=True`"
    )


def _paired(compared: Compared, aligned: Aligned, settings: Settings) -> RowDecision:
    """The difference on the questions that both runs have."""
    a, b, only = aligned.a, aligned.b, (aligned.only_a, aligned.only_b)
    codes, judge, population = compared.codes(), None, settings.questions_are == "population"
    clustered = a.labels is not None and population
    codes |= {"unpaired_questions"} if any(only) else set()
    codes |= {"different_prompts"} if aligned.different_prompts else set()
    a.check_signs(settings)
    if a.empty or b.empty:  # a task of the group is not shared at all, or a ratio is undefined
        m, code = nothing_of(b if b.undefined else a, settings)
        codes.add(code)
        of = blank(Leads, 1)
        evidence = Evidence(m, paired(m, of, None, None), decision.Test(), of, _sides(only, (a, b), (m, m)), clustered)
    else:
        whole, (a, b) = pair_kernel(a, b, settings)
        codes |= whole.codes
        clustered, judge = whole.plan.clustered and population, whole.judge
        of, differences = observed_pair(whole, compared.bounds(settings), settings)
        of = blank(Leads, 1) if a.ratio else of
        codes |= {"identical_scores"} if of.same[0] else set()
        of = of if judge is None else blank(Leads, 1)  # corrected values are no scores of a question
        sample_of = whole.c.d, whole.plan
        test = _asked_for(differences, [sample_of], settings)
        sides = _paired_sides(only, whole, (a, b), settings)
        evidence = Evidence(whole.m, differences, test, of, sides, clustered, sample_of if population else None)
    spec = in_words(aligned.cluster) if clustered else None
    corrected = {} if judge is None else {"judge": judge, "estimand": PEOPLE}
    return row_of(evidence, codes, settings, **compared.about(), cluster=spec, **corrected)


def _sides(only: tuple[int, int], samples: tuple[Sample, Sample], each: Sequence[Moments]) -> Sides:
    """What the runs of one difference are by themselves, (1,)."""
    top = [np.array([x.n_answers.max(initial=0)]) for x in samples]
    return sides_of([np.array([n]) for n in only], top, each, np.full(1, np.nan))


def _paired_sides(only: tuple[int, int], whole: Estimated, samples: tuple[Sample, Sample], settings: Settings) -> Sides:
    """What two runs are by themselves and to each other, on the questions that both have."""
    sides = _sides(only, samples, [kernel([x], [1.0], whole.plan, settings).m for x in samples])
    if whole.judge is not None:
        return sides
    a, b = samples
    sides = replace(sides, correlation=correlation(a.stats.mean[None, :], b.stats.mean[None, :]))
    if a.ratio:
        return sides
    above = answers_above((a.values, b.values))
    return replace(sides, wins_a=above[:1, 1], wins_b=above[1:, 0])


def pair_kernel(a: Sample, b: Sample, settings: Settings) -> tuple[Estimated, tuple[Sample, Sample]]:
    """The kernel on A − B, run by run where the two share their runs, and the samples that it was given."""
    plan = a.design()
    if not settings.runs_shared:
        return kernel([a, b], [1.0, -1.0], plan, settings), (a, b)
    a, b, whole = run_by_run(a, b)
    return kernel([whole], [1.0], plan, settings), (a, b)


def observed_pair(
    noise: Estimated, bounds: tuple[float, float] | None, settings: Settings
) -> tuple[Leads, Differences]:
    """Who leads where, and the difference as it is decided; the far limit has the variance between runs in it, too."""
    of, far, width = blank(Leads, 1), None, None if bounds is None else bounds[1] - bounds[0]
    if settings.questions_are == "population":
        d, whole = noise.c.d[None, :], None if noise.m is noise.of_questions else noise.m
        of = leads(d, noise.plan, noise.m)
        far = far_limits(d, noise.plan, noise.of_questions, settings.se, whole=whole)
    return of, paired(noise.m, of, far, width)


def run_by_run(a: Sample, b: Sample) -> tuple[Sample, Sample, Sample]:
    """Both samples where run j answered in both, and their differences d_ij, which are one sample of K runs.

    Raises:
        InputError: a question that the two models answered in no common run.
    """
    d = a.values - b.values
    holes = np.isnan(d)
    if holes.all(axis=1).any():
        raise InputError(
            f"{a.name}: {int(holes.all(axis=1).sum())} questions have no run that both models answered: `runs_shared` "
            "cannot pair them; count missing answers as wrong (`missing='zero'`), or leave `runs_shared` out"
        )
    x, y = (np.where(holes, np.nan, side.values) for side in (a, b))
    stats_a, stats_b, both = (question_stats(values) for values in (x, y, d))
    identical, differ = a.stats.identical | b.stats.identical, a.stats.answers_differ | b.stats.answers_differ
    whole = replace(a, values=d, stats=replace(both, identical=identical, answers_differ=differ))
    return replace(a, values=x, stats=stats_a), replace(b, values=y, stats=stats_b), whole


def _unpaired(compared: Compared, settings: Settings) -> RowDecision:
    """A − B of two independent samples of questions: V_A + V_B, Welch's degrees of freedom.

    Every question of both runs counts: n_questions = n_A + n_B, none is shared, so n_only_a = n_A
    and n_only_b = n_B; what needs pairs (wins, correlation, sign test) is null.
    """
    a, b = (sample(parts, group_shares(parts, compared.group)) for parts in (compared.parts_a, compared.parts_b))
    if a.undefined or b.undefined:
        raise InputError(
            f"{a.name}: the interval of its denominator contains 0, so that the ratio is not defined: compare its two "
            "parts by themselves"
        )
    if a.empty or b.empty:
        raise NothingSharedError(
            f"{compared.task}: {compared.run_a.name} or {compared.run_b.name} has no scored question"
        )
    each = [kernel([x], [1.0], x.design(), settings) for x in (a, b)]
    m = welch(*(x.m for x in each))
    of = _apart(m, each, compared.bounds(settings), settings)
    test = _asked_for(of, [(x.c.d, x.plan) for x in each], settings)
    # of the parts' codes, those that are about a variance or its degrees of freedom are found again
    codes = {code for x in each for code in x.codes} - {"zero_variance", "negative_data_variance", "few_clusters"}
    codes |= noise_codes(m.df.item(), zero=bool(m.zero_variance[0]), var_data=m.var_data.item())
    clustered = any(x.plan.clustered for x in each)
    spec = next((part.cluster_spec for part in compared.parts if part.cluster_spec), None)
    sides = _sides((len(a), len(b)), (a, b), [x.m for x in each])
    evidence = Evidence(m, of, test, blank(Leads, 1), sides, clustered)
    cluster = in_words(spec) if clustered else None
    return row_of(evidence, codes | compared.codes() | {"unpaired"}, settings, **compared.about(), cluster=cluster)


def _apart(
    m: Moments, each: Sequence[Estimated], bounds: tuple[float, float] | None, settings: Settings
) -> Differences:
    """The difference of two independent means as it is decided: where nothing varies by Agresti and Caffo."""
    of = Differences(m.mean, m.variance, m.df, m.zero_variance, np.array([np.nan]))
    if bounds is None:
        return of
    lowest, width = bounds[0], bounds[1] - bounds[0]
    p, q = ((x.m.mean - lowest) / width for x in each)

    def small(level: float) -> Limits[FloatArray]:
        ci = agresti_caffo(p, each[0].plan.n_clusters, q, each[1].plan.n_clusters, level)
        return Limits(width * ci.low, width * ci.high)

    ci = small(settings.level)
    p_zero = two_sided(ci.low, ci.high, settings.level)
    return replace(of, p_zero=p_zero, small=small, small_name="agresti-caffo", width=width)


def welch(a: Moments, b: Moments) -> Moments:
    """The difference of two independent means; degrees of freedom [Satterthwaite; Welch]."""
    variance, spread = a.variance + b.variance, a.variance**2 / a.df + b.variance**2 / b.df
    sums = Moments(**{name: column + getattr(b, name) for name, column in columns_of(a).items()})
    return replace(
        sums,
        mean=a.mean - b.mean,
        df=variance**2 / spread if spread.item() != 0 else np.minimum(a.df, b.df),
        zero_variance=a.zero_variance & b.zero_variance,
    )
