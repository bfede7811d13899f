"""The public way: where Inspect's own function has changed, and the public metric."""

from __future__ import annotations

import pytest

import harness_noise as hn
from support.inspect_evals import ON, PASSAGES, coins, expected, on_disk, ours

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_another_eval_results_sends_us_the_public_way(canned, tmp_path, monkeypatch, original, capsys, log_format):
    from inspect_ai._eval.task import run

    def stranger(**everything):
        return original(**everything)

    monkeypatch.setattr(run, "eval_results", stranger)
    log = canned.eval(
        canned.task(), tmp_path, epochs=3, metadata=ON | {"noise_cluster": "passage"}, log_format=log_format,
        display="plain",
    )[0]  # fmt: skip
    assert run.eval_results is stranger
    want = expected(coins(canned), PASSAGES)
    assert ours(log.results.scores[0]) == pytest.approx(want, rel=1e-12)
    assert ours(on_disk(log).results.scores[0]) == pytest.approx(want, rel=1e-12)
    assert on_disk(log).status == "success"
    assert "assumes 12 independent questions" in " ".join(capsys.readouterr().out.split())


def test_the_public_way_reads_in_full_what_a_summary_cuts(canned, tmp_path, monkeypatch, original):
    from inspect_ai._eval.task import run

    monkeypatch.setattr(run, "eval_results", lambda **everything: original(**everything))
    samples = canned.samples()
    for i, sample in enumerate(samples):
        sample.metadata["text"] = "About " + "x" * 3000 + str(i // 3)
    log = canned.eval(canned.task(samples), tmp_path, epochs=3, metadata=ON | {"noise_cluster": "text"})[0]
    want = expected(coins(canned), PASSAGES)
    assert ours(log.results.scores[0]) == pytest.approx(want, rel=1e-12)


def test_the_public_way_under_trio(canned, tmp_path, monkeypatch, original):
    pytest.importorskip("trio", reason="trio is not installed")
    from inspect_ai._eval.task import run

    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", "trio")
    monkeypatch.setattr(run, "eval_results", lambda **everything: original(**everything))
    log = canned.eval(canned.task(), tmp_path, epochs=3, metadata=ON)[0]
    monkeypatch.delenv("INSPECT_ASYNC_BACKEND")
    assert ours(log.results.scores[0]) == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert ours(on_disk(log).results.scores[0]) == ours(log.results.scores[0])


def test_the_public_way_without_logged_samples_is_one_warning(canned, tmp_path, monkeypatch, original, warned):
    from inspect_ai._eval.task import run

    monkeypatch.setattr(run, "eval_results", lambda **everything: original(**everything))
    log = canned.eval(canned.task(), tmp_path, metadata=ON, log_samples=False)[0]
    assert log.status == "success"
    assert ours(log.results.scores[0]) == {}
    assert len(warned()) == 1


def test_public_metric(canned, tmp_path):
    from inspect_ai.scorer import accuracy, match, stderr

    from harness_noise.inspect_ext import noise

    task = canned.task(scorer=match(), metrics=[accuracy(), stderr(), noise(cluster="passage")])
    log = canned.eval(task, tmp_path, epochs=3, metadata=ON)[0]
    by_reducer = {es.reducer: es for es in log.results.scores}
    assert ours(by_reducer[None]) == pytest.approx(expected(coins(canned), PASSAGES), rel=1e-12)
    assert by_reducer[None].metrics["noise_se"].group == "noise"
    assert ours(by_reducer["mean"]) == {}  # the flag is on, too: one set of numbers, the task's own
    assert [item.name for item in log.eval.scorers[0].metrics][2] == "harness_noise/noise"
    assert len(hn.read(log.location)[0].scores) == 1


def test_public_metric_never_raises(canned, tmp_path, warned):
    from inspect_ai.scorer import accuracy, match

    from harness_noise.inspect_ext import noise

    task = canned.task(scorer=match(), metrics=[accuracy(), noise(cluster="nope"), noise(level=2)])
    log = canned.eval(task, tmp_path, epochs=2)[0]
    assert log.status == "success"
    assert all(not ours(es) for es in log.results.scores)
    assert len(warned()) == 2


def test_public_metric_says_it_once_however_often_inspect_asks(warned):
    from inspect_ai.scorer import SampleScore, Score

    from harness_noise.inspect_ext import noise

    scores = [SampleScore(score=Score(value=1), sample_id=i, sample_metadata={}) for i in range(3)]
    metric = noise(cluster="nope")
    assert [metric(scores), metric(scores)] == [{}, {}]
    assert len(warned()) == 1


def test_public_metric_on_dictionaries(canned, tmp_path):
    from inspect_ai.scorer import Score, mean, scorer

    from harness_noise.inspect_ext import noise

    @scorer(metrics={"*": [mean(), noise()]})
    def both():
        async def score(state, target):
            right = canned.truth(state.sample_id, state.epoch)
            return Score(value={"x": right, "y": 1 - right})

        return score

    log = canned.eval(canned.task(scorer=both()), tmp_path, epochs=3)[0]
    found = {
        es.name: {key.removeprefix("harness_noise/noise_"): m.value for key, m in es.metrics.items()}
        for es in log.results.scores
        if es.reducer is None
    }
    assert found["x"] == pytest.approx(expected(coins(canned)), rel=1e-12)
    assert found["y"] == pytest.approx(expected(1 - coins(canned)), rel=1e-12)


def test_a_flag_without_effect_is_told_on_reading(canned, tmp_path):
    from inspect_ai.log import write_eval_log

    log = canned.eval(canned.task(), tmp_path / "plain", epochs=2)[0]
    log.eval.metadata = {"noise": True}  # as a process without our hook leaves it
    write_eval_log(log, log.location)
    flagged = canned.eval(canned.task(), tmp_path / "flagged", epochs=2, metadata=ON)[0]
    codes = {name: [note.code for note in hn.read(tmp_path / name)[0].notes] for name in ("plain", "flagged")}
    assert "flag_without_effect" in codes["plain"]
    assert "flag_without_effect" not in codes["flagged"]
    assert flagged.status == "success"


def test_a_flag_on_epochs_without_a_mean_says_so(canned, tmp_path):
    """Our hook did run, and there is no mean over repeats."""
    from inspect_ai import Epochs

    canned.eval(canned.task(epochs=Epochs(3, "mode")), tmp_path, metadata=ON)
    (run,) = hn.read(tmp_path)
    (said,) = [str(note) for note in run.notes if note.code == "flag_without_effect"]
    assert "its epochs were reduced by mode" in said
    assert "did not run" not in said
