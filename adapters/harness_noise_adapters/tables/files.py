"""The rows of a table file, whatever its format: CSV, TSV, JSONL, JSON, Parquet; streamed where it can be."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, AnyStr

from harness_noise.errors import InputError
from harness_noise.io.json_files import load, load_line
from harness_noise.io.paths import reason

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")

Record = Mapping[str, Any]

LONGEST_LINE = 1 << 26
"""Characters or bytes; no answer with its question has as many."""
_BATCH = 4096
_SPARE_ROWS, _ROWS_PER_BYTE = 1_000_000, 32
"""Rows of a Parquet file: repetition packs so well that a small file could stand for billions."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table that lies in memory: read as a file is, with a name in place of a path."""

    name: str
    rows: Sequence[Record]

    @property
    def stem(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


def records(path: Path | Rows) -> Iterator[tuple[int, Record]]:
    """The rows of a table with their line numbers (of JSON, Parquet and tables in memory, their row numbers)."""
    if isinstance(path, Rows):
        yield from enumerate(path.rows, 1)
        return
    suffix = path.suffix.lower()
    reader = {".parquet": _parquet, ".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines}.get(suffix, _csv)
    try:
        yield from reader(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None


def _bounded(file: IO[AnyStr], path: Path) -> Iterator[AnyStr]:
    """The lines of a file, none of them endless."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise InputError(f"{path}, line {number}: longer than {LONGEST_LINE / 1e6:.0f} MB: not a row of a table")
        yield line


def _csv(path: Path) -> Iterator[tuple[int, Record]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
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


def _json_lines(path: Path) -> Iterator[tuple[int, Record]]:
    with path.open("rb") as file:
        for number, line in enumerate(_bounded(file, path), 1):
            if line.isspace():
                continue
            row = load_line(path, number, line, "; is the file damaged or truncated?")
            yield number, _object(path, f"line {number}", row)


def _json(path: Path) -> Iterator[tuple[int, Record]]:
    rows = load(path, advice="; write one object to a line (JSONL), which is read line by line")
    if not isinstance(rows, list):
        raise InputError(f"{path}: a JSON table must be a list of objects, one for each answer")
    for number, row in enumerate(rows, 1):
        yield number, _object(path, f"entry {number}", row)


def _object(path: Path, where: str, row: Any) -> Record:
    if not isinstance(row, dict):
        raise InputError(f"{path}, {where}: not an object with columns, but {type(row).__name__}")
    return row


def _parquet(path: Path) -> Iterator[tuple[int, Record]]:
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
            for batch in table.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except pyarrow.ArrowException as error:
        raise InputError(f"{path}: not a Parquet file that can be read ({error})") from None
