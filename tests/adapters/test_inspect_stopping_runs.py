"""Runs of Inspect that stop early: epochs, clusters, several scorers, errors, cancelled and retried runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from copy import deepcopy

import pytest

from support.inspect_evals import native, unwrap_all
from support.inspect_stopping import MIDDLE, STRONG, WEAK, N, answers, looks, record, task, weak_log

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


@pytest.fixture(scope="module")
def weak(canned, tmp_path_factory):
    """The log of the weak model, over all questions."""
    return weak_log(canned, tmp_path_factory.mktemp("weak"))


def until(weak, **more):
    return {"noise_until": "decided", "noise_against": weak} | more


def counted(asked):
    """For a task's `before`: every answer that is asked for."""
    return lambda state: asked.append((state.sample_id, state.epoch))


def test_in_depth_the_epochs_of_a_question_are_asked_together(canned, tmp_path, weak, warned):
    asked = []
    log = canned.eval(
        task(canned, STRONG, before=counted(asked)), tmp_path, model="mockllm/strong", epochs=3, max_samples=4,
        metadata=until(weak, noise_order="depth"),
    )[0]  # fmt: skip
    assert log.status == "success", log.error
    found = record(log)["sequential"][0]
    assert found["decision"] == "A better"
    done = answers(log)
    assert sorted(done) == sorted(asked)
    whole = [key for key in {key for key, _ in done} if all((key, j) in done for j in (1, 2, 3))]
    assert set(log.eval.dataset.sample_ids[: found["n_asked"]]) <= set(whole)
    assert len(done) <= 3 * found["n_asked"] + 4  # what was under way
    plain = canned.eval(
        task(canned, STRONG), tmp_path / "plain", model="mockllm/strong", epochs=3, sample_id=whole,
    )[0]  # fmt: skip
    if len(whole) * 3 == len(done):
        assert native(plain.results.scores[0]) == native(log.results.scores[0])
    assert answers(plain).items() <= done.items()


@pytest.mark.parametrize("max_samples", [2, 5])
def test_no_more_run_ahead_of_a_look_that_waits_than_run_at_once(canned, tmp_path, weak, max_samples):
    """An answer of the second block ends only when nothing else begins any more."""
    import anyio
    from inspect_ai.solver import solver

    found = task(canned, STRONG)
    slow, inner = found.dataset[39].id, found.solver
    begun = 0

    @solver
    def late():
        async def solve(state, generate):
            nonlocal begun
            begun, seen = begun + 1, 0
            while state.sample_id == slow and seen < begun:
                seen = begun
                await anyio.sleep(0.5)
            return await inner(state, generate)

        return solve

    found.solver = late()
    log = canned.eval(
        found, tmp_path, model="mockllm/strong", metadata=until(weak, noise_looks=5), max_samples=max_samples
    )[0]
    assert log.status == "success", log.error
    asked = record(log)["sequential"][0]["n_asked"]
    assert asked == 40
    assert asked <= len(answers(log)) <= asked + max_samples


