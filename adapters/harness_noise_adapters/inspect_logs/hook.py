"""The flag on `inspect eval`: our metrics join Inspect's own before its log is written.

No public hook comes between the results of a task and its log. So, for a task whose flag is on, the
function that computes the results is wrapped: a ContextVar set at the task's start reaches it. It is
a private symbol; if it is not what we know, the log is written again after the task's end, as an
export does it, through public functions only.

The log always has everything. Inspect's panel stands four scorers side by side and shows every metric that is in
the results; after the log is written, the results are the panel's alone, so there they have what fits.

Nothing here may take an eval down or change a native value: every fault ends in one warning.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.analysis.mean import analyze_run
from harness_noise.data.notes import texts
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import InputError, are, counted, error_message
from harness_noise.extras import module_of
from harness_noise.results.parts import KEYWORD
from harness_noise.results.rows import Estimate
from harness_noise.settings import Settings

from ..extras import extra
from . import inject, private
from .clusters import TaskClusters, spec_for
from .export import insert, rewrite
from .flags import Flag
from .gather import too_few
from .live import Live, Logged, current
from .logfile import LogFile
from .read import LogRun, Recorded, assemble
from .records import RECORD, HandedOver, interrupted

if TYPE_CHECKING:
    from inspect_ai.hooks import RunEnd, SampleEnd, TaskEnd, TaskStart
    from inspect_ai.log import EvalLog, EvalMetric, EvalResults, EvalScore, EvalSpec
    from inspect_ai.scorer import SampleScore


logger = logging.getLogger("harness_noise")
_runs: dict[str, list[Live]] = {}


def task_start(data: TaskStart, flag: Flag | None) -> None:
    """Register the starting task if its flag is on, so that its results get error bars. Else clear the current task."""
    if flag is None:
        current.set(None)
    else:
        begin(data.spec, flag)


def begin(spec: EvalSpec, flag: Flag) -> Live:
    """Register a running task, and wrap Inspect's functions that compute results. Return the task."""
    install()
    live = Live(spec, flag)
    _runs.setdefault(spec.run_id, []).append(live)
    current.set(live)
    return live


def install() -> bool:
    """Wrap Inspect's functions so that results get our metrics. False if running tasks cannot be reached."""
    private.wrap_rescoring(renew)
    return private.wrap_results(_add_results, _not_added)


def refused(spec: EvalSpec, on: Flag) -> str | None:
    """Return why a task with the flag on must not start (wrong clusters, no stopping). None: it may, set to ask less.

    Where it is to ask less, Inspect will ask us.

    Clusters that its own metadata name and its samples do not have are a reason, where this Inspect shows its samples.
    """
    running, cluster = private.options(), on.cluster
    if cluster is not None and (spec.metadata or {}).get("noise_cluster") is not None:
        ids, dataset = set(spec.dataset.sample_ids or ()), getattr(getattr(running, "task", None), "dataset", ())
        samples = [sample for sample in dataset if sample.id in ids]
        metadata = [sample.metadata or {} for sample in samples]
        try:
            task_clusters = TaskClusters(spec.task, [str(sample.id) for sample in samples], metadata)
            task_clusters.by_spec(spec_for(cluster, spec.task))
        except InputError as error:
            return f"{spec.task}: noise_cluster: {error}"
    if not on.asking:
        return None
    why: str | None = extra("stopping.of_inspect.stopping", f"noise_{next(iter(on.asking))}").stop_early(
        running, on.asking
    )
    return why


def task_off() -> None:
    current.set(None)


def to_say(text: str) -> bool:
    """Keep a sentence to print at the current task's end. Return False if no task with the flag runs."""
    live = current.get()
    if live is not None:
        live.to_say.append(text)
    return live is not None


def _add_results(live: Live, results: EvalResults, scores: Sequence[Mapping[str, SampleScore]]) -> None:
    native = results.scores  # results without scores are none that we know: the public way remains
    live.done, live.results = True, results
    live.warnings = add(live, results, scores) if native else []


def _not_added(live: Live, error: BaseException) -> None:
    if live.done:  # else the public way remains
        _no_error_bars(live, error)


def _no_error_bars(live: Live, error: BaseException) -> None:
    live.warnings = [f"{live.spec.task}: no error bars ({error_message(error)})"]


def sample_end(data: SampleEnd) -> None:
    """Keep the scores of a sample just logged in case the run is cancelled, but of none that was itself cut off."""
    live, sample = current.get(), data.sample
    if live is None or live.spec.config.log_samples is False or interrupted(sample.error, sample.scores):
        return
    live.logged[str(sample.id), sample.epoch] = Logged(sample.id, sample.metadata, sample.scores or {})


