"""Human labels from a table: one row for each answer, or for each person who labelled it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from harness_noise.errors import InputError
from harness_noise.extra.labels.files import Label, LabelFile

from ...tables.columns import aliases
from ...tables.evidence.lexicon import snake
from ...tables.files import records
from ...tables.opening import Record, Rows, suffix_of
from ...tables.values import cell_text, score_of

_NAMES = {
    **{ours: aliases(ours) for ours in ("question", "task", "model", "repeat")},
    "label": ["label", "human_label", "human", "gold_label", "human_score"],
    "person": ["person", "annotator", "annotator_id", "rater", "rater_id", "labeller", "labeler", "labelled_by"],
    "answer_id": ["answer_id"],
    "chance": ["chance"],
}
"""Our column → its accepted names, in lower case. The first one present is used."""
_HEAD = 100


def read_labels(path: Path | None, given: Sequence[Record] = ()) -> LabelFile:
    """Read a table of human labels, empty ones apart, from a file or rows in memory. Refuse one that is no such table.

    Args:
        path: of the table, None for rows in memory.
        given: these rows.

    Raises:
        InputError: the file is damaged, a column is missing, or a label is neither a number nor a verdict.
    """
    if path is not None and not suffix_of(path):
        raise InputError(f"{path}: labels are read from CSV, TSV, JSONL, JSON or Parquet")
    return _labels_of(Rows("labels", given) if path is None else path)


def _labels_of(path: Path | Rows) -> LabelFile:
    rows = records(path)
    head = list(islice(rows, _HEAD))
    names = _columns(path, [record for _, record in head])
    labels: list[Label] = []
    empty: list[Label] = []
    for line, record in (*head, *rows):
        value = score_of(path, line, names["label"], record.get(names["label"]))
        question = _text(record, names, "question")
        if question is None:
            raise InputError(f"{path}, line {line}: no {names['question']!r}, which says what is labelled")
        chance = None if math.isnan(value) else _chance(path, line, record, names)
        others = {name: _text(record, names, name) for name in ("task", "model", "repeat", "person", "answer_id")}
        (empty if math.isnan(value) else labels).append(Label(question, value, line, **others, chance=chance))
    return LabelFile(str(path), tuple(labels), tuple(empty))


def _columns(path: Path | Rows, head: Sequence[Record]) -> dict[str, str]:
    """Return {label field (question, label, model, …): the file's column}. Refuse one without question or label."""
    have = {snake(str(name)): str(name) for record in head for name in record}
    names = {
        ours: have[next(name for name in aliases if name in have)]
        for ours, aliases in _NAMES.items()
        if have.keys() & set(aliases)
    }
    for needed in ("question", "label"):
        if needed not in names:
            raise InputError(
                f"{path}: no column {needed!r}. There are {', '.join(have.values()) or 'none'}. A file of labels has "
                "the columns question and label, and where that is needed task, model, repeat and person"
            )
    return names


def _text(record: Record, names: Mapping[str, str], name: str) -> str | None:
    """Return a cell's text, None if empty, without the leading quote that stops spreadsheet formulas."""
    text = cell_text(record.get(names[name])) if name in names else None
    return text[1:] if text is not None and text[:1] == "'" and text[1:].lstrip()[:1] in _FORMULA else text


_FORMULA: Iterable[str] = ("=", "+", "-", "@")


def _chance(path: Path | Rows, line: int, record: Record, names: Mapping[str, str]) -> float | None:
    """Return the probability with which a row was drawn, None without the column or if blank. Refuse other numbers."""
    if "chance" not in names:
        return None
    value = score_of(path, line, "chance", record.get(names["chance"]))
    if math.isnan(value):
        return None
    if not 0 < value <= 1:
        raise InputError(f"{path}, line {line}: chance {value:g} is not a probability")
    return value
