"""From two runs to Differences: paired by question, tested on the kernel's contrast."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..data.clusters import in_words
from ..data.matching import pair_runs
from ..errors import InputError, NothingSharedError
from ..results.rows import PEOPLE
from ..settings import Settings, all_count_as_zero
from ..stats.arrays import FloatArray, blank
from ..stats.contrast import Contrast, Design, question_stats
from ..stats.decision import Differences, noise_codes, two_sided
from ..stats.intervals import Limits, agresti_caffo
from ..stats.moments import Moments, moments, run_component, with_new_run
from ..stats.pairs import Leads, Sides, correlation, far_limits, leads, paired, sides_of
from ..stats.ranks import answers_above
from .evidence import Compared, Evidence, RowDecision, row_of
from .matching import Aligned, align
from .missing import MISSING_SHARE, difference_if_missing
from .ranges import check_margin, scales_differ
from .sample import Sample, correction, group_shares, kernel, nothing_of, outer_note, sample


@dataclass(frozen=True, slots=True)
class Notes:
    """What is to be said of a difference."""

    pairing: tuple[str, ...] = ()
    """Codes of its questions and their clusters; a group has those of its tasks."""
    missing: tuple[str, ...] = ()
    """Codes of missing answers."""


def run_difference(compared: Compared, settings: Settings) -> tuple[RowDecision, Notes]:
    """A − B of one task, or of the tasks of a group; and notes."""
    check_margin(settings, compared.parts)
    remarks: list[str] = []
    if scales_differ(compared.parts_a, compared.parts_b):
        remarks.append(
            f"{compared.parts_a[0].task} {compared.parts_a[0].metric}: the scores of one run lie between 0 and 1, "
            "those of the other between 0 and 100: is one of them in per cent? Bring both to one scale"
        )
    if settings.unpaired:
        row, missing = _missing(unpaired_difference(compared, settings), compared, settings)
        return row, Notes(tuple(remarks), missing)
    if settings.runs_shared:
        side_by_side = [pair_runs(*both) for both in zip(compared.parts_a, compared.parts_b, strict=True)]
        compared = replace(
            compared, parts_a=[item[0] for item in side_by_side], parts_b=[item[1] for item in side_by_side]
        )
        remarks += [item[2] for item in side_by_side]
    pairing = align(compared.parts_a, compared.parts_b, group_shares(compared.parts_a, compared.group))
    if len(pairing.a) == 0:
        raise NothingSharedError(_no_question(compared, pairing))
    row, missing = _missing(_paired(compared, pairing, settings), compared, settings)
    if compared.group is None:
        with_clusters = next((part for part in compared.parts if part.clusters is not None), compared.parts_a[0])
        remarks += outer_note(with_clusters, row.codes)
    return row, Notes((*pairing.notes, *remarks), missing)


def _missing(row: RowDecision, compared: Compared, settings: Settings) -> tuple[RowDecision, tuple[str, ...]]:
    """The row with the code `missing_matters`, and a note with the numbers, where that is so."""
    n_missing, se, sides = row.fields["n_missing"], row.fields["se"], (compared.parts_a, compared.parts_b)
    if not n_missing or se is None or all_count_as_zero(settings.missing):
        return row, ()
    shares = group_shares(compared.parts_a, compared.group)
    bounds = compared.bounds(settings)
    ends = difference_if_missing(*sides, shares, bounds, unpaired=settings.unpaired)
    if ends is None or ends[1] - ends[0] <= MISSING_SHARE * se:
        return row, ()
    note = (
        f"{row.fields['task']} {row.fields['metric']}: {n_missing:,} answers are missing, and A − B lies between "
        f"{ends[0]:.3g} and {ends[1]:.3g} whatever they would have been worth"
    )
    return replace(row, codes=row.codes | {"missing_matters"}), (note,)


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
            _check_sign(settings, a.name)
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


def _check_sign(settings: Settings, name: str) -> None:
    """Refuse the sign test of a ratio, which no question has a value of."""
    if settings.test == "sign":
        raise InputError(f"{name}: no question has a ratio of sums, so none has a sign: use `test='t'`")


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


def unpaired_difference(compared: Compared, settings: Settings) -> RowDecision:
    """A − B of two independent samples of questions: V_A + V_B, Welch's degrees of freedom.

    Every question of both runs counts: n_questions = n_A + n_B, none is shared, so n_only_a = n_A
    and n_only_b = n_B; what needs pairs (wins, correlation, sign test) is null.
    """
    group = compared.group
    a, b = (sample(parts, group_shares(parts, group)) for parts in (compared.parts_a, compared.parts_b))
    if (a.empty or b.empty) and not (a.undefined or b.undefined):
        raise NothingSharedError(
            f"{group.name if group else compared.parts_a[0].task}: {compared.run_a.name} or {compared.run_b.name} has "
            "no scored question"
        )
    if a.undefined or b.undefined:
        raise InputError(
            f"{a.name}: the interval of its denominator contains 0, so that the ratio is not defined: compare its two "
            "parts by themselves"
        )
    plans = a.design(), b.design()
    (c_a, m_a), (c_b, m_b) = (kernel([x], [1.0], plan, settings) for x, plan in zip((a, b), plans, strict=True))
    m, bounds = _welch(m_a, m_b), compared.bounds(settings)
    evidence = Evidence(
        m, settings, _apart(m, (c_a, c_b), plans, bounds, settings), [(c_a.d, plans[0]), (c_b.d, plans[1])]
    )
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

    def small(level: float) -> Limits[FloatArray]:
        ci = agresti_caffo(p, plans[0].n_clusters, q, plans[1].n_clusters, level)
        return Limits(np.array([width * ci.low]), np.array([width * ci.high]))

    ci = small(settings.level)
    p_zero = two_sided(ci.low, ci.high, settings.level)
    return replace(of, p_zero=p_zero, small=small, small_name="agresti-caffo", width=width)


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
        zero_variance=a.zero_variance and b.zero_variance,
        diagnostics=tuple(sorted({*a.diagnostics, *b.diagnostics} - of_parts)),
    )
