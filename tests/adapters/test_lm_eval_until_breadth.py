"""Live lm-eval runs with several answers to a question: all questions once before any is asked twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

from harness_noise import analyze
from harness_noise.data.questions import Questions
from harness_noise.data.scores import ReadOptions, Scores
from harness_noise.extra.stopping.growing import observe
from harness_noise.extra.stopping.rules import StoppingRule
from harness_noise.io.registry import read
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import native_part, right, save
from support.lm_eval_server import serving
from support.processes import environment

N, K = 100, 3
SOON = {"seed": 1, "share": 0.9}
"""A model that is told from the other one before every question was asked once."""
LATER = {"seed": 3, "share": 0.55}
"""One that is told from it only by second answers."""


class Logged(toys.HashModel):
    """Keeps the prompts in the order in which they were asked."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.log: list[str] = []

    def draw(self, prompt: str) -> float:
        self.log.append(prompt)
        return super().draw(prompt)


def rounds_of(log: list[str]) -> list[int]:
    """Which answer to its question each request asked for."""
    seen: Counter[str] = Counter()
    return [seen.update([prompt]) or seen[prompt] for prompt in log]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("breadth")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "few", toys.docs(40, start=500))
    toys.write_task(path, "thrice", toys.docs(60, start=800), repeats=2)
    by_size = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict", "flexible"]}
    toys.write_group(path, "both", ["gen", "few"], [by_size])
    return path


@pytest.fixture(scope="module")
def worse(folder: Path) -> str:
    """A finished run of a model that knows less, with as many answers."""
    with noise(repeats=K):
        save(folder, folder / "b", ["both", "thrice"], toys.HashModel(seed=9, share=0.35))
    return str(folder / "b")


def part_of(run: Any, task: str) -> Any:
    (found,) = [part for part in run.scores if (part.task, part.metric, part.scorer) == (task, "exact_match", "strict")]
    return found


def native(results: dict[str, Any]) -> dict[str, Any]:
    """What lm-eval itself said, without what says how it was called."""
    return {key: value for key, value in native_part(results).items() if key != "config"}


def test_what_is_decided_in_the_first_round_is_a_run_of_the_questions_asked(folder: Path, worse: str) -> None:
    model = Logged(**SOON)
    with noise(until="decided", against=worse, repeats=K) as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    assert session.problems == []
    (look,) = session.analysis.sequential
    assert (look.decision, look.round) == ("A better", 1)
    assert look.n_answers == look.n_asked == len(model.log) < N
    assert look.n_answers_total == K * N
    asked = results["config"]["samples"]["gen"]
    assert len(asked) == look.n_asked
    plain = toys.simple_evaluate(folder, ["gen"], toys.HashModel(**SOON), samples={"gen": asked})
    assert native(results) == native(plain)
    assert results["configs"]["gen"]["repeats"] == 1


@pytest.fixture(scope="module")
def second_round(folder: Path, worse: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any, Path]:
    """A run that stops in its second round: its model, session, results and files."""
    model, out = Logged(**LATER), tmp_path_factory.mktemp("second")
    with noise(until="decided", against=worse, repeats=K) as session:
        results = save(folder, out, ["gen"], model)
    return model, session, results, out


def test_what_is_decided_later_is_a_whole_run_with_fewer_answers(
    folder: Path, tmp_path: Path, second_round: tuple[Any, Any, Any, Path]
) -> None:
    model, session, results, _ = second_round
    assert session.problems == []
    (look,) = session.analysis.sequential
    assert (look.round, look.n_asked) == (2, N)
    assert look.n_answers == len(model.log)
    assert N < look.n_answers < K * N
    rounds = rounds_of(model.log)
    assert rounds == sorted(rounds)  # all questions once before any twice
    assert set(Counter(model.log).values()) == {1, 2}
    assert "samples" not in results["config"]
    assert results["configs"]["gen"]["repeats"] == 2
    plain = save(folder, tmp_path, ["gen"], toys.HashModel(**LATER))
    assert native(results) == native(plain)
    # what was asked is what the order says
    order = StoppingRule().order(N, repeats=K)
    rows = [row for row in results["samples"]["gen"] if row["filter"] == "strict"]
    assert [len(row["resps"][0]) for row in rows] == order.answers(look.look).tolist()
    assert [row["scores_per_repeat"]["exact_match"] for row in rows] == [
        [right(answer, row["target"], "strict") for answer in row["resps"][0]] for row in rows
    ]
    (drawn,) = session.analysis.drawn
    assert (drawn.n_asked, drawn.n_total, drawn.stopped_early) == (N, N, True)
    assert all("stopped_early" in row.diagnostics for row in session.analysis.estimates)


