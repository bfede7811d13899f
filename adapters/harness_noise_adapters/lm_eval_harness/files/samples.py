"""lm-eval's samples files, streamed: one line at a time, and only the fields that are needed decoded.

A line is one document under one filter. It begins with the document; prompts and answers, which make up
most of its bytes, stand between it and the hashes. All of that is skipped unless somebody wants it, and
the texts of the questions are read in a second pass when they are first asked for (`Documents`). What is
kept of a question is packed: its hashes and its scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness_noise.data.fields import Fields

from ..scoring.choices import Log
from ..scoring.columns import Column
from .documents import Documents
from .lines import Row, _Item
from .native_block import SCORES
from .wanted import Wanted, metrics_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]


@dataclass(slots=True)
class Samples:
    """A samples file in columns; per-question sequences have length n."""

    keys: Sequence[str]
    kind: str
    targets: Sequence[str] | None
    prompts: Sequence[str] | None
    documents: Documents
    doc_ids: Sequence[int]
    clusters: tuple[str, ...] | None
    """By the SPEC; else those that the rows carry."""
    unlabelled: int
    """Questions without a cluster though others have one."""
    columns: dict[tuple[str, str], Column]
    """(metric, filter) → values."""
    answers: int
    """Answers that the file holds for each question, K."""
    scored: bool
    """Whether the rows carry their scores per repeat."""
    stamp: tuple[float, float]
    """Of the file, see `stamp`."""
    outer: Mapping[str, Mapping[str, str]] | None = None
    """As in `Scores`."""
    fields: Fields | None = None
    """Of the questions, where some are wanted."""
    logs: dict[str, Log] = field(default_factory=dict)
    """Filter → the choices of each question, where they are wanted."""


class _Scores:
    """The scores of the rows so far. Some hundred rows at once take half the time of one after the other."""

    def __init__(self, wanted: Wanted) -> None:
        self.raw = wanted.raw
        self.columns: dict[tuple[str, str], Column] = {}
        self.repeated = False
        """Whether a row carries its scores per repeat."""

    def add(self, block: Sequence[_Item]) -> None:
        if not self._added(block):
            for _, row, document, scorer, _ in block:
                self._add(row, document, scorer)

    def _added(self, block: Sequence[_Item]) -> bool:
        """Add the rows metric by metric, if all have the same filter and the same metrics."""
        rows, filters = [item[1] for item in block], {item[3] for item in block}
        if len(filters) != 1 or not rows[0].get("metrics"):
            return False
        names, repeats = rows[0]["metrics"], [row.get(SCORES) for row in rows]
        if type(names) is not list or any(row.get("metrics") != names for row in rows):
            return False
        metrics, kinds = dict.fromkeys(metrics_of(rows[0])), set(map(type, repeats))
        scored = kinds == {dict}
        if not (kinds == {type(None)} or (scored and all(item.keys() <= metrics.keys() for item in repeats if item))):
            return False
        documents: Sequence[int] = [item[2] for item in block]
        if documents == list(steps := range(documents[0], documents[0] + len(documents))):
            documents = steps
        self.repeated |= scored
        for metric in metrics:
            found = [item and item.get(metric) for item in repeats]
            self._column(metric, *filters).extend(documents, [row.get(metric) for row in rows], found)
        return True

    def _add(self, row: Row, document: int, scorer: str) -> None:
        repeats = row.get(SCORES)
        if type(repeats) is dict:
            self.repeated = True
        else:
            repeats = {}
        for metric in dict.fromkeys((*metrics_of(row), *repeats)):
            found = repeats.get(metric)
            self._column(metric, scorer).add(document, row.get(metric), found if type(found) is list else None)

    def _column(self, metric: str, scorer: str) -> Column:
        column = self.columns.get((metric, scorer))
        if column is None:
            column = self.columns[metric, scorer] = Column(raw=[] if metric in self.raw else None)
        return column
