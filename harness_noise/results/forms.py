"""What all results share: rows as strict JSON, as a table, and shown by whoever renders them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from .._version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance
    from rich.console import RenderableType


SCHEMA_VERSION = 1
_RENDERERS = {
    "rich": "report.terminal:render",
    "text": "report.terminal:text",
    "html": "report.html:fragment",
    "markdown": "report.text:markdown",
    "junit": "report.gate:junit",
}
"""Form → `module:function`, imported when a result is shown for the first time: results know no renderer."""


def rendered(form: str, result: object) -> Any:
    """The result in a form of `_RENDERERS`."""
    module, function = _RENDERERS[form].split(":")
    return getattr(import_module(f"harness_noise.{module}"), function)(result)


class Shown:
    """A result that terminals and notebooks show."""

    __slots__ = ()

    def _table(self) -> Shown:
        """What is shown in its place: a row stands in a table of one row."""
        return self

    def __rich__(self) -> RenderableType:
        shown: RenderableType = rendered("rich", self._table())
        return shown

    def __str__(self) -> str:
        return str(rendered("text", self._table()))

    def _repr_html_(self) -> str:
        return str(rendered("html", self._table()))


class Document(Shown):
    """A whole result: what a command prints."""

    __slots__ = ()

    kind: ClassVar[str]
    """The table that a format with room for one shows."""
    always: ClassVar[tuple[str, ...]]
    """What the JSON has beside the settings, in its order."""
    if_any: ClassVar[tuple[str, ...]] = ()
    """Tables that it has only where they have rows."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        shown = {name: json_value(getattr(self, name)) for name in (*self.always, *self._extra())}
        return document(getattr(self, "settings", {}), **shown)

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """A list of `to_dict` with one line per row, by default the main one; what is not identified is NaN.

        Raises:
            KeyError: there is no such list.
        """
        tables = [name for name in (*self.always, *self._extra()) if name != "notes" and _has_rows(getattr(self, name))]
        if table is not None and table not in tables:
            raise KeyError(f"no table {table!r}; there are {', '.join(tables)}")
        import pandas as pd

        return pd.DataFrame(self.flat_columns(table or self.kind))

    def flat_columns(self, table: str) -> dict[str, Sequence[Any]]:
        """The columns of a table as frames and CSV have them: an object has a column for each of its fields."""
        have = self._columns(table)
        return {key: each for name, values in have.items() for key, each in _flat(name, values).items()}

    def _columns(self, table: str) -> Mapping[str, Sequence[Any]]:
        """The fields of the rows of a table, each with its values."""
        rows = list(getattr(self, table))
        return {field.name: [getattr(row, field.name) for row in rows] for field in (fields(rows[0]) if rows else ())}

    def _extra(self) -> list[str]:
        return [name for name in self.if_any if getattr(self, name)]

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def document(settings: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """The object that `--format json` prints, of settings and tables."""
    head = {"schema_version": SCHEMA_VERSION, "harness_noise_version": __version__, "settings": dict(settings)}
    return head | parts


def row(result: DataclassInstance) -> dict[str, Any]:
    """The JSON form of one row: strict JSON, None for what cannot be estimated."""
    return {field.name: json_value(getattr(result, field.name)) for field in fields(result)}


def json_value(value: Any) -> Any:
    """What JSON has for a value of a result: an object for a row, an array for rows, texts as keys."""
    if value is None or isinstance(value, (str, float, int)):  # nearly every value of the pairs of an arena
        return value
    if _has_rows(value):
        return [json_value(element) for element in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(content) for key, content in value.items()}
    return row(value) if is_dataclass(value) and not isinstance(value, type) else value


def _has_rows(value: Any) -> bool:
    return isinstance(value, (tuple, Iterator))


def _flat(name: str, values: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """The columns of a field: `se_total: {median: …}` becomes `se_total_median`; lists of text are joined."""
    if set(map(type, values)) <= {float, int, bool, type(None)}:
        return {name: values}
    cells = [json_value(value) for value in values]
    if not any(isinstance(cell, dict) for cell in cells):
        return {name: [_text(name, cell) for cell in cells]}
    form, nothing = BY_K.get(name, f"{name}_{{}}"), 0 if name == "missing" else None
    inner = dict.fromkeys(key for cell in cells if cell for key in cell)
    return {form.format(key): [_text(name, (cell or {}).get(key, nothing)) for cell in cells] for key in inner}


def _text(name: str, value: Any) -> Any:
    """A list as one text, and a text without halves of surrogate pairs, which no column of text can hold."""
    if isinstance(value, list):
        value = " ".join(value) if name == "diagnostics" else json.dumps(value, ensure_ascii=False)
    return _HALF.sub("\ufffd", value) if isinstance(value, str) else value


_HALF = re.compile("[\ud800-\udfff]")


def finite(value: float | None) -> float | None:
    """None for what is not a finite number: nothing else enters a result."""
    return None if value is None or not math.isfinite(value) else float(value)


def merge_notes(*groups: Iterable[str]) -> tuple[str, ...]:
    """All notes once, in order."""
    return tuple(dict.fromkeys(note for group in groups for note in group))


BY_K = {
    "pass_at_k": "pass_at_{}",
    "pass_at_k_se": "pass_at_{}_se",
    "pass_hat_k": "pass_hat_{}",
    "pass_hat_k_se": "pass_hat_{}_se",
}
"""Fields by k, and what they are called where a table has a column for each k."""
