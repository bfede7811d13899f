"""From Scores to Estimates: one run at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.clusters import in_words
from ..data.native_values import agreed
from ..data.scores import Group, Run, Scores, Skipped, causes_of
from ..errors import InputError, some_of
from ..io.joining import check_clusters
from ..results.diagnostics import OF_ALL_ANSWERS, UNSPLIT
from ..results.forms import merge_notes
from ..results.rows import PEOPLE, Analysis, Estimate, estimate
from ..settings import Settings
from ..stats import intervals
from ..stats.contrast import Design, sub_design
from ..stats.decision import welch_p
from ..stats.intervals import Limits
from ..stats.labels import n_labelled
from ..stats.moments import Moments, intraclass_correlation, skewness, undefined_moments
from ..stats.tolerances import FEW_DF, FEW_FAILURES, HEAVY_DF, SKEWED, SKEWED_MEASURE, SLACK, short_of
from .judges import judge_notes, with_judge
from .ranges import MISSING_SHARE, Ends, mean_if_missing, score_range
from .rows import Interval, mean_fields
from .sample import (
    Estimated,
    Sample,
    codes_of,
    group_parts,
    group_shares,
    kernel,
    named_repeats,
    nothing_of,
    outer_note,
    sample,
)

__all__ = ["analyze_run", "analyze_runs", "estimate_scores", "looks_of"]


def _interval_name(data: Sample, m: Moments, plan: Design, settings: Settings, ends: intervals.RangeEnds | None) -> str:
    """The interval asked for, or the default: Wilson for a metric with a range, else t; none where there is none."""
    wanted = settings.interval
    if wanted in ("wilson", "korn-graubard", "clopper-pearson") and ends is None:
        raise InputError(
            f"{data.name}: interval {wanted} is for a metric with a range, as scores in [0, 1] have one: give it with "
            "`range=(LOW, HIGH)`, or use `interval='t'`"
        )
    if wanted == "clopper-pearson" and (
        plan.clustered or data.stats.count.max(initial=0) > 1 or ends is None or not ends.binary
    ):
        raise InputError(
            f"{data.name}: interval clopper-pearson is exact only for 0/1 scores with one answer per question and "
            "no clusters: use `interval='korn-graubard'`, its extension"
        )
    name = ("t" if ends is None else "wilson") if wanted == "auto" else wanted
    if not m.zero_variance[0]:
        return name
    if ends is None or not ends.binary:  # a point is no interval
        return "none"
    return "wilson" if name in ("t", "bootstrap", "bootstrap-t") else name


def _resampled(noise: Estimated, settings: Settings, name: str) -> Limits[float] | None:
    """BCa or bootstrap-t of a mean with a standard error; None where it cannot be resampled."""
    from ..stats import resampling

    rng, d, plan, m = np.random.default_rng(settings.seed), noise.c.d, noise.plan, noise.m
    if name == "bootstrap-t":
        t = resampling.studentised(d, plan, settings.resamples, rng)
        se = math.sqrt(m.variance.item())
        return None if t is None else resampling.bootstrap_t(m.mean.item(), se, t, settings.level)
    values = resampling.bootstrap(d, plan, settings.resamples, rng)
    return None if values is None else values.expanded(m.variance.item(), m.df.item()).interval(settings.level)


def _interval(data: Sample, noise: Estimated, settings: Settings, ends: intervals.RangeEnds | None) -> Interval:
    """The interval that was asked for, or the default."""
    m, plan, level = noise.m, noise.plan, settings.level
    name, se, df = _interval_name(data, m, plan, settings, ends), math.sqrt(m.variance.item()), m.df.item()
    if name == "none" or math.isnan(se) or math.isnan(df):
        return Interval()
    t = float(intervals.critical(level, df))
    of_questions = settings.questions_are == "population" and settings.repeats_are == "answers"
    # of fewer clusters the skewness is hardly known, and `few_clusters` warns
    of_questions = of_questions and not m.zero_variance[0] and not short_of(df, FEW_DF)
    gamma = skewness(noise.c.d, plan) + data.tail if of_questions else 0.0
    least = SKEWED if data.parts[0].unit is None else SKEWED_MEASURE
    if name == "t":
        moved = intervals.tail_shift(gamma, 0.0, t, least)
        return Interval(intervals.moved(intervals.t_interval(m.mean.item(), se, df, level), moved * se), name, moved)
    if name in ("bootstrap", "bootstrap-t"):
        ci = _resampled(noise, settings, name)
        if ci is None:
            return Interval()
        low, high = ends.bounds if ends is not None else (-math.inf, math.inf)
        # its own quantiles know the tail, which is only told
        moved = intervals.tail_shift(gamma, 0.0, t, least) if name == "bootstrap-t" else 0.0
        return Interval(intervals.within(ci, low, high), name, moved)
    assert ends is not None  # else the name is none of these
    answers = _binomial_answers(data, noise, settings, ends)
    width = ends.bounds[1] - ends.bounds[0]
    p, moved = min(max((m.mean.item() - ends.bounds[0]) / width, 0.0), 1.0), 0.0
    G = int(m.n_clusters[0]) if data.corrected is None else n_labelled(data.corrected, plan)
    n = intervals.binomial_size(p, se / width, answers, G, ends.mixed)
    if name == "clopper-pearson":
        ci = intervals.clopper_pearson(p, answers, level)
    elif name == "korn-graubard":
        ci = intervals.korn_graubard(p, n, answers, df, level)
    else:
        moved = intervals.tail_shift(gamma, intervals.binomial_skewness(p, n), t)
        ci = intervals.moved(intervals.wilson(p, n, t), moved * se / width)
    return Interval(intervals.rescaled(intervals.within(ci, 0.0, 1.0), ends.bounds), name, moved)


def _binomial_answers(data: Sample, noise: Estimated, settings: Settings, ends: intervals.RangeEnds) -> float:
    """The 0/1 answers that a mean cannot know more than; infinite where their number is no bound.

    A vote has one value per question, but is made of more answers than are at hand to cap it, and of fixed
    questions only the answers' own variance is left, which no number of answers caps.
    """
    vote = bool(UNSPLIT & noise.codes) and any(OF_ALL_ANSWERS.intersection(part.diagnostics) for part in data.parts)
    if not ends.binary or vote or settings.questions_are == "fixed" or data.corrected is not None:
        return math.inf
    return float(data.stats.count.sum())


BORROWED_P = 0.05
"""Below this p of Welch's test, questions with one answer are said to differ from those they borrow a variance from."""


