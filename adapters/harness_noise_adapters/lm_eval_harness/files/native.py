"""What a results file says of its tasks, filters, metrics and groups: facts, whichever version wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness_noise.analysis.drawing import recorded

from ..scoring.aggregates import default_of
from ..scoring.gather import Key, reported
from . import native_block as inject

_ANSWERS = re.compile(r"(?:@|_at_)([1-9][0-9]{0,3})$")


class Native:
    """What a results file says, whichever version wrote it; our own additions are taken out."""

    def __init__(self, results: dict[str, Any]) -> None:
        carried = inject.carried(results.get(inject.BLOCK))
        self.looks, self.drawn = recorded(results.get(inject.BLOCK))
        """What made the run stop before its end, and of which tasks it asked a random part."""
        self.carried_spec = {row["task"]: str(row["cluster"]) for row in carried if row.get("cluster")}
        self.carried_answers = _carried_answers(carried)
        """Task → the most answers that one value of it was made of, where a live run of ours said so."""
        self.copied = {row["task"] for row in carried if "copied_repeats" in (row.get("diagnostics") or ())}
        """Tasks of which a live run of ours found that lm-eval's own answers are copies."""
        if results:
            inject.remove(results)
        self.results = results
        self.table: dict[str, dict[str, Any]] = results.get("results", {})
        self.reported: dict[str, dict[Key, float | None]] = {name: reported(row) for name, row in self.table.items()}
        """Task or group → its values; None for one that is not a finite number."""
        self.children: dict[str, Any] = _mapping(results.get("group_subtasks"))
        self.configs: dict[str, Any] = _mapping(results.get("configs"))
        grouped = {name for name, children in self.children.items() if children} | set(_mapping(results.get("groups")))
        self.tasks = [name for name in self.table if name not in grouped - set(self.configs)]

        counts = {task: _mapping(item) for task, item in _mapping(results.get("n-samples")).items()}
        self.counted = {name: n for name, row in self.table.items() if isinstance(n := row.get("sample_len"), int)}
        """Task → the documents that its values are made of; unlike `n-samples` right under --samples up to 0.4.11."""
        self.original = {task: n for task, item in counts.items() if isinstance(n := item.get("original"), int)}
        """Task → the documents that it has."""
        effective = {task: n for task, item in counts.items() if isinstance(n := item.get("effective"), int)}
        self.effective = effective | self.counted
        """Task → the documents that were evaluated."""
        limit = _mapping(results.get("config")).get("limit")
        self.limit: float | None = limit if isinstance(limit, (int, float)) and limit else None
        """What `--limit` was; None without one."""

    def config(self, task: str) -> dict[str, Any]:
        return _mapping(self.configs.get(task))

    def higher_is_better(self, task: str) -> dict[str, bool]:
        """By metric, where it is known."""
        found = _mapping(_mapping(self.results.get("higher_is_better")).get(task))
        return {metric: value for metric, value in found.items() if isinstance(value, bool)}

    def aggregations(self, task: str) -> dict[str, str | None]:
        """The metrics of its configuration, and how each is aggregated: the name or the source of the aggregation."""
        out: dict[str, str | None] = {}
        for item in self.config(task).get("metric_list") or ():
            if isinstance(item, Mapping) and isinstance(metric := item.get("metric"), str):
                value = item.get("aggregation")
                known = value if isinstance(value, str) else default_of(metric) if value is None else None
                out.setdefault(metric, known)
        return out

    def taken(self, task: str) -> dict[str, int]:
        """Filter → how many answers it takes of each question, where that is not all."""
        out: dict[str, int] = {}
        for ensemble in map(_mapping, _sequence(self.config(task).get("filter_list"))):
            for step in map(_mapping, _sequence(ensemble.get("filter"))):
                k, scorer = step.get("k"), ensemble.get("name")
                if step.get("function") == "take_first_k" and isinstance(k, int) and k > 0 and isinstance(scorer, str):
                    out[scorer] = min(k, out.get(scorer, k))
        return out

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
