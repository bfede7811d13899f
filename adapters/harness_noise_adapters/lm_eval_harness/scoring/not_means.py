"""The metrics that lm-eval makes from all questions at once, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[[list[Any]], float]

_UNCHANGED = "perplexity", "weighted_perplexity", "bits_per_byte", "matthews_corrcoef", "bleu", "chrf", "ter", "median"
REGISTERED = {name: name for name in _UNCHANGED} | {"f1": "f1_score", "chrf++": "chrfpp"}
"""lm-eval's own aggregations that are not means: their names in a task → in its code."""
PAIR_METRICS = frozenset(("f1", "f1_score", "span_f1", "macro_f1", "f1_macro", "micro_f1", "f1_micro", "weighted_f1"))
"""Names under which pairs of what is right and was said are logged."""


def is_registered(name: str | None) -> bool:
    """Return True if this is one of lm-eval's own aggregations that is not a mean."""
    return name in REGISTERED


def default_of(metric: str) -> str | None:
    """Return the aggregation of an lm-eval metric if a task names none. None if it is a mean."""
    if metric in ("word_perplexity", "byte_perplexity"):
        return "weighted_perplexity"
    name = "matthews_corrcoef" if metric == "mcc" else metric
    return name if is_registered(name) else None
