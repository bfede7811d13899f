"""What is kept of a task while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness_noise.results.rows import Estimate

from .flags import Flag
from .stopper import Stopper

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults, EvalScore, EvalSpec
    from inspect_ai.scorer import SampleScore


@dataclass(slots=True)
class Live:
    """One task of a run whose flag is on."""

    spec: EvalSpec
    flag: Flag
    done: bool = False
    """Whether its results have passed through our wrapper, or the public way is behind it."""
    warnings: list[str] = field(default_factory=list)
    """What to say of the last results; earlier ones were of an unfinished task."""
    to_say: list[str] = field(default_factory=list)
    """What others have to say of the task, whatever becomes of its results."""
    told: list[tuple[Estimate, EvalScore]] = field(default_factory=list)
    """What the closing lines of the run are about: our means beside Inspect's own."""
    results: EvalResults | None = None
    """What Inspect's own panel is going to show."""
    logged: dict[tuple[str, int], Mapping[str, SampleScore]] = field(default_factory=dict)
    """By id and epoch, the scores of the answers in the log; of a cancelled run Inspect's results lack some."""
    usage: dict[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)
    """By id and epoch, what answers have used, where their measures are asked for."""
    stopper: Stopper | None = None
    """What may end it before everything is asked."""


current: ContextVar[Live | None] = ContextVar("harness_noise_live", default=None)
"""The task in whose context this runs."""


def current_stopper() -> Stopper | None:
    """What may end the task in whose context this runs."""
    live = current.get()
    return None if live is None else live.stopper
