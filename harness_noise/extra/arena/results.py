"""Results of an arena: models, pairs, benchmarks and questions, with the field names of its JSON.

Pairs are columns, one array for each field, because there are M(M − 1)/2 of them. Indexing builds a `Difference`.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

from ...data.notes import Note
from ...data.scores import Measured
from ...errors import counted, some_of
from ...results.diagnostics import NOT_ASKED, SCORED
from ...results.forms import Document, finite, shown_fields
from ...results.rows import SCORED_DIFFERENTLY, Difference, Estimate, difference

if TYPE_CHECKING:
    import pandas as pd

    from ...arrays import AnyArray, FloatArray, IntArray
    from ...results.rows import EstimateSlice, Heterogeneity
    from ...stats.contrast import Design
    from ...stats.data_limit import DataLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Estimate):
    """One model on one benchmark."""

    win_rate: float | None
    """Mean over all rivals of P(its answer beats theirs) + half of P(tie), on the shared questions."""
    pass_at_k: Mapping[int, float] | None
    """k → chance that at least one of k answers is right, null unless scores are 0 or 1."""
    among_best: bool | None
    """True if it is not significantly worse than the best.

    The set of these models holds the best one with probability `level`, whichever model that is.
    """
    p_best: float | None
    """p-value of "no other model is better", adjusted for the number of rivals."""
    rank: int | None = None
    """Rank by the mean, 1 for the best. Equal means share the better rank."""
    rank_low: int | None = None
    """The best rank that it may have: the sets of all models hold their true ranks together with probability
    `level`."""
    rank_high: int | None = None
    ties: int | None = None
    """The number of other models it is not shown to differ from, with all pairs tested together."""
    in_top: str | None = None
    """Membership in the K best of `--top K`: yes, maybe or no, null if K was not asked for."""
    pass_at_k_se: Mapping[int, float] | None = None
    """Standard errors of `pass_at_k`, clustered."""
    pass_hat_k: Mapping[int, float] | None = None
    """k → chance that all of k answers are right (pass^k)."""
    pass_hat_k_se: Mapping[int, float] | None = None
    frontier: str | None = None
    """Place on the frontier of score and `--frontier` measure: yes, no (see `beaten_by`) or open.

    yes: no other model is as good and as cheap with one of both better. null if that was not asked for, or is unknown.
    """
    beaten_by: tuple[str, ...] = ()
    """The models that are better and cheaper, by tests of both, adjusted for the number of rivals."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range over the close pairs."""

    median: float
    min: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Two sizes of one model family: how far apart they are, in standard errors."""

    family: str
    small: str
    large: str
    diff: float
    se_total: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Measured):
    """The noise that is characteristic of one task × metric × scorer."""

    n_questions: int
    """Questions that any model has."""
    n_models: int
    n_pairs: int
    n_close_pairs: int
    """Pairs with |A − B| < 5 · se_total. The spreads below are over these."""
    se_total: Spread | None
    se_data: Spread | None
    se_data_upper: Spread | None
    """The pairs' 95% upper limits of `se_data`. Tables show it in place of a median of 0, which is an estimate below
    0."""
    se_prediction: Spread | None
    correlation: Spread | None
    disagreement: Spread | None
    """Share of questions on which one answer of A and one of B score differently."""
    smallest_significant_diff: float | None
    """The smallest |A − B| whose own interval excludes 0, before any adjustment."""
    largest_insignificant_diff: float | None
    beta_theory: Spread | None
    """se_total divided by what the Beta(p, 1 − p) theory says, √(s · (p/s)(1 − p/s)/n), with s the
    share of questions that any model solves and p the mean of the pair. Wang (2025), §4.1.3."""
    rule_of_thumb: Spread | None
    """se_total divided by √(p(1 − p)/n). Wang (2025), §1."""
    solved_by_none: int | None
    signal_to_noise: Spread | None
    """Difference between adjacent sizes of one family, in its total standard errors."""
    best: tuple[str, ...]
    """The models that are not significantly worse than the best."""
    steps: tuple[Step, ...] = ()
    cluster: str | None = None
    solved_by_all: int | None = None
    """Questions that every model which has them solves."""
    rank_method: str | None = None
    """Source of the rank sets: bootstrap or holm.

    bootstrap: signs flipped by cluster, all pairs at once. holm: over the pairs' own p-values, if models miss questions
    or tasks are averaged.
    """
    n_top: int | None = None
    """Models at the top: the K of `--top K`, else those that may be the best, at least two."""
    n_for_top: int | None = None
    """Questions that all models at the top have a score on."""
    dead_for_top: int | None = None
    """Questions that all models at the top have and score the same: they no longer tell these apart."""
    order_tau: float | None = None
    """Stability: median Kendall tau between the order of the models and their order on resampled questions."""
    same_best: float | None = None
    """Stability: share of resamples in which the same model is first. It is not the probability that it is the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Measured):
    """One question of one benchmark."""

    question: str
    cluster: str | None
    difficulty: float | None
    """1 − mean score over the models, null for metrics outside [0, 1]."""
    n_models: int
    """Models with a score on it."""
    n_solved: int | None
    """Models with at least one answer of score 1, null for metrics outside [0, 1]."""
    tau: float | None
    """Kendall's tau-b between the models' scores on this question and their means over all others."""
    p_tau: float | None
    """Chance of a tau as low on a question that has nothing to do with the models' quality."""
    suspect: bool | None
    """Better models do worse on it: p_tau below 1/N of the benchmark's N questions, and below 0.05."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs(Sequence[Difference]):
    """All pairs of one benchmark: a sequence of `Difference`, held as columns."""

    names: tuple[str, ...]
    """Model names, to which `a` and `b` are indices."""
    runs: tuple[str, ...]
    """The name of each run, in the same order."""
    missing: tuple[Mapping[str, int], ...]
    """Cause → answers of each model that are missing by it, in the same order."""
    common: Mapping[str, Any]
    """Fields that all pairs share: task, metric, scorer, level, test, … ."""
    a: IntArray
    b: IntArray
    columns: Mapping[str, AnyArray]
    """Every other field of a Difference: numbers, NaN for what cannot be estimated, and whose interval it is."""
    verdict: AnyArray
    """(P,) codes into `words`."""
    words: tuple[str, ...]
    flags: Mapping[str, AnyArray]
    """Diagnostic code → which pairs have it."""
    limit: Callable[[int, int], DataLimit] | None
    """Function that gives the upper limit of the data variance of two models' difference, None if nothing needs it."""

    @property
    def sign(self) -> float:
        """Factor for differences so that more is better: −1 for metrics where less is better, else 1."""
        return -1.0 if self.common["higher_is_better"] is False else 1.0

    @property
    def withheld(self) -> AnyArray:
        """(P,) True for pairs whose verdict is withheld, because equal answers are scored differently."""
        return self.flags.get(SCORED, self.a < 0)

    def withholding(self, apart: AnyArray) -> Pairs:
        """Return the pairs with the verdict withheld where `apart`, (P,), is True. Their adjustment flag is cleared."""
        if not apart.any():
            return self
        words = self.words if SCORED_DIFFERENTLY in self.words else (*self.words, SCORED_DIFFERENTLY)
        verdict = self.verdict.copy()
        verdict[apart] = words.index(SCORED_DIFFERENTLY)
        lost = {name: has & ~apart for name, has in self.flags.items() if name == "not_after_adjustment"}
        flags = {**self.flags, **lost, SCORED: self.withheld | apart}
        flags = {code: has for code, has in flags.items() if has.any()}
        return dataclasses.replace(self, verdict=verdict, words=words, flags=flags)

    def __len__(self) -> int:
        return len(self.a)

    @overload
    def __getitem__(self, index: int) -> Difference: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Difference, ...]: ...

    def __getitem__(self, index: int | slice) -> Difference | tuple[Difference, ...]:
        if isinstance(index, slice):
            return tuple(self._rows(range(len(self))[index]))
        return next(self._rows([range(len(self))[index]]))

    def __iter__(self) -> Iterator[Difference]:
        return self._rows(range(len(self)))

    def _rows(self, at: Sequence[int]) -> Iterator[Difference]:
        fields = self.fields(at)
        fields["_zero_one"] = [self.common.get("_zero_one")] * len(at)
        fields["_data_limit"] = [
            None if self.limit is None or diff is None else self.limit(int(self.a[i]), int(self.b[i]))
            for i, diff in zip(at, fields["diff"], strict=True)
        ]
        return (difference(**dict(zip(fields, values, strict=True))) for values in zip(*fields.values(), strict=True))

    def fields(self, at: Sequence[int]) -> dict[str, Sequence[Any]]:
        """Return {field of a `Difference`: list of its values for the pairs with these indexes}."""
        models = {"a": self.a[at].tolist(), "b": self.b[at].tolist()}
        absent = {field.name: None for field in dataclasses.fields(Difference) if field.default is None}
        out: dict[str, Sequence[Any]] = {name: [value] * len(at) for name, value in {**absent, **self.common}.items()}
        for side, which in models.items():
            out |= {f"model_{side}": [self.names[m] for m in which], f"run_{side}": [self.runs[m] for m in which]}
        lost = list(map(Counter, self.missing))
        codes: list[list[str]] = [[] for _ in at]
        for code in sorted(self.flags):
            for i in self.flags[code][at].nonzero()[0]:
                codes[i].append(code)
        out["missing"] = [dict(lost[a] + lost[b]) for a, b in zip(*models.values(), strict=True)]
        out["if_missing"] = [None] * len(at)
        out["verdict"] = [self.words[i] for i in self.verdict[at]]
        out["diagnostics"] = list(map(tuple, codes))
        for name, column in self.columns.items():
            values = column[at].tolist()
            out[name] = list(map(finite, values)) if column.dtype.kind == "f" else values
        return {name: out[name] for name in shown_fields(Difference)}

    def find(self, model_a: str, model_b: str) -> Difference:
        """Return the difference of these two models, in the arena's order (A − B or B − A). KeyError if none."""
        for i, (x, y) in enumerate(zip(self.a, self.b, strict=True)):
            if {self.names[x], self.names[y]} == {model_a, model_b}:
                return self[i]
        raise KeyError(f"no pair of {model_a!r} and {model_b!r}")


