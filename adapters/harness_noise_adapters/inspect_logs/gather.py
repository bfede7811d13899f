"""Make Scores of EvalScores and the un-reduced values behind them, for a live run and a log alike.

An EvalScore reports the mean of a scorer's values, or means of single keys of its dictionaries. Inspect reduces
dictionaries in two ways. Metrics by key make an EvalScore for each key. A metric such as
`aggregate("score", agg=mean())` picks a key by itself; it may be wrapped in a metric of another name, of which
a log has the name only, so it is known by its value: the mean of that key.

With one repeat all of Inspect's reducers but the thresholds are the score itself. A threshold other than 1 is not
said in a log, so whatever comes out is compared with the native value. What reducers make of several repeats stands in
the log itself.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise.analysis.mean import analyze_run
from harness_noise.arrays import BoolArray, FloatArray, IntArray
from harness_noise.data.answers import counted
from harness_noise.data.native_values import close, fitting, mean_of_questions, reproduces
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Gradings, Run, Scores, Skipped, all_alike, check_grid
from harness_noise.settings import Settings

from . import inject
from .clusters import Clusters, TaskClusters
from .inject import GROUP
from .records import AnyMetric, AnyScore, bare

if TYPE_CHECKING:
    from inspect_ai.scorer import SampleScore

    from .logfile import LogFile

_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_YES_NO = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass(frozen=True, slots=True, eq=False)
class AnswerGrid:
    """Which question and which repeat each of N answers is."""

    keys: tuple[str, ...]
    """(n,) ids as text."""
    first: tuple[int, ...]
    """(n,) number of the answer at which each question appears first."""
    rows: IntArray
    """(N,) question of each answer."""
    columns: IntArray
    """(N,) repeat of each answer."""
    repeats: int

    def fill(self, values: FloatArray) -> FloatArray:
        """(n, K) table of the N values, NaN where a question lacks a repeat."""
        table = np.full((len(self.keys), self.repeats), np.nan)
        table[self.rows, self.columns] = values
        return table


def grid(ids: Sequence[Any], epochs: Sequence[int] | None = None, order: Sequence[Any] | None = None) -> AnswerGrid:
    """The grid of N answers.

    Args:
        ids: (N,) of the questions.
        epochs: (N,) numbers of the repeats; without them the k-th answer to a question is its repeat k.
        order: ids of the data set, whose order the questions take, so that a sum comes out the same
            to the last bit in whatever order the answers came in.

    Raises:
        InputError: nearly every question lacks nearly every repeat.
    """
    named = ids if set(map(type, ids)) == {str} else list(map(str, ids))
    present = dict.fromkeys(named)
    if order is not None:
        present = {key: None for key in map(str, order) if key in present} | present
    index = {key: row for row, key in enumerate(present)}
    rows = np.fromiter(map(index.__getitem__, named), np.intp, len(named))
    by_row = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[by_row], np.arange(len(index)))
    if epochs is None:
        columns = np.empty_like(rows)
        columns[by_row] = np.arange(len(rows)) - starts[rows[by_row]]
    else:
        numbered = {epoch: column for column, epoch in enumerate(sorted(set(epochs)))}
        columns = np.fromiter(map(numbered.__getitem__, epochs), np.intp, len(epochs))
    repeats = int(columns.max(initial=-1)) + 1
    check_grid(len(index), repeats, len(rows), "the log")
    return AnswerGrid(tuple(index), tuple(by_row[starts].tolist()), rows, columns, repeats)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Score values as Inspect's `value_to_float` reads them."""

    values: FloatArray
    """(N,) NaN where there is no score."""
    words: int
    """How many are not numbers; Inspect takes them as 0."""
    example: object = None


def numbers(values: Sequence[Any]) -> Numbers:
    """Convert as Inspect does: C 1, P 0.5, I and N 0, booleans, numbers, yes/no, numeric text."""
    kinds = set(map(type, values))
    if kinds <= {float, int, bool}:
        with contextlib.suppress(OverflowError):
            return Numbers(np.asarray(values, dtype=np.float64), 0)
    if kinds <= {str, type(None)}:
        known = {value: _number(value) for value in set(values)}
        if None not in known.values():
            return Numbers(np.fromiter(map(known.__getitem__, values), np.float64, len(values)), 0)
    converted = [_number(value) for value in values]
    words = [value for value, number in zip(values, converted, strict=True) if number is None]
    out = np.asarray([0.0 if number is None else number for number in converted], dtype=np.float64)
    return Numbers(out, len(words), words[0] if words else None)


