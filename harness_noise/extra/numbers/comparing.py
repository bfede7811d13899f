"""What `compare` does with a published number, and with two counts."""

from __future__ import annotations

from ...api.keywords import Request
from ...data.notes import Note
from ...errors import InputError, check_count
from ...io.sources import Source, only_of
from ...results.rows import Comparison
from ...settings import Settings
from ..published import Published, compare_number, hint
from .counts import UNPAIRED, compare_counts


def compare_with_published(
    source: Source, value: float, answers: float | None, n: int | None, request: Request
) -> Comparison:
    """Return A − B of a run and a published number, on the same questions or n others. Refuse both or neither."""
    check_count("n", n)
    number = Published(value, n, answers)
    if (answers is None) == (n is None):
        both = "" if n is None else "`answers_b` says that the questions are the same, and `n` that they are others. "
        raise InputError(both + hint(number.value))
    run = only_of(request.runs([source]), [source])
    return compare_number(run, number, request.settings)


def of_counts(a: tuple[int, int], b: tuple[int, int], names: tuple[str, str], settings: Settings) -> Comparison:
    """Return A − B of two counts (x right of n) by Fisher's exact test, with a note that they are not paired."""
    row = compare_counts(a, b, names, settings)
    return Comparison(settings.to_dict(), (row,), (Note("unpaired", UNPAIRED),))
