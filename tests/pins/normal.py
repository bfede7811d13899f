"""What may change from one run to the next: dates, ids, places, times; they are named, nothing else is touched."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d[-:]\d\d[-:]\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d[-:]?\d\d)?")
_ID = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z0-9]*[a-z])[A-Za-z0-9]{22}(?![A-Za-z0-9])")
_HEX = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")
_OF_THE_RUN = frozenset(
    (
        "git_hash", "upper_git_hash", "date", "start_time", "end_time", "total_evaluation_time_seconds",
        "pretty_env_info", "transformers_version", "lm_eval_version", "working_start", "working_time", "total_time",
        "time", "duration", "revision", "packages", "task_hashes", "pid", "completed", "pending",
    )
)  # fmt: skip
"""Keys of the harnesses' files that are of the machine and the moment."""
_ZSTD = 93
_MADE = re.compile(r"(?<=Made on )[^<]+?(?= by harness-noise)")
"""The day at the foot of a page."""
_asked_from = [datetime.now(UTC)]


def begin() -> None:
    """Dates from here on are put in by what is called; those before are of the inputs, also of inputs just made."""
    _asked_from[0] = datetime.now(UTC) - timedelta(seconds=2)


def text(raw: str, places: Mapping[str, str]) -> str:
    """A text without the folders that it was made in."""
    for place, name in places.items():
        raw = raw.replace(place, name)
    return raw


def file(path: Path, places: Mapping[str, str], *, live: bool = False) -> Any:
    """What a file says, as JSON: parsed where it is JSON, member by member where it is an archive.

    Args:
        path: the file.
        places: folder → what it is called instead.
        live: written by a run just now, whose dates and ids are its own.
    """
    raw = path.read_bytes()
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path).to_pydict()
    if zipfile.is_zipfile(io.BytesIO(raw)):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = {info.filename: _member(archive, info, raw).decode() for info in archive.infolist()}
        return {name: _one(members[name], places, live) for name in sorted(members)}
    return _one(raw.decode(), places, live)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, raw: bytes) -> bytes:
    """A member of an archive; Inspect's are packed with zstd, which Python's zipfile learns in 3.14."""
    if info.compress_type != _ZSTD:
        return archive.read(info)
    import zstandard

    lengths = raw[info.header_offset + 26 : info.header_offset + 30]
    start = info.header_offset + 30 + sum(struct.unpack("<HH", lengths))
    packed = io.BytesIO(raw[start : start + info.compress_size])
    return zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read()


def name(path: str, *, live: bool) -> str:
    """A file's name, without the date and the id of the run."""
    return _moment(path) if live else path


def _one(raw: str, places: Mapping[str, str], live: bool) -> Any:
    raw = _MADE.sub("<day>", text(raw, places))
    if not live:
        return _DATE.sub(_unless_before, raw)
    try:
        return _without(json.loads(raw))
    except ValueError:
        pass
    try:
        return [_without(json.loads(line)) for line in raw.splitlines()]
    except ValueError:
        return _moment(raw)


def _unless_before(date: re.Match[str]) -> str:
    """A date as it is in an input; `<now>` where it was put in by what has just been called."""
    try:
        at = datetime.fromisoformat(date[0])
    except ValueError:
        return date[0]
    return "<now>" if (at if at.tzinfo else at.replace(tzinfo=UTC)) >= _asked_from[0] else date[0]


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            _moment(key): f"<{key}>" if key in _OF_THE_RUN and item is not None else _without(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without(item) for item in value]
    return _moment(value) if isinstance(value, str) else value


def _moment(raw: str) -> str:
    return _HEX.sub("<id>", _ID.sub("<id>", _DATE.sub("<date>", raw)))
