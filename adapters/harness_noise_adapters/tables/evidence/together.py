"""Columns that are not used, and whose groups of questions are right or wrong together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from harness_noise.arrays import FloatArray, IntArray

from .grouping import Pools
from .table import ColumnFacts, TableFacts
from .verdicts import Roles

_FEWEST = 10
"""Groups that a column has at least: fewer are categories, which `by` compares."""
_MOST_ALONE = 0.1
"""Share of the questions that are in a group of one at most. A question's length has many such, a passage none."""
_CELL = ("model", "over", "task", "metric", "scorer")
"""Roles of columns that tell one run's scores from another's: what they explain is no clustering."""
_SURE = 0.001
"""p-value of the test that the groups have one mean: a table has dozens of columns."""


def scored_together(table: TableFacts, roles: Roles, unused: Sequence[str]) -> list[str]:
    """Return the unused columns that group a table's questions, if questions of a group score alike.

    One F test of the questions' mean scores for each column (one-way analysis of variance).
    """
    if roles.question is None or roles.labels or len(roles.score) != 1 or roles.score[0].kind == "scores":
        return []
    scores = roles.score[0].numbers
    rows = np.flatnonzero(~np.isnan(scores) & (roles.question.codes >= 0))
    if not rows.size:
        return []
    kept = [column for name in unused if (column := table.named(name)) is not None]
    runs = _row_numbers([column for name in _CELL if (column := roles.named.get(name)) is not None], table.n)[rows]
    asked = [roles.question, *([roles.named["task"]] if "task" in roles.named else [])]
    questions = np.unique(_row_numbers(asked, table.n)[rows], return_inverse=True)[1]
    means = _group_means(scores[rows] - _group_means(scores[rows], runs)[runs], questions)
    return [column.name for column in kept if _is_together(column, questions, means, rows)]


def _row_numbers(columns: Sequence[ColumnFacts], n: int) -> IntArray:
    """Return (n,) numbers of the rows, equal in rows with equal cells in all columns."""
    return Pools.of(columns, n).codes


def _group_means(values: FloatArray, groups: IntArray) -> FloatArray:
    """Return (G,) means of the values of each group, 0 for a group without values."""
    return np.bincount(groups, values) / np.maximum(np.bincount(groups), 1)


def _is_together(column: ColumnFacts, questions: IntArray, means: FloatArray, rows: IntArray) -> bool:
    """Return True if a column puts each question into one group, and the groups' means differ more than by chance."""
    codes, n = column.codes[rows], len(means)
    group = np.full(n, -1)
    group[questions] = codes
    if (codes < 0).any() or (group[questions] != codes).any():
        return False
    sizes = np.bincount(group)
    sizes = sizes[sizes > 0]
    G = len(sizes)
    if not _FEWEST <= G <= n / 2 or (sizes == 1).sum() > _MOST_ALONE * n or _is_amount(column, group):
        return False
    within = means - _group_means(means, group)[group]
    rest, all_ = float(within @ within), float(np.square(means - means.mean()).sum())
    if rest <= 1e-12 * all_:
        return all_ > 0
    return bool(special.fdtrc(G - 1, n - G, (all_ - rest) / (G - 1) / (rest / (n - G))) < _SURE)


def _is_amount(column: ColumnFacts, group: IntArray) -> bool:
    """Return True if a column has numbers that are no names of groups: fractions, or equal ones far from each other."""
    if column.kind != "number":
        return column.scored
    values = column.numbers[~np.isnan(column.numbers)]
    return bool((values != np.round(values)).any()) or int((np.diff(group) != 0).sum()) + 1 > len({*group.tolist()})
