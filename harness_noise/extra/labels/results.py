"""Results of `label_sample`: answers to be labelled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...data.notes import Note
from ...errors import counted
from ...results.forms import Document


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
    """A random subset of the answers of a run, or of several, to be labelled by people."""

    kind: ClassVar[str] = "rows"
    always: ClassVar[tuple[str, ...]] = ("rows", "notes")

    rows: tuple[LabelRow, ...]
    blind: bool = True
    """True if model and score are left out."""
    notes: tuple[Note, ...] = ()
    """Hints for a person, one sentence each."""
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<LabelSample: {self.verdict}>"

    def __str__(self) -> str:
        return self.verdict

    def _repr_html_(self) -> str:
        return self.verdict

    @property
    def verdict(self) -> str:
        """How many answers it has. The answers are `rows`, and `to_frame()`."""
        return f"{counted(len(self.rows), 'answer')} to label"

    @property
    def sentence(self) -> str:
        """The verdict. Nothing else is to be said of answers without labels."""
        return self.verdict

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file."""
        names = tuple(LabelRow.__dataclass_fields__)
        return names[:-2] if self.blind else names
