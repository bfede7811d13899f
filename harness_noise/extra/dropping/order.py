"""Check that growing runs have asked their questions in one recorded order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ...api.keywords import Request
from ...arrays import BoolArray
from ...data.scores import Run
from ...errors import InputError
from ..arena.pairs import Grid
from ..arena.scoring import MeasuredRun
from .memory import ANEW, Kept

ORDER = "order"
"""The column of a table that says in which order the questions are asked."""
_TYPE = (
    "lm-eval: --noise --noise_sample 100 --noise_seed 1. Inspect: --metadata noise=true --metadata noise_sample=100 "
    "--metadata noise_seed=1. A table: a column `order` with the place of each question in a random order"
)


def asked(entry: MeasuredRun) -> int:
    """Return the number of questions that a run was asked, with or without a score."""
    return sum(int(part.was_asked.any(axis=1).sum()) for part in entry.parts)


def total(measured: Sequence[MeasuredRun], here: int, n: int | None, kept: Kept | None) -> int:
    """Return the most questions to be asked: given, as at earlier looks, said by runs, or all. Refuse other or low `n`.

    Raises:
        InputError: fewer than some run has answered, or another number than before.
    """
    before = None if kept is None else kept.head.get("n")
    if n is not None and isinstance(before, int) and n != before:
        raise InputError(
            f"`n` {n:,}: the looks before were taken with {before:,}, which says how much error each of them spent: "
            f"give the same, or {ANEW}"
        )
    said = [sum(_records(entry)[part.task]["n_total"] for part in entry.parts) for entry in measured if _has(entry)]
    known = n or (before if isinstance(before, int) else None) or max([here, *said])
    if known < here:
        raise InputError(f"`n` {known:,}: the runs have answered {here:,} questions together. Give as many at least")
    return known


def read(request: Request, sources: Sequence[Any]) -> list[Run]:
    """Read the runs of all sources, each with the column `order` of its table if it has one."""
    ordered = replace(request, options=replace(request.options, fields=(*request.options.fields, ORDER)))
    try:
        return ordered.runs(sources, some=True)
    except InputError:
        pass
    out: list[Run] = []
    for source in sources:
        try:
            out += ordered.runs([source])
        except InputError:
            out += request.runs([source])
    return out


def check(measured: Sequence[MeasuredRun], board: Grid, at: Sequence[int], whole: int) -> int | None:
    """Return the seed of the order of unfinished runs, or None. Refuse unlike or unrecorded orders, other questions.

    Args:
        measured: the runs that go on.
        board: all runs on their questions.
        at: the places of those that go on.
        whole: questions that are asked at most.
    """
    asked = [_was_asked(board, m, entry) for m, entry in zip(at, measured, strict=True)]
    part = [entry for entry, own in zip(measured, asked, strict=True) if own.sum() < whole]
    seeds = {entry.name: _seed(entry) for entry in part}
    places = {name: _places_in_order(entry) for entry in part if seeds[name := entry.name] is None}
    for name, place in places.items():
        if place is None:
            raise InputError(
                f"{name} has answered a part of {whole:,} questions, and no order of them is recorded, so the part may "
                f"be any. Ask all models one random order that is recorded. {_TYPE}. If these are all questions, leave "
                "`n` out"
            )
    _check_same_order(seeds, {name: place for name, place in places.items() if place is not None})
    names = [entry.name for entry in measured]
    by_size = sorted(range(len(at)), key=lambda i: int(asked[i].sum()))
    for i, j in pairwise(by_size):
        if lost := int((asked[i] & ~asked[j]).sum()):
            raise InputError(
                f"{names[i]} and {names[j]} were asked different questions: {lost:,} of {names[i]}'s "
                f"{int(asked[i].sum()):,} are not among {names[j]}'s {int(asked[j].sum()):,}. All models answer one "
                f"order, each a first part of it. {_TYPE}"
            )
    return next((seed for seed in seeds.values() if seed is not None), None)


def _was_asked(board: Grid, m: int, entry: MeasuredRun) -> BoolArray:
    """Return (N,) True for the questions of all runs that this run was asked, with or without a score."""
    out = []
    for rows, part in zip(board.rows, entry.parts, strict=True):
        own = np.zeros(1 + max(int(each.max(initial=-1)) for each in rows), dtype=np.bool_)
        own[rows[m][part.was_asked.any(axis=1)]] = True
        out.append(own)
    return np.concatenate(out)


def _records(entry: MeasuredRun) -> Mapping[str, Mapping[str, Any]]:
    return {record["task"]: record for record in entry.run.drawn}


def _has(entry: MeasuredRun) -> bool:
    return all(part.task in _records(entry) for part in entry.parts)


def _seed(entry: MeasuredRun) -> int | None:
    """Return the recorded seed of a run's question order, None without. Refuse an early stop, and unequal chances.

    Raises:
        InputError: a run that stopped by itself, or whose questions had different chances.
    """
    if not _has(entry):
        return None
    records = [_records(entry)[part.task] for part in entry.parts]
    if any(record["stopped_early"] or record.get("chances") for record in records):
        raise InputError(
            f"{entry.name} stopped early by itself, or its questions were drawn with different chances. Ask all models "
            f"parts whose size is fixed before. {_TYPE}"
        )
    seeds = {record["order_seed"] for record in records}
    return int(seeds.pop()) if len(seeds) == 1 and None not in seeds else None


def _places_in_order(entry: MeasuredRun) -> Mapping[str, str] | None:
    """Return {"task question": place in the order, a text} of a table's column `order`. None unless all are numbers."""
    out: dict[str, str] = {}
    for part in entry.parts:
        fields = part.questions.fields
        values = [] if fields is None else [str(value) for value in fields.values.get(ORDER, ())]
        if len(values) != len(part.questions) or not all(map(_is_number, values)):
            return None
        out |= {f"{part.task} {key}": value for key, value in zip(part.questions.keys, values, strict=True)}
    return out


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _check_same_order(seeds: Mapping[str, int | None], places: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse runs whose orders differ: two seeds, a seed next to recorded places, or two places of one question."""
    known = {name: seed for name, seed in seeds.items() if seed is not None}
    if len(set(known.values())) > 1 or (known and places):
        told = [*(f"{name} seed {seed}" for name, seed in known.items()), *(f"{name} its own" for name in places)]
        raise InputError(
            f"the runs were asked in different orders ({', '.join(told[:4])}): ask all of them one. {_TYPE}"
        )
    first: dict[str, str] = {}
    for name, place in places.items():
        if wrong := next((key for key, at in place.items() if first.setdefault(key, at) != at), None):
            raise InputError(
                f"{name}: question {wrong} is number {place[wrong]} of the order here, and number {first[wrong]} in "
                "another run: all models are asked one order"
            )
