"""lm-eval's finished runs as `Run`s: a folder, a results file, or a samples file, 0.4.3 to 0.5 dev.

The results file says what was measured and how it was aggregated; the samples files hold the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.analysis.drawing import with_record
from harness_noise.arrays import FloatArray
from harness_noise.data.clusters import ClusterSpec, labeller
from harness_noise.data.native_values import is_reproduced
from harness_noise.data.questions import CONTENT_KEYS, Questions
from harness_noise.data.scores import ReadOptions, Run, Scores, Skipped, with_groups
from harness_noise.errors import InputError
from harness_noise.settings import counts_as_zero

from ..scoring import aggregates, choices
from ..scoring.clusters import AskedQuestions, clusters, is_parallel, resolve
from ..scoring.gather import Aggregation, Gathered, GroupRow, TaskFacts, gather, groups, own_code
from . import outputs, rebuild
from .outputs import RunFiles
from .results import CLUSTER, Native
from .samples import Samples, SamplesLog, read_samples
from .scan import Wanted, blocks, changed, stamp


def wanted_of(native: Native, task: str, spec: ClusterSpec | None, options: ReadOptions) -> Wanted:
    """What is to be read of a task's samples file.

    Args:
        native: what the results file says.
        task: its name.
        spec: the clusters that the user names; None where nothing was said.
        options: the user's.
    """
    config, aggregations = native.config(task), native.aggregations(task)
    key, repeats = options.columns.get("question"), config.get("repeats")
    cluster = None if spec is None else resolve(spec, task)
    plain = config.get("output_type") == "multiple_choice" and config.get("process_results") is None
    wants_choices = not options.metrics or any(fnmatchcase(choices.METRIC, pattern) for pattern in options.metrics)
    return Wanted(
        task=task,
        filters=tuple(dict.fromkeys(scorer for _, scorer in native.reported.get(task, ()))) or ("none",),
        effective=native.effective.get(task, 0),
        repeats=repeats if isinstance(repeats, int) and repeats > 0 else 0,
        media=bool(config.get("doc_to_image") or config.get("doc_to_audio")),
        cluster=None if cluster is None or is_parallel(cluster) else labeller(cluster, task),
        key=None if key is None else labeller(key),
        fields=options.fields,
        raw=frozenset(
            metric
            for metric in (aggregations if native.results else aggregates.PAIR_METRICS)
            if _is_raw(metric, aggregations.get(metric))
        ),
        choices=plain and choices.BESIDE in aggregations and wants_choices,
        brier=plain and aggregations.get(choices.BRIER, "") in (None, choices.BRIER),
        doubled="acc_mutual_info" in aggregations,
    )


def _is_raw(metric: str, aggregation: str | None) -> bool:
    """Whether a metric's values are to be kept as they are: lm-eval makes it of all questions at once, or it may be an
    F1 that the task's own code makes of pairs."""
    own_code = metric in aggregates.PAIR_METRICS and (aggregation is None or not aggregation.isidentifier())
    return own_code or aggregates.is_registered(aggregation)


def task_facts(native: Native, samples: Samples, task: str) -> TaskFacts:
    """The facts of a task whose samples are read."""
    aggregations, taken = native.aggregations(task), native.taken(task)
    answers = native.carried_answers.get(task, samples.answers)
    documents, log = samples.documents, SamplesLog(*samples.again)
    # without such keys no match is made without the texts
    inputs, texts = (None, None) if samples.kind in CONTENT_KEYS else documents.read()
    hashes = (samples.keys, samples.kind, inputs, samples.targets, samples.prompts)
    fields = None if samples.fields is None else samples.fields.fields()
    questions = Questions(*hashes, texts, documents=documents, fields=fields, log=log)

    def probabilities(scorer: str) -> FloatArray | None:
        log = samples.logs.get(scorer)
        return None if log is None else log.probabilities(len(questions))

    return TaskFacts(
        name=task,
        questions=questions,
        reported=native.reported.get(task, {}),
        aggregations={metric: _aggregation(name) for metric, name in aggregations.items()},
        higher_is_better=native.higher_is_better(task),
        version=native.version(task),
        used={scorer: min(answers, taken.get(scorer, answers)) for _, scorer in samples.columns},
        scored=samples.scored,
        copied=task in native.copied,
        answers_differ=cache(lambda: samples.answers > 1 and _answers_differ(samples.path, samples.answers)),
        texts=cache(lambda: log.hashes(len(questions), samples.answers) if own_code(native.config(task)) else None),
        probabilities=probabilities,
    )


