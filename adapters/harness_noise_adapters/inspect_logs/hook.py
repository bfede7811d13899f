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
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness_noise.analysis import analyze_run
from harness_noise.clusters import MissingFieldError
from harness_noise.errors import InputError
from harness_noise.files import replacing_path
from harness_noise.results import Analysis, Estimate
from harness_noise.scores import Questions, ReadOptions, Run

from . import inject
from .flags import Flag
from .gather import cluster_labels, gather, grid, spec_for

if TYPE_CHECKING:
    from inspect_ai.hooks import RunEnd, TaskEnd, TaskStart
    from inspect_ai.log import EvalLog, EvalResults, EvalSpec
    from inspect_ai.scorer import SampleScore

    from .logfile import LogFile

logger = logging.getLogger("harness_noise")

WRAPPED = "_harness_noise_wraps"
BULKY = {"messages", "events", "events_data", "store", "attachments", "output", "timelines"}
"""What is not read of whole samples."""
USED = {"samples", "scores", "reducers", "scorers", "metrics"}
"""The arguments of `eval_results` without which it is not the function that we know."""


@dataclass(slots=True)
class Live:
    """One task of a run whose flag is on."""

    spec: EvalSpec
    flag: Flag
    done: bool = False
    """Whether its results have passed through our wrapper, or the public way is behind it."""
    warnings: list[str] = field(default_factory=list)
    """Of the last results; earlier ones were of an unfinished task."""
    shown: Analysis | None = None
    """What the panel at the end of the run has to show, because Inspect's own does not."""


_live: ContextVar[Live | None] = ContextVar("harness_noise_live", default=None)
_runs: dict[str, list[Live]] = {}


def task_start(data: TaskStart, flag: Flag | None) -> None:
    """Remember the flag of this task, and see to it that its results pass by here."""
    if flag is None:
        _live.set(None)
        return
    install()
    live = Live(data.spec, flag)
    _runs.setdefault(data.run_id, []).append(live)
    _live.set(live)


def task_off() -> None:
    _live.set(None)


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
            live.done = True
            live.warnings = add(live, results, scores, samples) if native else []
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  a fault here would lose the whole eval
            with suppress(Exception):
                live.warnings = [f"{live.spec.task}: no error bars ({_words(error)})"]
        return out

    setattr(eval_results, WRAPPED, original)
    run.eval_results = eval_results
    return True


def uninstall() -> None:
    """Give Inspect its own function back."""
    from inspect_ai._eval.task import run

    run.eval_results = getattr(run.eval_results, WRAPPED, run.eval_results)


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
    rows, firsts = scores, [next(iter(row.values()), None) for row in scores]
    ids = [None if item is None else item.sample_id for item in firsts]
    if None in ids:  # Inspect's own reducers leave them out, too
        kept = [i for i, key in enumerate(ids) if key is not None]
        rows, firsts, ids = [rows[i] for i in kept], [firsts[i] for i in kept], [ids[i] for i in kept]
    if not rows:
        return []
    answers = grid(ids, order=live.spec.dataset.sample_ids)
    metadata = [item.sample_metadata for i in answers.first if (item := firsts[i]) is not None]
    columns: dict[str, list[Any] | None] = {}

    def raw(scorer: str) -> list[Any] | None:
        if scorer not in columns:
            known = any(scorer in row for row in rows)
            columns[scorer] = (
                [None if (item := row.get(scorer)) is None else item.score.value for row in rows] if known else None
            )
        return columns[scorer]

    warnings: list[str] = []
    clusters: tuple[tuple[str, ...] | None, str | None] = (None, None)
    try:
        labels, words, warnings = cluster_labels(_spec(live.flag, task, metadata), task, answers.keys, metadata)
        clusters = (labels, words)
    except (MissingFieldError, InputError) as error:
        warnings = [f"{task}: {error}; the questions count as independent"]
    found = gather(
        task,
        results.scores,
        answers,
        raw,
        Questions(answers.keys, "sample id"),
        clusters,
        n_not_seen=max(0, samples - len(rows)),
    )
    warnings += found.notes
    fresh: dict[int, Estimate] = {}
    for index, part, known in zip(found.indices, found.scores, found.reproduced, strict=True):
        if not known:
            warnings.append(
                f"{task}: none of the native metrics of {part.scorer} is the mean of its scores: no error bars"
            )
            continue
        part = replace(part, native=None)  # compared already
        run = Run(model=live.spec.model, name=live.spec.eval_id, harness="inspect", scores=(part,))
        try:
            fresh[index] = analyze_run(run, live.flag.settings).estimates[0]
        except InputError as error:
            warnings.append(str(error))
    warnings += _remarks(task, list(fresh.values()), found.unreadable)
    inject.replace_all([(results.scores[index], estimate) for index, estimate in fresh.items()])
    return warnings


