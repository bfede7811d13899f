"""What is wanted of a samples file, and what is known of its rows while it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .index import Index
from .lines import _ADDRESS, _BULK, Row, _doc_hash, _rounded, _whole, rows
from .native_block import CLUSTER, SCORES

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
    fields: tuple[str, ...] = ()
    """SPECs of what is to be known of each question."""
    raw: frozenset[str] = frozenset()
    """Metrics whose values are kept as they are."""
    choices: bool = False
    """Whether the log-likelihoods of a question's choices are wanted."""
    doubled: bool = False
    """Whether each choice was asked without its context, too."""
    brier: bool = False
    """Whether lm-eval's brier_score is to be made again from the log-likelihoods of the choices."""


class Scan:
    """One pass over a samples file: tells which document and which filter each line is.

    The reader, the exporter and the rescoring walk the file with it and so agree on the numbers.
    """

    def __init__(self, path: Path, wanted: Wanted, *, whole: bool = False, documents: bool = False) -> None:
        self.path, self.wanted, self.whole = path, wanted, whole
        looked_at = wanted.cluster is not None or wanted.key is not None or bool(wanted.fields)
        self.exact = whole or looked_at or bool(wanted.raw)
        self.documents = documents or looked_at
        """Whether each row has its document."""
        self.index = Index()
        self.media = wanted.media
        """Whether a document holds an object that is identified by its memory address."""

    def __iter__(self) -> Iterator[tuple[int, bytes, Row, int, str, bool]]:
        """Line number, line, row (its bulk only with `whole`), document, filter, new."""
        wanted, find = self.wanted, self.index.find
        filters, n = wanted.filters, wanted.effective
        past: dict[str, int] = {}
        likelihoods = wanted.choices or wanted.brier
        lines = rows(self.path, whole=self.whole, documents=self.documents, choices=likelihoods)
        for position, (number, line, row, end) in enumerate(lines):
            key: Any = row.get("doc_hash")
            hashed = type(key) is str
            if (self.exact and _rounded(row)) or (not hashed and _rounded(row.get("doc"))):
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