def _aggregation(name: str | None) -> Aggregation:
    """A results file names lm-eval's own aggregations, and holds the source of others."""
    if name is None or not aggregates.is_registered(name):
        return Aggregation(name, registered=name is None or name.isidentifier())
    return Aggregation(name, function=partial(aggregates.registered, name))


def cut_short(native: Native, task: str, samples: Samples, scores: Sequence[Scores]) -> Iterator[str]:
    """One sentence where the samples file has fewer questions than lm-eval counted when it made its means.

    `n-samples` counts too many of a run with --samples up to 0.4.11, so it is believed only with --limit, or where the
    scores do not have the mean that is reported.
    """
    counted, n = native.counted.get(task), len(samples.keys)
    if counted is None and (native.limit is not None or not all(map(is_reproduced, scores))):
        counted = native.effective.get(task)
    if counted is not None and n < counted:
        yield (
            f"{task}: the samples file has {n} of the {counted} questions that the results are made of; was it "
            "cut short while it was written or copied?"
        )


def limited(native: Native, tasks: Sequence[str]) -> Iterator[str]:
    """One sentence for a run that left out questions."""
    if native.limit is None:
        return
    cut = [
        (task, used, whole)
        for task in tasks
        if (whole := native.original.get(task)) is not None and 0 < (used := native.effective.get(task, 0)) < whole
    ]
    if cut:
        task, used, whole = cut[0]
        more = f" (and {len(cut) - 1} more tasks)" if len(cut) > 1 else ""
        yield f"{task}: the run was limited to {used} of {whole} questions (--limit {native.limit:g}){more}"


def score_answers(native: Native, samples: Samples) -> list[str]:
    """Give a file with K answers but one score the other scores too, where that is safe; what to say of it.

    Raises:
        InputError: the file changed meanwhile.
    """
    task = samples.wanted.task
    whole = {metric for (metric, _), column in samples.columns.items() if column.raw is not None}
    # scores per repeat in the file are numbers: a metric that is no mean has none
    # one score to each of several answers is none of single answers: it is tried, or refused, as it was at first
    scored = samples.scored and any(max(column.counts) > 1 for column in samples.columns.values())
    only = whole if scored else None
    if samples.answers == 1 or only == set() or all(metric == "bypass" for metric, _ in samples.columns):
        return []
    try:
        columns, remarks = rebuild.rescored(native.config(task), samples, only)
    except rebuild.NotSafeError as reason:
        if scored:
            return [f"{task}: {', '.join(sorted(whole))}: read as one answer (single_repeat): {reason}"]
        columns = rebuild.counted(samples)
        samples.columns |= columns
        if columns:
            names = ", ".join(dict.fromkeys(metric for metric, _ in columns))
            return [f"{task}: {names} is a count of right answers out of {samples.answers}; their order is not known"]
        return [
            f"{task}: the file holds {samples.answers} answers per question but only lm-eval's one score, and they "
            f"cannot be scored again: {reason}; read as one answer (single_repeat)"
        ]
    if stamp(samples.path) != samples.stamp:  # the answers were read in a second pass
        raise changed(samples.path)
    samples.columns |= columns
    return [] if scored else [f"{task}: {remark}" for remark in remarks]


def _answers_differ(path: Path, K: int) -> bool:
    """Whether any question got other answers than one, K times: a pass of its own, up to the first that did."""
    return any(
        isinstance(answers, list) and any(answer != answers[0] for answer in answers[:K])
        for block in blocks(path, whole=True)
        for _, _, row, _ in block
        for answers in (row["resps"] if isinstance(row.get("resps"), list) else ())
    )


def read(output: RunFiles, options: ReadOptions) -> Run:
    """One run.

    Args:
        output: its files; see `outputs.find`.
        options: `cluster` is a SPEC over the document; `columns["question"]` a field of it that
            identifies a question in place of lm-eval's doc_hash.

    Raises:
        InputError: there is nothing that can be used; says where and what to do.
    """
    return zeros_for_missing(read_output(output, options), options)


@dataclass(frozen=True, slots=True)
class Reading:
    """One run and what it was read from."""

    run: Run
    """Its missing scores are NaN."""
    results: dict[str, Any]
    """The results file's object without our additions; empty where there is none."""
    samples: dict[str, Samples]


