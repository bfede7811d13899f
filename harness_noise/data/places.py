"""The one door from answers to their places in the (n, K) table of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import AnyArray, BoolArray, IntArray
from ..errors import InputError

_SPARE = 20_000_000
"""Cells that a table of scores may have however few of them are filled: 160 MB."""
_SPARSE = 64


def check_grid(n: int, K: int, answers: int, what: object) -> None:
    """Refuse an (n, K) table that would be nearly empty, as if repeats were numbered through all questions.

    Args:
        n: questions.
        K: the most repeats of one, or all different repeats.
        answers: scores that there are.
        what: the file or run, for the message.

    Raises:
        InputError: the table would have far more cells than there are scores.
    """
    if n * K > max(_SPARE, _SPARSE * answers):
        raise InputError(
            f"{what}: {answers} answers to {n} questions with up to {K} repeats leave nearly every question without "
            "nearly every repeat. Are the repeats numbered in one row through all questions? Number them again for "
            "each question, or take the column of repeats out"
        )


def number_within_question(rows: IntArray, order: IntArray | None = None) -> IntArray:
    """Return (N,) the number of each answer within its question: 0, 1, 2, ….

    Args:
        rows: (N,) question of each answer.
        order: (N,) by which the answers to a question are numbered, None for the order in which they came.
    """
    by_question = np.argsort(rows, kind="stable") if order is None else np.lexsort((order, rows))
    counts = np.bincount(rows)
    out = np.empty(len(rows), dtype=np.intp)
    out[by_question] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class AnswerPlaces:
    """The places of N answers in an (n, K) table."""

    rows: IntArray
    """(N,) question of each answer."""
    columns: IntArray
    """(N,) repeat of each answer."""
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: IntArray, n: int, where: object, columns: IntArray | None = None) -> AnswerPlaces:
        """Return each answer's row and column in an (n, K) table. Without `columns`, in order of arrival.

        Raises:
            InputError: nearly every question lacks nearly every repeat.
        """
        columns = number_within_question(rows) if columns is None else columns
        K = int(columns.max(initial=-1)) + 1
        check_grid(n, K, len(rows), where)
        return cls(rows, columns, (n, K))

    def fill(self, values: AnyArray, empty: Any = np.nan) -> AnyArray:
        """Return an (n, K) table with the (N,) values at their answers' places, and `empty` elsewhere."""
        table = np.full(self.shape, empty, dtype=values.dtype)
        table[self.rows, self.columns] = values
        return table

    @property
    def repeats(self) -> int:
        """Number K of columns in the table of answers: the most answers to one question."""
        return self.shape[1]

    @property
    def asked(self) -> BoolArray | None:
        """(n, K) True where there is an answer, None if there is one everywhere."""
        there: BoolArray = self.fill(np.ones(len(self.rows), dtype=np.bool_), False)
        return None if there.all() else there
