"""The overall row of an arena: all tasks, each pair with the weights that `compare` gives these for that pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...analysis.overall import Measure, TopRows, group_of_run, overall_group
from ...arrays import FloatArray, IntArray
from ...data.scores import Group, Scores
from ...settings import Settings


@dataclass(frozen=True, slots=True)
class Overall(Group):
    """The group of all tasks. Weights by size are those of the questions that a pair, or a model, has scored."""

    rows: TopRows = field(kw_only=True)
    settings: Settings = field(kw_only=True)
    known: dict[bytes, FloatArray] = field(kw_only=True, default_factory=dict, repr=False, compare=False)
    """The shares that were asked for, by the counts."""

    @classmethod
    def of(cls, rows: TopRows, measure: Measure, settings: Settings) -> Overall:
        """Return the group of all tasks to which the settings give a weight if they have a question.

        Raises:
            InputError: a file of weights does not have all of them.
        """
        sizes = {task: max(1, *(len(part.questions) for part in sides)) for task, sides in rows.parts.items()}
        group = overall_group(rows.tops, measure, sizes, settings)
        fields = {name: getattr(group, name) for name in ("tasks", "weights", "weighted")}
        return cls(group.name, *measure, **fields, rows=rows, settings=settings)

    def shares(self, counts: FloatArray | IntArray) -> FloatArray:
        """Return (T,) weights of the tasks if (T,) questions of each count. 0: by size a task without any."""
        key = np.asarray(counts, dtype=np.float64).tobytes()
        if key not in self.known:
            sizes = dict(zip(self.tasks, counts.astype(int).tolist(), strict=True))
            none = not any(sizes.values())  # there is nothing to weigh
            group = self if none else overall_group(self.rows.tops, (self.metric, self.scorer), sizes, self.settings)
            share = dict(zip(group.tasks, group.weights or (), strict=True))
            self.known[key] = np.array([share.get(task, 0.0) for task in self.tasks])
        return self.known[key]

    def of_run(self, parts: Sequence[Scores]) -> Group:
        """Return the group as `analyze` makes it of these scores, one for each task."""
        own = replace(self.rows, parts={part.task: (part,) for part in parts})
        none = not any(len(part.questions) for part in parts)
        return self if none else group_of_run(own, (self.metric, self.scorer), self.settings)
