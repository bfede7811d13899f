"""Runs of Inspect with several epochs that stop early: every question once before any twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import harness_noise as hn
from support.inspect_evals import native
from support.inspect_stopping import MIDDLE, WEAK, N, answers, looks, record, task, weak_log
from support.notes import noted

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

K = 3
CLOSE = 0.45
"""How often a model is right that is not told from the weak one in the first round."""


@pytest.fixture(scope="module")
def weak(canned, tmp_path_factory):
    """The log of the weak model, over all questions, with as many epochs."""
    return weak_log(canned, tmp_path_factory.mktemp("weak"), epochs=K)


def until(weak, **more):
    return {"noise_until": "decided", "noise_against": weak, "noise_futility": "off"} | more


def counted(asked):
    """For a task's `before`: every answer that is asked for."""
    return lambda state: asked.append((state.sample_id, state.epoch))


@pytest.fixture(scope="module")
def stopped(canned, tmp_path_factory, weak):
    """A run that is decided in a later round, and what was asked of its solver, in this order."""
    asked = []
    found = task(canned, CLOSE, before=counted(asked))
    (log,) = canned.eval(
        found, tmp_path_factory.mktemp("stopped"), model="mockllm/third", epochs=K, max_samples=1, metadata=until(weak)
    )
    assert log.status == "success", log.error
    return log, asked


def test_all_questions_are_asked_once_before_any_is_asked_twice(stopped):
    log, asked = stopped
    (found,) = record(log)["sequential"]
    ids = log.eval.dataset.sample_ids
    assert asked == [(key, epoch) for epoch in range(1, K + 1) for key in ids][: len(asked)]
    assert N < len(asked) < K * N
    assert (found["n_answers"], found["n_answers_total"]) == (len(asked), K * N)
    assert found["round"] == max(epoch for _, epoch in asked)
    assert found["n_asked"] == N
    assert sorted(answers(log)) == sorted(asked)
    stops = {(item.id, item.epoch) for item in log.results.early_stopping.early_stops}
    assert stops == {(key, epoch) for epoch in range(1, K + 1) for key in ids} - set(asked)


def test_the_log_is_read_with_as_many_answers_as_each_question_has(stopped):
    log, asked = stopped
    (row,) = hn.analyze(log.location).estimates
    each = Counter(key for key, _ in asked)
    assert (row.repeats_min, row.repeats_max) == (min(each.values()), max(each.values())) != (K, K)
    assert (row.n_questions, row.n_missing) == (N, 0)
    assert "stopped_early" in row.diagnostics
    assert row.mean == pytest.approx(log.results.scores[0].metrics["accuracy"].value, rel=1e-12)
    (drawn,) = record(log)["drawn"]
    assert (drawn["n_asked"], drawn["n_total"], drawn["stopped_early"]) == (N, N, True)
    (kept,) = hn.analyze(log.location).sequential
    assert kept.decision == record(log)["sequential"][0]["decision"] == "A better"


def test_its_native_values_are_those_of_what_was_asked(canned, stopped, tmp_path):
    """A run of whole rounds would hold the same answers; those that were not asked are taken out of it."""
    from inspect_ai.log import read_eval_log, recompute_metrics

    log, asked = stopped
    whole = canned.eval(task(canned, CLOSE), tmp_path, model="mockllm/third", epochs=K)[0]
    part = read_eval_log(whole.location)
    there = set(asked)
    part.samples = [sample for sample in part.samples if (sample.id, sample.epoch) in there]
    canned.quietly(recompute_metrics, part)
    assert native(part.results.scores[0]) == native(log.results.scores[0])
    done = answers(whole)
    assert {key: done[key] for key in asked} == answers(log)


def test_a_decision_is_void_once_a_score_of_a_later_round_is_changed(canned, stopped, tmp_path):
    from inspect_ai.log import read_eval_log, write_eval_log

    log, asked = stopped
    changed = read_eval_log(log.location)
    sample = next(item for item in changed.samples if (item.id, item.epoch) == asked[-1])
    sample.scores["match"].value = "I" if sample.scores["match"].value == "C" else "C"
    write_eval_log(changed, str(tmp_path / "changed.eval"))
    analysis = hn.analyze(tmp_path / "changed.eval")
    assert not analysis.sequential
    assert any("is void" in note for note in noted(analysis))


def test_answers_under_way_have_no_part_in_the_decision(canned, stopped, tmp_path, weak):
    """With ten at a time some later answers are there; the log still has the decision, and every round its answers."""
    asked = []
    (log,) = canned.eval(
        task(canned, CLOSE, before=counted(asked)), tmp_path, model="mockllm/third", epochs=K, max_samples=10,
        metadata=until(weak),
    )  # fmt: skip
    (found,), (want,) = record(log)["sequential"], record(stopped[0])["sequential"]
    assert {**found, "late": []} == {**want, "late": []}
    assert len(asked) == len(set(asked)) == found["n_answers"] + len(found["late"])
    assert hn.analyze(log.location).sequential


