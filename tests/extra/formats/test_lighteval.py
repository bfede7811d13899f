"""lighteval's details, and lmms-eval's samples, which have lm-eval's form under other names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.scores import ReadOptions
from harness_noise.extra.testing.adapters import check_adapter
from harness_noise_adapters.extra.formats.lighteval import adapter
from support.commands import refused
from support.notes import noted

DATE = "2025-11-05T14-43-47.148527"
TASK = "agieval:aqua-rat|0"
SCORES = [float(i * 7 % 5 % 2) for i in range(12)]


def details(root: Path, metrics: Any = None, model: str = "org/sim") -> Path:
    """The details of one task, and lighteval's own mean of it."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    folder = root / "details" / model / DATE
    folder.mkdir(parents=True)
    rows = [
        {
            "doc": {
                "id": str(i),
                "query": f"What is {i} + {i}?",
                "task_name": TASK,
                "num_samples": 1,
                "topic": "ab"[i % 2],
            },
            "model_response": {"text": ["4"]},
            "metric": metrics or {"acc": SCORES[i], "acc_norm": None if i == 3 else 1.0},
        }
        for i in range(12)
    ]
    parquet.write_table(arrow.Table.from_pylist(rows), folder / f"details_{TASK}_{DATE}.parquet")
    results = root / "results" / model
    results.mkdir(parents=True)
    found = {"config_general": {"model_name": model}, "results": {TASK: {"acc": sum(SCORES) / 12, "acc_stderr": 0.1}}}
    (results / f"results_{DATE}.json").write_text(json.dumps(found))
    return folder


def test_what_every_adapter_promises(tmp_path: Path) -> None:
    details(tmp_path / "out")
    check_adapter(
        adapter,
        tmp_path / "out",
        tmp_path / "work",
        cluster="query",
        question="query",
        models=["org/sim"],
        expected={(TASK, "acc", "1"): [SCORES[1]], (TASK, "acc_norm", "3"): [None]},
    )


def test_the_whole_output_folder_is_read_and_its_means_reproduced(tmp_path: Path) -> None:
    folder = details(tmp_path / "out")
    for place in (folder, tmp_path / "out", folder / f"details_{TASK}_{DATE}.parquet"):
        (run,) = hn.read(place)
        assert (run.model, run.harness, [part.metric for part in run.scores]) == (
            "org/sim",
            "lighteval",
            ["acc", "acc_norm"],
        )
        assert (run.scores[0].native, run.scores[0].diagnostics) == (sum(SCORES) / 12, ())


def test_a_metric_that_no_document_has_blocks_no_gate(tmp_path: Path) -> None:
    new, old = (details(tmp_path / name, {"acc": 1.0, "acc_norm": None}) for name in ("new", "old"))
    for file in tmp_path.rglob("results_*.json"):
        file.unlink()  # its mean is that of other scores
    for how in ("drop", "zero"):
        result = hn.analyze(new, missing=how)
        assert [(row.metric, row.mean) for row in result.estimates] == [("acc", 1.0)]
        assert any("no answer has a value of acc_norm" in note for note in noted(result))
    gate = hn.gate(new, old, margin=0.1)
    assert (gate.outcome, [row.metric for row in gate.rows]) == ("pass", ["acc"])


def test_damaged_details_are_refused_in_one_paragraph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (metrics, content, words) in enumerate((
        ({"acc": "good"}, None, "'good' is not a finite number"),
        (None, b"version https://git-lfs.github.com/spec/v1\noid 0\n", "Git LFS pointer"),
        (None, b"PAR1 cut", "not a Parquet file that can be read"),
    )):  # fmt: skip
        folder = details(tmp_path / str(number), metrics)
        if content is not None:
            next(folder.iterdir()).write_bytes(content)
        refused(folder, capsys, words)


def test_results_beside_the_details_that_say_nothing_cost_no_answer(tmp_path: Path) -> None:
    for number, (old, new) in enumerate(
        ((str(sum(SCORES) / 12), "9" * 400), (f'{{"{TASK}"', f'["{TASK}", 1], "a": {{"b"'))
    ):
        folder = details(tmp_path / str(number) / "a**b[")
        (native,) = (tmp_path / str(number)).rglob("results_*.json")
        native.write_text(native.read_text().replace(old, new))
        assert hn.read(folder)[0].scores[0].native is None


def test_a_document_without_id_and_words_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    file = tmp_path / f"details_{TASK}_{DATE}.parquet"
    parquet.write_table(arrow.Table.from_pylist([{"doc": {"id": ""}, "metric": {"acc": 1.0}}] * 3), file)
    with pytest.raises(hn.InputError, match="which question is it"):
        hn.read(file)


def test_lmms_eval_s_names_begin_with_the_date(tmp_path: Path) -> None:
    folder = tmp_path / "sim"
    folder.mkdir()
    rows = [
        {
            "doc_id": i,
            "target": "4",
            "doc_hash": f"h{i}",
            "filtered_resps": ["4"],
            "input": f"What is {i}?",
            "input_media": [f"{i}.png"],
            "token_counts": [{"input_tokens": 319, "output_tokens": 2}],
            "exact_match": score,
        }
        for i, score in enumerate(SCORES)
    ]
    name = "20250401_120000"
    (folder / f"{name}_samples_mme_test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    results = {"results": {"mme_test": {"alias": "mme_test", "exact_match,none": sum(SCORES) / 12}}, "configs": {},
               "model_name": "sim"}  # fmt: skip
    (folder / f"{name}_results.json").write_text(json.dumps(results))
    for place in (folder, folder / f"{name}_results.json", folder / f"{name}_samples_mme_test.jsonl"):
        (row,) = hn.analyze(place).estimates
        assert (row.task, row.metric, row.mean, row.n_questions) == ("mme_test", "exact_match", sum(SCORES) / 12, 12)
        assert "mean_mismatch" not in row.diagnostics


def test_a_metric_of_lmms_eval_that_is_an_object_is_no_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"doc_id": i, "target": "Yes", "doc_hash": "h", "filtered_resps": "Yes", "input": f"Is it {i}?",
             "mme_score": {"question_id": f"{i}.png", "score": 1.0}} for i in range(4)]  # fmt: skip
    path = tmp_path / "20250401_120000_samples_mme.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["analyze", str(path)]) == 0
    said = capsys.readouterr()
    assert "mme mme_score: its value on a question is not one number" in said.err
    assert "no metric here has one number for each question" in " ".join(said.out.split())
    assert "--log_samples" not in said.out


def test_files_of_two_dates_in_one_folder_are_two_runs(tmp_path: Path) -> None:
    """As answers of one run they would be repeats of its questions."""
    first = details(tmp_path / "out")
    (file,) = first.iterdir()
    later = DATE.replace("2025", "2026")
    (first / file.name.replace(DATE, later)).write_bytes(file.read_bytes())
    old, new = adapter.read(first, ReadOptions())
    assert (old.date, new.date) == (DATE, later)
    assert old.name != new.name
    assert (old.path, old.model) == (new.path, new.model) == (str(first), "org/sim")
    assert [part.values.shape for run in (old, new) for part in run.scores] == [(12, 1)] * 4
    assert (old.scores[0].native, new.scores[0].native) == (sum(SCORES) / 12, None)
    (chosen,) = hn.read(first)
    assert chosen.date == later
    assert [note.code for note in chosen.notes] == ["one_of_several"]
