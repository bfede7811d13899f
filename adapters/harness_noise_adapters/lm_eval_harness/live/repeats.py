"""Ask a model K times per question without touching what lm-eval itself computes.

lm-eval sends every request `repeats` times in one call and hands all answers to the filters. Here
that call is made as it would have been, and its answers go back as they came; the further answers
are asked for afterwards, kept aside until the native filters are done, and then put into `resps` for
the record. So the native value stays what it is without us, to the last digit, whatever the filters
do (first answer, majority vote, pass@k), however the model draws its random numbers, and whatever
goes wrong with the further answers.

lm-eval's API models send one fixed seed with every request: a server that honours it answers K
times the same, and prediction noise silently becomes zero. The first answer keeps the harness's
payload; the later ones get a seed from the harness's seed, the prompt and its occurrence, which
does not depend on the order in which concurrent requests are sent.

A run that is looked at while it grows is evaluated in parts (`Asking`), and every answer is asked for once. lm-eval
builds the requests of a run once, and these are the requests of every part: what is asked of a question does not depend
on which others are asked (few-shot examples drawn at random are those of the whole run). The model's methods are
wrapped, so that an answer that is there is given again, and only the others are asked for. So a run may be evaluated
block by block, and in the end as one run over all the questions that were asked.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from copy import deepcopy
from typing import Any

from harness_noise.errors import error_message

from ..scoring.rescore import patched


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


GENERATE = "generate_until"
_DETECT = "_detect_batch_size"
"""What lm-eval's local models call to find the largest batch that fits."""


def native_repeats(task: Any) -> int:
    """How often the task itself asks each question."""
    return int(getattr(task.config, "repeats", None) or 1)


def raised(tasks: Mapping[str, Any], wanted: Mapping[str, int]) -> dict[str, int]:
    """The tasks that are asked more often than they ask themselves, with their answers per question.

    lm-eval 0.5 has no filters that single answers could be scored with: left as they are.
    """
    return {
        name: wanted[name]
        for name, task in tasks.items()
        if task.OUTPUT_TYPE == GENERATE and native_repeats(task) < wanted.get(name, 0) and hasattr(task, "_filters")
    }


