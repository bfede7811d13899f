"""The common form of results: rows as strict JSON, as a table, and shown by their renderers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from .._version import __version__
from ..data.notes import Note
from ..errors import InputError, counted
from ..extras import result_modules

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance
    from rich.console import RenderableType


SCHEMA_VERSION = 2
_RENDERERS = {
    "rich": "harness_noise.report.terminal:render",
    "text": "harness_noise.report.terminal:text",
    "html": "harness_noise.report.html:fragment",
    "markdown": "harness_noise.report.text:markdown",
    "sentence": "harness_noise.report.text:sentence",
    "verdict": "harness_noise.report.text:verdict",
    "plot": "harness_noise.report.figures:plot",
}
"""Form → `module:function`, imported when a result is shown for the first time: results know no renderer."""


def rendered(form: str, result: object, *arguments: Any, **options: Any) -> Any:
    """Call the renderer of this form (`text`, `page`, `summary`, …) for a result's class, and return what it gives."""
    module, function = (renderers_of(result).get(form) or _RENDERERS[form]).split(":")
    return getattr(import_module(module), function)(result, *arguments, **options)


def renderers_of(result: object) -> Mapping[str, str]:
    """Return a dict from output format to "module:function", for formats special to a result's class."""
    own: Mapping[str, str] = getattr(result, "renderers", {})
    return own


def check_form(function: str, result: object, form: str) -> None:
    """Raise an error if a result's class has no such output format.

    Raises:
        InputError: names the kinds that have it.
    """
    if form not in renderers_of(result):
        have = [name for name, kind in all_kinds().items() if form in kind.renderers]
        raise InputError(f"{function} accepts {' or '.join(have)}, not {type(result).__name__}")


KINDS: dict[str, type[Shown]] = {}
"""Name → class of each imported kind of result, a class of `Shown` that names renderers."""


def all_kinds() -> dict[str, type[Shown]]:
    """Return a dict from name to class of all result classes, also those of extras."""
    modules()
    return dict(KINDS)


def modules() -> list[ModuleType]:
    """Import and return all modules that define results: those of this folder and of the extras."""
    names = [module.name for module in iter_modules(import_module(__package__).__path__)]
    return [*(import_module(f"{__package__}.{name}") for name in names if name != "schema"), *result_modules()]


class Shown:
    """A result that terminals and notebooks show."""

    __slots__ = ()

    renderers: ClassVar[Mapping[str, str]] = {}
    """Form → `module:function` for this kind: ``summary`` (what terminals, Markdown and notebooks show), ``pictures``
    (what a page or a notebook opens with), ``page`` (HTML), ``figures`` (files), ``lines`` (sentences for a paper, if
    they are not all of the summary's)."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "renderers" in vars(cls):
            KINDS[cls.__name__] = cls

    def _table(self) -> Shown:
        """Return the object shown in place of this one: itself, or for a row a table with that row."""
        return self

    def __rich__(self) -> RenderableType:
        shown: RenderableType = rendered("rich", self._table())
        return shown

    def __str__(self) -> str:
        return str(rendered("text", self._table()))

    def _repr_html_(self) -> str:
        return str(rendered("html", self._table()))


class SVG(str):
    """A figure as the text of an SVG file."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


_SAID = 200
"""Letters of the verdict that `repr` shows."""


