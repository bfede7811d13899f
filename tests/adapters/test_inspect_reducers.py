"""What Inspect's reducers make of several epochs: the score itself with one, rows of their own with more."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import harness_noise as hn
from harness_noise.data.scores import ReadOptions
from harness_noise_adapters.inspect_logs import gather
from harness_noise_adapters.inspect_logs.read import read_log
from support.notes import noted

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai import Epochs
from inspect_ai.log import ProvenanceData, invalidate_samples, read_eval_log, write_eval_log
from inspect_ai.scorer import (
    Score,
    Scorer,
    Target,
    at_least,
    max_score,
    mean,
    median_score,
    mode_score,
    pass_at,
    score_reducer,
    scorer,
    stderr,
    value_to_float,
)
from inspect_ai.solver import TaskState

from harness_noise_adapters.extra.stopping.of_inspect.stopping import compared
from support.inspect_evals import PASSAGES

NATIVE = {"mode": mode_score(), "max": max_score(), "median": median_score()} | {
    f"{name}_{k}": reducer(k) for k in (1, 2, 3) for name, reducer in (("pass_at", pass_at), ("at_least", at_least))
}
GRADES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, math.nan])


@given(GRADES, st.sampled_from(sorted(NATIVE)))
def test_of_one_answer_every_reducer_is_inspects_own(grade, name):
    assume(not math.isnan(grade))  # there is no value
    reduce = gather.of_single_answers(name)
    if name.endswith(("_2", "_3")):
        assert reduce is None
        return
    want = NATIVE[name]([Score(value=grade)]).value
    assert reduce(np.array([[grade], [math.nan]])) == pytest.approx([want, math.nan], nan_ok=True)


@pytest.mark.parametrize("reducer", ["mode", "max", "median", "pass_at_1", "at_least_1"])
def test_with_one_epoch_any_reducer_is_the_score_itself(canned, tmp_path, reducer):
    log = canned.eval(canned.task(), tmp_path, epochs=Epochs(1, reducer))[0]
    assert log.results.scores[0].reducer == reducer
    (row,) = hn.analyze(log.location, cluster="passage").estimates
    want = hn.estimate(
        np.array([[canned.truth(f"q{i}", 1)] for i in range(12)], float), PASSAGES
    )  # fmt: skip
    assert (row.scorer, row.metric) == ("match", "accuracy")
    assert (row.mean, row.se) == pytest.approx((want.mean, want.se), rel=1e-12)
    assert "uses_all_repeats" not in row.diagnostics


@scorer(metrics=[mean(), stderr()])
def graded() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=int(str(state.sample_id)[1:]) % 5 / 4)

    return score


@pytest.mark.parametrize(
    ("reducers", "scorers"),
    [
        (["at_least_1"], {"graded (at_least_1)"}),
        (["pass_at_1"], {"graded (pass_at_1)"}),
        (["max"], {"graded"}),
        (["at_least_1", "mean"], {"graded", "graded (at_least_1)"}),
    ],
)
def test_a_share_of_full_marks_has_not_the_name_of_the_mean_mark(canned, tmp_path, reducers, scorers):
    """`at_least_1` of one graded answer is 1 for full marks, and such a row is no row of the scorer's own marks."""
    log = canned.eval(canned.task(scorer=graded()), tmp_path, epochs=Epochs(1, reducers))[0]
    marks = np.array([i % 5 / 4 for i in range(12)])
    means = {"graded": marks.mean()}
    rows = {row.scorer: row for row in hn.analyze(log.location).estimates}
    assert rows.keys() == scorers
    for name, row in rows.items():
        assert row.mean == pytest.approx(means.get(name, (marks >= 1).mean()))
        assert "mean_mismatch" not in row.diagnostics


def test_full_marks_are_not_taken_for_marks(canned, tmp_path):
    """Whoever compares the two is told what was compared; a run that asks for marks is not stopped by full marks."""
    one, other = (
        canned.eval(canned.task(scorer=graded()), tmp_path / name, model=f"mockllm/{name}", epochs=Epochs(1, name))[0]
        for name in ("at_least_1", "mean")
    )
    said = noted(hn.compare(one.location, other.location))
    assert any(f"graded (at_least_1) of {one.location} with coins / mean / graded of" in note for note in said)
    with pytest.raises(hn.InputError, match=r"at_least_1"):
        compared("coins", read_log(Path(one.location), ReadOptions()), None)
    assert compared("coins", read_log(Path(other.location), ReadOptions()), None)[0].called == "graded"


def test_such_a_run_is_compared_with_one_of_several_epochs(canned, tmp_path):
    one = canned.eval(canned.task(), tmp_path / "a", epochs=Epochs(1, "mode"))[0]
    many = canned.eval(canned.task(), tmp_path / "b", model="mockllm/beta", epochs=3)[0]
    (row,) = hn.compare(one.location, many.location).comparisons
    assert row.n_questions == 12


def test_values_of_several_epochs_have_rows_with_errors(canned, tmp_path):
    names = ["mean", "mode", "max", "pass_at_2", "at_least_2"]
    log = canned.eval(canned.task(canned.samples(40)), tmp_path, epochs=Epochs(3, names))[0]
    rows = {item.scorer: item for item in hn.analyze(log.location).estimates}
    assert set(rows) == {"match", *(f"match ({name})" for name in names[1:])}
    table = np.array([[canned.truth(f"q{i}", j) for j in (1, 2, 3)] for i in range(40)], float)
    passed = 1 - np.array([math.comb(3 - int(c), 2) / 3 for c in table.sum(axis=1)])
    assert rows["match (pass_at_2)"].mean == pytest.approx(passed.mean(), rel=1e-12)
    for es in log.results.scores:
        if es.reducer == "mean":
            continue
        row = rows[f"match ({es.reducer})"]
        assert row.mean == pytest.approx(es.metrics["accuracy"].value, rel=1e-12), es.reducer
        assert row.se == pytest.approx(es.metrics["stderr"].value, rel=1e-9), es.reducer
        assert "uses_all_repeats" in row.diagnostics
        assert "mean_mismatch" not in row.diagnostics
        assert row.se_prediction is None
    assert "uses_all_repeats" not in rows["match"].diagnostics
    assert rows["match"].se_prediction is not None


