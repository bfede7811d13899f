"""From two runs to a row: paired by question, tested on the kernel's contrast, and decided with its family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray, blank, stacked
from ..data.clusters import in_words
from ..data.matching import pair_runs
from ..data.scores import Group, Run, Scores, causes_of
from ..errors import InputError, NothingSharedError
from ..results.diagnostics import OF_ALL_ANSWERS
from ..results.rows import PEOPLE, Difference, difference
from ..settings import Settings, all_count_as_zero
from ..stats import decision
from ..stats.contrast import Contrast, Design, question_stats
from ..stats.decision import Decision, Differences, Skew, by_sign, noise_codes, skew_of, two_sided
from ..stats.intervals import Limits, agresti_caffo
from ..stats.moments import MomentColumns, Moments, is_skewed, moments, run_component, with_new_run
from ..stats.pairs import Leads, Sides, correlation, difference_columns, far_limits, leads, paired, sides_of
from ..stats.ranks import answers_above
from .ranges import MISSING_SHARE, Ends, check_margin, difference_if_missing, scales_differ, score_range
from .sample import (
    Aligned,
    Sample,
    align,
    codes_of,
    correction,
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

    def bounds(self, settings: Settings) -> tuple[float, float] | None:
        """Lowest and highest value of the metric, by all scores of the two runs."""
        return score_range([Ends.of(self.parts_a), Ends.of(self.parts_b)], settings)

    def codes(self) -> set[str]:
        """The diagnostics that the scores of both runs bring along."""
        sides = ((self.parts_a, self.run_a), (self.parts_b, self.run_b))
        return set[str]().union(
            *(codes_of(parts, None if self.group is None else own_group(run, self.group)) for parts, run in sides)
        )

    def names(self) -> dict[str, Any]:
        """The fields of the row that say what it is about."""
        first = self.parts_a[0]
        higher = first.higher_is_better if first.higher_is_better is not None else self.parts_b[0].higher_is_better
        return {
            "task": first.task if self.group is None else self.group.name,
            "metric": first.metric,
            "scorer": first.scorer,
            "higher_is_better": higher,
            "unit": first.unit,
            "model_a": self.run_a.model,
            "model_b": self.run_b.model,
            "n_missing": sum(part.n_missing for part in self.parts),
            "missing": causes_of(self.parts),
        }


def one_row(interval: Callable[[float], Limits[float]]) -> Callable[[float], Limits[FloatArray]]:
    """Level → the interval of one difference, as `decision.decide` reads it."""

    def limits(level: float) -> Limits[FloatArray]:
        ci = interval(level)
        return Limits(np.array([ci.low]), np.array([ci.high]))

    return limits


def _no_interval(level: float) -> Limits[float]:
    return Limits(math.nan, math.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the interval and the tests of one difference are computed from."""

    m: Moments
    settings: Settings
    of: Differences
    """The difference, (1,)."""
    samples: Sequence[tuple[FloatArray, Design]] = ()
    """The paired differences and their design; of unpaired runs the values and design of each."""

    @property
    def of_questions(self) -> bool:
        """Whether the paired differences are a sample of questions."""
        return len(self.samples) == 1 and self.settings.questions_are != "fixed"

    def test(self) -> decision.Test:
        """The test and the interval that were asked for.

        Sign and permutation tests have no interval of their own, so they call a difference by p. So does the wild
        bootstrap, whose interval holds the nulls that it does not reject.
        """
        settings, test, varies = self.settings, decision.Test(), not self.m.zero_variance
        if self.m.variance is None:
            return test
        if "bootstrap" in (settings.test, settings.interval) and varies:
            test = self._bootstrapped()
        if settings.interval == "bootstrap-t" and varies:
            test = replace(test, limits=one_row(self._studentised()), interval="bootstrap-t")
        if settings.test == "wild" and varies:
            from ..stats.resampling import by_wild, wild_test

            wild = wild_test(*self.samples[0], settings.resamples, np.random.default_rng(settings.seed))
            test = by_wild([(np.arange(1), wild)], 1, settings)
        elif settings.test == "sign":
            test = replace(by_sign(self.of.p_zero), limits=test.limits, interval=test.interval)
        elif settings.test == "permutation":
            rng = np.random.default_rng(settings.seed)
            from ..stats.resampling import sign_flip_p

            p = np.array([sign_flip_p(*self.samples[0], settings.resamples, rng)])
            test = replace(test, p=p, by_p=True, of_all=True)
        return test

    def _bootstrapped(self) -> decision.Test:
        """The bootstrap's interval, and its p if that is the test; read with the closed-form variance."""
        from ..stats import resampling

        rng, minus = np.random.default_rng(self.settings.seed), self.samples[1] if len(self.samples) > 1 else None
        found = resampling.bootstrap(*self.samples[0], self.settings.resamples, rng, minus=minus)
        if found is None or self.m.variance is None or self.m.df is None:
            return decision.Test(np.array([np.nan]), limits=one_row(_no_interval), interval="bootstrap")
        return by_bootstrap(found.expanded(self.m.variance, self.m.df), self.settings)

    def _studentised(self) -> Callable[[float], Limits[float]]:
        """Level → the bootstrap-t interval; NaN where it cannot be resampled."""
        from ..stats import resampling

        rng = np.random.default_rng(self.settings.seed)
        t = resampling.studentised(*self.samples[0], self.settings.resamples, rng)
        if t is None:
            return _no_interval
        return partial(resampling.bootstrap_t, self.m.mean or 0.0, math.sqrt(self.m.variance or 0.0), t)


