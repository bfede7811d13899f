"""The errors that users are meant to see."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar, get_args


@dataclass(frozen=True, slots=True)
class Parameter:
    """The name of a function's parameter in a message, which Python shows in backticks."""

    name: str
    value: str | None = None
    """The value as Python writes it, None if the parameter itself is meant, whatever its value."""

    def __str__(self) -> str:
        return f"`{self.name}`" if self.value is None else f"`{self.name}={self.value}`"


def parameter(name: str, value: object) -> str:
    """Return a Python parameter and its value as messages show it: `name=value` in backticks."""
    return str(Parameter(name, repr(value).replace("`", "\\x60")))  # a backtick ends the parameter


_NAMED = re.compile(r"`([a-z_0-9]+)(?:=([^`]*))?`")


def parts_of(message: str) -> list[str | Parameter]:
    """Split a message into plain texts and the Python parameters that stand in backticks."""
    out: list[str | Parameter] = []
    end = 0
    for match in _NAMED.finditer(message):
        out += [message[end : match.start()], Parameter(match[1], match[2])]
        end = match.end()
    return [*out, message[end:]]


def counted(n: int, what: str, plural: str = "") -> str:
    """Return a number with its noun in words: "1 pair", "1,200 pairs", "2 families", "1 answer has"."""
    return f"{n:,} {what if n == 1 else plural or f'{what}s'}"


def are(n: int) -> str:
    """Return "is" for the number 1, "are" for any other."""
    return "is" if n == 1 else "are"


