"""The results: frozen, with the field names of the JSON output, in its order.

Field docstrings are the documentation of the JSON; `None` is "not identified", never zero. Means and
standard errors are on the metric's own scale.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .._version import __version__
from .display import Shown
from .forms import SCHEMA_VERSION, frame, row

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

    from ..stats.combine import Combined
    from .slices import DifferenceSlice, EstimateSlice, Heterogeneity


class _Row:
    """What one Estimate and one Difference share: they are shown as a table of one row."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The row as the JSON has it."""
        return row(self)  # type: ignore[arg-type]  # only the two dataclasses below exist

    def to_frame(self) -> pd.DataFrame:
        """One line, as in `Analysis.to_frame` and `Comparison.to_frame`."""
        return self._table().to_frame()

    def __rich__(self) -> RenderableType:
        return self._table().__rich__()

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> Analysis | Comparison:
        return Analysis({}, (self,)) if isinstance(self, Estimate) else Comparison({}, (self,))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(_Row):
    """One mean with its noise."""

    task: str
    metric: str
    scorer: str
    model: str
    run: str
    higher_is_better: bool | None
    n_questions: int
    n_clusters: int
    """Equal to n_questions where there are no clusters."""
    repeats_min: int
    repeats_max: int
    mean: float | None
    se: float | None
    """Standard error of `mean`, averaged over the repeats that were run."""
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
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
    design_effect: float | None
    n_effective: float | None
    icc: float | None
    estimator: str
    n_missing: int = 0
    """Answers that were asked for and have no score (errored, NaN); see `--missing`."""
    cluster: str | None = None
    """The cluster SPEC in words; null where questions are independent."""
    diagnostics: tuple[str, ...] = ()
    se_data_upper: float | None = None
    """One-sided 95 % upper limit of `se_data`; shown where the estimate is clipped at 0."""
    mean_if_missing_wrong: float | None = None
    """The mean if every missing answer were wrong (the worst of the range); null where none is missing."""
    mean_if_missing_right: float | None = None
    range: tuple[float, float] | None = None
    """Lowest and highest value that the metric can take, where that is declared or seen; null: unbounded."""
    estimand: str = "questions_population"
    """questions_population: the questions are a sample; these_questions: they are all there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(_Row):
    """A − B over the questions that both have answered."""

    task: str
    metric: str
    scorer: str
    higher_is_better: bool | None
    model_a: str
    model_b: str
    n_questions: int
    n_clusters: int
    n_only_a: int
    n_only_b: int
    repeats_a: int
    repeats_b: int
    mean_a: float | None
    mean_b: float | None
    diff: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
    statistic: float | None
    p_value: float | None
    p_adjusted: float | None
    """`p_value` adjusted over its family of rows; the verdict follows it."""
    test: str
    p_sign: float | None
    wins_a: float | None
    """Expected wins, over all pairs of answers; wins and ties sum to n_questions."""
    wins_b: float | None
    ties: float | None
    correlation: float | None
    se_unpaired: float | None
    se_total: float | None
    se_data: float | None
    se_prediction: float | None
    var_data: float | None
    var_prediction: float | None
    design_effect: float | None
    mde: float | None
    """The smallest difference that this comparison detects with 80 % power: noncentral t with its df."""
    verdict: str
    run_a: str = ""
    """Where A was read from: tells two runs of one model apart."""
    run_b: str = ""
    n_missing: int = 0
    cluster: str | None = None
    diagnostics: tuple[str, ...] = ()
    se_data_upper: float | None = None
    """One-sided 95 % upper limit of `se_data`; shown where the estimate is clipped at 0."""
    estimand: str = "questions_population"
    """As in an estimate."""
    interval: str = "t"
    """Whose interval it is: t, bootstrap, bonett-price, agresti-caffo; none. With `test` sign or permutation,
    which have none of their own, it is t's."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A question on which two runs disagree."""

    task: str
    metric: str
    scorer: str
    model_a: str
    model_b: str
    question: str
    text: str | None
    cluster: str | None
    mean_a: float
    mean_b: float
    diff: float


@dataclass(frozen=True, slots=True)
class _Table(Shown):
    """What Analysis and Comparison share: one object, several forms."""

    settings: Mapping[str, Any]

    kind: ClassVar[str]
    """The key of the rows in the JSON, and the attribute that holds them."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "harness_noise_version": __version__,
            "settings": dict(self.settings),
            self.kind: [row(item) for item in getattr(self, self.kind)],
            "notes": list(getattr(self, "notes", ())),
        } | {
            name: [row(item) for item in getattr(self, name)]
            for name in ("slices", "heterogeneity")
            if getattr(self, name, ())
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pd.DataFrame:
        """One line per row; what is not identified is NaN, diagnostics are joined by a space."""
        return frame(item | {"diagnostics": " ".join(item["diagnostics"])} for item in self.to_dict()[self.kind])


@dataclass(frozen=True, slots=True)
class Analysis(_Table):
    """The noise of every mean of one or several runs."""

    kind: ClassVar[str] = "estimates"

    estimates: tuple[Estimate, ...] = ()
    notes: tuple[str, ...] = ()
    """Hints and warnings for a person, one sentence each."""
    slices: tuple[EstimateSlice, ...] = ()
    """The same by slice of the questions, if that was asked for."""
    heterogeneity: tuple[Heterogeneity, ...] = ()
    """Whether the slices of each field differ at all."""


@dataclass(frozen=True, slots=True)
class Comparison(_Table):
    """A − B, for every task and metric that two runs share."""

    kind: ClassVar[str] = "comparisons"

    comparisons: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    """Hints and warnings for a person, one sentence each."""
    flips: tuple[Flip, ...] = ()
    """The questions that changed most, if they were asked for."""
    combined: tuple[Combined, ...] = ()
    """What all rows say together, if it was asked for."""
    families: tuple[str, ...] = ()
    """The family in which each row's p is adjusted: "" for groups and tasks outside any group, else the
    group whose subtask it is; not part of the JSON. Without any: one family."""
    slices: tuple[DifferenceSlice, ...] = ()
    """The same by slice of the questions, if that was asked for."""
    heterogeneity: tuple[Heterogeneity, ...] = ()
    """Whether the slices of each field differ at all."""

    def to_dict(self) -> dict[str, Any]:
        out = _Table.to_dict(self)
        if self.flips:
            out["questions"] = [row(item) for item in self.flips]
        if self.combined:
            out["combined"] = [asdict(item) for item in self.combined]
        return out
