"""Display on a terminal: verdicts, tables that fit its width, and notes. Names from a log cannot control the terminal.

One row is a block of terms. Of more rows, what all share stands above the table, and where that is still too wide, the
columns that name the rows become one and those that matter least are left out. A number is never cut: rich would make
0.62 of 0.625; nor is an interval broken.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from typing import IO, TYPE_CHECKING, Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..errors import some_of
from .columns import Section, Summary, Words
from .fmt import MISSING
from .summary import summarise

if TYPE_CHECKING:
    from .summary import Result


STYLES = {"good": "green", "bad": "red", "unsure": "yellow", "sure": "bold"}
"""Tone of a cell → how a terminal with colours shows it."""
Colour = Literal["auto", "always", "never"]


def render(
    table: Result, *, details: bool = False, legend: bool | None = None, wide: bool = False, words: Words = str
) -> RenderableType:
    """Return a result as an object that rich prints: verdicts, tables that fit the width, notes.

    Parameters
    ----------
    table
        The result.
    details
        All tables with all columns and rows, also where that takes several tables.
    legend
        Explain each column. None: say in a line how to get that, and what else is not shown.
    wide
        Show questions and answers whole.
    words
        Rewrites each sentence.
    """
    return _Report(summarise(table, brief=not details, wide=wide).worded(words), details, legend, words)


@dataclass(frozen=True)
class _Report:
    """A summary, laid out for the width that it is printed at."""

    summary: Summary
    details: bool
    legend: bool | None
    words: Words = str
    live: bool = False
    """A run that has just ended: its diagnostics are explained, as there is no second look at it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        width, summary = options.max_width, self.summary
        for line, tone in zip_longest(summary.lead, summary.tones[: len(summary.lead)], fillvalue=""):
            yield Text(_prose(line, width), style=f"bold {STYLES.get(tone, '')}")
        yield from [Text("")] if summary.lead else []
        hidden: list[str] = []
        left_out: dict[str, None] = {}
        hints: dict[str, str] = {}
        for section in _with_details_beside(summary.sections):
            if section.detail and not self.details:
                hidden.append(f"the table “{section.title}”")
                continue
            blocks, left = fit(section, width, details=self.details)
            left_out |= dict.fromkeys(left)
            for block in blocks:
                yield from _heading_and_table(block, width)
                for column in block.columns if section.rows else ():
                    hints[column.heading] = hints.get(column.heading) or column.hint
            yield from [Text(section.more), Text("")] if section.more else []
        for title, lines in summary.listings:
            yield from (Text(title, style="bold"), _hanging(list(lines), width), Text(""))
        explained = self.details or self.legend or self.live
        if summary.legend and explained:
            yield _hanging([(f"{one.mark}  {one.code}", one.text) for one in summary.legend], width)
            yield Text("")
        yield from (Text(_prose(line, width)) for line in summary.sentences)
        hints = {heading: hint for heading, hint in hints.items() if heading and hint}
        if self.legend and hints:
            yield from [Text("")] if summary.sentences else []
            yield _hanging(list(hints.items()), width)
        if left_out:
            hidden.insert(0, f"the {'column' if len(left_out) == 1 else 'columns'} {some_of(list(left_out), 4)}")
        for line in summary.foot:
            yield Text(_prose(line, width))
        named = [] if explained else [f"{one.mark} {one.code}" for one in summary.legend]
        where = "In the tables" if summary.codes else "Diagnostics"
        codes = f"{where}: {', '.join(named)}." if named else ""
        last = [summary.codes, codes, "" if self.legend is False else summary.more]
        if any(last):
            yield Text(_prose(" ".join(filter(None, last)), width), style="dim")
        more = ["What the columns mean: `legend=True`."] if hints and not (self.legend or summary.more) else []
        more += [f"Not shown here (`details=True` shows all): {some_of(hidden, 4, '; ')}."] if hidden else []
        if more and self.legend is not False:
            yield Text(self.words(" ".join(more)), style="dim")


