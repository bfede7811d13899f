"""Inspect logs to Runs: `.eval` and `.json` files, and folders of them.

Scores come from the sample summaries, which are small. The samples are read in full only where a
summary has lost something that counts: an invalidation, a long input, a long cluster value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from harness_noise.adapters import PartRead
from harness_noise.clusters import MissingFieldError, labeller, text_label
from harness_noise.errors import InputError
from harness_noise.scores import Questions, ReadOptions, Run, content_hash, occurrences, with_groups

from . import bounds, inject
from .finding import logs_in
from .flags import cluster_text
from .gather import Clusters, Gathered, Grid, auto_hint, cluster_labels, gather, grid, own_clusters, spec_for
from .means import names_cluster
from .presets import natural

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample, EvalSampleSummary
    from inspect_ai.model import ChatMessage

    Row: TypeAlias = EvalSample | EvalSampleSummary

CUT_TEXT = "(content truncated)"
CUT_OBJECT = "Key removed from summary (> 1k)"
MEDIA = re.compile(r"\((Image|Audio|Video|Document|Data|Reasoning|Tool_use)\)")
BULKY = {"messages", "events", "events_data", "store", "attachments", "output", "timelines"}


class FieldError(InputError):
    """The samples lack a field that the user named; of a folder, too, an error and not a note."""


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """One log as it was read: the Run, and where in the log its scores come from."""

    path: Path
    header: EvalLog
    run: Run
    found: Gathered


@dataclass(frozen=True, slots=True)
class About:
    """What a log says of itself, for those that lie beside it."""

    path: Path
    task: str
    task_id: str
    """The same for a log, its copies and its retries."""
    run_id: str
    """The same for all logs of one `inspect eval`."""
    created: str

    @property
    def key(self) -> str:
        return self.task_id or str(self.path)


Known: TypeAlias = tuple[Run, About]


def read_one(path: Path, options: ReadOptions) -> PartRead:
    """One log, as `join` takes it."""
    log = read_log(path, options)
    head = log.header.eval
    return PartRead((log.run,), About(path, head.task, head.task_id, head.run_id, head.created))


def join(folder: Path, found: Sequence[PartRead | InputError], options: ReadOptions) -> list[Run | InputError]:
    """All runs of a folder, or of one log.

    Logs of one model are one Run if they are of different tasks; if not, they are one Run for each
    `inspect eval` that wrote them, or in the last resort one for each log. A log that cannot be used is
    a note of the first that can, unless it lacks a field that the user named.
    """
    missing: list[Run | InputError] = [item for item in found if isinstance(item, FieldError)]
    refused = [item for item in found if isinstance(item, InputError) and not isinstance(item, FieldError)]
    logs: list[Known] = [(item.runs[0], item.about) for item in found if isinstance(item, PartRead)]
    if not logs:
        return missing or [_none_of(folder, refused)]
    kept, more = _once(logs)
    first, about = kept[0]
    kept[0] = (replace(first, notes=(*first.notes, *_left_out(refused), *more)), about)
    runs = [_attempt(_merge(folder, group), options) for group in _grouped(kept)]
    return missing + runs


def _attempt(run: Run, options: ReadOptions) -> Run | InputError:
    try:
        return with_groups(run, options.groups)
    except InputError as error:
        return error


def read_logs(folder: Path, options: ReadOptions) -> list[Log]:
    """All logs of a folder; those that cannot be used are notes of the first one that can.

    Raises:
        InputError: none can be used, or one lacks a field that the user named.
    """
    logs: list[Log] = []
    refused: list[InputError] = []
    for path in logs_in(folder):
        try:
            logs.append(read_log(path, options))
        except FieldError:
            raise
        except InputError as error:
            refused.append(error)
    if not logs:
        raise _none_of(folder, refused)
    first = replace(logs[0], run=replace(logs[0].run, notes=(*logs[0].run.notes, *_left_out(refused))))
    return [first, *logs[1:]]


def _none_of(folder: Path, refused: Sequence[InputError]) -> InputError:
    if len(refused) == 1:
        return refused[0]
    return InputError(f"{folder}: none of its {len(refused)} Inspect logs can be used; the first: {refused[0]}")


def _left_out(refused: Sequence[InputError]) -> list[str]:
    return [f"left out: {error}" for error in refused]


def _once(logs: Sequence[Known]) -> tuple[list[Known], list[str]]:
    """Of a log, its copies and its retries the newest: they hold the same answers, which must not count twice."""
    newest: dict[str, Known] = {}
    for log in logs:
        key = log[1].key
        if key not in newest or log[1].created > newest[key][1].created:
            newest[key] = log
    notes = [
        f"left out: {about.path}: has the answers of {newest[about.key][1].path}, as its copy or earlier try"
        for _, about in logs
        if about != newest[about.key][1]
    ]
    return list(newest.values()), notes


def _grouped(logs: Sequence[Known]) -> list[list[Known]]:
    models: dict[str, list[Known]] = {}
    for log in logs:
        models.setdefault(log[0].model, []).append(log)
    out: list[list[Known]] = []
    for group in models.values():
        if _distinct(group):
            out.append(group)
            continue
        by_run: dict[str, list[Known]] = {}
        for log in group:
            by_run.setdefault(log[1].run_id, []).append(log)
        for part in by_run.values():
            out += [part] if _distinct(part) else [[log] for log in part]
    return out


def _distinct(logs: Sequence[Known]) -> bool:
    return len({about.task for _, about in logs}) == len(logs)


def _merge(folder: Path, logs: Sequence[Known]) -> Run:
    first, about = logs[0]
    if len(logs) == 1:
        return first
    return replace(
        first,
        name=f"{folder} ({first.model}, {about.run_id[:8]})",
        path=str(folder),
        scores=tuple(item for run, _ in logs for item in run.scores),
        skipped=tuple(item for run, _ in logs for item in run.skipped),
        notes=tuple(note for run, _ in logs for note in run.notes),
    )


def read_log(path: Path, options: ReadOptions) -> Log:
    """One log.

    Raises:
        InputError: it is not a log, it is unfinished, or it has nothing that can be analysed.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise InputError(
            f"{path}: Inspect logs need inspect-ai ({error}): pip install 'harness-noise[inspect]'"
        ) from None
    try:
        bounds.check_header(path)
        header = read_eval_log(str(path), header_only=True)
        _finished(path, header)
        spec, key = _spec(header, options)[0], options.columns.get("question")
        rows = rows_of(str(path), header, spec, key, lambda: bounds.check_samples(path))
    except InputError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"{path}: not an Inspect log that can be read ({why}); if it was cut short, copy it again or "
            "try `inspect log recover`"
        ) from error
    log = assemble(path, header, rows, options)
    return replace(log, run=_labelled(log.run, header.eval.task_args, options.factors)) if options.factors else log


