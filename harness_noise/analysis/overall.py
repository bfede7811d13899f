"""The overall row: all top-level tasks of one metric as one number, with clusters across tasks.

A task in no group is a top-level row, and a group is one, however many tasks it has: MMLU counts once. The row is the
group kernel with the weights of the top-level rows, so that what two tasks share (a cluster, a question) is one
sample. It is in no family of theirs: of two runs its adjusted p is its p.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

from ..choices import CLOPPER_PEARSON
from ..data.notes import Note, merge_notes
from ..data.scores import Group, Run, Scores
from ..errors import InputError, some_of
from ..results.diagnostics import SCORED
from ..results.rows import OVERALL, SCORED_DIFFERENTLY, WEIGHTS, Change, Comparison, Difference, Estimate
from ..settings import Settings
from ..stats.combine import Combined
from ..stats.decision import Skew
from .combine import other_methods
from .comparison import compared_of, n_scored, note_partial_group
from .difference import Compared, run_difference
from .mean import estimate_of
from .otherwise import would_change
from .ranges import Ends, fill, score_range
from .rows import RowDecision, decide_rows
from .sample import group_parts, is_scored, scored_pairs

Named = TypeVar("Named")
Measure: TypeAlias = tuple[str, str]
"""Metric and scorer."""


@dataclass(frozen=True, slots=True)
class Top:
    """A top-level row: a task in no group, or a group."""

    name: str
    tasks: tuple[str, ...]
    group: Group | None = None

    def within(self, sizes: Mapping[str, int]) -> dict[str, float]:
        """Return task → weight in this group or task, sum 1, without weights of 0. Equal if no task has a question."""
        weights: Sequence[float] = [float(sizes.get(task, 0)) for task in self.tasks]
        if self.group is not None and self.group.weights is not None:
            weights = self.group.weights
        elif self.group is not None and self.group.weighting == "equal":
            weights = [1.0] * len(self.tasks)
        total = sum(weights)
        if total == 0:  # it has no question, and the row no mean
            return dict.fromkeys(self.tasks, 1 / len(self.tasks))
        return {task: weight / total for task, weight in zip(self.tasks, weights, strict=True) if weight > 0}


def top_level(tasks: Iterable[str], groups: Iterable[Group]) -> list[Top]:
    """Return the outermost groups, most tasks first, then the tasks that are in no group, for one metric and scorer."""
    found: list[Top] = []
    for group in sorted(groups, key=lambda group: -len(set(group.tasks))):
        if not any(set(group.tasks) <= set(top.tasks) for top in found):
            found.append(Top(group.name, group.tasks, group))
    inside = {task for top in found for task in top.tasks}
    return [*found, *(Top(task, (task,)) for task in dict.fromkeys(tasks) if task not in inside)]


def overall_group(
    tops: Sequence[Top],
    measure: Measure,
    sizes: Mapping[str, int],
    settings: Settings,
    whole: Mapping[str, int] | None = None,
) -> Group:
    """Return a group of the tasks in which each top-level row has the settings' weight. Those of weight 0 are left out.

    Args:
        tops: the top-level rows.
        measure: metric and scorer.
        sizes: questions of each task that count in this row.
        settings: `weights`.
        whole: those that would count if no answer was missing. None: the same.

    Raises:
        InputError: a file of weights does not have all of them.
    """
    weights, if_whole = _task_weights(tops, sizes, settings), None
    if whole is not None and whole != sizes:
        of_all = _task_weights(tops, whole, settings)
        if_whole = tuple(of_all.values()) if of_all.keys() == weights.keys() else ()
    how = "file" if settings.task_weights is not None else "size" if settings.weights == "size" else "equal"
    return Group(OVERALL, *measure, tuple(weights), weights=tuple(weights.values()), weighted=how, if_whole=if_whole)


def _task_weights(tops: Sequence[Top], sizes: Mapping[str, int], settings: Settings) -> dict[str, float]:
    """Return task → weight in the overall row, tasks in the order of the top-level rows, without weights of 0."""
    counts = [sum(sizes.get(task, 0) for task in top.tasks) for top in tops]
    shares = top_shares([top.name for top in tops], counts, settings)
    weights: dict[str, float] = {}
    for top, share in zip(tops, shares, strict=True):
        for task, weight in top.within(sizes).items():
            if share > 0:
                weights[task] = weights.get(task, 0.0) + share * weight
    return weights


def top_shares(names: Sequence[str], counts: Sequence[int], settings: Settings) -> list[float]:
    """Return each top-level task's or group's weight: from a file, by size or equal. Refuse lacking ones and all 0.

    Args:
        names: of the rows.
        counts: questions of each.
        settings: `weights`.

    Raises:
        InputError: a file of weights does not have all of them, or they are all 0.
    """
    given = settings.task_weights
    if given is not None:
        lacking = [name for name in names if name not in given]
        if lacking:
            raise InputError(
                f"the weights have no line for {some_of(lacking, 4)}: every task outside a group, and every group, "
                "needs a weight (0 leaves it out)"
            )
    each = [float(n) if settings.weights == "size" else 1.0 for n in counts]
    each = each if given is None else [given[name] for name in names]
    total = sum(each)
    if total <= 0:
        raise InputError(f"the weights of {some_of(names, 4)} are all 0")
    return [weight / total for weight in each]


def why_no_mean(tops: Sequence[tuple[Top, Sequence[Scores]]], settings: Settings) -> str:
    """Return why these tasks have no common mean (directions or ranges differ or are unknown), "" if they have one."""
    ways = {top.name: parts[0].higher_is_better is not False for top, parts in tops}
    if len(set(ways.values())) > 1:
        lower = [name for name, higher in ways.items() if not higher]
        return f"lower is better in {some_of(lower, 3)}, and higher is better in the others"
    ranges: dict[object, list[str]] = {}
    unsure: list[str] = []  # all right or all wrong, of an unknown range
    for top, parts in tops:
        known: set[tuple[float, float] | None] = {part.bounds for part in parts}
        if settings.range is not None or None in known:
            known = {score_range([Ends.of(parts)], settings)}
        if all("chance_corrected" in part.diagnostics for part in parts):  # the raw scores had one range
            known = {(0.0, 1.0)}
        ends = Ends.of(parts)
        if known == {None} and ends.low == ends.high and ends.low in (0.0, 1.0):
            unsure.append(top.name)
            continue
        ranges.setdefault(known.pop() if len(known) == 1 else "several", []).append(top.name)
    if unsure and ranges.keys() != {(0.0, 1.0)}:
        ranges.setdefault(None, []).extend(unsure)
    if len(ranges) > 1:
        each = [f"{_range(ends)}: {some_of(names, 3)}" for ends, names in ranges.items()]
        return f"the ranges differ ({'; '.join(each)})"
    if None in ranges and all(parts[0].unit is None for _, parts in tops):
        return "the range of the metric is not known, so that its tasks may have different ones: `range=(LOW, HIGH)`"
    return ""


def _range(ends: object) -> str:
    return f"{ends[0]:g} to {ends[1]:g}" if isinstance(ends, tuple) else "unknown" if ends is None else str(ends)


@dataclass(frozen=True, slots=True)
class TopRows:
    """The tasks and groups of one metric and scorer that have scores, of one run or of two."""

    tops: list[Top]
    parts: dict[str, tuple[Scores, ...]]
    """Task → its scores, of each run."""
    missing: list[str]
    """Top-level rows without scores."""

    def scored(self) -> list[tuple[Top, list[Scores]]]:
        """Return the top-level tasks and groups that have scores, each with those of its tasks in all runs."""
        return [(top, [part for task in top.tasks for part in self.parts[task]]) for top in self.tops]

    def why_not(self, settings: Settings) -> str | None:
        """Return why there is no overall row. None: there is one. "": there is none and none is expected."""
        if len(self.tops) < 2 or settings.weights == "none" or any(top.name == OVERALL for top in self.tops):
            return ""
        return why_no_mean(self.scored(), settings) or None


def by_tops(
    parts: Iterable[tuple[Scores, ...]], groups: Iterable[tuple[Group, Sequence[tuple[Scores, ...]] | None]]
) -> dict[Measure, TopRows]:
    """Return {(metric, scorer): `TopRows`} of the outermost groups and the tasks in none. Ratios are left out."""
    alone: dict[Measure, dict[str, tuple[Scores, ...]]] = {}
    within: dict[Measure, dict[str, tuple[Scores, ...]]] = {}
    averaged: dict[Measure, list[Group]] = {}
    lost: dict[Measure, list[str]] = {}
    for sides in parts:
        if sides[0].per is None:
            alone.setdefault((sides[0].metric, sides[0].scorer), {})[sides[0].task] = sides
    for group, members in groups:
        measure = (group.metric, group.scorer)
        if members is None:
            lost.setdefault(measure, []).append(group.name)
        elif members[0][0].per is None:
            averaged.setdefault(measure, []).append(group)
            within.setdefault(measure, {}).update((sides[0].task, sides) for sides in members)
    out = {}
    for measure in dict.fromkeys((*alone, *averaged)):
        tops = top_level(alone.get(measure, {}), averaged.get(measure, ()))
        out[measure] = TopRows(tops, within.get(measure, {}) | alone.get(measure, {}), lost.get(measure, []))
    return out


def rows_of_run(run: Run) -> dict[Measure, TopRows]:
    """Return one run's top-level tasks and groups, in a dictionary by metric and scorer."""
    members = [(group, group_parts(run, group)) for group in run.groups]
    groups = [(group, None if parts is None else [(part,) for part in parts]) for group, parts in members]
    return by_tops([(part,) for part in run.scores], groups)


