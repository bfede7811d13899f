"""From Scores to Estimates: one run at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import choices, extras
from ..arrays import FloatArray
from ..choices import INTERVALS, WILSON, T
from ..data.clusters import spec_in_words
from ..data.native_values import agree_on_metrics, are_zero_one
from ..data.notes import Note, merge_notes
from ..data.scores import Group, Run, Scores, Skipped, causes_of
from ..errors import InputError, some_of
from ..io.joining import check_clusters
from ..results.diagnostics import OF_ALL_ANSWERS, UNSPLIT
from ..results.rows import Analysis, Estimate, estimate
from ..settings import Settings
from ..stats import intervals
from ..stats.contrast import Design, in_order, sub_design
from ..stats.data_limit import DataLimit
from ..stats.decision import welch_p
from ..stats.intervals import OneMean
from ..stats.moments import Moments, gap_of_runs, intraclass_correlation, skewness, undefined_moments
from ..stats.tolerances import FEW_DF, FEW_FAILURES, HEAVY_DF, SKEWED, SKEWED_MEASURE, SLACK, short_of
from .doubled import doubled_note
from .judges import judge_notes, with_judge
from .ranges import MISSING_SHARE, Ends, check_range, mean_if_missing, score_range, zeros_below
from .recorded import correction
from .rows import NO_WHOLE, Interval, mean_fields
from .sample import (
    Estimated,
    Sample,
    codes_of,
    empty_moments,
    group_parts,
    group_shares,
    kernel,
    named_repeats,
    outer_note,
    sample,
    shares_if_whole,
)

if TYPE_CHECKING:
    from ..stats import resampling

__all__ = ["analyze_run", "analyze_runs", "estimate_scores", "records_of"]


def _chance_varies(data: Sample) -> bool:
    """Return True if a corrected score cannot be undone for the mean: guessing chances differ between questions."""
    corrected = any("chance_corrected" in part.diagnostics for part in data.parts)
    varies = any("chance_varies" in part.diagnostics for part in data.parts)
    return varies or (corrected and len({part.bounds for part in data.parts}) > 1)


def _chosen(
    data: Sample, of: OneMean, settings: Settings, ends: intervals.RangeEnds | None, *, zero: bool
) -> choices.IntervalMethod | None:
    """Choose a mean's interval method: the one set, else Wilson if a range is known, else t. No spread: Wilson or None.

    Raises:
        InputError: it is not for these answers.
    """
    chosen = WILSON if ends is not None and not _chance_varies(data) else T
    if settings.interval != INTERVALS.default:
        chosen = INTERVALS[settings.interval]
    check_range(data.name, chosen, None if ends is None else ends.bounds)
    if why := chosen.refusal(of):
        raise InputError(f"{data.name}: interval {chosen.name} {why}")
    if not zero:
        return chosen
    if ends is None or not ends.binary:  # a point is not an interval
        return None
    return chosen if chosen.on_share else WILSON


def _distribution(data: Sample, noise: Estimated, settings: Settings) -> resampling.Distribution | None:
    """Return a mean's bootstrap `Distribution`, scaled to its standard error. None if it cannot be resampled."""
    from ..stats import resampling

    d, design = in_order(noise.c.d, noise.design, data.by_key())
    values = resampling.bootstrap(d, design, settings.resamples, np.random.default_rng(settings.seed))
    return None if values is None else values.expanded(noise.m.variance.item(), noise.m.df.item())


def _studentised(data: Sample, noise: Estimated, settings: Settings) -> FloatArray | None:
    """Return (R,) t statistics of a mean's resamples. None if it cannot be resampled. Refuse too few clusters."""
    from ..stats import resampling

    d, design = in_order(noise.c.d, noise.design, data.by_key())
    data.check_studentised(design)
    return resampling.studentised(d, design, settings.resamples, np.random.default_rng(settings.seed))


