"""Files and folders: local paths and URLs that fsspec knows (s3://, gs://, …), and JSON read within bounds."""

from __future__ import annotations

import gzip
import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from io import BufferedReader
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from ..errors import InputError
from .door import is_url as is_url
from .door import named, open_local, own_file

PathInput: TypeAlias = str | PathLike[str]
"""A path, a URL, or a `upath.UPath`, which has the interface of a Path without being one."""

POINTER = b"version https://git-lfs.github.com/spec/"
"""The first bytes of the small file that Git LFS leaves in place of a file that was not fetched."""
TWO_BYTES = (BOM_UTF16_LE, BOM_UTF16_BE)


BESIDE = ".noise"
"""The folder in a harness's output for files of our live runs. No reader opens it."""
FRAME = "DataFrame"
"""The name of a table in memory."""


def is_frame(value: object) -> bool:
    """Return True if a value is a pandas or polars DataFrame, judged by its methods."""
    return hasattr(value, "columns") and (hasattr(value, "to_dicts") or hasattr(value, "iterrows"))


def name_of(frame: object) -> str:
    """Return a DataFrame's own name, ``frame.attrs["name"]``, or a default name for unnamed ones."""
    return str(getattr(frame, "attrs", {}).get("name") or FRAME)


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """Return a DataFrame as {column: cells}, None for missing, indexes with names too. Refuse two of one name.

    Raises:
        InputError: two columns have one name.
    """
    if hasattr(frame, "to_dicts"):
        columns = [*frame.to_dict(as_series=False).items()]
    else:
        has_names = any(name is not None for name in frame.index.names)
        named = frame.reset_index(allow_duplicates=True) if has_names else frame
        columns = [
            (name, _cells_as_list(each.astype(object).where(each.notna(), None))) for name, each in named.items()
        ]
    out = {str(name): cells for name, cells in columns}
    if len(out) < len(columns):
        names = [str(name) for name, _ in columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{FRAME}: two columns are called {twice!r}")
    return out


_SIMPLE = {str, int, float, bool, type(None)}


def _cells_as_list(column: Any) -> list[Any]:
    """Return a column's cells as a list, with NumPy arrays in them turned into lists."""
    cells: list[Any] = column.tolist()
    return cells if {*map(type, cells)} <= _SIMPLE else list(map(_without_arrays, cells))


def _without_arrays(cell: Any) -> Any:
    value = cell.tolist() if hasattr(cell, "tolist") else cell
    if isinstance(value, dict):
        return {name: _without_arrays(each) for name, each in value.items()}
    return list(map(_without_arrays, value)) if isinstance(value, list) else value


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Return a DataFrame as a list of {column: cell}, with None for missing cells."""
    columns = columns_of(frame)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def is_path(value: object) -> bool:
    """Return True if a value is a string or a path object, so that it may name a file or folder."""
    return isinstance(value, (str, PathLike)) or hasattr(value, "iterdir")


def resolve_path(place: PathInput) -> Path:
    """Return a user's path as a `Path` (a signed URL downloaded, a pipe copied), a URL as `UPath`. Refuse others.

    Raises:
        InputError: not a path, or a URL of an unknown kind.
    """
    text = str(place)
    if not text or not is_path(place):
        raise InputError(f"{place!r:.80} is no path: name a file or a folder")
    if not is_url(text):
        return named(Path(place))
    scheme = text.partition("://")[0]
    if scheme in ("http", "https") and "?" in text:
        return _fetched(text)
    if scheme == "file":
        return _local(text)
    try:
        from upath import UPath
    except ImportError as error:
        raise InputError(
            f"{text}: URLs need universal-pathlib ({error}): pip install 'harness-noise[remote]'"
        ) from None
    try:
        path: Any = UPath(text)
        path.fs  # noqa: B018 - here fsspec searches for the library of this kind of file system
    except (ImportError, ValueError) as error:
        raise InputError(
            f"{text}: {scheme}:// cannot be read here ({error}). Install the fsspec library for it "
            "(s3fs, gcsfs, adlfs, …), or copy the files"
        ) from None
    return cast(Path, path)


@cache
def _fetched(url: str) -> Path:
    """Download a signed URL to a temporary file without the signature in its name, return the path. Refuse failure."""
    from urllib.parse import unquote, urlsplit

    try:
        import fsspec  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise InputError(f"{url}: URLs need fsspec ({error}): pip install 'harness-noise[remote]'") from None
    path = own_file(Path(unquote(urlsplit(url).path)).name or "file")
    try:
        with fsspec.open(url, "rb") as source, path.open("wb") as target:
            while piece := source.read(BUFFER):
                target.write(piece)
    except Exception as error:  # noqa: BLE001  of the libraries behind a URL, of all kinds
        raise InputError(f"{url}: cannot be read ({reason(error)})") from None
    return path


def _local(url: str) -> Path:
    """Convert a file:// URL to a path, `%20` decoded if a file is only there so. Refuse other machines."""
    host, _, rest = url.removeprefix("file://").partition("/")
    if host not in ("", "localhost"):
        raise InputError(f"{url}: a file:// URL names a file of this machine: file:///folder/file")
    from urllib.request import url2pathname

    literal, decoded = Path(f"/{rest}"), Path(url2pathname(f"/{rest}"))
    return decoded if exists(decoded) and not exists(literal) else literal


def exists(path: Path) -> bool:
    """Return True if a path or URL exists. Raise if that cannot be found out (no permission, no network).

    Raises:
        InputError: it cannot be found out: a loop of links, no permission, no credentials, no network.
    """
    try:
        if not is_url(path):
            return path.exists()
        path.stat()  # for fsspec, whatever goes wrong means that nothing exists
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(f"{path}: cannot be opened ({reason(error)})") from None
    except Exception as error:  # of the libraries behind a URL, of all kinds
        raise InputError(f"{path}: cannot be opened ({reason(error)})") from error
    return True


BUFFER = 1 << 20
"""Bytes of a read buffer. Lines are longer than the usual 8 kB, with which reading costs four times as much."""


def opened(path: Path, size: int = BUFFER) -> BufferedReader:
    """Open a local file or a URL for reading bytes, buffered. Refuse local pipes, folders and links out of the folder.

    Raises:
        OSError: it cannot be opened, or may not be (`harness_noise.io.door`).
    """
    if not is_url(path):
        return open_local(path, size)
    file: Any = path.open("rb", buffering=size)
    return file if isinstance(file, BufferedReader) else BufferedReader(file, size)


def refuse_pointer(path: Path) -> None:
    """Look into a file and refuse a Git LFS pointer or UTF-16. One that cannot be opened passes.

    Raises:
        InputError: that is what the file is.
    """
    try:
        with opened(path, 4096) as file:
            head = file.read(len(POINTER))
    except Exception:  # noqa: BLE001  its reader says why it cannot be read
        return
    if head == POINTER:
        raise InputError(
            f"{path}: not the file itself but a Git LFS pointer to it, because it was not fetched. Run "
            "`git lfs pull` in its repository"
        )
    if head.startswith(TWO_BYTES):
        raise InputError(f"{path}: written in UTF-16, as PowerShell's `>` does. Write it again in UTF-8")


def telling_parts(paths: Sequence[str]) -> list[str]:
    """Return for each path its first folder or file name that differs between all, else the whole paths."""
    split = [path.replace("\\", "/").split("/") for path in paths]
    for parts in zip(*split, strict=False):
        if len(set(parts)) == len(paths):
            return list(parts)
    return list(paths)


def reason(error: BaseException) -> str:
    """Return an exception's reason as one line of text, at most 300 characters."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split())[:300]


@cache
def _codec() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]] | None:
    """Return orjson's functions (loads, dumps), None if orjson is not installed."""
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads, orjson.dumps


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object from its (name, value) pairs. Refuse a name that occurs twice."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{name!r:.80} is in one of its objects twice")
    return mapping