def by_bootstrap(found: Distribution, settings: Settings, method: Method = "bca") -> decision.Test:
    """The interval of one bootstrap distribution, and its p if the bootstrap is the test."""
    p = np.array([found.p_value(method=method)]) if settings.test == "bootstrap" else None
    if settings.interval_of_difference != "bootstrap":  # the interval is t's, and not this test's
        return decision.Test(p, by_p=True)
    return decision.Test(p, limits=one_row(partial(found.interval, method=method)), interval="bootstrap")


@dataclass(frozen=True, slots=True)
class RowDecision:
    """A row before its verdict, which depends on the other rows of its family."""

    fields: Mapping[str, Any]
    """Fields of a `Difference` that are known by now; numbers that are not given become null."""
    codes: frozenset[str]
    """Its diagnostics."""
    decision: Decision
    """What the row says for itself; (1,)."""
    family: str = ""
    skew: Skew | None = None
    """Skewness of its paired differences by question (cluster); None where they are no sample, or of several tasks."""

    @classmethod
    def of(cls, own: Decision, codes: Iterable[str], *, skew: Skew | None = None, **fields: Any) -> RowDecision:
        """The row of one decided difference, with these fields of a `Difference`."""
        return cls(fields, frozenset(codes), own, skew=skew)

    def named(self, **fields: Any) -> RowDecision:
        """The row with these fields, too."""
        return replace(self, fields={**self.fields, **fields})


def decided(rows: Sequence[RowDecision], settings: Settings) -> list[Difference]:
    """The rows with their adjusted p-values and the verdicts that follow from them."""
    if not rows:
        return []
    ahead = [((row.fields["diff"] or 0.0) > 0) == (row.fields["higher_is_better"] is not False) for row in rows]
    own = stacked([row.decision for row in rows])
    verdicts = decision.apply_adjustment(own, np.array(ahead, dtype=np.bool_), settings, [row.family for row in rows])
    out = []
    for i, row in enumerate(rows):
        lost = {"not_after_adjustment"} if verdicts.lost_to_adjustment[i] else set()
        fields = {
            **row.fields,
            **{name: float(column[i]) for name, column in own.numbers().items()},
            "verdict": verdicts.words[verdicts.codes[i]],
            "p_adjusted": float(verdicts.p_adjusted[i]),
            "interval": str(own.interval[i]),
            "diagnostics": tuple(sorted(row.codes | lost)),
        }
        out.append(difference(**fields))
    return out


