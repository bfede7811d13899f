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

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise.analysis.mean import estimate_scores
from harness_noise.arrays import BoolArray, FloatArray
from harness_noise.data.answers import count_missing
from harness_noise.data.clusters import FileSpec, Spec
from harness_noise.data.native_values import (
    MISMATCH,
    UNNAMED,
    fitting_bounds,
    mean_of_questions,
    nearly_equal,
    reproduces,
)
from harness_noise.data.notes import Note, empty_answers
from harness_noise.data.numbers import INFINITE, finite, is_infinite, number_of, numbers_of
from harness_noise.data.places import AnswerPlaces
from harness_noise.data.questions import AnswerTexts, Questions
from harness_noise.data.scores import Gradings, Scores, Skipped, all_alike
from harness_noise.settings import Settings

from . import inject
from .clusters import UNKNOWN, Clusters, TaskClusters, is_auto, is_unknown
from .grouped import MeanOfGroups, is_mean_of_groups, is_over_groups, of_each_group, of_groups
from .inject import GROUP
from .records import RECORD, NativeMetric, ScoreRow, bare

if TYPE_CHECKING:
    from inspect_ai.scorer import SampleScore

    from .logfile import LogFile

_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_YES_NO = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass(frozen=True, slots=True, eq=False)
class AnswerGrid(AnswerPlaces):
    """The places of N answers, and the questions by name."""

    keys: tuple[str, ...]
    """(n,) ids as text."""
    first: tuple[int, ...]
    """(n,) number of the answer at which each question appears first."""
    names: tuple[str, ...] | None
    """(K,) numbers of the epochs, None if they are unknown."""


def grid(ids: Sequence[Any], epochs: Sequence[int] | None = None, order: Sequence[Any] | None = None) -> AnswerGrid:
    """Arrange N answers in an (n, K) table by question ids and epochs. Refuse a nearly empty one.

    Args:
        ids: (N,) of the questions.
        epochs: (N,) numbers of the repeats; without them the k-th answer to a question is its repeat k.
        order: ids of the data set, whose order the questions take, so that a sum comes out the same
            to the last bit in whatever order the answers came in.

    Raises:
        InputError: nearly every question lacks nearly every repeat.
    """
    named = ids if set(map(type, ids)) == {str} else list(map(str, ids))
    began: dict[str, int] = {}
    starts = np.fromiter(map(began.setdefault, named, range(len(named))), np.intp, len(named))
    keys = tuple(began if order is None else {key: 0 for key in map(str, order) if key in began} | began)
    first = [began[key] for key in keys]
    row_of = np.zeros(len(named), np.intp)
    row_of[first] = np.arange(len(keys))
    rows = row_of[starts]
    columns = names = None
    if epochs is not None:
        of_epoch = {epoch: column for column, epoch in enumerate(sorted(set(epochs)))}
        names = tuple(map(str, of_epoch))
        columns = np.fromiter(map(of_epoch.__getitem__, epochs), np.intp, len(epochs))
    places = AnswerPlaces.of(rows, len(keys), "the log", columns)
    return AnswerGrid(places.rows, places.columns, places.shape, keys, tuple(first), names)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Score values as Inspect's `value_to_float` reads them."""

    values: FloatArray
    """(N,) values, NaN without a score."""
    words: int
    """The number of values that are not numbers. Inspect takes them as 0."""
    example: object = None


def numbers(values: Sequence[Any]) -> Numbers:
    """Convert values as Inspect does: C 1, P 0.5, I, N 0, yes/no, booleans, numerals. All else is 0 and counted."""
    if (plain := numbers_of(values)) is not None:
        return Numbers(plain, 0)
    if {*map(type, values)} <= {str, type(None)}:
        by_word = {value: _score_as_number(value) for value in set(values)}
        if None not in by_word.values():
            return Numbers(np.fromiter(map(by_word.__getitem__, values), np.float64, len(values)), 0)
    converted = [_score_as_number(value) for value in values]
    words = [value for value, number in zip(values, converted, strict=True) if number is None]
    out = np.asarray([0.0 if number is None else number for number in converted], dtype=np.float64)
    return Numbers(out, len(words), words[0] if words else None)


def _score_as_number(value: Any) -> float | None:
    """Convert a score value to a number. NaN for None, and None for a word, a list or a dictionary."""
    return number_of(value, _grade_as_number)


