"""The result of `explain`: what goes with a score, or with a difference, question by question."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .._version import __version__
from .display import Shown
from .forms import SCHEMA_VERSION, frame, row

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

INTERCEPT = "(intercept)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """What one unit of a number, or one level of a category against another, goes with."""

    task: str
    metric: str
    scorer: str
    model_a: str
    model_b: str | None
    """null: the mean of one run is explained; else A − B."""
    field: str
    """The SPEC; `(intercept)`: the mean where every number is 0 and every category has its reference level."""
    value: str | None
    """The level of a category; null for a number."""
    reference: str | None
    """The level that it is compared with."""
    n_value: int | None
    """Questions of that level; null for a number."""
    coefficient: float | None
    """On the metric's scale, with all other fields held fixed."""
    se: float | None
    """CR2, clustered where the questions are; null where the clusters cannot tell it."""
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
class Fit:
    """One regression: of the question means of a run, or of the differences of two."""

    task: str
    metric: str
    scorer: str
    model_a: str
    model_b: str | None
    higher_is_better: bool | None
    n_questions: int
    n_left_out: int
    """Questions that lack a value of one of the fields."""
    n_clusters: int
    cluster: str | None
    weighted: bool
    """Whether questions with more answers count more: 1/(ω² + σ²/k)."""
    r2: float | None
    """Share of the variance between question means, their own noise included, that goes with the fields."""
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation(Shown):
    """Regressions of question means, or of differences, on properties of the questions."""

    kind: ClassVar[str] = "coefficients"

    settings: Mapping[str, Any]
    coefficients: tuple[Coefficient, ...]
    fits: tuple[Fit, ...]
    notes: tuple[str, ...] = ()
    """Hints and warnings for a person, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "harness_noise_version": __version__,
            "settings": dict(self.settings),
            "coefficients": [row(item) for item in self.coefficients],
            "fits": [row(item) for item in self.fits],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pd.DataFrame:
        """One line per coefficient; what is not identified is NaN, diagnostics are joined by a space."""
        return frame(row(item) | {"diagnostics": " ".join(item.diagnostics)} for item in self.coefficients)
