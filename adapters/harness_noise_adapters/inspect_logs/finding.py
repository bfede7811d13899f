"""Which files are Inspect logs; to look at every file that is given, it loads next to nothing."""

from __future__ import annotations

import re
from pathlib import Path


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder and below it, oldest name first."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_log(path))


def is_log(path: Path) -> bool:
    """By name for `.eval`, by its first bytes for `.json`."""
    if path.name.startswith("."):
        return False
    if path.suffix == ".eval":
        return True
    if path.suffix != ".json":
        return False
    try:
        with path.open("rb") as file:
            start = file.read(400)
    except OSError:
        return False
    return re.match(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"\w+",\s*"eval":', start) is not None
