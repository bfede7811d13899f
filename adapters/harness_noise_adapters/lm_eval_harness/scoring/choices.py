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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from harness_noise.arrays import BoolArray, FloatArray
from harness_noise.data.scores import Group, Scores
from harness_noise.results.diagnostics import NOT_ASKED
from harness_noise.stats.passk import acc_probs

from .rescore import derived, requests_of

METRIC = "acc_prob"
BOUNDS = (0.0, 1.0)
BESIDE = "acc"
BRIER = "brier_score"

_OWN_CODE = "it scores with code of its own"
_CONTEXTS = "its choices are contexts of one continuation, so the model does not choose an answer"
_DISAGREES = "the right choices that its log shows are not those of acc"
_UNKNOWN = "the log does not say which choices are right"


class LeftOutError(Exception):
    """The error that gives the reason why a multiple-choice task has no `acc_prob`."""


@dataclass(slots=True)
class Log:
    """The log-likelihoods and right choices of one task under one filter, row by row.

    In a file a target is a text, which may stand for an index or for a choice; `acc` tells which.
    """

    doubled: bool = False
    """True if every choice was also asked without its context (acc_mutual_info)."""
    typed: bool = False
    """True if a number is an index and a text a choice, as in a live run. In a file all targets are texts."""
    documents: array[int] = field(default_factory=lambda: array("i"))
    """The document of each row."""
    counts: array[int] = field(default_factory=lambda: array("i"))
    """The number of choices of each row."""
    likely: array[float] = field(default_factory=lambda: array("d"))
    """The log-likelihood of every choice, row after row."""
    accurate: array[float] = field(default_factory=lambda: array("d"))
    """The `acc` of each row."""
    right: dict[str, bytearray] = field(default_factory=dict)
    """Reading of the targets ("index", "text") → for each choice 1 if it is right."""
    reason: str | None = None
    """The reason why there is no `acc_prob`, None as long as there is."""

    @property
    def by_text(self) -> bool:
        """True if the choices' texts are needed, which means reading whole lines of the file."""
        return self.reason is None and (not self.documents or "text" in self.right)

    def add(self, document: int, row: Mapping[str, Any], arguments: Any) -> None:
        """Add one row's choices for `acc_prob`: log-likelihoods and which are right. One unreadable row forgoes it."""
        if self.reason is not None:
            return
        try:
            self._add(row, arguments)
            self.documents.append(document)
        except LeftOutError as error:
            self.reason = str(error)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            self.reason = _UNKNOWN

    def _add(self, row: Mapping[str, Any], arguments: Any) -> None:
        likely, target, accurate = _loglikelihoods(row, self.doubled), row["target"], row.get(BESIDE)
        gold = {"index": None if self.typed and isinstance(target, str) else _indices(target)}
        if self.by_text:
            texts, wanted = _choice_texts(arguments, len(likely)), None if type(target) is int else str(target).strip()
            gold["text"] = [i for i, text in enumerate(texts) if text == wanted]
        if not self.documents:
            self.right = {kind: bytearray() for kind, indices in gold.items() if indices}
        if gold["index"] is None:
            self.right.pop("index", None)
        if not self.right:
            raise LeftOutError(_UNKNOWN)
        for kind, right in self.right.items():
            right += _marked(gold[kind] or (), len(likely))
        self.counts.append(len(likely))
        self.likely.extend(likely)
        self.accurate.append(float(accurate) if isinstance(accurate, (int, float)) else math.nan)

    def probabilities(self, n: int) -> FloatArray:
        """Return (n,) acc_prob, the probability to choose right if choices are sampled. Raise an error if unclear.

        Raises:
            LeftOutError: a single choice, `acc` disagrees on a question, or it is not clear which choices are right.
        """
        if self.reason is not None:
            raise LeftOutError(self.reason)
        if min(self.counts, default=2) < 2:
            raise LeftOutError("a question has a single choice")
        read = [self._reading(np.frombuffer(right, dtype=np.bool_)) for right in self.right.values()]
        readings = [values for values in read if values is not None]
        if not readings:
            raise LeftOutError(_DISAGREES if read else _UNKNOWN)
        if any(not np.array_equal(readings[0], other, equal_nan=True) for other in readings[1:]):
            raise LeftOutError(_UNKNOWN)
        out = np.full(n, np.nan)
        out[np.asarray(self.documents)] = readings[0]
        return out

    def _reading(self, right: BoolArray) -> FloatArray | None:
        """Return each row's acc_prob if these choices are the right ones, None if a logged `acc` contradicts."""
        counts, accurate, likely = np.asarray(self.counts), np.asarray(self.accurate), np.asarray(self.likely)
        starts = np.cumsum(counts) - counts
        out = np.full(len(counts), np.nan)
        for C in np.unique(counts):
            rows = np.flatnonzero(counts == C)
            where = starts[rows][:, None] + np.arange(C)
            best = right[where][np.arange(len(rows)), likely[where].argmax(axis=1)]
            scored = ~np.isnan(accurate[rows])
            if (best[scored] != (accurate[rows][scored] > 0)).any():
                return None
            out[rows] = acc_probs(likely[where], right[where])
        return out


