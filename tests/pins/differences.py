"""What differs between two records of the same case: numbers to a tolerance, everything else exactly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

TOLERANCE = 1e-12
"""Relative and absolute; 0 for files that must be the same byte for byte."""
UNROUNDED = 10
"""Significant digits from which a number in a text counts as unrounded, and is given the tolerance."""

Difference = tuple[str, Any, Any]
"""Where (a JSON path), what was recorded, what is there now."""

_NUMBER = re.compile(r"[-−+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_ABSENT = "(absent)"


def differences(old: Any, new: Any, where: str = "$", tolerance: float = TOLERANCE) -> Iterator[Difference]:
    """Every difference of two JSON values; texts are looked into, see `_texts`."""
    if isinstance(old, str) and isinstance(new, str):
        yield from _texts(old, new, where, tolerance)
    elif isinstance(old, dict) and isinstance(new, dict):
        yield from _mappings(old, new, where, tolerance)
    elif isinstance(old, list) and isinstance(new, list):
        for i in range(max(len(old), len(new))):
            at = f"{where}[{i}]"
            if i >= len(new):
                yield at, old[i], _ABSENT
            elif i >= len(old):
                yield at, _ABSENT, new[i]
            else:
                yield from differences(old[i], new[i], at, tolerance)
    elif not _same(old, new, tolerance):
        yield where, old, new


def _mappings(old: dict[str, Any], new: dict[str, Any], where: str, tolerance: float) -> Iterator[Difference]:
    for key in old:
        if key in new:
            yield from differences(old[key], new[key], f"{where}.{key}", tolerance)
        else:
            yield f"{where}.{key}", old[key], _ABSENT
    for key in new:
        if key not in old:
            yield f"{where}.{key}", _ABSENT, new[key]
    if old.keys() == new.keys() and list(old) != list(new):
        yield f"{where} (order of the keys)", list(old), list(new)


def _same(old: Any, new: Any, tolerance: float) -> bool:
    """Whether two values are one: an integer is not a float, True is not 1."""
    if type(old) is not type(new):
        return False
    if not isinstance(old, float) or old == new:
        return bool(old == new)
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    return tolerance > 0 and math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance)


def _texts(old: str, new: str, where: str, tolerance: float) -> Iterator[Difference]:
    """Two texts: as JSON where both are, else line by line."""
    if old == new:
        return
    values = _parsed(old), _parsed(new)
    if values[0] is not None and values[1] is not None:
        found = list(differences(*values, where, tolerance))
        yield from found
        if not found and (tolerance == 0 or _shape(old) != _shape(new)):
            yield f"{where} (the same values, written otherwise)", *_apart(old, new)
        return
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for i in range(max(len(before), len(after))):
        a = before[i] if i < len(before) else None
        b = after[i] if i < len(after) else None
        if a == b:
            continue
        at = f"{where}:{i + 1}"
        if a is None or b is None:
            yield at, _ABSENT if a is None else a, _ABSENT if b is None else b
        elif a[:1] in "{[" and a and _parsed(a) is not None and _parsed(b) is not None:
            yield from _texts(a, b, at, tolerance)
        elif not _same_line(a, b, tolerance):
            yield at, *_apart(a, b)


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _shape(text: str) -> str:
    return _NUMBER.sub("0", text)


def _same_line(old: str, new: str, tolerance: float) -> bool:
    """Whether the words agree and so do the numbers; rounded ones, as tables show them, digit by digit."""
    if tolerance == 0 or _shape(old) != _shape(new):
        return False
    return all(
        a == b or (min(_digits(a), _digits(b)) >= UNROUNDED and _same(_value(a), _value(b), tolerance))
        for a, b in zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    )


def _digits(number: str) -> int:
    return len(re.sub(r"[eE].*|\D", "", number).lstrip("0"))


def _value(number: str) -> float:
    return float(number.replace("−", "-"))


def _apart(old: str, new: str, around: int = 60) -> tuple[str, str]:
    """The place where two long texts part, and a little around it."""
    if max(len(old), len(new)) <= 4 * around:
        return old, new
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, at - around)
    return f"…{old[start : at + around]}…", f"…{new[start : at + around]}…"
