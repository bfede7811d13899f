"""Tables as they lie somewhere: their names and endings, packed or not, in memory or in a file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from harness_noise.errors import InputError
from harness_noise.io.paths import BUFFER, opened, reason

_SPARE_BYTES, _TIMES = 1 << 28, 100
"""Bytes that a packed table may unpack to in any case, and for each packed byte."""
Record = Mapping[str, Any]

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class Rows:
    """A table that lies in memory: read as a file is, with a name in place of a path."""

    name: str
    rows: Sequence[Record] = ()
    cells: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Column → the cell of each row, in place of rows."""

    def __str__(self) -> str:
        return self.name


def suffix_of(path: Path) -> str:
    """Return a table file's ending such as `.csv`, looking past `.gz`. Empty text if not a table."""
    packed = path.suffix.lower() == ".gz"
    suffix = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    return suffix if suffix in SUFFIXES and not (packed and suffix == ".parquet") else ""


def stem(path: Path | Rows) -> str:
    """Return the name of a table file without its endings, also without `.gz`."""
    if isinstance(path, Rows):
        return path.name
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def columns_of(path: Path | Rows, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the column choices that apply to this file: `score=COL` for all files, `FILE:score=COL` for one."""
    everywhere = {name: column for name, column in columns.items() if ":" not in name}
    for name, column in columns.items():
        file, _, ours = name.rpartition(":")
        if file and file in (path.name, stem(path), str(path)):
            everywhere[ours] = column
    return everywhere


def opened_table(path: Path) -> BufferedReader:
    file = opened(path)
    if path.suffix.lower() != ".gz":
        return file
    unpacked: Any = _Unpacked(path, file)
    return BufferedReader(unpacked, BUFFER)


class _Unpacked(gzip.GzipFile):
    """A gzip file that refuses to unpack to far more than its packed size."""

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


@contextmanager
def readable(path: Path | Rows) -> Iterator[None]:
    """Turn read, gzip and decoding errors inside this `with` block into clear errors that name the file."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a gzip file that can be read ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
