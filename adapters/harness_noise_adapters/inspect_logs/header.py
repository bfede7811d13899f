"""What a log says of itself: its header and its native values, made of plain JSON from whatever program wrote it.

What is not as Inspect's schema has it is read all the same where its meaning is clear, and counted in `Faults`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

SCHEMA = 2
"""The newest version of the log's schema that is known."""

RECORD = "noise"
"""Of the metadata of `results.early_stopping`: why a run stopped, and which questions were drawn."""


class NotALogError(ValueError):
    """Something without which it is no log, or none whose scores can be told apart."""


@dataclass(slots=True)
class Faults:
    """What is not as Inspect's schema has it; each kind is counted and told once."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def messages(self) -> list[str]:
        return [f"{what} ({count} times)" if count > 1 else what for what, count in self.counts.items()]


@dataclass(frozen=True, slots=True)
class Metric:
    """One native value."""

    name: str
    value: float
    group: str | None
    params: Mapping[str, Any]
    metadata: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The native metrics of one scorer, or one key of it, and one reducer: an EvalScore."""

    name: str
    scorer: str
    reducer: str | None
    params: Mapping[str, Any]
    metrics: Mapping[str, Metric]


@dataclass(frozen=True, slots=True)
class Header:
    """What a log says of itself."""

    status: str
    task: str
    task_id: str
    created: str
    """In UTC, so that it sorts; empty where it is not said."""
    model: str
    dataset: tuple[str, str]
    """Name and place."""
    metadata: Mapping[str, Any]
    """Of the run: where the flag's settings are."""
    task_args: Mapping[str, Any]
    sample_ids: Sequence[Any] | None
    epochs: int
    epochs_reducer: Sequence[str] | None
    solvers: Sequence[str]
    invalidated: bool
    total_samples: int
    scores: Sequence[ScoreRow]
    """Empty where Inspect has computed no results: see `uncomputed`."""
    not_asked: int = 0
    """Answers that an early stopping has left out."""
    stopping: Mapping[str, Any] = field(default_factory=dict)
    """What an early stopping says of itself."""
    scorers: Mapping[str, Mapping[str | None, Mapping[str, Any]]] = field(default_factory=dict)
    """Scorer → key of its dictionaries, None for the scorer itself → metric → its options, as the run was set up."""
    computed: bool = True
    """Whether `scores` are Inspect's; else they name what the samples hold, and no value is known."""


def header_of(log: Mapping[str, Any], faults: Faults) -> Header:
    """The header from a log's top-level values, without its samples.

    Raises:
        NotALogError: it does not say which task and which model it is of.
    """
    spec = log.get("eval")
    if not isinstance(spec, dict):
        raise NotALogError("it has no `eval`, which says what was run")
    named = {}
    for name in ("task", "model"):
        value = one(spec.get(name))
        if not isinstance(value, str):
            raise NotALogError(f"schema: eval.{name} is {kind_of(value)}, not a text")
        named[name] = value
    version = log.get("version")
    if isinstance(version, (int, float)) and version > SCHEMA:
        faults.add(f"its schema has version {version:g}, newer than what is known ({SCHEMA})")
    config = object_of(spec.get("config"), "eval.config", faults)
    dataset = object_of(spec.get("dataset"), "eval.dataset", faults)
    results = object_of(log.get("results"), "results", faults)
    steps = object_of(log.get("plan"), "plan", faults).get("steps")
    ids, reducers, epochs = dataset.get("sample_ids"), config.get("epochs_reducer"), one(config.get("epochs"))
    total = results.get("total_samples")
    if not isinstance(total, int):
        n = len(ids) if isinstance(ids, list) else dataset.get("samples")
        total = n * (epochs if isinstance(epochs, int) else 1) if isinstance(n, int) else 0
    stopping = object_of(results.get("early_stopping"), "results.early_stopping", faults)
    stops = stopping.get("early_stops")
    return Header(
        status=_text(log.get("status"), "success" if results else "started"),
        task=named["task"],
        task_id=_text(spec.get("task_id")),
        created=_utc(_text(spec.get("created"))),
        model=named["model"],
        dataset=(_text(dataset.get("name")), _text(dataset.get("location"))),
        metadata=object_of(spec.get("metadata"), "eval.metadata", faults),
        task_args=object_of(spec.get("task_args"), "eval.task_args", faults),
        sample_ids=ids if isinstance(ids, list) else None,
        epochs=epochs if isinstance(epochs, int) else 1,
        epochs_reducer=list(map(str, reducers)) if isinstance(reducers, list) else None,
        solvers=[str(step.get("solver")) for step in steps or () if isinstance(step, dict)]
        if isinstance(steps, list)
        else [],
        invalidated=log.get("invalidated") is True,
        total_samples=total,
        scores=_score_rows(results, faults),
        not_asked=len(stops) if isinstance(stops, list) else 0,
        stopping=object_of(stopping.get("metadata"), "metadata of results.early_stopping", faults),
        scorers=_scorers(spec.get("scorers")),
    )


