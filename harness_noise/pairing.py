"""Which questions of one run are which of another: by key, verified by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .scores import Questions, occurrences


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which questions of A are which of B, as row numbers of equal length."""

    rows_a: list[int]
    rows_b: list[int]
    by: str
    note: str | None = None


def pair(a: Questions, b: Questions) -> Pairing:
    """Match two runs' questions: by key, verified by content where both have it; else by content.

    Automatic ids are worth nothing after a shuffle, so one id with two texts sends the whole
    matching to the content. Keys of different kinds (two harnesses) are matched by content at once.
    """
    if a.kind == b.kind or a.inputs is None or b.inputs is None:
        rows = _match(a.keys, b.keys)
        if a.inputs is None or b.inputs is None:
            return Pairing(*rows, by=a.kind)
        agree = sum(a.inputs[i] == b.inputs[j] and _same_target(a, i, b, j) for i, j in zip(*rows, strict=True))
        if agree == len(rows[0]) > 0:
            return Pairing(*rows, by=a.kind)
        by_content = _match(_content(a, b), _content(b, a))
        if len(by_content[0]) > agree:
            note = None
            if rows[0]:
                note = f"{len(rows[0]) - agree} questions share a {a.kind} but not their text: matched by text"
            return Pairing(*by_content, by="content", note=note)
        kept = [(i, j) for i, j in zip(*rows, strict=True) if a.inputs[i] == b.inputs[j] and _same_target(a, i, b, j)]
        note = f"{len(rows[0]) - agree} questions share a {a.kind} but not their text: left out" if rows[0] else None
        return Pairing([i for i, _ in kept], [j for _, j in kept], by=a.kind, note=note)
    return Pairing(*_match(occurrences(a.inputs), occurrences(b.inputs)), by="content")


def _same_target(a: Questions, i: int, b: Questions, j: int) -> bool:
    return a.targets is None or b.targets is None or a.targets[i] == b.targets[j]


def _content(one: Questions, other: Questions) -> Sequence[str]:
    assert one.inputs is not None
    if one.targets is None or other.targets is None:
        return occurrences(one.inputs)
    return occurrences([f"{i}/{t}" for i, t in zip(one.inputs, one.targets, strict=True)])


def _match(a: Sequence[str], b: Sequence[str]) -> tuple[list[int], list[int]]:
    where = {key: j for j, key in enumerate(b)}
    rows = [(i, where[key]) for i, key in enumerate(a) if key in where]
    return [i for i, _ in rows], [j for _, j in rows]
