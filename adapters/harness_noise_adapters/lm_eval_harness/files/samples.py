"""lm-eval's samples files, streamed: one line at a time, and only the fields that are needed decoded.

A line is one document under one filter. It begins with the document; prompts and answers, which make up
most of its bytes, stand between it and the hashes. All of that is skipped unless somebody wants it, and
the texts of the questions are read in a second pass when they are first asked for (`Documents`). What is
kept of a question is packed: its hashes and its scores.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..scoring.choices import Log
from .columns import Column
from .index import Index
from .lines import _ADDRESS, _BULK, Row, _Item, _rounded, _whole, rows
from .native_block import CLUSTER, SCORES
from .questions import Documents, _doc_hash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]

NATIVE = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
     "prompt_hash", "target_hash", SCORES)
)  # fmt: skip
"""Keys of a row that are not metrics; CLUSTER is one unless a metric has that name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the reader has to know about a task before it reads."""

    task: str
    filters: tuple[str, ...] = ("none",)
    """In the order in which lm-eval applied them; for old files, whose rows do not name theirs."""
    effective: int = 0
    """Number of documents, where it is known."""
    repeats: int = 0
    """Answers per question that the configuration asked for; 0 if unknown."""
    media: bool = False
    """Images or sound: the doc_hash holds a memory address and identifies nothing."""
    cluster: Callable[[Mapping[str, Any]], str] | None = None
    key: Callable[[Mapping[str, Any]], str] | None = None
    """A field that the user chose to identify a question."""
    raw: frozenset[str] = frozenset()
    """Metrics whose values are kept as they are."""
    choices: bool = False
    """Whether the log-likelihoods of a question's choices are wanted."""
    doubled: bool = False
    """Whether each choice was asked without its context, too."""
    brier: bool = False
    """Whether lm-eval's brier_score is to be made again from the log-likelihoods of the choices."""


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
    logs: dict[str, Log] = field(default_factory=dict)
    """Filter → the choices of each question, where they are wanted."""


class Scan:
    """One pass over a samples file: tells which document and which filter each line is.

    The reader, the exporter and the rescoring walk the file with it and so agree on the numbers.
    """

    def __init__(self, path: Path, wanted: Wanted, *, whole: bool = False, documents: bool = False) -> None:
        self.path, self.wanted, self.whole = path, wanted, whole
        self.documents = documents or wanted.cluster is not None or wanted.key is not None
        """Whether each row has its document."""
        self.index = Index()
        self.media = wanted.media
        """Whether a document holds an object that is identified by its memory address."""

    def __iter__(self) -> Iterator[tuple[int, bytes, Row, int, str, bool]]:
        """Line number, line, row (its bulk only with `whole`), document, filter, new."""
        wanted, find = self.wanted, self.index.find
        filters, n = wanted.filters, wanted.effective
        exact = self.whole or wanted.cluster is not None or wanted.key is not None or bool(wanted.raw)
        past: dict[str, int] = {}
        likelihoods = wanted.choices or wanted.brier
        lines = rows(self.path, whole=self.whole, documents=self.documents, choices=likelihoods)
        for position, (number, line, row, end) in enumerate(lines):
            key: Any = row.get("doc_hash")
            hashed = type(key) is str
            if (exact and _rounded(row)) or (not hashed and _rounded(row.get("doc"))):
                row = _whole(line, json.loads, self.path, number)
            if not hashed:
                key = _doc_hash(row.get("doc"))
            scorer = row.get("filter")
            if type(scorer) is not str:
                if n:
                    block = position // n
                else:
                    block = past[key] = past.get(key, -1) + 1
                scorer = filters[block % len(filters)]
            document, new = find(key, scorer)
            if (new or self.whole) and line.find(b">", 0, end) >= 0:
                bulk = line.find(_BULK, 0, end)  # also of a line that was decoded whole: an answer may be anything
                self.media |= _ADDRESS.search(line, 0, end if bulk < 0 else bulk) is not None
            yield number, line, row, document, scorer, new


def metrics_of(row: Row) -> list[str]:
    """The names of the metrics of a row."""
    names = row.get("metrics")
    if type(names) is list:
        return [name for name in names if type(name) is str]
    return [name for name in row if name not in NATIVE and name != CLUSTER]


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
