"""Which rows of a table are answers to one question.

An id names it where there is one. Repeats are believed where an id comes again, or where most of the
questions do; a few that have the same words are different questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .columns import Columns
    from .reader import Cells


@dataclass(slots=True)
class Settled:
    """The tables as they are in the end."""

    new: dict[int, Cells] = field(default_factory=dict)
    """Identity of an old table → the one in its place."""
    by_words: bool = False
    """Whether the words are the question, and not the id beside them."""
    notes: list[str] = field(default_factory=list)

    def of(self, cells: Cells) -> Cells:
        return self.new.get(id(cells), cells)

    def names(self, cells: Cells) -> Mapping[str, str]:
        """New names by old, of an old table."""
        return cells.words if self.by_words else cells.double


def is_worded(values: Sequence[str | None]) -> bool:
    """Whether a column holds sentences, and not names."""
    return 2 * sum(value is not None and " " in value for value in values) > len(values)


def settle(path: Path, columns: Columns, tables: Sequence[Cells]) -> Settled:
    """Decide for a whole file, and tell the columns.

    Args:
        path: the file, for the notes.
        columns: the words become `question` where they are the question, and the id is not used.
        tables: its scores, one for each model, task and metric, by whatever names the question so far.
    """
    if any(cells.counts for cells in tables):
        return Settled()
    return _without_id(path, columns, tables) if columns.words is None else _beside(path, columns, tables)


def _beside(path: Path, columns: Columns, tables: Sequence[Cells]) -> Settled:
    """An id beside the words: the id, unless it numbers the rows or the answers of a question."""
    name, words = columns.question, columns.words
    assert words is not None
    ambiguous = sum(len(set(cells.double.values())) for cells in tables)
    ids = sum(len(cells.numbers) - len(cells.double) for cells in tables)
    unique = all(len(rows) == 1 for cells in tables for rows in cells.numbers.values()) and not ambiguous
    shared, distinct = (sum(found) for found in zip(*map(_shared_words, tables), strict=True))
    counted = "repeat" in columns.names and all(map(_counted, tables))
    if 2 * ambiguous > ids or (unique and shared and (counted or 2 * shared > distinct)):
        columns.names["question"], columns.words = words, None
        columns.unused = [*columns.unused, name]
        return Settled({id(cells): cells.renamed(path, cells.words) for cells in tables}, by_words=True)
    out = Settled({id(cells): cells.renamed(path, cells.double) for cells in tables if cells.double})
    if unique and shared:
        out.notes.append(
            f"{path.name}: {shared} texts in {words!r} stand beside several {name!r}, which are as many questions; if "
            f"they are repeats, say --columns question={words}"
        )
    return out


def _counted(cells: Cells) -> bool:
    """Whether the repeats of a table number the answers that have the same words, and nothing else (a row's seed)."""
    answers = Counter[str]()
    numbers: dict[tuple[str, str], None] = {}
    n = 0
    for question, rows in cells.numbers.items():
        words = cells.words.get(question, question)
        for repeat in rows:
            n += 1
            answers[words] += 1
            numbers[words, str(repeat).partition("\x1f")[0]] = None
    return len(numbers) == n and len({repeat for _, repeat in numbers}) == max(answers.values(), default=0)


def _shared_words(cells: Cells) -> tuple[int, int]:
    """How many texts are those of several questions, and how many texts there are."""
    count = Counter(cells.words.get(question, question) for question in cells.numbers)
    return sum(n > 1 for n in count.values()), len(count)


def _without_id(path: Path, columns: Columns, tables: Sequence[Cells]) -> Settled:
    """Only one column tells the question: a few equal sentences in it are no repeats."""
    name = columns.question
    repeated = sum(len(rows) > 1 for cells in tables for rows in cells.numbers.values())
    n = sum(len(cells.numbers) for cells in tables)
    if name in columns.chosen or "repeat" in columns.names or not 0 < 2 * repeated <= n:
        return Settled()
    if not is_worded([question for cells in tables for question in cells.numbers]):
        return Settled()
    note = (
        f"{path.name}: {repeated} of {n} texts in {name!r} come more than once; so few are different questions with "
        f"the same words, not repeats; if they are repeats, say --columns question={name}"
    )
    return Settled({id(cells): cells.numbered(path) for cells in tables}, notes=[note])
