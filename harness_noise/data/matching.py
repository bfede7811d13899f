"""Which questions of one run are which of another: by key, verified by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .questions import CONTENT_KEYS, Questions, occurrences
from .scores import Scores

if TYPE_CHECKING:
    from ..stats.arrays import BoolArray


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
    if a.kind == b.kind in CONTENT_KEYS:
        rows = _match(a.keys, b.keys)
        if len(rows[0]) == min(len(a), len(b)):  # before the texts are asked for, which may have to be read
            return Pairing(*rows, by=a.kind)
    if a.kind == b.kind or a.inputs is None or b.inputs is None:
        rows = _match(a.keys, b.keys)
        if a.inputs is None or b.inputs is None:
            return Pairing(*rows, by=a.kind)
        if a.kind == b.kind in CONTENT_KEYS:
            by_text = _match(occurrences(a.inputs), occurrences(b.inputs))
            if len(by_text[0]) <= len(rows[0]):
                return Pairing(*rows, by=a.kind)
            note = f"only {len(rows[0])} questions share a {a.kind} and {len(by_text[0])} their text: matched by text"
            return Pairing(*by_text, by="content", note=note)
        same = _equal(a.inputs, b.inputs, rows)
        if a.targets is not None and b.targets is not None:
            same &= _equal(a.targets, b.targets, rows)
        if same.all() and len(same):
            return Pairing(*rows, by=a.kind)
        by_content = _match(_content(a, b), _content(b, a))
        clash = f"{np.count_nonzero(~same)} questions share a {a.kind} but not their text"
        if len(by_content[0]) > np.count_nonzero(same):
            return Pairing(*by_content, by="content", note=f"{clash}: matched by text" if rows[0] else None)
        kept = list(compress(rows[0], same)), list(compress(rows[1], same))
        return Pairing(*kept, by=a.kind, note=f"{clash}: left out" if rows[0] else None)
    return Pairing(*_match(occurrences(a.inputs), occurrences(b.inputs)), by="content")


def same_partition(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two lists of labels of the same questions form the same clusters, whatever they are called."""
    pairs = set(zip(a, b, strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def _equal(a: Sequence[str], b: Sequence[str], rows: tuple[list[int], list[int]]) -> BoolArray:
    return np.fromiter((a[i] == b[j] for i, j in zip(*rows, strict=True)), np.bool_, len(rows[0]))


def _content(one: Questions, other: Questions) -> Sequence[str]:
    assert one.inputs is not None
    if one.targets is None or other.targets is None:
        return occurrences(one.inputs)
    return occurrences([f"{i}/{t}" for i, t in zip(one.inputs, one.targets, strict=True)])


def _match(a: Sequence[str], b: Sequence[str]) -> tuple[list[int], list[int]]:
    """Rows of equal keys, which are unique in each; most runs have the same ones in the same order."""
    if a == b:
        return list(range(len(a))), list(range(len(b)))
    where = dict(zip(b, range(len(b)), strict=True))
    found = list(map(where.get, a))
    return [i for i, j in enumerate(found) if j is not None], [j for j in found if j is not None]


def pair_runs(one: Scores, other: Scores) -> tuple[Scores, Scores, str]:
    """The repeats of two models that share their cause, side by side: column j of both is one run.

    Runs are matched by the label of a factor (prompt, seed, judge) that both carry and that tells the runs of each
    apart; else by position. Runs that only one of the two has are left out.

    Returns:
        Both scores with the columns that are shared, in one order, and a sentence that says how they were matched.

    Raises:
        InputError: no labels and unequal numbers of runs, or fewer than two runs in common.
    """
    ours, theirs = _run_labels(one), _run_labels(other)
    K_a, K_b = one.values.shape[1], other.values.shape[1]
    named = [name for name in ours if name in theirs and set(ours[name]) & set(theirs[name])]
    if named:
        name = named[0]
        columns = [(j, theirs[name].index(label)) for j, label in enumerate(ours[name]) if label in theirs[name]]
        only = K_a + K_b - 2 * len(columns)
        how = f"the runs of A and B are paired by {name}" + (
            f"; {only} that only one of them has are left out" if only else ""
        )
    elif K_a == K_b:
        columns = [(j, j) for j in range(K_a)]
        how = "the runs of A and B are paired by position: run 1 of A with run 1 of B, and so on"
    else:
        raise InputError(
            f"{one.task}, {one.metric}: `runs_shared` cannot tell which run of A ({K_a}) is which of B ({K_b}): read "
            "both with the factor that names the runs (factors=['prompt'] of hn.read), or give equally many, in one "
            "order"
        )
    if len(columns) < 2:
        raise InputError(
            f"{one.task}, {one.metric}: `runs_shared` needs at least two runs that A and B have in common; there "
            f"{'is one' if columns else 'is none'}"
        )
    at_a, at_b = map(list, zip(*columns, strict=True))
    return (
        replace(one, values=one.values[:, at_a], factors=None),
        replace(other, values=other.values[:, at_b], factors=None),
        f"{one.task}, {one.metric}: {how}",
    )


def _run_labels(item: Scores) -> dict[str, tuple[str, ...]]:
    """Factor → its label in each column, for the factors that have one in each and another in each."""
    out = {}
    for name, rows in (item.factors or {}).items():
        if any(len(row) != item.values.shape[1] for row in rows):
            continue
        levels = [{label for label in column if label} for column in zip(*rows, strict=True)]
        if all(len(level) == 1 for level in levels):
            labels = tuple(level.pop() for level in levels)
            if len(set(labels)) == len(labels):
                out[name] = labels
    return out
