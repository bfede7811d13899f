"""The results: frozen, with the field names of the JSON output, in its order.

Field docstrings are the documentation of the JSON; `None` means "cannot be estimated", never zero. Means and
standard errors are on the metric's own scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ..choices import T
from ..data.notes import Note
from ..data.scores import Measured
from .forms import Document, Shown, finite, row

if TYPE_CHECKING:
    import pandas as pd

    from ..arrays import FloatArray
    from ..stats.combine import Combined
    from ..stats.data_limit import DataLimit
    from ..stats.decision import OneSided, Skew
    from .parts import Drawn, FullRow, Sequential


class ConfidenceInterval(NamedTuple):
    """The two limits of an interval, on the metric's scale, None without one."""

    low: float | None
    high: float | None


SCORED_DIFFERENTLY = "scored differently"
"""The verdict where equal answers have other scores: the scoring differs, not the models."""
NOT_DECIDED, CANNOT = "not decided", "cannot be decided"
"""Decisions of a run that grows, at a look that did not decide: more answers may, or would not."""
MISSING, UNADJUSTED, UNCLUSTERED = "missing", "unadjusted", "unclustered"
LARGEST, WEIGHTS = "largest_cluster", "weights"
"""Names of changes that would change a verdict.

They are: missing answers at their bounds, no adjustment, no clusters, the largest cluster left out, other weights of
the tasks.
"""


class Change(NamedTuple):
    """A change that would change a verdict."""

    name: str
    what: str = ""
    """The largest cluster's name, or the other weights."""


COULD, COULD_NOT = "could change the verdict", "could not change the verdict"
NOT_KNOWN, NO_RANGE = "not known", "not known without a range"
"""Possible effects of missing answers on a verdict."""
PEOPLE = "people_labels"
"""The estimand of a row that human labels correct."""
OVERALL = "overall"
"""The task of the row of all top-level tasks together."""


@dataclass(frozen=True, slots=True)
class JudgeCorrection:
    """The correction of a judge by human labels, for a difference that of its A − B."""

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
    """Variance of the labels alone over that of the corrected mean, null if all labels are equal, as theirs is then
    unknown."""
    r2: float | None
    """The share of the labels' variance that the judge predicts, null if the labels are too few to use the judge."""


