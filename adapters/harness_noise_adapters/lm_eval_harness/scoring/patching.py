"""Small things that scoring, files and live runs share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def close(a: float, b: float, tolerance: float = 1e-9) -> bool:
    """Equality to the rounding of a sum."""
    return abs(a - b) <= tolerance * max(1.0, abs(b))


@contextmanager
def patched(target: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of one object, and put back what its own dictionary held."""
    own = vars(target)
    had, before = name in own, own.get(name)
    setattr(target, name, value)
    try:
        yield
    finally:
        if had:
            setattr(target, name, before)
        else:
            delattr(target, name)
