"""The rows of a table file, whatever its format: CSV, TSV, JSONL, JSON, Parquet; streamed where it can be."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, AnyStr

from harness_noise.data.clusters import MissingFieldError, value_of
from harness_noise.errors import InputError, parameter
from harness_noise.io.paths import BUFFER, POINTER, count, load, load_line, loads_lines, opened, reason, refuse_pointer

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")

Record = Mapping[str, Any]

LONGEST_LINE = 1 << 26
"""Characters or bytes; no answer with its question has as many."""
_BATCH = 4096
_DECODED = 1 << 17
"""Bytes of lines that are decoded at once; more would not stay in the processor's cache."""
_FILTERED = 1 << 18
"""Bytes of lines of which most are left out."""
_SPARE_BYTES, _TIMES = 1 << 28, 100
"""Bytes that a packed table may unpack to in any case, and for each packed byte."""
_SPARE_ROWS, _ROWS_PER_BYTE = 1_000_000, 32
"""Rows of a Parquet file: repetition packs so well that a small file could stand for billions."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table that lies in memory: read as a file is, with a name in place of a path."""

    name: str
    rows: Sequence[Record]

    def __str__(self) -> str:
        return self.name


def suffix_of(path: Path) -> str:
    """The ending that says how a table is written, also behind `.gz`; Parquet packs itself."""
    packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    return suffix if suffix in SUFFIXES and not (packed and suffix == ".parquet") else ""


def stem(path: Path | Rows) -> str:
    """The name of a table without its endings."""
    if isinstance(path, Rows):
        return path.name
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def columns_of(path: Path | Rows, columns: Mapping[str, str]) -> dict[str, str]:
    """What `--columns` says of this file: `score=COL` of every file, `FILE:score=COL` of the one of that name."""
    everywhere = {name: column for name, column in columns.items() if ":" not in name}
    for name, column in columns.items():
        file, _, ours = name.rpartition(":")
        if file and file in (path.name, stem(path), str(path)):
            everywhere[ours] = column
    return everywhere


def _opened(path: Path) -> BufferedReader:
    file = opened(path)
    if path.suffix.lower() != ".gz":
        return file
    unpacked: Any = _Unpacked(path, file)
    return BufferedReader(unpacked, BUFFER)


class _Unpacked(gzip.GzipFile):
    """A gzip file that ends where it would stand for much more than a table packs into its bytes."""

    def __init__(self, path: Path, packed: IO[bytes]) -> None:
        super().__init__(fileobj=packed)
        self._path, self._packed, self._most = path, packed, _SPARE_BYTES + _TIMES * path.stat().st_size

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > self._most:
            raise InputError(f"{self._path}: unpacks to more than {_TIMES} times its size: no table of scores does")
        return super().read(size)

    def close(self) -> None:
        super().close()
        self._packed.close()


def has_rows(path: Path) -> bool:
    """Whether a JSON file begins as a list does, or as an object that holds a list of objects or a split table."""
    try:
        with _opened(path) as file:
            start = file.read(_START).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (OSError, EOFError, zlib.error):
        return False
    return start.startswith(b"[") or (start.startswith(b"{") and _ROWS.search(start) is not None)


_START, _ROWS = 1 << 18, re.compile(rb":\s*\[\s*\{|^\{\s*\"columns\"\s*:\s*\[")


def records(path: Path | Rows, rows: str | None = None, whole: Any = None) -> Iterator[tuple[int, Record]]:
    """The rows of a table with their line numbers (of JSON, Parquet and tables in memory, their row numbers).

    Args:
        path: the file, or the table.
        rows: the dotted path to the list of rows inside the objects of a JSON file.
        whole: the `document` that a JSON file is, if it has been read.
    """
    if isinstance(path, Rows):
        yield from enumerate(path.rows, 1)
        return
    suffix = suffix_of(path)
    with readable(path):
        if suffix == ".json":
            yield from _json(path, rows, document(path) if whole is None else whole)
        elif is_lines(path):
            yield from _json_lines(path, rows)
        elif rows is not None:
            raise InputError(f"{path}: `columns` rows={rows} is for JSON, whose rows may stand inside an object")
        else:
            yield from (parquet_rows if suffix == ".parquet" else _csv)(path)


