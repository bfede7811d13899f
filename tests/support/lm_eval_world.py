"""A small world to run lm-eval in, with and without the noise, and all that must be the same."""

from __future__ import annotations

import io
import json
import logging
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from support.notes import noted

pytest.importorskip("lm_eval")
import jsonschema
import lm_eval
from lm_eval import evaluator, utils
from lm_eval.api.registry import register_model

from harness_noise.cli import main
from harness_noise.io.paths import BESIDE
from harness_noise.results.schema import json_schema
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.strict_json import strict

NATIVE = evaluator.evaluate


@register_model("sim-watched")
class Watched(toys.StatefulModel):
    """Draws from the global random state, and is remembered."""

    last: Watched | None = None
    fault: Any = None
    """What is raised in every call after the first."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        type(self).last = self

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        if self.calls and self.fault is not None:
            self.calls.append(len(requests))
            return self.fault(requests)
        return super().generate_until(requests)


class Ended(NamedTuple):
    """A run of the command line, and what it left behind."""

    code: int
    results: dict[str, Any]
    samples: dict[str, list[dict[str, Any]]]
    printed: str
    said: list[str]
    """Our warnings."""
    random_state: Any
    left: list[str]
    """What was not put back."""


class World:
    """A folder with two tasks in a group, and the ways to run them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tasks: dict[str, Any] = {}
        self.runs = 0
        self.session: Any = None
        self.manager: Any = None
        toys.write_task(folder, "gen", toys.docs(3, 2))
        toys.write_task(folder, "choice", toys.docs(3, 2), toys.CHOICE)
        by_size = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict", "flexible"]}
        toys.write_group(folder, "both", ["gen", "choice"], [by_size])
        (folder / "config").mkdir()
        for name, more in (("with", {"noise": {"repeats": 2}}), ("without", {})):
            (folder / "config" / f"{name}.yaml").write_text(yaml.safe_dump({"batch_size": 1, **more}))

    def evaluate(self, **options: Any) -> Ended:
        """One `simple_evaluate`, with the noise where there are options."""
        with self.listening() as said, noise(**options) if options else nullcontext() as session:
            found = lm_eval.simple_evaluate(
                model=Watched(), tasks=["both"], task_manager=self.manager, bootstrap_iters=0, verbosity=None
            )
        text = json.dumps(found, default=utils.handle_non_serializable)
        results = strict(text)
        samples = results.pop("samples")
        self.session = session
        return Ended(0, results, samples, "", said, state_of_random(), self.left())

    @contextmanager
    def listening(self) -> Iterator[list[str]]:
        said: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("harness_noise").addHandler(handler)
        try:
            yield said
        finally:
            logging.getLogger("harness_noise").removeHandler(handler)

    def run(self, *flags: str) -> Ended:
        """One `harness-noise lm-eval run`."""
        self.runs += 1
        out = self.folder / f"out{self.runs}"
        argv = ["run", "--model", "sim-watched", "--include_path", str(self.folder), "--tasks", "both",
                "--log_samples", "--output_path", str(out / "x.json"), *flags]  # fmt: skip
        printed, errors = io.StringIO(), io.StringIO()
        with self.listening() as said, redirect_stdout(printed), redirect_stderr(errors):
            code = main(["lm-eval", *argv])
        said += [line for line in errors.getvalue().splitlines() if line.startswith("harness-noise")]
        results, samples = {}, {}
        for path in (path for path in out.glob("**/*.json*") if BESIDE not in path.parts):
            if path.name.startswith("samples_"):
                samples[path.name.split("_20")[0]] = [strict(line) for line in path.read_text().splitlines()]
            else:
                results = strict(path.read_text())
        return Ended(code, results, samples, printed.getvalue(), said, state_of_random(), self.left())

    def left(self) -> list[str]:
        out = [] if evaluator.evaluate is NATIVE else ["evaluate"]
        names = {"generate_until", "_create_payload", "apply_filters", "build_all_requests", "doc_to_target"}
        out += [f"model: {name}" for name in names & set(getattr(Watched.last, "__dict__", ()))]
        for task in self.tasks.values():
            out += [f"{task.config.task}: {name}" for name in names & set(vars(task))]
            out += [f"{task.config.task}: repeats"] if task.config.repeats not in (1, None) else []
        return out + [path.name for path in (self.folder / "tmp").iterdir()]


def state_of_random() -> Any:
    legacy: Any = np.random.get_state()
    return random.getstate(), legacy[1].tolist(), legacy[2:]


