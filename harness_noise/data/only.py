"""Selection of questions whose fields meet conditions that a user gives."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from ..arrays import BoolArray, picked
from ..errors import FinalError, InputError, some_of
from .clusters import Value, numeral
from .doubled import DOUBLED, mark_doubled
from .notes import Note
from .scores import CorpusScores, OnQuestions, Run, Scores

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"\s*(?P<field>\{\{.*?\}\}|[^=!<>]+?)\s*(?P<sign>!=|<=|>=|==?|<|>)\s*(?P<value>.*?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """FIELD OP VALUE, as a user wrote it."""

    text: str
    field: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Parse a condition on a question field, such as `level >= 3`. Refuse any other text.

        Raises:
            InputError: it says none.
        """
        match = _CONDITION.fullmatch(text)
        if match is None or not match["value"]:
            raise InputError(f"`only` {text!r}: write FIELD OP VALUE, such as 'level >= 3'. OP is = != < <= > >=")
        return cls(text.strip(), match["field"], match["sign"].replace("==", "="), match["value"])

    def met_by(self, values: Sequence[Value]) -> BoolArray:
        """Return (n,) True where the value meets the condition, False without one. Refuse numbers mixed with texts.

        Numbers are compared as numbers and ISO dates as dates, if all values and the user's are; else as text.

        Raises:
            InputError: some values are numbers (dates) and others are not, or the user's is of another kind.
        """
        there = [value for value in values if value is not None]
        for name, read in (("numbers", numeral), ("dates", _date)):
            read_there = [read(value) for value in there]
            if not there or all(value is None for value in read_there):
                continue
            odd = [value for value, number in zip(there, read_there, strict=True) if number is None]
            if odd:
                raise FinalError(
                    f"`only` {self.text!r}: {self.field} mixes {name} with other values ({some_of(_shown(odd), 3)}), "
                    "so they have no one order: clean the column, or name another"
                )
            wanted = read(self.value)
            if wanted is None:
                raise FinalError(f"`only` {self.text!r}: {self.field} has {name}, and {self.value!r} is none of them")
            return self._compared([None if value is None else read(value) for value in values], wanted)
        return self._compared([None if value is None else str(value) for value in values], self.value)

    def _compared(self, values: Sequence[Any], wanted: Any) -> BoolArray:
        met = _COMPARED[self.sign]
        return np.array([value is not None and met(value, wanted) for value in values], dtype=np.bool_)


def _shown(values: Sequence[Value]) -> list[str]:
    return list(dict.fromkeys(f"{value!s:.20}" for value in values))


def _date(value: Value) -> datetime | None:
    """Parse an ISO date as a datetime, in UTC if it has a time zone. None if it is not a date."""
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d", value):
        return None
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    offset = moment.utcoffset()
    return (moment if offset is None else moment - offset).replace(tzinfo=None)


