"""The names that the library's messages use, as flags: `runs_shared=True` becomes --runs-shared."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

_COMMANDS = {"label_sample": "label", "profiles": "references"}
"""Function → the command that calls it, where that has another name."""
_NAMED = re.compile(r"`([a-z_0-9]+)(?:=([^`]*))?`")


def in_flags(text: str) -> str:
    """A message of the library with flags in place of the parameters that it names in backticks."""
    return _NAMED.sub(_flag, text)


def parameter_of(flag: str) -> str:
    """The parameter that a flag of some command stands for; "" where none does."""
    return next((name for name, other in reversed(_flags().items()) if other == flag), "")


def _flag(match: re.Match[str]) -> str:
    name, value = match[1], match[2]
    if name in _COMMANDS:
        return f"`harness-noise {_COMMANDS[name]}`"
    flag = _flags().get(name) or _flags().get(name.removeprefix("write_"))
    if flag is None:
        return match[0]
    return flag if value in (None, "True") else f"{flag} {_plain(value)}"


def _plain(value: str) -> str:
    """A value of Python as the command line takes it: ('LOW', 'HIGH') as LOW,HIGH and {'a': 'b c'} as a="b c"."""
    from ast import literal_eval

    try:
        literal = literal_eval(value)
    except (ValueError, SyntaxError):  # (LOW, HIGH), {'question': …}
        return re.sub(r"""['"(){}\s]""", "", value).replace(":", "=")
    if isinstance(literal, dict):
        return ",".join(f"{name}={_quoted(str(text))}" for name, text in literal.items())
    return ",".join(map(str, literal)) if isinstance(literal, (tuple, list)) else str(literal)


def _quoted(text: str) -> str:
    """Quote a text for a shell."""
    if re.fullmatch(r"[\w./:%+@-]+", text):
        return text
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'


@cache
def _flags() -> dict[str, str]:
    """Parameter → flag, as the options of the commands have them."""
    from click import Option

    commands = import_module(".commands", __package__).COMMANDS  # by its name: all commands import this module
    options = [param for command in commands.values() for param in command.params if isinstance(param, Option)]
    flags = [(str(option.name), max(option.opts, key=len)) for option in options]
    flags.sort(key=lambda flag: len(flag[1]) > 2)  # where one command has -n and another --n, the longer one counts
    return {flag.lstrip("-").replace("-", "_"): flag for _, flag in flags} | dict(flags)
