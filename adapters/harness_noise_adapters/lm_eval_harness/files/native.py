"""What a results file says of its tasks, filters and metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from harness_noise.data.clusters import labeller
from harness_noise.data.scores import Group, ReadOptions, Weighting

from ..scoring import choices
from ..scoring.patching import close
from . import native_block as inject
from .measure import Key
from .wanted import Wanted

BYPASS = "bypass"
_ANSWERS = re.compile(r"(?:@|_at_)([1-9][0-9]{0,3})$")


class Native:
    """What a results file says, whichever version wrote it; our own additions are taken out."""

    def __init__(self, results: dict[str, Any]) -> None:
        carried = inject.carried(results.get(inject.BLOCK))
        self.carried_spec = {row["task"]: str(row["cluster"]) for row in carried if row.get("cluster")}
        self.carried_answers = _carried_answers(carried)
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
        """(metric, filter) → the reported value; None for one that is not a finite number."""
        out = {}
        for key, value in self.table.get(task, {}).items():
            metric, comma, scorer = key.partition(",")
            if comma and not metric.endswith("_stderr"):
                number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
                # `bypass` is a placeholder, 999, for tasks that were not scored at all
                out[metric, scorer] = float(value) if number and metric != BYPASS else None
        return out

    def effective(self, task: str) -> int:
        """Number of documents that were evaluated, 0 if unknown."""
        counts = _mapping(_mapping(self.results.get("n-samples")).get(task))
        value = self.table.get(task, {}).get("sample_len", counts.get("effective"))
        return value if isinstance(value, int) else 0

    def cut_short(self, task: str, found: int) -> Iterator[str]:
        """One sentence where the samples file has fewer questions than lm-eval counted when it made its means."""
        counted = self.table.get(task, {}).get("sample_len")  # `n-samples` is wrong under --samples up to 0.4.11
        if isinstance(counted, int) and found < counted:
            yield (
                f"{task}: the samples file has {found} of the {counted} questions that the results are made of; was it "
                "cut short while it was written or copied?"
            )

    def limited(self, tasks: Sequence[str]) -> Iterator[str]:
        """One sentence for a run that left out questions."""
        limit = _mapping(self.results.get("config")).get("limit")
        counts = {task: _mapping(_mapping(self.results.get("n-samples")).get(task)) for task in tasks}
        cut = [
            (task, self.effective(task), count["original"])
            for task, count in counts.items()
            if isinstance(count.get("original"), int) and 0 < self.effective(task) < count["original"]
        ]
        if isinstance(limit, (int, float)) and limit and cut:
            task, used, whole = cut[0]
            more = f" (and {len(cut) - 1} more tasks)" if len(cut) > 1 else ""
            yield f"{task}: the run was limited to {used} of {whole} questions (--limit {limit:g}){more}"

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

    def _own_code(self, task: str, metric: str) -> bool:
        """Whether a metric may be an F1 that the task's own code makes of pairs."""
        from ..scoring.pairs import METRICS as PAIRED

        aggregation = self.aggregation(task, metric)
        return metric in PAIRED and (aggregation is None or not aggregation.isidentifier())

    def answers(self, task: str, K: int) -> int:
        """How many of a question's K answers lm-eval's own value was made of: all, if no live run of ours
        asked for more."""
        return self.carried_answers.get(task, K)

    def together(self, task: str, scorer: str, K: int) -> int:
        """How many of a question's K answers a vote under one filter was made of: it may take the first k."""
        found = self.answers(task, K)
        for ensemble in map(_mapping, _sequence(self.config(task).get("filter_list"))):
            for step in map(_mapping, _sequence(ensemble.get("filter")) if ensemble.get("name") == scorer else ()):
                k = step.get("k")
                if step.get("function") == "take_first_k" and isinstance(k, int) and k > 0:
                    found = min(found, k)
        return found

    def wanted(self, task: str, spec: str | None, options: ReadOptions) -> Wanted:
        from ..scoring.aggregates import is_registered
        from ..scoring.pairs import METRICS as PAIRED

        config = self.config(task)
        key = options.columns.get("question")
        repeats = config.get("repeats")
        listed = [item["metric"] for item in config.get("metric_list") or () if _is_metric(item)]
        plain = config.get("output_type") == "multiple_choice" and config.get("process_results") is None
        return Wanted(
            task=task,
            filters=tuple(dict.fromkeys(scorer for _, scorer in self.metrics(task))) or ("none",),
            effective=self.effective(task),
            repeats=repeats if isinstance(repeats, int) and repeats > 0 else 0,
            media=bool(config.get("doc_to_image") or config.get("doc_to_audio")),
            cluster=None if spec is None else (lambda _doc: task) if spec == "task" else labeller(spec),
            key=None if key is None else labeller(key),
            fields=options.fields,
            raw=frozenset(
                metric
                for metric in (listed if self.results else PAIRED)
                if is_registered(self.aggregation(task, metric)) or self._own_code(task, metric)
            ),
            choices=plain and choices.BESIDE in listed and _among(choices.METRIC, options.metrics),
            brier=plain and choices.BRIER in listed and self.aggregation(task, choices.BRIER) in (None, choices.BRIER),
            doubled="acc_mutual_info" in listed,
        )

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

    def groups(self) -> Iterator[Group]:
        """The group rows, with the weighting that reproduces them."""
        for name in self.group_names():
            leaves = [task for task in self.leaves(name) if task in self.table]
            for key, value in self.metrics(name).items():
                tasks = tuple(task for task in leaves if key in self.metrics(task))
                if tasks:
                    yield Group(name, *key, tasks, self._weighting(tasks, key, value), value)

    def _weighting(self, tasks: Sequence[str], key: Key, value: float | None) -> Weighting:
        values = [self.metrics(task)[key] for task in tasks]
        sizes = [self.effective(task) for task in tasks]
        known = [item for item in values if item is not None]
        if value is None or len(known) < len(values) or not all(sizes):
            return "size"
        by_size = math.fsum(v * n for v, n in zip(known, sizes, strict=True)) / sum(sizes)
        return "equal" if not close(by_size, value) and close(math.fsum(known) / len(known), value) else "size"


def _carried_answers(carried: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Task → the most answers that one value of it was made of, as a live run of ours said."""
    out: dict[str, int] = {}
    for row in carried:
        codes = row.get("diagnostics")
        if isinstance(codes, list) and "uses_all_repeats" in codes and (found := _ANSWERS.search(row["metric"])):
            out[row["task"]] = max(out.get(row["task"], 0), int(found[1]))
    return out


def _among(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name is asked for; all are where nothing is named."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_metric(item: Any) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("metric"), str)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _several(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
