"""Native evaluations of any part of the questions, in which every answer is asked for once.

lm-eval builds the requests of a run once, and these are the requests of every part: what is asked of a question does
not depend on which others are asked (few-shot examples drawn at random are those of the whole run). The model's
methods are wrapped, so that an answer that is there is given again, and only the others are asked for. So a run may
be evaluated block by block, and in the end as one run over all the questions that were asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import deepcopy
from typing import Any

from ..scoring.rescore import patched

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
