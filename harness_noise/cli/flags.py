"""The parameters that the library's messages name, as flags: `runs_shared=True` becomes --runs-shared."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .. import extras
from ..errors import Parameter, parts_of

if TYPE_CHECKING:
    import click

_COMMANDS = {"profiles": "list", "adapters": "list"} | extras.called()
"""Function → the command that calls it, where that has another name."""
_SAFE = re.compile(r"[\w./:%+@=,^…-]+")
"""A text that a shell takes as it is. Others are quoted, because a file may have given them."""
_FLAGS: dict[str, str] = {}
"""Parameter → flag, as the options of the commands have them. `commands` fills it."""


_FUNCTIONS: set[str] = set()
"""Names of commands of the core, which are functions of the library and no options."""
_MORE: list[Mapping[str, click.Command]] = []
"""All commands, whose other options are looked at when a message names what is no option of the core."""


def know(commands: Sequence[click.Command], more: Mapping[str, click.Command]) -> None:
    """Remember the flags of these commands, so that messages can name flags instead of Python parameters.

    If one has -n and another --n, the longer one counts.

    Args:
        commands: of the core.
        more: all commands by name, which are loaded only if they are needed.
    """
    _FLAGS.update(_flags_of(commands))
    _FUNCTIONS.update(str(command.name) for command in commands)
    _MORE.append(more)


def _flags_of(commands: Iterable[click.Command]) -> dict[str, str]:
    from click import Option

    options = [param for command in commands for param in command.params if isinstance(param, Option)]
    flags = [(str(option.name), max(option.opts, key=len)) for option in options]
    flags.sort(key=lambda flag: len(flag[1]) > 2)
    return {flag.lstrip("-").replace("-", "_"): flag for _, flag in flags} | dict(flags)


def _load_more() -> None:
    while _MORE:
        _FLAGS.update(_flags_of(_MORE.pop().values()) | _FLAGS)


def _flag(name: str) -> str | None:
    """Return the command-line flag of a Python parameter, None if no command has one."""
    if name not in _FLAGS and name not in _FUNCTIONS:
        _load_more()
    return _FLAGS.get(name) or _FLAGS.get(name.removeprefix("write_"))


def in_flags(message: str) -> str:
    """Return a message of the library with each Python parameter in it replaced by its command-line flag.

    Modules that hold no command import this from `commands`, which knows the flags of all.
    """
    assert _FLAGS, "import `in_flags` from harness_noise.cli.commands"
    return "".join(part if isinstance(part, str) else _shown(part) for part in parts_of(message))


def parameter_of(flag: str) -> str:
    """Return the Python parameter that a command-line flag sets, an empty text if there is none."""
    _load_more()
    return next((name for name, other in reversed(_FLAGS.items()) if other == flag), "")


def _shown(named: Parameter) -> str:
    if named.name in _COMMANDS:
        return f"`harness-noise {_COMMANDS[named.name]}`"
    flag = _flag(named.name)
    if flag is None:
        return str(named)
    if named.value in (None, "True"):
        return flag
    return " ".join(f"{flag} {_as_command_line(value)}" for value in _list_items(named.value))


def _list_items(value: str) -> list[str]:
    """Return the `repr` of each item of a text that is a Python list, else the text as the only item."""
    from ast import literal_eval

    try:
        literal = literal_eval(value)
    except (ValueError, SyntaxError):
        return [value]
    return [repr(item) for item in literal] if isinstance(literal, list) else [value]


def _as_command_line(value: str) -> str:
    """Convert a Python value's text to a shell word: ('LOW', HIGH) to LOW,HIGH and {'a': 'b c'} to a="b c"."""
    from ast import literal_eval

    try:
        literal = literal_eval(value)
    except (ValueError, SyntaxError):  # (LOW, HIGH), {'question': …}
        return re.sub(r"""['"(){}\s]""", "", value).replace(":", "=")
    if isinstance(literal, dict):
        return ",".join(f"{_quoted(str(name))}={_quoted(str(text))}" for name, text in literal.items())
    text = ",".join(map(str, literal)) if isinstance(literal, (tuple, list)) else str(literal)
    if _SAFE.fullmatch(text):
        return text
    return shlex.quote(text) if "'" not in text or "!" in text else _quoted(text)  # the plainer of two ways


def _quoted(text: str) -> str:
    """Return a text in double quotes for a shell if it has special characters, else unchanged."""
    if _SAFE.fullmatch(text) and "," not in text and "=" not in text:
        return text
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'
