"""Results of `regress`: scores by properties of the questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...data.notes import Note
from ...data.scores import Measured
from ...results.diagnostics import Diagnostic, Severity, register
from ...results.forms import Document
from ...stats.tolerances import FEWEST_DF

INTERCEPT = "(intercept)"

register(
    Diagnostic(
        "few_df",
        Severity.STOP,
        f"fewer than {FEWEST_DF:g} degrees of freedom: neither p nor the interval is reliable",
        "Take a coarser field, or questions in more clusters.",
        page=("A coefficient of `regress` with fewer than four degrees of freedom."),
    ),
    Diagnostic(
        "rare_category",
        Severity.STOP,
        "so few questions show how scores vary inside the category, or inside the one that it is compared with, that "
        "its standard error may be far too small",
        "Merge the category with another, or do not read its interval.",
        page=(
            "A category of `regress` with too few varying scores to estimate its noise: (Σe²)²/Σe⁴ of its residuals "
            "(with clusters: of their sums) is below 3, in it or in the category that it is compared with. Four "
            "questions that are all right show no spread, so the standard error is too small; [a "
            "simulation](methods/coverage-weak.md#a-rare-category-in-regress) shows by how much."
        ),
    ),
)


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
    """One regression of a run's question means, or of the differences of two runs."""

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
        "summary": "harness_noise.extra.regress.report:of_regression",
    }
    kind: ClassVar[str] = "coefficients"
    always: ClassVar[tuple[str, ...]] = ("coefficients", "fits", "notes")

    settings: Mapping[str, Any]
    coefficients: tuple[Coefficient, ...]
    fits: tuple[Fit, ...]
    notes: tuple[Note, ...] = ()
    """Hints and warnings, each with a code for programs and a sentence for a person."""
