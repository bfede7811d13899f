"""Rules that find the scores in a row, by the paths of a preset or the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import nan
from typing import Any

import numpy as np

from harness_noise.arrays import BoolArray, IntArray

from .blocks import Block
from .presets import Cause, Getter, ScorePath, column, getter, holds, spread
from .values import answers_of, cell_text


@dataclass(slots=True)
class Found:
    """The scores that one rule finds in some rows."""

    rows: IntArray
    """The place of the row of each."""
    values: list[Any]
    causes: IntArray
    """The number of the cause for each missing score, −1 for none."""
    metrics: list[str] | None = None
    """The metric of each, if the rows name several."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A `ScorePath` made ready to find scores in rows."""

    path: ScorePath
    applies: Callable[[Any], bool] | None
    get: Getter | None
    """None: there is a `*` in the path."""
    column: Callable[[Block], Sequence[Any]]
    """The scores of many rows at once."""
    name: Getter
    metric: str
    causes: Sequence[tuple[int, Callable[[Any], bool]]]
    says: tuple[str, str] | None = None
    """Ours and what the name of a column of scores says of it, in a table with several: `("model", "gpt")`."""
    others: dict[str, None] = field(default_factory=dict)
    """Names of numbers that `*` stands for and that the path does not take for metrics."""

    @classmethod
    def of(cls, path: ScorePath, causes: list[Cause], says: tuple[str, str] | None = None) -> Rule:
        """Make the rule that reads the score at a path, and append its causes of missing scores to `causes`."""
        if "{{" not in path.path:
            get = None if "*" in path.path else getter(path.path)
        else:
            rendered_text = getter(path.path)
            get = lambda row: _as_number(rendered_text(row))  # noqa: E731  a template yields text
        start = len(causes)
        causes.extend(path.missing)
        return cls(
            path,
            holds(path.where) if path.where else None,
            get,
            column(path.path, get),
            getter(path.name),
            path.metric or path.path.rpartition(".")[2],
            [(number, holds(cause.where)) for number, cause in enumerate(path.missing, start)],
            says,
        )

    @classmethod
    def of_column(cls, name: str, path: ScorePath, says: tuple[str, str] | None = None) -> Rule:
        """Make the rule that reads scores from the column with exactly this name, even with `.` or `*` in it."""
        metric = says[1] if says is not None and says[0] == "metric" else "score"
        get: Getter = lambda row: row.get(name)  # noqa: E731
        return cls(path, None, get, lambda block: block.column(name), getter(""), metric, [], says)

    def covers(self, block: Block) -> BoolArray:
        """Return (n,) True for rows to which this rule applies, whether or not they have a score."""
        if self.applies is None:
            return np.ones(len(block), dtype=bool)
        return np.fromiter(map(self.applies, block.rows), bool, len(block))

    def found(self, block: Block, causes: IntArray, covered: BoolArray) -> Found:
        """Return the scores that this rule reads in the covered rows, with causes for missing ones.

        `causes` are the causes of missing scores of all rows.
        """
        rows = np.flatnonzero(covered)
        if self.get is None:
            return self._spread(block, causes, rows)
        some = block if len(rows) == len(block) else block.at(rows.tolist())
        values, causes = list(self.column(some)), causes[rows]
        for number, applies in reversed(self.causes):
            causes = np.where(np.fromiter(map(applies, some.rows), bool, len(some)), number, causes)
        if not self.path.several:
            return Found(rows, values, causes)
        lists = [[value] if (several := answers_of(value)) is None else several or [nan] for value in values]
        sizes = [len(each) for each in lists]
        return Found(np.repeat(rows, sizes), [value for each in lists for value in each], np.repeat(causes, sizes))

    def is_metric(self, name: str) -> bool:
        """Return True if a name that the path's `*` matched is a metric to read, not one to leave out."""
        taken = not self.path.take or any(fnmatchcase(name, glob) for glob in self.path.take)
        return taken and not any(fnmatchcase(name, glob) for glob in self.path.leave_out)

    def _spread(self, block: Block, causes: IntArray, rows: IntArray) -> Found:
        """Return the scores at the matches of the path's `*` that are metrics, with their names. Collect `others`."""
        places, metrics, values, why = [], [], [], []
        for place in rows.tolist():
            for name, holder, value in spread(self.path.path, block.rows[place]):
                metric = cell_text(self.name(holder)) if self.path.name else name
                if metric is None or not self.is_metric(metric):
                    if metric is not None and self.path.take and _is_number(value):
                        self.others.setdefault(metric)
                    continue
                if not self.path.words and isinstance(value, (str, list, dict)):
                    continue
                row = block.rows[place]
                told = (number for number, applies in self.causes if applies(holder) or applies(row))
                beside = next(told, int(causes[place]))
                places.append(place)
                metrics.append(metric)
                values.append(value)
                why.append(beside)
        return Found(np.array(places, dtype=np.intp), values, np.array(why, dtype=np.intp), metrics)


def _is_number(value: Any) -> bool:
    with suppress(TypeError, ValueError):
        return value is not None and float(value) == float(value)
    return False


def _as_number(text: Any) -> Any:
    """Return a template's result as a float, None if empty, unchanged if it is no number."""
    with suppress(TypeError, ValueError):
        return float(text)
    return text or None
