"""Measures besides the score: the fields that a reader seeks in each answer, and their values.

A reader keeps what `usage_of` finds as `Scores.usage`; `io.measures` makes of it the rows that were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, nan
from typing import Any

from ..errors import InputError

SCORE = "score"
UNITS = {
    "input_tokens": "tokens",
    "output_tokens": "tokens",
    "total_tokens": "tokens",
    "reasoning_tokens": "tokens",
    "cache_read_tokens": "tokens",
    "cache_write_tokens": "tokens",
    "time": "s",
    "working_time": "s",
    "cost": "$",
}
"""Built-in measure → its unit."""
SPELLINGS = {
    "input_tokens": ("prompt_tokens", "n_input_tokens"),
    "output_tokens": ("completion_tokens", "n_output_tokens"),
    "total_tokens": ("n_tokens",),
    "cache_read_tokens": ("cached_tokens", "n_cache_tokens"),
    "time": ("duration", "seconds", "duration_seconds", "time_s", "latency_s"),
    "cost": ("cost_usd", "total_cost", "total_cost_usd"),
}
"""Built-in measure → other names of fields that can mean nothing else."""
CACHED = ("cached", "cache_hit", "from_cache")
"""Fields that say whether an answer came from a cache."""
BROKEN = ("infrastructure", "unanswered")
"""Causes of a missing score by which the usage is that of a part of an answer."""
UNBOUNDED = (-inf, inf)
"""The range of a measure. Values that happen to lie in [0, 1] are not a proportion."""
OF_REPEATS = re.compile(r"(consistency|pass\^|pass@)\^?(k|[1-9]\d*)?", re.IGNORECASE)
"""Measures that are made of all answers to a question."""
HIGHER = ":higher"
"""Ending of the name of a measure of which more is better."""
PRICED = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
"""The measures from which a cost is computed, if prices are given."""


def parse_measures(names: Iterable[str]) -> tuple[str, ...]:
    """Return each measure that a user named, such as cost or cost/score, once. Refuse what is no name or ratio.

    Raises:
        InputError: a name is empty, or a ratio has not two parts.
    """
    out = tuple(dict.fromkeys("".join(name.split()) for name in names))
    for name in out:
        parts = name.removesuffix(HIGHER).split("/")
        if not all(parts) or len(parts) > 2 or (len(parts) == 2 and any(map(OF_REPEATS.fullmatch, parts))):
            raise InputError(
                f"`measures` {name!r}: name a measure ({', '.join((SCORE, *UNITS))}, a column, consistency, pass^3), "
                "or a ratio of two sums such as cost/score"
            )
    return out


def fields_to_read(measures: Iterable[str], *, prices: bool = False) -> tuple[str, ...]:
    """Return the fields to read from every answer for these measures, but the score. `prices`: for cost also tokens."""
    parts = [part for name in measures for part in name.removesuffix(HIGHER).split("/")]
    names = dict.fromkeys(part for part in parts if part != SCORE and not OF_REPEATS.fullmatch(part))
    return tuple(names | dict.fromkeys(PRICED if prices and "cost" in names else ()))


def unit_of(measure: str) -> str:
    """Return the unit of a measure ("tokens", "$", "s"), of a ratio's first part, or "" if unknown."""
    return UNITS.get(measure.partition("/")[0], "")


def usage_of(
    answer: Mapping[str, Any], names: Sequence[str], where: object = "", line: int = 0, cause: str = ""
) -> dict[str, Any]:
    """Return {measure: value} of one answer, a word for the reason if it has none. Refuse text and negative use.

    Args:
        answer: what is known of it, under the names of `UNITS`, their `SPELLINGS`, or names of its own.
        names: of the measures.
        where: the file, for messages.
        line: where the answer stands in it.
        cause: why it has no score. An answer that the provider broke off has used less than a whole one.

    Raises:
        InputError: a negative usage, or a number without end.
    """
    if cause in BROKEN:
        return dict.fromkeys(names, cause)
    cached = any(map(_is_true, map(answer.get, CACHED)))
    out: dict[str, Any] = {}
    for name in names:
        spelling, raw = _find_measure(name, answer)
        if spelling is None or (cached and name in UNITS):
            out[name] = "cached" if cached else "not_logged"
            continue
        value = _number(raw)
        if value is None or not isfinite(value) or (value < 0 and name in UNITS):
            at = f"{where}, line {line}" if line else f"{where}"
            if value is None:
                raise InputError(f"{at}: {spelling} {str(raw)[:40]!r} is no number: it cannot be a measure")
            kind = "a negative" if isfinite(value) else "an infinite"
            raise InputError(f"{at}: {spelling} is {value:g}: {kind} {name} cannot be. Correct it, or leave it empty")
        out[name] = value
    if any(_number(_find_measure(name, answer)[1]) == 0 for name in _NO_CALL):
        # no call has no input: the answer is one that was kept
        out |= {name: "cached" for name in out if UNITS.get(name) in ("tokens", "$")}
    return out


