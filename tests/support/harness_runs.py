"""Runs of the installed harnesses that several test modules read, made once for all workers of a session."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness_noise.io.atomic import alone


def made_once(
    folder: Path, name: str, harness: str, sources: Iterable[str], make: Callable[[Path], Any]
) -> tuple[Path, Any]:
    """The folder that `make` has filled for this version of `harness` and these sources, and what it returned (JSON).

    Whoever comes first makes it, the others wait. What was begun and not finished is made anew.
    """
    told = [version(harness), *(Path(source).read_text() for source in sources)]
    key = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
    place = folder / f"{name}-{key}" / name
    made = place.with_name("made.json")
    place.parent.mkdir(parents=True, exist_ok=True)
    with alone(place.parent):
        if not made.exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            made.write_text(json.dumps(make(place)))
    return place, json.loads(made.read_text())
