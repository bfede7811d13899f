"""`transformers serve` behind lm-eval's two API clients: a real server that honours seeds."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("torch", reason="torch is not installed: make models")
pytest.importorskip("transformers", reason="transformers is not installed: make models")
pytest.importorskip("uvicorn", reason="transformers' server is not installed: make models")

from harness_noise_adapters.lm_eval_harness import noise
from models.tiny_tasks import K, right
from support import lm_eval_models as toys
from support.lm_eval_live import estimate, native_part

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]
CLIENTS = ["local-completions", "local-chat-completions"]


@pytest.fixture(scope="module")
def port(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", model, "--port", str(port)]
    command += ["--host", "127.0.0.1", "--device", "cpu", "--dtype", "float32"]
    said = tmp_path_factory.mktemp("server") / "said"
    with said.open("w") as file:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        server = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    try:
        for _ in range(300):
            assert server.poll() is None, said.read_text()[-3000:]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                    break
            except OSError:
                time.sleep(0.4)
        else:
            pytest.fail("the server did not start")
        yield port
    finally:
        server.terminate()
        server.wait(30)


def ask(tasks: Path, model: str, port: int, client: str, name: str) -> dict[str, Any]:
    chat = "chat" in client
    arguments = {
        "model": model,
        "base_url": f"http://127.0.0.1:{port}/v1/{'chat/' if chat else ''}completions",
        "tokenizer_backend": None,
        "num_concurrent": 1,
        "max_retries": 1,
    }
    return toys.simple_evaluate(tasks, [name], client, model_args=arguments, batch_size=1, apply_chat_template=chat)


@pytest.mark.parametrize("client", CLIENTS)
def test_further_answers_have_seeds_of_their_own(tasks: Path, model: str, port: int, client: str) -> None:
    plain = ask(tasks, model, port, client, "sampled")
    with noise(repeats=K) as session:
        noisy = ask(tasks, model, port, client, "sampled")
    assert session.problems == []
    ours, theirs = native_part(noisy), native_part(plain)
    assert ours["results"] == theirs["results"]
    assert ours["samples"] == theirs["samples"]
    answers = [row["resps"][0] for row in noisy["samples"]["sampled"]]
    assert {len(found) for found in answers} == {K}
    assert max(len(set(found)) for found in answers) > 1
    scores = np.array([right(row) for row in noisy["samples"]["sampled"]])
    found = estimate(session, "sampled")
    assert found.mean == pytest.approx(scores.mean())
    assert found.se_prediction > 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_tasks_own_repeats_come_back_as_copies(tasks: Path, model: str, port: int, client: str) -> None:
    with noise(repeats=5) as session:
        results = ask(tasks, model, port, client, "votes")
    answers = [row["resps"][0] for row in results["samples"]["votes"]]
    assert {len(set(found[:3])) for found in answers} == {1}
    found = estimate(session, "votes", scorer="vote")
    assert "copied_repeats" in found.diagnostics
    assert found.repeats_max == 3  # one of lm-eval's own, and two more
    assert any("sends one seed with all of them" in note for note in noted(session.analysis))
