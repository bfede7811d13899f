"""The scores of a log as numbers, a question per row and an epoch per column.

With one repeat all of Inspect's reducers but the thresholds are the score itself. A threshold other than 1 is not
said in a log, so whatever comes out is compared with the native value. What reducers make of several repeats stands in
the log itself.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness_noise.arrays import FloatArray, IntArray
from harness_noise.data.scores import check_grid

_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_YES_NO = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass(frozen=True, slots=True, eq=False)
class AnswerGrid:
    """Which question and which repeat each of N answers is."""

    keys: tuple[str, ...]
    """(n,) ids as text."""
    first: tuple[int, ...]
    """(n,) number of the answer at which each question appears first."""
    rows: IntArray
    """(N,) question of each answer."""
    columns: IntArray
    """(N,) repeat of each answer."""
    repeats: int

    def fill(self, values: FloatArray) -> FloatArray:
        """(n, K) table of the N values, NaN where a question lacks a repeat."""
        table = np.full((len(self.keys), self.repeats), np.nan)
        table[self.rows, self.columns] = values
        return table


def grid(ids: Sequence[Any], epochs: Sequence[int] | None = None, order: Sequence[Any] | None = None) -> AnswerGrid:
    """The grid of N answers.

    Args:
        ids: (N,) of the questions.
        epochs: (N,) numbers of the repeats; without them the k-th answer to a question is its repeat k.
        order: ids of the data set, whose order the questions take, so that a sum comes out the same
            to the last bit in whatever order the answers came in.

    Raises:
        InputError: nearly every question lacks nearly every repeat.
    """
    named = ids if set(map(type, ids)) == {str} else list(map(str, ids))
    present = dict.fromkeys(named)
    if order is not None:
        present = {key: None for key in map(str, order) if key in present} | present
    index = {key: row for row, key in enumerate(present)}
    rows = np.fromiter(map(index.__getitem__, named), np.intp, len(named))
    by_row = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[by_row], np.arange(len(index)))
    if epochs is None:
        columns = np.empty_like(rows)
        columns[by_row] = np.arange(len(rows)) - starts[rows[by_row]]
    else:
        numbered = {epoch: column for column, epoch in enumerate(sorted(set(epochs)))}
        columns = np.fromiter(map(numbered.__getitem__, epochs), np.intp, len(epochs))
    repeats = int(columns.max(initial=-1)) + 1
    check_grid(len(index), repeats, len(rows), "the log")
    return AnswerGrid(tuple(index), tuple(by_row[starts].tolist()), rows, columns, repeats)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Score values as Inspect's `value_to_float` reads them."""

    values: FloatArray
    """(N,) NaN where there is no score."""
    words: int
    """How many are not numbers; Inspect takes them as 0."""
    example: object = None


def numbers(values: Sequence[Any]) -> Numbers:
    """Convert as Inspect does: C 1, P 0.5, I and N 0, booleans, numbers, yes/no, numeric text."""
    kinds = set(map(type, values))
    if kinds <= {float, int, bool}:
        with contextlib.suppress(OverflowError):
            return Numbers(np.asarray(values, dtype=np.float64), 0)
    if kinds <= {str, type(None)}:
        known = {value: _number(value) for value in set(values)}
        if None not in known.values():
            return Numbers(np.fromiter(map(known.__getitem__, values), np.float64, len(values)), 0)
    converted = [_number(value) for value in values]
    words = [value for value, number in zip(values, converted, strict=True) if number is None]
    out = np.asarray([0.0 if number is None else number for number in converted], dtype=np.float64)
    return Numbers(out, len(words), words[0] if words else None)


def _number(value: Any) -> float | None:
    """The number that a value stands for, NaN for no score, None for a word, a list or a dictionary."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        return _word(value)
    if not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _word(text: str) -> float | None:
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in _YES_NO:
        return _YES_NO[text.lower()]
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


Reduce = Callable[[FloatArray], FloatArray]
"""(n, K) scores, NaN where there is none → (n,) values, NaN where there is none."""

_WITH_K = re.compile(r"(?:pass_at|pass_k|at_least)_([0-9]+)")


def of_single_answers(reducer: str) -> Reduce | None:
    """What a reducer makes of one repeat: the score itself, or whether it reaches 1; None for one of more repeats."""
    threshold = _WITH_K.fullmatch(reducer)
    if threshold is None:
        return lambda table: table[:, 0]
    return None if int(threshold[1]) != 1 else lambda table: np.where(np.isnan(table), np.nan, table >= 1)[:, 0]