def read_output(output: RunFiles, options: ReadOptions) -> Reading:
    """Read the files of one run."""
    options.question_field(output.path)
    native = Native(outputs.read_results(output.results)) if output.results is not None else Native({})
    if output.only is not None:
        there = [output.only]
    else:
        there = list(native.tasks if output.results is not None else output.samples)
    tasks = _asked_for(there, native, options)
    # for whoever selects: to say what there is, and which of two files of a task counts
    unread = [Skipped(task, "", "", "it was not asked for") for task in there if task not in tasks]
    notes: list[str] = []
    if output.results is None:
        notes.append(
            f"{output.path.name}: there is no results file of this run beside it, so lm-eval's own values, its "
            "groups and the direction of its metrics are unknown; every numeric metric is read as a mean"
        )
    spec = None if options.cluster is None else ClusterSpec.parse(options.cluster)
    samples: dict[str, Samples] = {}
    gathered = Gathered(notes=notes)
    for task in tasks:
        if task in output.samples:
            samples[task] = read_samples(output.samples[task], wanted_of(native, task, spec, options))
            notes += score_answers(native, samples[task])
            gather(task_facts(native, samples[task], task), samples[task].columns, gathered)
            notes += cut_short(native, task, samples[task], [part for part in gathered.scores if part.task == task])
        else:
            gathered.skipped += [
                Skipped(task, *key, "there is no samples file for it: run lm-eval with --log_samples", value)
                for key, value in native.reported.get(task, {}).items()
            ]
    if not (gathered.scores or gathered.corpus or gathered.skipped) and (tasks or not unread):
        raise InputError(
            f"{output.path}: no metric in it that is named like lm-eval's since 0.4, with its filter (`acc,none`). "
            "Older versions and other programs write means alone: evaluate again with lm-eval 0.4 and --log_samples, "
            "or give the scores of the answers as a table with the columns question and score"
        )
    notes += limited(native, list(samples))
    by_task = {
        task: AskedQuestions(
            logged.doc_ids, logged.targets, logged.clusters, native.carried_spec.get(task, CLUSTER), logged.unlabelled
        )
        for task, logged in samples.items()
    }
    labels = clusters(spec, by_task, notes)
    gathered.skipped += unread
    rows = [
        GroupRow(name, key, value, native.leaves(name), native.weighting(name, key[0]))
        for name in (native.group_names() if output.only is None else ())
        for key, value in native.reported[name].items()
    ]
    run = gathered.run(
        labels,
        model=native.model() or output.path.resolve().parent.name,
        name=str(output.path),
        harness="lm-eval",
        path=str(output.path),
        date=output.date(native.results),
        groups=groups(rows, native.reported, gathered.scores),
    )
    # the fields that contain the clusters, where these are the ones of the samples file
    nested = [
        replace(part, outer=samples[part.task].outer.found()) if part.clusters == samples[part.task].clusters else part
        for part in run.scores
    ]
    run = replace(run, scores=tuple(nested))
    drawn = [of_task for of_task in native.drawn if of_task["task"] in samples]
    run = with_record(run, native.looks, drawn, native.original)
    return Reading(with_groups(run, options.groups), native.results, samples)


def zeros_for_missing(reading: Reading, options: ReadOptions) -> Run:
    """The run; with `--missing zero`, a score that was asked for and is missing is 0 and stays counted."""
    run = reading.run
    if not counts_as_zero(options.missing):
        return run
    filled = []
    for part in run.scores:
        column = reading.samples[part.task].columns.get((part.metric, part.scorer))
        # what follows from the answers (acc_prob, pass@k) is asked for on every question
        asked = np.True_ if column is None else column.matrix(len(part.questions))[1]
        zero = np.isnan(part.values) & asked
        values = np.where(zero, 0.0, part.values)
        filled.append(replace(part, values=values, n_zero=min(part.n_missing, int(zero.sum()))))
    return replace(run, scores=tuple(filled))


def _asked_for(tasks: list[str], native: Native, options: ReadOptions) -> list[str]:
    """The tasks that `--task` names, and those of lm-eval's groups that it names; all where it names none."""
    if not options.tasks:
        return tasks
    keep: set[str] = set()
    for pattern in options.tasks:
        keep.update(task for task in tasks if fnmatchcase(task, pattern))
        for name in native.group_names():
            if fnmatchcase(name, pattern):
                keep.update(native.leaves(name))
    return [task for task in tasks if task in keep]