def test_the_looks_can_be_taken_again_from_what_was_logged(
    worse: str, second_round: tuple[Any, Any, Any, Path]
) -> None:
    _, session, results, _ = second_round
    (look,) = session.analysis.sequential
    logged = {
        row["doc_id"]: row["scores_per_repeat"]["exact_match"]
        for row in results["samples"]["gen"]
        if row["filter"] == "strict"
    }
    b = part_of(read(worse, ReadOptions())[0], "gen")
    rule, state = StoppingRule(), None
    order = rule.order(N, repeats=K)
    for number in range(1, look.look + 1):
        answers = order.answers(number)
        documents = order.asked(number)
        values = np.full((len(documents), K), np.nan)
        for i, document in enumerate(documents):
            values[i, : answers[document]] = logged[document][: answers[document]]
        keys = Questions(tuple(b.questions.keys[i] for i in documents), "doc_hash")
        a = Scores("gen", "exact_match", "strict", keys, values, higher_is_better=True, bounds=(0.0, 1.0))
        state = rule.look(order, state, observe([a], [b], Settings()))
        assert state.stop == (number == look.look)
    for name, value in look.to_dict().items():
        again = getattr(state.sequential, name)
        assert again == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name


def test_files_say_what_the_run_said(second_round: tuple[Any, Any, Any, Path]) -> None:
    _, session, results, out = second_round
    (run,) = read(str(out), ReadOptions())
    assert list(run.stops) == results["noise"]["sequential"]
    for ours in session.collected.run.scores:
        (theirs,) = [part for part in run.scores if (part.metric, part.scorer) == (ours.metric, ours.scorer)]
        np.testing.assert_array_equal(theirs.values, ours.values)
        assert theirs.n_missing == ours.n_missing == 0
    for row, again in zip(session.analysis.estimates, analyze(run).estimates, strict=True):
        assert (row.mean, row.se, row.repeats_min, row.repeats_max) == (
            again.mean, again.se, again.repeats_min, again.repeats_max,
        )  # fmt: skip
        assert set(row.diagnostics) == set(again.diagnostics)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_a_server_sees_every_question_once_before_any_twice(folder: Path, worse: str, concurrent: int) -> None:
    with serving(honour_seed=True, share=0.42) as server, noise(until="decided", against=worse, repeats=K) as session:
        arguments = {
            "model": "toy", "base_url": f"http://127.0.0.1:{server.server_port}/v1/completions",
            "tokenizer_backend": None, "num_concurrent": concurrent, "max_retries": 1,
        }  # fmt: skip
        results = toys.simple_evaluate(folder, ["gen"], "local-completions", model_args=arguments, batch_size=1)
    assert session.problems == []
    prompts = [str(payload["prompt"]) for payload in server.payloads]
    rounds = rounds_of(prompts)
    assert rounds == sorted(rounds)
    assert max(rounds) > 1
    (look,) = session.analysis.sequential
    assert len(prompts) == look.n_answers
    seeds = Counter((prompt, payload["seed"]) for prompt, payload in zip(prompts, server.payloads, strict=True))
    assert set(seeds.values()) == {1}  # nothing is asked twice
    assert {payload["seed"] for payload in server.payloads[:N]} == {1234}  # lm-eval's own, in the first round
    assert len([row for row in results["samples"]["gen"] if row["filter"] == "strict"]) == N


def test_a_group_whose_tasks_get_different_numbers_of_answers(folder: Path, worse: str) -> None:
    model = Logged(**LATER)
    with noise(until="decided", against=worse, repeats={"gen": 2, "few": 4}, futility="off", looks=6) as session:
        results = toys.simple_evaluate(folder, ["both"], model)
    assert session.problems == []
    (look,) = session.analysis.sequential
    assert (look.task, look.n_total, look.n_answers_total) == ("both", N + 40, 2 * N + 4 * 40)
    assert look.n_answers == len(model.log)
    rounds = rounds_of(model.log)
    assert rounds == sorted(rounds)
    assert look.round == max(rounds)
    of_few = {prompt for prompt in model.log if 500 <= int(prompt.split()[2]) < 600}
    most = {name: max((model.asked[prompt] for prompt in model.asked if (prompt in of_few) == few), default=0)
            for name, few in (("gen", False), ("few", True))}  # fmt: skip
    assert most["gen"] <= 2
    assert most["few"] <= 4
    assert {name: results["configs"][name]["repeats"] for name in most} == most


def test_tasks_stop_in_rounds_of_their_own(folder: Path, worse: str) -> None:
    class Mixed(Logged):
        """Knows the task `few` well, the other one hardly better than B."""

        def answer(self, prompt: str) -> str:
            self.share = 0.99 if 500 <= int(prompt.split()[2]) < 600 else LATER["share"]
            return super().answer(prompt)

    model = Mixed(seed=3)
    with noise(until="decided", against=worse, repeats=K) as session:
        results = toys.simple_evaluate(folder, ["gen", "few"], model)
    assert session.problems == []
    looks = {look.task: look for look in session.analysis.sequential}
    assert looks["few"].round < looks["gen"].round
    assert looks["few"].n_answers + looks["gen"].n_answers == len(model.log)
    assert len(results["config"]["samples"]["few"]) == looks["few"].n_asked if "samples" in results["config"] else True
    part = results["config"].get("samples")
    plain = toys.simple_evaluate(folder, ["gen", "few"], Mixed(seed=3), **({} if part is None else {"samples": part}))
    assert native(results) == native(plain)