class Repeats:
    """The further answers of one call of `evaluate`.

    Args:
        lm: the model, perhaps in lm-eval's response cache.
        tasks: name → task object.
        wanted: task → answers per question; without an entry as the task says.
        reseed: whether each further answer of a server gets its own seed.
        say: called with a warning when further answers could not be had.
        in_blocks: whether the model is called for one block of questions after the other.
    """

    def __init__(
        self,
        lm: Any,
        tasks: Mapping[str, Any],
        wanted: Mapping[str, int],
        *,
        reseed: bool,
        say: Callable[[str], None],
        in_blocks: bool = False,
    ) -> None:
        self.lm = lm
        more = raised(tasks, wanted)
        self.counts = {
            name: (native_repeats(task), more.get(name, native_repeats(task)))
            for name, task in tasks.items()
            if task.OUTPUT_TYPE == GENERATE
        }
        """Task → (answers that the harness's own filters see, answers in all)."""
        self._whole: dict[str, tuple[int, int]] = {}
        """`counts` in the end of the tasks that are asked in rounds."""
        self.tasks = {name: tasks[name] for name in more}
        self.in_blocks = in_blocks
        self.reseed = reseed
        self.say = say
        self.notes: list[str] = []
        self.interrupted = False
        """Whether the user stopped the further answers."""
        self._further: defaultdict[int, list[Any]] = defaultdict(list)
        """id of a request → its further answers; `_asked` holds the request, so that no other one gets its id."""
        self._answering = False
        """While the model answers, what it asks of itself is no request of lm-eval's."""
        self._done = 0, 0
        """Rounds of further answers that are there, and that were to be asked."""
        self._occurrences: Counter[str] = Counter()
        """How often each prompt was asked further, in all rounds: equal prompts of two blocks count together."""
        self._asked: list[Any] = []
        """The harness's own requests by now."""
        self._task_of: dict[int, str] = {}
        """id of every request that is asked again → its task."""
        self._call: Callable[[Sequence[Any]], Any] | None = None
        """Asks the model as the harness did."""
        self._longest: Any = None
        """The largest batch of the longest requests that the model takes; None: not known."""
        self._batches: list[tuple[tuple[int, int], Any]] = []
        """Lengths of requests, and the largest batch that was found with them."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within it `evaluate` asks K times; the objects are as before afterwards."""
        with ExitStack() as stack:
            for task in self.tasks.values():
                stack.enter_context(patched(task, "apply_filters", self._filter(task)))
            if self.tasks:
                stack.enter_context(patched(self.lm, GENERATE, self._generate(self.lm.generate_until)))
            model = innermost(self.lm)
            if (self.tasks or self.in_blocks) and callable(detect := getattr(model, _DETECT, None)):
                stack.enter_context(patched(model, _DETECT, self._remembering(detect)))
            yield

    def _remembering(self, detect: Callable[..., Any]) -> Callable[..., Any]:
        """lm-eval's search for the largest batch, which it makes in every call: for a run in blocks one for each block.

        What fits holds for all requests that are no longer than those it was found with.
        """

        def detected(requests: Any = None, pos: int = 0) -> Any:
            if not requests:
                if not self.in_blocks or self._longest is None:
                    self._longest = detect()
                return self._longest
            _, context, continuation = requests[pos]
            lengths = len(context) + len(continuation), max(len(context), len(continuation))
            for known, size in reversed(self._batches) if self.in_blocks else ():
                if lengths[0] <= known[0] and lengths[1] <= known[1]:
                    return size
            self._batches.append((lengths, detect(requests, pos)))
            return self._batches[-1][1]

        return detected

    def in_rounds(self, names: Iterable[str]) -> None:
        """Ask these tasks only as often as they ask themselves, until `more` wants another round."""
        for name in names:
            if name in self.tasks:
                self._whole[name] = self.counts[name]
                self.counts[name] = self.counts[name][0], self.counts[name][0]

    def all_rounds(self) -> None:
        """Ask for the answers that are missing by now, and from now on for all answers at once."""
        self.counts |= self._whole
        self.more({name: K for name, (_, K) in self._whole.items()})

    @property
    def uneven(self) -> Collection[str]:
        """Tasks whose questions may end with different numbers of answers."""
        return self._whole.keys()

    def more(self, totals: Mapping[str, int], requests: Sequence[Any] | None = None) -> bool:
        """Ask for further answers to questions that have been asked; False where that was not possible.

        A fault costs these answers, and not those that are there.

        Args:
            totals: task → answers in all to each of its questions.
            requests: lm-eval's requests for these questions; None: all that it has sent.
        """
        if self._call is None or not self._ours():
            return False
        before = dict(self.counts)
        for name, total in totals.items():
            self.counts[name] = before[name][0], total
        try:
            self._ask_again(self._call, self._asked if requests is None else requests)
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the run's own answers are there: they must not be lost
            with suppress(Exception):
                self._stopped(error)
            self.counts.update(before)
            return False
        return True

    def record(self, results: dict[str, Any]) -> None:
        """Say in the record of the run how often was asked, in place."""
        for name in self.tasks:
            results["configs"][name]["repeats"] = self.counts[name][1]

    def _generate(self, original: Any) -> Any:
        def generate_until(requests: Any, *args: Any, **kwargs: Any) -> Any:
            if self._answering:
                return original(requests, *args, **kwargs)
            try:
                self._say_cached(requests)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the run
                with suppress(Exception):
                    self._warn(f"it is not known whether --use_cache answers ({error_message(error)})")
            self._answering = True
            try:
                answers = original(requests, *args, **kwargs)
            finally:
                self._answering = False
            try:
                model = innermost(self.lm)
                further = original if model is self.lm else model.generate_until
                self._call = lambda asked: further(asked, *args, **kwargs)
                self._asked += requests
                self._ask_again(self._call, requests)
            except (SystemExit, GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001 - the run's own answers are there: they must not be lost
                with suppress(Exception):
                    self._stopped(error)
            return answers

        return generate_until

    def _say_cached(self, requests: Sequence[Any]) -> None:
        """Where lm-eval's response cache answers in place of the model, say so; sampled answers it does not keep."""
        model = innermost(self.lm)
        if model is self.lm:
            return
        from lm_eval.api.model import hash_args

        ours = self._ours()
        asked = {id(request): request for request in requests if id(request) in ours}.values()
        cached = sum(
            not request.args[1].get("do_sample", False) and hash_args(GENERATE, request.args) in self.lm.dbdict
            for request in asked
        )
        if cached:
            self._warn(
                f"{cached} of the harness's own {len(asked)} answers come from --use_cache; the further repeats are "
                "asked anew and are not cached"
            )

    def _ask_again(self, call: Callable[[Sequence[Any]], Any], requests: Sequence[Any]) -> None:
        rounds = self._rounds(requests)
        self._done = 0, len(rounds)
        if not rounds:
            return
        with self._apart():
            for done, asked in enumerate(rounds, start=1):
                answers = list(call(asked))
                if len(answers) != len(asked):
                    raise ValueError(f"{len(answers)} answers to {len(asked)} requests")
                for request, answer in zip(asked, answers, strict=True):
                    self._further[id(request)].append(answer)
                self._done = done, len(rounds)

    def _stopped(self, error: BaseException) -> None:
        done, rounds = self._done
        left = f"{done} of {rounds} rounds are there, and the run goes on without the others"
        if isinstance(error, KeyboardInterrupt):
            self.interrupted = True
            self._warn(f"interrupted, so no further answers are asked for: {left}; interrupt again to stop it")
        elif rounds and done == rounds:
            self._warn(f"a fault after the further answers ({error_message(error)}), which are all there")
        else:
            self._warn(f"further answers could not be had ({error_message(error)}); {left}")

    def _rounds(self, requests: Sequence[Any]) -> list[list[Any]]:
        """What is asked further, round by round.

        A batch of equal prompts with one seed would come back as equal answers, so servers that are
        asked in batches get one round per repeat; otherwise all further answers are one round.
        """
        ours = self._ours()
        seen: Counter[int] = Counter()
        rounds: dict[int, list[Any]] = {}
        at_once = not sends_payloads(self.lm) or str(getattr(innermost(self.lm), "_batch_size", 1)) == "1"
        for request in requests:
            own = request.repeats or 1
            # padding for other ranks repeats whole blocks
            if id(request) in ours and seen[id(request)] % own == 0:
                for repeat in range(own + len(self._further[id(request)]), self.counts[ours[id(request)]][1]):
                    rounds.setdefault(0 if at_once else repeat, []).append(request)
            seen[id(request)] += 1
        return [rounds[key] for key in sorted(rounds)]

    def _ours(self) -> dict[int, str]:
        """id of every request that is asked again, of this block and those before → its task."""
        for name, task in self.tasks.items():
            self._task_of.update((id(request), name) for request in task.instances if request.request_type == GENERATE)
        return self._task_of

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Further answers: seeds of their own, no response cache, random states put back."""
        lm = innermost(self.lm)
        with ExitStack() as stack:
            stack.enter_context(same_random_state())
            stack.enter_context(patched(self, "_answering", True))
            if self.reseed:
                stack.enter_context(self._reseeded(lm))
            if lm is not self.lm:
                from lm_eval.api.model import CacheHook

                stack.enter_context(patched(lm, "cache_hook", CacheHook(None)))
            if self._longest is not None:
                stack.enter_context(patched(lm, _DETECT, lambda *_args, **_kwargs: self._longest))
            yield

    def _reseeded(self, lm: Any) -> AbstractContextManager[None]:
        """Within it the model's payloads for generation carry seeds of ours."""
        if not sends_payloads(lm):
            return nullcontext()
        original = lm._create_payload

        def create(messages: Any, *args: Any, **kwargs: Any) -> Any:
            payload = original(messages, *args, **kwargs)
            # no seed, or an explicit null: the server draws by itself
            if kwargs.get("generate", args[0] if args else False) and payload.get("seed") is not None:
                prompt = json.dumps(messages, sort_keys=True, default=str)
                self._occurrences[prompt] += 1
                payload["seed"] = seed_of(payload["seed"], prompt, self._occurrences[prompt])
            return payload

        return patched(lm, "_create_payload", create)

    def _filter(self, task: Any) -> Any:
        original = task.apply_filters

        def apply_filters(*args: Any, **kwargs: Any) -> Any:
            out = original(*args, **kwargs)
            try:
                self._put(task)
            except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the run
                with suppress(Exception):
                    self._warn(f"{task.config.task}: the further answers are not recorded ({error_message(error)})")
            return out

        return apply_filters

    def _put(self, task: Any) -> None:
        """The further answers behind the harness's own, which its filters have seen by now."""
        whole = []
        for request in task.instances:
            own = request.repeats or 1
            if more := self._further[id(request)]:
                K = self.counts[self._task_of[id(request)]][1]
                whole.append((request, [*request.resps[:own], *more[: K - own]]))
        for request, answers in whole:
            request.resps = answers

    def _warn(self, text: str) -> None:
        self.say(text)
        self.notes.append(text)


def silent_zeros(
    lm: Any, tasks: Mapping[str, Any], wanted: Mapping[str, int], *, reseed: bool, cache_requests: bool = False
) -> list[str]:
    """What would make all answers to a question the same, as far as it can be known before the run."""
    model = innermost(lm)
    out = []
    for name, task in tasks.items():
        own = native_repeats(task)
        if task.OUTPUT_TYPE == GENERATE and own > 1 and shared_seed(lm, task.config.generation_kwargs or {}):
            out.append(
                f"{name}: the task itself asks {own} times, and lm-eval sends one seed with all of them: a server that "
                "honours it gives copies, which count as one answer (copied_repeats)"
            )
    asked = {name: tasks[name] for name in raised(tasks, wanted)}
    if not asked:
        return out
    if greedy := sorted(name for name, task in asked.items() if _greedy(model, task)):
        out.append(
            f"{', '.join(greedy)}: the answers are generated greedily (temperature 0 or do_sample false), so the "
            "repeats will be all the same; sample them, for instance with --gen_kwargs temperature=0.7,do_sample=true"
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


METHODS = ("generate_until", "loglikelihood", "loglikelihood_rolling")
Part = Mapping[str, Sequence[int]]
"""Task → the numbers of documents, in increasing order."""


class _Numbers(list[int]):
    """The documents of a part as a list in which lm-eval finds each of them quickly."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(map(int, numbers))
        self._there = frozenset(self)

    def __contains__(self, number: object) -> bool:
        return number in self._there


class Asking:
    """One call of `evaluate`, in parts.

    Args:
        evaluate: lm-eval's own.
        arguments: of the call, all by name.
        tasks: name → task object.
    """

    def __init__(self, evaluate: Callable[..., Any], arguments: Mapping[str, Any], tasks: Mapping[str, Any]) -> None:
        self._evaluate, self._arguments, self.tasks = evaluate, arguments, tasks
        self._built: dict[str, dict[int, list[Any]]] = {}
        """Task → document → its requests."""
        self._answers: defaultdict[int, list[Any]] = defaultdict(list)
        """id of a request → its answers in the order of asking."""
        self._sent: list[Any] = []
        """All requests, so that no other one gets the id of one of them."""
        self._answering = False
        """While the model answers, what it asks of itself is no request of lm-eval's."""
        self.model_failed = False
        """Whether the model raised: what ends a run without us, too."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within it the parts can be evaluated; tasks and model are as before afterwards."""
        lm = self._arguments["lm"]
        with ExitStack() as stack:
            for name, task in self.tasks.items():
                build = self._build(name, task, task.build_all_requests)
                stack.enter_context(patched(task, "build_all_requests", build))
            for method in METHODS:
                if callable(call := getattr(lm, method, None)):
                    stack.enter_context(patched(lm, method, self._remembering(call)))
            yield

    def straight(self) -> AbstractContextManager[None]:
        """Within it every request goes to the model, and no answer is kept."""
        return patched(self, "_answering", True)

    def block(self, part: Part) -> dict[str, Any]:
        """Part of the run, with its samples: native results without groups and bootstrap."""
        tasks = {name: self.tasks[name] for name in part}
        with ExitStack() as stack:
            for name, task in tasks.items():
                stack.enter_context(patched(task, "doc_iterator", self._documents(name, task.doc_iterator)))
            results: dict[str, Any] = self._run(part, bootstrap_iters=0, write_out=False, task_dict=tasks)
        return results

    def requests(self, part: Part) -> list[Any]:
        """lm-eval's requests for these questions, which have been asked."""
        return [request for name, numbers in part.items() for n in numbers for request in self._built[name][n]]

    def whole(self, part: Part | None) -> Any:
        """lm-eval's own result: of these questions, or of all."""
        return self._run(part)

    def _run(self, part: Part | None, **changes: Any) -> Any:
        samples = None if part is None else {name: _Numbers(numbers) for name, numbers in part.items()}
        given = {"limit": None, "samples": samples, "log_samples": True}
        return self._evaluate(**{**self._arguments, **given, **changes})

    def _build(self, name: str, task: Any, original: Callable[..., Any]) -> Callable[..., None]:
        def build_all_requests(*args: Any, samples: Sequence[int] | None = None, **kwargs: Any) -> None:
            if name not in self._built:
                original(*args, **kwargs)
                requests = self._built.setdefault(name, {})
                for request in task.instances:
                    requests.setdefault(request.doc_id, []).append(request)
            built = self._built[name]
            chosen: list[Any] = []
            # lm-eval numbers the documents of a part anew
            for number, document in enumerate(sorted(built) if samples is None else sorted(set(samples))):
                for request in built[document]:
                    request.doc_id, request.resps, request.filtered_resps = number, [], {}
                    chosen.append(request)
            task._instances = chosen

        return build_all_requests

    def _documents(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """lm-eval's own reads the whole dataset to find a few documents, for every block and filter."""

        def doc_iterator(*args: Any, samples: Sequence[int] | None = None, **kwargs: Any) -> Any:
            if samples is None:
                return original(*args, **kwargs)
            built = self._built[name]
            return enumerate(deepcopy(built[document][0].doc) for document in sorted(set(samples)))

        return doc_iterator

    def _remembering(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def answers(requests: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            if self._answering:
                return call(requests, *args, **kwargs)
            seen: Counter[int] = Counter()
            numbered = []  # lm-eval sends a request several times for several answers
            for request in requests:
                numbered.append((id(request), seen[id(request)]))
                seen[id(request)] += 1
            fresh = [
                request
                for request, (key, number) in zip(requests, numbered, strict=True)
                if number >= len(self._answers[key])
            ]
            if fresh:
                self.model_failed = self._answering = True
                try:
                    given = list(call(fresh, *args, **kwargs))
                finally:
                    self._answering = False
                self.model_failed = False
                self._sent += fresh
                for request, answer in zip(fresh, given, strict=True):
                    self._answers[id(request)].append(answer)
            return [self._answers[key][number] for key, number in numbered]

        return answers
