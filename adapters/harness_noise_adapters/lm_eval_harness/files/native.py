"""What a results file says of its tasks, filters, metrics and groups: facts, whichever version wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..scoring.gather import Key, reported
from . import native_block as inject

_ANSWERS = re.compile(r"(?:@|_at_)([1-9][0-9]{0,3})$")


class Native:
    """What a results file says, whichever version wrote it; our own additions are taken out."""

    def __init__(self, results: dict[str, Any]) -> None:
        carried = inject.carried(results.get(inject.BLOCK))
        self.carried_spec = {row["task"]: str(row["cluster"]) for row in carried if row.get("cluster")}
        self.carried_answers = _carried_answers(carried)
        """Task → the most answers that one value of it was made of, where a live run of ours said so."""
        self.copied = {row["task"] for row in carried if "copied_repeats" in (row.get("diagnostics") or ())}
        """Tasks of which a live run of ours found that lm-eval's own answers are copies."""
        if results:
            inject.remove(results)
        self.results = results
        self.table: dict[str, dict[str, Any]] = results.get("results", {})
        self.children: dict[str, Any] = _mapping(results.get("group_subtasks"))
        self.configs: dict[str, Any] = _mapping(results.get("configs"))
        grouped = {name for name, children in self.children.items() if children} | set(_mapping(results.get("groups")))
        self.tasks = [name for name in self.table if name not in grouped - set(self.configs)]

    def config(self, task: str) -> dict[str, Any]:
        return _mapping(self.configs.get(task))

    def metrics(self, task: str) -> dict[Key, float | None]:
        """(metric, filter) → the reported value of a task or group; None for one that is not a finite number."""
        return reported(self.table.get(task, {}))

    def effective(self, task: str) -> int:
        """Number of documents that were evaluated, 0 if unknown."""
        counts = _mapping(_mapping(self.results.get("n-samples")).get(task))
        value = self.table.get(task, {}).get("sample_len", counts.get("effective"))
        return value if isinstance(value, int) else 0

    def counted(self, task: str) -> int | None:
        """How many documents its values are made of; unlike `n-samples` right under --samples up to 0.4.11."""
        value = self.table.get(task, {}).get("sample_len")
        return value if isinstance(value, int) else None

    def original(self, task: str) -> int | None:
        """How many documents the task has."""
        value = _mapping(_mapping(self.results.get("n-samples")).get(task)).get("original")
        return value if isinstance(value, int) else None

    @property
    def limit(self) -> float | None:
        """What `--limit` was; None without one."""
        value = _mapping(self.results.get("config")).get("limit")
        return value if isinstance(value, (int, float)) and value else None

    def higher_is_better(self, task: str, metric: str) -> bool | None:
        value = _mapping(_mapping(self.results.get("higher_is_better")).get(task)).get(metric)
        return value if isinstance(value, bool) else None

    def aggregation(self, task: str, metric: str) -> str | None:
        from ..scoring.aggregates import default_of

        for item in self.config(task).get("metric_list") or ():
            if isinstance(item, Mapping) and item.get("metric") == metric:
                value = item.get("aggregation")
                return value if isinstance(value, str) else default_of(metric) if value is None else None
        return None

    def listed(self, task: str) -> list[str]:
        """The metrics of its configuration."""
        metrics = self.config(task).get("metric_list") or ()
        return [item["metric"] for item in metrics if isinstance(item, Mapping) and isinstance(item.get("metric"), str)]

    def taken(self, task: str, scorer: str) -> int | None:
        """How many answers a filter takes of each question; None for all."""
        found = [
            step["k"]
            for ensemble in map(_mapping, _sequence(self.config(task).get("filter_list")))
            for step in map(_mapping, _sequence(ensemble.get("filter")) if ensemble.get("name") == scorer else ())
            if step.get("function") == "take_first_k" and isinstance(step.get("k"), int) and step["k"] > 0
        ]
        return min(found, default=None)

    def model(self) -> str | None:
        config = _mapping(self.results.get("config"))
        arguments = config.get("model_args")
        if isinstance(arguments, str):
            arguments = dict(item.split("=", 1) for item in arguments.split(",") if "=" in item)
        arguments = _mapping(arguments)
        names = (
            self.results.get("model_name"),
            arguments.get("pretrained"),
            arguments.get("model"),
            config.get("model"),
        )
        return next((name for name in names if isinstance(name, str) and name), None)

    def group_names(self) -> list[str]:
        return [name for name in self.table if name not in self.tasks]

    def leaves(self, name: str) -> list[str]:
        """The tasks below a group, each once, in order."""
        out: dict[str, None] = {}
        waiting, seen = [name], set()
        while waiting:
            item = waiting.pop(0)
            below = self.children.get(item)
            if item in seen:
                continue
            seen.add(item)
            if isinstance(below, list) and below:
                waiting[:0] = map(str, below)
            elif item != name:
                out[item] = None
        return list(out)


def _carried_answers(carried: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for row in carried:
        codes = row.get("diagnostics")
        if isinstance(codes, list) and "uses_all_repeats" in codes and (found := _ANSWERS.search(row["metric"])):
            out[row["task"]] = max(out.get(row["task"], 0), int(found[1]))
    return out


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
