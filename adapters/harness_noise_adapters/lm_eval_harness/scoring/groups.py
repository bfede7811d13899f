"""The group rows of lm-eval, each with the weighting that makes its value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness_noise.data.scores import Group, Scores, Weighting

from .choices import in_groups
from .gather import Key
from .patching import close


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One value of a group."""

    name: str
    key: Key
    value: float | None
    tasks: Sequence[str]
    """All that are below it; one that is listed twice counts twice."""
    weighting: Weighting | None = None
    """None where only the value tells it."""


def groups(
    rows: Iterable[GroupRow],
    reported: Mapping[str, Mapping[Key, float | None]],
    sizes: Mapping[str, int],
    scores: Sequence[Scores],
) -> tuple[Group, ...]:
    """The groups, and those of `acc_prob`, which lm-eval does not have.

    Args:
        rows: what lm-eval reports.
        reported: task → its own values; a group averages the tasks that have the metric.
        sizes: task → how many questions it has, where that is known.
        scores: of the run.
    """
    out = []
    for row in rows:
        tasks = [task for task in row.tasks if row.key in reported.get(task, {})]
        if not tasks:
            continue
        values = [reported[task][row.key] for task in tasks]
        weighting = row.weighting or _weighting(values, [sizes.get(task, 0) for task in tasks], row.value)
        once = len(set(tasks)) == len(tasks)
        out.append(Group(row.name, *row.key, tuple(tasks) if once else (), weighting, row.value))
    return tuple(in_groups(out, scores))


def _weighting(values: Sequence[float | None], sizes: Sequence[int], value: float | None) -> Weighting:
    """The weighting that reproduces the value of a group."""
    known = [item for item in values if item is not None]
    if value is None or len(known) < len(values) or not all(sizes):
        return "size"
    by_size = math.fsum(v * n for v, n in zip(known, sizes, strict=True)) / sum(sizes)
    return "equal" if not close(by_size, value) and close(math.fsum(known) / len(known), value) else "size"
