"""The answers under one metric, as the rows of a file have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from harness_noise.arrays import IntArray
from harness_noise.data.answers import MetricAnswers
from harness_noise.data.clusters import check_one_cluster
from harness_noise.data.questions import Hashes, occurrences

from .opening import Record
from .presets import ScorePath
from .values import NoScoreError

Key = tuple[str, str, str]
"""Task, metric and scorer."""


@dataclass(slots=True)
class Answered(MetricAnswers):
    """The answers under one metric, with clusters, words and records of their questions."""

    COLUMNS: ClassVar[tuple[str, ...]] = (*MetricAnswers.COLUMNS, "clusters")
    rule: ScorePath = field(kw_only=True)
    clusters: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """The number of each row's cluster in `cluster_names`, −1 for none."""
    cluster_names: Sequence[str] = ()
    records: dict[str, list[Record]] = field(default_factory=dict)
    """Question → its rows, where something is to be known of the questions."""
    hashes: Hashes = field(default_factory=Hashes)
    """Hashes of each question's words, in the order of the questions, "" for a question without words."""
    texts: list[str] = field(default_factory=list)
    targets: Hashes = field(default_factory=Hashes)
    """Hashes of what is right, likewise."""
    odd: dict[str, NoScoreError] = field(default_factory=dict)
    """Cells that are not scores."""

    def keep_apart(self) -> None:
        """Order answers by question and make each a question with a new name (`name#2`), so that none is a repeat."""
        self.take(np.argsort(np.array(self.places), kind="stable").tolist())  # question by question
        keys, hashes, records, before = self.keys, list(self.hashes), self.records, self.places
        targets = list(self.targets)
        self.keys, self.places = occurrences([keys[place] for place in before]), range(len(before))
        self.hashes, self.targets, self.records = Hashes(), Hashes(), {}
        for key, place in zip(self.keys, before, strict=True):
            if hashes:
                self.hashes.append(hashes[place])
                self.targets.append(targets[place])
            self.records.setdefault(key, []).extend(records.get(keys[place], ()))

    def by_condition(self) -> int:
        """Name repeats by condition and number in it (None if no question has several). Return the most conditions."""
        answers = list(zip(self.places, self.repeats, strict=True))
        most, seen = max(Counter(place for place, _ in {*answers}).values(), default=0), Counter[Any]()
        for number, (place, condition) in enumerate(answers):
            seen[place, condition] += 1
            self.repeats[number] = f"{condition}\x1e{seen[place, condition]}" if most > 1 else None
        return most

    def clusters_of_questions(self, where: object) -> list[str | None]:
        """Return the cluster name of each question, None without one, or raise an error if a question has two.

        Raises:
            InputError: a question is in two clusters.
        """
        if not len(self.clusters):
            return [None] * len(self.keys)
        first = np.unique(np.array(self.places), return_index=True)[1]
        named = [*self.cluster_names, None]
        for number in np.flatnonzero(self.clusters != self.clusters[first][np.array(self.places)])[:1].tolist():
            before = int(first[self.places[number]])
            both = [(named[self.clusters[i]], self.at(i)) for i in (before, number)]
            check_one_cluster(where, self.keys[self.places[number]], both[0], both[1])
        return [named[code] for code in self.clusters[first].tolist()]
