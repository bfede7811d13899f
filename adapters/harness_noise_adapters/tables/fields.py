"""Clusters, factors and fields of questions that the user asks for, taken from the rows of a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.arrays import IntArray
from harness_noise.data.clusters import (
    ClusterSpec,
    FieldReader,
    Fields,
    MissingFieldError,
    cluster_of_task,
    name_or_none,
    plain_name,
)
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import FinalError, InputError

from .blocks import Block, Names
from .opening import Record, Rows
from .presets import OFF, Getter, Recognised, column, is_there


def clusters_of(
    path: Path | Rows, options: ReadOptions, own: str, get: Getter | None, names: Names
) -> tuple[Callable[[str], str | None], Clusters | None]:
    """Return functions task → cluster SPEC and rows → (n,) numbers (None: no clusters). A user's SPEC refuses gaps.

    Args:
        path: the file, for messages.
        options: what the user asks for.
        own: what the file calls its clusters; empty where it has none.
        get: a function from a row to its own.
        names: of the clusters.
    """
    if options.cluster is None:
        cells, own_names, numbers = column(own, get), Names(), [-1]

        def own_codes(block: Block, tasks: Sequence[str]) -> IntArray:
            codes = own_names.codes(cells(block))
            numbers[-1:] = [names.number(plain_name(text)) for text in own_names.texts[len(numbers) - 1 :]] + [-1]
            return np.array(numbers)[codes]

        return (lambda task: own or None), own_codes if own else None
    parsed = ClusterSpec.parse(options.cluster)

    def natural(task: str) -> str:
        raise InputError(f"{path}: `cluster='auto'` knows the tasks of harnesses, not a table's columns. Name a column")

    @cache
    def of_task(task: str) -> tuple[Callable[[Record], str | None], str | None]:
        carried = (lambda record: None) if get is None else (lambda record: name_or_none(get(record)))
        return cluster_of_task(parsed, task, natural, carried, own or None)

    def spec(task: str) -> str | None:
        return of_task(task)[1]

    known: dict[Any, int] = {}

    def codes_of(block: Block, tasks: Sequence[str]) -> IntArray:
        wanted = {spec(task) for task in {*tasks}}
        name = wanted.pop() if len(wanted) == 1 else None
        cells = block.cells.get(name or "", ())
        if name != "task" and {*map(type, cells)} == {str}:
            known.update((cell, names.number(name_or_none(cell))) for cell in {*cells} - known.keys())
            codes = np.fromiter(map(known.__getitem__, cells), np.intp, len(cells))
            if (codes >= 0).all():
                return codes
        out = []
        for (line, record), task in zip(block, tasks, strict=True):
            try:
                out.append(of_task(task)[0](record))
            except MissingFieldError as error:
                have = ", ".join(error.fields)
                raise InputError(
                    f"{path}, line {line}: cluster column {spec(task)!r} is not there or empty. There are {have}"
                ) from None
        return names.exactly(out)

    return spec, codes_of


Clusters = Callable[[Block, Sequence[str]], IntArray]
"""Function of rows and their tasks that gives the number of each row's cluster, −1 for none."""


def mentioned(name: str, specs: Sequence[str]) -> bool:
    """Return True if any of the SPECs (columns, paths or templates) contains this column name."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", spec) for spec in specs)


def fields_of(
    path: Path | Rows, task: str, records: Mapping[str, Sequence[Record]], used: Collection[str], specs: Sequence[str]
) -> Fields | None:
    """Return user-named fields of one task's questions, None if none were named. Refuse one that varies in a question.

    The rows are those of one model × task × metric.

    Args:
        path: the file, for messages.
        task: its name.
        records: question → its rows, in the order of the questions.
        used: columns that say something else.
        specs: what is asked.

    Raises:
        FinalError: a column that differs between the answers to one question is no property of the question.
    """
    if not specs:
        return None
    docs: list[dict[str, Any]] = []
    varying: dict[str, str] = {}
    for question, (first, *others) in records.items():
        docs.append({name: value for name, value in first.items() if name not in used})
        for other in others:
            if other != first:
                varying |= {name: question for name, value in other.items() if first.get(name) != value}
    for name, question in varying.items():
        if name not in used and mentioned(name, specs):
            raise FinalError(
                f"{path}: column {name!r} has several values for question {question!r}: it describes an answer, not "
                f"a question. With {name} among the `factors`, `factors` says how much noise it makes"
            )
    reader = FieldReader(specs, task)
    for doc in docs:
        reader.add({name: value for name, value in doc.items() if name not in varying})
    return reader.fields()


def as_chosen(source: Recognised, chosen: Mapping[str, str]) -> Recognised:
    """Return a recognised file, its format overridden by the user's columns. Refuse fields that the first row lacks."""
    first = next((row for block in source.blocks() for row in block.rows), None) if chosen else None
    said: dict[str, Any] = {}
    for ours, theirs in chosen.items():
        if theirs == OFF and ours != "question":
            said[ours] = ""
            continue
        if first is not None and not theirs.startswith("@") and "{" not in theirs and not is_there(theirs, first):
            have = ", ".join(map(str, first))
            raise InputError(f"{source.path}: `columns` {ours}={theirs}: no such field. There are {have}")
        said[ours] = [theirs] if ours == "question" else theirs
        if ours in ("question", "repeat"):
            said |= {"known_by": (), "text": ""} if ours == "question" else {"condition": "", "shared_repeats": False}
    return replace(source, preset=replace(source.preset, **said))
