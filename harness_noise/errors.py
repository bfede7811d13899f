"""The errors that users are meant to see."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, get_args


def parameter(name: str, value: object) -> str:
    """A parameter with its value, as errors write it; the command line makes a flag of it (`cli.flags`)."""
    return f"`{name}={value!r}`"


def some_of(names: Sequence[object], most: int, joint: str = ", ") -> str:
    """The first of several names, and how many more there are: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return joint.join(map(str, names[:most])) + more


class InputError(ValueError):
    """Input that cannot be used: one paragraph that says what, where and what to do.

    It names parameters in backticks as Python has them (`runs_shared`, ``test='wild'``). The command line prints
    it with flags in their place, without a traceback, and exits with 2.
    """

    path: str = ""
    """The file that cannot be used, where it is one of those that were to be read."""


def check_one_of(name: str, value: object, values: object) -> None:
    """Refuse a value that is none of a `Literal`'s.

    Raises:
        InputError: it names those that there are.
    """
    if value not in get_args(values):
        raise InputError(f"{name} {value!r} is not one of {', '.join(map(str, get_args(values)))}")


_KIND_NAMES = {"Real": "float", "Integral": "int", "NoneType": "None"}


def check_kind(function: str, value: object, *kinds: type) -> None:
    """Refuse a value of another type than a function accepts.

    Raises:
        InputError: it names the types that are accepted.
    """
    if not isinstance(value, kinds):
        accepted = " or ".join(dict.fromkeys(_KIND_NAMES.get(kind.__name__, kind.__name__) for kind in kinds))
        raise InputError(f"{function} accepts {accepted}, not {type(value).__name__}")


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse what is no whole number, or one below `least`; None stands for one that was not given.

    Raises:
        InputError: it names the parameter.
    """
    if value is not None and not (isinstance(value, Integral) and int(value) >= least):
        raise InputError(f"`{name}` {value!r} is not a whole number of {least} or more")


class FinalError(InputError):
    """What no other file of a folder makes good: a field that the user named is not there, or an adapter is wrong."""


class NothingSharedError(InputError):
    """Two runs measured the same thing on questions of which they share none."""


class NothingToAddError(InputError):
    """An export would write what is there already: no metric of the run has an error bar."""

    def __init__(self, place: object, why: str = "") -> None:
        super().__init__(
            f"{place}: nothing to add{why and f': {why}'}; no file is written. `analyze` lists its metrics, each with "
            "the reason why it has no error bar"
        )


class NotThereError(InputError):
    """A run has nothing of what `groups`, `tasks`, `metrics` or `scorers` name; another may have it."""

    def __init__(
        self,
        runs: list[str],
        option: str,
        unknown: list[str],
        have: list[str],
        where: str = "",
        left_out: tuple[str, ...] = (),
    ) -> None:
        self.runs, self.option, self.unknown, self.have, self.where = runs, option, unknown, have, where
        self.left_out = left_out
        """Why files cannot be used that may have it."""
        place = "this run" if len(runs) == 1 else f"any of the {len(runs)} runs"
        verb = "matches no task of" if option == "groups" else "is not in"
        text = f"{where or runs[0]}: {self.wanted} {verb} {place}; there are {', '.join(have) or 'none'}"
        super().__init__(". Left out: ".join([text, *left_out]))

    @property
    def wanted(self) -> str:
        return f"`{self.option}` {', '.join(self.unknown)}"

    @classmethod
    def of_all(cls, errors: Sequence[NotThereError], where: str = "") -> NotThereError:
        """One error for several runs; of two options, the later one, which some run came as far as."""
        last = max(errors, key=lambda error: ("groups", "measures", "tasks", "metrics", "scorers").index(error.option))
        have = dict.fromkeys(name for error in errors if error.option == last.option for name in error.have)
        names = [name for error in errors for name in error.runs]
        left_out = dict.fromkeys(why for error in errors for why in error.left_out)
        return cls(names, last.option, last.unknown, list(have), where or ", ".join(names[:3]), tuple(left_out))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.runs, self.option, self.unknown, self.have, self.where, self.left_out)


class FaultyScoresError(ValueError):
    """Scores that cannot be: an adapter's mistake, which must not become a number."""


def error_message(error: BaseException) -> str:
    """An error on one line with its type, whatever it is."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  anybody's exception, anybody's words
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
