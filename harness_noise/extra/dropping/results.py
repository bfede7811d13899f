"""Results of looks at many models, of which some are no longer asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...data.notes import Note
from ...data.scores import Measured
from ...results.forms import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedModel(Measured):
    """One model at the last look that it was part of."""

    model: str
    higher_is_better: bool | None
    n_questions: int
    """Questions of that look: those that all models had answered that were left."""
    n_total: int
    """Questions that are asked at most."""
    n_answers: int
    """Its answers to them."""
    asked: float
    """Share of the questions that it had been asked, of repeated questions of the answers."""
    mean: float
    """Over the questions of its last look. Means of different looks are not compared."""
    behind: str | None
    """The model with the best mean of that look, null for that model itself."""
    diff: float
    """Its mean minus that model's, median-unbiased if it was dropped."""
    diff_low: float | None
    """Limits of `diff`: stage-wise if it was dropped, else those of repeated looks."""
    diff_high: float | None
    level: float
    """Coverage of the limits, 1 − 2(1 − level)/(M − 1) for a family of M models."""
    dropped_at: int | None
    """The look at which it was dropped, null if it goes on."""
    goes_on: bool


@dataclass(frozen=True, slots=True, repr=False)
class Dropping(Document):
    """The result of looks at many models: which need no more answers, and which go on."""

    renderers: ClassVar[Mapping[str, str]] = {"summary": "harness_noise.extra.dropping.report:of_dropping"}
    kind: ClassVar[str] = "models"
    always: ClassVar[tuple[str, ...]] = ("models", "look", "looks", "share_asked", "next_steps", "notes")

    settings: Mapping[str, Any]
    models: tuple[LookedModel, ...]
    """The models that go on, the best first, then the dropped ones, the last one first."""
    look: int
    """Looks that were taken."""
    looks: int
    """Looks that were planned."""
    share_asked: float
    """Answers that were asked up to the last look, as a share of what all models together would have been asked."""
    next_steps: tuple[str, ...] = ()
    """What to do next, a command or a sentence in each line."""
    notes: tuple[Note, ...] = ()
