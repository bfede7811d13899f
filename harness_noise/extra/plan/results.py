"""The result of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...data.notes import Note
from ...results.forms import Document, document, row
from ...results.parts import Replay
from .stats import LabelPlan, Spending


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The smallest difference that a design detects with the plan's power."""

    n_questions: int
    repeats: int
    mde: float


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """All that a plan answers at one K: questions for the effect, or the effect or the power for the questions."""

    repeats: int
    n_questions: int
    n_clusters: int | None
    n_answers: int
    """Answers that each model gives, questions × K."""
    effect: float
    power: float
    cost: float | None


@dataclass(frozen=True, slots=True)
class TaskRepeats:
    """The number of answers to each question of one task, as the best spread has it."""

    task: str
    n_questions: int
    repeats: int
    share: float
    """Share of the prediction noise, at one answer each, that is this task's."""


@dataclass(frozen=True, slots=True)
class TheoryRow:
    """A plan by one theory, from the accuracy alone."""

    theory: str
    variance: float
    """Var[A − B] per question, at one answer each."""
    n_questions: int
    mde: float


@dataclass(frozen=True, slots=True)
class PlugIn:
    """A plan that takes a pilot's estimate of ω² as true."""

    n_questions: int
    n_clusters: int | None
    effect: float
    power: float
    mde: float
    variance: float
    df: float
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLooks:
    """The effect of looks before the end on a plan."""

    looks: int | str
    """Looks, or anytime."""
    boundaries: tuple[float, ...]
    """Critical |z| at each."""
    n_fixed: int
    """Questions of the plan without looks."""
    n_max: int
    """The most questions that are asked."""
    power: float
    n_expected_none: float
    """Questions on average where nothing differs."""
    n_expected_effect: float
    """… at the plan's effect."""
    n_expected_double: float
    """… at twice the effect."""
    replay: Replay | None = None
    """The two runs of the pilot compared again in random orders, null without two runs."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Document):
    """A design that finds `effect` with `power`, and what other designs would find."""

    under: ClassVar[str] = "plan"
    renderers: ClassVar[Mapping[str, str]] = {
        "summary": "harness_noise.extra.plan.report:summarise",
        "pictures": "harness_noise.extra.plan.report:pictures",
        "figures": "harness_noise.extra.plan.report:draw",
    }
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
    """The smallest difference that n_questions and repeats detect with `power`.

    If the power itself was asked for, with 80%, as in `table`.
    """
    df: float
    """Degrees of freedom of the planned design: n − 1, or those of its clusters."""
    n_clusters: int | None
    """Clusters of the size seen that n_questions fill, null without clusters."""
    cluster_size: float | None
    """Questions per cluster."""
    variance: float
    """Variance per question of the contrast at `repeats` answers that the plan starts from."""
    omega2: float | None
    """Data variance per question of the contrast, with its design effect, raw as estimated or given, or null.

    null if only its sum with the prediction noise is known.
    """
    omega2_upper: float | None
    """The upper confidence limit of ω², from which the plan starts, null if ω² was not estimated."""
    sigma2_a: float | None
    """Prediction variance of one answer, null if it is not known apart from ω²."""
    sigma2_b: float | None
    design_effect: float | None
    """Design effect of clusters that the given variances do not include, computed from `icc` if that was given."""
    icc: float | None
    """Intraclass correlation of the questions' differences within a cluster, where it was given."""
    best_repeats: int | None
    """The K that makes the variance smallest for a budget, null without costs."""
    cost: float | None
    """Total cost of all questions and all answers of all models."""
    table: tuple[PlanRow, ...]
    answers: tuple[PlanAnswer, ...]
    """The answer at each K, only one row if the gain of more answers is unknown."""
    pilot_repeats: int | None
    """Answers per question of the pilot, K, or null.

    null without a pilot, or if K differs between its runs or questions.
    """
    basis: str
    """Source of the noise: omega2, from, accuracy, reference."""
    compared: str
    """The planned comparison: A − B of two runs, one mean against a number, or two runs like one."""
    assurance: float | None = None
    """The level of `omega2_upper`: the share of such pilots whose plan has the power."""
    plug_in: PlugIn | None = None
    """The plan from the estimate itself, null without a pilot, or if its ω² is not above 0."""
    theory: tuple[TheoryRow, ...] = ()
    """The three theories side by side, where only the accuracy is given."""
    sequential: PlanLooks | None = None
    """The effect of looks before the end, null if they were not asked for."""
    by_task: tuple[TaskRepeats, ...] = ()
    """The best spread of `answers` over the tasks, if it was asked for. All tasks could have `repeats`."""
    mde_by_task: float | None = None
    """The `mde` with the answers so spread."""
    judge: Spending | None = None
    """The gain of another judge call, null without its cost."""
    labels: LabelPlan | None = None
    """The number of judged questions that people must label, null without a judge to correct."""
    diagnostics: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    """Notes on the comparison, its units and the trust in the pilot, one sentence each."""
    _zero_one: bool | None = field(default=None, repr=False, compare=False)
    """As of rows (`Measured`): differences are shown in points."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as the JSON object that `--format json` prints."""
        return document({}, plan=row(self))
