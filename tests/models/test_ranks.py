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
from models.tiny_tasks import K, right
from support.lm_eval_live import native_part

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]
HERE = Path(__file__).parent
NAMES = "sampled,choice"


def saved(out: Path) -> dict[str, Any]:
    """What a run has written."""
    (file,) = out.glob("**/results_*.json")
    results: dict[str, Any] = json.loads(file.read_text())
    results["samples"] = {
        name: [json.loads(line) for line in next(out.glob(f"**/samples_{name}_*.jsonl")).read_text().splitlines()]
        for name in NAMES.split(",")
    }
    return results


@pytest.fixture(scope="module")
def runs(tasks: Path, model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, Any]], str]:
    """What two ranks wrote without the flag, with it, and where the second fails; and what they said.

    One start of both processes for all three: loading torch is most of the time.
    """
    folder = tmp_path_factory.mktemp("ranks")
    options = [
        "lm-eval", "run", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu",
        "--batch_size", "8", "--include_path", str(tasks), "--tasks", NAMES, "--log_samples",
    ]  # fmt: skip
    flags = ["--noise", "--noise_repeats", str(K), "--noise_cluster", "kind"]
    each: dict[str, list[Any]] = {"plain": [None], "noisy": [None, *flags], "failing": [1, *flags[:3]]}
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", "0",
        "--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0", str(HERE / "rank.py"),
        *(json.dumps([fails, *options, "--output_path", str(folder / name), *more])
          for name, (fails, *more) in each.items()),
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    return {name: saved(folder / name) for name in each}, run.stdout + run.stderr


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
    # two runs with the flag: each has one table, by rank 0
    assert sum("95 % CI" in line and "Task" in line for line in said.splitlines()) == 2


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
