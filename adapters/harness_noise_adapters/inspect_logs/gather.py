"""Make Scores of EvalScores and the un-reduced values behind them, for a live run and a log alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise.analysis.mean import analyze_run
from harness_noise.arrays import BoolArray, FloatArray
from harness_noise.data.answers import counted
from harness_noise.data.native_values import close, fitting, mean_of_questions, reproduces
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Gradings, Run, Scores, Skipped, all_alike
from harness_noise.settings import Settings

from . import inject
from .clusters import Clusters, TaskClusters
from .grid import AnswerGrid, Numbers, Reduce, grid, numbers, of_single_answers
from .means import GROUP, MEANS, ReportedMean, own_cluster, reported_means, unexplained

if TYPE_CHECKING:
    from inspect_ai.scorer import SampleScore

    from .records import AnyScore


_OWN_CODE = "a metric of the task's own code, which is not known as a mean of the scores"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskAnswers:
    """One task: its native results, and the N answers that they are of."""

    name: str
    eval_scores: Sequence[AnyScore]
    """The native results."""
    answers: AnswerGrid
    raw: Callable[[str], list[Any] | None]
    """Scorer → the N values that it gave, None where it gave none; None for an unknown scorer."""
    questions: Questions
    """The questions of the grid's rows."""
    clusters: Clusters = (None, None)
    own: Callable[[str], Clusters] | None = None
    """Clusters by a key, for scorers whose own stderr names one; None where the user has named another."""
    excluded: BoolArray | None = None
    """(N,) answers that are not to count (invalidated samples)."""
    causes: Sequence[str] = ()
    """(N,) why each answer has no score, if it has none; empty where the log does not say."""
    not_counted: BoolArray | None = None
    """(N,) answers that the log holds and Inspect's values are not of."""
    cancelled: bool = False
    """Whether the log may hold more answers than Inspect's values are of, nobody knows which."""
    computed: bool = True
    """Whether the native results have values, and not only names."""
    n_not_seen: int = 0
    """Answers that were asked for and are not among the N."""
    version: str = ""
    """The task's own version."""
    missing: str = "drop"
    """What counts as wrong of the answers without a score; see `harness_noise.settings.counts_as_zero`."""
    logged: bool = False
    """Whether to find, too, what has no noise to be written beside it: values of several repeats (pass_at_k, max,
    mode), and keys of dictionaries that no metric is the mean of."""
    texts: Sequence[int] = ()
    """(N,) hashes of what was answered, see `records.answer_hash`; empty where they are not known."""
    panels: Mapping[str, Mapping[int, Sequence[Any]]] = field(default_factory=dict)
    """Scorer → number of the answer → the votes of its panel."""
    edited: Mapping[str, Mapping[int, tuple[Any, Any]]] = field(default_factory=dict)
    """Scorer → number of the answer → its score before a person edited it, and that person's."""
    same_judge: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Scorer → those that are it once more."""
    reductions: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """Scorer and reducer → question → the one value that a log says its repeats came to."""

    def reduce(self, es: AnyScore) -> Reduce | None:
        """From an EvalScore's table to one value for each question, which the log holds where repeats are several;
        None for the mean over repeats, and where the log has no such values."""
        if es.reducer in (None, "mean"):
            return None
        if self.answers.repeats == 1:
            return of_single_answers(es.reducer)
        reduced = self.reductions.get((es.scorer, es.reducer), {})
        values = [reduced.get(key) for key in self.answers.keys]
        if es.name != es.scorer:
            values = [value.get(es.name) if isinstance(value, dict) else value for value in values]
        read = numbers(values)
        return None if read.words or not reduced else lambda _: read.values.copy()


@dataclass(frozen=True, slots=True, eq=False)
class GatheredMean:
    """One mean that an EvalScore reports."""

    scores: Scores
    index: int
    """Number of the EvalScore."""
    key: str | None
    """Key of the scorer's dictionaries, where the EvalScore has means of several."""
    reproduced: bool
    """Whether a native metric is this mean, on the scale of the scores."""
    explains: str | None = None
    """The native value that it is, on whatever scale."""
    note: str | None = None


@dataclass(slots=True)
class GatheredMeans:
    """All means that the EvalScores of one task report."""

    means: list[GatheredMean] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    unreadable: list[str] = field(default_factory=list)
    """Why a mean over repeats is among `skipped`, one sentence each."""
    own_clusters: bool = False
    """Whether a scorer's own stderr has named its clusters."""


