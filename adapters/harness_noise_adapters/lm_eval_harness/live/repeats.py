"""Ask a model K times per question without touching what lm-eval itself computes.

lm-eval sends every request `repeats` times in one call and hands all answers to the filters. Here
that call is made as it would have been, and its answers go back as they came. Once lm-eval's own
result is complete, the further answers are asked for (`further`), and are put behind lm-eval's own in
the record of the run. So the native value stays what it is without us, to the last digit, whatever the
filters do (first answer, majority vote, pass@k), however the model draws its random numbers, and
whatever goes wrong with the further answers.

A run that is looked at while it grows is evaluated in parts, and every answer is asked for once. lm-eval builds the
requests of a run once, and these are the requests of every part: what is asked of a question does not depend on which
others are asked (few-shot examples drawn at random are those of the whole run). The model's methods are wrapped, so
that an answer that is there is given again, and only the others are asked for. So a run may be evaluated block by
block, and in the end as one run over all the questions that were asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from typing import Any, TypeAlias

from harness_noise.data.notes import Note
from harness_noise.errors import error_message

from ..scoring.rescore import GENERATE, patched
from .further import Further, Round, decodes_greedily, innermost
from .journal import AskedFurther, Copies, Journal
from .options import Options

METHODS = (GENERATE, "loglikelihood", "loglikelihood_rolling")
_DETECT = "_detect_batch_size"
"""The method that lm-eval's local models call to find the largest batch that fits."""
Part: TypeAlias = Mapping[str, Sequence[int]]
"""Task → the numbers of documents, in increasing order."""
Answers: TypeAlias = Mapping[str, Mapping[int, Sequence[Sequence[Any]]]]
"""Task → document → the further answers to each of its requests."""


PROBES = 30
"""Questions of a task that are asked once more where its answers are generated greedily, before any other is."""


def native_repeats(task: Any) -> int:
    """Return the number of answers per question that the lm-eval task itself asks for."""
    return int(getattr(task.config, "repeats", None) or 1)


