"""Folders of Inspect logs: copies, earlier tries, several tasks; and logs that cannot be used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import harness_noise as hn
from harness_noise.cli import main
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log

from support.inspect_evals import change


# folders
def test_tasks_of_one_model_in_a_folder_are_one_run(canned, tmp_path):
    tasks = [canned.task(name="left"), canned.task(canned.samples(9), name="right")]
    canned.eval(tasks, tmp_path, model=["mockllm/alpha", "mockllm/beta"], epochs=2)
    runs = hn.read(tmp_path, groups={"both": "*"})
    assert {run.model for run in runs} == {"mockllm/alpha", "mockllm/beta"}
    for run in runs:
        assert {scores.task for scores in run.scores} == {"left", "right"}
        rows = {item.task: item for item in hn.analyze(run).estimates}
        want = rows["left"].mean * 12 + rows["right"].mean * 9
        assert rows["both"].mean == pytest.approx(want / 21)
    assert {run.name for run in runs} == {str(tmp_path)}
    again = hn.analyze(runs[0], cluster="passage")
    assert {item.model for item in again.estimates} == {runs[0].model}
    assert {item.n_clusters for item in again.estimates if item.task == "left"} == {4}


def test_of_two_runs_of_a_task_in_a_folder_the_newest_counts(canned, inspect_logs, tmp_path):
    shutil.copy(inspect_logs.a, tmp_path / "one.eval")
    second = canned.eval(canned.task(), tmp_path, model="mockllm/alpha", epochs=2)[0]
    (run,) = hn.read(tmp_path)
    assert run.name == str(Path(second.location))
    assert [note for note in noted(run) if "older run" in note and "one.eval" in note]
    runs = hn.read(tmp_path, apart=True)
    assert {run.name for run in runs} == {str(tmp_path / "one.eval"), str(Path(second.location))}


def test_logs_that_share_a_task_id_are_copies_only_if_their_answers_are(canned, inspect_logs, tmp_path):
    """Other programs that write such logs give one id to a task, whichever model answers it, and whenever."""

    def of_other_model(log: EvalLog):
        log.eval.model = "other/model"

    scorer = next(iter(read_eval_log(str(inspect_logs.a)).samples[0].scores))
    change(inspect_logs.a, tmp_path / "one.eval", lambda log: None)
    change(inspect_logs.a, tmp_path / "two.eval", of_other_model)
    runs = hn.read(tmp_path)
    assert {run.model for run in runs} == {"mockllm/alpha", "other/model"}
    assert not [note for run in runs for note in noted(run) if "has the answers of" in note]

    def rerun(log: EvalLog):
        log.eval.created = "2999-01-01T00:00:00+00:00"
        for sample in log.samples:
            sample.uuid = None
            sample.scores[scorer].value = "I" if sample.scores[scorer].value == "C" else "C"

    change(inspect_logs.a, tmp_path / "three.eval", rerun)
    runs = hn.read(tmp_path)
    assert not [note for run in runs for note in noted(run) if "has the answers of" in note]
    assert [note for run in runs for note in noted(run) if "older run" in note and "one.eval" in note]


def test_a_copy_and_an_earlier_try_do_not_count_twice(canned, inspect_logs, tmp_path):
    def retried(log: EvalLog):
        log.eval.eval_id, log.eval.created = "later", "2999-01-01T00:00:00+00:00"

    (tmp_path / "augmented").mkdir()
    shutil.copy(inspect_logs.a, tmp_path / "one.eval")
    shutil.copy(inspect_logs.a, tmp_path / "augmented" / "one.eval")
    (run,) = hn.read(tmp_path)
    assert run.name == str(tmp_path / "augmented" / "one.eval")
    assert [note for note in noted(run) if "copy" in note and str(tmp_path / "one.eval") in note]
    change(inspect_logs.a, tmp_path / "two.eval", retried)
    (tmp_path / "a_cut.eval").write_bytes(b"not a zip")
    (run,) = hn.read(tmp_path)
    assert run.name == str(tmp_path / "two.eval")
    assert [note.startswith("left out:") for note in noted(run)] == [True] * 3


@pytest.mark.parametrize(
    ("created", "date"),
    [
        ("2025-03-01T09:00:00+02:00", "2025-03-01T07:00:00+00:00"),
        ("2025-03-01T09:00:00", "2025-03-01T09:00:00+00:00"),
        ("yesterday", ""),
    ],
)
def test_a_date_is_in_utc_or_there_is_none(inspect_logs, tmp_path, created, date):
    log = read_eval_log(str(inspect_logs.a))
    write_eval_log(log, str(tmp_path / "a.json"))
    data = json.loads((tmp_path / "a.json").read_text())
    data["eval"]["created"] = created
    (tmp_path / "a.json").write_text(json.dumps(data))
    assert hn.read(tmp_path / "a.json")[0].date == date


# input that cannot be used
def refused(capsys, *arguments):
    status = main([str(item) for item in arguments])
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert len(printed.err.strip().splitlines()) < 8
    return " ".join(printed.err.split())


def unfinished(log: EvalLog):
    log.status, log.results = "started", None


def without_scores(log: EvalLog):
    for sample in log.samples:
        sample.scores = None
    log.results, log.reductions = None, None


def failed(log: EvalLog):
    without_scores(log)
    log.status = "error"


def only_mode(log: EvalLog):
    log.results.scores[0].reducer = "mode"


def unknown_scorer(log: EvalLog):
    log.results.scores[0].name = log.results.scores[0].scorer = "somebody"


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (unfinished, "has not finished"),
        (without_scores, "no sample of the log has a score. `inspect score"),
        (failed, "no sample of the log has a score (status error). `inspect eval-retry"),
        (only_mode, "its reducer mode is not a mean over repeats"),
        (unknown_scorer, "no sample has a score of this scorer"),
    ],
)
def test_logs_that_cannot_be_used(inspect_logs, tmp_path, capsys, edit, reason):
    path = change(inspect_logs.a, tmp_path / "log.eval", edit)
    before = path.read_bytes()
    assert reason in refused(capsys, "analyze", path)
    assert reason in refused(capsys, "compare", path, inspect_logs.b)
    assert reason in refused(capsys, "export", path, "--in-place")
    assert reason in refused(capsys, "export", path, "-o", tmp_path / "out")
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["log.eval"]


def test_files_that_are_no_logs(inspect_logs, tmp_path, capsys):
    whole = inspect_logs.a.read_bytes()
    files = {
        "cut.eval": whole[: len(whole) // 2],
        "text.eval": b"not a zip",
        "empty.eval": b"",
        "cut.json": b'{"version": 2, "status": "success", "eval": {"task":',
        "wrong.json": b'{"version": 2, "status": "success", "eval": {"task": 1}}',
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert "not an Inspect log that can be read" in refused(capsys, "analyze", tmp_path / name), name
    (tmp_path / "other.json").write_text(json.dumps({"status": "success"}))
    assert refused(capsys, "analyze", tmp_path / "other.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*files, "other.json"])
    assert "none of its 5 files can be used" in refused(capsys, "analyze", tmp_path)


def test_an_unknown_scorer_lists_those_there_are(inspect_logs, capsys):
    assert "match" in refused(capsys, "analyze", inspect_logs.a, "--scorer", "nope")


def test_logs_of_different_tasks_say_what_differs(canned, inspect_logs, tmp_path, capsys):
    samples = [canned.Sample(input=f"Other {i}", target="no", id=f"o{i}") for i in range(5)]
    log = canned.eval(canned.task(samples, name="others"), tmp_path, epochs=2)[0]
    text = refused(capsys, "compare", inspect_logs.a, log.location)
    assert "the tasks differ (coins and others)" in text
    assert "no question in common (12 and 5 questions)" in text
