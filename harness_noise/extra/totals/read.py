"""Totals of runs from a table: a row for each run, with its score and perhaps its number of questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...arrays import HUGE, FloatArray
from ...errors import InputError, some_of
from ...io.paths import exists, is_path, resolve_path
from ..ground import Row, column_of, is_empty, number_of, rows_of
from .stats import Bounds

Key = tuple[str, str]
"""Task and metric."""
_NAMES = {
    "run": ("run", "run_id", "seed", "trial"),
    "n": ("n", "n_questions", "questions", "n_samples"),
    "task": ("task", "benchmark", "dataset"),
    "metric": ("metric",),
    "model": ("model", "model_id", "system"),
    "score": ("score", "accuracy", "acc", "mean", "value"),
}
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
_OF_ANSWERS = ("question", "question_id", "item_id", "example_id", "sample_id", "doc_id")


class TotalsOf(NamedTuple):
    """The runs of one configuration on one task and metric, one score each."""

    model: str
    key: Key
    scores: FloatArray
    """(R,)."""
    n: int | None
    """Questions of each run."""
    bounds: Bounds
    """The metric's range, None if it is unknown."""


def are_answers(source: Any) -> bool:
    """Return True if a source holds answers to questions, False for a table of total scores or a missing path."""
    if is_path(source):
        path = resolve_path(source)
        if Path(path.name.removesuffix(".gz")).suffix not in _TABLES or not path.is_file():
            return exists(path)
    elif not (hasattr(source, "to_dict") and hasattr(source, "columns")) and not isinstance(source, list):
        return True
    try:
        rows = rows_of(source)[1]
    except InputError:  # of a document, whoever reads answers says what is wrong with it
        return is_path(source) and resolve_path(source).suffix == ".json"
    return any(name.lower() in _OF_ANSWERS for name in rows[0])


def read_totals(source: Any, columns: Mapping[str, str], bounds: Bounds) -> list[TotalsOf]:
    """Read a table of totals, one row per run, by model, task and metric. Refuse empty scores, answers, a run twice.

    Args:
        source: see `ground.rows_of`.
        columns: role → column, as the user says.
        bounds: the metric's range, as the user says.

    Raises:
        InputError: a column is not there, a cell is no number, a run stands twice, or runs have other numbers of
            questions; says where.
    """
    where, rows = rows_of(source)
    unknown = set(columns) - set(_NAMES)
    if unknown:
        raise InputError(f"{where}: totals have no {sorted(unknown)[0]!r}: `columns` names {', '.join(_NAMES)}")
    asked = next((name for name in rows[0] if name.lower() in _OF_ANSWERS), "")
    if asked:
        raise InputError(
            f"{where}: it has a column {asked!r}, so its rows are answers and not totals of runs: leave `totals` out"
        )
    named = {role: column_of(where, rows, role, names, columns) for role, names in _NAMES.items()}
    named["score"] = named["score"] or _only_number(where, rows, set(named.values()))
    groups: dict[tuple[str, str, str], dict[str, tuple[float, float]]] = {}
    for number, row in enumerate(rows, 1):
        cells = {role: row.get(name) if name else None for role, name in named.items()}
        at = f"{where}, row {number}"
        score = _number(at, named["score"], cells["score"])
        if math.isnan(score):
            raise InputError(f"{at}: the {named['score']} is empty: leave this run out of the table, or fill it in")
        group = (_text(cells["model"], where), _text(cells["task"], ""), _text(cells["metric"], named["score"]))
        run = _text(cells["run"], str(number))
        runs = groups.setdefault(group, {})
        if run in runs:
            raise InputError(f"{at}: the run {run!r} is in the table twice: give each run once")
        runs[run] = score, _number(at, named["n"], cells["n"]) if named["n"] else math.nan
    return [_checked(where, group, runs, bounds) for group, runs in groups.items()]


def _checked(
    where: str, group: tuple[str, str, str], runs: Mapping[str, tuple[float, float]], bounds: Bounds
) -> TotalsOf:
    model, task, metric = group
    scores, sizes = np.array([score for score, _ in runs.values()]), {size for _, size in runs.values() if size == size}
    if len(sizes) > 1 or any(size < 1 or size % 1 for size in sizes):
        raise InputError(
            f"{where}: the runs of {model} have {some_of([f'{size:g}' for size in sorted(sizes)], 4)} questions. "
            "Totals can be taken together only if all runs were asked the same whole number of questions"
        )
    low, high = bounds or (0.0, 1.0)
    inside = bool(((scores >= low) & (scores <= high)).all())
    if bounds is not None and not inside:
        raise InputError(f"{where}: a score of {model} lies outside the range {low:g} to {high:g}")
    # 0 throughout may be of any scale
    known = bounds or ((low, high) if inside and scores.any() else None)
    return TotalsOf(model, (task, metric), scores, int(sizes.pop()) if sizes else None, known)


def _text(value: Any, default: str) -> str:
    return default if is_empty(value) else str(value).strip()


def _number(at: str, name: str, value: Any) -> float:
    number = number_of(value)
    if number is None or abs(number) > HUGE:
        raise InputError(f"{at}: the {name} {str(value)[:40]!r} is no number")
    return number


def _only_number(where: str, rows: list[Row], others: set[str]) -> str:
    """Return the only column of numbers without another role, taken as the score. Refuse none or several.

    Raises:
        InputError: there is none, or there are several.
    """
    names = [name for name in rows[0] if name not in others]
    found = [name for name in names if all(number_of(row.get(name)) is not None for row in rows)]
    if len(found) != 1:
        have = (
            f"several columns of numbers, {some_of(found, 6)}" if found else f"the columns {some_of(list(rows[0]), 8)}"
        )
        raise InputError(f"{where}: it has {have}: say which is the score, as in `columns={{'score': 'accuracy'}}`")
    return found[0]