class _Numbers(list[int]):
    """A list of document numbers in which lm-eval finds a number quickly."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(map(int, numbers))
        self._there = frozenset(self)

    def __contains__(self, number: object) -> bool:
        return number in self._there


class Asking:
    """The requests and answers of one call of `evaluate`, with the further answers that we ask for.

    Args:
        evaluate: lm-eval's own.
        arguments: of the call, all by name; the model may be in lm-eval's response cache.
        tasks: name → task object.
        options: the user's choices.
        say: called with a warning when further answers could not be had.
        journal: opens that of the further answers; None where none is kept.
    """

    def __init__(
        self,
        evaluate: Callable[..., Any],
        arguments: Mapping[str, Any],
        tasks: Mapping[str, Any],
        options: Options,
        say: Callable[[str], None],
        journal: Callable[[], Journal | None] = lambda: None,
    ) -> None:
        self._evaluate, self._arguments, self.tasks, self._say = evaluate, arguments, tasks, say
        self.lm = arguments["lm"]
        self.in_blocks = options.partial
        """True if the run is evaluated in parts."""
        self.reseed = options.reseed
        """True if each further answer of a server gets its own seed."""
        self.wanted = {name: K for name in tasks if (K := options.repeats.begin(name)) is not None}
        """Task → answers per question that the user asks for. A task without an entry decides itself."""
        self.raised: dict[str, Any] = {}
        """The tasks that are asked more often than they ask themselves. lm-eval 0.5 has no filters that single answers
        could be scored with: its tasks are left as they are."""
        self._times = {name: self._times_of(name, task) for name, task in tasks.items() if task.OUTPUT_TYPE == GENERATE}
        self._in_the_end: dict[str, tuple[int, int]] = {}
        """`times` in the end of the tasks that are asked in rounds."""
        self._repeated = bool(self.raised)
        """True if further answers are asked for, on this rank as on the others."""
        self.journal = journal() if self.raised else None
        """The journal of this rank's further answers, None if none is kept."""
        self.further = Further(self.lm, reseed=options.reseed, journal=self.journal)
        self.notes: list[Note] = []
        self.interrupted = False
        """True if the user stopped the further answers."""
        self.fell_short = False
        """True if some further answers are missing."""
        model = innermost(self.lm)
        self._greedy = {name for name, task in self.raised.items() if decodes_greedily(model, task)}
        """Tasks of which it is not known yet whether their further answers are copies."""
        self._tried_greedily: dict[str, int] = {}
        """Task → its questions that this rank has asked once more to see whether the answers are copies."""
        self._ranks = int(getattr(self.lm, "world_size", 1) or 1)
        self.copied: dict[str, Copies] = {}
        """Tasks that are not asked again, because their further answers are copies."""
        self.summaries: list[AskedFurther] = []
        """The outcome of every rank's further answers, on the first rank."""
        self.model_failed = False
        """True if the model raised an error, which would also end a run without us."""
        self._inside = False
        """While the model answers, what it asks of itself is no request of lm-eval's."""
        self._sent: list[Any] = []
        """lm-eval's own requests so far. While they are held, no other request gets the id of one of them."""
        self._answers: defaultdict[int, list[Any]] = defaultdict(list)
        """id of a request → lm-eval's own answers in the order of asking, of a run in parts."""
        self._built: dict[str, dict[int, list[Any]]] = {}
        """Task → document → its requests, of a run in parts."""
        self._task_of: dict[int, str] = {}
        """id of every request that is asked again → its task."""
        self._call: Callable[[Sequence[Any]], Any] | None = None
        """Asks the model as the harness did."""
        self._batches: defaultdict[bool, list[tuple[tuple[int, int], Any]]] = defaultdict(list)
        """True if requests were given → their lengths, and the largest batch that was found with them."""

    def _times_of(self, name: str, task: Any) -> tuple[int, int]:
        """Return a task's own answers per question, and those with ours. Remember in `raised` if we ask more often."""
        own = native_repeats(task)
        if own < self.wanted.get(name, 0) and hasattr(task, "_filters"):
            self.raised[name] = task
        return own, self.wanted[name] if name in self.raised else own

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within the block, patch the model and the tasks to record requests and to let `evaluate` run in parts."""
        methods = METHODS if self.in_blocks else (GENERATE,) if self.raised else ()
        with ExitStack() as stack:
            for name, task in self.tasks.items():
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
        """Return lm-eval's search for the largest batch, wrapped: our calls reuse a size found for texts as long.

        What fits holds for all requests that are no longer than those it was found with.
        """

        def detected(requests: Any = None, pos: int = 0) -> Any:
            lengths, batches = (0, 0), self._batches[bool(requests)]
            if requests:
                _, context, continuation = requests[pos]
                lengths = len(context) + len(continuation), max(len(context), len(continuation))
            fits = [size for tried, size in batches if lengths[0] <= tried[0] and lengths[1] <= tried[1]]
            # lm-eval's own calls of a whole run find their own
            if fits and (self.in_blocks or self.further.asking):
                return max(fits)
            batches.append((lengths, detect(requests, pos) if requests else detect()))
            return batches[-1][1]

        return detected

    # how often

    def times(self, task: str) -> tuple[int, int]:
        """Return a task's answers per question that lm-eval's filters see, and in all. (1, 1): it does not generate."""
        return self._times.get(task, (1, 1))

    @property
    def uneven(self) -> Collection[str]:
        """Tasks whose questions may end with different numbers of answers."""
        return self._in_the_end.keys()

    def in_rounds(self, names: Iterable[str]) -> None:
        """Ask these tasks' questions at first only as often as lm-eval does. `more` asks the rest."""
        for name in self.raised.keys() & set(names):
            own, _ = self._in_the_end[name] = self._times[name]
            self._times[name] = own, own

    def all_rounds(self) -> None:
        """Ask for all further answers that are still missing."""
        self._times |= self._in_the_end
        self.more({name: K for name, (_, K) in self._in_the_end.items()})

    def more(self, totals: Mapping[str, int], part: Part | None = None) -> bool:
        """Set answers per question to these totals and ask (undone if none comes). Return False if some are missing.

        A fault costs the answers that had not come, and not those that are there.

        Args:
            totals: task → answers in all to each of its questions.
            part: these questions; None: all that have been asked.
        """
        before = dict(self._times)
        self._times |= {name: (before[name][0], total) for name, total in totals.items() if name in self.raised}
        whole = self.ask(part)
        if not whole and not self.further.had:
            self._times.update(before)
        return whole

    def ask(self, part: Part | None = None) -> bool:
        """Ask for all missing further answers, of greedy tasks unless tries are copies. Return False if some fail.

        See `more`.

        Every rank has to call it, whatever went wrong on it: what one finds of greedy tasks, all of them obey.
        """
        self.further.had = self.further.wanted = 0
        copies: dict[str, bool] = {}
        asked = self._try_asking(lambda call: copies.update(self._probed(call, self._requests(part))))
        if self._greedy:
            self._judge(self._requests(part), copies)
        return asked and self._try_asking(lambda call: self.further.ask(call, self._rounds(self._requests(part))))

    def _try_asking(self, step: Callable[[Callable[[Sequence[Any]], Any]], Any]) -> bool:
        """Run a step that asks the model. Return False if it fails (reported, SystemExit raised) or is stopped."""
        if self._call is None or self.interrupted:
            return False
        try:
            step(self._call)
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the run's own answers are there: they must not be lost
            with suppress(Exception):
                self._stopped(error)
            return False
        return True

    def _requests(self, part: Part | None) -> list[Any]:
        """Return lm-eval's requests for these questions, or all that were sent."""
        if part is None:
            return self._sent
        return [request for name, numbers in part.items() for n in numbers for request in self._built[name][n]]

    def record(self, results: dict[str, Any]) -> None:
        """Write the raised answers per question as `repeats` into the `configs` of lm-eval's results, in place."""
        for name in self.raised:
            results["configs"][name]["repeats"] = self._times[name][1]

    # the run in parts

    def block(self, part: Part) -> dict[str, Any]:
        """Evaluate only these questions with lm-eval, samples and further answers included."""
        tasks = {name: self.tasks[name] for name in part}
        with ExitStack() as stack:
            for name, task in tasks.items():
                stack.enter_context(patched(task, "doc_iterator", self._documents(name, task.doc_iterator)))
            results: dict[str, Any] = self.whole(part, bootstrap_iters=0, write_out=False, task_dict=tasks)
        if self.raised.keys() & part.keys():
            self.ask(part)
            self.put(results["samples"], self.answers())
        return results

    def whole(self, part: Part | None, **changes: Any) -> Any:
        """Evaluate these questions, or all, with lm-eval's own function, and return its result."""
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
            # lm-eval numbers the documents of a part from 0
            for number, document in enumerate(sorted(built) if samples is None else sorted(set(samples))):
                for request in built[document]:
                    request.doc_id, request.resps, request.filtered_resps = number, [], {}
                    chosen.append(request)
            task._instances = chosen

        return build_all_requests

    def _documents(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `doc_iterator` wrapped: it yields copies of a part's documents as built, and reads no dataset."""

        def doc_iterator(*args: Any, samples: Sequence[int] | None = None, **kwargs: Any) -> Any:
            if samples is None:
                return original(*args, **kwargs)
            built = self._built[name]
            return enumerate(deepcopy(built[document][0].doc) for document in sorted(set(samples)))

        return doc_iterator

    # the model

    def _answering(self, method: str, call: Any) -> Any:
        """Return a model's method wrapped to record requests and, if `in_blocks`, to reuse the answers that it gave."""

        def answers(requests: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or self.further.asking:
                return call(requests, *args, **kwargs)
            fresh, numbered = requests, []
            if self.in_blocks:
                seen: Counter[int] = Counter()
                for request in requests:  # lm-eval sends a request several times for several answers
                    numbered.append((request, seen[id(request)]))
                    seen[id(request)] += 1
                fresh = [request for request, number in numbered if number >= len(self._answers[id(request)])]
            heard = ExitStack()
            if (repeated := method == GENERATE and bool(self.raised)) and fresh:
                try:
                    self._say_cached(fresh)
                    heard.enter_context(self.further.heard())
                except Exception as error:  # noqa: BLE001 - the model is not asked yet, and the run needs no such warning
                    with suppress(Exception):
                        self._warn(f"it is not known who answers, --use_cache or the model ({error_message(error)})")
            replies: Any = []
            if fresh or not self.in_blocks:
                self.model_failed = self._inside = True
                try:
                    replies = call(fresh, *args, **kwargs)
                    replies = list(replies) if self.in_blocks else replies
                finally:
                    self._inside = False
                    try:
                        heard.close()
                    except Exception as error:  # noqa: BLE001 - never in the way of the answers
                        with suppress(Exception):
                            self._warn(f"it is not known who answered ({error_message(error)})")
                self.model_failed = False
                self._sent += fresh
            if repeated:
                model = innermost(self.lm)
                again = call if model is self.lm else model.generate_until
                self._call = lambda batch: again(batch, *args, **kwargs)
            if not self.in_blocks:
                return replies
            for request, answer in zip(fresh, replies, strict=True):
                self._answers[id(request)].append(answer)
            return [self._answers[id(request)][number] for request, number in numbered]

        return answers

    def _say_cached(self, requests: Sequence[Any]) -> None:
        """Warn if lm-eval's response cache, and not the model, gave some of its own answers.

        That cache does not keep sampled answers.
        """
        model = innermost(self.lm)
        if model is self.lm:
            return
        from lm_eval.api.model import hash_args

        ours = self._requests_to_repeat()
        distinct = {id(request): request for request in requests if id(request) in ours}.values()
        cached = sum(
            not request.args[1].get("do_sample", False) and hash_args(GENERATE, request.args) in self.lm.dbdict
            for request in distinct
        )
        if cached:
            self._warn(
                f"{cached} of the harness's own {len(distinct)} answers come from --use_cache. The further repeats are "
                "asked again and are not cached"
            )

    def _stopped(self, error: BaseException) -> None:
        had, wanted = self.further.had, self.further.wanted
        left = f"{had} of {wanted} further answers are there, and the run goes on without the others"
        if isinstance(error, KeyboardInterrupt):
            self.interrupted = True
            self._warn(f"interrupted, so no further answers are asked for: {left}. Interrupt again to stop it")
            self.fell_short = True
        elif wanted and had == wanted:
            self._warn(f"a fault after the further answers ({error_message(error)}), which are all there")
        else:
            self.fell_short = True
            self._warn(f"further answers could not be had ({error_message(error)}); {left}")

    def _rounds(self, requests: Sequence[Any]) -> list[Round]:
        """Return [(repeat, requests without an answer for it)], in order of repeats."""
        ours = self._requests_to_repeat()
        seen: Counter[int] = Counter()
        rounds: defaultdict[int, list[Any]] = defaultdict(list)
        for request in requests:
            own = request.repeats or 1
            # padding for other ranks repeats whole blocks, and is asked again as it was asked
            if id(request) in ours and seen[id(request)] % own == 0:
                _, K = self.times(ours[id(request)])
                for repeat in self.further.missing(request, range(own, K)):
                    rounds[repeat].append(request)
            seen[id(request)] += 1
        return sorted(rounds.items())

    def _probed(self, call: Callable[[Sequence[Any]], Any], requests: Sequence[Any]) -> dict[str, bool]:
        """Ask greedy tasks for one further answer to a few questions. Return {task: True if all are copies}."""
        ours, tried = self._requests_to_repeat(), dict[str, dict[int, Any]]()
        most = -(-PROBES // self._ranks)  # lm-eval deals the questions out in turn
        for request in requests:
            name = ours.get(id(request), "")
            if name in self._greedy and len(tried.setdefault(name, {})) < most:
                tried[name][id(request)] = request
        rounds: defaultdict[int, list[Any]] = defaultdict(list)
        for name, mine in tried.items():
            own, K = self.times(name)
            if own < K:
                rounds[own] += mine.values()
        self.further.ask(call, sorted(rounds.items()))
        copies: dict[str, bool] = {}
        for batch in rounds.values():
            for request in batch:
                same = {*request.resps, *self.further.of(request)} == {request.resps[0]}
                copies[ours[id(request)]] = copies.get(ours[id(request)], True) and same
        self._tried_greedily = {name: len(tried[name]) for name in copies}
        return copies

    def _judge(self, requests: Sequence[Any], copies: Mapping[str, bool]) -> None:
        """Stop asking greedy tasks for further answers if those tried are copies of the first.

        Args:
            requests: those that may be asked for.
            copies: what this rank has found.
        """
        every = everywhere(self.lm, copies) if self._ranks > 1 else [copies]
        wanted = Counter(self._task_of[id(request)] for _, batch in self._rounds(requests) for request in batch)
        for name in sorted(self._greedy & {name for found in every for name in found}):
            self._greedy.discard(name)
            if all(found.get(name, True) for found in every):
                self.copied[name] = Copies(self._tried_greedily.get(name, 0), wanted[name])
                own, _ = self._times[name]
                self._times[name] = own, own
                self._in_the_end.pop(name, None)
                del self.raised[name]

    def _requests_to_repeat(self) -> dict[int, str]:
        """Return {id of a request that gets further answers: its task}."""
        for name, task in self.raised.items():
            self._task_of.update((id(request), name) for request in task.instances if request.request_type == GENERATE)
        return self._task_of

    # what was answered

    def answers(self) -> Answers:
        """Return {task: {document: further answers to each request}} of this process."""
        return {name: dict(self._further_of(name, task)) for name, task in self.raised.items()}

    def _further_of(self, name: str, task: Any) -> Iterator[tuple[int, list[list[Any]]]]:
        """Yield (document, further answers to each request) of a task, if there are any."""
        documents = self._built.get(name, {})
        if not self.in_blocks:
            chosen = (self._arguments.get("samples") or {}).get(name)
            documents = defaultdict(list)
            for request in task.instances:
                # lm-eval numbers the documents of --samples from 0
                documents[chosen[request.doc_id] if chosen else request.doc_id].append(request)
        for document, requests in documents.items():
            found = [self.further.of(request) for request in sorted(requests, key=lambda request: request.idx)]
            if any(found):
                yield document, found

    def gathered(self) -> Answers:
        """Return the further answers of all ranks, complete on the first only. Set `summaries` and sum `copied` there.

        Every rank has to call it, even after an error.
        """
        mine: Answers = {}
        self.summaries = [AskedFurther.of(self.journal, whole=not self.fell_short, copied=self.copied)]
        try:
            mine = self.answers()
        finally:
            if self._repeated and self._ranks > 1:
                parts = gather(self.lm, (mine, self.summaries[0]))
                every: dict[str, dict[int, Any]] = {}
                for part, _ in parts:
                    for name, found in part.items():
                        every.setdefault(name, {}).update(found)
                mine, self.summaries = every, [summary for _, summary in parts]
                for name in self.copied if parts else ():
                    each = [summary.copied[name] for summary in self.summaries]
                    self.copied[name] = Copies(*map(sum, zip(*each, strict=True)))
        return mine

    def put(self, samples: Mapping[str, Sequence[dict[str, Any]]], answers: Answers) -> None:
        """Append further answers, up to K in all, to lm-eval's own in the logged samples, in place."""
        for name, found in answers.items():
            own, K = self.times(name)
            for row in samples.get(name, ()):
                if further := found.get(row["doc_id"]):
                    both = zip(row["resps"], further, strict=True)
                    row["resps"] = [[*had[:own], *more[: K - own]] if more else had for had, more in both]

    def _warn(self, text: str) -> None:
        self._say(text)
        self.notes.append(Note("further_answers", text))


def gather(lm: Any, value: Any, rank: int = 0) -> list[Any]:
    """Return the values of several ranks on one of them, [] on the others. Every rank has to call it."""
    if callable(own := getattr(lm, "gather_object", None)):
        return own(value, dst=rank) or []
    import torch

    mine = lm.rank == rank
    found = [None] * lm.world_size if mine else None
    torch.distributed.gather_object(obj=value, object_gather_list=found, dst=rank)
    return found or []


def everywhere(lm: Any, value: Any) -> list[Any]:
    """Return the values of all ranks on every rank."""
    each = [gather(lm, value, rank) for rank in range(lm.world_size)]
    found: list[Any] = each[lm.rank]
    return found
