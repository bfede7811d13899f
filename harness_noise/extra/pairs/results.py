"""Results of verdicts on pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...data.notes import Note
from ...data.scores import Measured
from ...results.diagnostics import Diagnostic, Severity, register
from ...results.forms import Document

ONE_ORDER, LEFT_OUT, SEPARATED, TOO_FEW = "one_order", "one_order_left_out", "separated", "too_few_to_rank"
register(
    Diagnostic(
        ONE_ORDER,
        Severity.CARE,
        "every question was judged in one order only: the win rate and the effect of the position cannot be told apart",
        "Judge every question in both orders.",
        page=(
            "No question was judged in both orders. A model may win because its answer is shown first, and these "
            "verdicts cannot tell."
        ),
    ),
    Diagnostic(
        LEFT_OUT,
        Severity.NOTE,
        "questions that were judged in one order only, while others were in both, are left out and counted",
        "Judge them in the other order, too.",
        page=(
            "Questions that were judged in one order, while others were judged in both, are left out and counted "
            "(`n_left_out`): with them the effect of the position does not cancel."
        ),
    ),
    Diagnostic(
        SEPARATED,
        Severity.STOP,
        "the model took no point from the others, or lost none, at least without one cluster: its strength is infinite",
        "Use its win rate, or judge more questions, until it wins some and loses some against the others.",
        page=(
            "Bradley–Terry strengths exist only if a chain of points taken leads from each model to each other one, in "
            "the whole table and without any one cluster. The model is outside the largest such part: its strength is "
            "null. Its win rate is shown."
        ),
    ),
    Diagnostic(
        TOO_FEW,
        Severity.STOP,
        "fewer than five clusters: strengths have no error, and there are no ranks",
        "Judge more questions.",
        page="Fewer than five questions (clusters) are too few for a jackknife, so strengths and ranks are null.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdicts(Measured):
    """The verdicts on A against B: A's share of the points, a tie being half."""

    model_a: str
    model_b: str
    n_questions: int
    """Questions that count."""
    n_clusters: int
    n_verdicts: int
    """Verdicts on them."""
    n_left_out: int
    """Questions that were judged in one order only, while others were in both."""
    win_rate: float
    """Mean points of A: the orders of a question are averaged first."""
    se: float | None
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
    p_value: float | None
    """Two-sided p of a win rate of ½, the sign test's if nothing varies."""
    p_adjusted: float | None
    """Over all pairs, Holm."""
    verdict: str
    """A better, B better, or not separable."""
    position_bias: float | None
    """Points of the answer that is shown first, less ½, null if no question was judged in both orders."""
    position_bias_se: float | None
    position_p_value: float | None
    """Two-sided, of no position bias."""
    turned: float | None
    """Share of questions that A wins in one order and B in the other."""
    tie_once: float | None
    """Share of questions with a tie in one order only."""
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStrength(Measured):
    """The Bradley–Terry strength of one of several models."""

    model: str
    win_rate: float
    """Mean of its points over all its questions with others."""
    strength: float | None
    """Bradley–Terry log-strength less the mean of all that have one: the log-odds of the judge's average question."""
    se: float | None
    """Jackknife by cluster, null if no cluster changes the strength."""
    rank_low: int | None
    """Best rank that it may have, all pairs right together."""
    rank_high: int | None
    beside: str | None
    """above or below all others that have a strength, where it has none."""
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class JudgedPairs(Document):
    """Verdicts of a judge on pairs of answers."""

    renderers: ClassVar[Mapping[str, str]] = {"summary": "harness_noise.extra.pairs.report:of_pairs"}
    kind: ClassVar[str] = "pairs"
    always: ClassVar[tuple[str, ...]] = ("pairs", "notes")
    if_any: ClassVar[tuple[str, ...]] = ("models",)

    settings: Mapping[str, Any]
    pairs: tuple[PairVerdicts, ...]
    models: tuple[ModelStrength, ...] = ()
    """The models by strength, if there are more than two."""
    notes: tuple[Note, ...] = ()
