"""The answer that a label is of, by its `repeat` or its `answer_id`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...data.scores import Scores
from ...errors import InputError, some_of
from .files import Label, LabelFile, answer_id

MOST_NAMED = 3


@dataclass(slots=True, eq=False)
class LabelledTask:
    """The labels of one task of one run, with the rows that have no label yet."""

    part: Scores
    labels: list[Label] = field(default_factory=list)
    """Labels of the task's questions."""
    known: dict[Label, int] = field(default_factory=dict)
    """Label → the answer that its `answer_id` means."""

    @property
    def answers(self) -> int:
        """Number K of answers that each question has in the run."""
        return int(self.part.values.shape[1])

    def named(self) -> dict[str, int]:
        """Return {the run's own name of a repeat: its index}. {} if repeats have no names."""
        return {name: j for j, name in enumerate(names_of_repeats(self.part))}


def names_of_repeats(part: Scores) -> list[str]:
    """Return the run's own names of its K repeats. [] unless each repeat has a unique name."""
    names = [_plain_name(name) for name in part.repeat_names or ()]
    return names if len({*names}) == part.values.shape[1] == len(names) else []


def answers_labelled(file: LabelFile, parts: Sequence[tuple[Scores, str, str]]) -> list[Mapping[Label, int | None]]:
    """Return for each part, in a list, {non-empty label: answer, None: whole question}. Refuse unclear, too high ones.

    An `answer_id` says which answer it is. Without one, repeats have the names that the run gives them, or they count
    the answers from 0 or from 1, the same way in the whole file.

    Args:
        file: the labels.
        parts: scores of a run, with the name that the file has for it, and its own.

    Raises:
        InputError: a repeat that the task does not have, or one that may be either of two answers.
    """
    tasks = [_labels_of(file, *named) for named in parts]
    start = _first_repeat(file, tasks)
    out: list[Mapping[Label, int | None]] = []
    for task in tasks:
        names = task.named() if start is None else {}
        found: dict[Label, int | None] = {}
        for label in task.labels:
            if math.isnan(label.value):
                continue
            number = _repeat_number(label)
            if label in task.known:
                j: int | None = task.known[label]
            elif start is None:
                j = None if label.repeat is None else names[_plain_name(label.repeat)]
            else:
                j = None if number is None else number - start
            if j is not None and not 0 <= j < task.answers:
                raise InputError(
                    f"{file.name}, line {label.line}: repeat {label.repeat} of question {label.question!r}, and "
                    f"{task.part.task} has {task.answers} answers to a question: number those of a question from 1 (or "
                    "0), in the order of the repeats"
                )
            found[label] = j
        out.append(found)
    return out


def _labels_of(file: LabelFile, part: Scores, name: str, run: str) -> LabelledTask:
    """Return a `LabelledTask`: labels, also empty, of one run's task, and the answers of those with its `answer_id`.

    An answer hash that is not of this run belongs to another run.
    """
    keys, out = {*part.questions.keys}, LabelledTask(part)
    for label in (*file.labels, *file.empty):
        if label.question not in keys or label.task not in (None, part.task) or label.model not in (None, name, run):
            continue
        if label.answer_id is not None:
            ids = [answer_id(name, part.task, label.question, j) for j in range(out.answers)]
            if label.answer_id in ids:
                out.known[label] = ids.index(label.answer_id)
            elif label.model is None:
                continue
        out.labels.append(label)
    return out


def _first_repeat(file: LabelFile, tasks: Sequence[LabelledTask]) -> int | None:
    """Return the file's first repeat number, 0 or 1. None: the run's own names are used. Refuse if it is unclear.

    Rows without a label count as evidence.

    Raises:
        InputError: both numbers fit, and nothing says which is meant.
    """
    each = [(_repeat_number(label), label, task) for task in tasks for label in task.labels]
    numbers = [(number, label, task) for number, label, task in each if number is not None]
    if _all_named(tasks):
        return None
    by_hash = {number - task.known[label] for number, label, task in numbers if label in task.known}
    if by_hash in ({0}, {1}):
        return by_hash.pop()
    if any(_repeat_number(label) == 0 for label in (*file.labels, *file.empty)):
        return 0
    if all(number < task.answers for number, _, task in numbers):
        for number, label, task in numbers:
            if label not in task.known and not math.isnan(label.value):
                raise InputError(_ambiguous_repeat(file, label, number, task))
    return 1


def _ambiguous_repeat(file: LabelFile, label: Label, number: int, task: LabelledTask) -> str:
    """Return the error message that a repeat number may mean two answers, with how to say which."""
    K, names = task.answers, [*task.named()]
    how = (
        f"{task.part.task} calls its repeats {some_of(names, MOST_NAMED)}: write these, or"
        if names
        else "To say which,"
    )
    return (
        f"{file.name}, line {label.line}: repeat {label.repeat} of question {label.question!r} is answer {number + 1} "
        f"of {K} if repeats count from 0, and answer {number} if they count from 1. The file has neither a repeat 0 "
        f"nor a repeat {K}. {how} add a row with the repeat 0 or {K}, whose label may be empty"
    )


def _all_named(tasks: Sequence[LabelledTask]) -> bool:
    """Return True if the file has repeats, and each is the name of a repeat of its run that its hash agrees with."""
    each = [(task.named(), task.known, [x for x in task.labels if x.repeat is not None]) for task in tasks]
    places = [
        (names.get(_plain_name(label.repeat or "")), known.get(label))
        for names, known, named in each
        for label in named
    ]
    return bool(places) and all(j is not None and by_hash in (None, j) for j, by_hash in places)


def _repeat_number(label: Label) -> int | None:
    """Return a label's repeat as an integer, None if it has none or is not a whole number."""
    text = "" if label.repeat is None else _plain_name(label.repeat)
    return int(text) if text.isdecimal() else None


def _plain_name(name: str) -> str:
    """Return a repeat's name, whole numbers without decimals: "1.0" is "1"."""
    head, dot, rest = name.partition(".")
    return str(int(head)) if head.isdecimal() and not rest.strip("0") and (rest or not dot) else name