def _labelled(run: Run, arguments: Mapping[str, Any], names: Sequence[str]) -> Run:
    """The run with the task's arguments as what each answer was made with."""
    known = {name: text_label(arguments[name]) for name in names if name in arguments}
    scores = []
    for item in run.scores:
        n, K = item.values.shape
        scores.append(replace(item, factors={name: ((label,) * K,) * n for name, label in known.items()}))
    return replace(run, scores=tuple(scores))


def _finished(path: Path, header: EvalLog) -> None:
    """Refuse a log without results, saying why it has none."""
    if header.results is not None and header.results.scores:
        return
    if header.status == "started":
        raise InputError(
            f"{path}: the eval has not finished (status started); wait for it, or finish it with "
            f"`inspect eval-retry {path}`"
        )
    why = "the eval ended with an error" if header.status == "error" else f"status {header.status}"
    raise InputError(
        f"{path}: the log has no scores ({why}); score it with `inspect score {path}`, or run the eval again "
        "with `inspect eval-retry`"
    )


def _spec(header: EvalLog, options: ReadOptions) -> tuple[str | None, bool]:
    """The cluster SPEC of a log, and whether the user asked for it now.

    Without one it is what the run was made with: the noise settings in its metadata, or the
    parameters of the metrics that we added.
    """
    task = header.eval.task
    asked = spec_for(options.cluster, task)
    if asked is not None:
        return asked, True
    setting = (header.eval.metadata or {}).get("noise_cluster")
    if setting is not None:
        return spec_for(cluster_text(setting), task), False
    for es in header.results.scores if header.results else ():
        for name in inject.injected(es):
            cluster = es.metrics[name].params.get("cluster")
            if cluster is not None and not names_cluster(es, cluster):  # those are found again by themselves
                return str(cluster), False
    return None, False


