"""Live lm-eval runs that stop when it is decided, or precise enough, and runs of a random subset."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, ReadOptions, Scores
from harness_noise.errors import InputError
from harness_noise.extra.stopping.growing import observe
from harness_noise.extra.stopping.observed import observe_mean
from harness_noise.extra.stopping.rules import StoppingRule
from harness_noise.io.registry import read
from harness_noise.settings import Settings
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import native_part, save
from support.lm_eval_server import serving
from support.processes import environment

N = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("until")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "few", toys.docs(40, start=500))
    toys.write_task(path, "unknown", toys.docs(50, start=900))
    toys.write_task(path, "more", toys.docs(20, start=600))
    toys.write_task(path, "choice", toys.docs(90, start=700), toys.CHOICE)
    toys.write_task(path, "shots", toys.docs(N), num_fewshot=2, fewshot_split="test")
    by_size = {"metric": "exact_match", "weight_by_size": True, "filter_list": ["strict", "flexible"]}
    toys.write_group(path, "both", ["gen", "few"], [by_size])
    return path


@pytest.fixture(scope="module")
def worse(folder: Path) -> str:
    """A finished run of a model that knows less."""
    save(folder, folder / "b", ["both", "choice", "shots"], toys.HashModel(seed=9, share=0.35))
    return str(folder / "b")


def better() -> toys.HashModel:
    return toys.HashModel(seed=1, share=0.9)


def without_part(results: dict[str, Any]) -> dict[str, Any]:
    """Native results of a run that was given the list of documents in another way, and that say so elsewhere."""
    found = native_part(results)
    found.get("config", {}).pop("samples", None)
    return found


def of(run: Any, task: str, metric: str, scorer: str) -> Any:
    (found,) = [item for item in run.scores if (item.task, item.metric, item.scorer) == (task, metric, scorer)]
    return found


def test_exactly_the_recorded_questions_each_once_and_native_values_of_that_list(folder: Path, worse: str) -> None:
    model = better()
    with noise(until="decided", against=worse) as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    assert session.problems == []
    (look,) = session.analysis.sequential
    assert (look.decision, look.rule, look.looks, look.n_total) == ("A better", "group-sequential", 20, N)
    assert look.n_asked < N
    asked = results["config"]["samples"]["gen"]
    assert len(asked) == look.n_asked == sum(model.calls)
    if version("lm_eval").split(".")[:3] not in (["0", "4", "10"], ["0", "4", "11"]):  # these count all the same
        assert results["n-samples"]["gen"]["effective"] == look.n_asked
    assert set(model.asked.values()) == {1}
    assert [row["doc_id"] for row in results["samples"]["gen"] if row["filter"] == "strict"] == asked
    plain = toys.simple_evaluate(folder, ["gen"], better(), samples={"gen": asked})
    assert without_part(results) == without_part(plain)
    # the same looks, taken again from what was logged
    order = StoppingRule().order(N)
    assert asked == sorted(order.asked(look.look).tolist())
    mine = {row["doc_id"]: row["exact_match"] for row in results["samples"]["gen"] if row["filter"] == "strict"}
    b = of(read(worse, ReadOptions())[0], "gen", "exact_match", "strict")
    state = None
    for number in range(1, look.look + 1):
        rows = order.asked(number)
        keys = Questions(tuple(b.questions.keys[i] for i in rows), "doc_hash")
        a = Scores("gen", "exact_match", "strict", keys, np.array([[mine[i]] for i in rows]), higher_is_better=True)
        state = StoppingRule().look(order, state, observe([a], [b], Settings()))
        assert state.stop == (number == look.look)
    for name, value in look.to_dict().items():
        again = getattr(state.sequential, name)
        assert again == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), name


def test_the_block_and_the_codes_are_in_the_results_and_when_they_are_read_again(
    folder: Path, worse: str, tmp_path: Path
) -> None:
    with noise(until="decided", against=worse, cluster="template") as session:
        results = save(folder, tmp_path, ["gen"], better())
    block = results["noise"]
    assert block["sequential"] == [session.analysis.sequential[0].to_dict()]
    assert block["drawn"] == [session.analysis.drawn[0].to_dict()]
    assert all("stopped_early" in row["diagnostics"] for row in block["estimates"] if row["task"] == "gen")
    (again,) = read(str(tmp_path), ReadOptions())
    assert list(again.stops) == block["sequential"]
    assert list(again.drawn) == block["drawn"]
    assert all("stopped_early" in part.diagnostics for part in again.scores)
    templates = Counter(row["doc"]["template"] for row in results["samples"]["gen"] if row["filter"] == "strict")
    assert set(templates.values()) <= {3, 2}  # whole clusters; the last one of the data has two
    assert list(templates.values()).count(2) <= 1


def test_nothing_is_decided_and_all_is_asked_as_without_us(folder: Path, worse: str) -> None:
    model = toys.HashModel(seed=9, share=0.36)
    with noise(until="decided", against=worse, futility="off") as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    plain = toys.simple_evaluate(folder, ["gen"], toys.HashModel(seed=9, share=0.36))
    assert native_part(results) == native_part(plain)
    assert "samples" not in results["config"]
    (look,) = session.analysis.sequential
    assert (look.decision, look.n_asked) == ("not separable", N)
    assert session.analysis.drawn == ()
    assert "stopped_early" not in session.analysis.estimates[0].diagnostics


def test_what_the_rest_cannot_decide_is_not_asked(folder: Path, worse: str) -> None:
    model = toys.HashModel(seed=9, share=0.36)
    with noise(until="decided", against=worse) as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    (look,) = session.analysis.sequential
    assert look.decision == "cannot be decided"
    assert look.n_asked == sum(model.calls) < N
    assert look.futility < 0.05
    assert look.ci_low < 0 < look.ci_high
    asked = results["config"]["samples"]
    plain = toys.simple_evaluate(folder, ["gen"], toys.HashModel(seed=9, share=0.36), samples=asked)
    assert without_part(results) == without_part(plain)


def test_a_group_is_one_and_other_tasks_stop_for_themselves(
    folder: Path, worse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = better()
    with noise(until="decided", against=worse, repeats=3, order="depth", looks=5) as session:
        results = toys.simple_evaluate(folder, ["both", "choice"], model)
    assert session.problems == []
    looks = {look.task: look for look in session.analysis.sequential}
    assert set(looks) == {"both", "choice"}
    assert (looks["both"].n_total, looks["choice"].n_total) == (N + 40, 90)
    assert looks["both"].decision == "A better"
    assert looks["both"].n_asked < N + 40
    part = results["config"]["samples"]
    assert len(part["gen"]) + len(part["few"]) == looks["both"].n_asked
    assert abs(len(part["few"]) - looks["both"].n_asked / 6) <= 2  # in proportion
    assert len(part["choice"]) == looks["choice"].n_asked
    assert {len(row["resps"][0]) for name in ("gen", "few") for row in results["samples"][name]} == {3}
    assert set(model.asked.values()) == {3}
    plain = toys.simple_evaluate(folder, ["both", "choice"], better(), samples=part)
    assert without_part(results) == without_part(plain)
    lines = [line for line in capsys.readouterr().err.splitlines() if "look" in line]
    assert len(lines) == sum(look.look for look in looks.values())
    assert "harness-noise: both: look 1 of 5, " in lines[0]
    assert session.analysis.sequential[0].estimate_unadjusted == pytest.approx(
        group_difference(session, worse, Group("both", "exact_match", "strict", ("gen", "few"))), abs=1e-12
    )


def group_difference(session: Any, worse: str, group: Group) -> float:
    (b,) = read(worse, ReadOptions())
    ours = [of(session.collected.run, task, group.metric, group.scorer) for task in group.tasks]
    theirs = [of(b, task, group.metric, group.scorer) for task in group.tasks]
    found = observe(ours, theirs, Settings(), group).estimate
    assert found is not None
    return found


def test_a_standard_error_that_is_small_enough(folder: Path) -> None:
    with noise(until="se=0.06") as session:
        results = toys.simple_evaluate(folder, ["gen"])
    (look,) = session.analysis.sequential
    assert (look.rule, look.decision, look.p_value) == ("se", "precise enough", None)
    part = of(session.collected.run, "gen", "exact_match", "strict")
    assert len(part.questions) == look.n_asked < N
    observed = observe_mean([part], Settings())
    assert observed.se <= 0.06
    assert (look.estimate, look.ci_low, look.ci_high) == pytest.approx((observed.estimate, *observed.interval))
    assert len(results["config"]["samples"]["gen"]) == look.n_asked


def test_anytime_and_equivalence(folder: Path, worse: str) -> None:
    with noise(until="decided", against=worse, looks="anytime") as session:
        toys.simple_evaluate(folder, ["gen"], better())
    (look,) = session.analysis.sequential
    assert (look.rule, look.looks, look.decision) == ("confidence sequence", "anytime", "A better")
    with noise(until="decided", against=worse, margin="0.45") as session:
        toys.simple_evaluate(folder, ["gen"], toys.HashModel(seed=9, share=0.35))
    (look,) = session.analysis.sequential
    assert look.decision == "equivalent within 0.45"
    assert look.n_asked < N


def test_the_metric_that_decides_may_be_named(folder: Path, worse: str) -> None:
    with noise(until="decided", against=worse, metric="exact_match,flexible") as session:
        toys.simple_evaluate(folder, ["gen"], better())
    assert session.analysis.sequential[0].scorer == "flexible"
    with noise(until="se=0.05", metric="f1") as session:
        results = toys.simple_evaluate(folder, ["gen"], better())
    assert session.analysis.sequential == ()
    assert any("there is no metric f1" in note for note in noted(session.analysis))
    assert results["n-samples"]["gen"]["effective"] == N


def test_examples_drawn_at_random_are_those_of_the_whole_run(folder: Path, worse: str) -> None:
    with noise(until="decided", against=worse) as session:
        results = toys.simple_evaluate(folder, ["shots"], better())
    whole = toys.simple_evaluate(folder, ["shots"], better())
    prompts = {row["doc_id"]: row["prompt_hash"] for row in whole["samples"]["shots"]}
    rows = results["samples"]["shots"]
    assert len(rows) // 2 == session.analysis.sequential[0].n_asked < N
    assert all(row["prompt_hash"] == prompts[row["doc_id"]] for row in rows)


@pytest.mark.parametrize("concurrent", [1, 4])
def test_a_server_is_asked_no_question_twice(folder: Path, worse: str, concurrent: int) -> None:
    def ask(server: Any, **more: Any) -> dict[str, Any]:
        arguments = {
            "model": "toy", "base_url": f"http://127.0.0.1:{server.server_port}/v1/completions",
            "tokenizer_backend": None, "num_concurrent": concurrent, "max_retries": 1,
        }  # fmt: skip
        return toys.simple_evaluate(folder, ["gen"], "local-completions", model_args=arguments, batch_size=1, **more)

    with (
        serving(honour_seed=True, share=0.95) as server,
        noise(until="decided", against=worse, repeats=2, order="depth") as session,
    ):
        results = ask(server)
    asked = Counter(str(payload["prompt"]) for payload in server.payloads)
    assert len(asked) == session.analysis.sequential[0].n_asked < N
    assert set(asked.values()) == {2}
    assert set(asked) == {
        str([row["arguments"][0][0]]) if next(iter(asked)).startswith("[") else row["arguments"][0][0]
        for row in results["samples"]["gen"]
    }
    with serving(honour_seed=True, share=0.95) as server:
        plain = ask(server, samples=results["config"]["samples"])
    ours, theirs = without_part(results), without_part(plain)
    for found in (ours, theirs):
        found["config"].pop("model_args")  # the port
    assert ours == theirs


def test_a_random_part(folder: Path, worse: str) -> None:
    with noise(sample="0.3", seed=4, complete=worse) as session:
        results = toys.simple_evaluate(folder, ["both"], better())
    part = results["config"]["samples"]
    assert {name: len(found) for name, found in part.items()} == {"gen": 60, "few": 12}
    assert part["gen"] != list(range(60))
    drawn = {item.task: item for item in session.analysis.drawn}
    assert (drawn["gen"].n_asked, drawn["gen"].n_total, drawn["gen"].order_seed) == (60, N, 4)
    assert not any("stopped_early" in item.diagnostics for item in session.analysis.estimates)
    assert without_part(results) == without_part(toys.simple_evaluate(folder, ["both"], better(), samples=part))
    rows = {(row.task, row.metric, row.scorer): row for row in session.analysis.full_benchmark}
    whole = rows["both", "exact_match", "strict"]
    assert (whole.n_asked, whole.n_total) == (72, N + 40)
    assert results["noise"]["full_benchmark"]
    truth = toys.simple_evaluate(folder, ["both"], better())["results"]["both"]["exact_match,strict"]
    assert abs(whole.estimate - truth) < 4 * whole.se


def test_a_part_of_a_part(folder: Path, worse: str) -> None:
    with noise(sample=150, until="decided", against=worse) as session:
        results = toys.simple_evaluate(folder, ["gen"], better())
    (look,) = session.analysis.sequential
    assert look.n_total == 150
    assert session.analysis.drawn[0].n_total == N
    assert len(results["config"]["samples"]["gen"]) == look.n_asked


@pytest.mark.parametrize(
    ("options", "more", "words"),
    [
        ({"until": "decided"}, {}, "needs the run to compare with"),
        ({"until": "soon"}, {}, "write decided, or se=0.01"),
        ({"looks": 3}, {}, "`looks` does nothing without `until='decided'`"),
        ({"until": "se=0.05", "looks": 3}, {}, "`looks` is for `until='decided'`"),
        ({"sample": "0"}, {}, "neither a share"),
        ({"until": "se=0.05"}, {"limit": 50}, "leave --limit out"),
        ({"repeats": "auto"}, {"limit": 50}, "leave --limit out"),
        ({"repeats": "auto"}, {"samples": {"gen": [1, 2]}}, "leave --samples out"),
        ({"complete": "/nowhere"}, {"limit": 50}, "not_a_random_part"),
        ({"sample": "20"}, {"samples": {"gen": [1, 2]}}, "leave --samples out"),
        ({"until": "decided", "against": "/nowhere"}, {}, "nowhere"),
    ],
)
def test_what_cannot_be(folder: Path, options: dict[str, Any], more: dict[str, Any], words: str) -> None:
    model = better()
    with pytest.raises(InputError, match=words), noise(**options):
        toys.simple_evaluate(folder, ["gen"], model, **more)
    assert model.calls == []


def test_what_the_tasks_do_not_allow(folder: Path, worse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = better()
    with (
        pytest.raises(InputError, match="share the task few"),
        noise(until="decided", against=worse, groups={"x": "[gf]*", "y": "[fs]*"}),
    ):
        toys.simple_evaluate(folder, ["gen", "few", "shots"], model)
    with pytest.raises(InputError, match="it has no scores of unknown"), noise(until="decided", against=worse):
        toys.simple_evaluate(folder, ["unknown"], model)
    model._world_size = 2
    with pytest.raises(InputError, match="several ranks"), noise(until="decided", against=worse):
        toys.simple_evaluate(folder, ["gen"], model)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="`repeats='auto'` does not work on several ranks"), noise(repeats="auto"):
        toys.simple_evaluate(folder, ["gen"], better())
    assert model.calls == []


def test_a_run_that_has_answered_a_part_leaves_only_that_part_to_be_asked(folder: Path, tmp_path: Path) -> None:
    save(folder, tmp_path, ["gen"], toys.HashModel(seed=9, share=0.35), samples={"gen": list(range(0, N, 2))})
    with noise(until="decided", against=str(tmp_path)) as session:
        results = toys.simple_evaluate(folder, ["gen"], better())
    (look,) = session.analysis.sequential
    assert look.n_total == N // 2
    assert all(i % 2 == 0 for i in results["config"]["samples"]["gen"])
    assert any("Only these are asked, and they are not a random subset" in note for note in noted(session.analysis))
    assert session.analysis.drawn[0].n_total == N // 2
    assert all("not_a_random_part" in row.diagnostics for row in session.analysis.estimates)


def test_nor_do_the_first_questions_become_a_random_part_by_asking_all_of_them(folder: Path, tmp_path: Path) -> None:
    save(folder, tmp_path / "b", ["gen"], toys.HashModel(seed=9, share=0.35), limit=60)
    with noise(until="decided", against=str(tmp_path / "b"), futility="off") as session:
        save(folder, tmp_path / "a", ["gen"], toys.HashModel(seed=9, share=0.36))
    assert session.analysis.sequential[0].n_asked == 60
    (again,) = read(str(tmp_path / "a"), ReadOptions())
    for found in (session.analysis.estimates, again.scores):
        assert all("not_a_random_part" in item.diagnostics for item in found)


def test_a_random_part_of_a_random_part_is_one_of_the_benchmark(folder: Path, tmp_path: Path) -> None:
    with noise(sample="100", seed=3):
        save(folder, tmp_path, ["gen"], toys.HashModel(seed=9, share=0.35))
    with noise(until="decided", against=str(tmp_path)) as session:
        toys.simple_evaluate(folder, ["gen"], better())
    (drawn,) = session.analysis.drawn
    assert drawn.n_asked < 100
    assert drawn.n_total == N
    assert not any("not_a_random_part" in row.diagnostics for row in session.analysis.estimates)


@pytest.mark.parametrize("sample", [{}, {"sample": "60"}])
def test_a_part_of_an_unequal_part_is_unequal(folder: Path, worse: str, tmp_path: Path, sample: dict[str, str]) -> None:
    """The probabilities with which the run compared with drew its questions are those of the new run's, too."""
    save(folder, tmp_path / "more", ["gen"], toys.HashModel(seed=3, share=0.6))
    with noise(sample="100", seed=3, complete=[worse, str(tmp_path / "more")]) as before:
        save(folder, tmp_path / "b", ["gen"], toys.HashModel(seed=9, share=0.35))
    theirs = before.analysis.drawn[0].chances
    assert theirs is not None
    with noise(until="decided", against=str(tmp_path / "b"), **sample) as session:
        toys.simple_evaluate(folder, ["gen"], better())
    assert session.problems == []
    (drawn,) = session.analysis.drawn
    assert drawn.chances is not None
    assert drawn.n_total == N
    assert len(drawn.chances) == int(sample.get("sample", len(theirs)))
    share = len(drawn.chances) / len(theirs)
    for key, chance in drawn.chances.items():
        assert chance == pytest.approx(theirs[key] * share)
    assert all("unequal_chances" in row.diagnostics for row in session.analysis.estimates)
    assert session.analysis.sequential[0].decision == "A better"


