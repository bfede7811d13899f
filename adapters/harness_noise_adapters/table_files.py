"""The rows of a table file, whatever its format: CSV, TSV, JSONL, JSON, Parquet; streamed where it can be."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness_noise.errors import InputError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")

Record = Mapping[str, Any]


def records(path: Path) -> Iterator[tuple[int, Record]]:
    """The rows of a table with their line numbers (of JSON and Parquet, their row numbers)."""
    suffix = path.suffix.lower()
    reader = {".parquet": _parquet, ".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines}.get(suffix, _csv)
    try:
        yield from reader(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None


def _csv(path: Path) -> Iterator[tuple[int, Record]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header_line = file.readline()
        if not header_line.strip():
            raise InputError(f"{path}: the file is empty")
        file.seek(0)
        delimiter = max(",;\t", key=header_line.count)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
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
            raise InputError(f"{path}, line {reader.line_num}: not CSV that can be read ({error})") from None


def _json_lines(path: Path) -> Iterator[tuple[int, Record]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                row = json.loads(line)
            except UnicodeDecodeError:
                raise
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{path}, line {number}: not JSON ({error}); is the file damaged or truncated?"
                ) from None
            yield number, _object(path, f"line {number}", row)


def _json(path: Path) -> Iterator[tuple[int, Record]]:
    try:
        rows = json.loads(path.read_bytes())
    except UnicodeDecodeError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON that can be read ({error})") from None
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
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except pyarrow.ArrowException as error:
        raise InputError(f"{path}: not a Parquet file that can be read ({error})") from None
