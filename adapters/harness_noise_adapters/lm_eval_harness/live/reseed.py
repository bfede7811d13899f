"""Distinct seeds for repeats on servers, and random states that the repeats leave as they were.

lm-eval's API models send one fixed seed with every request: a server that honours it answers K
times the same, and prediction noise silently becomes zero. The first answer keeps the harness's
payload; the later ones get a seed from the harness's seed, the prompt and its occurrence, which
does not depend on the order in which concurrent requests are sent.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..scoring.patching import patched


def innermost(lm: Any) -> Any:
    """The model itself, without lm-eval's response cache around it."""
    return lm.lm if type(lm).__name__ == "CachingLM" else lm


def sends_payloads(lm: Any) -> bool:
    """Whether the model is a client of a server, with a payload that may hold a seed."""
    return callable(getattr(innermost(lm), "_create_payload", None))


def shared_seed(lm: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether a client sends one and the same seed with every request of a task.

    Args:
        lm: the model.
        arguments: the task's generation arguments; a seed there goes before the client's own, also if it is null.
    """
    model = innermost(lm)
    if not sends_payloads(model):
        return False
    if "seed" in arguments:
        return arguments["seed"] is not None
    return getattr(model, "_seed", None) is not None and "seed" in inspect.signature(model._create_payload).parameters


def seed_of(base: object, prompt: str, occurrence: int) -> int:
    """A seed in [0, 2³¹) for the n-th repeat of a prompt."""
    digest = hashlib.sha256(f"{base}|{prompt}|{occurrence}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


class Reseeder:
    """Gives every repeated prompt of one run a seed of its own.

    One object serves all rounds of a run, so that occurrences are counted across them.
    """

    def __init__(self, lm: Any) -> None:
        self.lm = innermost(lm)
        self.occurrences: Counter[str] = Counter()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within it the model's payloads for generation carry our seeds; restored after."""
        if not sends_payloads(self.lm):
            yield
            return
        original = self.lm._create_payload

        def create(messages: Any, *args: Any, **kwargs: Any) -> Any:
            payload = original(messages, *args, **kwargs)
            # no seed, or an explicit null: the server draws by itself
            if kwargs.get("generate", args[0] if args else False) and payload.get("seed") is not None:
                prompt = json.dumps(messages, sort_keys=True, default=str)
                self.occurrences[prompt] += 1
                payload["seed"] = seed_of(payload["seed"], prompt, self.occurrences[prompt])
            return payload

        with patched(self.lm, "_create_payload", create):
            yield


@contextmanager
def same_random_state() -> Iterator[None]:
    """Put the global random states back, so that what follows draws as if nothing had happened."""
    import numpy as np

    torch = sys.modules.get("torch")
    python, legacy = random.getstate(), np.random.get_state()
    cpu = torch.get_rng_state() if torch is not None else None
    cuda = torch.cuda.get_rng_state_all() if torch is not None and torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        if torch is not None:
            torch.set_rng_state(cpu)
            if cuda is not None:
                torch.cuda.set_rng_state_all(cuda)
