"""A run of Inspect that ends when it is decided, through the real Inspect."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import harness_noise as hn
from support.inspect_evals import native
from support.inspect_stopping import SEED, STRONG, WEAK, N, answers, looks, record, task, weak_log
from support.processes import environment

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

UNTIL = {"noise_until": "decided"}


@pytest.fixture(scope="module")
def weak(canned, tmp_path_factory):
    """The log of the weak model, over all questions."""
    return weak_log(canned, tmp_path_factory.mktemp("weak"))


def replay(canned, order, epochs, model, against, clusters=None, looks=5, margin=0.0):
    """The looks of a run whose questions were asked in this order."""
    from harness_noise.analysis.observed import observe_difference
    from harness_noise.analysis.sequential import StoppingRule
    from harness_noise.data.questions import Questions
    from harness_noise.data.scores import Scores
    from harness_noise.settings import Settings

    def part(keys, table, labels):
        return Scores(
            task="coins", metric="accuracy", scorer="match", questions=Questions(tuple(keys)), values=table,
            higher_is_better=True, bounds=(0.0, 1.0), clusters=labels,
        )  # fmt: skip

    rule = StoppingRule(looks=looks, margin=margin)
    keys = [f"q{i}" for i in order]
    a = np.array([[canned.truth(k, j, STRONG, model) for j in range(1, epochs + 1)] for k in keys], float)
    b = np.array([[canned.truth(k, 1, WEAK, "weak")] for k in keys], float)
    blocks, look, asked = rule.order(len(keys), shuffled=True), None, []
    for block in blocks.blocks:
        asked += block.tolist()
        labels = None if clusters is None else tuple(clusters[i] for i in asked)
        parts = [part([keys[i] for i in asked], table[asked], labels) for table in (a, b)]
        look = rule.look(blocks, look, observe_difference(parts[:1], parts[1:], Settings()))
        if look.stop:
            break
    return look.sequential


def test_the_flag_stops_a_run_that_is_decided(canned, tmp_path, warned, weak):
    log = canned.eval(task(canned, STRONG), tmp_path, model="mockllm/strong", metadata=UNTIL | {"noise_against": weak})[
        0
    ]
    assert log.status == "success", log.error
    found = record(log)["sequential"][0]
    order = [int(item.removeprefix("q")) for item in log.eval.dataset.sample_ids]
    want = replay(canned, order, 1, "strong", weak)
    for name in ("look", "n_asked", "n_total", "decision", "rule", "looks"):
        assert found[name] == getattr(want, name), name
    for name in ("estimate", "ci_low", "ci_high", "estimate_unadjusted", "alpha_spent", "p_value"):
        assert found[name] == pytest.approx(getattr(want, name), rel=1e-9), name
    assert found["decision"] == "A better"
    assert (found["task"], found["metric"], found["scorer"]) == ("coins", "accuracy", "match")
    assert len(looks(warned)) == found["look"]
    assert any(f"decided after {found['n_asked']} of {N} questions (A better)" in text for text in warned())
    assert looks(warned)[0].startswith(f"look 1 of 5, {N // 5} of {N} questions, A − B ")
    asked = answers(log)
    assert found["n_asked"] <= len(asked) < N
    assert {f"q{i}" for i in order[: found["n_asked"]]} <= {key for key, _ in asked}
    stops = log.results.early_stopping
    assert stops.manager == "harness-noise"
    assert {(item.id, item.epoch) for item in stops.early_stops} == {(f"q{i}", 1) for i in range(N)} - set(asked)
    metrics = log.results.scores[0].metrics
    assert metrics["noise_diff"].value == found["estimate"]
    assert (metrics["noise_diff_ci_low"].value, metrics["noise_diff_ci_high"].value) == (
        found["ci_low"], found["ci_high"],
    )  # fmt: skip
    plain = canned.eval(
        task(canned, STRONG), tmp_path / "plain", model="mockllm/strong", sample_id=[key for key, _ in asked]
    )[0]
    assert native(log.results.scores[0]) == native(plain.results.scores[0])
    assert answers(plain) == asked


def test_a_log_that_stopped_early_is_read_as_such(canned, tmp_path, weak):
    log = canned.eval(task(canned, STRONG), tmp_path, model="mockllm/strong", metadata=UNTIL | {"noise_against": weak})[
        0
    ]
    found = record(log)["sequential"][0]
    analysis = hn.analyze(log.location)
    assert [item.to_dict() for item in analysis.sequential] == [found]
    (drawn,) = analysis.drawn
    assert (drawn.n_asked, drawn.n_total, drawn.stopped_early) == (len(answers(log)), N, True)
    (estimate,) = analysis.estimates
    assert "stopped_early" in estimate.diagnostics
    assert estimate.n_missing == 0
    assert not any("never given" in note for note in analysis.notes)
    done = subprocess.run(
        [sys.executable, "-m", "harness_noise", "analyze", log.location],
        capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    said = " ".join(done.stdout.split())
    assert f"stopped early at look {found['look']} of 5" in said
    assert "both allowing for the looks" in said


def test_the_task_itself_may_ask_for_it(canned, tmp_path, weak):
    from harness_noise.inspect_ext import stop_when

    flagged = canned.eval(
        task(canned, STRONG), tmp_path / "flag", model="mockllm/strong", max_samples=1,
        metadata=UNTIL | {"noise_against": weak},
    )[0]  # fmt: skip
    coded = canned.eval(
        task(canned, STRONG, early_stopping=stop_when(against=weak)), tmp_path / "code", model="mockllm/strong",
        max_samples=1,
    )[0]  # fmt: skip
    assert coded.status == "success", coded.error
    assert record(coded) == record(flagged)
    assert answers(coded) == answers(flagged)
    assert len(answers(coded)) == record(coded)["sequential"][0]["n_asked"]
    assert coded.results.scores == flagged.results.scores


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"noise_until": "decided"}, "name the log to compare with"),
        ({"noise_until": "soon", "noise_against": "x"}, "write decided, or se=0.01"),
        ({"noise_until": "decided", "noise_against": "nowhere.eval"}, "no such log"),
        ({"noise_until": "se=0.01", "noise_metric": "f1", "noise_looks": 0}, "looks 0"),
        ({"noise_repeats": "auto"}, "noise_repeats=auto stops below the number of epochs"),
        ({"noise_sample": 1.5}, "neither a share"),
    ],
)
def test_what_cannot_be_followed_ends_before_the_first_question(canned, tmp_path, metadata, words):
    asked = []
    log = canned.eval(task(canned, STRONG, before=lambda state: asked.append(state.sample_id)), tmp_path,
                      metadata=metadata)[0]  # fmt: skip
    assert log.status == "error"
    assert words in log.error.message
    assert asked == []


def test_an_order_that_is_not_random_is_refused(canned, tmp_path, weak):
    log = canned.eval(task(canned, STRONG, seed=None), tmp_path, metadata=UNTIL | {"noise_against": weak})[0]
    assert log.status == "error"
    assert "--sample-shuffle SEED" in log.error.message
    log = canned.eval(
        task(canned, STRONG, seed=None), tmp_path, model="mockllm/strong", sample_shuffle=SEED,
        metadata=UNTIL | {"noise_against": weak},
    )[0]  # fmt: skip
    assert record(log)["sequential"][0]["order_seed"] == SEED


def test_stop_when_says_at_once_what_is_wrong():
    from harness_noise.inspect_ext import stop_when

    with pytest.raises(hn.InputError, match="noise_against=LOG"):
        stop_when()
    with pytest.raises(hn.InputError, match="looks"):
        stop_when(against="x", looks="often")
