"""Inspect's `grouped(…, all="groups")`: the mean of the groups' means, as a group of tasks with equal weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness_noise.analysis.sample import scores_of_rows
from harness_noise.data.native_values import mean_of_questions, reproduces
from harness_noise.data.scores import Group, Scores

from .records import NativeMetric, bare

_MEANS = ("accuracy", "mean")


@dataclass(frozen=True, slots=True, eq=False)
class MeanOfGroups:
    """One native value that is the mean of its groups' means."""

    group: Group
    """The groups as tasks of equal weight, with the native value."""
    parts: tuple[Scores, ...]
    """The scores of each group."""
    index: int
    """Number of the EvalScore."""
    explains: tuple[str, ...]
    """The native values that follow from it: its own, and those of the groups."""


def of_each_group(metric: NativeMetric) -> str:
    """Return the name of the metric that `grouped(METRIC, …)` computes per group, "" if it is not `grouped`."""
    inner = metric.params.get("metric")
    return str(inner.get("name", "")) if isinstance(inner, Mapping) and "group_key" in metric.params else ""


def is_over_groups(metric: NativeMetric) -> bool:
    """Return True if a native metric is the one value of `grouped` over all groups together."""
    return "group_key" in metric.params and metric.name == (metric.params.get("all_label") or "all")


def is_mean_of_groups(metric: NativeMetric) -> bool:
    """Return True if a native metric is the unweighted mean of the groups' means."""
    means = bare(of_each_group(metric)) in _MEANS
    return is_over_groups(metric) and metric.params.get("all") == "groups" and means


def group_keys(metrics: Mapping[str, NativeMetric]) -> list[str]:
    """Return the metadata keys by which `grouped` metrics group samples."""
    keys = [metric.params.get("group_key") for metric in metrics.values()]
    return [key for key in keys if isinstance(key, str)]


def of_groups(
    whole: Scores,
    name: str,
    metrics: Mapping[str, NativeMetric],
    metadata: Sequence[Mapping[str, Any] | None],
    *,
    index: int,
    final: bool,
) -> MeanOfGroups | None:
    """Return a group of tasks, one per group of samples, whose mean is this native metric. None if it is not.

    None if a sample has no group, or our mean differs from the native value.

    Args:
        whole: all scores.
        name: the metric.
        metrics: those of the EvalScore.
        metadata: of each question.
        index: number of the EvalScore.
        final: whether the native value is of the same answers.
    """
    metric = metrics[name]
    key = str(metric.params["group_key"])
    rows: dict[str, list[int]] = {}
    for i, entry in enumerate(metadata):
        if entry is None or key not in entry:
            return None
        rows.setdefault(str(entry[key]), []).append(i)
    parts = [_scores_of_group(whole, called, at, name) for called, at in rows.items()]
    parts = [part for part in parts if not np.isnan(part.values).all()]
    ours = float(np.mean([mean_of_questions(part.values) for part in parts])) if parts else math.nan
    known = final and not math.isnan(metric.value)
    if not parts or (known and not reproduces(ours, metric.value)):
        return None
    tasks = tuple(part.task for part in parts)
    group = Group(whole.task, name, whole.scorer, tasks, "equal", metric.value if known else None)
    explains = [other for other, row in metrics.items() if row.params == metric.params]
    return MeanOfGroups(group, tuple(parts), index, tuple(explains))


def _scores_of_group(whole: Scores, called: str, rows: Sequence[int], metric: str) -> Scores:
    """Return the scores of one group of samples (its rows) as a task "TASK: GROUP", without native value."""
    questions = whole.questions.at(rows)
    if questions.inputs is not None:  # two groups may ask one thing, which makes them no clusters of one task
        questions = replace(questions, inputs=tuple(f"{called}: {words}" for words in questions.inputs))
    return replace(
        scores_of_rows(whole, rows),
        questions=questions,
        task=f"{whole.task}: {called}",
        metric=metric,
        names=None,
    )