def _prose(text: str, width: int) -> str:
    """Wrap text, its line breaks dropped, to the width without breaking an interval, percentage or p-value."""
    lines = [""]
    for word in re.findall(r"(?:\[[^\[\]]*\]|(?<=\bp) (?=[<=] )|(?<=\bp [<=]) |\S)+", text):
        longer = f"{lines[-1]} {word}".lstrip()
        if cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _with_details_beside(sections: Sequence[Section]) -> list[Section]:
    """Merge each one-row table of details into the one-row table before it, as further columns."""
    out: list[Section] = []
    for section in sections:
        if out and section.detail and len(section.rows) == len(out[-1].rows) == 1 and not section.more:
            headings = {column.heading for column in out[-1].columns}
            more = section.keeping([i for i, column in enumerate(section.columns) if column.heading not in headings])
            out[-1] = out[-1].beside(more)
        else:
            out.append(section)
    return out


def _hanging(lines: list[tuple[str, str]], width: int) -> RenderableType:
    """Return a two-column grid of (term, explanation) lines, explanations wrapped beside their terms."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, width=min(max(cell_len(term) for term, _ in lines), max(8, width // 2)))
    grid.add_column()
    for term, words in lines:
        grid.add_row(Text(term, style="bold"), Text(words))
    return grid


def _heading_and_table(section: Section, width: int) -> Iterator[RenderableType]:
    """Yield a table's heading and the table. A single row of over two columns becomes a list of heading and value."""
    yield from [Text(_prose(section.heading, width), style="bold")] if section.heading else []
    if section.columns and (section.rows or not section.more):
        as_terms = section.stacked or (len(section.rows) == 1 and len(section.columns) > 2)
        yield _terms(section, width) if as_terms else _table(section)
        yield Text("")


def _terms(section: Section, width: int) -> RenderableType:
    """Return a one-row table as (heading, value) pairs in as many columns as fit the width."""
    filled = [i for i, cell in enumerate(section.rows[0]) if cell not in ("", MISSING)]
    kept = sorted(filled, key=lambda i: not section.columns[i].heading)
    pairs = [(Text(section.columns[i].heading or "codes"), _cell(section, 0, i)) for i in kept]
    for parts in range(MOST_PARTS, 0, -1):
        height = -(-len(pairs) // parts)
        stacks = [pairs[i : i + height] for i in range(0, len(pairs), height)]
        widths = [max(cell_len(pair[side].plain) for pair in stack) for stack in stacks for side in (0, 1)]
        if sum(min(size, _FOLDED) for size in widths) + 3 * (len(widths) - 1) <= width:
            break
    if section.stacked:
        stacks, widths = [pairs], []
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _ in stacks:
        grid.add_column(no_wrap=True)
        grid.add_column(justify="left" if section.stacked else "right", overflow="fold")
    for line in zip_longest(*stacks, fillvalue=(Text(), Text())):
        grid.add_row(*(cell for pair in line for cell in pair))
    return grid if section.stacked else Group(Text("─" * min(width, sum(widths) + 3 * (len(widths) - 1))), grid)


def _cell(section: Section, row: int, i: int) -> Text:
    tone = section.tones.get((row, section.columns[i].heading), "")
    return Text(section.rows[row][i], style=STYLES.get(tone, ""))


def _table(section: Section) -> Table:
    """Return a table for rich. Long texts are folded to fit, numbers and verdicts never."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(section.columns, _widths(section), strict=True):
        justify: Literal["left", "right"] = "left" if column.text else "right"
        table.add_column(column.heading, justify=justify, no_wrap=not column.text or width <= _SHORT, overflow="fold")
    for row in range(len(section.rows)):
        table.add_row(*(_cell(section, row, i) for i in range(len(section.columns))))
    return table


def console(stream: IO[str] | None = None, color: Colour = "auto") -> Console:
    """Return a rich console for the stream, at the terminal's width (a file: COLUMNS or 140)."""
    stream = stream or sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else 140
    how: dict[str, Any] = {"color_system": None} if color == "never" else {}
    if color == "always":
        how = {"force_terminal": True, "color_system": "standard", "no_color": False}
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False, **how)


def print_live(stream: IO[str], table: Result, closing: Sequence[str], words: Words = str) -> None:
    """Print the tables of a live run that has just ended, and its closing lines."""
    summary = replace(summarise(table, brief=True, wide=True), lead=(), sentences=tuple(closing)).worded(words)
    console(stream).print(_Report(summary, details=False, legend=False, live=True))


def text(table: Result, color: Colour = "never", **how: Any) -> str:
    """Return a result as the text that a terminal shows, at the width of standard output."""
    screen = console(color=color)
    with screen.capture() as shown:
        screen.print(render(table, **how))
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


