"""The hook around `lm_eval.evaluator.evaluate`: a live run that carries its own noise.

`simple_evaluate` looks `evaluate` up by its global name, in every version, so wrapping that name
for the length of a run gives the model, the task objects and the gathered result, before it is
saved and printed. Only a wrong choice of the user's stops a run, before the model is asked. Whatever
goes wrong later costs one warning, and the native result is returned as it came.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, wraps
from itertools import islice
from typing import Any

from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import MissingFieldError, check_tasks, labeller
from harness_noise.errors import InputError, error_message
from harness_noise.results.rows import Analysis, Estimate

from ..files.results import CLUSTER, SCORES, copy_of, inject, name_of, strict_scores
from ..scoring.clusters import is_parallel, resolve
from .collect import Collected, collect, flat_tasks, native_groups
from .growing import Growing, check_partial, with_references
from .options import Options
from .population import Others
from .repeats import Asking, innermost, remarks, same_random_state

log = logging.getLogger("harness_noise")
_MARK = "__harness_noise_original__"


@dataclass
class Session:
    """What the hook saw and made while it was installed."""

    options: Options
    analysis: Analysis | None = None
    """The noise of the last run; None where there was none, or where it could not be had."""
    collected: Collected | None = None
    """The last run's scores, and the raw values per repeat of every metric."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of the last call of `simple_evaluate`."""
    native: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """lm-eval's own values of the last run."""
    problems: list[str] = field(default_factory=list)
    """Faults of ours that cost the noise of a run, but not the run."""

    warnings: list[str] = field(default_factory=list)
    """Warnings that were logged while the run went on."""
    interrupted: bool = False
    """Whether the user stopped the last run's further answers, or what is computed from them."""
    part: dict[str, list[int]] | None = None
    """The documents that the last run asked, by task; None where it asked all."""

    @cached_property
    def others(self) -> Others:
        """The finished runs that the options name."""
        return Others.read(self.options)

    def native_se(self, estimate: Estimate) -> float | None:
        """lm-eval's own standard error of that metric."""
        se = self.native.get(estimate.task, {}).get(f"{estimate.metric}_stderr,{estimate.scorer}")
        return se if isinstance(se, float) and se > 0 else None

    def say(self, text: str) -> None:
        self.warnings.append(text)
        log.warning("harness-noise: %s", text)

    def failed(self, when: str, error: BaseException) -> None:
        text = f"{when} ({error_message(error)}); lm-eval's own result is untouched"
        self.problems.append(text)
        self.say(text)
        log.debug("harness-noise: traceback", exc_info=error)


@contextmanager
def noise(**options: Any) -> Iterator[Session]:
    """Within it, every `lm_eval.simple_evaluate` adds the noise of its means to its results.

    Args:
        **options: `repeats` (K ≥ 1, or "auto"), `cluster` (a SPEC, a list, or task → SPEC), `groups` (name → glob of
            tasks), `rows`, `reseed`; `until` ("decided" or "se=0.01"), `against` (a RUN), `margin`, `looks`, `metric`,
            `sample` (a share or a number), `reference` (a RUN or a list); and of the settings `level`, `se`,
            `interval`, `seed`.

    Yields:
        The Session: `analysis` after a run.

    Raises:
        InputError: an option that cannot be used; or, before a run starts, a cluster field that the
            documents do not have.
    """
    with installed(Session(Options.of(options))) as session:
        yield session


@contextmanager
def installed(session: Session) -> Iterator[Session]:
    """Wrap `lm_eval.evaluator.evaluate` and `simple_evaluate` for `session`; the names are as before afterwards.

    Inside another session this one takes its place.
    """
    from lm_eval import evaluator

    before = evaluator.evaluate, evaluator.simple_evaluate
    inner, outer = (getattr(function, _MARK, function) for function in before)
    try:
        evaluator.evaluate, evaluator.simple_evaluate = wrap(inner, session), wrap_outer(outer, session)
        yield session
    finally:
        evaluator.evaluate, evaluator.simple_evaluate = before


def wrap_outer(original: Callable[..., Any], session: Session) -> Callable[..., Any]:
    """`simple_evaluate`, which refuses wrong cluster fields and patterns without a task before it loads the model."""
    signature = inspect.signature(original)

    @wraps(original)
    def simple_evaluate(*args: Any, **kwargs: Any) -> Any:
        try:
            session.arguments = arguments = signature.bind(*args, **kwargs).arguments
            check_partial(session.options, arguments)
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
                session.say(
                    f"the fields and tasks that are named could not be checked before the model is loaded ({why})"
                )
        try:
            results = original(*args, **kwargs)
        finally:
            session.arguments = {}
        if session.part is not None and isinstance(results, dict) and "config" in results:
            results["config"]["samples"] = session.part  # lm-eval itself does not record which it was given
        return results

    setattr(simple_evaluate, _MARK, original)
    return simple_evaluate


