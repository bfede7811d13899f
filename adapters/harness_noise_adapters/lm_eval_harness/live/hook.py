"""The hook around `lm_eval.evaluator.evaluate`: a live run that carries its own noise.

`simple_evaluate` finds `evaluate` by its global name, in every version, so wrapping that name
(`sessions.py`) gives the model, the task objects and the gathered result, before it is saved and
printed. Only a wrong choice of the user's stops a run, before the model is asked. Whatever goes wrong
later costs one warning, and the native result is returned as it came.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial, wraps
from itertools import islice
from typing import Any

from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import MissingFieldError, check_tasks, namer
from harness_noise.data.notes import Note, texts
from harness_noise.errors import InputError, error_message
from harness_noise.io.paths import BESIDE
from harness_noise.results.rows import Analysis, Estimate

from ...extras import extra
from ..files.results import BLOCK, CLUSTER, SCORES, copy_of, inject, name_of, strict_scores, strict_value
from ..scoring.clusters import is_parallel, resolve
from .collect import Collected, collect, flat_tasks, native_groups
from .further import innermost, same_random_state, terminated_as_interrupted
from .journal import Journal, close, model_key, sentence, told
from .options import Options
from .remarks import remarks
from .repeats import Answers, Asking
from .saving import Saving, root_of

log = logging.getLogger("harness_noise")


@dataclass(eq=False, slots=True)
class OuterCall:
    """A call of `simple_evaluate`."""

    arguments: Mapping[str, Any]
    run: _Live | None = None
    """The run of its `evaluate`, once that has returned: what is ours begins when the whole result is complete."""


outer_call: ContextVar[OuterCall | None] = ContextVar("harness_noise_call", default=None)
"""The running call of `simple_evaluate`, None if `evaluate` was called by itself."""
asked_part: ContextVar[dict[str, list[int]] | None] = ContextVar("harness_noise_part", default=None)
"""The documents that the last run of this context asked, by task, or None if it asked all of them."""


def outer_arguments() -> Mapping[str, Any]:
    """Return the arguments of the `simple_evaluate` call that is running, {} if none is."""
    call = outer_call.get()
    return {} if call is None else call.arguments


@dataclass(eq=False)
class Session:
    """All that the hook saw and made while it was installed."""

    options: Options
    analysis: Analysis | None = None
    """The noise of the last run, None if there was no run or its noise could not be computed."""
    collected: Collected | None = None
    """The last run's scores, and the raw values per repeat of every metric."""
    native: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """lm-eval's own values of the last run."""
    problems: list[str] = field(default_factory=list)
    """Faults of ours that cost the noise of a run, but not the run."""

    warnings: list[str] = field(default_factory=list)
    """Warnings that were logged while the run went on."""
    saving: Saving | None = None
    """The way in which the command line saves the runs, None if the caller saves them."""
    interrupted: bool = False
    """True if the user stopped the last run's further answers or the computation from them."""
    saved_requests: list[str] = field(default_factory=list)
    """A line for each task of the last run whose further answers are copies: the requests that were saved."""
    runs: int = 0
    """The number of runs so far."""
    process: int = field(default_factory=os.getpid)
    """The process that opened the session. Its children have no session."""

    @cached_property
    def others(self) -> Any:
        """The finished runs that the options name, None if the options name none."""
        return growing(self.options).Others.read(self.options) if self.options.asks_less else None

    def native_se(self, estimate: Estimate) -> float | None:
        """Return lm-eval's own standard error of this metric, None if it is not above 0."""
        se = self.native.get(estimate.task, {}).get(f"{estimate.metric}_stderr,{estimate.scorer}")
        return se if isinstance(se, float) and se > 0 else None

    def say(self, text: str) -> None:
        self.warnings.append(text)
        log.warning("harness-noise: %s", text)

    def failed(self, when: str, error: BaseException) -> None:
        text = f"{when} ({error_message(error)}). lm-eval's own result is untouched"
        self.problems.append(text)
        self.say(text)
        log.debug("harness-noise: traceback", exc_info=error)


def growing(options: Options) -> Any:
    """Return the module for runs that stop early or add answers as they go. Refuse if not installed.

    Raises:
        InputError: it is not installed.
    """
    first = "until" if options.rule is not None else "sample" if options.sample is not None else "complete"
    first = "repeats" if first == "complete" and options.repeats.auto else first
    return extra("stopping.of_lm_eval.growing", options.named(first, "auto" if first == "repeats" else ""))


