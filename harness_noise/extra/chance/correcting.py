"""Scores corrected for guessing: (x − c)/(1 − c), with the chance c of a task or of each question.

With one c for a task, the interval is made on the raw scale and mapped, which the range (−c/(1 − c), 1) does by itself.
With another c for each question, (x_i − c_i)/(1 − c_i) is no map of the mean: each question's score is corrected, and
the interval is t's within the range. Nothing is clipped at 0, as leaderboards do: max(0, ·) is no mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TypeAlias

import numpy as np

from ...analysis.ranges import Ends, score_range
from ...arrays import FloatArray
from ...data.native_values import mean_of_questions
from ...data.notes import Note, merge_notes
from ...data.scores import Run, Scores
from ...errors import InputError, some_of
from ...settings import Chance, Settings

Shares: TypeAlias = set[tuple[str, str]]
"""Metrics and scorers that are shares of right answers."""
CORRECTED, VARIES = "chance_corrected", "chance_varies"
CHOICES = (
    "{% if choices is defined %}{% if choices is number %}{{ choices }}{% elif choices is mapping %}"
    "{{ choices.text | length }}{% elif choices is not string %}{{ choices | length }}{% endif %}"
    "{% elif options is defined and options is not string %}{{ options | length }}{% endif %}"
)
"""The number of choices of a question, as datasets have it: a list, a list within an object, or their number."""


def without_chance(run: Run, chance: Chance, settings: Settings, shares: Shares | None = None) -> Run:
    """Return the run with its [0, 1] scores corrected for guessing, others noted. Refuse if none is, or unknown chance.

    Args:
        run: its questions have `CHOICES` among their fields for ``"auto"``.
        chance: "auto", one c for all, or (task, c), where the task may be a glob.
        settings: the range of a metric that declares none.
        shares: `shares_of` the runs that are analysed with it. None: of this one.

    Raises:
        InputError: no chance is known for a task, or nothing lies in [0, 1].
    """
    notes: list[Note] = []
    shares = shares_of([run], settings) if shares is None else shares
    other = [part.title for part in (*run.scores, *run.parts) if not _is_share(part, settings, shares)]
    other += [whole.title for whole in run.corpus]
    if other:
        said = f"{some_of(other, 4)}: not corrected for chance, as it is no share of right answers"
        notes.append(Note("not_corrected", said))

    def corrected(part: Scores) -> Scores:
        return _corrected(part, _chance_of(part, chance)) if _is_share(part, settings, shares) else part

    scores, parts = tuple(map(corrected, run.scores)), tuple(map(corrected, run.parts))
    if not any(CORRECTED in part.diagnostics for part in (*scores, *parts)):
        raise InputError(f"{run.name}: nothing lies between 0 and 1, where `chance` can be taken off")
    below = [part.task for part in scores if CORRECTED in part.diagnostics and mean_of_questions(part.values) < 0]
    if below:
        said = (
            f"{some_of(below, 4)}: worse than chance. Leaderboards that clip at 0 show 0, which is not a mean and has "
            "no error bar"
        )
        notes.append(Note("worse_than_chance", said))
    groups = tuple(replace(group, native=None) for group in run.groups)
    return replace(run, scores=scores, parts=parts, groups=groups, notes=merge_notes(run.notes, notes))


def shares_of(runs: Sequence[Run], settings: Settings) -> Shares:
    """Return the metrics whose scores all lie in [0, 1]: what is all right or all wrong is as other tasks and runs are.

    A metric without any other is not among them.
    """
    known: dict[tuple[str, str], set[object]] = {}
    for part in (part for run in runs for part in (*run.scores, *run.parts)):
        if not _may_be_any(part, settings):
            known.setdefault((part.metric, part.scorer), set()).add(score_range([Ends.of([part])], settings))
    return {measure for measure, ranges in known.items() if ranges == {(0.0, 1.0)}}


def _may_be_any(part: Scores, settings: Settings) -> bool:
    """Return True if scores are all right or all wrong, and no range is declared: a percentage may be 0 throughout."""
    ends = Ends.of([part])
    return score_range([ends], settings) is None and ends.low == ends.high and ends.low in (0.0, 1.0)


def _is_share(part: Scores, settings: Settings, shares: Shares) -> bool:
    """Return True for scores in [0, 1] without unit or `per`, not lower-is-better, not yet corrected for guessing."""
    if part.unit is not None or part.per is not None or part.higher_is_better is False or part.corrected is not None:
        return False
    if _may_be_any(part, settings):
        return (part.metric, part.scorer) in shares
    return score_range([Ends.of([part])], settings) == (0.0, 1.0)


def _chance_of(part: Scores, chance: Chance) -> FloatArray:
    """Return (n,) chances of guessing right: a number, the task's row, or for "auto" 1/choices. Refuse if unknown."""
    n = len(part.questions)
    if isinstance(chance, (int, float)):
        return np.full(n, float(chance))
    if chance != "auto":
        rows: Sequence[tuple[str, float]] = [(str(row[0]), float(row[1])) for row in chance]
        found = next((c for pattern, c in rows if fnmatchcase(part.task, pattern)), None)
        if found is None:
            raise InputError(
                f"`chance`: {part.task} has none: give every task a line, and 0 to a task without choices. There are "
                f"{some_of([pattern for pattern, _ in rows], 6)}"
            )
        return np.full(n, found)
    counts = _counts(part.questions.fields.values if part.questions.fields is not None else {})
    if counts is None or len(counts) != n or (counts < 2).any() or np.isnan(counts).any():
        raise InputError(
            f"`chance='auto'`: how many choices the questions of {part.task} have is not known (a list called choices "
            "or options): give the chance, such as 0.25, or a file with task,chance"
        )
    return np.asarray(1 / counts)


def _counts(values: Mapping[str, Sequence[object]]) -> FloatArray | None:
    column = values.get(CHOICES)
    if column is None:
        return None
    return np.array([float(str(value)) if value is not None else np.nan for value in column], dtype=np.float64)


def _corrected(part: Scores, c: FloatArray) -> Scores:
    """Return the scores as (x − c)/(1 − c) of (n,) chances c, with bounds and a diagnostic, without native value."""
    if not len(c):
        return part
    values = (part.values - c[:, None]) / (1 - c[:, None])
    codes = {*part.diagnostics, CORRECTED} | ({VARIES} if c.min() < c.max() else set())
    lowest = -float(c.max() / (1 - c.max())) + 0.0
    return replace(part, values=values, bounds=(lowest, 1.0), native=None, names=None, diagnostics=tuple(sorted(codes)))
