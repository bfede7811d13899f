"""One file of a folder that is cut, not fetched or of another format: a note beside the other files, never silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harness_noise as hn
from cli.test_which_runs import DATE, coin, results
from harness_noise.cli import main
from harness_noise.errors import FinalError, InputError, NotThereError
from support.notes import noted

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
DAMAGE = {
    "cut": (lambda text: text[: len(text) // 2], "damaged, truncated or still being written"),
    "cut at once": (lambda text: text[:9], "damaged, truncated or still being written"),
    "empty": (lambda text: "", "not JSON|the file is empty"),
    "not fetched": (lambda text: POINTER, "git lfs pull"),
    "malformed": (lambda text: '{"results": []}', "not a (results file|sample) of lm-eval"),
}
damaged = pytest.mark.parametrize("damage", DAMAGE)


def sample(path: Path, task: str, day: int) -> Path:
    return path / f"samples_{task}_{DATE.format(day)}.jsonl"


def log(path: Path, task: str, *, model: str = "m", field: str = "passage", day: int = 1) -> Path:
    """A log of Inspect with ten answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = [
        {
            "id": i, "epoch": 1, "input": f"{task} {i}", "target": "x", "metadata": {field: i // 2},
            "scores": {"match": {"value": "C" if i % 3 else "I"}},
        }
        for i in range(10)
    ]  # fmt: skip
    spec = {
        "task": task, "task_id": f"id-{task}", "model": model, "created": f"2026-01-{day:02}T10:00:00+00:00",
        "dataset": {"name": task}, "config": {"epochs": 1},
    }  # fmt: skip
    row = {"name": "match", "scorer": "match", "metrics": {"accuracy": {"name": "accuracy", "value": 0.6}}}
    whole = {"version": 2, "status": "success", "eval": spec, "results": {"scores": [row]}, "samples": samples}
    path.write_text(json.dumps(whole))
    return path


@damaged
@pytest.mark.parametrize("what", ["results", "samples"])
def test_the_other_results_files_are_read(tmp_path, what, damage):
    for day in (1, 2, 3):
        results(tmp_path, {f"t{day}": coin(day)}, day=day)
    path = sample(tmp_path, "t2", 2) if what == "samples" else tmp_path / f"results_{DATE.format(2)}.json"
    if (what, damage) == ("results", "malformed"):  # else it is none of lm-eval's
        path.write_text(path.read_text().replace('"configs": {"t2": {', '"configs": {"t2": 1, "x": {'))
    else:
        path.write_text(DAMAGE[damage][0](path.read_text()))
    (run,) = hn.read(tmp_path)
    assert {item.task for item in run.scores} == {"t1", "t3"}
    (note,) = [item for item in noted(run) if item.startswith("left out: ")]
    assert path.name in note
    with pytest.raises(InputError, match=DAMAGE[damage][1]):
        hn.read(tmp_path, strict=True)


@damaged
def test_the_only_file_is_an_error_with_its_cause(tmp_path, damage):
    change, cause = DAMAGE[damage]
    results(tmp_path, {"t": coin(1)})
    path = sample(tmp_path, "t", 1)
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=cause):
        hn.read(tmp_path)


def test_of_two_files_that_cannot_be_used_the_first_is_told(tmp_path):
    for day in (1, 2):
        results(tmp_path, {"t": coin(1)}, day=day).write_text(POINTER)
    with pytest.raises(InputError, match=r"none of its 2 files can be used\. The first: .*git lfs pull"):
        hn.read(tmp_path)


@pytest.mark.parametrize("command", ["analyze", "arena"])
@pytest.mark.parametrize("text", ["", POINTER, '{"results": {"t": {"acc'])
def test_an_older_run_that_stands_in_for_the_newest_is_said(tmp_path, capsys, command, text):
    results(tmp_path / "m", {"t": coin(1)}, day=1)
    results(tmp_path / "m", {"t": coin(2)}, day=5).write_text(text)
    results(tmp_path / "other", {"t": coin(3)}, day=3, model="other")
    assert main([command, str(tmp_path)]) == 0
    (note,) = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert f"Older files next to it are read (results_{DATE.format(1)}.json)" in note


def test_what_is_newer_than_a_file_that_cannot_be_used_stands_in_for_nothing(tmp_path):
    results(tmp_path, {"t": coin(1)}, day=1).write_text(POINTER)
    results(tmp_path, {"t": coin(2)}, day=5)
    (note,) = [item for item in noted(hn.read(tmp_path)[0]) if item.startswith("left out: ")]
    assert "Older" not in note


