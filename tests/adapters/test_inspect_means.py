"""Which means of a live run and of a log have noise: of keys, of scorers with clusters of their own, of categories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

import inspect_ai
from inspect_ai.scorer import Score, accuracy, grouped, match, mean, metric, scorer, std, stderr, value_to_float

from support.inspect_evals import ON, PASSAGES, coins, expected, ours

try:
    from inspect_ai.scorer import aggregate
except ImportError:  # older than aggregate()
    aggregate = None
try:
    from inspect_ai.scorer import frequency
except ImportError:
    frequency = None
needs_aggregate = pytest.mark.skipif(aggregate is None, reason="this Inspect has no aggregate()")
needs_frequency = pytest.mark.skipif(frequency is None, reason="this Inspect has no frequency()")


def right(state):
    return float(state.output.completion == "yes")


def dictionaries(metrics, value, name="dict_scorer"):
    @scorer(metrics=metrics, name=name)
    def build():
        async def score(state, target):
            return Score(value=value(state))

        return score

    return build()


def run(canned, folder, scorers, **options):
    (log,) = canned.eval(canned.task(scorer=scorers), folder, epochs=3, metadata=options.pop("metadata", ON), **options)
    assert log.status == "success", log.error
    return log


def agrees(log):
    """Whether reading the log gives what the run has injected, mean by mean."""
    injected = {}
    for es in log.results.scores:
        for name, value in ours(es).items():
            if name.startswith("noise_se"):
                key = name.removeprefix("noise_se").removeprefix("_")
                injected[f"{es.name}/{key}" if key else es.name] = value
    read = {item.scorer: item.se for item in hn.analyze(log.location).estimates}
    assert read == pytest.approx(injected, rel=1e-12)
    assert injected


# one key of a dictionary


@needs_aggregate
def test_the_key_that_a_metric_averages(canned, tmp_path, warned):
    one = dictionaries(
        [aggregate("score", agg=mean()), aggregate("score", agg=stderr())],
        lambda state: {"score": right(state), "other": 1 - right(state) / 2},
    )
    log = run(canned, tmp_path, one)
    (es,) = log.results.scores
    assert ours(es) == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert es.metrics["noise_se"].metadata["metric"] == "mean"
    assert warned() == []
    agrees(log)


@needs_aggregate
def test_each_key_of_several_by_its_name(canned, tmp_path):
    def value(state):
        out = {"score": right(state), "grade": "C" if right(state) else "I", "part": right(state) / 4}
        if state.sample_id == "q3":
            del out["part"]
        return out

    several = dictionaries(
        [
            aggregate("score", agg=mean()), aggregate("score", agg=std()),
            aggregate("part", agg=accuracy(), on_missing="skip"),
            aggregate("grade", agg=mean(), to_float=value_to_float()),
        ],
        value,
    )  # fmt: skip
    log = run(canned, tmp_path, several)
    (es,) = log.results.scores
    part = np.delete(coins(canned) / 4, 3, axis=0)
    want = expected(coins(canned), key="score") | expected(part, key="part") | expected(coins(canned), key="grade")
    assert ours(es) == pytest.approx(want, rel=1e-12)
    agrees(log)


@needs_aggregate
def test_a_missing_key_that_counts_as_zero(canned, tmp_path):
    def value(state):
        return {"done": right(state), "x": 1.0} if state.sample_id != "q3" else {"x": 1.0}

    table = coins(canned)
    table[3] = 0
    log = run(canned, tmp_path, dictionaries([aggregate("done", agg=mean(), on_missing="zero")], value))
    assert ours(log.results.scores[0]) == pytest.approx(expected(table), rel=1e-12)
    agrees(log)


@needs_aggregate
def test_a_metric_around_it_is_known_by_its_value(canned, tmp_path, warned):
    @metric
    def correctness():
        return aggregate("correct", agg=mean())

    @metric
    def style():
        return aggregate("looks", agg=mean())

    @metric
    def style_std():
        return aggregate("looks", agg=std())

    both = dictionaries(
        [correctness(), style(), style_std()], lambda state: {"correct": right(state), "looks": 1 - right(state) / 2}
    )
    log = run(canned, tmp_path, both)
    (es,) = log.results.scores
    assert ours(es) == pytest.approx(
        expected(coins(canned), key="correct") | expected(1 - coins(canned) / 2, key="looks"), rel=1e-12
    )
    assert es.metrics["noise_se_looks"].metadata["metric"] == "style"
    assert warned() == []
    agrees(log)


@pytest.mark.parametrize(("name", "key"), [("something", "a"), ("grade", "b")])
def test_keys_with_the_same_mean_are_not_guessed(canned, tmp_path, warned, name, key):
    """Two keys that cannot be told apart by their mean, and a metric that says nothing, also where a letter of its
    name is a key: no number rather than one."""

    @metric(name=name)
    def something():
        def compute(scores: list[inspect_ai.scorer.SampleScore]) -> float:
            return float(np.mean([item.score.value[key] for item in scores]))

        return compute

    def value(state):
        first = float(int(state.sample_id[1:]) % 2)
        return {"a": first, "b": 1 - first}

    log = run(canned, tmp_path, [dictionaries([something()], value), match()])
    assert ours(log.results.scores[0]) == {}
    assert ours(log.results.scores[1])
    assert len(warned()) == 1
    assert "none of the native metrics of dict_scorer is known as a mean of its scores" in warned()[0]
    (skipped,) = hn.read(log.location)
    assert [item.scorer for item in skipped.skipped] == ["dict_scorer"]


def test_a_log_is_not_refused_for_one_of_its_scorers(canned, tmp_path):
    @metric
    def worst():
        def compute(scores: list[inspect_ai.scorer.SampleScore]) -> float:
            return -7.0

        return compute

    odd = [
        dictionaries([worst()], lambda state: {"a": 1.0}, "odd_dictionary"),
        dictionaries([worst()], lambda state: [1.0, 2.0], "odd_list"),
        dictionaries([worst()], lambda state: f"free text {state.epoch}", "odd_text"),
        dictionaries([worst()], lambda state: float("inf"), "odd_infinity"),
        match(),
    ]
    log = run(canned, tmp_path / "in", odd, metadata=None)
    found = {item.scorer: item for item in hn.analyze(log.location).estimates}
    assert found["match"].se == pytest.approx(expected(coins(canned))["noise_se"], rel=1e-12)
    from harness_noise.cli import main

    assert main(["export", log.location, "-o", str(tmp_path / "out"), "-q"]) == 0
    from inspect_ai.log import read_eval_log

    written = read_eval_log(str(tmp_path / "out" / Path(log.location).name), header_only=True)
    by_name = {es.name: es for es in written.results.scores}
    assert ours(by_name["match"]) == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert not any(ours(es) for name, es in by_name.items() if name != "match")


# clusters of a scorer's own


def with_stderr(*metrics, name="own"):
    @scorer(metrics=[accuracy(), *metrics], name=name)
    def build():
        async def score(state, target):
            return Score(value="C" if right(state) else "I")

        return score

    return build()


def test_the_cluster_of_a_scorers_own_stderr_is_the_default(canned, tmp_path, warned):
    log = run(canned, tmp_path, [with_stderr(stderr(cluster="passage")), match()])
    own, plain = log.results.scores
    assert ours(own) == pytest.approx(expected(coins(canned), PASSAGES), rel=1e-12)
    assert own.metrics["noise_se"].params == {"cluster": "passage"}
    assert ours(plain) == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert plain.metrics["noise_se"].params == {}
    assert warned() == ["noise: coins: passage is the cluster of own, as its own stderr has it"]
    agrees(log)


def test_its_key_is_a_key_of_the_metadata_and_no_word_of_ours(canned, tmp_path):
    """`task` of a SPEC is the whole task; of Inspect's stderr it is what the samples have under that name."""
    samples = canned.samples()
    for sample in samples:
        sample.metadata["task"] = sample.metadata["passage"]
    task = canned.task(samples, scorer=with_stderr(stderr(cluster="task")))
    log = canned.eval(task, tmp_path, epochs=3, metadata=ON)[0]
    assert ours(log.results.scores[0]) == pytest.approx(expected(coins(canned), PASSAGES), rel=1e-12)
    agrees(log)