def leaves(tasks: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, item in tasks.items():
        if isinstance(item, dict):
            yield from leaves(item)
        else:
            yield name, item


TIMES = ("date", "start_time", "end_time", "total_evaluation_time_seconds", "config", "git_hash")
"""What differs between two runs of lm-eval: somebody may commit meanwhile."""

OURS = re.compile(r"(.+)_(total|data|data_upper|prediction|clustered|ci_low|ci_high)_stderr,.+|(.+)_avg(_stderr)?,.+")


def unlike(ended: Ended, plain: Ended) -> list[str]:
    """In what a run is not the run without us, but for additions that are whole."""
    out = list(ended.left)
    if ended.code != plain.code:
        out.append(f"exit code {ended.code}")
    if ended.random_state != plain.random_state:
        out.append("random state")
    out += _unlike_results(ended.results, plain.results)
    out += _unlike_samples(ended.samples, plain.samples, "noise" in ended.results)
    if "noise" not in ended.results and without_folder(ended.printed) != without_folder(plain.printed):
        out.append("table")
    return out


def without_folder(printed: str) -> str:
    return re.sub(r"out\d+|config='[^']+'", "", printed)


def _unlike_results(results: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    if not results:
        return ["no results file"]
    out = []
    block = results.get("noise")
    expected: dict[str, dict[str, float]] = {}
    if block is not None:
        jsonschema.validate(block, json_schema())
        for item in block["estimates"]:
            expected.setdefault(item["task"], {}).update(additions(item, plain["results"]))
    native: dict[str, Any] = json.loads(json.dumps({key: results[key] for key in results if key != "noise"}))
    for table in ("results", "groups"):
        for name, row in list(native.get(table, {}).items()):
            ours = {key: row.pop(key) for key in list(row) if OURS.fullmatch(key)}
            if ours != expected.get(name, {}):
                out.append(f"{table} {name}: {sorted(ours)} for {sorted(expected.get(name, {}))}")
            if set(row) <= {"name", "alias"} and name not in plain[table]:
                del native[table][name]
    for name, arrows in list(native["higher_is_better"].items()):
        for key in [key for key in arrows if key.endswith("_avg")]:
            del arrows[key]
        if not arrows and name not in plain["higher_is_better"]:
            del native["higher_is_better"][name]
    for config in native["configs"].values():
        config["repeats"] = 1
    for key in {*native, *plain} - set(TIMES):
        if native.get(key) != plain.get(key):
            out.append(f"native {key}: {native.get(key)} for {plain.get(key)}")
    return out


def additions(item: dict[str, Any], native: dict[str, Any]) -> dict[str, float]:
    """What the contract says that a row of the results gets from one estimate."""
    key = f"{item['metric']},{item['scorer']}"
    asked = item["task"] not in native
    if item["mean"] is None or not any(key in row for row in native.values()):
        return {}
    metric, scorer = item["metric"], item["scorer"]
    clustered = item["cluster"] is not None
    out = {f"{metric}_{name}_stderr,{scorer}": item[f"se_{name}"] for name in ("total", "prediction")}
    below = item["var_data"] is not None and item["var_data"] < 0
    data = "data_upper" if below else "data"
    out[f"{metric}_{data}_stderr,{scorer}"] = item[f"se_{data}"]
    out |= {f"{metric}_avg_{name}_stderr,{scorer}": item[name] for name in ("ci_low", "ci_high")}
    out[f"{metric}_avg_clustered_stderr,{scorer}"] = item["se"] if clustered else None
    if item["repeats_max"] > 1 or clustered or asked:
        out |= {f"{metric}_avg,{scorer}": item["mean"], f"{metric}_avg_stderr,{scorer}": item["se"]}
    if "zero_variance" in item["diagnostics"]:  # a visible ± 0 would look certain
        out.pop(f"{metric}_avg_stderr,{scorer}", None)
    return {name: value for name, value in out.items() if value is not None}


def _unlike_samples(samples: dict[str, Any], plain: dict[str, Any], noisy: bool) -> list[str]:
    if samples.keys() != plain.keys():
        return [f"samples files {sorted(samples)}"]
    out = []
    for name, rows in samples.items():
        annotated = {"scores_per_repeat" in row for row in rows}
        if annotated != {noisy}:
            out.append(f"{name}: annotated {annotated}")
        cut = [
            {key: value for key, value in row.items() if key not in ("scores_per_repeat", "cluster", "resps")}
            | {"resps": [answers[: len(theirs)] for answers, theirs in zip(row["resps"], old["resps"], strict=True)]}
            for row, old in zip(rows, plain[name], strict=True)
        ]
        if cut != plain[name]:
            out.append(f"{name}: rows")
    return out


def told(world: World, ended: Ended, text: str) -> bool:
    """Whether a fault was said once: as a warning, or as a note of the analysis."""
    notes = noted(world.session.analysis) if world.session is not None and world.session.analysis else ()
    once = [line for line in ended.said if text in line]
    return len(once) == 1 or (not once and any(text in note for note in notes))