def _interval(data: Sample, noise: Estimated, settings: Settings, ends: intervals.RangeEnds | None) -> Interval:
    """Return the confidence interval of a mean, by the method set or by default. Empty if none fits."""
    m, design, level = noise.m, noise.design, settings.level
    se, df, zero = math.sqrt(m.variance.item()), m.df.item(), bool(m.zero_variance[0])
    of = OneMean(
        mean=m.mean.item(),
        se=se,
        df=df,
        level=level,
        bounds=None if ends is None else ends.bounds,
        exact=not design.clustered and data.stats.count.max(initial=0) <= 1 and ends is not None and ends.binary,
        distribution=lambda: _distribution(data, noise, settings),
        studentised=lambda: _studentised(data, noise, settings),
    )
    chosen = _chosen(data, of, settings, ends, zero=zero)
    if math.isnan(se) and chosen is WILSON and ends is not None and ends.binary:
        return _interval_of_one(data, m, settings, ends)
    if chosen is None or math.isnan(se) or math.isnan(df):
        return Interval()
    of_questions = settings.questions_are == "population" and settings.repeats_are == "answers"
    # of fewer clusters the skewness is hardly known, and `few_clusters` warns
    of_questions = of_questions and not zero and not short_of(df, FEW_DF)
    gamma = skewness(noise.c.d, design) + data.tail if of_questions else 0.0
    of = replace(of, skewness=gamma, least=SKEWED if data.parts[0].unit is None else SKEWED_MEASURE)
    if chosen.on_share:
        assert ends is not None  # else it was refused
        answers = _binomial_answers(data, noise, settings, ends)
        width = ends.bounds[1] - ends.bounds[0]
        p = min(max((m.mean.item() - ends.bounds[0]) / width, 0.0), 1.0)
        G = int(m.n_clusters[0]) if data.corrected is None else data.corrected.n_clusters(design)
        size = intervals.binomial_size(p, se / width, answers, G, ends.mixed)
        of = replace(of, share=p, size=size, answers=answers)
    elif _chance_varies(data):
        chosen = replace(chosen, within_range=True)
    limits, moved = intervals.of_mean(chosen, of)
    return Interval() if limits is None else Interval(limits, chosen.name, moved)


def _interval_of_one(data: Sample, m: Moments, settings: Settings, ends: intervals.RangeEnds) -> Interval:
    """Return Wilson's interval of one 0/1 question. Empty if several, fixed questions or a corrected mean."""
    if len(data) != 1 or settings.questions_are == "fixed" or data.corrected is not None:
        return Interval()
    low, high = ends.bounds
    ci = intervals.wilson((m.mean.item() - low) / (high - low), 1, float(intervals.critical(settings.level)))
    return Interval(intervals.rescaled(ci, ends.bounds), WILSON.name)


def _binomial_answers(data: Sample, noise: Estimated, settings: Settings, ends: intervals.RangeEnds) -> float:
    """Return how many 0/1 answers cap a mean's effective n. Infinite: graded scores, a vote, fixed or corrected.

    A vote has one value per question but is made of more answers than are known, so their number is no cap. With fixed
    questions only the answers' own variance is left, which no number of answers caps.
    """
    vote = bool(UNSPLIT & noise.codes) and any(OF_ALL_ANSWERS.intersection(part.diagnostics) for part in data.parts)
    if not ends.binary or vote or settings.questions_are == "fixed" or data.corrected is not None:
        return math.inf
    return float(data.stats.count.sum())


BORROWED_P = 0.05
"""p of Welch's test below which questions with one answer are reported to differ from those they borrow a variance
from."""


def _run_codes(data: Sample, m: Moments, ends: intervals.RangeEnds | None, interval: Interval) -> set[str]:
    """Return codes of a run's mean: skewed, few failures, single repeats that differ. Not the scores' own codes."""
    codes = {"skewed"} if interval.moved else set()
    if ends is not None and interval.name != "none" and not np.isnan(m.variance[0]):
        unequal = short_of(m.df[0], min(HEAVY_DF, (m.n_clusters[0] - 1) / 2))
        number = min(ends.failing, ends.heavy) if unequal else ends.failing
        # of few clusters less than all count for as many: far from an end half of them do, and `few_clusters` warns
        of_questions = m.n_clusters[0] == m.n[0]  # with or without names for them
        enough = FEW_FAILURES if of_questions else min(FEW_FAILURES, m.n_clusters[0] / 2)
        codes |= {"few_failures"} if number < enough * (1 - SLACK) else set()
    single = data.stats.count < 2
    if 2 <= single.sum() <= len(data) - 2:
        sizes = np.maximum(np.bincount(data.strata), 1)
        e = data.stats.mean - (np.bincount(data.strata, weights=data.stats.mean) / sizes)[data.strata]
        codes |= {"single_repeats_differ"} if welch_p(e[single], e[~single]) < BORROWED_P else set()
    return codes