@pytest.mark.parametrize(("asked", "labels"), [("none", None), ("{{id[-1]}}", [f"{i}"[-1] for i in range(12)])])
def test_a_named_cluster_stands_above_it(canned, tmp_path, asked, labels):
    log = run(
        canned, tmp_path, with_stderr(stderr(cluster="passage")), metadata=ON | {"noise_cluster": asked}
    )  # fmt: skip
    assert ours(log.results.scores[0]) == pytest.approx(expected(coins(canned), labels), rel=1e-12)
    agrees(log)


def test_auto_without_a_preset_takes_it_too(canned, tmp_path, warned):
    log = run(canned, tmp_path, with_stderr(stderr(cluster="passage")), metadata=ON | {"noise_cluster": "auto"})
    assert log.results.scores[0].metrics["noise_se"].params == {"cluster": "passage"}
    assert not any("no natural cluster is known" in text for text in warned())


def test_two_errors_that_disagree_name_no_cluster(canned, tmp_path):
    log = run(canned, tmp_path, with_stderr(stderr(), stderr(cluster="passage")))
    assert log.results.scores[0].metrics["noise_se"].params == {}


@needs_aggregate
def test_of_a_key_the_cluster_of_its_own_error(canned, tmp_path):
    metrics = [
        aggregate("a", agg=mean()), aggregate("a", agg=stderr(cluster="passage")),
        aggregate("b", agg=mean()), aggregate("b", agg=stderr()),
    ]  # fmt: skip
    log = run(canned, tmp_path, dictionaries(metrics, lambda state: {"a": right(state), "b": right(state) / 2}))
    (es,) = log.results.scores
    want = expected(coins(canned), PASSAGES, key="a") | expected(coins(canned) / 2, key="b")
    assert ours(es) == pytest.approx(want, rel=1e-12)
    agrees(log)