def gather(task: TaskAnswers) -> GatheredMeans:
    """The Scores of every mean over repeats and questions that the EvalScores report."""
    out = GatheredMeans()
    clustered: dict[str, list[str]] = {}
    for i, label in _labels(task.eval_scores, task.answers.repeats).items():
        es = task.eval_scores[i]
        reduce = task.reduce(es)
        several = reduce is not None and task.answers.repeats > 1
        if (reduce is None and es.reducer not in (None, "mean")) or (several and not task.logged):
            reason = f"its reducer {es.reducer} is not a mean over repeats"
            out.skipped.append(_skipped(task, label, es, (), reason))
        else:
            _gather(task, i, label, _How(task.answers, reduce, task.not_counted), out, clustered)
    for key, of_key in clustered.items():
        out.notes.append(f"{task.name}: {key} is the cluster of {', '.join(of_key)}, as its own stderr has it")
    out.own_clusters = bool(clustered)
    return out


def _gather(
    task: TaskAnswers, i: int, label: str, how: _How, out: GatheredMeans, clustered: dict[str, list[str]]
) -> None:
    """The means of one EvalScore, by its number; `clustered` learns which of them have clusters of their own."""
    es = task.eval_scores[i]
    reported = reported_means(es, task.raw, how.mean_of, every=task.logged)
    means = sum(bool(part.metrics) for part in reported)
    explained: list[str] = []
    for part in reported:
        key = part.key if means > 1 or not part.metrics else None
        called = label if key is None else f"{label}/{key}"
        mean = _mean_of(task, i, called, part, how)
        if isinstance(mean, Skipped):
            out.skipped.append(mean)
            out.unreadable.append(f"{task.name}: {called} has no error bars: {mean.reason}")
            continue
        explained += [mean.explains] if mean.explains else []
        clusters, shared = task.clusters, own_cluster(es, part.key)
        if task.own is not None and shared is not None and (by_key := task.own(shared))[0] is not None:
            clusters = by_key
            clustered.setdefault(shared, []).append(called)
        scores = replace(mean.scores, clusters=clusters[0], cluster_spec=clusters[1])
        out.means.append(replace(mean, scores=scores, key=key))
        out.notes += [f"{task.name}: {called}: {mean.note}"] if mean.note else []
    if task.logged and task.computed:
        said = {(row.metric, row.scorer) for row in out.skipped}  # one row, with the first reason
        out.skipped += [
            Skipped(task.name, name, label, _OWN_CODE, _finite(es.metrics[name].value))
            for name in unexplained(es, reported, explained)
            if (name, label) not in said
        ]


def _labels(eval_scores: Sequence[AnyScore], repeats: int) -> dict[int, str]:
    """What the rows of the EvalScores are called, by their number.

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
    labels = {i: plain[key] for key, i in means.items()}
    for i, key in others.items():
        alone = repeats == 1 and plain[key] not in labels.values()
        labels[i] = plain[key] if alone else f"{plain[key]} ({eval_scores[i].reducer})"
    return dict(sorted(labels.items()))


def _is_ours(es: AnyScore) -> bool:
    """Whether it holds nothing but the public metric `noise`."""
    return bool(es.metrics) and all(metric.group == GROUP for metric in es.metrics.values())


@dataclass(frozen=True, slots=True, eq=False)
class _How:
    """How an EvalScore comes from its answers."""

    answers: AnswerGrid
    reduce: Reduce | None
    not_counted: BoolArray | None

    def table(self, values: FloatArray) -> FloatArray:
        """(n, K) scores of the N values; (n, 1) where a question's repeats have one value together."""
        table = self.answers.fill(values)
        return table if self.reduce is None else self.reduce(table)[:, None]

    def mean(self, values: FloatArray) -> float:
        """The mean of N values as Inspect reports it."""
        counted = values if self.not_counted is None else np.where(self.not_counted, np.nan, values)
        return mean_of_questions(self.table(counted))

    def mean_of(self, column: list[Any]) -> float | None:
        """The mean of N raw values as Inspect reports it; None where they are no numbers."""
        read = numbers(column)
        if read.words or not np.isfinite(read.values).any():
            return None
        return self.mean(read.values)

    @property
    def uses_all(self) -> bool:
        return self.reduce is not None and self.answers.repeats > 1


