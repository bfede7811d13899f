"""Contents of a results file of any version, and our own additions, which are put in and taken out.

`<metric>_total_stderr,<filter>` and its like are carriers that the native table and other parsers
skip, by their ending; `<metric>_avg,<filter>` with its `_stderr` is one visible row, and what describes the mean over
all answers is named after it (`<metric>_avg_ci_low_stderr`). Questions with equal scores have no `_avg_stderr`, whose 0
would look certain. All are finite floats. The whole
analysis is the top-level key `noise`. No native key is ever changed, and what an earlier injection
added is taken out first, so that injecting twice gives the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness_noise.analysis.drawing import read_block
from harness_noise.data.native_values import nearly_equal
from harness_noise.data.scores import Weighting
from harness_noise.results.rows import Analysis, Estimate, data_or_limit

from ..scoring.gather import Key, reported
from ..scoring.not_means import default_of

BLOCK = "noise"
UNFINISHED = "unfinished"
"""In the block of lm-eval's own result, which is saved while further answers are asked for."""
SCORES = "scores_per_repeat"
CLUSTER = "cluster"
UNUSABLE = frozenset(("skipped_metric", "mean_mismatch"))
"""Codes of estimates that have no error bar for the native value."""
ZERO = "zero_variance"
"""The code of a mean whose questions have all the same value, so that its standard error of 0 is no certainty."""
_NAMING = ("peft", "delta", "pretrained", "model", "path", "engine")
"""The arguments of a model that name it."""
_RANDOM_NAME = re.compile(r"[a-z0-9]{8}")
"""The names that lm-eval draws for models whose arguments name none."""
_CARRIERS = ("total", "data", "data_upper", "prediction", "avg_ci_low", "avg_ci_high", "avg_clustered")
_FORMER = ("ci_low", "ci_high", "clustered")
"""The keys of `schema_version` 1 for the last three of ours."""


def inject(
    results: dict[str, Any], analysis: Analysis, *, rows: bool = True, elsewhere: Container[tuple[str, str, str]] = ()
) -> None:
    """Replace our error bars in lm-eval's results, in place: at the metrics it reports, and all in `noise`.

    Args:
        results: what `lm_eval.evaluate` returns, or a results file's object.
        analysis: the noise of this run. A task that the results do not have is a group that the
            user asked for; it gets a row of its own.
        rows: whether to add the visible `<metric>_avg` rows.
        elsewhere: task (or group), metric and filter of the estimates that are on another scale than
            lm-eval's value, a percentage; these stand in the block only.
    """
    remove(results)
    groups = {estimate.task for estimate in analysis.estimates} - set(results["results"])
    reported = {key for row in results["results"].values() for key in row}
    for estimate in analysis.estimates:
        # what lm-eval does not report (acc_prob, a further pass@k) adds no metric to its table
        if f"{estimate.metric},{estimate.scorer}" not in reported or estimate.key in elsewhere:
            continue
        if additions := _additions(estimate, visible=rows, group=estimate.task in groups):
            _add(results, estimate, additions, group=estimate.task in groups)
    results[BLOCK] = analysis.to_dict()


