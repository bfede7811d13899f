"""From two runs to a row: paired by question, tested on the kernel's contrast, and decided with its family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any

import numpy as np

from ..arrays import FloatArray, blank, columns_of
from ..choices import AGRESTI_CAFFO, PERMUTATION, SIGN, T_TEST, T
from ..data.clusters import spec_in_words
from ..data.matching import pair_questions, pair_runs, pairs_are_certain
from ..data.native_values import are_zero_one
from ..data.notes import Note, texts
from ..data.questions import CONTENT_KEYS, excerpt
from ..data.scores import Group, Run, Scores, causes_of
from ..data.units import PERCENT, Scale
from ..errors import InputError, NothingSharedError, counted, some_of
from ..results.diagnostics import SCORED
from ..settings import Settings, all_count_as_zero
from ..stats import decision
from ..stats.baselines import by_runs
from ..stats.contrast import question_stats
from ..stats.data_limit import DataLimit
from ..stats.decision import Differences, noise_codes, two_sided
from ..stats.intervals import Limits, agresti_caffo
from ..stats.missing import UNTOLD, Reach, p_of_flat, t_reach
from ..stats.moments import Moments
from ..stats.pairs import Leads, Sides, correlation, extended_samples, leads, paired, sides_of
from ..stats.ranks import wins
from .drawn import DrawnFrom, chosen_test
from .ranges import (
    BETWEEN,
    MISSING_SHARE,
    Ends,
    are_graded,
    check_margin,
    difference_if_missing,
    fill,
    scales_differ,
    score_range,
)
from .rows import Evidence, Filled, RowDecision, compared_fields, row_of
from .sample import (
    Aligned,
    Estimated,
    Sample,
    align,
    codes_of,
    each_alone,
    empty_moments,
    fixed_questions,
    group_shares,
    is_scored,
    kernel,
    outer_note,
    own_group,
    sample,
    shares_if_whole,
)
from .scoring import (
    OTHER_VERSION,
    Checked,
    equal_note,
    join_checks,
    judge_note,
    other_versions,
    scored_differently,
    scoring_of,
    version_note,
)


@dataclass(frozen=True, slots=True)
class Compared:
    """Scores that one row compares: a task of two runs, or the tasks of a group."""

    parts_a: Sequence[Scores]
    parts_b: Sequence[Scores]
    run_a: Run
    run_b: Run
    group: Group | None = None
    left_out: tuple[int, int] = (0, 0)
    """Questions of the group's tasks that only A, and that only B has."""
    scoring: dict[tuple[int, int], Checked] = field(default_factory=dict)
    """(id of A's scores, id of B's) → the check of their equal answers, which a group needs again for its tasks."""

    def check_equal_answers(self, *, unpaired: bool = False) -> Checked:
        """Count A's and B's equal answers, and those scored differently, over all tasks. Unpaired: surely matched only.

        Unpaired runs are checked if it is known which of their questions are the same.
        """
        each = []
        for a, b in self.sides:
            if unpaired and not pairs_are_certain(a.questions, b.questions):
                continue
            if (id(a), id(b)) not in self.scoring:
                self.scoring[id(a), id(b)] = scoring_of(a, b)
            each.append(self.scoring[id(a), id(b)])
        return join_checks(each)

    @property
    def parts(self) -> tuple[Scores, ...]:
        return (*self.parts_a, *self.parts_b)

    @property
    def sides(self) -> list[tuple[Scores, Scores]]:
        """Scores of A and of B, for each task."""
        return list(zip(self.parts_a, self.parts_b, strict=True))

    @property
    def task(self) -> str:
        return self.parts_a[0].task if self.group is None else self.group.name

    def bounds(self, settings: Settings) -> tuple[float, float] | None:
        """Return the metric's lowest and highest possible value, from settings, adapter or scores. None: unknown."""
        return score_range([Ends.of(self.parts_a), Ends.of(self.parts_b)], settings)

    def codes(self) -> set[str]:
        """Return the set of diagnostic codes that the scores of A and of B have before they are compared."""
        sides = ((self.parts_a, self.run_a), (self.parts_b, self.run_b))
        return set[str]().union(
            *(codes_of(parts, None if self.group is None else own_group(run, self.group)) for parts, run in sides)
        )

    def about(self) -> dict[str, Any]:
        """Return the row's descriptive fields: task, metric, models, unit, missing answers by cause, weights."""
        more: dict[str, Any] = {"task": self.task, "unit": self.parts_a[0].unit, "missing": causes_of(self.parts)}
        more["weights"] = None if self.group is None else self.group.weighted
        more["_zero_one"] = are_zero_one(self.parts)
        return compared_fields(self.parts_a, self.parts_b, self.run_a, self.run_b) | more


