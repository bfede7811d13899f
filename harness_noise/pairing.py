"""Which questions of one run are which of another: by key, verified by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .scores import Questions, occurrences

CONTENT_KEYS = frozenset({"doc_hash"})
"""Kinds of keys that are hashes of the whole question: where they agree there is nothing to verify."""


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
    matching to the content. A document's hash changes with a field that another version adds, so
    the text decides where it finds more. Keys of different kinds (two harnesses) are matched by
    content at once.
    """
    if a.kind == b.kind or a.inputs is None or b.inputs is None:
        rows = _match(a.keys, b.keys)
        if a.inputs is None or b.inputs is None:
            return Pairing(*rows, by=a.kind)
        if a.kind == b.kind in CONTENT_KEYS:
            if len(rows[0]) == min(len(a), len(b)):
                return Pairing(*rows, by=a.kind)
            by_text = _match(occurrences(a.inputs), occurrences(b.inputs))
            if len(by_text[0]) <= len(rows[0]):
                return Pairing(*rows, by=a.kind)
            note = f"only {len(rows[0])} questions share a {a.kind} and {len(by_text[0])} their text: matched by text"
            return Pairing(*by_text, by="content", note=note)
        agree = sum(a.inputs[i] == b.inputs[j] and _same_target(a, i, b, j) for i, j in zip(*rows, strict=True))
        if agree == len(rows[0]) > 0:
            return Pairing(*rows, by=a.kind)
        by_content = _match(_content(a, b), _content(b, a))
        if len(by_content[0]) > agree:
            clash = f"{len(rows[0]) - agree} questions share a {a.kind} but not their text: matched by text"
            return Pairing(*by_content, by="content", note=clash if rows[0] else None)
        kept = [(i, j) for i, j in zip(*rows, strict=True) if a.inputs[i] == b.inputs[j] and _same_target(a, i, b, j)]
        clash = f"{len(rows[0]) - agree} questions share a {a.kind} but not their text: left out"
        return Pairing([i for i, _ in kept], [j for _, j in kept], by=a.kind, note=clash if rows[0] else None)
    return Pairing(*_match(occurrences(a.inputs), occurrences(b.inputs)), by="content")


def same_partition(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two lists of labels of the same questions form the same clusters, whatever they are called."""
    pairs = set(zip(a, b, strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


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
