"""Further answers that were paid for in a run that did not finish are taken up by the next one, and by no other."""

from __future__ import annotations

import json
import os
import platform
import stat
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval")
from lm_eval.loggers import EvaluationTracker

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.errors import InputError
from harness_noise.io.paths import BESIDE
from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live import journal as journals
from harness_noise_adapters.lm_eval_harness.live.options import Options
from support import lm_eval_models as toys
from support.lm_eval_live import native_part
from support.lm_eval_server import Server, serving

pytestmark = pytest.mark.usefixtures("quick_lm_eval")
N, K = 8, 4
FURTHER = N * (K - 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "twice", [*toys.docs(N // 2), *toys.docs(N // 2)])
    return path


def ask(
    folder: Path, out: Path, server: Server, task: str = "gen", batch: int = 1, K: int = K, **more: Any
) -> tuple[dict[str, Any], Any]:
    """One run of the command line's kind, from Python; its results and session."""
    arguments = {
        "model": "toy",
        "base_url": "http://127.0.0.1:1/v1/completions",  # one server for all runs, whatever its port
        "tokenizer_backend": None,
        "max_retries": 1,
        **more.pop("model_args", {}),
    }
    journal = more.pop("journal", "auto")
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    original = LocalCompletionsAPI.__init__

    def here(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs | {"base_url": f"http://127.0.0.1:{server.server_port}/v1/completions"})

    with pytest.MonkeyPatch.context() as patch, noise(repeats=K, journal=journal) as session:
        patch.setattr(LocalCompletionsAPI, "__init__", here)
        tracker = EvaluationTracker(output_path=str(out))
        results = toys.simple_evaluate(
            folder, [task], "local-completions", model_args=arguments, batch_size=batch, evaluation_tracker=tracker,
            log_samples=True, **more,
        )  # fmt: skip
    return results, session


def answers(results: dict[str, Any], task: str = "gen") -> list[list[str]]:
    return [row["resps"][0] for row in results["samples"][task] if row["filter"] == "strict"]


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / BESIDE / "answers-0.jsonl").read_text().splitlines()]


def cut_short(folder: Path, out: Path, after: int, batch: int = 1, **more: Any) -> Counter[tuple[str, str]]:
    """A run of which one further request fails; the further answers that were drawn."""
    first = -(-N // batch)
    with serving(honour_seed=True) as server:
        server.served = more.pop("served", {})
        server.faults[first + after + 1] = 500
        ask(folder, out, server, batch=batch, **more)
    return Counter(server.drawn[N:])


@pytest.mark.parametrize("after", [1, 12, FURTHER - 1], ids=["first", "middle", "last"])
def test_a_run_that_did_not_finish_is_gone_on_with(folder: Path, tmp_path: Path, after: int) -> None:
    with serving(honour_seed=True) as server:
        whole, _ = ask(folder, tmp_path / "whole", server)
    drawn = cut_short(folder, tmp_path, after)
    assert drawn.total() == after
    with serving(honour_seed=True) as server:
        results, session = ask(folder, tmp_path, server)
    # lm-eval's own answers are asked anew, and of the others only those that are missing
    assert len(server.payloads) == N + FURTHER - after
    # a server that honours seeds has answered as if nothing had happened
    assert answers(results) == answers(whole)
    assert native_part(results) == native_part(whole)
    block = results["noise"]["journal"]
    assert (block["mode"], block["taken_up"], block["asked"]) == ("auto", after, FURTHER - after)
    (began,) = block["began"]
    date = began[:16].replace("T", " ")
    word = "answer" if after == 1 else "answers"
    assert results["noise"]["notes"][0]["text"] == f"taken up: {after} {word} of {date}"
    assert session.warnings.count(f"taken up: {after} {word} of {date}") == 1
    found = session.analysis.estimates[0]
    assert (found.repeats_min, found.repeats_max) == (K, K)
    # it has finished: the same command again asks everything again
    with serving(honour_seed=True) as server:
        again, _ = ask(folder, tmp_path, server)
    assert len(server.payloads) == N * K
    assert again["noise"]["journal"]["taken_up"] == 0


@pytest.mark.parametrize("batch", [3, 4])
def test_batches_are_gone_on_with(folder: Path, tmp_path: Path, batch: int) -> None:
    drawn = cut_short(folder, tmp_path, 3, batch=batch)
    with serving(honour_seed=True) as server:
        results, _ = ask(folder, tmp_path, server, batch=batch)
    assert len(server.drawn) == N * K - drawn.total()
    assert {len(found) for found in answers(results)} == {K}
    assert results["noise"]["journal"]["taken_up"] == drawn.total()
    # the same answer to one prompt twice is no copy of an earlier run's
    seeds = Counter((payload["seed"], str(payload["prompt"])) for payload in server.payloads)
    assert max(seeds.values()) == 1


def test_two_runs_that_did_not_finish_are_gone_on_with_together(folder: Path, tmp_path: Path) -> None:
    cut_short(folder, tmp_path, 5)
    with serving(honour_seed=True) as server:
        server.faults[N + 7] = 429
        ask(folder, tmp_path, server)
    with serving(honour_seed=True) as server:
        results, _ = ask(folder, tmp_path, server)
    assert len(server.payloads) == N + FURTHER - 11
    assert results["noise"]["journal"]["taken_up"] == 11
    assert {len(found) for found in answers(results)} == {K}
    with serving(honour_seed=True) as server:
        ask(folder, tmp_path, server)
    assert len(server.payloads) == N * K


def test_reuse_takes_up_what_a_finished_run_has(folder: Path, tmp_path: Path) -> None:
    """Ten answers after five for the price of five, and of lm-eval's own."""
    with serving(honour_seed=True) as server:
        five, _ = ask(folder, tmp_path, server, K=5)
    with serving(honour_seed=True) as server:
        ten, _ = ask(folder, tmp_path, server, K=10, journal="reuse")
    assert len(server.payloads) == N + N * 5
    assert [found[:5] for found in answers(ten)] == answers(five)
    assert {len(found) for found in answers(ten)} == {10}
    assert ten["noise"]["journal"]["taken_up"] == N * 4
    with serving(honour_seed=True) as server:
        ask(folder, tmp_path, server, K=10, journal="reuse")
    assert len(server.payloads) == N


@pytest.mark.parametrize(
    "other",
    [
        {"model_args": {"model": "other"}},
        {"gen_kwargs": "temperature=0.5"},
        {"model_args": {"seed": 5}},
        {"system_instruction": "Think."},
        {"num_fewshot": 1},
    ],
    ids=["model", "temperature", "seed", "system", "few-shot"],
)
def test_nothing_of_another_question_is_taken_up(folder: Path, tmp_path: Path, other: dict[str, Any]) -> None:
    cut_short(folder, tmp_path, 12)
    with serving(honour_seed=True) as server:
        results, _ = ask(folder, tmp_path, server, **other)
    assert len(server.payloads) == N * K
    assert results["noise"]["journal"]["taken_up"] == 0


def test_how_fast_it_is_asked_makes_no_other_model(folder: Path, tmp_path: Path) -> None:
    cut_short(folder, tmp_path, 12)
    with serving(honour_seed=True) as server:
        ask(folder, tmp_path, server, model_args={"num_concurrent": 3, "timeout": 60})
    assert len(server.payloads) == N * K - 12


@pytest.mark.parametrize("then", [{"model": "toy", "system_fingerprint": "b"}, {"model": "toy-2"}, {}])
def test_nothing_of_another_server_is_taken_up(folder: Path, tmp_path: Path, then: dict[str, str]) -> None:
    served = {"model": "toy", "system_fingerprint": "a"}
    cut_short(folder, tmp_path, 12, served=served)
    with serving(honour_seed=True) as server:
        server.served = then
        ask(folder, tmp_path, server, journal="off")  # leaves no trace
        server.faults[N * K + N + 1] = 500
        ask(folder, tmp_path, server)
        assert len(server.payloads) == N * K + N + 1
    with serving(honour_seed=True) as server:
        server.served = served
        ask(folder, tmp_path, server)
    assert len(server.payloads) == N * K - 12


def test_only_what_began_within_a_week(folder: Path, tmp_path: Path) -> None:
    cut_short(folder, tmp_path, 12)
    path = tmp_path / BESIDE / "answers-0.jsonl"
    header, *rest = lines(tmp_path)
    for days, asked in ((8, N * K), (6, N * K - 12)):
        header["began"] = (datetime.now().astimezone() - timedelta(days=days)).isoformat()
        path.write_text("".join(json.dumps(row) + "\n" for row in (header, *rest)))
        with serving(honour_seed=True) as server:
            ask(folder, tmp_path, server)
        assert len(server.payloads) == asked


def test_a_run_that_goes_on_is_left_alone(folder: Path, tmp_path: Path) -> None:
    cut_short(folder, tmp_path, 12)
    path = tmp_path / BESIDE / "answers-0.jsonl"
    header, *rest = lines(tmp_path)
    header["process"] = os.getppid()
    path.write_text("".join(json.dumps(row) + "\n" for row in (header, *rest)))
    written = path.read_bytes()
    for mode, asked in (("auto", N * K), ("reuse", N * K - 12)):  # another program may have its number by now
        path.write_bytes(written)
        with serving(honour_seed=True) as server:
            _, session = ask(folder, tmp_path, server, journal=mode)
        assert len(server.payloads) == asked
        said = any(f"may go on (process {os.getppid()} of this machine)" in text for text in session.warnings)
        assert said == (mode == "auto")


def test_a_run_on_another_machine_is_left_alone_until_it_is_quiet(folder: Path, tmp_path: Path) -> None:
    cut_short(folder, tmp_path, 12)
    path = tmp_path / BESIDE / "answers-0.jsonl"
    path.write_text(path.read_text().replace(json.dumps(platform.node()), '"node-17"'))
    written = path.read_bytes()
    with serving(honour_seed=True) as server:
        _, session = ask(folder, tmp_path, server)
    assert len(server.payloads) == N * K
    (said,) = [text for text in session.warnings if "node-17" in text]
    assert "may go on" in said
    assert "--noise_journal reuse" in said
    for mode, minutes in (("reuse", 0), ("auto", 11)):
        path.write_bytes(written)
        os.utime(path, (then := time.time() - 60 * minutes, then))
        with serving(honour_seed=True) as server:
            _, session = ask(folder, tmp_path, server, journal=mode)
        assert len(server.payloads) == N * K - 12
        assert not any("may go on" in text for text in session.warnings)


def test_lines_that_are_damaged_are_left_out(folder: Path, tmp_path: Path) -> None:
    cut_short(folder, tmp_path, 12)
    path = tmp_path / BESIDE / "answers-0.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with serving(honour_seed=True) as server:
        results, session = ask(folder, tmp_path, server)
    assert len(server.payloads) == N * K - 11
    assert any("1 damaged line was left out" in text for text in session.warnings)
    assert {len(found) for found in answers(results)} == {K}
    damaged = [text for text in path.read_text().splitlines() if not text.endswith("}")]
    assert len(damaged) == 1  # the next line has begun on a line of its own


def test_equal_prompts_are_taken_up_once_each(folder: Path, tmp_path: Path) -> None:
    drawn = cut_short(folder, tmp_path, 5, task="twice")
    with serving(honour_seed=True) as server:
        results, _ = ask(folder, tmp_path, server, task="twice")
    assert len(server.payloads) == N * K - 5
    kept = Counter(answer for found in answers(results, "twice") for answer in found[1:])
    drawn_then = Counter(answer for _, answer in (*drawn.elements(), *server.drawn[N:]))
    assert kept == drawn_then


def test_what_stands_in_it_is_no_secret(folder: Path, tmp_path: Path) -> None:
    cut_short(folder, tmp_path, 3, model_args={"auth_token": "sk-secret", "header": {"Authorization": "sk-secret"}})
    path = tmp_path / BESIDE / "answers-0.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    for secret in ("sk-secret", "Item", "add", "127.0.0.1", "toy"):
        assert secret not in text
    header, *rest = lines(tmp_path)
    assert set(header) == {"run", "began", "model", "ranks", "host", "process"}
    assert [set(row) for row in rest] == [{"run", "key", "repeat", "number", "text"}] * 3


def test_other_weights_are_another_model(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"1234")
    key = journals.model_key("hf", f"pretrained={weights}")
    assert key == journals.model_key("hf", {"pretrained": str(weights), "batch_size": 8})
    assert key != journals.model_key("hf", {"pretrained": str(weights), "dtype": "float32"})
    os.utime(weights / "model.safetensors", ns=(1, 1))
    assert key != journals.model_key("hf", f"pretrained={weights}")


def test_no_reader_takes_it_for_a_run(folder: Path, tmp_path: Path) -> None:
    argv = ["run", "--model", "sim-hash", "--include_path", str(folder), "--tasks", "gen", "--log_samples"]
    assert main(["lm-eval", *argv, "--output_path", str(tmp_path), "--noise", "--noise_repeats", "3"]) == 0
    assert (tmp_path / BESIDE / "answers-0.jsonl").stat().st_size
    (tmp_path / BESIDE / "saving-x-1-y").mkdir()
    (tmp_path / BESIDE / "saving-x-1-y" / "results_2026-01-01T00-00-00.000000.json").write_text("{")
    (run,) = hn.read(tmp_path)
    assert run.scores[0].values.shape == (N, 3)
    assert main(["analyze", str(tmp_path)]) == 0


def test_a_journal_that_cannot_be_written_costs_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / BESIDE).write_text("in the way")
    with serving(honour_seed=True) as server:
        results, session = ask(folder, tmp_path, server)
    assert {len(found) for found in answers(results)} == {K}
    assert any("not written down any more" in text for text in session.warnings)


def test_off_and_what_there_is(folder: Path, tmp_path: Path) -> None:
    with serving(honour_seed=True) as server:
        results, _ = ask(folder, tmp_path, server, journal="off")
    assert list(tmp_path.iterdir()) == []
    assert "journal" not in results["noise"]
    with pytest.raises(InputError, match="journal must be auto, reuse or off, not 'on'"):
        Options.of({"journal": "on"})
    assert Options.of({"journal": False}).journal == "off"  # as YAML reads off


def test_a_local_model_draws_anew(folder: Path, tmp_path: Path) -> None:
    """Its random numbers stand where they stood in the run before: they would give that run's answers again."""

    def one(K: int, mode: str) -> tuple[list[list[str]], toys.HashModel]:
        model = toys.StatefulModel(share=0.5)
        with noise(repeats=K, journal=mode):
            results = toys.simple_evaluate(
                folder, ["gen"], model, evaluation_tracker=EvaluationTracker(output_path=str(tmp_path))
            )
        return answers(results), model

    first, _ = one(2, "auto")
    second, model = one(6, "reuse")
    assert model.calls == [N] * 5
    assert [found[:2] for found in second] == first
    assert [found[1] for found in second] not in [[found[k] for found in second] for k in range(2, 6)]


def test_a_run_that_stops_when_decided_keeps_its_further_answers_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys.write_task(tmp_path, "many", toys.docs(40))
    place, calls, last = tmp_path / "out", list[int](), [12.0]
    original = toys.HashModel.generate_until

    def generate(self: Any, requests: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(len(requests))
        if len(calls) > last[0]:
            raise SystemExit("killed")
        return original(self, requests, *args, **kwargs)

    monkeypatch.setattr(toys.HashModel, "generate_until", generate)

    def run() -> Any:
        calls.clear()
        with noise(repeats=3, until="se=0.0001") as session:
            toys.simple_evaluate(tmp_path, ["many"], evaluation_tracker=EvaluationTracker(output_path=str(place)))
        return session

    def written() -> int:
        (path,) = place.rglob("answers-0.jsonl")
        return sum("text" in json.loads(line) for line in path.read_text().splitlines())

    with pytest.raises(SystemExit, match="killed"):
        run()
    kept = written()
    assert 0 < kept < 80
    last[0] = float("inf")
    session = run()
    assert any(f"taken up: {kept} answers" in text for text in session.warnings)
    assert written() == 80  # of 40 questions, two each: none was asked for twice
