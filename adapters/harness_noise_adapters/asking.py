"""How much of a run is asked: the names of the options, their fields, and the numbers in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness_noise.errors import InputError

SWITCHING = ("until", "against", "margin", "looks", "sample", "repeats", "complete")
"""Options for how much is asked. In Inspect's metadata each of them switches the flag on."""
REFINING = ("metric", "seed", "order", "spending", "futility", "effect")
"""Options that refine those of `SWITCHING`."""
ASKED: dict[str, tuple[str, str]] = {
    "until": ("RULE", "stop when it is decided (decided, with --noise_against) or precise enough (se=0.01)"),
    "against": ("RUN", "the finished run that this one is compared with"),
    "margin": ("M", "also stop if both are equivalent within ±M"),
    "looks": ("L", "number of looks (default 20), or anytime"),
    "spending": ("NAME", "how fast looks spend the error: hsd (default), obrien-fleming or pocock"),
    "futility": ("on|off", "stop if the rest cannot decide it (default on)"),
    "effect": ("D", "a difference that futility must not miss"),
    "order": ("ORDER", "breadth (default): all questions once before any twice. Or depth: all answers at once"),
    "metric": ("METRIC", "METRIC or METRIC,FILTER that decides"),
    "sample": ("SIZE", "ask only a random subset of the questions: a share (0.2, 20%%) or a number"),
    "complete": ("RUN", "a finished run of all questions, which helps to estimate the whole from a part (repeatable)"),
    "seed": ("SEED", "seed of the random order of questions (default 0)"),
}
"""Option → its value in words, and its help on lm-eval's command line."""
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
    """Convert a value (also a text) to a whole number. Refuse booleans, fractions and all else, naming `what`."""
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a whole number, not {value!r}") from None


def number(value: object, what: str) -> float:
    """Convert a value (also a text or boolean) to a float, NaN too. Refuse what is no number, naming `what`."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, not {value!r}") from None