def check_names(task_dict: Mapping[Any, Any], options: Options) -> list[str]:
    """Warnings about cluster fields, once all tasks and fields that the options name are known to be there.

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
                labeller(wanted)(doc)
            except MissingFieldError as error:  # of a preset that does not fit nobody is to blame
                (warnings if options.cluster.for_task(name) == "auto" else errors).append(f"{name}: {error}")
    if errors:
        raise InputError(
            f"{options.named('cluster')} does not fit: {'; '.join(errors)}. Name a field that is there, or say "
            "TASK=SPEC for the tasks that have it"
        )
    _check_patterns(tasks, native_groups(task_dict), options)
    return [f"not clustered: {text}" for text in warnings]


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
            raise InputError(f"{said}: no task matches; this run has {', '.join(sorted(tasks))}")


def wrap(original: Callable[..., Any], session: Session) -> Callable[..., Any]:
    """`evaluate` with the noise of its results; same arguments, same return value."""
    signature = inspect.signature(original)

    @wraps(original)
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        session.analysis = session.collected = session.part = None
        session.interrupted = False
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
        wanted = bool(arguments["log_samples"])
        try:
            if run.growing is not None:
                results = run.growing.evaluate()
            else:
                results = original(**{**arguments, "log_samples": True})
        finally:
            try:
                stack.close()
            except Exception as error:  # noqa: BLE001 - never in the way of a result, or of lm-eval's own error
                with suppress(Exception):
                    session.failed("the task objects could not be put back", error)
        session.interrupted = run.asking.interrupted
        session.part = run.growing.part if run.growing is not None else None
        if not isinstance(results, dict):  # None where the rank is not 0
            return results
        try:
            results = run.finish(results, annotated=wanted)
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the model has run: not lost by Ctrl-C or a panic in Rust either
            session.interrupted |= isinstance(error, KeyboardInterrupt)
            session.analysis = session.collected = None
            with suppress(Exception):
                session.failed("the noise of this run could not be computed", error)
        if not wanted:
            results.pop("samples", None)
        return results

    setattr(evaluate, _MARK, original)
    return evaluate


class _Live:
    """One call of `evaluate`: what is known before it, and what is done after it.

    Raises:
        InputError: a choice of the user's that does not fit this run.
    """

    def __init__(self, session: Session, arguments: Mapping[str, Any], original: Callable[..., Any]) -> None:
        self.session = session
        check_partial(session.options, arguments)
        if session.options.partial and "samples" not in arguments:
            raise InputError("this lm-eval cannot ask a part of the questions: use 0.4.9 or newer, or ask all of them")
        _ = session.others  # where `evaluate` was called by itself
        self.lm, task_dict = arguments["lm"], arguments["task_dict"]
        self.groups = native_groups(task_dict)
        self.asking = Asking(original, arguments, flat_tasks(task_dict), session.options, session.say)
        self.notes = check_names(task_dict, session.options)
        self.notes += remarks(self.asking, bool(arguments.get("cache_requests")))
        self.growing: Growing | None = None
        if session.options.partial:
            self.growing = Growing(self.asking, self.groups, session)
            self.notes += self.growing.notes
        for text in self.notes if getattr(self.lm, "rank", 0) == 0 else ():
            session.say(text)

    def finish(self, results: dict[str, Any], *, annotated: bool) -> dict[str, Any]:
        """The results with their noise: a copy that shares the samples, or the original."""
        session = self.session
        self.asking.record(results)
        with same_random_state():
            name = model_name(self.lm, session.arguments)
            carried = {} if self.growing is None else self.growing.carried
            tasks, options = self.asking.tasks, session.options
            collected = collect(results, tasks, self.groups, self.asking, options, name, carried)
            notes = (*collected.run.notes, *self.notes, *self.asking.notes)
            collected.run = replace(collected.run, notes=notes)
            if self.growing is not None:
                collected.run = self.growing.record(collected.run)
            settings = session.options.settings
            analysis = analyze_run(collected.run, settings)
            if session.options.references:
                analysis = with_references(analysis, collected.run, session.others.references, settings)
        out = copy_of(results)
        inject(out, analysis, rows=session.options.rows)
        if annotated:
            ours = annotated_rows(collected)
            out["samples"] = {name: [ours.get(id(row), row) for row in rows] for name, rows in out["samples"].items()}
        session.collected, session.analysis = collected, analysis
        session.native = results["results"]
        return out


def annotated_rows(collected: Collected) -> dict[int, dict[str, Any]]:
    """id of every logged sample → a copy of it with its scores per repeat and its cluster."""
    measured = {part.key: part for part in collected.run.scores}
    out = {}
    for name, task_scores in collected.tasks.items():
        for scorer, rows in task_scores.rows.items():
            columns = {
                metric: [scores[: len(raw)] for scores, raw in zip(part.values.tolist(), answers, strict=True)]
                for metric, answers in task_scores.filters[scorer].values.items()
                if (part := measured.get((name, metric, scorer))) is not None
            }
            for i, row in enumerate(rows):
                scores = strict_scores({metric: values[i] for metric, values in columns.items()})
                ours = out[id(row)] = {**row, SCORES: scores}
                if task_scores.clusters is not None and CLUSTER not in row.get("metrics", ()):
                    ours[CLUSTER] = task_scores.clusters[i]
    return out


def model_name(lm: Any, args: Mapping[str, Any]) -> str:
    """The name that lm-eval's tracker takes from the model's arguments; else what the model calls itself, or its kind.

    Args:
        lm: the model.
        args: the arguments of `simple_evaluate`, where it was called.
    """
    model = innermost(lm)
    named = (getattr(getattr(model, "config", None), "_name_or_path", None), args.get("model"), type(model).__name__)
    own = (getattr(model, "pretrained", None), getattr(model, "model", None))
    return str(name_of(args.get("model_args"), *own, *named))