def _grade_as_number(text: str) -> float | None:
    """Convert a grade (C, P, I, N), yes/no or a numeral to a number. None for any other word."""
    grade = _WORDS.get(text, _YES_NO.get(text.lower()))
    if grade is not None:
        return grade
    try:
        number = float(text)  # Inspect's own rule: 1_0 is 10
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_verdict(value: Any) -> bool:
    """Return True if a value is a grade (C, P, I, N), yes or no, a boolean, or None."""
    word = isinstance(value, str) and (value in _WORDS or value.lower() in _YES_NO)
    return value is None or isinstance(value, bool) or word


Reduce = Callable[[FloatArray], FloatArray]
"""(n, K) scores, NaN for missing ones → (n,) values, NaN for missing ones."""

_WITH_K = re.compile(r"(?:pass_at|pass_k|at_least)_([0-9]+)")


def of_single_answers(reducer: str) -> Reduce | None:
    """Return a reducer's effect on one repeat, a function (n, 1) → (n,), identity if unknown. None if it needs several.

    One repeat is reduced to the score itself, or to 1 if the score reaches 1 and 0 if not.

    """
    threshold = _WITH_K.fullmatch(reducer)
    if threshold is None:
        return lambda table: table[:, 0]
    return None if int(threshold[1]) != 1 else lambda table: np.where(np.isnan(table), np.nan, table >= 1)[:, 0]


Raw = list[Any]

MEANS = ("accuracy", "mean")
"""Inspect's own metrics that are the mean of the scores."""
SPREADS = frozenset({"stderr", "std", "var", "bootstrap_stderr", "ci", "ci_wilson", "lower", "upper"})
ERRORS = SPREADS - {"std", "var"}
"""Standard errors and intervals of the mean, which may be clustered."""
_SPREAD = re.compile(r"(^|_)(stderr|std|stddev|var|variance|se|ci)(_|\d*$)")
_NO_SCORE = "no sample has a score of this scorer"
MOST_KEYS = 200
_TOO_MANY = f"its scores are dictionaries with more than {MOST_KEYS} keys"
_OWN_CODE = "a metric of the task's own code, which is not known as a mean of the scores"


def _inner(metric: NativeMetric) -> str:
    """Return the name of the METRIC within `aggregate(KEY, agg=METRIC)`. "" for any other metric."""
    agg = metric.params.get("agg")
    return str(agg.get("name", "")) if isinstance(agg, Mapping) else ""


def _is_spread(metric: NativeMetric) -> bool:
    names = (metric.name, _inner(metric), of_each_group(metric))
    return any(_SPREAD.search(bare(name)) for name in names)


def _is_single(metric: NativeMetric) -> bool:
    """Return True if a native metric is one value over all samples, and not a spread, ours or per group.

    Of `grouped()` the value over all groups does.
    """
    if metric.group is None:
        return not _is_spread(metric)
    return is_over_groups(metric) and metric.params.get("all") != "groups" and not _is_spread(metric)


def _native_metrics(es: ScoreRow) -> list[str]:
    """Return the names of a score's native metrics, without ours and without standard errors.

    They may be of any group.
    """
    return [name for name, metric in es.metrics.items() if metric.group != GROUP and not _is_spread(metric)]


def own_cluster(es: ScoreRow, key: str | None = None) -> str | None:
    """Return the metadata key that a score's own `stderr(cluster=KEY)` names. None if it is not unique.

    None where it names none, or several, or has an unclustered one, too.
    """
    clusters = {cluster for of, cluster in _errors(es) if key is None or of in (None, key)}
    (cluster,) = clusters if len(clusters) == 1 else (None,)
    return cluster


def named_clusters(es: ScoreRow) -> set[str]:
    """Return all metadata keys by which a score's own standard errors are clustered."""
    return {cluster for _, cluster in _errors(es) if cluster is not None}