def check_before(session: Session, arguments: Mapping[str, Any]) -> None:
    """Refuse options on wrong fields, tasks or patterns before a named model is loaded. Only warn of other errors.

    Raises:
        InputError: a choice of the user's that does not fit the run.
    """
    try:
        if session.options.asks_less:
            growing(session.options).check_partial(session.options, arguments)
            _ = session.others  # the runs that the options name are read now
        manager, options = arguments.get("task_manager"), session.options
        # where no field or task is named there is nothing to look for; a model that is here was loaded long ago
        if options.names_something and manager is not None and isinstance(arguments.get("model"), str):
            with same_random_state():
                load = getattr(manager, "load", None) or manager.load_task_or_group
                check_names(load(arguments["tasks"]), options)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - lm-eval comes to it again, and says what is wrong
        with suppress(Exception):
            why = error_message(error)
            session.say(f"the fields and tasks that are named could not be checked before the model is loaded ({why})")


def check_names(task_dict: Mapping[Any, Any], options: Options) -> list[Note]:
    """Refuse options on tasks or fields that do not exist. Return notes on presets (`auto`) that do not fit.

    Raises:
        InputError: a field that the user named is not in the documents; a group, or a number of answers, is of tasks
            that are not there.
    """
    tasks = flat_tasks(task_dict)
    errors: list[str] = []
    warnings: list[str] = []
    if not options.of_many:
        check_tasks(options.cluster, sorted(tasks), options.named("cluster"))  # lm-eval ≤ 0.4.10 has them in no order
    for name, task in tasks.items():
        wanted = resolve(options.cluster, name)
        docs = getattr(task, "task_docs", None)
        if wanted is None or wanted == "task" or is_parallel(wanted):
            continue
        for doc in islice(docs if docs is not None else task.eval_docs, 1):
            try:
                namer(wanted)(doc)
            except MissingFieldError as error:  # a preset that does not fit is not the user's mistake
                (warnings if options.cluster.for_task(name) == "auto" else errors).append(f"{name}: {error}")
    if errors:
        raise InputError(
            f"{options.named('cluster')} does not fit: {'; '.join(errors)}. Name a field that is there, or say "
            "TASK=SPEC for the tasks that have it"
        )
    _check_patterns(tasks, native_groups(task_dict), options)
    return [Note("not_clustered", f"not clustered: {text}") for text in warnings]


def _check_patterns(tasks: Collection[str], groups: Collection[str], options: Options) -> None:
    wanted = []
    for name, pattern in options.groups.items():
        said = options.named("group", f"{name}={pattern}")
        wanted.append((pattern, said))
        if name in tasks or name in groups:
            raise InputError(f"{said}: a task or group is already called {name!r}")
    if not options.of_many:
        repeats = options.repeats.by_task
        wanted += [(task, options.named("repeats", f"{task}={K or 'auto'}")) for task, K in repeats if task != "*"]
    for pattern, said in wanted:
        if not any(fnmatchcase(task, pattern) for task in tasks):
            raise InputError(f"{said}: no task matches. This run has {', '.join(sorted(tasks))}")


def wrap(original: Callable[..., Any], session: Session) -> Callable[..., Any]:
    """Return `evaluate` wrapped to add error bars (or hand them to an outer `simple_evaluate`) and fill the session."""
    signature = inspect.signature(original)

    @wraps(original)
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        session.analysis = session.collected = None
        session.interrupted = False
        session.runs += 1
        stack = ExitStack()
        try:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            with same_random_state():  # in lm-eval even `task.task_name` draws a random number
                run = _Live(session, arguments, original)
            stack.enter_context(run.asking.installed())
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours must not stop the run
            with suppress(Exception):
                session.failed("the run goes on without its noise", error)
            return original(*args, **kwargs)
        try:
            if run.growing is not None:
                results = run.growing.evaluate()
            else:
                results = original(**{**arguments, "log_samples": True})
        except BaseException:
            run.stop()
            raise
        finally:
            try:
                stack.close()
            except Exception as error:  # noqa: BLE001 - never in the way of a result, or of lm-eval's own error
                with suppress(Exception):
                    session.failed("the task objects could not be put back", error)
        asked_part.set(run.growing.part if run.growing is not None else None)
        call = outer_call.get()
        if call is not None and call.run is None:
            call.run = run  # `simple_evaluate` has more to say of it
            return results
        try:
            return run.complete(results)
        except BaseException as error:  # noqa: BLE001 - the model has run
            return run.without_noise(results, error)

    return evaluate


