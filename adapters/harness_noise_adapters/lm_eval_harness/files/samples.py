"""lm-eval's samples files, streamed: one line at a time, and only the fields that are needed decoded.

A line is one document under one filter. It begins with the document; prompts and answers, which make up
most of its bytes, stand between it and the hashes. All of that is skipped unless somebody wants it, and
the texts of the questions are read in a second pass when they are first asked for (`Documents`). What is
kept of a question is packed: its hashes and its scores.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness_noise.data.clusters import MissingFieldError
from harness_noise.data.scores import check_grid, content_hash, occurrences
from harness_noise.data.string_store import Hashes, Lines
from harness_noise.errors import FinalError, InputError
from harness_noise.io.paths import POINTER, refuse_pointer

from ...json_stream import JsonStream
from ..scoring.choices import BRIER, Log, brier_score
from .native_block import CLUSTER, SCORES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness_noise.data.scores import FloatArray

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
_CONTEXT = frozenset(CONTEXT)

LONGEST = 1 << 27
"""Bytes of a line, 128 MiB: ten times the longest that a harness is known to write. A longer one is refused."""

_BULK = b', "arguments": {"gen_args_0": '
_CONTEXT_0, _CHOICE = _BULK + b'{"arg_0": ', b', "arg_1": '
_SKIPPED = frozenset(("arguments", "resps", "filtered_resps"))
"""What the bulk of a line holds; a file that has more there is decoded whole."""
_BEGINNING, _DOC, _TARGET, _INNER = b'{"doc_id": ', b', "doc": ', b', "target": ', b'"doc_id": '
_HEAD = frozenset(("doc", "target"))
"""What stands before the bulk, beside the doc_id."""
_ENDS = (b', "filter": "', b', "doc_hash": "')
_RESPONSES = (b', "filtered_resps": ',)
"""What the tail of a line starts with; the second where the choices' log-likelihoods are wanted."""
_ADDRESS = re.compile(rb" at 0x[0-9a-fA-F]+>")
_TEXT = 80
"""Characters of a question that are shown."""
_BUFFER = 1 << 20
"""Bytes; lines are longer than the usual 8 kB, and then reading them costs four times as much."""
_BLOCK = 128
"""Rows that are worked on at once, and how many bytes of lines at most: a document may be a book."""
_HELD = 1 << 22
_SHARED = 5000
_MANY = 1 << 30
_HALF = (1 << 32) - 1

Row = dict[str, Any]
_Item = tuple[int, Row, int, str, bool]
"""Number of the line, row, number of the document, filter, whether the document is new."""


