"""Inspect logs to Runs: `.eval` and `.json` files, and folders of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.analysis import drawing
from harness_noise.arrays import BoolArray
from harness_noise.data.clusters import FieldReader, Fields, FileSpec, MissingFieldError, Spec, namer, value_text
from harness_noise.data.doubled import find_doubles
from harness_noise.data.native_values import UNNAMED
from harness_noise.data.notes import Note, natural_clusters
from harness_noise.data.questions import Questions, occurrences
from harness_noise.data.scores import ReadOptions, Run, Scores, Skipped
from harness_noise.errors import FinalError, InputError, are, counted
from harness_noise.io.joining import usable
from harness_noise.io.protocol import PartRead
from harness_noise.results.parts import STOPS

from ..records import uncollected
from . import inject, logfile
from .clusters import INPUT, TaskClusters, is_auto, natural, outer_fields, spec_for
from .finding import logs_in
from .flags import cluster_text, flag
from .gather import GatheredMeans, TaskAnswers, gather, grid, named_clusters
from .grouped import group_keys
from .identity import PART, LogIdentity, late_answers, marks, still_fits
from .logfile import LogFile, LogTexts, SampleLog
from .records import RECORD, Faults, Header, Keep, SampleQuestion, object_of, uncomputed
from .usage import measurable, with_usage


@dataclass(frozen=True, slots=True, eq=False)
class LogRun:
    """One log as it was read: the Run, and where in the log its scores come from."""

    path: Path
    header: Header
    run: Run
    gathered: GatheredMeans
    answers: bytes = b""
    """Marks of the answers, by which they are recognised (see `identity.marks`)."""


def read_one(path: Path, options: ReadOptions) -> PartRead:
    """Read a log as a run with its `LogIdentity`, or one not asked for as an empty run. Refuse one without scores."""
    try:
        log = read_log(path, options)
    except _NotAskedError as error:
        skipped, where = Skipped(error.header.task, "", "", "it was not asked for"), str(path)
        run = Run(error.header.model, where, "inspect", where, skipped=(skipped,), date=error.header.created)
        return PartRead((run,))
    head = log.header
    run = replace(log.run, notes=(*log.run.notes, *_lost_flag(log)))
    eval_key = (head.task, head.task_id, head.model, *head.dataset)
    return PartRead((run,), LogIdentity(path, eval_key, log.answers, head.computed or head.status == "success"))


@dataclass(eq=False)
class _NotAskedError(Exception):
    """The error for a log whose task is not among the tasks that `--task` names."""

    header: Header


def _lost_flag(log: LogRun) -> list[Note]:
    """Return [note] if a log's metadata ask for error bars but its results have none.

    An export, which writes them, does not ask.
    """
    header = log.header
    if not header.computed or inject.of_authors(header.scores):
        return []
    try:
        on = flag(header.metadata, {}, of_file=True) is not None
    except InputError:  # a value that is not understood: the run itself has refused it
        return []
    if not on or any(map(inject.injected, header.scores)) or not any(len(part.values) > 1 for part in log.run.scores):
        return []
    other = list(dict.fromkeys(es.reducer for es in header.scores if es.reducer not in (None, "mean")))
    if other and len(other) == len({es.reducer for es in header.scores}):
        said = (
            "its metadata ask for error bars (noise), which are written for means over repeats, and its epochs were "
            f"reduced by {', '.join(map(str, other))}"
        )
        return [Note("flag_without_effect", said).of(header.task)]
    said = (
        "its metadata ask for error bars (noise), and it holds none: our hook did not run (see INSPECT_REQUIRED_HOOKS "
        "in the docs), or the log was scored again or recovered without it. `export` writes them"
    )
    return [Note("flag_without_effect", said).of(header.task)]


def read_logs(folder: Path, options: ReadOptions) -> list[LogRun]:
    """Read a folder's logs as LogRuns, copies too. Note unusable ones on others (`strict`: refuse). Refuse if all are.

    Raises:
        InputError: none can be used, or one lacks a field that the user named.
    """
    logs: list[LogRun] = []
    answers: list[Run | InputError] = []
    for path in logs_in(folder):
        try:
            logs.append(read_log(path, options))
        except InputError as error:
            error.path = str(path)
            answers.append(error)
        else:
            answers.append(logs[-1].run)
    runs = usable(answers, folder, strict=options.strict)
    return [replace(log, run=run) for log, run in zip(logs, runs, strict=True)]


def read_log(path: Path, options: ReadOptions) -> LogRun:
    """Read a log, or the newest log of each of a folder's shards, as a LogRun. Raise if unasked or nothing to analyze.

    Raises:
        InputError: it is not a log, it is unfinished, or it has nothing that can be analysed.
    """
    key = options.question_field(path)

    def accept(header: Header) -> list[str]:
        if options.tasks and not any(fnmatchcase(header.task, name) for name in options.tasks):
            raise _NotAskedError(header)
        if header.status == "started" and not header.scores:
            raise InputError(
                f"{path}: the eval has not finished (status started). Wait for it, or finish it with "
                f"`inspect eval-retry {path}`"
            )
        return [key or "", *options.fields, *cluster_fields(header, _spec(header, options))]

    keep = Keep(key is not None, bool(options.usage), options.apart, options.edits)
    logs = list({log.parent: log for log in logs_in(path)}.values()) if path.is_dir() else [path]
    with uncollected():  # only of files: in Inspect's own process its collector of garbage is left alone
        log_file = logfile.read(logs[0], accept, keep) if len(logs) == 1 else logfile.read_shards(logs, accept, keep)
        return assemble(path, log_file, options)


def cluster_fields(header: Header, spec: Spec | None) -> list[str]:
    """Return the fields that clusters need: the SPEC (else "cluster") and the keys that metrics cluster or group by."""
    text = spec.text if isinstance(spec, FileSpec) else spec
    return [text or "cluster", *(key for es in header.scores for key in (*named_clusters(es), *group_keys(es.metrics)))]


def _factors(part: Scores, header: Header, options: ReadOptions) -> dict[str, tuple[tuple[str, ...], ...]] | None:
    """Return {factor: (n, K) levels} from the task's arguments, None if no factor is asked for."""
    n, K = part.values.shape
    levels = {name: value_text(header.task_args[name]) for name in options.factors if name in header.task_args}
    return {name: ((level,) * K,) * n for name, level in levels.items()} if options.factors else None