def copy_of(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of lm-eval's results whose rows of results, groups and higher_is_better may be changed."""
    out = dict(results)
    for table in ("results", "groups", "higher_is_better"):
        if table in out:
            out[table] = {name: dict(row) for name, row in out[table].items()}
    return out


def remove(results: dict[str, Any]) -> None:
    """Remove our `noise` block, and the keys and rows that it says we added, from lm-eval's results, in place."""
    block = results.pop(BLOCK, None)
    estimates, old = carried_estimates(block), isinstance(block, Mapping) and block.get("schema_version") == 1
    native = {(row["task"], key) for row in estimates for key in _native_keys(row["metric"], row["scorer"])}
    for estimate in estimates:
        task, metric, scorer = estimate["task"], estimate["metric"], estimate["scorer"]
        former = tuple(f"{metric}_{name}_stderr,{scorer}" for name in _FORMER) if old else ()
        ours = [key for key in (*former, *_added_keys(metric, scorer)) if (task, key) not in native]
        made = task not in results.get("configs", {}) and task not in results.get("group_subtasks", {})
        for table in ("results", "groups"):
            row = results.get(table, {}).get(task)
            for key in ours if row is not None else ():
                row.pop(key, None)
            if made and row is not None and set(row) <= {"name", "alias"}:
                del results[table][task]
        arrows = results.get("higher_is_better", {}).get(task)
        if arrows is not None and f"{metric}_avg,{scorer}" in ours:
            arrows.pop(f"{metric}_avg", None)
            if made and not arrows:
                del results["higher_is_better"][task]
    if results.get("groups") == {}:  # lm-eval never writes an empty one
        del results["groups"]


def carried_estimates(block: object) -> list[Mapping[str, Any]]:
    """Return the estimates in a `noise` block as mappings, malformed ones left out. [] if there is none."""
    rows = block.get("estimates") if isinstance(block, Mapping) else None
    return [
        row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping) and all(isinstance(row.get(name), str) for name in ("task", "metric", "scorer"))
    ]


def _native_keys(metric: str, scorer: str) -> tuple[str, str]:
    return f"{metric},{scorer}", f"{metric}_stderr,{scorer}"


def _added_keys(metric: str, scorer: str) -> tuple[str, ...]:
    carriers = tuple(f"{metric}_{name}_stderr,{scorer}" for name in _CARRIERS)
    return (*carriers, *_native_keys(f"{metric}_avg", scorer))


def _additions(estimate: Estimate, *, visible: bool, group: bool) -> dict[str, float]:
    clustered = estimate.cluster is not None
    shown = visible and (estimate.repeats_max > 1 or clustered or group)
    data = data_or_limit(estimate)
    parts = (estimate.se_total, *data, estimate.se_prediction, estimate.ci_low, estimate.ci_high)
    error = None if ZERO in estimate.diagnostics else estimate.se  # "± 0.0000" beside our mean would look certain
    values = (*parts, estimate.se if clustered else None, *((estimate.mean, error) if shown else (None, None)))
    pairs = zip(_added_keys(estimate.metric, estimate.scorer), values, strict=True)
    if estimate.mean is None or not UNUSABLE.isdisjoint(estimate.diagnostics):
        return {}  # an error bar of other scores than the native value's is only in the block
    return {key: float(value) for key, value in pairs if value is not None and math.isfinite(value)}


def _add(results: dict[str, Any], estimate: Estimate, additions: Mapping[str, float], *, group: bool) -> None:
    row = results["results"]
    if group:
        results.setdefault("groups", {}).setdefault(estimate.task, {"name": estimate.task, "alias": estimate.task})
        row.setdefault(estimate.task, {"name": estimate.task, "alias": estimate.task})
    native = set(row[estimate.task])
    free = {key: value for key, value in additions.items() if key not in native}
    for table in ("results", "groups"):
        target = results.get(table, {}).get(estimate.task)
        if target is not None:
            target.update(free)
    average = f"{estimate.metric}_avg"
    arrow, arrows = estimate.higher_is_better, results.get("higher_is_better")
    if f"{average},{estimate.scorer}" in free and arrow is not None and arrows is not None:
        arrows.setdefault(estimate.task, {}).setdefault(average, arrow)


def strict_scores(scores: Mapping[str, Iterable[float | None]]) -> dict[str, list[Any]]:
    """Return {metric: K scores} as strict JSON allows: None for missing or infinite values."""
    return {
        metric: [None if value is None or not math.isfinite(value) else float(value) for value in values]
        for metric, values in scores.items()
    }