def group_of_run(found: TopRows, measure: Measure, settings: Settings) -> Group:
    """Return the group of one run's tasks, which it alone weights by size. Refuse as `overall_group`."""
    sizes, whole = (
        {task: int(is_scored(part).sum()) for task, (part,) in parts.items()}
        for parts in (found.parts, _with_answers(found.parts))
    )
    return overall_group(found.tops, measure, sizes, settings, whole)


def _with_interval_of_mean(settings: Settings) -> Settings:
    """Return the settings, `auto` in place of Clopper–Pearson, which a weighted mean cannot have."""
    return replace(settings, interval="auto") if settings.interval == CLOPPER_PEARSON.name else settings


def overall_estimates(run: Run, settings: Settings) -> tuple[list[Estimate], list[Note]]:
    """Return a run's mean over all tasks, for each metric with two or more tasks or groups, and notes."""
    rows: list[Estimate] = []
    notes: list[Note] = []
    for measure, found in rows_of_run(run).items():
        why = found.why_not(settings)
        if why is not None:
            notes += no_row_note(measure, why)
            continue
        group = group_of_run(found, measure, settings)
        try:
            parts = [found.parts[task][0] for task in group.tasks]
            rows.append(estimate_of(parts, run, _with_interval_of_mean(settings), group=group))
        except InputError as error:
            notes += no_row_note(measure, str(error))
            continue
        weighed = overall_group(found.tops, measure, dict.fromkeys(found.parts, 1), settings).tasks
        empty = [task for task in weighed if task not in group.tasks]
        notes += _without(measure, [*found.missing, *empty], "whose answers are not there")
    return rows, notes