@cache
def _decoder() -> Callable[[bytes], Any]:
    """orjson where it is installed, with the standard library for what it refuses (NaN, half a surrogate pair)."""
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
    path: Path, *, whole: bool = False, documents: bool = True, choices: bool = False
) -> Iterator[tuple[int, bytes, Row, int]]:
    """Each line of a samples file: its number, its bytes, its fields, and where its document ends in the bytes.

    The fields are without the bulk of the line (arguments and answers) unless `whole`; with `choices`, some
    of the bulk is there too (filtered_resps). Without `documents`, a row may lack its `doc`, and its
    `target` unless it is wanted for the `choices`.

    Raises:
        InputError: a file that cannot be read or that changes meanwhile, or a line that is not a JSON
            object or longer than LONGEST.
    """
    loads, number = _decoder(), 0
    try:
        with path.open("rb", buffering=_BUFFER) as file:
            before = _stamp(path, file)
            for line in _lines(path, file):
                number += 1
                if number == 1 and line.startswith(POINTER):
                    refuse_pointer(path)
                if len(line) == LONGEST and not line.endswith(b"\n"):
                    raise InputError(
                        f"{path}, line {number}: longer than {LONGEST} bytes, which no harness writes; the file is "
                        "damaged or is no samples file"
                    )
                if line.isspace():
                    continue
                row, end = (None, 0) if whole else _cut(line, loads, documents, choices)
                if row is not None and number == 1:
                    skipped = _SKIPPED if documents else _SKIPPED | _HEAD
                    whole = not _whole(line, loads, path, number).keys() <= row.keys() | skipped
                    row = None if whole else row
                if row is None:
                    row, end = _whole(line, loads, path, number), len(line)
                yield number, line, row, end
            if _stamp(path, file) != before:
                raise changed(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _lines(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file; of one array, as lm-eval 0.4.0 to 0.4.2 wrote them, the lines that it would write now."""
    is_array = file.read(64).lstrip().startswith(b"[")
    file.seek(0)
    return _of_array(path, file) if is_array else iter(partial(file.readline, LONGEST), b"")


def _of_array(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    stream = JsonStream(iter(partial(file.read, _BUFFER), b""))
    try:
        for row in stream.items():
            yield json.dumps(row).encode()
        stream.end()
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not JSON that can be read ({error}); the file is damaged, truncated or still being written"
        ) from None


def _stamp(path: Path, file: IO[bytes]) -> tuple[float, float]:
    """Size and time of what is being read, which a new file of the same name does not change."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, AttributeError):  # a file that is not on a disk of this machine
        return stamp(path)
    return found.st_size, found.st_mtime


def stamp(path: Path) -> tuple[float, float]:
    """Size and time of a file, which tell whether it is still the one that was read; −1 if there is none."""
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime


def changed(path: Path) -> InputError:
    return InputError(
        f"{path}: the file changed while it was read; wait until the run has written it, then read it again"
    )


def _cut(
    line: bytes, loads: Callable[[bytes], Any], documents: bool = True, choices: bool = False
) -> tuple[Row | None, int]:
    """What a line holds but for its bulk, and where that begins; None for a line that lm-eval did not write so.

    An unescaped quote cannot stand inside a JSON string, so what is found is a key; one of a nested
    object leaves unbalanced braces behind, which do not parse.
    """
    start = line.find(_BULK)
    if start >= 0:
        for end in _RESPONSES if choices else _ENDS:
            stop = line.rfind(end, start)
            if stop < 0:
                continue
            try:
                row = loads((line[:start] if documents else _head(line, start, choices)) + line[stop:])
            except (ValueError, RecursionError):
                break
            if type(row) is dict and "doc_hash" in row and ("doc" in row or type(row["doc_hash"]) is str):
                return row, start
            break
    return None, 0


def _head(line: bytes, start: int, target: bool) -> bytes:
    """The part of a line before `start` without the document, unless that holds samples of lm-eval itself.

    Of a document that is left out nothing is known, not even whether it is JSON: no score depends on it.
    """
    stop = line.find(_DOC, len(_BEGINNING), len(_BEGINNING) + 30)
    if stop < 0 or not line.startswith(_BEGINNING) or line.find(_INNER, stop, start) >= 0:
        return line[:start]
    if not target:
        return line[:stop]
    position = line.rfind(_TARGET, stop, start)
    return line[:start] if position < 0 else line[:stop] + line[position:start]


def _choices(line: bytes, loads: Callable[[bytes], Any]) -> tuple[str, ...] | None:
    """The texts of the choices of a line that asks for all in one context; None for any other line."""
    start = line.find(_CONTEXT_0) + len(_CONTEXT_0)
    stop = line.find(_CHOICE, start)
    context = line[start : stop + len(_CHOICE)]
    if start < len(_CONTEXT_0) or stop < 0:
        return None
    found: list[bytes] = []
    position = start
    while line.startswith(context, position):
        position += len(context)
        following = b'}, "gen_args_%d": {"arg_0": ' % (len(found) + 1)
        end = line.find(following, position)
        found.append(line[position:end] if end >= 0 else line[position : line.find(b'}}, "resps": ', position)])
        if end < 0:
            break
        position = end + len(following)
    else:
        return None
    try:
        texts = loads(b"[" + b",".join(found) + b"]")
    except (ValueError, RecursionError):
        return None
    if len(texts) != len(found) or set(map(type, texts)) != {str}:
        return None
    return tuple(texts)


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


def _rounded(value: Any) -> bool:
    """Whether a value may hold a whole number of more than 64 bits, of which orjson makes the nearest float."""
    if isinstance(value, float):
        return abs(value) >= 2**63
    try:
        return isinstance(value, (dict, list)) and any(
            map(_rounded, value.values() if isinstance(value, dict) else value)
        )
    except RecursionError:
        return True


@dataclass(slots=True)
class Column:
    """The values of one metric under one filter, in file order."""

    values: array[float] = field(default_factory=lambda: array("d"))
    """The scores, row after row; NaN where one is no number."""
    size: int = 0
    """Rows."""
    width: int = 1
    """Scores of a row, while `uneven` is None."""
    uneven: Uneven | None = None
    """None as long as row i is document i, all rows have as many scores, and the first is lm-eval's own value."""
    raw: list[tuple[Any, list[Any]]] | None = None
    """Row → lm-eval's own value and those per repeat, whatever they are; None where nobody wants them."""
    kinds: set[str] = field(default_factory=set)
    """number, missing, text, numeral (a number or truth value as text), other."""

    def add(self, document: int, own: Any, repeats: Sequence[Any] | None) -> None:
        """One row: the number of its document, lm-eval's own value, and the scores per repeat where there are some."""
        kind, value = ("number", own) if type(own) is float else scalar(own)
        if self.raw is not None:
            self.raw.append((own, list(repeats or (own,))))
        if repeats:
            scores = self._scores(repeats)
        else:
            self.kinds.add(kind)
            scores = (value,)
        if self.uneven is None:
            if not self.size:
                self.width = len(scores)
            same = scores[0] == value or (scores[0] != scores[0] and value != value)
            if not (same and document == self.size and len(scores) == self.width):
                own_values = self.values[:: self.width]
                self.uneven = Uneven(array("l", range(self.size)), array("l", [self.width]) * self.size, own_values)
        if self.uneven is not None:
            self.uneven.rows.append(document)
            self.uneven.counts.append(len(scores))
            self.uneven.own.append(value)
        self.values.extend(scores)
        self.size += 1

    def extend(self, documents: Sequence[int], own: Sequence[Any], repeats: Sequence[Any]) -> None:
        """Many rows; at once where they are as they mostly are."""
        if not self._extended(documents, own, repeats):
            for document, value, found in zip(documents, own, repeats, strict=True):
                self.add(document, value, found if type(found) is list else None)

    def _extended(self, documents: Sequence[int], own: Sequence[Any], repeats: Sequence[Any]) -> bool:
        if self.uneven is not None or self.raw is not None or set(map(type, own)) != {float}:
            return False
        if documents != range(self.size, self.size + len(own)):
            return False
        kinds = set(map(type, repeats))
        if kinds == {list}:
            widths = set(map(len, repeats))
            if len(widths) > 1 or 0 in widths or [scores[0] for scores in repeats] != own:
                return False
            try:
                values = array("d", chain.from_iterable(repeats))
            except (TypeError, OverflowError):
                return False
            width = widths.pop()
        elif kinds == {type(None)}:
            values, width = array("d", own), 1
        else:
            return False
        if self.size and width != self.width:
            return False
        self.kinds.add("number")
        self.width = width
        self.values += values
        self.size += len(own)
        return True

    def _scores(self, repeats: Sequence[Any]) -> Sequence[float]:
        try:
            found = array("d", repeats)
        except (TypeError, OverflowError):
            scalars = list(map(scalar, repeats))
            self.kinds.update(kind for kind, _ in scalars)
            return [value for _, value in scalars]
        self.kinds.add("number")
        return found

    @property
    def rows(self) -> Sequence[int]:
        """The document of each row."""
        return range(self.size) if self.uneven is None else self.uneven.rows

    @property
    def own(self) -> Sequence[float]:
        """The values that lm-eval itself aggregates, one for each row; NaN where they are no numbers."""
        if self.uneven is not None:
            return self.uneven.own
        return self.values if self.width == 1 else self.values[:: self.width]

    def own_mean(self) -> float | None:
        own = self.own
        if own and (total := sum(own)) == total:
            return total / len(own)
        found = sum(value == value for value in own)
        return sum(value for value in own if value == value) / found if found else None

    def own_values(self, n: int) -> list[float | None]:
        """What lm-eval aggregates, by document."""
        out: list[float | None] = [None] * n
        for row, value in zip(self.rows, self.own, strict=True):
            out[row] = value if value == value else None
        return out

    def matrix(self, n: int) -> tuple[FloatArray, BoolArray]:
        """(n, K) values, NaN where there is none; and which of them were asked for.

        A document that has no row for the metric was asked for every repeat. The values of a regular
        column are not copied: nobody may write into them.

        Raises:
            InputError: nearly every question lacks nearly every repeat.
        """
        import numpy as np

        if self.uneven is None and self.size == n > 0:
            found = np.frombuffer(self.values).reshape(n, self.width)
            found.flags.writeable = False
            return found, np.broadcast_to(np.True_, found.shape)
        rows = np.asarray(self.rows, dtype=np.intp)
        counts = np.full(self.size, self.width) if self.uneven is None else np.asarray(self.uneven.counts)
        K = int(counts.max(initial=1))
        check_grid(n, K, len(self.values), "the samples file")
        out = np.full((n, K), np.nan)
        repeat = np.arange(len(self.values)) - np.repeat(np.cumsum(counts) - counts, counts)
        out[np.repeat(rows, counts), repeat] = np.asarray(self.values)
        asked = np.ones(out.shape, dtype=np.bool_)
        asked[rows] = np.arange(out.shape[1]) < counts[:, None]
        return out, asked


@dataclass(slots=True)
class Uneven:
    """What a column has to know of each row that is not as regular as most are."""

    rows: array[int]
    """The row's document."""
    counts: array[int]
    """How many scores it has."""
    own: array[float]
    """The value that lm-eval itself aggregates; NaN where it is no number."""


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
    """Numbers the documents of a file: (doc_hash, occurrence), apart for each filter.

    A hash table with open addressing beside the packed keys; a dict of strings would take ten times the
    memory.
    """

    def __init__(self) -> None:
        self.keys = Hashes()
        """The doc_hash of each document; a further occurrence has that of the first."""
        self._hashes = array("I")
        """Half of Python's own hash of each key, which nobody who makes a file can foresee."""
        self._slots = array("i", [-1]) * 1024
        """Numbers of documents, at most half of the places taken."""
        self._seen: dict[str, bytearray] = {}
        """Filter → whether each document, by its first occurrence, has come."""
        self._again: dict[int, list[int]] = {}
        """First occurrence → the further ones."""
        self._past: dict[tuple[str, int], int] = {}
        """(filter, first occurrence) → how many of the further ones have come."""

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, key: str, scorer: str) -> tuple[int, bool]:
        """The document's number, and whether it is new. Order within a filter tells duplicates apart."""
        slots, known = self._slots, len(self._hashes)
        wanted = hash(key) & _HALF
        mask = len(slots) - 1
        slot = wanted & mask
        while (first := slots[slot]) >= 0:
            if self._hashes[first] == wanted and self.keys[first] == key:
                break
            slot = slot + 1 & mask
        else:
            slots[slot] = first = known
            self._append(key, wanted)
        seen = self._seen.get(scorer)
        if seen is None:
            seen = self._seen[scorer] = bytearray()
        if first == len(seen):
            seen.append(1)
            return first, first == known
        if first > len(seen):
            seen.extend(bytes(first + 1 - len(seen)))
        if not seen[first]:
            seen[first] = 1
            return first, first == known
        others = self._again.setdefault(first, [])
        past = self._past.get((scorer, first), 0)
        self._past[scorer, first] = past + 1
        if past == len(others):
            others.append(known)
            self._append(key, wanted)
        return others[past], others[past] == known

    def distinct(self) -> int:
        """How many different keys there are."""
        return len(self) - sum(map(len, self._again.values()))

    def unique_keys(self) -> Sequence[str]:
        """The keys, with the further occurrences numbered. It ends the numbering of documents."""
        if not self._again:
            return self.keys
        found = {number: f"{self.keys[first]}#{n}"
                 for first, others in self._again.items() for n, number in enumerate(others, 2)}  # fmt: skip
        if any("#" in key for key in self.keys.odd()):
            return occurrences(self.keys)
        for number, name in found.items():
            self.keys.replace(number, name)
        return self.keys

    def _append(self, key: str, hashed: int) -> None:
        self.keys.append(key)
        self._hashes.append(hashed)
        if 2 * len(self._hashes) <= len(self._slots):
            return
        self._slots = slots = array("i", [-1]) * (2 * len(self._slots))
        mask = len(slots) - 1
        further = {number for others in self._again.values() for number in others}
        for number, slot in enumerate(self._hashes):
            if number not in further:
                while slots[slot & mask] >= 0:
                    slot += 1
                slots[slot & mask] = number


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


def read_samples(path: Path, wanted: Wanted) -> Samples:
    """Read a samples file.

    Raises:
        InputError: the file is empty, damaged or still being written, or a document lacks the field of a SPEC.
    """
    scan = Scan(path, wanted)
    scores, questions = _Scores(wanted), _Questions(path, wanted)
    logs: dict[str, Log] = {}
    loads, answers = _decoder(), 0
    block: list[_Item] = []
    held = 0
    for number, line, row, document, scorer, new in scan:
        if not answers:
            answers = min(_answers(_whole(line, loads, path, number)), wanted.repeats or _MANY)
        if wanted.choices:
            log = logs.get(scorer)
            if log is None:
                log = logs[scorer] = Log(wanted.doubled)
            full = _whole(line, json.loads, path, number) if _rounded(row.get("target")) else row
            arguments = full.get("arguments")
            if log.by_text and arguments is None:
                arguments = _choices(line, loads) or _whole(line, loads, path, number).get("arguments")
            log.add(document, full, arguments)
        if wanted.brier and BRIER in row:
            row[BRIER] = brier_score(row, wanted.doubled)
        block.append((number, row, document, scorer, new))
        held += len(line)
        if len(block) == _BLOCK or held > _HELD:
            scores.add(block)
            questions.add(block)
            block, held = [], 0
    if not answers:
        raise InputError(f"{path}: the file is empty; the run may have stopped before it wrote its samples")
    if block:
        scores.add(block)
        questions.add(block)
    return questions.samples(scan, scores, answers, logs)


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
        self.doc_ids: array[int] | None = None
        """None while they count from 0."""
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
            unlabelled=bare if bare < self.n else 0,
            columns=scores.columns,
            answers=answers,
            scored=scores.repeated,
            stamp=self.stamp,
            logs=logs,
        )


