"""What all results share: rows as strict JSON and as a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance


SCHEMA_VERSION = 1


def row(result: DataclassInstance) -> dict[str, Any]:
    """The JSON form of one row: strict JSON, None for what is not identified."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(result).items()}


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table."""
    import pandas as pd

    return pd.DataFrame([{key: storable(value) for key, value in item.items()} for item in rows])


def storable(value: Any) -> Any:
    """A text without halves of surrogate pairs, which JSON can spell and no column of text can hold."""
    return _HALF.sub("\ufffd", value) if isinstance(value, str) else value


_HALF = re.compile("[\ud800-\udfff]")


def finite(value: float | None) -> float | None:
    """None for what is not a finite number: nothing else enters a result."""
    return None if value is None or not math.isfinite(value) else float(value)


def merge_notes(*groups: Iterable[str]) -> tuple[str, ...]:
    """All notes once, in order."""
    return tuple(dict.fromkeys(note for group in groups for note in group))
