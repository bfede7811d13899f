"""Tasks with one metric for each length, whose aggregation leaves out the questions of other lengths (RULER)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lm_eval")
from harness_noise.data.scores import ReadOptions
from harness_noise.io.registry import read
from harness_noise.results.rows import Analysis
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import save

N = 60
LENGTHS = (8192, 16384)
TASK = """
task: niah_toy
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"], do_sample: true, temperature: 0.7, max_gen_toks: 16}}
process_results: !function lengths.process_results
metric_list:
  - {{metric: "4096", aggregation: !function lengths.aggregate_metrics, higher_is_better: true}}
  - {{metric: "8192", aggregation: !function lengths.aggregate_metrics, higher_is_better: true}}
  - {{metric: "16384", aggregation: !function lengths.aggregate_metrics, higher_is_better: true}}
"""
# as lm-eval's own RULER has it: of the default length every question gets a score, of the others those that have it
CODE = """
def process_results(doc, results):
    metrics = {"4096": -1.0}
    metrics[str(doc["max_length"])] = float(doc["answer"] in results[0].split())
    return metrics


def aggregate_metrics(metrics):
    found = [x for x in metrics if x != -1]
    return sum(found) / len(found) if found else -1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = toys.docs(N)
    for i, row in enumerate(rows):
        row["max_length"] = (4096, *LENGTHS)[i % 3]
    write(tmp_path, rows)
    return tmp_path


def write(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "lengths.py").write_text(CODE)
    (folder / "niah_toy.yaml").write_text(TASK.format(data=folder / "data.jsonl"))


def check(analysis: Analysis, native: dict[str, Any], samples: list[dict[str, Any]], K: int) -> None:
    """Every length is a mean of the questions that have it, and nothing is missing."""
    found = {row.metric: row for row in analysis.estimates}
    assert set(found) == {"4096", "8192", "16384"}
    for metric, row in found.items():
        mine = [item for item in samples if item["doc"]["max_length"] == int(metric)]
        right = [[float(item["doc"]["answer"] in answer.split()) for answer in item["resps"][0]] for item in mine]
        assert row.n_questions == len(mine) == N // 3
        assert row.mean == pytest.approx(np.mean(right), abs=1e-12)
        assert native[f"{metric},none"] == pytest.approx(np.mean([answers[0] for answers in right]), abs=1e-12)
        assert row.se == pytest.approx(np.std(np.mean(right, axis=1), ddof=1) / np.sqrt(N // 3), rel=1e-9)
        assert (row.repeats_min, row.repeats_max) == (K, K)
        assert not {"missing_repeats", "mean_mismatch", "partly_single_repeat"} & set(row.diagnostics)
        assert row.mean_if_missing_wrong is None
        assert row.range == (0, 1)


@pytest.mark.parametrize("K", [1, 3])
def test_each_length_has_the_questions_that_have_it(folder: Path, K: int) -> None:
    from harness_noise import analyze

    plain = toys.simple_evaluate(folder, ["niah_toy"])["results"]["niah_toy"]
    with noise(repeats=K) as session:
        results = save(folder, folder / "out", ["niah_toy"], toys.HashModel())
    assert plain.items() <= results["results"]["niah_toy"].items()
    check(session.analysis, results["results"]["niah_toy"], results["samples"]["niah_toy"], K)
    for missing in ("drop", "zero"):
        (again,) = read(str(folder / "out"), ReadOptions(missing=missing))
        check(analyze(again), results["results"]["niah_toy"], results["samples"]["niah_toy"], K)


def test_a_length_that_no_question_has_is_no_score(folder: Path) -> None:
    write(folder, [row | {"max_length": LENGTHS[i % 2]} for i, row in enumerate(toys.docs(N))])
    with noise() as session:
        results = save(folder, folder / "out", ["niah_toy"], toys.HashModel())
    assert results["results"]["niah_toy"]["4096,none"] == -1
    (again,) = read(str(folder / "out"), ReadOptions())
    (samples,) = (folder / "out").glob("**/samples_*.jsonl")
    alone = folder / "alone"
    alone.mkdir()
    samples = samples.rename(alone / samples.name)
    (bare,) = read(str(samples), ReadOptions())  # without lm-eval's own values the names say it
    for run in (session.collected.run, again, bare):
        assert {part.metric: int(np.isfinite(part.values).sum()) for part in run.scores} == dict.fromkeys(
            map(str, LENGTHS), N // 2
        )
        (skipped,) = run.skipped
        assert skipped.metric == "4096"
        assert "applies to no question" in skipped.reason


def test_minus_one_is_a_score_where_the_harness_counts_it(folder: Path) -> None:
    code = CODE.replace("if x != -1", "if x != -2")
    (folder / "lengths.py").write_text(code)
    with noise() as session:
        results = toys.simple_evaluate(folder, ["niah_toy"])
    found = {row.metric: row for row in session.analysis.estimates}
    assert found["4096"].mean == pytest.approx(results["results"]["niah_toy"]["4096,none"], abs=1e-12)
    assert found["4096"].mean < 0
    assert found["4096"].n_questions == N
