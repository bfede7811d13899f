"""Runs of Inspect whose looks have a fault, or whose samples fail or are cancelled, through the real Inspect."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import pytest

import harness_noise as hn
from support.inspect_stopping import STRONG, WEAK, N, answers, record, task, weak_log
from support.notes import noted

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


@pytest.fixture(scope="module")
def weak(canned, tmp_path_factory):
    """The log of the weak model, over all questions."""
    return weak_log(canned, tmp_path_factory.mktemp("weak"))


@contextmanager
def at_most(seconds):
    """A run that hangs is an error, not a hanging test."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_):
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture
def late_word():
    """A scorer whose 26th score is no number."""
    from inspect_ai.scorer import Score, accuracy, scorer

    seen = []

    @scorer(metrics=[accuracy()], name="match")
    def match():
        async def score(state, target):
            seen.append(state.sample_id)
            return Score(value="sorry" if len(seen) == 26 else "C" if state.output.completion == "yes" else "I")

        return score

    return match()


def test_after_a_fault_in_a_look_the_random_part_stays(canned, tmp_path, weak, warned, late_word):
    log = canned.eval(
        task(canned, WEAK, scorer=late_word), tmp_path, model="mockllm/w2", max_samples=1,
        metadata={"noise_until": "decided", "noise_against": weak, "noise_sample": 60},
    )[0]  # fmt: skip
    assert log.status == "success"
    assert len(answers(log)) == 60
    (drawn,) = record(log)["drawn"]
    assert (drawn["n_asked"], drawn["n_total"], drawn["stopped_early"]) == (60, N, False)
    (found,) = record(log)["sequential"]
    assert (found["decision"], found["n_asked"]) == ("not decided", 25)
    said = " ".join(warned())
    assert "it goes on to its end (InputError: match has scores that are no numbers" in said
    assert "a random subset, 60 of 100 questions" in said
    assert "under way" not in said
    assert hn.analyze(log.location).estimates[0].n_missing == 0


@pytest.mark.parametrize("max_samples", [1, 2])
def test_samples_that_fail_or_are_cancelled_hold_nobody_up(canned, tmp_path, weak, max_samples):
    from inspect_ai.log._samples import sample_active

    def before(state):
        if state.sample_id in ("q1", "q7"):
            raise RuntimeError("no answer")
        if state.sample_id in ("q2", "q40"):
            sample_active().interrupt("error")

    with at_most(240):
        log = canned.eval(
            task(canned, STRONG, before=before), tmp_path, model="mockllm/strong", fail_on_error=False, epochs=2,
            max_samples=max_samples, metadata={"noise_until": "decided", "noise_against": weak},
        )[0]  # fmt: skip
    assert log.status == "success"
    assert record(log)["sequential"][0]["decision"] == "A better"
    assert len(answers(log)) < 2 * N


def test_all_questions_are_a_part_too(canned, tmp_path):
    log = canned.eval(task(canned, STRONG), tmp_path, model="mockllm/strong", metadata={"noise_sample": 1.0})[0]
    assert log.status == "success", log.error
    assert len(answers(log)) == N
    assert "drawn" not in record(log)


@pytest.mark.parametrize("changed", ["deciding", "late", "none"])
def test_a_decision_is_void_where_the_scores_that_decided_are_changed_later(canned, tmp_path, weak, changed):
    """Scores of what was under way when it stopped have decided nothing, and writing the log again changes none."""
    from inspect_ai.log import read_eval_log, recompute_metrics, write_eval_log

    (log,) = canned.eval(
        task(canned, STRONG), tmp_path, model="mockllm/strong", max_samples=5,
        metadata={"noise_until": "decided", "noise_against": weak},
    )  # fmt: skip
    assert log.status == "success", log.error
    (found,) = record(log)["sequential"]
    assert found["decision"] == "A better"
    assert [row.decision for row in hn.analyze(log.location).sequential] == ["A better"]
    whole = read_eval_log(log.location)
    late = {key for key, _ in found["late"]}
    assert len(whole.samples) == found["n_asked"] + len(late)
    if changed == "late" and not late:
        pytest.skip("nothing was under way when it stopped")
    for sample in whole.samples:
        if changed != "none" and (sample.id in late) == (changed == "late"):
            sample.scores["match"].value = "C"
    recompute_metrics(whole)
    write_eval_log(whole, str(tmp_path / "changed.eval"))
    analysis = hn.analyze(tmp_path / "changed.eval")
    void = changed == "deciding"
    assert [row.decision for row in analysis.sequential] == ([] if void else ["A better"])
    assert any("what was decided then (A better) is void" in note for note in noted(analysis)) == void
    assert "stopped_early" in analysis.estimates[0].diagnostics
    assert hn.analyze(tmp_path / "changed.eval", missing="zero").sequential == analysis.sequential
