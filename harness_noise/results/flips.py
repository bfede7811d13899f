"""Questions on which two runs differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flip:
    """A question on which two runs disagree."""

    task: str
    metric: str
    scorer: str
    model_a: str
    model_b: str
    question: str
    """What the harness calls it."""
    text: str | None
    """The whole question, where the log has it."""
    cluster: str | None
    mean_a: float
    mean_b: float
    diff: float
    target: str | None = None
    """The answer that is right."""
    answers_a: tuple[str, ...] = ()
    """All of A's, in the order of its repeats."""
    answers_b: tuple[str, ...] = ()
    """All of B's."""
