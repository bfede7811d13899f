"""Results of `label_sample`: answers to be labelled. Diagnostics of rows that labels correct."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ...data.notes import Note
from ...errors import counted
from ...results.diagnostics import Diagnostic, Severity, register
from ...results.forms import Document

FEW_LABELLED = 20
"""Labelled questions (clusters) below which the standard error of a corrected mean is said to come from few."""
FEWEST_FAILED = 5
"""Labelled questions (clusters) that hold a failure, or a pass, below which a judge's scores are not corrected."""

register(
    Diagnostic(
        "judge_corrected",
        Severity.NOTE,
        "the estimate is of the mean that people would give: their labels of a random subset of the answers correct "
        "the judge, and the standard error counts them",
        "Report it as such, with the number of labels and the judge's bias.",
        page=(
            "[Human labels](methods/judges.md) of a random subset of the answers correct the judge's scores "
            "(`--labels`). The estimate is of the mean that people would give. Standard error, degrees of freedom and"
            " interval count the few labels as well as the many answers. `judge` has the judge's own mean, its bias "
            "with a standard error, and the gain against the labels alone."
        ),
    ),
    Diagnostic(
        "few_labels",
        Severity.CARE,
        f"fewer than {FEW_LABELLED} questions (clusters) have a label: the standard error is itself uncertain",
        "Label more questions.",
        page=(
            "Fewer than 20 questions (clusters) have a label, so that the standard error of the corrected mean is "
            "itself uncertain."
        ),
    ),
    Diagnostic(
        "few_labelled_failures",
        Severity.CARE,
        f"fewer than {FEWEST_FAILED} labelled questions (clusters) hold a failure, or a pass, so mean, SE and interval "
        "are those of the labels alone: near an end of the range a corrected mean is less reliable",
        "Label more questions. The judge's bias is shown next to the mean.",
        page=(
            "Fewer than 5 labelled questions (clusters) hold a failure, or fewer than 5 hold a pass. The corrected "
            "mean is then less reliable (with one or two failures its interval is often too short), so mean, SE and "
            "interval are those of the labels alone. The judge's bias is still shown."
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One answer to be labelled. The columns of the file."""

    answer_id: str
    """A hash in place of the answer's model, repeat and task, if the file does not show the model."""
    task: str
    question: str
    """The run's name of the question."""
    repeat: int | str
    """The run's own name or number of its answer. Where a run has none, all are numbered from 1."""
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
        """The verdict of the sample: how many answers are to be labelled.

        The answers are `rows`, and `to_frame()`.
        """
        return f"{counted(len(self.rows), 'answer')} to label"

    @property
    def sentence(self) -> str:
        """The verdict, as the sentence for a paper: how many answers are to be labelled."""
        return self.verdict

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file to label, without the model and the score if it is blind."""
        names = tuple(LabelRow.__dataclass_fields__)
        return names[:-2] if self.blind else names
