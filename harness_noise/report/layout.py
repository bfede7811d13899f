"""How a table fits a terminal: what is the same in all rows becomes its title, and what matters least is left out.

A number is never cut: rich would make 0.62 of 0.625.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from .columns import Section

_SHORT = 16
_PLAIN = ("Task", "Metric", "Model", "Run", "A − B")
"""Columns whose values say what they are."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some columns of a section, side by side."""

    section: Section
    columns: tuple[int, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A section as a terminal shows it."""

    title: str
    blocks: tuple[Block, ...]
    left_out: tuple[str, ...] = field(default=())
    """Labels of columns for which there is no room."""


def fit(section: Section, width: int, *, details: bool = False) -> Fitted:
    """One table, if that can be; with `details` as many as it takes to show all columns."""
    whole = tuple(range(len(section.columns)))
    if details or not whole or _room(whole, _full(section), width) >= 0:
        return Fitted(section.title, _blocks(section, whole, width))
    title, columns = _lifted(section, whole)
    kept = columns
    for rank in sorted({section.columns[i].rank for i in columns} - {0}, reverse=True):
        if _room(kept, _readable(section, width), width) >= 0:
            break
        kept = tuple(i for i in kept if section.columns[i].rank < rank)
    left_out = tuple(section.columns[i].label for i in columns if i not in kept)
    return Fitted(title, _blocks(section, kept, width), left_out)


def one_table(section: Section, width: int) -> bool:
    """Whether all of it fits side by side."""
    return _room(range(len(section.columns)), _full(section), width) >= 0


def _lifted(section: Section, columns: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """The title with what all rows have in common, and the columns that are left."""
    lead = takewhile(lambda i: section.columns[i].text, columns[:-1])
    same = [i for i in lead if len({row[i] for row in section.rows}) == 1]
    if len(section.rows) > 1 and len(same) == sum(1 for _ in takewhile(lambda i: section.columns[i].text, columns)):
        same = []  # rows that nothing would tell apart
    said = [
        value if column.label in _PLAIN else f"{column.label} {value}"
        for column, value in ((section.columns[i], section.rows[0][i]) for i in same)
        if value
    ]
    title = "; ".join(filter(None, [section.title, ": ".join(said)]))
    return title, tuple(i for i in columns if i not in same)


def _blocks(section: Section, columns: Sequence[int], width: int) -> tuple[Block, ...]:
    """The columns of each table and their widths; those that name the rows are in all of them.

    Text may fold between words, a number never; one column that is too wide alone stays whole.
    """
    full, least = _full(section), _least(section, width)
    lead = list(takewhile(lambda i: section.columns[i].text, columns[:-1]))
    again = [i for i in lead if len({row[i] for row in section.rows}) > 1] or lead[:1]
    found: list[list[int]] = [list(lead)]
    for i in columns[len(lead) :]:
        wider = [*found[-1], i]
        if found[-1] not in (lead, again) and _room(wider, least, width) < 0:
            found.append([*again, i])
        else:
            found[-1] = wider
    out = []
    for chosen in found:
        widths = {i: least[i] for i in chosen}
        for i in chosen:
            widths[i] += max(0, min(full[i] - least[i], _room(chosen, widths, width)))
        out.append(Block(section, tuple(chosen), tuple(widths[i] for i in chosen)))
    return tuple(out)


def _full(section: Section) -> list[int]:
    return [_widest(section, i, str.splitlines) for i in range(len(section.columns))]


def _least(section: Section, width: int) -> list[int]:
    """The narrowest that each column can be; short texts, as a verdict, are not folded."""
    cap = max(8, width // 4)
    return [
        min(_widest(section, i, str.split), cap) if column.text and full > min(_SHORT, cap) else full
        for i, (column, full) in enumerate(zip(section.columns, _full(section), strict=True))
    ]


def _readable(section: Section, width: int) -> list[int]:
    """What each column should have before others are left out for it: a long text a quarter of the width."""
    return [
        max(least, min(full, width // 4)) if column.text else full
        for column, least, full in zip(section.columns, _least(section, width), _full(section), strict=True)
    ]


def _room(columns: Sequence[int], widths: Sequence[int] | Mapping[int, int], width: int) -> int:
    """What a table of these columns leaves of `width`: three spaces between two columns, one at each end."""
    return width - sum(widths[i] + 3 for i in columns) + 1


def _widest(section: Section, i: int, split: Callable[[str], list[str]]) -> int:
    """The widest part of a column's label and cells."""
    from rich.cells import cell_len

    texts = [section.columns[i].label, *(row[i] for row in section.rows)]
    return max((cell_len(part) for text in texts for part in split(text)), default=0)
