"""Standard streams that go on working when their reader has gone.

A pipe that closes (`| head`) must not keep a command from writing its files or change its exit code: what
is said from then on goes nowhere. A stream that is closed from the start is the null device, so that no
file that is opened later takes its number.

Characters that the encoding of a stream lacks become ASCII: a minus sign is never a question mark.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import unicodedata
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


ASCII = {
    "−": "-", "–": "-", "—": "-", "─": "-", "±": "+/-", "×": "x", "⨯": "x", "★": "*", "…": "...", "·": ".", "≤": "<=",
    "≥": ">=", "≈": "~", "√": "sqrt", "→": "->", "←": "<-",
    "χ": "chi", "σ": "sigma", "Σ": "sum", "ω": "omega", "α": "alpha", "τ": "tau",
    "π": "pi", "β": "beta", "γ": "gamma", "Δ": "delta", "²": "^2", "│": "|", "“": '"', "”": '"', "‘": "'", "’": "'",
    "§": "par.", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "ß": "ss", "«": "<<", "»": ">>", "≠": "!=", "∞": "inf",
    "✅": "PASS", "❌": "FAIL", "⚠": "!", "●": "*", "○": "o", "■": "#", "□": "o", "▲": "^",
}  # fmt: skip
"""Replacements of our own characters for encodings that lack them."""
HANDLER = "harness-noise-ascii"
"""The name by which an encoding asks for them."""
_OURS = {"strict", "replace", "surrogateescape"}
"""Error handlers of a stream that ours replaces. The user chose any other."""


def in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return (ASCII text or "?", next position) for a character that cannot be encoded, a codec handler. Else raise.

    Letters of other alphabets are decomposed if possible, else "?"."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character, end = error.object[error.start], error.start + 1
    text = ASCII.get(character)
    if text is None:
        text = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"
    return text, end


def harden() -> None:
    """Make `sys.stdout` and `sys.stderr` survive unknown characters and, on POSIX, a closed pipe or descriptor."""
    codecs.register_error(HANDLER, in_ascii)
    if os.name != "posix":  # on other systems a console is not a file
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=_errors(stream))
        return
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free number
    sys.stdout = _stream(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _stream(_Messages(2, "w", closefd=False), sys.stderr)


class _Output(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if error.errno != errno.EPIPE:
                raise OSError(error.errno, os.strerror(error.errno or 0), "standard output") from None
            return memoryview(data).nbytes


class _Messages(_Output):
    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:  # no stream is left for a message
            return memoryview(data).nbytes


class _Text(io.TextIOWrapper):
    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Name of the stream's encoding, but "latin-1" in place of "ascii", which click would not believe.

        Else click would take ASCII for a mistake and write UTF-8."""
        name = super().encoding
        return "latin-1" if codecs.lookup(name).name == "ascii" else name


def _errors(like: TextIO | None) -> str:
    return HANDLER if like is None or like.errors is None or like.errors in _OURS else like.errors


def _stream(raw: io.FileIO, like: TextIO | None) -> TextIO:
    return _Text(
        io.BufferedWriter(raw),
        encoding=like.encoding if like else "utf-8",
        errors=_errors(like),  # names may hold lone surrogates
        line_buffering=isinstance(raw, _Messages) or raw.isatty(),
        write_through=isinstance(like, io.TextIOWrapper) and like.write_through,
    )