def test_a_fault_of_ours_costs_the_looks_and_not_the_run(
    folder: Path, worse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(StoppingRule, "look", broken)
    model = better()
    with noise(until="decided", against=worse) as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    assert "asks all its questions" in session.problems[0]
    assert native_part(results) == native_part(toys.simple_evaluate(folder, ["gen"], better()))
    assert set(model.asked.values()) == {1}
    assert session.analysis.sequential == ()


def test_a_fault_of_the_model_is_the_runs_own(folder: Path, worse: str) -> None:
    model = toys.HashModel(seed=1, share=0.5)
    model.fail_after = 1
    with pytest.raises(ConnectionError), noise(until="decided", against=worse):
        toys.simple_evaluate(folder, ["gen"], model)


def test_ctrl_c_in_the_further_answers_keeps_what_is_there(folder: Path, worse: str) -> None:
    class Interrupted(toys.HashModel):
        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            if len(self.calls) == 3:  # two blocks, the further answers of the second
                raise KeyboardInterrupt
            return super().generate_until(requests)

    model = Interrupted(seed=1, share=0.5)
    with noise(until="decided", against=worse, repeats=2, order="depth") as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    assert session.interrupted
    (look,) = session.analysis.sequential
    assert (look.look, look.decision) == (2, "not decided")
    assert len(model.asked) == look.n_asked == len(results["config"]["samples"]["gen"]) < N
    assert "stopped_early" in session.analysis.estimates[0].diagnostics


def test_further_answers_that_cannot_be_had_cost_only_themselves(folder: Path, worse: str) -> None:
    class Failing(toys.HashModel):
        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            if len(self.calls) == 3:
                self.calls.append(0)
                raise ConnectionError("once")
            return super().generate_until(requests)

    model = Failing(seed=9, share=0.36)
    with noise(until="decided", against=worse, repeats=2, order="depth", futility="off") as session:
        results = toys.simple_evaluate(folder, ["gen"], model)
    plain = toys.simple_evaluate(folder, ["gen"], toys.HashModel(seed=9, share=0.36))
    assert results["results"]["gen"]["exact_match,strict"] == plain["results"]["gen"]["exact_match,strict"]
    found = next(item for item in session.analysis.estimates if item.scorer == "strict")
    assert "missing_repeats" in found.diagnostics
    assert (found.repeats_min, found.repeats_max) == (1, 2)


KILLED = """
import os, signal, sys
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
class Dying(toys.HashModel):
    def __init__(self, calls):
        super().__init__(seed=1, share=0.5)
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
with noise(until="decided", against=sys.argv[2], looks=4) as session:
    results = toys.simple_evaluate(__import__("pathlib").Path(sys.argv[1]), ["greedy"], Dying(int(sys.argv[3])),
                                   use_cache=sys.argv[4])
print("sequential", session.analysis.sequential[0].to_dict())
"""


@pytest.mark.process
def test_a_kill_loses_nothing_that_use_cache_keeps(folder: Path, tmp_path: Path) -> None:
    greedy = toys.GENERATE | {"generation_kwargs": {"until": ["\n"], "do_sample": False, "max_gen_toks": 16}}
    toys.write_task(folder, "greedy", toys.docs(N), greedy)
    save(folder, tmp_path / "b", ["greedy"], toys.HashModel(seed=9, share=0.35))
    script = tmp_path / "run.py"
    script.write_text(KILLED)

    def run(calls: int, cache: str) -> Any:
        command = [sys.executable, str(script), str(folder), str(tmp_path / "b"), str(calls), str(tmp_path / cache)]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=120,
            env=environment(Path(__file__).parents[1]),
            check=False,
        )

    whole, killed = run(0, "whole"), run(70, "again")
    assert whole.returncode == 0, whole.stderr[-2000:]
    assert killed.returncode == -signal.SIGKILL
    again = run(0, "again")
    assert again.returncode == 0, again.stderr[-2000:]

    def counts(out: str) -> list[int]:
        return [int(line.split()[1]) for line in out.splitlines() if line.startswith("asked")]

    assert sum(counts(whole.stdout)) - sum(counts(again.stdout)) == 70
    assert [line for line in whole.stdout.splitlines() if line.startswith("sequential")] == [
        line for line in again.stdout.splitlines() if line.startswith("sequential")
    ]
