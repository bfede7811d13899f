"""Tools of all readers of JSON: fast loading, fields that may be absent, scores as numbers, streams.

A stream is read item by item: the samples of a file need not all be in memory at once, and the text is never longer
than one item and a piece of the stream. Numbers, strings and constants are Python's, NaN and Infinity included,
because logs have them.
"""

from __future__ import annotations

import codecs
import gc
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any

from harness_noise.errors import InputError
from harness_noise.extras import words
from harness_noise.io.paths import load, opened
from harness_noise.io.paths import loads as checked

try:
    import orjson
except ImportError:
    loads: Callable[[bytes], Any] = json.loads
else:

    def loads(data: bytes) -> Any:
        """Decode JSON bytes, also what orjson refuses and the standard library reads, such as NaN."""
        try:
            return orjson.loads(data)
        except ValueError:
            return json.loads(data)


class ReadOnly:
    """An adapter of files that have no place for an error bar."""

    name: str
    instead = f"`harness-noise analyze {{path}} --format csv` prints them{words('no place')}"
    """Advice that replaces writing error bars into the harness's files."""

    def write(self, path: Path, *_: object) -> list[Path]:
        """Raise an error: files of this format have no place for error bars."""
        instead = self.instead.format(path=quote(str(path)))
        raise InputError(f"{path}: the files of {self.name} have no place for error bars: {instead}")


HEAD = 1 << 12
"""Bytes in which a file shows its format."""


def head(path: Path) -> bytes:
    """Return the first bytes of a file behind a byte order mark, to recognise its format, b"" if it cannot be read."""
    try:
        with opened(path, HEAD) as file:
            return file.read(HEAD).removeprefix(codecs.BOM_UTF8)
    except Exception:  # noqa: BLE001  of the libraries behind a URL; its reader says why it cannot be read
        return b""


