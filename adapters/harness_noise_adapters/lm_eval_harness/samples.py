"""lm-eval's samples files, streamed: one line at a time, and only the fields that are needed decoded.

A line is one document under one filter. Prompts and answers, which make up most of its bytes, stand
between the document and the hashes and are skipped unless somebody wants them.
"""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.clusters import MissingFieldError
from harness_noise.errors import InputError
from harness_noise.scores import content_hash, occurrences

from .choices import Log
from .inject import CLUSTER, SCORES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness_noise.scores import FloatArray

    BoolArray = NDArray[np.bool_]

NATIVE = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash",
     "prompt_hash", "target_hash", SCORES)
)  # fmt: skip
"""Keys of a row that are not metrics; CLUSTER is one unless a metric has that name."""

QUESTION = (
    "question", "problem", "query", "input", "prompt", "instruction", "goal", "ctx", "sentence", "text", "premise"
)  # fmt: skip
CONTEXT = ("passage", "context", "article", "story", "paragraph", "body", "support")

_SKIPPED = frozenset(("doc_id", "doc", "target", "arguments", "resps", "filtered_resps"))
"""What stands before the tail of a line; a file that has more there is decoded whole."""
_BULK = b', "arguments": {"gen_args_0": '
_ENDS = (b', "filter": "', b', "doc_hash": "')
_CHOICES = (b', "filtered_resps": ',)
"""What the tail of a line starts with; the second where the choices' log-likelihoods are wanted."""
_ADDRESS = re.compile(rb" at 0x[0-9a-fA-F]+>")
_TEXT = 80
"""Characters of a question that are shown."""
_BUFFER = 1 << 18
"""Bytes; lines are longer than the usual 8 kB, and then reading them costs four times as much."""
_SHARED = 5000
_MANY = 1 << 30

Row = dict[str, Any]


@cache
def _decoder() -> Callable[[bytes], Any]:
    """orjson where it is installed, with the standard library for what it refuses (NaN)."""
    try:
        import orjson
    except ImportError:
        return json.loads

    def loads(data: bytes) -> Any:
        try:
            return orjson.loads(data)
        except ValueError:
            return json.loads(data)

    return loads


def rows(
    path: Path, *, whole: bool = False, ends: Sequence[bytes] = _ENDS
) -> Iterator[tuple[int, bytes, Row, bytes | None]]:
    """Each line of a samples file: its number, its bytes, its fields, and its head.

    The head is the undecoded JSON of `doc_id`, `doc` and `target`, for `open_head`; None where the
    fields hold them already, as they do everywhere with `whole`. `ends` are keys that come after the
    bulk of a line.

    Raises:
        InputError: a file that cannot be read, or a line that is not a JSON object.
    """
    loads, first = _decoder(), True
    try:
        with path.open("rb", buffering=_BUFFER) as file:
            for number, line in enumerate(file, 1):
                if line.isspace():
                    continue
                parts = None if whole else _split(line, loads, ends)
                if parts and first:
                    whole = not _whole(line, loads, path, number).keys() <= parts[0].keys() | _SKIPPED
                    parts = None if whole else parts
                first = False
                yield (number, line, *parts) if parts else (number, line, _whole(line, loads, path, number), None)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _split(line: bytes, loads: Callable[[bytes], Any], ends: Sequence[bytes]) -> tuple[Row, bytes] | None:
    """Cut the bulk out of a line that is written as lm-eval writes it; None for any other.

    An unescaped quote cannot stand inside a JSON string, so what is found is a key; one of a nested
    object leaves unbalanced braces behind, which do not parse.
    """
    start = line.find(_BULK)
    if start < 0:
        return None
    stop = next((found for end in ends if (found := line.rfind(end, start)) >= 0), -1)
    if stop < 0:
        return None
    try:
        row = loads(b"{" + line[stop + 2 :])
    except (ValueError, RecursionError):
        return None
    return (row, line[:start] + b"}") if "doc_hash" in row else None


