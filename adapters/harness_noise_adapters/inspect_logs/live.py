"""A task of a live run whose flag is on."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_noise.results.rows import Estimate

from .flags import Flag
from .records import Faults, Header, header_of

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalScore, EvalSpec
    from inspect_ai.scorer import Score


class Logged(NamedTuple):
    """The parts of an answer in the log that a cancelled run needs, as Inspect's objects."""

    sample: int | str
    metadata: dict[str, Any]
    scores: Mapping[str, Score]


@dataclass(slots=True)
class Live:
    """One task of a run whose flag is on."""

    spec: EvalSpec
    flag: Flag
    done: bool = False
    """True if its results have passed our wrapper, or our public hook has run."""
    warnings: list[str] = field(default_factory=list)
    """Warnings about the last results. Earlier results were of an unfinished task."""
    to_say: list[str] = field(default_factory=list)
    """Sentences of other parts about the task, whatever becomes of its results."""
    placed: list[tuple[Estimate, EvalScore]] = field(default_factory=list)
    """Our means and Inspect's EvalScores, for the closing lines of the run."""
    results: EvalResults | None = None
    """The results that Inspect's own panel is going to show."""
    logged: dict[tuple[str, int], Logged] = field(default_factory=dict)
    """(id, epoch) → the logged scores of an answer. The results of a cancelled run lack some of them."""
    stopper: Any = None
    """The control that may end the task before everything is asked."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """Sample id → cluster, as a log that is scored again has held them."""
    location: str = ""
    """The path or URL of the task's log, known when the task has ended."""

    def header(self, **values: Any) -> Header:
        """Return the header of the running task's log, from its spec and these top-level values."""
        return header_of({"eval": self.spec.model_dump(), **values}, Faults())


current: ContextVar[Live | None] = ContextVar("harness_noise_live", default=None)
"""The task in whose context this runs."""
