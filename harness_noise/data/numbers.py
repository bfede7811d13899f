"""The one door from a raw value to the number of a score, for tables, lm-eval, Inspect and `Answers`.

A number or a truth value is a number. None and NaN are no score. The meaning of a text is the harness's own. A number
beyond `HUGE` is infinite, because its fourth power is: a metric with such a score has no mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, log10, nan
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..arrays import HUGE, AnyArray, FloatArray
from ..errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TOO_LARGE = "beyond 1e70, and counts as infinite: its fourth power is"
"""The reason why a finite number is no score."""
INFINITE = "a score is infinite, or beyond 1e70"
"""The reason why a metric has no mean."""
_EXACT = 2.0**53
"""Floats below it hold every whole number."""
_PLAIN = {float, int, bool, type(None)}
_SHOWN = 60
_NO_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "spans of time"}
"""numpy's kind of an array that it makes floats of all the same → what it holds."""


def number_of(value: Any, words: Callable[[str], float | None] = lambda text: None) -> float | None:
    """Convert a raw score to a float, a text only by `words`. None becomes NaN (no score), what is no number None.

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
    """Return the finite number that a text spells, None if it is not one. `1_0` is not a number here."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and "_" not in text else None


def finite(value: Any) -> float | None:
    """Return a harness's reported value as a float, None if it is a text, a bool or not finite."""
    number = None if isinstance(value, (bool, str)) else number_of(value)
    return number if number is not None and isfinite(number) else None


def is_rounded(name: Any) -> bool:
    """Return True if an id is a float too large to be exact, so that two ids may have become one."""
    return isinstance(name, float) and abs(name) >= _EXACT


def numbers_of(values: Sequence[Any]) -> FloatArray | None:
    """Convert numbers and truth values to a float array, NaN for None. None if there is any other value."""
    if not {*map(type, values)} <= _PLAIN:
        return None
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:
        return None


def number_array(values: ArrayLike, what: str = "scores") -> FloatArray:
    """Return an array of floats, NaN for what is None or hidden by a masked array. Refuse other things than numbers.

    Args:
        values: as a caller of a public function has them.
        what: the plural of what they are.

    Raises:
        InputError: texts, dates, complex numbers, or rows of several lengths.
    """
    try:
        array: AnyArray = _with_masks(values) if _has_masks(values) else np.asarray(values)
        if array.dtype.kind in _NO_NUMBERS:
            raise TypeError(f"they are {_NO_NUMBERS[array.dtype.kind]}")
        if isinstance(array, np.ma.MaskedArray):
            return np.asarray(np.ma.asarray(array, np.float64).filled(nan), dtype=np.float64)
        if array.dtype.kind == "O":
            import pandas as pd

            # older pandas hands out its NA, which numpy cannot make a float of
            array = np.where(pd.isna(array), nan, array)
        return np.asarray(values if array.dtype.kind in "SU" else array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"the {what} are no array of numbers ({error}). Give rows of one length, NaN where a number is missing "
            "or a row has fewer"
        ) from None


def _has_masks(values: Any) -> bool:
    """Return True for a masked array, and for a list or tuple that has one within."""
    if isinstance(values, (list, tuple)):
        nested = {*map(type, values)} - _PLAIN
        return bool(nested) and any(map(_has_masks, values))
    return isinstance(values, np.ma.MaskedArray)


def _with_masks(values: Any) -> Any:
    """Return nested lists of masked arrays as one masked array, where numpy leaves their masks out."""
    return np.ma.stack([*map(_with_masks, values)]) if isinstance(values, (list, tuple)) else np.ma.asarray(values)


def number_text(number: float) -> str:
    """Return a number as text with up to 15 significant digits, so that 20240101.0 is "20240101".

    Six digits make 2.02401e+07 of 20240101 and of 20240102."""
    return f"{number + 0.0:.15g}"  # −0.0 is 0


def is_infinite(values: FloatArray) -> bool:
    """Return True if any value is infinite, or so large (beyond `HUGE`) that sums could overflow."""
    return bool((np.abs(values) > HUGE).any())


def score_of(value: Any, where: object, words: Callable[[str], float | None] = lambda text: None) -> float | None:
    """Convert a raw value to a score, None if there is none. Refuse texts that `words` lacks, lists, infinite numbers.

    Raises:
        InputError: it is something else: a text, a list, an infinite number.
    """
    number = number_of(value, words)
    if number is None or abs(number) > HUGE:
        refuse_score(value, where)
    return number if number == number else None


def refuse_score(value: Any, where: object) -> NoReturn:
    """Raise the error that a raw value at this place is not a finite number, or too large a one.

    Raises:
        InputError: says where the value stands.
    """
    shown = f"about 1e{log10(abs(value)):.0f}" if isinstance(value, int) and value else repr(value)
    raise InputError(
        f"{where}: the score {shown:.{_SHOWN}} is {TOO_LARGE if too_large(value) else 'not a finite number'}"
    )


def too_large(value: Any, words: Callable[[str], float | None] = lambda text: None) -> bool:
    """Return True for a finite number beyond `HUGE`, which counts as infinite."""
    number = number_of(value, words)
    return number is not None and abs(number) > HUGE and (isfinite(number) or isinstance(value, int))


def refuse_rounded(what: str, name: Any, where: object) -> NoReturn:
    """Raise the error that an id is a float too large to be exact, so that two ids could be one.

    Raises:
        InputError: says what it names, and where it stands.
    """
    raise InputError(
        f"{where}: the {what} {name!r} is too large for a float, which rounds it, so that two {what}s could be one. "
        "Write it as a text"
    )
