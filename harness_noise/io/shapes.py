"""All that a JSON value is, in words, for messages on files that nothing reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from .paths import load


def shape_of(value: Any) -> str:
    """Describe a JSON value in words: `an object with 800 keys, each a list of 10 truth values`."""
    if isinstance(value, dict):
        each = {_kind_of(one) for one in list(value.values())[:_LOOKED_AT]}
        if len(value) <= _NAMED:
            names = ", ".join(repr(name[:_LONGEST]) for name in value)
            keys = f"an object with {'the keys ' + names if value else 'nothing in it'}"
        else:
            keys = f"an object with {len(value):,} keys"
        return f"{keys}, each {each.pop()}" if len(each) == 1 and len(value) > 1 else keys
    return _kind_of(value)


_NAMED, _LONGEST = 6, 30
"""Keys that are named, and the characters of a name."""
_LOOKED_AT = 1000
_KINDS = {bool: "truth value", int: "number", float: "number", str: "text", dict: "object", list: "list"}


def _kind_of(value: Any) -> str:
    if not isinstance(value, list):
        return f"a{'n' * isinstance(value, dict)} {_KINDS.get(type(value), 'null')}"
    kinds = {_KINDS.get(type(one), "null") for one in value}
    return f"a list of {len(value)} {kinds.pop()}s" if len(kinds) == 1 else "a list"


def shape_of_file(path: Path) -> str:
    """Describe a file's JSON document in words, for a message. "" if it is no JSON file."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return ""
    with suppress(InputError):
        return shape_of(load(path))
    return ""
