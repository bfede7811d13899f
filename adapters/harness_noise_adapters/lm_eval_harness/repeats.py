"""Ask a model K times per question without touching what lm-eval itself computes.

lm-eval sends every request `repeats` times in one call and hands all answers to the filters. Here
the harness's own requests go first, in the call that it would have made anyway; the further answers
are asked for afterwards, kept out of sight of the native filters, and put back into `resps` for the
record. So the native value stays what it is without us, to the last digit, whatever the filters do
(first answer, majority vote, pass@k) and however the model draws its random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from .reseed import Reseeder, innermost, patched, same_random_state, sends_payloads

GENERATE = "generate_until"
_MISSING = object()
"""Stands for an answer that could not be had."""


def native_repeats(task: Any) -> int:
    """How often the task itself asks each question."""
    return int(getattr(task.config, "repeats", None) or 1)


def raised(tasks: Mapping[str, Any], K: int | None) -> dict[str, int]:
    """The tasks that are asked K times, with their own number of repeats; it is never lowered.

    lm-eval 0.5 has no filters that single answers could be scored with: left as they are.
    """
    if K is None:
        return {}
    return {
        name: native_repeats(task)
        for name, task in tasks.items()
        if task.OUTPUT_TYPE == GENERATE and native_repeats(task) < K and hasattr(task, "_filters")
    }


class Repeats:
    """The further answers of one call of `evaluate`.

    Args:
        lm: the model, perhaps in lm-eval's response cache.
        tasks: name → task object.
        K: answers per question; None: as the tasks say.
        reseed: whether each further answer of a server gets its own seed.
        say: called with a warning when further answers could not be had.
    """

    def __init__(
        self, lm: Any, tasks: Mapping[str, Any], K: int | None, *, reseed: bool, say: Callable[[str], None]
    ) -> None:
        self.lm = lm
        self.K = K or 1
        self.native = raised(tasks, K)
        self.counts = {
            name: (native_repeats(task), self.K if name in self.native else native_repeats(task))
            for name, task in tasks.items()
            if task.OUTPUT_TYPE == GENERATE
        }
        """Task → (answers that the harness's own filters see, answers in all)."""
        self.tasks = {name: tasks[name] for name in self.native}
        self.reseed = reseed
        self.say = say
        self.notes: list[str] = []
        self._own: dict[int, int] = {}
        """id(instance) → how many of its answers are the harness's own."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within it `evaluate` asks K times; the objects are as before afterwards."""
        if not self.tasks:
            yield
            return
        with ExitStack() as stack:
            for name, task in self.tasks.items():
                stack.callback(task.set_config, "repeats", task.config.repeats)
                task.set_config("repeats", self.K)  # what the record of the run says
                stack.enter_context(patched(task, "build_all_requests", self._build(task, self.native[name])))
                stack.enter_context(patched(task, "apply_filters", self._filter(task)))
            stack.enter_context(patched(self.lm, GENERATE, self._generate(self.lm.generate_until)))
            yield

    def _build(self, task: Any, native: int) -> Any:
        original = task.build_all_requests

        def build_all_requests(*args: Any, **kwargs: Any) -> Any:
            # the requests are built, and perhaps cached on disk, with the task's own number
            task.set_config("repeats", native)
            out = original(*args, **kwargs)
            try:
                self._raise(task, native)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the run
                for instance in task.instances:
                    if self._own.pop(id(instance), None) is not None:
                        instance.repeats = native
                self._warn(f"{task.config.task} is asked only {native} times ({type(error).__name__}: {error})")
            return out

        return build_all_requests

    def _raise(self, task: Any, native: int) -> None:
        for instance in task.instances:
            if instance.request_type == GENERATE:
                self._own[id(instance)] = native
                instance.repeats = self.K
        task.set_config("repeats", self.K)

    def _generate(self, original: Any) -> Any:
        def generate_until(requests: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                own, rounds = self._rounds(requests)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the run
                self._warn(f"repeats are asked in one call ({type(error).__name__}: {error})")
                rounds = []
            if not rounds:
                return original(requests, *args, **kwargs)
            answers = [_MISSING] * len(requests)
            _put(answers, own, original([requests[i] for i in own], *args, **kwargs))
            done = 0
            try:
                with self._apart():
                    for indices in rounds:
                        more = innermost(self.lm)
                        call = original if more is self.lm else more.generate_until
                        _put(answers, indices, call([requests[i] for i in indices], *args, **kwargs))
                        done += 1
            except Exception as error:  # noqa: BLE001 - the run's own answers are there: they must not be lost
                self._warn(
                    f"further answers could not be had ({type(error).__name__}: {error}); {done} of "
                    f"{len(rounds)} rounds are there, and the run goes on without the others"
                )
            return answers

        return generate_until

    def _rounds(self, requests: Sequence[Any]) -> tuple[list[int], list[list[int]]]:
        """Positions of the harness's own requests, and of the others, round by round.

        A batch of equal prompts with one seed would come back as equal answers, so servers that are
        asked in batches get one round per repeat; otherwise all further answers are one round.
        """
        seen: dict[int, int] = {}
        own: list[int] = []
        rounds: dict[int, list[int]] = {}
        at_once = not sends_payloads(self.lm) or str(getattr(innermost(self.lm), "_batch_size", 1)) == "1"
        for position, request in enumerate(requests):
            # padding for other ranks repeats whole blocks of K
            repeat = seen.get(id(request), 0) % (request.repeats or 1)
            seen[id(request)] = seen.get(id(request), 0) + 1
            if repeat < self._own.get(id(request), request.repeats or 1):
                own.append(position)
            else:
                rounds.setdefault(0 if at_once else repeat, []).append(position)
        return own, [rounds[key] for key in sorted(rounds)]

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Further answers: seeds of their own, no response cache, random states put back."""
        lm = innermost(self.lm)
        with ExitStack() as stack:
            stack.enter_context(same_random_state())
            if self.reseed:
                stack.enter_context(Reseeder(lm).active())
            if lm is not self.lm:
                from lm_eval.api.model import CacheHook

                stack.enter_context(patched(lm, "cache_hook", CacheHook(None)))
            yield

    def _filter(self, task: Any) -> Any:
        original = task.apply_filters

        def apply_filters() -> Any:
            ours = [item for item in task.instances if id(item) in self._own]
            whole = [item.resps for item in ours]
            for item in ours:
                own = self._own[id(item)]
                item.resps = [answer for i, answer in enumerate(item.resps) if i % self.K < own]
            try:
                return original()
            finally:
                for item, answers in zip(ours, whole, strict=True):
                    item.resps = [answer for answer in answers[: self.K] if answer is not _MISSING]

        return apply_filters

    def _warn(self, text: str) -> None:
        self.say(text)
        self.notes.append(text)


def _put(answers: list[Any], positions: Sequence[int], found: Sequence[Any]) -> None:
    for position, answer in zip(positions, found, strict=True):
        answers[position] = answer


def silent_zeros(
    lm: Any, tasks: Mapping[str, Any], K: int | None, *, reseed: bool, cache_requests: bool = False
) -> list[str]:
    """What would make all K answers the same, as far as it can be known before the run."""
    asked = {name: tasks[name] for name in raised(tasks, K)}
    if not asked:
        return []
    model = innermost(lm)
    out = []
    if greedy := sorted(name for name, task in asked.items() if _greedy(model, task)):
        out.append(
            f"{', '.join(greedy)}: the answers are generated greedily (temperature 0 or do_sample false), so the "
            f"{K} repeats will be all the same; sample them, for instance with "
            "--gen_kwargs temperature=0.7,do_sample=true"
        )
    if model is not lm:
        out.append(
            "--use_cache keeps one answer per prompt: the harness's own answers come from the cache, the further "
            "repeats are asked anew and are not cached"
        )
    if cache_requests:
        out.append(
            "--cache_requests may give requests that were built with other generation arguments (temperature); "
            "use --cache_requests refresh after a change"
        )
    if not reseed and sends_payloads(lm):
        out.append("re-seeding is off and lm-eval sends one fixed seed: a server that honours it gives equal answers")
    return out


def _greedy(model: Any, task: Any) -> bool:
    """Whether a model of lm-eval's own is known to decode greedily with the task's arguments."""
    if not any(kind.__module__.startswith("lm_eval.models.") for kind in type(model).__mro__):
        return False
    arguments = task.config.generation_kwargs or {}
    temperature = arguments.get("temperature") or 0
    if sends_payloads(model):  # clients drop do_sample
        return not temperature
    sample = arguments.get("do_sample")
    return sample is False or (sample is None and not temperature)
