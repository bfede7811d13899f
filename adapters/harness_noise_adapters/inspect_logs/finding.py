"""Which files are Inspect logs; to look at every file that is given, it loads next to nothing."""

from __future__ import annotations

import re
from contextlib import suppress
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO

from harness_noise.io.paths import POINTER

from ..records import JsonStream


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder and below it, oldest name first."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_log(path))


def parts_in(folder: Path) -> list[Path]:
    """The logs in a folder and below it, but of a set of shards (`NAME.shards/K/*.eval`) the folder that it is in."""
    parts: dict[Path, None] = {}
    for log in logs_in(folder):
        place = log.parent.parent
        whole = place.suffix == ".shards" and (place == folder or folder in place.parents)
        parts[place if whole else log] = None
    return list(parts)


def is_log(path: Path) -> bool:
    """By name for `.eval`, by its first names for `.json`."""
    if path.name.startswith("."):
        return False
    if path.suffix != ".json":
        return path.suffix == ".eval"
    try:
        with path.open("rb") as file:
            start = file.read(400)
            if _USUAL.match(start):
                return True
            first = _FIRST.match(start)
            if first is None:
                return _STAMPED.match(path.name) is not None and (not start or start.startswith(POINTER))
            if first[1] not in _NAMES:
                return False
            start += file.read(_SCANNED)
            return _has_eval(start) or (len(start) > _SCANNED and _ends_with_eval(file))
    except OSError:
        return False


_USUAL = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":')
"""Inspect's own order; other writers have others."""
_FIRST = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(\w+)"\s*:')
_STAMPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d.*\.json")
"""What Inspect calls its logs, to know one that is empty or that Git LFS has not fetched."""
_NAMES = frozenset(
    b"version status eval plan results stats error samples reductions location etag invalidated log_updates "
    b"config_updates tags metadata".split()
)
_SCANNED = 1 << 22


def _ends_with_eval(file: BinaryIO) -> bool:
    """Whether `eval` stands behind samples that are too many to look through."""
    file.seek(-_SCANNED, SEEK_END)
    return re.search(rb'"eval"\s*:\s*\{', file.read()) is not None


def _has_eval(start: bytes) -> bool:
    """Whether an object that begins here has names of a log only, and among them `eval` with an object behind it."""
    stream = JsonStream([start])
    with suppress(ValueError):  # cut, or no JSON
        for name in stream.members():
            value = stream.value()
            if name == "eval" or name.encode() not in _NAMES:
                return name == "eval" and isinstance(value, dict)
    return False
