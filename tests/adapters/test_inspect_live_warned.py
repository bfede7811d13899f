"""What may go wrong in a live Inspect eval costs one warning and nothing else."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from harness_noise_adapters.inspect_logs import live as live_module
from support.inspect_evals import ON, native, ours

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


def broken_wrapper(canned, monkeypatch):
    from harness_noise_adapters.inspect_logs import hook

    def fault(*args, **kwargs):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(hook, "add", fault)
    return canned.task(), {}, "by zero"


def missing_cluster_key(canned, monkeypatch):
    monkeypatch.setenv("HARNESS_NOISE_CLUSTER", "nope")  # named by the run itself it is refused
    return canned.task(), {}, "nope"


def cluster_key_in_some(canned, monkeypatch):
    samples = canned.samples()
    del samples[5].metadata["passage"]
    monkeypatch.setenv("HARNESS_NOISE_CLUSTER", "passage")
    return canned.task(samples), {}, "passage"


def unhashable_cluster(canned, monkeypatch):
    samples = canned.samples()
    for i, sample in enumerate(samples):
        sample.metadata["pages"] = [i // 3]
    return canned.task(samples), {"noise_cluster": "pages"}, "lists"


def nan_score(canned, monkeypatch):
    from inspect_ai.scorer import Score, accuracy, scorer, stderr

    @scorer(metrics=[accuracy(), stderr()])
    def holes():
        async def score(state, target):
            right = canned.truth(state.sample_id, state.epoch)
            return Score(value=math.nan if state.sample_id == "q2" and state.epoch == 1 else right)

        return score

    return canned.task(scorer=holes()), {}, "1 answer has no score"


def infinite_score(canned, monkeypatch):
    from inspect_ai.scorer import Score, mean, scorer

    @scorer(metrics=[mean()])
    def unbounded():
        async def score(state, target):
            return Score(value=math.inf if state.sample_id == "q2" else 1.0)

        return score

    return canned.task(scorer=unbounded()), {}, "infinite"


def own_conversion(canned, monkeypatch):
    from inspect_ai.scorer import Score, accuracy, scorer

    @scorer(metrics=[accuracy(to_float=lambda value: 1.0 - float(value) / 4)])
    def penalty():
        async def score(state, target):
            return Score(value=canned.truth(state.sample_id, 1))

        return score

    return canned.task(scorer=penalty()), {}, "none of the native metrics"


def no_mean(canned, monkeypatch):
    from inspect_ai.scorer import match, metric

    @metric
    def geometric():
        def compute(scores: list[inspect_ai.scorer.SampleScore]) -> float:
            return 0.123

        return compute

    return canned.task(scorer=match(), metrics=[geometric()]), {}, "none of the native metrics"


@pytest.mark.parametrize(
    "fault",
    [
        broken_wrapper, missing_cluster_key, cluster_key_in_some, unhashable_cluster, nan_score, infinite_score,
        own_conversion, no_mean,
    ],
)  # fmt: skip
def test_a_fault_costs_one_warning_and_nothing_else(canned, tmp_path, monkeypatch, warned, fault):
    task, settings, says = fault(canned, monkeypatch)
    log = canned.eval(task, tmp_path / "on", metadata=ON | settings)[0]
    assert log.status == "success"
    texts = warned()
    assert len(texts) == 1, texts
    assert says in texts[0]
    monkeypatch.undo()
    off = canned.eval(fault(canned, monkeypatch)[0], tmp_path / "off")[0]
    shown = json.dumps([native(es) for es in log.results.scores])
    assert shown == json.dumps([native(es) for es in off.results.scores])
    assert all(math.isfinite(value) for es in log.results.scores for value in ours(es).values())


def test_data_folder_stays_clean(tmp_path, canned):
    canned.eval(canned.task(), tmp_path, epochs=2, metadata=ON)
    assert [path.suffix for path in Path(tmp_path).iterdir()] == [".eval"]


def test_a_result_that_we_do_not_know_passes_through(original, monkeypatch):
    from types import SimpleNamespace

    from inspect_ai._eval.task import run

    from harness_noise_adapters.inspect_logs import hook
    from harness_noise_adapters.inspect_logs.flags import flag

    def odd(samples, scores, reducers, scorers, metrics):
        return "something else"

    monkeypatch.setattr(run, "eval_results", odd)
    assert hook.install()
    live = live_module.Live(SimpleNamespace(task="t"), flag(ON, {}))
    token = hook.current.set(live)
    try:
        assert run.eval_results(1, [], None, None, metrics=None) == "something else"
    finally:
        hook.current.reset(token)
    assert not live.done
    assert live.warnings == []
