"""One pass over a samples file: its lines, each cut to what is needed of it, and the document that each belongs to.

A line is one document under one filter. It begins with the document and ends with the hashes. Prompts and answers, most
of its bytes, are in between and are skipped unless they are wanted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from harness_noise.data.questions import Hashes, occurrences
from harness_noise.errors import InputError
from harness_noise.io.paths import BUFFER, POINTER, load_line, once, opened, refuse_pointer
from harness_noise.io.paths import loads as checked

from ...records import JsonStream, in_blocks, loads
from .outputs import DAMAGED
from .results import CLUSTER, SCORES

LONGEST = 1 << 27
"""Bytes of a line, 128 MiB: ten times the longest that a harness is known to write. A longer one is refused."""
_BLOCK = 1 << 18
"""Bytes of lines that are read at once. More would not stay in the processor's cache."""
_BULK = b', "arguments": {"gen_args_0": '
_SKIPPED = frozenset(("arguments", "resps", "filtered_resps"))
"""Fields in the bulk of a line. A file with other fields there is decoded whole."""
_FILTER, _HASH, _METRICS = b', "filter": "', b', "doc_hash": "', b', "metrics": '
_ANSWERS = b', "resps": '
_RESPONSES = b', "filtered_resps": '
"""The start of a line's tail if the choices' log-likelihoods are wanted."""
_ADDRESS = re.compile(rb" at 0x[0-9a-fA-F]+>")
Row = dict[str, Any]
Shape = tuple[tuple[str, ...], int]
"""The names of a line and the colons in its tail: one of them tells that a name of the tail stands twice."""
Sample = tuple[int, bytes, Row, int, str, bool]
"""Line number, line, row (its bulk only with `whole`), document, filter, and whether the document is new."""