@dataclass(frozen=True, slots=True)
class Documents:
    """The texts of a file's questions, in a pass of their own: most uses of a run do without them."""

    path: Path
    wanted: Wanted
    """As the file was read, without the SPECs, which need not be picklable."""
    stamp: tuple[float, float]
    """The file's, see `stamp`."""
    hashes: Sequence[str]
    """The documents' own, numbered where one comes again."""
    distinct: int | None
    """How many documents their texts have to tell apart, if they are to be matched by text; None: never."""

    def read(self) -> tuple[Hashes | None, Lines]:
        """The hash of each question's text, None where they do not tell the documents apart; and excerpts.

        Raises:
            InputError: the file is not the one any more that was read.
        """
        inputs, texts = _Complete(), Lines()
        scan = Scan(self.path, self.wanted, documents=True)
        if stamp(self.path) == self.stamp:
            for _, _, row, _, _, new in scan:
                if new:
                    text, excerpt = _texts(_doc(row))
                    inputs.extend([None if text is None else content_hash(text)])
                    texts.append(excerpt)
        if scan.index.unique_keys() != self.hashes:
            raise InputError(
                f"{self.path}: the file was changed, moved or deleted after its scores were read, or this process does "
                "not see it, and now the texts of its questions are needed to match them; read the run again"
            )
        found = inputs.items
        return (None if found is None or found.distinct() != self.distinct else found), texts