def _number(value: Any) -> float | None:
    """The number that a value stands for, NaN for no score, None for a word, a list or a dictionary."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        return _word(value)
    if not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _word(text: str) -> float | None:
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in _YES_NO:
        return _YES_NO[text.lower()]
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


Reduce = Callable[[FloatArray], FloatArray]
"""(n, K) scores, NaN where there is none → (n,) values, NaN where there is none."""

_WITH_K = re.compile(r"(?:pass_at|pass_k|at_least)_([0-9]+)")


def of_single_answers(reducer: str) -> Reduce | None:
    """What a reducer makes of one repeat: the score itself, or whether it reaches 1; None for one of more repeats."""
    threshold = _WITH_K.fullmatch(reducer)
    if threshold is None:
        return lambda table: table[:, 0]
    return None if int(threshold[1]) != 1 else lambda table: np.where(np.isnan(table), np.nan, table >= 1)[:, 0]


Column = list[Any]

MEANS = ("accuracy", "mean")
"""Inspect's own metrics that are the mean of the scores."""
SPREADS = frozenset({"stderr", "std", "var", "bootstrap_stderr", "ci", "ci_wilson", "lower", "upper"})
ERRORS = SPREADS - {"std", "var"}
"""Those of the mean, which may be clustered."""
_SPREAD = re.compile(r"(^|_)(stderr|std|stddev|var|variance|se|ci)(_|\d*$)")
_DICTIONARIES = "its scores are dictionaries, and none of its metrics is known as the mean of one key"
MOST_KEYS = 200
_TOO_MANY = f"its scores are dictionaries with more than {MOST_KEYS} keys"
_CATEGORIES = "its metrics are of categories, not one mean of its scores"


@dataclass(frozen=True, slots=True, eq=False)
class ReportedMean:
    """One mean that an EvalScore may report."""

    values: Column | None
    """(N,) the values that it is of, None where there is none; None without any."""
    metrics: tuple[str, ...]
    """The native metrics that may be it, the likeliest first."""
    usual: str | None = None
    """The one that has the name of a mean, whatever its value."""
    key: str | None = None
    """Key of the scorer's dictionaries, where a metric picks one by itself."""
    name: str | None = None
    """What such a metric is called in results; without it by its key in the EvalScore."""
    like: tuple[str, ...] = ()
    """Where no metric is known as it: native values that it equals, the likeliest first."""
    refused: str | None = None
    """Why the EvalScore reports no mean."""


def reported_means(
    es: AnyScore,
    raw: Callable[[str], Column | None],
    mean: Callable[[Column], float | None],
    every: bool = False,
) -> list[ReportedMean]:
    """The means that an EvalScore may report; one that is `refused` where there is none.

    Args:
        es: the native result.
        raw: the N values that a scorer gave, None where it gave none; None for an unknown scorer.
        mean: of N values, as Inspect reports it; None where they are no numbers.
        every: whether the keys of dictionaries count that no metric is the mean of, where there is a native value
            that is no mean.
    """
    values = raw(es.scorer)
    if values is not None and dict in set(map(type, values)) and es.name == es.scorer:
        keys = dict.fromkeys(key for value in values if isinstance(value, dict) for key in value)
        if es.name not in keys:
            if len(keys) > MOST_KEYS:
                return [ReportedMean(None, (), refused=_TOO_MANY)]
            known = _keyed(es, values, list(keys), mean)
            explained = [name for part in known for name in part.metrics]
            if every and (not known or unexplained(es, known, explained)):
                named = {part.key for part in known}
                known += _other_keys(es, values, [key for key in keys if key not in named], mean)
            return known or [ReportedMean(None, (), refused=_DICTIONARIES)]
    usual = [key for key in MEANS if key in es.metrics]
    single = [key for key, metric in es.metrics.items() if _is_single(metric)]
    grouped = any(m.group not in (None, GROUP) for m in es.metrics.values())
    if not usual and not single and grouped and not every:
        return [ReportedMean(None, (), refused=_CATEGORIES)]
    return [ReportedMean(_column(es, values, raw), (*usual, *single), usual[0] if usual else None)]


