"""Some rows of a table at a time, by columns where the file has them so, else as objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import numpy as np

from harness_noise.arrays import IntArray

from .opening import Record
from .values import cell_text

_SIMPLE = (str, int, float, bool)
_NOTHING = type(None)


class Block:
    """Rows with their numbers in the file."""

    __slots__ = ("_rows", "cells", "lines")

    def __init__(
        self,
        lines: Sequence[int],
        rows: Sequence[Record] | None = None,
        cells: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.lines, self._rows = lines, rows
        self.cells: Mapping[str, Sequence[Any]] = cells or {}
        """Column → the cell of each row, empty if the rows are objects."""

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def rows(self) -> Sequence[Record]:
        """All (n,) rows of this piece of a table, as dictionaries from column name to cell."""
        if self._rows is None:
            names = tuple(self.cells)
            self._rows = [dict(zip(names, row, strict=True)) for row in zip(*self.cells.values(), strict=True)]
        return self._rows

    @property
    def names(self) -> list[str]:
        """Names of all columns in this piece of a table, in order of first appearance."""
        return list(self.cells or map(str, dict.fromkeys(chain.from_iterable(self.rows))))

    def column(self, name: str) -> Sequence[Any]:
        """Return the (n,) cells of the column with this name, None in rows without it."""
        if name in self.cells:
            return self.cells[name]
        return [None] * len(self) if self.cells else [row.get(name) for row in self.rows]

    def has(self, name: str) -> bool:
        """Return True if this piece of a table has a column, or any of its rows a field, with this name."""
        return name in self.cells if self.cells else any(name in row for row in self.rows)

    def numbers(self) -> IntArray:
        """Return (n,) line numbers (or row numbers) of the rows in the file, for error messages."""
        if isinstance(self.lines, range):
            return np.arange(self.lines.start, self.lines.stop, self.lines.step)
        return np.array(self.lines, dtype=np.intp)

    def names_of(self, row: int) -> list[str]:
        """Return the names of the columns that the row at this index has."""
        return list(self.cells or map(str, self.rows[row]))

    def picked(self, rows: Sequence[int], name: str) -> Sequence[Any]:
        """Return the (m,) cells of one column in the m rows at these indices, which must increase."""
        column = self.column(name)
        return column if len(rows) == len(self) else [column[i] for i in rows]

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        return zip(self.lines, self.rows, strict=True)

    def filled(self, specs: Mapping[str, Callable[[Record], Any]]) -> Block:
        """Return this piece of a table with more columns, each computed row by row by a given function."""
        if not specs:
            return self
        if self.cells:
            more = {text: [get(row) for row in self.rows] for text, get in specs.items()}
            return Block(self.lines, None, {**self.cells, **more})
        return Block(self.lines, [{**row, **{text: get(row) for text, get in specs.items()}} for row in self.rows])

    def cut(self, start: int, end: int | None = None) -> Block:
        """Return a new block with only the rows from index `start` up to, without, `end` (None: to the last)."""
        rows = None if self._rows is None else self._rows[start:end]
        return Block(self.lines[start:end], rows, {name: column[start:end] for name, column in self.cells.items()})

    def at(self, rows: Sequence[int]) -> Block:
        """Return a new block with only the rows at these indices."""
        objects = None if self._rows is None else [self._rows[i] for i in rows]
        cells = {name: [column[i] for i in rows] for name, column in self.cells.items()}
        return Block([self.lines[i] for i in rows], objects, cells)

    @classmethod
    def joined(cls, blocks: Sequence[Block]) -> Block:
        """Return one block with all rows of several of the same file, in order. Columns are those of the first."""
        if len(blocks) == 1:
            return blocks[0]
        lines = [line for block in blocks for line in block.lines]
        if not (blocks and blocks[0].cells):
            return cls(lines, [row for block in blocks for row in block.rows])
        cells = {name: [*chain.from_iterable(block.cells[name] for block in blocks)] for name in blocks[0].cells}
        return cls(lines, None, cells)


class Names:
    """Numbered texts: every different text of a table gets a code number, once (see `cell_text`)."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[Any, int] = {None: -1}
        """Text, and cell of a text → its number."""
        self._others: dict[type, dict[Any, int]] = {}

    def number(self, text: str | None) -> int:
        """Return the whole number that stands for a text, −1 for None. A new text gets the next free number."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text or "")
        return found

    def codes(self, cells: Sequence[Any], kinds: Set[type] = frozenset()) -> IntArray:
        """Return (n,) whole numbers that stand for the texts of n cells, −1 for empty cells. Number new texts."""
        if cells and type(cells[0]) is str and cells[0] == cells[-1] and cells.count(cells[0]) == len(cells):
            return np.full(len(cells), self.number(cell_text(cells[0])), dtype=np.intp)
        kinds = (kinds or {*map(type, cells)}) - {_NOTHING}
        if len(kinds) > 1 or not kinds <= {*_SIMPLE}:
            return np.array([self.number(cell_text(cell)) for cell in cells], dtype=np.intp)
        kind = next(iter(kinds), str)
        known = self._numbers if kind is str else self._others.setdefault(kind, {None: -1})
        if cells and cells[0] in known:
            with suppress(KeyError):  # none that is new
                return np.fromiter(map(known.__getitem__, cells), np.intp, len(cells))
        n, before = len(self.texts), len(known)
        codes = np.fromiter(map(known.setdefault, cells, range(n, n + len(cells))), np.intp, len(cells))
        new = [*islice(reversed(known), len(known) - before)][::-1]
        if kind is str and "".join(new).isascii() and all(new) and new == [*map(str.strip, new)]:
            self.texts += new  # the same as below, but faster
            if len(new) in (0, len(cells)):
                return codes
            known.update(zip(new, range(n, n + len(new)), strict=True))
        else:
            for cell in new:
                del known[cell]
            known.update([(cell, self.number(cell_text(cell))) for cell in new])
        return np.fromiter(map(known.__getitem__, cells), np.intp, len(cells))

    def exactly(self, texts: Sequence[str | None]) -> IntArray:
        """Return (n,) whole numbers that stand for n texts, neither trimmed nor converted. Number new texts."""
        for text in dict.fromkeys(texts):
            self.number(text)
        return np.fromiter(map(self._numbers.__getitem__, texts), np.intp, len(texts))

    def close(self) -> None:
        """Free the memory used to look up numbers by text, once no further texts will be added."""
        self._numbers, self._others = {}, {}

    def of(self, codes: Iterable[int]) -> list[str | None]:
        """Return the texts that these whole numbers stand for, None for −1."""
        texts = [*self.texts, None]
        return [texts[code] for code in codes]

    def all_of(self, codes: Iterable[int]) -> list[str]:
        """Return the texts that these whole numbers stand for, where none is −1."""
        return list(map(self.texts.__getitem__, codes))