def row_of(
    compared: Compared,
    evidence: Evidence,
    of: Leads,
    sides: Sides,
    codes: set[str],
    clustered: bool,
    **known: Any,
) -> RowDecision:
    """The row of a difference of means.

    Args:
        compared: the runs.
        evidence: what its interval and tests come from.
        of: who leads where.
        sides: what each run is by itself.
        codes: diagnostics beside those that the moments and the scores have.
        clustered: whether the variance knows clusters.
        **known: further fields.
    """
    m, settings = evidence.m, evidence.settings
    codes = codes.union(m.diagnostics, compared.codes())
    if evidence.of.far is not None and not np.isnan(evidence.of.far.mean[0]):
        codes.add("few_flips")
    if compared.parts_a[0].unit is not None and evidence.of_questions and is_skewed(*evidence.samples[0]):
        codes.add("skewed")
    columns = difference_columns(m.columns(), of, sides, clustered)
    numbers = {name: None if np.isnan(column[0]) else column.item() for name, column in columns.items()}
    if OF_ALL_ANSWERS & codes:
        codes.discard("single_repeat")
        numbers["se_total"] = None
    fields = numbers | {"level": settings.level, "test": settings.test, "estimand": settings.estimand}
    skew = None
    if evidence.of_questions and not evidence.samples[0][1].strata.any():
        d, plan = evidence.samples[0]
        skew = skew_of(np.bincount(plan.clusters, weights=d - d.mean()).astype(np.float64))
    own = decision.decide(evidence.of, settings, evidence.test())
    return RowDecision.of(own, codes, skew=skew, **fields | compared.names() | known)


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
    if not n_missing or se is None or all_count_as_zero(settings.missing):
        return []
    shares = group_shares(compared.parts_a, compared.group)
    ends = difference_if_missing(*sides, shares, compared.bounds(settings), unpaired=settings.unpaired)
    if ends is None or ends[1] - ends[0] <= MISSING_SHARE * se:
        return []
    return [
        f"{row.fields['task']} {row.fields['metric']}: {n_missing:,} answers are missing, and A − B lies between "
        f"{ends[0]:.3g} and {ends[1]:.3g} whatever they would have been worth"
    ]


def _no_question(compared: Compared, pairing: Aligned) -> str:
    group, run_a, run_b = compared.group, compared.run_a, compared.run_b
    task, other = (group.name if group else parts[0].task for parts in (compared.parts_a, compared.parts_b))
    differs = f"the tasks differ ({task} and {other})" if task != other else task
    why = f": {'; '.join(pairing.notes)}" if pairing.notes else ""
    return (
        f"{differs}: {run_a.name} and {run_b.name} have no question in common "
        f"({pairing.only_a} and {pairing.only_b} questions{why}); compare runs of one benchmark, name the column "
        "that identifies a question whatever its words (`columns={'question': …}`), or use `unpaired=True`"
    )


