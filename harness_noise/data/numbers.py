"""The one door from a raw value to the number of a score, for tables, lm-eval, Inspect and `Answers`.

A number or a truth value is a number. None and NaN are no score. The meaning of a text is the harness's own. A number
beyond `HUGE` is infinite, because its square is: a metric with such a score has no mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan
from typing import Any, NoReturn

import numpy as np

from ..arrays import HUGE, FloatArray
from ..errors import InputError

INFINITE = "a score is infinite, or beyond 1e100"
"""The reason why a metric has no mean."""
_EXACT = 2.0**53
"""Floats below it hold every whole number."""
_PLAIN = {float, int, bool, type(None)}
_SHOWN = 60


def number_of(value: Any, words: Callable[[str], float | None] = lambda text: None) -> float | None:
    """Return a raw score as a number: NaN if there is no score, None if the value is not a number.

    Args:
        value: as a harness, a file or a scorer has it. A scalar of numpy or torch is its number.
        words: the number of a text, None if the text is not a score.
    """
    if type(value) is float:
        return value
    if value is None:
        return nan
    if isinstance(value, str):
        return words(value)
    if getattr(value, "shape", ()) != ():
        return None
    try:
        return float(value)
    except OverflowError:
        return inf
    except (TypeError, ValueError):
        return None


def numeral(text: str) -> float | None:
    """Return the finite number that a text spells, None if the text is not a number (`1_0` is not)."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and "_" not in text else None


def finite(value: Any) -> float | None:
    """Return a reported value (such as a harness's mean) as a float, None if it is not a finite number."""
    number = None if isinstance(value, (bool, str)) else number_of(value)
    return number if number is not None and isfinite(number) else None


def is_rounded(name: Any) -> bool:
    """Return True if an id is a float too large to be exact, so that two ids may have become one."""
    return isinstance(name, float) and abs(name) >= _EXACT


def numbers_of(values: Sequence[Any]) -> FloatArray | None:
    """Return many numbers and truth values as one float array, NaN for None. None if there are other values."""
    if not {*map(type, values)} <= _PLAIN:
        return None
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        return None


def number_text(number: float) -> str:
    """Return the text that names a number, exact to 15 digits.

    Six digits make 2.02401e+07 of 20240101 and of 20240102."""
    return f"{number + 0.0:.15g}"  # −0.0 is 0


def number_texts(numbers: FloatArray) -> list[str]:
    """Return texts that name numbers, with the fewest digits (six or more) that keep all of them apart.

    A whole number stays as it is."""
    several = len({number_text(number) for number in numbers.tolist()})
    for digits in range(6, 15):
        texts = [number_text(x) if x.is_integer() else f"{x:.{digits}g}" for x in numbers.tolist()]
        if len(set(texts)) >= several:
            return texts
    return [number_text(number) for number in numbers.tolist()]


def is_infinite(values: FloatArray) -> bool:
    """Return True if a score is infinite or beyond `HUGE`."""
    return bool((np.abs(values) > HUGE).any())


def score_of(value: Any, where: object, words: Callable[[str], float | None] = lambda text: None) -> float | None:
    """Return a raw value as a score, None if there is no score. Refuse texts, lists and infinite numbers.

    Raises:
        InputError: it is something else: a text, a list, an infinite number.
    """
    number = number_of(value, words)
    if number is None or abs(number) > HUGE:
        refuse_score(value, where)
    return number if number == number else None


def refuse_score(value: Any, where: object) -> NoReturn:
    """Raise an error that a raw value is not a finite number, and say where the value stands.

    Raises:
        InputError: says where the value stands.
    """
    shown = "a number without end" if isinstance(value, int) else repr(value)
    raise InputError(f"{where}: the score {shown:.{_SHOWN}} is not a finite number")


def refuse_rounded(what: str, name: Any, where: object) -> NoReturn:
    """Raise an error that an id is a float too large to be exact (see `is_rounded`).

    Raises:
        InputError: says what it names, and where it stands.
    """
    raise InputError(
        f"{where}: the {what} {name!r} is too large for a float, which rounds it, so that two {what}s could be one. "
        "Write it as a text"
    )