def no_row_note(measure: Measure, why: str) -> list[Note]:
    """Return a note that says why there is no overall row. [] if the reason is ""."""
    return [Note("no_overall", f"{_measure_words(measure)}: no overall row: {why}")] if why else []


def _without(measure: Measure, tasks: Sequence[str], why: str) -> list[Note]:
    """Return a note on the tasks that the overall row goes without. [] if there are none."""
    said = f"{_measure_words(measure)}: the overall row is without {some_of(tasks, 4)}, {why}"
    return [Note("overall_in_part", said)] if tasks else []


def unknown_weights(runs: Iterable[Run], settings: Settings) -> list[Note]:
    """Return a note on the tasks to which the weights file gives a weight but which no run has. [] if none."""
    runs = list(runs)
    have = {part.task for run in runs for part in (*run.scores, *run.parts, *run.skipped, *run.corpus)}
    have |= {group.name for run in runs for group in run.groups}
    lone = [name for name in settings.task_weights or () if name not in have]
    if not lone:
        return []
    verb = "is not there: its share goes" if len(lone) == 1 else "are not there: their shares go"
    said = f"the weights name {some_of(lone, 4)}, which {verb} to the other tasks in proportion"
    return [Note("weights_not_there", said)]


def _measure_words(measure: Measure) -> str:
    """Return "metric scorer" as text, without a scorer called none."""
    return " ".join(name for name in measure if name != "none")


