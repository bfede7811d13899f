"""Standard streams that outlive their reader.

A pipe that closes (`| head`) must not keep a command from writing its files or change its exit code: what
is said from then on goes nowhere. A stream that is closed from the start is the null device, so that no
file that is opened later takes its number.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def harden() -> None:
    """Put such streams in place of `sys.stdout` and `sys.stderr`."""
    if os.name != "posix":  # elsewhere a console is no file
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
        except OSError:  # there is no place left to complain
            return memoryview(data).nbytes


def _stream(raw: io.FileIO, like: TextIO | None) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=like.encoding if like else "utf-8",
        errors=like.errors if like and like.errors != "strict" else "replace",  # names may hold lone surrogates
        line_buffering=isinstance(raw, _Messages) or raw.isatty(),
        write_through=isinstance(like, io.TextIOWrapper) and like.write_through,
    )
