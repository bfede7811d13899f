"""The flag on `inspect eval`: our metrics join Inspect's own before its log is written.

No public hook comes between the results of a task and its log. So, for a task whose flag is on, the
function that computes the results is wrapped: a ContextVar set at the task's start reaches it. It is
a private symbol; if it is not what we know, the log's header is written again after the task's end,
through public functions only, and a panel shows the numbers at the end of the run.

Nothing here may take an eval down or change a native value: every fault ends in one warning.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise.analysis.drawing import recorded, with_record
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import MissingFieldError
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run
from harness_noise.errors import InputError
from harness_noise.results.rows import Estimate
from harness_noise.settings import Settings

from . import inject, inside, panel, rescore
from .clusters import Clusters, auto_hint, cluster_labels, own_clusters, spec_for, taken_clusters
from .flags import Flag
from .gather import Gathered, TaskAnswers, gather
from .grid import Grid, grid
from .header import RECORD
from .inject import _message
from .live import Live
from .live import current as _live
from .records import interrupted
from .rescore import USED, WRAPPED
from .rewriting import rewrite
from .whole import full_benchmark

if TYPE_CHECKING:
    from inspect_ai.hooks import RunEnd, SampleEnd, TaskEnd, TaskStart
    from inspect_ai.log import EvalLog, EvalResults, EvalSpec
    from inspect_ai.scorer import SampleScore
    from numpy.typing import NDArray


logger = logging.getLogger("harness_noise")
_runs: dict[str, list[Live]] = {}


def task_start(data: TaskStart, flag: Flag | None) -> None:
    """Remember the flag of this task, and see to it that its results pass by here."""
    if flag is None:
        _live.set(None)
    else:
        begin(data.spec, flag)


def begin(spec: EvalSpec, flag: Flag) -> Live:
    """The task that runs here from now on."""
    install()
    rescore.install(renew)
    live = Live(spec, flag)
    _runs.setdefault(spec.run_id, []).append(live)
    _live.set(live)
    return live


def task_off() -> None:
    _live.set(None)


def to_say(text: str) -> bool:
    """Say this of the task when it ends, once with what else there is; False if its flag is off."""
    live = _live.get()
    if live is not None:
        live.to_say.append(text)
    return live is not None


def install() -> bool:
    """Wrap Inspect's `eval_results` once; False if it is not the function that we know.

    Then no results pass by, which `task_end` sees.
    """
    try:
        from inspect_ai._eval.task import run

        original: Callable[..., Any] = run.eval_results
        if hasattr(original, WRAPPED):
            return True
        signature = inspect.signature(original)
    except Exception:  # noqa: BLE001  a private symbol may fail in any way
        return False
    if not signature.parameters.keys() >= USED:
        return False

    @functools.wraps(original)
    def eval_results(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        live = _live.get()
        if live is None:
            return out
        try:
            given = signature.bind(*args, **kwargs).arguments
            results, scores, samples = out[0], given["scores"], given["samples"]
            native = results.scores
        except Exception:  # noqa: BLE001  not the call that we know: the public way remains
            return out
        try:
            live.done, live.results = True, results
            live.warnings = add(live, results, scores, samples) if native else []
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  a fault here would lose the whole eval
            with suppress(Exception):
                live.warnings = [f"{live.spec.task}: no error bars ({_message(error)})"]
        return out

    setattr(eval_results, WRAPPED, original)
    run.eval_results = eval_results
    return True


def uninstall() -> None:
    """Give Inspect its own functions back."""
    from inspect_ai._eval.task import run

    rescore.uninstall()
    inside.uninstall()

    run.eval_results = getattr(run.eval_results, WRAPPED, run.eval_results)


def sample_end(data: SampleEnd) -> None:
    """Keep the scores of an answer that has gone into the log."""
    from inspect_ai.scorer import SampleScore

    live = _live.get()
    if live is None or live.spec.config.log_samples is False:
        return
    sample = data.sample
    if interrupted(sample.error, sample.scores):
        return
    live.logged[str(sample.id), sample.epoch] = {
        name: SampleScore(score=score, sample_id=sample.id, sample_metadata=sample.metadata)
        for name, score in (sample.scores or {}).items()
    }


def _cancelled() -> bool:
    """Whether the results that are being computed are those of a run that somebody ends."""
    from anyio import get_cancelled_exc_class

    try:
        return isinstance(sys.exception(), get_cancelled_exc_class())
    except RuntimeError:  # there is no event loop where a log is scored again
        return False


def _not_counted(live: Live, scores: Sequence[Mapping[str, SampleScore]]) -> list[Mapping[str, SampleScore]]:
    """Of a run that is being cancelled, the answers that are in its log already and not among `scores`.

    None where they cannot be told apart: `scores` are known by the very objects that were logged.
    """
    if not live.logged or not _cancelled():
        return []
    counted = {id(item.score) for row in scores for item in row.values()}
    more = [row for row in live.logged.values() if row and not any(id(x.score) in counted for x in row.values())]
    known = len(more) < len([row for row in live.logged.values() if row])
    return more if known else []


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The answers of a task as Inspect hands them over, or as we saw them go into the log."""

    rows: Sequence[Mapping[str, SampleScore]]
    grid: Grid
    metadata: Sequence[Mapping[str, Any] | None]
    """(n,) of the questions."""
    not_counted: NDArray[np.bool_]
    """(N,) whether Inspect's own values are not of this answer."""

    @classmethod
    def of(
        cls, scores: Sequence[Mapping[str, SampleScore]], more: Sequence[Mapping[str, SampleScore]], order: Any
    ) -> Answers | None:
        """None without any; those without an id are left out, as Inspect's own reducers do."""
        rows = [*scores, *more]
        if not all(rows) or None in (ids := [next(iter(row.values())).sample_id for row in rows]):
            return cls.of([row for row in scores if _has_id(row)], [row for row in more if _has_id(row)], order)
        if not rows:
            return None
        cells = grid(ids, order=order)
        metadata = [next(iter(rows[i].values())).sample_metadata for i in cells.first]
        return cls(rows, cells, metadata, np.arange(len(rows)) >= len(scores))

    def raw(self, scorer: str) -> list[Any] | None:
        """The values of a scorer, None where it gave none; None for one that nobody knows."""
        if not any(scorer in row for row in self.rows):
            return None
        return [None if (item := row.get(scorer)) is None else item.score.value for row in self.rows]


