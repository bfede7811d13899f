"""The page of all options on standard output: `python -m harness_noise.cli.reference > docs/options.md`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import click

from . import helps
from .commands import COMMANDS

_HEAD = """# All options

Every option of every command, as `harness-noise COMMAND --help-all` says it. [Commands](commands.md) has examples and
what they print. This page is made by `python -m harness_noise.cli.reference`.
"""
_READING = """## How files are read

These options mean the same in every command that has them.
"""
_COMMON = """## Of several commands

These options are the same in every command that has them.
"""
_SEVERAL = 3
"""Commands from which on an option that is the same in all of them is told once."""


def page() -> str:
    """Return the Markdown text of `docs/options.md`, generated from all commands and their options."""
    every = {name: _options(command) for name, command in COMMANDS.items()}
    times = Counter(_row(param) for params in every.values() for param in params)
    reading, common = set[str](), set[str]()
    parts = []
    for name, command in COMMANDS.items():
        rows = {_row(param): param for param in every[name]}
        files = {row for row, param in rows.items() if helps.is_shared(param)}
        often = {row for row in rows if times[row] >= _SEVERAL} - files
        reading |= files
        common |= often
        told = {
            "How files are read": [helps.longest(param) for row, param in rows.items() if row in files],
            "Of several commands": [helps.longest(param) for row, param in rows.items() if row in often],
        }
        parts.append(_section(name, command, [row for row in rows if row not in files | often], told))
    head = [_HEAD, _READING, *_table(sorted(reading)), "", _COMMON, *_table(sorted(common)), ""]
    return "\n".join([*head, *parts])


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option) and not param.hidden]


def _section(name: str, command: click.Command, rows: list[str], told: Mapping[str, list[str]]) -> str:
    """Return the Markdown section on a command: first line, example, own options, names of shared options."""
    out = [f"## {name}", "", (command.help or "").splitlines()[0], ""]
    if isinstance(command, helps.Command):
        out += ["```", f"$ {command.example}", "```", ""]
    out += [*_table(rows), ""] if rows else []
    for title, flags in told.items():
        anchor = title.lower().replace(" ", "-")
        out += [f"[{title}](#{anchor}): {', '.join(f'`{flag}`' for flag in flags)}.", ""] if flags else []
    return "\n".join(out)


def _table(rows: list[str]) -> list[str]:
    return ["| option | what it does | default |", "|---|---|---|", *rows]


def _row(param: click.Option) -> str:
    """Return an option's row in the Markdown table: its flags, its help text, and its default."""
    context = click.Context(click.Command("harness-noise"))
    record = param.get_help_record(context)
    flags, words = record if record is not None else ("", "")
    default = re.search(r"\s*\[default: (.*)\]$", words)
    words = words[: default.start()] if default else words
    return f"| `{_escaped(flags)}` | {_escaped(words)} | {f'`{default[1]}`' if default else ''} |"


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    print(page(), end="")
