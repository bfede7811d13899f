"""The labels that people gave to answers, as a file has them."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

EDITS = "edits"
"""In place of a scorer's name: the scores that people have edited."""


@dataclass(frozen=True, slots=True)
class Label:
    """One row of a label file that holds a label."""

    question: str
    value: float
    line: int
    task: str | None = None
    model: str | None = None
    """The model, or the name of its run."""
    repeat: str | None = None
    """The labelled answer of the question, None for the question as a whole."""
    person: str | None = None
    answer_id: str | None = None
    """The hash that `answer_id` made of model, task, question and repeat, if the file does not name the model."""
    chance: float | None = None
    """Probability with which the question was drawn, None if the file does not give it."""


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The labels of one file."""

    name: str
    labels: tuple[Label, ...]
    empty: tuple[Label, ...] = ()
    """Rows without a label, whose value is NaN."""

    @property
    def n_empty(self) -> int:
        """Number of rows in the label file whose label is still empty."""
        return len(self.empty)


def answer_id(model: str, task: str, question: str, repeat: int) -> str:
    """Return a hash that identifies an answer in label files that do not show its model."""
    text = "\x1f".join((model, task, question, str(repeat)))
    # a letter no number begins with: spreadsheets would round 123e456 and sixteen digits
    return "a" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