def run_difference(compared: Compared, settings: Settings) -> tuple[RowDecision, list[Note]]:
    """Return A − B of one task or group before its verdict, and notes (a group: on missing). Refuse if none is shared.

    Of a group nothing is said of its questions and their clusters, which the rows of its tasks do.
    """
    check_margin(settings, compared.parts)
    notes: list[Note] = []
    scoring = compared.check_equal_answers(unpaired=settings.unpaired)
    if scales_differ(compared.parts_a, compared.parts_b):
        said = (
            f"{compared.parts_a[0].task} {compared.parts_a[0].metric}: the scores of one run lie between 0 and 1, "
            "those of the other between 0 and 100: is one of them in %? Bring both to one scale"
        )
        notes.append(Note("scales_differ", said, compared.parts_a[0].task))
    if settings.unpaired:
        row = _unpaired(compared, settings)
    else:
        if settings.runs_shared:
            side_by_side = [pair_runs(*both) for both in compared.sides]
            parts_a, parts_b, how = zip(*side_by_side, strict=True)
            compared = replace(compared, parts_a=parts_a, parts_b=parts_b)
            notes += how
        pairing = align(compared.parts_a, compared.parts_b, group_shares(compared.parts_a, compared.group))
        if len(pairing.a) == 0:
            raise NothingSharedError(_no_question(compared, pairing))
        row = _paired(compared, pairing, settings)
        with_clusters = next((part for part in compared.parts if part.clusters is not None), compared.parts_a[0])
        notes = [*pairing.notes, *notes, *outer_note(with_clusters, row.codes)]
    missing = _missing_note(row, compared, settings)
    row = _with_missing_filled(row, compared, settings)
    row, on_scoring = _with_scoring_notes(row, scoring, compared)
    row = replace(row, codes=row.codes | {"missing_matters"}) if missing else row
    return row, [*((*notes, *on_scoring) if compared.group is None else ()), *missing]


def _with_scoring_notes(row: RowDecision, found: Checked, compared: Compared) -> tuple[RowDecision, list[Note]]:
    """Return the row with `equal_answers`, `judge_flips` and codes of scoring that differs in A and B, and notes."""
    codes, notes, about = set(row.codes), list[Note](), f"{compared.task} {compared.parts_a[0].metric}"
    if scored_differently(found.equal):
        codes.add(SCORED)
    elif found.equal is not None:
        notes.append(equal_note(about, found.equal))
    if found.judge is not None:
        notes.append(judge_note(about, found.judge))
    versions = [what for both in zip(compared.parts_a, compared.parts_b, strict=True) for what in other_versions(*both)]
    if versions:
        codes.add(OTHER_VERSION)
        notes.append(version_note(compared.task, list(dict.fromkeys(versions))))
    fields = {**row.fields, "equal_answers": found.equal, "judge_flips": found.judge}
    return replace(row, codes=frozenset(codes), fields=fields), notes


def _missing_note(row: RowDecision, compared: Compared, settings: Settings) -> list[Note]:
    """Return a note with the lowest and highest A − B that missing answers allow. [] if that changes little."""
    n_missing, se, sides = row.fields["n_missing"], row.fields["se"], (compared.parts_a, compared.parts_b)
    if not n_missing or not math.isfinite(se) or all_count_as_zero(settings.missing):
        return []
    shares = shares_if_whole(compared.parts_a, compared.group)
    ends = difference_if_missing(*sides, shares, compared.bounds(settings), unpaired=settings.unpaired)
    if ends is None or ends[1] - ends[0] <= MISSING_SHARE * se:
        return []
    scale = PERCENT if row.fields["_zero_one"] else Scale()
    low, high = (f"{scale.times * end:.3g}".replace("-", "−") for end in ends)
    of_them, worth = ("answer is", "it would") if n_missing == 1 else ("answers are", "they would")
    said = (
        f"{row.fields['task']} {row.fields['metric']}: {n_missing:,} {of_them} missing, and A − B lies between "
        f"{low} and {high}{scale.size} whatever {worth} have been worth"
    )
    return [Note("missing_matters", said, row.fields["task"])]


