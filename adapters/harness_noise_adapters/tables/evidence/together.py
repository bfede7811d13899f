"""Columns that are not used, and whose groups of questions are right or wrong together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from harness_noise.arrays import FloatArray, IntArray

from .grouping import Pools
from .lexicon import is_category, tells_of
from .table import ColumnFacts, TableFacts
from .verdicts import Roles

_FEWEST = 10
"""Groups of equal size that a column's are worth at least, n² / Σn_g²: fewer are categories, which `by` compares."""
_MOST_ALONE = 0.1
"""Share of the questions that are in a group of one at most. A question's length has many such, a passage none."""
_CELL = ("model", "over", "task", "metric", "scorer")
"""Roles of columns that tell one run's scores from another's: what they explain is no clustering."""
_OTHERS = ("auto", "none", "task")
"""Words that `cluster` has for something else than a column."""
_WORTH_SHUFFLING = 0.01
"""p-value of the F test that the groups have one mean. It is too small where wrong answers are rare."""
_SHUFFLES, _FIRST = 999, 99
"""Shuffles of the scores over the questions, of which none may tell the groups apart as well: p ≤ 0.001."""
_FAR = 10
"""Standard deviations over the first shuffles, which need no more of them."""


def scored_together(table: TableFacts, roles: Roles, unused: Sequence[str]) -> list[str]:
    """Return the names of unused columns that group the questions so that those of a group score alike.

    One-way analysis of variance of the questions' mean scores, by shuffles, for each column that describes questions.
    """
    if roles.question is None or roles.names or len(roles.score) != 1 or roles.score[0].kind == "scores":
        return []
    scores = roles.score[0].numbers
    rows = np.flatnonzero(~np.isnan(scores) & (roles.question.codes >= 0))
    if not rows.size:
        return []
    kept = [column for column in table.columns if column.keys[0] in unused and _may_group(column)]
    runs = _row_numbers([column for name in _CELL if (column := roles.named.get(name)) is not None], table.n)[rows]
    asked = [roles.question, *([roles.named["task"]] if "task" in roles.named else [])]
    questions = np.unique(_row_numbers(asked, table.n)[rows], return_inverse=True)[1]
    means = _group_means(scores[rows] - _group_means(scores[rows], runs)[runs], questions)
    return [column.name for column in kept if _is_together(column, questions, means, rows)]


def _may_group(column: ColumnFacts) -> bool:
    """Return True if a column's name is neither that of a category nor of something about the model's answer."""
    if is_category(column.last) or column.name in _OTHERS:
        return False
    return not tells_of("parts", column.last) or tells_of("questions", column.last)


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
    group, sizes = (np.cumsum(sizes > 0) - 1)[group], sizes[sizes > 0]
    if n * n < _FEWEST * int(sizes @ sizes) or 2 * len(sizes) > n or (sizes == 1).sum() > _MOST_ALONE * n:
        return False
    return not _is_amount(column, group) and _differ(means, group)


def _differ(values: FloatArray, groups: IntArray) -> bool:
    """Return True if the groups' means differ more than by chance, which shuffles of the values judge."""
    sizes, centred = np.bincount(groups), values - values.mean()
    n, G = len(values), len(sizes)

    def between(values: FloatArray) -> float:
        return float((np.square(np.bincount(groups, values)) / sizes).sum())

    all_, found = float(centred @ centred), between(centred)
    rest = all_ - found
    if rest > 1e-12 * all_ and special.fdtrc(G - 1, n - G, found / (G - 1) / (rest / (n - G))) > _WORTH_SHUFFLING:
        return False
    rng, drawn = np.random.default_rng(0), list[float]()
    while len(drawn) < _SHUFFLES:
        drawn.append(between(rng.permutation(centred)))
        if drawn[-1] >= found * (1 - 1e-9):
            return False
        if len(drawn) == _FIRST and found > np.mean(drawn) + _FAR * np.std(drawn):
            break
    return True


def _is_amount(column: ColumnFacts, group: IntArray) -> bool:
    """Return True if a column holds amounts, not names of groups: fractions, scattered equal numbers, or verdicts."""
    if column.kind != "number":
        return column.scored
    values = column.numbers[~np.isnan(column.numbers)]
    return bool((values != np.round(values)).any()) or int((np.diff(group) != 0).sum()) + 1 > len({*group.tolist()})
