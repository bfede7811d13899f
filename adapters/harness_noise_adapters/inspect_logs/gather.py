"""From EvalScores and the un-reduced values behind them to Scores; the same for a live run and a log."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from harness_noise.data.native_values import fitting, reproduces
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Scores, Skipped

from . import reducers
from .clusters import Clusters
from .grid import Grid, numbers
from .means import GROUP, Part, close, own_cluster, parts, unexplained

if TYPE_CHECKING:
    from inspect_ai.log import EvalScore as NativeScore
    from numpy.typing import NDArray

    from .header import ScoreRow

    EvalScore: TypeAlias = NativeScore | ScoreRow
    """Of a live run, or of a log."""

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]
    BoolArray = NDArray[np.bool_]

_OWN_CODE = "a metric of the task's own code, which is not known as a mean of the scores"


@dataclass(slots=True)
class Gathered:
    """What the EvalScores of one task came to."""

    scores: list[Scores] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)
    """For each of `scores`, the number of its EvalScore."""
    keys: list[str | None] = field(default_factory=list)
    """For each of `scores`, the key of the scorer's dictionaries, where the EvalScore has means of several."""
    reproduced: list[bool] = field(default_factory=list)
    """For each of `scores`, whether a native metric is its mean, on the scale of the scores."""
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    unreadable: list[str] = field(default_factory=list)
    """Why a mean over repeats is among `skipped`, one sentence each."""
    own_clusters: bool = False
    """Whether a scorer's own stderr has named its clusters."""


def gather(
    task: str,
    eval_scores: Sequence[EvalScore],
    answers: Grid,
    raw: Callable[[str], list[Any] | None],
    questions: Questions,
    clusters: Clusters = (None, None),
    *,
    own: Callable[[str], Clusters] | None = None,
    excluded: BoolArray | None = None,
    not_counted: BoolArray | None = None,
    cancelled: bool = False,
    n_not_seen: int = 0,
    missing: Literal["drop", "zero"] = "drop",
    logged: bool = False,
) -> Gathered:
    """The Scores of every mean over repeats and questions that the EvalScores report.

    Args:
        task: its name.
        eval_scores: the native results.
        answers: the grid of the N answers.
        raw: the N values that a scorer gave, None where it gave none; None for an unknown scorer.
        questions: of the grid's rows.
        clusters: of the questions.
        own: clusters by a key, for scorers whose own stderr names one; None where the user has named another.
        excluded: (N,) answers that are not to count (invalidated samples).
        not_counted: (N,) answers that the log holds and Inspect's values are not of.
        cancelled: whether the log may hold more answers than Inspect's values are of, nobody knows which.
        n_not_seen: answers that were asked for and are not among the N.
        missing: whether an answer without a score is left out or wrong.
        logged: whether to find, too, what has no noise to be written beside it: values of several repeats
            (pass_at_k, max, mode), and keys of dictionaries that no metric is the mean of.
    """
    out = Gathered()
    labels = _labels(eval_scores, answers.repeats)
    clustered: dict[str, list[str]] = {}
    for i, (label, reduce) in labels.items():
        es = eval_scores[i]
        several = reduce is not None and answers.repeats > 1
        if (reduce is None and es.reducer not in (None, "mean")) or (several and not logged):
            out.skipped.append(_other_reducer(task, label, es))
            continue
        how = _How(answers, reduce, not_counted)
        found = parts(es, raw, how.mean_of, every=logged)
        means = sum(bool(part.metrics) for part in found)
        explained: list[str] = []
        for part in found:
            key = part.key if means > 1 or not part.metrics else None
            called = label if key is None else f"{label}/{key}"
            one = _one(task, called, es, part, how, excluded, cancelled, missing)
            if isinstance(one, Skipped):
                out.skipped.append(one)
                out.unreadable.append(f"{task}: {called} has no error bars: {one.reason}")
                continue
            explained += [one.explains] if one.explains else []
            its, shared = clusters, own_cluster(es, part.key)
            if own is not None and shared is not None and (by_key := own(shared))[0] is not None:
                its = by_key
                clustered.setdefault(shared, []).append(called)
            out.scores.append(one.scores(task, called, questions, its, n_not_seen))
            out.indices.append(i)
            out.keys.append(key)
            out.reproduced.append(one.agrees)
            out.notes += [f"{task}: {called}: {one.note}"] if one.note else []
        if logged:
            said = {(row.metric, row.scorer) for row in out.skipped}  # one row, with the first reason
            out.skipped += [
                Skipped(task, name, label, _OWN_CODE, _finite(es.metrics[name].value))
                for name in unexplained(es, found, explained)
                if (name, label) not in said
            ]
    for key, of_key in clustered.items():
        out.notes.append(f"{task}: {key} is the cluster of {', '.join(of_key)}, as its own stderr has it")
    out.own_clusters = bool(clustered)
    return out