def _is_single(metric: AnyMetric) -> bool:
    """Whether a metric stands for itself: neither a spread, nor ours, nor one category of several.

    Of `grouped()` the value over all groups does.
    """
    if metric.group is None:
        return not _is_spread(metric)
    return "group_key" in metric.params and metric.name == (metric.params.get("all_label") or "all")


def _column(es: AnyScore, values: Column | None, raw: Callable[[str], Column | None]) -> Column | None:
    """The values behind an EvalScore: a scorer's own, or one key of its dictionaries."""
    if values is not None and dict in set(map(type, values)):
        return [value.get(es.name) if isinstance(value, dict) else value for value in values]
    if es.name != es.scorer:
        alternative = raw(es.name)
        return values if alternative is None else alternative
    return values


def _keyed(
    es: AnyScore, values: Column, keys: Sequence[str], mean: Callable[[Column], float | None]
) -> list[ReportedMean]:
    """The keys whose mean one of the metrics is; each key once, by the first metric."""
    columns = {(key, zero): _of_key(values, key, zero) for key in keys for zero in (False, True)}
    means = {which: mean(column) for which, column in columns.items()}
    out: dict[str, ReportedMean] = {}
    for name, metric in es.metrics.items():
        if metric.group is not None or _is_spread(metric):
            continue
        missing = metric.params.get("on_missing")
        matches = [
            (key, zero)
            for zero in ((missing == "zero",) if missing else (False, True))
            for key in _candidates(metric, name, keys)
            if (ours := means[key, zero]) is not None and close(ours, metric.value)
        ]
        which = _one_of(matches, columns, name)
        if which is not None and which[0] not in out:
            out[which[0]] = ReportedMean(columns[which], (name,), key=which[0], name=_called(metric))
    return list(out.values())


def _of_key(values: Column, key: str, zero: bool) -> Column:
    """One key of each dictionary; where it is missing None, or 0."""
    filler = 0.0 if zero else None
    return [
        (filler if (entry := value.get(key)) is None else entry) if isinstance(value, dict) else None
        for value in values
    ]


def _candidates(metric: AnyMetric, name: str, keys: Sequence[str]) -> Sequence[str]:
    """The keys that a metric may be of: that which its parameters or its own name name, else any."""
    named = [key for key in keys if key in [value for value in metric.params.values() if isinstance(value, str)]]
    return named or [key for key in keys if key == name] or keys


def _one_of(
    matches: Sequence[tuple[str, bool]], columns: Mapping[tuple[str, bool], Column], name: str
) -> tuple[str, bool] | None:
    """The key that the metric's name names, of several with the same mean; None where their numbers differ."""
    named = [which for which in matches if which[0] in name] or list(matches)
    if not named or any(columns[which] != columns[named[0]] for which in named):
        return None
    return named[0]


def _is_spread(metric: AnyMetric) -> bool:
    agg = metric.params.get("agg")
    inner = str(agg.get("name", "")) if isinstance(agg, Mapping) else ""
    return any(_SPREAD.search(bare(name)) for name in (metric.name, inner))


def _called(metric: AnyMetric) -> str:
    """`mean` for `aggregate(KEY, agg=mean())`, the metric's own name for one that says no more."""
    agg = metric.params.get("agg")
    inner = str(agg.get("name", "")) if isinstance(agg, Mapping) else ""
    return bare(inner or metric.name)


def _other_keys(
    es: AnyScore, values: Column, keys: Sequence[str], mean: Callable[[Column], float | None]
) -> list[ReportedMean]:
    """The keys that no metric is known to be the mean of; a native value that is the mean of one only is said."""
    columns = {key: _of_key(values, key, False) for key in keys}
    means = {key: mean(column) for key, column in columns.items()}
    like: dict[str, list[str]] = {key: [] for key in keys}
    for name in _values(es):
        words = set(name.split("_"))
        equal = {
            key: len(words & set(key.split("_")))
            for key, ours in means.items()
            if ours is not None and close(ours, es.metrics[name].value)
        }
        nearest = [key for key, shared in equal.items() if shared == max(equal.values())]
        if len(nearest) == 1:
            like[nearest[0]].append(name)
    return [ReportedMean(columns[key], (), key=key, like=tuple(like[key])) for key in keys]


def _values(es: AnyScore) -> list[str]:
    """The metrics that are neither ours nor spreads, whatever group they are of."""
    return [name for name, metric in es.metrics.items() if metric.group != GROUP and not _is_spread(metric)]


