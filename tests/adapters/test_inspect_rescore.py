"""Scores that change after the run: where the noise is on it is computed again, from what the log then holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

import inspect_ai
from inspect_ai.log import read_eval_log, recompute_metrics, write_eval_log
from inspect_ai.scorer import accuracy, match, stderr

from harness_noise_adapters.inspect_logs import hook, private
from support import fault_walk as walk
from support.inspect_evals import PASSAGES, coins, ours, unwrap_all
from support.slow import rest_slow

ON = {"noise": True, "noise_cluster": "passage"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _own_functions():
    """Inspect's own functions before and after each test."""
    unwrap_all()
    yield
    unwrap_all()


def table_of(log, name="match"):
    rows = {(s.id, s.epoch): float(s.scores[name].value == "C") for s in log.samples}
    return np.array([[rows[f"q{i}", j] for j in (1, 2, 3)] for i in range(12)])


def se_of(log, index=0):
    return log.results.scores[index].metrics["noise_se"].value


def run(canned, folder, metadata=ON, **options):
    (log,) = canned.eval(canned.task(**options), folder, epochs=3, metadata=metadata)
    return read_eval_log(log.location)


def test_recompute_changes_nothing_where_nothing_has_changed(canned, tmp_path, warned):
    log = run(canned, tmp_path)
    before = log.results.model_dump()
    recompute_metrics(log)
    assert log.results.model_dump() == before
    write_eval_log(log, str(tmp_path / "again.eval"))
    assert read_eval_log(str(tmp_path / "again.eval")).results.model_dump() == before
    assert warned() == []


def test_an_edited_score_renews_it(canned, tmp_path):
    from inspect_ai.log import edit_score
    from inspect_ai.scorer import ScoreEdit

    log = run(canned, tmp_path)
    before = se_of(log)
    wrong = next(sample for sample in log.samples if sample.scores["match"].value == "I")
    edit_score(log, wrong.id, "match", ScoreEdit(value="C"), epoch=wrong.epoch)
    want = hn.estimate(table_of(log), PASSAGES)
    assert se_of(log) == pytest.approx(want.se, rel=1e-12)
    assert se_of(log) != before
    assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(want.mean)


@pytest.mark.parametrize("action", ["append", "overwrite"])
def test_scoring_again(canned, tmp_path, action):
    log = run(canned, tmp_path)
    before = ours(log.results.scores[0])
    again = canned.quietly(inspect_ai.score, log, match(location="begin"), action=action, display="none")
    assert len(again.results.scores) == (2 if action == "append" else 1)
    assert ours(again.results.scores[-1]) == pytest.approx(before, rel=1e-12)
    assert ours(again.results.scores[0]) == before
    assert ours(log.results.scores[0]) == before


def test_an_exported_log_keeps_the_settings_of_its_export(canned, tmp_path):
    from harness_noise.cli import main

    log = run(canned, tmp_path / "in", metadata=None)
    assert main(["export", log.location, "-o", str(tmp_path), "--cluster", "passage", "--level", "0.8", "-q"]) == 0
    exported = read_eval_log(str(tmp_path / Path(log.location).name))
    before = ours(exported.results.scores[0])
    unwrap_all()
    from harness_noise.inspect_ext import keep_noise

    assert keep_noise()
    recompute_metrics(exported)
    assert ours(exported.results.scores[0]) == pytest.approx(before, rel=1e-12)
    assert before == pytest.approx(
        {
            name: getattr(hn.estimate(coins(canned), PASSAGES, level=0.8), field)
            for name, field in {
                "noise_se": "se", "noise_ci_low": "ci_low", "noise_ci_high": "ci_high", "noise_total": "se_total",
                "noise_data": "se_data", "noise_prediction": "se_prediction",
            }.items()
        }, rel=1e-12,
    )  # fmt: skip


def test_a_log_without_noise_stays_without(canned, tmp_path):
    log = run(canned, tmp_path, metadata=None)
    assert private.wrap_rescoring(hook.renew)
    recompute_metrics(log)
    assert list(log.results.scores[0].metrics) == ["accuracy", "stderr"]
    canned.quietly(inspect_ai.score, log, match(), action="overwrite", display="none", copy=False)
    assert list(log.results.scores[0].metrics) == ["accuracy", "stderr"]