def _cancelled() -> bool:
    """Return True if called while a cancellation is being handled. False without one, or without an event loop."""
    from anyio import get_cancelled_exc_class

    try:
        return isinstance(sys.exception(), get_cancelled_exc_class())
    except RuntimeError:  # there is no event loop when a log is scored again
        return False


def _not_counted(live: Live, scores: Sequence[Mapping[str, SampleScore]]) -> list[Mapping[str, SampleScore]]:
    """Return {scorer: SampleScore} of each logged answer that a cancelled run's results leave out, [] if unclear.

    Empty where they cannot be told apart: `scores` are known by the very objects that were logged.
    """
    from inspect_ai.scorer import SampleScore

    counted = {id(score.score) for row in scores for score in row.values()}
    logged = [answer for answer in live.logged.values() if answer.scores]
    more = [answer for answer in logged if not any(id(score) in counted for score in answer.scores.values())]
    if len(more) == len(logged):
        return []
    return [
        {
            name: SampleScore(score=score, sample_id=answer.sample, sample_metadata=answer.metadata)
            for name, score in answer.scores.items()
        }
        for answer in more
    ]


def handed_over(live: Live, results: EvalResults, scores: Sequence[Mapping[str, SampleScore]]) -> LogFile:
    """Return a running task's scores and results in the form of a log that was read.

    Args:
        live: the task.
        results: Inspect's, with one EvalScore for each scorer, key and reducer.
        scores: un-reduced, one mapping from scorer to score for each sample and epoch.
    """
    cancelled = _cancelled()
    answers = HandedOver([*scores, *_not_counted(live, scores)] if cancelled else scores)
    header = live.header(results=results.model_dump(), status="cancelled" if cancelled else "success")
    lacking = max(0, header.total_samples - header.not_asked - len(answers))
    if cancelled:  # the others were never given
        lacking = min(lacking, sum(not answer.scores for answer in live.logged.values()))
    return LogFile((), header, answers, answers.faults, n_not_seen=lacking)


def add(live: Live, results: EvalResults, scores: Sequence[Mapping[str, SampleScore]]) -> list[str]:
    """Add our metrics to a running task's results. Return sentences of warning. Raise if there is nothing to analyze.

    They are those that an export of its log would append.

    Returns:
        What the user should know, one sentence each.
    """
    task = handed_over(live, results, scores)
    if not len(task.answers):
        return []
    read = assemble(Path(live.spec.task), task, ReadOptions(), Recorded(live.flag.cluster, live.clusters))
    estimates, refused = _estimates(read.run, live.flag.settings)
    warnings = [*texts(read.run.notes), *refused, *_place_estimates(live, results, read, estimates)]
    if live.stopper is not None:
        live.stopper.inject(results)
        warnings += full_benchmark(live, results, read)
    return warnings


def _estimates(run: Run, settings: Settings) -> tuple[list[Estimate], list[str]]:
    """Return estimates of a run's scores and groups, each by itself, and the messages of those refused.

    A refusal leaves the other scores' estimates as they are.
    """
    estimates: list[Estimate] = []
    refused: list[str] = []
    alone = replace(run, scores=(), groups=(), skipped=())
    each = [replace(alone, scores=(part,)) for part in run.scores]
    for one in (*each, *(replace(alone, groups=(group,)) for group in run.groups)):
        try:
            estimates += analyze_run(one, settings).estimates
        except InputError as error:
            refused.append(str(error))
    return estimates, refused


def _place_estimates(live: Live, results: EvalResults, read: LogRun, estimates: Sequence[Estimate]) -> list[str]:
    """Add estimates to the score rows that they belong to. Return sentences for the user."""
    parts = insert(results, read, estimates)
    live.placed = [(row, results.scores[index]) for index, part in parts.items() for row in part.values()]
    return [*_reasons_left_out(live, results, read), *_remarks(live.spec.task, [row for row, _ in live.placed])]


def _reasons_left_out(live: Live, results: EvalResults, read: LogRun) -> list[str]:
    """Return sentences on scores without error bars, with reasons, and if we have settings on a task's own noise()."""
    task, means, authors = live.spec.task, read.gathered.means, inject.of_authors(results.scores)
    out = list(read.gathered.unreadable)
    reproduced = {mean.index for mean in means if mean.reproduced}
    for index in dict.fromkeys(mean.index for mean in means):
        es = results.scores[index]
        if (es.scorer, es.name) in authors:
            if live.flag.settings != Settings():
                out.append(f"{task}: {es.name} keeps the noise() of the task, with the settings it has there")
        elif index not in reproduced:
            why = f"none of the native metrics of {es.name} is known as a mean of its scores"
            out.append(f"{task}: {why}: no error bars")
    return out


