"""In lm-eval's process we are guests: its caches, failing models, faults of our own, and who reads the results."""

from __future__ import annotations

import copy
import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval")
from lm_eval import evaluator
from lm_eval.utils import make_table

import harness_noise as hn
import harness_noise.analysis.mean
import harness_noise.data.scores
from harness_noise.analysis.sample import as_scores
from harness_noise.results.schema import json_schema
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.files import results as inject
from harness_noise_adapters.lm_eval_harness.live import collect, further, hook, repeats
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part, right, write_nested_tasks

NATIVE = evaluator.evaluate

K = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_nested_tasks(tmp_path_factory.mktemp("tasks"))


# ---- guests: caches, failing servers, faults of our own ----
def test_the_response_cache_is_used_for_the_native_answers_only(folder: Path, tmp_path: Path) -> None:
    base = toys.GENERATE | {"generation_kwargs": {"until": ["\n"], "do_sample": False, "temperature": 0.7}}
    toys.write_task(tmp_path, "cached", toys.docs(12), base)
    cache = str(tmp_path / "answers")
    plain = toys.simple_evaluate(tmp_path, ["cached"], "sim-hash", use_cache=cache)
    with noise(repeats=4) as session:
        noisy = toys.simple_evaluate(tmp_path, ["cached"], "sim-hash", model_args={"seed": 9}, use_cache=cache)
    after = toys.simple_evaluate(tmp_path, ["cached"], "sim-hash", model_args={"seed": 8}, use_cache=cache)
    native = plain["results"]["cached"]
    assert native.items() <= noisy["results"]["cached"].items()
    assert after["results"]["cached"] == native
    assert "identical_repeats" not in estimate(session, "cached").diagnostics
    assert any("--use_cache" in note for note in noted(session.analysis))


