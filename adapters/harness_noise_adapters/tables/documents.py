"""Places of the rows in a JSON document: a list of objects, a list inside an object, or an object keyed by question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness_noise.data.clusters import MissingFieldError, value_of
from harness_noise.errors import InputError, parameter
from harness_noise.io.paths import load
from harness_noise.io.shapes import shape_of

from .opening import Record, opened_table


def document(path: Path) -> Any:
    """Load a whole JSON file, Pandas' `orient="split"` form as a list of rows. Refuse a damaged file."""
    advice = ". Write one object to a line (JSONL), which is read line by line"
    if path.suffix.lower() == ".gz":
        with opened_table(path) as file:
            data = load(path, advice=advice, data=file)
    else:
        data = load(path, advice=advice)
    if isinstance(data, dict) and {"columns", "data"} <= data.keys() <= {"columns", "data", "index"}:
        names, cells = data["columns"], data["data"]
        if not (isinstance(names, list) and isinstance(cells, list) and len(set(map(str, names))) == len(names)):
            raise InputError(f"{path}: `columns` and `data` are no table: names that differ, and a list of rows")
        for number, row in enumerate(cells, 1):
            if not isinstance(row, list) or len(row) != len(names):
                raise InputError(f"{path}, entry {number}: not {len(names)} cells, one for each of the columns")
        return [dict(zip(map(str, names), row, strict=True)) for row in cells]
    return data


def rows_of(path: Path, rows: str | None, data: Any) -> Iterator[tuple[int, Record]]:
    """Yield (number, row) of the rows in a JSON document at the path `rows`. Refuse if it is not clear which.

    Args:
        path: the file, for messages.
        rows: the dotted path to them, with a `*` for the keys of an object; None: where they must be.
        data: the document.
    """
    if rows is None and isinstance(data, dict):
        places = [place for place, _ in sorted(lists_in(data), key=lambda pair: -len(pair[1]))]
        if len(places) != 1:
            keyed = places_keyed(data)
            scored = [place for place in keyed if holds_scores(object_at(data, place))]
            if len(keyed) > 1 and len(scored) != 1:
                raise InputError(_several(path, keyed))
            if not keyed:
                raise InputError(_no_rows(path, places, data))
            if not scored and (texts := _shape_of_texts(object_at(data, keyed[0]))):
                raise InputError(f"{path}: no scores: {keyed[0]} is {texts}, as of answers that nobody has graded")
            places = scored or keyed
        (rows,) = places
    items = data if rows is None else inside(path, "", data, rows)
    if not isinstance(items, list):
        raise InputError(f"{path}: {_NO_LIST}. This is {shape_of(items)}")
    for number, row in enumerate(items, 1):
        yield number, object_of(path, f"entry {number}", row)


def _shape_of_texts(value: Any) -> str:
    """Describe, for an error, an object that holds only lists of long texts. Return an empty text for others."""
    each = [item for one in value.values() if isinstance(one, list) for item in one]
    long = each and all(isinstance(item, str) for item in each) and sum(map(len, each)) > _LONG * len(each)
    return shape_of(value) if long else ""


_LONG = 20
"""Characters from which a text is not a word of a verdict."""
_NO_LIST = "a JSON table must be a list of objects, one for each answer"
KEY, VALUE, ANY = "@key", "@value", "*"
"""Columns for the key and the value of an object keyed by question, and the part of a path that stands for all keys."""
_FEWEST_TRUTHS, _FEWEST = 2, 5
"""Keys that an object must have to be one of questions: of truth values, and of anything else."""


def is_keyed(value: Any, fewest_truths: int = _FEWEST) -> bool:
    """Return True if an object seems to map question names to answers: its values are booleans, lists or objects."""
    if not isinstance(value, dict):
        return False
    each = list(value.values())
    if len(each) >= fewest_truths and all(isinstance(one, bool) for one in each):
        return True
    if len(each) < _FEWEST:
        return False
    if all(isinstance(one, list) and one for one in each):
        kinds = {isinstance(item, dict) for one in each for item in one}
        return len(kinds) == 1 and not any(isinstance(item, list) for one in each for item in one)
    if not all(isinstance(one, dict) and one for one in each):
        return False
    shared = set.intersection(*(set(one) for one in each))
    return 2 * len(shared) >= max(len(one) for one in each)


