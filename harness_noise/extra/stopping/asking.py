"""The doors through which the core and other extras use looks: the keyword `looks`, and stopped runs."""

from __future__ import annotations

from dataclasses import replace

from ...data.notes import Note
from ...data.scores import Run
from ...errors import InputError
from ...io.paths import is_url
from ...results.rows import Comparison
from ...settings import Settings
from ..boundaries import Looks
from .growing import Pair, comparisons, judged_by_looks, look, looks_path
from .rules import FEWEST_UNITS, MOST_BLOCKS, NARROWEST, StoppingRule
from .stopped import correct, is_of

__all__ = [
    "FEWEST_UNITS",
    "MOST_BLOCKS",
    "NARROWEST",
    "Pair",
    "StoppingRule",
    "comparisons",
    "correct",
    "is_of",
    "looked",
]


def looked(
    result: Comparison, pairs: list[tuple[Run, Run]], complete: list[Run], settings: Settings, looks: Looks | str
) -> Comparison:
    """Return the comparison corrected for looks at growing run A, saved next to A's file. Refuse URLs and slices."""
    if len(pairs) != 1 or not pairs[0][0].path or is_url(pairs[0][0].path):
        raise InputError(
            "`looks` is for one run that grows, in a local file or folder, and the one it is compared with"
        )
    if result.slices:
        raise InputError("`looks` corrects rows for repeated looks, but slices are not: leave `looks` or `by` out")
    settings.check("looks")
    memory = looks_path(pairs[0][0].path)
    taken = look(*pairs[0], settings, StoppingRule.parse("decided", looks=looks).looks, memory, complete)
    note = Note("looks_kept", f"the looks at {pairs[0][0].model} are kept in {memory}")
    return judged_by_looks(replace(result, notes=(*result.notes, note)), taken, settings)
