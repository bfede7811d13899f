"""Names of files and folders that number runs: `output-rs0`, `run_1`, `seed=3`."""

from __future__ import annotations

import re

_RUN = re.compile(
    r"(?:^|(?<=[-_. ]))(rs|run|seed|rep|repeat|trial|epoch|attempt)[-_ =]?(\d+)(?=$|[-_. ])", re.IGNORECASE
)


def run_number(name: str) -> str | None:
    """Return the number of the run in a file's name (`run_1` → "1"), None if the name has none."""
    match = _RUN.search(name)
    return None if match is None else match[2]


def without_run(name: str) -> str | None:
    """Return a file's name without its run number, "" if nothing is left, None if the name has no run number."""
    return None if _RUN.search(name) is None else re.sub(r"[-_. ]+$|^[-_. ]+", "", _RUN.sub("", name))


def differ_in_number(first: str, second: str) -> bool:
    """Return True if two paths are equal except for numbers in them."""
    return re.sub(r"\d+", "#", first) == re.sub(r"\d+", "#", second)
