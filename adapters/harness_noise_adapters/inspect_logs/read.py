"""Inspect logs to Runs: `.eval` and `.json` files, and folders of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from harness_noise.analysis import drawing
from harness_noise.arrays import BoolArray
from harness_noise.data.clusters import FieldReader, Fields, MissingFieldError, labeller, text_label
from harness_noise.data.native_values import UNNAMED
from harness_noise.data.questions import Questions, occurrences
from harness_noise.data.scores import ReadOptions, Run, Scores, Skipped
from harness_noise.errors import FinalError, InputError
from harness_noise.io.joining import usable
from harness_noise.io.protocol import PartRead

from ..records import uncollected
from . import inject, logfile
from .clusters import TaskClusters, natural, outer_fields, spec_for
from .finding import logs_in
from .flags import cluster_text
from .gather import GatheredMeans, TaskAnswers, gather, grid, named_clusters
from .identity import PART, LogIdentity, marks, still_fits
from .logfile import LogFile, SampleLog
from .records import RECORD, Faults, Header, Keep, SampleQuestion, object_of, uncomputed
from .usage import with_usage


@dataclass(frozen=True, slots=True, eq=False)
class LogRun:
    """One log as it was read: the Run, and where in the log its scores come from."""

    path: Path
    header: Header
    run: Run
    gathered: GatheredMeans
    answers: bytes = b""
    """Which answers they are, see `identity.marks`."""


def read_one(path: Path, options: ReadOptions) -> PartRead:
    """One log, as `identity.joined` takes it."""
    try:
        log = read_log(path, options)
    except _NotAskedError as error:
        skipped, where = Skipped(error.header.task, "", "", "it was not asked for"), str(path)
        run = Run(error.header.model, where, "inspect", where, skipped=(skipped,), date=error.header.created)
        return PartRead((run,))
    head = log.header
    eval_key = (head.task, head.task_id, head.model, *head.dataset)
    return PartRead((log.run,), LogIdentity(path, eval_key, log.answers, head.computed or head.status == "success"))


@dataclass(eq=False)
class _NotAskedError(Exception):
    """The log's task is not one that `--task` names."""

    header: Header


def read_logs(folder: Path, options: ReadOptions) -> list[LogRun]:
    """All logs of a folder; those that cannot be used are notes of the others, see `harness_noise.io.joining.usable`.

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
    """One log, or, from their folder, the shards of a set: of each the newest log.

    Raises:
        InputError: it is not a log, it is unfinished, or it has nothing that can be analysed.
    """
    key = options.question_field(path)

    def accept(header: Header) -> list[str]:
        if options.tasks and not any(fnmatchcase(header.task, name) for name in options.tasks):
            raise _NotAskedError(header)
        if header.status == "started" and not header.scores:
            raise InputError(
                f"{path}: the eval has not finished (status started); wait for it, or finish it with "
                f"`inspect eval-retry {path}`"
            )
        return [key or "", *options.fields, *cluster_fields(header, _spec(header, options)[0])]

    keep = Keep(key is not None, bool(options.usage), options.apart, options.edits)
    logs = list({log.parent: log for log in logs_in(path)}.values()) if path.is_dir() else [path]
    with uncollected():  # only of files: in Inspect's own process its collector of garbage is left alone
        log_file = logfile.read(logs[0], accept, keep) if len(logs) == 1 else logfile.read_shards(logs, accept, keep)
        return assemble(path, log_file, options)


def cluster_fields(header: Header, spec: str | None) -> list[str]:
    """The SPECs of which the clusters of a log's rows may be: the one that is named, else those of the scorers."""
    return [spec or "cluster", *(cluster for es in header.scores for cluster in named_clusters(es))]


def _factors(part: Scores, header: Header, options: ReadOptions) -> dict[str, tuple[tuple[str, ...], ...]] | None:
    """The task's arguments as what each answer was made with; None where no factor is asked for."""
    n, K = part.values.shape
    labels = {name: text_label(header.task_args[name]) for name in options.factors if name in header.task_args}
    return {name: ((label,) * K,) * n for name, label in labels.items()} if options.factors else None


def _scored(path: Path, log_file: LogFile) -> Header:
    """The header, with what the samples hold where the run ended before Inspect computed its results.

    Raises:
        InputError: no sample has a score.
    """
    header = log_file.header
    if header.scores:
        return header
    if log_file.answers.scorers():
        return uncomputed(header, log_file.answers)
    if header.status == "success":
        raise InputError(f"{path}: no sample of the log has a score; `inspect score {path}` scores its answers")
    raise InputError(
        f"{path}: no sample of the log has a score (status {header.status}); `inspect eval-retry {path}` runs the rest"
    )