def test_depth_asks_all_answers_of_a_block_first(folder: Path, worse: str) -> None:
    model = Logged(**LATER)
    with noise(until="decided", against=worse, repeats=K, order="depth", futility=False) as session:
        toys.simple_evaluate(folder, ["gen"], model)
    (look,) = session.analysis.sequential
    assert set(Counter(model.log).values()) == {K}
    assert look.n_answers == len(model.log) == K * look.n_asked
    assert sorted(rounds_of(model.log)) != rounds_of(model.log)


def test_a_task_that_asks_several_times_itself_is_asked_depth_first_and_it_is_said(folder: Path, worse: str) -> None:
    model = Logged(**SOON)
    with noise(until="decided", against=worse, repeats=K) as session:
        toys.simple_evaluate(folder, ["thrice"], model)
    assert session.problems == []
    assert set(Counter(model.log).values()) == {K}
    assert any("thrice: the task itself asks each question 2 times" in note for note in noted(session.analysis))


def test_ctrl_c_in_the_second_round_keeps_what_is_there(folder: Path, worse: str) -> None:
    class Interrupted(Logged):
        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            if len(self.log) > N:
                raise KeyboardInterrupt
            return super().generate_until(requests)

    model = Interrupted(**LATER)
    with noise(until="decided", against=worse, repeats=K, futility=False) as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    assert session.interrupted
    (look,) = session.analysis.sequential
    assert look.decision == "not decided"
    assert len(model.asked) == N
    assert "samples" not in results["config"]
    assert {row.repeats_max for row in session.analysis.estimates} == {2}
    assert native(results) == native(toys.simple_evaluate(folder, ["gen"], toys.HashModel(**LATER)))


def test_answers_that_cannot_be_had_once_are_asked_for_in_the_next_round(folder: Path, worse: str) -> None:
    class Failing(Logged):
        failed = False

        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            if len(self.log) == N and not self.failed:
                self.failed = True
                raise ConnectionError("once")
            return super().generate_until(requests)

    model = Failing(seed=9, share=0.36)
    with noise(until="decided", against=worse, repeats=K, futility=False) as session:
        toys.simple_evaluate(folder, ["gen"], model)
    assert any("further answers could not be had" in note for note in noted(session.analysis))
    assert Counter(model.log) == Counter(dict.fromkeys(model.asked, K))


KILLED = """
import os, signal, sys
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
class Dying(toys.HashModel):
    def __init__(self, calls):
        super().__init__(seed=3, share=0.55)
        self.left = calls
    def generate_until(self, requests, disable_tqdm=False):
        found = []
        for request in requests:
            found.append(self.answer(request.args[0]))
            self.cache_hook.add_partial("generate_until", request.args, found[-1])
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        print("asked", len(requests))
        return found
with noise(until="decided", against=sys.argv[2], repeats=3, futility=False) as session:
    results = toys.simple_evaluate(__import__("pathlib").Path(sys.argv[1]), ["greedy"], Dying(int(sys.argv[3])),
                                   use_cache=sys.argv[4])
"""


@pytest.mark.process
@pytest.mark.slow
def test_a_kill_in_the_second_round_loses_no_answer_of_the_first(folder: Path, tmp_path: Path) -> None:
    greedy = toys.GENERATE | {"generation_kwargs": {"until": ["\n"], "do_sample": False, "max_gen_toks": 16}}
    toys.write_task(folder, "greedy", toys.docs(N), greedy)
    save(folder, tmp_path / "b", ["greedy"], toys.HashModel(seed=9, share=0.35))
    script = tmp_path / "run.py"
    script.write_text(KILLED)

    def run(calls: int, cache: str) -> Any:
        command = [sys.executable, str(script), str(folder), str(tmp_path / "b"), str(calls), str(tmp_path / cache)]
        here = environment(Path(__file__).parents[1])
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=here, check=False)

    def looks(done: Any) -> list[str]:
        return [line for line in done.stderr.splitlines() if ": look " in line]

    def asked(done: Any) -> int:
        return sum(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("asked"))

    whole, killed = run(0, "whole"), run(N + 5, "again")
    assert whole.returncode == 0, whole.stderr[-2000:]
    assert killed.returncode == -signal.SIGKILL
    again = run(0, "again")
    assert again.returncode == 0, again.stderr[-2000:]
    assert looks(again)[: len(looks(killed))] == looks(killed) == looks(whole)[: len(looks(killed))]
    assert asked(again) <= 2 * N  # none of the first round
