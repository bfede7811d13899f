"""Names of files and folders that number runs: `output-rs0`, `run_1`, `seed=3`."""

from __future__ import annotations

import re

_RUN = re.compile(
    r"(?:^|(?<=[-_. ]))(rs|run|seed|rep|repeat|trial|epoch|attempt)[-_ =]?(\d+)(?=$|[-_. ])", re.IGNORECASE
)


def run_number(name: str) -> str | None:
    """Return the number of the run in a name. None if there is none."""
    match = _RUN.search(name)
    return None if match is None else match[2]


def without_run(name: str) -> str | None:
    """Return a name without the number of a run in it, "" if it is nothing else. None if it has none."""
    return None if _RUN.search(name) is None else re.sub(r"[-_. ]+$|^[-_. ]+", "", _RUN.sub("", name))


def differ_in_number(first: str, second: str) -> bool:
    """Return whether two paths are the same but for numbers in them."""
    return re.sub(r"\d+", "#", first) == re.sub(r"\d+", "#", second)
