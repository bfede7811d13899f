"""Error bars for LLM evaluations: `read`, `analyze`, `compare`, and the kernel on plain arrays.

Importing this package loads neither numpy nor a harness; the functions do, when they are called.
"""

from __future__ import annotations

from ._version import __version__
from .errors import InputError

TYPE_CHECKING = False  # importing typing would take longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from .analysis import estimate
    from .api import analyze, arena, compare, read
    from .arena_results import Arena
    from .comparison import estimate_difference
    from .planning import plan
    from .results import Analysis, Comparison, Difference, Estimate, Plan
    from .scores import Questions, Run, Scores
    from .settings import Settings

_HOME = {
    "analyze": "api", "arena": "api", "compare": "api", "read": "api",
    "estimate": "analysis", "estimate_difference": "comparison", "plan": "planning",
    "Analysis": "results", "Arena": "arena_results", "Comparison": "results", "Difference": "results",
    "Estimate": "results", "Plan": "results",
    "Questions": "scores", "Run": "scores", "Scores": "scores", "Settings": "settings",
}  # fmt: skip

__all__ = [
    "Analysis",
    "Arena",
    "Comparison",
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
    "compare",
    "estimate",
    "estimate_difference",
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
