"""Choice of the command if none is named: one run is analyzed, two are compared, for more an extra has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..errors import is_now
from . import helps, options

BY_RUNS = {1: "analyze", 2: "compare"}
HELP = ("-h", "--help")


def asked_for_help(arguments: Sequence[str], commands: Mapping[str, click.Command]) -> list[str] | str:
    """Return the arguments with `help COMMAND` as `COMMAND --help` (none: --help), or the text of `help reading`."""
    if not arguments:
        return ["--help"]
    if arguments[0] != "help" or Path("help").exists():
        return list(arguments)
    if arguments[1:2] == ["reading"]:
        return helps.reading(commands.values())
    return [*arguments[1:2], "--help"]


def command_of(arguments: Sequence[str], commands: Mapping[str, click.Command], many: str) -> list[str]:
    """Return [command] by the number of runs, where none was typed. Refuse a first word that is no place or number.

    Args:
        arguments: the words that were typed.
        commands: all commands by name.
        many: the name of the command for more than two runs.

    Raises:
        click.UsageError: they begin with what is neither a file nor a number.
    """
    first = arguments[0]
    if not (_is_number(first) or options.is_place(first)):
        raise click.UsageError(_unknown(first, commands))
    return [BY_RUNS.get(_runs_in(arguments, commands, many), many)]


def _is_number(word: str) -> bool:
    """Return True if a word is a score (0.71 or 71%) or a count (74/100)."""
    with suppress(ValueError):
        return all(float(part) is not None for part in word.removesuffix("%").split("/"))
    return False


def _unknown(word: str, commands: Mapping[str, click.Command]) -> str:
    from difflib import get_close_matches

    if now := is_now(word):
        return f"No such command {word!r}: {now}."
    near = get_close_matches(word, commands, n=1)
    meant = f"Did you mean {near[0]}?" if near else f"The commands are {', '.join(commands)}."
    return f"No such command or file {word!r}. {meant}"


def _runs_in(arguments: Sequence[str], commands: Mapping[str, click.Command], many: str) -> int:
    """Return how many runs the arguments name (a folder is one), with globs expanded and options left out.

    The options of the three commands for runs mean the same.
    """
    every: dict[str, click.Parameter] = {}
    for name in filter(commands.__contains__, (*BY_RUNS.values(), many)):
        every |= {helps.longest(param): param for param in commands[name].params if isinstance(param, click.Option)}
    loose: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
    reader = click.Command("any", params=[*every.values()], add_help_option=False, context_settings=loose)
    try:
        _, words, _ = reader.make_parser(click.Context(reader, **loose)).parse_args(list(arguments))
    except click.UsageError:  # an option without its value: the command says so
        words = list(arguments[:2])
    return len(options.expanded(word for word in words if not word.startswith("-")))