def rows_of(
    location: str, header: EvalLog, spec: str | None, key: str | None = None, check: Callable[[], None] = lambda: None
) -> Sequence[Row]:
    """The summaries of a log's samples; the samples where the summaries have lost something that counts.

    Args:
        location: of the log.
        header: its header.
        spec: what names the clusters.
        key: the field that identifies the questions, if the user named one.
        check: is called before the samples are read in full.
    """
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    rows: Sequence[Row] = read_eval_log_sample_summaries(location)
    if header.invalidated or _lost_choices(header, rows) or _lost(rows, (spec or "cluster", key or "")):
        check()
        rows = read_eval_log(location, exclude_fields=BULKY).samples or rows
    return rows


def _lost_choices(header: EvalLog, rows: Sequence[Row]) -> bool:
    """Whether the questions have choices that the summaries of an old Inspect do not show."""
    asked = any(step.solver.endswith("multiple_choice") for step in header.plan.steps)
    return asked and all(row.choices is None for row in rows)


def _lost(rows: Sequence[Row], fields: Sequence[str]) -> bool:
    """Whether a summary has cut an input, a target, or a value that `fields` (SPECs) make use of."""
    return any(
        _is_cut(row.input)
        or _is_cut(row.target)
        or any(
            _is_cut_value(value)
            for key, value in row.metadata.items()
            if any(field == "auto" or key in field for field in fields)
        )
        for row in _firsts(rows)
    )


def _firsts(rows: Iterable[Row]) -> Iterable[Row]:
    """One row of each question."""
    seen = set()
    for row in rows:
        if row.id not in seen:
            seen.add(row.id)
            yield row


def _is_cut(value: Any) -> bool:
    """An input or a target that a summary shows only in part; media stand there as one word."""
    if isinstance(value, str):
        return value.endswith(CUT_TEXT)
    for item in value:
        parts = [item] if isinstance(item, str) else _texts(item)
        if any(text.endswith(CUT_TEXT) or MEDIA.fullmatch(text) for text in parts):
            return True
    return False


def _is_cut_value(value: Any) -> bool:
    # what stands before the dots may be short: the cut falls before a word that does not fit
    return isinstance(value, str) and (value == CUT_OBJECT or value.endswith("..."))


def _texts(message: ChatMessage) -> list[str]:
    """The parts of a chat message; what is not text as JSON."""
    if isinstance(message.content, str):
        return [message.content]
    return [
        part.text if part.type == "text" else json.dumps(part.model_dump(mode="json"), sort_keys=True)
        for part in message.content
    ]


def input_text(value: str | list[ChatMessage]) -> str:
    """A sample's input as one text: a single user message is its content, others name their role."""
    if isinstance(value, str):
        return value
    if len(value) == 1 and value[0].role == "user":
        return "\n".join(_texts(value[0]))
    return "\n".join("\n".join([f"{message.role}:", *_texts(message)]) for message in value)


def assemble(
    path: Path, header: EvalLog, rows: Sequence[Row], options: ReadOptions, recorded: str | None = None
) -> Log:
    """A Log from its header and its samples, or their summaries; `recorded` is the SPEC of the run itself."""
    task = header.eval.task
    assert header.results is not None
    last = {(str(row.id), row.epoch): row for row in rows}  # a sample that was run again: the last counts
    rows = list(last.values())
    answers = grid([row.id for row in rows], [row.epoch for row in rows], header.eval.dataset.sample_ids)
    firsts = [rows[i] for i in answers.first]
    notes: list[str] = []
    clusters, spec = _clusters(path, header, options, recorded, answers, firsts, notes)
    metadata = [row.metadata for row in firsts]
    open_ = spec is None or (spec == "auto" and clusters[0] is None)
    columns: dict[str, list[Any] | None] = {}

    def raw(scorer: str) -> list[Any] | None:
        if scorer not in columns:
            found = [(row.scores or {}).get(scorer) for row in rows]
            known = any(score is not None for score in found)
            columns[scorer] = [None if score is None else score.value for score in found] if known else None
        return columns[scorer]

    found = gather(
        task,
        header.results.scores,
        answers,
        raw,
        _questions(path, task, answers, firsts, options, notes),
        clusters,
        own=own_clusters(task, answers.keys, metadata, notes) if open_ else None,
        excluded=_invalidated(path, header, rows, notes),
        cancelled=header.status == "cancelled",
        missing=options.missing,
    )
    if open_ and not found.own_clusters:
        known = natural(task, metadata)
        if spec == "auto":
            notes.append(auto_hint(task, metadata))
        elif known is not None and clusters[0] is None:
            notes.append(f"{task}: its questions share {known}; use --cluster auto")
    if not found.scores:
        reasons = "; ".join(dict.fromkeys(f"{item.scorer}: {item.reason}" for item in found.skipped))
        raise InputError(f"{path}: no score that is a mean over repeats and questions ({reasons or 'none at all'})")
    notes += found.notes + _remarks(header, len(rows))
    run = Run(
        model=header.eval.model,
        name=str(path),
        harness="inspect",
        path=str(path),
        scores=tuple(found.scores),
        skipped=tuple(found.skipped),
        notes=tuple(notes),
    )
    return Log(path, header, run, found)