def _remarks(task: str, estimates: Sequence[Estimate]) -> list[str]:
    out = []
    codes = {code for estimate in estimates for code in estimate.diagnostics}
    if "singleton_clusters" in codes:
        out.append(f"{task}: every cluster holds one question, so clusters change nothing. Is it the right key?")
    if (why := too_few(codes)) is not None:
        out.append(f"{task}: {why}")
    lost = {estimate.scorer: estimate.n_missing for estimate in estimates}
    if len(set(lost.values())) > 1:
        each = ", ".join(f"{scorer} {n}" for scorer, n in lost.items() if n)
        out.append(f"{task}: answers without a score are left out: {each}")
    elif n := max(lost.values(), default=0):
        out.append(f"{task}: {counted(n, 'answer has', 'answers have')} no score and {are(n)} left out")
    return out


async def task_end(data: TaskEnd) -> None:
    """Add our metrics to a task's log at its end, if not yet there or for measures, and print warnings.

    The public route is used if the wrapper was passed by, or for tokens and times, which only the log has of every
    answer.
    """
    from anyio import to_thread

    live = current.get()
    if live is None:
        return
    live.location = data.log.location or ""
    if (live.flag.measures or not live.done) and data.log.results is not None and data.log.results.scores:
        try:
            # in a thread, because Inspect's synchronous readers start an event loop of their own
            read, analysis = await to_thread.run_sync(rewrite, Path(data.log.location), live.flag)
            live.warnings += [
                *texts(analysis.notes),
                *_place_estimates(live, data.log.results, read, analysis.estimates),
            ]
            if live.results is not None:
                inject.put_measures(live.results, analysis.estimates)
        except Exception as error:  # noqa: BLE001  the eval is done and stays so
            if live.done:
                live.to_say.append(f"{live.spec.task}: its measures have no error bars ({error_message(error)})")
            else:
                _no_error_bars(live, error)
        live.done = True
    current.set(None)
    _warn(live)
    if live.results is not None:
        shorten(live.results, data.log)


def run_end(data: RunEnd) -> None:
    """At a run's end, print closing lines, and the warnings of tasks that ended irregularly."""
    lives = _runs.pop(data.run_id, [])
    for live in lives:
        _warn(live)
    try:
        stops = [live.stopper.outcome for live in lives if live.stopper is not None]
        close([pair for live in lives for pair in live.placed], stops, next_step(lives))
    except Exception as error:  # noqa: BLE001  the evals are done and stay so
        logger.warning("noise: the closing lines could not be printed (%s)", error_message(error))


def _warn(live: Live) -> None:
    """Log all warnings of a task as one message, once."""
    if warnings := dict.fromkeys([*live.warnings, *live.to_say]):
        logger.warning("noise: %s", "; ".join(warnings))
        live.warnings.clear()
        live.to_say.clear()


def renew(log: EvalLog, results: Any, scores: Any) -> None:
    """Add our metrics to a log that Inspect scores again, if it had them before."""
    on = private.flag_of(log)
    if on is None or not results.scores:
        return
    clusters = inject.clusters_of(log.results.scores) if log.results else {}
    warnings = add(Live(log.eval, on, clusters=clusters), results, scores)
    if on.measures:
        warnings.append(f"{log.eval.task}: `harness-noise export LOG -o DIR --measure NAME` adds its measures again")
    if warnings:
        logger.warning("noise: %s", "; ".join(dict.fromkeys(warnings)))


def full_benchmark(live: Live, results: EvalResults, read: LogRun) -> list[str]:
    """Add estimates of the whole benchmark to results, if the run has references and was not cut. Return notes.

    The estimates go into the record of the stopping, and beside the scores that they are of.

    Returns:
        What the user should know, one sentence each.
    """
    stopper, stopping = live.stopper, results.early_stopping
    if stopper is None or stopping is None or not stopper.references or stopper.cut:
        return []
    record = stopping.metadata.get(RECORD)
    if not isinstance(record, dict):
        return []
    scores = []
    for part in read.run.scores:
        questions = stopper.questions.at([stopper.index[key] for key in part.questions.keys])
        scores.append(replace(part, questions=questions, native=None))
    try:
        run = replace(read.run, path="", scores=tuple(scores))
        rows_, notes = module_of("complete").full_means([run], stopper.references, live.flag.settings, refuse=False)
    except InputError as error:
        return [str(error)]
    record["full_benchmark"] = [row.to_dict() for row in rows_]
    for row in rows_:
        for mean in read.gathered.means:
            if (mean.scores.metric, mean.scores.scorer) == (row.metric, row.scorer):
                inject.append_record(results.scores[mean.index], "full_benchmark", row.to_dict())
    return texts(notes)


SIDE_BY_SIDE = 4
"""The number of scorers that Inspect's panel shows in a row."""
FRAME = 4
"""Columns of the terminal that the frame of the panel takes."""
BETWEEN = 4
"""Columns around the name and the value of a metric."""
SHORT = {"noise_se": "noise_se", "noise_ci_low": "noise_low", "noise_ci_high": "noise_high"}
"""The metrics that are shown if there is no room for all, and their short names."""
NAMES = (*inject.FIELDS, inject.VAR_DATA)
OF_KEYS = "harness_noise/noise_"
"""Inspect's prefix for the values of a task's own `noise()` if it is a metric of a dictionary's keys."""
REASON = "data var. < 0"
"""Beside a total that is less than its part: the unbiased estimate of the data variance."""


