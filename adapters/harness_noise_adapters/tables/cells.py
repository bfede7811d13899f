"""The answers under one metric, as the rows of a file have them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from harness_noise.data.answers import MetricAnswers
from harness_noise.data.questions import Hashes, occurrences
from harness_noise.errors import InputError

from .columns import NoScoreError
from .files import Record
from .presets import ScorePath

Key = tuple[str, str, str]
"""Task, metric and scorer."""
BESIDE = "\x1f"
"""Between the name of a question and its words, where the name has come with other words."""


@dataclass(slots=True)
class Answered(MetricAnswers):
    """The answers under one metric, with what is noted of them and of their questions on the way."""

    COLUMNS: ClassVar[tuple[str, ...]] = (*MetricAnswers.COLUMNS, "clusters", "rows")
    rule: ScorePath = field(kw_only=True)
    clusters: list[str | None] = field(default_factory=list)
    """The cluster that its row names."""
    rows: array[int] = field(default_factory=lambda: array("q"))
    """The row of the table that it stands in."""
    records: dict[str, list[Record]] = field(default_factory=dict)
    """Question → its rows, where something is to be known of the questions."""
    hashes: Hashes = field(default_factory=Hashes)
    """Hashes of the words of each question, in their order; "" where it has none."""
    texts: list[str] = field(default_factory=list)
    odd: dict[str, NoScoreError] = field(default_factory=dict)
    """Cells that are no scores."""
    words: dict[str, str] = field(default_factory=dict)
    """Question of a table → the words beside its name."""

    def distinct(self) -> list[tuple[int, Any]]:
        """Place and label of each answer, without those that come again."""
        labels: Iterable[Any] = self.labels() if self.repeats else range(len(self.places))
        return list(dict.fromkeys(zip(self.places, labels, strict=True)))

    def rename(self, names: Mapping[str, str] | None) -> None:
        """Let each answer be of the question that `names` says; None: of a question of its own."""
        self.take(np.argsort(np.array(self.places), kind="stable").tolist())  # question by question
        keys, hashes, records, before = list(self.keys), list(self.hashes), self.records, self.places
        old = [keys[place] for place in before]
        new = occurrences(old) if names is None else [names.get(key, key) for key in old]
        self.keys, self.hashes, self.records = {}, Hashes(), {}
        self.places = array("i", [self.keys.setdefault(key, len(self.keys)) for key in new])
        for key, place in dict.fromkeys(zip(new, before, strict=True)):
            if hashes and key not in self.records:
                self.hashes.append(hashes[place])
            self.records.setdefault(key, []).extend(records.get(keys[place], ()))

    def by_condition(self) -> int:
        """The most conditions under which a question was answered, each several times; they tell its answers apart."""
        answers = list(zip(self.places, self.repeats, strict=True))
        most, seen = max(Counter(place for place, _ in {*answers}).values(), default=0), Counter[Any]()
        for number, (place, condition) in enumerate(answers):
            seen[place, condition] += 1
            self.repeats[number] = f"{condition}\x1e{seen[place, condition]}" if most > 1 else None
        return most

    def labels_of_questions(self, where: object) -> tuple[str, ...] | None:
        """The cluster of each question; None where there are none.

        Raises:
            InputError: a question is in two clusters, or only some are in one.
        """
        first: dict[int, int] = {}
        for number, (place, cluster) in enumerate(zip(self.places, self.clusters, strict=False)):
            before = first.setdefault(place, number)
            if cluster != self.clusters[before]:
                raise InputError(
                    f"{where}: question {[*self.keys][place]!r} is in cluster {self.clusters[before]!r}"
                    f"{self.at(before)} and in {cluster!r}{self.at(number)}"
                )
        labels = tuple(label for number in first.values() if (label := self.clusters[number]) is not None)
        if labels and len(labels) < len(self.keys):
            bare = next(number for number in first.values() if self.clusters[number] is None)
            at = f", line {self.lines[bare]}"
            raise InputError(f"{where}{at}: no cluster, though other questions have one")
        return labels or None