@dataclass(frozen=True, slots=True)
class _Compared:
    """Our mean beside the native value that it should be."""

    ours: float
    metric: str | None
    """The native metric, the first where several are equal; None where none can be it."""
    native: float | None
    agrees: bool
    beside: bool
    """Whether it is on our own scale: our error bars stand beside it only there."""
    names: tuple[str, ...] | None
    """Metrics of the task's own code that it may be; see `Scores.names`."""

    @classmethod
    def of(cls, es: AnyScore, part: ReportedMean, ours: float, *, comparable: bool) -> _Compared:
        """Compare; `comparable` is whether the native values are of the same answers as ours."""
        candidates = part.metrics or part.like
        # what is rounded, or in percent, counts only where nothing else does
        tiers = ([key for key in candidates if same(ours, es.metrics[key].value)] for same in (close, reproduces))
        alike = next(filter(None, tiers), [])
        metric = next(iter(alike), part.usual)
        certain = part.usual is not None and metric in MEANS
        names = None if certain or part.key is not None or not part.metrics else tuple(alike)
        if metric is None:
            return cls(ours, None, None, False, False, names if comparable else part.metrics)
        value = es.metrics[metric].value
        agrees, beside = reproduces(ours, value), reproduces(ours, value, percent=False)
        return cls(ours, metric, _finite(value), agrees, beside, names)

    @property
    def called(self) -> str | None:
        """What the row is called; None where no metric says it, or several do."""
        return self.metric if self.names is None or len(self.names) == 1 else None


def _mean_of(task: TaskAnswers, i: int, label: str, part: ReportedMean, how: _How) -> GatheredMean | Skipped:
    """The mean that one part of the i-th EvalScore is, without clusters; or why it is none."""
    es = task.eval_scores[i]
    if part.refused is not None or part.values is None:
        return _skipped(task, label, es, part.metrics, part.refused or "no sample has a score of this scorer")
    read = numbers(part.values)
    if (reason := _unusable(read)) is not None:
        return _skipped(task, label, es, part.metrics, reason)
    compared = _Compared.of(es, part, how.mean(read.values), comparable=not task.cancelled)
    if (reason := _refuted(task, es, how, read, compared)) is not None:
        return _skipped(task, label, es, part.metrics, reason)
    metric, native, agrees, beside, note = compared.metric, compared.native, compared.agrees, compared.beside, None
    if read.words:
        note = f"{read.words} values are not numbers ({_short(read.example)}) and count as 0"
    absent = np.isnan(read.values)
    out = np.zeros_like(absent) if task.excluded is None else task.excluded
    lost = np.flatnonzero(absent & ~out).tolist() if task.causes else []
    causes = {i: task.causes[i] for i in lost if task.causes[i]}
    kept = np.where(out, np.nan, counted(read.values, causes, task.missing)[2])
    n_zero = int((absent & ~np.isnan(kept)).sum())
    codes: tuple[str, ...] = ()
    if task.not_counted is not None and task.not_counted.any():
        native = None
    elif task.cancelled and task.computed and metric is not None and not agrees:
        agrees, beside, native = True, True, None
        note = (
            f"Inspect's own {metric} is {es.metrics[metric].value:.4g} and ours {compared.ours:.4g}: the run was "
            "cancelled, and Inspect computed its value before the last answers were logged"
        )
    elif native is not None and not np.array_equal(kept, read.values, equal_nan=True):
        # the native value is of other answers than ours: compared above, not comparable below
        codes, native = () if agrees else ("mean_mismatch",), None
    table = how.table(kept)
    if how.uses_all:
        table[task.answers.rows[out]] = np.nan  # nobody knows what the other answers to the question come to
    if np.isnan(table).all():
        return _skipped(task, label, es, part.metrics, "no question has a value")
    n_missing = int((absent | out).sum())
    if how.uses_all:
        n_missing, n_zero, codes = int(np.isnan(table).sum()), 0, (*codes, "uses_all_repeats")
    called = part.name or compared.called or "mean"
    gradings = None if how.reduce is not None else _gradings(task, es, part.key, np.isnan(read.values) | out)
    if gradings is not None and all_alike(gradings.texts):
        codes = (*codes, "identical_repeats")
    scores = Scores(
        task=task.name,
        metric=called,
        scorer=label,
        questions=task.questions,
        values=table,
        higher_is_better=True if called == "accuracy" else None,
        bounds=fitting((0.0, 1.0), table) if called == "accuracy" else None,
        native=native,
        n_missing=n_missing + task.n_not_seen,
        missing={} if how.uses_all else Counter(causes.values()),
        n_zero=n_zero,
        diagnostics=codes,
        names=compared.names,
        version=task.version,
        gradings=gradings,
    )
    return GatheredMean(scores, i, part.key, beside and bool(part.metrics), metric if agrees else None, note)


