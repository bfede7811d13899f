"""The frame of answers: a row for each, whose columns are numbers of names, scores and lines.

Every format feeds it by columns; each model, task, metric and scorer in it is then some of its rows, of which
`harness_noise.data.answers` makes the scores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness_noise.arrays import AnyArray, IntArray

from .blocks import Names
from .cells import Answered
from .presets import Cause
from .rules import Rule
from .values import NoScoreError

TOLD = ("model", "task", "metric", "scorer")
"""Columns that separate answers to different questions."""
Table = tuple[str, str, str, str]
"""Model, task, metric and scorer."""


class Frame:
    """A growing table of one file's answers, whose columns are numbers."""

    def __init__(self) -> None:
        self.names = {name: Names() for name in (*TOLD, "question", "repeat", "cluster")}
        self.columns: dict[str, list[AnyArray]] = defaultdict(list)
        """Column → its parts, with an entry for each answer: numbers of `names`, of rules and causes, scores, lines."""
        self.beside: dict[str, list[Any]] = defaultdict(list)
        """Columns without numbers: records, levels, usage."""
        self.words: dict[tuple[int, ...], int] = {}
        """Model, task and question → the place of its words in `texts`."""
        self.texts: list[tuple[str, str, str]] = []
        """Hash of the words, their beginning, and hash of what is right."""
        self.odd: dict[tuple[int, ...], dict[str, NoScoreError]] = defaultdict(dict)
        """Numbers of a table → cells that are no scores."""

    def add(self, **columns: AnyArray) -> None:
        """Append answers to this collection, given as arrays by column name."""
        for name, column in columns.items():
            kind = (
                column.dtype if name in ("score", "answered") else np.min_scalar_type(-1 - int(column.max(initial=0)))
            )
            self.columns[name].append(column.astype(kind, copy=False))

    def joined(self) -> dict[str, AnyArray]:
        """Return {column name: (N,) array of all answers so far}."""
        return {name: np.concatenate(parts) for name, parts in self.columns.items() if parts}

    def tables(self) -> dict[tuple[int, ...], IntArray]:
        """Return a dict from (model, task, metric, scorer) numbers to the indices of their answers."""
        if not self.columns["score"]:
            return {}
        columns = [np.concatenate(self.columns[name]) for name in TOLD]
        several = [codes.astype(np.int64) for codes in columns if codes.min() < codes.max()]
        if not several:
            return {tuple(int(codes[0]) for codes in columns): np.arange(len(columns[0]))}
        joint = np.unique(several[0], return_inverse=True)[1].reshape(-1)
        for codes in several[1:]:
            joint = np.unique(joint * (codes.max() + 2) + codes + 1, return_inverse=True)[1].reshape(-1)
        order = np.argsort(joint, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(joint))[:-1])
        parts.sort(key=lambda rows: int(rows[0]))
        return {tuple(int(codes[rows[0]]) for codes in columns): rows for rows in parts}

    def answers(self, rules: Sequence[Rule], causes: Sequence[Cause]) -> dict[Table, Answered]:
        """Return {(model, task, metric, scorer or "none"): its answers} by names, and empty this collection."""
        tables, joined, out = self.tables(), self.joined(), {}
        self.columns.clear()
        for names in self.names.values():
            names.close()
        for key, rows in tables.items():
            model, task, metric, scorer = (
                self.names[name].texts[code] if code >= 0 else "" for name, code in zip(TOLD, key, strict=True)
            )
            part = {name: column[rows] for name, column in joined.items()} if len(tables) > 1 else joined
            cells = Answered(rule=rules[part["rule"][0]].path, odd=self.odd.get(key, {}))
            self._place(cells, part, key)
            why = ((i, causes[part["cause"][i]].cause) for i in np.flatnonzero(part["cause"] >= 0).tolist())
            cells.causes = {i: cause for i, cause in why if cause}
            cells.answered, cells.repeats = part.get("answered", ()), self.names["repeat"].of(part.get("repeat", ()))
            cells.clusters, cells.cluster_names = part.get("cluster", cells.clusters), self.names["cluster"].texts
            cells.levels, cells.usage = (
                [column[i] for i in rows] if (column := self.beside[name]) else [] for name in ("levels", "usage")
            )
            out[model, task, metric, scorer or "none"] = cells
        return out

    def _place(self, cells: Answered, part: Mapping[str, AnyArray], key: tuple[int, ...]) -> None:
        """Fill a table's questions and text hashes into `cells`, and its flat scores with their questions' places."""
        codes = places = part["question"]
        if not (codes == np.arange(len(codes))).all():  # else each question has one answer
            codes, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
            order = np.argsort(first)
            codes, places = codes[order], np.argsort(order)[inverse.reshape(-1)]
        codes = codes.tolist()
        cells.keys = keys = tuple(self.names["question"].all_of(codes))
        cells.places, cells.values, cells.lines = places, part["score"], part["line"]
        for place, i in zip(places, part.get("record", ()), strict=False):
            cells.records.setdefault(keys[place], []).append(self.beside["records"][i])
        told = [self.texts[self.words[(*key[:2], code)]] for code in codes] if self.words else ()
        cells.hashes.extend([words for words, _, _ in told])
        cells.texts = [shown for _, shown, _ in told]
        cells.targets.extend([target for _, _, target in told])
