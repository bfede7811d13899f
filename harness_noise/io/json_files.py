"""JSON that somebody else wrote: read whole within bounds, and refused with the place and the reason."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from ..errors import InputError
from .paths import reason, refuse_pointer

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
        refuse_pointer(path)
        if (size := path.stat().st_size) > LARGEST:
            raise InputError(f"{path}: a JSON file of {size / 1e9:.1f} GB has to be held in memory as a whole{advice}")
        text = path.read_bytes() if data is None else data.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise InputError(f"{path}: unpacks to more than {LARGEST / 1e9:.1f} GB, held in memory as a whole{advice}")
        return json.loads(text)
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


def load_line(path: Path, number: int, line: bytes, damaged: str, loads: Callable[[bytes], Any] = json.loads) -> Any:
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
