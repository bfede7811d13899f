"""Live runs against a real HTTP server on loopback, through lm-eval's own API models."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lm_eval")

from harness_noise_adapters.lm_eval_harness import noise
from harness_noise_adapters.lm_eval_harness.live import hook
from support import lm_eval_models as toys
from support.lm_eval_server import Server, serving
from support.notes import noted

N, K = 8, 4
MODELS = ["local-completions", "local-chat-completions"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tasks")
    toys.write_task(path, "gen", toys.docs(N))
    toys.write_task(path, "twice", [*toys.docs(N // 2), *toys.docs(N // 2)])
    greedy = toys.GENERATE | {"generation_kwargs": {"until": ["\n"], "do_sample": True, "temperature": 0}}
    toys.write_task(path, "greedy", toys.docs(N), greedy)
    return path


def ask(
    folder: Path, server: Server, model: str, task: Any = "gen", concurrent: int = 1, batch: int = 1, **more: Any
) -> dict[str, Any]:
    chat = "chat" in model
    arguments = {
        "model": "toy",
        "base_url": f"http://127.0.0.1:{server.server_port}/v1/{'chat/' if chat else ''}completions",
        "tokenizer_backend": None,
        "num_concurrent": concurrent,
        "max_retries": 1,
    }
    return toys.simple_evaluate(
        folder,
        [task] if isinstance(task, str) else task,
        model,
        model_args=arguments,
        batch_size=batch,
        apply_chat_template=chat,
        **more,
    )


def estimate(session: hook.Session) -> Any:
    assert session.analysis is not None, session.problems
    return session.analysis.estimates[0]


def answers(results: dict[str, Any], task: str = "gen") -> list[list[str]]:
    return [row["resps"][0] for row in results["samples"][task] if row["filter"] == "strict"]


def prompt(payload: dict[str, Any]) -> str:
    return payload["messages"][-1]["content"] if "messages" in payload else str(payload["prompt"])


@pytest.mark.parametrize("concurrent", [1, 4])
@pytest.mark.parametrize("model", MODELS)
def test_k_calls_per_question_with_seeds_of_their_own(folder: Path, model: str, concurrent: int) -> None:
    with serving(honour_seed=True) as server:
        plain = ask(folder, server, model, concurrent=concurrent)
    without = server.payloads
    with serving(honour_seed=True) as server, noise(repeats=K) as session:
        results = ask(folder, server, model, concurrent=concurrent)
    assert Counter(map(prompt, server.payloads)) == dict.fromkeys(map(prompt, without), K)
    # the harness's own requests are what they were, and come first
    assert sorted(server.payloads[:N], key=prompt) == sorted(without, key=prompt)
    seeds = {prompt(payload): set() for payload in server.payloads}
    for payload in server.payloads:
        seeds[prompt(payload)].add(payload["seed"])
    assert all(len(found) == K for found in seeds.values())
    assert [found[0] for found in answers(results)] == [found[0] for found in answers(plain)]
    assert results["results"]["gen"]["exact_match,strict"] == plain["results"]["gen"]["exact_match,strict"]
    assert max(len(set(found)) for found in answers(results)) > 2
    truth = [row["doc"]["answer"] for row in results["samples"]["gen"] if row["filter"] == "strict"]
    expected = [
        [float(text.strip() == right) for text in found] for found, right in zip(answers(results), truth, strict=True)
    ]
    np.testing.assert_array_equal(session.collected.run.scores[0].values, expected)
    assert estimate(session).se_prediction > 0


@pytest.mark.parametrize("model", MODELS)
def test_a_fixed_seed_that_is_honoured_is_found_out(folder: Path, model: str, caplog: pytest.LogCaptureFixture) -> None:
    with serving(honour_seed=True) as server, noise(repeats=K, reseed=False) as session:
        results = ask(folder, server, model)
    assert len(server.payloads) == N * K
    assert {payload["seed"] for payload in server.payloads} == {1234}
    assert all(len(set(found)) == 1 for found in answers(results))
    found = estimate(session)
    assert "identical_repeats" in found.diagnostics
    assert (found.se_prediction, found.se_data) == (None, None)
    assert found.se_total is not None
    assert "re-seeding is off" in caplog.text


def test_seeds_do_not_depend_on_order_and_are_the_same_again(folder: Path) -> None:
    found = []
    for concurrent in (1, 4, 4):
        with serving(honour_seed=True) as server, noise(repeats=K):
            results = ask(folder, server, MODELS[0], concurrent=concurrent)
        found.append([sorted(texts) for texts in answers(results)])
    assert found[0] == found[1] == found[2]


def test_batches_of_prompts_do_not_share_an_answer(folder: Path) -> None:
    """One seed goes with a batch: equal prompts in one batch would come back as equal answers."""
    with serving(honour_seed=True) as server, noise(repeats=K) as session:
        results = ask(folder, server, MODELS[0], batch=4)
    assert [len(payload["prompt"]) for payload in server.payloads] == [4] * (N * K // 4)
    assert all(len(set(payload["prompt"])) == 4 for payload in server.payloads)
    assert max(len(set(found)) for found in answers(results)) > 2
    assert estimate(session).se_prediction > 0


def test_a_question_that_is_asked_twice_gets_other_seeds(folder: Path) -> None:
    with serving(honour_seed=True) as server, noise(repeats=K) as session:
        ask(folder, server, MODELS[0], task="twice")
    further = Counter((prompt(payload), payload["seed"]) for payload in server.payloads[N:])
    assert set(further.values()) == {1}
    assert session.collected.run.scores[0].questions.keys[N // 2 :] == tuple(
        f"{key}#2" for key in session.collected.run.scores[0].questions.keys[: N // 2]
    )


@pytest.mark.parametrize("seed", [None, 7])
def test_a_seed_of_the_users_is_respected(folder: Path, seed: int | None) -> None:
    with serving(honour_seed=seed is not None) as server, noise(repeats=K) as session:
        ask(folder, server, MODELS[0], gen_kwargs={"seed": seed})
    seeds = {payload["seed"] for payload in server.payloads}
    assert seeds == {None} if seed is None else (7 in seeds and len(seeds) == 1 + N * (K - 1))
    assert estimate(session).se_prediction > 0


def test_greedy_answers_are_announced_and_found(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(honour_seed=False) as server, noise(repeats=5) as session:
        results = ask(folder, server, MODELS[0], task="greedy")
    assert "greedy: the answers are generated greedily" in caplog.text
    found = estimate(session)
    assert {"copied_repeats", "single_repeat"} <= set(found.diagnostics)
    assert (found.repeats_max, found.se_prediction) == (1, None)
    assert len(server.payloads) == 2 * N  # all of so few
    assert {len(texts) for texts in answers(results, "greedy")} == {1}
    assert results["configs"]["greedy"]["repeats"] == 1


@pytest.mark.parametrize("differs", [None, 3, 29], ids=["all copies", "one early differs", "the last one differs"])
def test_thirty_copies_save_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differs: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    n, K = 50, 4
    greedy = toys.GENERATE | {"generation_kwargs": {"until": ["\n"], "temperature": 0}}
    toys.write_task(tmp_path, "greedy", toys.docs(n), greedy)
    toys.write_task(tmp_path, "gen", toys.docs(5))
    with serving(honour_seed=True) as server, noise(repeats=K) as session:
        original, greedily = server.answer, set[str]()

        def answer(prompt: str, payload: dict[str, Any]) -> str:
            again = not payload["temperature"] and prompt in greedily
            greedily.update({prompt} if not payload["temperature"] else ())
            other = differs is not None and f"Item {differs} " in prompt and again
            return " something else" if other else original(prompt, payload)

        monkeypatch.setattr(server, "answer", answer)
        results = ask(tmp_path, server, MODELS[0], task=["greedy", "gen"])
    asked = Counter(payload["temperature"] for payload in server.payloads)
    assert asked[0.7] == 5 * K  # the other task is asked as it was to be
    found = next(row for row in session.analysis.estimates if row.task == "greedy")
    text = f"greedy: temperature 0: 30 of 30 second answers were copies, {n * (K - 1) - 30} requests saved"
    if differs is None:
        assert asked[0] == n + 30
        assert {"copied_repeats", "single_repeat"} <= set(found.diagnostics)
        assert (found.repeats_max, found.se_prediction) == (1, None)
        assert session.saved_requests == [text]
        assert text in noted(session.analysis)
    else:
        assert asked[0] == n * K
        assert "copied_repeats" not in found.diagnostics
        assert (found.repeats_min, found.repeats_max) == (K, K)
        assert session.saved_requests == []
    assert {len(row["resps"][0]) for row in results["samples"]["gen"]} == {K}


def test_credit_that_ends_in_the_repeats_costs_only_them(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(honour_seed=True) as server:
        plain = ask(folder, server, MODELS[0])
    with serving(honour_seed=True) as server, noise(repeats=K) as session:
        server.fail_after = N + 3
        results = ask(folder, server, MODELS[0])
    assert plain["results"]["gen"].items() <= results["results"]["gen"].items()
    assert "3 of 24 further answers are there" in caplog.text
    assert sorted(map(len, answers(results))) == [1] * (N - 3) + [2] * 3
    assert estimate(session).repeats_max == 2
    assert "missing_repeats" in estimate(session).diagnostics


def test_the_model_is_as_it_was(folder: Path) -> None:
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    with serving(honour_seed=True) as server:
        url = f"http://127.0.0.1:{server.server_port}/v1/completions"
        model = LocalCompletionsAPI(model="toy", base_url=url, tokenizer_backend=None, max_retries=1)
        with noise(repeats=2):
            toys.simple_evaluate(folder, ["gen"], model)
        assert not {"generate_until", "_create_payload"} & set(vars(model))
        server.payloads.clear()
        toys.simple_evaluate(folder, ["gen"], model)
    assert {payload["seed"] for payload in server.payloads} == {1234}
    assert len(server.payloads) == N