_SHORT = 16
"""Text up to this width is not folded: a verdict."""
_FOLDED = 24
"""Width from which the value of a term may be folded: wider than any interval."""
_GAP = 2
"""Spaces between two columns."""
MOST_PARTS = 4
"""Pairs of a term and its value in one line."""
_PLAIN = ("Task", "Metric", "Model", "Run", "A − B")
"""Columns whose values explain themselves."""


def fit(section: Section, width: int, *, details: bool = False) -> tuple[list[Section], list[str]]:
    """Return (tables, left-out headings): no detail columns, equal ones in the title, cut and split to the width.

    With `details` as many tables as it takes to show all columns; those that name the rows are in all of them.
    """
    section = _lifted(section)
    if _total(_widths(section, width)) > width:
        section = _folded(section)
    kept = [i for i, column in enumerate(section.columns) if details or not column.detail]
    for rank in sorted({column.rank for column in section.columns} - {0}, reverse=True):
        if details or len(section.rows) == 1 or _total(_widths(section.keeping(kept), width)) <= width:
            break
        kept = [i for i in kept if section.columns[i].rank < rank]
    left_out = [column.heading for i, column in enumerate(section.columns) if i not in kept]
    return _blocks(section.keeping(kept), width), left_out


def _name_columns(section: Section) -> list[int]:
    """Return the indexes of the first text columns, which name the rows (task, metric, …)."""
    return list(takewhile(lambda i: section.columns[i].text, range(len(section.columns) - 1)))


def _lifted(section: Section) -> Section:
    """Return the table with name and ranked columns that are equal in all rows (of one row only names) in its title."""
    columns, rows = section.columns, section.rows
    names = [i for i in _name_columns(section) if columns[i].tone is None]  # what has a tone is a result
    same = [i for i in range(len(columns)) if len({row[i] for row in rows}) == 1]
    lifted = [i for i in names if i in same]
    if len(rows) > 1:
        lifted = [] if lifted == names else lifted  # rows that nothing would tell apart
        lifted += [i for i in same if i not in names and columns[i].rank]
    said = [(columns[i].heading, rows[0][i]) for i in lifted if rows[0][i] not in ("", MISSING)]
    plain = ": ".join(value for heading, value in said if heading in _PLAIN)
    rest = ", ".join(f"{heading} {value}" for heading, value in said if heading not in _PLAIN)
    kept = section.keeping([i for i in range(len(columns)) if i not in lifted])
    return replace(kept, title="; ".join(filter(None, [section.title, plain, rest])))


def _folded(section: Section) -> Section:
    """Return the table with the columns that name its rows merged into one, joined by " · ". One row: unchanged."""
    names = [i for i in _name_columns(section) if section.columns[i].heading in _PLAIN]
    if len(names) < 2 or len(section.rows) == 1:
        return section
    first, rest = names[0], [i for i in range(len(section.columns)) if i not in names[1:]]
    heading = ", ".join(section.columns[i].heading for i in names)
    heads = tuple(
        replace(column, heading=heading) if i == first else column for i, column in enumerate(section.columns)
    )
    rows = tuple(
        tuple(" · ".join(filter(None, (row[j] for j in names))) if i == first else cell for i, cell in enumerate(row))
        for row in section.rows
    )
    return replace(section, columns=heads, rows=rows).keeping(rest)


def _blocks(section: Section, width: int) -> list[Section]:
    """Split a table into several that each fit the width and repeat the columns that name the rows."""
    if len(section.rows) == 1:
        return [section]
    widths, lead = _widths(section, width), _name_columns(section)
    blocks = [list(lead)]
    for i in range(len(lead), len(section.columns)):
        if blocks[-1] != lead and _total(widths[j] for j in [*blocks[-1], i]) > width:
            blocks.append(list(lead))
        blocks[-1].append(i)
    first, *others = (section.keeping(block) for block in blocks)
    return [first, *(replace(block, title="", units="") for block in others)]


def _widths(section: Section, width: int = 10**6) -> list[int]:
    """Return each column's width in characters. Long texts get a quarter of `width`."""
    out = []
    for i, column in enumerate(section.columns):
        lines = [line for text in (column.heading, *(row[i] for row in section.rows)) for line in text.splitlines()]
        full = max(map(cell_len, lines), default=0)
        out.append(full if not column.text or full <= _SHORT else min(full, max(8, width // 4)))
    return out


def _total(widths: Iterable[int]) -> int:
    """Return the width in characters of a table with these column widths, gaps included."""
    return sum(width + _GAP for width in widths) - _GAP