def test_reducers_take_the_answers_that_are_there(canned, tmp_path, weak):
    from inspect_ai import Epochs

    (log,) = canned.eval(
        task(canned, CLOSE, epochs=Epochs(K, ["mean", "max", "mode"])), tmp_path, model="mockllm/third", max_samples=1,
        metadata=until(weak),
    )  # fmt: skip
    assert log.status == "success", log.error
    done = answers(log)
    assert N < len(done) < K * N
    right = {key: [float(value == "C") for (name, _), value in done.items() if name == key] for key, _ in done}
    by_reducer = {es.reducer: es.metrics["accuracy"].value for es in log.results.scores}
    assert by_reducer["mean"] == pytest.approx(np.mean([np.mean(values) for values in right.values()]), rel=1e-12)
    assert by_reducer["max"] == pytest.approx(np.mean([max(values) for values in right.values()]), rel=1e-12)


def test_clusters_are_asked_whole_in_every_round(canned, tmp_path, weak):
    asked = []
    (log,) = canned.eval(
        task(canned, CLOSE, before=counted(asked)), tmp_path, model="mockllm/third", epochs=K, max_samples=1,
        metadata=until(weak, noise_cluster="passage"),
    )  # fmt: skip
    passages = [(int(key[1:]) // 4, epoch) for key, epoch in asked]
    assert all(count == 4 for count in Counter(passages).values())
    blocks = list(dict.fromkeys(passages))
    assert [epoch for _, epoch in blocks] == sorted(epoch for _, epoch in blocks)
    assert len(asked) == record(log)["sequential"][0]["n_answers"]


def test_futility_ends_a_run_that_the_rest_cannot_decide(canned, tmp_path, weak, warned):
    metadata = until(weak) | {"noise_futility": "on"}
    (log,) = canned.eval(task(canned, WEAK), tmp_path, model="mockllm/same", epochs=K, max_samples=1, metadata=metadata)
    (found,) = record(log)["sequential"]
    assert found["decision"] == "cannot be decided"
    assert found["n_answers"] == len(answers(log)) < K * N
    assert found["ci_low"] < 0 < found["ci_high"]
    assert any("the rest cannot decide it" in text for text in warned())


def test_models_stop_in_rounds_of_their_own(canned, tmp_path, weak):
    logs = canned.eval(
        task(canned, CLOSE), tmp_path, model=["mockllm/third", "mockllm/other"], epochs=K, max_samples=1,
        metadata=until(weak),
    )  # fmt: skip
    for log in logs:
        (found,) = record(log)["sequential"]
        done = answers(log)
        ids = log.eval.dataset.sample_ids
        assert sorted(done) == sorted([(key, epoch) for epoch in range(1, K + 1) for key in ids][: len(done)])
        assert len(done) == found["n_answers"]
    assert len(answers(logs[0])) != len(answers(logs[1]))


def growing(canned, name, **options):
    """A task that Inspect can find again."""

    @inspect_ai.task(name=name)
    def build():
        return task(canned, CLOSE, name=name, **options)

    return build()


def test_a_run_that_failed_in_a_later_round_is_taken_up_again(canned, tmp_path, warned):
    from inspect_ai import eval_retry

    asked, fail = [], [False]

    def before(state):
        asked.append((state.sample_id, state.epoch))
        if fail[0] and len(asked) == N + 10:
            raise RuntimeError("the server is gone")

    other = canned.eval(task(canned, WEAK, seed=None, name="rounds"), tmp_path / "b", model="mockllm/weak", epochs=K)[0]
    found = growing(canned, "rounds", before=before)
    options = {"model": "mockllm/third", "max_samples": 1, "epochs": K, "metadata": until(other.location)}
    whole = canned.eval(found, tmp_path / "whole", **options)[0]
    want = looks(warned)
    assert len(answers(whole)) > N + 10
    asked.clear()
    fail[0] = True
    first = canned.eval(found, tmp_path / "first", **options)[0]
    assert (first.status, len(answers(first))) == ("error", N + 9)
    fail[0], said = False, len(looks(warned))
    asked.clear()
    again = canned.quietly(eval_retry, first, log_dir=str(tmp_path / "again"), display="none", max_samples=1)[0]
    assert again.status == "success", again.error
    assert record(again) == record(whole)
    assert looks(warned)[said:] == want
    assert sorted([*asked, *answers(first)]) == sorted(answers(again)) == sorted(answers(whole))


CANCELLED = """
import hashlib, os, signal
import anyio
import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

asked = []

@solver
def canned():
    async def solve(state, generate):
        asked.append(state.sample_id)
        if len(asked) == int(os.environ.get("CANCEL_AT", 0)):
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep(30)
        drawn = hashlib.md5(f"{state.model} {state.sample_id} {state.epoch}".encode()).digest()[0] / 256
        text = "yes" if drawn < (0.45 if "third" in str(state.model) else 0.3) else "no"
        state.output = ModelOutput.from_content("mockllm/model", text)
        return state
    return solve

@inspect_ai.task
def coins():
    data = MemoryDataset([Sample(id=i, input=f"Question {i}", target="yes") for i in range(100)])
    data.shuffle(3)
    return inspect_ai.Task(dataset=data, solver=canned(), scorer=match())

def run(folder, model, metadata=None):
    options = dict(model="mockllm/" + model, max_samples=1, epochs=3, metadata=metadata, display="none")
    return inspect_ai.eval(coins(), log_dir=str(folder), **options)[0]

if __name__ == "__main__":
    import json, sys
    run(sys.argv[1], "third", json.loads(sys.argv[2]))
"""


@pytest.mark.process
@pytest.mark.slow
def test_a_run_that_is_cancelled_in_a_later_round_is_taken_up_again(canned, tmp_path, warned, monkeypatch):
    import runpy

    from inspect_ai import eval_retry
    from inspect_ai.log import read_eval_log

    monkeypatch.chdir(tmp_path)  # where Inspect looks for the task again
    script = tmp_path / "coins.py"
    script.write_text(CANCELLED)
    run = runpy.run_path(str(script))["run"]
    metadata = until(canned.quietly(run, tmp_path / "weak", "weak").location, noise_looks=10)
    whole = canned.quietly(run, tmp_path / "whole", "third", metadata)
    want = looks(warned)
    subprocess.run(
        [sys.executable, str(script), str(tmp_path / "cut"), json.dumps(metadata)], capture_output=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), timeout=240, cwd=tmp_path,
        env=os.environ | {"CANCEL_AT": str(N + 30), "HARNESS_NOISE": ""},
    )  # fmt: skip
    (path,) = (tmp_path / "cut").glob("*.eval")
    cut = read_eval_log(str(path))
    order = [(key, epoch) for epoch in range(1, K + 1) for key in cut.eval.dataset.sample_ids]
    assert cut.status == "cancelled"
    assert set(answers(cut)) == set(order[: N + 29]) < set(answers(whole))
    found = cut.results.scores[0].metrics["noise_diff"].metadata["sequential"]
    assert (found["decision"], found["n_answers"], found["round"]) == ("not decided", 120, 2)
    (row,) = hn.analyze(path).estimates
    assert (row.n_questions, row.n_missing, row.repeats_min, row.repeats_max) == (N, 0, 1, 2)
    assert row.mean == pytest.approx(cut.results.scores[0].metrics["accuracy"].value, rel=1e-12)
    said = len(looks(warned))
    again = canned.quietly(eval_retry, cut, log_dir=str(tmp_path / "again"), display="none", max_samples=1)[0]
    assert again.status == "success", again.error
    assert record(again) == record(whole)
    assert looks(warned)[said:] == want
    kept = {item.uuid for item in read_eval_log(again.location).samples} & {item.uuid for item in cut.samples}
    assert len(kept) == N + 29  # none of them was asked for again


def test_with_few_clusters_it_is_said_before_the_first_question_that_little_is_saved(canned, tmp_path, weak, warned):
    said = []
    (log,) = canned.eval(
        task(canned, CLOSE, per_cluster=10, before=lambda state: said.append(list(warned()))), tmp_path,
        model="mockllm/third", metadata=until(weak, noise_cluster="passage"),
    )  # fmt: skip
    assert log.status == "success", log.error
    assert any("expect to ask nearly all" in text for text in said[0])


def test_references_enter_the_looks(canned, tmp_path, weak):
    """A model that is right where the new one is tells more of it than the weak one does."""
    alike = canned.eval(task(canned, MIDDLE, seed=None), tmp_path / "alike", model="mockllm/alike")[0].location
    (plain,) = canned.eval(
        task(canned, CLOSE), tmp_path / "plain", model="mockllm/third", max_samples=1, metadata=until(weak)
    )
    (log,) = canned.eval(
        task(canned, CLOSE), tmp_path / "with", model="mockllm/third", max_samples=1,
        metadata=until(weak, noise_complete=alike),
    )  # fmt: skip
    (with_it,), (without,) = record(log)["sequential"], record(plain)["sequential"]
    assert with_it["information"] != without["information"] or with_it["estimate"] != without["estimate"]
