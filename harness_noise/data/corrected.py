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
        """Return the correction for n questions, with this one's values in these rows and unknown elsewhere."""
        out = blank(type(self), n)
        put(out, rows, self)
        return out

    @abstractmethod
    def contrast(self, each: Sequence[Any], coefficients: Sequence[float]) -> Correction:
        """Return the correction of Σ coefficient × mean over runs, such as A − B. This object is the first run's."""

    @abstractmethod
    def moments(self, m: Any, design: Any) -> Any:
        """Return mean and variance of one corrected mean, from the moments of its values."""

    @abstractmethod
    def codes(self, design: Any) -> dict[str, bool]:
        """Return {diagnostic code: True if the corrected mean has it}."""

    @abstractmethod
    def n_clusters(self, design: Any) -> int:
        """Return the number of clusters from which the correction is estimated."""

    @abstractmethod
    def scores(self) -> FloatArray:
        """Return one flat array of all raw scores, of judge and people, from which the corrected values are made."""

    @abstractmethod
    def within_range(self) -> tuple[IntArray, FloatArray]:
        """Return (rows, values) of the raw scores, which lie in the metric's range unlike corrected ones."""

    @abstractmethod
    def fields(self, m: Any, design: Any) -> dict[str, Any]:
        """Return the result row's fields {name: value} that describe the correction."""


def stack_corrections(parts: Sequence[Correction | None]) -> Correction | None:
    """Stack the corrections of several tasks. None if no task has one. Refuse if only some have.

    Raises:
        InputError: some of them are not.
    """
    corrected = [part for part in parts if part is not None]
    if corrected and len(corrected) < len(parts):
        raise InputError(corrected[0].one_task)
    return stacked(corrected) if corrected else None
