"""Properties of the questions beside their scores: the values of SPECs, read along with them.

A SPEC is what it is for clusters (`clusters.py`): a field, a dotted path, a Jinja template, `A*B`, or `TASK=SPEC`
repeated; `auto` takes every field that holds a text, a number or a truth value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
        self.auto: dict[str, _AutoField] | None = None
        self.columns: dict[str, list[Value]] = {}
        self._spec: dict[str, str] = {}
        self._names: dict[str, None] = {}
        for text in specs:
            spec = ClusterSpec.parse(text).for_task(task)
            if spec in ("none", "task"):
                raise InputError(f"{spec!r} is no property of the questions of a task: name a field, or auto")
            if spec == AUTO:
                self.auto = {}
            elif spec is not None:
                self.columns[text], self._spec[text] = [], spec
        self._labels = {spec: labeller(spec) for spec in self._spec.values() if not is_plain(spec)}

    def add(self, doc: Mapping[str, Any]) -> None:
        """The next question's document."""
        for name in doc:
            self._names.setdefault(str(name))
        for text, column in self.columns.items():
            spec = self._spec[text]
            try:
                found = self._labels[spec](doc) if spec in self._labels else value_of(spec, doc)
            except MissingFieldError:
                found = None
            column.append(_value(found))
        if self.auto is not None:
            for name, value in _scalars(doc):
                self.auto.setdefault(name, _AutoField()).add(self.n, value)
        self.n += 1

    def fields(self) -> Fields:
        """What was found."""
        values: dict[str, Sequence[Value]] = dict(self.columns)
        found = {} if self.auto is None else {key: column for key, column in self.auto.items() if not column.too_many}
        for name, column in found.items():
            values.setdefault(name, column.padded(self.n))
        return Fields(values, tuple(found), tuple(self._names))


class _AutoField:
    """One field of `auto`; its values are let go once it is no category and no number."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.texts: set[str] = set()

    @property
    def too_many(self) -> bool:
        return len(self.texts) > MOST_VALUES

    def add(self, place: int, value: Value) -> None:
        if self.too_many:
            return
        if isinstance(value, str) and numeral(value) is None:
            self.texts.add(value)
            if self.too_many:
                self.values = []
                return
        self.values += [None] * (place - len(self.values))
        self.values.append(value)

    def padded(self, n: int) -> list[Value]:
        return [*self.values, *[None] * (n - len(self.values))]


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
    if value is None or value == "" or isinstance(value, str):
        return " ".join(value.split()) or None if value else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    try:
        return text_label(value)
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