def _has_id(row: Mapping[str, SampleScore]) -> bool:
    return any(item.sample_id is not None for item in list(row.values())[:1])


def add(live: Live, results: EvalResults, scores: Sequence[Mapping[str, SampleScore]], samples: int) -> list[str]:
    """Append our metrics to the results of a task.

    Args:
        live: the task.
        results: Inspect's, with one EvalScore for each scorer, key and reducer; changed in place.
        scores: un-reduced, one mapping from scorer to score for each sample and epoch.
        samples: how many answers were asked for.

    Returns:
        What the user should know, one sentence each.
    """
    task = live.spec.task
    answers = Answers.of(scores, _not_counted(live, scores), live.spec.dataset.sample_ids)
    if answers is None:
        return []
    lacking = max(0, samples - _not_asked(results) - len(answers.rows))
    never = max(0, lacking - sum(not row for row in live.logged.values())) if _cancelled() else 0
    keys, metadata = answers.grid.keys, answers.metadata
    warnings: list[str] = []
    clusters: Clusters = (None, None)
    spec = spec_for(live.flag.cluster, task)
    if spec is None and all((doc or {}).get("cluster") is not None for doc in metadata):
        spec = "cluster"
    try:
        labels, words, warnings = cluster_labels(spec, task, keys, metadata)
        clusters = (labels, words)
    except (MissingFieldError, InputError) as error:
        warnings = [f"{task}: {error}; the questions count as independent"]
    open_ = spec_for(live.flag.cluster, task) in (None, "auto") and clusters[1] in (None, "cluster")
    if open_ and clusters[0] is None and (taken := taken_clusters(_record(results), keys))[0] is not None:
        clusters, open_ = taken, False
    found = gather(
        TaskAnswers(
            name=task,
            eval_scores=results.scores,
            answers=answers.grid,
            raw=cache(answers.raw),
            questions=Questions(keys, "sample id"),
            clusters=clusters,
            own=own_clusters(task, keys, metadata, warnings) if open_ else None,
            not_counted=answers.not_counted,
            n_not_seen=lacking - never,
        )
    )
    if spec == "auto" and clusters[0] is None and not found.own_clusters:
        warnings.append(auto_hint(task, metadata))
    late = int(answers.not_counted.sum())
    if late:
        warnings.append(
            f"{task}: the run was cancelled: Inspect's own values are of {len(answers.rows) - late} answers, the "
            f"noise of the {len(answers.rows)} that have gone into the log"
        )
    if never:
        warnings.append(f"{task}: the run was cancelled: {never} of {samples} answers were never given")
    fresh = _estimates(live, results, found, warnings)
    warnings += _remarks(task, [item for part in fresh.values() for item in part.values()], found)
    inject.replace_all([(results.scores[index], part) for index, part in fresh.items()])
    live.told = [(item, results.scores[index]) for index, part in fresh.items() for item in part.values()]
    if live.stopper is not None:
        live.stopper.inject(results)
        warnings += full_benchmark(live, results, found)
    return warnings


