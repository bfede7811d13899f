"""How much of a run is asked: the names of the options, their fields, and the numbers in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness_noise.errors import InputError

OF_UNTIL = ("order",)
"""Options that any `until` allows."""
OF_DECIDED = ("against", "margin", "looks", "spending", "futility", "effect")
"""Options that only `until` decided allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingOptions:
    """Checked options for how much of a run is asked."""

    rule: Any = None
    """The rule that says when the run has enough answers, None to ask all."""
    against: str | None = None
    """The finished run that it is compared with, where the rule is that this is decided."""
    metric: str | None = None
    """The metric that decides, None for the first that can."""
    sample: str | None = None
    """Share or number of the questions to ask, drawn at random, None for all."""
    complete: tuple[str, ...] = ()
    """Finished runs of all questions, by which a subset's result is extended to the whole."""


def whole_number(value: object, what: str) -> int:
    """Convert a value to a whole number, or raise an error that calls it `what`."""
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a whole number, not {value!r}") from None


def number(value: object, what: str) -> float:
    """Convert a value to a float, or raise an error that calls it `what`."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, not {value!r}") from None
