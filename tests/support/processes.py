"""Programs of Python that a test starts."""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def environment(*first: Path, **more: str) -> dict[str, str]:
    """This process's environment, with the folders and then the tests' own where Python looks for modules."""
    path = [*map(str, first), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)} | more
