"""Names of files and folders that number runs: `output-rs0`, `run_1`, `seed=3`."""

from __future__ import annotations

import re

_RUN = re.compile(
    r"(?:^|(?<=[-_. ]))(rs|run|seed|rep|repeat|trial|epoch|attempt)[-_ =]?(\d+)(?=$|[-_. ])", re.IGNORECASE
)


def without_run(name: str) -> str | None:
    """Return a file's name with the run number cut out ("" if nothing is left). None if it has no run number."""
    return None if _RUN.search(name) is None else re.sub(r"[-_. ]+$|^[-_. ]+", "", _RUN.sub("", name))


def differ_in_number(first: str, second: str) -> bool:
    """Return True if two paths are equal once all digits are ignored."""
    return re.sub(r"\d+", "#", first) == re.sub(r"\d+", "#", second)
