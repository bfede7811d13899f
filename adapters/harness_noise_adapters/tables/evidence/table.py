"""Contents of a table's columns: their kinds, numbers and scales."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from harness_noise.arrays import HUGE, FloatArray, IntArray
from harness_noise.data.numbers import number_of

from ..blocks import Block
from ..values import MISSING, VERDICTS, answers_of, score_of_text
from .lexicon import WORDS, snake

SEEN = 20_000
"""Rows of a table that are looked at."""
_DEEPEST = 4
_MOST_FIELDS = 400
"""Columns into which objects are opened."""
_MOST_WORDS = 12
"""Different words that a column of verdicts has at most."""
_PER_CENT = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*%\s*")
_FRACTION = re.compile(r"\s*\d+(?:\.\d+)?\s*/\s*\d+(?:\.\d+)?\s*")
_DATE = re.compile(r"\s*\d{4}-\d\d-\d\d([T ].*)?")


@dataclass(eq=False)
class ColumnFacts:
    """One column of a table, or one field of the objects in it."""

    keys: tuple[str, ...]
    """The names on the way to it, one for each level of nesting."""
    raw: Sequence[Any]
    """The cell of each row of the file."""
    vetoed: str = field(default="", init=False)
    """The reason why it is not a score, if its name and something else speak against it."""

    @cached_property
    def name(self) -> str:
        """Full dotted path of the column, as a user types it."""
        return ".".join(self.keys)

    @cached_property
    def parts(self) -> list[str]:
        """Parts of the column's path in snake case, split also at `.`, `:` and `/` inside a name."""
        texts = [part for key in self.keys for part in re.split(r"[:/]|\.(?=[^\s\d])", key)]
        return [snake(part) for part in texts] or [""]

    @cached_property
    def last(self) -> str:
        return self.parts[-1]

    @property
    def depth(self) -> int:
        return len(self.parts) - 1

    @cached_property
    def _numbered(self) -> tuple[IntArray, list[Any]]:
        return _numbered(self.raw)

    @property
    def codes(self) -> IntArray:
        """Indices (n,) of each row's cell in `distinct`, −1 if the cell is empty."""
        return self._numbered[0]

    @property
    def distinct(self) -> list[Any]:
        """All different non-empty cells of the column, in order of first appearance."""
        return self._numbered[1]

    @cached_property
    def cells(self) -> Sequence[Any]:
        """Cells (n,) of the rows, cleaned: None if empty or a word such as n/a, a list of one unwrapped."""
        return [_cleaned(cell) for cell in self.raw]

    @property
    def empty(self) -> int:
        return int((self.codes < 0).sum())

    @cached_property
    def kind(self) -> str:
        """Type of cells: `empty`, `object`, `list`, `scores`, `verdict`, `number`, `percent`, `fraction` or `text`."""
        return _kind_of(self.distinct, self._values)

    @cached_property
    def _values(self) -> FloatArray:
        """Score values (d,) of the distinct cells, NaN for a cell that is not a score."""
        return np.array([*map(_number, self.distinct)], dtype=np.float64)

    @cached_property
    def numbers(self) -> FloatArray:
        """Score values (n,) of the rows' cells, NaN for a cell that is empty or not a score."""
        return np.append(self._values, np.nan)[self.codes]

    @cached_property
    def scale(self) -> str:
        """Range of the scores: `01`, `unit` (0 to 1), `small` (whole to 10), `hundred`, `other`, "" if not numeric."""
        values: Any = self.numbers if self.kind != "scores" else np.array(_flat(self.distinct))
        values = values[~np.isnan(values)]
        if self.kind not in ("number", "verdict", "scores") or not values.size:
            return ""
        if ((values == 0) | (values == 1)).all():
            return "01"
        if values.min() >= 0 and values.max() <= 1:
            return "unit"
        whole = bool((values == np.round(values)).all())
        if values.min() >= 0 and values.max() <= 10 and whole:
            return "small"
        return "hundred" if values.min() >= 0 and values.max() <= 100 else "other"

    @property
    def scored(self) -> bool:
        """True if the column's cells can be read as scores, whatever the column is called."""
        return self.scale != ""

    @cached_property
    def mean(self) -> float:
        """Mean of the column's scores, NaN if it has none."""
        values = np.array(_flat(self.distinct_rows)) if self.kind == "scores" else self.numbers
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")

    @property
    def distinct_rows(self) -> list[Any]:
        return [cell for cell in self.cells if cell is not None]

    @cached_property
    def is_constant(self) -> bool:
        return len(self.distinct) <= 1

    @cached_property
    def is_name(self) -> bool:
        """True if all cells are short names, as those of models and tasks."""
        return self.kind not in ("object", "list", "scores", "empty") and all(
            len(str(cell)) <= _LONGEST_NAME for cell in self.distinct
        )

    @cached_property
    def is_worded(self) -> bool:
        """True if most cells are texts of several words."""
        worded = [isinstance(cell, str) and " " in cell.strip() for cell in self.distinct]
        return 2 * int(np.array([*worded, False])[self.codes].sum()) > len(self.codes)

    @cached_property
    def counts_rows(self) -> bool:
        """True if the column's whole numbers only count up by one from row to row."""
        steps = np.diff(self.numbers) if self.kind == "number" and len(self.codes) >= _FEW_ROWS else np.zeros(0)
        return bool(steps.size) and bool((steps == 1).all())


