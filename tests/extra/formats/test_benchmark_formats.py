"""What benchmarks write: each file is read by its preset and by its content, or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import InputError
from harness_noise.extra.testing.adapters import check_adapter
from harness_noise_adapters.tables import adapter
from support.notes import noted

WORDS = ("pass", "fail", "timeout")


def bigcodebench() -> Any:
    def tries(i: int) -> list[dict[str, Any]]:
        each = [{"task_id": f"BCB/{i}", "solution": f"s{i}.{j}", "status": WORDS[(i + j) % 3]} for j in range(2)]
        return [{**one, "details": {}} for one in each]

    return {"date": "2024-10-01 10:00", "eval": {f"BCB/{i}": tries(i) for i in range(6)}}


def cruxeval() -> Any:
    right = {f"sample_{i}": [i % 2 == 0, i % 3 == 0] for i in range(6)}
    return {
        "raw_generations": {key: ["f(1)", "f(2)"] for key in right},
        "raw_scored_generations": right,
        "pass_at_1": 100 * 5 / 12,
        "pass_at_5": 60.0,
    }


def mathvista() -> Any:
    def problem(i: int) -> dict[str, Any]:
        about = {"answer_type": "float", "metadata": {"task": "geometry", "source": f"set {i % 2}"}}
        said = {"query": f"Hint {i}", "response": f"so {i}", "extraction": str(i), "prediction": str(i)}
        return {"pid": str(i), "question": f"How many {i}?", "answer": "1", **about, **said, "true_false": i < 3}

    return {str(i): problem(i) for i in range(1, 7)}


def opencompass() -> Any:
    details = {
        str(i): {"prompt": [{"role": "HUMAN", "prompt": f"q{i}"}], "origin_prediction": f"it is {i}",
                 "predictions": str(i), "references": "1", "correct": i == 1}
        for i in range(5)
    }  # fmt: skip
    return {"accuracy": 20.0, "details": {"type": "GEN", **details}}


def livecodebench() -> Any:
    return [
        {"question_id": f"q{i}", "question_title": f"Sort {i}", "contest_date": f"2023-0{i}-21T00:00:00",
         "difficulty": "easy", "code_list": ["a", "b"], "graded_list": [i % 2 == 0, True],
         "pass@1": 0.5 * (1 + (i % 2 == 0)), "metadata": ["{}", "{}"]}
        for i in range(1, 6)
    ]  # fmt: skip


def terminal_bench() -> Any:
    marks = [(True, "unset"), (False, "agent_timeout"), (None, "parse_error"), (None, "unknown_agent_error")]
    results = [
        {"id": str(i), "trial_name": f"t{i}.1-of-1.run", "task_id": f"t{i}", "instruction": f"Do {i}.",
         "is_resolved": right, "failure_mode": why, "parser_results": None}
        for i, (right, why) in enumerate(marks)
    ]  # fmt: skip
    return {"results": results, "n_resolved": 1, "n_unresolved": 3, "resolved_ids": ["t0"], "accuracy": 0.25}


def evalscope() -> Any:
    def row(i: int) -> dict[str, Any]:
        score = {"value": {"acc": float(i > 2), "strict": 0.5}, "prediction": f"p{i}", "status": "success"}
        return {"index": i, "input": f"q{i}", "target": "t", "sample_score": {"score": score, "sample_id": i}}

    rows = [row(i) for i in range(6)]
    rows[5]["sample_score"]["score"] |= {"status": "parse_error", "value": {"acc": 0.0, "strict": 0.0}}
    return rows


def ragas() -> Any:
    return [
        {"user_input": f"q{i}", "retrieved_contexts": ["c"], "response": f"a{i}", "reference": "r",
         "faithfulness": None if i == 0 else 0.1 * i, "answer_relevancy": 0.5, "factual_correctness(mode=f1)": 0.2 * i,
         "latency": 3.0 + i, "query_length": 7}
        for i in range(5)
    ]  # fmt: skip


MADE = {
    "bigcodebench": (bigcodebench, {"pass": (4 / 12, 2)}),
    "cruxeval": (cruxeval, {"pass": (5 / 12, 2)}),
    "mathvista": (mathvista, {"accuracy": (2 / 6, 1)}),
    "opencompass": (opencompass, {"correct": (1 / 5, 1)}),
    "livecodebench": (livecodebench, {"pass": (7 / 10, 2)}),
    "terminal-bench": (terminal_bench, {"resolved": (1 / 2, 1)}),
    "evalscope": (evalscope, {"acc": (2 / 5, 1), "strict": (0.5, 1)}),
    "ragas": (
        ragas,
        {"faithfulness": (0.25, 1), "answer_relevancy": (0.5, 1), "factual_correctness(mode=f1)": (0.4, 1)},
    ),
}  # fmt: skip
BY_LINES = ("evalscope",)


def written(folder: Path, name: str) -> Path:
    """A made-up file of a format, under a name that says nothing."""
    folder.mkdir(exist_ok=True, parents=True)
    data = MADE[name][0]()
    if name in BY_LINES:
        (path := folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    else:
        (path := folder / "data.json").write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("name", MADE)
def test_each_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    (run,) = hn.read(written(tmp_path / "some-model", name))
    assert run.harness == name
    found = {part.metric: (np.nanmean(part.values), part.values.shape[1]) for part in run.scores}
    assert found == {metric: (pytest.approx(mean), K) for metric, (mean, K) in MADE[name][1].items()}


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("bigcodebench", "task_id"), ("mathvista", "pid"), ("livecodebench", "question_id"), ("ragas", "user_input"),
    ],
)  # fmt: skip
def test_each_keeps_what_an_adapter_promises(name: str, question: str, tmp_path: Path) -> None:
    check_adapter(adapter, written(tmp_path / "m", name), tmp_path / "work", question=question, cluster=question)


@pytest.mark.parametrize("name", ["cruxeval", "opencompass"])
def test_the_mean_that_a_format_reports_is_verified(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name)
    (row,) = hn.analyze(path).estimates
    assert "mean_mismatch" not in row.diagnostics
    data = json.loads(path.read_text())
    data[next(key for key in ("pass_at_1", "accuracy") if key in data)] += 5
    path.write_text(json.dumps(data))
    (row,) = hn.analyze(path).estimates
    assert "mean_mismatch" in row.diagnostics


def test_answers_that_nobody_graded_are_missing_by_their_cause(tmp_path: Path) -> None:
    """terminal-bench counts them as 0 in its own accuracy, and `missing` does so, too."""
    path = written(tmp_path, "terminal-bench")
    (row,) = hn.analyze(path).estimates
    assert row.missing == {"verifier": 1, "infrastructure": 1}
    (row,) = hn.analyze(path, missing="zero").estimates
    assert (row.mean, row.n_questions) == (0.25, 4)
    assert "mean_mismatch" not in row.diagnostics
    run = hn.read(written(tmp_path, "evalscope"))[0]
    assert [dict(part.missing) for part in run.scores] == [{"verifier": 1}, {"verifier": 1}]


def test_reviews_of_evalscope_name_the_model_and_the_task_by_their_place(tmp_path: Path) -> None:
    path = written(tmp_path / "reviews" / "qwen", "evalscope").rename(tmp_path / "reviews" / "qwen" / "math_L1.jsonl")
    (run,) = hn.read(path)
    assert (run.model, run.scores[0].task) == ("qwen", "math_L1")


def test_the_months_of_contests_are_slices_in_order(tmp_path: Path) -> None:
    data = [{**row, "question_id": f"{row['question_id']}-{i}"} for i in range(4) for row in livecodebench()]
    (path := tmp_path / "codegeneration.json").write_text(json.dumps(data[::-1]))
    labels = [row.slice for row in hn.analyze(path, by="month").slices]
    assert labels == [f"2023-0{i}" for i in range(1, 6)]


def test_numbers_that_ragas_does_not_know_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "ragas")
    (said,) = [note for note in noted(hn.read(path)[0].notes) if "not taken" in note]
    assert "latency, query_length" in said
    run = hn.read(path, columns={"metrics": "faithfulness+latency", "question": "user_input"})[0]
    assert [part.metric for part in run.scores] == ["faithfulness", "latency"]


def exercise(folder: Path, language: str, name: str, outcomes: list[bool] | None) -> None:
    place = folder / language / "exercises" / "practice" / name
    place.mkdir(parents=True)
    said: dict[str, Any] = {"exception": "Traceback"}
    if outcomes is not None:
        said = {"testcase": name, "model": "gpt-x", "edit_format": "diff", "tests_outcomes": outcomes, "cost": 0.1}
    (place / ".aider.results.json").write_text(json.dumps(said))


def test_a_run_of_aider_is_a_folder_whose_tries_end_at_the_first_success(tmp_path: Path) -> None:
    """Its pass_rate_1 is the row, its pass_rate_2 is pass@2; one name in two languages is two exercises."""
    outcomes = [[False, True], [True], [False, False], [True], [False, True]]
    for i, each in enumerate(outcomes):
        exercise(tmp_path / "run", "python" if i % 2 else "go", f"e{i // 2}", each)
    exercise(tmp_path / "run", "rust", "broken", None)
    (run,) = hn.read(tmp_path / "run")
    assert (run.model, run.harness, run.scores[0].stops_on) == ("gpt-x", "aider", "success")
    assert dict(run.scores[0].missing) == {"infrastructure": 1}
    (row,) = hn.analyze(tmp_path / "run").estimates
    assert (row.mean, row.n_questions) == (pytest.approx(2 / 5), 5)
    assert "stopped_on_success" in row.diagnostics
    rows = {row.metric: row for row in hn.analyze(tmp_path / "run", measures=["pass@2"]).estimates}
    assert rows["pass@2"].mean == pytest.approx(4 / 5)
    (tmp_path / "run" / "go" / "exercises" / "practice" / "e0" / ".aider.results.json").write_text("[1]")
    with pytest.raises(InputError, match=r"aider.results.json: not an object"):
        hn.read(tmp_path / "run")


def test_bfcl_lists_the_failed_answers_only(tmp_path: Path) -> None:
    rows = [{"accuracy": 0.95, "correct_count": 95, "total_count": 100}]
    rows += [{"id": f"simple_{i}", "valid": False, "error_type": "x", "model_name": "m"} for i in range(5)]
    (path := tmp_path / "simple_score.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"only a part.*counts 100, and 5 rows follow"):
        hn.read(path)


def test_what_is_called_eval_and_holds_no_answers_is_no_file_of_evalplus(tmp_path: Path) -> None:
    data = {"eval": "insults", "tests": [{"id": f"t{i}", "score": i % 2} for i in range(6)]}
    (path := tmp_path / "results.json").write_text(json.dumps(data))
    assert hn.read(path)[0].harness == "table"


MINE = """
[mine]
when = ["qid", "marks"]
question = "qid"
stops_on = "{stops}"

[[mine.score]]
path = "marks"
missing = [{{ cause = "verifier", where = {{ state = "lost" }} }}]

[[mine.score]]
path = "parts.*.mark"
name = "name"
missing = [{{ cause = "infrastructure", where = {{ state = "lost" }} }}]
"""


def test_a_cause_told_for_one_score_is_looked_up_in_the_row(tmp_path: Path) -> None:
    rows = [
        {"qid": f"q{i}", "marks": i % 2, "state": "lost" if i == 1 else "", "parts": [{"name": "tone", "mark": 1}]}
        for i in range(5)
    ]
    (path := tmp_path / "t.json").write_text(json.dumps(rows))
    (formats := tmp_path / "formats.toml").write_text(MINE.format(stops=""))
    (run,) = hn.read(path, format_file=formats)
    missing = {part.metric: (np.nanmean(part.values), dict(part.missing)) for part in run.scores}
    assert missing == {"marks": (0.25, {"verifier": 1}), "tone": (1.0, {"infrastructure": 1})}
    formats.write_text(MINE.format(stops="noon"))
    with pytest.raises(InputError, match="stops_on is success or failure"):
        hn.read(path, format_file=formats)
