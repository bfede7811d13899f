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

A run that is looked at while it grows is evaluated in parts, and every answer is asked for once. lm-eval builds the
requests of a run once, and these are the requests of every part: what is asked of a question does not depend on which
others are asked (few-shot examples drawn at random are those of the whole run). The model's methods are wrapped, so
that an answer that is there is given again, and only the others are asked for. So a run may be evaluated block by
block, and in the end as one run over all the questions that were asked.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from typing import Any

from harness_noise.errors import error_message

from ..scoring.rescore import GENERATE, patched
from .options import Options


def innermost(lm: Any) -> Any:
    """The model itself, without lm-eval's response cache around it."""
    return lm.lm if type(lm).__name__ == "CachingLM" else lm


def sends_payloads(lm: Any) -> bool:
    """Whether the model is a client of a server, with a payload that may hold a seed."""
    return callable(getattr(innermost(lm), "_create_payload", None))


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


METHODS = (GENERATE, "loglikelihood", "loglikelihood_rolling")
_DETECT = "_detect_batch_size"
"""What lm-eval's local models call to find the largest batch that fits."""
Part = Mapping[str, Sequence[int]]
"""Task → the numbers of documents, in increasing order."""


def native_repeats(task: Any) -> int:
    """How often the task itself asks each question."""
    return int(getattr(task.config, "repeats", None) or 1)