class _Live:
    """One call of `evaluate`: the facts before it, and the work after it.

    Raises:
        InputError: a choice of the user's that does not fit this run.
    """

    def __init__(self, session: Session, arguments: Mapping[str, Any], original: Callable[..., Any]) -> None:
        self.session, self._arguments = session, arguments
        if session.options.asks_less:
            growing(session.options).check_partial(session.options, arguments)
        if session.options.partial and "samples" not in arguments:
            raise InputError(
                "this lm-eval cannot ask a random subset of the questions: use 0.4.9 or newer, or ask all of them"
            )
        _ = session.others  # where `evaluate` was called by itself
        self.lm, task_dict = arguments["lm"], arguments["task_dict"]
        self.groups = native_groups(task_dict)
        self.asking = Asking(
            original,
            arguments,
            flat_tasks(task_dict),
            session.options,
            session.say,
            partial(_journal, session, self.lm),
        )
        self.notes = check_names(task_dict, session.options)
        self.notes += remarks(self.asking, bool(arguments.get("cache_requests")))
        self.growing: Any = None
        if session.options.partial:
            self.growing = growing(session.options).Growing(self.asking, self.groups, session)
            self.notes += self.growing.notes
        for text in texts(self.notes) if getattr(self.lm, "rank", 0) == 0 else ():
            session.say(text)

    def complete(self, results: Any) -> Any:
        """Return lm-eval's result with error bars, further answers asked for. Report our errors, raise only SystemExit.

        Args:
            results: None where the rank is not 0; that rank, too, asks for its further answers.
        """
        session, logged = self.session, bool(self._arguments["log_samples"])
        answers: Answers = {}
        native = isinstance(results, dict)
        with terminated_as_interrupted():
            if native and session.saving is not None:
                with self._guarded("lm-eval's own result could not be saved before the further answers"):
                    session.saving.native(outer_arguments().get("evaluation_tracker"), results, logged)
            with self._guarded("the further answers could not be asked for"):
                self._ask_further()
            self.stop()
            with self._guarded("the further answers are not recorded"):
                answers = self.asking.gathered()
                if native:
                    self.asking.put(results["samples"], answers)
            session.interrupted |= self.asking.interrupted
            if native:
                with self._guarded("the noise of this run could not be computed"):
                    results = self.finish(results, annotated=logged)
                self._close_journals()
        if native and not logged:
            results.pop("samples", None)
        return results

    def stop(self) -> None:
        """Stop recording further answers in the journal."""
        if self.asking.journal is not None:
            self.asking.journal.stop()

    def _close_journals(self) -> None:
        """Mark the run's journals as finished (once saved, else now), unless interrupted or answers are missing."""
        if self.session.interrupted:
            return
        if self.session.saving is None or self.session.saving.root is None:
            close(self.asking.summaries)
        else:
            self.session.saving.when_saved = partial(close, self.asking.summaries)

    def _ask_further(self) -> None:
        self.asking.interrupted |= self.session.interrupted
        with self.asking.installed():
            if self.growing is None:
                self.asking.ask()  # also after an interrupt, because other ranks wait for what this one has found
            elif not self.asking.interrupted:
                self.growing.further()

    @contextmanager
    def _guarded(self, when: str) -> Iterator[None]:
        """Report an error within the block instead of raising it (except for SystemExit), and forget the analysis."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - see above
            self._failed(when, error)

    def _failed(self, when: str, error: BaseException) -> None:
        if isinstance(error, (SystemExit, GeneratorExit)):
            raise error
        self.session.interrupted |= isinstance(error, KeyboardInterrupt)
        self.session.analysis = self.session.collected = None
        with suppress(Exception):
            self.session.failed(when, error)

    def without_noise(self, results: Any, error: BaseException) -> Any:
        """Return lm-eval's own result, samples if wanted. Report our error (raise SystemExit), forget the analysis."""
        self._failed("the noise of this run could not be computed", error)
        if isinstance(results, dict) and not self._arguments["log_samples"]:
            results.pop("samples", None)
        return results

    def finish(self, results: dict[str, Any], *, annotated: bool) -> dict[str, Any]:
        """Return a copy of results with error bars (samples if `annotated`). Set their `repeats`, fill the session."""
        session = self.session
        self.asking.record(results)
        with same_random_state():
            name = model_name(self.lm, outer_arguments())
            carried = {} if self.growing is None else self.growing.carried
            tasks, options = self.asking.tasks, session.options
            collected = collect(results, tasks, self.groups, self.asking, options, name, carried)
            block = told(self.asking.summaries, options.journal)
            first = [Note("taken_up", text)] if (text := sentence(block)) is not None else []
            said = "temperature 0: {n} of {n} second answers were copies, {saved:,} requests saved"
            copies = [
                Note("copied_repeats", said.format(n=n, saved=saved)).of(task)
                for task, (n, saved) in self.asking.copied.items()
            ]
            session.saved_requests = texts(copies)
            notes = (*first, *collected.run.notes, *self.notes, *self.asking.notes, *copies)
            collected.run = replace(collected.run, notes=notes)
            if self.growing is not None:
                collected.run = self.growing.record(collected.run)
            settings = session.options.settings
            analysis = analyze_run(collected.run, settings)
            if session.options.complete:
                analysis = growing(options).with_references(
                    analysis, collected.run, session.others.references, settings
                )
        out = copy_of(results)
        inject(out, analysis, rows=session.options.rows)
        if block is not None:
            out[BLOCK]["journal"] = block
        if annotated:
            ours = annotated_rows(collected)
            out["samples"] = {name: [ours.get(id(row), row) for row in rows] for name, rows in out["samples"].items()}
        session.collected, session.analysis = collected, analysis
        session.native = results["results"]
        return out