def unexplained(es: AnyScore, reported: Sequence[ReportedMean], means: Sequence[str]) -> list[str]:
    """The native values that are no mean of the scores; beside one that is, those of categories are left out.

    Args:
        es: the native result.
        reported: its parts.
        means: the metrics that have been found to be means.
    """
    if any(part.refused for part in reported):
        return []
    keyed, usual = any(part.key is not None for part in reported), {part.usual for part in reported} - {None}
    alone = not keyed and (usual or means)
    known = [es.metrics[name].value for name in means]
    return [
        name
        for name in _values(es)
        if name not in usual
        and not (alone and es.metrics[name].group is not None)
        and not any(close(value, es.metrics[name].value) for value in known)
    ]


def own_cluster(es: AnyScore, key: str | None = None) -> str | None:
    """The key of the samples' metadata by which the own `stderr(cluster=KEY)` or `ci` of an EvalScore is clustered.

    None where it names none, or several, or has an unclustered one, too.
    """
    clusters = {cluster for of, cluster in _errors(es) if key is None or of in (None, key)}
    (cluster,) = clusters if len(clusters) == 1 else (None,)
    return cluster


def names_cluster(es: AnyScore, cluster: str) -> bool:
    """Whether one of the EvalScore's own errors is clustered by it."""
    return any(named == cluster for _, named in _errors(es))


def _errors(es: AnyScore) -> list[tuple[str | None, str | None]]:
    """Key of the dictionaries, and cluster, of each standard error or interval of Inspect's own."""
    out = []
    for metric in es.metrics.values():
        agg = metric.params.get("agg")
        if isinstance(agg, Mapping):
            of, name, params = metric.params.get("key"), str(agg.get("name", "")), agg.get("params")
        else:
            of, name, params = None, metric.group or metric.name, metric.params
        if bare(name) in ERRORS:
            cluster = params.get("cluster") if isinstance(params, Mapping) else None
            out.append((of, cluster if isinstance(cluster, str) and cluster else None))
    return out


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
    cancelled: bool = False
    """Whether the log may hold more answers than Inspect's values are of, nobody knows which."""
    computed: bool = True
    """Whether the native results have values, and not only names."""
    n_not_seen: int = 0
    """Answers that were asked for and are not among the N."""
    missing: str = "drop"
    """What counts as wrong of the answers without a score; see `harness_noise.settings.counts_as_zero`."""
    log: LogFile | None = None
    """What they were read from; None of a running task. Of a log there is, too, what has no noise to be written beside
    it: values of several repeats (pass_at_k, max, mode), and keys of dictionaries that no metric is the mean of."""

    def reduce(self, es: AnyScore) -> Reduce | None:
        """From an EvalScore's table to one value for each question, which the log holds where repeats are several;
        None for the mean over repeats, and where the log has no such values."""
        if es.reducer in (None, "mean"):
            return None
        if self.answers.repeats == 1:
            return of_single_answers(es.reducer)
        reduced = {} if self.log is None else self.log.reductions.get((es.scorer, es.reducer), {})
        values = map(reduced.get, self.answers.keys)
        read = numbers([value.get(es.name) if isinstance(value, dict) else value for value in values])
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
    own_clusters: dict[str, list[str]] = field(default_factory=dict)
    """Cluster that a scorer's own stderr names → the means that have it."""


def gather(task: TaskAnswers) -> GatheredMeans:
    """The Scores of every mean over repeats and questions that the EvalScores report."""
    out = GatheredMeans()
    for i, label in _labels(task.eval_scores, task.answers.repeats).items():
        es = task.eval_scores[i]
        reduce = task.reduce(es)
        several = reduce is not None and task.answers.repeats > 1
        if (reduce is None and es.reducer not in (None, "mean")) or (several and task.log is None):
            reason = f"its reducer {es.reducer} is not a mean over repeats"
            out.skipped.append(_skipped(task, label, es, (), reason))
        else:
            _gather(task, i, label, _How(task.answers, reduce), out)
    for key, of_key in out.own_clusters.items():
        out.notes.append(f"{task.name}: {key} is the cluster of {', '.join(of_key)}, as its own stderr has it")
    return out


