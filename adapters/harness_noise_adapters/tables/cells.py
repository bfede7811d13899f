"""The answers under one metric, as the rows of a file have them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

from harness_noise.arrays import IntArray
from harness_noise.data.answers import MetricAnswers, counted
from harness_noise.data.native_values import fitting
from harness_noise.data.questions import Hashes, occurrences
from harness_noise.data.scores import ReadOptions, Scores, check_grid

from .columns import NoScoreError
from .files import Record
from .presets import ScorePath

Key = tuple[str, str, str]
"""Task, metric and scorer."""
BESIDE = "\x1f"
"""Between the name of a question and its words, where the name has come with other words."""


@dataclass(slots=True)
class Cells:
    """The answers under one metric: few bytes for each, as there may be millions."""

    rule: ScorePath
    keys: dict[str, int] = field(default_factory=dict)
    """Question → its place."""
    places: array[int] = field(default_factory=lambda: array("i"))
    """Place of the question, by the number of the answer."""
    values: array[float] = field(default_factory=lambda: array("d"))
    causes: dict[int, str] = field(default_factory=dict)
    """Number of the answer → why it has no score."""
    about: list[tuple[int, str | None, str | None, tuple[str, ...]]] = field(default_factory=list)
    """Line, repeat (or condition), cluster and levels of each answer; empty where there are none of these."""
    records: dict[str, list[Record]] = field(default_factory=dict)
    """Question → its rows, where something is to be known of the questions."""
    hashes: Hashes = field(default_factory=Hashes)
    """Hashes of the words of each question, in their order; "" where it has none."""
    texts: list[str] = field(default_factory=list)
    odd: dict[str, NoScoreError] = field(default_factory=dict)
    """Cells that are no scores."""
    usage: list[Mapping[str, float | str]] = field(default_factory=list)
    """The measures of each answer, where they were asked for."""
    rows: array[int] = field(default_factory=lambda: array("q"))
    """Of a table, which of its rows each answer is."""
    words: dict[str, str] = field(default_factory=dict)
    """Of a table, question → the words beside its name."""

    def extend(self, questions: Sequence[str], values: list[float]) -> None:
        """Add answers, in this order."""
        place, keys = self.keys.setdefault, self.keys
        self.places.fromlist([place(question, len(keys)) for question in questions])
        self.values.fromlist(values)

    def counts(self) -> IntArray:
        """How many answers each question has."""
        import numpy as np

        return np.bincount(np.array(self.places, dtype=np.intp), minlength=len(self.keys))

    def distinct(self) -> list[tuple[int, Any]]:
        """Place and label of each answer, without those that come again."""
        labels: Iterable[Any] = range(len(self.places))
        if self.about:
            labels = [n if repeat is None else (repeat, levels) for n, (_, repeat, _, levels) in enumerate(self.about)]
        return list(dict.fromkeys(zip(self.places, labels, strict=True)))

    def rename(self, names: Mapping[str, str] | None) -> None:
        """Let each answer be of the question that `names` says; None: of a question of its own."""
        import numpy as np

        order = np.argsort(np.array(self.places), kind="stable").tolist()  # question by question
        keys, hashes = list(self.keys), list(self.hashes)
        old = [keys[self.places[i]] for i in order]
        new = occurrences(old) if names is None else [names.get(key, key) for key in old]
        fresh, places = Cells(self.rule), dict(self.keys)
        fresh.extend(new, [self.values[i] for i in order])
        fresh.rows.extend(self.rows[i] for i in order)
        fresh.about = [self.about[i] for i in order] if self.about else []
        fresh.usage = [self.usage[i] for i in order] if self.usage else []
        for key, question in dict.fromkeys(zip(new, old, strict=True)):
            if hashes and key not in fresh.records:
                fresh.hashes.append(hashes[places[question]])
            fresh.records.setdefault(key, []).extend(self.records.get(question, ()))
        self.keys, self.places, self.values, self.rows = fresh.keys, fresh.places, fresh.values, fresh.rows
        self.about, self.usage, self.records, self.hashes = fresh.about, fresh.usage, fresh.records, fresh.hashes

    def conditions(self) -> int:
        """The most conditions under which a question was answered."""
        levels = {(place, about[1]) for place, about in zip(self.places, self.about, strict=True)}
        return max(Counter(place for place, _ in levels).values(), default=0)

    def labelled(self, where: object, conditions: int) -> MetricAnswers:
        """The answers with their labels; under conditions, each of which is asked several times, if there are any."""
        out, names, seen = MetricAnswers(), list(self.keys), Counter[tuple[int, str | None]]()
        for number, (place, value) in enumerate(zip(self.places, self.values, strict=True)):
            line, repeat, cluster, levels = self.about[number]
            if conditions:
                seen[place, repeat] += 1
                repeat = f"{repeat}\x1e{seen[place, repeat]}" if conditions > 1 else None
            cause = self.causes.get(number, "")
            again = out.add(where, names[place], repeat, value, cluster=cluster, levels=levels, cause=cause, line=line)
            if self.usage:
                out.measure(where, again, self.usage[number])
        return out

    def scores(self, where: object, key: Key, options: ReadOptions, bounds: Any, **fields: Any) -> Scores:
        """The Scores of answers that only stand in order."""
        import numpy as np

        places, n, counts = np.array(self.places), len(self.keys), self.counts()
        check_grid(n, int(counts.max()), len(places), where)
        order = np.argsort(places, kind="stable")
        rank = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        missing, zero, scores = counted(self.values, self.causes, options.missing)
        values = np.full((n, counts.max()), nan)
        values[places[order], rank] = scores[order]
        causes, ends = Counter(self.causes.values()), fitting(bounds, values)
        return Scores(*key, values=values, n_missing=missing, missing=causes, n_zero=zero, bounds=ends, **fields)