_LONGEST_NAME = 120
_FEW_ROWS = 4
_SHOWN = 12


@dataclass(eq=False)
class TableFacts:
    """The first rows of a table, by columns."""

    columns: list[ColumnFacts]
    n: int

    @classmethod
    def of(cls, rows: Block) -> TableFacts:
        """Build the column descriptions of a table's rows, with nested objects split into columns."""
        rows = rows.cut(0, len(rows) - _ends_in_totals(rows))
        columns = [column for name in rows.names for column in _columns_of_cells((name,), rows.column(name))]
        return cls(columns[:_MOST_FIELDS], len(rows))

    @property
    def shown_names(self) -> str:
        """The names of the first columns, for messages."""
        return ", ".join(column.name for column in self.columns[:_SHOWN]) + (
            ", …" if len(self.columns) > _SHOWN else ""
        )

    def named(self, name: str) -> ColumnFacts | None:
        """Return the column with exactly this dotted path, None if there is none."""
        return next((column for column in self.columns if column.name == name), None)

    def called(self, names: Sequence[str], but: Sequence[ColumnFacts | None] = ()) -> list[ColumnFacts]:
        """Return unused columns whose last path part is in `names`, in that order, least nested first."""
        found = [column for column in self.columns if column.last in names and column not in but]
        return sorted(found, key=lambda column: (names.index(column.last), column.depth))


def _ends_in_totals(rows: Block) -> bool:
    """Return True if the last row, an object, alone lacks the name of a question: it has the totals of the others."""
    if rows.cells or len(rows) < _FEW_ROWS:
        return False
    *others, last = rows.rows
    known = [*WORDS["question"]["ids"], *WORDS["question"]["last_resort"]]
    names = [name for name in others[0] if snake(name) in known and all(name in row for row in others)]
    return bool(names) and not any(name in last for name in names)


def _columns_of_cells(keys: tuple[str, ...], cells: Sequence[Any]) -> Iterator[ColumnFacts]:
    """Yield one column description for these cells, or one for each field if most are objects of few fields."""
    has_objects = any(issubclass(kind, Mapping) for kind in {*map(type, cells)})
    objects = [cell for cell in cells if isinstance(cell, Mapping)] if has_objects else []
    if not objects or len(keys) == _DEEPEST or 2 * len(objects) < sum(cell is not None for cell in cells):
        yield ColumnFacts(keys, cells)
        return
    names = list(dict.fromkeys(name for cell in objects for name in cell))
    if len(names) > _MOST_FIELDS // 4:  # keyed by something, and no record
        yield ColumnFacts(keys, cells)
        return
    for name in names:
        inner = [cell.get(name) if isinstance(cell, Mapping) else None for cell in cells]
        yield from _columns_of_cells((*keys, str(name)), inner)


def _cleaned(cell: Any) -> Any:
    """Return None for an empty cell, NaN or a word such as n/a, the plain item of a one-item list, else the cell."""
    if isinstance(cell, str):
        return None if cell.strip().lower() in MISSING else cell
    if isinstance(cell, list):
        return cell[0] if len(cell) == 1 and not isinstance(cell[0], (list, dict)) else cell
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    return cell.item() if isinstance(cell, np.generic) else cell


