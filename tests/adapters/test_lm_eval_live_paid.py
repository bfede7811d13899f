"""Every answer that a server has sent is in the results, whatever happens to the next one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.notes import noted

pytest.importorskip("lm_eval")

from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part
from support.lm_eval_server import Server, serving

N, K = 8, 4
FURTHER = N * (K - 1)
MODELS = ["local-completions", "local-chat-completions"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    toys.write_task(path, "gen", toys.docs(N))
    return path


def ask(folder: Path, server: Server, model: str = MODELS[0], batch: int = 1, concurrent: int = 1) -> dict[str, Any]:
    chat = "chat" in model
    arguments = {
        "model": "toy",
        "base_url": f"http://127.0.0.1:{server.server_port}/v1/{'chat/' if chat else ''}completions",
        "tokenizer_backend": None,
        "num_concurrent": concurrent,
        "max_retries": 1,
        "timeout": 1,
    }
    return toys.simple_evaluate(
        folder, ["gen"], model, model_args=arguments, batch_size=batch, apply_chat_template=chat
    )


def kept(results: dict[str, Any]) -> Counter[tuple[str, str]]:
    """Prompts with the answers in the log, lm-eval's own first ones included."""
    rows = [row for row in results["samples"]["gen"] if row["filter"] == "strict"]
    return Counter((prompt_of(row), answer) for row in rows for answer in row["resps"][0])


def prompt_of(row: dict[str, Any]) -> str:
    return f"Q: {row['doc']['question']}\nA:"


def check(folder: Path, fault: Any, number: int, **options: Any) -> tuple[dict[str, Any], Any, Server]:
    """A run in which the request with that number gets a fault; what native is does not change."""
    with serving(honour_seed=True) as server:
        plain = ask(folder, server, **options)
    with serving(honour_seed=True) as server, noise(repeats=K) as session:
        server.faults[number] = fault
        results = ask(folder, server, **options)
    assert native_part(results)["results"] == native_part(plain)["results"]
    assert native_part(results)["samples"] == native_part(plain)["samples"]
    return results, session, server


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("number", [1, FURTHER // 2, FURTHER], ids=["first", "middle", "last"])
@pytest.mark.parametrize("fault", [429, 500, "hang", "cut"])
def test_a_fault_costs_the_answers_that_had_not_come(folder: Path, fault: Any, number: int, model: str) -> None:
    results, session, server = check(folder, fault, N + number, model=model)
    assert len(server.drawn) == N + number - 1
    assert kept(results) == Counter(server.drawn)
    assert any(f"{number - 1} of {FURTHER} further answers are there" in note for note in noted(session.analysis))
    # a whole round of answers before any question is asked again
    counts = [len(row["resps"][0]) for row in results["samples"]["gen"]]
    assert max(counts) - min(counts) <= 1
    found = estimate(session, "gen")
    assert ("missing_repeats" in found.diagnostics) == (number > 1)
    assert found.repeats_max == max(counts)


@pytest.mark.parametrize("number", [1, 3, 6], ids=["first", "middle", "last"])
@pytest.mark.parametrize("batch", [3, 4, 8])
def test_batches_are_kept_as_they_come(folder: Path, batch: int, number: int) -> None:
    calls = -(-N // batch)  # of lm-eval's own
    last = calls * (K - 1)
    number = {1: 1, 3: last // 2, 6: last}[number]
    results, _, server = check(folder, 500, calls + number, batch=batch)
    assert kept(results) == Counter(server.drawn)
    assert len(server.drawn) >= N + (number - 1) * (N // calls)


@pytest.mark.parametrize("number", [1, FURTHER // 2, FURTHER], ids=["first", "middle", "last"])
def test_concurrent_answers_are_kept_as_they_come(folder: Path, number: int) -> None:
    """What is under way when a request fails is given up: at most as many as are asked at once."""
    concurrent = 3
    results, _, server = check(folder, 500, N + number, concurrent=concurrent)
    lost = Counter(server.drawn) - kept(results)
    assert kept(results) <= Counter(server.drawn)
    assert lost.total() < concurrent
    assert len(server.drawn) >= N + number - concurrent


@pytest.mark.parametrize("number", [3, N + 3, 3 * N + 1])
@pytest.mark.parametrize(
    "options", [{"repeats": "auto"}, {"repeats": K, "sample": "100%"}, {"repeats": K, "until": "se=0.0001"}], ids=str
)
def test_runs_that_grow_keep_what_has_come(folder: Path, options: dict[str, Any], number: int) -> None:
    with serving(honour_seed=True) as server, noise(**options) as session:
        server.faults[N + number] = 500
        results = ask(folder, server)
    assert kept(results) == Counter(server.drawn)
    found = estimate(session, "gen")
    counts = [len(row["resps"][0]) for row in results["samples"]["gen"]]
    assert (found.repeats_min, found.repeats_max) == (min(counts), max(counts))
    if "until" not in options and number < FURTHER:
        assert (max(counts), min(counts)) == (2 + number // N, 1 + number // N)
        assert "missing_repeats" in found.diagnostics


def test_an_interrupt_keeps_what_has_come(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(honour_seed=True) as server, noise(repeats=K) as session:
        original = server.answer

        def answer(prompt: str, payload: dict[str, Any]) -> str:
            if len(server.payloads) == N + 11:
                import signal

                signal.raise_signal(signal.SIGTERM)
            return original(prompt, payload)

        monkeypatch.setattr(server, "answer", answer)
        results = ask(folder, server)
    assert session.interrupted
    assert (Counter(server.drawn) - kept(results)).total() <= 1
    assert kept(results).total() == N + 10
