"""Live lm-eval runs: saved, what a session has found, and what lm-eval itself said."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval")
from lm_eval.loggers import EvaluationTracker

from harness_noise_adapters.lm_eval_harness.live import hook
from support import lm_eval_models as toys


def write_nested_tasks(path: Path) -> Path:
    """Two generative tasks and a choice, in a group within a group."""
    toys.write_task(path, "gen", toys.docs(12))
    toys.write_task(path, "gen_large", toys.docs(24, per_template=4, start=100))
    toys.write_task(path, "choice", toys.docs(12), toys.CHOICE)
    by_size = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict", "flexible"]}
    toys.write_group(path, "inner", ["gen", "gen_large"], [by_size])
    toys.write_group(path, "outer", ["inner", "choice"], [by_size | {"weight_by_size": False}])
    toys.write_group(path, "plain", ["gen", "gen_large"], [{"metric": "exact_match", "filter_list": ["strict"]}])
    return path


def estimate(session: hook.Session, task: str, metric: str = "exact_match", scorer: str = "strict") -> Any:
    assert session.analysis is not None, session.problems
    (found,) = [
        item for item in session.analysis.estimates if (item.task, item.metric, item.scorer) == (task, metric, scorer)
    ]
    return found


def scores(session: hook.Session, task: str, metric: str = "exact_match", scorer: str = "strict") -> Any:
    assert session.collected is not None, session.problems
    (found,) = [
        item for item in session.collected.run.scores if (item.task, item.metric, item.scorer) == (task, metric, scorer)
    ]
    return found


def native_part(results: dict[str, Any]) -> dict[str, Any]:
    """What lm-eval itself said, without times and without what K changes in the record of the run."""
    out = {
        key: copy.deepcopy(value)
        for key, value in results.items()
        if key not in ("date", "git_hash", "samples", "noise")
    }
    for table in ("results", "groups"):
        for row in out.get(table, {}).values():
            for key in [
                k
                for k in row
                if re.search(r"_(total|data|data_upper|prediction|ci_(low|high)|clustered)_stderr,|_avg(_stderr)?,", k)
            ]:
                del row[key]
    for arrows in out["higher_is_better"].values():
        for key in [key for key in arrows if key.endswith("_avg")]:
            del arrows[key]
    for config in out["configs"].values():
        config.pop("repeats", None)
    for name, rows in results.get("samples", {}).items():
        out.setdefault("samples", {})[name] = [
            {key: value for key, value in row.items() if key not in ("resps", "scores_per_repeat", "cluster")}
            | {"first": [answers[0] for answers in row["resps"]]}
            for row in rows
        ]
    return out


def right(answer: str, truth: str, scorer: str) -> float:
    """The two filters of the toy task, in other words than lm-eval's."""
    if scorer == "strict":
        found = re.fullmatch(r" ?(-?\d+)", answer)
        return float(found is not None and found[1] == truth)
    numbers = re.findall(r"-?\d+", answer)
    return float(bool(numbers) and numbers[-1] == truth)


def save(folder: Path, out: Path, tasks: list[str], model: Any, **more: Any) -> dict[str, Any]:
    """Run lm-eval and save what its command line saves."""
    tracker = EvaluationTracker(output_path=str(out))
    options = {"evaluation_tracker": tracker, "log_samples": True, "model_args": {"pretrained": "sim/x"}} | more
    results = toys.simple_evaluate(folder, tasks, model, **options)
    rows = dict(results)
    samples = rows.pop("samples")
    tracker.save_results_aggregated(results=rows, samples=samples)
    for name, found in samples.items():
        tracker.save_results_samples(task_name=name, samples=found)
    return results


def run(folder: Path, *more: str, tasks: str = "gen") -> list[str]:
    """The arguments of `harness-noise lm-eval`."""
    return ["run", "--model", "sim-hash", "--include_path", str(folder), "--tasks", tasks, *more]


def saved(path: Path) -> tuple[dict[str, Any], str]:
    """The results and the samples of the task `gen` that a command has written."""
    (results,) = path.glob("**/results_*.json")
    (samples,) = path.glob("**/samples_gen_*.jsonl")
    return json.loads(results.read_text()), samples.read_text()