def _paired(compared: Compared, pairing: Aligned, settings: Settings) -> RowDecision:
    """The difference on the questions that both runs have."""
    a, b = pairing.a, pairing.b
    codes, judge = set[str](), None
    clustered = a.labels is not None
    of, m_a, m_b = blank(Leads, 1), *[nothing_of(b if b.undefined else a)] * 2
    if a.empty or b.empty:  # a task of the group is not shared at all, or a ratio is undefined
        evidence = Evidence(m_a, settings, paired(m_a.columns(), of, None, None))
    else:
        plan = a.design()
        c, m, (a, b) = pair_kernel(a, b, plan, settings)
        (_, m_a), (_, m_b) = (kernel([x], [1.0], plan, settings) for x in (a, b))
        of, differences = observed_pair(c, m, plan, compared.bounds(settings), settings, runs_of_one=b.runs_of_one)
        if a.ratio:
            if settings.test == "sign":
                raise InputError(f"{a.name}: no question has a ratio of sums, so none has a sign: use `test='t'`")
            of = blank(Leads, 1)
        evidence = Evidence(m, settings, differences, [(c.d, plan)])
        clustered = plan.clustered and settings.questions_are == "population"
        codes |= {"identical_scores"} if of.same[0] else set()
        judge = correction([a, b], [1.0, -1.0], c.d, m, plan)
    codes |= {"unpaired_questions"} if pairing.only_a or pairing.only_b else set()
    codes |= {"different_prompts"} if pairing.different_prompts else set()
    wins, correlated = (math.nan, math.nan), math.nan
    if judge is not None:  # corrected values are no scores of a question
        of = blank(Leads, 1)
    elif not (a.empty or b.empty):
        above = answers_above((a.values, b.values))
        wins = wins if a.ratio else (above[0, 1], above[1, 0])
        correlated = correlation(a.stats.mean[None, :], b.stats.mean[None, :]).item()
    sides = _sides((pairing.only_a, pairing.only_b), (a, b), (m_a, m_b), correlated, wins)
    spec = in_words(pairing.cluster) if clustered else None
    more = {} if judge is None else {"judge": judge, "estimand": PEOPLE, "p_sign": None}
    return row_of(compared, evidence, of, sides, codes, clustered, cluster=spec, **more)


def _sides(
    only: tuple[int, int],
    samples: tuple[Sample, Sample],
    each: tuple[Moments, Moments],
    correlated: float = math.nan,
    wins: tuple[float, float] = (math.nan, math.nan),
) -> Sides:
    """What the runs of one difference are by themselves, (1,)."""
    top = [np.array([x.n_answers.max(initial=0)]) for x in samples]
    out = sides_of([np.array([n]) for n in only], top, [m.columns() for m in each], np.array([correlated]))
    return replace(out, wins_a=np.array([wins[0]]), wins_b=np.array([wins[1]]))


_OF_RUNS = {"shared_repeat_noise", "zero_variance", "few_clusters"}
"""Codes of a variance without that between runs; those that still hold are found again."""


def pair_kernel(
    a: Sample, b: Sample, plan: Design, settings: Settings
) -> tuple[Contrast, Moments, tuple[Sample, Sample]]:
    """The kernel on A − B, run by run where the two share their runs, and the samples that it was given."""
    if not settings.runs_shared:
        c, m = kernel([a, b], [1.0, -1.0], plan, settings)
        runs = run_component(b.values, plan.weights, plan.strata) if b.runs_of_one else None
        if runs is not None:
            codes = {*m.diagnostics} - _OF_RUNS
            m = with_new_run(m, runs)
            codes |= noise_codes(m.df, zero=m.zero_variance, var_data=m.var_data)
            m = replace(m, diagnostics=tuple(sorted(codes)))
        return c, m, (a, b)
    a, b, whole = run_by_run(a, b)
    return *kernel([whole], [1.0], plan, settings), (a, b)