def usages(
    columns: Mapping[str, Sequence[Any]],
    n: int,
    names: Sequence[str],
    where: object,
    lines: Sequence[int],
    causes: Sequence[str],
) -> list[dict[str, Any]]:
    """Return n dicts {measure: value, or why it is missing} from whole columns. Refuse text and negative use.

    Args:
        columns: field → what each answer has there; those that `spellings` names count.
        n: how many answers there are.
        names: as in `usage_of`, without dotted paths to fields inside others.
        where: the file, for messages.
        lines: where each answer stands in it.
        causes: why each has no score, "" where it has one.
    """
    found: dict[str, list[float]] = {}
    whole = not set(columns) & set(CACHED)
    for name in dict.fromkeys((*names, *_NO_CALL)):
        there = [text for text in (name, *SPELLINGS.get(name, ())) if text in columns]
        column = _plain_numbers(columns[there[0]]) if there else [nan] * n
        whole = whole and column is not None and len(there) < 2 and not (name in UNITS and any(x < 0 for x in column))
        found[name] = column or []
    if whole:
        each = [[x if x == x else "not_logged" for x in found[name]] for name in names]
        out = [dict(zip(names, row, strict=True)) for row in zip(*each, strict=True)]
        kept = {i for name in _NO_CALL for i, x in enumerate(found[name]) if x == 0}
        apart = sorted(kept | {i for i, cause in enumerate(causes) if cause in BROKEN})
    else:
        out, apart = [{}] * n, [*range(n)]
    for i in apart:
        answer = {name: column[i] for name, column in columns.items()}
        out[i] = usage_of(answer, names, where, lines[i], causes[i])
    return out


_NO_CALL = ("input_tokens", "total_tokens")
"""Measures that are 0 if an answer was kept from another call."""


def spellings(names: Sequence[str]) -> list[str]:
    """Return all field names that may hold one of these measures in an answer, with their synonyms."""
    each = [text for name in (*names, *_NO_CALL) for text in (name, *SPELLINGS.get(name, ()))]
    return [*dict.fromkeys((*each, *CACHED))]


def _plain_numbers(cells: Sequence[Any]) -> list[float] | None:
    """Convert cells (numbers or their texts) to finite numbers, NaN for empty ones. None if any is something else."""
    try:
        plain = {*map(type, cells)} <= {int, float, str} and "" not in cells
        out = [*map(float, cells)] if plain else [float(cell) if _there(cell) else nan for cell in cells]
    except (TypeError, ValueError, OverflowError):
        return None
    return None if inf in out or -inf in out else out


def _find_measure(name: str, answer: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Return (field name, value) of a measure in an answer, under any of its spellings, else (None, None)."""
    for text in (name, *SPELLINGS.get(name, ())):
        value = _at_path(text, answer)
        if _there(value):
            return text, value
    return None, None


def _at_path(name: str, answer: Mapping[str, Any]) -> Any:
    """Return an answer's value at a field or at a dotted path, None if there is none."""
    if name in answer or "." not in name:
        return answer.get(name)
    first, _, rest = name.partition(".")
    inner = answer.get(first)
    return _at_path(rest, inner) if isinstance(inner, Mapping) else None


def numeric_fields(answer: Mapping[str, Any]) -> list[str]:
    """Return the names of an answer's fields that hold a number, also as text. Truth values do not count."""
    return [name for name, value in answer.items() if not isinstance(value, bool) and _number(value) is not None]


def _there(value: Any) -> bool:
    return value is not None and value == value and not (isinstance(value, str) and value.strip().lower() in _EMPTY)


_EMPTY = ("", "nan", "null", "none", "na", "n/a")


def _is_true(value: Any) -> bool:
    return value == 1 or (isinstance(value, str) and value.strip().lower() in ("true", "yes", "1"))


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None