class _Row(Measured, Shown):
    """The common part of Estimate and Difference, which are shown as a table of one row."""

    __slots__ = ()
    if TYPE_CHECKING:
        ci_low: float | None
        ci_high: float | None
        weights: str | None

    @property
    def is_overall(self) -> bool:
        """True if this row is the average over all top-level tasks, not a task or group with that name."""
        return self.task == OVERALL and self.weights is not None

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """Confidence interval as (`low`, `high`), from `ci_low` and `ci_high`, with coverage `level`."""
        return ConfidenceInterval(self.ci_low, self.ci_high)

    def to_dict(self) -> dict[str, Any]:
        """Return this row as a dictionary for JSON, None for what cannot be estimated."""
        return row(self)

    def to_frame(self) -> pd.DataFrame:
        """Return this row as a pandas data frame of one line, with the columns of the whole result's frame."""
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
    """answers, panel or runs: which gradings are compared.

    answers: gradings of the same text by one judge. panel: the votes of its members on one answer. runs: gradings of
    the same text in A and in B.
    """
    n_same_text: int
    """Pairs of gradings of the same answer text to the same question."""
    n_flips: int
    """Pairs whose two verdicts differ."""
    rate: float
    """Share of second gradings that differ from the first. Every answer has the same weight.

    It is therefore not n_flips / n_same_text if some texts were graded more often than others.
    """
    variance: float
    """Variance of the verdicts on one text."""
    share: float | None
    """The judge's share of the prediction noise, at most 1, or null.

    null if the prediction noise cannot be estimated, and for a panel, whose common verdict varies less than a vote.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Unadjusted:
    """The figures of a stopped run as if its number of answers had been fixed, which early stops make too extreme."""

    diff: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualAnswers:
    """Answers that two runs gave with the same text to the same question."""

    n_equal: int
    """The number of equal answers."""
    n_differ: int
    """The number of them that the two runs score differently."""


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
    """Number of clusters, equal to n_questions without clusters."""
    repeats_min: int
    """Fewest answers of a question."""
    repeats_max: int
    """Most answers of a question."""
    mean: float | None
    """Mean on the metric's scale. With unequal repeats, it is the mean of the questions' means."""
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
    """Method of the interval: wilson, t, clopper-pearson, korn-graubard, bootstrap or none."""
    se_total: float | None
    """Standard error of the same benchmark with one answer per question."""
    se_data: float | None
    """The standard error that is left with infinitely many repeats."""
    se_prediction: float | None
    """The standard error that the model's own randomness adds at one answer per question."""
    se_naive: float | None
    """The standard error that ignores clusters."""
    var_data: float | None
    """se_data², but raw: it may be negative."""
    var_prediction: float | None
    """se_prediction², None if the answers cannot determine it."""
    design_effect: float | None
    """V with clusters / V without."""
    n_effective: float | None
    """n_questions / design_effect."""
    icc: float | None
    """Intraclass correlation of question means within clusters."""
    estimator: str
    """Variance estimator: cr0, cr1, cr2, cr3, or bootstrap for metrics over all questions at once."""
    n_missing: int = 0
    """Answers that were asked for and have no score (errored, NaN, see `--missing`)."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Cause → number of missing answers, if the log says why: agent, infrastructure, verifier, refused, limit or
    unanswered."""
    cluster: str | None = None
    """The cluster SPEC in words, null if questions are independent."""
    diagnostics: tuple[str, ...] = ()
    """Codes, each explained in docs/diagnostics.md."""
    se_data_upper: float | None = None
    """One-sided 95% upper limit of `se_data`, shown if the estimate is clipped at 0."""
    mean_if_missing_wrong: float | None = None
    """The mean if every missing answer were wrong (the worst of the range), null if none is missing."""
    mean_if_missing_right: float | None = None
    """The mean if every missing answer were right (the best of the range), null if none is missing."""
    gap_of_runs: float | None = None
    """Two runs of the model, one answer per question, differ by less with probability `level`, by its own randomness.

    null if prediction noise is not identified, if the repeats share a cause (`shared_repeat_noise`), or if it is as
    wide as the range of the scores.
    """
    range: tuple[float, float] | None = None
    """Lowest and highest value of the metric, if they are declared or seen, null if unbounded."""
    estimand: str = "questions_population"
    """questions_population, these_questions or people_labels.

    questions_population: the questions are a sample. these_questions: they are all there is. people_labels: the mean
    that people would give, over the population of questions.
    """
    unit: str | None = None
    """Unit of a measure: tokens, s, $, "" if unknown, null for a score."""
    mde: float | None = None
    """Distance of the true mean from a fixed number that a t test of level 1 − `level` detects with 80% power.

    For two models on the same questions see `plan`.
    """
    judge_flips: JudgeFlips | None = None
    """The judge's noise, null if no text was graded twice, or if no verdict on the same text differs."""
    judge: JudgeCorrection | None = None
    """The judge's correction by human labels, null without one."""
    _data_limit: DataLimit | None = field(default=None, repr=False, compare=False)
    """The upper limit of the data variance at any level, for other designs. It is in no file."""
    weights: str | None = None
    """Weights of what this row averages: equal, size (by questions) or file.

    null: it averages nothing, or as the harness does.
    """