def observed_pair(
    c: Contrast,
    m: Moments,
    plan: Design,
    bounds: tuple[float, float] | None,
    settings: Settings,
    *,
    runs_of_one: bool = False,
) -> tuple[Leads, Differences]:
    """Who leads where, and the difference as it is decided; the far limit has the variance between runs in it, too."""
    columns, d, width = m.columns(), c.d[None, :], None if bounds is None else bounds[1] - bounds[0]
    if settings.questions_are == "fixed":
        return blank(Leads, 1), paired(columns, blank(Leads, 1), None, width)
    of, whole = leads(d, plan, columns), None
    of_questions = columns
    if settings.repeats_are == "runs" or runs_of_one:
        of_questions, whole = moments(c, plan, settings.se).columns(), columns
    far = far_limits(d, plan, of_questions, settings.se, whole=whole)
    return of, paired(columns, of, far, width)


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
    x, y = (np.where(holes, np.nan, item.values) for item in (a, b))
    one, other, both = (question_stats(values) for values in (x, y, d))
    known = a.stats.identical | b.stats.identical
    return (
        replace(a, values=x, stats=one),
        replace(b, values=y, stats=other),
        replace(a, values=d, stats=replace(both, identical=known, answers_differ=a.stats.answers_differ)),
    )


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
            f"{compared.names()['task']}: {compared.run_a.name} or {compared.run_b.name} has no scored question"
        )
    plans = a.design(), b.design()
    (c_a, m_a), (c_b, m_b) = (kernel([x], [1.0], plan, settings) for x, plan in zip((a, b), plans, strict=True))
    m = _welch(m_a, m_b)
    of = _apart(m, (c_a, c_b), plans, compared.bounds(settings), settings)
    evidence = Evidence(m, settings, of, [(c_a.d, plans[0]), (c_b.d, plans[1])])
    clustered = plans[0].clustered or plans[1].clustered
    spec = next((part.cluster_spec for part in compared.parts if part.cluster_spec), None)
    sides = _sides((len(a), len(b)), (a, b), (m_a, m_b))
    codes = {"unpaired"} | noise_codes(m.df, zero=m.zero_variance, var_data=m.var_data)
    cluster = in_words(spec) if clustered else None
    return row_of(compared, evidence, blank(Leads, 1), sides, codes, clustered, cluster=cluster)


def _apart(
    m: Moments,
    each: tuple[Contrast, Contrast],
    plans: tuple[Design, Design],
    bounds: tuple[float, float] | None,
    settings: Settings,
) -> Differences:
    """The difference of two independent means as it is decided: where nothing varies by Agresti and Caffo."""
    columns, nothing = m.columns(), np.array([np.nan])
    of = Differences(columns.mean, columns.variance, columns.df, columns.zero_variance, nothing)
    if bounds is None:
        return of
    lowest, width = bounds[0], bounds[1] - bounds[0]
    p, q = ((float(plan.weights @ c.d) - lowest) / width for c, plan in zip(each, plans, strict=True))

    def small(level: float) -> Limits[float]:
        ci = agresti_caffo(p, plans[0].n_clusters, q, plans[1].n_clusters, level)
        return Limits(width * ci.low, width * ci.high)

    ci = small(settings.level)
    p_zero = np.atleast_1d(two_sided(ci.low, ci.high, settings.level))
    return replace(of, p_zero=p_zero, small=one_row(small), small_name="agresti-caffo", width=width)


def _welch(m_a: Moments, m_b: Moments) -> Moments:
    """The difference of two independent means; degrees of freedom of Satterthwaite (1946), Welch (1947)."""
    a, b = m_a.columns(), m_b.columns()
    variance, spread = a.variance + b.variance, a.variance**2 / a.df + b.variance**2 / b.df
    m = MomentColumns(
        n=a.n + b.n,
        n_clusters=a.n_clusters + b.n_clusters,
        mean=a.mean - b.mean,
        variance=variance,
        df=variance**2 / spread if spread.item() != 0 else np.minimum(a.df, b.df),
        naive=a.naive + b.naive,
        var_data=a.var_data + b.var_data,
        var_prediction=a.var_prediction + b.var_prediction,
        var_total=a.var_total + b.var_total,
        zero_variance=a.zero_variance & b.zero_variance,
    )
    # of the parts' codes, those that are about a variance or its degrees of freedom are found again
    of_parts = {"zero_variance", "negative_data_variance", "few_clusters"}
    return replace(m.row(), diagnostics=tuple(sorted({*m_a.diagnostics, *m_b.diagnostics} - of_parts)))
