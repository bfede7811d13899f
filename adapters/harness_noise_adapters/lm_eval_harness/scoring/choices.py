"""`acc_prob`: the probability that the model gives the right one of a question's choices.

The softmax of the choices' log-likelihoods at the gold choice, from what lm-eval asked anyway: it costs
no call of the model. It is another estimand than `acc` and stands beside it, under its own name. Which
choice is right is what `acc` says, so both must agree on every question, or there is no `acc_prob`.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness_noise.arrays import FloatArray
from harness_noise.data.scores import Group, Scores
from harness_noise.stats.passk import acc_probs

METRIC = "acc_prob"
BOUNDS = (0.0, 1.0)
BESIDE = "acc"
BRIER = "brier_score"

_OWN_CODE = "it scores with code of its own"
_CONTEXTS = "its choices are contexts of one continuation, so the model does not choose an answer"
_DISAGREES = "the right choices that its log shows are not those of acc"
_UNKNOWN = "the log does not say which choices are right"


class LeftOutError(Exception):
    """Why a multiple-choice task has no `acc_prob`."""


@dataclass(slots=True)
class ChoiceTable:
    """The choices of one task under one filter: log-likelihoods, which are right, and what `acc` says."""

    counts: array[int] = field(default_factory=lambda: array("i"))
    values: array[float] = field(default_factory=lambda: array("d"))
    right: bytearray = field(default_factory=bytearray)
    accurate: array[float] = field(default_factory=lambda: array("d"))

    def add(self, loglikelihoods: Sequence[float], gold: Sequence[int], accurate: Any) -> None:
        """One question; `gold` may hold indices that do not exist, as lm-eval's -100 does."""
        self.counts.append(len(loglikelihoods))
        self.values.extend(loglikelihoods)
        self.right.extend(index in gold for index in range(len(loglikelihoods)))
        self.accurate.append(float(accurate) if isinstance(accurate, (int, float)) else math.nan)

    def probabilities(self) -> FloatArray:
        """(n,) acc_prob, NaN where a question has none.

        Raises:
            LeftOutError: a single choice, or a question on which `acc` disagrees.
        """
        counts, accurate = np.asarray(self.counts), np.asarray(self.accurate)
        values, right = np.asarray(self.values), np.frombuffer(self.right, dtype=np.bool_)
        starts = np.cumsum(counts) - counts
        out = np.full(len(counts), np.nan)
        if counts.min(initial=2) < 2:
            raise LeftOutError("a question has a single choice")
        for C in np.unique(counts):
            rows = np.flatnonzero(counts == C)
            where = starts[rows][:, None] + np.arange(C)
            likely, gold = values[where], right[where]
            best = gold[np.arange(len(rows)), likely.argmax(axis=1)]
            known = ~np.isnan(accurate[rows])
            if (best[known] != (accurate[rows][known] > 0)).any():
                raise LeftOutError(_DISAGREES)
            out[rows] = acc_probs(likely, gold)
        return out


def beside(part: Scores, values: FloatArray) -> Scores:
    """`acc_prob` as a row of its own, beside `part`, the task's `acc`."""
    return Scores(
        task=part.task,
        metric=METRIC,
        scorer=part.scorer,
        questions=part.questions,
        values=values[:, None],
        clusters=part.clusters,
        cluster_spec=part.cluster_spec,
        higher_is_better=True,
        bounds=BOUNDS,
        n_missing=int(np.isnan(values).sum()),
    )


def in_groups(groups: Sequence[Group], scores: Sequence[Scores]) -> list[Group]:
    """The groups, with one for `acc_prob` wherever all tasks of one for `acc` have it."""
    have = {(part.task, part.scorer) for part in scores if part.metric == METRIC}
    more = [
        Group(group.name, METRIC, group.scorer, group.tasks, group.weighting)
        for group in groups
        if group.metric == BESIDE and group.tasks and all((task, group.scorer) in have for task in group.tasks)
    ]
    return [*groups, *more]


# a live run: the task says which choice is right


def of_task(task: Any, rows: Sequence[Mapping[str, Any]]) -> FloatArray:
    """(n,) acc_prob of logged samples, by the task's own choices and targets.

    Raises:
        LeftOutError: with the reason.
    """
    if callable(getattr(task.config, "process_results", None)) or _overrides(task):
        raise LeftOutError(_OWN_CODE)
    if getattr(task, "multiple_input", 0):
        raise LeftOutError(_CONTEXTS)
    table = ChoiceTable()
    for row in rows:
        doc = row["doc"]
        choices = list(task.doc_to_choice(doc))
        likely = [float(pair[0]) for pair in row["filtered_resps"]]
        # acc_mutual_info asks for every choice without its context, too
        if len(likely) not in (len(choices), 2 * len(choices)):
            raise LeftOutError("its answers are not one log-likelihood for each choice")
        gold = task.doc_to_target(doc)
        if isinstance(gold, str):
            gold = choices.index(gold) if gold in choices else -100
        several = gold if isinstance(gold, (list, tuple)) else [gold]
        table.add(likely[: len(choices)], [int(index) for index in several], row.get(BESIDE))
    return table.probabilities()


