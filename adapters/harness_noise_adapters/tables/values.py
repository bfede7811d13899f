"""Values of single table cells: keys, scores, lists of scores."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness_noise.arrays import HUGE
from harness_noise.data.clusters import value_text
from harness_noise.data.numbers import TOO_LARGE, is_rounded, number_of, numeral, too_large
from harness_noise.errors import InputError

from .opening import Rows


def cell_text(value: Any) -> str | None:
    """Return a cell as trimmed text, None if empty. The float 1.0 becomes "1"."""
    if isinstance(value, str):
        text = value.strip()
        if not text.isascii():  # a file or a data frame cannot hold a lone surrogate
            text = text.encode("utf-8", "backslashreplace").decode()
        return text or None
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value_text(value)


def rounded_key(cells: Sequence[Any]) -> Any:
    """Return the first cell that is a float too large to hold a whole id exactly, None if there is none.

    A decoder makes one of a whole number of more than 64 bits, and a table in memory of any column with a gap.
    """
    if float not in {*map(type, cells)}:
        return None
    return next((cell for cell in cells if is_rounded(cell)), None)


class NoScoreError(InputError):
    """A cell of the scores is neither a number nor a verdict."""


def score_of(path: Path | Rows, line: int, column: str, value: Any) -> float:
    """Return a cell's score as a float (number, boolean or verdict word), NaN if empty. Raise an error otherwise."""
    number = number_of(value, score_of_text)
    if number is None or abs(number) > HUGE:
        shown = repr(value) if len(repr(value)) <= _SHOWN else f"{repr(value)[:_SHOWN]}…"
        verdicts = f"not a finite number, true or false, or another verdict ({', '.join(_KNOWN)})"
        why = TOO_LARGE if too_large(value, score_of_text) else verdicts
        raise NoScoreError(f"{path}, line {line}: {column} {shown} is {why}")
    return number


def score_of_text(text: str) -> float | None:
    """Return the score that a text stands for: number or verdict word, NaN if empty, None for other words."""
    plain = text.strip().lower()
    return math.nan if plain in MISSING else VERDICTS[plain] if plain in VERDICTS else numeral(plain)


def odd_scores(odd: Mapping[str, NoScoreError]) -> InputError:
    """Return the error that lists the cells that could not be read as scores."""
    first, *others = odd.values()
    if not others:
        return first
    listed = ", ".join(list(odd)[:MOST_ODD]) + (", …" if len(odd) > MOST_ODD else "")
    return InputError(f"{first}. Cells that are none of these: {listed}")


def answers_of(value: Any) -> list[Any] | None:
    """Return the raw items of a cell that is a list, or its JSON or Python text, None if it is none or nested."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return None
        plain = re.sub(r"\b(true|false|none|nan)\b", lambda match: _JSON[match[0].lower()], value, flags=re.IGNORECASE)
        try:
            value = json.loads(plain)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) and not any(isinstance(score, (list, dict)) for score in value) else None


_JSON = {"true": "true", "false": "false", "none": "null", "nan": "null"}
_SHOWN = 60
MOST_ODD = 8
"""The most cells without a score that a message lists."""
MISSING = frozenset(("", "nan", "null", "none", "na", "n/a"))
_LEXICON = tomllib.loads((files(__package__) / "columns.toml").read_text(encoding="utf-8"))
VERDICTS: dict[str, float] = _LEXICON["verdicts"]
"""Score of each verdict, in lower case. Inspect's letters are C, P (partly), I and N (no answer)."""
_KNOWN = ("yes/no", "pass/fail", "correct/incorrect", "resolved/unresolved", "C/P/I/N")
