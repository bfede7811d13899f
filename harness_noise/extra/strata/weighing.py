"""Weights of the questions by what they have in one field: a traffic mix in place of the benchmark's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ...analysis.overall import Top
from ...analysis.sample import is_scored, scores_of_rows
from ...data.notes import Note, merge_notes
from ...data.scores import Group, Run, Scores
from ...errors import InputError, some_of
from ..known import level_text


@dataclass(frozen=True, slots=True)
class _Strata:
    """One task cut into strata."""

    parts: tuple[Scores, ...]
    """The strata that have a scored question, each as a task."""
    weights: tuple[float, ...]
    """The weight of each stratum. They sum to 1."""


def with_strata(run: Run, field: str, weights: Mapping[str, float]) -> Run:
    """Return the run with tasks cut by `field` into strata, averaged with these weights. Refuse if no question has one.

    Every task becomes a group of its strata, which the group kernel knows: residuals are taken within each stratum, and
    clusters across them. Questions without the field, or with a value that has no weight, are left out and counted. The
    weight of a stratum without a question is spread over the others, and a note names it.

    Args:
        run: read with the field (`ReadOptions.fields`).
        field: the SPEC of a property of the questions.
        weights: value → weight.

    Raises:
        InputError: no question has the field, or none has a value with a weight.
    """
    notes: list[Note] = []
    cuts = {part.key: _strata_of(part, field, weights, notes) for part in run.scores}
    kept = {key: cut for key, cut in cuts.items() if cut is not None}
    if not kept:
        raise InputError(
            f"{run.name}: no question has a {field} with a weight. The weights are of {some_of(list(weights), 6)}"
        )
    groups = [
        Group(task, metric, scorer, tuple(part.task for part in cut.parts), weights=cut.weights, weighted="file")
        for (task, metric, scorer), cut in kept.items()
    ]
    for group in run.groups:
        whole = _regrouped(group, kept)
        groups += [] if whole is None else [whole]
        said = f"{group.name} {group.metric}: left out, as a task of it has no such strata"
        notes += [Note("no_strata", said, group.name)] * (whole is None)
    lost = [part.title for part in run.corpus]
    said = f"{some_of(lost, 3)}: of all questions alike, as it is not a mean over them"
    notes += [Note("no_strata", said)] if lost else []
    parts = tuple(part for cut in kept.values() for part in cut.parts)
    return replace(run, scores=(), parts=parts, groups=tuple(groups), notes=merge_notes(run.notes, notes))


def _strata_of(part: Scores, field: str, weights: Mapping[str, float], notes: list[Note]) -> _Strata | None:
    """Return a task's `_Strata`: scores and weights (sum 1) of values of weight > 0, or None. Add to `notes`."""
    fields, about = part.questions.fields, f"{part.task} {part.metric}"
    values = None if fields is None else fields.values.get(field)
    if values is None or all(value is None for value in values):
        notes.append(Note("no_strata", f"{about}: left out: its questions have no {field}", part.task))
        return None
    texts = np.array(["" if value is None else level_text(value) for value in values], dtype=object)
    scored = is_scored(part)
    rows = {value: np.flatnonzero((texts == value) & scored) for value, weight in weights.items() if weight > 0}
    there = {value: index for value, index in rows.items() if len(index)}
    if not there:
        notes.append(Note("no_strata", f"{about}: left out: no question has a {field} with a weight", part.task))
        return None
    empty = [value for value in rows if value not in there]
    if empty:
        said = f"{about}: no question has the {field} {some_of(empty, 4)}. The other weights are spread to sum to 1"
        notes.append(Note("stratum_not_there", said, part.task))
    unweighted = int(scored.sum()) - sum(map(len, there.values()))
    if unweighted:
        said = f"{about}: {unweighted:,} questions have no {field} with a weight and are left out"
        notes.append(Note("no_strata", said, part.task))
    total = sum(weights[value] for value in there)
    strata = (replace(scores_of_rows(part, index), task=f"{part.task}[{value}]") for value, index in there.items())
    return _Strata(tuple(strata), tuple(weights[value] / total for value in there))


def _regrouped(group: Group, cuts: Mapping[tuple[str, str, str], _Strata]) -> Group | None:
    """Return a group of tasks as a group of the tasks' strata, with weights. None if a task has no strata."""
    each = [cuts.get((task, group.metric, group.scorer)) for task in group.tasks]
    sizes = {task: _size(cut.parts) for task, cut in zip(group.tasks, each, strict=True) if cut is not None}
    if len(sizes) < len(group.tasks):
        return None
    within = Top(group.name, group.tasks, group).within(sizes)
    strata = [
        (part.task, within.get(task, 0.0) * weight)
        for task, cut in zip(group.tasks, each, strict=True)
        if cut is not None
        for part, weight in zip(cut.parts, cut.weights, strict=True)
    ]
    tasks, weights = zip(*[(task, weight) for task, weight in strata if weight > 0], strict=True)
    return replace(group, tasks=tasks, weights=weights, weighted="file", native=None)


def _size(parts: Iterable[Scores]) -> int:
    return sum(int(is_scored(part).sum()) for part in parts)
