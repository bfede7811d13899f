"""Files and folders: local paths and URLs that fsspec knows (s3://, gs://, …), and JSON read within bounds."""

from __future__ import annotations

import gzip
import json
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from io import BufferedReader
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from ..errors import InputError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

PathInput: TypeAlias = str | PathLike[str]
"""What a user may give: a path, a URL, or a `upath.UPath`, which has the interface of a Path without being one."""

POINTER = b"version https://git-lfs.github.com/spec/"
"""How the few lines begin that Git LFS leaves in the place of a file that was not fetched."""
TWO_BYTES = (BOM_UTF16_LE, BOM_UTF16_BE)


def is_url(place: object) -> bool:
    """Whether a place is on a file system that is reached by its URL."""
    return _URL.match(str(place)) is not None


LOOKS = ".looks.json"
"""How the name of the file ends that keeps the looks at a run beside it."""
FRAME = "DataFrame"
"""What a table in memory is called."""


def is_frame(value: object) -> bool:
    """Whether a value is a table in memory: a DataFrame of pandas or polars."""
    return hasattr(value, "columns") and (hasattr(value, "to_dicts") or hasattr(value, "iterrows"))


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows of a DataFrame; what is missing in it is None."""
    if hasattr(frame, "to_dicts"):
        return [{str(name): value for name, value in row.items()} for row in frame.to_dicts()]
    named = frame.reset_index() if any(name is not None for name in frame.index.names) else frame
    rows = named.astype(object).where(named.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def is_path(value: object) -> bool:
    """Whether a value names a file or a folder."""
    return isinstance(value, (str, PathLike)) or hasattr(value, "iterdir")


def resolve_path(place: PathInput) -> Path:
    """A place as a path. That of a URL is a `upath.UPath`, which reads, lists and pickles as a Path does.

    Raises:
        InputError: no path, or a URL of a kind that nobody here knows.
    """
    text = str(place)
    if not text or not is_path(place):
        raise InputError(f"{place!r:.80} is no path: name a file or a folder")
    match = _URL.match(text)
    if match is None:
        return Path(place)
    scheme = match[1]
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
        path.fs  # noqa: B018 - here fsspec looks for the library of this kind of file system
    except (ImportError, ValueError) as error:
        raise InputError(
            f"{text}: {scheme}:// cannot be read here ({error}); install the fsspec library for it "
            "(s3fs, gcsfs, adlfs, …), or copy the files"
        ) from None
    return cast(Path, path)


def _local(url: str) -> Path:
    """A file:// URL as a local path: word for word, as fsspec has it, or with its %20 for blanks."""
    host, _, rest = url.removeprefix("file://").partition("/")
    if host not in ("", "localhost"):
        raise InputError(f"{url}: a file:// URL names a file of this machine: file:///folder/file")
    from urllib.request import url2pathname

    literal, decoded = Path(f"/{rest}"), Path(url2pathname(f"/{rest}"))
    return decoded if exists(decoded) and not exists(literal) else literal


def exists(path: Path) -> bool:
    """Whether there is a file or folder.

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
"""Bytes; lines are longer than the usual 8 kB, and then reading them costs four times as much."""


def opened(path: Path, size: int = BUFFER) -> BufferedReader:
    """A file to be read in bytes, so many at a time, with all methods of a local one wherever it lies."""
    file: Any = path.open("rb", buffering=size)
    return file if isinstance(file, BufferedReader) else BufferedReader(file, size)


def refuse_pointer(path: Path) -> None:
    """Refuse the few lines that Git LFS leaves in the place of a file that was not fetched, and text of two bytes.

    Raises:
        InputError: that is what the file is.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(POINTER))
    except Exception:  # noqa: BLE001  whoever reads it says why it cannot be
        return
    if head == POINTER:
        raise InputError(
            f"{path}: not the file itself but a Git LFS pointer to it, because it was not fetched; run "
            "`git lfs pull` in its repository"
        )
    if head.startswith(TWO_BYTES):
        raise InputError(f"{path}: written in UTF-16, as PowerShell's `>` does; write it again in UTF-8")


def telling_parts(paths: Sequence[str]) -> list[str]:
    """The first folder or file of each path that tells all of them apart; else the whole paths."""
    split = [path.replace("\\", "/").split("/") for path in paths]
    for parts in zip(*split, strict=False):
        if len(set(parts)) == len(paths):
            return list(parts)
    return list(paths)


def reason(error: BaseException) -> str:
    """What an operating system or a library gives as the reason, in one line; never empty."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split())[:300]


@cache
def _codec() -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]] | None:
    """Decoder and encoder of orjson; None where it is not installed."""
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads, orjson.dumps


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{name!r:.80} is in one of its objects twice")
    return mapping


def loads(data: bytes) -> Any:
    """The JSON value that bytes hold, NaN and Infinity included; orjson decodes it where it is installed.

    Raises:
        ValueError: it is no JSON, or an object has one name twice, of which every decoder keeps the last silently.
    """
    if codec := _codec():
        decode, encode = codec
        try:
            value = decode(data)
            if count(encode(value), ":") == count(data, ":"):  # a name that was dropped took its colon with it
                return value
        except (ValueError, TypeError):  # NaN, half a surrogate, deep nesting, or no JSON
            pass
    return json.loads(data, object_pairs_hook=once)


def count(data: bytes, character: str) -> int:
    """How often an ASCII character comes; in long data counted by numpy, in a tenth of the time of `bytes.count`."""
    if len(data) < _LONG:
        return data.count(character.encode())
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord(character)))


_LONG = 1 << 12
"""Bytes."""


def loads_lines(lines: bytes, n: int) -> list[Any]:
    """The JSON values of n lines, one of each, as `loads` has them, but at once.

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
    """The JSON document that a file is, with NaN where it has them.

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
    """The bytes of a file; its size is only looked at where it is not small, of which a job may have thousands."""
    with path.open("rb") as file:
        text = file.read(small := min(_SMALL, LARGEST))
        if len(text) < small:
            return text
        if (size := path.stat().st_size) > LARGEST:
            raise InputError(f"{path}: a JSON file of {size / 1e9:.1f} GB has to be held in memory as a whole{advice}")
        return text + file.read()


def load_line(path: Path, number: int, line: bytes, damaged: str, loads: Callable[[bytes], Any] = loads) -> Any:
    """The JSON value that one line of a file is.

    Raises:
        InputError: it is no JSON.
    """
    try:
        return loads(line)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not JSON (not UTF-8 text: {error.reason}){damaged}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {number}: not JSON ({error}){damaged}") from None
