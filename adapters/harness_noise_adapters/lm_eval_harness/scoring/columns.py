"""The values of one metric under one filter, as they come from rows of a file or of a live run."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness_noise.arrays import BoolArray, FloatArray
from harness_noise.data.scores import check_grid


@dataclass(slots=True)
class Column:
    """The values of one metric under one filter, in file order."""

    values: array[float] = field(default_factory=lambda: array("d"))
    """The scores, row after row; NaN where one is no number."""
    rows: array[int] = field(default_factory=lambda: array("i"))
    """The document of each row."""
    counts: array[int] = field(default_factory=lambda: array("i"))
    """How many scores each row has."""
    own: array[float] = field(default_factory=lambda: array("d"))
    """The values that lm-eval itself aggregates, one for each row; NaN where they are no numbers."""
    raw: list[tuple[Any, list[Any]]] | None = None
    """Row → lm-eval's own value and those per repeat, whatever they are; None where nobody wants them."""
    kinds: set[str] = field(default_factory=set)
    """number, missing, text, numeral (a number or truth value as text), other."""
    dropped: float | None = None
    """The score of questions to which the metric does not apply; those without a score of lm-eval's are then such
    questions, too. None where the metric applies to all."""

    def add(self, document: int, own: Any, repeats: Sequence[Any] | None) -> None:
        """One row: the number of its document, lm-eval's own value, and the scores per repeat where there are some."""
        kind, value = ("number", own) if type(own) is float else scalar(own)
        if self.raw is not None:
            self.raw.append((own, list(repeats or (own,))))
        if repeats:
            self._extend(repeats)
        else:
            self.kinds.add(kind)
            self.values.append(value)
        self.rows.append(document)
        self.counts.append(len(repeats or (own,)))
        self.own.append(value)

    def _extend(self, repeats: Sequence[Any]) -> None:
        try:
            self.values += array("d", repeats)
            self.kinds.add("number")
        except (TypeError, OverflowError):
            scalars = list(map(scalar, repeats))
            self.kinds.update(kind for kind, _ in scalars)
            self.values.extend(value for _, value in scalars)

    def own_mean(self) -> float | None:
        """The mean of lm-eval's own values; None where there is none."""
        own = [value for value in self.own if value == value != self.dropped]
        return sum(own) / len(own) if own else None

    def own_values(self, n: int) -> list[float | None]:
        """What lm-eval aggregates, by document."""
        out: list[float | None] = [None] * n
        for row, value in zip(self.rows, self.own, strict=True):
            out[row] = value if value == value != self.dropped else None
        return out

    def raw_values(self, n: int) -> tuple[list[list[Any]], list[Any]]:
        """By document, what `raw` holds: the values per repeat, None where there is none, and lm-eval's own."""
        rows = self.raw or ()
        K = max((len(repeats) for _, repeats in rows), default=1)
        raw: list[list[Any]] = [[None] * K for _ in range(n)]
        own: list[Any] = [None] * n
        for document, (single, repeats) in zip(self.rows, rows, strict=True):
            raw[document], own[document] = repeats, single
        return raw, own

    def matrix(self, n: int) -> tuple[FloatArray, BoolArray]:
        """(n, K) values, NaN where there is none; and which of them were asked for.

        A document that has no row for the metric was asked for every repeat, unless values are dropped. The values of
        a regular column are not copied: nobody may write into them.

        Raises:
            InputError: nearly every question lacks nearly every repeat.
        """
        values, asked = self._matrix(n)
        if self.dropped is None:
            return values, asked
        own = np.asarray(self.own)
        applies = np.zeros((n, 1), dtype=np.bool_)
        applies[np.asarray(self.rows)[~np.isnan(own) & (own != self.dropped)]] = True
        return np.where(applies, values, np.nan), asked & applies

    def _matrix(self, n: int) -> tuple[FloatArray, BoolArray]:
        rows, counts = np.asarray(self.rows), np.asarray(self.counts)
        K = int(counts.max(initial=1))
        if len(rows) == n > 0 and (counts == K).all() and (rows == np.arange(n)).all():
            table = np.frombuffer(self.values).reshape(n, K)
            table.flags.writeable = False
            return table, np.broadcast_to(np.True_, table.shape)
        check_grid(n, K, len(self.values), "the samples file")
        out = np.full((n, K), np.nan)
        repeat = np.arange(len(self.values)) - np.repeat(np.cumsum(counts) - counts, counts)
        out[np.repeat(rows, counts), repeat] = np.asarray(self.values)
        asked = np.ones(out.shape, dtype=np.bool_)
        asked[rows] = np.arange(K) < counts[:, None]
        return out, asked


def scalar(value: Any) -> tuple[str, float]:
    """What kind of value a metric has on a document, and its number (NaN where it is none)."""
    if getattr(value, "shape", None) == ():  # a number of numpy's, as a live run has them
        value = value.item()
    if isinstance(value, (bool, int, float)):
        try:
            number = float(value)
        except OverflowError:
            return "other", float("nan")
        return ("missing" if number != number else "number"), number
    if value is None:
        return "missing", float("nan")
    if isinstance(value, str):  # numpy scalars reach old files as text
        try:
            return "numeral", {"True": 1.0, "False": 0.0}[value] if value in ("True", "False") else float(value)
        except ValueError:
            return "text", float("nan")
    return "other", float("nan")
