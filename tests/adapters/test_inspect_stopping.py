"""A run of Inspect that ends when it is decided, through the real Inspect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.scores import ReadOptions
from support.inspect_evals import native
from support.inspect_stopping import SEED, STRONG, WEAK, N, answers, looks, record, task, weak_log
from support.notes import noted
from support.processes import environment

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

UNTIL = {"noise_until": "decided"}


@pytest.fixture(scope="module")
def weak(canned, tmp_path_factory):
    """The log of the weak model, over all questions."""
    return weak_log(canned, tmp_path_factory.mktemp("weak"))


def replay(canned, order, epochs, model, looks=20, asking="breadth"):
    """The looks of a run whose questions were asked in this order."""
    from harness_noise.data.questions import Questions
    from harness_noise.data.scores import Scores
    from harness_noise.extra.stopping.growing import observe
    from harness_noise.extra.stopping.rules import StoppingRule
    from harness_noise.settings import Settings

    def part(keys, table):
        return Scores(
            task="coins", metric="accuracy", scorer="match", questions=Questions(tuple(keys)), values=table,
            higher_is_better=True, bounds=(0.0, 1.0),
        )  # fmt: skip

    rule = StoppingRule(looks=looks, asking=asking)
    keys = [f"q{i}" for i in order]
    a = np.array([[canned.truth(k, j, STRONG, model) for j in range(1, epochs + 1)] for k in keys], float)
    every = [f"q{i}" for i in sorted(order)]
    theirs = part(every, np.array([[canned.truth(k, 1, WEAK, "weak")] for k in every], float))
    blocks, look = rule.order(len(keys), repeats=epochs, shuffled=True), None
    for number in range(1, len(blocks.blocks) + 1):
        asked = np.arange(1, epochs + 1) <= blocks.answers(number)[:, None]
        rows = np.flatnonzero(asked.any(axis=1))
        mine = part([keys[i] for i in rows], np.where(asked, a[: len(asked)], np.nan)[rows])
        look = rule.look(blocks, look, observe([mine], [theirs], Settings()))
        if look.stop:
            break
    return look.sequential


def test_the_flag_stops_a_run_that_is_decided(canned, tmp_path, warned, weak):
    log = canned.eval(
        task(canned, STRONG), tmp_path, model="mockllm/strong", max_samples=5,
        metadata=UNTIL | {"noise_against": weak},
    )[0]  # fmt: skip
    assert log.status == "success", log.error
    found = record(log)["sequential"][0]
    order = [int(item.removeprefix("q")) for item in log.eval.dataset.sample_ids]
    want = replay(canned, order, 1, "strong")
    for name in ("look", "n_asked", "n_total", "decision", "rule", "looks"):
        assert found[name] == getattr(want, name), name
    for name in ("estimate", "ci_low", "ci_high", "estimate_unadjusted", "alpha_spent", "p_value"):
        assert found[name] == pytest.approx(getattr(want, name), rel=1e-9), name
    assert found["decision"] == "A better"
    assert (found["task"], found["metric"], found["scorer"]) == ("coins", "accuracy", "match")
    assert len(looks(warned)) == found["look"]
    assert any(f"look {found['look']} of 20, {found['n_asked']} of {N} questions" in text for text in warned())
    assert looks(warned)[0].startswith(f"look 1 of 20, 7 of {N} questions, A − B ")
    assert looks(warned)[0].endswith(" (no problem)")
    assert not looks(warned)[-1].endswith(" (no problem)")
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
    log = canned.eval(
        task(canned, STRONG), tmp_path, model="mockllm/strong", max_samples=5,
        metadata=UNTIL | {"noise_against": weak},
    )[0]  # fmt: skip
    found = record(log)["sequential"][0]
    analysis = hn.analyze(log.location)
    kept = {name: value for name, value in found.items() if name not in ("fingerprint", "late")}
    assert [item.to_dict() for item in analysis.sequential] == [kept]
    (drawn,) = analysis.drawn
    assert (drawn.n_asked, drawn.n_total, drawn.stopped_early) == (len(answers(log)), N, True)
    (estimate,) = analysis.estimates
    assert "stopped_early" in estimate.diagnostics
    assert "stopped_early" in log.results.scores[0].metrics["noise_se"].metadata["diagnostics"]
    assert estimate.n_missing == 0
    assert not any("never given" in note for note in noted(analysis))
    done = subprocess.run(
        [sys.executable, "-m", "harness_noise", "analyze", log.location],
        capture_output=True, text=True, check=True, env=environment(),
    )  # fmt: skip
    said = " ".join(done.stdout.split())
    assert f"stopped early at look {found['look']} of 20" in said
    assert "Report these: they allow for the looks" in said


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
        ({"noise_until": "decided"}, "needs the run to compare with"),
        ({"noise_until": "soon", "noise_against": "x"}, "write decided, or se=0.01"),
        ({"noise_until": "decided", "noise_against": "nowhere.eval"}, "no such log"),
        ({"noise_until": "se=0.01", "noise_looks": 3}, "noise_looks is for noise_until=decided"),
        ({"noise_until": "decided", "noise_against": "x", "noise_looks": 0}, "looks 0"),
        ({"noise_until": "se=0.01", "noise_metric": "f1"}, "f1 is none of them"),
        ({"noise_against": "x"}, "does nothing without noise_until=decided"),
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
    assert "--sample-shuffle 42 (any seed but 0 and 1, which mean off and on)" in log.error.message
    log = canned.eval(
        task(canned, STRONG, seed=None), tmp_path, model="mockllm/strong", sample_shuffle=SEED,
        metadata=UNTIL | {"noise_against": weak},
    )[0]  # fmt: skip
    assert record(log)["sequential"][0]["order_seed"] == SEED


def test_stop_when_says_at_once_what_is_wrong():
    from harness_noise.inspect_ext import stop_when

    with pytest.raises(hn.InputError, match="`against`, or a standard error, `se`"):
        stop_when()
    with pytest.raises(hn.InputError, match="`margins` is no choice"):
        stop_when(against="x", margins=0.1)
    with pytest.raises(hn.InputError, match="spending 'all'"):
        stop_when(against="x", spending="all")
    with pytest.raises(hn.InputError, match="`futility` is for `against`"):
        stop_when(se=0.1, futility=False)
    with pytest.raises(hn.InputError, match="looks"):
        stop_when(against="x", looks="often")
    with pytest.raises(hn.InputError, match="one of them"):
        stop_when(against="x", se=0.01)


def test_stop_when_takes_the_numbers_of_numpy():
    from harness_noise.inspect_ext import stop_when

    assert stop_when(se=np.float64(0.01)).asking == {"until": "se=0.01"}


def test_what_the_run_found_stays_in_an_export_and_leaves_with_new_scores(canned, tmp_path, weak):
    from inspect_ai.log import edit_score, read_eval_log
    from inspect_ai.scorer import ScoreEdit

    from harness_noise_adapters.inspect_logs import adapter

    log = canned.eval(
        task(canned, STRONG), tmp_path / "logs", model="mockllm/strong", metadata=UNTIL | {"noise_against": weak},
        max_samples=5,
    )[0]  # fmt: skip
    diff = {name for name in log.results.scores[0].metrics if name.startswith("noise_diff")}
    assert len(diff) == 3
    (path,) = adapter.write(
        Path(log.location), tmp_path / "out", lambda run: analyze_run(run, hn.Settings()), ReadOptions()
    )
    exported = read_eval_log(str(path))
    assert exported.results.early_stopping == log.results.early_stopping
    assert diff <= exported.results.scores[0].metrics.keys()
    first = exported.samples[0]
    edit_score(exported, first.id, "match", ScoreEdit(value="I"))
    assert not diff & exported.results.scores[0].metrics.keys()
    assert "noise_se" in exported.results.scores[0].metrics
    assert exported.results.scores[0].metrics["noise_se"].metadata["n_missing"] == 0


def test_an_early_stopping_of_others_leaves_nothing_missing(canned, tmp_path):
    from inspect_ai.util import EarlyStop

    class Odd:
        async def start_task(self, task, samples, epochs):
            return "odd"

        async def schedule_sample(self, id, epoch):
            return EarlyStop(id=id, epoch=epoch) if int(str(id)[1:]) % 2 else None

        async def complete_sample(self, id, epoch, scores):
            pass

        async def complete_task(self):
            return {}

    log = canned.eval(canned.task(early_stopping=Odd()), tmp_path, metadata={"noise": True})[0]
    assert log.results.scores[0].metrics["noise_se"].metadata["n_missing"] == 0
    analysis = hn.analyze(log.location)
    assert analysis.estimates[0].n_missing == 0
    assert any("6 of 12 answers were left out by an early stopping" in note for note in noted(analysis))
    assert not any("never given" in note for note in noted(analysis))


def test_the_clusters_of_a_scorers_own_error_count(canned, tmp_path):
    from inspect_ai.scorer import accuracy, match, stderr
    from inspect_ai.scorer import scorer as registered

    @registered(metrics=[accuracy(), stderr(cluster="passage")])
    def clustered():
        of = match()

        async def score(state, target):
            return await of(state, target)

        return score

    log = canned.eval(
        task(canned, STRONG, per_cluster=2, scorer=clustered()), tmp_path, max_samples=1,
        metadata={"noise_until": "se=0.07"},
    )[0]  # fmt: skip
    assert log.status == "success", log.error
    done = answers_of(log, "clustered")
    assert record(log)["sequential"][0]["n_asked"] == len(done) < N
    assert len(done) == 2 * len({int(key[1:]) // 2 for key in done})


def answers_of(log, scorer):
    from inspect_ai.log import read_eval_log_sample_summaries

    return {row.id for row in read_eval_log_sample_summaries(log.location) if scorer in (row.scores or {})}


@pytest.mark.slow
def test_the_command_line_with_paths_of_its_own_folder(tmp_path):
    """A task in a folder below; the log is named from where the command runs, and a retry finds it again."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "coins.py").write_text(COINS)

    def inspect(*arguments, **more):
        return subprocess.run(
            [sys.executable, "-m", "inspect_ai", *map(str, arguments), "--display", "plain"], cwd=tmp_path,
            capture_output=True, text=True, env=environment() | {"COLUMNS": "300"} | more, check=True,
        )  # fmt: skip

    def logs(folder):
        return sorted((tmp_path / folder).glob("*.eval"))

    inspect("eval", "tasks/coins.py", "--model", "mockllm/model", "--log-dir", "weak", RIGHT="3")
    options = ("--sample-shuffle", 3, "--max-samples", 2, "--log-dir", "strong", "--metadata", "noise_until=decided",
               "--metadata", "noise_against=weak")  # fmt: skip
    done = inspect("eval", "tasks/coins.py", "--model", "mockllm/model", *options, RIGHT="8")
    said = " ".join((done.stdout + done.stderr).split())
    assert "noise: coins: look 1 of 20, 7 of 100 questions, A − B" in said
    assert "were not executed due to early stopping" in said
    assert "noise_diff_ci_low" in said
    assert "Report these: they allow for the looks, and the plain difference, " in said
    (path,) = logs("strong")
    (found,) = hn.analyze(path).sequential
    assert (found.decision, found.order_seed) == ("A better", 3)
    inspect("eval-retry", path, "--log-dir", "again", RIGHT="8")
    (again,) = logs("again")
    assert hn.analyze(again).sequential == (found,)


COINS = """
import os
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

@solver
def canned():
    async def solve(state, generate):
        right = state.sample_id * 7 % 10 < int(os.environ["RIGHT"])
        state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
        return state
    return solve

@task
def coins():
    samples = [Sample(id=i, input=f"Question {i}", target="yes") for i in range(100)]
    return Task(dataset=samples, solver=canned(), scorer=match())
"""