class Document(Shown):
    """A whole result: what a command prints."""

    __slots__ = ()

    kind: ClassVar[str]
    """The table that a format with room for one shows."""
    whole: ClassVar[str] = ""
    """The table that such a format shows with details, if it is another. Then all formats are brief without them."""
    always: ClassVar[tuple[str, ...]]
    """Keys of the JSON besides the settings, in its order."""
    if_any: ClassVar[tuple[str, ...]] = ()
    """Tables that it has only where they have rows."""
    under: ClassVar[str] = ""
    """The key of the JSON under which all of it stands as one object, "" for tables beside the settings."""

    def __repr__(self) -> str:
        said = self.verdict.partition("\n")[0] or counted(len(getattr(self, self.kind)), "row")
        return f"<{type(self).__name__}: {said if len(said) <= _SAID else f'{said[: _SAID - 1]}…'}>"

    @property
    def sentence(self) -> str:
        """One sentence for each row, ready for a paper, as `--format sentence` prints."""
        return str(rendered("sentence", self)).rstrip("\n")

    @property
    def verdict(self) -> str:
        """Conclusions in plain words, one a line, as printed above the tables."""
        return str(rendered("verdict", self))

    def plot(self) -> SVG:
        """Return the result's main figure as SVG, which a notebook displays.

        Raises:
            ValueError: there is nothing that could be drawn.
        """
        return SVG(rendered("plot", self))

    @classmethod
    def json_types(cls) -> dict[str, str]:
        """Return a dict from field name to type of what the JSON form has under the key `under`."""
        return shown_fields(cls)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as the dictionary that `--format json` prints."""
        shown = {name: json_value(getattr(self, name)) for name in (*self.always, *self._extra())}
        return document(getattr(self, "settings", {}), **shown)

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return one of the result's tables, by default the main one, as a data frame. Raise KeyError if not there.

        It is a list of `to_dict` with one line per row. What is not identified is NaN.

        Raises:
            KeyError: there is no such list.
        """
        tables = self._tables()
        if table is not None and table not in tables:
            raise KeyError(f"no table {table!r}. There are {', '.join(tables)}")
        import pandas as pd

        return pd.DataFrame(self.flat_columns(table or self.kind))

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Return {name of a table: data frame} of all tables that the result has, each as `to_frame` gives it."""
        return {name: self.to_frame(name) for name in self._tables()}

    def _tables(self) -> list[str]:
        return [name for name in (*self.always, *self._extra()) if name != "notes" and _has_rows(getattr(self, name))]

    def flat_columns(self, table: str) -> dict[str, Sequence[Any]]:
        """Return a table's columns as lists of plain values by name, with nested fields as columns of their own."""
        have = dict(self._columns(table))
        only = getattr(self, "settings", {}).get("only")
        if only and have:
            have["only"] = [" and ".join(only)] * len(next(iter(have.values())))
        return {key: each for name, values in have.items() for key, each in _flat(name, values).items()}

    def _columns(self, table: str) -> Mapping[str, Sequence[Any]]:
        """Return a dict from field name to the values of all rows of one of the result's tables."""
        rows = list(getattr(self, table))
        return {name: [getattr(row, name) for row in rows] for name in (shown_fields(rows[0]) if rows else ())}

    def _extra(self) -> list[str]:
        return [name for name in self.if_any if getattr(self, name)]

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def document(settings: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """Return the dictionary that `--format json` prints, from settings and tables."""
    head = {"schema_version": SCHEMA_VERSION, "harness_noise_version": __version__, "settings": dict(settings)}
    return head | ({"only": list(settings["only"])} if settings.get("only") else {}) | parts


def row(result: DataclassInstance) -> dict[str, Any]:
    """Return one result row as a dictionary for JSON, with None for what cannot be estimated."""
    return {name: json_value(getattr(result, name)) for name in shown_fields(result)}


def shown_fields(result: Any) -> dict[str, str]:
    """Return a dict from name to type of a row's fields, without private ones, which begin with _."""
    return {field.name: str(field.type) for field in fields(result) if not field.name.startswith("_")}


def json_value(value: Any) -> Any:
    """Convert a result's value for JSON: a row to a dictionary, rows to a list, keys to texts. NaN stays NaN."""
    if value is None or isinstance(value, (str, float, int)):  # nearly every value of the pairs of many runs
        return value
    if _has_rows(value):
        return [json_value(element) for element in value]
    if isinstance(value, Mapping):
        return {str(key): json_value(content) for key, content in value.items()}
    if isinstance(value, Note):
        return value.to_dict()
    return row(value) if is_dataclass(value) and not isinstance(value, type) else value


def _has_rows(value: Any) -> bool:
    return isinstance(value, (tuple, Iterator))


def _flat(name: str, values: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Split a field with nested values into plain columns: `se_total: {median: …}` gives `se_total_median`."""
    if set(map(type, values)) <= {float, int, bool, type(None)}:
        return {name: values}
    cells = [json_value(value) for value in values]
    if not any(isinstance(cell, dict) for cell in cells):
        return {name: [_text(name, cell) for cell in cells]}
    form, nothing = BY_K.get(name, f"{name}_{{}}"), 0 if name == "missing" else None
    inner = dict.fromkeys(key for cell in cells if cell for key in cell)
    return {form.format(key): [_text(name, (cell or {}).get(key, nothing)) for cell in cells] for key in inner}


def _text(name: str, value: Any) -> Any:
    """Return a list joined to one text, and a text without unpaired surrogates. Other values stay unchanged."""
    if isinstance(value, list):
        value = " ".join(value) if name == "diagnostics" else json.dumps(value, ensure_ascii=False)
    return _HALF.sub("\ufffd", value) if isinstance(value, str) else value


_HALF = re.compile("[\ud800-\udfff]")


def finite(value: float | None) -> float | None:
    """Return a number as a float, None if it is missing, infinite or NaN, which results never hold."""
    return None if value is None or not math.isfinite(value) else float(value)


BY_K = {
    "pass_at_k": "pass_at_{}",
    "pass_at_k_se": "pass_at_{}_se",
    "pass_hat_k": "pass_hat_{}",
    "pass_hat_k_se": "pass_hat_{}_se",
}
"""Fields by k → their names in a table with a column for each k."""
