"""The results: frozen, with the field names of the JSON output, in its order.

Field docstrings are the documentation of the JSON; `None` means "cannot be estimated", never zero. Means and
standard errors are on the metric's own scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ..data.scores import Measured
from .forms import Document, Shown, finite, row

if TYPE_CHECKING:
    import pandas as pd

    from ..arrays import FloatArray
    from ..stats.combine import Combined
    from ..stats.decision import Skew
    from .gate import Gate
    from .sequential import Drawn, FullRow, Sequential


class ConfidenceInterval(NamedTuple):
    """The two ends of an interval, on the metric's scale; None where there is none."""

    low: float | None
    high: float | None


NOT_DECIDED, CANNOT = "not decided", "cannot be decided"
"""Decisions of a run that grows, at a look that did not decide: more answers may, or would not."""
PEOPLE = "people_labels"
"""The estimand of a row that people's labels correct."""


@dataclass(frozen=True, slots=True)
class JudgeCorrection:
    """What people's labels say of the judge; of a difference, of its A − B."""

    n_labelled: int
    """Questions with a label."""
    n_labels: int
    """Labels, of all people and answers."""
    mean_judge: float
    """The judge's own mean."""
    bias: float | None
    """The corrected mean less the judge's own."""
    bias_se: float | None
    """Standard error of `bias`."""
    gain: float | None
    """How many times the variance of the labels alone is that of the corrected mean; null where all labels are the
    same, so that theirs is not known."""
    r2: float | None
    """The share of the labels' variance that the judge predicts; null where the labels are too few to use the judge."""