def _whole(line: bytes, loads: Callable[[bytes], Any], path: Path, number: int) -> Row:
    try:
        row = loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}, line {number}: not JSON ({error}); the file is damaged, truncated or still being written"
        ) from None
    if not isinstance(row, dict) or not {"doc_id", "doc", "doc_hash"} & row.keys():
        raise InputError(f"{path}, line {number}: not a sample of lm-eval (no doc_id, doc or doc_hash)")
    return row


def open_head(row: Row, head: bytes | None, path: Path, number: int) -> None:
    """Decode the document of a row into it."""
    if head is None:
        return
    try:
        row.update(_decoder()(head))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {number}: not JSON ({error}); the file is damaged") from None


@dataclass(slots=True)
class Column:
    """The values of one metric under one filter, in file order."""

    rows: array[int] = field(default_factory=lambda: array("l"))
    counts: array[int] = field(default_factory=lambda: array("l"))
    values: array[float] = field(default_factory=lambda: array("d"))
    own: array[float] = field(default_factory=lambda: array("d"))
    """The values that lm-eval itself aggregates, one for each row; NaN where they are no numbers."""
    raw: list[tuple[Any, list[Any]]] | None = None
    """Row → lm-eval's own value and those per repeat, whatever they are; None where nobody wants them."""
    kinds: set[str] = field(default_factory=set)
    """number, missing, text, numeral (a number or truth value as text), other."""

    def add(self, row: int, own: Any, repeats: Sequence[Any] | None) -> None:
        """One document: lm-eval's own value, and the scores per repeat where there are some."""
        kind, value = ("number", own) if type(own) is float else scalar(own)
        self.own.append(value)
        self.rows.append(row)
        if self.raw is not None:
            self.raw.append((own, list(repeats or (own,))))
        if not repeats:
            self.kinds.add(kind)
            self.counts.append(1)
            self.values.append(value)
            return
        self.counts.append(len(repeats))
        try:
            self.values += array("d", repeats)
            self.kinds.add("number")
        except (TypeError, OverflowError):
            for repeat in repeats:
                kind, value = scalar(repeat)
                self.kinds.add(kind)
                self.values.append(value)

    def own_mean(self) -> float | None:
        found = [value for value in self.own if value == value]
        return sum(found) / len(found) if found else None

    def own_values(self, n: int) -> list[float | None]:
        """What lm-eval aggregates, by document."""
        out: list[float | None] = [None] * n
        for row, value in zip(self.rows, self.own, strict=True):
            out[row] = value if value == value else None
        return out

    def matrix(self, n: int) -> tuple[FloatArray, BoolArray]:
        """(n, K) values, NaN where there is none; and which of them were asked for.

        A document that has no row for the metric was asked for every repeat.
        """
        import numpy as np

        counts, rows = np.asarray(self.counts), np.asarray(self.rows)
        out = np.full((n, int(counts.max(initial=1))), np.nan)
        repeat = np.arange(len(self.values)) - np.repeat(np.cumsum(counts) - counts, counts)
        out[np.repeat(rows, counts), repeat] = np.asarray(self.values)
        asked = np.ones(out.shape, dtype=np.bool_)
        asked[rows] = np.arange(out.shape[1]) < counts[:, None]
        return out, asked


def scalar(value: Any) -> tuple[str, float]:
    """What kind of value a metric has on a document, and its number (NaN where it is none)."""
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


class Index:
    """Numbers the documents of a file: (doc_hash, occurrence), apart for each filter."""

    def __init__(self) -> None:
        self.where: dict[str | tuple[str, int], int] = {}
        self.seen: dict[str, array[int]] = {}
        """Filter → how often each document, counted at its first occurrence, has come."""

    def find(self, key: str, scorer: str) -> tuple[int, bool]:
        """The document's number, and whether it is new. Order within a filter tells duplicates apart."""
        known = len(self.where)
        number = self.where.setdefault(key, known)
        count = self.seen.get(scorer)
        if count is None:
            count = self.seen[scorer] = array("l")
        if number >= len(count):
            count.extend([0] * (number + 1 - len(count)))
        count[number] += 1
        if count[number] == 1:
            return number, number == known
        number = self.where.setdefault((key, count[number]), known)
        return number, number == known


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


