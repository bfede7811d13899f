"""`acc_prob` beside `acc`: live, read back, and where it is left out."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.notes import noted

pytest.importorskip("lm_eval")

from lm_eval.utils import make_table

from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.cli import main
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.settings import Settings
from harness_noise.stats.passk import acc_probs
from harness_noise_adapters.lm_eval_harness import adapter, noise
from harness_noise_adapters.lm_eval_harness.files.results import copy_of
from harness_noise_adapters.lm_eval_harness.scoring.choices import Log
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, save

OWN = """
def process(doc, results):
    return {"acc": 1.0}
"""
TASKS = ["both", "texts", "mutual", "contexts", "coded", "single", "norm_only"]
"""`both` holds `plain` and `several`."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    rows = [row | {"label": i % 3, "labels": sorted({i % 3, 2})} for i, row in enumerate(toys.docs(21))]
    for row in rows:
        row["answer"] = row["choices"][row["label"]]
        row["named"] = [f"it is {choice}" for choice in row["choices"]]
        row["gold"] = row["named"][row["label"]]
        row["starts"] = [f"Choice {choice} of {row['question']}" for choice in row["choices"]]
        row["one"] = row["choices"][:1]
    toys.write_task(path, "plain", rows, toys.CHOICE)
    toys.write_task(path, "texts", rows, toys.CHOICE, doc_to_choice="{{named}}", doc_to_target="{{gold}}")
    toys.write_task(path, "several", rows, toys.CHOICE, doc_to_target="labels")
    mutual = [
        *toys.CHOICE["metric_list"],
        {"metric": "acc_mutual_info", "aggregation": "mean", "higher_is_better": True},
    ]
    toys.write_task(path, "mutual", rows, toys.CHOICE, metric_list=mutual)
    toys.write_task(
        path, "contexts", rows, toys.CHOICE, doc_to_text="label", doc_to_choice="{{starts}}", doc_to_target="so it is"
    )
    (path / "own.py").write_text(OWN)
    toys.write_task(path, "coded", rows, toys.CHOICE, process_results="REPLACED")
    text = (
        (path / "coded.yaml").read_text().replace("process_results: REPLACED", "process_results: !function own.process")
    )
    (path / "coded.yaml").write_text(text)
    toys.write_task(path, "single", rows, toys.CHOICE, doc_to_choice="{{one}}", doc_to_target=0)
    toys.write_task(path, "norm_only", rows, toys.CHOICE, metric_list=toys.CHOICE["metric_list"][1:])
    toys.write_group(path, "both", ["plain", "several"], [{"metric": "acc", "weight_by_size": True}])
    return path


class Counting(toys.HashModel):
    """Counts what it is asked."""

    requests = 0

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
        self.requests += len(requests)
        return super().loglikelihood(requests)


@pytest.fixture(scope="module")
def native(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int, Path]:
    out, model = tmp_path_factory.mktemp("native"), Counting()
    return save(folder, out, TASKS, model), model.requests, out


@pytest.fixture(scope="module")
def live(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, Any], int, Path]:
    out, model = tmp_path_factory.mktemp("live"), Counting()
    with noise() as session:
        results = save(folder, out, TASKS, model)
    assert session.problems == []
    return session, results, model.requests, out


def prob(run: Run, task: str) -> Any:
    (part,) = [item for item in run.scores if (item.task, item.metric) == (task, "acc_prob")]
    return part


def by_hand(row: dict[str, Any], gold: list[int], n: int = 3) -> float:
    weights = [math.exp(float(pair[0])) for pair in row["filtered_resps"][:n]]
    return sum(weights[i] for i in gold) / sum(weights)


GOLD = {
    "plain": lambda doc: [doc["label"]], "texts": lambda doc: [doc["label"]], "several": lambda doc: doc["labels"],
    "mutual": lambda doc: [doc["label"]],
}  # fmt: skip


