"""What an adapter hands to the statistics: the scores of one run, question by question.

An adapter reads a file or a live run and returns a `Run`: one `Scores` for every task × metric ×
scorer, the group rows that the harness reports, and what it left out and why. Nothing below this
module knows a harness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

from ..arrays import FloatArray, HashArray, IntArray, picked, rows_of
from ..errors import FaultyScoresError, InputError, NotThereError, some_of
from ..settings import counts_as_zero
from .labels import LabelColumns
from .measures import to_read
from .questions import Questions

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
    """What is known of the texts that a judge graded, and of further verdicts on them."""

    texts: HashArray
    """(n, K) hash of each answer's text, equal for equal texts; 0 where the answer has no score, or where its text is
    empty or not all that was graded (an agent's work)."""
    again: FloatArray | None = None
    """(n, K, V) verdicts of the same judge on the same answers, NaN where there is none."""
    panel: FloatArray | None = None
    """(n, K, V) votes of the judges whose common verdict the score is, likewise."""
    edits: FloatArray | None = None
    """(n, K, 2) the scores before people edited some of them, and what people gave, NaN where nobody did."""


def all_alike(texts: HashArray) -> bool:
    """Whether the answers to every question that has several known texts are one text, and there are such questions.

    Args:
        texts: (n, K) as in `Gradings`.
    """
    several = (texts != 0).sum(axis=1) > 1
    last = texts.max(axis=1, keepdims=True)
    return bool(several.any()) and not ((texts != 0) & (texts != last))[several].any()


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What scores, or a row of a result, are about."""

    task: str
    """Name of the harness's task, or of a group of tasks; empty for arrays."""
    metric: str
    """Name of the harness's metric; `score` for a table without one."""
    scorer: str
    """lm-eval's filter, Inspect's scorer; `none` where there is none."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, metric and scorer."""
        return self.task, self.metric, self.scorer

    @property
    def title(self) -> str:
        """Task, metric and scorer for people, as far as there are any."""
        return " / ".join(name for name in self.key if name and name != "none")


@dataclass(frozen=True, slots=True, eq=False)
class OnQuestions(Measured):
    """What one run × task × metric × scorer has on n questions."""

    questions: Questions
    """Which questions they are, n of them."""
    _: KW_ONLY
    clusters: tuple[str, ...] | None = None
    """(n,) cluster labels; None where the questions are independent."""
    cluster_spec: str | None = None
    """Where the clusters come from, for people: "template", "passage (auto)", … ."""
    higher_is_better: bool | None = None
    """None: the run does not say."""
    bounds: tuple[float, float] | None = None
    """Lowest and highest value of the metric, where its definition is known; `analysis.ranges.score_range` says what
    counts where it is None."""
    native: float | None = None
    """The harness's own value that our mean (or, `native_is_first`, the mean of repeat 0)
    reproduces; None where it does not say."""
    native_is_first: bool = False
    """The native value is of repeat 0 alone."""
    n_missing: int = 0
    """Repeats that were run but have no score: errored, NaN, missing."""
    diagnostics: tuple[str, ...] = ()
    """Codes that every row of them gets."""
    answers_differ: bool = False
    """Whether it is known that some answers to one question differ. Scores that agree on every question are then
    no sign of answers that were given only once."""

    def __post_init__(self) -> None:
        if self.clusters is not None and len(self.clusters) != len(self.questions):
            raise FaultyScoresError(
                f"{self.task}, {self.metric}: {len(self.clusters)} cluster labels for {len(self.questions)} questions"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Scores(OnQuestions):
    """One run × task × metric × scorer."""

    values: FloatArray
    """(n, K) scores on the metric's own scale, NaN where a repeat has no score."""
    _: KW_ONLY
    missing: Mapping[str, int] = field(default_factory=dict)
    """Cause → how many of them have it, where the log says why (`settings.CAUSES`)."""
    n_zero: int = 0
    """How many of them count as 0."""
    factors: Mapping[str, tuple[tuple[str, ...], ...]] | None = None
    """What each answer was made with, by column: n rows of K labels (prompt, seed, judge)."""
    repeats_are_runs: bool = False
    """Whether repeat j of all questions shares a cause (a seed, a prompt, a judge), as its harness says: unless
    they are computed with `--repeats-are runs`, its rows have the diagnostic `shared_repeat_noise`."""
    outer: Mapping[str, Mapping[str, str]] | None = None
    """Field → cluster label → its value there, of the fields whose values contain whole clusters."""
    repeats_named: str | None = None
    """The column of prompts, seeds or judges, shared by all questions, that tells the repeats apart; None: there is
    none, or it only numbers them."""
    chances: Mapping[str, float] | None = None
    """Key of every question that was drawn → the probability with which it was; None: all had the same."""
    runs_of_one: bool = False
    """Whether column j is run j of one configuration, of which a run that is compared with them is one more."""
    version: str = ""
    """The task's own version, as the harness has it; empty where it does not say."""
    corrected: LabelColumns | None = None
    """What corrected them by people's labels: `values` are then (n, 1) values whose mean is the corrected one; None:
    nothing did."""
    names: tuple[str, ...] | None = None
    """The harness's metrics that these may be the scores of, as far as this run tells by their values; None: `metric`
    is certain. `native_values.agreed` chooses among several by what other runs tell."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """Measure → what was read of it with each answer, where it was asked for (`ReadOptions.measures`)."""
    unit: str | None = None
    """What a measure is counted in, "" where nobody says; None: it is a score."""
    per: FloatArray | None = None
    """(n, K) denominators of a ratio of sums, whose numerators are `values`; None: the quantity is a mean."""
    gradings: Gradings | None = None
    """None where the texts of the answers are not known, or where no verdict of the judge tells of its noise."""

    def __post_init__(self) -> None:
        shape = self.values.shape
        beside = [self.per, self.texts, *(used.values for used in self.usage.values())]
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
        """(n, K) hashes of the answers' texts; None where they are not known."""
        return None if self.gradings is None else self.gradings.texts

    def arrays(self, change: Callable[[FloatArray], FloatArray]) -> dict[str, Any]:
        """The fields that have something for each answer, where rows or columns without any are added.

        `change` is what is done to each array of numbers. Texts have no NaN for an answer that is not there, so that
        `gradings` are left out.
        """
        usage = {name: replace(used, values=change(used.values)) for name, used in self.usage.items()}
        per = None if self.per is None else change(self.per)
        return {"values": change(self.values), "per": per, "usage": usage, "gradings": None}

    def answers_at(self, index: Any) -> dict[str, Any]:
        """The fields that have something for each answer, of some questions, or of some of the answers to each."""
        gradings = None if self.gradings is None else rows_of(self.gradings, index)
        return self.arrays(lambda x: x[index]) | {"gradings": gradings}

    def take(self, rows: Sequence[int] | IntArray, questions: Questions | None = None) -> Scores:
        """The scores of some questions, in this order, with all that is known of each of them but factors.

        `questions` are the same ones as another run names them.
        """
        return replace(
            self,
            questions=questions or Questions(picked(self.questions.keys, rows), self.questions.kind),
            **self.answers_at(rows),
            clusters=picked(self.clusters, rows),
            factors=None,
            corrected=None if self.corrected is None else rows_of(self.corrected, rows),
        )


@dataclass(frozen=True, slots=True, eq=False)
class CorpusScores(OnQuestions):
    """One run × task × metric × scorer whose metric is no mean of question scores: bleu, F1, perplexity.

    Either `records` and `aggregate`, which are called again for every resample; or, many times
    faster, `stats` and `value`, where the metric is a function of sums over the questions (counts of
    a confusion matrix, matched n-grams, summed log-likelihoods).
    """

    records: tuple[tuple[Any, ...], ...] = ()
    """n rows of K records, None where a repeat has none: what `aggregate` takes a list of."""
    aggregate: Callable[[list[Any]], float] | None = None
    stats: FloatArray | None = None
    """(n, K, S) what is summed over questions, NaN where a repeat has no answer."""
    value: Callable[[FloatArray], FloatArray] | None = None
    """The metric from the sums: (…, S) → (…)."""

    def __post_init__(self) -> None:
        rows = len(self.records) if self.stats is None else len(self.stats)
        if rows != len(self.questions) and (rows or self.stats is not None):
            raise FaultyScoresError(
                f"{self.task}, {self.metric}: records of {rows} questions for {len(self.questions)} questions"
            )
        OnQuestions.__post_init__(self)


def causes_of(parts: Iterable[Scores]) -> dict[str, int]:
    """How many answers of all these scores are missing, by cause."""
    return dict(sum((Counter(part.missing) for part in parts), Counter()))


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

    @property
    def key(self) -> tuple[str, str, str]:
        """Name, metric and scorer."""
        return self.name, self.metric, self.scorer


@dataclass(frozen=True, slots=True)
class Skipped(Measured):
    """A metric that the run reports and that has no per-question mean to analyse."""

    reason: str
    native: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Everything that one run of one model measured."""

    model: str
    """Name of the model."""
    name: str
    """Distinguishes two runs of one model; normally the path it was read from."""
    harness: str
    """Name of the adapter that read it."""
    path: str = ""
    """What it was read from; empty for a run that was made in memory."""
    scores: tuple[Scores, ...] = ()
    """One for each task × metric × scorer."""
    parts: tuple[Scores, ...] = ()
    """Scores that only the groups need; they have no row of their own."""
    groups: tuple[Group, ...] = ()
    """Rows that average tasks."""
    corpus: tuple[CorpusScores, ...] = ()
    """Metrics that are no mean over questions."""
    skipped: tuple[Skipped, ...] = ()
    """What the run reports and has no error bar."""
    notes: tuple[str, ...] = ()
    """Sentences for the user: hints and warnings, one each."""
    sequential: tuple[Mapping[str, Any], ...] = ()
    """What made it stop before all questions were asked, as the results have it (`results.sequential`)."""
    drawn: tuple[Mapping[str, Any], ...] = ()
    """The tasks of which a random part was asked, likewise."""
    measurable: tuple[str, ...] = ()
    """Fields of its answers that can be a measure, for messages."""
    date: str = ""
    """When it was made, in a form in which a later date sorts behind an earlier one of the same harness;
    empty where that is not known."""
    headline: frozenset[tuple[str, str, str]] = frozenset()
    """Task, metric and scorer of the score that a task declares as the one that counts; empty where none does."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a user can say about how a run is to be read."""

    cluster: str | None = None
    """SPEC of `--cluster`; None: the clusters that the run itself carries."""
    columns: dict[str, str] = field(default_factory=dict)
    """Our column name → the file's."""
    format_file: str | None = None
    """The user's own formats of tables; None: those of the folder of settings."""
    missing: str = "drop"
    """See `settings.counts_as_zero`."""
    groups: dict[str, str] = field(default_factory=dict)
    """`--group NAME=PATTERN`: tasks that match the glob PATTERN form the group NAME."""
    tasks: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scorers: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    """Columns of a table, or arguments of a task, that say what each answer was made with."""
    fields: tuple[str, ...] = ()
    """SPECs of the properties of questions to read (`Questions.fields`), to slice or to explain by."""
    apart: bool = False
    """Keep the runs in a folder apart instead of joining those of each model (`harness_noise.io.joining`)."""
    strict: bool = False
    """A file that cannot be used is an error also where others can; else it is left out with a note."""
    measures: tuple[str, ...] = ()
    """What to analyse of the answers: ``"score"``, measures beside it, ratios of two; empty: the scores."""
    prices: tuple[str, ...] = ()
    """Dollars per million tokens, ``"[MODEL:]input=3,output=15"``, from which costs are computed."""

    edits: bool = False
    """Whether to look for scores that people have edited (`Gradings.edits`)."""

    def __post_init__(self) -> None:
        counts_as_zero(self.missing)  # a word that is none is refused here

    @property
    def usage(self) -> tuple[str, ...]:
        """What a reader looks for of each answer beside its score."""
        return to_read(self.measures, prices=bool(self.prices)) if self.measures else ()

    def question_field(self, where: object) -> str | None:
        """The field that names the question, of a format that is no table and has no other column to choose.

        Raises:
            InputError: `columns` names another one, which nothing would obey.
        """
        unknown = [name for name in self.columns if name != "question" and ":" not in name]
        if unknown:
            raise InputError(
                f"{where}: `columns` {unknown[0]}=… is for tables; of this format only the question's field can be "
                "named: `columns={'question': 'FIELD'}`"
            )
        return self.columns.get(f"{where}:question", self.columns.get("question"))


_SPARE = 20_000_000
"""Cells that a table of scores may have however few of them are filled: 160 MB."""
_SPARSE = 64


def check_grid(n: int, K: int, answers: int, what: object) -> None:
    """Refuse an (n, K) table that would be all but empty: one question with a million repeats among a million.

    Args:
        n: questions.
        K: the most repeats of one, or all different repeats.
        answers: scores that there are.
        what: the file or run, for the message.

    Raises:
        InputError: the table would have far more cells than there are scores.
    """
    if n * K > max(_SPARE, _SPARSE * answers):
        raise InputError(
            f"{what}: {answers} answers to {n} questions with up to {K} repeats leave nearly every question without "
            "nearly every repeat; are the repeats numbered in one row through all questions? Number them anew for "
            "each question, or take the column of repeats out"
        )


def with_groups(run: Run, patterns: Mapping[str, str]) -> Run:
    """Add a group NAME of all tasks that match the glob PATTERN, weighted by size, for each metric they share.

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
                f"({some_of(tasks_of[name], 3)}); choose another name"
            )
        tasks = tuple(task for task in measured if fnmatchcase(task, pattern))
        if not tasks:
            raise NotThereError([run.name], "groups", [f"{name}={pattern}"], list(measured))
        shared = [key for key in measured[tasks[0]] if all(key in measured[task] for task in tasks)]
        if not shared:
            raise InputError(f"{run.name}: `groups` {name}={pattern}: {', '.join(tasks)} have no metric in common")
        groups += [Group(name, metric, scorer, tasks) for metric, scorer in shared]
    return replace(run, groups=tuple(groups))