def _of_one_run(data: Sample, m: Moments, ends: intervals.RangeEnds | None, interval: Interval) -> set[str]:
    """Diagnostics that only the scores of one run show."""
    codes = {"skewed"} if interval.moved else set()
    if ends is not None and interval.name != "none":
        unequal = short_of(m.df[0], min(HEAVY_DF, (m.n_clusters[0] - 1) / 2))
        number = min(ends.failing, ends.heavy) if unequal else ends.failing
        codes |= {"few_failures"} if number < FEW_FAILURES * (1 - SLACK) else set()
    single = data.stats.count < 2
    if 2 <= single.sum() <= len(data) - 2:
        sizes = np.maximum(np.bincount(data.strata), 1)
        e = data.stats.mean - (np.bincount(data.strata, weights=data.stats.mean) / sizes)[data.strata]
        codes |= {"single_repeats_differ"} if welch_p(e[single], e[~single]) < BORROWED_P else set()
    return codes


def estimate_of(parts: Sequence[Scores], run: Run, settings: Settings, *, group: Group | None = None) -> Estimate:
    """The mean of one task, or of the tasks of a group, with its noise."""
    first, shares = parts[0], group_shares(parts, group)
    data, bounds = sample(parts, shares), score_range([Ends.of(parts)], settings)
    codes, population, interval = codes_of(parts, group), settings.questions_are == "population", Interval()
    clustered, more = data.labels is not None and population, dict[str, Any]()
    if data.empty:
        m, code = nothing_of(data, settings)
        codes.add(code)
    else:
        noise = kernel([data], [1.0], data.design(), settings, first=any(part.native_is_first for part in parts))
        m, plan = noise.m, noise.plan
        clustered = plan.clustered and population
        ends = _ends_of(data, plan, bounds)
        interval = _interval(data, noise, settings, ends)
        codes |= noise.codes | _of_one_run(data, m, ends, interval)
        more["judge"] = noise.judge
        more["icc"] = intraclass_correlation(noise.c.d, plan) if population and not np.isnan(m.variance[0]) else None
    filled = mean_if_missing(parts, shares, bounds)
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
        "cluster": in_words(next((x.cluster_spec for x in parts if x.cluster_spec), None)) if clustered else None,
        "diagnostics": tuple(sorted(codes)),
        "range": bounds,
        "unit": first.unit,
        "estimator": settings.se,
        "estimand": settings.estimand if data.corrected is None else PEOPLE,
    }
    return estimate(**fields | more)