class _Numbers(list[int]):
    """The documents of a part as a list in which lm-eval finds each of them quickly."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(map(int, numbers))
        self._there = frozenset(self)

    def __contains__(self, number: object) -> bool:
        return number in self._there


class Asking:
    """What one call of `evaluate` asks of the model.

    Args:
        evaluate: lm-eval's own.
        arguments: of the call, all by name; the model may be in lm-eval's response cache.
        tasks: name → task object.
        options: the user's choices.
        say: called with a warning when further answers could not be had.
    """

    def __init__(
        self,
        evaluate: Callable[..., Any],
        arguments: Mapping[str, Any],
        tasks: Mapping[str, Any],
        options: Options,
        say: Callable[[str], None],
    ) -> None:
        self._evaluate, self._arguments, self.tasks, self._say = evaluate, arguments, tasks, say
        self.lm = arguments["lm"]
        self.in_blocks = options.partial
        """Whether the run is evaluated in parts."""
        self.reseed = options.reseed
        """Whether each further answer of a server gets its own seed."""
        self.wanted = {name: K for name in tasks if (K := options.repeats.begin(name)) is not None}
        """Task → answers per question that the user asks for; without an entry as the task says."""
        self.raised: dict[str, Any] = {}
        """The tasks that are asked more often than they ask themselves. lm-eval 0.5 has no filters that single answers
        could be scored with: its tasks are left as they are."""
        self._times: dict[str, tuple[int, int]] = {}
        for name, task in tasks.items():
            if task.OUTPUT_TYPE == GENERATE:
                own = native_repeats(task)
                if own < self.wanted.get(name, 0) and hasattr(task, "_filters"):
                    self.raised[name] = task
                self._times[name] = own, self.wanted[name] if name in self.raised else own
        self._in_the_end: dict[str, tuple[int, int]] = {}
        """`times` in the end of the tasks that are asked in rounds."""
        self.notes: list[str] = []
        self.interrupted = False
        """Whether the user stopped the further answers."""
        self.model_failed = False
        """Whether the model raised: what ends a run without us, too."""
        self._inside = False
        """While the model answers, what it asks of itself is no request of lm-eval's."""
        self._keeps_batches = options.partial
        """Whether a batch size that was found is used again; lm-eval's own calls of a whole run find their own."""
        self._sent: list[Any] = []
        """lm-eval's own requests by now; while they are held, no other one gets the id of one of them."""
        self._answers: defaultdict[int, list[Any]] = defaultdict(list)
        """id of a request → lm-eval's own answers in the order of asking, of a run in parts."""
        self._further: defaultdict[int, list[Any]] = defaultdict(list)
        """id of a request → its further answers."""
        self._done = 0, 0
        """Rounds of further answers that are there, and that were to be asked."""
        self._occurrences: Counter[str] = Counter()
        """How often each prompt was asked further, in all rounds: equal prompts of two blocks count together."""
        self._built: dict[str, dict[int, list[Any]]] = {}
        """Task → document → its requests, of a run in parts."""
        self._task_of: dict[int, str] = {}
        """id of every request that is asked again → its task."""
        self._call: Callable[[Sequence[Any]], Any] | None = None
        """Asks the model as the harness did."""
        self._batches: defaultdict[bool, list[tuple[tuple[int, int], Any]]] = defaultdict(list)
        """Whether requests were given → their lengths, and the largest batch that was found with them."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within it `evaluate` asks K times, and can be called in parts; the objects are as before afterwards."""
        methods = METHODS if self.in_blocks else (GENERATE,) if self.raised else ()
        with ExitStack() as stack:
            for name, task in self.tasks.items():
                if name in self.raised:
                    stack.enter_context(patched(task, "apply_filters", self._filter(task)))
                if self.in_blocks:
                    build = self._build(name, task, task.build_all_requests)
                    stack.enter_context(patched(task, "build_all_requests", build))
            for method in methods:
                if callable(call := getattr(self.lm, method, None)):
                    stack.enter_context(patched(self.lm, method, self._answering(method, call)))
            model = innermost(self.lm)
            if methods and callable(detect := getattr(model, _DETECT, None)):
                stack.enter_context(patched(model, _DETECT, self._detecting(detect)))
            yield

    def _detecting(self, detect: Callable[..., Any]) -> Callable[..., Any]:
        """lm-eval's search for the largest batch, which it makes in every call: what is found is kept for later blocks
        and further answers.

        What fits holds for all requests that are no longer than those it was found with.
        """

        def detected(requests: Any = None, pos: int = 0) -> Any:
            lengths, batches = (0, 0), self._batches[bool(requests)]
            if requests:
                _, context, continuation = requests[pos]
                lengths = len(context) + len(continuation), max(len(context), len(continuation))
            fits = [size for tried, size in batches if lengths[0] <= tried[0] and lengths[1] <= tried[1]]
            if fits and self._keeps_batches:
                return max(fits)
            batches.append((lengths, detect(requests, pos) if requests else detect()))
            return batches[-1][1]

        return detected

    # how often

    def times(self, task: str) -> tuple[int, int]:
        """Answers to each question of a task that the harness's own filters see, and answers in all."""
        return self._times.get(task, (1, 1))

    @property
    def uneven(self) -> Collection[str]:
        """Tasks whose questions may end with different numbers of answers."""
        return self._in_the_end.keys()

    def in_rounds(self, names: Iterable[str]) -> None:
        """Ask these tasks only as often as they ask themselves, until `more` wants another round."""
        for name in self.raised.keys() & set(names):
            own, _ = self._in_the_end[name] = self._times[name]
            self._times[name] = own, own

    def all_rounds(self) -> None:
        """Ask for the answers that are missing by now, and from now on for all answers at once."""
        self._times |= self._in_the_end
        self.more({name: K for name, (_, K) in self._in_the_end.items()})

    def more(self, totals: Mapping[str, int], part: Part | None = None) -> bool:
        """Ask for further answers to questions that have been asked; False where that was not possible.

        A fault costs these answers, and not those that are there.

        Args:
            totals: task → answers in all to each of its questions.
            part: these questions; None: all that have been asked.
        """
        if self._call is None or not self._ours():
            return False
        before = dict(self._times)
        self._times |= {name: (before[name][0], total) for name, total in totals.items()}
        requests = self._sent
        if part is not None:
            requests = [request for name, numbers in part.items() for n in numbers for request in self._built[name][n]]
        try:
            self._ask_again(self._call, requests)
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the run's own answers are there: they must not be lost
            with suppress(Exception):
                self._stopped(error)
            self._times.update(before)
            return False
        return True

    def record(self, results: dict[str, Any]) -> None:
        """Say in the record of the run how often was asked, in place."""
        for name in self.raised:
            results["configs"][name]["repeats"] = self._times[name][1]

    # the run in parts

    def block(self, part: Part) -> dict[str, Any]:
        """Part of the run, with its samples: native results without groups and bootstrap."""
        tasks = {name: self.tasks[name] for name in part}
        with ExitStack() as stack:
            for name, task in tasks.items():
                stack.enter_context(patched(task, "doc_iterator", self._documents(name, task.doc_iterator)))
            results: dict[str, Any] = self.whole(part, bootstrap_iters=0, write_out=False, task_dict=tasks)
        return results

    def whole(self, part: Part | None, **changes: Any) -> Any:
        """lm-eval's own result: of these questions, or of all."""
        samples = None if part is None else {name: _Numbers(numbers) for name, numbers in part.items()}
        selection = {"limit": None, "samples": samples, "log_samples": True}
        return self._evaluate(**{**self._arguments, **selection, **changes})

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

    # the model

    def _answering(self, method: str, call: Any) -> Any:
        """A method of the model that asks K times; in a run in parts it gives an answer that is there again."""

        def answers(requests: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return call(requests, *args, **kwargs)
            fresh, numbered = requests, []
            if self.in_blocks:
                seen: Counter[int] = Counter()
                for request in requests:  # lm-eval sends a request several times for several answers
                    numbered.append((request, seen[id(request)]))
                    seen[id(request)] += 1
                fresh = [request for request, number in numbered if number >= len(self._answers[id(request)])]
            if repeated := method == GENERATE and bool(self.raised):
                try:
                    self._say_cached(fresh)
                except Exception as error:  # noqa: BLE001 - the model is not asked yet, and the run needs no such warning
                    with suppress(Exception):
                        self._warn(f"it is not known whether --use_cache answers ({error_message(error)})")
            replies: Any = []
            if fresh or not self.in_blocks:
                self.model_failed = self._inside = True
                try:
                    replies = call(fresh, *args, **kwargs)
                    replies = list(replies) if self.in_blocks else replies
                finally:
                    self._inside = False
                self.model_failed = False
                self._sent += fresh
            if repeated:
                try:
                    model = innermost(self.lm)
                    again = call if model is self.lm else model.generate_until
                    self._call = lambda batch: again(batch, *args, **kwargs)
                    self._ask_again(self._call, fresh)
                except (SystemExit, GeneratorExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - the run's own answers are there: they must not be lost
                    with suppress(Exception):
                        self._stopped(error)
            if not self.in_blocks:
                return replies
            for request, answer in zip(fresh, replies, strict=True):
                self._answers[id(request)].append(answer)
            return [self._answers[id(request)][number] for request, number in numbered]

        return answers

    def _say_cached(self, requests: Sequence[Any]) -> None:
        """Where lm-eval's response cache answers in place of the model, say so; sampled answers it does not keep."""
        model = innermost(self.lm)
        if model is self.lm:
            return
        from lm_eval.api.model import hash_args

        ours = self._ours()
        distinct = {id(request): request for request in requests if id(request) in ours}.values()
        cached = sum(
            not request.args[1].get("do_sample", False) and hash_args(GENERATE, request.args) in self.lm.dbdict
            for request in distinct
        )
        if cached:
            self._warn(
                f"{cached} of the harness's own {len(distinct)} answers come from --use_cache; the further repeats are "
                "asked anew and are not cached"
            )

    def _ask_again(self, call: Callable[[Sequence[Any]], Any], requests: Sequence[Any]) -> None:
        rounds = self._rounds(requests)
        self._done = 0, len(rounds)
        if not rounds:
            return
        with self._apart():
            for done, batch in enumerate(rounds, start=1):
                answers = list(call(batch))
                if len(answers) != len(batch):
                    raise ValueError(f"{len(answers)} answers to {len(batch)} requests")
                for request, answer in zip(batch, answers, strict=True):
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
                for repeat in range(own + len(self._further[id(request)]), self.times(ours[id(request)])[1]):
                    rounds.setdefault(0 if at_once else repeat, []).append(request)
            seen[id(request)] += 1
        return [rounds[key] for key in sorted(rounds)]

    def _ours(self) -> dict[int, str]:
        """id of every request that is asked again, of this block and those before → its task."""
        for name, task in self.raised.items():
            self._task_of.update((id(request), name) for request in task.instances if request.request_type == GENERATE)
        return self._task_of

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Further answers: seeds of their own, no response cache, random states put back."""
        lm = innermost(self.lm)
        with ExitStack() as stack:
            stack.enter_context(same_random_state())
            stack.enter_context(patched(self, "_inside", True))
            stack.enter_context(patched(self, "_keeps_batches", True))
            if self.reseed and sends_payloads(lm):
                stack.enter_context(patched(lm, "_create_payload", self._reseeded(lm._create_payload)))
            if lm is not self.lm:
                from lm_eval.api.model import CacheHook

                stack.enter_context(patched(lm, "cache_hook", CacheHook(None)))
            yield

    def _reseeded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A client's method that makes payloads; those for generation carry seeds of ours."""

        def create(messages: Any, *args: Any, **kwargs: Any) -> Any:
            payload = original(messages, *args, **kwargs)
            # no seed, or an explicit null: the server draws by itself
            if kwargs.get("generate", args[0] if args else False) and payload.get("seed") is not None:
                prompt = json.dumps(messages, sort_keys=True, default=str)
                self._occurrences[prompt] += 1
                payload["seed"] = seed_of(payload["seed"], prompt, self._occurrences[prompt])
            return payload

        return create

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
                _, K = self.times(self._task_of[id(request)])
                whole.append((request, [*request.resps[:own], *more[: K - own]]))
        for request, answers in whole:
            request.resps = answers

    def _warn(self, text: str) -> None:
        self._say(text)
        self.notes.append(text)


def remarks(asking: Asking, cache_requests: bool) -> list[str]:
    """What the user should know of the repeats before the run: which are not asked for, and what would make all answers
    to a question the same."""
    lm, tasks, out = asking.lm, asking.tasks, []
    several = {name: tasks[name] for name, K in asking.wanted.items() if K > 1}
    generating = {name: task for name, task in several.items() if task.OUTPUT_TYPE == GENERATE}
    if once := ", ".join(name for name in several if name not in generating):
        out.append(
            f"{once}: scored from log-likelihoods, which do not change from one repeat to the next; "
            "asked once, and its prediction noise cannot be estimated"
        )
    out += [
        f"{name}: the task itself asks {own} times, which is kept ({asking.wanted[name]} repeats were asked for)"
        for name, task in generating.items()
        if (own := native_repeats(task)) > asking.wanted[name]
    ]
    if new := ", ".join(name for name, task in generating.items() if not hasattr(task, "_filters")):
        out.append(
            f"{new}: this lm-eval (0.5) scores repeats by itself: ask with its own --repeats, and "
            "the scores that it logs are used"
        )
    out += [
        f"{name}: the task itself asks {own} times, and lm-eval sends one seed with all of them: a server that "
        "honours it gives copies, which count as one answer (copied_repeats)"
        for name, task in tasks.items()
        if task.OUTPUT_TYPE == GENERATE and (own := native_repeats(task)) > 1 and _shared_seed(lm, task)
    ]
    if not asking.raised:
        return out
    if greedy := sorted(name for name, task in asking.raised.items() if _greedy(innermost(lm), task)):
        out.append(
            f"{', '.join(greedy)}: the answers are generated greedily (temperature 0 or do_sample false), so the "
            "repeats will be all the same; sample them, for instance with --gen_kwargs temperature=0.7,do_sample=true"
        )
    if cache_requests:
        out.append(
            "--cache_requests may give requests that were built with other generation arguments (temperature); "
            "use --cache_requests refresh after a change"
        )
    if not asking.reseed and sends_payloads(lm):
        out.append("re-seeding is off and lm-eval sends one fixed seed: a server that honours it gives equal answers")
    return out


def _shared_seed(lm: Any, task: Any) -> bool:
    """Whether a client sends one and the same seed with every request of a task; one that the task names goes before
    the client's own, also if it is null."""
    model, arguments = innermost(lm), task.config.generation_kwargs or {}
    if not sends_payloads(model):
        return False
    if "seed" in arguments:
        return arguments["seed"] is not None
    return getattr(model, "_seed", None) is not None and "seed" in inspect.signature(model._create_payload).parameters


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
