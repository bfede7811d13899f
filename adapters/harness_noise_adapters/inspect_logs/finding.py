"""Recognition of Inspect logs. It reads a little of every file that is given, so it imports next to nothing."""

from __future__ import annotations

import re
from contextlib import suppress
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO

from harness_noise.io.door import is_inside
from harness_noise.io.paths import POINTER, opened

from ..records import JsonStream


def logs_in(folder: Path) -> list[Path]:
    """Return the paths of the logs in a folder and its subfolders, sorted, without those that a link leads out to."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_log(path) and is_inside(path))


def parts_in(folder: Path) -> list[Path]:
    """Return the paths of the logs below a folder. A set of shards (`NAME.shards/K/*.eval`) is its folder."""
    parts: dict[Path, None] = {}
    for log in logs_in(folder):
        place = log.parent.parent
        whole = place.suffix == ".shards" and (place == folder or folder in place.parents)
        parts[place if whole else log] = None
    return list(parts)


def is_log(path: Path) -> bool:
    """Return True if a file is an Inspect log: by ending for `.eval`, by its first keys for `.json`."""
    if path.name.startswith("."):
        return False
    if path.suffix != ".json":
        return path.suffix == ".eval"
    try:
        with opened(path, _BUFFER) as file:
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
"""The first bytes of a log in Inspect's own order of keys. Other writers have other orders."""
_FIRST = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(\w+)"\s*:')
_STAMPED = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d.*\.json")
"""The file names that Inspect gives its logs, by which an empty log or one not fetched by Git LFS is known."""
HEADER = frozenset(
    ["version", "status", "eval", "plan", "results", "stats", "invalidated", "log_updates", "error", "metadata"]
)
"""The top-level values of a `.json` log that are read, besides its samples."""
_NAMES = frozenset(b"samples reductions location etag config_updates tags".split()).union(map(str.encode, HEADER))
_BUFFER = 1 << 12
_OF_EVAL = {"task", "task_id", "eval_id", "run_id", "created", "dataset", "model", "config"}
"""Keys in the `eval` of a log. In a file of EvalPlus, `eval` has the names of its problems."""
_SCANNED = 1 << 22


def _ends_with_eval(file: BinaryIO) -> bool:
    """Return True if the key `eval` is in the last bytes of a JSON file, after many samples.

    The samples before it are too many to look through.
    """
    file.seek(-_SCANNED, SEEK_END)
    return re.search(rb'"eval"\s*:\s*\{', file.read()) is not None


def _has_eval(start: bytes) -> bool:
    """Return True if the JSON object that begins here has only keys of a log up to an `eval` like Inspect's."""
    stream = JsonStream([start])
    with suppress(ValueError):  # cut, or no JSON
        for name in stream.members():
            value = stream.value()
            if name == "eval" or name.encode() not in _NAMES:
                return name == "eval" and isinstance(value, dict) and (not value or bool(_OF_EVAL & value.keys()))
    return False
