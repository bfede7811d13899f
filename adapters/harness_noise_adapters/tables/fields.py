"""What a table says of its questions beside their scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.fields import FieldReader, Fields
from harness_noise.errors import FinalError

if TYPE_CHECKING:
    from .columns import Columns
    from .reader import Cells


def mentioned(name: str, specs: Sequence[str]) -> bool:
    """Whether a column is one that the SPECs speak of."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", spec) for spec in specs)


def fields_of(path: Path, task: str, cells: Cells, columns: Columns, specs: Sequence[str]) -> Fields | None:
    """The values of SPECs for each question of one model × task × metric; None where nothing is asked.

    Raises:
        FinalError: a column that differs between the answers to one question is no property of the question.
    """
    if not specs:
        return None
    used = {theirs for ours, theirs in columns.names.items() if ours != "cluster"}
    docs: list[dict[str, Any]] = []
    varying: dict[str, str] = {}
    for question in cells.numbers:
        first, *others = cells.records[question]
        docs.append({name: value for name, value in first.items() if name not in used})
        for other in others:
            if other != first:
                varying |= {name: question for name, value in other.items() if first.get(name) != value}
    for name, question in varying.items():
        if name not in used and mentioned(name, specs):
            raise FinalError(
                f"{path}: column {name!r} has several values for question {question!r}: it tells of an answer, not "
                f"of a question; `factors --factor {name}={name}` says how much noise it makes"
            )
    reader = FieldReader(specs, task)
    for doc in docs:
        reader.add({name: value for name, value in doc.items() if name not in varying})
    return reader.fields()