def is_lines(path: Path | Rows) -> bool:
    """Whether a file has one JSON object to a line."""
    return not isinstance(path, Rows) and suffix_of(path) in (".jsonl", ".ndjson")


@contextmanager
def readable(path: Path | Rows) -> Iterator[None]:
    """Say in words why a file cannot be read."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a gzip file that can be read ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None


def objects(
    path: Path, unwanted: Callable[[bytes], bool] | None = None
) -> Iterator[tuple[Sequence[int], list[dict[str, Any]]]]:
    """The objects of a file with one to a line, some at a time, and their numbers; without lines that are unwanted."""
    first = 1
    with readable(path), _opened(path) as file:
        while piece := file.read(_DECODED if unwanted is None else _FILTERED):
            rest = file.readline(LONGEST_LINE)
            if len(rest) == LONGEST_LINE:
                raise _endless(path, first + piece.count(b"\n"))
            piece += rest
            n, kept = count(piece, "\n") + (not piece.endswith(b"\n")), None
            if unwanted is not None:
                kept = {number: line for number, line in enumerate(BytesIO(piece), first) if not unwanted(line)}
            rows = _at_once(piece, n) if kept is None else _at_once(b"".join(kept.values()), len(kept))
            if rows is None:
                lines = enumerate(BytesIO(piece), first) if kept is None else kept.items()
                kept = {number: line for number, line in lines if line.strip()}
                rows = [_object_of(path, number, line) for number, line in kept.items()]  # says what is wrong
            yield range(first, first + n) if kept is None else list(kept), rows
            first += n


def _at_once(lines: bytes, n: int) -> list[dict[str, Any]] | None:
    """The objects of n lines; None where they are no such lines."""
    with suppress(ValueError, RecursionError):
        values = loads_lines(lines, n)
        return values if set(map(type, values)) <= {dict} else None
    return None


def _object_of(path: Path, number: int, line: bytes) -> dict[str, Any]:
    if line.startswith(POINTER):
        refuse_pointer(path)
    return _object(path, f"line {number}", load_line(path, number, line, DAMAGED))


DAMAGED = "; is the file damaged or truncated?"


def _bounded(file: IO[AnyStr], path: Path) -> Iterator[AnyStr]:
    """The lines of a file, none of them endless."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise _endless(path, number)
        yield line


def _endless(path: Path, number: int) -> InputError:
    return InputError(f"{path}, line {number}: longer than {LONGEST_LINE / 1e6:.0f} MB: not a row of a table")


def _csv(path: Path) -> Iterator[tuple[int, Record]]:
    with _opened(path) as binary, TextIOWrapper(binary, encoding="utf-8-sig", newline="") as file:
        header_line = next(_bounded(file, path), "")
        if not header_line.strip():
            raise InputError(f"{path}: the file is empty")
        file.seek(0)
        delimiter = max(",;\t", key=header_line.count)
        reader = csv.reader(_bounded(file, path), delimiter=delimiter, strict=True)
        try:
            header = next(reader)
            if len(set(header)) < len(header):
                twice = next(name for name in header if header.count(name) > 1)
                raise InputError(f"{path}: two columns are called {twice!r}")
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(cells)} cells, but the header has {len(header)} columns"
                    )
                yield reader.line_num, dict(zip(header, cells, strict=True))
        except csv.Error as error:
            raise InputError(
                f"{path}, line {reader.line_num}: not CSV that can be read ({error}); a table has one row for each "
                "answer, with a question and a score"
            ) from None


def _json_lines(path: Path, rows: str | None) -> Iterator[tuple[int, Record]]:
    for numbers, lines in objects(path):
        if rows is None:
            yield from zip(numbers, lines, strict=True)
        else:
            for number, row in zip(numbers, lines, strict=True):
                yield from ((number, record) for record in _inside(path, f"line {number}", row, rows))


def document(path: Path) -> Any:
    """The JSON document that a file is; the rows of one that pandas wrote with `orient="split"`."""
    advice = "; write one object to a line (JSONL), which is read line by line"
    if path.suffix.lower() == ".gz":
        with _opened(path) as file:
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


