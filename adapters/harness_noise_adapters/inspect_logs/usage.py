"""All that each answer of a log cost: the usage of the evaluated model, without that of judges and other roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness_noise.data.measures import numeric_fields, spellings, usage_of, usages
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
    """Return the scores, those of single answers with `usage` set (tokens, cost, time), and notes on what is excluded.

    Args:
        scores: of the task.
        task: read with its usage.
        names: of the measures.
    """
    header, samples = task.log.header, [row.usage for row in task.log.answers.rows.values()]
    each = _measured(samples, header, names)
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
    return measured, _usage_notes(header, samples)


def measurable(task: TaskAnswers) -> tuple[str, ...]:
    """Return the names of the measures that a log's first whole answer has, for a message."""
    whole = (row.usage for row in task.log.answers.rows.values() if not row.usage.get("error"))
    return tuple(numeric_fields(_fields(next(whole, {}), task.log.header)))


def _measured(samples: Sequence[Mapping[str, Any]], header: Header, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each answer {measure: value, or word for the cause of a missing one}."""
    where, wanted = f"sample of {header.task}", spellings(names)
    if any("." in name for name in names):
        out = [usage_of(_fields(sample, header), names, where) for sample in samples]
    else:
        rows = [_fields(sample, header, {*wanted}) for sample in samples]
        columns = {name: [row.get(name) for row in rows] for name in wanted}
        columns = {name: column for name, column in columns.items() if column.count(None) < len(rows)}
        out = usages(columns, len(rows), names, where, [0] * len(rows), [""] * len(rows))
    for i, sample in enumerate(samples):
        if sample.get("error"):  # it broke off, and has used less than an answer takes
            out[i] = dict.fromkeys(names, "error")
    return out


def _fields(sample: Mapping[str, Any], header: Header, wanted: Collection[str] | None = None) -> dict[str, Any]:
    """Return {field: value} of a sample's usage and metadata, {} if the sample broke off."""
    if sample.get("error"):
        return {}
    model_usage, metadata = sample.get("model_usage"), sample.get("metadata")
    by_model = model_usage if isinstance(model_usage, dict) else {}
    out = _own_tokens(by_model, sample.get("role_usage"), header)
    for name in ("message_count", "working_time"):
        out[name] = sample.get(name)
    out["time"], out["cached"] = sample.get("total_time"), (header.cached and not by_model) or None
    if isinstance(metadata, dict):
        out = {name: metadata[name] for name in metadata if wanted is None or name in wanted} | out
    return out


def _own_tokens(by_model: Mapping[str, Any], by_role: Any, header: Header) -> dict[str, Any]:
    """Return the evaluated model's token counts, less what it used in other roles such as judge. {} if unknown."""
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
    """Return one model's token counts under our names, None if absent. The input gets its cached part, if not in it.

    Inspect's `input_tokens` leaves out what a provider's cache held."""
    out = {ours: usage.get(theirs) for theirs, ours in _TOKENS.items()}
    entire, output = usage.get("input_tokens"), usage.get("output_tokens")
    if isinstance(entire, (int, float)):
        cached = sum(out[name] or 0 for name in ("cache_read_tokens", "cache_write_tokens"))
        counted = usage.get("total_tokens") == entire + (output or 0) and cached <= entire
        entire += 0 if counted else cached
    return out | {"input_tokens": entire}


def _minus(value: Any, other: Any) -> Any:
    return value - other if isinstance(value, (int, float)) and isinstance(other, (int, float)) else value


def _usage_notes(header: Header, samples: Iterable[Mapping[str, Any]]) -> list[Note]:
    """Return notes on tokens of other models, which measures leave out, and on cached calls."""
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
        said = f"tokens and cost are those of {header.model}. Not counted are those of {each}"
        out.append(Note("not_counted", said).of(header.task))
    if header.cached:
        said = (
            "the models were asked through a cache, and calls that it answered are in no usage: tokens, cost and times "
            "may be too low (cached_usage)"
        )
        out.append(Note(CACHED_USAGE, said).of(header.task))
    return out