def test_a_threshold_that_the_log_does_not_name_stands_in_its_reductions(canned, tmp_path):
    """`at_least(2, value=0)` is called at_least_2 in the log; its reductions alone tell what it has made."""
    log = canned.eval(canned.task(), tmp_path, epochs=Epochs(3, [mode_score(), at_least(2, value=0.0)]))[0]
    found = {row.scorer: row.mean for row in hn.analyze(log.location).estimates}
    assert found["match (at_least_2)"] == 1.0


def test_a_question_with_an_invalidated_answer_has_no_value_of_all_its_answers(canned, tmp_path):
    """Inspect's reductions still count the answer, and nobody knows what the others alone come to."""
    log = canned.eval(canned.task(), tmp_path, epochs=Epochs(3, ["mean", "pass_at_2"]))[0]
    whole = read_eval_log(log.location)
    chosen = [next(sample.uuid for sample in whole.samples if sample.id == "q3")]
    whole = invalidate_samples(whole, chosen, ProvenanceData(author="me", reason="leaked"))
    write_eval_log(whole, str(tmp_path / "invalid.eval"))
    rows = {row.scorer: row for row in hn.analyze(tmp_path / "invalid.eval").estimates}
    assert rows["match"].n_questions == 12
    passed = [1 - math.comb(3 - sum(canned.truth(f"q{i}", j) for j in (1, 2, 3)), 2) / 3 for i in range(12) if i != 3]
    assert rows["match (pass_at_2)"].n_questions == 11
    assert rows["match (pass_at_2)"].mean == pytest.approx(np.mean(passed))


@pytest.mark.parametrize("reducer", ["mode", "pass_at_1"])
def test_with_one_epoch_another_native_value_is_told_and_hides_no_row(canned, tmp_path, reducer):
    log = canned.eval(canned.task(), tmp_path, epochs=Epochs(1, reducer))[0]
    log.results.scores[0].metrics["accuracy"].value = 0.9876
    write_eval_log(log, str(tmp_path / "changed.eval"))
    (row,) = hn.analyze(tmp_path / "changed.eval").estimates
    assert row.se is not None
    assert "mean_mismatch" in row.diagnostics


def test_a_reducer_of_more_answers_than_any_question_has_is_left_out(canned, tmp_path):
    log = canned.eval(canned.task(), tmp_path, epochs=Epochs(2, ["mean", "pass_at_2"]))[0]
    log.samples = [sample for sample in log.samples if sample.epoch == 1]  # as shortened logs are published
    write_eval_log(log, str(tmp_path / "shortened.eval"))
    rows = hn.analyze(tmp_path / "shortened.eval").estimates
    shown = [(row.scorer, row.n_questions, "skipped_metric" in row.diagnostics) for row in rows]
    assert shown == [("match", 12, False), ("match (pass_at_2)", 0, True)]


@score_reducer(name="second_best")
def second_best():
    def reduce(scores):
        values = sorted(value_to_float()(item.value) for item in scores)
        return Score(value=values[-2:][0])  # Inspect also asks while a task runs, when there may be one answer only

    return reduce


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_reducer_of_the_tasks_own_is_read_from_the_reductions(canned, tmp_path, kind):
    """The log holds what it has made of each question, which nobody can compute again."""
    (log,) = canned.eval(canned.task(), tmp_path, epochs=Epochs(3, [second_best(), "mean"]), log_format=kind)
    assert log.status == "success", log.error.message
    values = [sorted(canned.truth(f"q{i}", epoch) for epoch in (1, 2, 3))[-2] for i in range(12)]
    native = {es.reducer: es.metrics["accuracy"].value for es in log.results.scores}
    rows = {row.scorer: row for row in hn.analyze(log.location, cluster="passage").estimates}
    found = rows["match (second_best)"]
    want = hn.estimate(np.array(values, float), PASSAGES)
    assert found.mean == pytest.approx(native["second_best"]) == pytest.approx(want.mean)
    assert (found.se, found.n_questions) == (pytest.approx(want.se), 12)
    assert "uses_all_repeats" in found.diagnostics
    assert rows["match"].mean == pytest.approx(native["mean"])


def test_reductions_that_are_not_in_the_log_leave_the_row_without_error_bars(canned, tmp_path):
    (log,) = canned.eval(canned.task(), tmp_path, epochs=Epochs(3, [second_best(), "mean"]), log_format="json")
    log = read_eval_log(log.location)
    log.reductions = None
    write_eval_log(log, str(tmp_path / "less.json"))
    rows = {row.scorer: row for row in hn.analyze(tmp_path / "less.json").estimates}
    assert rows["match (second_best)"].se is None
    assert rows["match"].se > 0


def test_a_run_without_a_reducer_says_what_its_log_says(canned, tmp_path, warned):
    (log,) = canned.eval(canned.task(), tmp_path, epochs=Epochs(3, []), metadata={"noise": True})
    told = "coins: run without an epochs reducer: Inspect's own stderr treats repeats as independent questions"
    assert warned() == [f"noise: {told}"]
    analysis = hn.analyze(log.location)
    assert told in noted(analysis)
    assert log.results.scores[0].metrics["noise_se"].value == pytest.approx(analysis.estimates[0].se, rel=1e-12)