def data_or_limit(row: Estimate) -> tuple[float | None, float | None]:
    """Return (data noise, None), or (None, its upper limit) if the estimated data variance is negative."""
    below = row.var_data is not None and row.var_data < 0
    return (None, row.se_data_upper) if below else (row.se_data, None)


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
    """Questions shared by both, or if unpaired those of both together."""
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
    """Statistic of `test`, null if it has none."""
    p_value: float | None
    """Two-sided, of `test`."""
    p_adjusted: float | None
    """`p_value` adjusted over its family of rows. The verdict follows it."""
    test: str
    """The test: t, sign, permutation, bootstrap, bootstrap-t, wild, sequential, fisher or reference.

    bootstrap-t goes with that interval. sequential: the run grows and is looked at, or stopped early and is compared
    with the baseline that stopped it. Then estimate, interval, p and decision are the looks'. fisher is for counts,
    reference for bare numbers.
    """
    p_sign: float | None
    """Two-sided exact sign test over questions (clusters)."""
    wins_a: float | None
    """Expected wins of A, the better score of each pair of answers. Wins and ties sum to n_questions."""
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
    """The standard error that is left with infinitely many answers."""
    se_prediction: float | None
    """The standard error that the models' own randomness adds at one answer each."""
    var_data: float | None
    """se_data², but raw: it may be negative."""
    var_prediction: float | None
    """se_prediction²."""
    design_effect: float | None
    """V with clusters / V without."""
    mde: float | None
    """The smallest difference that this comparison detects with 80% power: noncentral t with its df."""
    verdict: str
    """A better, B better, not separable, or equivalent within M, by `p_adjusted`.

    With looks also not decided, or cannot be decided. Scored differently, whatever p is, if equal answers have other
    scores.
    """
    run_a: str = ""
    """Place from which A was read. It distinguishes two runs of one model."""
    run_b: str = ""
    """Place from which B was read."""
    n_missing: int = 0
    """Answers of both that were asked for and have no score."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Cause → number of missing answers, if the logs say why, empty in the pairs of an arena."""
    cluster: str | None = None
    """The cluster SPEC in words, None if questions are independent."""
    diagnostics: tuple[str, ...] = ()
    """Codes, each explained in docs/diagnostics.md."""
    se_data_upper: float | None = None
    """One-sided 95% upper limit of `se_data`, shown if the estimate is clipped at 0."""
    estimand: str = "questions_population"
    """questions_population, these_questions or people_labels.

    questions_population: the questions are a sample. these_questions: they are all there is. people_labels: the mean
    that people would give, over the population of questions.
    """
    judge: JudgeCorrection | None = None
    """The judge's correction by human labels, null without one."""
    unit: str | None = None
    """Unit of a measure: tokens, s, $, "" if unknown, null for a score."""
    if_missing: str | None = None
    """Possible effect of answers without a score on the verdict.

    could change the verdict: some scores in their place do. could not change the verdict: it is shown that no scores
    do. not known without a range: the metric has none. not known: no score that was tried does. null: none is missing,
    or they count as wrong. Null in the pairs of an arena, which tries no scores: `compare` the two runs.
    """
    interval: str = T.name
    """Method of the interval: t, bootstrap, sequential, bonett-price, agresti-caffo or none.

    With `test` sign or permutation, which have no interval, it is t's.
    """
    weights: str | None = None
    """Weights of what this row averages: equal, size (by questions) or file.

    null: it averages nothing, or as the harness does.
    """
    unadjusted: Unadjusted | None = None
    """Figures without correction for the looks, null for a row that is not corrected for any."""
    equal_answers: EqualAnswers | None = None
    """Answers with the same text in A and B, null if none is known to be scored differently."""
    judge_flips: JudgeFlips | None = None
    """The judge's noise between the two runs, null if a judge is not known to score the same text differently."""
    _would_change: tuple[Change, ...] = field(default=(), repr=False, compare=False)
    """The changes that would change the verdict, each computed, for screens and pages."""
    _verdicts_if_missing: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The other verdicts that scores in place of the missing answers lead to, as `if_missing` found them."""
    _diff_if_missing: tuple[float, float] | None = field(default=None, repr=False, compare=False)
    """The lowest and the highest difference that the missing answers allow."""
    _data_limit: DataLimit | None = field(default=None, repr=False, compare=False)
    """The upper limit of the data variance at any level, for other designs. It is in no file."""


def _with_finite_numbers(kind: type[Estimate] | type[Difference], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with None for all numbers that are missing, infinite or NaN."""
    return {**values, **{name: finite(values.get(name)) for name in _NUMERIC[kind]}}


_NUMERIC = {
    kind: [field.name for field in fields(kind) if field.type == "float | None"] for kind in (Estimate, Difference)
}
"""Kind of row → its fields that are a number or null."""


