"""Lines of JSON of which only some names are wanted, decoded without the others if msgspec is installed.

A line's other values are copied and not decoded. A name of the line, or of a wanted value, that stands twice loses a
colon when the line is written again, as in `harness_noise.io.paths.loads`. Nobody reads the other values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from harness_noise.io.paths import count, escaped_colons

MOST_NAMES = 100
"""Names beyond which the lines of a file are no records of one kind."""


class Narrow:
    """A decoder of lines that knows the names of the lines before."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self.wanted = wanted
        self.names: dict[str, None] = {}
        self._decode: Callable[[bytes], Sequence[Any]] | None = None
        self._encode: Callable[[Any, bytearray], None]
        self._again = bytearray()
        self._columns: dict[str, Callable[[Any], Any]] = {}
        self._absent: Any = None
        self._refusals: tuple[type[Exception], ...] = (ValueError, RecursionError)

    def learn(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Build a fast decoder if these decoded rows have new names, no more than MOST_NAMES, and msgspec is there."""
        known = len(self.names)
        for row in rows:
            self.names.update(dict.fromkeys(row))
        if not known < len(self.names) <= MOST_NAMES:
            return
        try:
            from msgspec import UNSET, MsgspecError, Raw, UnsetType, defstruct, json
        except ImportError:
            return
        places = {name: f"_{i}" for i, name in enumerate(self.names)}
        line = defstruct(
            "Line",
            [(at, Any if name in self.wanted else Raw | UnsetType, UNSET) for name, at in places.items()],
            rename={at: name for name, at in places.items()},
            forbid_unknown_fields=True,
            omit_defaults=True,
            gc=False,
        )
        self._decode, self._encode, self._absent = json.Decoder(line).decode_lines, json.Encoder().encode_into, UNSET
        self._refusals = (MsgspecError, ValueError, RecursionError)  # msgspec 0.19's are no ValueError
        self._columns = {name: attrgetter(places[name]) for name in self.wanted if name in places}

    def cells(self, lines: bytes, n: int) -> dict[str, list[Any]] | None:
        """Decode n lines and return wanted field → its n values (None if absent). None if it cannot safely.

        Returns:
            None if the lines have to be decoded in another way: another name is in them, or one twice, NaN, or an
            escaped colon; or a line is blank, which would hide another that holds two objects.
        """
        if self._decode is None or escaped_colons(lines) or not _all_end_objects(lines):
            return None
        try:
            if not lines.isascii():
                lines.decode()
            rows = self._decode(lines)
            self._encode(rows, self._again)
            if len(rows) != n or count(self._again, ":") != count(lines, ":"):
                return None
        except self._refusals:
            return None
        absent, out = self._absent, {}
        for name in self.wanted:
            get = self._columns.get(name)
            cells = [None] * n if get is None else list(map(get, rows))
            out[name] = [None if cell is absent else cell for cell in cells] if absent in cells else cells
        return out


def _all_end_objects(lines: bytes) -> bool:
    """Return True if each line of these bytes ends with a closing brace, as a JSON object does."""
    if not (lines.startswith(b"{") and lines.endswith((b"}", b"\n"))):
        return False
    signs = np.frombuffer(lines, np.uint8)
    ends, braces = signs[1:] == ord("\n"), signs[:-1] == ord("}")
    if b"\r" in lines:
        braces[1:] |= braces[:-1] & (signs[1:-1] == ord("\r"))
    return not (ends > braces).any()
