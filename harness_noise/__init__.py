"""Error bars for LLM evaluations: `read`, `analyze`, `compare`, and the kernel on plain arrays.

Importing this package loads neither numpy nor a harness; the functions do, when they are called.
"""

from __future__ import annotations

from ._version import __version__
from .errors import InputError

TYPE_CHECKING = False  # importing typing would take longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from .analysis.sample import as_scores
    from .api.arrays import combine, estimate, estimate_difference, pass_at_k
    from .api.files import Exported, adapters, export, write_figures, write_html
    from .api.keywords import Choices
    from .api.runs import analyze, compare, read
    from .data.clusters import Fields
    from .data.questions import Questions
    from .data.scores import CorpusScores, Group, Run, Scores
    from .extra.arena.api import arena, profiles, write_profile
    from .extra.arena.profiles import NamedProfile, Profile
    from .extra.arena.results import Arena
    from .extra.arena.tables import write_tables
    from .extra.factors.api import factor_noise, factors
    from .extra.factors.results import Factors
    from .extra.gate.api import gate
    from .extra.gate.results import Gate, GateRow
    from .extra.labels.api import estimate_with_labels, label_sample
    from .extra.labels.results import LabelSample
    from .extra.plan.api import plan
    from .extra.plan.results import Plan
    from .extra.regress.api import regress
    from .extra.regress.results import Regression
    from .extra.stopping.api import boundaries, compare_in_sequence, estimate_from_part
    from .report.text import render
    from .results.rows import Analysis, Comparison, ConfidenceInterval, Difference, Estimate
    from .settings import Settings

_HOME = {
    "api.runs": "analyze compare read",
    "api.files": "Exported adapters export write_figures write_html",
    "api.keywords": "Choices",
    "report.text": "render",
    "api.arrays": "combine estimate estimate_difference pass_at_k",
    "analysis.sample": "as_scores",
    "results.rows": "Analysis Comparison ConfidenceInterval Difference Estimate",
    "data.questions": "Questions",
    "data.scores": "CorpusScores Group Run Scores",
    "data.clusters": "Fields",
    "settings": "Settings",
}
"""Module → the public names in it."""

__all__ = [
    "Analysis",
    "Arena",
    "Choices",
    "Comparison",
    "ConfidenceInterval",
    "CorpusScores",
    "Difference",
    "Estimate",
    "Exported",
    "Factors",
    "Fields",
    "Gate",
    "GateRow",
    "Group",
    "InputError",
    "LabelSample",
    "NamedProfile",
    "Plan",
    "Profile",
    "Questions",
    "Regression",
    "Run",
    "Scores",
    "Settings",
    "__version__",
    "adapters",
    "analyze",
    "arena",
    "as_scores",
    "boundaries",
    "combine",
    "compare",
    "compare_in_sequence",
    "estimate",
    "estimate_difference",
    "estimate_from_part",
    "estimate_with_labels",
    "export",
    "factor_noise",
    "factors",
    "gate",
    "label_sample",
    "pass_at_k",
    "plan",
    "profiles",
    "read",
    "regress",
    "render",
    "write_figures",
    "write_html",
    "write_profile",
    "write_tables",
]


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOME.items() if name in names.split()), None)
    if home is not None:
        from importlib import import_module

        return globals().setdefault(name, getattr(import_module(f".{home}", __name__), name))
    from .errors import is_now
    from .extras import not_installed, public

    if (found := None if name.startswith("_") else public(name)) is not None:
        return found
    if name in __all__:
        raise AttributeError(not_installed(name))
    raise AttributeError(is_now(name) or f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from .extras import found

    return sorted({*__all__, *(name for extra in found().values() for name in extra.functions)})