def test_the_request_cache_is_not_poisoned(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.caching import cache

    monkeypatch.setattr(cache, "PATH", str(tmp_path))
    models = [toys.HashModel() for _ in range(3)]
    with noise(repeats=3):
        toys.simple_evaluate(folder, ["gen"], models[0], cache_requests=True)
    toys.simple_evaluate(folder, ["gen"], models[1], cache_requests=True)
    with noise(repeats=5) as session:
        toys.simple_evaluate(folder, ["gen"], models[2], cache_requests=True)
    assert [model.calls for model in models] == [[12] * 3, [12], [12] * 5]
    assert estimate(session, "gen").repeats_max == 5


def test_further_answers_that_fail_do_not_lose_the_run(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    plain = toys.simple_evaluate(folder, ["gen"])
    model = toys.HashModel()
    model.fail_after = 1
    with noise(repeats=K) as session:
        noisy = toys.simple_evaluate(folder, ["gen"], model)
    assert native_part(noisy) == native_part(plain)
    assert "the server is gone" in caplog.text
    found = estimate(session, "gen")
    assert (found.repeats_max, found.n_missing) == (1, 12 * (K - 1))
    assert "single_repeat" in found.diagnostics
    assert found.se_prediction is None


def test_a_model_that_fails_at_once_fails_as_without_us(folder: Path) -> None:
    model = toys.HashModel()
    model.fail_after = 0
    with noise(repeats=K), pytest.raises(ConnectionError, match="the server is gone"):
        toys.simple_evaluate(folder, ["gen"], model)
    assert "generate_until" not in vars(model)


BREAKABLE = [
    (hook, "flat_tasks"), (hook, "native_groups"), (hook, "check_names"), (hook, "collect"),
    (collect, "by_filter"), (collect, "rescore"), (collect, "gather"), (collect, "columns_of"),
    (collect, "resolve"), (hook, "remarks"), (hook, "annotated_rows"), (hook, "model_name"),
    (hook, "inject"), (hook, "strict_scores"), (hook, "copy_of"), (further, "same_random_state"),
    (repeats.Asking, "__init__"), (repeats.Asking, "installed"), (repeats.Asking, "_rounds"),
    (repeats.Asking, "put"), (repeats.Asking, "answers"), (further.Further, "ask"), (further.Further, "missing"),
    (hook, "terminated_as_interrupted"), (repeats.Asking, "gathered"), (repeats.Asking, "record"),
    (repeats, "native_repeats"),
]  # fmt: skip


@pytest.fixture(scope="module")
def plain_run(folder: Path) -> dict[str, Any]:
    return native_part(toys.simple_evaluate(folder, ["inner"]))


@pytest.mark.parametrize(("place", "name"), BREAKABLE, ids=lambda value: getattr(value, "__name__", value))
def test_a_fault_of_ours_anywhere_keeps_the_native_result(
    folder: Path, plain_run: dict[str, Any], place: Any, name: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("injected fault")

    monkeypatch.setattr(place, name, broken)
    with noise(repeats=3, cluster="template") as session:
        results = toys.simple_evaluate(folder, ["inner"])
    assert native_part(results) == plain_run
    warnings = [item for item in caplog.records if item.name == "harness_noise" and item.levelno == logging.WARNING]
    assert warnings
    assert all("injected fault" in item.getMessage() for item in warnings)
    if session.analysis is None:
        assert "noise" not in results
        assert not [key for key in results["results"]["gen"] if "avg" in key]
        assert not [row for row in results["samples"]["gen"] if "scores_per_repeat" in row]
    assert evaluator.evaluate is NATIVE


def test_a_setting_that_does_not_fit_the_scores_costs_a_warning(folder: Path) -> None:
    with noise(repeats=3, interval="clopper-pearson") as session:
        results = toys.simple_evaluate(folder, ["gen"])
    assert session.analysis is None
    assert "clopper-pearson is exact only" in session.problems[0]
    assert "noise" not in results


# ---- what reads the results ----
def test_native_consumers_and_strict_parsers(folder: Path, tmp_path: Path) -> None:
    import jsonschema
    from datasets import load_dataset
    from lm_eval.loggers import EvaluationTracker

    tracker = EvaluationTracker(output_path=str(tmp_path))
    with noise(repeats=3, cluster="template", groups={"asked": "gen*"}):
        results = toys.simple_evaluate(folder, ["outer"], evaluation_tracker=tracker)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    (file,) = tmp_path.glob("**/results_*.json")

    def no_constant(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    saved = json.loads(file.read_text(), parse_constant=no_constant)
    jsonschema.validate(saved["noise"], json_schema())
    for row in saved["results"].values():
        for key, value in row.items():
            assert "_stderr," not in key or isinstance(value, float)
    table = make_table(saved)
    assert re.search(r"gen +\|.*exact_match +\|↑", table)
    assert re.search(r"exact_match_avg\|↑ +\|0\.\d{4}\|±  \|0\.\d{4}", table)
    assert "total" not in table
    assert "asked" in make_table(saved, "groups")
    (lines,) = tmp_path.glob("**/samples_gen_2*.jsonl")
    data = load_dataset("json", data_files=str(lines), split="train")
    assert data[0]["cluster"] == "t0"
    assert len(data[0]["scores_per_repeat"]["exact_match"]) == 3


def test_injecting_twice_is_injecting_once(folder: Path) -> None:
    with noise(repeats=3, cluster="template", groups={"asked": "gen*"}) as session:
        results = toys.simple_evaluate(folder, ["outer"])
    once = copy.deepcopy(results)
    inject.inject(results, session.analysis)
    assert results == once
    plain = toys.simple_evaluate(folder, ["outer"])
    inject.remove(results)
    assert native_part(results) == native_part(plain)
    assert set(results["results"]) == set(plain["results"])
    assert results["results"]["gen"] == plain["results"]["gen"]
    assert results["groups"] == plain["groups"]
    assert results["higher_is_better"] == plain["higher_is_better"]


def test_a_native_metric_with_our_name_is_kept() -> None:
    scored = {"acc": [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], "acc_avg": [[3.0, 3.5], [2.0, 2.0], [4.0, 1.0]]}
    parts = tuple(as_scores(values, task="t", metric=metric, scorer="none") for metric, values in scored.items())
    run = hn.data.scores.Run(model="m", name="m", harness="lm-eval", scores=parts)
    results = {
        "results": {"t": {"acc,none": 2 / 3, "acc_avg,none": 3.0, "acc_avg_stderr,none": 0.5}},
        "configs": {"t": {}},
        "higher_is_better": {"t": {"acc": True, "acc_avg": False}},
    }
    before = copy.deepcopy(results)
    analysis = hn.analyze(run)
    for _ in range(2):
        inject.inject(results, analysis)
        row = results["results"]["t"]
        assert (row["acc_avg,none"], row["acc_avg_stderr,none"]) == (3.0, 0.5)
        assert row["acc_avg_avg,none"] == pytest.approx(np.mean(scored["acc_avg"]))
        assert "acc_total_stderr,none" in row
    inject.remove(results)
    assert results == before


def test_limit_and_samples(folder: Path) -> None:
    with noise(repeats=3) as session:
        toys.simple_evaluate(folder, ["gen"], limit=5)
    assert estimate(session, "gen").n_questions == 5
    with noise(repeats=3, cluster="template") as session:
        results = toys.simple_evaluate(folder, ["gen"], samples={"gen": [9, 2, 5]})
    rows = [row for row in results["samples"]["gen"] if row["filter"] == "strict"]
    assert estimate(session, "gen").n_questions == 3
    for row in rows:
        # lm-eval's doc_id is wrong here (its documents come in the dataset's order): the document counts
        assert row["cluster"] == row["doc"]["template"]
        assert row["scores_per_repeat"]["exact_match"] == [
            right(answer, row["doc"]["answer"], "strict") for answer in row["resps"][0]
        ]