def _scored(path: Path, log_file: LogFile) -> Header:
    """Return the log's header, with score rows made from the samples if Inspect has none. Refuse if there is no score.

    Raises:
        InputError: no sample has a score.
    """
    header = log_file.header
    if header.scores:
        return header
    if log_file.answers.scorers():
        return uncomputed(header, log_file.answers)
    if header.status == "success":
        raise InputError(f"{path}: no sample of the log has a score. `inspect score {path}` scores its answers")
    raise InputError(
        f"{path}: no sample of the log has a score (status {header.status}). `inspect eval-retry {path}` runs the rest"
    )


def _spec(header: Header, options: ReadOptions) -> Spec | None:
    """Return the cluster SPEC of a log: the user's, else what the run or an export recorded, or None.

    An export is the last that chose. Else it is what the run was made with: the noise settings in its metadata, or the
    parameters of the metrics that we added.
    """
    spec = spec_for(options.cluster, header.task)
    if spec is None and (exported := header.exported.get("cluster")) is not None:
        spec = spec_for(FileSpec(cluster_text(exported)), header.task)
    if spec is not None:
        return spec
    setting = header.metadata.get("noise_cluster")
    if setting is not None:
        return spec_for(FileSpec(cluster_text(setting)), header.task)
    if "clusters" in object_of(header.stopping.get(RECORD), "", Faults()):
        return None  # the run has taken them from another, and no field of its samples has them
    for es in header.scores:
        for name in inject.injected(es):
            cluster = es.metrics[name].params.get("cluster")
            if cluster is not None and cluster not in named_clusters(es):  # those are found again by themselves
                return FileSpec(str(cluster))
    return None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The clusters that a live or rescored run knows before it is a file."""

    spec: Spec | None = None
    clusters: Mapping[str, str] = field(default_factory=dict)
    """Sample id → cluster, as its log has held them."""


NOT_LIVE = Recorded()


def assemble(path: Path, log_file: LogFile, options: ReadOptions, recorded: Recorded = NOT_LIVE) -> LogRun:
    """Make a LogRun from a log file's content, or from a running task's. Refuse one without anything to analyze.

    Args:
        path: of the log.
        log_file: what it has.
        options: what is read of it.
        recorded: of a run that is live, or is scored again: what it knows of its clusters.

    Raises:
        InputError: it has nothing that can be analysed, or not the clusters that `options` name.
    """
    task = _task(path, replace(log_file, header=_scored(path, log_file)), options, recorded)
    header, notes, metadata = task.log.header, task.task_clusters.notes, task.task_clusters.metadata
    gathered = gather(task)
    if not (gathered.means or gathered.grouped):
        reasons = "; ".join(dict.fromkeys(f"{skipped.scorer}: {skipped.reason}" for skipped in gathered.skipped))
        raise InputError(f"{path}: no score that is a mean over repeats and questions ({reasons or 'none at all'})")
    gathered.means.sort(key=lambda mean: not header.is_headline(mean.index))
    notes += _hints(task, gathered) + gathered.notes + _remarks(path, task.log)
    scores = [mean.scores for mean in gathered.means]
    heads = [mean.scores for mean in gathered.means if header.is_headline(mean.index)]
    headed = [grouped.group for grouped in gathered.grouped if header.is_headline(grouped.index)]
    if options.usage:
        scores, remarks = with_usage(scores, task, options.usage)
        notes += remarks
    run = Run(
        model=header.model,
        name=str(path),
        harness="inspect",
        path=str(path),
        date=header.created,
        scores=tuple(
            replace(part, outer=outer_fields(part, metadata), factors=_factors(part, header, options))
            for part in scores
        ),
        parts=tuple(part for grouped in gathered.grouped for part in grouped.parts),
        groups=tuple(grouped.group for grouped in gathered.grouped),
        headline=frozenset(
            (
                *(group.key for group in headed),
                *(
                    (header.task, name, part.scorer)
                    for part in heads
                    for name in (part.metric, *(part.names or ()), UNNAMED)
                ),
            )
        ),
        skipped=tuple(gathered.skipped),
        notes=tuple(notes),
        measurable=measurable(task) if options.usage else (),
    )
    n_asked = header.total_samples - header.not_asked
    if header.status != "success" and len(task.grid.keys) * header.epochs < n_asked:
        run = replace(run, scores=tuple(replace(x, diagnostics=(*x.diagnostics, PART)) for x in run.scores))
    answers = marks([row.mark for row in log_file.answers.rows.values()])
    return LogRun(path, header, _with_record(run, task), gathered, answers)


def _task(path: Path, log_file: LogFile, options: ReadOptions, recorded: Recorded) -> TaskAnswers:
    """Return a log's answers by question and epoch, with clusters. Refuse named clusters that are not there.

    What is to be said of them is among the notes of `task_clusters`.
    """
    header, rows = log_file.header, log_file.answers
    places = grid(*rows.places(), order=header.sample_ids)
    firsts = [rows.question(key, at) for key, at in zip(places.keys, places.first, strict=True)]
    metadata = [question.metadata for question in firsts]
    clusters = recorded.clusters or inject.clusters_of(header.scores)
    inputs = [f"{sample.input} {sample.target}" for sample in firsts] if all(x.input for x in firsts) else None
    task_clusters = TaskClusters(header.task, places.keys, metadata, written=clusters, inputs=inputs)
    spec = spec_for(options.cluster, header.task)
    if spec is not None:
        _check_clusters(path, task_clusters, spec)
    return TaskAnswers(
        log=log_file,
        grid=places,
        questions=_questions(path, log_file, places.keys, firsts, options, task_clusters.notes),
        task_clusters=task_clusters,
        spec=spec or spec_for(recorded.spec, header.task) or _spec(header, options),
        excluded=_invalidated(header, [row.invalid for row in rows.rows.values()], task_clusters.notes),
        missing=options.missing,
        answers=_answer_texts(log_file, places.keys),
    )


def _answer_texts(log_file: LogFile, ids: Sequence[str]) -> LogTexts | None:
    if not log_file.paths:
        return None
    return LogTexts(log_file.paths, ids, sorted({epoch for _, epoch in log_file.answers.rows}))


def _hints(task: TaskAnswers, gathered: GatheredMeans) -> list[Note]:
    """Return [note] if a log's questions have known clusters that the user has not asked for."""
    if not gathered.open_ or gathered.clusters[0] is not None or gathered.own_clusters:
        return []
    shared = natural(task.name, task.task_clusters.metadata) if task.log.paths and not is_auto(task.spec) else None
    return [] if shared is None else [natural_clusters(task.name, shared)]


