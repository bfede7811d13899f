"""Runs whose answers were repeated until one passed: the rows of their tasks are of first answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..data.notes import Note, merge_notes
from ..data.scores import Run, Scores
from ..errors import of_choice

if TYPE_CHECKING:
    from ..stats.stopped import How


def with_stops(run: Run) -> Run:
    """Return the run with `stops_on` set for tasks whose repeats end at the first success or failure.

    One score of a task is enough: what stops the answers is seen by its own scorer alone, and all scores are of them.
    """
    from ..stats.stopped import stopped_at  # a run without the flag reads nothing, and loads no statistics

    several = [part for part in (*run.scores, *run.parts) if part.values.shape[1] > 1 and part.unit is None]
    stops: dict[str, How] = {part.task: part.stops_on for part in several if part.stops_on}
    for part in several:
        if part.task not in stops:
            seen = stopped_at(part.values, part.bounds, lower_is_better=part.higher_is_better is False)
            stops |= {} if seen is None else {part.task: seen.how}
    if not stops:
        return run

    def marked(part: Scores) -> Scores:
        return replace(part, stops_on=stops[part.task]) if part.task in stops else part

    return replace(run, scores=tuple(map(marked, run.scores)), parts=tuple(map(marked, run.parts)))


def first_answers(run: Run) -> Run:
    """Return the run cut to first answers on tasks whose repeats stop early, and with a note that says so, if any."""
    run = with_stops(run)
    several = [part for part in (*run.scores, *run.parts) if part.stops_on and part.values.shape[1] > 1]
    if not several:
        return run
    tasks = {part.task: part.stops_on for part in several if part.stops_on}
    notes = [_first_answers_note(run.model, task, stops, several) for task, stops in tasks.items()]
    return replace(
        run,
        scores=tuple(map(first_of, run.scores)),
        parts=tuple(map(first_of, run.parts)),
        groups=tuple(replace(x, native=None) if tasks.keys() & set(x.tasks) else x for x in run.groups),
        notes=merge_notes(run.notes, notes),
    )


def _first_answers_note(model: str, task: str, stops: How, parts: list[Scores]) -> Note:
    """Return the note that a task's row uses only first answers, as repeats stopped at a success or failure."""
    K = max(part.values.shape[1] for part in parts if part.task == task)
    name = ", ".join(filter(None, (model, task)))
    wrong, other = of_choice("stops_on", stops, {"success": ("high", "pass@"), "failure": ("low", "pass^")})
    said = (
        f"{name}: answers were repeated until the first {stops}, so the mean over all answers is too {wrong}: the row "
        f"is of first attempts. `measures=['{other}{K}']` gives the chance within {K}"
    )
    return Note(f"stopped_on_{stops}", said, task)


def first_of(part: Scores) -> Scores:
    """Return the scores of first answers only, with a code, if `stops_on` says that repeats stop. Else unchanged."""
    if not part.stops_on or part.values.shape[1] < 2:
        return part
    first = part.answers_at(columns=np.s_[:1])
    factors = part.factors and {name: tuple(row[:1] for row in rows) for name, rows in part.factors.items()}
    return replace(
        part,
        **first,
        factors=factors,
        native=part.native if part.native_is_first else None,
        repeats_named=None,
        repeats_are_runs=False,
        diagnostics=tuple(sorted({*part.diagnostics, f"stopped_on_{part.stops_on}"})),
    )