def uncomputed(header: Header, scores: Mapping[str, Sequence[Any]]) -> Header:
    """The header of a run that ended before Inspect computed its results, with the rows that they would have.

    Args:
        header: without scores.
        scores: scorer → the values that it gave.
    """
    rows = []
    for scorer, values in scores.items():
        by_key = header.scorers.get(scorer, {})
        keys = dict.fromkeys(key for value in values if isinstance(value, dict) for key in value)
        for name in [key for key in keys if None not in by_key] or [scorer]:
            known = by_key.get(None) or by_key.get(name) or by_key.get("*") or {}
            metrics = {metric: Metric(metric, math.nan, None, params, None) for metric, params in known.items()}
            rows.append(ScoreRow(name, scorer, None, {}, metrics))
    return replace(header, scores=rows, computed=False)


def _scorers(found: Any) -> dict[str, dict[str | None, dict[str, Any]]]:
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    out = {}
    for row in rows:
        metrics = row.get("metrics")
        by_key = metrics.items() if isinstance(metrics, dict) else [(None, metrics)]
        out[_bare(row.get("name"))] = {key: _named(items) for key, items in by_key if isinstance(items, list)}
    return out


def _named(metrics: Sequence[Any]) -> dict[str, Any]:
    """The options of each metric, by its name."""
    found = [item for item in metrics if isinstance(item, dict) and "name" in item]
    return {_bare(item["name"]): object_of(item.get("options"), "options of a metric", Faults()) for item in found}


def _bare(name: Any) -> str:
    """A name without the package that registered it."""
    return str(name).rsplit("/", 1)[-1]


def _score_rows(results: Mapping[str, Any], faults: Faults) -> list[ScoreRow]:
    rows = results.get("scores")
    if rows is None and isinstance(results.get("scorer"), dict):  # one scorer, as the first version had it
        old = results["scorer"]
        rows = [old | {"scorer": old.get("name"), "metrics": results.get("metrics") or old.get("metrics") or {}}]
    if not isinstance(rows, list):
        if rows is not None:
            faults.add(f"results.scores is {kind_of(rows)}, not a list")
        return []
    out = []
    for row in rows:
        name = one(row.get("name")) if isinstance(row, dict) else None
        if not isinstance(name, str):
            faults.add("a row of results.scores has no name")
            continue
        scorer, reducer = one(row.get("scorer")), one(row.get("reducer"))
        out.append(
            ScoreRow(
                name=name,
                scorer=scorer if isinstance(scorer, str) else name,
                reducer=reducer if isinstance(reducer, str) else None,
                params=object_of(row.get("params"), "params of results.scores", faults),
                metrics=_metrics(row.get("metrics"), faults),
            )
        )
    return out


def _metrics(found: Any, faults: Faults) -> dict[str, Metric]:
    if isinstance(found, list):
        if found:
            faults.add("metrics of results.scores is a list, not an object")
        found = {str(item.get("name")): item for item in found if isinstance(item, dict)}
    out = {}
    for key, item in object_of(found, "metrics of results.scores", faults).items():
        if not isinstance(item, dict):
            item = {"value": item}
        value = one(item.get("value"))
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            if value is not None:
                faults.add(f"the value of metric {key} is {kind_of(value)}, not a number")
            value = math.nan
        metadata, group = item.get("metadata"), item.get("group")
        out[str(key)] = Metric(
            name=str(item.get("name") or key),
            value=_float(value),
            group=group if isinstance(group, str) else None,
            params=object_of(item.get("params"), f"params of metric {key}", faults),
            metadata=metadata if isinstance(metadata, dict) else None,
        )
    return out


def one(value: Any) -> Any:
    """A value that some writers put into a list of its own."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def object_of(value: Any, what: str, faults: Faults) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if value is not None:
        # an empty list is what R makes of an empty object
        faults.add(f"{what} is {kind_of(value)}, not an object")
    return {}


def _text(value: Any, default: str = "") -> str:
    value = one(value)
    return value if isinstance(value, str) else default


def _utc(text: str) -> str:
    """A date in a form that sorts, whatever its time zone; empty where it is none.

    Without a zone it is UTC, as Inspect takes it.
    """
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return ""


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def kind_of(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "missing"}
    return names.get(type(value), "a number")