def some_of(names: Sequence[object], most: int, joint: str = ", ") -> str:
    """Return the first names joined, with the number of others: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return joint.join(map(str, names[:most])) + more


_SECRETS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/@?#]*@)?([^\s?#]*)(?:[?#][^\s'\"<>)\],;]*)?")


def without_secrets(text: str) -> str:
    """Return a text with passwords and query strings removed from the URLs in it."""
    return _SECRETS.sub(r"\1\2", text) if "://" in text else text


FORMER = {
    "explain": "regress",
    "references": "list",
    "adapters": "list",
    "--explain": "--legend",
    "--baseline": "--against",
    "--baseline-model": "--against",
    "--reference": "--profile NAME|FILE (whose noise), or --complete RUN (a run that has answered everything)",
    "baseline=": "against=",
    "baseline_model=": "against=",
    "reference=": "profile= (whose noise), or complete= (a run that has answered everything)",
    "explain=": "legend=, of render",
    "references=": "profile= (whose noise), or complete= (runs that have answered everything)",
    "noise_reference": "noise_complete",
    "--wide": "--details",
    "--by-run": "--totals",
    "--alpha": "--level (0.95 for 0.05)",
    "alpha=": "level= (0.95 for 0.05)",
    "--dask": "--jobs ADDRESS",
    "--category": "--on 'C(SPEC)'",
    "categories=": 'on=["C(SPEC)"]',
    "dask=": "jobs=",
    "--plot": "--format svg -o FILE",
    **{f"--cost-{name}": "--costs question=C,answer=C[,judge=C]" for name in ("question", "answer", "judge")},
    **{f"cost_{name}=": 'costs={"question": C, "answer": C}' for name in ("question", "answer", "judge")},
    "--color": "the environment variable NO_COLOR or FORCE_COLOR",
    "--tables-format": "CSV alone (Python writes JSON and Parquet)",
    "--more": "`hn.factors(more=…)`, in Python alone",
    "--floor-questions": "--n",
    "floor_questions=": "n=",
    "--out": "-o",
}
"""Former spelling of a command, an option, a keyword or a live setting → what it is now. None of them works."""


def is_now(spelling: str) -> str:
    """Return "OLD is now NEW" if a word is a former name of something, "" for any other word."""
    return f"{spelling} is now {FORMER[spelling]}" if spelling in FORMER else ""


class InputError(ValueError):
    """The error for input that cannot be used: one paragraph that says what, where and what to do.

    It names parameters in backticks as Python has them (`runs_shared`, ``test='wild'``). The command line prints
    it with flags in their place, without a traceback, and exits with 2.
    """

    def __str__(self) -> str:
        return without_secrets(super().__str__())

    path: str = ""
    """The file that cannot be used, where it is one of those that were to be read."""


def check_one_of(name: str, value: object, values: object) -> None:
    """Raise an error if a value is not among the values of a `Literal` type.

    Raises:
        InputError: it names those that there are.
    """
    if value not in get_args(values):
        raise InputError(f"{name} {value!r} is not one of {', '.join(map(str, get_args(values)))}")


T = TypeVar("T")


def of_choice(what: str, value: object, table: Mapping[str, T]) -> T:
    """Return the entry of a table for a value, or raise NotImplementedError if it has none.

    Raises:
        NotImplementedError: the choice is not implemented. It is never computed as another one.
    """
    if value not in table:
        raise NotImplementedError(f"{what} {value!r} is not computed here, which knows {', '.join(table)}")
    return table[str(value)]


def check_computed(what: str, value: object, *known: str) -> None:
    """Raise NotImplementedError if a value is not among those that the calling code implements.

    Raises:
        NotImplementedError: as `of_choice`.
    """
    of_choice(what, value, dict.fromkeys(known))


_KIND_NAMES = {"Real": "float", "Integral": "int", "NoneType": "None"}


def check_kind(function: str, value: object, *kinds: type) -> None:
    """Raise an error if a value is not of one of the types that the named function accepts.

    Raises:
        InputError: it names the types that are accepted.
    """
    if not isinstance(value, kinds):
        accepted = " or ".join(dict.fromkeys(_KIND_NAMES.get(kind.__name__, kind.__name__) for kind in kinds))
        raise InputError(f"{function} accepts {accepted}, not {type(value).__name__}")


def check_count(name: str, value: object, least: int = 1) -> None:
    """Raise an error if a value is neither None nor a whole number of at least `least`.

    Raises:
        InputError: it names the parameter.
    """
    if value is not None and not (isinstance(value, Integral) and int(value) >= least):
        raise InputError(f"`{name}` {value!r} is not a whole number of {least} or more")


class FinalError(InputError):
    """The error for input that no other file of a folder can repair.

    A field that the user named is missing, or an adapter is wrong."""


class NothingSharedError(InputError):
    """The error for two runs that share no question, or no task and metric."""


class NothingToAddError(InputError):
    """The error for an export that would change nothing: no metric of the run has an error bar."""

    def __init__(self, place: object, why: str = "") -> None:
        super().__init__(
            f"{place}: nothing to add{why and f': {why}'}. No file is written. `analyze` lists its metrics, each with "
            "the reason why it has no error bar"
        )


class NotThereError(InputError):
    """The error for a run without the `groups`, `tasks`, `metrics` or `scorers` asked for.

    Another run may have it.
    """

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
        """The reasons why files that may have it cannot be used."""
        place = "this run" if len(runs) == 1 else f"any of the {len(runs)} runs"
        verb = "matches no task of" if option == "groups" else "is not in"
        listed = f"There are {', '.join(have) or 'none'}" if len(have) != 1 else f"There is only {have[0]}"
        text = f"{where or runs[0]}: {self.wanted} {verb} {place}. {listed}"
        super().__init__(". Left out: ".join([text, *left_out]))

    @property
    def wanted(self) -> str:
        return f"`{self.option}` {', '.join(self.unknown)}"

    @classmethod
    def of_all(cls, errors: Sequence[NotThereError], where: str = "") -> NotThereError:
        """Merge the errors of several runs into one, on the option looked at last with all that runs have of it."""
        last = max(errors, key=lambda error: ("groups", "measures", "tasks", "metrics", "scorers").index(error.option))
        have = dict.fromkeys(name for error in errors if error.option == last.option for name in error.have)
        names = [name for error in errors for name in error.runs]
        left_out = dict.fromkeys(why for error in errors for why in error.left_out)
        return cls(names, last.option, last.unknown, list(have), where or ", ".join(names[:3]), tuple(left_out))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.runs, self.option, self.unknown, self.have, self.where, self.left_out)


class FaultyScoresError(ValueError):
    """The error for impossible scores from an adapter, which must not become a number."""


def error_message(error: BaseException) -> str:
    """Return any exception as one line: its type and its message."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  anybody's exception, anybody's words
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