def test_clusters_are_asked_whole(canned, tmp_path, weak):
    log = canned.eval(
        task(canned, STRONG), tmp_path, model="mockllm/strong", metadata=until(weak, noise_cluster="passage"),
        max_samples=1,
    )[0]  # fmt: skip
    assert log.status == "success", log.error
    found = record(log)["sequential"][0]
    done = answers(log)
    assert found["n_asked"] == len(done) < N
    passages = {int(key[1:]) // 4 for key, _ in done}
    assert len(done) == 4 * len(passages)
    assert log.results.scores[0].metrics["noise_se"].metadata["n_clusters"] == len(passages)
    again = canned.eval(
        task(canned, STRONG), tmp_path / "plain", model="mockllm/strong", sample_id=[key for key, _ in done]
    )[0]
    assert native(again.results.scores[0]) == native(log.results.scores[0])


def test_results_come_back_in_the_order_of_inspect(canned, tmp_path, weak):
    """Nothing is decided, so everything is asked, in another order: `mode` of two takes the first."""
    from inspect_ai import Epochs
    from inspect_ai.log import read_eval_log

    on, off = (
        read_eval_log(
            canned.eval(
                task(canned, WEAK, epochs=Epochs(2, ["mean", "mode"])), tmp_path / name, model="mockllm/weak",
                metadata=metadata,
            )[0].location
        )
        for name, metadata in (
            ("on", until(weak, noise_cluster="passage", noise_looks=5, noise_futility="off")), ("off", None),
        )
    )  # fmt: skip
    found = record(on)["sequential"][0]
    assert (found["decision"], found["look"], found["n_asked"]) == ("not separable", 5, N)
    assert on.results.early_stopping.early_stops == []
    assert on.reductions == off.reductions
    assert [native(es) for es in on.results.scores] == [native(es) for es in off.results.scores]


def test_one_of_several_scorers_decides(canned, tmp_path):
    from inspect_ai.scorer import Score, accuracy, mean, scorer, stderr

    @scorer(metrics={"length": [mean()], "style": [mean()]})
    def graded():
        async def score(state, target):
            hit = state.output.completion == "yes"
            return Score(value={"length": 1.0 + hit, "style": 0.5})

        return score

    @scorer(metrics=[accuracy(), stderr()])
    def never():
        async def score(state, target):
            return Score(value=0)

        return score

    def two(ease, **options):
        return task(canned, ease, scorer=[never(), graded()], **options)

    other = canned.eval(two(WEAK, seed=None), tmp_path / "weak", model="mockllm/weak")[0].location
    which = canned.eval(two(STRONG), tmp_path, model="mockllm/strong", metadata=until(other))[0]
    assert which.status == "error"
    assert "noise_metric=NAME" in which.error.message
    for name in ("length", "graded/length"):
        log = canned.eval(
            two(STRONG), tmp_path, model="mockllm/strong", metadata=until(other, noise_metric=name)
        )[0]  # fmt: skip
        found = record(log)["sequential"][0]
        assert (found["scorer"], found["metric"], found["decision"]) == ("length", "mean", "A better")
        (es,) = [es for es in log.results.scores if "noise_diff" in es.metrics]
        assert es.name == "length"
        assert es.metrics["noise_diff"].value == found["estimate"]
    alone = canned.eval(two(STRONG), tmp_path, metadata={"noise_until": "se=0.05", "noise_metric": "never"})[0]
    assert record(alone)["sequential"][0]["decision"] == "not decided"  # nothing varies, and nothing is known
    assert not alone.results.early_stopping.early_stops


def test_an_answer_that_fails_does_not_hold_up_the_looks(canned, tmp_path, weak, warned):
    def before(state):
        if state.sample_id in ("q1", "q7"):
            raise RuntimeError("no answer")

    log = canned.eval(
        task(canned, STRONG, before=before), tmp_path, model="mockllm/strong", fail_on_error=False,
        metadata=until(weak), max_samples=5,
    )[0]  # fmt: skip
    assert log.status == "success"
    assert record(log)["sequential"][0]["decision"] == "A better"
    assert len(answers(log)) < N


def test_an_answer_that_is_tried_again_is_not_taken_away(canned, tmp_path, weak):
    tried = []

    def before(state):
        tried.append(state.sample_id)
        if tried.count(state.sample_id) == 1 and int(state.sample_id[1:]) % 3 == 0:
            raise RuntimeError("not now")

    log = canned.eval(
        task(canned, STRONG, before=before), tmp_path, model="mockllm/strong", retry_on_error=1, metadata=until(weak)
    )[0]
    assert log.status == "success"
    assert record(log)["sequential"][0]["decision"] == "A better"
    done = answers(log)
    assert {key for key, _ in done} == set(tried)


def growing(canned, name, **options):
    """A task that Inspect can find again."""

    @inspect_ai.task(name=name)
    def build():
        return task(canned, MIDDLE, name=name, **options)

    return build()


@pytest.fixture
def weak_again(canned, tmp_path):
    def of(name):
        found = task(canned, WEAK, seed=None, name=name)
        return canned.eval(found, tmp_path / "weak", model="mockllm/weak")[0].location

    return of


def without_late(log):
    """The record and the answers of a run of one at a time, without one that was under way when it was stopped.

    It may have begun while the answers of an earlier run were put back, and is no part of the decision."""
    found, given = deepcopy(record(log)), answers(log)
    late = [tuple(each) for each in found["sequential"][0].pop("late")]
    assert len(late) <= 1
    found["drawn"][0]["n_asked"] -= len(late)
    return found, {key: score for key, score in given.items() if key not in late}


def test_a_failed_run_is_taken_up_again_with_the_same_looks(canned, tmp_path, weak_again, warned):
    from inspect_ai import eval_retry

    asked, fail = [], [False]

    def before(state):
        asked.append(state.sample_id)
        if fail[0] and len(asked) == 30:
            raise RuntimeError("the server is gone")

    found = growing(canned, "failing", before=before)
    options = {"model": "mockllm/strong", "max_samples": 1, "metadata": until(weak_again("failing"))}
    whole = canned.eval(found, tmp_path / "whole", **options)[0]
    want = looks(warned)
    assert len(want) == 6
    asked.clear()
    fail[0] = True
    first = canned.eval(found, tmp_path / "first", **options)[0]
    assert first.status == "error"
    assert len(answers(first)) == 29
    fail[0], said = False, len(looks(warned))
    asked.clear()
    again = canned.quietly(eval_retry, first, log_dir=str(tmp_path / "again"), display="none", max_samples=1)[0]
    assert again.status == "success", again.error
    assert without_late(again) == without_late(whole)
    assert looks(warned)[said:] == want
    assert sorted([*asked, *(key for key, _ in answers(first))]) == sorted(key for key, _ in answers(again))


def test_a_run_that_has_stopped_asks_nothing_when_it_is_retried(canned, tmp_path, weak_again):
    from inspect_ai import eval_retry
    from inspect_ai.log import read_eval_log, write_eval_log

    asked = []
    found = growing(canned, "stopped", before=counted(asked))
    metadata = until(weak_again("stopped"))
    log = canned.eval(found, tmp_path / "one", model="mockllm/strong", metadata=metadata, max_samples=5)[0]
    before = list(asked)
    assert len(before) < N
    whole = read_eval_log(log.location)
    whole.status = "cancelled"
    write_eval_log(whole, log.location)
    again = canned.quietly(eval_retry, whole, log_dir=str(tmp_path / "two"), display="none")[0]
    assert again.status == "success", again.error
    assert asked == before
    assert answers(again) == answers(log)
    assert record(again) == record(log)


CANCELLED = """
import os, signal, sys
import anyio
import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

asked = []

@solver
def canned():
    async def solve(state, generate):
        asked.append(state.sample_id)
        if len(asked) == 30 and sys.argv[2] == "strong":
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep(30)
        right = state.sample_id % 10 < (6 if sys.argv[2] == "strong" else 3)
        state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
        return state
    return solve

data = MemoryDataset([Sample(id=i, input=f"Question {i}", target="yes") for i in range(100)])
data.shuffle(3)
metadata = {"noise_until": "decided", "noise_against": sys.argv[3], "noise_looks": 5} if len(sys.argv) > 3 else None
inspect_ai.eval(
    Task(name="coins", dataset=data, solver=canned(), scorer=match()), model="mockllm/" + sys.argv[2], max_samples=1,
    log_dir=sys.argv[1], metadata=metadata, display="none",
)
"""


@pytest.mark.slow
def test_a_cancelled_run_keeps_what_a_plain_run_keeps(tmp_path):
    from inspect_ai.log import read_eval_log

    def run(folder, *arguments):
        subprocess.run(
            [sys.executable, "-c", CANCELLED, str(tmp_path / folder), *arguments], capture_output=True, check=False,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), timeout=120,
            env=os.environ | {"HARNESS_NOISE": ""},
        )  # fmt: skip
        (path,) = (tmp_path / folder).glob("*.eval")
        return read_eval_log(str(path))

    weak = run("weak", "weak")
    assert weak.status == "success"
    plain, on = run("plain", "strong"), run("on", "strong", weak.location)
    assert plain.status == on.status == "cancelled"
    assert answers(on) == answers(plain)
    assert len(answers(on)) == 29
    assert native(on.results.scores[0]) == native(plain.results.scores[0])
    found = on.results.scores[0].metrics["noise_diff"].metadata["sequential"]
    assert (found["decision"], found["look"], found["n_asked"]) == ("not decided", 1, 20)