class _Row(Measured, Shown):
    """What one Estimate and one Difference share: they are shown as a table of one row."""

    __slots__ = ()
    if TYPE_CHECKING:
        ci_low: float | None
        ci_high: float | None

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """(`low`, `high`): `ci_low` and `ci_high` as one, of coverage `level`; see `interval`."""
        return ConfidenceInterval(self.ci_low, self.ci_high)

    def to_dict(self) -> dict[str, Any]:
        """The row as the JSON has it."""
        return row(self)

    def to_frame(self) -> pd.DataFrame:
        """One line, as in `Analysis.to_frame` and `Comparison.to_frame`."""
        return self._table().to_frame()

    def _table(self) -> Analysis | Comparison:
        if isinstance(self, Estimate):
            return Analysis({}, (self,))
        assert isinstance(self, Difference)
        return Comparison({}, (self,))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFlips:
    """The judge's own noise: verdicts that differ on the same text."""

    of: str
    """answers: gradings of the same text by one judge; panel: the votes of its members on one answer."""
    n_same_text: int
    """Pairs of gradings of the same answer text to the same question."""
    n_flips: int
    """Pairs whose two verdicts differ."""
    rate: float
    """How often a second grading differs from the first; every answer counts the same, so it is not n_flips /
    n_same_text where some texts were graded more often than others."""
    variance: float
    """Variance of the verdicts on one text."""
    share: float | None
    """Share of the prediction noise that is the judge's, at most 1; null where the prediction noise cannot be
    estimated, and of a panel, whose common verdict varies less than a vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(_Row):
    """One mean with its noise."""

    model: str
    """Name of the model."""
    run: str
    """Tells two runs of one model apart: normally the path."""
    higher_is_better: bool | None
    """None: the run does not say, and it counts as true."""
    n_questions: int
    """Questions with a score."""
    n_clusters: int
    """Equal to n_questions where there are no clusters."""
    repeats_min: int
    """Fewest answers of a question."""
    repeats_max: int
    """Most answers of a question."""
    mean: float | None
    """On the metric's scale; with unequal repeats the mean of the questions' means."""
    se: float | None
    """Standard error of `mean`, averaged over the repeats that were run."""
    ci_low: float | None
    """Lower end of the confidence interval."""
    ci_high: float | None
    """Upper end of it."""
    level: float
    """Coverage of the interval."""
    df: float | None
    """Degrees of freedom of `se`."""
    interval: str
    """wilson, t, clopper-pearson, korn-graubard, bootstrap; none."""
    se_total: float | None
    """Standard error of the same benchmark with one answer per question."""
    se_data: float | None
    """What is left with infinitely many repeats."""
    se_prediction: float | None
    """What the model's own randomness adds at one answer per question."""
    se_naive: float | None
    """The standard error that ignores clusters."""
    var_data: float | None
    """se_data², but raw: it may be negative."""
    var_prediction: float | None
    """se_prediction²; None where answers cannot tell it."""
    design_effect: float | None
    """V with clusters / V without."""
    n_effective: float | None
    """n_questions / design_effect."""
    icc: float | None
    """Intraclass correlation of question means within clusters."""
    estimator: str
    """Variance estimator: cr0, cr1, cr2, cr3; bootstrap for metrics over all questions at once."""
    n_missing: int = 0
    """Answers that were asked for and have no score (errored, NaN); see `--missing`."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """How many of them by cause, where the log says why: agent, infrastructure, verifier, refused, limit or
    unanswered."""
    cluster: str | None = None
    """The cluster SPEC in words; null where questions are independent."""
    diagnostics: tuple[str, ...] = ()
    """Codes, each explained in docs/diagnostics.md."""
    se_data_upper: float | None = None
    """One-sided 95 % upper limit of `se_data`; shown where the estimate is clipped at 0."""
    mean_if_missing_wrong: float | None = None
    """The mean if every missing answer were wrong (the worst of the range); null where none is missing."""
    mean_if_missing_right: float | None = None
    """The mean if every missing answer were right (the best of the range); null where none is missing."""
    range: tuple[float, float] | None = None
    """Lowest and highest value that the metric can take, where that is declared or seen; null: unbounded."""
    estimand: str = "questions_population"
    """questions_population: the questions are a sample; these_questions: they are all there is; people_labels: the mean
    that people would give, over the population of questions."""
    unit: str | None = None
    """What a measure beside the score is counted in: tokens, s, $, or empty where nobody says; null: a score."""
    mde: float | None = None
    """How far the true mean must be from a fixed number for a t test of level 1 − `level` to tell them apart with 80 %
    power; of two models on the same questions see `plan`."""
    judge_flips: JudgeFlips | None = None
    """How noisy the judge is; null where no text was graded twice, or where no verdict on the same text differs."""
    judge: JudgeCorrection | None = None
    """What people's labels say of the judge; null where nothing is corrected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(_Row):
    """A − B over the questions that both have answered."""

    higher_is_better: bool | None
    """None: the run does not say, and it counts as true."""
    model_a: str
    """The candidate."""
    model_b: str
    """The baseline."""
    n_questions: int
    """Shared by both; unpaired: of both together."""
    n_clusters: int
    """Clusters of the shared questions."""
    n_only_a: int
    """Questions that only A has."""
    n_only_b: int
    """Questions that only B has."""
    repeats_a: int
    """Most answers of A to a question."""
    repeats_b: int
    """Most answers of B to a question."""
    mean_a: float | None
    """Over the shared questions."""
    mean_b: float | None
    """Over the shared questions."""
    diff: float | None
    """A − B, on the metric's scale."""
    se: float | None
    """Standard error of `diff`."""
    ci_low: float | None
    """Lower end of the confidence interval of `diff`."""
    ci_high: float | None
    """Upper end of it."""
    level: float
    """Coverage of the interval."""
    df: float | None
    """Degrees of freedom of `se`."""
    statistic: float | None
    """Statistic of `test`; null where it has none."""
    p_value: float | None
    """Two-sided, of `test`."""
    p_adjusted: float | None
    """`p_value` adjusted over its family of rows; the verdict follows it."""
    test: str
    """t, sign, permutation, bootstrap, wild; sequential with looks at a run that grows, whose estimate, interval, p and
    decision then stand in the row; fisher of counts, reference of bare numbers."""
    p_sign: float | None
    """Two-sided exact sign test over questions (clusters)."""
    wins_a: float | None
    """Expected wins of A, the better score of each pair of answers; wins and ties sum to n_questions."""
    wins_b: float | None
    """Expected wins of B."""
    ties: float | None
    """Expected ties."""
    correlation: float | None
    """Pearson's, between the question means."""
    se_unpaired: float | None
    """√(se_A² + se_B²): what ignoring the pairing would give."""
    se_total: float | None
    """Standard error with one answer per question and model."""
    se_data: float | None
    """What is left with infinitely many answers."""
    se_prediction: float | None
    """What the models' own randomness adds at one answer each."""
    var_data: float | None
    """se_data², but raw: it may be negative."""
    var_prediction: float | None
    """se_prediction²."""
    design_effect: float | None
    """V with clusters / V without."""
    mde: float | None
    """The smallest difference that this comparison detects with 80 % power: noncentral t with its df."""
    verdict: str
    """A better, B better, not separable, or equivalent within M; by `p_adjusted`. With looks also not decided, or
    cannot be decided."""
    run_a: str = ""
    """Where A was read from: tells two runs of one model apart."""
    run_b: str = ""
    """Where B was read from."""
    n_missing: int = 0
    """Answers of both that were asked for and have no score."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """How many of them by cause, where the logs say why; empty in the pairs of an arena."""
    cluster: str | None = None
    """The cluster SPEC in words; None where questions are independent."""
    diagnostics: tuple[str, ...] = ()
    """Codes, each explained in docs/diagnostics.md."""
    se_data_upper: float | None = None
    """One-sided 95 % upper limit of `se_data`; shown where the estimate is clipped at 0."""
    estimand: str = "questions_population"
    """questions_population: the questions are a sample; these_questions: they are all there is; people_labels: the mean
    that people would give, over the population of questions."""
    judge: JudgeCorrection | None = None
    """What people's labels say of the judge; null where nothing is corrected."""
    unit: str | None = None
    """What a measure beside the score is counted in: tokens, s, $, or empty where nobody says; null: a score."""
    interval: str = "t"
    """Whose interval it is: t, bootstrap, sequential, bonett-price, agresti-caffo; none. With `test` sign or
    permutation, which have none of their own, it is t's."""