def with_only(run: Run, texts: Sequence[str]) -> Run:
    """Restrict a run to questions that meet all conditions, with notes. Drop native values. Refuse if none is left.

    A task without such a question is left out, and a note says so. What a harness reports itself is of all questions,
    and is left out. So are the records of why a run stopped early, whose rows keep the code `stopped_early`.

    Args:
        run: read with the fields of the conditions (`ReadOptions.fields`).
        texts: conditions, all of which must hold.

    Raises:
        InputError: no question has a field, its values are of several kinds, or no question is left.
    """
    if not texts:
        return run
    conditions = [Condition.parse(text) for text in texts]
    parts = [part for part in (*run.scores, *run.parts, *run.corpus) if len(part.questions)]
    for condition in conditions:
        if not any(value is not None for part in parts for value in _values(part, condition)):
            known = [part.questions.fields for part in parts if part.questions.fields is not None]
            have = some_of(list(dict.fromkeys(name for fields in known for name in fields.names)), 20) or "none"
            raise FinalError(f"{run.name}: `only` {condition.text!r}: no question has it. The fields are {have}")
    rows = {id(part): _rows_that_meet(part, conditions) for part in parts}
    kept: dict[str, list[Any]] = {
        name: [_only_rows(part, rows[id(part)]) for part in getattr(run, name) if len(rows.get(id(part), ()))]
        for name in ("scores", "parts", "corpus")
    }
    if not any(kept.values()):
        raise FinalError(f"{run.name}: `only` {' and '.join(texts)!r}: none of its questions is left")
    tasks = {part.task for each in kept.values() for part in each}
    n_left: dict[str, int] = {}
    for part in parts:  # a further metric may have fewer of its questions, or none of their fields
        n_left[part.task] = max(n_left.get(part.task, 0), len(rows[id(part)]))
    empty = [task for task in dict.fromkeys(part.task for part in parts) if task not in tasks]
    total, left = (sum(len(x) for x in each) for each in ([p.questions for p in parts], rows.values()))
    said = f"{run.name}: the questions with {' and '.join(texts)}, {100 * left / total:.3g}% of its questions"
    notes = [Note("some_questions", said)]
    notes += [Note("left_out", f"{some_of(empty, 4)}: left out: no such question")] if empty else []
    if looked := list(dict.fromkeys(record["task"] for record in run.stops)):
        said = "`only` leaves out the estimate that allows for the early stop, since it is of all questions"
        notes.append(Note("left_out", f"{some_of(looked, 4)}: {said}"))
    groups = [group.over([task for task in group.tasks if task in tasks]) for group in run.groups]
    some = replace(
        run,
        scores=tuple(kept["scores"]),
        parts=tuple(kept["parts"]),
        corpus=tuple(kept["corpus"]),
        groups=tuple(replace(group, native=None) for group in groups if group.tasks),
        skipped=(),
        stops=(),
        drawn=tuple({**record, "n_only": n} for record in run.drawn if (n := n_left.get(record["task"]))),
        notes=(*map(_of_all, run.notes), *notes),
    )
    return mark_doubled(some)


_COUNTED = (
    *("unread", "not_numbers", "said_twice", "invalidated", "not_all_clustered", "numbered", "copied_repeats"),
    *("ended_early", "not_all_read"),
)
"""Codes of notes that count answers or questions of all that were read."""


def _of_all(note: Note) -> Note:
    said = "{} (counted over all questions, without `only`)".format
    return note.reworded(said) if note.code in _COUNTED else note


def _values(part: OnQuestions, condition: Condition) -> Sequence[Value]:
    fields = part.questions.fields
    return () if fields is None else fields.values.get(condition.field, ())


def _rows_that_meet(part: OnQuestions, conditions: Sequence[Condition]) -> list[int]:
    """Return the row numbers of the questions that meet all conditions."""
    met = np.ones(len(part.questions), dtype=np.bool_)
    for condition in conditions:
        values = _values(part, condition)
        met &= condition.met_by(values) if len(values) else False
    return [int(row) for row in np.flatnonzero(met)]


def _only_rows(part: Scores | CorpusScores, rows: list[int]) -> Scores | CorpusScores:
    """Return the scores of the questions in these rows. The harness's own mean, which is of all, is dropped."""
    questions = part.questions
    columns: dict[str, Any] = {name: picked(getattr(questions, name), rows) for name in ("keys", "targets", "prompts")}
    columns["inputs"], columns["texts"] = picked(questions.inputs, rows), picked(questions.texts, rows)
    fields = None if questions.fields is None else questions.fields.take(rows)
    doubled = questions.doubled(rows)
    asked = replace(questions, **columns, fields=fields, documents=None, log=None, doubles=doubled)
    if isinstance(part, CorpusScores):
        return part.take(rows, asked)
    part = replace(part, diagnostics=tuple(code for code in part.diagnostics if code != DOUBLED))
    factors = {name: tuple(picked(levels, rows)) for name, levels in (part.factors or {}).items()} or None
    return replace(part.take(rows, asked), native=None, factors=factors)