def _spec(flag: Flag, task: str, metadata: Sequence[Mapping[str, Any] | None]) -> str | None:
    """The SPEC of the flag, else the samples' own `cluster`."""
    spec = spec_for(flag.cluster, task)
    if spec is None and all((doc or {}).get("cluster") is not None for doc in metadata):
        return "cluster"
    return spec


def _remarks(task: str, estimates: Sequence[Estimate], skipped: Sequence[str]) -> list[str]:
    out = list(skipped)
    codes = {code for item in estimates for code in item.diagnostics}
    if "singleton_clusters" in codes:
        out.append(f"{task}: every cluster holds one question, so clusters change nothing; is it the right key?")
    if "too_few_clusters" in codes:
        out.append(f"{task}: fewer than two clusters: no standard error")
    lost = max((item.n_missing for item in estimates), default=0)
    if lost:
        out.append(f"{task}: {lost} answers have no score and are left out")
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
            live.warnings = [f"{live.spec.task}: no error bars ({_words(error)})"]
        live.done = True
    _live.set(None)
    _warn(live)


def rewrite(live: Live, log: EvalLog) -> Analysis | None:
    """The public route: read the finished log's scores, and write its header again."""
    from .export import insert
    from .read import assemble

    header, found = native(log.location, live.flag.cluster)
    if not len(found.answers):
        live.warnings = [f"{live.spec.task}: no error bars: with this Inspect they need logged samples"]
        return None
    read = assemble(Path(log.location), found, ReadOptions(), recorded=live.flag.cluster)
    analysis = analyze_run(read.run, live.flag.settings)
    assert header.results is not None
    assert log.results is not None
    insert(header.results, read, analysis)
    shown = log.results.model_copy(deep=True)
    insert(shown, read, analysis)
    _write_header(header, log.location)
    log.results.scores = shown.scores
    live.warnings = list(analysis.notes)
    return analysis


def native(location: str, spec: str | None) -> tuple[EvalLog, LogFile]:
    """A log as Inspect's own functions read it, wherever it is; `spec` names the clusters."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    from .logfile import needs_samples, of_native

    header = read_eval_log(location, header_only=True)
    plain = header.model_dump(mode="json", exclude={"samples", "reductions"})
    found = of_native(plain, [row.model_dump(mode="json") for row in read_eval_log_sample_summaries(location)])
    if needs_samples(found.header, found.answers, [spec or "cluster"]):
        whole = read_eval_log(location, exclude_fields=BULKY).samples or []
        found = of_native(plain, [row.model_dump(mode="json") for row in whole]) if whole else found
    return header, found


def _write_header(header: EvalLog, location: str) -> None:
    """Into a copy that takes the log's place, where it is a local file: a full disk must not cost the log."""
    from inspect_ai.log import write_eval_log

    path = Path(location)
    if not path.is_file():
        write_eval_log(header, location, header_only=True)
        return
    with replacing_path(path) as temporary:
        shutil.copyfile(path, temporary)
        kind: Literal["json", "eval"] = "json" if path.suffix == ".json" else "eval"
        write_eval_log(header, str(temporary), format=kind, header_only=True)


def run_end(data: RunEnd) -> None:
    """The panel of the public route, and the warnings of tasks that had no regular end."""
    lives = _runs.pop(data.run_id, [])
    for live in lives:
        _warn(live)
    shown = [live.shown for live in lives if live.shown is not None]
    if shown:
        _panel(shown)


def _panel(analyses: Sequence[Analysis]) -> None:
    from inspect_ai.util import display_type
    from rich.console import Console
    from rich.panel import Panel
    from rich.text import Text

    if display_type() == "none":
        return
    lines = []
    for analysis in analyses:
        for item in analysis.estimates:
            numbers = "  ".join(f"{name.removeprefix('noise_')} {x:.3f}" for name, x in inject.values(item).items())
            if numbers:
                lines.append(f"{item.model}  {item.task}  {item.scorer}  {item.metric} {item.mean:.3f}  {numbers}")
    Console().print(Panel(Text("\n".join(lines)), title="noise", title_align="left"))


def _warn(live: Live) -> None:
    """All that there is to say about a task, as one warning."""
    if live.warnings:
        logger.warning("noise: %s", "; ".join(dict.fromkeys(live.warnings)))
        live.warnings = []


def _words(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  anybody's exception, anybody's words
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