# categories


@needs_frequency
def test_categories_have_no_noise_of_one_unnamed(canned, tmp_path, warned):
    @scorer(metrics=[frequency()])
    def words():
        async def score(state, target):
            return Score(value=state.output.completion)

        return score

    @scorer(metrics=[accuracy(), frequency(["C", "I"])])
    def grades():
        async def score(state, target):
            return Score(value="C" if right(state) else "I")

        return score

    log = run(canned, tmp_path, [words(), grades()])
    found = {(es.name, es.reducer): ours(es) for es in log.results.scores}
    assert found.pop(("grades", "mean")) == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert not any(found.values())
    assert warned() == [
        "noise: coins: none of the native metrics of words is known as a mean of its scores: no error bars"
    ]
    rows = hn.analyze(log.location).estimates
    assert len({(item.metric, item.scorer) for item in rows}) == len(rows)  # no category twice, for two reasons
    read = {item.scorer: item for item in rows}
    assert read["grades"].se == pytest.approx(expected(coins(canned))["noise_se"], rel=1e-12)
    assert (read["words"].se, read["words"].diagnostics) == (None, ("skipped_metric",))


def test_a_metric_with_several_values_lends_its_noise_to_none_of_them(canned, tmp_path):
    @metric
    def shares():
        def compute(scores: list[inspect_ai.scorer.SampleScore]) -> dict[str, float]:
            safe = float(np.mean([item.score.as_float() for item in scores]))
            return {"safe": safe, "unsafe": 1 - safe}

        return compute

    task = canned.task(scorer=match(), metrics=[shares()])
    (log,) = canned.eval(task, tmp_path, epochs=3, metadata=ON)
    assert ours(log.results.scores[0]) == {}


def test_of_groups_the_value_over_all(canned, tmp_path):
    task = canned.task(scorer=match(), metrics=[grouped(mean(), "passage")])
    (log,) = canned.eval(task, tmp_path, epochs=3, metadata=ON)
    (es,) = log.results.scores
    assert ours(es) == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert es.metrics["noise_se"].metadata["metric"] == "all"


# nothing to show


def test_one_question_has_its_reason_once(canned, tmp_path, warned):
    task = canned.task(canned.samples(1), scorer=[match(), with_stderr(stderr())])
    (log,) = canned.eval(task, tmp_path, epochs=3, metadata=ON)
    assert [list(ours(es)) for es in log.results.scores] == [["noise_ci_low", "noise_ci_high"]] * 2  # Wilson's
    assert warned() == ["noise: coins: fewer than two questions: no standard error"]


def test_the_tasks_own_noise_and_the_flag_are_one_set(canned, tmp_path, warned):
    from harness_noise.inspect_ext import noise

    task = canned.task(scorer=match(), metrics=[accuracy(), stderr(), noise(cluster="passage")])
    (log,) = canned.eval(task, tmp_path, epochs=3, metadata=ON | {"noise_level": 0.9})
    sets = [ours(es) for es in log.results.scores if ours(es)]
    assert len(sets) == 1
    assert sets[0] == pytest.approx(expected(coins(canned), PASSAGES), rel=1e-12)
    assert warned() == ["noise: coins: match keeps the noise() of the task, with the settings it has there"]


def test_public_metric_with_one_question_says_so_once(canned, tmp_path, warned):
    from harness_noise.inspect_ext import noise

    task = canned.task(canned.samples(1), scorer=match(), metrics=[accuracy(), noise()])
    (log,) = canned.eval(task, tmp_path / "metric", epochs=3)
    (found,) = [ours(es) for es in log.results.scores if ours(es)]
    assert warned() == ["noise: coins: fewer than two questions: no standard error"]
    task = canned.task(canned.samples(1), scorer=match())
    (log,) = canned.eval(task, tmp_path / "flag", epochs=3, metadata=ON)
    (by_flag,) = [ours(es) for es in log.results.scores if ours(es)]
    assert list(found) == ["noise_ci_low", "noise_ci_high"]  # Wilson's
    assert found == by_flag