def places_keyed(data: dict[str, Any], prefix: str = "", depth: int = 2) -> list[str]:
    """Return dotted paths to the objects in a JSON document that map question names to answers (`*`, `eval.*`)."""
    if is_keyed(data, _FEWEST if prefix else _FEWEST_TRUTHS):  # a few switches inside a file of settings are none
        return [f"{prefix}{ANY}"]
    inner = [(name, value) for name, value in data.items() if isinstance(value, dict) and depth > 1]
    return [place for name, value in inner for place in places_keyed(value, f"{prefix}{name}.", depth - 1)]


def holds_scores(value: dict[str, Any]) -> bool:
    """Return True if all values of a dictionary are numbers, booleans or lists of them: scores by question."""
    each = [item for one in value.values() for item in (one if isinstance(one, list) else [one])]
    return all(isinstance(item, (bool, int, float)) for item in each)


def object_at(data: dict[str, Any], place: str) -> Any:
    """Return the value, object or not, that a path such as `eval.*` (without its `*`) leads to, None without one."""
    name = place.removesuffix(ANY).removesuffix(".")
    try:
        return value_of(name, data) if name else data
    except MissingFieldError:
        return None


def keyed_rows(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield rows of an object that maps question names to answers: one each, or one for each object in a list."""
    for key, one in value.items():
        if isinstance(one, dict):
            yield {KEY: key, **one}
        elif isinstance(one, list) and one and all(isinstance(item, dict) for item in one):
            yield from ({KEY: key, **item} for item in one)
        else:
            yield {KEY: key, VALUE: one}


def _no_rows(path: Path, places: list[str], data: Any) -> str:
    if not places:
        return f"{path}: {_NO_LIST}. No such list is in this file, which is {shape_of(data)}"
    parents = {place.rpartition(".")[0] for place in places}
    shown = [place if len(place) <= _LONGEST else f"{place[:_LONGEST]}…" for place in places[: _NAMED + 1]]
    if len(places) > _NAMED and (len(parents) == 1 or shown[0] != places[0]):
        return (
            f"{path}: not a table: {max(parents)[:_LONGEST] or 'the object'} holds {len(places)} lists of objects "
            f"under as many names ({shown[0].rpartition('.')[2]}, …). Write one row for each answer (JSONL, CSV)"
        )
    return _several(path, places)


def _several(path: Path, places: list[str]) -> str:
    places = [place if len(place) <= _LONGEST else f"{place[:_LONGEST]}…" for place in places]
    listed = ", ".join(places[:_NAMED]) + (f" and {len(places) - _NAMED} more" if len(places) > _NAMED else "")
    return (
        f"{path}: several lists of objects could be the rows: {listed}. Say which with "
        f"{parameter('columns', {'rows': places[0]})}"
    )


_LONGEST = 60
"""Characters of a name that a message shows."""
_NAMED = 6
"""Lists beside each other beyond which their names are those of questions."""


def lists_in(value: Any, prefix: str = "", depth: int = 3) -> Iterator[tuple[str, list[Any]]]:
    """Yield (dotted path, list) for each list of objects inside a JSON object, at most `depth` levels deep."""
    for name, inner in value.items():
        if isinstance(inner, list) and inner and all(isinstance(row, dict) for row in inner):
            yield f"{prefix}{name}", inner
        elif isinstance(inner, dict) and depth > 1:
            yield from lists_in(inner, f"{prefix}{name}.", depth - 1)


def inside(path: Path, where: str, outer: Any, rows: str) -> list[Record]:
    """Return the rows at a dotted path in an object, its model and task added to each. Refuse if no list is there."""
    at = f"{path}{where and f', {where}'}"
    keyed = rows == ANY or rows.endswith(f".{ANY}")
    try:
        value = None
        if isinstance(outer, dict):
            value = object_at(outer, rows) if keyed else value_of(rows, outer)
    except MissingFieldError as error:
        have = ", ".join(error.fields) or "none"
        raise InputError(f"{at}: `columns` rows={rows}: no such field. There are {have}") from None
    if keyed and isinstance(value, dict):
        value = list(keyed_rows(value))
    if not isinstance(value, list):
        raise InputError(f"{at}: `columns` rows={rows} is no list of objects, but {type(value).__name__}")
    said = {name: outer[name] for name in SHARED if isinstance(outer.get(name), str)} if rows != ANY else {}
    return [said | object_of(path, f"{rows}, entry {number}", row) for number, row in enumerate(value, 1)]


SHARED = ("model", "model_id", "model_name", "task", "task_name", "benchmark", "dataset")
"""Keys by which an object names the model or the task of all rows inside it."""


def object_of(path: Path, where: str, row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f"{path}, {where}: not an object with columns, but {type(row).__name__}")
    return row
