"""What the terminal shows of many scorers, what the log keeps, and what an export leaves beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

import harness_noise as hn

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import EvalMetric, EvalResults, EvalScore, read_eval_log

from harness_noise.cli import main
from harness_noise_adapters.inspect_logs import hook as panel
from support.inspect_evals import NAMES
from support.notes import noted


def score(name, var_data=None, key=None):
    metadata = {"harness_noise_version": "1"} | ({} if var_data is None else {"var_data": var_data})
    metrics = {"accuracy": EvalMetric(name="accuracy", value=0.5), "stderr": EvalMetric(name="stderr", value=0.07)}
    for full in NAMES if key is None else [f"{full}_{key}" for full in NAMES]:
        metrics[full] = EvalMetric(name=full, group="noise", value=0.1, metadata=metadata)
    return EvalScore(name=name, scorer=name, metrics=metrics)


def test_everything_where_there_is_room():
    shown = panel.shown_scores([score("a"), score("b")], 80)
    assert [list(es.metrics) for es in shown] == [["accuracy", "stderr", *NAMES]] * 2


def test_the_error_and_the_interval_where_there_is_not():
    scores = [score(f"scorer_{i}") for i in range(6)]
    shown = panel.shown_scores(scores, 80)
    assert [list(es.metrics) for es in shown] == [["accuracy", "stderr", "noise_se", "noise_low", "noise_high"]] * 6
    assert [len(es.metrics) for es in scores] == [8] * 6
    row = [max(len(name) + len("0.100") + panel.BETWEEN for name in es.metrics) for es in shown[:4]]
    assert sum(row) + panel.FRAME <= 80


def test_keys_keep_their_names():
    shown = panel.shown_scores([score(f"s{i}", key="grade") for i in range(4)], 80)
    assert list(shown[0].metrics)[2:] == ["noise_se_grade", "noise_low_grade", "noise_high_grade"]


def test_a_total_below_its_part_has_its_reason_beside_it():
    (shown,) = panel.shown_scores([score("a", var_data=-0.004)], 80)
    assert list(shown.metrics)[-2:] == ["noise_prediction", "data var. < 0"]
    assert shown.metrics["data var. < 0"].value == -0.004
    several = panel.shown_scores([score(f"s{i}", var_data=-0.004) for i in range(5)], 80)
    assert len(several) == 5
    for es in several:
        assert not {"noise_total", "noise_prediction"} & set(es.metrics)


@pytest.mark.parametrize("before", ["", panel.OF_KEYS])
def test_a_tasks_own_metric_is_shortened_like_ours(before):
    """Which Inspect writes with its full name where it is a metric of a dictionary's keys."""
    names = [*(before + name for name in [*NAMES, "noise_var_data"]), "decibels"]
    metrics = {name: EvalMetric(name=name, group="noise", value=0.1) for name in names}
    scores = [EvalScore(name=f"s{i}", scorer=f"s{i}", metrics=metrics) for i in range(4)]
    shown = [list(es.metrics) for es in panel.shown_scores(scores, 80)]
    assert shown == [["noise_se", "noise_low", "noise_high", "decibels"]] * 4  # another's metric `noise`


@pytest.mark.parametrize("metadata", [{}, {"noise": True}])
def test_a_tasks_own_total_below_its_part_has_its_reason_beside_it(canned, tmp_path, metadata):
    from inspect_ai.scorer import accuracy, match

    from harness_noise.inspect_ext import noise

    def answer(state):  # every question is right in one epoch of three: less data variance than nothing
        return "yes" if (int(state.sample_id[1:]) + state.epoch) % 3 == 0 else "no"

    task = canned.task(scorer=match(), metrics=[accuracy(), noise()], answer=answer)
    (log,) = canned.eval(task, tmp_path, epochs=3, metadata=metadata)
    found = {name: metric.value for es in log.results.scores for name, metric in es.metrics.items()}
    assert found["noise_total"] < found["noise_prediction"]
    assert found["noise_var_data"] == pytest.approx(hn.analyze(log.location).estimates[0].var_data, rel=1e-12)
    assert found["noise_var_data"] < 0


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("metadata", [{}, {"noise": True}])
def test_a_reason_is_said_once_whoever_knows_it(canned, tmp_path, caplog, metadata, own):
    from inspect_ai.scorer import accuracy, match

    from harness_noise.inspect_ext import noise

    task = canned.task(canned.samples(1), scorer=match(), metrics=[accuracy(), *([noise()] if own else [])])
    canned.eval(task, tmp_path, epochs=3, metadata=metadata)
    said = [r.getMessage() for r in caplog.records if "fewer than two questions" in r.getMessage()]
    assert said == ["noise: coins: fewer than two questions: no standard error"] * bool(metadata or own)


def test_the_log_keeps_everything_even_where_it_shares_the_results(monkeypatch):
    import inspect_ai.util

    monkeypatch.setattr(inspect_ai.util, "display_type", lambda: "plain")
    monkeypatch.setenv("COLUMNS", "80")
    results = EvalResults(total_samples=1, completed_samples=1, scores=[score(f"s{i}") for i in range(9)])
    log = SimpleNamespace(results=results)
    panel.shorten(results, log)
    assert {len(es.metrics) for es in results.scores} == {5}
    assert {len(es.metrics) for es in log.results.scores} == {8}


def test_a_fault_of_the_panel_costs_a_warning(canned, tmp_path, monkeypatch, caplog):
    def fault(*_args):
        raise RuntimeError("by accident")

    monkeypatch.setattr(panel, "shown_scores", fault)
    (log,) = canned.eval(canned.task(), tmp_path, epochs=3, metadata={"noise": True}, display="plain")
    assert log.status == "success"
    assert list(log.results.scores[0].metrics) == ["accuracy", "stderr", *NAMES]
    assert [r.getMessage() for r in caplog.records if "by accident" in r.getMessage()] == [
        "noise: the end of a task (by accident)"
    ]