def _numbers(kind: type[_Row], values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, with null for numbers that are missing or not finite."""
    names = [field.name for field in fields(kind) if field.type == "float | None"]
    return {**values, **{name: finite(values.get(name)) for name in names}}


def estimate(**values: Any) -> Estimate:
    """The row of these fields; numbers that are missing or not finite become null."""
    return Estimate(**_numbers(Estimate, values))


def difference(**values: Any) -> Difference:
    """The row of these fields; numbers that are missing or not finite become null."""
    return Difference(**_numbers(Difference, values))


@dataclass(frozen=True, slots=True)
class Analysis(Document):
    """The noise of every mean of one or several runs."""

    kind: ClassVar[str] = "estimates"
    always: ClassVar[tuple[str, ...]] = ("estimates", "notes")
    if_any: ClassVar[tuple[str, ...]] = ("slices", "heterogeneity", "full_benchmark", "sequential", "drawn")

    settings: Mapping[str, Any]
    estimates: tuple[Estimate, ...] = ()
    notes: tuple[str, ...] = ()
    """Hints and warnings for a person, one sentence each."""
    slices: tuple[EstimateSlice, ...] = ()
    """Rows by slice of the questions, if requested."""
    heterogeneity: tuple[Heterogeneity, ...] = ()
    """Whether the slices of each field differ at all."""
    full_benchmark: tuple[FullRow, ...] = ()
    """Estimates of whole benchmarks from parts of them, if references were given."""
    sequential: tuple[Sequential, ...] = ()
    """What made a run stop, if it was to stop when it is decided; A is the run, B the one it was compared with."""
    drawn: tuple[Drawn, ...] = ()
    """The tasks of which a random part was asked."""

    @property
    def rows(self) -> tuple[Estimate, ...]:
        return self.estimates


@dataclass(frozen=True, slots=True, eq=False)
class ByQuestion(Measured):
    """One row of a comparison question by question; every sequence has one item for each of the n questions."""

    model_a: str
    model_b: str
    run_a: str
    run_b: str
    keys: Sequence[str]
    texts: Sequence[str] | None
    clusters: Sequence[str] | None
    mean_a: FloatArray
    """(n,) mean over A's answers."""
    mean_b: FloatArray

    @property
    def diff(self) -> FloatArray:
        """(n,) A − B."""
        return self.mean_a - self.mean_b

    def most_flipped(self, limit: int) -> list[int]:
        """At most so many of the questions on which A and B differ, the largest difference first."""
        from ..stats.tolerances import ROUNDING  # a run without the flag loads the results, but no statistics

        size = abs(self.diff)
        order: list[int] = (-size).argsort(kind="stable")[: min(limit, (size > ROUNDING).sum())].tolist()
        return order

    def flip(self, k: int) -> Flip:
        """Question k, without its target and answers."""
        return Flip(
            *(self.task, self.metric, self.scorer, self.model_a, self.model_b, self.run_a, self.run_b),
            question=self.keys[k],
            text=self.texts[k] if self.texts else None,
            cluster=self.clusters[k] if self.clusters else None,
            mean_a=float(self.mean_a[k]),
            mean_b=float(self.mean_b[k]),
            diff=float(self.diff[k]),
        )


@dataclass(frozen=True, slots=True)
class Comparison(Document):
    """A − B, for every task and metric that two runs share."""

    kind: ClassVar[str] = "comparisons"
    always: ClassVar[tuple[str, ...]] = ("comparisons", "notes")
    if_any: ClassVar[tuple[str, ...]] = (
        "slices",
        "heterogeneity",
        "questions",
        "combined",
        "full_benchmark",
        "sequential",
    )

    settings: Mapping[str, Any]
    comparisons: tuple[Difference, ...] = ()
    """One for each task, metric and scorer that both have, then for each group of tasks."""
    notes: tuple[str, ...] = ()
    """Hints and warnings for a person, one sentence each."""
    questions: tuple[Flip, ...] = ()
    """The questions that changed most, if they were asked for."""
    combined: tuple[Combined, ...] = ()
    """What all rows say together, if it was asked for."""
    full_benchmark: tuple[FullRow, ...] = ()
    """Differences on whole benchmarks, estimated from parts of them, if references were given."""
    sequential: tuple[Sequential, ...] = ()
    """What the looks at a run that grows say, if they were asked for."""
    families: tuple[str, ...] = ()
    """The family in which each row's p is adjusted: "" for groups and tasks outside any group, else the
    group whose subtask it is; not part of the JSON. Without any: one family."""
    skews: tuple[Skew | None, ...] = ()
    """How skewed each row's paired differences are, for `combined`; not part of the JSON."""
    slices: tuple[DifferenceSlice, ...] = ()
    """Rows by slice of the questions, if requested."""
    heterogeneity: tuple[Heterogeneity, ...] = ()
    """Whether the slices of each field differ at all."""
    by_question: tuple[ByQuestion, ...] = ()
    """A and B question by question, if that was asked for; not part of the JSON."""
    gate: Gate | None = None
    """Whether A is worse in any row, if that was asked for with `fail_on`; not part of the JSON."""

    @property
    def rows(self) -> tuple[Difference, ...]:
        return self.comparisons


@dataclass(frozen=True, slots=True)
class Flip(Measured):
    """A question on which two runs disagree."""

    model_a: str
    model_b: str
    run_a: str
    run_b: str
    question: str
    """What the harness calls it."""
    text: str | None
    """The whole question, where the log has it."""
    cluster: str | None
    mean_a: float
    mean_b: float
    diff: float
    target: str | None = None
    """The answer that is right."""
    answers_a: tuple[str, ...] = ()
    """All of A's, in the order of its repeats."""
    answers_b: tuple[str, ...] = ()
    """All of B's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSlice(Estimate):
    """One mean, of the questions with one value of a field."""

    field: str
    """The SPEC."""
    value: str
    """The value; of a number, its range."""
    p_value: float | None
    """p-value of "this slice has the mean of all other questions"."""
    p_adjusted: float | None
    """Over all slices that are shown, by Benjamini–Hochberg."""
    shrunken: float | None
    """The mean drawn towards those of the other slices, as far as its noise makes it (empirical Bayes); null with
    fewer than four slices."""
    shrunken_ci_low: float | None
    shrunken_ci_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceSlice(Difference):
    """A − B on the questions with one value of a field; `p_adjusted` is over all slices, by Benjamini–Hochberg."""

    field: str
    value: str
    shrunken: float | None
    """The difference drawn towards those of the other slices; null with fewer than four slices."""
    shrunken_ci_low: float | None
    shrunken_ci_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heterogeneity(Measured):
    """Do the slices of one field differ at all?"""

    model_a: str
    model_b: str | None
    """null: the means of one run; else A − B."""
    field: str
    n_slices: int
    n_left_out: int
    """Questions without a value of the field."""
    statistic: float | None
    """Brown and Forsythe's F*, clustered; null where no two slices have two clusters, or nothing varies."""
    df: float | None
    df_residual: float | None
    p_value: float | None
    p_adjusted: float | None
    """Over all fields that are shown, by Benjamini–Hochberg."""
    spread: float | None
    """Standard deviation of the true slice means, as estimated; null with fewer than four slices."""
    diagnostics: tuple[str, ...] = ()