@dataclass(frozen=True, slots=True)
class _OverallRow:
    """The overall row of one pair of runs, before it is decided with those of the other pairs."""

    own: RowDecision
    what: Compared
    ways: list[tuple[Change, Callable[[], RowDecision]]]
    """Further ways to weight it."""
    tops: list[tuple[Difference, Skew | None]]
    """The rows that it sums up."""


Rows: TypeAlias = Sequence[tuple[Difference, Skew | None]]


def overall_differences(
    pairs: Sequence[tuple[Run, Run]], settings: Settings, rows: Sequence[Rows] = ()
) -> tuple[list[Difference], list[Combined], list[Note]]:
    """Return decided A − B over all tasks for each pair and metric, other tests of the same, and notes.

    The rows of one metric and scorer are a family, as all pairs of many runs are. That of one pair is alone in
    it, so that its adjusted p is its p.

    Args:
        pairs: candidates and their baselines.
        settings: the test, the level, the weights.
        rows: the differences of the tasks and groups of each pair, with how skewed each is, for the other methods.
    """
    each: list[_OverallRow] = []
    notes: list[Note] = []
    for (a, b), own in zip(pairs, rows or ((),) * len(pairs), strict=True):
        found, said = _overall_difference(a, b, settings, own)
        each += found
        notes += said
    out = decide_rows([row.own for row in each], settings)
    others = [method for whole, row in zip(out, each, strict=True) for method in other_methods(whole, row.tops)]
    if len(pairs) == 1:
        shown = zip(out, each, strict=True)
        out = [
            would_change(whole, row.own, row.what, _with_interval_of_mean(settings), row.ways) for whole, row in shown
        ]
    return out, others, notes


def _overall_difference(a: Run, b: Run, settings: Settings, rows: Rows) -> tuple[list[_OverallRow], list[Note]]:
    """Return A − B over all tasks of two runs, one row for each metric, and notes."""
    compared, _ = compared_of(a, b)
    sides = [tuple(zip(what.parts_a, what.parts_b, strict=True)) for what in compared]
    found = by_tops(
        [both[0] for what, both in zip(compared, sides, strict=True) if what.group is None],
        [(what.group, both) for what, both in zip(compared, sides, strict=True) if what.group is not None],
    )
    out: list[_OverallRow] = []
    notes: list[Note] = []
    for measure, of_measure in found.items():
        why = of_measure.why_not(settings)
        if why is not None:
            notes += no_row_note(measure, why)
            continue
        sizes, whole = (common_sizes(parts, settings) for parts in (of_measure.parts, _with_answers(of_measure.parts)))
        group = overall_group(of_measure.tops, measure, sizes, settings, whole)
        parts = [of_measure.parts[task] for task in group.tasks]
        parts_a, parts_b = ([both[side] for both in parts] for side in (0, 1))
        only = [_not_in_overall(run, measure, sizes) for run in (a, b)]
        # by size a task of which no question is shared has no weight, and its questions are of one run only
        weighed = overall_group(of_measure.tops, measure, dict.fromkeys(sizes, 1), settings).tasks
        apart = [of_measure.parts[task] for task in weighed if task not in group.tasks]
        n_a, n_b = (n_scored((*lone, *(both[i] for both in apart))) for i, lone in enumerate(only))
        what = Compared(parts_a, parts_b, a, b, group, (n_a, n_b))
        try:
            row, said = run_difference(what, _with_interval_of_mean(settings))
        except InputError as error:
            notes += no_row_note(measure, str(error))
            continue
        if any(part.verdict == SCORED_DIFFERENTLY for part, _ in rows if (part.metric, part.scorer) == measure):
            row = replace(row, codes=row.codes | {SCORED})  # what is withheld of a task is withheld of all of them
        row = replace(row, family=" ".join(measure)).named(run_a=a.name, run_b=b.name)
        keys = {(top.name, *measure) for top in of_measure.tops}
        tops = [(part, skew) for part, skew in rows if part.key in keys]
        out.append(_OverallRow(row, what, _other_weights(of_measure, measure, a, b, settings), tops))
        why = "in which no question has a score in both runs"
        lone = _without(measure, [both[0].task for both in apart], why)
        notes += [*said, *note_partial_group(what, only, "overall_in_part"), *lone]
    return out, notes


