"""A small OpenAI-compatible server on loopback: completions and chat completions, sampled by seed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.lm_eval_models import uniform


class Server(ThreadingHTTPServer):
    """Answers sums, rightly with probability `share`.

    Args:
        honour_seed: the same prompt with the same seed gets the same answer, as a seeded server does;
            otherwise every request draws anew.
    """

    daemon_threads = True

    def __init__(self, *, honour_seed: bool, share: float = 0.6) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.honour_seed, self.share = honour_seed, share
        self.payloads: list[dict[str, Any]] = []
        self.fail_after: int | None = None
        self.faults: dict[int, int | str] = {}
        """Number of a request, from 1 → the status it gets in place of an answer, or hang, or cut: half a body."""
        self.let_go = threading.Event()
        self.drawn: list[tuple[str, str]] = []
        """Every prompt with the answer that was sent, whole, to it."""
        self.served: dict[str, str] = {}
        """What every response says of the server: model, system_fingerprint."""
        self.draw = random.Random(0)
        self.lock = threading.Lock()

    def answer(self, prompt: str, payload: dict[str, Any]) -> str:
        numbers = [int(word) for word in prompt.split() if word.isdigit()]
        truth = sum(numbers[-2:])
        with self.lock:
            free = self.draw.random()
        u = uniform(prompt, payload.get("seed")) if self.honour_seed else free
        if not payload.get("temperature"):
            u = uniform(prompt)
        return f" {truth}" if u < self.share else f" {truth + 1 + int(u * 20)}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        """Keep the tests' output clean."""

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.payloads.append(payload)
            number = len(self.server.payloads)
            failing = self.server.fail_after is not None and number > self.server.fail_after
            fault = 400 if failing else self.server.faults.get(number)
        if isinstance(fault, int):
            self.send_error(fault, "out of credit" if failing else "a fault")
            return
        if fault == "hang":
            self.server.let_go.wait(30)
            return
        if "messages" in payload:
            prompts = [payload["messages"][-1]["content"]]
        else:
            prompts = payload["prompt"] if isinstance(payload["prompt"], list) else [payload["prompt"]]
        texts = [self.server.answer(prompt, payload) for prompt in prompts]
        choices = [{"index": i, "text": text, "message": {"content": text}} for i, text in enumerate(texts)]
        body = json.dumps({"choices": choices, **self.server.served}).encode()
        if fault == "cut":
            body = body[: len(body) // 2]
        else:
            with self.server.lock:
                self.server.drawn += zip(prompts, texts, strict=True)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(**options: Any) -> Iterator[Server]:
    server = Server(**options)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.let_go.set()
        server.shutdown()
        thread.join()
        server.server_close()