def _overrides(task: Any) -> bool:
    """Whether the task is a class that scores in its own way."""
    from lm_eval.api.task import ConfigurableTask

    return getattr(type(task), "process_results", None) is not ConfigurableTask.process_results


# a finished run: the log has the target as text


def brier_score(row: Mapping[str, Any], doubled: bool) -> Any:
    """A question's Brier score from its logged log-likelihoods, as lm-eval makes it of what it logs as text.

    lm-eval logs (gold, probabilities), and of an array of numpy's only the words: digits are cut, and JSON cannot
    read them. What is logged stays where it is a number, and where nothing better can be made of the row.
    """
    logged = row.get(BRIER)
    if not isinstance(logged, (list, tuple)) or len(logged) != 2 or type(logged[0]) is not int:
        return logged
    try:
        chances = np.array([float(pair[0]) for pair in row["filtered_resps"]])
        chances = chances[: len(chances) // 2 if doubled else None]
        chances = np.exp(chances - chances.max())
        chances /= chances.sum()
        chances[logged[0]] -= 1.0
    except (KeyError, TypeError, ValueError, IndexError):
        return logged
    return float((chances**2).sum())


@dataclass(slots=True)
class Log:
    """The choices of a samples file, row by row; a target may stand for an index or for a choice's text."""

    doubled: bool = False
    """Whether every choice was also asked without its context (acc_mutual_info)."""
    tables: dict[str, ChoiceTable] = field(default_factory=dict)
    """How targets are read ("index", "text") → choices."""
    documents: array[int] = field(default_factory=lambda: array("i"))
    """The document of each row."""
    reason: str | None = None

    @property
    def by_text(self) -> bool:
        """Whether the texts of the choices are needed, which means reading the whole line."""
        return self.reason is None and (not self.tables or "text" in self.tables)

    def add(self, document: int, row: Mapping[str, Any], arguments: Any) -> None:
        """One row; `arguments` are its own, which it may lack."""
        if self.reason is not None:
            return
        try:
            likely = [float(pair[0]) for pair in row["filtered_resps"]]
            likely = likely[: len(likely) // 2] if self.doubled else likely
            target = row["target"]
            indices = [target] if type(target) is int else _indices(str(target))
            texts = None
            if self.by_text:
                wanted = str(target).strip()
                texts = [i for i, text in enumerate(self._texts(arguments, len(likely))) if text == wanted]
            if not self.tables:
                self.tables = {kind: ChoiceTable() for kind, gold in (("index", indices), ("text", texts)) if gold}
            if indices is None:
                self.tables.pop("index", None)
            if not self.tables:
                raise LeftOutError(_UNKNOWN)
            for kind, table in self.tables.items():
                table.add(likely, (indices if kind == "index" else texts) or (), row.get(BESIDE))
            self.documents.append(document)
        except LeftOutError as error:
            self.reason = str(error)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            self.reason = _UNKNOWN

    @staticmethod
    def _texts(arguments: Any, n: int) -> list[str]:
        """The choices as the model saw them, without the blank that parts them from the question."""
        pairs = [tuple(request.values()) for request in list(arguments.values())[:n]]
        if len({pair[0] for pair in pairs}) > 1:
            raise LeftOutError(_CONTEXTS)
        return [str(pair[1]).strip() for pair in pairs]

    def probabilities(self, n: int) -> FloatArray:
        """(n,) acc_prob.

        Raises:
            LeftOutError: with the reason.
        """
        if self.reason is not None:
            raise LeftOutError(self.reason)
        readings: list[FloatArray] = []
        reason = _UNKNOWN
        for table in self.tables.values():
            try:
                readings.append(table.probabilities())
            except LeftOutError as error:
                reason = str(error)
        if not readings or any(not np.array_equal(readings[0], other, equal_nan=True) for other in readings[1:]):
            raise LeftOutError(reason)
        out = np.full(n, np.nan)
        out[np.asarray(self.documents)] = readings[0]
        return out


def _indices(target: str) -> list[int] | None:
    """The index or indices that a logged target stands for; None if it is no such thing."""
    try:
        value = json.loads(target) if target.startswith("[") else int(target)
    except (ValueError, RecursionError):
        return None
    items = value if isinstance(value, list) else [value]
    return items if all(type(index) is int for index in items) else None