def _other_weights(
    found: TopRows, measure: Measure, a: Run, b: Run, settings: Settings
) -> list[tuple[Change, Callable[[], RowDecision]]]:
    """Return functions that compute the overall row again, with equal task weights or weights by size."""

    def weighted(other: Settings) -> RowDecision:
        group = overall_group(found.tops, measure, common_sizes(found.parts, other), other)
        sides = [found.parts[task] for task in group.tasks]
        what = Compared([part for part, _ in sides], [part for _, part in sides], a, b, group)
        return run_difference(what, _with_interval_of_mean(other))[0]

    others = [name for name in ("equal", "size") if name != settings.weights]
    return [(Change(WEIGHTS, name), partial(weighted, replace(settings, weights=name))) for name in others]


def _not_in_overall(run: Run, measure: Measure, shared: Container[str]) -> list[Scores]:
    """Return a run's scores under a metric for those tasks that the two runs do not share."""
    of_measure = (part for part in (*run.scores, *run.parts) if (part.metric, part.scorer) == measure)
    return [part for part in of_measure if part.task not in shared]


def common_sizes(parts: Mapping[Named, tuple[Scores, ...]], settings: Settings) -> dict[Named, int]:
    """Return task → number of questions compared: both runs' sum if unpaired, else the shared ones."""
    if settings.unpaired:
        return {task: sum(int(is_scored(part).sum()) for part in both) for task, both in parts.items()}
    return {task: len(scored_pairs(*both).rows_a) for task, both in parts.items()}


def _with_answers(parts: Mapping[str, tuple[Scores, ...]]) -> dict[str, tuple[Scores, ...]]:
    """Return task → its scores with 0 in place of all that are missing, to count the questions that were asked."""
    return {task: tuple(fill(part, 0.0) if part.n_missing else part for part in sides) for task, sides in parts.items()}


def with_differences(result: Comparison, pairs: Sequence[tuple[Run, Run]], settings: Settings) -> Comparison:
    """Return the comparison with A − B over all tasks of each pair of runs added, other tests of it, and notes.

    Adjusted p-values of the other rows stay as they are.
    """
    each: list[Rows] = []
    left = deque(zip(result.comparisons, result.skews or (None,) * len(result.comparisons), strict=True))
    for a, b in pairs:
        own = dict[tuple[str, str, str], tuple[Difference, Skew | None]]()  # two pairs may have the same names
        while left and (left[0][0].run_a, left[0][0].run_b) == (a.name, b.name) and left[0][0].key not in own:
            row = left.popleft()
            own[row[0].key] = row
        each.append([*own.values()])
    rows, combined, notes = overall_differences(pairs, settings, each)
    families = result.families or ("",) * len(result.comparisons)
    return replace(
        result,
        comparisons=(*result.comparisons, *rows),
        families=(*families, *(OVERALL for _ in rows)),
        skews=(*result.skews, *(None for _ in rows)),
        combined=tuple(combined),
        notes=merge_notes(result.notes, notes, unknown_weights((run for pair in pairs for run in pair), settings)),
    )