def estimate_of(parts: Sequence[Scores], run: Run, settings: Settings, *, group: Group | None = None) -> Estimate:
    """Return the mean of one task's scores, or of a group's tasks, with standard errors and interval."""
    first, shares = parts[0], group_shares(parts, group)
    data, bounds = sample(parts, shares), score_range([Ends.of(parts)], settings)
    codes, population, interval = codes_of(parts, group), settings.questions_are == "population", Interval()
    clustered, more = data.clusters is not None and population, dict[str, Any]()
    if data.empty:
        m, code = empty_moments(data, settings)
        codes.add(code)
    else:
        noise = kernel([data], [1.0], data.design(), settings, first=any(part.native_is_first for part in parts))
        m, design = noise.m, noise.design
        clustered = design.clustered and population
        ends = _count_off_ends(data, design, bounds)
        interval = _interval(data, noise, settings, ends)
        codes |= noise.codes | _run_codes(data, m, ends, interval)
        more |= noise.correction
        if settings.repeats_are == "answers" and data.corrected is None and "shared_repeat_noise" not in codes:
            gap = gap_of_runs(data.stats, design, m.var_prediction.item(), settings.level)
            if bounds is None or gap < bounds[1] - bounds[0]:  # else it says nothing
                more["gap_of_runs"] = gap
        more["_data_limit"] = DataLimit([noise.terms(settings)]) if population else None
        more["icc"] = intraclass_correlation(noise.c.d, design) if population and not np.isnan(m.variance[0]) else None
    filled = mean_if_missing(parts, shares_if_whole(parts, group), bounds)
    if filled is not None:
        codes |= {"missing_matters"} if filled[1] - filled[0] > MISSING_SHARE * np.sqrt(m.variance[0]) else set()
        names = ("mean_if_missing_wrong", "mean_if_missing_right")
        more |= zip(names, filled if first.higher_is_better is not False else filled[::-1], strict=True)
    key = first.key if group is None else group.key
    fields = mean_fields(key, run, m, settings, interval, clustered=clustered)
    if OF_ALL_ANSWERS & codes:  # there is no such thing as one answer of it
        codes.discard("single_repeat")
        fields["se_total"] = None
    fields |= {
        "higher_is_better": first.higher_is_better,
        "repeats_min": int(data.n_answers.min()) if len(data) else 0,
        "repeats_max": int(data.n_answers.max(initial=0)),
        "n_missing": sum(part.n_missing for part in parts),
        "missing": causes_of(parts),
        "cluster": spec_in_words(data.cluster_spec) if clustered else None,
        "diagnostics": tuple(sorted(codes)),
        "range": bounds,
        "unit": first.unit,
        "_zero_one": are_zero_one(parts),
        "estimator": settings.se,
        "weights": None if group is None else group.weighted,
        "estimand": settings.estimand if data.corrected is None else data.corrected.estimand,
    }
    return estimate(**fields | more)


def _count_off_ends(data: Sample, design: Design, bounds: tuple[float, float] | None) -> intervals.RangeEnds | None:
    """Return `RangeEnds`: how many clusters lie away from the ends of the metric's range. None if it is unknown."""
    if bounds is None:
        return None
    if data.corrected is None:
        return intervals.range_ends(data.values, data.stats.mean, design, bounds)
    rows, values = data.corrected.within_range()
    return intervals.range_ends(values[:, None], values, sub_design(replace(design, shares=None), rows), bounds)


def analyze_run(run: Run, settings: Settings) -> Analysis:
    """Return an `Analysis` of one run, with notes: tasks, groups, corpus metrics, then metrics without error bars."""
    estimates = [with_judge(estimate_of([part], run, settings), part) for part in run.scores]
    notes = [*run.notes, *named_repeats(run.scores, settings), *judge_notes(estimates)]
    notes += zeros_below(run.scores, settings)
    for part, row in zip(run.scores, estimates, strict=True):
        notes += outer_note(part, row.diagnostics)
        notes += doubled_note(part, row.se, lambda other: estimate_of([other], run, settings).se)
    for group in run.groups:
        parts = group_parts(run, group)
        if parts is None:
            estimates.append(_skipped(run, group, settings))
        else:
            estimates.append(estimate_of(parts, run, settings, group=group))
    skipped = list(run.skipped)
    if run.corpus and (whole := extras.whole()) is not None:
        estimates += [whole.estimate_corpus(part, run, settings) for part in run.corpus]
    elif run.corpus:
        skipped[:0] = [Skipped(*part.key, NO_WHOLE, part.native) for part in run.corpus]
    notes += _without_range(estimates)
    reasons: dict[tuple[str, str], list[str]] = {}
    for skip in skipped:
        estimates.append(_skipped(run, skip, settings))
        reasons.setdefault((skip.code, skip.reason), []).append(f"{skip.task} {skip.metric}")
    for (code, reason), names in reasons.items():
        notes.append(Note(code, f"no error bar for {some_of(names, 3)}: {reason}"))
    return Analysis(settings.to_dict(), tuple(estimates), tuple(notes), **records_of([run], estimates))