@pytest.mark.parametrize("task", list(GOLD))
def test_the_probability_of_the_right_choice(live: Any, task: str) -> None:
    session, results, _, _ = live
    part = prob(session.collected.run, task)
    rows = sorted(results["samples"][task], key=lambda row: row["doc_id"])
    expected = [by_hand(row, GOLD[task](row["doc"])) for row in rows]
    np.testing.assert_allclose(part.values[:, 0], expected, rtol=1e-12)
    assert part.bounds == (0.0, 1.0)
    (row,) = [item for item in session.analysis.estimates if (item.task, item.metric) == (task, "acc_prob")]
    assert row.mean == pytest.approx(np.mean(expected))
    assert row.se == pytest.approx(np.std(expected, ddof=1) / math.sqrt(len(expected)))
    assert (row.interval, row.higher_is_better) == ("wilson", True)
    assert row.mean != results["results"][task]["acc,none"]


def test_it_costs_no_call_and_leaves_the_table_alone(live: Any, native: Any) -> None:
    assert live[2] == native[1] > 0
    session, results, _, _ = live
    # the two tasks of the group ask the same questions, so its row is clustered; no other row has a mean of ours
    row = estimate(session, "both", "acc", "none")
    assert (row.cluster, row.n_questions, row.n_clusters, row.repeats_max) == ("same question", 42, 21, 1)
    ours = {"acc_avg,none": row.mean, "acc_avg_stderr,none": row.se}
    own = copy_of(results)
    for table in ("results", "groups"):
        assert {key: own[table]["both"].pop(key) for key in ours} == ours
    assert make_table(own) == make_table(native[0])
    assert make_table(own, "groups") == make_table(native[0], "groups")
    assert not any("acc_prob" in key for row in live[1]["results"].values() for key in row)
    assert any(item["metric"] == "acc_prob" for item in live[1]["noise"]["estimates"])


REASONS = {"contexts": "contexts", "coded": "code of its own", "single": "single choice"}


def test_where_it_is_left_out(live: Any) -> None:
    session = live[0]
    have = {item.task for item in session.collected.run.scores if item.metric == "acc_prob"}
    assert have == set(GOLD)
    for task, why in REASONS.items():
        assert any(note.startswith(f"{task}: no acc_prob") and why in note for note in noted(session.analysis))
    assert not any("norm_only: no acc_prob" in note for note in noted(session.analysis))


@pytest.mark.parametrize("which", ["live", "native"])
def test_a_finished_run_says_the_same(live: Any, native: Any, which: str) -> None:
    (run,) = adapter.read({"live": live[3], "native": native[2]}[which], ReadOptions())
    assert {item.task for item in run.scores if item.metric == "acc_prob"} == set(GOLD)
    for task in GOLD:
        np.testing.assert_array_equal(prob(run, task).values, prob(live[0].collected.run, task).values)
    for task in ("contexts", "single"):
        assert any(note.startswith(f"{task}: no acc_prob") and REASONS[task] in note for note in noted(run))


def test_groups_have_it_where_all_their_tasks_do(live: Any, native: Any) -> None:
    (run,) = adapter.read(native[2], ReadOptions())
    for analysis in (live[0].analysis, analyze_run(run, Settings())):
        (row,) = [item for item in analysis.estimates if (item.task, item.metric) == ("both", "acc_prob")]
        leaves = [prob(run, task).values for task in ("plain", "several")]
        assert row.mean == pytest.approx(np.concatenate(leaves).mean())
        assert row.n_questions == 42


def test_clusters_and_comparison(native: Any, folder: Path, tmp_path: Path) -> None:
    save(folder, tmp_path, ["plain"], toys.HashModel(seed=4))
    (a,), (b,) = (adapter.read(path, ReadOptions(cluster="template")) for path in (native[2], tmp_path))
    rows = {(row.task, row.metric): row for row in compare_runs([(a, b)], Settings()).comparisons}
    row = rows["plain", "acc_prob"]
    assert row.diff == pytest.approx((prob(a, "plain").values - prob(b, "plain").values).mean())
    assert row.n_clusters == 7
    assert row.se > 0