def _with_missing_filled(row: RowDecision, compared: Compared, settings: Settings) -> RowDecision:
    """Return the row with `filled` (rows with missing answers worst or best, or no known range). Unchanged if none is.

    First come the worst scores of A with the best of B, and the best of A with the worst of B. If it is not shown that
    all others lie between, graded scores between the ends are tried, too.
    """
    known = all(part.unit is None and part.corrected is None for part in compared.parts)
    if not row.fields["n_missing"] or all_count_as_zero(settings.missing) or not known:
        return row
    bounds, shares = compared.bounds(settings), shares_if_whole(compared.parts_a, compared.group)
    sides, group = (compared.parts_a, compared.parts_b), compared.group and compared.group.whole()
    if bounds is None:
        return replace(row, filled=Filled(ranged=False))
    if difference_if_missing(*sides, shares, bounds, unpaired=settings.unpaired) is None:
        return replace(row, filled=Filled())

    def whole(end_a: float, end_b: float) -> Compared:
        parts_a, parts_b = (
            [fill(part, end) for part in parts] for parts, end in zip(sides, (end_a, end_b), strict=True)
        )
        return replace(compared, parts_a=parts_a, parts_b=parts_b, group=group)

    def aligned(what: Compared) -> Aligned:
        return align(what.parts_a, what.parts_b, shares)

    ends, graded = [whole(*bounds), whole(*bounds[::-1])], are_graded(compared.parts, bounds)
    reach = UNTOLD if settings.unpaired else _possible_t(*map(aligned, ends), settings=settings, graded=graded)
    inner = np.linspace(*bounds, BETWEEN + 2)[1:-1].tolist() if graded and not reach.rises else []
    each = (*ends, *starmap(whole, zip(inner, inner[::-1], strict=True)))
    rows = (_unpaired(x, settings) if settings.unpaired else _paired(x, aligned(x), settings) for x in each)
    return replace(row, filled=Filled(tuple(rows), reach))


def _possible_t(low: Aligned, high: Aligned, *, settings: Settings, graded: bool) -> Reach:
    """Return the `Reach` of t if scores are missing: that it rises with every score, its range, or that it is unknown.

    The sign test and the permutation test count signs, or compare sums, so they follow every score. So does t of single
    answers that are right or wrong. Of all other scores `t_reach` knows; of other tests nothing.

    Args:
        low: the pairs with the lowest difference that the missing scores allow.
        high: with the highest.
        settings: the test, the interval and the variance.
        graded: whether some scores are neither the lowest nor the highest.
    """
    if settings.test_of_difference in (SIGN.name, PERMUTATION.name):
        return Reach(rises=True)
    computed_by_t = settings.test_of_difference == T_TEST.name and settings.interval_of_difference == T.name
    of_answers = settings.repeats_are == "answers" and not low.b.runs_of_one
    if not (computed_by_t and of_answers) or fixed_questions(settings) or low.a.empty or low.b.empty:
        return UNTOLD
    design = low.a.design()
    single = all(side.values.shape[1] == 1 for side in (low.a, low.b))
    if single and not (graded or design.clustered or design.strata.any()):
        return Reach(rises=True, p_flat=p_of_flat(design))
    lowest, highest = (of.a.stats.mean - of.b.stats.mean for of in (low, high))
    return t_reach(lowest, highest, design, settings.se)


def _no_question(compared: Compared, pairing: Aligned) -> str:
    run_a, run_b, task, other = compared.run_a, compared.run_b, compared.task, compared.parts_b[0].task
    differs = f"the tasks differ ({task} and {other})" if compared.group is None and task != other else task
    if n_asked := sum(len(pair_questions(a.questions, b.questions).rows_a) for a, b in compared.sides):
        sides = ((run_a, compared.parts_a), (run_b, compared.parts_b))
        without = [run.name for run, parts in sides if not any(is_scored(part).any() for part in parts)]
        lacking = f"{some_of(without, 2)} {'has' if len(without) == 1 else 'have'} no score of any" if without else ""
        return (
            f"{differs}: no question has a score in both {run_a.name} and {run_b.name}. They share "
            f"{counted(n_asked, 'question')}, and {lacking or 'each lacks its score in one of them or in both'}. Score "
            f"the missing answers{'' if without else ', or use `unpaired=True`'}"
        )
    why = f": {'; '.join(texts(pairing.notes))}" if pairing.notes else ""
    return (
        f"{differs}: {run_a.name} and {run_b.name} have no question in common "
        f"({pairing.only_a} and {pairing.only_b} questions{why}).{_first_questions(compared)} Compare runs of one "
        "benchmark, name the column or field that identifies a question in both (`columns={'question': 'FIELD'}`, or "
        "`columns={'A:question': 'FIELD', 'B:question': 'FIELD'}`), or use `unpaired=True`"
    )


