"""Ask for the answers beyond lm-eval's own, and keep each of them as it comes.

They are asked in rounds, one for each repeat, so that a run that is cut short has as many answers to one question as
to the next. Every model of lm-eval's own tells its cache hook each answer that it gets; ours stands in that place
for the length of a round. So what a failed request, an interrupt or a full memory costs are the answers that had
not come.

lm-eval's API models send one fixed seed with every request: a server that honours it answers K times the same, and
prediction noise silently becomes zero. The further answers get a seed from the harness's seed, the prompt and the
repeat, which does not depend on the order in which concurrent requests are sent.
"""

from __future__ import annotations

import hashlib
import json
import random
import signal
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

from ..scoring.rescore import GENERATE, patched
from .journal import Journal, Slot, hashed

Round: TypeAlias = tuple[int, list[Any]]
"""A repeat, counted from 0 with lm-eval's own, and the requests that are asked for it."""


def innermost(lm: Any) -> Any:
    """Return the model object inside lm-eval's response cache, or the model itself."""
    return lm.lm if type(lm).__name__ == "CachingLM" else lm


def sends_payloads(lm: Any) -> bool:
    """Return True if the model is a client of a server, whose requests can have a seed."""
    return callable(getattr(innermost(lm), "_create_payload", None))


def seed_of(base: object, prompt: str, occurrence: object) -> int:
    """Return a seed in [0, 2³¹) that is specific to a prompt and its n-th request."""
    digest = hashlib.sha256(f"{base}|{prompt}|{occurrence}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") >> 1


@contextmanager
def same_random_state() -> Iterator[None]:
    """Restore the random states of Python, NumPy and torch (if loaded) after the block."""
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


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Within the block, let SIGTERM raise KeyboardInterrupt, in the main thread if it has the default handler.

    A signal handler of another program stays.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def decodes_greedily(model: Any, task: Any) -> bool:
    """Return True if the model is one of lm-eval's and decodes greedily on this task, as it does by default."""
    if not any(kind.__module__.startswith("lm_eval.models.") for kind in type(model).__mro__):
        return False
    arguments = task.config.generation_kwargs or {}
    temperature = arguments.get("temperature") or 0
    if sends_payloads(model):  # clients drop do_sample
        return not temperature
    sample = arguments.get("do_sample")
    return sample is False or (sample is None and not temperature)


def draws_elsewhere(lm: Any) -> bool:
    """Return True if the model samples in an engine whose seed we cannot set (vLLM and the like).

    Such an engine, started again, draws what it drew before: beside an earlier run's answers that would be copies.
    """
    names = {kind.__module__.rpartition(".")[2] for kind in type(innermost(lm)).__mro__}
    return any(name.startswith(_ENGINES) for name in names)


_ENGINES = ("vllm", "sglang", "nemo", "megatron")


def _draw_anew() -> None:
    """Seed Python's, NumPy's and torch's random generators from the system, so that answers are new.

    They stand where they stood in the earlier run, of whose answers the next ones would be copies.
    """
    import numpy as np

    random.seed()
    np.random.seed()
    if (torch := sys.modules.get("torch")) is not None:
        torch.seed()


def _server(outputs: Any) -> tuple[str, str] | None:
    """Return (model, fingerprint) of a server's response as texts ("None" if one is missing), or None if both are."""
    response = outputs[0] if isinstance(outputs, list) and outputs else outputs
    if not isinstance(response, dict):
        return None
    named = response.get("model"), response.get("system_fingerprint")
    return None if named == (None, None) else (str(named[0]), str(named[1]))


def asked_for(context: Any, arguments: Any) -> str:
    """Return a text that identifies a prompt with its generation arguments."""
    return json.dumps([context, arguments], sort_keys=True, default=repr)


class _Arrivals:
    """A stand-in for lm-eval's cache hook that passes arriving answers to the requests that wait for them.

    Equal prompts are asked of one model with equal arguments, so it does not matter which of them gets which answer.
    """

    def __init__(self, keep: Callable[[Any, Any], None], requests: Sequence[Any]) -> None:
        self._keep = keep
        self._waiting: defaultdict[str, deque[Any]] = defaultdict(deque)
        for request in requests:
            self._waiting[asked_for(*request.args[:2])].append(request)

    def add_partial(self, method: str, asked: Any, answer: Any) -> None:
        """Hand an arrived answer to the next request that waits for it. Ignore all others, and errors."""
        with suppress(Exception):
            if method == GENERATE and (waiting := self._waiting.get(asked_for(*asked))):
                self._keep(waiting.popleft(), answer)