def strict_value(value: Any) -> Any:
    """Return an answer's raw metric value as strict JSON allows: lists, and None for NaN.

    A tuple or an array becomes a list, a number that is not finite None."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)):
        return [strict_value(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_ANSWERS = re.compile(r"(?:@|_at_)([1-9][0-9]{0,3})$")

_NO_OPTIONS = frozenset(("metric", "name", "aggregation", "higher_is_better"))
"""Keys of a metric's configuration that do not change a score."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Native:
    """The contents of a results file of any version, without our own additions."""

    def __init__(self, results: dict[str, Any]) -> None:
        estimates = carried_estimates(results.get(BLOCK))
        block = results.get(BLOCK)
        self.unfinished = isinstance(block, Mapping) and block.get(UNFINISHED) is True
        """True if it is lm-eval's own result, saved by a live run of ours that did not end."""
        self.stops, self.drawn = read_block(results.get(BLOCK))
        """What stopped the run early, and the tasks of which it asked a random subset."""
        self.carried_spec = {row["task"]: str(row["cluster"]) for row in estimates if row.get("cluster")}
        settings = block.get("settings") if isinstance(block, Mapping) else None
        self.cluster_asked: Any = settings.get("cluster") if isinstance(settings, Mapping) else None
        """SPEC of the clusters that an earlier export or a live run was given."""
        self.carried_answers = _carried_answers(estimates)
        """Task → the most answers that one value of it was made of, where a live run of ours said so."""
        self.means: dict[str, dict[Key, float | None]] = {}
        """Task or group → our own means, where a live run of ours has saved them."""
        for row in estimates:
            mean = row.get("mean") if isinstance(row.get("mean"), float) else None
            self.means.setdefault(row["task"], {})[row["metric"], row["scorer"]] = mean
        self.copied = {row["task"] for row in estimates if "copied_repeats" in (row.get("diagnostics") or ())}
        """Tasks of which a live run of ours found that lm-eval's own answers are copies."""
        if results:
            remove(results)
        self.results = results
        self.table: dict[str, dict[str, Any]] = results.get("results", {})
        self.reported: dict[str, dict[Key, float | None]] = {name: reported(row) for name, row in self.table.items()}
        """Task or group → its values, None for one that is not a finite number."""
        self.children: dict[str, Any] = _mapping(results.get("group_subtasks"))
        self.configs: dict[str, Any] = _mapping(results.get("configs"))
        grouped = {name for name, children in self.children.items() if children} | set(_mapping(results.get("groups")))
        self.tasks = [name for name in self.table if name not in grouped - set(self.configs)]

        counts = {task: _mapping(sizes) for task, sizes in _mapping(results.get("n-samples")).items()}
        self.counted = {name: n for name, row in self.table.items() if isinstance(n := row.get("sample_len"), int)}
        """Task → number of documents in its values. Unlike `n-samples`, it is right with --samples up to 0.4.11."""
        self.original = {task: n for task, sizes in counts.items() if isinstance(n := sizes.get("original"), int)}
        """Task → the documents that it has."""
        effective = {task: n for task, sizes in counts.items() if isinstance(n := sizes.get("effective"), int)}
        self.effective = effective | self.counted
        """Task → the documents that were evaluated."""
        limit = _mapping(results.get("config")).get("limit")
        self.limit: float | None = limit if isinstance(limit, (int, float)) and limit else None
        """The value of `--limit`, None without one."""

    def config(self, task: str) -> dict[str, Any]:
        return _mapping(self.configs.get(task))

    def version(self, task: str) -> str:
        """Return the task's version as text, "" if it is missing or a placeholder (N/A, Yaml)."""
        version = _mapping(self.results.get("versions")).get(task, "")
        return "" if version in (None, "N/A", "Yaml") else str(version)

    def scored_with(self, task: str, metric: str, scorer: str) -> dict[str, str]:
        """Return {what: value} that decides a metric's scoring: lm-eval's version, options, own code."""
        config, version = self.config(task), self.results.get("lm_eval_version")
        out = {"lm-eval": version} if isinstance(version, str) else {}
        if not config:
            return out
        for what, called, name in (("metric_list", metric, "metric"), ("filter_list", scorer, "name")):
            said = [row for row in map(_mapping, _sequence(config.get(what))) if row.get(name) == called]
            options = [{key: value for key, value in row.items() if key not in _NO_OPTIONS} for row in said]
            out[f"options of {called}"] = json.dumps(options, sort_keys=True)
        out["process_results"] = str(config.get("process_results"))
        return {what: _ADDRESS.sub("", text) for what, text in out.items()}

    def higher_is_better(self, task: str) -> dict[str, bool]:
        """Return {metric: True if higher is better} for metrics that declare it."""
        arrows = _mapping(_mapping(self.results.get("higher_is_better")).get(task))
        return {metric: value for metric, value in arrows.items() if isinstance(value, bool)}

    def aggregations(self, task: str) -> dict[str, str | None]:
        """Return {metric: its aggregation's name or source, or the metric's default. None: a mean or unknown}."""
        out: dict[str, str | None] = {}
        for entry in map(_mapping, _sequence(self.config(task).get("metric_list"))):
            if isinstance(metric := entry.get("metric"), str):
                value = entry.get("aggregation")
                aggregation = value if isinstance(value, str) else default_of(metric) if value is None else None
                out.setdefault(metric, aggregation)
        return out

    def taken(self, task: str) -> dict[str, int]:
        """Return {filter: how many answers per question it keeps} for filters that cut some."""
        out: dict[str, int] = {}
        for ensemble in map(_mapping, _sequence(self.config(task).get("filter_list"))):
            for step in map(_mapping, _sequence(ensemble.get("filter"))):
                k, scorer = step.get("k"), ensemble.get("name")
                if step.get("function") == "take_first_k" and isinstance(k, int) and k > 0 and isinstance(scorer, str):
                    out[scorer] = min(k, out.get(scorer, k))
        return out

    def model(self) -> str | None:
        config, recorded = _mapping(self.results.get("config")), self.results.get("model_name")
        named = name_of(config.get("model_args"))
        if named is None and isinstance(recorded, str) and _RANDOM_NAME.fullmatch(recorded):
            return name_of(None, config.get("model"), recorded)
        return name_of(None, recorded, named, config.get("model"))

    def group_names(self) -> list[str]:
        return [name for name in self.table if name not in self.tasks]

    def weighting(self, name: str, metric: str) -> Weighting:
        """Return the weights that reproduce a group's value from its tasks: "equal", or "size" (also if unclear).

        No file says it. Tasks with the same score leave the choice to other filters and metrics, or to our own means.
        """
        for key in sorted(self.reported[name], key=lambda key: key[0] != metric):
            tasks = [task for task in self.leaves(name) if key in self.reported.get(task, {})]
            sizes = [self.effective.get(task, 0) for task in tasks]
            for table in (self.reported, self.means):
                values = [value for part in (name, *tasks) if (value := table.get(part, {}).get(key)) is not None]
                if len(values) <= len(tasks) or min(sizes, default=0) <= 0:
                    continue
                whole, *each = values
                with np.errstate(all="ignore"):  # scores may be anything
                    by_size, equal = (nearly_equal(float(np.average(each, weights=w)), whole) for w in (sizes, None))
                if by_size != equal:
                    return "size" if by_size else "equal"
        return "size"

    def leaves(self, name: str) -> list[str]:
        """Return the tasks below a group at any depth, each once, in order."""
        out: dict[str, None] = {}
        waiting, seen = [name], set()
        while waiting:
            node = waiting.pop(0)
            below = self.children.get(node)
            if node in seen:
                continue
            seen.add(node)
            if isinstance(below, list) and below:
                waiting[:0] = map(str, below)
            elif node != name:
                out[node] = None
        return list(out)


def _carried_answers(carried: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for row in carried:
        codes = row.get("diagnostics")
        if isinstance(codes, list) and "uses_all_repeats" in codes and (number := _ANSWERS.search(row["metric"])):
            out[row["task"]] = max(out.get(row["task"], 0), int(number[1]))
    return out


def name_of(arguments: Any, *others: object) -> str | None:
    """Return the model's name from `--model_args` (text or mapping), else the first of `others`, or None."""
    if isinstance(arguments, str):
        arguments = dict(argument.split("=", 1) for argument in arguments.split(",") if "=" in argument)
    model_args = arguments if isinstance(arguments, Mapping) else {}
    return next((name for name in (*map(model_args.get, _NAMING), *others) if isinstance(name, str) and name), None)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
