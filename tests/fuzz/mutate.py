"""Damage to files, as data: lists of small changes that hypothesis draws and can make shorter."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from hypothesis import strategies as st

Change: TypeAlias = tuple[int, int, str, Any]
"""Which node (counted within a depth), to what depth nodes count, what is done, and with what."""

_DEEP: Any = 0
for _ in range(300):
    _DEEP = [_DEEP]

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 2**31, -(2**31), 2**63, 10**30, 10**400, -(10**400), 5e-324, 1e-200,
    1e69, 1e71, 1e308, -1e308, math.nan, math.inf, -math.inf, "", " ", "0", "1", "0.5", "nan", "inf", "1e999", "True",
    "C", "I", "none", "mean", "a", "q1", "\ud800", "\udc00x", "\x00", "a\x00b", "a\x1b[31mb\x1b]8;;http://x\x07",
    "a\rb\nc", "\u202eabc", "\u2028", "=1+1", "@x", "-x", "+1", "$\\frac{1}$", "a|b`c`*d*", "</script><b>", "{{ 7*7 }}",
    "{% for i in [1] %}", "../../x", "/etc/passwd", "x" * 3000, "é" * 300, [], {}, [[]], [None], [0], [1, 0], ["a", 1],
    [math.nan], {"a": 1}, {"": None}, {"a": {"b": [1, {"c": None}]}}, {"__class__": "x"}, [[1, 2], [3]], _DEEP,
)  # fmt: skip

SNIPPETS: tuple[bytes, ...] = (
    b"", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b"\r\n", b"\t", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", b"NaN", b"-Infinity", b"1e999", b"-", b"0" * 40, b"9" * 5000, b"null", b'"a": 1, ',
    b'"score": 0, ', b'"doc_id": 1, ',
    b'"\\ud800"', b"[" * 3000, b'{"a":' * 3000, b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18, b"PAR1",
    b"\x00" * 64, b"'", b";", b"|", b'""', b"e308", b"\xc3", b" ", b"true",
)  # fmt: skip

ACTIONS = ("set", "drop", "double", "rename", "swap", "wrap", "empty")

changes: st.SearchStrategy[list[Change]] = st.lists(
    st.tuples(
        st.integers(0, 1 << 20),
        st.integers(1, 9),
        st.sampled_from(ACTIONS),
        st.sampled_from(VALUES) | st.integers(-3, 3) | st.floats() | st.text(max_size=8),
    ),
    min_size=1,
    max_size=6,
)

edits: st.SearchStrategy[list[tuple[int, int, bytes]]] = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.integers(0, 64) | st.integers(0, 1 << 14), st.sampled_from(SNIPPETS)),
    min_size=1,
    max_size=4,
)
"""Where bytes are cut out of a file, how many, and what is put in their place."""


def changed(value: Any, todo: Sequence[Change]) -> Any:
    """A copy of a JSON value with the changes made one after the other."""
    root = [deepcopy(value)]
    for where, depth, action, new in todo:
        places = _places(root, depth)
        holder, key = places[where % len(places)]
        _ACTIONS[action](holder, key, deepcopy(new), places)
    return root[0] if root else None


def edited(data: bytes, todo: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Bytes with pieces replaced."""
    for where, length, new in todo:
        at = where % (len(data) + 1)
        data = data[:at] + new + data[at + length :]
    return data


def text(value: Any, *, ascii_only: bool = True) -> bytes:
    """JSON as the harnesses write it: NaN and lone surrogates included."""
    return json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


def _places(root: list[Any], depth: int) -> list[tuple[Any, Any]]:
    """(container, key) of every node down to a depth."""
    out: list[tuple[Any, Any]] = []
    level: list[Any] = [root]
    for _ in range(depth):
        below: list[Any] = []
        for holder in level:
            items = holder.items() if isinstance(holder, dict) else enumerate(holder)
            for key, value in items:
                out.append((holder, key))
                if isinstance(value, (dict, list)):
                    below.append(value)
        level = below
    return out or [(root, 0)]


def _set(holder: Any, key: Any, new: Any, _places: Any) -> None:
    if isinstance(holder, dict) or key < len(holder):
        holder[key] = new
    else:
        holder.append(new)


def _drop(holder: Any, key: Any, _new: Any, _places: Any) -> None:
    if isinstance(holder, dict) or (key < len(holder) and len(holder) > 1):
        holder.pop(key)


def _double(holder: Any, key: Any, new: Any, _places: Any) -> None:
    if isinstance(holder, list):
        holder.insert(key, deepcopy(holder[key]) if key < len(holder) else new)
    else:
        holder[str(new)[:40]] = deepcopy(holder[key])


def _rename(holder: Any, key: Any, new: Any, places: Any) -> None:
    if isinstance(holder, dict):
        holder[str(new)[:40]] = holder.pop(key)
    else:
        _set(holder, key, new, places)


def _swap(holder: Any, key: Any, new: Any, places: Any) -> None:
    other, name = places[hash(str(new)) % len(places)] if isinstance(new, int) else places[-1]
    value = holder[key] if isinstance(holder, dict) or key < len(holder) else new
    _set(holder, key, deepcopy(other[name]), places)
    if other is not holder:
        _set(other, name, deepcopy(value), places)


def _wrap(holder: Any, key: Any, new: Any, places: Any) -> None:
    value = holder[key] if isinstance(holder, dict) or key < len(holder) else new
    _set(holder, key, [value] if isinstance(new, int) else {"a": value}, places)


def _empty(holder: Any, key: Any, new: Any, places: Any) -> None:
    value = holder[key] if isinstance(holder, dict) or key < len(holder) else new
    _set(holder, key, type(value)() if isinstance(value, (dict, list, str)) else None, places)


_ACTIONS: dict[str, Callable[[Any, Any, Any, Any], None]] = {
    "set": _set, "drop": _drop, "double": _double, "rename": _rename, "swap": _swap, "wrap": _wrap, "empty": _empty,
}  # fmt: skip