def test_without_our_wrapper_it_is_gone_and_never_stale(canned, tmp_path):
    log = run(canned, tmp_path)
    unwrap_all()
    recompute_metrics(log)
    assert list(log.results.scores[0].metrics) == ["accuracy", "stderr"]


def test_a_fault_loses_no_score_and_says_how_to_get_it_back(canned, tmp_path, monkeypatch, warned):
    log = run(canned, tmp_path)
    native = {k: m.value for k, m in log.results.scores[0].metrics.items() if m.group != "noise"}

    class Panic(BaseException):
        pass

    for error in (RuntimeError("by accident"), Panic("by accident")):

        def fault(*_args, error=error):
            raise error

        monkeypatch.setattr(hook, "add", fault)
        recompute_metrics(log)
        assert {k: m.value for k, m in log.results.scores[0].metrics.items()} == native
        assert "by accident" in warned()[-1]
        assert "harness-noise export LOG -o DIR" in warned()[-1]
        log.results.scores[0].metrics = dict(log.results.scores[0].metrics)


@pytest.mark.parametrize("every", rest_slow([4, 1]))
def test_an_exception_at_every_call(canned, tmp_path, every):
    """The new native values are there, and ours whole or not at all."""
    log = run(canned, tmp_path)
    recompute_metrics(log)
    whole = ours(log.results.scores[0])
    native = {k: m.value for k, m in log.results.scores[0].metrics.items() if m.group != "noise"}
    wrapper = "_with_noise.<locals>.eval_results"  # Inspect's own call: nothing of ours
    points = [p for p in walk.points(lambda: recompute_metrics(log)) if p.name != wrapper]
    assert len(points) > 50
    for point in points[::every]:
        walk.raising(point, RuntimeError("injected fault"), lambda: recompute_metrics(log))
        (es,) = log.results.scores
        assert {k: m.value for k, m in es.metrics.items() if m.group != "noise"} == native, point
        assert ours(es) in (whole, {}), point
        recompute_metrics(log)
        assert ours(log.results.scores[0]) == whole, point


def test_a_stranger_is_left_alone(monkeypatch):
    from inspect_ai._eval import score

    def stranger(**everything):
        raise AssertionError

    monkeypatch.setattr(score, "eval_results", stranger)
    assert not private.wrap_rescoring(hook.renew)
    assert score.eval_results is stranger


def test_twice_is_once():
    from inspect_ai._eval import score
    from inspect_ai.log import _metric

    native = score.eval_results, _metric.eval_results
    assert private.wrap_rescoring(hook.renew)
    wrapped = score.eval_results, _metric.eval_results
    assert private.wrap_rescoring(hook.renew)
    assert (score.eval_results, _metric.eval_results) == wrapped
    assert not set(map(id, wrapped)) & set(map(id, native))
    unwrap_all()
    assert (score.eval_results, _metric.eval_results) == native


@pytest.mark.slow
def test_inspect_score_on_the_command_line(tmp_path):
    def inspect(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "inspect_ai", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True,
            env=os.environ | {"COLUMNS": "100"}, timeout=180,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    inspect(
        "eval", "configs/inspect/passages.py", "--model", "mockllm/model", "-T", "simulated=true", "--epochs", 3,
        "--metadata", "noise=true", "--metadata", "noise_cluster=passage", "--log-dir", tmp_path, "--display", "plain",
    )  # fmt: skip
    (path,) = tmp_path.glob("*.eval")
    before = ours(read_eval_log(str(path), header_only=True).results.scores[0])
    assert len(before) == 6
    for action in ("append", "overwrite"):
        out = tmp_path / f"{action}.eval"
        shown = inspect("score", path, "--scorer", "match", "--action", action, "--output-file", out)
        assert "noise_se" in shown
        scores = read_eval_log(str(out), header_only=True).results.scores
        assert [bool(ours(es)) for es in scores] == [True] * (2 if action == "append" else 1)
        assert ours(scores[0])["noise_se"] == pytest.approx(before["noise_se"], rel=1e-12)


def test_metrics_of_the_header_are_left_to_inspect(canned, tmp_path):
    log = run(canned, tmp_path, scorer=match(), metrics=[accuracy(), stderr()])
    assert [item.name for item in log.eval.scorers[0].metrics] == ["inspect_ai/accuracy", "inspect_ai/stderr"]