def _other_reducer(task: str, label: str, es: EvalScore) -> Skipped:
    name, value = next(((k, m.value) for k, m in es.metrics.items()), ("", None))
    return Skipped(task, name, label, f"its reducer {es.reducer} is not a mean over repeats", _finite(value))


def _labels(eval_scores: Sequence[EvalScore], repeats: int) -> dict[int, tuple[str, reducers.Reduce | None]]:
    """What the rows of the EvalScores are called, by their number, and how each reduces repeats; None by the mean.

    A metric on un-reduced scores makes a second EvalScore of the same name without a reducer; the
    first is then labelled "mean". With one repeat any reducer is the score itself, or a threshold on it.
    """
    means: dict[tuple[str, str], int] = {}
    others: dict[int, tuple[str, str]] = {}
    for i, es in enumerate(eval_scores):
        if _is_ours(es):
            continue
        key = (es.scorer, es.name)
        if es.reducer not in (None, "mean"):
            others[i] = key
        elif key not in means or (es.reducer == "mean" and eval_scores[means[key]].reducer is None):
            means[key] = i
    names = [name for _, name in dict.fromkeys([*means, *others.values()])]
    plain = {key: key[1] if names.count(key[1]) == 1 else "/".join(key) for key in [*means, *others.values()]}
    found: dict[int, tuple[str, reducers.Reduce | None]] = {i: (plain[key], None) for key, i in means.items()}
    taken = set(means)
    for i, key in others.items():
        reducer = eval_scores[i].reducer
        reduce = reducers.of(reducer)
        if repeats == 1 and key not in taken:
            found[i] = (plain[key], reduce or reducers.single)
            taken.add(key)
        else:
            found[i] = (f"{plain[key]} ({reducer})", reduce or (reducers.single if repeats == 1 else None))
    return dict(sorted(found.items()))


def _is_ours(es: EvalScore) -> bool:
    """Whether it holds nothing but the public metric `noise`."""
    return bool(es.metrics) and all(metric.group == GROUP for metric in es.metrics.values())


@dataclass(frozen=True, slots=True, eq=False)
class _How:
    """How an EvalScore comes from its answers."""

    answers: Grid
    reduce: reducers.Reduce | None
    not_counted: BoolArray | None

    def table(self, values: FloatArray) -> FloatArray:
        """(n, K) scores of the N values; (n, 1) where a question's repeats have one value together."""
        table = self.answers.fill(values)
        return table if self.reduce is None else self.reduce(table)[:, None]

    def mean(self, values: FloatArray) -> float:
        """The mean of N values as Inspect reports it."""
        return _mean(self.table(_counted(values, self.not_counted)))

    def mean_of(self, column: list[Any]) -> float | None:
        """The same of N raw values; None where they are no numbers."""
        read = numbers(column)
        if read.words or not np.isfinite(read.values).any():
            return None
        return self.mean(read.values)

    @property
    def uses_all(self) -> bool:
        return self.reduce is not None and self.answers.repeats > 1


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """The mean that one EvalScore reports, and the table that it is of."""

    metric: str
    table: FloatArray
    native: float | None
    agrees: bool
    n_missing: int
    diagnostics: tuple[str, ...]
    note: str | None
    explains: str | None
    """The native value that it is."""

    def scores(self, task: str, label: str, questions: Questions, clusters: Clusters, n_not_seen: int) -> Scores:
        return Scores(
            task=task, metric=self.metric, scorer=label, questions=questions, values=self.table,
            clusters=clusters[0], cluster_spec=clusters[1],
            higher_is_better=True if self.metric == "accuracy" else None,
            bounds=fitting((0.0, 1.0), self.table) if self.metric == "accuracy" else None, native=self.native,
            n_missing=self.n_missing + n_not_seen, diagnostics=self.diagnostics,
        )  # fmt: skip


