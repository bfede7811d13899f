"""Error bars for LLM evaluations: `read`, `analyze`, `compare`, and the kernel on plain arrays.

Importing this package loads neither numpy nor a harness; the functions do, when they are called.
"""

from __future__ import annotations

from ._version import __version__
from .errors import InputError
from .results.display import RENDERERS

TYPE_CHECKING = False  # importing typing would take longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from .analysis.comparison import estimate_difference
    from .analysis.explain import explain
    from .analysis.mean import estimate
    from .analysis.partial import estimate_from_part
    from .analysis.plan import plan
    from .analysis.replay import boundaries, compare_in_sequence
    from .api import analyze, arena, compare, read
    from .data.questions import Questions
    from .data.scores import Run, Scores
    from .results.arena import Arena
    from .results.plan import Plan
    from .results.rows import Analysis, Comparison, ConfidenceInterval, Difference, Estimate
    from .settings import Settings

RENDERERS.update(
    rich="harness_noise.report.terminal:render",
    text="harness_noise.report.terminal:text",
    html="harness_noise.report.html:fragment",
)

_HOME = {
    "analyze": "api", "arena": "api", "compare": "api", "read": "api",
    "boundaries": "analysis.replay", "compare_in_sequence": "analysis.replay",
    "estimate_from_part": "analysis.partial", "explain": "analysis.explain",
    "estimate": "analysis.mean", "estimate_difference": "analysis.comparison", "plan": "analysis.plan",
    "Analysis": "results.rows", "Arena": "results.arena", "Comparison": "results.rows",
    "ConfidenceInterval": "results.rows",
    "Difference": "results.rows", "Estimate": "results.rows", "Plan": "results.plan",
    "Questions": "data.scores", "Run": "data.scores", "Scores": "data.scores", "Settings": "settings",
}  # fmt: skip

__all__ = [
    "Analysis",
    "Arena",
    "Comparison",
    "ConfidenceInterval",
    "Difference",
    "Estimate",
    "InputError",
    "Plan",
    "Questions",
    "Run",
    "Scores",
    "Settings",
    "__version__",
    "analyze",
    "arena",
    "boundaries",
    "compare",
    "compare_in_sequence",
    "estimate",
    "estimate_difference",
    "estimate_from_part",
    "explain",
    "plan",
    "read",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
