"""The flag on `inspect eval`, through the real Inspect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import harness_noise as hn
from support.inspect_evals import NAMES, ON, PASSAGES, coins, expected, native, on_disk, ours
from support.notes import noted

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


def test_numbers_are_the_kernels_and_native_values_stay(canned, tmp_path, warned):
    off = canned.eval(canned.task(), tmp_path / "off", epochs=3)[0]
    on = canned.eval(canned.task(), tmp_path / "on", epochs=3, metadata=ON | {"noise_cluster": "passage"})[0]
    es = on.results.scores[0]
    assert native(es) == native(off.results.scores[0])
    want = expected(coins(canned), PASSAGES)
    assert list(es.metrics) == ["accuracy", "stderr", *NAMES]
    assert ours(es) == pytest.approx(want, rel=1e-12)
    se = es.metrics["noise_se"]
    assert (se.group, se.params) == ("noise", {"cluster": "passage"})
    assert se.metadata["n_questions"] == 12
    assert se.metadata["n_clusters"] == 4
    assert (se.metadata["repeats_min"], se.metadata["repeats_max"]) == (3, 3)
    assert se.metadata["df"] == pytest.approx(3)
    assert se.metadata["harness_noise_version"] == hn.__version__
    assert on_disk(on).results == on.results
    assert warned() == []


def test_off_means_nothing_is_patched_and_the_log_knows_nothing_of_us(canned, tmp_path, original):
    from inspect_ai._eval.task import run

    log = canned.eval(canned.task(metadata={"noise": False, "owner": "me"}), tmp_path, epochs=2)[0]
    assert run.eval_results is original
    assert "noise_" not in json.dumps(log.model_dump(mode="json", exclude={"samples"}))
    assert list(log.results.scores[0].metrics) == ["accuracy", "stderr"]


@pytest.mark.slow
def test_off_loads_no_statistics_and_equals_a_run_without_the_package(tmp_path):
    script = textwrap.dedent(
        """
        import json, sys
        if sys.argv[2] == "without":
            import importlib.metadata as metadata
            points = metadata.entry_points
            metadata.entry_points = lambda **select: (
                [point for point in points(**select) if "harness_noise" not in point.value] if select else points()
            )
        import inspect_ai
        from inspect_ai.dataset import Sample
        from inspect_ai.scorer import match
        from inspect_ai.solver import solver
        from inspect_ai.model import ModelOutput

        @solver
        def canned():
            async def solve(state, generate):
                state.output = ModelOutput.from_content("mockllm/model", "yes" if state.epoch % 2 else "no")
                return state
            return solve

        task = inspect_ai.Task(
            dataset=[Sample(id=i, input=str(i), target="yes") for i in range(4)], solver=canned(), scorer=match()
        )
        log = inspect_ai.eval(task, model="mockllm/model", epochs=3, display="none", log_dir=sys.argv[1])[0]
        ours = sorted(name for name in sys.modules if name.startswith("harness_noise"))
        print(json.dumps({
            "ours": ours,
            "results": log.results.model_dump(mode="json"),
            "eval": sorted(log.eval.model_dump(mode="json")),
            "metadata": log.metadata,
        }))
        """
    )
    out = {}
    for kind in ("with", "without"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / kind), kind],
            capture_output=True, text=True, env=os.environ | {"HARNESS_NOISE": "0"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        out[kind] = json.loads(done.stdout.strip().splitlines()[-1])
    loaded = out["with"].pop("ours")
    assert out["without"].pop("ours") == []
    assert "harness_noise.inspect_ext" in loaded
    assert not {"harness_noise.analysis.mean", "harness_noise_adapters.inspect_logs.hook"} & set(loaded)
    assert out["with"] == out["without"]


@pytest.mark.parametrize(
    ("environment", "metadata", "on"),
    [
        ("1", None, True),
        ("true", {}, True),
        ("", None, False),
        ("0", None, False),
        ("1", {"noise": False}, False),
        ("0", {"noise": "yes"}, True),
        (None, {"noise": 1}, True),
        (None, {"noise": None}, False),
        (None, {"noise_cluster": "passage"}, False),
    ],
)
def test_when_the_flag_is_on(environment, metadata, on):
    from harness_noise_adapters.inspect_logs.flags import flag

    found = flag(metadata, {} if environment is None else {"HARNESS_NOISE": environment})
    assert (found is not None) is on


def test_settings_of_the_flag():
    from harness_noise_adapters.inspect_logs.flags import flag

    metadata = {"noise": True, "noise_level": "0.9", "noise_estimator": "cr1", "noise_cluster": {"drop": "passage"}}
    found = flag(metadata, {"HARNESS_NOISE_LEVEL": "0.5", "HARNESS_NOISE_INTERVAL": "t"})
    assert found.settings == hn.Settings(level=0.9, se="cr1", interval="t", cluster="drop=passage")
    for wrong in ({"noise": "passage"}, {"noise": 1, "noise_level": "high"}, {"noise": 1, "noise_estimator": "cr9"}):
        with pytest.raises(hn.InputError, match=r"noise|cr9"):
            flag(wrong, {})


def test_environment_alone_and_level(canned, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_NOISE", "1")
    monkeypatch.setenv("HARNESS_NOISE_LEVEL", "0.8")
    log = canned.eval(canned.task(), tmp_path, epochs=3)[0]
    assert ours(log.results.scores[0]) == pytest.approx(expected(coins(canned), level=0.8), rel=1e-12)


def test_a_flag_that_is_not_understood_is_one_warning(canned, tmp_path, warned):
    log = canned.eval(canned.task(), tmp_path, metadata={"noise": "passage"})[0]
    assert log.status == "success"
    assert ours(log.results.scores[0]) == {}
    assert len(warned()) == 1
    assert "neither true nor false" in warned()[0]


def test_tasks_and_models_of_one_run_do_not_mix(canned, tmp_path):
    tasks = [
        canned.task(name="on", metadata=ON | {"noise_cluster": "passage"}),
        canned.task(name="off", metadata={"noise": False}),
        canned.task(canned.samples(8), name="plain"),
    ]
    logs = canned.eval(
        tasks, tmp_path, model=["mockllm/alpha", "mockllm/beta"], epochs=2, max_tasks=6, metadata={"noise": True}
    )
    assert len(logs) == 6
    for log in logs:
        model = log.eval.model.removeprefix("mockllm/")
        found = ours(log.results.scores[0])
        if log.eval.task == "off":
            assert found == {}
        elif log.eval.task == "on":
            want = expected(coins(canned, k=2, model=model), PASSAGES)
            assert found == pytest.approx(want, rel=1e-12)
        else:
            assert found == pytest.approx(expected(coins(canned, 8, 2, model)), rel=1e-12)


def test_eval_set_and_its_second_call(canned, tmp_path):
    from inspect_ai import eval_set

    def call():
        return canned.quietly(
            eval_set, [canned.task(name="one"), canned.task(name="two")], model="mockllm/model", epochs=2,
            log_dir=str(tmp_path), display="none", metadata=ON,
        )  # fmt: skip

    for done, logs in (call(), call()):
        assert (done, len(logs)) == (True, 2)
        for log in logs:
            assert ours(on_disk(log).results.scores[0]) == pytest.approx(expected(coins(canned, k=2)), rel=1e-12)


def test_answers_without_a_score_leave_unequal_repeats(canned, tmp_path, warned):
    def before(state):
        if (state.sample_id, state.epoch) in {("q1", 1), ("q1", 2), ("q5", 3)}:
            raise RuntimeError("no answer")

    log = canned.eval(canned.task(before=before), tmp_path, epochs=3, metadata=ON, fail_on_error=False)[0]
    table = coins(canned)
    table[1, :2] = table[5, 2] = np.nan
    assert log.status == "success"
    assert ours(log.results.scores[0]) == pytest.approx(expected(table), rel=1e-12)
    metadata = log.results.scores[0].metrics["noise_se"].metadata
    assert (metadata["repeats_min"], metadata["n_missing"]) == (1, 3)
    assert set(metadata["diagnostics"]) >= {"missing_repeats", "partly_single_repeat"}
    assert len(warned()) == 1
    assert "3 answers have no score" in warned()[0]


def test_without_logged_samples_and_in_json(canned, tmp_path):
    for options in ({"log_samples": False}, {"log_format": "json"}):
        log = canned.eval(canned.task(), tmp_path / str(options), epochs=3, metadata=ON, **options)[0]
        assert ours(on_disk(log).results.scores[0]) == pytest.approx(expected(coins(canned)), rel=1e-12)


def test_trio(canned, tmp_path, monkeypatch):
    pytest.importorskip("trio", reason="trio is not installed")
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", "trio")
    log = canned.eval(canned.task(), tmp_path, epochs=3, metadata=ON)[0]
    assert log.status == "success"
    assert ours(log.results.scores[0]) == pytest.approx(expected(coins(canned)), rel=1e-12)


def test_dictionaries_several_scorers_and_reducers(canned, tmp_path, warned):
    from inspect_ai import Epochs
    from inspect_ai.scorer import Score, accuracy, match, mean, scorer, stderr

    def dictionary(name):
        @scorer(metrics={"*": [mean(), stderr()]}, name=name)
        def build():
            async def score(state, target):
                right = canned.truth(state.sample_id, state.epoch)
                return Score(value={"f1": right * 0.5 + 0.25, name: right})

            return score

        return build()

    @scorer(metrics=[accuracy(), stderr()])
    def grades():
        async def score(state, target):
            return Score(value="CIPN"[hash_of(state)])

        return score

    def hash_of(state):
        return (int(state.sample_id[1:]) + 3 * state.epoch) % 4

    task = canned.task(scorer=[match(), dictionary("left"), dictionary("right"), grades()])
    log = canned.eval(
        task, tmp_path, epochs=Epochs(3, ["mean", "mode", "pass_at_2"]), metadata=ON | {"noise_cluster": "passage"}
    )[0]
    right = coins(canned)
    letters = np.array([[[1, 0, 0.5, 0][(i + 3 * j) % 4] for j in (1, 2, 3)] for i in range(12)])
    tables = {
        ("match", "match"): right, ("left", "f1"): right * 0.5 + 0.25, ("left", "left"): right,
        ("right", "f1"): right * 0.5 + 0.25, ("right", "right"): right, ("grades", "grades"): letters,
    }  # fmt: skip
    clusters = PASSAGES
    seen = set()
    for es in log.results.scores:
        if es.reducer != "mean":
            assert ours(es) == {}
            continue
        seen.add((es.scorer, es.name))
        assert ours(es) == pytest.approx(expected(tables[es.scorer, es.name], clusters), rel=1e-12), es.name
    assert seen == set(tables)
    assert {es.reducer for es in log.results.scores} == {"mean", "mode", "pass_at_2"}
    assert warned() == []

    (run,) = hn.read(log.location)
    names = {"match", "left/f1", "left", "right/f1", "right", "grades"}
    assert {item.scorer for item in run.scores} == {
        f"{name}{more}" for name in names for more in ("", " (mode)", " (pass_at_2)")
    }
    assert run.skipped == ()


def test_no_reducer_is_still_by_question(canned, tmp_path):
    from inspect_ai import Epochs

    log = canned.eval(canned.task(), tmp_path, epochs=Epochs(3, []), metadata=ON)[0]
    es = log.results.scores[0]
    assert ours(es) == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert es.metrics["noise_se"].value > es.metrics["stderr"].value  # 12 questions, not 36
    assert any("epochs reducer" in note for note in noted(hn.read(log.location)[0]))


def test_identical_repeats_are_not_called_noiseless(canned, tmp_path):
    log = canned.eval(
        canned.task(answer=lambda state: "yes" if int(state.sample_id[1:]) % 3 else "no"), tmp_path, epochs=4,
        metadata=ON,
    )[0]  # fmt: skip
    found = log.results.scores[0].metrics
    assert "noise_se" in found
    assert not {"noise_data", "noise_prediction"} & set(found)
    assert "identical_repeats" in found["noise_se"].metadata["diagnostics"]


def test_a_single_epoch_leaves_the_split_out(canned, tmp_path):
    log = canned.eval(canned.task(), tmp_path, metadata=ON)[0]
    assert list(ours(log.results.scores[0])) == NAMES[:4]
    assert log.results.scores[0].metrics["noise_se"].metadata["diagnostics"] == ["few_failures", "single_repeat"]


@pytest.mark.parametrize(
    ("dataset", "cluster", "n_clusters", "says"),
    [
        ("per_cluster=1", "passage", 12, "every cluster holds one question"),
        ("per_cluster=12", "passage", None, "fewer than two clusters"),
        ("one huge", "passage", 3, None),
        ("plain", "{{passage[:1]}}{{id[-1]}}", 10, None),
        ("nested", "source.page", 2, None),
        ("own", None, 4, None),
    ],
)
def test_clusters(canned, tmp_path, warned, dataset, cluster, n_clusters, says):
    samples = {
        "per_cluster=1": lambda: canned.samples(per_cluster=1),
        "per_cluster=12": lambda: canned.samples(per_cluster=12),
        "plain": canned.samples,
    }.get(dataset, canned.samples)()
    for i, sample in enumerate(samples):
        if dataset == "one huge":
            sample.metadata["passage"] = str(max(0, i - 9))
        if dataset == "nested":
            sample.metadata["source"] = {"page": i % 2}
        if dataset == "own":
            sample.metadata["cluster"] = i // 3
    metadata = ON | ({"noise_cluster": cluster} if cluster else {})
    log = canned.eval(canned.task(samples), tmp_path, epochs=2, metadata=metadata)[0]
    found = log.results.scores[0].metrics
    if n_clusters is None:
        assert ours(log.results.scores[0]) == {}
    else:
        assert found["noise_se"].metadata["n_clusters"] == n_clusters
        assert found["noise_se"].params["cluster"] == (cluster or "cluster")
    assert len(warned()) == (says is not None)
    assert says is None or says in warned()[0]


def test_auto_knows_the_clusters_of_inspect_evals(canned, tmp_path, warned):
    samples = canned.samples(passage_hash=None)
    for i, sample in enumerate(samples):
        sample.metadata["passage_hash"] = f"h{i // 4}"
    tasks = [canned.task(samples, name="drop"), canned.task(canned.samples(), name="other")]
    logs = canned.eval(tasks, tmp_path, epochs=2, metadata=ON | {"noise_cluster": "auto"})
    found = {log.eval.task: log.results.scores[0].metrics["noise_se"] for log in logs}
    assert found["drop"].params == {"cluster": "passage_hash"}
    assert found["drop"].metadata["n_clusters"] == 3
    assert found["other"].params == {}
    assert len(warned()) == 1
    assert "other: no natural cluster is known" in warned()[0]
    assert "Its samples have name, passage" in warned()[0]


def test_no_answers_have_no_column_of_scores():
    from harness_noise_adapters.inspect_logs.records import HandedOver

    assert HandedOver([]).column(None) is None
    assert HandedOver([]).column("match") is None