def test_models_of_one_run_stop_apart(canned, tmp_path, weak):
    from harness_noise.inspect_ext import stop_when

    logs = canned.eval(
        task(canned, STRONG, early_stopping=stop_when(against=weak)), tmp_path,
        model=["mockllm/strong", "mockllm/weak2"], max_samples=1,
    )  # fmt: skip
    for log in logs:
        found = record(log)["sequential"][0]
        assert found["decision"] == "A better"
        assert len(answers(log)) == found["n_asked"]
    assert answers(logs[0]) != answers(logs[1])


def test_a_task_with_its_own_early_stopping_is_refused(canned, tmp_path, weak):
    class Other:
        async def start_task(self, task, samples, epochs):
            return "other"

    log = canned.eval(task(canned, STRONG, early_stopping=Other()), tmp_path, metadata=until(weak))[0]
    assert log.status == "error"
    assert "leave out one of the two" in log.error.message


def test_an_unknown_inspect_is_refused_before_the_start(canned, tmp_path, weak, monkeypatch):
    from harness_noise_adapters.inspect_logs import private

    monkeypatch.setattr(private, "RUN", "elsewhere")
    asked = []
    log = canned.eval(task(canned, STRONG, before=counted(asked)), tmp_path, metadata=until(weak))[0]
    assert log.status == "error"
    assert "this Inspect has no early stopping that we know" in log.error.message
    assert asked == []


