"""Results of `regress` (scores by properties of the questions), `factors` (noise by source) and `label_sample`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..data.notes import Note
from ..data.scores import Measured
from ..errors import counted
from .forms import Document

INTERCEPT = "(intercept)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient(Measured):
    """The change of a score per unit of a number, or between two levels of a category."""

    model_a: str
    model_b: str | None
    """B if A − B is explained, null if the mean of one run is."""
    field: str
    """The SPEC, or `(intercept)`: the mean if every number is 0 and every category has its reference level."""
    value: str | None
    """The level of a category, null for a number."""
    reference: str | None
    """The level that it is compared with."""
    n_value: int | None
    """Questions of that level, null for a number."""
    coefficient: float | None
    """On the metric's scale, with all other fields held fixed."""
    se: float | None
    """CR2 standard error, clustered if the questions are, null if the clusters cannot determine it."""
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
    """Satterthwaite's, of this coefficient."""
    statistic: float | None
    p_value: float | None
    p_adjusted: float | None
    """Over all coefficients that are shown, but the intercepts."""
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Measured):
    """One regression: of the question means of a run, or of the differences of two."""

    model_a: str
    model_b: str | None
    higher_is_better: bool | None
    n_questions: int
    n_left_out: int
    """Questions that lack a value of one of the fields."""
    n_clusters: int
    cluster: str | None
    weighted: bool
    """True if questions with more answers have more weight: 1/(ω² + σ²/k)."""
    r2: float | None
    """Share of the variance between question means, their own noise included, that the fields explain."""
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Regression(Document):
    """Regressions of question means, or of differences, on properties of the questions."""

    renderers: ClassVar[Mapping[str, str]] = {
        "summary": "harness_noise.report.regression:of_regression",
    }
    kind: ClassVar[str] = "coefficients"
    always: ClassVar[tuple[str, ...]] = ("coefficients", "fits", "notes")

    settings: Mapping[str, Any]
    coefficients: tuple[Coefficient, ...]
    fits: tuple[Fit, ...]
    notes: tuple[Note, ...] = ()
    """Hints and warnings, each with a code for programs and a sentence for a person."""


@dataclass(frozen=True, slots=True)
class FactorRow:
    """One source of noise."""

    factor: str
    """question, a labelled factor, `question × factor`, or residual."""
    var: float | None
    """Variance component per answer, raw, so it may be negative, null if it cannot be estimated."""
    var_low: float | None
    """Lower limit of the component's 95% confidence interval, which holds the raw `var`, null if unknown."""
    var_high: float | None
    share: float | None
    """Share of the sum of all estimated components, with negative ones counted as 0."""
    df: float
    """Levels − 1, or for the residual answers − cells."""
    levels: int
    se: float | None
    """Its part of the standard error of the mean of all these answers, √."""
    gain: float | None
    """Share by which `more` further answers (1,000) on new levels lower the variance of the mean, or null.

    null if a factor with fewer than five levels leaves it unknown.
    """
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePair(Measured):
    """Two judges of the same answers, or all of them."""

    model: str
    run: str
    judge_a: str
    """The scorer, or "all" for all judges together, which have only an agreement."""
    judge_b: str | None
    n_questions: int
    n_answers: int
    """Answers that both have graded. For all judges, answers that at least two have graded."""
    agreement: float
    """Chance that two judges give one answer the same verdict."""
    agreement_se: float | None
    """CR2 standard error, clustered as the questions are, as is `ac1_se`."""
    ac1: float | None
    """Gwet's AC1: agreement beyond chance. null if all verdicts are the same, or more than 20 are different."""
    ac1_se: float | None
    diff: float | None = None
    """Mean of A − mean of B on the same answers."""
    se: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    level: float | None = None
    df: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    """Holm, over all pairs of judges that are shown."""
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Factors(Document):
    """Noise by factor, and where the next thousand answers help most."""

    renderers: ClassVar[Mapping[str, str]] = {
        "summary": "harness_noise.report.regression:of_factors",
    }
    kind: ClassVar[str] = "factors"
    always: ClassVar[tuple[str, ...]] = ("n_answers", "mean", "factors", "advice", "notes")
    if_any: ClassVar[tuple[str, ...]] = ("judges",)

    n_answers: int
    mean: float
    factors: tuple[FactorRow, ...]
    advice: str
    notes: tuple[Note, ...] = ()
    """Notes on factors about which little is known, one sentence each."""
    judges: tuple[JudgePair, ...] = ()
    """Agreement of pairs of judges, if the scorer is a factor."""

    shows_notes: ClassVar[bool] = True
    """Its tables say the notes themselves."""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One answer to be labelled. The columns of the file."""

    answer_id: str
    """A hash in place of the answer's model, repeat and task, if the file does not show the model."""
    task: str
    question: str
    """The run's name of the question."""
    repeat: int
    """The number of its answer, from 1."""
    text: str | None
    """The whole question, null if the run does not have it."""
    target: str | None
    """The answer that is right."""
    answer: str | None
    """The model's."""
    label: None
    """To be filled in."""
    chance: float
    """Probability with which the question was drawn."""
    seed: int
    """Seed of the drawing."""
    model: str | None = None
    """Null where the file is blind."""
    score: float | None = None
    """The judge's score, null if the file is blind."""


@dataclass(frozen=True, slots=True, repr=False)
class LabelSample(Document):
    """A random part of the answers of a run, or of several, to be labelled by people."""

    kind: ClassVar[str] = "rows"
    always: ClassVar[tuple[str, ...]] = ("rows", "notes")

    rows: tuple[LabelRow, ...]
    blind: bool = True
    """True if model and score are left out."""
    notes: tuple[Note, ...] = ()
    """Hints for a person, one sentence each."""
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<LabelSample: {counted(len(self.rows), 'answer')} to label>"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file."""
        names = tuple(LabelRow.__dataclass_fields__)
        return names[:-2] if self.blind else names
