"""Options for how much of a run is asked, as users of either harness write them. Errors name the options as written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness_noise.errors import InputError

from ...asking import OF_DECIDED, OF_UNTIL

if TYPE_CHECKING:
    from harness_noise.extra.stopping.rules import StoppingRule

USERS = {"metric": ("until", "repeats"), "seed": ("until", "sample")}
"""Option → the options of which one must be there for it to do anything."""
_MEANT = {
    "until": "write decided, or se=0.01",
    "against": "name one finished run",
    "metric": "name the metric or scorer that decides",
    "complete": "name finished runs of all questions",
}
Named = Callable[..., str]
"""An option, and perhaps its value, as its user writes it."""


def checked(
    options: Mapping[str, Any], named: Named, *, level: float, seed: int, idle: Sequence[str] = ("metric",)
) -> dict[str, Any]:
    """Return checked stopping options as keyword arguments for `StoppingOptions`. Refuse what has no effect.

    Args:
        options: option → value; None for what is not given.
        named: how the user writes an option.
        level: 1 − the error of the whole procedure.
        seed: of the random order.
        idle: the options that are refused where nothing uses them.

    Raises:
        InputError: a value that is not understood, or an option that does nothing without another, or beside it.
    """
    for option in idle:
        if options.get(option) is not None and all(options.get(user) is None for user in USERS[option]):
            raise InputError(does_nothing(option, named))
    sample = options.get("sample")
    if sample is not None:
        from harness_noise.extra.drawing import number_wanted

        number_wanted(sample, 2)
    paths: Any = options.get("complete")
    several = isinstance(paths, Sequence) and not isinstance(paths, str)
    complete = [text_of(path, "complete", named) for path in (paths if several else [paths])]
    return {
        "rule": _rule(options, named, level, seed),
        "against": text_of(options.get("against"), "against", named),
        "metric": text_of(options.get("metric"), "metric", named),
        "sample": None if sample is None else str(sample),
        "complete": tuple(path for path in complete if path is not None),
    }


def does_nothing(option: str, named: Named) -> str:
    """Return the error text for an option that has no effect without one of two others."""
    first, second = map(named, USERS[option])
    return f"{named(option)} does nothing without {first} or {second}: add one of them, or leave it out"


def _rule(options: Mapping[str, Any], named: Named, level: float, seed: int) -> StoppingRule | None:
    until = text_of(options.get("until"), "until", named)
    chosen = {name: options[name] for name in (*OF_DECIDED, *OF_UNTIL) if options.get(name) is not None}
    if until is None:
        if chosen:
            need = named("until", "decided")
            raise InputError(f"{named(next(iter(chosen)))} does nothing without {need}: add it, or leave it out")
        return None
    from harness_noise.extra.stopping.rules import StoppingRule

    against = chosen.pop("against", None)
    for name in ("margin", "effect"):
        if name in chosen:
            chosen[name] = _difference(chosen[name], named(name))
    rule = StoppingRule.parse(until, level=level, seed=seed, **chosen)
    if rule.se is None and against is None:
        raise InputError(
            f"{named('until', 'decided')} needs the run to compare with: name it with {named('against', 'RUN')}"
        )
    if rule.se is not None and (idle := [name for name in OF_DECIDED if options.get(name) is not None]):
        raise InputError(
            f"{named(idle[0])} is for {named('until', 'decided')}; {named('until', until)} looks after every block"
        )
    return rule


def text_of(value: object, option: str, named: Named) -> str | None:
    """Return an option's text or path as trimmed text, None if not given. Raise an error if empty or anything else."""
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not str(value).strip():
        raise InputError(f"{named(option)} must be one text that is not empty, not {value!r}: {_MEANT[option]}")
    return str(value).strip()


def _difference(value: object, what: str) -> float:
    """Convert a difference such as `0.015`, `1.5%` or `1.5pt` to a number. Raise an error otherwise."""
    from harness_noise.settings import difference

    try:
        return difference(str(value))
    except ValueError:
        raise InputError(f"{what} must be a difference, such as 0.015, 1.5% or 1.5pt, not {value!r}") from None