def _first_questions(compared: Compared) -> str:
    """Return a sentence that quotes the first question of A and of B, "" if one side has no questions."""
    each = [parts[0].questions for parts in (compared.parts_a, compared.parts_b)]
    names = [
        next(iter(questions.keys if questions.kind not in CONTENT_KEYS else questions.shown() or ()), "")
        for questions in each
    ]
    first, second = (excerpt(name)[:40] for name in names)
    return f" Their first are {first!r} and {second!r}.".replace("`", "'") if first and second else ""


def _paired(compared: Compared, aligned: Aligned, settings: Settings) -> RowDecision:
    """Return the row of A − B over shared questions, before its verdict. NaN with a code if it cannot be estimated."""
    a, b = aligned.a, aligned.b
    only = (aligned.only_a + compared.left_out[0], aligned.only_b + compared.left_out[1])
    codes, corrected, population = compared.codes(), dict[str, Any](), settings.questions_are == "population"
    limit: DataLimit | None = None
    clustered = a.clusters is not None and population
    codes |= {"unpaired_questions"} if any(only) else set()
    codes |= {"different_prompts"} if aligned.different_prompts else set()
    a.check_test(settings)
    if a.empty or b.empty:  # a task of the group is not shared at all, or a ratio is undefined
        m, code = empty_moments(b if b.undefined else a, settings)
        codes.add(code)
        of = blank(Leads, 1)
        evidence = Evidence(
            m, paired(m, of, None, None), decision.Test(), of, _own_numbers(only, (a, b), (m, m)), clustered
        )
    else:
        whole, (a, b) = pair_kernel(a, b, settings)
        codes |= whole.codes
        clustered, corrected = whole.design.clustered and population, dict(whole.correction)
        limit = DataLimit([whole.terms(settings)]) if population else None
        of, differences = observed_pair(whole, compared.bounds(settings), settings)
        of = blank(Leads, 1) if a.ratio else of
        codes |= {"identical_scores"} if of.same[0] else set()
        of = blank(Leads, 1) if corrected else of  # corrected values are not scores of a question
        sample_of = whole.c.d, whole.design
        test = chosen_test(differences, [DrawnFrom(*sample_of, a)], settings)
        if whole.spread is not None and not (differences.zero[0] or np.isnan(differences.variance[0])):
            test = by_runs(differences, whole.of_questions, whole.spread, differences.far)
        sides = _paired_numbers(only, whole, (a, b), settings)
        evidence = Evidence(whole.m, differences, test, of, sides, clustered, sample_of if population else None)
    spec = spec_in_words(a.cluster_spec) if clustered else None
    more = {"cluster": spec, "_data_limit": limit, **corrected}
    return row_of(evidence, codes, settings, **compared.about(), **more)


def _own_numbers(only: tuple[int, int], samples: tuple[Sample, Sample], each: Sequence[Moments]) -> Sides:
    """Return `Sides` of A and B: mean, variance, most answers, unshared questions. Correlation and wins are NaN."""
    top = [np.array([x.n_answers.max(initial=0)]) for x in samples]
    return sides_of([np.array([n]) for n in only], top, each, np.full(1, np.nan))


def _paired_numbers(
    only: tuple[int, int], whole: Estimated, samples: tuple[Sample, Sample], settings: Settings
) -> Sides:
    """Return each run's own mean and variance, their correlation and wins (ratio: no wins, corrected: neither)."""
    sides = _own_numbers(only, samples, each_alone(whole, samples, settings))
    if whole.correction:
        return sides
    a, b = samples
    sides = replace(sides, correlation=correlation(a.stats.mean[None, :], b.stats.mean[None, :]))
    if a.ratio:
        return sides
    wins_a, wins_b = wins(a.values, b.values)
    return replace(sides, wins_a=np.array([wins_a]), wins_b=np.array([wins_b]))


def pair_kernel(a: Sample, b: Sample, settings: Settings) -> tuple[Estimated, tuple[Sample, Sample]]:
    """Return A − B `Estimated` on shared questions, and both samples (`runs_shared`: only the runs that both have)."""
    design = a.design()
    if not settings.runs_shared:
        return kernel([a, b], [1.0, -1.0], design, settings), (a, b)
    a, b, whole = run_by_run(a, b)
    return kernel([whole], [1.0], design, settings), (a, b)


def observed_pair(
    noise: Estimated, bounds: tuple[float, float] | None, settings: Settings
) -> tuple[Leads, Differences]:
    """Return `Leads` (clusters on which A or B is ahead, blank for fixed questions), and `Differences` to test.

    The far limit of that difference includes the variance between runs.
    """
    width = None if bounds is None else bounds[1] - bounds[0]
    if settings.questions_are != "population":
        of = blank(Leads, 1)
        return of, paired(noise.m, of, None, width)
    # what stored runs add is in the test itself (`by_runs`)
    own = noise.m is noise.of_questions or noise.spread is not None
    d, whole = noise.c.d[None, :], None if own else noise.m
    of = leads(d, noise.design, noise.m)
    # corrected values are influences, and none of them a flip
    far = None if noise.correction else extended_samples(d, noise.design, noise.of_questions, settings.se, whole=whole)
    return of, paired(noise.m, of, far, width)