def _ends_of(data: Sample, plan: Design, bounds: tuple[float, float] | None) -> intervals.RangeEnds | None:
    """How the scores, or the labels that correct them, lie between the ends of their range; None where it has none."""
    if bounds is None:
        return None
    if data.corrected is None:
        return intervals.range_ends(data.values, data.stats.mean, plan, bounds)
    rows = np.flatnonzero(data.corrected.n_labels)
    label = data.corrected.label[rows]
    return intervals.range_ends(label[:, None], label, sub_design(replace(plan, shares=None), rows), bounds)


def analyze_run(run: Run, settings: Settings) -> Analysis:
    """All estimates of one run, in the order of the run: tasks, groups, corpus metrics, then what was skipped."""
    estimates = [with_judge(estimate_of([part], run, settings), part) for part in run.scores]
    notes = [*run.notes, *named_repeats(run.scores, settings), *judge_notes(estimates)]
    for part, row in zip(run.scores, estimates, strict=True):
        notes += outer_note(part, row.diagnostics)
    for group in run.groups:
        parts = group_parts(run, group)
        if parts is None:
            estimates.append(_skipped(run, group, settings))
        else:
            estimates.append(estimate_of(parts, run, settings, group=group))
    if run.corpus:
        from .corpus import estimate_corpus

        estimates += [estimate_corpus(part, run, settings) for part in run.corpus]
    notes += _without_range(estimates)
    reasons: dict[str, list[str]] = {}
    for skip in run.skipped:
        estimates.append(_skipped(run, skip, settings))
        reasons.setdefault(skip.reason, []).append(f"{skip.task} {skip.metric}")
    for reason, names in reasons.items():
        notes.append(f"no error bar for {some_of(names, 3)}: {reason}")
    return Analysis(settings.to_dict(), tuple(estimates), tuple(notes), **looks_of([run]))


def _without_range(rows: Iterable[Estimate]) -> list[str]:
    """One sentence for the metrics that have no interval because 0 (or 1) throughout may be of any scale."""
    constant = [row for row in rows if "zero_variance" in row.diagnostics and row.mean in (0.0, 1.0)]
    names = dict.fromkeys(f"{row.task} {row.metric}".strip() for row in constant if row.range is None)
    said = (
        "every score is the same, and nothing says what range the metric has, so there is no interval: give it with "
        "`range=(0, 1)`, or 0 and 100 for a percentage"
    )
    return [f"{', '.join(names)}: {said}"] if names else []


def _skipped(run: Run, skip: Group | Skipped, settings: Settings) -> Estimate:
    """The row of what has the harness's own value alone."""
    native = np.array([skip.native], dtype=np.float64)
    m = replace(undefined_moments(np.zeros(1), np.zeros(1)), mean=native)
    fields = mean_fields(skip.key, run, m, settings, Interval(), clustered=False)
    fields |= {"higher_is_better": None, "repeats_min": 0, "repeats_max": 0, "estimator": settings.se}
    return estimate(**fields, diagnostics=("skipped_metric",), estimand=settings.estimand)


def analyze_runs(runs: Iterable[Run], settings: Settings) -> Analysis:
    """All estimates of several runs, one after the other."""
    settings.check("analyze")
    runs, notes = agreed(list(runs))
    check_clusters(settings.cluster, runs)
    parts = [analyze_run(run, settings) for run in runs]
    estimates = tuple(row for part in parts for row in part.estimates)
    notes_ = merge_notes(*(part.notes for part in parts), notes)
    return Analysis(settings.to_dict(), estimates, notes_, **looks_of(runs))


def looks_of(runs: Sequence[Run]) -> dict[str, Any]:
    """What runs say of stopping before their end, as fields of an Analysis."""
    if not any(run.sequential or run.drawn for run in runs):
        return {}
    from ..results.sequential import Drawn, Sequential

    return {
        "sequential": tuple(Sequential(**record) for run in runs for record in run.sequential),
        "drawn": tuple(Drawn(**record) for run in runs for record in run.drawn),
    }


def estimate_scores(scores: Scores, settings: Settings) -> Estimate:
    """The estimate of scores that come from an array."""
    return estimate_of([scores], Run(model="", name="", harness="array"), settings)
