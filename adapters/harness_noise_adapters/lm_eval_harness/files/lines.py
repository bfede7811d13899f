"""The lines of a samples file, each cut to what is needed of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness_noise.errors import InputError
from harness_noise.io.paths import POINTER, load_line, refuse_pointer

from ...json_stream import JsonStream
from .outputs import DAMAGED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]


LONGEST = 1 << 27
"""Bytes of a line, 128 MiB: ten times the longest that a harness is known to write. A longer one is refused."""
_BULK = b', "arguments": {"gen_args_0": '
_SKIPPED = frozenset(("arguments", "resps", "filtered_resps"))
"""What the bulk of a line holds; a file that has more there is decoded whole."""
_HEAD = frozenset(("doc", "target"))
"""What stands before the bulk, beside the doc_id."""
_ENDS = (b', "filter": "', b', "doc_hash": "')
_RESPONSES = (b', "filtered_resps": ',)
"""What the tail of a line starts with; the second where the choices' log-likelihoods are wanted."""
_ADDRESS = re.compile(rb" at 0x[0-9a-fA-F]+>")
_BUFFER = 1 << 20
"""Bytes; lines are longer than the usual 8 kB, and then reading them costs four times as much."""
_BLOCK = 128
"""Rows that are worked on at once, and how many bytes of lines at most: a document may be a book."""
Row = dict[str, Any]
_Item = tuple[int, Row, int, str, bool]
"""Number of the line, row, number of the document, filter, whether the document is new."""


@cache
def decoder() -> Callable[[bytes], Any]:
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
    loads, number = decoder(), 0
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
        raise InputError(f"{path}: not JSON that can be read ({error}){DAMAGED}") from None


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
    row = load_line(path, number, line, DAMAGED, loads)
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


_CONTEXT_0, _CHOICE = _BULK + b'{"arg_0": ', b', "arg_1": '
_BEGINNING, _DOC, _TARGET, _INNER = b'{"doc_id": ', b', "doc": ', b', "target": ', b'"doc_id": '
_HALF = (1 << 32) - 1
QUESTION = (
    "question", "problem", "query", "input", "prompt", "instruction", "goal", "ctx", "sentence", "text", "premise"
)  # fmt: skip
CONTEXT = ("passage", "context", "article", "story", "paragraph", "body", "support")
_CONTEXT = frozenset(CONTEXT)


def _doc_hash(doc: Any) -> str:
    """What lm-eval calls the doc_hash, for files that do not hold it."""
    text = json.dumps(doc, indent=2, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