def _errors(es: ScoreRow) -> Iterator[tuple[str | None, str | None]]:
    """Yield (dictionary key or None, cluster key or None) of each of a score's own standard errors."""
    for metric in es.metrics.values():
        agg, params = metric.params.get("agg"), metric.params
        of, name = None, metric.group or metric.name
        if isinstance(agg, Mapping):
            of, name, params = params.get("key"), _inner(metric), agg.get("params") or {}
        if bare(name) in ERRORS:
            cluster = params.get("cluster") if isinstance(params, Mapping) else None
            yield of, cluster if isinstance(cluster, str) and cluster else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskAnswers:
    """One task of a log: its native results and its N answers."""

    log: LogFile
    """Both of them."""
    grid: AnswerGrid
    """The places of its answers."""
    questions: Questions
    """The questions of the grid's rows."""
    task_clusters: TaskClusters
    """Its samples, in which the clusters are looked up."""
    spec: Spec | None
    """SPEC of the clusters, as the user or the run has named them."""
    excluded: BoolArray | None = None
    """(N,) answers that are not to count (invalidated samples)."""
    missing: str = "drop"
    """The answers without a score that count as wrong (see `harness_noise.settings.counts_as_zero`)."""
    answers: AnswerTexts | None = None
    """The source of the answers' texts, None for a task that Inspect hands over."""

    @property
    def name(self) -> str:
        return self.task_clusters.task

    @property
    def cancelled(self) -> bool:
        """True if the log may hold more answers than Inspect's values include. It is unknown which."""
        return self.log.header.status == "cancelled" or not self.log.header.computed

    def reduce(self, es: ScoreRow) -> Reduce | None:
        """Return a function to (n,) values for a row's reducer: of one repeat, else as logged. None: mean or absent."""
        if es.reducer in (None, "mean"):
            return None
        if self.grid.repeats == 1:
            return of_single_answers(es.reducer)
        reduced = self.log.reductions.get((es.scorer, es.reducer), {})
        read = numbers(_values_of_key([reduced.get(key) for key in self.grid.keys], es.name))
        return None if read.words or not reduced else lambda _: read.values.copy()

    def makes_other_scores(self, es: ScoreRow) -> bool:
        """Return True if a reducer changes single scores, as a threshold on graded ones does. False if K > 1."""
        if (reduce := self.reduce(es)) is None or self.grid.repeats > 1:
            return False
        values = self.log.answers.column(es.scorer) or self.log.answers.column(es.name)
        if values is None:
            return False
        each = [value.values() if isinstance(value, dict) else (value,) for value in values]
        scores = numbers([*itertools.chain.from_iterable(each)]).values
        return not np.array_equal(reduce(scores[:, None]), scores, equal_nan=True)


@dataclass(frozen=True, slots=True, eq=False)
class GatheredMean:
    """One mean that an EvalScore reports."""

    scores: Scores
    index: int
    """Number of the EvalScore."""
    key: str | None
    """Key of the scorer's dictionaries, where the EvalScore has means of several."""
    reproduced: bool
    """True if a native metric equals this mean, on the scale of the scores."""
    explains: str | None = None
    """The native value that it is, on whatever scale."""
    of_answers: bool = True
    """True if its values are the scores of answers, False if a reducer has made others of them."""


@dataclass(slots=True)
class GatheredMeans:
    """All means that the EvalScores of one task report."""

    clusters: Clusters
    """The clusters of the task."""
    open_: bool
    """True if no clusters were named, so that a scorer's own stderr may name some."""
    means: list[GatheredMean] = field(default_factory=list)
    grouped: list[MeanOfGroups] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    unreadable: list[str] = field(default_factory=list)
    """The reasons why means over repeats are among `skipped`, one sentence each."""
    own_clusters: dict[str, list[str]] = field(default_factory=dict)
    """Cluster that a scorer's own stderr names → the means that have it."""


def gather(task: TaskAnswers) -> GatheredMeans:
    """Return GatheredMeans: scores of every mean over questions in the log, what was skipped and why, and notes."""
    header = task.log.header
    out = GatheredMeans(*task.task_clusters.of_run(task.spec, header.stopping.get(RECORD)))
    others = {i for i, es in enumerate(header.scores) if task.makes_other_scores(es)}
    for i, called in _row_names(header.scores, task.grid.repeats, others).items():
        es = header.scores[i]
        native = _Native(task, i, called, task.reduce(es), out)
        if native.reduce is None and es.reducer not in (None, "mean"):
            native.skip(called, (), f"its reducer {es.reducer} is not a mean over repeats")
        else:
            native.gather()
    for key, of_key in out.own_clusters.items():
        said = f"{key} is the cluster of {', '.join(of_key)}, as its own stderr has it"
        out.notes.append(Note("clusters_of_stderr", said).of(task.name))
    if out.open_ and is_auto(task.spec) and not out.own_clusters:
        out.notes.append(task.task_clusters.auto_hint())
    return out


