"""The terminal: rich tables, safe for names that come from a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import IO, TYPE_CHECKING

from .summary import summarise

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

    from .columns import Section
    from .summary import Result


def render(table: Result) -> RenderableType:
    """A renderable with every section, the notes and the sentence."""
    from rich.console import Group
    from rich.text import Text

    summary = summarise(table)
    parts: list[RenderableType] = []
    for section in summary.sections:
        parts += [Text(section.title, style="bold")] if section.title else []
        parts += [_Fitted(section), Text("")]
    for mark, code, meaning in summary.legend:
        parts.append(Text.assemble((f"{mark}  ", "bold"), (code, "bold"), f"  {meaning}"))
    if summary.legend:
        parts.append(Text(""))
    parts += [Text(line) for line in summary.sentences]
    return Group(*parts)


class _Fitted:
    """A section as a table, or as several with the same first columns where one is too wide.

    rich would cut numbers to make a table fit: 0.625 would be shown as 0.62.
    """

    def __init__(self, section: Section) -> None:
        self.section = section

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for columns, widths in _blocks(self.section, options.max_width):
            yield _table(self.section, columns, widths)


def _blocks(section: Section, width: int) -> list[tuple[list[int], list[int]]]:
    """The columns of each table and their widths; those that name the rows are in all of them.

    Text may fold between words, a number never; one column that is too wide alone stays whole.
    """
    full = [_widest(section, i, str.splitlines) for i in range(len(section.columns))]
    cap = max(8, width // 4)
    least = [
        min(_widest(section, i, str.split), cap) if column.text else full[i] for i, column in enumerate(section.columns)
    ]
    lead = list(takewhile(lambda i: section.columns[i].text, range(len(full) - 1)))
    again = [i for i in lead if len({row[i] for row in section.rows}) > 1] or lead[:1]
    blocks: list[list[int]] = [list(lead)]
    for i in range(len(lead), len(full)):
        columns = [*blocks[-1], i]
        if blocks[-1] not in (lead, again) and _room(columns, least, width) < 0:
            blocks.append([*again, i])
        else:
            blocks[-1] = columns
    out = []
    for columns in blocks:
        widths = {i: least[i] for i in columns}
        for i in columns:
            widths[i] += max(0, min(full[i] - least[i], _room(columns, widths, width)))
        out.append((columns, [widths[i] for i in columns]))
    return out


def _room(columns: Sequence[int], widths: Sequence[int] | Mapping[int, int], width: int) -> int:
    """What a table of these columns leaves of `width`: three spaces between two columns, one at each end."""
    return width - sum(widths[i] + 3 for i in columns) + 1


def _widest(section: Section, i: int, split: Callable[[str], list[str]]) -> int:
    """The widest part of a column's label and cells."""
    from rich.cells import cell_len

    texts = [section.columns[i].label, *(row[i] for row in section.rows)]
    return max((cell_len(part) for text in texts for part in split(text)), default=0)


def _table(section: Section, columns: Sequence[int], widths: Sequence[int]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for i, width in zip(columns, widths, strict=True):
        column = section.columns[i]
        table.add_column(
            column.label,
            justify="left" if column.text else "right",
            no_wrap=not column.text,
            overflow="fold",
            width=max(1, width),
        )
    for row in section.rows:
        table.add_row(*(Text(row[i]) for i in columns))
    return table


def console(stream: IO[str] | None = None) -> Console:
    """A console that wraps at the terminal's width: in a file, COLUMNS or 140."""
    from rich.console import Console

    stream = stream or sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else 140
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)


def print_to(stream: IO[str] | None, table: Result) -> None:
    """Print a result on `stream` (standard output by default)."""
    console(stream).print(render(table))
