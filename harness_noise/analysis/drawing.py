"""Records of a run that asked only some of the questions: what it is marked with, and how a log holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from ..data.scores import CorpusScores, Run, Scores
from ..data.units import Equivalent
from ..results.diagnostics import STOPPED
from ..results.parts import KINDS, STOPS

NOT_RANDOM = "not_a_random_part"
UNEQUAL = "unequal_chances"
Part = TypeVar("Part", Scores, CorpusScores)


def with_record(
    run: Run,
    stops: Iterable[Mapping[str, Any]],
    drawn: Iterable[Mapping[str, Any]],
    sizes: Mapping[str, int] | None = None,
) -> Run:
    """Return the run with these valid records of early stopping and drawn questions, their diagnostics and chances.

    Args:
        run: without them.
        stops: records of what stopped it.
        drawn: objects of its `drawn`; `stopped_early` where they say so.
        sizes: task → all its questions, where that is known; `not_a_random_part` where fewer could be drawn.
    """
    drawn = tuple(drawn)
    codes: dict[str, list[str]] = {}
    for record in drawn:
        fewer = record["n_total"] < (sizes or {}).get(record["task"], 0)
        said = {STOPPED: record["stopped_early"], NOT_RANDOM: fewer, UNEQUAL: record.get("chances")}
        codes[record["task"]] = [code for code, holds in said.items() if holds]
    chances = {record["task"]: record["chances"] for record in drawn if record.get("chances")}

    def marked(part: Part) -> Part:
        diagnostics = tuple(dict.fromkeys((*part.diagnostics, *codes.get(part.task, ()))))
        if part.task in chances and isinstance(part, Scores):
            part = replace(part, chances=chances[part.task])
        return part if diagnostics == part.diagnostics else replace(part, diagnostics=diagnostics)

    return replace(
        run,
        stops=tuple(stops),
        drawn=drawn,
        scores=tuple(map(marked, run.scores)),
        parts=tuple(map(marked, run.parts)),
        corpus=tuple(map(marked, run.corpus)),
    )


def read_block(block: object) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a log's valid records of early stopping, and of randomly drawn questions, from its `noise` block."""
    entries = block if isinstance(block, Mapping) else {}
    return recorded_stops(entries.get(STOPS)), valid_objects(entries.get("drawn"), KINDS["drawn"])


def recorded_stops(rows: object) -> list[dict[str, Any]]:
    """Return the valid early-stopping records among these rows, each `decision` with its margin."""
    found = valid_objects(rows, KINDS[STOPS])
    return [{**record, "decision": Equivalent.recorded(record["decision"])} for record in found]


def valid_objects(rows: object, kind: type[Any]) -> list[dict[str, Any]]:
    """Return rows as dicts of `kind`'s fields only. Left out: rows without a required field or with a wrong type."""
    types, declared = get_type_hints(kind), fields(kind)
    required = {field.name for field in declared if field.default is MISSING}
    listed = rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ()
    objects = [{x.name: row[x.name] for x in declared if x.name in row} for row in listed if isinstance(row, Mapping)]
    return [
        row for row in objects if required <= row.keys() and all(_is(value, types[name]) for name, value in row.items())
    ]


def _is(value: object, type_: Any) -> bool:
    kinds = {get_origin(kind) or kind for kind in (get_args(type_) if isinstance(type_, UnionType) else (type_,))}
    if isinstance(value, Mapping):
        return Mapping in kinds and all(isinstance(x, (int, float)) and 0 < x <= 1 for x in value.values())
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return type(value) is bool and bool in kinds
    return isinstance(value, tuple(kinds | ({int} if float in kinds else set())))
