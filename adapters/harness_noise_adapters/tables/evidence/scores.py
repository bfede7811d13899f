"""Columns that could hold the scores, with points for their names and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .lexicon import WORDS, ending, exact, is_gold, is_judge, is_metric, is_model, is_pred, is_vetoed, snake
from .table import ColumnFacts, TableFacts

TAKEN = 4.0
"""Points from which a column is accepted. This limit and the margin were measured."""
MARGIN = 1.5
ASKED = 2.0
_ROWS = 10
"""Rows from which numbers that go up by one are not scores, whatever their name."""


@dataclass(eq=False)
class ScoreCandidate:
    """A column that could hold the scores."""

    column: ColumnFacts
    group: str
    """`verdict`, `graded`, `metric`, `weak` or `unnamed`."""
    points: float
    also: list[str] = field(default_factory=list)
    """Columns that say the same."""


def candidates(table: TableFacts, but: Sequence[ColumnFacts]) -> list[ScoreCandidate]:
    """Return the columns that could hold scores, likeliest first. Of equal last names only the least nested.

    Args:
        table: the first rows.
        but: columns that say something else.
    """
    found = [one for column in table.columns if column not in but and (one := _candidate(column)) is not None]
    found.sort(key=lambda one: (-one.points, one.column.depth))
    shallow: dict[str, int] = {}
    for one in found:
        shallow[one.column.last] = min(shallow.get(one.column.last, one.column.depth), one.column.depth)
    return [one for one in found if one.column.depth == shallow[one.column.last]]


def merged(found: Sequence[ScoreCandidate]) -> list[ScoreCandidate]:
    """Return the candidates, those of equal values merged into one (see `also`), but unnamed or constant ones."""
    kept: list[ScoreCandidate] = []
    for one in found:
        same = next((other for other in kept if one.group != "unnamed" and _is_equal(one.column, other.column)), None)
        if same is None:
            kept.append(one)
        else:
            _merge(same, one)
    return kept


def _merge(into: ScoreCandidate, one: ScoreCandidate) -> None:
    """Record one candidate column as a duplicate of another. The one called `score` becomes the main one."""
    if one.column.last == "score" and one.points >= into.points:
        into.column, one.column = one.column, into.column
    into.also.append(one.column.name)


def _is_equal(a: ColumnFacts, b: ColumnFacts) -> bool:
    if "scores" in (a.kind, b.kind):
        return False
    return bool(np.array_equal(a.numbers, b.numbers, equal_nan=True)) and not a.is_constant


def _candidate(column: ColumnFacts) -> ScoreCandidate | None:
    if not column.scored or column.last == "":
        return None
    group, points = by_name(column)
    if group == "none" or (column.counts_rows and (group == "unnamed" or len(column.codes) >= _ROWS)):
        return None
    right_or_wrong = column.scale == "01" and group != "unnamed"
    inside = column.depth > 0 and column.parts[-2] in WORDS["metric"]["parents"]
    if column.is_constant:
        points -= 0.5 if right_or_wrong else 1.5
        points -= 1.0 if column.depth and not inside else 0.0
    if 2 * column.empty > len(column.codes):
        points -= 2.5
    points -= 0.25 * column.depth
    if column.depth and not inside and (group == "metric" or column.last in _VAGUE):
        points -= 1.0
    return ScoreCandidate(column, group, points)


_VAGUE = ("points", "value", "grade", "rating")


def by_name(column: ColumnFacts) -> tuple[str, float]:
    """Return (kind of score, points for certainty) by a column's name and its scale. The kind `none` is no score."""
    name, of_verdict = column.last, column.scale in ("01", "unit")
    if is_part_of_gold(column):
        return "none", 0.0
    if name == "pass1":
        return "verdict", 5.0
    if name == "value" and len(column.keys) > 1 and is_vetoed(snake(column.keys[-2])):  # confidence.value
        return "none", 0.0
    if exact("verdict", name):
        return ("verdict", 5.0) if of_verdict else _holds_answers(column)
    if exact("graded", name):
        return "graded", 5.0
    if is_earned(name):
        return "graded", 4.5
    if is_metric(name):
        return "metric", 4.5
    if column.depth and column.parts[-2] in WORDS["metric"]["parents"] and of_verdict:
        return "metric", 4.5
    if exact("weak", name):
        return "weak", 3.0 if column.scale == "01" else 1.5
    if is_vetoed(name):
        return "none", 0.0
    return _by_affix(column, name, of_verdict)


_GOLDEN = ("gold", "golden", "expected", "reference", "target")


def _by_affix(column: ColumnFacts, name: str, of_verdict: bool) -> tuple[str, float]:
    if ending("verdict", name) is not None:
        if of_verdict:
            return "verdict", 4.5
        return ("metric", 4.5) if is_judge(name) else _holds_answers(column)
    if (end := ending("graded", name)) is not None:
        before = name.removesuffix(f"_{end}")
        known = is_metric(before) or is_judge(before) or is_model(before)
        group = "metric" if is_metric(before) else "graded"
        return group, 4.5 if known or column.scale in ("01", "unit", "small") else 3.5
    metric = next((word for word in WORDS["metric"]["exact"] if name.endswith(f"_{word}")), None)
    if metric is not None:
        before = name.removesuffix(f"_{metric}")
        return "metric", 4.5 if is_judge(before) or is_model(before) else 3.5
    if ending("weak", name) is not None and column.kind == "verdict":
        return "weak", 3.0
    if is_gold(name) or is_pred(name):
        return "none", 0.0
    return "unnamed", 1.0 if column.scale in ("01", "unit") else 0.5


def is_earned(name: str) -> bool:
    """Return True if a snake_case column name means points earned, out of what a question is worth."""
    words = name.split("_")
    return name in WORDS["graded"]["earned_exact"] or (
        len(words) > 1 and bool({words[0], words[-1]} & {*WORDS["graded"]["earned"]})
    )


def is_part_of_gold(column: ColumnFacts) -> bool:
    """Return True if a column is a field inside the object that holds the right answer."""
    return any(part in _GOLDEN for part in column.parts[:-1])


def _holds_answers(column: ColumnFacts) -> tuple[str, float]:
    column.vetoed = f"{column.name!r} is named like a verdict, but holds answers ({_shown(column)})"
    return "none", 0.0


def _shown(column: ColumnFacts) -> str:
    return ", ".join(str(cell)[:20] for cell in column.distinct[:3]) + ("…" if len(column.distinct) > 3 else "")