def _gather(task: TaskAnswers, i: int, label: str, how: _How, out: GatheredMeans) -> None:
    """Add the means of one EvalScore, by its number."""
    es = task.eval_scores[i]
    reported = reported_means(es, task.raw, how.mean_of, every=task.log is not None)
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
            out.own_clusters.setdefault(shared, []).append(called)
        scores = replace(mean.scores, clusters=clusters[0], cluster_spec=clusters[1])
        out.means.append(replace(mean, scores=scores, key=key))
        out.notes += [f"{task.name}: {called}: {mean.note}"] if mean.note else []
    if task.log is not None and task.computed:
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
        if es.metrics and all(metric.group == GROUP for metric in es.metrics.values()):
            continue  # it holds nothing but the public metric `noise`
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


@dataclass(frozen=True, slots=True, eq=False)
class _How:
    """How an EvalScore comes from its answers."""

    answers: AnswerGrid
    reduce: Reduce | None

    def table(self, values: FloatArray) -> FloatArray:
        """(n, K) scores of the N values; (n, 1) where a question's repeats have one value together."""
        table = self.answers.fill(values)
        return table if self.reduce is None else self.reduce(table)[:, None]

    def mean(self, values: FloatArray) -> float:
        """The mean of N values as Inspect reports it."""
        return mean_of_questions(self.table(values))

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
    if np.isinf(read.values).any():
        return _skipped(task, label, es, part.metrics, "a score is infinite")
    if np.isnan(read.values).all():
        return _skipped(task, label, es, part.metrics, "no sample has a score that is a number")
    compared = _Compared.of(es, part, how.mean(read.values), comparable=not task.cancelled)
    if (reason := _refuted(task, es, how, read, compared)) is not None:
        return _skipped(task, label, es, part.metrics, reason)
    metric, native, agrees, beside, note = compared.metric, compared.native, compared.agrees, compared.beside, None
    if read.words:
        note = f"{read.words} values are not numbers ({_short(read.example)}) and count as 0"
    absent = np.isnan(read.values)
    out = np.zeros_like(absent) if task.excluded is None else task.excluded
    lost = [] if task.log is None else np.flatnonzero(absent & ~out).tolist()
    causes = {} if task.log is None else {i: cause for i in lost if (cause := task.log.answers.causes[i])}
    kept = np.where(out, np.nan, counted(read.values, causes, task.missing)[2])
    n_zero = int((absent & ~np.isnan(kept)).sum())
    codes: tuple[str, ...] = ()
    if task.cancelled and task.computed and metric is not None and not agrees:
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
    gradings = None
    if how.reduce is None and task.log is not None:
        gradings = _gradings(task, task.log, es, part.key, absent | out)
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
        version="" if task.log is None else task.log.header.task_version,
        gradings=gradings,
    )
    return GatheredMean(scores, i, part.key, beside and bool(part.metrics), metric if agrees else None, note)


def _gradings(task: TaskAnswers, log: LogFile, es: AnyScore, key: str | None, absent: BoolArray) -> Gradings | None:
    """The texts that a scorer graded, and what it or its panel said of them besides; None where nothing is known.

    Args:
        task: the answers.
        log: what they were read from.
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

    votes = log.answers.panels.get(es.scorer, {})
    width = max(map(len, votes.values()), default=0)
    panel = tables([[(*votes.get(i, ()), *[None] * width)[v] for i in range(len(absent))] for v in range(width)])
    same = map(task.raw, log.header.same_judge.get(es.scorer, ()))
    again = tables([column for column in same if column is not None])
    texts = np.zeros((len(task.answers.keys), task.answers.repeats), dtype=np.uint64)
    hashes = np.array(log.answers.texts, dtype=np.uint64)
    texts[task.answers.rows, task.answers.columns] = np.where(absent, 0, hashes)
    changed, now = log.answers.edited.get(es.scorer), task.raw(es.scorer)
    pairs = [changed.get(i, (value, None)) for i, value in enumerate(now)] if changed and now else []
    edits = tables(list(zip(*pairs, strict=True)))
    known = texts.any() or any(table is not None for table in (again, panel, edits))
    return Gradings(texts, again, panel, edits) if known else None


def _skipped(task: TaskAnswers, label: str, es: AnyScore, metrics: Sequence[str], reason: str) -> Skipped:
    """What is said of native metrics without a mean, by the first of them, or of any of the EvalScore."""
    name = next(iter(metrics or es.metrics), "")
    return Skipped(task.name, name, label, reason, _finite(es.metrics[name].value) if name else None)


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