def test_every_run_of_a_folder_says_what_is_left_out(tmp_path, capsys):
    for day, name in enumerate("ABC", 1):
        results(tmp_path / name, {"t": coin(day), "u": coin(day)}, model=name, day=day)
    results(tmp_path / "C", {"t": coin(9)}, model="C", day=9).write_text(POINTER)
    assert main(["compare", str(tmp_path), "--models", "A,B"]) == 0
    assert "git lfs pull" in capsys.readouterr().err


def test_a_gate_does_not_pass_over_a_file_that_cannot_be_used(tmp_path, capsys):
    for name in "AB":
        for day in (1, 2):
            results(tmp_path / name, {f"t{day}": coin(day)}, model=name, day=day)
    sample(tmp_path / "A", "t2", 2).write_text("{")
    a, b = str(tmp_path / "A"), str(tmp_path / "B")
    assert main(["compare", a, b]) == 0
    assert main(["gate", a, "--against", b]) == 2
    assert "samples_t2" in capsys.readouterr().err
    assert main(["gate", a, "--against", b, "--task", "t1"]) == 0


def test_one_log_of_a_mixed_folder_does_not_refuse_the_rest(tmp_path):
    results(tmp_path, {"t": coin(1)})
    (tmp_path / "cut.eval").write_bytes(b"PK")
    (run,) = hn.read(tmp_path)
    assert run.harness == "lm-eval"
    assert any("cut.eval" in note for note in noted(run))


@pytest.mark.parametrize("text", ["", POINTER])
def test_a_newest_log_that_has_nothing_is_said(tmp_path, text):
    log(tmp_path / "2026-01-01T10-00-00+00-00_t_a.json", "t")
    (tmp_path / "2026-01-02T10-00-00+00-00_t_b.json").write_text(text)
    (note,) = [item for item in noted(hn.read(tmp_path)[0]) if item.startswith("left out: ")]
    assert "Older files next to it are read (2026-01-01T10-00-00+00-00_t_a.json)" in note


def test_files_without_the_task_do_not_matter(tmp_path):
    results(tmp_path, {"t": coin(1), "u": coin(2)}, day=1)
    results(tmp_path, {"v": coin(3)}, day=2)
    for task, day in (("u", 1), ("v", 2)):
        sample(tmp_path, task, day).write_text("{")
    (run,) = hn.read(tmp_path, tasks=("t",))
    assert ([item.task for item in run.scores], run.skipped, noted(run)) == (["t"], (), ())
    with pytest.raises(NotThereError, match=r"There are t, u, v$"):
        hn.read(tmp_path, tasks=("w",))


def test_logs_without_the_task_do_not_matter(tmp_path):
    log(tmp_path / "a.json", "t")
    log(tmp_path / "b.json", "u", field="other")
    unfinished = json.loads(log(tmp_path / "c.json", "v").read_text())
    (tmp_path / "c.json").write_text(json.dumps(unfinished | {"status": "started", "results": None}))
    (run,) = hn.read(tmp_path, tasks=("t",), cluster="passage")
    assert [(item.task, len(set(item.clusters))) for item in run.scores] == [("t", 5)]
    assert noted(run) == ()
    with pytest.raises(FinalError, match="passage"):
        hn.read(tmp_path, cluster="passage")
    with pytest.raises(NotThereError, match=r"There are t, u, v$"):
        hn.read(tmp_path, tasks=("w",))


def test_a_group_of_other_tasks_than_the_one_that_is_asked_for_is_read(tmp_path):
    results(tmp_path, {"t1": coin(1), "t2": coin(2), "u": coin(3)})
    sample(tmp_path, "u", 1).write_text("{")
    groups = {"G": "t*"}
    assert [group.name for group in hn.read(tmp_path, tasks=("G",), groups=groups)[0].groups] == ["G"]
    assert [item.task for item in hn.read(tmp_path, tasks=("t1",), groups=groups)[0].scores] == ["t1"]


def test_a_task_that_may_be_in_a_file_that_cannot_be_used(tmp_path):
    results(tmp_path, {"t": coin(1)}, day=1)
    results(tmp_path, {"u": coin(2)}, day=2).write_text(POINTER)
    with pytest.raises(
        NotThereError, match=r"`tasks` u is not in this run\. There is only t\. Left out: .*git lfs pull"
    ):
        hn.read(tmp_path, tasks=("u",))


def test_a_field_that_one_file_lacks_is_an_error_of_the_folder(tmp_path):
    results(tmp_path, {"t": coin(1)}, day=1)
    results(tmp_path, {"u": coin(2)}, day=2)
    path = sample(tmp_path, "t", 1)
    path.write_text(path.read_text().replace('"question"', '"words"'))
    with pytest.raises(FinalError, match="question"):
        hn.read(tmp_path, cluster="question")
