"""All that each answer of a log cost: the usage of the evaluated model, without that of judges and other roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness_noise.data.measures import usage_of
from harness_noise.data.notes import Note
from harness_noise.data.scores import Scores, Usage
from harness_noise.io.measures import CACHED_USAGE

from .gather import TaskAnswers
from .records import Header

_TOKENS = {
    "output_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "reasoning_tokens": "reasoning_tokens",
    "input_tokens_cache_read": "cache_read_tokens",
    "input_tokens_cache_write": "cache_write_tokens",
    "total_cost": "cost",
}
"""Inspect's name → ours, where they mean one thing."""


def with_usage(scores: Sequence[Scores], task: TaskAnswers, names: Sequence[str]) -> tuple[list[Scores], list[Note]]:
    """Return the scores of one answer each with its measures, and notes on other models in them.

    Args:
        scores: of the task.
        task: read with its usage.
        names: of the measures.
    """
    header, samples = task.log.header, [row.usage for row in task.log.answers.rows.values()]
    each = [_of_sample(sample, header, names) for sample in samples]
    counted = np.ones(len(each), dtype=np.bool_) if task.excluded is None else ~task.excluded
    codes = (CACHED_USAGE,) if header.cached else ()
    usage = {}
    for name in names:
        values = [measures[name] for measures in each]
        column = np.array([np.nan if isinstance(value, str) else value for value in values])
        missing = Counter(
            value for value, counts in zip(values, counted, strict=True) if counts and isinstance(value, str)
        )
        usage[name] = Usage(task.grid.fill(np.where(counted, column, np.nan)), missing, codes)
    shape = (len(task.grid.keys), task.grid.repeats)
    measured = [replace(part, usage=usage) if part.values.shape == shape else part for part in scores]
    return measured, _notes(header, samples)


def _of_sample(sample: Mapping[str, Any], header: Header, names: Sequence[str]) -> dict[str, float | str]:
    """Return the measures of one answer, a number or a cause."""
    if sample.get("error"):  # it broke off, and has used less than an answer takes
        return dict.fromkeys(names, "error")
    model_usage = sample.get("model_usage")
    by_model = model_usage if isinstance(model_usage, dict) else {}
    tokens = _own_tokens(by_model, sample.get("role_usage"), header)
    metadata = sample.get("metadata")
    fields = dict(metadata) if isinstance(metadata, dict) else {}
    fields |= {"time": sample.get("total_time"), "working_time": sample.get("working_time")}
    fields |= tokens | {"message_count": sample.get("message_count"), "cached": header.cached and not by_model}
    return usage_of(fields, names, f"sample of {header.task}")


def _own_tokens(by_model: Mapping[str, Any], by_role: Any, header: Header) -> dict[str, Any]:
    """Return the evaluated model's usage, without calls in other roles, such as its own judge."""
    usage = by_model.get(header.model)
    if not isinstance(usage, dict):
        return {}
    roles = [
        used
        for role, used in (by_role.items() if isinstance(by_role, dict) else ())
        if isinstance(used, dict) and header.model_roles.get(role, header.model * (len(by_model) == 1)) == header.model
    ]
    out = _renamed(usage)
    for used in map(_renamed, roles):
        out = {name: _minus(value, used.get(name)) for name, value in out.items()}
    return out


def _renamed(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return one model's tokens with its whole input. Inspect's `input_tokens` leaves out what a provider's
    cache held."""
    out = {ours: usage.get(theirs) for theirs, ours in _TOKENS.items()}
    entire, output = usage.get("input_tokens"), usage.get("output_tokens")
    if isinstance(entire, (int, float)):
        cached = sum(out[name] or 0 for name in ("cache_read_tokens", "cache_write_tokens"))
        counted = usage.get("total_tokens") == entire + (output or 0) and cached <= entire
        entire += 0 if counted else cached
    return out | {"input_tokens": entire}


def _minus(value: Any, other: Any) -> Any:
    return value - other if isinstance(value, (int, float)) and isinstance(other, (int, float)) else value


def _notes(header: Header, samples: Iterable[Mapping[str, Any]]) -> list[Note]:
    """Return notes on usage of other models, which the measures leave out, and on calls that a cache may have
    answered."""
    others: Counter[str] = Counter()
    for sample in samples:
        model_usage = sample.get("model_usage")
        for model, usage in model_usage.items() if isinstance(model_usage, dict) else ():
            tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
            if model != header.model and isinstance(tokens, int):
                others[model] += tokens
    each = ", ".join(f"{model} {tokens:,}" for model, tokens in others.items())
    out = []
    if each:
        said = f"tokens and cost are those of {header.model}; not counted are those of {each}"
        out.append(Note("not_counted", said).of(header.task))
    if header.cached:
        said = (
            "the models were asked through a cache, and calls that it answered are in no usage: tokens, cost and times "
            "may be too low (cached_usage)"
        )
        out.append(Note(CACHED_USAGE, said).of(header.task))
    return out