def _row_names(eval_scores: Sequence[ScoreRow], repeats: int, of_other_scores: Collection[int]) -> dict[int, str]:
    """Return {index of a score row: its name in our results}, distinct by reducer, without rows of `noise` alone.

    A metric on un-reduced scores makes a second EvalScore of the same name without a reducer; the
    first is then called "mean". With one repeat any reducer is the score itself, or a threshold on it.

    Args:
        eval_scores: they.
        repeats: K.
        of_other_scores: numbers of EvalScores that `makes_other_scores`, which never have the scorer's plain name.
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
    out = {i: plain[key] for key, i in means.items()}
    for i, key in others.items():
        alone = repeats == 1 and plain[key] not in out.values() and i not in of_other_scores
        out[i] = plain[key] if alone else f"{plain[key]} ({eval_scores[i].reducer})"
    return dict(sorted(out.items()))


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One mean that an EvalScore may report: the mean of its scores, or of one key of its dictionaries."""

    values: Raw | None
    """(N,) values that the mean is of, None where one is missing, or None if there are no values."""
    metrics: tuple[str, ...] = ()
    """The native metrics that may be it, the likeliest first."""
    usual: str | None = None
    """The one that has the name of a mean, whatever its value."""
    key: str | None = None
    """Key of the scorer's dictionaries, where a metric picks one by itself."""
    name: str | None = None
    """The metric's name in results, None to use its key in the EvalScore."""
    like: tuple[str, ...] = ()
    """Names of native values that the mean equals, the likeliest first, if no metric is known to be this mean."""
    refused: str = ""
    """The reason why the EvalScore reports no mean."""


def _not_numbers(values: FloatArray) -> str | None:
    """Return why these values have no mean (infinite, or no number), None if they have one."""
    if is_infinite(values):
        return INFINITE
    return "no sample has a score that is a number" if np.isnan(values).all() else None