def _json(path: Path, rows: str | None, data: Any) -> Iterator[tuple[int, Record]]:
    if rows is None and isinstance(data, dict):
        places = [place for place, _ in sorted(lists_in(data), key=lambda pair: -len(pair[1]))]
        if len(places) != 1:
            raise InputError(_no_rows(path, places))
        (rows,) = places
    items = data if rows is None else _inside(path, "", data, rows)
    if not isinstance(items, list):
        raise InputError(f"{path}: a JSON table must be a list of objects, one for each answer")
    for number, row in enumerate(items, 1):
        yield number, _object(path, f"entry {number}", row)


def _no_rows(path: Path, places: list[str]) -> str:
    if not places:
        return f"{path}: a JSON table must be a list of objects, one for each answer; no such list is in this object"
    parents = {place.rpartition(".")[0] for place in places}
    shown = [place if len(place) <= _LONGEST else f"{place[:_LONGEST]}…" for place in places[: _NAMED + 1]]
    if len(places) > _NAMED and (len(parents) == 1 or shown[0] != places[0]):
        return (
            f"{path}: not a table: {max(parents)[:_LONGEST] or 'the object'} holds {len(places)} lists of objects "
            f"under as many names ({shown[0].rpartition('.')[2]}, …); write one row for each answer (JSONL, CSV)"
        )
    listed = ", ".join(shown[:_NAMED]) + (f" and {len(places) - _NAMED} more" if len(places) > _NAMED else "")
    return (
        f"{path}: several lists of objects could be the rows: {listed}; say which with "
        f"{parameter('columns', {'rows': shown[0]})}"
    )


_LONGEST = 60
"""Characters of a name that a message shows."""
_NAMED = 6
"""Lists beside each other beyond which their names are those of questions."""


def lists_in(value: Any, prefix: str = "", depth: int = 3) -> Iterator[tuple[str, list[Any]]]:
    """The lists of objects inside an object, each with its dotted path."""
    for name, inner in value.items():
        if isinstance(inner, list) and inner and all(isinstance(row, dict) for row in inner):
            yield f"{prefix}{name}", inner
        elif isinstance(inner, dict) and depth > 1:
            yield from lists_in(inner, f"{prefix}{name}.", depth - 1)


def _inside(path: Path, where: str, outer: Any, rows: str) -> list[Record]:
    """The rows at a path inside an object; what the object says of model and task counts for each."""
    at = f"{path}{where and f', {where}'}"
    try:
        value = value_of(rows, outer) if isinstance(outer, dict) else None
    except MissingFieldError as error:
        have = ", ".join(error.fields) or "none"
        raise InputError(f"{at}: `columns` rows={rows}: no such field; there are {have}") from None
    if not isinstance(value, list):
        raise InputError(f"{at}: `columns` rows={rows} is no list of objects, but {type(value).__name__}")
    said = {name: outer[name] for name in SHARED if isinstance(outer.get(name), str)}
    return [said | _object(path, f"{rows}, entry {number}", row) for number, row in enumerate(value, 1)]


SHARED = ("model", "model_id", "model_name", "task", "task_name", "benchmark", "dataset")
"""What an object may say of all rows inside it."""


def _object(path: Path, where: str, row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f"{path}, {where}: not an object with columns, but {type(row).__name__}")
    return row


def parquet_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a Parquet file with their numbers, perhaps only some columns of them."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'harness-noise[parquet]'") from None
    try:
        with path.open("rb") as file, parquet.ParquetFile(file) as table:
            most = _SPARE_ROWS + _ROWS_PER_BYTE * path.stat().st_size
            if table.metadata.num_rows > most:
                raise InputError(
                    f"{path}: says that it has {table.metadata.num_rows} rows, more than {_ROWS_PER_BYTE} for each of "
                    "its bytes: no table of scores packs so well; write it as CSV if it is one"
                )
            number = 0
            for batch in table.iter_batches(_BATCH, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except InputError:
        raise
    except (pyarrow.ArrowException, ValueError, ArithmeticError, MemoryError) as error:  # a damaged page, a date
        raise InputError(f"{path}: not a Parquet file that can be read ({error})") from None
