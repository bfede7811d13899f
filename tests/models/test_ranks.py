"""Two real processes with gloo, as `torchrun` starts them: the native values are those of two ranks without us."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make models")
pytest.importorskip("transformers", reason="transformers is not installed: make models")
pytest.importorskip("accelerate", reason="accelerate is not installed: make models")

import harness_noise as hn
from models.tiny_tasks import K, N, right
from support.lm_eval_live import native_part

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]
HERE = Path(__file__).parent
NAMES = "sampled,choice"


def saved(out: Path, names: str = NAMES) -> dict[str, Any]:
    """What a run has written."""
    (file,) = out.glob("**/results_*.json")
    results: dict[str, Any] = json.loads(file.read_text())
    results["samples"] = {
        name: [json.loads(line) for line in next(out.glob(f"**/samples_{name}_*.jsonl")).read_text().splitlines()]
        for name in names.split(",")
    }
    return results


def arguments(tasks: Path, model: str, names: str = NAMES) -> list[str]:
    return [
        "lm-eval", "run", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu",
        "--batch_size", "8", "--include_path", str(tasks), "--tasks", names, "--log_samples",
    ]  # fmt: skip


FLAGS = ["--noise", "--noise_repeats", str(K)]


def on_two_ranks(runs: list[list[Any]]) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0",
        "--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0", str(HERE / "rank.py"), *map(json.dumps, runs),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def runs(tasks: Path, model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, Any]], str]:
    """What two ranks wrote without the flag, with it, where the second fails, where both are ended, and when these go
    on; and what they said.

    One start of both processes for all: loading torch is most of the time.
    """
    folder = tmp_path_factory.mktemp("ranks")
    options = arguments(tasks, model)
    each: dict[str, list[Any]] = {
        "plain": [None], "noisy": [None, *FLAGS, "--noise_cluster", "kind"], "failing": ["memory", *FLAGS],
        "terminated": ["terminate", *FLAGS],
    }  # fmt: skip
    asked = [[how, *options, "--output_path", str(folder / name), *more] for name, (how, *more) in each.items()]
    run = on_two_ranks(asked)
    assert run.returncode == 0, run.stderr[-4000:]
    written = {name: saved(folder / name) for name in each}
    for file in (folder / "terminated").rglob("*_20*"):
        file.unlink()
    again = on_two_ranks([[None, *options, "--output_path", str(folder / "terminated"), *FLAGS]])
    assert again.returncode == 0, again.stderr[-4000:]
    written["gone on"] = saved(folder / "terminated")
    return written, run.stdout + run.stderr + again.stdout + again.stderr


def same_native(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    a, b = native_part(ours), native_part(theirs)
    assert a["results"] == b["results"]
    for name in NAMES.split(","):
        assert a["samples"][name] == b["samples"][name]


def test_two_ranks(runs: Any) -> None:
    written, said = runs
    results = written["noisy"]
    same_native(results, written["plain"])
    assert "noise" not in written["plain"]
    rows = results["samples"]["sampled"]
    # the ranks' documents stand one rank after the other
    assert [row["doc_id"] for row in rows] != sorted(row["doc_id"] for row in rows)
    scores = np.array([right(row) for row in rows])
    assert scores.shape[1] == K
    assert [row["scores_per_repeat"]["exact_match"] for row in rows] == scores.tolist()
    expected = hn.estimate(scores, clusters=[row["doc"]["kind"] for row in rows])
    (found,) = [row for row in results["noise"]["estimates"] if row["task"] == "sampled"]
    assert (found["mean"], found["se"], found["se_prediction"]) == pytest.approx(
        (expected.mean, expected.se, expected.se_prediction)
    )
    # four runs with the flag: each has one table, by rank 0
    assert sum("95% CI" in line and "Task" in line for line in said.splitlines()) == 4


def test_a_rank_that_fails_in_the_further_answers(runs: Any) -> None:
    written, said = runs
    results = written["failing"]
    same_native(results, written["plain"])
    assert "this rank is out of memory" in said
    rows = results["samples"]["sampled"]
    counts = {row["doc_id"]: len(row["resps"][0]) for row in rows}
    assert {counts[i] for i in counts if i % 2 == 0} == {K}
    assert {counts[i] for i in counts if i % 2 == 1} == {1}
    (found,) = [row for row in results["noise"]["estimates"] if row["task"] == "sampled"]
    assert (found["repeats_min"], found["repeats_max"]) == (1, K)
    assert {"missing_repeats", "partly_single_repeat"} <= set(found["diagnostics"])


def test_ranks_that_are_terminated_keep_their_answers_and_go_on_with_them(runs: Any) -> None:
    written, said = runs
    results = written["terminated"]
    same_native(results, written["plain"])
    assert said.count("interrupted, so no further answers are asked for: 8 of 20") == 2
    rows = results["samples"]["sampled"]
    counts = {row["doc_id"]: len(row["resps"][0]) for row in rows}
    for rank in (0, 1):
        assert sorted(counts[i] for i in counts if i % 2 == rank) == [1] * 2 + [2] * 8
    again = written["gone on"]
    same_native(again, written["plain"])
    assert (again["noise"]["journal"]["taken_up"], again["noise"]["journal"]["asked"]) == (16, 24)
    first = {row["doc_id"]: row["resps"][0] for row in rows}
    for row in again["samples"]["sampled"]:
        assert len(row["resps"][0]) == K
        assert row["resps"][0][: len(first[row["doc_id"]])] == first[row["doc_id"]]


def test_ranks_that_are_killed_leave_the_native_result(tasks: Path, model: str, tmp_path: Path, runs: Any) -> None:
    written, _ = runs
    run = on_two_ranks([["kill", *arguments(tasks, model), "--output_path", str(tmp_path), *FLAGS]])
    assert run.returncode != 0
    results = saved(tmp_path)
    same_native(results, written["plain"])
    assert results["noise"] == {"unfinished": True}
    for rank in (0, 1):
        (journal,) = tmp_path.rglob(f".noise/answers-{rank}.jsonl")
        assert sum("text" in json.loads(line) for line in journal.read_text().splitlines()) == 8


def test_greedy_copies_are_judged_by_both_ranks_together(tasks: Path, model: str, tmp_path: Path) -> None:
    options = arguments(tasks, model, "greedy")
    asked = [[how, *options, "--output_path", str(tmp_path / str(how)), *FLAGS] for how in (None, "differ")]
    run = on_two_ranks(asked)
    assert run.returncode == 0, run.stderr[-4000:]
    copies, differ = (saved(tmp_path / str(how), "greedy") for how in (None, "differ"))
    assert run.stdout.count(f"temperature 0: {N} of {N} second answers were copies, {N * (K - 2)} requests saved") == 1
    (found,) = copies["noise"]["estimates"]
    assert (found["n_questions"], found["repeats_max"]) == (N, 1)
    assert "copied_repeats" in found["diagnostics"]
    assert {len(row["resps"][0]) for row in copies["samples"]["greedy"]} == {1}
    # the first rank saw copies alone, and asks on because the second did not
    (found,) = differ["noise"]["estimates"]
    assert (found["repeats_min"], found["repeats_max"]) == (K, K)
    assert "copied_repeats" not in found["diagnostics"]
    for row in differ["samples"]["greedy"]:
        assert len(row["resps"][0]) == K
        assert len(set(row["resps"][0])) == 1 + row["doc_id"] % 2