@dataclass(frozen=True, slots=True)
class _Compared:
    """Our mean of some scores next to the native value that should equal it."""

    ours: float
    metric: str | None
    """The native metric, the first if several are equal, None if no metric can be it."""
    native: float | None
    agrees: bool
    beside: bool
    """True if it is on our own scale. Only then do our error bars go next to it."""
    names: tuple[str, ...] | None
    """Metrics of the task's own code that it may be (see `Scores.names`)."""
    like: str | None = None
    """The first of them that it equals, which proves nothing."""

    @property
    def called(self) -> str | None:
        """The metric name for the row, None if no metric or several metrics may report the mean."""
        return self.metric if self.names is None or len(self.names) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Native:
    """One EvalScore whose means are gathered."""

    task: TaskAnswers
    index: int
    called: str
    """The name of the EvalScore's rows."""
    reduce: Reduce | None
    out: GatheredMeans
    """The collected means, to which this class appends."""

    @property
    def es(self) -> ScoreRow:
        return self.task.log.header.scores[self.index]

    @property
    def uses_all(self) -> bool:
        """True if a reducer other than mean makes the EvalScore's one value per question from several repeats."""
        return self.reduce is not None and self.task.grid.repeats > 1

    def table(self, values: FloatArray) -> FloatArray:
        """Return the (n, K) scores of N values, or (n, 1) if a reducer makes one value per question."""
        table = self.task.grid.fill(values)
        return table if self.reduce is None else self.reduce(table)[:, None]

    def mean_of(self, column: Raw) -> float | None:
        """Return the mean of N raw values as Inspect would report it. None if they are not numbers."""
        read = numbers(column)
        return None if read.words or not np.isfinite(read.values).any() else mean_of_questions(self.table(read.values))

    def skip(self, called: str, metrics: Sequence[str], reason: str) -> None:
        """Record the first of these native metrics (or of the row's, or "") as skipped, with its value and reason."""
        name = next(iter(metrics or self.es.metrics), "")
        value = finite(self.es.metrics[name].value) if name else None
        self.out.skipped.append(Skipped(self.task.name, name, called, reason, value))

    def gather(self) -> None:
        """Add the means of this score row to `out`, with skipped metrics and reasons."""
        task, out, parts = self.task, self.out, self.parts()
        grouped = self.grouped(parts)
        out.grouped += grouped
        if grouped and not any(part.metrics for part in parts):
            parts = []  # the mean over all samples is a number that Inspect does not report
        several = sum(bool(part.metrics) for part in parts) > 1
        explained: list[str] = []
        for part in parts:
            key = part.key if several or not part.metrics else None
            called = self.called if key is None else f"{self.called}/{key}"
            mean = self.mean(part, key, called)
            if isinstance(mean, str):
                self.skip(called, part.metrics, mean)
                out.unreadable.append(f"{task.name}: {called} has no error bars: {mean}")
            else:
                explained += [mean.explains] if mean.explains else []
                out.means.append(mean)
        if task.log.header.computed and not any(part.refused for part in parts):
            said = {(row.metric, row.scorer) for row in out.skipped}  # one row, with the first reason
            told = {name for of in grouped for name in of.explains}
            for name in self.unexplained(parts, explained):
                if name not in told and (name, self.called) not in said:
                    self.skip(self.called, (name,), _OWN_CODE)

    def grouped(self, parts: Sequence[_Part]) -> list[MeanOfGroups]:
        """Return the row's means over groups of samples, if a metric weights all groups equally."""
        plain = parts[0] if len(parts) == 1 and parts[0].key is None else None
        found = [name for name, metric in self.es.metrics.items() if is_mean_of_groups(metric)]
        if plain is None or not found:
            return []
        whole = self.mean(replace(plain, metrics=(), usual=None), None, self.called)
        if isinstance(whole, str):
            return []
        final = self.task.log.header.computed and not self.task.cancelled and self.task.excluded is None
        about = (self.es.metrics, self.task.task_clusters.metadata)
        each = (of_groups(whole.scores, name, *about, index=self.index, final=final) for name in found)
        return [mean for mean in each if mean is not None]

    def parts(self) -> list[_Part]:
        """Return candidates for the means that the row may report, or one that is `refused`, with the reason."""
        es, column = self.es, self.task.log.answers.column
        values = column(es.scorer)
        dictionaries = values is not None and dict in set(map(type, values))
        if values is not None and dictionaries and es.name == es.scorer:
            keys = list(dict.fromkeys(key for value in values if isinstance(value, dict) for key in value))
            if es.name not in keys:
                return self._of_dictionaries(values, keys)
        usual = [key for key in MEANS if key in es.metrics]
        single = [key for key, metric in es.metrics.items() if _is_single(metric)]
        if values is not None and dictionaries:
            values = _values_of_key(values, es.name)
        elif es.name != es.scorer:
            alternative = column(es.name)
            values = values if alternative is None else alternative
        return [_Part(values, (*usual, *single), usual[0] if usual else None)]

    def _of_dictionaries(self, values: Raw, keys: Sequence[str]) -> list[_Part]:
        """Return candidates for dictionaries: keys whose mean is a native metric, and all others if one is unexplained.

        A native metric is unexplained if it is not the mean of one key.
        """
        if len(keys) > MOST_KEYS:
            return [_Part(None, refused=_TOO_MANY)]
        parts = self._keyed(values, keys)
        explained = [name for part in parts for name in part.metrics]
        if not parts or self.unexplained(parts, explained):
            used = {part.key for part in parts}
            parts += self._other_keys(values, [key for key in keys if key not in used])
        return parts or [_Part(None, refused=_NO_SCORE)]

    def _keyed(self, values: Raw, keys: Sequence[str]) -> list[_Part]:
        """Return candidates for dictionary keys whose mean equals a native metric, if one key or equal numbers do.

        A key comes once, with the first such metric.
        """
        columns = {(key, zero): _values_in_dictionaries(values, key, zero) for key in keys for zero in (False, True)}
        means = {which: self.mean_of(column) for which, column in columns.items()}
        out: dict[str, _Part] = {}
        for name, metric in self.es.metrics.items():
            if metric.group is not None or _is_spread(metric):
                continue
            texts, missing = list(metric.params.values()), metric.params.get("on_missing")
            # the key that its parameters or its own name name, else any
            candidates = [key for key in keys if key in texts] or [key for key in keys if key == name] or keys
            matches = [
                (key, zero)
                for zero in ((missing == "zero",) if missing else (False, True))
                for key in candidates
                if (ours := means[key, zero]) is not None and nearly_equal(ours, metric.value)
            ]
            matches = [which for which in matches if f"_{which[0]}_" in f"_{name}_"] or matches
            # of several with the same mean none is known, unless their numbers are the same
            if matches and all(columns[which] == columns[matches[0]] for which in matches):
                key = matches[0][0]
                called = bare(_inner(metric) or metric.name)  # `mean` for `aggregate(KEY, agg=mean())`
                if called not in MEANS and _all_equal(numbers(columns[matches[0]]).values):
                    continue
                out.setdefault(key, _Part(columns[matches[0]], (name,), key=key, name=called))
        return list(out.values())

    def _other_keys(self, values: Raw, keys: Sequence[str]) -> list[_Part]:
        """Return a candidate for each key, `like` native metrics of its mean, each only at the key nearest in name."""
        columns = {key: _values_in_dictionaries(values, key, False) for key in keys}
        means = {key: self.mean_of(column) for key, column in columns.items()}
        like: dict[str, list[str]] = {key: [] for key in keys}
        for name in _native_metrics(self.es):
            words = set(name.split("_"))
            equal = {
                key: len(words & set(key.split("_")))
                for key, ours in means.items()
                if ours is not None and nearly_equal(ours, self.es.metrics[name].value)
            }
            nearest = [key for key, shared in equal.items() if shared == max(equal.values())]
            if len(nearest) == 1:
                like[nearest[0]].append(name)
        return [_Part(columns[key], key=key, like=tuple(like[key])) for key in keys]

    def unexplained(self, parts: Sequence[_Part], means: Sequence[str]) -> list[str]:
        """Return the names of native metrics that are not the mean of any of these scores.

        Beside one that is, those of categories are left out.

        Args:
            parts: what it may report.
            means: the metrics that have been found to be means.
        """
        metrics = self.es.metrics
        keyed, usual = any(part.key is not None for part in parts), {part.usual for part in parts} - {None}
        alone = not keyed and (usual or means)
        return [
            name
            for name in _native_metrics(self.es)
            if name not in usual
            and not (alone and metrics[name].group is not None)
            and not any(nearly_equal(metrics[mean].value, metrics[name].value) for mean in means)
        ]

    def _compared(self, part: _Part, values: FloatArray) -> _Compared:
        """Compare our mean with the native metrics, and return which one it equals, if any.

        For a cancelled run the two need not be of the same answers.

        That a metric of the task's own code equals the mean proves nothing if all scores are equal, or without results.
        """
        ours, equal = mean_of_questions(self.table(values)), _all_equal(values)
        metrics, candidates = self.es.metrics, part.metrics or part.like
        # what is rounded, or in percent, counts only where nothing else does
        tiers = ([key for key in candidates if same(ours, metrics[key].value)] for same in (nearly_equal, reproduces))
        alike = next(filter(None, tiers), [])
        metric = next(iter(alike), part.usual)
        certain = part.usual is not None and metric in MEANS
        names = None if certain or part.key is not None or not part.metrics else tuple(alike)
        if metric is None or (names is not None and equal):  # what all scores are is the mean of any part of them
            unproven = (*(part.metrics if self.task.cancelled else names or ()), UNNAMED)
            return _Compared(ours, None, None, False, False, None if names is None else unproven, metric)
        value = metrics[metric].value
        agrees, beside = reproduces(ours, value), reproduces(ours, value, percent=False)
        return _Compared(ours, metric, finite(value), agrees, beside, names)

    def _refuted(self, read: Numbers, compared: _Compared) -> str | None:
        """Return why our mean cannot be Inspect's (words, no mean, other value of all repeats), None if it can."""
        if read.words and not compared.agrees:
            return f"{read.words} of its values are not numbers, such as {_short(read.example)}"
        if math.isnan(compared.ours):
            return f"no question has answers enough for its reducer {self.es.reducer}"
        if self.uses_all and not (compared.agrees or self.task.cancelled) and self.task.excluded is None:
            return f"no native value is what its reducer {self.es.reducer} makes of the scores, {compared.ours:.6g}"
        return None

    def mean(self, part: _Part, key: str | None, called: str) -> GatheredMean | str:
        """Return the GatheredMean of one candidate, adding notes, or as text the reason why it has no mean."""
        task = self.task
        if part.values is None:
            return part.refused or _NO_SCORE
        read = numbers(part.values)
        if (reason := _not_numbers(read.values)) is not None:
            return reason
        compared = self._compared(part, read.values)
        if (reason := self._refuted(read, compared)) is not None:
            return reason
        absent = np.isnan(read.values)
        out = np.zeros_like(absent) if task.excluded is None else task.excluded
        causes = self._causes(absent & ~out)
        kept = np.where(out, np.nan, count_missing(read.values, causes, task.missing)[2])
        table, codes = self.table(kept), tuple[str, ...]()
        n_missing, n_zero = int((absent | out).sum()), int((absent & ~np.isnan(kept)).sum())
        if self.uses_all:
            table[task.grid.rows[out]] = np.nan  # the values of the question's other answers are unknown
            n_missing, n_zero, causes, codes = int(np.isnan(table).sum()), 0, {}, ("uses_all_repeats",)
        if np.isnan(table).all():
            return "no question has a value"
        self._note_zeros(read, called)
        compared = self._before_the_end(compared, called)
        native = compared.native
        if native is not None and not np.array_equal(kept, read.values, equal_nan=True):
            # the native value is of other answers than ours: compared above, not comparable below
            codes, native = codes if compared.agrees else (MISMATCH, *codes), None
        gradings = None if self.reduce is not None else self._gradings(part, absent | out)
        codes += ("identical_repeats",) if gradings is not None and all_alike(gradings.texts) else ()
        name = part.name or compared.called or "mean"
        clusters, words = self._clusters(part, called)
        codes += (UNKNOWN,) if is_unknown(clusters) else ()
        scores = Scores(
            task=task.name,
            metric=name,
            scorer=called,
            questions=task.questions,
            values=table,
            asked=None if self.reduce is not None else task.grid.asked,
            repeat_names=None if self.reduce is not None else task.grid.names,
            clusters=clusters,
            cluster_spec=words,
            higher_is_better=True if name == "accuracy" else None,
            bounds=fitting_bounds((0.0, 1.0), table) if name == "accuracy" else None,
            native=native,
            n_missing=n_missing + task.log.n_not_seen,
            missing=Counter(causes.values()),
            n_zero=n_zero,
            diagnostics=codes,
            names=compared.names,
            version=task.log.header.task_version,
            gradings=gradings,
            answers=None if self.uses_all else task.answers,
            judged=self.es.scorer in task.log.header.judges,
            scored_with=task.log.header.scored_with.get(self.es.scorer, {}),
        )
        explains = compared.metric if compared.agrees else compared.like
        of_answers = not (self.uses_all or self.task.makes_other_scores(self.es))
        return GatheredMean(scores, self.index, key, compared.beside and bool(part.metrics), explains, of_answers)

    def _note_zeros(self, read: Numbers, called: str) -> None:
        """Add notes on answers that score 0 because their value is no number, or no answer was parsed.

        They are no numbers, or the scorer names no answer that it has read, although it names others.

        Args:
            read: (N,) the scores.
            called: the scorer's name for people.
        """
        if read.words:
            said = f"{read.words} of {read.values.size} values are not numbers ({_short(read.example)}) and count as 0"
            self._note("not_numbers", called, said)
        zero, rows = read.values == 0, self.task.log.answers.rows.values()
        blank = sum(self.es.scorer in row.unread for row in itertools.compress(rows, zero))
        if 0 < blank < zero.sum():
            self.out.notes.append(empty_answers([(f"{self.task.name} {called}", int(zero.sum()), blank)]))

    def _before_the_end(self, compared: _Compared, called: str) -> _Compared:
        """Return the comparison. If a cancelled run's native value is older, drop it, note that, and call it equal."""
        metric, task = compared.metric, self.task
        if not (task.cancelled and task.log.header.computed and metric is not None and not compared.agrees):
            return compared
        self._note(
            "not_the_native_value",
            called,
            f"Inspect's own {metric} is {self.es.metrics[metric].value:.4g} and ours {compared.ours:.4g}: the run "
            "was cancelled, and Inspect computed its value before the last answers were logged",
        )
        return replace(compared, agrees=True, beside=True, native=None)

    def _note(self, code: str, called: str, text: str) -> None:
        self.out.notes.append(Note(code, f"{called}: {text}").of(self.task.name))

    def _causes(self, lost: BoolArray) -> dict[int, str]:
        """Return {answer number: cause of its missing score} where the log names a cause."""
        rows = enumerate(self.task.log.answers.rows.values())
        return {i: why for i, row in rows if lost[i] and (why := row.why(self.es.scorer))}

    def _clusters(self, part: _Part, called: str) -> Clusters:
        """Return the clusters that the scorer's own stderr names if none were set, else the task's."""
        own = own_cluster(self.es, part.key) if self.out.open_ else None
        if own is None or (by_key := self.task.task_clusters.by_spec_or_none(FileSpec(own), plain=True))[0] is None:
            return self.out.clusters
        self.out.own_clusters.setdefault(own, []).append(called)
        return by_key

    def _gradings(self, part: _Part, absent: BoolArray) -> Gradings | None:
        """Return the texts that a scorer graded, with its repeated and edited verdicts. None if unknown.

        None where nothing is known.

        Args:
            part: whose texts.
            absent: (N,) answers that have no score, or are not to count.
        """
        es, places, log = self.es, self.task.grid, self.task.log

        def tables(columns: Sequence[Sequence[Any]]) -> FloatArray | None:
            """Return V columns as an (n, K, V) table. None if there are none or they are not numbers."""
            read = [numbers(_values_of_key(column, es.name if part.key is None else part.key)) for column in columns]
            if not read or any(values.words for values in read):
                return None
            return np.stack([places.fill(np.where(absent, np.nan, part.values)) for part in read], axis=2)

        rows = list(log.answers.rows.values())
        if not rows:
            return None
        panel = tables(list(zip_longest(*(row.votes.get(es.scorer, ()) for row in rows))))
        same = map(log.answers.column, log.header.same_judge.get(es.scorer, ()))
        again = tables([column for column in same if column is not None])
        texts = places.fill(np.where(absent, np.uint64(0), np.array([row.text for row in rows], np.uint64)), 0)
        edited = any(es.scorer in row.edited for row in rows)
        pairs = [row.edited.get(es.scorer, (row.scores.get(es.scorer), None)) for row in rows] if edited else []
        edits = tables(list(zip(*pairs, strict=True)))
        graded = texts.any() or any(table is not None for table in (again, panel, edits))
        return Gradings(texts, again, panel, edits) if graded else None