def _spec(header: Header, options: ReadOptions) -> tuple[str | None, bool]:
    """The cluster SPEC of a log, and whether the user asked for it now.

    Without one it is what the run was made with: the noise settings in its metadata, or the
    parameters of the metrics that we added.
    """
    spec = spec_for(options.cluster, header.task)
    if spec is not None:
        return spec, True
    setting = header.metadata.get("noise_cluster")
    if setting is not None:
        return spec_for(cluster_text(setting), header.task), False
    if "clusters" in object_of(header.stopping.get(RECORD), "", Faults()):
        return None, False  # the run has taken them from another, and no field of its samples has them
    for es in header.scores:
        for name in inject.injected(es):
            cluster = es.metrics[name].params.get("cluster")
            if cluster is not None and cluster not in named_clusters(es):  # those are found again by themselves
                return str(cluster), False
    return None, False


def assemble(path: Path, log_file: LogFile, options: ReadOptions, recorded: str | None = None) -> LogRun:
    """One log from what its file has, or a task that Inspect hands over.

    Args:
        path: of the log.
        log_file: what it has.
        options: what is read of it.
        recorded: SPEC of the clusters, of the run itself.

    Raises:
        InputError: it has nothing that can be analysed, or not the clusters that `options` name.
    """
    task = _task(path, replace(log_file, header=_scored(path, log_file)), options, recorded)
    header, notes, metadata = task.log.header, task.task_clusters.notes, task.task_clusters.metadata
    gathered = gather(task)
    if not gathered.means:
        reasons = "; ".join(dict.fromkeys(f"{skipped.scorer}: {skipped.reason}" for skipped in gathered.skipped))
        raise InputError(f"{path}: no score that is a mean over repeats and questions ({reasons or 'none at all'})")
    gathered.means.sort(key=lambda mean: not header.is_headline(mean.index))
    notes += _hints(task, gathered) + gathered.notes + _remarks(path, task.log)
    scores = [mean.scores for mean in gathered.means]
    heads = [mean.scores for mean in gathered.means if header.is_headline(mean.index)]
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
        headline=frozenset(
            (header.task, name, part.scorer) for part in heads for name in (part.metric, *(part.names or ()), UNNAMED)
        ),
        skipped=tuple(gathered.skipped),
        notes=tuple(notes),
    )
    n_asked = header.total_samples - header.not_asked
    if header.status != "success" and len(task.grid.keys) * header.epochs < n_asked:
        run = replace(run, scores=tuple(replace(x, diagnostics=(*x.diagnostics, PART)) for x in run.scores))
    answers = marks([row.mark for row in log_file.answers.rows.values()])
    return LogRun(path, header, _with_record(run, task), gathered, answers)


def _task(path: Path, log_file: LogFile, options: ReadOptions, recorded: str | None) -> TaskAnswers:
    """The answers that are gathered; what is to be said of them is among the notes of `task_clusters`."""
    header, rows = log_file.header, log_file.answers
    places = grid(*rows.places(), order=header.sample_ids)
    firsts = [rows.question(key, at) for key, at in zip(places.keys, places.first, strict=True)]
    task_clusters = TaskClusters(header.task, places.keys, [question.metadata for question in firsts])
    spec, by_user = _spec(header, options)
    spec = spec or spec_for(recorded, header.task)
    if by_user:
        _check_clusters(path, task_clusters, spec)
    return TaskAnswers(
        log=log_file,
        grid=places,
        questions=_questions(path, log_file, places.keys, firsts, options, task_clusters.notes),
        task_clusters=task_clusters,
        spec=spec,
        excluded=_invalidated(header, [row.invalid for row in rows.rows.values()], task_clusters.notes),
        missing=options.missing,
    )


def _hints(task: TaskAnswers, gathered: GatheredMeans) -> list[str]:
    """What to say of a log whose questions are known to have clusters, which nobody has named."""
    if not gathered.open_ or gathered.clusters[0] is not None or gathered.own_clusters:
        return []
    shared = natural(task.name, task.task_clusters.metadata) if task.log.paths and task.spec != "auto" else None
    return [] if shared is None else [f"{task.name}: its questions share {shared}; use `cluster='auto'`"]


