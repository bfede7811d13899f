"""What a correction of scores needs to know of the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..arrays import BoolArray, FloatArray, IntArray, blank, put, stacked
from ..errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedColumns:
    """Everything that a correction by labels needs of n questions, besides their corrected values.

    See `stats.corrected`.
    """

    judge: FloatArray
    """(n,) the judge's mean score of the question's answers."""
    label: FloatArray
    """(n,) the mean label, NaN without a label."""
    error: FloatArray
    """(n,) the label less its prediction from the judge's score, by a fit without its fold, NaN without a label."""
    residual: FloatArray
    """(n,) what the label adds to the corrected value."""
    alone: FloatArray
    """(n,) values whose mean is that of only the labels."""
    extra: FloatArray
    """(n,) variance of the value that the few errors seen do not show."""
    n_labels: IntArray
    """(n,) labels, of all people and answers."""
    n_answers: IntArray
    """(n,) answers that the judge scored."""
    corrected: FloatArray
    """(n,) values whose mean is the corrected mean. It is the row's, unless the row uses only the labels."""
    corrected_residual: FloatArray
    """(n,) `residual` of these."""
    corrected_extra: FloatArray
    """(n,) `extra` of these."""
    alone_only: BoolArray
    """(n,) whether the row is of the labels alone, because too few of them are failures, or passes."""

    def spread(self, rows: IntArray, n: int) -> CorrectedColumns:
        """Return the labels of n questions, of which these are some. Of the others nothing is known."""
        out = blank(CorrectedColumns, n)
        put(out, rows, self)
        return out

    @classmethod
    def stacked(cls, parts: Sequence[CorrectedColumns | None]) -> CorrectedColumns | None:
        """Return the labels of several tasks stacked, None if none is corrected.

        Raises:
            InputError: labels correct some of them only.
        """
        corrected = [part for part in parts if part is not None]
        if corrected and len(corrected) < len(parts):
            raise InputError("labels correct the scores of one side only: both need labels, or neither")
        return stacked(corrected) if corrected else None