def edited(native: Any, tmp_path: Path, change: Any) -> Run:
    out = Path(shutil.copytree(native[2], tmp_path / "run"))
    (path,) = out.rglob("samples_plain_2*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        change(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = adapter.read(out, ReadOptions(tasks=("plain",)))
    return run


def target_elsewhere(row: dict[str, Any]) -> None:
    row["target"] = str((int(row["target"]) + 1) % 3)


def not_numbers(row: dict[str, Any]) -> None:
    row["filtered_resps"] = [["x", "False"]] * 3


def no_target(row: dict[str, Any]) -> None:
    row["target"] = "none of them"


def either(row: dict[str, Any]) -> None:
    """The target is the index of one choice and the text of another; acc does not tell which is meant."""
    row["target"], row["acc"] = "0", 0.0
    row["filtered_resps"] = [["-3.0", "False"], ["-1.0", "False"], ["-2.0", "False"]]
    for i, text in enumerate(("5", "7", "0")):
        row["arguments"][f"gen_args_{i}"]["arg_1"] = f" {text}"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (target_elsewhere, "are not those of acc"), (not_numbers, "does not say which"),
        (no_target, "does not say which"), (either, "does not say which"),
    ],
)  # fmt: skip
def test_a_log_that_does_not_tell_is_left_alone(native: Any, tmp_path: Path, change: Any, why: str) -> None:
    run = edited(native, tmp_path, change)
    assert [item.metric for item in run.scores] == ["acc", "acc_norm"]
    assert any(note.startswith("plain: no acc_prob") and why in note for note in noted(run))


@pytest.mark.parametrize(("target", "right"), [(0, 0), ("5", 0), ("7", 1)])
def test_a_number_of_a_live_run_is_an_index_and_a_text_a_choice(target: Any, right: int) -> None:
    log, likely = Log(typed=True), [-3.0, -2.5, -1.0]
    row = {"filtered_resps": [(value, False) for value in likely], "target": target, "acc": 0.0}
    log.add(0, row, [("Q:", f" {text}") for text in ("5", "7", "0")])
    weights = np.exp(likely)
    assert log.probabilities(1) == pytest.approx(weights[right] / weights.sum())


def test_a_question_without_a_probability_is_missing(native: Any, tmp_path: Path) -> None:
    def change(row: dict[str, Any]) -> None:
        if row["doc_id"] == 3:
            row["filtered_resps"] = [["-inf", "False"]] * 3
            row["acc"] = float(row["target"] == "0")

    part = prob(edited(native, tmp_path, change), "plain")
    assert part.n_missing == 1
    assert np.flatnonzero(np.isnan(part.values[:, 0])).tolist() == [3]


@given(
    st.lists(st.lists(st.floats(-700, 0) | st.just(-math.inf), min_size=4, max_size=4), min_size=1, max_size=6),
    st.integers(1, 15),
)
def test_many_at_once_are_each_a_softmax(table: list[list[float]], chosen: int) -> None:
    gold = [i for i in range(4) if chosen >> i & 1]
    mask = np.array([[i in gold for i in range(4)]] * len(table))
    found = acc_probs(np.array(table), mask)
    for row, value in zip(table, found, strict=True):
        if max(row) == -math.inf:
            assert math.isnan(value)
        else:
            chances = [math.exp(x - max(row)) for x in row]
            assert value == pytest.approx(sum(chances[i] for i in gold) / math.fsum(chances), abs=1e-14)


def test_nobody_asked_for_it_so_only_json_details_and_its_name_show_it(native: Any, capsys: Any) -> None:
    """On a screen the first table has the harness's own metrics."""
    path = str(native[2])

    def said(*options: str) -> str:
        assert main([*options, "--task", "plain"]) == 0
        return str(capsys.readouterr().out)

    assert "acc_prob" not in said("analyze", path)
    assert "acc_prob" in said("analyze", path, "--details")
    assert "acc_prob" in said("analyze", path, "--metric", "acc_prob")
    assert "acc_prob" in said("analyze", path, "--metric", "acc*")
    rows = json.loads(said("analyze", path, "--format", "json"))["estimates"]
    assert [row["metric"] for row in rows if "not_asked_for" in row["diagnostics"]] == ["acc_prob"]
