"""The values of a table's cells."""

from __future__ import annotations

import json
import math
import re
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


class NoScoreError(InputError):
    """A cell of the scores is neither a number nor a verdict."""


def _number(path: Path, line: int, column: str, value: Any) -> float:
    """A score: a number, a truth value, the word of a verdict, or NaN where the cell is empty."""
    given = value
    if isinstance(value, str):
        plain = value.strip().lower()
        if plain in MISSING:
            return math.nan
        value = VERDICTS.get(plain, plain)
    if value is None:
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if abs(number) > HUGE:
        shown = repr(given) if len(repr(given)) <= _SHOWN else f"{repr(given)[:_SHOWN]}…"
        raise NoScoreError(
            f"{path}, line {line}: {column} {shown} is not a finite number, true or false, or another verdict "
            f"({', '.join(_KNOWN)})"
        )
    return number


def answers_of(value: Any) -> list[Any] | None:
    """The scores of several answers that one cell lists, in JSON or as Python writes them; None where it is no list."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return None
        plain = re.sub(r"\b(true|false|none|nan)\b", lambda found: _JSON[found[0].lower()], value, flags=re.IGNORECASE)
        try:
            value = json.loads(plain)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value) else None


_JSON = {"true": "true", "false": "false", "none": "null", "nan": "null"}
_SHOWN = 60
MISSING = frozenset(("", "nan", "null", "none", "na", "n/a"))
_RIGHT = ("yes", "pass", "passed", "true", "correct", "right", "resolved", "c")
_WRONG = ("no", "fail", "failed", "false", "incorrect", "wrong", "unresolved", "i", "n")
VERDICTS = dict.fromkeys(_RIGHT, 1.0) | dict.fromkeys(_WRONG, 0.0) | {"p": 0.5}
"""The words of a verdict, in lower case; Inspect's letters are C, P (partly), I and N (no answer)."""
_KNOWN = ("yes/no", "pass/fail", "correct/incorrect", "resolved/unresolved", "C/P/I/N")
HUGE = 1e100
"""Scores beyond it are taken for infinite: their squares are."""