def test_the_task_is_given_back_as_it_was(canned, tmp_path, weak):
    one = task(canned, STRONG)
    canned.eval(one, tmp_path, model="mockllm/strong", metadata=until(weak))
    assert one.early_stopping is None
    off = canned.eval(one, tmp_path / "off", model="mockllm/strong")[0]
    assert off.results.early_stopping is None
    assert len(answers(off)) == N
    assert list(off.results.scores[0].metrics) == ["accuracy", "stderr"]


def test_unlogged_samples_are_refused(canned, tmp_path, weak):
    log = canned.eval(task(canned, STRONG), tmp_path, metadata=until(weak), log_samples=False)[0]
    assert "leave out --no-log-samples" in log.error.message


def test_questions_without_ids_are_known_by_their_text(canned, tmp_path):
    """Inspect numbers them after the shuffle, so one number is two questions."""

    def without_ids(ease, seed):
        found = task(canned, ease, seed=None)
        items = [canned.Sample(input=s.input, target=s.target, metadata=s.metadata) for s in found.dataset]
        found.dataset = type(found.dataset)(items)
        if seed is not None:
            found.dataset.shuffle(seed)
        return found

    other = canned.eval(without_ids(WEAK, None), tmp_path / "weak", model="mockllm/weak")[0]
    log = canned.eval(
        without_ids(STRONG, 7), tmp_path, model="mockllm/strong", max_samples=1, metadata=until(other.location)
    )[0]
    with_ids = canned.eval(
        task(canned, STRONG), tmp_path / "ids", model="mockllm/strong", max_samples=1,
        metadata=until(weak_log(canned, tmp_path / "weak_ids")),
    )[0]  # fmt: skip
    (mine,), (theirs,) = record(log)["sequential"], record(with_ids)["sequential"]
    of_ids = {"fingerprint": "", "late": [], "baseline": ""}
    assert {**mine, **of_ids} == {**theirs, **of_ids}
    assert mine["baseline"] != theirs["baseline"]


def test_a_log_of_other_questions_is_refused(canned, tmp_path):
    items = [canned.Sample(id=f"q{i}", input=f"Something else {i}", target="yes") for i in range(20)]
    other = canned.eval(canned.task(items), tmp_path / "other")[0].location
    log = canned.eval(task(canned, STRONG), tmp_path, metadata=until(other))[0]
    assert "none of its questions is one of coins" in log.error.message
    log = canned.eval(task(canned, STRONG, name="other"), tmp_path, metadata=until(other))[0]
    assert "has no log of other, but of coins" in log.error.message


def test_eval_set_takes_a_stopped_task_for_done(canned, tmp_path, weak):
    from inspect_ai import eval_set

    asked = []

    def call():
        return canned.quietly(
            eval_set, [task(canned, STRONG, before=counted(asked))], model="mockllm/strong", max_samples=1,
            log_dir=str(tmp_path), display="none", metadata=until(weak),
        )  # fmt: skip

    for done, (log,) in (call(), call()):
        assert done
        assert record(log)["sequential"][0]["decision"] == "A better"
        assert len(asked) == record(log)["sequential"][0]["n_asked"] == len(answers(log))


