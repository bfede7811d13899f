"""The result of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .forms import Document, document, row
from .sequential import PlanLooks

if TYPE_CHECKING:
    from ..stats.planning import LabelPlan, Spending


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The smallest difference that a design detects with the plan's power."""

    n_questions: int
    repeats: int
    mde: float


@dataclass(frozen=True, slots=True)
class TaskRepeats:
    """How often to ask each question of one task."""

    task: str
    n_questions: int
    repeats: int
    share: float
    """Share of the prediction noise, at one answer each, that is this task's."""


@dataclass(frozen=True, slots=True)
class TheoryRow:
    """What one theory, from the accuracy alone, says of the same plan."""

    theory: str
    variance: float
    """Var[A − B] per question, at one answer each."""
    n_questions: int
    mde: float


@dataclass(frozen=True, slots=True)
class PlugIn:
    """What the same plan says if a pilot's estimate of ω² is taken for the truth."""

    n_questions: int
    n_clusters: int | None
    effect: float
    power: float
    mde: float
    variance: float
    df: float
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Document):
    """A design that finds `effect` with `power`, and what other designs would find."""

    kind: ClassVar[str] = "table"
    always: ClassVar[tuple[str, ...]] = ("table", "theory")
    shows_notes: ClassVar[bool] = True
    """Its tables say the notes themselves."""

    effect: float
    """The difference to be found, or the smallest that can be, on the metric's scale."""
    power: float
    alpha: float
    n_questions: int
    repeats: int
    """Answers per question, K."""
    mde: float
    """The smallest difference that n_questions and repeats detect with `power`; with 80 %, as in
    `table`, where the power itself was asked for."""
    df: float
    """Degrees of freedom of the planned design: n − 1, or those of its clusters."""
    n_clusters: int | None
    """Clusters of the size seen that n_questions fill; null where questions stand alone."""
    cluster_size: float | None
    """Questions per cluster."""
    variance: float
    """Variance per question of the contrast at `repeats` answers that the plan starts from."""
    omega2: float | None
    """Data variance per question of the contrast, with the design effect in it; raw, as estimated or given;
    null where only its sum with the prediction noise is known."""
    omega2_upper: float | None
    """The upper confidence limit of ω², from which the plan starts; null where ω² was not estimated."""
    sigma2_a: float | None
    """Prediction variance of one answer; null where it is not known apart from ω²."""
    sigma2_b: float | None
    design_effect: float | None
    """Design effect of clusters that the variances given do not include; from `icc` where that was given."""
    icc: float | None
    """Intraclass correlation of the questions' differences within a cluster, where it was given."""
    best_repeats: int | None
    """The K that makes the variance smallest for a budget; null without costs."""
    cost: float | None
    """Total cost of all questions and all answers of all models."""
    table: tuple[PlanRow, ...]
    basis: str
    """Where the noise comes from: omega2, from, accuracy, reference."""
    compared: str
    """What is compared: A − B of two runs, one mean against a number, or two runs like one."""
    assurance: float | None = None
    """The level of `omega2_upper`: the share of such pilots whose plan has the power."""
    plug_in: PlugIn | None = None
    """The answer of the estimate itself; null without a pilot, or where its ω² is not above 0."""
    theory: tuple[TheoryRow, ...] = ()
    """The three theories side by side, where only the accuracy is given."""
    sequential: PlanLooks | None = None
    """What looking before the end does to it; null where that was not asked for."""
    by_task: tuple[TaskRepeats, ...] = ()
    """How `answers` are best spread over the tasks, where that was asked; all of them could have `repeats`."""
    mde_by_task: float | None = None
    """What `mde` is with the answers so spread."""
    judge: Spending | None = None
    """What another judge call is worth; null without its cost."""
    labels: LabelPlan | None = None
    """How many of the judged questions people must label; null without a judge to correct."""
    diagnostics: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is compared, in what it is counted, and how far the pilot can be trusted; one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        return document({}, plan=row(self))
