"""What is put into a harness's results: named after what it describes, and never 0 for what is not known."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise_adapters.inspect_logs import inject as inspect_inject
from harness_noise_adapters.inspect_logs.flags import flag, misspelled
from harness_noise_adapters.lm_eval_harness.files.results import Native, inject, remove

BELOW = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 5)
"""Answers that differ and questions that do not: the data variance is estimated below 0."""
ABOVE = np.repeat([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]], 10, axis=0)


def analysis(values: np.ndarray) -> Any:
    clusters = tuple(f"c{i // 2}" for i in range(len(values)))
    q = Questions(tuple(map(str, range(len(values)))), "id")
    part = Scores("t", "em", "strict", q, values, clusters=clusters, cluster_spec="c")
    return analyze_run(Run("m", "r", "lm-eval", scores=(part,)), hn.Settings())


def native() -> dict[str, Any]:
    return {"results": {"t": {"alias": "t", "em,strict": 0.5, "em_stderr,strict": 0.1}}, "configs": {"t": {}}}


@pytest.mark.parametrize("values", [BELOW, ABOVE])
def test_the_data_noise_or_its_limit(values: np.ndarray) -> None:
    found = analysis(values)
    (row,) = found.estimates
    assert (row.var_data < 0) == (values is BELOW)
    shown, other = ("data_upper", "data") if values is BELOW else ("data", "data_upper")
    results = native()
    inject(results, found)
    assert results["results"]["t"][f"em_{shown}_stderr,strict"] == getattr(row, f"se_{shown}") > 0
    assert f"em_{other}_stderr,strict" not in results["results"]["t"]
    of_inspect = inspect_inject.values(row)
    assert of_inspect[f"noise_{shown}"] == getattr(row, f"se_{shown}")
    assert f"noise_{other}" not in of_inspect


def test_what_is_of_the_mean_over_all_answers_is_called_so() -> None:
    found, results = analysis(ABOVE), native()
    inject(results, found)
    (row,), ours = found.estimates, results["results"]["t"]
    assert ours["em_avg,strict"] == row.mean
    assert ours["em_avg_stderr,strict"] == ours["em_avg_clustered_stderr,strict"] == row.se
    assert (ours["em_avg_ci_low_stderr,strict"], ours["em_avg_ci_high_stderr,strict"]) == (row.ci_low, row.ci_high)
    remove(results)
    assert results == native()


def test_a_group_whose_tasks_ask_the_same_questions_has_a_row_with_one_cluster_for_each_question() -> None:
    """With one answer to each question it is lm-eval's own mean, beside whose ± the shared questions count once."""
    rng = np.random.default_rng(4)
    level = rng.normal(0.0, 1.0, 40)
    values = [(level + rng.normal(0.0, 0.5, 40) > 0).astype(float) for _ in range(3)]
    same = Questions(tuple(f"hash {i}" for i in range(40)), "doc_hash")
    parts = tuple(Scores(f"t{k}", "em", "strict", same, x[:, None]) for k, x in enumerate(values))
    group = Group("three", "em", "strict", tuple(part.task for part in parts), "equal")
    found = analyze_run(Run("m", "r", "lm-eval", scores=parts, groups=(group,)), hn.Settings())
    rows = {name: {"alias": name, "em,strict": float(np.mean(values[k]))} for k, name in enumerate(group.tasks)}
    whole = {"name": "three", "alias": "three", "em,strict": float(np.mean(values))}
    results: dict[str, Any] = {
        "results": rows | {"three": whole},
        "groups": {"three": dict(whole)},
        "configs": {name: {} for name in rows},
        "group_subtasks": {"three": list(rows)},
    }
    inject(results, found)
    ours, each = results["results"]["three"], np.mean(values, axis=0)
    assert ours["em_avg,strict"] == pytest.approx(ours["em,strict"])
    assert ours["em_avg_stderr,strict"] == pytest.approx(np.std(each, ddof=1) / np.sqrt(40))
    assert not any("_avg" in key for name in rows for key in results["results"][name] if "ci_" not in key)


def test_a_file_of_version_1_is_read_and_its_keys_are_taken_out() -> None:
    old = native()
    inject(old, analysis(ABOVE))
    block = old["noise"] | {"schema_version": 1, "notes": ["one sentence"]}
    for name in ("ci_low", "ci_high", "clustered"):
        old["results"]["t"][f"em_{name}_stderr,strict"] = old["results"]["t"].pop(f"em_avg_{name}_stderr,strict")
    old = json.loads(json.dumps(old | {"noise": block}))
    read = Native(old)
    assert read.results["results"] == native()["results"]
    assert read.reported["t"] == {("em", "strict"): 0.5}
    assert read.means["t"]["em", "strict"] == pytest.approx(ABOVE.mean())
    written = native()
    inject(written, analysis(ABOVE))
    again = json.loads(json.dumps(written))
    inject(again, analysis(ABOVE))
    assert again["results"] == written["results"]


def test_a_native_key_of_a_former_name_stays() -> None:
    results = native()
    results["results"]["t"]["em_clustered_stderr,strict"] = 0.3  # of the task's own code
    before = json.loads(json.dumps(results))
    inject(results, analysis(ABOVE))
    remove(results)
    assert results == before


def test_the_estimator_of_inspect_is_a_setting_and_noise_se_a_metric() -> None:
    on = {"noise": True}
    found = flag(on | {"noise_estimator": "cr1"}, {})
    assert found is not None
    assert found.settings.se == "cr1"
    fleet = flag(on, {"HARNESS_NOISE_ESTIMATOR": "cr3"})
    assert fleet is not None
    assert fleet.settings.se == "cr3"
    assert "write noise_estimator" in (misspelled(on | {"noise_se": "cr1"}, on=True) or "")
    assert misspelled({"noise_se": "cr1"}, on=False) is None
    old = flag(on | {"noise_se": "cr1"}, {}, of_file=True)  # a log that an earlier version has written
    assert old is not None
    assert (old.settings.se, old.of_file) == ("cr1", True)