def test_a_sample_source_is_refused_in_plain_words(canned, tmp_path, weak):
    if not hasattr(inspect_ai, "SampleSource"):
        pytest.skip("this Inspect has no SampleSource")

    class Endless(inspect_ai.SampleSource):
        def initial_samples(self):
            return canned.samples(20)

    found = canned.task()
    other = inspect_ai.Task(dataset=Endless(), solver=found.solver, scorer=found.scorer, name="coins")
    log = canned.eval(other, tmp_path, metadata=until(weak))[0]
    assert log.status == "error"
    assert "SampleSource, and their number is unknown" in log.error.message


def test_under_trio_it_is_the_same(canned, tmp_path, weak, monkeypatch):
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", "trio")
    log = canned.eval(task(canned, STRONG), tmp_path, model="mockllm/strong", epochs=2, metadata=until(weak))[0]
    assert log.status == "success", log.error
    assert record(log)["sequential"][0]["decision"] == "A better"


def test_a_fault_in_a_look_is_one_warning_and_the_run_goes_on(canned, tmp_path, weak, warned, monkeypatch):
    from harness_noise.extra.stopping.rules import StoppingRule

    def broken(*_):
        raise RuntimeError("no look today")

    monkeypatch.setattr(StoppingRule, "look", broken)
    log = canned.eval(task(canned, STRONG), tmp_path, model="mockllm/strong", metadata=until(weak))[0]
    assert log.status == "success"
    assert len(answers(log)) == N
    said = [text for text in warned() if "no look today" in text]
    assert len(said) == 1
    assert "it goes on to its end" in said[0]


def test_the_plan_is_left_alone_where_inspect_makes_it_in_another_way(canned, tmp_path, weak, warned, monkeypatch):
    """Clusters are then split; Inspect's own order is breadth first, too."""

    from harness_noise_adapters.extra.stopping.of_inspect import ordering

    monkeypatch.setattr(ordering, "reorder", lambda: False)
    unwrap_all()
    log = canned.eval(
        task(canned, STRONG), tmp_path, model="mockllm/strong", epochs=2, max_samples=1,
        metadata=until(weak, noise_cluster="passage"),
    )[0]  # fmt: skip
    assert log.status == "success"
    assert record(log)["sequential"][0]["decision"] == "A better"
    done = answers(log)
    assert {epoch for _, epoch in done} == {1}
    assert len(done) == record(log)["sequential"][0]["n_answers"] < N
    assert any("the order of this Inspect cannot be changed" in text for text in warned())


def test_there_an_answer_that_fails_is_waited_for_to_the_end(canned, tmp_path, weak, monkeypatch):

    def before(state):
        if state.sample_id == "q33":
            raise RuntimeError("no answer")

    from harness_noise_adapters.extra.stopping.of_inspect import ordering

    monkeypatch.setattr(ordering, "reorder", lambda: False)
    unwrap_all()
    log = canned.eval(
        task(canned, STRONG, before=before), tmp_path, model="mockllm/strong", fail_on_error=False, metadata=until(weak)
    )[0]
    assert len(answers(log)) == N - 1
    assert record(log)["sequential"][0]["decision"] == "A better"


def test_not_everything_is_under_way_when_a_look_stops_the_run(canned, tmp_path, weak):
    """All samples could run at once; no answer comes before those of the block before it are there."""
    log = canned.eval(
        task(canned, STRONG), tmp_path, model="mockllm/strong", epochs=2, max_samples=1000, metadata=until(weak)
    )[0]
    found = record(log)["sequential"][0]
    assert found["decision"] == "A better"
    done = answers(log)
    assert found["n_answers"] <= len(done) <= found["n_answers"] + 40


def test_answers_that_fail_last_do_not_hold_up_those_that_wait(canned, tmp_path, weak):
    """A block of which every answer fails is looked at all the same."""
    first = {sample.id for sample in task(canned, MIDDLE).dataset[:20]}

    def before(state):
        if state.sample_id in first:
            raise RuntimeError("no answer")

    log = canned.eval(
        task(canned, STRONG, before=before), tmp_path, model="mockllm/strong", fail_on_error=False, max_samples=1000,
        metadata=until(weak),
    )[0]  # fmt: skip
    assert log.status == "success"
    assert record(log)["sequential"][0]["look"] > 1
    assert not first & {key for key, _ in answers(log)}