def _record(results: EvalResults) -> Any:
    """What we have written of the task's stopping; None where nothing stopped it."""
    return None if results.early_stopping is None else results.early_stopping.metadata.get(RECORD)


def _not_asked(results: EvalResults) -> int:
    """Answers that were not asked for, because the task was stopped early."""
    return 0 if results.early_stopping is None else len(results.early_stopping.early_stops)


def _estimates(
    live: Live, results: EvalResults, found: Gathered, warnings: list[str]
) -> dict[int, dict[str | None, Estimate]]:
    """For each EvalScore by its number, the estimates of its means by their key."""
    task = live.spec.task
    authors = inject.of_authors(results.scores)
    fresh: dict[int, dict[str | None, Estimate]] = {}
    for index, key, part, known in zip(found.indices, found.keys, found.scores, found.reproduced, strict=True):
        es = results.scores[index]
        if (es.scorer, es.name) in authors:
            if live.flag.settings != Settings():
                warnings.append(f"{task}: {part.scorer} keeps the noise() of the task, with the settings it has there")
            continue
        if not known:
            warnings.append(
                f"{task}: none of the native metrics of {part.scorer} is the mean of its scores: no error bars"
            )
            continue
        part = replace(part, native=None)  # compared already
        run = Run(model=live.spec.model, name=live.spec.eval_id, harness="inspect", scores=(part,))
        run = with_record(run, *recorded(_record(results)))
        try:
            fresh.setdefault(index, {})[key] = analyze_run(run, live.flag.settings).estimates[0]
        except InputError as error:
            warnings.append(str(error))
    return fresh


def _remarks(task: str, estimates: Sequence[Estimate], found: Gathered) -> list[str]:
    out = [*found.notes, *found.unreadable]
    codes = {code for item in estimates for code in item.diagnostics}
    if "singleton_clusters" in codes:
        out.append(f"{task}: every cluster holds one question, so clusters change nothing; is it the right key?")
    if "too_few_clusters" in codes:
        out.append(f"{task}: fewer than two clusters: no standard error")
    elif "too_few_questions" in codes:
        out.append(f"{task}: fewer than two questions: no standard error")
    lost = {item.scorer: item.n_missing for item in estimates}
    if len(set(lost.values())) > 1:
        each = ", ".join(f"{scorer} {n}" for scorer, n in lost.items() if n)
        out.append(f"{task}: answers without a score are left out: {each}")
    elif n := max(lost.values(), default=0):
        out.append(f"{task}: {n} answers have no score and are left out")
    return out


async def task_end(data: TaskEnd) -> None:
    """Say what there is to say, and take the public route if the wrapper was passed by."""
    from anyio import to_thread

    live = _live.get()
    if live is None:
        return
    if not live.done and data.log.results is not None and data.log.results.scores:
        try:
            # in a thread, because Inspect's synchronous readers start an event loop of their own
            live.shown = await to_thread.run_sync(rewrite, live, data.log)
        except Exception as error:  # noqa: BLE001  the eval is done and stays so
            live.warnings = [f"{live.spec.task}: no error bars ({_message(error)})"]
        live.done = True
    _live.set(None)
    _warn(live)
    if live.results is not None and live.shown is None:
        panel.shorten(live.results, data.log)


def run_end(data: RunEnd) -> None:
    """The panel of the public route, and the warnings of tasks that had no regular end."""
    lives = _runs.pop(data.run_id, [])
    for live in lives:
        _warn(live)
    shown = [live.shown for live in lives if live.shown is not None]
    if shown:
        panel.show(shown)
    try:
        looks = [(live.stopper.sequential, live.flag.settings.level) for live in lives if live.stopper is not None]
        panel.close([told for live in lives for told in live.told], looks)
    except Exception as error:  # noqa: BLE001  the evals are done and stay so
        logger.warning("noise: the closing lines could not be printed (%s)", _message(error))


def _warn(live: Live) -> None:
    """All that there is to say about a task, as one warning."""
    if warnings := dict.fromkeys([*live.warnings, *live.to_say]):
        logger.warning("noise: %s", "; ".join(warnings))
        live.warnings, live.to_say = [], []


def renew(log: EvalLog, results: Any, scores: Any, samples: int) -> None:
    """The noise of a log that is scored again, where its run or an export gave it any."""
    on = rescore.flag_of(log)
    if on is None or not results.scores:
        return
    warnings = add(Live(log.eval, on), results, scores, samples)
    if warnings:
        logger.warning("noise: %s", "; ".join(dict.fromkeys(warnings)))
