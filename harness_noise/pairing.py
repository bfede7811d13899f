"""Which questions of one run are which of another: by key, verified by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .samples import Sample, sample
from .scores import Questions, Scores, occurrences

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


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Two samples on the same questions, in the same order, and what was left out."""

    a: Sample
    b: Sample
    only_a: int
    only_b: int
    different_prompts: bool
    cluster: str | None
    notes: tuple[str, ...]


def align(parts_a: Sequence[Scores], parts_b: Sequence[Scores], shares: list[float] | None) -> Aligned:
    """Reduce each task to the questions that both runs scored."""
    kept_a, kept_b, notes = [], [], []
    only_a = only_b = 0
    prompts = False
    for one, other in zip(parts_a, parts_b, strict=True):
        scored_a = np.isnan(one.values).sum(axis=1) < one.values.shape[1]  # an infinite score is refused below
        scored_b = np.isnan(other.values).sum(axis=1) < other.values.shape[1]
        found = pair(one.questions, other.questions)
        both = [(i, j) for i, j in zip(found.rows_a, found.rows_b, strict=True) if scored_a[i] and scored_b[j]]
        only_a += int(scored_a.sum()) - len(both)
        only_b += int(scored_b.sum()) - len(both)
        if found.note is not None:
            notes.append(f"{one.task}: {found.note}")
        rows_a, rows_b = [i for i, _ in both], [j for _, j in both]
        if one.questions.prompts is not None and other.questions.prompts is not None:
            pa, pb = one.questions.prompts, other.questions.prompts
            prompts |= any(pa[i] != pb[j] for i, j in both)
        clusters, spec = _shared_clusters(one, rows_a, other, rows_b)
        theirs = clusters if other.clusters is None else [other.clusters[j] for j in rows_b]
        if clusters is not None and theirs is not None and not same_partition(clusters, theirs):
            notes.append(f"{one.task}: the two runs cluster the questions differently; A's clusters count")
        keys = Questions(tuple(one.questions.keys[i] for i in rows_a), one.questions.kind)
        kept_a.append(replace(one, questions=keys, values=one.values[rows_a], clusters=clusters, cluster_spec=spec))
        kept_b.append(replace(other, questions=keys, values=other.values[rows_b], clusters=clusters, cluster_spec=spec))
    spec = next((part.cluster_spec for part in kept_a if part.cluster_spec), None)
    a, b = sample(kept_a, shares), sample(kept_b, shares)
    return Aligned(a, b, only_a, only_b, prompts, spec, tuple(notes))


def _shared_clusters(
    one: Scores, rows_a: list[int], other: Scores, rows_b: list[int]
) -> tuple[tuple[str, ...] | None, str | None]:
    """A's clusters, or B's where A has none: the questions are the same, so their clusters are."""
    if one.clusters is not None:
        return tuple(one.clusters[i] for i in rows_a), one.cluster_spec
    if other.clusters is not None:
        return tuple(other.clusters[j] for j in rows_b), other.cluster_spec
    return None, None