def loads(data: bytes) -> Any:
    """Parse JSON bytes, NaN and Infinity allowed. Refuse an object with a name twice, and more values than `NODES`.

    Raises:
        ValueError: it is no JSON, or an object has one name twice, of which every decoder keeps the last silently; or
            it has more values than memory is for.
    """
    check_nodes(data)
    if codec := _codec():
        decode, encode = codec
        try:
            value = decode(data)
            if _nothing_lost(encode(value), data):
                return value
        except (ValueError, TypeError):  # NaN, half a surrogate, deep nesting, or no JSON
            pass
    return json.loads(data, object_pairs_hook=once)


def _nothing_lost(again: bytes, data: bytes) -> bool:
    """Return True if re-encoded JSON shows no loss: no doubled name dropped, no large integer made a float.

    A name that stood twice has lost a colon. A whole number beyond 64 bits has become a float, and got a point.
    """
    return count(again, ":") == count(data, ":") + escaped_colons(data) and count(again, ".") == count(data, ".")


def escaped_colons(data: bytes) -> int:
    r"""Count \u003a in JSON bytes, after an escaped backslash too. They would hide a lost name's colon in a count."""
    if b"\\" not in data:
        return 0
    if len(data) >= _LONG:  # as in `count`
        import numpy as np

        signs = np.frombuffer(data, np.uint8)
        threes = (signs[4:] == ord("3")) & (signs[3:-1] == ord("0")) & (signs[:-4] == ord("\\"))
        if not threes.any():
            return 0
    return sum(map(data.count, (rb"\u003a", rb"\u003A")))


