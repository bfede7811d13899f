"""The values of a table's cells."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.clusters import text_label
from harness_noise.errors import InputError

if TYPE_CHECKING:
    pass


MOST_COUNTED = 50_000_000
"""Answers that the counts of one file may stand for: 400 MB of scores."""


def _text(value: Any) -> str | None:
    """A cell as a key: 1.0 of a float column is 1; None where it is empty."""
    if isinstance(value, str):
        text = value.strip()
        if not text.isascii():  # a lone surrogate is no text that a file or a data frame could hold
            text = text.encode("utf-8", "backslashreplace").decode()
        return text or None
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return text_label(value)


def _number(path: Path, line: int, column: str, value: Any) -> float:
    """A score: a number, a truth value, or NaN where the cell is empty."""
    if isinstance(value, str):
        plain = value.strip().lower()
        if plain in MISSING:
            return math.nan
        value = {"true": 1.0, "false": 0.0}.get(plain, plain)
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if abs(number) > HUGE:
        raise InputError(f"{path}, line {line}: {column} {value!r} is not a finite number, true or false")
    return number


MISSING = frozenset(("", "nan", "null", "none", "na", "n/a"))
HUGE = 1e100
"""Scores beyond it are taken for infinite: their squares are."""