def _journal(session: Session, lm: Any) -> Journal | None:
    """Return a journal of further answers. None if there is no output folder, it is off, or ranks ask in step.

    None where its ranks have to ask the same at the same time.
    """
    arguments, mode = outer_arguments(), session.options.journal
    output = getattr(arguments.get("evaluation_tracker"), "output_path", None)
    model, ranks = innermost(lm), int(getattr(lm, "world_size", 1) or 1)
    in_step = "FSDP" in str(getattr(getattr(model, "accelerator", None), "distributed_type", ""))
    if not output or mode == "off" or in_step or int(os.environ.get("WORLD_SIZE") or 1) > ranks:
        return None
    named = arguments.get("model")
    kind = named if isinstance(named, str) else f"{type(model).__module__}.{type(model).__qualname__}"
    commit = getattr(getattr(model, "config", None), "_commit_hash", None)
    key = model_key([kind, model_name(lm, arguments)], arguments.get("model_args"), commit)
    return Journal(root_of(output) / BESIDE, key, mode, int(getattr(lm, "rank", 0)), ranks, session.say)


def annotated_rows(collected: Collected) -> dict[int, dict[str, Any]]:
    """Return {id of a logged sample: copy with scores per repeat and cluster}."""
    measured = {part.key: part for part in collected.run.scores}
    whole = {part.key for part in collected.run.corpus}
    out = {}
    for name, task_scores in collected.tasks.items():
        for scorer, rows in task_scores.rows.items():
            columns = {
                metric: [scores[: len(raw)] for scores, raw in zip(part.values.tolist(), answers, strict=True)]
                for metric, answers in task_scores.filters[scorer].values.items()
                if (part := measured.get((name, metric, scorer))) is not None
            }
            raw = {
                metric: answers
                for metric, answers in task_scores.filters[scorer].values.items()
                if (name, metric, scorer) in whole and max(map(len, answers)) > 1
            }
            for i, row in enumerate(rows):
                scores = strict_scores({metric: values[i] for metric, values in columns.items()})
                scores |= {metric: [strict_value(value) for value in answers[i]] for metric, answers in raw.items()}
                ours = out[id(row)] = {**row, SCORES: scores}
                if task_scores.clusters is not None and CLUSTER not in row.get("metrics", ()):
                    ours[CLUSTER] = task_scores.clusters[i]
    return out


def model_name(lm: Any, args: Mapping[str, Any]) -> str:
    """Return the model's name as lm-eval's files would have it, from arguments or the object.

    Args:
        lm: the model.
        args: the arguments of `simple_evaluate`, where it was called.
    """
    model = innermost(lm)
    named = (getattr(getattr(model, "config", None), "_name_or_path", None), args.get("model"), type(model).__name__)
    own = (getattr(model, "pretrained", None), getattr(model, "model", None))
    return str(name_of(args.get("model_args"), *own, *named))
