"""The one door through which files are read: regular files, inside the place that the user named.

What the user names may be a link and is followed. A link below it is followed where it ends inside the place; below a
`snapshots/` beside a `blobs/`, which is how the hubs of models keep their files, inside the folder of both. Others are
left out, unless the user follows them (`follow_links`).
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import Any

from ..errors import some_of
from .stopping import temporary_files, temporary_folders

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_DESCRIPTOR = re.compile(r"/dev/(stdin|fd/\d+)|/proc/self/fd/\d+")
"""Pattern of a shell's names for its own input and `<(…)`, which are read once, whole."""


@dataclass(frozen=True, slots=True)
class Place:
    """All that the user named."""

    roots: tuple[str, ...]
    """Real paths of the folders in which files may lie."""
    follow: bool = False
    name: str = ""
    """It as a path."""
    left_out: dict[str, None] = field(default_factory=dict)
    """Links that lead out of it, as they were met."""


def is_url(place: object) -> bool:
    """Return True if a path has a URL's form (`s3://…`), which a library reads instead of the local disk."""
    return _URL.match(str(place)) is not None


_place: ContextVar[Place | None] = ContextVar("harness_noise_place", default=None)


@contextmanager
def inside(path: object, *, follow: bool = False) -> Iterator[Place]:
    """Within the block, read in `path` (a file: its folder) only, unless `follow`. No effect for a URL or if nested.

    Args:
        path: a folder; or a file, beside which what belongs to it may lie.
        follow: links are followed wherever they lead.
    """
    if _place.get() is not None or is_url(path):
        yield Place(())
        return
    named_, real = Path(str(path)).absolute(), Path(os.path.realpath(str(path)))
    beside = real.parent, Path(os.path.realpath(named_.parent))  # of a file: its companions are in the same folder
    place = Place(tuple(map(str, (real,) if real.is_dir() else beside)), follow, str(named_))
    token = _place.set(place)
    try:
        yield place
    finally:
        _place.reset(token)


@contextmanager
def also(folder: Path) -> Iterator[None]:
    """Allow reading in one more folder than `inside` does, within this block. No effect outside of `inside`."""
    place = _place.get()
    if place is None:
        yield
        return
    token = _place.set(replace(place, roots=(*place.roots, os.path.realpath(folder))))
    try:
        yield
    finally:
        _place.reset(token)


def links_note(place: Place) -> str:
    """Return the sentence that links were skipped because they lead out of the named folder. Some must have been."""
    return (
        f"left out, because they are links that lead out of {place.roots[0]}: {some_of(list(place.left_out), 3)}; "
        "`follow_links` reads them"
    )


def named_place() -> str:
    """Return the path that `inside` limits reading to at present, "" outside of any such block."""
    place = _place.get()
    return "" if place is None else place.name


def is_inside(path: Path) -> bool:
    """Return True if a local path may be read. False, and recorded, if it is a link out of the named folder."""
    place = _place.get()
    if place is None or place.follow or is_url(path):
        return True
    real = os.path.realpath(path)
    if any(_within(real, root) for root in place.roots) or not Path(real).exists():
        return True
    parent = os.path.realpath(path.parent)  # a link out may lead into a hub, and is none of it
    hub = _hub(parent) if any(_within(parent, root) for root in place.roots) else None
    if hub is not None and _within(real, hub):
        return True
    place.left_out[str(path)] = None
    return False


def is_there_itself(link: Path) -> bool:
    """Return True if `link`, known to be one, leads to an unhidden file in the named folder, which is read itself."""
    place, real = _place.get(), os.path.realpath(link)
    for root in () if place is None else place.roots:
        if _within(real, root):
            return not any(part.startswith(".") for part in Path(real).relative_to(root).parts)
    return False


def may_be_written(path: Path) -> bool:
    """Return True if a file may be replaced: no link, or no folder was named, or it leads into that, not to a blob.

    Blobs are files of a store that names them by their content.
    """
    place, real = _place.get(), os.path.realpath(path)
    if not path.is_symlink() or place is None:
        return True
    return any(_within(real, root) for root in place.roots) and "blobs" not in Path(real).parts


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


@cache
def _hub(folder: str) -> str | None:
    """Return the Hugging Face cache folder (with `snapshots` and `blobs`) that this path lies in, else None."""
    for parent in (Path(folder), *Path(folder).parents):
        if parent.name == "snapshots" and (parent.parent / "blobs").is_dir():
            return str(parent.parent)
    return None


def open_local(path: Path, size: int) -> BufferedReader:
    """Open a local file for reading bytes. Raise OSError for pipes, folders, and links out of the named folder.

    Raises:
        OSError: it cannot be opened; is a pipe, a device or a folder; or a link that leads out of the place.
    """
    path = named(path)
    if not is_inside(path):
        raise OSError(errno.EXDEV, "a link that leads out of the folder that was named", str(path))
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        kind = os.fstat(handle).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "a pipe or a device, not a file", str(path))
        file: Any = os.fdopen(handle, "rb", buffering=size)
    except BaseException:
        os.close(handle)
        raise
    return file if isinstance(file, BufferedReader) else BufferedReader(file, size)


def is_special(path: Path) -> bool:
    """Return True if a path exists and is neither a file nor a folder, such as a pipe or a device."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def named(path: Path) -> Path:
    """Return the path itself, or for a shell's input such as /dev/stdin a file into which it was copied."""
    return _spooled(str(path)) if _DESCRIPTOR.fullmatch(str(path)) else path


@cache
def _spooled(text: str) -> Path:
    """Copy everything that a descriptor such as /dev/fd/3 gives into a temporary file, and return its path."""
    with open(text, "rb", buffering=0) as source:  # noqa: PTH123  a pipe may be opened once; Ctrl-C ends a read
        start = b""
        while len(start) < 1 << 16 and (piece := source.read(1 << 16)):
            start += piece
        path = own_file(f"{text.strip('/').replace('/', '-').removeprefix('dev-')}{_suffix(start)}")
        with path.open("wb") as target:
            target.write(start)
            while piece := source.read(1 << 20):
                target.write(piece)
    return path


def own_file(name: str) -> Path:
    """Return the path `name`, not yet written, in a new temporary folder, which is deleted when the process ends."""
    import atexit
    import shutil

    folder = Path(tempfile.mkdtemp(prefix="harness-noise-"))
    temporary_folders.add(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    temporary_files.add(path := folder / name)
    return path


def _suffix(start: bytes) -> str:
    """Guess a file's ending from its first bytes: .eval, .parquet, .csv.gz, .json, .jsonl, .tsv or .csv."""
    for magic, suffix in ((b"PK\x03\x04", ".eval"), (b"PAR1", ".parquet"), (b"\x1f\x8b", ".csv.gz")):
        if start.startswith(magic):
            return suffix
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] not in (b"{", b"["):
        return ".tsv" if b"\t" in text.partition(b"\n")[0] else ".csv"
    first, _, more = text.partition(b"\n")
    return ".jsonl" if first.rstrip().endswith(b"}") and more.lstrip()[:1] == b"{" else ".json"
