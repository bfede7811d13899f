"""Settings of a run of Inspect that would silently ask everything, or decide by something that is selected."""

from __future__ import annotations

import pytest

from harness_noise.errors import InputError
from support.inspect_stopping import MIDDLE, STRONG, N, answers, record, task, weak_log

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


@pytest.fixture(scope="module")
def weak(canned, tmp_path_factory):
    """The log of the weak model, over all questions."""
    return weak_log(canned, tmp_path_factory.mktemp("weak"))


def refused(canned, folder, metadata):
    """What a task says that must not ask anything."""
    asked = []
    log = canned.eval(
        task(canned, STRONG, before=lambda state: asked.append(state.sample_id)), folder, metadata=metadata
    )[0]
    assert log.status == "error"
    assert asked == []
    return log.error.message


@pytest.mark.parametrize(
    "asking", [{"noise_until": "decided", "noise_against": "WEAK"}, {"noise_sample": 0.2}, {"noise_repeats": "auto"}]
)
@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"noise_level": 2}, "level"), ({"noise_estimator": "cr9"}, "cr9"), ({"noise": "ja"}, "neither true nor false")],
)
def test_another_setting_that_is_wrong_does_not_turn_the_stopping_off(canned, tmp_path, weak, asking, wrong, words):
    asking = {name: weak if value == "WEAK" else value for name, value in asking.items()}
    assert words in refused(canned, tmp_path, asking | wrong)


def test_without_asking_less_it_costs_only_the_error_bars(canned, tmp_path, warned):
    log = canned.eval(task(canned, STRONG), tmp_path, metadata={"noise": True, "noise_level": 2})[0]
    assert log.status == "success"
    assert any("no error bars" in text for text in warned())


def test_a_setting_that_belongs_to_none_is_said_at_the_start(canned, tmp_path, warned):
    said = []
    log = canned.eval(
        task(canned, STRONG, before=lambda _: said.append(len(warned()))), tmp_path,
        metadata={"noise": True, "noise_metric": "nonsense"},
    )[0]  # fmt: skip
    assert log.status == "success"
    assert "noise_se" in log.results.scores[0].metrics
    (text,) = [text for text in warned() if "noise_metric does nothing without noise_until or noise_repeats" in text]
    assert "Everything is asked" in text
    assert said[0] == 1
    message = refused(canned, tmp_path, {"noise_sample": 0.5, "noise_metric": "nonsense"})
    assert "noise_metric does nothing without" in message
    message = refused(canned, tmp_path, {"noise_repeats": "auto", "noise_seed": 3})
    assert "noise_seed does nothing without noise_until or noise_sample" in message


def test_a_log_that_stopped_early_itself_is_nothing_to_compare_with(canned, tmp_path, weak):
    """It stopped because of its scores on these very questions; a part whose size was fixed is no such thing."""

    def run(name, **metadata):
        return canned.eval(
            task(canned, STRONG), tmp_path / name, model="mockllm/strong", max_samples=1, metadata=metadata
        )[0]

    stopped = run("stopped", noise_until="decided", noise_against=weak)
    assert len(answers(stopped)) < N
    message = refused(canned, tmp_path / "on", {"noise_until": "decided", "noise_against": stopped.location})
    assert f"stopped early itself after {len(answers(stopped))} of {N} questions" in message
    part = run("part", noise_sample=60)
    log = canned.eval(
        task(canned, MIDDLE), tmp_path / "on", metadata={"noise_until": "decided", "noise_against": part.location}
    )[0]
    assert log.status == "success", log.error
    assert record(log)["sequential"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"noise": True, "noise_cluster": "pasage"}, "cluster field 'pasage' does not exist. The fields are"),
        ({"noise": True, "noise_clusters": "passage"}, "noise_clusters is no setting: write noise_cluster"),
        ({"noise_untill": "decided"}, "noise_untill is no setting: write noise_until"),
        ({"noise_until": "foo"}, "write decided"),
    ],
)
def test_a_wrong_name_ends_the_task_before_its_first_question(canned, tmp_path, wrong, words):
    assert words in refused(canned, tmp_path, wrong)


def test_a_wrong_name_is_not_shown_as_a_limit(canned, tmp_path):
    """Inspect displays the class of an error before its sentence."""
    wrong = {"noise": True, "noise_cluster": "pasage"}
    error = canned.eval(task(canned, STRONG), tmp_path, metadata=wrong)[0].error
    for shown in (error.traceback, error.traceback_ansi):
        assert "NoiseSettingError" in shown
        assert "LimitExceededError" not in shown


def test_inspect_shows_the_sentence_of_a_refusal_without_a_traceback():
    """It has rich show the error of a task."""
    from rich.traceback import Traceback

    from harness_noise_adapters.inspect_logs.flags import refuse

    def start():
        try:
            raise KeyError("cause")
        except KeyError:
            refuse(InputError("one sentence"))

    with pytest.raises(InputError) as caught:
        start()
    (stack,) = Traceback.from_exception(caught.type, caught.value, caught.tb).trace.stacks
    assert (stack.frames, stack.exc_value) == ([], "one sentence")


def test_metadata_that_only_begin_like_ours_are_the_tasks_own(canned, tmp_path):
    log = canned.eval(task(canned, STRONG), tmp_path, metadata={"noise": True, "noise_std": 0.1, "noise_type": "white"})
    assert log[0].status == "success"
    off = canned.eval(task(canned, STRONG), tmp_path / "off", metadata={"noise_clusters": "passage"})
    assert off[0].status == "success"


def test_a_cluster_of_the_whole_fleet_ends_no_task(canned, tmp_path, warned, monkeypatch):
    monkeypatch.setenv("HARNESS_NOISE", "1")
    monkeypatch.setenv("HARNESS_NOISE_CLUSTER", "pasage")
    assert canned.eval(task(canned, STRONG), tmp_path)[0].status == "success"
    assert any("'pasage' does not exist" in text for text in warned())


def test_a_shuffle_without_a_seed_is_told_before_the_first_question(canned, tmp_path, warned):
    said = []
    canned.eval(
        task(canned, STRONG, seed=None, before=lambda _: said.append([t for t in warned() if "without a seed" in t])),
        tmp_path, metadata={"noise_sample": 0.5}, sample_shuffle=True,
    )  # fmt: skip
    assert len(said[0]) == 1
