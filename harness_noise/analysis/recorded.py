"""Runs that stopped early: what corrects their numbers is an extra, without which there are none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..data.scores import Run
from ..extras import module_of
from ..results.parts import KEYWORD


def correction(runs: Iterable[Run]) -> Any:
    """Return the module that corrects for early stopping if a run stopped early, else None. Refuse if not installed.

    Raises:
        InputError: it is not installed, and numbers without it are too extreme.
    """
    stopped = next((run for run in runs if run.stops), None)
    if stopped is None:
        return None
    return module_of(KEYWORD, f"{stopped.name} stopped early, and what corrects its numbers for that")
