"""Properties of the questions beside their scores: the values of SPECs, read along with them.

A SPEC is what it is for clusters (`clusters.py`): a field, a dotted path, a Jinja template, `A*B`, or `TASK=SPEC`
repeated; `auto` takes every field that holds a text, a number or a truth value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..errors import FinalError, InputError
from .clusters import ClusterSpec, MissingFieldError, is_plain, labeller, text_label, value_of

Value = str | float | None
"""A number where it is one, else text; None where the question has none."""

AUTO = "auto"
MOST_VALUES = 50
"""Values that a field may have at most to be a category that `auto` tries."""


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """Values of the questions, by SPEC."""

    values: Mapping[str, Sequence[Value]]
    """SPEC, or for `auto` the name of the field → n values."""
    auto: tuple[str, ...] = ()
    """The names that `auto` found."""
    names: tuple[str, ...] = ()
    """The fields that there are, for messages."""

    def take(self, rows: Iterable[int]) -> Fields:
        """The fields of some of the questions."""
        kept = list(rows)
        return Fields({key: [column[i] for i in kept] for key, column in self.values.items()}, self.auto, self.names)


class FieldReader:
    """Collects the values of one task's questions, document by document."""

    def __init__(self, specs: Iterable[str], task: str) -> None:
        self.n = 0
        self._auto = False
        self.auto: dict[str, tuple[dict[int, Value], set[str]]] = {}
        """Field → number of the question → its value, and the texts among them; no more once it is no category."""
        self.columns: dict[str, list[Value]] = {}
        self._get: dict[str, Callable[[Mapping[str, Any]], Any]] = {}
        self._names: dict[str, None] = {}
        for text in specs:
            spec = ClusterSpec.parse(text).for_task(task)
            if spec in ("none", "task"):
                raise InputError(f"{spec!r} is no property of the questions of a task: name a field, or auto")
            if spec == AUTO:
                self._auto = True
            elif spec is not None:
                self.columns[text] = []
                self._get[text] = partial(value_of, spec) if is_plain(spec) else labeller(spec)

    def add(self, doc: Mapping[str, Any]) -> None:
        """The next question's document."""
        self._names.update(dict.fromkeys(map(str, doc)))
        for text, column in self.columns.items():
            try:
                column.append(_value(self._get[text](doc)))
            except MissingFieldError:
                column.append(None)
        for name, value in _scalars(doc) if self._auto else ():
            known, texts = self.auto.setdefault(name, ({}, set()))
            if len(texts) <= MOST_VALUES:
                known[self.n] = value
            if len(texts) <= MOST_VALUES and isinstance(value, str) and numeral(value) is None:
                texts.add(value)
        self.n += 1

    def fields(self) -> Fields:
        """What was found."""
        found = {name: known for name, (known, texts) in self.auto.items() if len(texts) <= MOST_VALUES}
        auto = {name: [known.get(i) for i in range(self.n)] for name, known in found.items()}
        return Fields(auto | self.columns, tuple(found), tuple(self._names))


def _scalars(doc: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    """The texts, numbers and truth values of a document and of the objects in it."""
    for key, value in doc.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if not prefix:
                yield from _scalars(value, f"{name}.")
        elif isinstance(value, (str, bool, int, float)):
            yield name, _value(value)


def _value(value: Any) -> Value:
    if isinstance(value, str):
        return " ".join(value.split()) or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    try:
        return None if value is None else text_label(value)
    except FinalError:
        return None


def numeral(value: Value) -> float | None:
    """The number that a value is, also one written as text; None where it is none."""
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in value else None