@dataclass(slots=True)
class Samples:
    """A samples file in columns; per-question sequences have length n."""

    keys: tuple[str, ...]
    kind: str
    inputs: tuple[str, ...] | None
    targets: tuple[str, ...] | None
    prompts: tuple[str, ...] | None
    texts: tuple[str, ...]
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
    logs: dict[str, Log] = field(default_factory=dict)
    """Filter → the choices of each question, where they are wanted."""


class Scan:
    """One pass over a samples file: tells which document and which filter each line is.

    The reader, the exporter and the rescoring walk the file with it and so agree on the numbers.
    """

    def __init__(self, path: Path, wanted: Wanted, *, whole: bool = False) -> None:
        self.path, self.wanted, self.whole = path, wanted, whole
        self.index = Index()
        self.media = wanted.media
        """Whether a document holds an object that is identified by its memory address."""

    def __iter__(self) -> Iterator[tuple[int, bytes, Row, int, str, bool]]:
        """Line number, line, row (with `doc` if it is new or `whole`), document, filter, new."""
        filters, n = self.wanted.filters, self.wanted.effective
        past: dict[str, int] = {}
        for position, (number, line, row, head) in enumerate(
            rows(self.path, whole=self.whole, ends=_CHOICES if self.wanted.choices else _ENDS)
        ):
            key = row.get("doc_hash")
            if not isinstance(key, str):
                open_head(row, head, self.path, number)
                head, key = None, _doc_hash(row.get("doc"))
            scorer = row.get("filter")
            if not isinstance(scorer, str):
                if n:
                    block = position // n
                else:
                    block = past[key] = past.get(key, -1) + 1
                scorer = filters[block % len(filters)]
            document, new = self.index.find(key, scorer)
            if new or self.whole:
                open_head(row, head, self.path, number)
                row["doc_hash"] = key
                text = line if head is None else head
                self.media |= b" at 0x" in text and _ADDRESS.search(text) is not None
            yield number, line, row, document, scorer, new


def metrics_of(row: Row) -> list[str]:
    """The names of the metrics of a row."""
    names = row.get("metrics")
    if isinstance(names, list):
        return [str(name) for name in names]
    return [name for name in row if name not in NATIVE and name != CLUSTER]


def read_samples(path: Path, wanted: Wanted) -> Samples:
    """Read a samples file.

    Raises:
        InputError: the file is empty or damaged, or a document lacks the field of a SPEC.
    """
    keys: list[str] = []
    inputs: list[str | None] = []
    targets: list[str | None] = []
    prompts: list[str | None] = []
    texts: list[str] = []
    named: list[str] = []
    carried: list[str | None] = []
    doc_ids = array("q")
    columns: dict[tuple[str, str], Column] = {}
    logs: dict[str, Log] = {}
    scored, answers = False, 1
    shared: dict[str, str] = {}
    """Texts that come again and again share their memory; of others there are too many to keep."""
    scan = Scan(path, wanted)
    for number, line, row, document, scorer, new in scan:
        if not keys:
            answers = min(_answers(_whole(line, _decoder(), path, number)), wanted.repeats or _MANY)
        names = metrics_of(row)
        repeats = row.get(SCORES)
        scores = repeats if isinstance(repeats, dict) else {}
        scored |= repeats is scores
        for metric in dict.fromkeys((*names, *scores)) if scores else names:
            found = scores.get(metric)
            column = columns.get((metric, scorer))
            if column is None:
                column = columns[metric, scorer] = Column(raw=[] if metric in wanted.raw else None)
            column.add(document, row.get(metric), found if isinstance(found, list) else None)
        if wanted.choices:
            log = logs.setdefault(scorer, Log(wanted.doubled))
            full = _whole(line, _decoder(), path, number) if log.by_text or "target" not in row else row
            log.add(document, full, full.get("arguments"))
        if not new:
            continue
        doc = row.get("doc")
        doc = doc if isinstance(doc, dict) else {"doc": doc}
        keys.append(row["doc_hash"])
        doc_id = row.get("doc_id")
        doc_ids.append(doc_id if isinstance(doc_id, int) and abs(doc_id) < 2**62 else document)
        targets.append(_shared(row.get("target_hash"), shared))
        prompts.append(_shared(row.get("prompt_hash"), shared))
        text, excerpt = _texts(doc)
        inputs.append(None if text is None else content_hash(text))
        texts.append(excerpt)
        label = row.get(CLUSTER) if CLUSTER not in names else None
        if wanted.cluster is not None:
            label = _label(wanted.cluster, doc, f"{path}, line {number}: cluster")
        if wanted.key is not None:
            named.append(_label(wanted.key, doc, f"{path}, line {number}: question"))
        carried.append(None if label is None else _shared(str(label), shared))
    if not keys:
        raise InputError(f"{path}: the file is empty; the run may have stopped before it wrote its samples")
    kind = "doc_hash"
    if wanted.key is not None:
        kind, keys = "question", named
    elif scan.media and None not in targets:
        kind, keys = "doc_id", [f"{doc_id}/{target}" for doc_id, target in zip(doc_ids, targets, strict=True)]
    return Samples(
        keys=occurrences(keys),
        kind=kind,
        inputs=None if wanted.key is not None else _verifying(inputs, keys),
        targets=None if wanted.key is not None else _complete(targets),
        prompts=_complete(prompts),
        texts=tuple(texts),
        doc_ids=doc_ids,
        clusters=_complete(carried),
        unlabelled=bare if (bare := carried.count(None)) < len(carried) else 0,
        columns=columns,
        answers=answers,
        scored=scored,
        logs=logs,
    )