TASK = """
import os, signal, anyio
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, accuracy, match, scorer, stderr
from inspect_ai.solver import solver

@solver
def canned():
    async def solve(state, generate):
        right = (state.sample_id * 7 + state.epoch * 5) % 3 == 0
        state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
        return state
    return solve

def graded(name):
    @scorer(metrics=[accuracy(), stderr()], name=name)
    def build():
        async def score(state, target):
            return Score(value="C" if state.output.completion == "yes" else "I")
        return score
    return build()

@scorer(metrics=[accuracy(), stderr()])
def slow():
    async def score(state, target):
        if state.sample_id == 7 and state.epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)
        if state.sample_id > 5:
            await anyio.sleep(30)
        return Score(value="C")
    return score

def data():
    return [Sample(id=i, input=str(i), target="yes", metadata={"passage": i // 3}) for i in range(12)]

@task
def many():
    return Task(dataset=data(), solver=canned(), scorer=[graded(f"scorer_{i}") for i in range(6)])

@task
def interrupted():
    return Task(dataset=data(), solver=canned(), scorer=[match(), slow()])
"""


def evaluate(folder: Path, task: str, *options: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    (folder / "tasks.py").write_text(textwrap.dedent(TASK))
    return subprocess.run(
        [sys.executable, "-m", "inspect_ai", "eval", f"tasks.py@{task}", "--model", "mockllm/model", "--epochs", "3",
         "--metadata", "noise=true", "--log-dir", "logs", "--display", "plain", *options],
        cwd=folder, capture_output=True, text=True, env=os.environ | {"COLUMNS": str(columns), "HARNESS_NOISE": ""},
        timeout=180, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_six_scorers_in_eighty_columns(tmp_path, log_format):
    done = evaluate(tmp_path, "many", "--log-format", log_format)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout.split("scorer_0")[1].split("Log:")[0]
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[::2] for row in rows if row[:1] == ["noise_se"]] == [["noise_se"] * 4, ["noise_se"] * 2]
    assert [row[::2] for row in rows if row[:1] == ["noise_high"]] == [["noise_high"] * 4, ["noise_high"] * 2]
    (path,) = (tmp_path / "logs").glob(f"*.{log_format}")
    for es in read_eval_log(str(path), header_only=True).results.scores:
        # all questions have the same mean: the data variance is below 0, and nothing gives its limit
        assert list(es.metrics) == ["accuracy", "stderr", *(name for name in NAMES if name != "noise_data")]


@pytest.mark.slow
def test_a_cancelled_run_counts_what_its_log_holds(tmp_path):
    """Inspect's own values are of the few answers that every scorer was done with."""
    done = evaluate(tmp_path, "interrupted", "--max-samples", "36", columns=250)
    (path,) = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(str(path))
    assert log.status == "cancelled"
    held = sum(1 for sample in log.samples if "match" in (sample.scores or {}))
    se = log.results.scores[0].metrics["noise_se"]
    printed = re.sub(r" \w+\.py:\d+", "", " ".join((done.stdout + done.stderr).split()))  # where the logger says it
    counted = 36 - se.metadata["n_missing"] - int(re.search(r"(\d+) of 36 answers were never given", printed)[1])
    assert held - 1 <= counted <= held  # one may go into the log while the rest is being computed
    assert "status cancelled" in printed
    if counted == held:
        assert se.value == pytest.approx(hn.analyze(path).estimates[0].se, rel=1e-12)
    found = hn.analyze(path).estimates[0]
    assert "mean_mismatch" not in found.diagnostics
    native = log.results.scores[0].metrics["accuracy"].value
    if found.mean != pytest.approx(native):
        assert any("the run was cancelled" in note for note in noted(hn.analyze(path)))


def test_an_export_of_a_folder_copies_the_rest(inspect_logs, tmp_path, capsys):
    folder, out = tmp_path / "in", tmp_path / "out"
    (folder / "sub").mkdir(parents=True)
    shutil.copy(inspect_logs.a, folder / "a.eval")
    (folder / "eval-set.json").write_text('{"eval_set_id": "x"}')
    (folder / "sub" / "unfinished.eval").write_bytes(b"not a zip")
    (folder / ".hidden").write_text("x")
    (folder / "link.json").symlink_to(folder / "eval-set.json")
    assert main(["export", str(folder), "-o", str(out)]) == 0
    assert capsys.readouterr().out.split() == [str(out / "a.eval")]
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()) == [
        "a.eval", "eval-set.json", "sub/unfinished.eval",
    ]  # fmt: skip
    for name in ("eval-set.json", "sub/unfinished.eval"):
        assert (out / name).read_bytes() == (folder / name).read_bytes()
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    assert main(["export", str(folder), "-o", str(out)]) == 0
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before
    (out / "eval-set.json").write_text(json.dumps({"eval_set_id": "another"}))
    assert main(["export", str(folder), "-o", str(out)]) == 2
    assert "eval-set.json: exists and is not the copy" in capsys.readouterr().err


def test_in_place_touches_nothing_else(inspect_logs, tmp_path):
    shutil.copy(inspect_logs.a, tmp_path / "a.eval")
    (tmp_path / "eval-set.json").write_text("{}")
    before = (tmp_path / "eval-set.json").stat().st_mtime_ns
    assert main(["export", str(tmp_path), "--in-place"]) == 0
    assert (tmp_path / "eval-set.json").stat().st_mtime_ns == before
    assert "noise_se" in read_eval_log(str(tmp_path / "a.eval"), header_only=True).results.scores[0].metrics
