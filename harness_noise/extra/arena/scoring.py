"""Checks of equal answers and of the scorers' versions for every pair of an arena, as `compare` makes them for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...analysis.sample import codes_of, own_group
from ...analysis.scoring import (
    OTHER_VERSION,
    Checked,
    Shared,
    check_scoring,
    differently_note,
    equal_note,
    has_texts,
    join_checks,
    judge_note,
    other_versions,
    scored_differently,
    version_note,
)
from ...arrays import AnyArray, BoolArray, IntArray
from ...data.notes import Note
from ...data.scores import Group, Run, Scores


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRun:
    """All that one run has of one benchmark: the scores of a task, or of the tasks of a group."""

    name: str
    run: Run
    parts: tuple[Scores, ...]

    def codes(self, group: Group | None) -> set[str]:
        """Return the diagnostic codes that this run's scores, or the group's, have before comparison."""
        return codes_of(self.parts, None if group is None else own_group(self.run, group))


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """All that is known of the scoring of P pairs."""

    columns: Mapping[str, AnyArray]
    """`equal_answers` and `judge_flips` of each pair, where any pair has them."""
    apart: BoolArray
    """(P,) True for pairs whose equal answers are scored differently."""
    flags: Mapping[str, BoolArray]
    """Further diagnostic code → which pairs have it."""
    notes: Sequence[Note]


def scoring_of_pairs(
    measured: Sequence[MeasuredRun], rows: Sequence[Sequence[IntArray]], a: IntArray, b: IntArray
) -> Scoring:
    """Check for all pairs if equal answers are scored differently, or task versions differ. Return `Scoring`.

    Args:
        measured: the runs.
        rows: for each task, where the questions of each run are among those of all.
        a: (P,) the first run of each pair.
        b: (P,) the second.
    """
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    by_task = [[entry.parts[t] for entry in measured] for t in range(len(rows))]
    each = [check_scoring(parts, _shared_rows(parts, at, pairs)) for parts, at in zip(by_task, rows, strict=True)]
    found = [join_checks(of_pair) for of_pair in zip(*each, strict=True)]
    other = [list(dict.fromkeys(what for x in by_task for what in other_versions(x[i], x[j]))) for i, j in pairs]
    apart = np.array([scored_differently(x.equal) for x in found], dtype=np.bool_)
    flags = {OTHER_VERSION: np.array(list(map(bool, other)), dtype=np.bool_)}
    told: dict[str, list[object]] = {"equal_answers": [x.equal for x in found], "judge_flips": [x.judge for x in found]}
    known = {name: _column(values) for name, values in told.items() if any(x is not None for x in values)}
    names, task = [entry.name for entry in measured], by_task[0][0].task
    notes = [
        note
        for (i, j), x in zip(pairs, found, strict=True)
        for note in _notes_on_pair(f"{task}, {names[i]} − {names[j]}", x)
    ]
    if differ := list(dict.fromkeys(what for of_pair in other for what in of_pair)):
        notes.append(version_note(task, differ))
    return Scoring(known, apart, flags, notes)


def _column(values: Sequence[object]) -> AnyArray:
    out = np.full(len(values), None, dtype=object)
    out[:] = values
    return out


def _notes_on_pair(about: str, found: Checked) -> list[Note]:
    """Return notes on two models' equal answers scored differently: by the scoring, or by a judge's own noise."""
    notes = []
    if found.equal is not None:
        say = differently_note if scored_differently(found.equal) else equal_note
        notes.append(say(about, found.equal))
    if found.judge is not None:
        notes.append(judge_note(about, found.judge))
    return notes


def _shared_rows(parts: Sequence[Scores], rows: Sequence[IntArray], pairs: Sequence[tuple[int, int]]) -> list[Shared]:
    """Return each pair's `Shared`, both runs' rows of shared questions. No rows if a run's answer texts are unknown."""
    N = max((int(at.max(initial=-1)) for at in rows), default=-1) + 1
    places = np.full((len(parts), N), -1)
    for own, part, at in zip(places, parts, rows, strict=True):
        if has_texts(part):
            own[at] = np.arange(len(at))
    out = []
    for i, j in pairs:
        both = np.flatnonzero((places[i] >= 0) & (places[j] >= 0))
        out.append(Shared(i, j, places[i][both], places[j][both]))
    return out