def _one(
    task: str, label: str, es: EvalScore, part: Part, how: _How, excluded: BoolArray | None, cancelled: bool,
    missing: str,
) -> _Mean | Skipped:  # fmt: skip
    not_counted = how.not_counted
    name = next(iter(part.metrics or es.metrics), "")
    shown = _finite(es.metrics[name].value) if name else None

    def skip(reason: str) -> Skipped:
        return Skipped(task, name, label, reason, shown)

    if part.refused is not None:
        return skip(part.refused)
    if part.values is None:
        return skip("no sample has a score of this scorer")
    read = numbers(part.values)
    if np.isinf(read.values).any():
        return skip("a score is infinite")
    absent = np.isnan(read.values)
    if absent.all():
        return skip("no sample has a score that is a number")
    ours = how.mean(read.values)
    candidates = part.metrics or part.like
    # what is rounded, or in percent, counts only where nothing else does
    alike = (key for same in (close, reproduces) for key in candidates if same(ours, es.metrics[key].value))
    metric = next(alike, part.usual)
    agrees = metric is not None and reproduces(ours, es.metrics[metric].value)
    # our error bars stand beside a value only on its own scale
    beside = metric is not None and reproduces(ours, es.metrics[metric].value, percent=False)
    if read.words and not agrees:
        return skip(f"{read.words} of its values are not numbers, such as {_short(read.example)}")
    if math.isnan(ours):
        return skip(f"no question has answers enough for its reducer {es.reducer}")
    if how.uses_all and not agrees and not cancelled and excluded is None:
        return skip(f"no native value is what its reducer {es.reducer} makes of the scores, {ours:.6g}")
    native = _finite(es.metrics[metric].value) if metric is not None else None
    note = None
    if read.words:
        note = f"{read.words} values are not numbers ({_short(read.example)}) and count as 0"
    out = np.zeros_like(absent) if excluded is None else excluded
    kept = np.where(out, np.nan, read.values)
    if missing == "zero":
        kept = np.where(absent & ~out, 0.0, kept)
    codes: tuple[str, ...] = ()
    if not_counted is not None and not_counted.any():
        native = None
    elif cancelled and metric is not None and not agrees:
        agrees, beside, native = True, True, None
        note = (
            f"Inspect's own {metric} is {es.metrics[metric].value:.4g} and ours {ours:.4g}: the run was cancelled, and "
            "Inspect computed its value before the last answers were logged"
        )
    elif native is not None and not np.array_equal(kept, read.values, equal_nan=True):
        # the native value is of other answers than ours: compared above, not comparable below
        codes, native = () if agrees else ("mean_mismatch",), None
    table = how.table(kept)
    if np.isnan(table).all():
        return skip("no question has a value")
    n_missing = int((absent | out).sum())
    if how.uses_all:
        n_missing, codes = int(np.isnan(table).sum()), (*codes, "uses_all_repeats")
    own = beside and bool(part.metrics)
    return _Mean(part.name or metric or "mean", table, native, own, n_missing, codes, note, metric if agrees else None)


def _counted(values: FloatArray, not_counted: BoolArray | None) -> FloatArray:
    return values if not_counted is None else np.where(not_counted, np.nan, values)


def _mean(table: FloatArray) -> float:
    present = ~np.isnan(table)
    count = present.sum(axis=1)
    if not count.any():
        return math.nan  # such as pass@5 of questions with fewer answers
    sums = np.where(present, table, 0.0).sum(axis=1)
    return float((sums[count > 0] / count[count > 0]).mean())


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
