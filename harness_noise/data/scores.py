"""Scores of one run, question by question, as an adapter hands them to the statistics.

An adapter reads a file or a live run and returns a `Run`: one `Scores` for every task × metric ×
scorer, the group rows that the harness reports, and what it left out and why. Nothing below this
module knows a harness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ..arrays import BoolArray, FloatArray, HashArray, IntArray, picked, rows_of
from ..errors import FaultyScoresError, InputError, NotThereError, counted, some_of
from ..settings import counts_as_zero
from .clusters import UserSpec
from .corrected import Correction
from .measures import fields_to_read
from .notes import NO_ERROR_BAR, Note
from .questions import AnswerTexts, Questions, SomeTexts

Weighting = Literal["size", "equal"]
CALLS = 1000
"""Resamples of a metric that can only be computed by calling it on all records again."""


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """One measure of every answer."""

    values: FloatArray
    """(n, K) as the scores, NaN where it is not known."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Cause → answers of which it is not known."""
    codes: tuple[str, ...] = ()
    """Diagnostics that every row of it gets."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradings:
    """Texts that a judge graded, and further verdicts on them."""

    texts: HashArray
    """(n, K) hash of each answer's text, equal for equal texts, or 0.

    0 if the answer has no score, or if its text is empty or not all that was graded (an agent's work).
    """
    again: FloatArray | None = None
    """(n, K, V) verdicts of the same judge on the same answers, NaN where there is none."""
    panel: FloatArray | None = None
    """(n, K, V) votes of the judges whose common verdict the score is, likewise."""
    edits: FloatArray | None = None
    """(n, K, 2) the scores before people edited some of them, and the people's scores, NaN for an answer
    without edit."""


def all_alike(texts: HashArray) -> bool:
    """Return True if the repeats of every question have the same text, and some question has several.

    Args:
        texts: (n, K) as in `Gradings`.
    """
    several = (texts != 0).sum(axis=1) > 1
    last = texts.max(axis=1, keepdims=True)
    return bool(several.any()) and not ((texts != 0) & (texts != last))[several].any()


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The task, metric and scorer of scores or of a result's row."""

    task: str
    """Name of the harness's task, or of a group of tasks, "" for arrays."""
    metric: str
    """Name of the harness's metric, `score` for a table without one."""
    scorer: str
    """lm-eval's filter, Inspect's scorer, `none` if there is none."""
    _zero_one: bool | None = field(default=None, kw_only=True, repr=False, compare=False)
    """True if a row is of scores that are 0 or 1, so that it is shown in per cent. None: unknown."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity of these scores in a run, as the tuple (task, metric, scorer)."""
        return self.task, self.metric, self.scorer

    @property
    def title(self) -> str:
        """Task, metric and scorer in one text for people, without empty ones."""
        return " / ".join(name for name in self.key if name and name != "none")


@dataclass(frozen=True, slots=True, eq=False)
class OnQuestions(Measured):
    """Data of one run × task × metric × scorer on n questions."""

    questions: Questions
    """The n questions."""
    _: KW_ONLY
    clusters: tuple[str, ...] | None = None
    """(n,) names of clusters, None if the questions are independent."""
    cluster_spec: str | None = None
    """Source of the clusters, for people: "template", "passage (auto)", … ."""
    higher_is_better: bool | None = None
    """None: the run does not say."""
    bounds: tuple[float, float] | None = None
    """Lowest and highest value of the metric, if its definition is known. For None see
    `analysis.ranges.score_range`."""
    native: float | None = None
    """The harness's own value that our mean reproduces (with `native_is_first` the mean of repeat 0), None if
    unknown."""
    native_is_first: bool = False
    """The native value is of repeat 0 alone."""
    n_missing: int = 0
    """Repeats that were run but have no score: errored, NaN, missing."""
    diagnostics: tuple[str, ...] = ()
    """Codes that every row of them gets."""
    answers_differ: bool = False
    """True if some answers to one question are known to differ.

    Scores that agree on every question then do not mean that answers were given only once.
    """

    def __post_init__(self) -> None:
        if self.clusters is not None and len(self.clusters) != len(self.questions):
            raise FaultyScoresError(
                f"{self.task}, {self.metric}: {len(self.clusters)} cluster names for {len(self.questions)} questions"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Scores(OnQuestions):
    """One run × task × metric × scorer."""

    values: FloatArray
    """(n, K) scores on the metric's own scale, NaN where a repeat has no score."""
    _: KW_ONLY
    missing: Mapping[str, int] = field(default_factory=dict)
    """Cause → how many missing answers have it, if the log says why (`settings.CAUSES`)."""
    n_zero: int = 0
    """The number of missing answers that count as 0."""
    asked: BoolArray | None = None
    """(n, K) True for answers that were asked for, if `values` are padded for questions with fewer.

    None: all were, or those with a score if none is missing.
    """
    late: BoolArray | None = None
    """(n, K) True for answers that were under way when the run was stopped, which no look has seen. None: there are
    none."""
    factors: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    """Column → levels with which each answer was made: n rows of K (prompt, seed, judge)."""
    repeats_are_runs: bool = False
    """True if repeat j of all questions shares a cause (a seed, a prompt, a judge), as its harness says.

    Unless they are computed with `--repeats-are runs`, its rows have the diagnostic `shared_repeat_noise`.
    """
    outer: Mapping[str, Mapping[str, str]] | None = None
    """Field → cluster → its value there, of the fields whose values contain whole clusters."""
    repeats_named: str | None = None
    """The column of prompts, seeds or judges that identifies the repeats of all questions.

    None: there is none, or it only numbers them.
    """
    repeat_names: tuple[str, ...] | None = None
    """(K,) the run's own names or numbers of the repeats of all questions, None if they are unknown."""
    chances: Mapping[str, float] | None = None
    """Key of every question that was drawn → its probability, None if all are equal."""
    runs_of_one: float = 0.0
    """Above 0: column j is run j of one configuration, of which a run that is compared with them is one more, and the
    values are the scores times this number."""
    version: str = ""
    """The task's own version in the harness, "" if it is unknown."""
    corrected: Correction | None = None
    """The correction of the scores, None without one. `values` are then (n, 1) values whose mean is the corrected
    mean."""
    names: tuple[str, ...] | None = None
    """The harness's metrics that these may be the scores of, judged by this run's values. None: `metric` is certain.

    `native_values.agreed` chooses among several by the other runs.
    """
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """Measure → its values with each answer, if it was asked for (`ReadOptions.measures`)."""
    unit: str | None = None
    """The unit of a measure, "" if it is unknown, None for a score."""
    stops_on: Literal["success", "failure"] | None = None
    """The outcome that ends the answers to a question before K, given by a format or seen (`stats.stopped`)."""
    per: FloatArray | None = None
    """(n, K) denominators of a ratio of sums, whose numerators are `values`. None: the quantity is a mean."""
    gradings: Gradings | None = None
    """Texts and verdicts of a judge, None if the texts are unknown or no verdict shows the judge's noise."""
    answers: AnswerTexts | None = None
    """The source of these answers' texts, in the order of `values`, None if it is unknown."""
    of_right: bool = False
    """True if the answers were right or wrong, although these values are means, or multiples, of their scores."""
    judged: bool = False
    """True if a model gave the scores, so that the same text may be scored in two ways."""
    scored_with: Mapping[str, str] = field(default_factory=dict)
    """Packages and options of the scorer → version or value, as far as the run has them."""

    def __repr__(self) -> str:
        n, K = self.values.shape
        return f"<{type(self).__name__} {self.title}: {counted(n, 'question')}, K = {K}>"

    def __post_init__(self) -> None:
        if isinstance(self.values, np.ma.MaskedArray):
            raise FaultyScoresError(f"{self.task}, {self.metric}: scores are masked. Give NaN where there is none")
        shape = self.values.shape
        beside = [self.per, self.texts, self.asked, self.late, *(used.values for used in self.usage.values())]
        if any(array is not None and array.shape != shape for array in beside):
            raise FaultyScoresError(f"{self.task}, {self.metric}: measures of another shape than the scores, {shape}")
        if len(shape) != 2 or shape[0] != len(self.questions):
            raise FaultyScoresError(
                f"{self.task}, {self.metric}: scores of the shape {shape} for {len(self.questions)} questions"
            )
        OnQuestions.__post_init__(self)
        for name, rows in (self.factors or {}).items():
            if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
                raise FaultyScoresError(f"{self.task}, {self.metric}: the levels of {name} are not those of its scores")

    @property
    def texts(self) -> HashArray | None:
        """(n, K) hashes of the answers' texts, None if they are unknown."""
        return None if self.gradings is None else self.gradings.texts

    @property
    def lost(self) -> BoolArray | None:
        """(n, K) True for answers that were asked for and have no score. None if their places are unknown."""
        holes = self._holes()
        return holes if int(holes.sum()) == self.n_missing - self.n_zero else None

    @property
    def lacks_zero(self) -> bool:
        """True if 0 is not the lowest score: the range begins elsewhere, or the scores seen look like grades (1–10)."""
        if self.bounds is not None and np.isfinite(self.bounds[0]):
            return self.bounds[0] != 0
        seen = self.values[np.isfinite(self.values)]
        return bool(seen.size and seen.min() > 0 and seen.max() > 1)

    @property
    def was_asked(self) -> BoolArray:
        """(n, K) True for answers asked for. If unknown: those with a score, and gaps unless all missing ones are 0.

        If `asked` is unknown: the scored ones, and the missing ones unless all of them count as 0.
        """
        return ~np.isnan(self.values) | self._holes() if self.asked is None else self.asked

    def _holes(self) -> BoolArray:
        """Return (n, K) True for gaps of answers asked for. If that is unknown: all gaps, or none if each is 0."""
        holes = np.isnan(self.values)
        if self.asked is not None:
            return holes & self.asked
        return holes if self.n_missing > self.n_zero else np.zeros_like(holes)

    def arrays(self, change: Callable[[FloatArray], FloatArray]) -> dict[str, Any]:
        """Return {field: value} of per-answer arrays, each passed through `change`. `gradings` and `answers` get None.

        `change` is what is done to each array of numbers. Texts have no NaN for an answer that is not there, so that
        `gradings` and `answers` are left out.
        """
        all_there = self.asked is None and self.n_missing == self.n_zero
        asked = None if all_there else change(self.was_asked.astype(np.float64)) == 1
        usage = {name: replace(used, values=change(used.values)) for name, used in self.usage.items()}
        per = None if self.per is None else change(self.per)
        late = None if self.late is None else change(self.late.astype(np.float64)) == 1
        of_answers = {"values": change(self.values), "asked": asked, "late": late, "per": per, "usage": usage}
        return of_answers | {"gradings": None, "answers": None}

    def answers_at(self, rows: Sequence[int] | IntArray | None = None, columns: Any = None) -> dict[str, Any]:
        """Return {field: value} of per-answer fields at these rows, else columns, with new counts but no causes."""
        index = np.s_[:, columns] if rows is None else rows
        gradings = None if self.gradings is None else rows_of(self.gradings, index)
        at = None if rows is None else np.asarray(rows, dtype=np.intp).tolist()
        texts = None if self.answers is None else SomeTexts(self.answers, at, columns)
        found = self.arrays(lambda x: x[index]) | {"gradings": gradings, "answers": texts}
        if columns is not None and self.repeat_names is not None:
            found["repeat_names"] = tuple(np.array(self.repeat_names, dtype=object)[columns])
        n_missing = _n_missing(self._holes(), index, self.n_missing - self.n_zero)
        return found | {"n_missing": n_missing, "n_zero": 0, "missing": {}}

    def take(self, rows: Sequence[int] | IntArray, questions: Questions | None = None) -> Scores:
        """Return the scores of the questions in these rows, native as it is. Drop factors, causes, questions' fields.

        `questions` are the same ones as another run names them. Of their answers those are missing that were asked for.
        """
        return replace(
            self,
            questions=questions or self._asked(rows),
            **self.answers_at(rows),
            clusters=picked(self.clusters, rows),
            factors=None,
            corrected=None if self.corrected is None else rows_of(self.corrected, rows),
        )

    def _asked(self, rows: Sequence[int] | IntArray) -> Questions:
        asked = self.questions
        keys, inputs = picked(asked.keys, rows), picked(asked.read_inputs, rows)
        return Questions(keys, asked.kind, inputs=inputs, doubles=asked.doubled(rows), by_words=asked.by_words)


def _n_missing(holes: BoolArray, index: Any, n: int) -> int:
    """Return the number of n missing answers that may lie in a part of the table. Unlocated ones are all counted."""
    return min(int(holes[index].sum()), n) + max(0, n - int(holes.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class CorpusScores(OnQuestions):
    """One run × task × metric × scorer whose metric is not a mean of question scores: bleu, F1, perplexity.

    Either `records` and `aggregate`, which are called again for every resample; or, many times
    faster, `stats` and `value`, where the metric is a function of sums over the questions (counts of
    a confusion matrix, matched n-grams, summed log-likelihoods).
    """

    records: tuple[tuple[Any, ...], ...] = ()
    """n rows of K records, None for a missing repeat. `aggregate` takes a list of records."""
    aggregate: Callable[[list[Any]], float] | None = None
    of_rows: Literal["function", "order"] | None = None
    """The kind of `aggregate`: a function of the rows' distribution (BLEU, F1), or an order statistic (the median).

    None: code of the task, which may group rows, so that it is examined.
    """
    stats: FloatArray | None = None
    """(n, K, S) values that are summed over questions, NaN for a missing repeat."""
    value: Callable[[FloatArray], FloatArray] | None = None
    """The metric from the sums: (…, S) → (…)."""

    def __post_init__(self) -> None:
        rows = len(self.records) if self.stats is None else len(self.stats)
        if rows != len(self.questions) and (rows or self.stats is not None):
            raise FaultyScoresError(
                f"{self.task}, {self.metric}: records of {rows} questions for {len(self.questions)} questions"
            )
        OnQuestions.__post_init__(self)

    def take(self, rows: Sequence[int], questions: Questions) -> CorpusScores:
        """Return the corpus metric's records for the questions in these rows, without the harness's value.

        Args:
            rows: their numbers.
            questions: these.
        """
        if self.stats is not None:
            holes: BoolArray = np.asarray(np.isnan(self.stats).any(axis=2))
        else:
            holes = np.array([[record is None for record in row] for row in self.records], dtype=np.bool_)
        return replace(
            self,
            questions=questions,
            clusters=picked(self.clusters, rows),
            records=tuple(picked(self.records, rows) or ()),
            stats=picked(self.stats, rows),
            native=None,
            n_missing=_n_missing(holes, rows, self.n_missing) if holes.size else self.n_missing,
        )


def causes_of(parts: Iterable[Scores]) -> dict[str, int]:
    """Return {cause: number of answers missing for it}, summed over these scores."""
    return dict(sum((Counter(part.missing) for part in parts if part.missing), Counter()))


@dataclass(frozen=True, slots=True)
class Group:
    """A row that averages tasks, as the harness reports it or as `--group` asks for it."""

    name: str
    metric: str
    scorer: str
    tasks: tuple[str, ...]
    weighting: Weighting = "size"
    native: float | None = None
    weights: tuple[float, ...] | None = None
    """Fixed weights of the tasks, each above 0, in place of `weighting`: nested groups, each averaged its own way."""
    weighted: str | None = None
    """The user's weights of its parts: equal, size or file. None: those of the harness, or of `--group`."""
    if_whole: tuple[float, ...] | None = None
    """The weights if no answer was missing: by size they change. None: as they are. (): other tasks would count."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity of this group of tasks in a run, as the tuple (name, metric, scorer)."""
        return self.name, self.metric, self.scorer

    def whole(self) -> Group:
        """Return the group with the weights that its tasks have if no answer is missing."""
        return replace(self, weights=self.if_whole, if_whole=None) if self.if_whole else self

    def over(self, tasks: Sequence[str]) -> Group:
        """Return the group over some of its tasks (all: itself), without native value. Refuse too few or many weights.

        Raises:
            InputError: the weights are not one for each task.
        """
        if tuple(tasks) == self.tasks:
            return self

        def some(weights: tuple[float, ...] | None) -> tuple[float, ...] | None:
            if not weights:
                return weights
            of_task = dict(zip(self.tasks, weights, strict=True))
            return tuple(of_task[task] for task in tasks)

        if self.weights is not None and len(self.weights) != len(self.tasks):
            raise InputError(f"{self.name}: {len(self.weights)} weights for {len(self.tasks)} tasks")
        weights, if_whole = some(self.weights), some(self.if_whole)
        return replace(self, tasks=tuple(tasks), weights=weights, if_whole=if_whole, native=None)


@dataclass(frozen=True, slots=True)
class Skipped(Measured):
    """A metric that the run reports and that has no per-question mean to analyse."""

    reason: str
    native: float | None = None
    code: str = NO_ERROR_BAR
    """Code of the note with the reason (`notes.codes`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Everything that one run of one model measured."""

    model: str
    """Name of the model."""
    name: str
    """Name that distinguishes two runs of one model, normally the path it was read from."""
    harness: str
    """Name of the adapter that read it."""
    path: str = ""
    """The path it was read from, "" for a run made in memory."""
    scores: tuple[Scores, ...] = ()
    """One for each task × metric × scorer."""
    parts: tuple[Scores, ...] = ()
    """Scores that only the groups need. They have no row of their own."""
    groups: tuple[Group, ...] = ()
    """Rows that average tasks."""
    corpus: tuple[CorpusScores, ...] = ()
    """Metrics that are not means over questions."""
    skipped: tuple[Skipped, ...] = ()
    """Values that the run reports and that get no error bar."""
    notes: tuple[Note, ...] = ()
    """Hints and warnings for the user."""
    stops: tuple[Mapping[str, Any], ...] = ()
    """What stopped it before all questions were asked, by task, as the results have it (`results.parts`)."""
    drawn: tuple[Mapping[str, Any], ...] = ()
    """The tasks of which a random subset was asked, likewise."""
    measurable: tuple[str, ...] = ()
    """Fields of its answers that can be a measure, for messages."""
    date: str = ""
    """The date of the run, "" if it is unknown. Of one harness, a later date sorts after an earlier one."""
    headline: frozenset[tuple[str, str, str]] = frozenset()
    """(task, metric, scorer) of the score that a task declares as its main score, empty if none does."""

    def __repr__(self) -> str:
        parts = [f"{part.title} ({counted(len(part.questions), 'question')})" for part in (*self.scores, *self.corpus)]
        name = "" if self.name in ("", self.model) else f" ({self.name})"
        return f"<Run {self.model}{name}: {some_of(parts, 6, '; ') or 'no scores'}>"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The user's choices for how a run is read."""

    cluster: UserSpec | None = None
    """SPEC of `--cluster`, None for the clusters that the run itself has."""
    columns: dict[str, str] = field(default_factory=dict)
    """Our column name → the file's."""
    format_file: str | None = None
    """The user's own formats of tables, None for those in the folder of settings."""
    missing: str = "drop"
    """See `settings.counts_as_zero`."""
    groups: dict[str, str] = field(default_factory=dict)
    """`--group NAME=PATTERN`: tasks that match the glob PATTERN form the group NAME."""
    tasks: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scorers: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    """Columns of a table, or arguments of a task, with the levels that each answer was made with."""
    fields: tuple[str, ...] = ()
    """SPECs of the properties of questions to read (`Questions.fields`), to slice or to explain by."""
    over: str = ""
    """A column whose numbers are checkpoints of a model: each is a model of its own."""
    apart: bool = False
    """Keep the runs in a folder apart instead of joining those of each model (`harness_noise.io.joining`)."""
    only: tuple[str, ...] = ()
    """Conditions that a question must meet, FIELD OP VALUE. Their fields are among `fields`."""
    strict: bool = False
    """True if an unusable file is an error although others are usable. Otherwise it is left out with a note."""
    measures: tuple[str, ...] = ()
    """Quantities of the answers to analyse: ``"score"``, measures, ratios of two, empty for the scores."""
    prices: tuple[str, ...] = ()
    """Dollars per million tokens, ``"[MODEL:]input=3,output=15"``, from which costs are computed."""

    follow_links: bool = False
    """Follow links that lead out of the place that is named (`harness_noise.io.door`)."""
    edits: bool = False
    """True to look for scores that people have edited (`Gradings.edits`)."""

    def __post_init__(self) -> None:
        counts_as_zero(self.missing)  # a word that is none is refused here

    @property
    def usage(self) -> tuple[str, ...]:
        """Fields that a reader seeks in every answer besides the score, () if no measures are asked for."""
        return fields_to_read(self.measures, prices=bool(self.prices)) if self.measures else ()

    def question_field(self, where: object) -> UserSpec | None:
        """Return the field that the user's `columns` names as the question, or None. Refuse other columns.

        Raises:
            InputError: `columns` names another one, which nothing would obey.
        """
        unknown = [name for name in self.columns if name != "question" and ":" not in name]
        if unknown:
            raise InputError(
                f"{where}: `columns` {unknown[0]}=… is for tables. Of this format only the question's field can be "
                "named: `columns={'question': 'FIELD'}`"
            )
        name = self.columns.get(f"{where}:question", self.columns.get("question"))
        return None if name is None else UserSpec(name)


def with_groups(run: Run, patterns: Mapping[str, str]) -> Run:
    """Add groups {NAME: glob of tasks}, per shared metric. Return the run. Refuse a NAME of other tasks, or no match.

    For tags such as mgsm, whose tasks no harness averages. `io.registry.read` does this, once the files of a model
    are joined; an adapter only for files that it writes again.

    Raises:
        InputError: no task matches, those that do share no metric, or the run has a group NAME of other tasks.
    """
    from fnmatch import fnmatchcase

    measured: dict[str, list[tuple[str, str]]] = {}
    for part in run.scores:
        measured.setdefault(part.task, []).append((part.metric, part.scorer))
    groups, tasks_of = list(run.groups), {group.name: group.tasks for group in run.groups}
    for name, pattern in patterns.items():
        if name in tasks_of:  # it was read with its groups
            meant = {part.task for part in (*run.scores, *run.parts) if fnmatchcase(part.task, pattern)}
            if meant == set(tasks_of[name]):
                continue
            raise InputError(
                f"{run.name}: `groups` {name}={pattern}: the run has a group {name} of other tasks "
                f"({some_of(tasks_of[name], 3)}). Choose another name"
            )
        tasks = tuple(task for task in measured if fnmatchcase(task, pattern))
        if not tasks:
            raise NotThereError([run.name], "groups", [f"{name}={pattern}"], list(measured))
        shared = [key for key in measured[tasks[0]] if all(key in measured[task] for task in tasks)]
        if not shared:
            raise InputError(f"{run.name}: `groups` {name}={pattern}: {', '.join(tasks)} have no metric in common")
        groups += [Group(name, metric, scorer, tasks) for metric, scorer in shared]
    return replace(run, groups=tuple(groups))
