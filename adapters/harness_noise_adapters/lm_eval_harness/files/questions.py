"""The questions of a samples file: keys, clusters, texts."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.clusters import MissingFieldError, OuterFields
from harness_noise.data.fields import FieldReader
from harness_noise.data.questions import occurrences
from harness_noise.errors import FinalError

from ..scoring.choices import Log
from .documents import Documents, _Complete, _complete, _doc
from .lines import Row, _Item, stamp
from .native_block import CLUSTER
from .samples import Samples, _Scores
from .wanted import Scan, Wanted, metrics_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]


_SHARED = 5000
_MANY = 1 << 30


class _Questions:
    """What is known of each question so far."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self.wanted, self.stamp = path, wanted, stamp(path)
        self.n = 0
        self.targets, self.prompts = _Complete(), _Complete()
        self.named: list[str] = []
        """By the field that the user chose."""
        self.carried: list[str | None] | None = None
        """Cluster labels; None while no question has one."""
        self.outer = OuterFields()
        """Which fields contain the clusters that the user named."""
        self.doc_ids: array[int] | None = None
        """None while they count from 0."""
        self.fields = FieldReader(wanted.fields, wanted.task) if wanted.fields else None
        self.shared: dict[str, str] = {}
        """Labels that come again and again share their memory; of others there are too many to keep."""

    def add(self, block: Sequence[_Item]) -> None:
        numbers = [number for number, _, _, _, new in block if new]
        rows = [row for _, row, _, _, new in block if new]
        self._add_ids([row.get("doc_id") for row in rows])
        self.targets.extend([row.get("target_hash") for row in rows])
        self.prompts.extend([row.get("prompt_hash") for row in rows])
        docs = list(map(_doc, rows))
        if self.carried is not None or self.wanted.cluster is not None or any(CLUSTER in row for row in rows):
            self._add_labels(numbers, rows, docs)
        if self.wanted.key is not None:
            for number, doc in zip(numbers, docs, strict=True):
                self.named.append(_label(self.wanted.key, doc, f"{self.path}, line {number}: question"))
        if self.fields is not None:
            for doc in docs:
                self.fields.add(doc)
        self.n += len(rows)

    def _add_ids(self, ids: Sequence[Any]) -> None:
        counted = range(self.n, self.n + len(ids))
        if self.doc_ids is None and ids != list(counted):
            self.doc_ids = array("q", range(self.n))
        if self.doc_ids is not None:
            self.doc_ids.extend(
                doc_id if isinstance(doc_id, int) and abs(doc_id) < 2**62 else document
                for doc_id, document in zip(ids, counted, strict=True)
            )

    def _add_labels(self, numbers: Sequence[int], rows: Sequence[Row], docs: Sequence[Mapping[str, Any]]) -> None:
        if self.carried is None:
            self.carried = [None] * self.n
        for number, row, doc in zip(numbers, rows, docs, strict=True):
            if self.wanted.cluster is not None:
                label: Any = _label(self.wanted.cluster, doc, f"{self.path}, line {number}: cluster")
                self.outer.add(str(len(self.carried)), label, doc)
            else:
                label = None if CLUSTER in metrics_of(row) else row.get(CLUSTER)
            self.carried.append(None if label is None else _shared(str(label), self.shared))

    def samples(self, scan: Scan, scores: _Scores, answers: int, logs: dict[str, Log]) -> Samples:
        doc_ids: Sequence[int] = range(self.n) if self.doc_ids is None else self.doc_ids
        targets = self.targets.items
        distinct: int | None = scan.index.distinct()
        hashes = scan.index.unique_keys()
        kind, keys = "doc_hash", hashes
        if self.wanted.key is not None:
            kind, keys, targets, distinct = "question", occurrences(self.named), None, None
        elif scan.media and targets is not None:
            named = [f"{doc_id}/{target}" for doc_id, target in zip(doc_ids, targets, strict=True)]
            kind, keys, distinct = "doc_id", occurrences(named), len(set(named))
        wanted = Wanted(self.wanted.task, self.wanted.filters, self.wanted.effective)
        bare = 0 if self.carried is None else self.carried.count(None)
        return Samples(
            keys=keys,
            kind=kind,
            targets=targets,
            prompts=self.prompts.items,
            documents=Documents(self.path, wanted, self.stamp, hashes, distinct),
            doc_ids=doc_ids,
            clusters=_complete(self.carried),
            outer=self.outer.found(),
            fields=None if self.fields is None else self.fields.fields(),
            unlabelled=bare if bare < self.n else 0,
            columns=scores.columns,
            answers=answers,
            scored=scores.repeated,
            stamp=self.stamp,
            logs=logs,
        )


def _label(label: Callable[[Mapping[str, Any]], str], doc: Mapping[str, Any], where: str) -> str:
    try:
        return label(doc)
    except MissingFieldError as error:
        fields = ", ".join(error.fields) or "(none)"
        raise FinalError(f"{where} field {error.spec!r} is not in the document; it has {fields}") from None


def _answers(row: Row) -> int:
    """How many answers a row holds for its question; padding can only lengthen the last."""
    resps = row.get("resps")
    lengths = [len(item) for item in resps if isinstance(item, list)] if isinstance(resps, list) else []
    return max(1, min(lengths, default=1))


def _shared(text: str, shared: dict[str, str]) -> str:
    return shared.setdefault(text, text) if len(shared) < _SHARED else shared.get(text, text)