NODES = 5_000_000
"""Values of a document that is held in memory as a whole: each takes some hundred bytes there, and two in the file."""


def check_nodes(data: bytes) -> None:
    """Refuse JSON bytes with more values, counted outside strings, than memory is meant to hold (`NODES`).

    Raises:
        ValueError: it has them.
    """
    if len(data) < 2 * NODES or sum(count(data, character) for character in ",[{") < NODES:
        return
    import re

    bare = re.sub(rb'"(?:[^"\\]|\\.)*+"', b"", data)  # commas of texts are none
    if sum(count(bare, character) for character in ",[{") > NODES:
        raise ValueError(f"more than {NODES / 1e6:.0f} million values, which memory is not for")


def count(data: bytes | bytearray, character: str) -> int:
    """Count how often an ASCII character occurs in bytes, fast for long data.

    In long data numpy counts it, in a tenth of the time of `bytes.count`."""
    if len(data) < _LONG:
        return data.count(character.encode())
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord(character)))


_LONG = 1 << 12
"""Bytes."""


def loads_lines(lines: bytes, n: int) -> list[Any]:
    """Parse the bytes of n JSON Lines at once into a list. Refuse a line with no value or several.

    Raises:
        ValueError: as `loads`; or a line has no value, or several.
    """
    body = memoryview(lines)[: -1 if lines.endswith(b"\n") else None]
    values: list[Any] = loads(b"".join((b"[", body, b"]")).replace(b"\n", b","))  # no string of JSON has a line break
    if len(values) != n:
        raise ValueError("a line has several values")
    return values


_SMALL = 1 << 16
LARGEST = 1 << 29
"""Bytes of a document that is held in memory as a whole."""


def load(path: Path, damaged: str = "", *, advice: str = "", data: IO[bytes] | None = None) -> Any:
    """Read a file as one JSON document, NaN allowed. Errors name the file and say what to do.

    Args:
        path: the file.
        damaged: what a message adds about a file that is no JSON.
        advice: what can be done about one that is too large.
        data: where its bytes are read; by default the file as it is.

    Raises:
        InputError: it cannot be read, is too large to be held in memory, or is no JSON.
    """
    try:
        text = _content(path, advice) if data is None else data.read(LARGEST + 1)
        if text.startswith((POINTER, *TWO_BYTES)):
            refuse_pointer(path)
        if len(text) > LARGEST:
            raise InputError(f"{path}: unpacks to more than {LARGEST / 1e9:.1f} GB, held in memory as a whole{advice}")
        return loads(text)
    except gzip.BadGzipFile:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not JSON (not UTF-8 text: {error.reason} at byte {error.start}){damaged}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}){damaged}") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON that can be read ({error}){damaged}") from None


def _content(path: Path, advice: str) -> bytes:
    """Read all bytes of a file. Refuse one that is larger than `LARGEST`.

    Its size is only looked at where it is not small, of which a job may have thousands.
    """
    with opened(path, _SMALL) as file:
        text = file.read(small := min(_SMALL, LARGEST))
        if len(text) < small:
            return text
        if (size := path.stat().st_size) > LARGEST:
            raise InputError(f"{path}: a JSON file of {size / 1e9:.1f} GB has to be held in memory as a whole{advice}")
        return text + file.read()


def load_line(path: Path, number: int, line: bytes, damaged: str, loads: Callable[[bytes], Any] = loads) -> Any:
    """Parse one line of a JSON Lines file. Errors name the file and the line number.

    Raises:
        InputError: it is no JSON.
    """
    try:
        return loads(line)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not JSON (not UTF-8 text: {error.reason}){damaged}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {number}: not JSON ({error}){damaged}") from None