def estimate(**values: Any) -> Estimate:
    """Build an `Estimate` row from its fields, with None for numbers that are missing or not finite."""
    return Estimate(**_with_finite_numbers(Estimate, values))


def difference(**values: Any) -> Difference:
    """Build a `Difference` row from its fields, with None for numbers that are missing or not finite."""
    return Difference(**_with_finite_numbers(Difference, values))


@dataclass(frozen=True, slots=True, repr=False)
class Analysis(Document):
    """The noise of every mean of one or several runs."""

    renderers: ClassVar[Mapping[str, str]] = {
        "summary": "harness_noise.report.summary:of_analysis",
        "pictures": "harness_noise.report.figures:of_rows",
        "page": "harness_noise.report.html:write_page",
        "figures": "harness_noise.report.figures:save_rows",
    }
    kind: ClassVar[str] = "estimates"
    always: ClassVar[tuple[str, ...]] = ("estimates", "notes")
    if_any: ClassVar[tuple[str, ...]] = ("slices", "heterogeneity", "full_benchmark", "sequential", "drawn")

    settings: Mapping[str, Any]
    estimates: tuple[Estimate, ...] = ()
    notes: tuple[Note, ...] = ()
    """Hints and warnings, each with a code for programs and a sentence for a person."""
    slices: tuple[EstimateSlice, ...] = ()
    """Rows by slice of the questions, if requested."""
    heterogeneity: tuple[Heterogeneity, ...] = ()
    """Tests for differences between the slices of each field."""
    full_benchmark: tuple[FullRow, ...] = ()
    """Estimates of whole benchmarks from parts of them, if references were given."""
    sequential: tuple[Sequential, ...] = ()
    """The looks that stopped a run when it was decided. A is the run, B the one it was compared with."""
    drawn: tuple[Drawn, ...] = ()
    """The tasks of which a random subset was asked."""

    @property
    def rows(self) -> tuple[Estimate, ...]:
        return self.estimates