@dataclass(frozen=True, slots=True, eq=False)
class PairSlice:
    """All pairs on the questions with one value of a field. p-values are adjusted over the slices of each pair."""

    field: str
    slice: str
    n_questions: int
    pairs: Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Measured):
    """Questions or answers with which a model is shown to be worse than the best with 80% power."""

    best: str
    """The model with the best mean."""
    model: str
    """One that is not shown to be worse."""
    diff: float | None
    """By how much the best is ahead, on the metric's scale."""
    n_questions: int
    """Questions that both have."""
    repeats: int
    """Answers per question."""
    more_questions: int | None
    """Questions to add, with as many answers, null if nothing differs."""
    more_repeats: int | None
    """Answers per question to add, to the same questions, or null.

    null if no number of them is enough, or if data and prediction noise cannot be separated.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Measured):
    """One checkpoint of a training run on one benchmark, compared with the first of its series and the one before."""

    series: str
    """The name that the checkpoints of one training run share, without their steps."""
    model: str
    step: float
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    since_first: float | None
    """Its mean minus that of the first checkpoint, paired by question, null for the first itself."""
    since_first_low: float | None
    """The pair's own interval."""
    since_first_high: float | None
    p_first: float | None
    """p-value of `since_first`, adjusted over the checkpoints of the series.

    null also if both gave equal answers that are scored differently.
    """
    since_previous: float | None
    """Its mean minus that of the checkpoint before."""
    p_previous: float | None
    """p-value of `since_previous`, adjusted in the same way."""
    changed: bool | None
    """True if `p_first` is below 1 − level, null without it."""
    onset: bool
    """True if this checkpoint and all later ones differ from the first in one direction, as the earliest one
    that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Measured):
    """The share of the best model's lead that comes from choosing it as the best of several."""

    best: str
    second: str
    n_models: int
    n_questions: int
    """Questions that all of them have."""
    mean: float
    """Mean of the best model, on these questions."""
    mean_corrected: float | None
    """Mean of a model that half of the questions chose, on the other half, or null.

    null with fewer than four clusters, or if a task cannot be split.
    """
    lead: float
    """By how much the best model is ahead of the second."""
    lead_corrected: float | None
    """Lead between the two that half of the questions put first, on the other half: about 0 if all are equally good."""
    same_best: float | None
    """Share of the halves that choose the same model as all questions do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossTasks(Measured):
    """One model over all tasks, each of which counts alike. The tasks are the sample."""

    model: str
    n_tasks: int
    """Tasks that all these models have."""
    n_clusters: int
    """The sample: tasks that share questions or clusters are one."""
    mean_rank: float
    """Mean over the tasks of its rank by the mean, 1 for the best. Equal means share the mean of their ranks."""
    win_rate: float
    """Share of rivals and tasks on which its mean is better, ties half: (M − mean rank)/(M − 1)."""
    rank_low: int
    """The best place by mean rank that it may have, all models right together with probability `level`."""
    rank_high: int


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkResult:
    """One benchmark: a task × metric × scorer that at least two models measured."""

    benchmark: Benchmark
    models: tuple[Model, ...]
    pairs: Pairs
    questions: tuple[Question, ...]
    scores: FloatArray
    """(N, M) question means, NaN if missing, for the figures, with columns as `models`."""
    slices: tuple[PairSlice, ...] = ()
    """All pairs slice by slice, for the pages, if asked for."""
    beside: BenchmarkResult | None = None
    """The measure that the frontier is by, of the same task and models."""
    plan: Design | None = None
    """The weights of the questions, and their clusters."""
    texts: Sequence[str] | None = None
    """(N,) short text of each question, None if none is known."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.benchmark.key

    @property
    def is_overall(self) -> bool:
        """True if this result is of all top-level tasks together, not of one benchmark."""
        return any(model.is_overall for model in self.models)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arena(Document):
    """Every pair of models on every benchmark that they share."""

    renderers: ClassVar[Mapping[str, str]] = {
        "summary": "harness_noise.extra.arena.report:of_arena",
        "pictures": "harness_noise.extra.arena.figures:of_arena",
        "page": "harness_noise.extra.arena.pages:write_arena",
        "figures": "harness_noise.extra.arena.figures:save",
        "methods": "harness_noise.extra.arena.report:methods",
        "lines": "harness_noise.extra.arena.report:paper_lines",
    }
    kind: ClassVar[str] = "leaderboard"
    whole: ClassVar[str] = "pairs"
    always: ClassVar[tuple[str, ...]] = ("models", "pairs", "benchmarks", "questions", "notes")
    if_any: ClassVar[tuple[str, ...]] = (
        "budget",
        "slices",
        "heterogeneity",
        "checkpoints",
        "selection",
        "across_tasks",
    )

    settings: Mapping[str, Any]
    boards: tuple[BenchmarkResult, ...]
    baseline: str | None = None
    notes: tuple[Note, ...] = ()
    """Hints and warnings, each with a code for programs and a sentence for a person."""
    budget: tuple[Budget, ...] = ()
    """Questions or answers that would show which models are worse than the best, if they were asked for."""
    slices: tuple[EstimateSlice, ...] = ()
    """The means of the models slice by slice, if that was asked for."""
    heterogeneity: tuple[Heterogeneity, ...] = ()
    """Tests for differences between the slices of each model."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """The models in the order of their steps, if that was asked for."""
    selection: tuple[Selection, ...] = ()
    """The share of the best model's lead that is selection, if it was asked for."""
    across_tasks: tuple[AcrossTasks, ...] = ()
    """The mean ranks of the models over several tasks."""

    @property
    def models(self) -> tuple[Model, ...]:
        return tuple(model for board in self.boards for model in board.models)

    @property
    def sample(self) -> str:
        """The models, benchmarks, questions and answers in words, for a paper. "" without questions."""
        boards = [board for board in self.boards if not board.is_overall and board.benchmark.n_questions]
        if not boards:
            return ""
        several = len(boards) > 1
        each = [f"{board.key[0]} {board.benchmark.n_questions:,}" for board in boards]
        asked = f"{counted(len(boards), 'benchmark')} (questions: {some_of(each, 12)})" if several else ""
        asked = asked or counted(boards[0].benchmark.n_questions, "question")
        most = sorted({model.repeats_max for board in boards for model in board.models if model.repeats_max})
        answers = "" if not most else f", {'one answer' if most == [1] else f'up to {most[-1]} answers'} each"
        models = len({(model.model, model.run) for board in boards for model in board.models})
        return f"{counted(models, 'model')} on {asked}{answers}"

    @property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        return tuple(board.benchmark for board in self.boards)

    @property
    def pairs(self) -> Iterator[Difference]:
        return (pair for board in self.boards for pair in board.pairs)

    @property
    def questions(self) -> Iterator[Question]:
        """All questions of all tasks and groups as rows, without overall rows, which would repeat them."""
        return (question for board in self.boards if not board.is_overall for question in board.questions)

    @property
    def first_boards(self) -> list[BenchmarkResult]:
        """The boards in the leaderboard: all tasks together first, without those `not_asked_for` unless all are."""
        boards = sorted(self.boards, key=lambda board: not board.is_overall)
        return [board for board in boards if any(NOT_ASKED not in row.diagnostics for row in board.models)] or boards

    @property
    def leaderboard(self) -> dict[str, dict[tuple[str, str, str], Model]]:
        """The leaderboard: model → benchmark's key → its row, sorted by the benchmarks on which it may be best."""
        rows: dict[str, dict[tuple[str, str, str], Model]] = {}
        for model in self.models:
            rows.setdefault(model.model, {})[model.key] = model

        def place(name: str) -> tuple[int, float]:
            have = [row for row in rows[name].values() if not row.is_overall]
            ranks = [row.rank for row in have if row.rank is not None]
            return -sum(bool(row.among_best) for row in have), sum(ranks) / len(ranks) if ranks else math.inf

        return {name: rows[name] for name in sorted(rows, key=place)}

    def to_dict(self) -> dict[str, Any]:
        """Return the arena as the JSON object that `--format json` prints."""
        out = Document.to_dict(self)
        out["settings"]["baseline"] = self.baseline
        return out

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return the leaderboard as a data frame with a row per model, or another table by its name.

        It has the mean on each benchmark, its standard error, and True if the model may be the best.

        Raises:
            KeyError: there is no such table.
        """
        return Document.to_frame(self, None if table == "leaderboard" else table)

    def _columns(self, table: str) -> Mapping[str, Sequence[Any]]:
        if table == "leaderboard":
            rows, boards = self.leaderboard, self.first_boards
            ends = {"": "mean", "_se": "se", "_best": "among_best"}
            tasks = Counter(board.key[0] for board in boards)
            out: dict[str, Sequence[Any]] = {"model": list(rows)}
            for board in boards:
                task, metric, scorer = board.key
                parts = [task, metric, "" if scorer == "none" else scorer]
                name = task if task and tasks[task] == 1 else " ".join(filter(None, parts))
                if not out.keys().isdisjoint(f"{name}{end}" for end in ends):  # a task that is called as a column is
                    name = " ".join(board.key)
                cells = [row.get(board.key) for row in rows.values()]
                out |= {f"{name}{end}": [getattr(cell, what, None) for cell in cells] for end, what in ends.items()}
            return out
        if table != "pairs":
            return Document._columns(self, table)
        each = [board.pairs.fields(range(len(board.pairs))) for board in self.boards]
        return {name: [value for fields in each for value in fields[name]] for name in shown_fields(Difference)}