def _numbered(raw: Sequence[Any]) -> tuple[IntArray, list[Any]]:
    """Return (n,) indices of the cells among the distinct ones (−1 if empty), and the list of distinct cells."""
    kinds, numbers, distinct = {*map(type, raw)}, dict[Any, int](), list[Any]()

    def number(cell: Any) -> int:
        if (plain := _cleaned(cell)) is None:
            return -1
        found = numbers.setdefault(_hashable(plain), len(distinct))
        if found == len(distinct):
            distinct.append(plain)
        return found

    if kinds <= {str}:
        known = dict.fromkeys(raw, -1)
        for cell in known:
            text = cell.strip()
            if text.lower() not in MISSING:
                known[cell] = numbers.setdefault(text, len(distinct))
                if known[cell] == len(distinct):
                    distinct.append(cell)
        return np.fromiter(map(known.__getitem__, raw), np.intp, len(raw)), distinct
    if kinds <= _SIMPLE and not (bool in kinds and kinds & {int, float}):  # of each different cell once
        known = {cell: number(cell) for cell in dict.fromkeys(raw)}
        return np.fromiter(map(known.__getitem__, raw), np.intp, len(raw)), distinct
    return np.array([number(cell) for cell in raw], dtype=np.intp), distinct


_SIMPLE = {str, int, float, bool, type(None)}


def _hashable(cell: Any) -> Any:
    if isinstance(cell, (list, dict)):
        return json.dumps(cell, sort_keys=True, default=str)
    return (type(cell) is bool, cell) if not isinstance(cell, str) else cell.strip()


def _flat(cells: Sequence[Any]) -> list[float]:
    return [_number(each) for cell in cells for each in (answers_of(cell) or ())]


def _number(cell: Any) -> float:
    """Return the score value of a cell, NaN if it is not a score."""
    number = number_of(cell, score_of_text)
    return np.nan if number is None or abs(number) > HUGE else number


def _kind_of(distinct: Sequence[Any], values: FloatArray) -> str:
    """Decide the type of a column (`number`, `text` and so on) from its distinct cells, despite a few odd ones."""
    if not distinct:
        return "empty"
    if all(isinstance(cell, Mapping) for cell in distinct):
        return "object"
    if all(answers_of(cell) is not None for cell in distinct):
        lists = [np.array([*map(_number, answers_of(cell) or ())]) for cell in distinct]
        steps = np.concatenate([*map(np.diff, lists)])
        places = len(steps) >= _RISES and ((steps > 0) & (steps == np.round(steps))).all()  # of something in a list
        return "list" if places or np.isnan(np.concatenate(lists)).all() else "scores"
    texts = [cell.strip() for cell in distinct if isinstance(cell, str)]
    if texts and (words := _verdicts(texts, len(distinct))) is not None:
        return words
    numbers = len(distinct) - sum(map(_is_letter, compress(distinct, ~np.isnan(values)))) - int(np.isnan(values).sum())
    if 2 * numbers > len(distinct):
        return "number"
    if not texts:
        return "number" if numbers else "text"
    for kind, pattern in (("percent", _PER_CENT), ("fraction", _FRACTION)):
        if 2 * sum(pattern.fullmatch(text) is not None for text in texts) > len(distinct):
            return kind
    return "text"


_RISES = 10
"""Steps up, and none down, that are not by chance."""


def _is_letter(cell: Any) -> bool:
    """Return True if a cell is one letter. A letter is a verdict only if all of the column's cells are.

    Inspect's C is also an answer's letter.
    """
    return isinstance(cell, str) and len(cell.strip()) == 1 and cell.strip().isalpha()


_LETTERS = {"c", "p", "i", "n"}


def _verdicts(texts: Sequence[str], n: int) -> str | None:
    """Return `verdict` if all cells say right or wrong, `text` if by letters but not C and I. None for others."""
    words = {text.lower() for text in texts}
    if len(words) > _MOST_WORDS or not words <= VERDICTS.keys() or len(texts) < n - 2:
        return None
    letters = {word for word in words if len(word) == 1}
    if letters and not ({"c", "i"} <= words <= _LETTERS):
        return "text"
    return "verdict"
