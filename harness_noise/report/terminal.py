"""The terminal: rich tables, safe for names that come from a log."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING

from .summary import Summary, summarise

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from .summary import Result


def render(table: Result) -> RenderableType:
    """A renderable with every section, the notes and the sentence."""
    from rich.console import Group
    from rich.text import Text

    summary = summarise(table)
    parts: list[RenderableType] = []
    for section, drawn in zip(summary.sections, _tables(summary), strict=True):
        parts += [Text(section.title, style="bold")] if section.title else []
        parts += [drawn, Text("")]
    for mark, code, meaning in summary.legend:
        parts.append(Text.assemble((f"{mark}  ", "bold"), (code, "bold"), f"  {meaning}"))
    if summary.legend:
        parts.append(Text(""))
    parts += [Text(line) for line in summary.sentences]
    return Group(*parts)


def _tables(summary: Summary) -> list[Table]:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    tables = []
    for section in summary.sections:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        for column in section.columns:
            table.add_column(
                column.label,
                justify="left" if column.text else "right",
                no_wrap=not column.text,
                overflow="fold",
            )
        for row in section.rows:
            table.add_row(*(Text(cell) for cell in row))
        tables.append(table)
    return tables


def console(stream: IO[str] | None = None) -> Console:
    """A console that wraps at the terminal's width and never cuts a number: 140 columns in a file."""
    from rich.console import Console

    stream = stream or sys.stdout
    width = None if stream.isatty() else 140
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def print_to(stream: IO[str] | None, table: Result) -> None:
    """Print a result on `stream` (standard output by default)."""
    console(stream).print(render(table))