def _values_of_key(values: Iterable[Any], key: str) -> Raw:
    """Return N values, with each dictionary replaced by its value at one key."""
    return [value.get(key) if isinstance(value, dict) else value for value in values]


def _values_in_dictionaries(values: Raw, key: str, zero: bool) -> Raw:
    """Return one key's value from each of N dictionaries. A missing key gives 0 (`zero`) or None.

    A missing key gives 0 or None, a value that is no dictionary None."""
    filler = 0.0 if zero else None
    return [
        (filler if (entry := value.get(key)) is None else entry) if isinstance(value, dict) else None
        for value in values
    ]


def _all_equal(values: FloatArray) -> bool:
    """Return True if all finite scores are equal, or there are none."""
    return bool(np.nanmin(values) == np.nanmax(values)) if np.isfinite(values).any() else True


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def too_few(codes: Collection[str]) -> str | None:
    """Return a sentence that there are too few questions or clusters for a standard error, None if enough.

    `codes` are the diagnostics of an estimate.
    """
    unit = next((unit for unit in ("clusters", "questions") if f"too_few_{unit}" in codes), None)
    return unit and f"fewer than two {unit}: no standard error"


def noise_of(scores: Sequence[SampleScore], cluster: str | None, level: float) -> tuple[dict[str, float], str | None]:
    """Return ({metric: value} of raw scores' noise, why no standard error or None). Raise for words or bad clusters.

    If the total is less than the prediction noise, the negative data variance that makes it so is among them.

    Raises:
        InputError: a cluster key that the samples lack, or a template, for a log that is scored again names the metric,
            too; a level outside (0, 1).
        ValueError: values that are not numbers.
    """
    scores = [score for score in scores if score.sample_id is not None]
    if not scores:
        return {}, None
    answers = grid([score.sample_id for score in scores])
    read = numbers([score.score.value for score in scores])
    if read.words:
        raise ValueError(f"{read.words} values are not numbers, such as {read.example!r}")
    metadata = [scores[i].sample_metadata for i in answers.first]
    spec = None if cluster is None else FileSpec(cluster)
    clusters, words = TaskClusters("", answers.keys, metadata).by_spec(spec)
    part = Scores(
        task="",
        metric="mean",
        scorer="noise",
        questions=Questions(answers.keys, "sample id"),
        values=answers.fill(read.values),
        clusters=clusters,
        cluster_spec=words,
        bounds=(0.0, 1.0) if all(map(_is_verdict, (score.score.value for score in scores))) else None,
    )
    estimate = estimate_scores(part, Settings(level=level))
    noise = inject.values(estimate)  # what the flag injects, of too few questions, too
    if estimate.var_data is not None and inject.total_below_prediction(estimate):
        noise[inject.VAR_DATA] = estimate.var_data  # a metric has no metadata, and the total seems wrong without it
    return noise, too_few(estimate.diagnostics)