def in_blocks(lines: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Yield lists of lines, each list with at least `size` bytes in all (the last may have fewer)."""
    block, length = [], 0
    for line in lines:
        block.append(line)
        length += len(line)
        if length >= size:
            yield block
            block, length = [], 0
    if block:
        yield block


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch off garbage collection inside this `with` block, to load large documents faster."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def document(path: Path, damaged: str = "", kind: type = object) -> Any:
    """Load a JSON file and return its content. Raise an error if it is not of type `kind`.

    Raises:
        InputError: see `harness_noise.io.paths.load`; or it is not of this kind, a dict or a list.
    """
    with uncollected():
        data = load(path, damaged)
    if not isinstance(data, kind):
        raise InputError(f"{path}: no {kind.__name__}, but {type(data).__name__}{damaged}")
    return data


_PART = 1 << 17
"""Bytes of a list that are decoded at once. The objects of more would not stay in the processor's cache."""
_BETWEEN = b"\n  },\n  {"
"""The bytes between two items of an indented list. No JSON string has a line break."""


def items(path: Path, damaged: str = "") -> Iterator[Any]:
    """Yield the items of a JSON file that is one list, in parts if its line breaks allow. Refuse other files.

    Raises:
        InputError: as `document`; or it is no list.
    """
    n = 0
    with suppress(OSError, ValueError, RecursionError):
        for part in _parts(path):
            yield from part
            n += len(part)
        return
    yield from document(path, damaged, list)[n:]


def _parts(path: Path) -> Iterator[list[Any]]:
    """Yield lists of items of a large JSON list. Raise ValueError if line breaks do not separate items."""
    with opened(path) as file:
        text = file.read(1)
        if text != b"[":
            raise ValueError("no list begins here")
        while more := file.read(_PART):
            text += more
            end = text.rfind(_BETWEEN)
            if end >= 0:
                yield checked(text[: end + 4] + b"]")
                text = b"[" + text[end + 5 :]
            elif len(text) > 2 * _PART:
                raise ValueError("no end of an item in sight")
    yield checked(text)


def field(value: Any, *names: str) -> Any:
    """Return the value under nested keys of a dictionary, None if any key is missing."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


LONGEST_ITEM = 1 << 27
"""Characters of one value that is read as a whole: a sample with all its messages, pictures and events."""
_PIECE = 1 << 18
_TAIL = 16
"""A fault so near to the end of what has come so far may only be that more is to come."""
_SPACE = re.compile(r"[ \t\n\r]*")


def after_space(text: str, at: int) -> int:
    """Return the index of the first character at or after `at` that is not white space."""
    space = _SPACE.match(text, at)
    assert space is not None  # it may be empty
    return space.end()


class CutError(ValueError):
    """The stream ends in the middle of its JSON."""


class JsonStream:
    """One JSON document, read from start to end. `pairs` makes its objects, by default dicts.

    Every method raises ValueError for what is no JSON, CutError where it ends too early.
    """

    def __init__(self, pieces: Iterable[bytes], pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> None:
        self._pieces = iter(pieces)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._scan = json.JSONDecoder(object_pairs_hook=pairs).raw_decode
        self._text = ""
        self._at = 0
        self._ended = False

    def members(self) -> Iterator[str]:
        """Yield the names of this object, each value to be read before the next. Raise ValueError if it is damaged."""
        self._one_of("{")
        if self._next() == "}":
            self._at += 1
            return
        while True:
            name = self.value()
            if not isinstance(name, str):
                raise ValueError("an object has a name that is no text")  # noqa: TRY004  it is the data
            self._one_of(":")
            yield name
            if self._one_of(",}") == "}":
                return

    def items(self) -> Iterator[Any]:
        """Yield each value of the array that begins here. Raise ValueError if it is damaged."""
        self._one_of("[")
        if self._next() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if self._one_of(",]") == "]":
                return

    def is_array(self) -> bool:
        """Return True if the next value is an array. Raise CutError if there is none."""
        return self._next() == "["

    def value(self) -> Any:
        """Decode and return the whole value that begins here. Raise ValueError if it is damaged or too deep."""
        self._next()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                self._wait(error)
            except RecursionError:
                raise ValueError("nested too deeply") from None
            else:
                if self._ended or self._text[end - 1] in '"]}' or not self._goes_on(end):
                    self._at = end
                    return value
                self._more(2 * (end - self._at))  # a number may go on

    def _goes_on(self, end: int) -> bool:
        """Return True if a number that ends at this index may continue in text not yet read: `0.`, `1e`."""
        left = len(self._text) - end
        return left == 0 or (left <= 2 and self._text[end] in ".eE")

    def end(self) -> None:
        """Read to the end. Raise ValueError if anything but white space follows."""
        try:
            more = self._next()
        except CutError:
            return
        raise ValueError(f"{more!r} follows the end of the JSON")

    def _wait(self, error: json.JSONDecodeError) -> None:
        """Read more text for a value that is not complete. Raise an error if it is faulty or cut off."""
        cut = error.pos >= len(self._text) - _TAIL or error.msg.startswith("Unterminated string")
        if not cut:
            raise ValueError(error.msg) from None
        if self._ended:
            closed = self._text.rstrip().endswith(("]", "}"))
            raise ValueError(error.msg) if closed else CutError("it ends in the middle") from None
        self._more(2 * (len(self._text) - self._at))

    def _next(self) -> str:
        """Return the next character that is no white space, not consumed. Raise CutError at the end."""
        while True:
            self._at = after_space(self._text, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                raise CutError("it ends in the middle")
            self._more(0)

    def _one_of(self, wanted: str) -> str:
        character = self._next()
        if character not in wanted:
            raise ValueError(f"{character!r} is in the place of {' or '.join(map(repr, wanted))}")
        self._at += 1
        return character

    def _more(self, least: int) -> None:
        """Read at least `least` more characters into the buffer, parsed ones dropped. Refuse a value too long."""
        parts = [self._text[self._at :]]
        size = len(parts[0])
        least = max(least, size + 1, _PIECE)
        while size < least:
            piece = next(self._pieces, None)
            part = self._decoder.decode(piece or b"", final=piece is None)
            parts.append(part)
            size += len(part)
            if piece is None:
                self._ended = True
                break
        if size > LONGEST_ITEM:
            raise ValueError(f"one of its values is longer than {LONGEST_ITEM / 1e6:.0f} million characters")
        self._text, self._at = "".join(parts), 0