def _clusters(
    path: Path,
    header: EvalLog,
    options: ReadOptions,
    recorded: str | None,
    answers: Grid,
    firsts: Sequence[Row],
    notes: list[str],
) -> tuple[Clusters, str | None]:
    """Clusters of the questions, and the SPEC that the user or the run has named."""
    task = header.eval.task
    metadata = [row.metadata for row in firsts]
    spec, asked = _spec(header, options)
    spec = said = spec or spec_for(recorded, task)
    if spec is None:
        labelled = sum(doc.get("cluster") is not None for doc in metadata)
        if labelled == len(metadata):
            spec = "cluster"
        elif labelled:
            notes.append(
                f"{task}: {len(metadata) - labelled} of {len(metadata)} samples have no `cluster`, so none is used and "
                "the questions count as independent; name one with --cluster"
            )
    try:
        labels, words, remarks = cluster_labels(spec, task, answers.keys, metadata)
    except MissingFieldError as error:
        if asked:
            raise FieldError(f"{path}: {error}; name another with --cluster, or `--cluster none`") from None
        notes.append(f"{task}: {error}; the questions count as independent")
        return (None, None), said
    notes += remarks
    return (labels, words), said


def _questions(
    path: Path, task: str, answers: Grid, firsts: Sequence[Row], options: ReadOptions, notes: list[str]
) -> Questions:
    inputs = [input_text(row.input) for row in firsts]
    texts = tuple(" ".join(text[:400].split())[:200] for text in inputs)
    key = options.columns.get("question")
    if key is None:
        return Questions(
            keys=answers.keys,
            kind="sample id",
            inputs=tuple(content_hash(text) for text in inputs),
            targets=tuple(content_hash(_answer(row)) for row in firsts),
            texts=texts,
        )
    label = labeller(key)
    fields = [
        {"id": i, "input": text, "target": _target(row.target), **row.metadata}
        for i, text, row in zip(answers.keys, inputs, firsts, strict=True)
    ]
    try:
        keys = [label(item) for item in fields]
    except MissingFieldError as error:
        raise FieldError(
            f"{path}: the question field {key!r} does not exist; there are {', '.join(error.fields)}"
        ) from None
    if len(set(keys)) < len(keys):
        notes.append(
            f"{task}: {len(keys) - len(set(keys))} samples repeat an earlier value of {key}; they are numbered"
        )
    # a key that the user vouches for is not checked against the text, which another harness words otherwise
    return Questions(keys=occurrences(keys), kind="question", texts=texts)


def _target(target: str | list[str]) -> str:
    if isinstance(target, str):
        return target
    return target[0] if len(target) == 1 else json.dumps(target)


def _answer(row: Row) -> str:
    """The target and the choices, in no order: many questions have the same words and the same letter."""
    if not row.choices:
        return _target(row.target)
    letters = dict(zip(ascii_uppercase, row.choices, strict=False))
    targets = [row.target] if isinstance(row.target, str) else row.target
    named = sorted(letters.get(text, text) for text in targets)
    return json.dumps([named, sorted(row.choices)], ensure_ascii=False)


def _invalidated(
    path: Path, header: EvalLog, rows: Sequence[Row], notes: list[str]
) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    if not header.invalidated:
        return None
    out = np.fromiter((getattr(row, "invalidation", None) is not None for row in rows), bool, len(rows))
    if out.any():
        notes.append(
            f"{header.eval.task}: {int(out.sum())} of {len(rows)} answers are invalidated and left out "
            "(Inspect's own values still count them)"
        )
    return out


def _remarks(header: EvalLog, n_rows: int) -> list[str]:
    task, config = header.eval.task, header.eval.config
    out = []
    asked = header.results.total_samples if header.results else 0
    if n_rows < asked:
        out.append(f"{task}: {asked - n_rows} of {asked} answers were never given (status {header.status})")
    if config.epochs_reducer == [] and (config.epochs or 1) > 1:
        out.append(
            f"{task}: run without an epochs reducer: Inspect's own stderr takes repeats for independent questions"
        )
    return out
