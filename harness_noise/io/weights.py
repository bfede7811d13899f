"""Numbers that a user gives by task, in a file or a mapping: weights in the overall row or of strata, and chances."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from ..errors import InputError
from ..settings import WEIGHTS, Chance, Weights
from .paths import PathInput, exists, resolve_path

_COLUMNS = {("task", "weight"): ("task",), ("field", "value", "weight"): ("field", "value")}
"""The columns of a file → those that name what a weight is of."""


def weights_of(given: Weights | PathInput | Mapping[str, float] | None) -> Weights | None:
    """Return the user's task weights: None or a word as it is, a mapping, rows or CSV file as rows. Refuse other files.

    Raises:
        InputError: there is no such file, or it cannot be used; says where.
    """
    if given is None or (isinstance(given, str) and given in WEIGHTS):
        return given
    if isinstance(given, Mapping):
        return tuple((str(task), weight) for task, weight in given.items())
    if isinstance(given, (tuple, list)):
        rows: Sequence[Any] = [tuple(row) for row in given]
        return tuple(rows)
    path = resolve_path(given)
    if not exists(path) or not path.is_file():
        raise InputError(f"weights {given}: not one of {', '.join(WEIGHTS)}, and no such file")
    return _weight_rows(str(given), _csv_reader(path, given))


def chance_of(given: Chance | PathInput | Mapping[str, float] | None) -> Chance | None:
    """Return the chance of guessing right: None, "auto", a number (also a text), or rows. Refuse a missing file.

    Raises:
        InputError: there is no such file, or it cannot be used; says where.
    """
    if given is None or given == "auto" or isinstance(given, Real):
        return cast("Chance | None", given)
    if isinstance(given, Mapping):
        return tuple((str(task), c) for task, c in given.items())
    if isinstance(given, (tuple, list)):
        return tuple((str(row[0]), row[1]) for row in given)
    with suppress(ValueError):
        return float(str(given))
    path = resolve_path(cast("PathInput", given))
    if not exists(path) or not path.is_file():
        raise InputError(f"chance {given}: not auto, not a number below 1, and no such file")
    return cast("Chance", _weight_rows(str(given), _csv_reader(path, given), "chance", {("task", "chance"): ("task",)}))


def _csv_reader(path: Path, given: object) -> csv.DictReader[str]:
    """Read a CSV file and return a reader of its rows. Refuse what is not UTF-8 text.

    Raises:
        InputError: it cannot be read, or is no text in UTF-8.
    """
    try:
        with path.open("rb") as file:
            text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{given}: no text in UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(f"{given}: cannot be read ({error.strerror})") from None
    if "\0" in text:
        raise InputError(f"{given}: no text, but bytes of another kind of file")
    return csv.DictReader(io.StringIO(text, newline=""))


def _weight_rows(
    where: str,
    lines: csv.DictReader[str],
    what: str = "weight",
    forms: Mapping[tuple[str, ...], tuple[str, ...]] = MappingProxyType(_COLUMNS),
) -> Weights:
    """Read (task, …, number) rows from a CSV of weights or chances. Refuse other columns, empty cells, doubles.

    Args:
        where: the file.
        lines: its lines.
        what: the column of the number.
        forms: the columns that it may have → those that name what the number is of.
    """
    have = [str(name).strip().lower() for name in lines.fieldnames or ()]
    columns = next((columns for columns in forms if sorted(columns) == sorted(filter(None, have))), None)
    if columns is None:
        raise InputError(
            f"{where}: such a file has the columns {' or '.join(map(','.join, forms))}, and this one has "
            f"{', '.join(have) or 'none'}"
        )
    out: dict[tuple[str, ...], float] = {}
    for number, line in _csv_rows(lines, where):
        at = f"{where}, line {number}"
        if any(map(str.strip, line.pop(None, ()))):
            raise InputError(f"{at}: it has more cells than the file has columns")
        cells = {str(key).strip().lower(): str(cell or "").strip() for key, cell in line.items()}
        named = tuple(cells[name] for name in forms[columns])
        if not all(named):
            raise InputError(f"{at}: the {' or the '.join(forms[columns])} is empty")
        if named in out:
            raise InputError(f"{at}: {' = '.join(named)} has a {what} already: give each one once")
        out[named] = _number(cells[what], what, at)
    if len({named[0] for named in out}) > 1 and columns[0] == "field":
        raise InputError(f"{where}: the strata are of one field, but this file names {', '.join({n[0] for n in out})}")
    if not out:
        raise InputError(f"{where}: no line with a {what}")
    rows: Sequence[Any] = [(*named, weight) for named, weight in out.items()]
    return tuple(rows)


def _csv_rows(lines: csv.DictReader[str], where: str) -> Iterator[tuple[int, dict[str | Any, str | Any]]]:
    """Yield (line number, row) of a CSV file. Refuse, by its line, only what the csv module cannot parse."""
    try:
        for row in lines:
            yield lines.line_num, row
    except csv.Error as error:
        raise InputError(f"{where}, line {lines.line_num}: no table ({error})") from None


def _number(text: str, what: str, at: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (isfinite(number) and number >= 0):
        raise InputError(f"{at}: the {what} {text!r} must be a number, 0 or more")
    return number
