"""The names that the library's messages use, as flags: `runs_shared=True` becomes --runs-shared."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .. import Analysis, Arena, Comparison, Explanation, Factors, Plan

    R = TypeVar("R", Analysis, Comparison, Explanation, Arena, Factors, Plan)

_OTHERWISE = {
    "tasks": "--task", "metrics": "--metric", "scorers": "--scorer", "groups": "--group", "factors": "--factor",
    "runs": "--from", "categories": "--category", "as_repeats": "--as-repeats", "jobs": "--jobs", "dask": "--dask",
    "references": "--reference", "write_profile": "--write-profile", "force": "--force",
}  # fmt: skip
"""Parameters whose flag has another name, and those of reading with many processes."""
_NAMED = re.compile(r"`([a-z_0-9]+)(?:=([^`]*))?`")


def in_flags(text: str) -> str:
    """A message of the library with flags in place of the parameters that it names in backticks."""
    return _NAMED.sub(_flag, text)


def noted_in_flags(result: R) -> R:
    """A result whose notes, some of which quote errors, name flags."""
    return replace(result, notes=tuple(map(in_flags, result.notes)))


def _flag(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    if name not in _parameters():
        return found[0]
    flag = _OTHERWISE.get(name, "--" + name.replace("_", "-"))
    return flag if value in (None, "True") else f"{flag} {_plain(value)}"


def _plain(value: str) -> str:
    """A value of Python as the command line takes it: ('LOW', 'HIGH') as LOW,HIGH and {'a': 'b c'} as a="b c"."""
    from ast import literal_eval

    try:
        known = literal_eval(value)
    except (ValueError, SyntaxError):  # (LOW, HIGH), {'question': …}
        return re.sub(r"""['"(){}\s]""", "", value).replace(":", "=")
    if isinstance(known, dict):
        return ",".join(f"{name}={_quoted(str(text))}" for name, text in known.items())
    return ",".join(map(str, known)) if isinstance(known, (tuple, list)) else str(known)


def _quoted(text: str) -> str:
    """As a shell takes it."""
    if re.fullmatch(r"[\w./:%+@-]+", text):
        return text
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'


@cache
def _parameters() -> frozenset[str]:
    from inspect import Parameter, signature

    from .. import analyze, arena, compare, explain, export, plan, read
    from ..api.keywords import Choices

    functions = (read, analyze, compare, explain, arena, plan, export)
    taken = (item for function in functions for item in signature(function).parameters.values())
    names = {item.name for item in taken if item.kind is Parameter.KEYWORD_ONLY}
    return frozenset(names | set(Choices.__annotations__) | set(_OTHERWISE))
