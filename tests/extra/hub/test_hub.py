"""Entries for a model's page on the Hugging Face Hub hold what its own client reads, and what was computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.extra.hub.write import benchmark_of, make


def table(path: Path, *tasks: str, scale: float = 1.0, model: str = "org/model-1") -> Path:
    rng = np.random.default_rng(3)
    rows = [
        f"{task},{model},{question},{repeat},{scale * float(rng.random() < 0.7)}"
        for task in tasks
        for question in range(40)
        for repeat in range(2)
    ]
    path.write_text("\n".join(["task,model,question,repeat,score", *rows]))
    return path


def entries(folder: Path) -> list[EvalResultEntry]:
    (path,) = (folder / ".eval_results").iterdir()
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = parse_eval_result_entries(data)
    assert eval_result_entries_to_yaml(found) == data  # nothing that the client does not know
    return found


def test_an_entry_is_what_the_client_of_the_hub_writes(tmp_path: Path) -> None:
    source = table(tmp_path / "runs.csv", "gsm8k", "owner/data:part")
    done = hn.export(source, tmp_path / "repo", form="hub")
    rows = {row.task: row for row in hn.analyze(source).estimates}
    assert [path.parent.name for path in done.written] == [".eval_results"]
    first, second = entries(tmp_path / "repo")
    assert (first.dataset_id, first.task_id) == ("openai/gsm8k", "gsm8k")
    assert (second.dataset_id, second.task_id) == ("owner/data", "part")
    row = rows["gsm8k"]
    assert row.mean is not None
    assert row.se is not None
    assert first.value == pytest.approx(100 * row.mean, abs=1e-8)
    assert f"score; ± {100 * row.se:.1f} points (standard error); 40 questions, 2 answers each" in str(first.notes)
    assert first.date is None  # a table does not say when


def test_a_score_on_another_scale_stays_on_it(tmp_path: Path) -> None:
    source = table(tmp_path / "runs.csv", "gsm8k", scale=7.0)
    hn.export(source, tmp_path / "repo", form="hub")
    (entry,) = entries(tmp_path / "repo")
    assert entry.value == pytest.approx(hn.analyze(source).estimates[0].mean)
    assert "points" not in str(entry.notes)


@pytest.mark.parametrize(
    ("date", "written"),
    [
        ("2026-01-15T10:30:00+00:00", "2026-01-15T10:30:00+00:00"),
        ("2026-01-15", "2026-01-15"),
        ("1768473000", None),
        ("2026-01-15T10-30-00.123", "2026-01-15"),  # of a file's name
    ],
)
def test_a_date_is_written_if_it_is_iso(tmp_path: Path, date: str, written: str | None) -> None:
    questions = hn.Questions(tuple(f"q{i}" for i in range(30)), "id")
    values = (np.random.default_rng(1).random((30, 1)) < 0.5).astype(float)
    scores = hn.Scores("hle", "acc", "none", questions, values, bounds=(0.0, 1.0))
    run = hn.Run("m", "m", "array", scores=(scores,), date=date)
    make(run, hn.analyze(run), tmp_path, say=print)
    (entry,) = entries(tmp_path)
    assert entry.date == written


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ("gpqa_diamond", ("Idavidrein/gpqa", "gpqa_diamond")),
        ("gpqa_diamond_cot_zeroshot", ("Idavidrein/gpqa", "gpqa_diamond")),
        ("inspect_evals/mmlu_pro", ("TIGER-Lab/MMLU-Pro", "mmlu_pro")),
        ("mmlu_pro_law", None),  # a part of it
        ("gsm8k_platinum", None),
        ("mygsm8k", None),
        ("a/b:c", ("a/b", "c")),
        ("a:b", None),
    ],
)
def test_a_task_is_a_benchmark_only_if_the_whole_name_is(task: str, found: tuple[str, str] | None) -> None:
    assert benchmark_of(task) == found


def test_unknown_tasks_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", str(table(tmp_path / "runs.csv", "gsm8k", "mine")), "-o", str(tmp_path / "repo"), "--as", "hub"]
    assert main(words) == 0
    assert "left out: mine" in capsys.readouterr().err
    assert len(entries(tmp_path / "repo")) == 1
    words[1] = str(table(tmp_path / "others.csv", "mine"))
    assert main(words) == 2
    assert "such as openai/gsm8k:gsm8k" in capsys.readouterr().err


def test_two_models_have_a_file_each_and_writing_twice_changes_nothing(tmp_path: Path) -> None:
    for name in ("x", "y"):
        table(tmp_path / f"{name}.csv", "gsm8k", model=f"org/{name}")
        hn.export(tmp_path / f"{name}.csv", tmp_path / "repo", form="hub")
    first = {path.name: path.read_bytes() for path in (tmp_path / "repo" / ".eval_results").iterdir()}
    assert len(first) == 2
    hn.export(tmp_path / "x.csv", tmp_path / "repo", form="hub")
    assert {path.name: path.read_bytes() for path in (tmp_path / "repo" / ".eval_results").iterdir()} == first


def test_runs_whose_names_lose_signs_have_a_file_each(tmp_path: Path) -> None:
    """Two models whose names have no Latin letter, and two paths that differ in a sign."""
    for name, model in (("a b", "模型"), ("a b", "型模"), ("a-b", "模型")):
        table(tmp_path / f"{name}.csv", "gsm8k", model=model)
        hn.export(tmp_path / f"{name}.csv", tmp_path / "repo", form="hub")
    assert len([*(tmp_path / "repo" / ".eval_results").iterdir()]) == 3


@pytest.mark.parametrize("scale", [1e-6, 1e-5 / 3, 1e22])
def test_a_number_with_an_exponent_is_a_number(tmp_path: Path, scale: float) -> None:
    """YAML 1.1 takes 1e-06 for a text."""
    path = tmp_path / "runs.csv"
    path.write_text("question,score,task\n" + "".join(f"{i},{scale * 2 * (i % 2)},gsm8k\n" for i in range(20)))
    hn.export(path, tmp_path / "repo", form="hub")
    (entry,) = entries(tmp_path / "repo")
    assert isinstance(entry.value, float)
    assert entry.value == pytest.approx(scale, rel=1e-9)


def test_unequal_numbers_of_answers_are_said(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    rows = [f"gsm8k,{i},{(i + k) % 2},{k}" for i in range(20) for k in range(1 + 2 * (i % 2))]
    path.write_text("task,question,score,repeat\n" + "\n".join(rows))
    hn.export(path, tmp_path / "repo", form="hub")
    assert "20 questions, 1–3 answers each;" in str(entries(tmp_path / "repo")[0].notes)