def _with_record(run: Run, task: TaskAnswers) -> Run:
    """Return the run with late answers marked and its stopping record. If scores changed: a note, no decision."""
    stops, drawn = drawing.read_block(task.log.header.stopping.get(RECORD))
    if stops and task.log.paths and not _still_decided(task):
        words = " and ".join(row["decision"] for row in stops)
        said = f"its scores have changed since it was stopped, so what was decided then ({words}) is void"
        note = Note("decision_void", said).of(task.name)
        run, stops = replace(run, notes=(*run.notes, note)), []
    return drawing.with_record(_with_late(run, task), stops, drawn)


def _with_late(run: Run, task: TaskAnswers) -> Run:
    """Return the run with the answers marked that were still running when it was stopped."""
    late = [answer for row in _stops(task) if isinstance(row.get("late"), list) for answer in row["late"]]
    ids = task.grid.keys

    def marked(part: Scores) -> Scores:
        return replace(part, late=late_answers(late, ids, part.values.shape[1]))

    return replace(run, scores=tuple(map(marked, run.scores))) if late else run


def _still_decided(task: TaskAnswers) -> bool:
    """Return True if the log still has the scores with which stopping was decided.

    Excluded and missing answers are left out of the comparison.
    """
    parts = [mean.scores for mean in gather(replace(task, missing="drop", excluded=None)).means]
    return all(still_fits(row, parts) for row in _stops(task))


