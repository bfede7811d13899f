"""Files that are whole or absent: written next to their place, flushed to disk, then renamed.

A reader never sees half a file, and a fault or a kill leaves what was there before. A temporary
file that a killed process left behind is removed by the next write into the same folder; one that a
live process holds is locked and stays.
"""

from __future__ import annotations

import filecmp
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InputError
from .door import may_be_written
from .stopping import temporary_files

try:
    import fcntl
except ImportError:  # no advisory locks
    fcntl: Any = None  # type: ignore[no-redef]

PREFIX = ".harness-noise-"
_OURS = re.compile(re.escape(PREFIX) + r"[0-9a-f]{12}\.tmp")
"""Pattern of our temporary files' names, which matches no other program's."""


@contextmanager
def replacing_path(path: str | Path, inputs: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield a temporary path (a device or pipe: itself). It replaces `path` atomically if the block has no error.

    The folder is made if need be. A link is followed, so that it stays a link. The file keeps the
    permissions, and where that is allowed the owner, of the one it replaces. A file that already holds
    the same bytes is left alone. After an exception in the block nothing has changed and no temporary
    file is left. A device or a pipe has nothing to keep: it is written to as it is.

    Args:
        path: the file to write.
        inputs: the files that a new one holds something of: it permits no more than they do.

    Raises:
        InputError: the file cannot be written; says where and why.
    """
    with _explained(path):
        target = _place(path)
    if target is None:
        with _explained(path, inside=Path(path)), suppress(BrokenPipeError):
            yield Path(path)
        return
    # a suffix that no reader takes for a log or a table, if a kill leaves the file behind
    temporary = target.parent / f"{PREFIX}{secrets.token_hex(6)}.tmp"
    lock = None
    temporary_files.add(temporary)
    try:
        with _explained(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            sweep(target.parent)
            mode = target.stat().st_mode & 0o666 | 0o600 if target.exists() else _mode_of_inputs(inputs)
            lock = _create(temporary, mode)
        with _explained(path, inside=temporary):
            yield temporary
        with _explained(path):
            _flush(temporary)
            if target.exists():
                if filecmp.cmp(temporary, target, shallow=False):
                    return
                _restore_owner_and_mode(temporary, target.stat())
            temporary.replace(target)
        with suppress(OSError):  # the file is in its place; not every file system flushes folders
            _flush(target.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if lock is not None:
            os.close(lock)
        temporary_files.discard(temporary)


def _place(path: str | Path) -> Path | None:
    """Return the file that `path` leads to, links followed. None: a device or pipe. Refuse folders and links outside.

    Raises:
        InputError: no file can be there.
    """
    named = Path(path)
    if named.exists() and not named.is_file() and not named.is_dir():
        return None
    target = Path(os.path.realpath(path))
    if not may_be_written(named):
        raise InputError(
            f"{path}: is a link to {target}, which lies outside of the folder that was named, or in a store that names "
            "files by their content. It is not replaced. Write a copy into another folder with `output`"
        )
    if target.is_dir() or target.is_symlink():
        kind = "a folder" if target.is_dir() else "a loop of symbolic links"
        raise InputError(f"{path}: is {kind}, not a file that can be written")
    if target.exists() and not named.exists():  # missing/../file, which no caller saw
        raise InputError(f"{path}: leads to {target}, which is there, through a folder that is not")
    return target


def _restore_owner_and_mode(temporary: Path, old: os.stat_result) -> None:
    """Give the temporary file the owner and permissions of the file that it will replace."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(temporary, old.st_uid, old.st_gid)
    temporary.chmod(old.st_mode & 0o7777)


@contextmanager
def _explained(path: str | Path, inside: Path | None = None) -> Iterator[None]:
    """Turn an operating system's error within the block into an `InputError` that names the path and reason.

    With `inside`, only one that concerns that file or names none (a copy names its source and its target).
    """
    try:
        yield
    except OSError as error:
        named = {error.filename, error.filename2} - {None}
        if inside is not None and named and os.fspath(inside) not in named:
            raise
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be written ({reason}). Nothing was changed") from error


@contextmanager
def replacing(path: str | Path, inputs: Iterable[Path] = ()) -> Iterator[BinaryIO]:
    """Yield a binary file open for writing. If the block ends without error, it replaces `path` atomically."""
    with replacing_path(path, inputs) as temporary, temporary.open("wb") as file:
        yield file


def write_bytes(path: str | Path, data: bytes, inputs: Iterable[Path] = ()) -> None:
    """Write bytes to a file atomically: a reader sees the old file or the whole new one."""
    with replacing(path, inputs) as file:
        file.write(data)


def write_text(path: str | Path, text: str) -> None:
    """Write text to a file atomically, in UTF-8, line ends unchanged. Lone surrogates become "?"."""
    write_bytes(path, text.encode("utf-8", "replace"))


class Unchanged:
    """Files as they are now, to be sure later that what was read of them still holds."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._versions = {path: _version(path) for path in paths}

    def check(self, path: Path) -> None:
        """Refuse to go on if the file was written, replaced or removed since this object was made.

        Raises:
            InputError: it was written to, replaced or removed since.
        """
        if _version(path) != self._versions[path]:
            raise InputError(f"{path}: changed while it was exported. Try again when nothing writes to it")


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Within the block, hold a lock on `folder` (made if need be, unlocked if unsupported). Waits for other holders.

    Raises:
        InputError: the folder cannot be made.
    """
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    handle = None
    try:
        with suppress(OSError):  # a folder that cannot be read
            handle = os.open(folder, os.O_RDONLY)
            _lock(handle, wait=True)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _mode_of_inputs(inputs: Iterable[Path]) -> int:
    """Return permission bits for a new file: its owner's to read and write, else no wider than any input file's."""
    mode = 0o666
    for place in inputs:
        for path in place.rglob("*") if place.is_dir() else [place]:
            with suppress(OSError):
                mode &= path.stat().st_mode if path.is_file() else 0o666
    return mode | 0o600


def _create(path: Path, mode: int) -> int:
    """Create a new file, lock it, and return its descriptor. `mode` is set at once, never wider.

    Another process may sweep it away before it is locked: then try again.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        if _lock(handle) is not False and os.fstat(handle).st_nlink:
            return handle
        os.close(handle)


def sweep(folder: Path) -> None:
    """Delete temporary files in a folder that killed processes left behind: those without a lock."""
    for path in folder.glob(f"{PREFIX}*"):
        if not _OURS.fullmatch(path.name):
            continue
        with suppress(OSError):
            handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(handle):
                    path.unlink()
            finally:
                os.close(handle)


def _lock(handle: int, *, wait: bool = False) -> bool | None:
    """Lock an open file, at once or by `wait`. Return True if locked, False if another has it, None if unsupported."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return None if fcntl is None else True


def _flush(path: Path) -> None:
    """Force a file's content, or a folder's list of names, from memory to the disk (fsync)."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