def blocks(
    path: Path,
    *,
    whole: bool = False,
    choices: bool = False,
    names: frozenset[bytes] | None = None,
    raw: frozenset[str] = frozenset(),
) -> Iterator[list[tuple[int, bytes, Row, int]]]:
    """Yield blocks of (line number, bytes, fields, end of the document) of a samples file. Refuse one that changes.

    The fields are without the bulk of the line (arguments and answers) unless `whole`; with `choices`, some
    of the bulk is there too (filtered_resps). No name stands twice. If only the scores and some `names` matter, another
    one before the scores may, of the document or the target. A row with a metric of `raw` is looked at whole in any
    case.

    Raises:
        InputError: a file that cannot be read or that changes meanwhile, or a line that is not a JSON
            object, has a name twice, or is longer than LONGEST.
    """
    first, cut = 1, partial(_cut, choices=choices, shapes=None if names is None else set[Shape](), names=names, raw=raw)
    try:
        with opened(path) as file:
            before = stamp(path, file)
            for lines in in_blocks(_sample_lines(path, file), _BLOCK):
                if first == 1:
                    whole = _begins_otherwise(lines[0], path, choices) or whole
                if block := list(_decoded(path, first, lines, whole, cut)):
                    yield block
                first += len(lines)
            if stamp(path, file) != before:
                raise changed(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _begins_otherwise(line: bytes, path: Path, choices: bool) -> bool:
    """Return True if the bulk of a first line has unknown fields, so lines must be decoded whole. Refuse a pointer.

    Raises:
        InputError: the file is a pointer to another one.
    """
    if line.startswith(POINTER):
        refuse_pointer(path)
    row = _cut(line, choices)[0]
    return row is not None and not whole_row(line, path, 1).keys() <= row.keys() | _SKIPPED


def _decoded(
    path: Path, first: int, lines: Sequence[bytes], whole: bool, cut: Callable[[bytes], tuple[Row | None, int]]
) -> Iterator[tuple[int, bytes, Row, int]]:
    for number, line in enumerate(lines, first):
        row, end = (None, 0) if whole else cut(line)
        if row is None:
            if line.isspace():
                continue
            if len(line) == LONGEST and not line.endswith(b"\n"):
                raise InputError(
                    f"{path}, line {number}: longer than {LONGEST} bytes, which no harness writes. The file is "
                    "damaged or is no samples file"
                )
            row, end = whole_row(line, path, number), len(line)
        yield number, line, row, end


def _sample_lines(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a samples file, also of one that is a single JSON array (lm-eval ≤ 0.4.2)."""
    is_array = file.read(64).lstrip().startswith(b"[")
    file.seek(0)
    return _of_array(path, file) if is_array else iter(partial(file.readline, LONGEST), b"")


def _of_array(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    stream = JsonStream(iter(partial(file.read, BUFFER), b""), once)
    try:
        for row in stream.items():
            yield json.dumps(row).encode()
        stream.end()
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON that can be read ({error}){DAMAGED}") from None


def stamp(path: Path, file: IO[bytes] | None = None) -> tuple[float, float]:
    """Return (size, time of change) of a file, to notice later if it changed. (−1, −1) without.

    Of an open `file`, those of what is being read, which a new file of the same name does not change.
    """
    try:
        status = path.stat() if file is None else os.fstat(file.fileno())
    except (OSError, AttributeError):
        return (-1, -1) if file is None else stamp(path)  # a file that is not on a disk of this machine
    return status.st_size, status.st_mtime


def changed(path: Path) -> InputError:
    return InputError(
        f"{path}: the file changed while it was read. Wait until the run has written it, then read it again"
    )


def _cut(
    line: bytes,
    choices: bool,
    shapes: set[Shape] | None = None,
    names: frozenset[bytes] | None = None,
    raw: frozenset[str] = frozenset(),
) -> tuple[Row | None, int]:
    """Parse a samples line without its bulky fields. Return fields and the bulk's start, (None, 0) if unusual.

    None for a line that lm-eval did not write so.

    Names that stand twice are looked for in every line, or with `shapes` in those that are unlike all lines before:
    what it finds then is a name of the tail, where the scores are; and in those that have one of `names` twice. It
    never reads the bulk.

    An unescaped quote cannot stand inside a JSON string, so what is found is a key; one of a nested
    object leaves unbalanced braces behind, which do not parse.
    """
    start = line.find(_BULK)
    if start < 0:
        return None, 0
    stop = line.rfind(_RESPONSES if choices else _FILTER, start)
    if stop < 0 and not choices:
        stop = line.rfind(_HASH, start)
        if line.find(_METRICS, start, stop) >= 0:  # without a filter they are in the bulk
            return None, 0
    if stop < 0:
        return None, 0
    try:
        text = line[:start] + line[stop:]
        if shapes is None:
            row = checked(text)
        else:
            row = loads(text)
            shape = tuple(row), line.count(b":", stop)
            if shape not in shapes or (raw and not raw.isdisjoint(row)) or (names and _may_occur_twice(text, names)):
                row = checked(text)
                shapes.add(shape)
    except (TypeError, ValueError, RecursionError):
        return None, 0
    complete = type(row) is dict and "doc_hash" in row and ("doc" in row or type(row["doc_hash"]) is str)
    return (row, start) if complete else (None, 0)


def _may_occur_twice(text: bytes, names: frozenset[bytes]) -> bool:
    """Return True if one of these names might occur twice in a line, or be written with escapes."""
    for name in names:  # a generator would take as long as the search
        if text.count(name) > 1:
            return True
    return b"\\" in text and b"\\u00" in text  # as any character of a name could be written


exactly = partial(json.loads, object_pairs_hook=once)
"""Decodes JSON with whole numbers as they were written, of which orjson makes the nearest float."""


def whole_row(line: bytes, path: Path, number: int, decode: Callable[[bytes], Any] = checked) -> Row:
    row = load_line(path, number, line, DAMAGED, decode)
    if not isinstance(row, dict) or not {"doc_id", "doc", "doc_hash"} & row.keys():
        raise InputError(f"{path}, line {number}: not a sample of lm-eval (no doc_id, doc or doc_hash)")
    return row


_ROUNDED = 2**63
"""Size from which orjson may have rounded a whole number."""


_DEEPER = frozenset((float, dict, list))


def may_be_rounded(value: Any) -> bool:
    """Return True if a value may contain an integer beyond 64 bits, which orjson would round."""
    kind = type(value)
    if kind is float:
        return bool(abs(value) >= _ROUNDED)
    if kind is not dict and kind is not list:
        return False
    items = value.values() if kind is dict else value
    if _DEEPER.isdisjoint(map(type, items)):
        return False
    try:
        for item in items:
            kind = type(item)  # most are texts, and a call for each would take longer than decoding them
            if kind is float:
                if abs(item) >= _ROUNDED:
                    return True
            elif (kind is dict or kind is list) and may_be_rounded(item):
                return True
    except RecursionError:
        return True
    return False


def doc_hash_of(doc: Any) -> str:
    """Compute a document's doc_hash as lm-eval does, for files without it."""
    text = json.dumps(doc, indent=2, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Index:
    """Numbers the documents of a file: (doc_hash, occurrence), apart for each filter."""

    def __init__(self) -> None:
        self.keys = Hashes()
        """The doc_hash of each document. Another occurrence has that of the first."""
        self._numbers: dict[int | tuple[str, int], int] = {}
        """Python's hash of a key (from the second occurrence on, of key and occurrence) → the document.

        A hash needs a third of the memory. If two have one hash, the entry is key and occurrence themselves."""
        self._again: dict[int, int] = {}
        """Document → which occurrence of its key it is, from the second."""
        self._seen: dict[str, array[int]] = {}
        """Filter → how often the key of each document, by its first occurrence, has come."""

    def find(self, key: str, scorer: str) -> tuple[int, bool]:
        """Return (document number, True if new). A hash that comes again under one filter is another document."""
        new, first = len(self.keys), self._number(key, 1)
        seen = self._seen.setdefault(scorer, array("I"))
        seen.extend([0] * (first + 1 - len(seen)))
        seen[first] += 1
        document = first if seen[first] == 1 else self._number(key, seen[first])
        return document, document == new

    def find_all(self, keys: Sequence[str], scorers: Sequence[str]) -> list[tuple[int, bool]]:
        """Return (number, True if new) for many hashes, as `find` would one after the other."""
        n, hashes, single = len(self.keys), list(map(hash, keys)), len(set(scorers)) == 1
        if not single or len(set(hashes)) < len(hashes) or not self._numbers.keys().isdisjoint(hashes):
            return list(map(self.find, keys, scorers))
        new = range(n, n + len(keys))
        self._numbers.update(zip(hashes, new, strict=True))
        self.keys.extend(keys)
        seen = self._seen.setdefault(scorers[0], array("I"))
        seen.extend([0] * (n - len(seen)) + [1] * len(new))
        return [(document, True) for document in new]

    def _number(self, key: str, occurrence: int) -> int:
        new = len(self.keys)
        document = self._numbers.setdefault(hash(key if occurrence == 1 else (key, occurrence)), new)
        if document < new and (self.keys[document], self._again.get(document, 1)) != (key, occurrence):
            document = self._numbers.setdefault((key, occurrence), new)
        if document == new:
            self.keys.append(key)
            if occurrence > 1:
                self._again[document] = occurrence
        return document

    def distinct(self) -> int:
        """Return the number of documents with different hashes."""
        return len(self.keys) - len(self._again)

    def unique_keys(self) -> Sequence[str]:
        """Return (n,) hashes of the documents, repeated ones made unique by "#n". Ends the indexing."""
        if self._again and any("#" in key for key in self.keys.odd()):
            return occurrences(self.keys)
        for document, occurrence in self._again.items():
            self.keys.replace(document, f"{self.keys[document]}#{occurrence}")
        return self.keys


_HASHES = ("doc_hash", "prompt_hash", "target_hash")
_ASKED = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
NATIVE = frozenset((*_ASKED, *_HASHES, SCORES, "input", "input_media", "token_counts"))
"""Keys of a row that are not metrics, the last three lmms-eval's. CLUSTER is one unless a metric has that name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that the reader has to know about a task before it reads."""

    task: str
    filters: tuple[str, ...] = ("none",)
    """The filters in the order in which lm-eval applied them, for old files whose rows do not name theirs."""
    effective: int = 0
    """Number of documents, where it is known."""
    repeats: int = 0
    """Answers per question that the configuration asked for, 0 if unknown."""
    media: bool = False
    """Images or sound: the doc_hash holds a memory address and identifies nothing."""
    cluster: Callable[[Mapping[str, Any]], str] | None = None
    key: Callable[[Mapping[str, Any]], str] | None = None
    """A field that the user chose to identify a question."""
    fields: tuple[str, ...] = ()
    """SPECs of what is to be known of each question."""
    names: frozenset[bytes] | None = None
    """The names, in quotes, by which a document is asked for all that, None if any may be."""
    raw: frozenset[str] = frozenset()
    """Metrics whose values are kept as they are."""
    choices: bool = False
    """True to read the log-likelihoods of a question's choices."""
    doubled: bool = False
    """True if each choice was also asked without its context."""
    brier: bool = False
    """True to compute lm-eval's brier_score again from the log-likelihoods of the choices."""


class Scan:
    """One pass over a samples file, with the document and the filter of each line.

    The reader and the exporter walk the file with it and so agree on the numbers.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path, self.wanted = path, wanted
        self.exact = wanted.cluster is not None or wanted.key is not None or bool(wanted.fields)
        """The fields of the documents are wanted."""
        self._names = None if wanted.names is None else [name[1:-1].decode() for name in wanted.names]
        self.index = Index()
        self.media = wanted.media
        """True if a document holds an object that is identified by its memory address."""
        self._past: dict[str, int] = {}
        """Key → how many rows of it that do not name their filter have come before."""
        self._ids: dict[int | str, int] = {}
        """The doc_id of a row that does not name its filter → how many such rows have come."""

    def __iter__(self) -> Iterator[Sample]:
        return chain.from_iterable(self.blocks())

    def blocks(self) -> Iterator[list[Sample]]:
        """Yield the file's rows in blocks, with document number and filter. Refuse damaged or changed files."""
        likelihoods, position = self.wanted.choices or self.wanted.brier, 0
        raw, names = self.wanted.raw, self.wanted.names if self.exact else frozenset[bytes]()
        for block in blocks(self.path, choices=likelihoods, names=names, raw=raw):
            keys: list[Any] = [row.get("doc_hash") for _, _, row, _ in block]
            hashed = set(map(type, keys)) == {str}
            if not hashed or (raw and not all(raw.isdisjoint(row) for _, _, row, _ in block)):
                block = [(number, line, self._exact(number, line, row), end) for number, line, row, end in block]
            elif self.exact and may_be_rounded(self._asked(block)):
                for i, (number, line, _, end) in enumerate(block):
                    if may_be_rounded(self._asked(block[i : i + 1])):
                        block[i] = number, line, whole_row(line, self.path, number, exactly), end
            if not hashed:
                keys = [
                    key if type(key) is str else doc_hash_of(entry[2].get("doc"))
                    for key, entry in zip(keys, block, strict=True)
                ]
            scorers: list[Any] = [row.get("filter") for _, _, row, _ in block]
            if set(map(type, scorers)) != {str}:
                named = enumerate(zip(scorers, keys, block, strict=True), position)
                scorers = [
                    name if type(name) is str else self._unnamed(place, key, *sample[:3:2])
                    for place, (name, key, sample) in named
                ]
            position += len(block)
            documents = self.index.find_all(keys, scorers)
            for (_, line, _, end), (_, new) in zip(block, documents, strict=True):
                if new and line.find(b">", 0, end) >= 0:
                    bulk = line.find(_BULK, 0, end)  # also of a line that was decoded whole: an answer may be anything
                    self.media |= _ADDRESS.search(line, 0, end if bulk < 0 else bulk) is not None
            yield [
                (number, line, row, document, scorer, new)
                for (number, line, row, _), (document, new), scorer in zip(block, documents, scorers, strict=True)
            ]

    def _asked(self, block: Sequence[tuple[int, bytes, Row, int]]) -> list[Any]:
        """Return, in one flat list, the values in rows' documents that SPECs read, or the whole documents."""
        docs: list[Any] = [row.get("doc") for _, _, row, _ in block]
        if self._names is None or set(map(type, docs)) != {dict}:
            return docs
        return [doc[name] for name in self._names for doc in docs if name in doc]

    def _exact(self, number: int, line: bytes, row: Row) -> Row:
        """Return the row, parsed again with exact integers if they matter and may have been rounded."""
        held = [row[name] for name in self.wanted.raw if name in row]  # any other score is a float anyhow
        if self.exact or type(row.get("doc_hash")) is not str:
            held.append(row.get("doc"))
        if may_be_rounded(held):
            return whole_row(line, self.path, number, exactly)
        return row

    def _unnamed(self, position: int, key: str, number: int, row: Row) -> str:
        """Return the filter of a row that names none, by its position in the file. Refuse more rows than filters.

        Raises:
            InputError: the document has more rows than there are filters, so that nothing tells whose a row is.
        """
        filters, n, doc_id = self.wanted.filters, self.wanted.effective, row.get("doc_id")
        if isinstance(doc_id, (int, str)):
            rows = self._ids[doc_id] = self._ids.get(doc_id, 0) + 1
            if rows > len(filters):
                raise InputError(
                    f"{self.path}, line {number}: document {doc_id} has {rows} rows that do not name their filter, as "
                    "lm-eval wrote them before 0.4.6, and there is no results file that names so many filters: put the "
                    "results file of this run next to it, or keep the rows of one filter"
                )
        if n:
            block = position // n
        else:
            block = self._past[key] = self._past.get(key, -1) + 1
        return filters[block % len(filters)]


INVALID = "[invalid]"
"""The result of lm-eval's regular expressions for an answer that they do not match."""


def unread(line: bytes, row: Row, n: int) -> list[bool]:
    """Return for each of n answers True if it is empty or was not parsed. [] if texts are not there."""
    if "resps" not in row:
        stop = line.rfind(_FILTER)
        start = line.rfind(_ANSWERS, 0, stop)  # from the end: the prompt is long
        if start < 0 or stop < 0 or not line.startswith(b'[["', start + len(_ANSWERS)):  # of a choice it is [[[
            return []
        row = loads(b"{" + line[start + 2 : stop] + b"}")
    each = _texts_of_list(row.get("resps")), _texts_of_list(row.get("filtered_resps"))
    known = [texts for texts in each if len(texts) == n]
    if not any(map(_has_blank, known)):
        return [False] * n if known else []
    blank = [[not text or text == INVALID or text.isspace() for text in texts] for texts in known]
    return list(map(any, zip(*blank, strict=True)))


def _has_blank(texts: list[str]) -> bool:
    """Return True if one of these texts is empty, blank, or says that nothing was parsed. Faster than text by text."""
    return not all(texts) or INVALID in texts or True in map(str.isspace, texts)


def _texts_of_list(value: Any) -> list[str]:
    """Return the texts of a list, or of a list in a list. [] if there is anything else."""
    inner = value[0] if type(value) is list and len(value) == 1 and type(value[0]) is list else value
    return inner if type(inner) is list and set(map(type, inner)) == {str} else []


def metrics_of(row: Row) -> list[str]:
    """Return the names of a samples row's metrics: those in `metrics`, else all keys that are not lm-eval's."""
    names = row.get("metrics")
    if type(names) is list:
        return [name for name in names if type(name) is str]
    return [name for name in row if name not in NATIVE and name != CLUSTER]