def _with_record(run: Run, task: TaskAnswers) -> Run:
    """The run with what it has recorded of its stopping; of a log only as far as its scores are still those."""
    sequential, drawn = drawing.recorded(task.log.header.stopping.get(RECORD))
    if sequential and task.log.paths and not _still_decided(task):
        words = " and ".join(row["decision"] for row in sequential)
        note = f"{task.name}: its scores have changed since it was stopped, so what was decided then ({words}) is void"
        run, sequential = replace(run, notes=(*run.notes, note)), []
    return drawing.with_record(run, sequential, drawn)


def _still_decided(task: TaskAnswers) -> bool:
    """Whether the scores that decided are those that the log has, whatever is left out of them now."""
    rows = task.log.header.stopping.get(RECORD, {}).get("sequential", ())
    parts = [mean.scores for mean in gather(replace(task, missing="drop", excluded=None)).means]
    return all(still_fits(row, parts) for row in rows if isinstance(row, dict))


def _check_clusters(path: Path, task_clusters: TaskClusters, spec: str | None) -> None:
    """Refuse clusters that the user has named and the samples do not have."""
    try:
        task_clusters.labels(spec)
    except FinalError as error:
        raise FinalError(f"{path}: {error}; name another with `cluster`, or `cluster='none'`") from None


def _questions(
    path: Path,
    log_file: LogFile,
    ids: Sequence[str],
    firsts: Sequence[SampleQuestion],
    options: ReadOptions,
    notes: list[str],
) -> Questions:
    task, key = log_file.header.task, options.question_field(path)
    questions = Questions(
        keys=ids,
        kind="sample id",
        inputs=tuple(sample.input for sample in firsts),
        targets=tuple(sample.target for sample in firsts),
        texts=tuple(sample.text for sample in firsts),
        fields=_fields(task, ids, firsts, options),
        log=SampleLog(log_file.paths, ids),
    )
    if key is None:
        return questions
    label = labeller(key)
    try:
        keys = [
            label({"id": i, **dict(zip(("input", "target"), sample.whole or (), strict=False)), **sample.metadata})
            for i, sample in zip(ids, firsts, strict=True)
        ]
    except MissingFieldError as error:
        raise FinalError(
            f"{path}: the question field {key!r} does not exist; there are {', '.join(error.fields)}"
        ) from None
    if repeated := len(keys) - len(set(keys)):
        notes.append(f"{task}: {repeated} samples repeat an earlier value of {key}; they are numbered")
    # a key that the user vouches for is not checked against the text, which another harness words otherwise
    return replace(questions, keys=occurrences(keys), kind="question", inputs=None, targets=None)


def _fields(task: str, ids: Sequence[str], firsts: Sequence[SampleQuestion], options: ReadOptions) -> Fields | None:
    if not options.fields:
        return None
    reader = FieldReader(options.fields, task)
    for key, sample in zip(ids, firsts, strict=True):
        reader.add({"id": key, **sample.metadata})
    return reader.fields()


def _invalidated(header: Header, invalid: Sequence[bool], notes: list[str]) -> BoolArray | None:
    if not header.invalidated:
        return None
    out = np.array(invalid, dtype=bool)
    if out.any():
        notes.append(
            f"{header.task}: {int(out.sum())} of {len(out)} answers are invalidated and left out "
            "(Inspect's own values still count them)"
        )
    return out


def _remarks(path: Path, log: LogFile) -> list[str]:
    header, task = log.header, log.header.task
    n, n_asked = len(log.answers) + log.n_not_seen, header.total_samples - header.not_asked
    out = []
    if header.not_asked and RECORD not in header.stopping:
        out.append(f"{task}: {header.not_asked} of {header.total_samples} answers were left out by an early stopping")
    if n < n_asked:
        out.append(f"{task}: {n_asked - n} of {n_asked} answers were never given (status {header.status})")
    if not header.computed and header.status != "success":
        out.append(
            f"{task}: the run ended before Inspect computed its results (status {header.status}); the rows are of the "
            "answers that its log holds, as their samples were scored"
        )
    if header.epochs_reducer == [] and header.epochs > 1:
        out.append(
            f"{task}: run without an epochs reducer: Inspect's own stderr treats repeats as independent questions"
        )
    if len(log.paths) > 1:
        out.append(f"{path}: {len(log.paths)} shards, read as one run")
    if faults := log.faults.messages():
        out.append(
            f"{task}: the log is not quite as Inspect writes it, and was read all the same: "
            f"{'; '.join(faults[:5])}{'; …' if len(faults) > 5 else ''}"
        )
    return out
