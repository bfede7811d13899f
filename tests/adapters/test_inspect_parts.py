"""Runs of Inspect that ask a part: a random one, epochs until they no longer pay, and the whole benchmark from it."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.extra.references.estimating import full_means
from support.inspect_evals import native, on_disk
from support.inspect_stopping import MIDDLE, STRONG, WEAK, N, answers, record, task
from support.notes import noted

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")


def asked_ids(log):
    return {key for key, _ in answers(log)}


def test_a_random_part_is_asked_and_the_log_says_which(canned, tmp_path):
    one, other = (
        canned.eval(
            task(canned, STRONG, seed=seed), tmp_path / str(seed), model="mockllm/strong", epochs=2,
            metadata={"noise_sample": 0.3},
        )[0]
        for seed in (None, 5)
    )  # fmt: skip
    assert one.status == other.status == "success"
    part = asked_ids(one)
    assert len(part) == 30
    assert part == asked_ids(other)  # whatever order the questions come in
    assert part != {f"q{i}" for i in range(30)}
    (drawn,) = record(one)["drawn"]
    assert drawn == {
            "task": "coins", "n_asked": 30, "n_total": N, "order_seed": 0, "stopped_early": False, "chances": None,
            "n_only": None,
        }  # fmt: skip
    plain = canned.eval(
        task(canned, STRONG, seed=None), tmp_path / "plain", model="mockllm/strong", epochs=2, sample_id=sorted(part)
    )[0]
    assert native(plain.results.scores[0]) == native(one.results.scores[0])
    assert answers(plain) == answers(one)
    analysis = hn.analyze(one.location)
    assert [item.to_dict() for item in analysis.drawn] == [drawn]
    assert analysis.sequential == ()
    assert "stopped_early" not in analysis.estimates[0].diagnostics
    assert not any("never given" in note for note in noted(analysis))
    assert analysis.estimates[0].se == pytest.approx(one.results.scores[0].metrics["noise_se"].value, rel=1e-12)
    assert one.results.scores[0].metrics["noise_se"].metadata["n_missing"] == 0


def test_a_part_of_whole_clusters_with_a_seed(canned, tmp_path):
    logs = [
        canned.eval(
            task(canned, STRONG, seed=None), tmp_path / str(seed), metadata={
                "noise_sample": "25%", "noise_cluster": "passage", "noise_seed": seed,
            },
        )[0]
        for seed in (1, 2)
    ]  # fmt: skip
    for seed, log in enumerate(logs, 1):
        part = asked_ids(log)
        assert len(part) == 28  # the cluster that reaches 25 has 4 questions
        assert len({int(key[1:]) // 4 for key in part}) == 7
        assert record(log)["drawn"][0]["order_seed"] == seed
    assert asked_ids(logs[0]) != asked_ids(logs[1])


def test_a_part_may_stop_early_too(canned, tmp_path, warned):
    log = canned.eval(
        task(canned, STRONG), tmp_path, model="mockllm/strong",
        metadata={"noise_sample": 80, "noise_until": "se=0.08"}, max_samples=1,
    )[0]  # fmt: skip
    found, (drawn,) = record(log)["sequential"][0], record(log)["drawn"]
    assert (found["decision"], found["rule"], found["n_total"]) == ("precise enough", "se", 80)
    assert found["n_asked"] == drawn["n_asked"] == len(answers(log)) < 80
    assert drawn["stopped_early"]
    whole = np.array([[value == "C"] for value in answers(log).values()], float)
    assert found["estimate_unadjusted"] == pytest.approx(whole.mean())
    assert hn.estimate(whole).se <= 0.08


@pytest.mark.parametrize("ease", [None, 0.5])
def test_epochs_stop_when_they_no_longer_pay(canned, tmp_path, warned, ease):
    """The canned questions have an ease of their own, of many answers; where all have the same, answers always pay."""
    data = canned.samples(20, ease=ease) if ease else canned.samples(20)
    log = canned.eval(
        canned.task(data), tmp_path, model="mockllm/strong", epochs=12, metadata={"noise_repeats": "auto"},
        max_samples=1,
    )[0]  # fmt: skip
    assert log.status == "success", log.error
    table = np.array([[canned.truth(f"q{i}", j, ease, "strong") for j in range(1, 13)] for i in range(20)], float)
    shares = {k: hn.estimate(table[:, :k]) for k in range(2, 13)}
    enough = next(
        (k for k, found in shares.items() if found.se_prediction**2 / k / found.se**2 <= 0.1), 12
    )  # fmt: skip
    assert (enough < 12) == (ease is None)
    done = answers(log)
    assert {epoch for _, epoch in done} == set(range(1, enough + 1))
    assert len(done) == 20 * enough
    assert record(log)["repeats"]["asked"] == enough
    lines = [text for text in warned() if "answers per question" in text]
    assert len(lines) == enough - 1
    assert log.results.scores[0].metrics["noise_se"].value == pytest.approx(hn.estimate(table[:, :enough]).se)
    assert on_disk(log).results == log.results


def test_an_answer_that_fails_does_not_keep_epochs_going(canned, tmp_path):
    def before(state):
        if state.sample_id == "q3" and state.epoch == 2:
            raise RuntimeError("no answer")

    log = canned.eval(
        canned.task(canned.samples(40, ease=1.0), before=before), tmp_path, epochs=6, fail_on_error=False,
        metadata={"noise_repeats": "auto"}, max_samples=1,
    )[0]  # fmt: skip
    assert record(log)["repeats"]["asked"] == 2  # the answers never differ
    assert len(answers(log)) == 2 * 40 - 1


@pytest.mark.slow
def test_references_give_the_whole_benchmark(canned, tmp_path, warned):
    def eval_all(name, ease):
        return canned.eval(
            task(canned, ease, seed=None), tmp_path / name, model=f"mockllm/{name}", epochs=3
        )[0].location  # fmt: skip

    references = [eval_all("old", WEAK), eval_all("older", MIDDLE)]
    log = canned.eval(
        task(canned, STRONG), tmp_path / "part", model="mockllm/strong",
        metadata={"noise_sample": 40, "noise_complete": references},
    )[0]  # fmt: skip
    (found,) = record(log)["full_benchmark"]
    assert (found["n_asked"], found["n_total"]) == (40, N)
    (drawn,) = record(log)["drawn"]
    assert set(drawn["chances"]) == asked_ids(log)  # the references say which questions are uncertain
    assert len(set(drawn["chances"].values())) > 1
    assert sum(1 / chance for chance in drawn["chances"].values()) == pytest.approx(N, rel=0.1)
    assert "unequal_chances" in hn.analyze(log.location).rows[0].diagnostics
    assert found["references"] == ("mockllm/old", "mockllm/older") or found["references"] == [
        "mockllm/old", "mockllm/older",
    ]  # fmt: skip
    runs = [hn.read(path)[0] for path in references]
    ((want,), _) = full_means(hn.read(log.location), runs, hn.Settings())
    for name in ("estimate", "se", "ci_low", "ci_high", "r2", "gain"):
        assert found[name] == pytest.approx(getattr(want, name), rel=1e-9), name
    metrics = log.results.scores[0].metrics
    assert metrics["noise_full"].value == found["estimate"]
    assert metrics["noise_full_ci_low"].value == found["ci_low"]
    first = canned.eval(
        task(canned, STRONG, seed=None), tmp_path / "first", model="mockllm/strong", limit=40,
        metadata={"noise_complete": references[0]},
    )[0]  # fmt: skip
    assert first.status == "success"
    (row,) = record(first)["full_benchmark"]
    assert (row["estimate"], row["diagnostics"]) == (None, ["not_a_random_part"])
    assert "noise_full" not in first.results.scores[0].metrics
    assert any("not drawn at random" in text for text in warned())