def _loglikelihoods(row: Mapping[str, Any], doubled: bool) -> list[float]:
    """Return a row's log-likelihoods of the choices, without those asked again without context."""
    likely = [float(pair[0]) for pair in row["filtered_resps"]]
    return likely[: len(likely) // 2] if doubled else likely


def _choice_texts(arguments: Any, n: int) -> list[str]:
    """Return the n choices' texts from a row's requests, stripped. Raise LeftOutError if their contexts differ."""
    pairs = requests_of(arguments)[:n]
    if len({pair[0] for pair in pairs}) > 1:
        raise LeftOutError(_CONTEXTS)
    return [str(pair[1]).strip() for pair in pairs]


def beside(part: Scores, values: FloatArray) -> Scores:
    """Return (n,) `acc_prob` values as scores described like the `acc` in `part`, with the code `not_asked_for`."""
    missing = int(np.isnan(values).sum())
    codes = (NOT_ASKED,)
    return derived(part, METRIC, values, higher_is_better=True, bounds=BOUNDS, n_missing=missing, diagnostics=codes)


def asked_for(part: Scores) -> Scores:
    """Return the scores with the code `not_asked_for` removed: the user named this metric, so they are shown."""
    return replace(part, diagnostics=tuple(code for code in part.diagnostics if code != NOT_ASKED))


def in_groups(groups: Sequence[Group], scores: Sequence[Scores]) -> list[Group]:
    """Return the groups, and an `acc_prob` group for each `acc` group whose tasks all have it."""
    have = {(part.task, part.scorer) for part in scores if part.metric == METRIC}
    more = [
        Group(group.name, METRIC, group.scorer, group.tasks, group.weighting)
        for group in groups
        if group.metric == BESIDE and group.tasks and all((task, group.scorer) in have for task in group.tasks)
    ]
    return [*groups, *more]


def of_task(task: Any, rows: Sequence[Mapping[str, Any]], doubled: bool) -> FloatArray:
    """Return (n,) acc_prob of a live task's samples. Refuse tasks with own scoring code.

    Raises:
        LeftOutError: with the reason.
    """
    from lm_eval.api.task import ConfigurableTask

    overrides = getattr(type(task), "process_results", None) is not ConfigurableTask.process_results
    if overrides or callable(getattr(task.config, "process_results", None)):
        raise LeftOutError(_OWN_CODE)
    log = Log(doubled, typed=True)
    for number, row in enumerate(rows):
        log.add(number, row, row["arguments"])
    return log.probabilities(len(rows))


def brier_score(row: Mapping[str, Any], doubled: bool) -> Any:
    """Return a row's Brier score from its logged pair, by its log-likelihoods if that has text. Else what was logged.

    lm-eval logs (gold, probabilities); of an array a file has only the words, with digits cut, so they are made again
    of the log-likelihoods. What is logged stays where it is a number, and where nothing better can be made of the row.
    """
    logged = row.get(BRIER)
    if not isinstance(logged, (list, tuple)) or len(logged) != 2 or not isinstance(logged[0], (int, np.integer)):
        return logged
    gold, chances = logged
    try:
        if isinstance(chances, str):
            likely = np.array(_loglikelihoods(row, doubled))
            weights = np.exp(likely - likely.max())
            chances = weights / weights.sum()
        wrong = np.array(chances, dtype=np.float64)
        wrong[int(gold)] -= 1.0
    except (KeyError, TypeError, ValueError, IndexError):
        return logged
    return float((wrong**2).sum())


def _marked(indices: Sequence[int], n: int) -> bytes:
    """Return n bytes, 1 at these indices and 0 elsewhere. Indices outside 0 to n − 1 are ignored."""
    out = bytearray(n)
    for index in indices:
        if 0 <= index < n:
            out[index] = 1
    return bytes(out)


def _indices(target: Any) -> list[int] | None:
    """Parse a logged target as choice indices, None if it is something else."""
    if type(target) is int:
        return [target]
    text = str(target)
    try:
        value = json.loads(text) if text.startswith("[") else int(text)
    except (ValueError, RecursionError):
        return None
    items = value if isinstance(value, list) else [value]
    return items if all(type(index) is int for index in items) else None
