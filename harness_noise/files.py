"""Files that are whole or absent: written beside their place, flushed to disk, then renamed.

A reader never sees half a file, and a fault or a kill leaves what was there before. A temporary
file that a killed process left behind is removed by the next write into the same folder; one that a
live process holds is locked and stays.
"""

from __future__ import annotations

import filecmp
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .errors import InputError

PREFIX = ".harness-noise-"


@contextmanager
def replacing_path(path: str | Path, suffix: str = ".tmp") -> Iterator[Path]:
    """A temporary path in the folder of `path`; after the block it takes the place of `path`.

    The folder is made if need be. A link is followed, so that it stays a link. The file keeps the
    permissions of the one it replaces. A file that already holds the same bytes is left alone.
    After an exception in the block nothing has changed and no temporary file is left.

    Args:
        path: the file to write.
        suffix: of the temporary path, for writers that go by it (".eval").

    Raises:
        InputError: the file cannot be written; says where and why.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir() or target.is_symlink():
        kind = "a folder" if target.is_dir() else "a loop of symbolic links"
        raise InputError(f"{path}: is {kind}, not a file that can be written")
    with _explained(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        lock, temporary = _create(target.parent, suffix)
    try:
        with _explained(path, only=(None, os.fspath(temporary))):
            yield temporary
        with _explained(path):
            _flush(temporary)
            if target.exists():
                if filecmp.cmp(temporary, target, shallow=False):
                    return
                temporary.chmod(target.stat().st_mode & 0o7777)
            temporary.replace(target)
            _flush(target.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        os.close(lock)


@contextmanager
def _explained(path: str | Path, only: tuple[str | None, ...] = ()) -> Iterator[None]:
    """An operating system's refusal as one paragraph; with `only`, that of these file names."""
    try:
        yield
    except OSError as error:
        if only and error.filename not in only:
            raise
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}); nothing was changed") from error


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """`replacing_path` with the temporary file opened for bytes."""
    with replacing_path(path) as temporary, temporary.open("wb") as file:
        yield file


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a whole file atomically; see `replacing_path`."""
    with replacing(path) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    """Write a whole text file atomically, in UTF-8 and with the line ends as they are."""
    write_bytes(path, text.encode("utf-8"))


def _create(folder: Path, suffix: str) -> tuple[int, Path]:
    """A new locked file. Another process may sweep it away before it is locked: then try again."""
    while True:
        path = folder / f"{PREFIX}{secrets.token_hex(6)}{suffix}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        if _locked(handle) and os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove what killed processes left behind: temporary files that nobody holds a lock on."""
    if os.name != "posix":  # without advisory locks nobody can tell
        return
    for path in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if _locked(handle):
                    path.unlink()
            finally:
                os.close(handle)


def _locked(handle: int) -> bool:
    """Take the lock if it is free."""
    if os.name != "posix":
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody sweeps there either
        return True
    return True


def _flush(path: Path) -> None:
    """Push a file or a folder's list of names to the disk."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
