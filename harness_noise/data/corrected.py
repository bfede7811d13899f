"""What the core asks of a correction of scores, which an extra makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arrays import FloatArray, IntArray, blank, put, stacked
from ..errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Correction(ABC):
    """Columns of n questions whose corrected values `Scores.values` are: their mean is the corrected mean."""

    n_answers: IntArray
    """(n,) answers that were scored."""
    estimand: ClassVar[str]
    """The subject of a corrected row."""
    one_sided: ClassVar[str]
    """The refusal of a contrast of a corrected run and one that is not."""
    one_task: ClassVar[str]
    """The refusal of a group of tasks of which only some are corrected."""

    def spread(self, rows: IntArray, n: int) -> Correction:
        """Return columns for n questions of which these are the ones in `rows`. All others are unknown."""
        out = blank(type(self), n)
        put(out, rows, self)
        return out

    @abstractmethod
    def contrast(self, each: Sequence[Any], coefficients: Sequence[float]) -> Correction:
        """Return the columns of Σ a_r of several corrected runs on the same questions, of which this is the first."""

    @abstractmethod
    def moments(self, m: Any, plan: Any) -> Any:
        """Return the moments of one corrected mean, from those of its values."""

    @abstractmethod
    def codes(self, plan: Any) -> dict[str, bool]:
        """Return diagnostic → True if a corrected mean has it."""

    @abstractmethod
    def n_clusters(self, plan: Any) -> int:
        """Return the clusters from which the correction is known."""

    @abstractmethod
    def scores(self) -> FloatArray:
        """Return every score that the correction is made of, which corrected values are not."""

    @abstractmethod
    def within_range(self) -> tuple[IntArray, FloatArray]:
        """Return rows and values of them that lie in the metric's range, which corrected values may leave."""

    @abstractmethod
    def fields(self, m: Any, plan: Any) -> dict[str, Any]:
        """Return {field: value} of a row that tells of the correction."""


def stack_corrections(parts: Sequence[Correction | None]) -> Correction | None:
    """Return the columns of several tasks stacked, None if none is corrected.

    Raises:
        InputError: some of them are not.
    """
    corrected = [part for part in parts if part is not None]
    if corrected and len(corrected) < len(parts):
        raise InputError(corrected[0].one_task)
    return stacked(corrected) if corrected else None