@dataclass(frozen=True, slots=True, eq=False)
class ByQuestion(Measured):
    """One row of a comparison question by question. Every sequence has one item for each of the n questions."""

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
        """Difference A − B of the mean answers' scores on each question, as an array."""
        return self.mean_a - self.mean_b

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one line a question: its names, cluster, `mean_a`, `mean_b` and `diff`."""
        import pandas as pd

        names = ("task", "metric", "scorer", "model_a", "model_b", "run_a", "run_b")
        about = {name: getattr(self, name) for name in names}
        each = {"question": list(self.keys), "cluster": None if self.clusters is None else list(self.clusters)}
        means = {"mean_a": self.mean_a, "mean_b": self.mean_b, "diff": self.diff}
        return pd.DataFrame({**about, **each, **means})

    def most_flipped(self, limit: int) -> list[int]:
        """Return indices of the questions on which A and B differ most, at most `limit` of them, largest first."""
        from ..stats.tolerances import ROUNDING  # a run without the flag loads the results, but no statistics

        size = abs(self.diff)
        order: list[int] = (-size).argsort(kind="stable")[: min(limit, (size > ROUNDING).sum())].tolist()
        return order

    def flipped_as_much(self, k: int) -> int:
        """Return on how many questions A and B differ at least as much as on the question with index k."""
        from ..stats.tolerances import ROUNDING

        return int((abs(self.diff) >= abs(self.diff[k]) - ROUNDING).sum())

    def flip(self, k: int) -> Flip:
        """Return the question with index k and both runs' mean scores on it, without its target and answers."""
        return Flip(
            *(self.task, self.metric, self.scorer, self.model_a, self.model_b, self.run_a, self.run_b),
            question=self.keys[k],
            text=self.texts[k] if self.texts else None,
            cluster=self.clusters[k] if self.clusters else None,
            mean_a=float(self.mean_a[k]),
            mean_b=float(self.mean_b[k]),
            diff=float(self.diff[k]),
            _zero_one=self._zero_one,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Document):
    """A − B, for every task and metric that two runs share."""

    renderers: ClassVar[Mapping[str, str]] = {
        "summary": "harness_noise.report.summary:of_comparison",
        "pictures": "harness_noise.report.figures:of_rows",
        "page": "harness_noise.report.html:write_page",
        "figures": "harness_noise.report.figures:save_rows",
    }
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
    notes: tuple[Note, ...] = ()
    """Hints and warnings, each with a code for programs and a sentence for a person."""
    questions: tuple[Flip, ...] = ()
    """The questions that changed most, if they were asked for."""
    combined: tuple[Combined, ...] = ()
    """Conclusions from all rows together, if they were asked for."""
    full_benchmark: tuple[FullRow, ...] = ()
    """Differences on whole benchmarks, estimated from parts of them, if references were given."""
    sequential: tuple[Sequential, ...] = ()
    """Results of the looks at a run that grows, if they were asked for."""
    families: tuple[str, ...] = ()
    """The family in which each row's p is adjusted, not part of the JSON. Empty: one family.

    It is "" for groups and tasks outside any group, else the group whose subtask it is. Metrics that nobody asked for
    (`not_asked_for`) are families of their own.
    """
    one_sided: tuple[OneSided | None, ...] = ()
    """One-sided p-values of each row at the margin, for a verdict over all rows, not part of the JSON."""
    skews: tuple[Skew | None, ...] = ()
    """Skewness of each row's paired differences, for `combined`, not part of the JSON."""
    slices: tuple[DifferenceSlice, ...] = ()
    """Rows by slice of the questions, if requested."""
    heterogeneity: tuple[Heterogeneity, ...] = ()
    """Tests for differences between the slices of each field."""
    by_question: tuple[ByQuestion, ...] = ()
    """A and B question by question, if that was asked for, not part of the JSON."""

    @property
    def rows(self) -> tuple[Difference, ...]:
        return self.comparisons

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return a table of the comparison, by default the differences, as a data frame. Raise KeyError if not there.

        `"by_question"` has one line per question.

        Raises:
            KeyError: there is no such list.
        """
        if table != "by_question":
            return Document.to_frame(self, table)
        if not self.by_question:
            raise KeyError("no table 'by_question': compare with `by_question=True`")
        import pandas as pd

        return pd.concat([answers.to_frame() for answers in self.by_question], ignore_index=True)

    def _tables(self) -> list[str]:
        return [*Document._tables(self), *(["by_question"] if self.by_question else [])]


@dataclass(frozen=True, slots=True)
class Flip(Measured):
    """A question on which two runs disagree."""

    model_a: str
    model_b: str
    run_a: str
    run_b: str
    question: str
    """The harness's name of the question."""
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
    slice: str
    """The value of the field, or for a number its range."""
    p_value: float | None
    """p-value of "this slice has the mean of all other questions"."""
    p_adjusted: float | None
    """Over all slices that are shown, by Benjamini–Hochberg."""
    shrunken: float | None
    """The mean drawn towards those of the other slices, as its noise requires (empirical Bayes).

    null with fewer than four slices.
    """
    shrunken_ci_low: float | None
    shrunken_ci_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceSlice(Difference):
    """A − B on the questions with one value of a field. `p_adjusted` is over all slices, by Benjamini–Hochberg."""

    field: str
    slice: str
    shrunken: float | None
    """The difference drawn towards those of the other slices, null with fewer than four slices."""
    shrunken_ci_low: float | None
    shrunken_ci_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heterogeneity(Measured):
    """Do the slices of one field differ at all?"""

    model_a: str
    model_b: str | None
    """B for A − B, null for the means of one run."""
    field: str
    n_slices: int
    n_left_out: int
    """Questions without a value of the field."""
    statistic: float | None
    """Brown and Forsythe's F*, clustered, null if no two slices have two clusters, or nothing varies."""
    df: float | None
    df_residual: float | None
    p_value: float | None
    p_adjusted: float | None
    """Over all fields that are shown, by Benjamini–Hochberg."""
    spread: float | None
    """Standard deviation of the true slice means, as estimated, null with fewer than four slices."""
    diagnostics: tuple[str, ...] = ()