def _stops(task: TaskAnswers) -> list[dict[str, Any]]:
    rows = object_of(task.log.header.stopping.get(RECORD), "", Faults()).get(STOPS)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _check_clusters(path: Path, task_clusters: TaskClusters, spec: Spec) -> None:
    """Refuse clusters that the user named and the samples do not have."""
    try:
        task_clusters.by_spec(spec)
    except FinalError as error:
        raise FinalError(f"{path}: {error}. Name another with `cluster`, or `cluster='none'`") from None


def _questions(
    path: Path,
    log_file: LogFile,
    ids: Sequence[str],
    firsts: Sequence[SampleQuestion],
    options: ReadOptions,
    notes: list[Note],
) -> Questions:
    task, key = log_file.header.task, options.question_field(path)
    known = all(sample.input for sample in firsts)  # of a task that Inspect hands over they are not
    questions = Questions(
        keys=ids,
        kind="sample id",
        inputs=tuple(sample.input for sample in firsts) if known else None,
        targets=tuple(sample.target for sample in firsts) if known else None,
        doubles=find_doubles([f"{sample.input} {sample.target}" for sample in firsts]) if known else (),
        by_words=INPUT,
        texts=tuple(sample.text for sample in firsts),
        fields=_fields(task, ids, firsts, options),
        log=SampleLog(log_file.paths, ids),
    )
    if key is None:
        return questions
    name = namer(key)
    try:
        keys = [
            name({"id": i, **dict(zip(("input", "target"), sample.whole or (), strict=False)), **sample.metadata})
            for i, sample in zip(ids, firsts, strict=True)
        ]
    except MissingFieldError as error:
        raise FinalError(
            f"{path}: the question field {key!r} does not exist. There are {', '.join(error.fields)}"
        ) from None
    if repeated := len(keys) - len(set(keys)):
        again = counted(repeated, "sample repeats", "samples repeat")
        said = f"{again} an earlier value of {key} and {are(repeated)} numbered"
        notes.append(Note("numbered", said).of(task))
    # a key that the user vouches for is not checked against the text, which another harness words otherwise
    return replace(questions, keys=occurrences(keys), kind="question", inputs=None, targets=None)


def _fields(task: str, ids: Sequence[str], firsts: Sequence[SampleQuestion], options: ReadOptions) -> Fields | None:
    if not options.fields:
        return None
    reader = FieldReader(options.fields, task)
    for key, sample in zip(ids, firsts, strict=True):
        reader.add({"id": key, **sample.metadata})
    return reader.fields()


def _invalidated(header: Header, invalid: Sequence[bool], notes: list[Note]) -> BoolArray | None:
    if not header.invalidated:
        return None
    out = np.array(invalid, dtype=bool)
    if out.any():
        said = (
            f"{int(out.sum())} of {len(out)} answers are invalidated and left out (Inspect's own values still count "
            "them)"
        )
        notes.append(Note("invalidated", said).of(header.task))
    return out


def _remarks(path: Path, log: LogFile) -> list[Note]:
    header, task = log.header, log.header.task
    n, n_asked = len(log.answers) + log.n_not_seen, header.total_samples - header.not_asked
    out = []
    if header.not_asked and RECORD not in header.stopping:
        said = f"{header.not_asked} of {header.total_samples} answers were left out by an early stopping"
        out.append(Note("ended_early", said).of(task))
    if n < n_asked:
        said = f"{n_asked - n} of {n_asked} answers were never given (status {header.status})"
        out.append(Note("ended_early", said).of(task))
    if not header.computed and header.status != "success":
        said = (
            f"the run ended before Inspect computed its results (status {header.status}). The rows are of the answers "
            "that its log holds, as their samples were scored"
        )
        out.append(Note("no_native_values", said).of(task))
    if header.epochs_reducer == [] and header.epochs > 1:
        said = "run without an epochs reducer: Inspect's own stderr treats repeats as independent questions"
        out.append(Note("no_reducer", said).of(task))
    if len(log.paths) > 1:
        out.append(Note("shards", f"{path}: {len(log.paths)} shards, read as one run"))
    if faults := log.faults.messages():
        said = (
            "the log is not quite as Inspect writes it, and was read all the same: "
            f"{'; '.join(faults[:5])}{'; …' if len(faults) > 5 else ''}"
        )
        out.append(Note("odd_log", said).of(task))
    return out
