"""From the values and facts of one task to its Scores: the same for a live run and for files.

A metric is a mean if lm-eval aggregates it so, or if the mean of its values is the reported value to 1e-9. One that
is made from all questions at once is resampled with its aggregation. Everything else is listed with the reason.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Literal, TypeVar

import numpy as np

from harness_noise import extras
from harness_noise.analysis.rows import NO_WHOLE
from harness_noise.arrays import HUGE, BoolArray, FloatArray, HashArray
from harness_noise.data.native_values import MISMATCH, fitting_bounds, mean_of_questions, nearly_equal
from harness_noise.data.notes import NO_ERROR_BAR, NO_SAMPLES, NOT_SCORED, Note
from harness_noise.data.numbers import INFINITE, finite, number_of
from harness_noise.data.places import AnswerPlaces, number_within_question
from harness_noise.data.questions import AnswerTexts, Questions
from harness_noise.data.scores import (
    CorpusScores,
    Gradings,
    Group,
    Run,
    Scores,
    Skipped,
    Weighting,
    all_alike,
)
from harness_noise.errors import some_of

from ...extras import if_any
from . import choices
from .choices import in_groups
from .clusters import ClusterNames
from .not_means import PAIR_METRICS, Function
from .rescore import at_once, is_first, pass_order, vote, with_passes

_PLAIN = {float, int, bool}


@dataclass(slots=True)
class Scored:
    """The values of one metric under one filter, in file order."""

    values: array[float] = field(default_factory=lambda: array("d"))
    """The scores, row after row, NaN for one that is not a number."""
    rows: array[int] = field(default_factory=lambda: array("i"))
    """The document of each row."""
    counts: array[int] = field(default_factory=lambda: array("i"))
    """The number of scores of each row."""
    own: array[float] = field(default_factory=lambda: array("d"))
    """The value that lm-eval itself aggregates for each row, NaN if it is not a number."""
    raw: list[tuple[Any, list[Any]]] | None = None
    """(lm-eval's own value, the values per repeat) of each row, whatever their type, or None if they are not wanted."""
    kinds: set[str] = field(default_factory=set)
    """number, missing, text, numeral (a number or truth value as text), other."""
    dropped: float | None = None
    """The score of questions to which the metric does not apply, None if it applies to all.

    Questions without a score of lm-eval's then count as such questions, too.
    """

    def extend(self, documents: Sequence[int], own: Sequence[Any], repeats: Sequence[Sequence[Any]]) -> None:
        """Add many documents' values to a metric's column at once."""
        several = sum(map(bool, repeats))
        if own and set(map(type, own)) <= _PLAIN and several in (0, len(own)):
            with suppress(TypeError, OverflowError):
                values = array("d", own)
                scores = array("d", list(chain.from_iterable(repeats))) if several else values
                self.kinds.add("number")
                self.own += values
                self.values += scores
                self.rows.extend(documents)
                self.counts.extend(map(len, repeats) if several else [1] * len(own))
                if self.raw is not None:
                    self.raw += [(value, list(items or (value,))) for value, items in zip(own, repeats, strict=True)]
                return
        for row in zip(documents, own, repeats, strict=True):
            self.add(*row)

    def add(self, document: int, own: Any, repeats: Sequence[Any]) -> None:
        """Add one document to a metric's column: lm-eval's own value, and scores per repeat if any."""
        kind, value = ("number", own) if type(own) is float else scalar(own)
        if self.raw is not None:
            self.raw.append((own, list(repeats or (own,))))
        if repeats:
            self._extend(repeats)
        else:
            self.kinds.add(kind)
            self.values.append(value)
        self.rows.append(document)
        self.counts.append(len(repeats or (own,)))
        self.own.append(value)

    def _extend(self, repeats: Sequence[Any]) -> None:
        try:
            self.values += array("d", repeats)
            self.kinds.add("number")
        except (TypeError, OverflowError):
            scalars = list(map(scalar, repeats))
            self.kinds.update(kind for kind, _ in scalars)
            self.values.extend(value for _, value in scalars)

    def own_values(self, n: int) -> FloatArray:
        """Return (n,) lm-eval's own values by document. NaN where it is not a number or is `dropped`."""
        own, out = np.asarray(self.own), np.full(n, np.nan)
        out[np.asarray(self.rows)] = own if self.dropped is None else np.where(own == self.dropped, np.nan, own)
        return out

    def raw_values(self, n: int) -> tuple[list[list[Any]], list[Any]]:
        """Return n lists of logged values per repeat (K times None without a row), and n values of lm-eval's own."""
        rows = self.raw or ()
        K = max((len(repeats) for _, repeats in rows), default=1)
        raw: list[list[Any]] = [[None] * K for _ in range(n)]
        own: list[Any] = [None] * n
        for document, (single, repeats) in zip(self.rows, rows, strict=True):
            raw[document], own[document] = repeats, single
        return raw, own

    def matrix(self, n: int) -> tuple[FloatArray, BoolArray]:
        """Return (n, K) scores, NaN if missing, and (n, K) True where asked. Refuse a nearly empty table.

        A document that has no row for the metric was asked for every repeat, unless values are dropped. The values of
        a regular column are not copied, so do not write into them.

        Raises:
            InputError: nearly every question lacks nearly every repeat.
        """
        values, asked = self._matrix(n)
        if self.dropped is None:
            return values, asked
        applies = ~np.isnan(self.own_values(n))[:, None]
        return np.where(applies, values, np.nan), asked & applies

    def _matrix(self, n: int) -> tuple[FloatArray, BoolArray]:
        rows, counts = np.asarray(self.rows), np.asarray(self.counts)
        K = int(counts.max(initial=1))
        if len(rows) == n > 0 and (counts == K).all() and (rows == np.arange(n)).all():
            table = np.frombuffer(self.values).reshape(n, K)
            table.flags.writeable = False
            return table, np.broadcast_to(np.True_, table.shape)
        within = number_within_question(np.repeat(np.arange(len(rows)), counts))
        places = AnswerPlaces.of(np.repeat(rows, counts), n, "the samples file", within)
        asked = np.ones((n, K), dtype=np.bool_)
        asked[rows] = np.arange(K) < counts[:, None]
        return places.fill(np.asarray(self.values)) if len(rows) else np.full((n, K), np.nan), asked


def scalar(value: Any) -> tuple[str, float]:
    """Return (kind, number) of a logged value: "number", "numeral", "missing", "text" or "other"."""
    number = number_of(value, _text_as_number)
    if number is None:
        return ("text" if isinstance(value, str) else "other"), math.nan
    return ("numeral" if isinstance(value, str) else "missing" if number != number else "number"), number


def _text_as_number(text: str) -> float | None:
    """Convert a text to a number ("True" is 1), None if it is none.

    Old files have numpy's scalars as texts.
    """
    try:
        return {"True": 1.0, "False": 0.0}[text] if text in ("True", "False") else float(text)
    except ValueError:
        return None


Bounds = tuple[float, float]

UNIT: Bounds = (0.0, 1.0)
PERCENT: Bounds = (0.0, 100.0)

_RANGES: tuple[tuple[str, tuple[str, ...], Bounds], ...] = (
    ("squad*", ("exact", "f1", "HasAns_*", "NoAns_*", "best_*"), PERCENT),
    ("truthfulqa*", ("bleu_max", "rouge?_max"), PERCENT),
    ("eq_bench*", ("percent_parseable",), PERCENT),
    ("eqbench*", ("percent_parseable",), PERCENT),
    ("niah_*", ("[1-9]*",), UNIT),
    ("ruler_*", ("[1-9]*",), UNIT),
    ("*", ("acc", "acc_norm", "acc_all", "acc_bytes", "acc_mutual_info", "acc_prob", "*_acc", "accuracy"), UNIT),
    ("*", ("exact_match", "em", "f1", "mc1", "mc2", "likelihood", "pass@*", "pass_at_*"), UNIT),
    ("*", ("brier_score",), (0.0, 2.0)),
)
"""(task glob, metric globs, range of one question's score). The first that matches is used."""


def known_range(task: str, metric: str, values: FloatArray) -> Bounds | None:
    """Return the known range of a task's metric, None if unknown or a score lies outside."""
    for tasks, metrics, bounds in _RANGES:
        if fnmatchcase(task, tasks) and any(fnmatchcase(metric, pattern) for pattern in metrics):
            return fitting_bounds(bounds, values)
    return None


Key = tuple[str, str]
"""(metric, filter)."""
AnyScores = TypeVar("AnyScores", Scores, CorpusScores)

_OF_A_METRIC = re.compile(r"_(stderr|boundary_ci\d+)$")
"""The end of what a results row says of another of its metrics: its error, or, in coming versions, its interval."""
BYPASS = "bypass"
"""The metric of a run that only predicts. Its value, 999, is a placeholder."""
NOT_MEANS = frozenset(("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "weighted_perplexity"))
"""Metrics of lm-eval with one number per question that are no mean of it, where only the name tells."""
MEANS = ("mean", "nanmean", choices.BRIER)
"""lm-eval's own aggregations that are means. The Brier score is one, of scores made from its pairs."""
NOT_APPLIED = -1.0
"""The score that tasks of several lengths give to a question of another length."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The way lm-eval makes one value of a metric's scores."""

    name: str | None = None
    """The aggregation's name, None if it is unknown."""
    registered: bool = True
    """True if the name is one of lm-eval's own and so defines the aggregation."""
    function: Callable[[], Function] | None = None
    """Loads the function, None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """Facts of one task besides its scores, from its objects or from a results file."""

    name: str
    questions: Questions
    reported: Mapping[Key, float | None]
    """lm-eval's own values, None for one that is not a finite number."""
    aggregations: Mapping[str, Aggregation]
    """By metric."""
    higher_is_better: Mapping[str, bool]
    """By metric."""
    version: str = ""
    """The task's own, as its configuration has it."""
    used: Mapping[str, int] = field(default_factory=dict)
    """Filter → number of a question's answers in lm-eval's own values, 1 for a filter without an entry."""
    at_once: Collection[str] = ()
    """Filters whose answers could not be scored one by one."""
    mismatch: Collection[Key] = ()
    """Metrics of which the first answers should have lm-eval's own scores and do not."""
    scored: bool = False
    """True if the scores of single answers were logged. Then a metric may have one that lm-eval does not report."""
    copied: bool = False
    """True if lm-eval's own answers are copies of each other."""
    identical: bool = False
    """True if all answers of every question are the same."""
    answers_differ: Callable[[], bool] = lambda: False
    """Returns True if some answers to one question differ. It is called only if the scores do not show it."""
    texts: Callable[[], HashArray | None] = lambda: None
    """Returns (n, K) hashes of the answers' texts, as in `Gradings`, or None.

    None if they are not texts, or if lm-eval's own metrics score them, which score the same text alike.
    """
    answers: Callable[[int], AnswerTexts | None] = lambda K: None
    """Columns of the scores → where the texts of the answers can be read again."""
    scored_with: Callable[[str, str], Mapping[str, str]] = lambda metric, scorer: {}
    """Metric and filter → see `Scores.scored_with`."""
    probabilities: Callable[[str], FloatArray | None] = lambda scorer: None
    """Filter → (n,) acc_prob, None if there are no choices. It may raise LeftOutError."""

    def aggregation(self, metric: str) -> Aggregation:
        """Return the aggregation by which lm-eval turns this metric's scores into one value."""
        return self.aggregations.get(metric, Aggregation())


def own_code(config: Mapping[str, Any]) -> bool:
    """Return True unless a task is scored by named metrics of lm-eval alone. Its own code may ask a model."""
    rows = config.get("metric_list")
    names = [row.get("metric") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    plain = bool(names) and all(isinstance(name, str) and name.isidentifier() for name in names)
    return bool(config.get("process_results")) or not plain


@dataclass(slots=True)
class Gathered:
    """The scores, skipped metrics and notes gathered from the tasks of a run."""

    scores: list[Scores] = field(default_factory=list)
    corpus: list[CorpusScores] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    """Sentences for the user."""
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """Reason for a missing acc_prob → its tasks."""
    budget: Any = None
    """What the extra that calls aggregations has left of its time."""

    def run(self, clusters: Mapping[str, tuple[ClusterNames, str | None]], **fields: Any) -> Run:
        """Return a `Run` of all gathered tasks, with these clusters.

        Args:
            clusters: task → clusters of its questions, and their SPEC in words.
            **fields: what `Run` has beside the scores and notes.
        """

        def clustered(part: AnyScores) -> AnyScores:
            own, spec = clusters.get(part.task, (None, None))
            return part if own is None else replace(part, clusters=own, cluster_spec=spec)

        left_out = [
            Note("no_probabilities", f"no {choices.METRIC}: {reason}").of(some_of(tasks, 1))
            for reason, tasks in self.left_out.items()
        ]
        return Run(
            scores=tuple(map(clustered, self.scores)),
            corpus=tuple(map(clustered, self.corpus)),
            skipped=tuple(self.skipped),
            notes=(*self.notes, *left_out),
            **fields,
        )


def reported(row: Mapping[str, Any]) -> dict[Key, float | None]:
    """Return {(metric, filter): lm-eval's value, None if not finite or of `bypass`} of a row, without its errors."""
    out: dict[Key, float | None] = {}
    for key, value in row.items():
        metric, comma, scorer = key.partition(",")
        if comma and not _OF_A_METRIC.search(metric):
            out[metric, scorer] = None if metric == BYPASS else finite(value)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _Metric:
    """One metric under one filter."""

    key: Key
    column: Scored
    values: FloatArray
    """(n, K) scores, NaN where there is none."""
    asked: BoolArray
    """(n, K) which of them were asked for."""
    own: FloatArray
    """(n,) lm-eval's own scores, NaN where there is none."""
    value: float | None
    """lm-eval's own value, None if it is not a finite number."""


def gather(task: TaskFacts, columns: Mapping[Key, Scored], out: Gathered) -> None:
    """Add a task's scores, corpus metrics and skipped metrics to `out`.

    Args:
        task: what is known of it.
        columns: (metric, filter) → its scores.
        out: of the run; the task is added to it.
    """
    scores: list[Scores] = []
    _drop(task, columns)
    n = len(task.questions)
    for key in dict.fromkeys((*task.reported, *columns)):
        if key not in columns:
            out.skipped.append(
                Skipped(task.name, *key, "the samples file does not have it", task.reported[key], NO_SAMPLES)
            )
            continue
        column = columns[key]
        measured = _Metric(key, column, *column.matrix(n), column.own_values(n), task.reported.get(key))
        reason = _not_a_mean(task, measured)
        if reason is None:
            scores += _mean_of(task, measured, out.notes)
        else:
            whole = _corpus_scores(task, measured, reason, out)
            out.skipped.append(whole) if isinstance(whole, Skipped) else out.corpus.append(whole)
    scores = with_passes(scores)
    out.scores += [*scores, *_new_acc_prob(task, scores, out.left_out)]


def _drop(task: TaskFacts, columns: Mapping[Key, Scored]) -> None:
    """Set `dropped` of columns where −1 means "does not apply to this question" (as in RULER), so that it is left out.

    RULER has one metric for each length, and gives a question of another length −1 or no score. lm-eval's own value
    is the proof; without one, or where it is −1 itself, a metric that is named like a length is enough.
    """
    dropping = {key for key, column in columns.items() if _drops(task, key, column)}
    for key, column in columns.items():
        if key in dropping or (dropping and key[0].isdecimal() and NOT_APPLIED not in column.own):
            column.dropped = NOT_APPLIED


def _drops(task: TaskFacts, key: Key, column: Scored) -> bool:
    scores = [value for value in column.own if value == value]
    if min(scores, default=0.0) != NOT_APPLIED or (task.aggregation(key[0]).registered and not key[0].isdecimal()):
        return False
    rest, value = [score for score in scores if score != NOT_APPLIED], task.reported.get(key)
    if rest and value is not None:
        return nearly_equal(sum(rest) / len(rest), value)
    return key[0].isdecimal() and value in (None, NOT_APPLIED) and min(rest, default=0.0) >= 0


def _mean_of(task: TaskFacts, measured: _Metric, notes: list[Note]) -> Iterator[Scores]:
    """Yield scores of a metric that is a mean over questions (unless only a vote is known), and of a vote. Note it."""
    key, values = measured.key, measured.values
    K = values.shape[1]
    mean_of, together = _own_value(task, measured)
    if together > 1 and K > 1 and (note := Note("several_at_once", at_once(together, K)).of(task.name)) not in notes:
        notes.append(note)
    differ = bool((np.fmin.reduce(values, axis=1) < np.fmax.reduce(values, axis=1)).any())
    texts = task.texts() if differ else None
    graded = None if texts is None or texts.shape != values.shape else np.where(np.isnan(values), 0, texts)
    part = Scores(
        task.name,
        *key,
        task.questions,
        values,
        higher_is_better=task.higher_is_better.get(key[0]),
        bounds=known_range(task.name, key[0], values),
        native=None if mean_of == "neither" else measured.value,
        native_is_first=mean_of == "first" and K > 1,
        n_missing=int(np.count_nonzero(np.isnan(values) & measured.asked)),
        asked=None if measured.asked.all() else measured.asked,
        diagnostics=_codes(task, key, K, alike=graded is not None and all_alike(graded)),
        version=task.version,
        answers_differ=K > 1 and not differ and task.answers_differ(),
        gradings=None if graded is None else Gradings(graded),
        answers=task.answers(K),
        scored_with=task.scored_with(*key),
    )
    if K > 1 or not together:
        yield part
    if together:
        yield vote(part, measured.own, measured.value, together)


def _codes(task: TaskFacts, key: Key, K: int, *, alike: bool = False) -> tuple[str, ...]:
    codes = {
        MISMATCH: key in task.mismatch,
        "identical_repeats": (task.identical and K > 1) or alike,
        "copied_repeats": task.copied,
    }
    return tuple(code for code, holds in codes.items() if holds)


def _own_value(task: TaskFacts, measured: _Metric) -> tuple[Literal["first", "all", "neither"], int]:
    """Return which answers lm-eval's value averages ("first", "all", "neither"), and how many it combines (0: none).

    Its scores of the questions tell that; where these do not make it, the means do.
    """
    (metric, scorer), values, value = measured.key, measured.values, measured.value
    used, K = task.used.get(scorer, 1), values.shape[1]
    if K == 1:
        return "first", used if scorer in task.at_once and used > 1 and not pass_order(metric) else 0
    first, whole, own = (value is not None and nearly_equal(mean, value) for mean in _means(measured))
    if measured.key in task.mismatch or not own:
        return "first" if first or not whole else "all", 0
    if _has_mean(values[:, :1], measured.own):
        return "first", 0
    if _has_mean(values, measured.own):
        return "all", 0
    return "neither", 0 if _has_mean(values[:, :used], measured.own) else used


def _has_mean(values: FloatArray, own: FloatArray) -> bool:
    """Return True if each question's mean of these scores equals lm-eval's own score."""
    count = (~np.isnan(values)).sum(axis=1)
    means = np.nansum(values, axis=1) / np.where(count > 0, count, np.nan)
    return np.allclose(means, own, rtol=1e-9, atol=1e-9, equal_nan=True)


def _not_a_mean(task: TaskFacts, measured: _Metric) -> str | None:
    """Return why a metric is not a mean of question scores, None if it is."""
    key, column, values, value = measured.key, measured.column, measured.values, measured.value
    aggregation = task.aggregation(key[0])
    if key[0] == BYPASS:
        return "the run only predicted (predict_only): nothing was scored"
    if "other" in column.kinds:
        why = "a live run with --noise has its aggregation" if task.reported else "the results file would name it"
        return f"its value on a question is not one number (bleu and f1 are made from all questions at once): {why}"
    first, whole, own = _means(measured)
    if "text" in column.kinds or (
        "numeral" in column.kinds and not (value is not None and nearly_equal(own, value, 1e-6))
    ):
        return "its values are text"
    # a reduction over repeats may report another name than that of the single score
    if task.reported and not (key in task.reported or (task.scored and values.shape[1] > 1)):
        return "lm-eval does not report it"
    low, high = (float(ufunc.reduce(values, axis=None)) for ufunc in (np.fmin, np.fmax))  # NaN if there is no number
    if high != high and column.dropped is not None:
        return f"it applies to no question of this run (all have {NOT_APPLIED:g}, which its aggregation leaves out)"
    if high != high:
        return "no question has a score"
    if max(-low, high) > HUGE:
        return INFINITE
    if aggregation.name is None and not task.reported:
        return "it is not a mean of its per-question values" if key[0] in NOT_MEANS else None
    if aggregation.registered and aggregation.name is not None:
        return None if aggregation.name in MEANS else f"it is aggregated by {aggregation.name}, not a mean"
    if value is None:
        return None if aggregation.function is None else f"lm-eval has no number for it ({aggregation.name})"
    if any(nearly_equal(mean, value) for mean in (first, whole, own)):
        return None
    shown = whole if own != own else own
    return (
        f"the mean of its values ({shown:.6g}) is not the reported value ({value:.6g}): it is not aggregated as a mean"
    )


def _corpus_scores(task: TaskFacts, measured: _Metric, reason: str, out: Gathered) -> CorpusScores | Skipped:
    """Return a metric over all questions as `CorpusScores` (noting in `out` how pairs were read), or else `Skipped`."""
    key, column, value = measured.key, measured.column, measured.value
    aggregation = task.aggregation(key[0])
    paired = key[0] in PAIR_METRICS and "other" in column.kinds and aggregation.function is None
    called = aggregation.function is not None and value is not None
    is_mean = aggregation.name in MEANS and "other" not in column.kinds
    if column.raw is None or column.dropped is not None or is_mean or not (paired or called):
        return Skipped(task.name, *key, reason, value, NOT_SCORED if key[0] == BYPASS else NO_ERROR_BAR)
    raw, own = column.raw_values(len(task.questions))
    K = max(map(len, raw))
    first = K == 1 or key in task.mismatch or is_first(raw, own) or all(single is None for single in own)
    fields: dict[str, Any] = {
        "task": task.name,
        "metric": key[0],
        "scorer": key[1],
        "questions": task.questions,
        "higher_is_better": task.higher_is_better.get(key[0]),
        "native": value if first else None,
        "native_is_first": first and K > 1,
        "answers_differ": K > 1 and task.answers_differ(),
        "diagnostics": _codes(task, key, K),
    }
    if (extra := if_any("corpus.measuring")) is None:  # only its name and lm-eval's own value are known
        if extras.whole() is not None:  # which would resample what is not there
            return Skipped(task.name, *key, NO_WHOLE, value)
        return CorpusScores(**fields | {"native": value})
    whole: CorpusScores | Skipped = extra.measured_whole(raw, aggregation, value, out, **fields)
    return whole


def _new_acc_prob(task: TaskFacts, scores: Sequence[Scores], left_out: dict[str, list[str]]) -> list[Scores]:
    """Return `acc_prob` for each `acc` with likelihoods ([] if the task has its own). Reasons go to `left_out`."""
    out: list[Scores] = []
    if any(part.metric == choices.METRIC for part in scores):  # the task has a metric of that name
        return out
    for part in scores:
        if part.metric != choices.BESIDE:
            continue
        try:
            values = task.probabilities(part.scorer)
        except choices.LeftOutError as error:
            left_out.setdefault(str(error), []).append(task.name)
        else:
            out += [] if values is None else [choices.beside(part, values)]
    return out


def _means(measured: _Metric) -> tuple[float, float, float]:
    """Return means over questions: of the first repeat, of all repeats, of lm-eval's own scores.

    Questions without a score are left out.
    """
    first, own = measured.values[:, :1], measured.own[:, None]
    with np.errstate(invalid="ignore", over="ignore"):  # infinite scores are refused elsewhere
        return mean_of_questions(first), mean_of_questions(measured.values), mean_of_questions(own)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One value that lm-eval reports for a group."""

    name: str
    key: Key
    value: float | None
    tasks: Sequence[str]
    """All tasks below the group. One that is listed twice counts twice."""
    weighting: Weighting


def groups(
    rows: Iterable[GroupRow],
    reported: Mapping[str, Mapping[Key, float | None]],
    scores: Sequence[Scores],
) -> tuple[Group, ...]:
    """Return lm-eval's groups as `Group`s over tasks with the metric (none: left out), and `acc_prob` groups of ours.

    Args:
        rows: what lm-eval reports.
        reported: task → its own values; a group averages the tasks that have the metric.
        scores: of the run.
    """
    out = []
    for row in rows:
        tasks = [task for task in row.tasks if row.key in reported.get(task, {})]
        if not tasks:
            continue
        once = len(set(tasks)) == len(tasks)
        out.append(Group(row.name, *row.key, tuple(tasks) if once else (), row.weighting, row.value))
    return tuple(in_groups(out, scores))