def _without_range(rows: Iterable[Estimate]) -> list[Note]:
    """Return a note on metrics without an interval: all scores are 0, or all 1, and the range is unknown."""
    constant = [row for row in rows if "zero_variance" in row.diagnostics and row.mean in (0.0, 1.0)]
    names = dict.fromkeys(f"{row.task} {row.metric}".strip() for row in constant if row.range is None)
    said = (
        "every score is the same, and nothing says what range the metric has, so there is no interval: give it with "
        "`range=(0, 1)`, or 0 and 100 for a percentage"
    )
    return [Note("range_not_known", f"{', '.join(names)}: {said}")] if names else []


def _skipped(run: Run, skip: Group | Skipped, settings: Settings) -> Estimate:
    """Return the row of a metric that has no scores: only the harness's own value, without error bar."""
    native = np.array([skip.native], dtype=np.float64)
    m = replace(undefined_moments(np.zeros(1), np.zeros(1)), mean=native)
    fields = mean_fields(skip.key, run, m, settings, Interval(), clustered=False)
    fields |= {"higher_is_better": None, "repeats_min": 0, "repeats_max": 0, "estimator": settings.se}
    return estimate(**fields, diagnostics=("skipped_metric",), estimand=settings.estimand)


Further: TypeAlias = Callable[[Run, Settings], tuple[Sequence[Estimate], Sequence[Note]]]
"""Further rows of a run, and notes."""


def analyze_runs(runs: Iterable[Run], settings: Settings, further: Further | None = None) -> Analysis:
    """Return one `Analysis` with all rows and notes of one run or more, and those that `further` adds for each."""
    settings.check("analyze")
    runs, notes = agree_on_metrics(list(runs))
    check_clusters(settings.cluster, runs)
    parts = [analyze_run(run, settings) for run in runs]
    more = [([], []) if further is None else further(run, settings) for run in runs]
    estimates = tuple(row for part, (rows, _) in zip(parts, more, strict=True) for row in (*part.estimates, *rows))
    notes_ = merge_notes(*(part.notes for part in parts), *(said for _, said in more), notes, _groups_that_differ(runs))
    return Analysis(settings.to_dict(), estimates, notes_, **records_of(runs, estimates))


def _groups_that_differ(runs: Sequence[Run]) -> list[Note]:
    """Return a note for each group that is made of different tasks in different runs. [] if none is."""
    tasks: dict[tuple[str, str, str], dict[frozenset[str], str]] = {}
    for run in runs:
        for group in run.groups:
            tasks.setdefault(group.key, {}).setdefault(frozenset(group.tasks), run.name)
    out = []
    for (name, metric, _), sets in tasks.items():
        if len(sets) > 1:
            common = frozenset[str].intersection(*sets)
            apart = sorted(frozenset[str]().union(*sets) - common)
            said = (
                f"{name} {metric}: {some_of(list(sets.values()), 3)} average different tasks (not in all of them: "
                f"{some_of(apart, 4)}), so do not compare these means: `compare` takes the tasks that both have"
            )
            out.append(Note("group_in_part", said, name))
    return out


def records_of(runs: Sequence[Run], rows: Sequence[Estimate]) -> dict[str, Any]:
    """Return stopping and drawing records as fields of an `Analysis`, {} if none. Refuse stops without their extra.

    Raises:
        InputError: a run has one of stopping, and what corrects for it is not installed.
    """
    correction(runs)
    if not any(run.stops or run.drawn for run in runs):
        return {}
    from ..results.parts import KINDS, STOPS

    stops = [KINDS[STOPS](**record) for run in runs for record in run.stops]
    scales = {row.key: row._zero_one for row in rows}
    return {
        STOPS: tuple(replace(stop, _zero_one=scales.get(stop.key)) for stop in stops),
        "drawn": tuple(KINDS["drawn"](**record) for run in runs for record in run.drawn),
    }


def estimate_scores(scores: Scores, settings: Settings) -> Estimate:
    """Return the mean of scores that were made from an array, with standard errors and interval."""
    return estimate_of([scores], Run(model="", name="", harness="array"), settings)
