"""Measures beside the score: what a reader looks for of each answer, and what it may find there.

A reader keeps what `usage_of` finds as `Scores.usage`; `io.measures` makes of it the rows that were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite
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
"""The range of a measure: values that happen to lie in [0, 1] are no proportion."""
OF_REPEATS = re.compile(r"(consistency|pass\^|pass@)\^?(k|[1-9]\d*)?", re.IGNORECASE)
"""Measures that are made of all answers to a question."""
HIGHER = ":higher"
"""Ending of the name of a measure of which more is better."""
PRICED = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
"""What a cost is computed from, where prices are given."""


def parsed(names: Iterable[str]) -> tuple[str, ...]:
    """The measures, each once.

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


def to_read(measures: Iterable[str], *, prices: bool = False) -> tuple[str, ...]:
    """What has to be read of each answer beside its score, for the measures that were asked for."""
    parts = [part for name in measures for part in name.removesuffix(HIGHER).split("/")]
    names = dict.fromkeys(part for part in parts if part != SCORE and not OF_REPEATS.fullmatch(part))
    return tuple(names | dict.fromkeys(PRICED if prices and "cost" in names else ()))


def unit_of(measure: str) -> str:
    """What a measure, or the first part of a ratio, is counted in; empty where nobody says."""
    return UNITS.get(measure.partition("/")[0], "")


def usage_of(
    answer: Mapping[str, Any], names: Sequence[str], where: object = "", line: int = 0, cause: str = ""
) -> dict[str, Any]:
    """The measures of one answer: a number, or the cause for which there is none.

    Args:
        answer: what is known of it, under the names of `UNITS`, their `SPELLINGS`, or names of its own.
        names: of the measures.
        where: the file, for messages.
        line: where the answer stands in it.
        cause: why it has no score; what broke off on somebody else's account has used less than an answer takes.

    Raises:
        InputError: a negative usage, or a number without end.
    """
    if cause in BROKEN:
        return dict.fromkeys(names, cause)
    cached = any(map(_is_true, map(answer.get, CACHED)))
    out: dict[str, Any] = {}
    for name in names:
        spelling, raw = _spelt(name, answer)
        if spelling is None or (cached and name in UNITS):
            out[name] = "cached" if cached else "not_logged"
            continue
        value = _number(raw)
        if value is None or not isfinite(value) or (value < 0 and name in UNITS):
            at = f"{where}, line {line}" if line else f"{where}"
            if value is None:
                raise InputError(f"{at}: {spelling} {str(raw)[:40]!r} is no number: it cannot be a measure")
            kind = "a negative" if isfinite(value) else "an infinite"
            raise InputError(f"{at}: {spelling} is {value:g}: {kind} {name} cannot be; correct it, or leave it empty")
        out[name] = value
    if any(_number(_spelt(name, answer)[1]) == 0 for name in ("input_tokens", "total_tokens")):
        # no call has no input: the answer is one that was kept
        out |= {name: "cached" for name in out if UNITS.get(name) in ("tokens", "$")}
    return out


def _spelt(name: str, answer: Mapping[str, Any]) -> tuple[str | None, Any]:
    """What an answer calls a measure, and the value; twice None where it has none."""
    for text in (name, *SPELLINGS.get(name, ())):
        value = _found(text, answer)
        if _there(value):
            return text, value
    return None, None


def _found(name: str, answer: Mapping[str, Any]) -> Any:
    """The value of a field, or at the end of a dotted path."""
    if name in answer or "." not in name:
        return answer.get(name)
    first, _, rest = name.partition(".")
    inner = answer.get(first)
    return _found(rest, inner) if isinstance(inner, Mapping) else None


def numeric_fields(answer: Mapping[str, Any]) -> list[str]:
    """The fields of an answer that can be a measure; for messages."""
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
