"""The ground that extras share: tables of any format as rows, and the refusal of keywords that they do not obey."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from ..errors import InputError, some_of
from ..extras import not_installed, public
from ..io import paths
from ..io.door import inside
from ..io.paths import exists, is_frame, is_path, resolve_path
from ..io.registry import load
from ..settings import Settings

Row = Mapping[str, Any]
_OF_THE_CALLER = {"progress", "say"}


def refuse_others(what: str, keywords: Mapping[str, Any], obeyed: Collection[str] = ()) -> None:
    """Refuse each keyword that is neither default, empty nor 0, unless it is in `obeyed` or is `progress` or `say`.

    Args:
        what: the sentence, with `{}` for the keyword.
        keywords: name → value; its default, 0 or an empty value stands for a keyword that was not given.
        obeyed: names of those that are.

    Raises:
        InputError: names the keyword.
    """
    for name, value in keywords.items():
        fields = Settings.__dataclass_fields__
        default = fields[name].default if name in fields else None
        if value and name not in obeyed and name not in _OF_THE_CALLER and value != default:
            raise InputError(what.format(f"`{name}`"))


def needed(name: str) -> Any:
    """Return a public function or class of another extra by name. Refuse if it is not installed.

    Raises:
        InputError: it is not installed.
    """
    if (found := public(name)) is None:
        raise InputError(not_installed(name))
    return found


def rows_of(source: Any) -> tuple[str, list[Row]]:
    """Read a table (file, DataFrame, list of dictionaries). Return its name and rows as dictionaries. Refuse no row.

    A JSON document that is an object is one row.

    Args:
        source: a path of any table that the package reads, a DataFrame, or a list of dictionaries.

    Raises:
        InputError: it is no such file, cannot be read, or has no row; says where.
    """
    if not is_path(source):
        rows = paths.rows_of(source) if is_frame(source) else source
        if not (isinstance(rows, Sequence) and rows and all(isinstance(row, Mapping) for row in rows)):
            raise InputError("a table is a file, a DataFrame, or a list of dictionaries with at least one row")
        return "table", [{str(key): value for key, value in row.items()} for row in rows]
    path, reader = resolve_path(source), load("table")
    if not exists(path):
        raise InputError(f"{source}: no such file")
    if not path.is_file():
        raise InputError(f"{source} is a folder: name a table")
    with inside(path):
        found: list[Row] = cast("Any", reader).rows(path)
    if not found:
        raise InputError(f"{source}: it has no row")
    return path.stem, found


def column_of(where: str, rows: Sequence[Row], role: str, names: Sequence[str], columns: Mapping[str, str]) -> str:
    """Return the column for a role: that of the user (refuse if lacking), else the first of `names`, else "".

    Args:
        where: the table, for messages.
        rows: of it.
        role: what it is, as `columns` calls it.
        names: columns that are recognised, the first that is there counts.
        columns: role → column, as the user says.

    Raises:
        InputError: the user names a column that is not there.
    """
    have = {name.lower(): name for name in rows[0]}
    if role in columns:
        if columns[role] not in rows[0]:
            raise InputError(f"{where}: no column {columns[role]!r}. There are {some_of(list(rows[0]), 12)}")
        return columns[role]
    return next((have[name] for name in names if name in have), "")


def number_of(value: Any) -> float | None:
    """Convert a cell to a number: "5%" is 0.05, an empty cell NaN, what is not a number None."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return math.nan
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return None
    return number / 100 if text.endswith("%") else number


def is_empty(value: Any) -> bool:
    """Return True if a cell is None, NaN or blank."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or not str(value).strip()