def _gradings(task: TaskAnswers, es: AnyScore, key: str | None, absent: BoolArray) -> Gradings | None:
    """The texts that a scorer graded, and what it or its panel said of them besides; None where nothing is known.

    Args:
        task: the answers.
        es: the native result.
        key: of the scorer's dictionaries, where the mean is of one.
        absent: (N,) answers that have no score, or are not to count.
    """

    def tables(columns: Sequence[Sequence[Any]]) -> FloatArray | None:
        """(n, K, V) of V columns; None without any, or where they are no numbers."""
        name = es.name if key is None else key
        read = [numbers([v.get(name) if isinstance(v, dict) else v for v in column]) for column in columns]
        if not read or any(part.words for part in read):
            return None
        return np.stack([task.answers.fill(np.where(absent, np.nan, part.values)) for part in read], axis=2)

    votes = task.panels.get(es.scorer, {})
    width = max(map(len, votes.values()), default=0)
    panel = tables([[(*votes.get(i, ()), *[None] * width)[v] for i in range(len(absent))] for v in range(width)])
    named = [(name, column) for name in task.same_judge.get(es.scorer, ()) if (column := task.raw(name)) is not None]
    again = tables([column for _, column in named])
    texts = np.zeros((len(task.answers.keys), task.answers.repeats), dtype=np.uint64)
    if any(task.texts):
        texts[task.answers.rows, task.answers.columns] = np.where(absent, 0, np.array(task.texts, dtype=np.uint64))
    changed, now = task.edited.get(es.scorer), task.raw(es.scorer)
    pairs = [changed.get(i, (value, None)) for i, value in enumerate(now)] if changed and now else []
    edits = tables(list(zip(*pairs, strict=True)))
    known = texts.any() or any(table is not None for table in (again, panel, edits))
    return Gradings(texts, again, panel, edits) if known else None


def _skipped(task: TaskAnswers, label: str, es: AnyScore, metrics: Sequence[str], reason: str) -> Skipped:
    """What is said of native metrics without a mean, by the first of them, or of any of the EvalScore."""
    name = next(iter(metrics or es.metrics), "")
    return Skipped(task.name, name, label, reason, _finite(es.metrics[name].value) if name else None)


def _unusable(read: Numbers) -> str | None:
    """Why values have no mean; None if they have one."""
    if np.isinf(read.values).any():
        return "a score is infinite"
    return "no sample has a score that is a number" if np.isnan(read.values).all() else None


def _refuted(task: TaskAnswers, es: AnyScore, how: _How, read: Numbers, compared: _Compared) -> str | None:
    """Why their mean is not what Inspect reports; None if nothing speaks against it."""
    if read.words and not compared.agrees:
        return f"{read.words} of its values are not numbers, such as {_short(read.example)}"
    if math.isnan(compared.ours):
        return f"no question has answers enough for its reducer {es.reducer}"
    if how.uses_all and not compared.agrees and not task.cancelled and task.excluded is None:
        return f"no native value is what its reducer {es.reducer} makes of the scores, {compared.ours:.6g}"
    return None


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


_TOO_FEW = {"too_few_questions": "fewer than two questions", "too_few_clusters": "fewer than two clusters"}


class TooFewError(Exception):
    """Nothing is identified; while a task goes on that is no news, at its end it is."""


def noise_of(scores: Sequence[SampleScore], cluster: str | None, level: float) -> dict[str, float]:
    """The noise of the mean of un-reduced scores, by the names of our metrics.

    Where the total comes out below the prediction noise, the data variance below 0 that makes it so is among them.

    Raises:
        InputError: a cluster key that the samples lack, a level outside (0, 1).
        ValueError: values that are not numbers.
        TooFewError: too few questions or clusters for any number.
    """
    scores = [score for score in scores if score.sample_id is not None]
    if not scores:
        return {}
    answers = grid([score.sample_id for score in scores])
    read = numbers([score.score.value for score in scores])
    if read.words:
        raise ValueError(f"{read.words} values are not numbers, such as {read.example!r}")
    metadata = [scores[i].sample_metadata for i in answers.first]
    labels, words = TaskClusters("", answers.keys, metadata).labels(cluster)
    part = Scores(
        task="",
        metric="mean",
        scorer="noise",
        questions=Questions(answers.keys, "sample id"),
        values=answers.fill(read.values),
        clusters=labels,
        cluster_spec=words,
    )
    run = Run(model="", name="", harness="inspect", scores=(part,))
    estimate = analyze_run(run, Settings(level=level)).estimates[0]
    for code, words in _TOO_FEW.items():
        if code in estimate.diagnostics:
            raise TooFewError(f"{words}: no standard error")
    noise = inject.values(estimate)
    if estimate.var_data is not None and inject.total_below_prediction(estimate):
        noise[inject.VAR_DATA] = estimate.var_data  # a metric has no metadata, and nobody would believe the total
    return noise