class Further:
    """The answers to the requests of one run beyond lm-eval's own.

    Args:
        lm: the model; it may be in lm-eval's response cache.
        reseed: whether each answer of a server gets its own seed.
        journal: where the answers are written down, and those of earlier runs stand; None where there is none.
    """

    def __init__(self, lm: Any, *, reseed: bool, journal: Journal | None = None) -> None:
        self.lm, self.reseed, self.journal = lm, reseed, journal
        self.asking = False
        """True while we ask the model."""
        self.had = self.wanted = 0
        """The number of answers that the last `ask` got, and the number that it was to get."""
        self._answers: defaultdict[int, dict[int, Any]] = defaultdict(dict)
        """id of a request → repeat → its answer."""
        self._repeat = 0
        """The repeat that is being asked for."""
        self._payloads: Counter[tuple[int, str]] = Counter()
        """(repeat, prompt) → times it was sent. Equal prompts and failed attempts are sent again."""
        self._slots: dict[tuple[int, int], Slot] = {}
        """id of a request and repeat → its place in the journal."""
        self._asking_the_same: Counter[tuple[str, int]] = Counter()
        self._written: set[Slot] = set()
        self._salted: set[int] = set()
        """Repeats of which some of several equal prompts were answered in an earlier run."""
        self._servers: set[Any] = set()
        """The servers that gave lm-eval's own answers, None for a model that does not name itself."""
        self._server: Any = None
        """The server that gave the last answer."""

    def of(self, request: Any) -> list[Any]:
        """Return the further answers to a request, in order of repeats."""
        found = self._answers.get(id(request), {})
        return [found[repeat] for repeat in sorted(found)]

    def missing(self, request: Any, repeats: range) -> list[int]:
        """Return those of these repeats for which a request has no answer yet."""
        found = self._answers.get(id(request), {})
        return [repeat for repeat in repeats if repeat not in found]

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Within the block, record which server models give lm-eval's own answers."""
        with self._listening():
            yield
        self._servers.add(self._server)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        model = innermost(self.lm)
        parse = getattr(model, "parse_generations", None)
        if self.journal is None or not callable(parse):
            yield
            return

        def parsed(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            with suppress(Exception):  # the model's own answer is not ours to lose
                self._server = _server(outputs)
                if not self.asking:
                    self._servers.add(self._server)
            return parse(outputs, *args, **kwargs)

        with patched(model, "parse_generations", parsed):
            yield

    def ask(self, call: Callable[[Sequence[Any]], Any], rounds: Sequence[Round]) -> None:
        """Ask for further answers, round by round, after reusing answers of earlier runs.

        If it is stopped, received answers are kept.

        Args:
            call: asks the model as the harness did.
            rounds: what is missing.
        """
        self.had, self.wanted = 0, sum(len(batch) for _, batch in rounds)
        if self.journal is not None:
            rounds = [(repeat, self._not_taken_up(self.journal, repeat, batch)) for repeat, batch in rounds]
            left = sum(len(batch) for _, batch in rounds)
            if left < self.wanted:
                self.journal.announce()
            self.wanted = left
        if not self.wanted:
            return
        with self._with_own_seeds():
            for repeat, batch in rounds:
                if batch:
                    self._ask(call, repeat, batch)

    def _not_taken_up(self, journal: Journal, repeat: int, batch: Sequence[Any]) -> list[Any]:
        """Give requests the answers that an earlier run got. Return the requests left without one."""
        left, taken = [], set()
        for request in batch:
            slot = self._slot(request, repeat)
            answer = None if draws_elsewhere(self.lm) else journal.take(slot, self._servers)
            if answer is None:
                left.append(request)
            else:
                self._answers[id(request)][repeat] = answer
                taken.add(slot.key)
        if taken and any(self._slot(request, repeat).key in taken for request in left):
            self._salted.add(repeat)
        return left

    def _slot(self, request: Any, repeat: int) -> Slot:
        place = id(request), repeat
        if place not in self._slots:
            seed = getattr(innermost(self.lm), "_seed", None) if sends_payloads(self.lm) else None
            key = hashed(GENERATE, request.args, seed, self.reseed)
            self._slots[place] = Slot(key, repeat, self._asking_the_same[key, repeat])
            self._asking_the_same[key, repeat] += 1
        return self._slots[place]

    def _ask(self, call: Callable[[Sequence[Any]], Any], repeat: int, batch: Sequence[Any]) -> None:
        before = self.had
        arrivals = _Arrivals(partial(self._keep, repeat), batch)
        with patched(self, "_repeat", repeat), patched(innermost(self.lm), "cache_hook", arrivals), self._listening():
            answers = list(call(batch))
        if len(answers) != len(batch):
            raise ValueError(f"{len(answers)} answers to {len(batch)} requests")
        for request, answer in zip(batch, answers, strict=True):
            self._answers[id(request)][repeat] = answer
            self._write(request, repeat, answer)
        self.had = before + len(batch)

    def _keep(self, repeat: int, request: Any, answer: Any) -> None:
        self._answers[id(request)][repeat] = answer
        self.had += 1
        self._write(request, repeat, answer)

    def _write(self, request: Any, repeat: int, answer: Any) -> None:
        if self.journal is not None and (slot := self._slot(request, repeat)) not in self._written:
            self._written.add(slot)
            self.journal.add(slot, answer, self._server)

    @contextmanager
    def _with_own_seeds(self) -> Iterator[None]:
        """Within the block, seed each server request if `reseed`, draw anew after reuse. Then restore random states."""
        lm = innermost(self.lm)
        with ExitStack() as stack:
            stack.enter_context(same_random_state())
            stack.enter_context(patched(self, "asking", True))
            if self.journal is not None and self.journal.taken and not sends_payloads(lm):
                _draw_anew()
            if self.reseed and sends_payloads(lm):
                stack.enter_context(patched(lm, "_create_payload", self._reseeded(lm._create_payload)))
            yield

    def _reseeded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the client's `_create_payload` wrapped: one that generates and has a seed gets a seed of its own."""

        def create(messages: Any, *args: Any, **kwargs: Any) -> Any:
            payload = original(messages, *args, **kwargs)
            # no seed, or an explicit null: the server draws by itself
            if kwargs.get("generate", args[0] if args else False) and payload.get("seed") is not None:
                prompt = json.dumps(messages, sort_keys=True, default=str)
                key = self._repeat, prompt
                self._payloads[key] += 1
                times = self._payloads[key]
                occurrence = self._repeat if times == 1 else f"{self._repeat}/{times}"
                if self.journal is not None and self._repeat in self._salted:
                    occurrence = f"{occurrence} {self.journal.run}"
                payload["seed"] = seed_of(payload["seed"], prompt, occurrence)
            return payload

        return create