def _doc(row: Row) -> Mapping[str, Any]:
    """The document of a row, as an object whatever it is."""
    doc = row.get("doc")
    return doc if type(doc) is dict else {"doc": doc}


def _complete(items: Sequence[str | None] | None) -> tuple[str, ...] | None:
    """The items, if there are some and none is missing."""
    found = tuple(item for item in items or () if item is not None)
    return found if items is not None and len(found) == len(items) else None


class _Complete:
    """Hashes, as long as none is missing."""

    def __init__(self) -> None:
        self.items: Hashes | None = Hashes()

    def extend(self, items: Sequence[Any]) -> None:
        if not set(map(type, items)) <= {str}:
            self.items = None
        elif self.items is not None:
            self.items.extend(items)


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
    question = _first(doc, QUESTION)
    context = None if _CONTEXT.isdisjoint(doc) else _first(doc, CONTEXT)
    shown = (_first(doc, doc) or "") if question is None else question
    excerpt = shown[: _TEXT + 1]
    if not (excerpt.isprintable() and "  " not in excerpt and excerpt == excerpt.strip()):
        excerpt = " ".join(shown[: 2 * _TEXT].split())
    if len(excerpt) > _TEXT:
        excerpt = excerpt[: _TEXT - 1] + "…"
    return question if question is None or context is None else f"{context}\n{question}", excerpt


def _first(doc: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of the fields that is a text."""
    for name in names:
        value = doc.get(name)
        if type(value) is str and value and not value.isspace():
            return value
    return None
