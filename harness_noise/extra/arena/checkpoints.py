"""Checkpoints of a training run in their order: how the score moves, and where it has moved by more than noise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...data.clusters import numeral
from ...data.notes import Note
from ...data.scores import Run
from ...errors import InputError, some_of
from ...results.forms import finite
from ...stats import decision
from .pairs import square
from .results import Arena, BenchmarkResult, Checkpoint

_WORDS = {"step": r"(?:global[_-]?)?step|checkpoint|ckpt|iter(?:ation)?"}
"""Words of names that stand before a step."""
_TIMES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


class _Place(NamedTuple):
    """A checkpoint's step and series, and its model's place on a benchmark."""

    step: float
    series: str
    column: int
    """Its place among the models of the benchmark."""


def with_checkpoints(arena: Arena, runs: Mapping[str, Run], over: str) -> Arena:
    """Return the arena with `checkpoints`, compared to first and previous. Refuse if no order is known or a step twice.

    Args:
        arena: of `runs`.
        runs: by their names in it, with the field `over` where they have one.
        over: what orders them: a word before a number in their names (``"step"``: also checkpoint, ckpt, iter), or a
            field that has one number in each run.

    Raises:
        InputError: no benchmark has two checkpoints in order, or two have the same step.
    """
    places = {
        name: in_name(name, over) or in_name(run.name, over) or _step_in_field(run, over) for name, run in runs.items()
    }
    rows, without = [], []
    for board in arena.boards:
        by_series: dict[str, list[_Place]] = {}
        for column, name in enumerate(board.pairs.names):
            place = places[name]
            if place is None:
                without.append(name)
            else:
                by_series.setdefault(place[0], []).append(_Place(place[1], place[0], column))
        for series in by_series.values():
            if len(series) > 1:
                rows += _checkpoint_rows(board, sorted(series), arena.settings)
    if not rows:
        names = list(dict.fromkeys(model.model for model in arena.models))
        raise InputError(
            f"`over` {over!r}: neither the names of the runs nor a field say which checkpoints follow each other. "
            f"There are {some_of(names, 4)}. Name the runs {over}_1000, {over}_2000, …, or add a column {over}"
        )
    said = f"no {over} is known of {some_of(list(dict.fromkeys(without)), 4)}: not among the checkpoints"
    left = [Note("not_a_checkpoint", said)]
    return replace(arena, checkpoints=tuple(rows), notes=(*arena.notes, *(left if without else ())))


def _step_in_field(run: Run, over: str) -> tuple[str, float] | None:
    """Return ("", step) if the field `over` has one number on all of a run's questions, else None."""
    fields = [part.questions.fields for part in run.scores]
    values = {value for own in fields if own is not None for value in own.values.get(over, ())}
    value = values.pop() if len(values) == 1 else None
    step = value if isinstance(value, float) else numeral(value) if isinstance(value, str) else None
    return None if step is None else ("", step)


def in_name(name: str, over: str) -> tuple[str, float] | None:
    """Parse the step after `over` in a name, or a bare number: "run-7/step2k" gives ("run-7", 2000.0). None without.

    >>> in_name("run-7/global_step2000", "step")
    ('run-7', 2000.0)
    >>> in_name("pythia (checkpoint-10k)", "step")
    ('pythia', 10000.0)
    """
    if re.fullmatch(r"\d+(?:\.\d+)?", name):
        return "", float(name)
    words = _WORDS.get(over, re.escape(over))
    every = list(re.finditer(rf"(?<![a-z])(?:{words})s?[-_= ]?(\d+(?:\.\d+)?)([kmbt]?)(?![a-z0-9])", name, re.I))
    if not every:
        return None
    last = every[-1]
    rest = (part.strip(" -_=/.,()") for part in (name[: last.start()], name[last.end() :]))
    return " ".join(filter(None, rest)), float(last[1]) * _TIMES[last[2].lower()]


def _checkpoint_rows(board: BenchmarkResult, series: Sequence[_Place], settings: Mapping[str, Any]) -> list[Checkpoint]:
    """Return rows of a training run's checkpoints, with differences to the first and previous. Refuse a step twice."""
    for before, after in pairwise(series):
        if before.step == after.step:
            names = [board.pairs.names[place.column] for place in (before, after)]
            raise InputError(f"{' and '.join(names)} are both at {before.step:g}: name runs of two series differently")
    c = board.pairs.columns
    p = np.where(board.pairs.withheld, np.nan, c["p_value"])
    changes = np.stack(
        [
            square(board.pairs, c["diff"], -c["diff"]),
            square(board.pairs, c["ci_low"], -c["ci_high"]),
            square(board.pairs, c["ci_high"], -c["ci_low"]),
            square(board.pairs, p, p),
        ],
        axis=-1,
    )
    columns = [place.column for place in series]
    first, previous = changes[columns, columns[0]], changes[columns, [columns[0], *columns[:-1]]]
    # two tests, each with its own family: different from the start? different from the last one?
    p_first, p_previous = (decision.adjusted(rows[:, 3], settings["adjust"]) for rows in (first, previous))
    ways = np.where(p_first < 1 - settings["level"], np.sign(first[:, 0]), 0.0)
    onset = next((i for i, way in enumerate(ways) if way and (ways[i:] == way).all()), None)
    out = []
    for i, place in enumerate(series):
        model = board.models[place.column]
        since, low, high, _ = map(finite, first[i])
        out.append(
            Checkpoint(
                *board.key,
                series=place.series,
                model=model.model,
                step=place.step,
                mean=model.mean,
                _zero_one=model._zero_one,
                ci_low=model.ci_low,
                ci_high=model.ci_high,
                since_first=since,
                since_first_low=low,
                since_first_high=high,
                p_first=finite(p_first[i]),
                since_previous=finite(previous[i, 0]),
                p_previous=finite(p_previous[i]),
                changed=bool(ways[i]) if np.isfinite(p_first[i]) else None,
                onset=i == onset,
            )
        )
    return out