def shorten(results: EvalResults, log: EvalLog) -> None:
    """Shorten our metrics for Inspect's screen in `results`, keeping all of them in `log`."""
    from inspect_ai.util import display_type
    from rich import get_console

    if display_type() == "none":
        return
    shown = shown_scores(results.scores, get_console().width)
    if log.results is results:
        log.results = results.model_copy()
    results.scores = shown


def shown_scores(scores: Sequence[EvalScore], width: int) -> list[EvalScore]:
    """Return copies of score rows to show: all metrics and reasons, or if too wide our SE and interval, short."""
    whole = [_with_reasons(es) for es in scores]
    rows = [whole[i : i + SIDE_BY_SIDE] for i in range(0, len(whole), SIDE_BY_SIDE)]
    if all(sum(map(_width, row)) + FRAME <= width for row in rows):
        return whole
    return [_short(es) for es in scores]


def _width(es: EvalScore) -> int:
    rows = [len(name) + len(f"{metric.value:.3f}") + BETWEEN for name, metric in es.metrics.items()]
    return max([len(es.name) + BETWEEN, *rows])


def _with_reasons(es: EvalScore) -> EvalScore:
    metrics: dict[str, EvalMetric] = {}
    for name, metric in es.metrics.items():
        metrics[name] = metric
        var = (metric.metadata or {}).get("var_data")
        if metric.group == inject.GROUP and var is not None and name.startswith("noise_prediction"):
            reason = name.replace("noise_prediction", REASON, 1)
            metrics[reason] = metric.model_copy(update={"name": reason, "value": float(var)})
    return es.model_copy(update={"metrics": metrics})


def _short(es: EvalScore) -> EvalScore:
    metrics: dict[str, EvalMetric] = {}
    for name, metric in es.metrics.items():
        stem = name.removeprefix(OF_KEYS)
        base = next((ours for ours in NAMES if stem == ours or stem.startswith(ours + "_")), None)
        if base is None or metric.group != inject.GROUP:
            metrics[name] = metric
        elif base in SHORT:
            metrics[SHORT[base] + stem.removeprefix(base)] = metric
    return es.model_copy(update={"metrics": metrics})


def close(placed: Sequence[tuple[Estimate, EvalScore]], stops: Sequence[Any], step: str) -> None:
    """Print a run's closing lines, a line on each stop, and the next step. Nothing without estimates or display."""
    from inspect_ai.util import display_type
    from rich.console import Console
    from rich.text import Text

    from harness_noise.extras import display_of
    from harness_noise.report.sentences import closing_lines

    if not placed or display_type() == "none":
        return
    own = {id(estimate): es.metrics.get("stderr") for estimate, es in placed}

    def native_se(estimate: Estimate) -> float | None:
        metric = own[id(estimate)]
        return float(metric.value) if metric is not None and metric.value > 0 else None

    lines = closing_lines([estimate for estimate, _ in placed], "Inspect", native_se)
    lines += [display_of(KEYWORD).stopped(record) for record in stops if record is not None]
    for line in lines:
        Console().print(Text(line))
    Console().print(Text(step), soft_wrap=True)  # a command to copy has no line breaks of ours


def next_step(lives: Sequence[Live]) -> str:
    """Return a sentence with the next command, for the first log that was decided or stopped early, else the first."""
    early = [live for live in lives if live.stopper is not None and _stopped_early(live.stopper.outcome)]
    decided = [live for live in early if live.stopper.asking.against is not None]
    which = "this run" if len(lives) == 1 else "the first run"
    if decided:
        against = _quoted_path(decided[0].stopper.asking.against)
        return f"Next: harness-noise compare {_log(decided)} {against} shows the decision again."
    if early:
        return f"Next: harness-noise analyze {_log(early)} shows {which} again."
    return f"Next: harness-noise compare {_log(lives)} BASELINE tests {which} against another one."


def _stopped_early(record: Any) -> bool:
    return record is not None and not record.complete


def _log(lives: Sequence[Live]) -> str:
    """Return the first known log's path as typed in a shell, "LOG" if none is known."""
    return next((_quoted_path(live.location) for live in lives if live.location), "LOG")


def _quoted_path(place: str | os.PathLike[str]) -> str:
    """Return a path or URL quoted for a shell, relative if it lies below the working directory."""
    text = os.fspath(place)
    near = os.path.relpath(text) if Path(text).is_absolute() else text
    return shlex.quote(text if near.startswith(os.pardir) else near)
