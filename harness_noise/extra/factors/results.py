"""Results of `factors`: noise by source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ...data.notes import Note
from ...data.scores import Measured
from ...results.diagnostics import Diagnostic, Severity, register
from ...results.forms import Document

register(
    Diagnostic(
        "single_level",
        Severity.NOTE,
        "a factor with one level: how much it varies is not known",
        "Run it with several levels.",
        page=("A factor with one level (`factors`). Its variance cannot be estimated."),
    ),
    Diagnostic(
        "aliased_factor",
        Severity.CARE,
        "this factor and another one change together, so they cannot be separated",
        "Cross them: every level of one with several of the other.",
        page=("The design cannot tell this factor from another one: they change together (`factors`)."),
    ),
    Diagnostic(
        "negative_component",
        Severity.NOTE,
        "the estimate of this variance component is below 0 and counts as 0",
        "Nothing: it is smaller than the design can resolve.",
        page=("The unbiased estimate of this variance component is below 0 and counts as 0 in the shares (`factors`)."),
    ),
)


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
    """The agreement of two judges of the same answers, or of all judges."""

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
        "summary": "harness_noise.extra.factors.report:of_factors",
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
    _zero_one: bool = field(default=False, repr=False, compare=False)
    """The scores are 0 or 1: the mean is shown in per cent, standard errors in points."""
    judges: tuple[JudgePair, ...] = ()
    """Agreement of pairs of judges, if the scorer is a factor."""

    shows_notes: ClassVar[bool] = True
    """Its tables say the notes themselves."""