def run_by_run(a: Sample, b: Sample) -> tuple[Sample, Sample, Sample]:
    """Restrict two samples to runs that both have: return A, B, A − B. Refuse a question without one.

    Raises:
        InputError: a question that the two models answered in no common run.
    """
    d = a.values - b.values
    holes = np.isnan(d)
    if holes.all(axis=1).any():
        raise InputError(
            f"{a.name}: {int(holes.all(axis=1).sum())} questions have no run that both models answered: `runs_shared` "
            "cannot pair them. Count missing answers as wrong (`missing='zero'`), or leave `runs_shared` out"
        )
    x, y = (np.where(holes, np.nan, side.values) for side in (a, b))
    stats_a, stats_b, both = (question_stats(values) for values in (x, y, d))
    identical, differ = a.stats.identical | b.stats.identical, a.stats.answers_differ | b.stats.answers_differ
    whole = replace(a, values=d, stats=replace(both, identical=identical, answers_differ=differ))
    return replace(a, values=x, stats=stats_a), replace(b, values=y, stats=stats_b), whole


def _unpaired(compared: Compared, settings: Settings) -> RowDecision:
    """Return A − B for independent samples of questions (Welch's df). Refuse empty ones and undefined ratios.

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
        raise NothingSharedError(f"{a.name}: {compared.run_a.name} or {compared.run_b.name} has no scored question")
    each = [kernel([x], [1.0], x.design(), settings) for x in (a, b)]
    limit = DataLimit([x.terms(settings) for x in each])
    m = welch(*(x.m for x in each))
    m = replace(m, data_upper=np.where(np.isnan(m.var_data), np.nan, limit.upper()))
    of = _unpaired_difference(m, each, compared.bounds(settings), settings)
    test = chosen_test(of, [DrawnFrom(x.c.d, x.design, side) for x, side in zip(each, (a, b), strict=True)], settings)
    # of the parts' codes, those that are about a variance or its degrees of freedom are found again
    codes = {code for x in each for code in x.codes} - {"zero_variance", "negative_data_variance", "few_clusters"}
    codes |= noise_codes(m.df.item(), zero=bool(m.zero_variance[0]), var_data=m.var_data.item())
    clustered = any(x.design.clustered for x in each)
    spec = a.cluster_spec or b.cluster_spec
    sides = _own_numbers((len(a), len(b)), (a, b), [x.m for x in each])
    evidence = Evidence(m, of, test, blank(Leads, 1), sides, clustered)
    cluster = spec_in_words(spec) if clustered else None
    about_ = compared.about() | {"cluster": cluster, "_data_limit": limit}
    return row_of(evidence, codes | compared.codes() | {"unpaired"}, settings, **about_)


def _unpaired_difference(
    m: Moments, each: Sequence[Estimated], bounds: tuple[float, float] | None, settings: Settings
) -> Differences:
    """Return the `Differences` of two independent means. A known range adds Agresti–Caffo limits for variance 0."""
    of = Differences(m.mean, m.variance, m.df, m.zero_variance, np.array([np.nan]))
    if bounds is None:
        return of
    lowest, width = bounds[0], bounds[1] - bounds[0]
    p, q = ((x.m.mean - lowest) / width for x in each)

    def small(level: float) -> Limits[FloatArray]:
        ci = agresti_caffo(p, each[0].design.n_clusters, q, each[1].design.n_clusters, level)
        return Limits(width * ci.low, width * ci.high)

    ci = small(settings.level)
    p_zero = two_sided(ci.low, ci.high, settings.level)
    return replace(of, p_zero=p_zero, small=small, small_name=AGRESTI_CAFFO.name, width=width)


def welch(a: Moments, b: Moments) -> Moments:
    """Return the moments of a − b for independent means: summed variance, Welch's df (variance 0: the smaller df)."""
    variance, spread = a.variance + b.variance, a.variance**2 / a.df + b.variance**2 / b.df
    sums = Moments(**{name: column + getattr(b, name) for name, column in columns_of(a).items()})
    return replace(
        sums,
        mean=a.mean - b.mean,
        df=variance**2 / spread if spread.item() != 0 else np.minimum(a.df, b.df),
        zero_variance=a.zero_variance & b.zero_variance,
    )