def _label(label: Callable[[Mapping[str, Any]], str], doc: Mapping[str, Any], where: str) -> str:
    try:
        return label(doc)
    except MissingFieldError as error:
        fields = ", ".join(error.fields) or "(none)"
        raise InputError(f"{where} field {error.spec!r} is not in the document; it has {fields}") from None


def _complete(items: Sequence[str | None]) -> tuple[str, ...] | None:
    """The items, if none is missing."""
    found = tuple(item for item in items if item is not None)
    return found if len(found) == len(items) else None


def _verifying(inputs: Sequence[str | None], keys: Sequence[str]) -> tuple[str, ...] | None:
    """The hashes of the questions' texts, if they tell the documents apart."""
    found = _complete(inputs)
    return found if found is not None and len(set(found)) == len(set(keys)) else None


def _answers(row: Row) -> int:
    """How many answers a row holds for its question; padding can only lengthen the last."""
    resps = row.get("resps")
    lengths = [len(item) for item in resps if isinstance(item, list)] if isinstance(resps, list) else []
    return max(1, min(lengths, default=1))


def _shared(value: Any, shared: dict[str, str]) -> str | None:
    """A text; None for anything else."""
    if not isinstance(value, str):
        return None
    return shared.setdefault(value, value) if len(shared) < _SHARED else shared.get(value, value)


def _doc_hash(doc: Any) -> str:
    """What lm-eval calls the doc_hash, for files that do not hold it."""
    text = json.dumps(doc, indent=2, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def question_text(doc: Mapping[str, Any]) -> str | None:
    """The text that identifies a question to another harness: its question-like field (the first of
    QUESTION that is text), after its passage (the first of CONTEXT) where the document has one.

    It never comes from the prompt, which depends on the chat template and the few-shot examples. A
    document without such a field has none.
    """
    return _texts(doc)[0]


def _texts(doc: Mapping[str, Any]) -> tuple[str | None, str]:
    """The text that identifies a question, and a short one to show to a person."""
    question, context = _first(doc, QUESTION), _first(doc, CONTEXT)
    shown = next(filter(_is_text, doc.values()), "") if question is None else question
    excerpt = " ".join(shown[: 2 * _TEXT].split())
    if len(excerpt) > _TEXT:
        excerpt = excerpt[: _TEXT - 1] + "…"
    return question if question is None or context is None else f"{context}\n{question}", excerpt


def _first(doc: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of the fields that is a text."""
    if doc.keys().isdisjoint(names):  # most documents have no context
        return None
    return next(filter(_is_text, map(doc.get, names)), None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and not value.isspace()
