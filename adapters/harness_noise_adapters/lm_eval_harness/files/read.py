"""lm-eval's finished runs as `Run`s: a folder, a results file, or a samples file, 0.4.3 to 0.5 dev.

The results file says what was measured and how it was aggregated; the samples files hold the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any

from harness_noise.analysis.drawing import with_record
from harness_noise.arrays import FloatArray
from harness_noise.data.answers import zeros_for_missing
from harness_noise.data.clusters import ClusterSpec, FileSpec, Spec, UserSpec, is_plain, namer
from harness_noise.data.native_values import is_reproduced
from harness_noise.data.notes import NO_SAMPLES, Note, empty_answers
from harness_noise.data.questions import CONTENT_KEYS, Questions
from harness_noise.data.scores import ReadOptions, Run, Scores, Skipped, with_groups
from harness_noise.errors import InputError

from ...extras import extra
from ..scoring import choices
from ..scoring.clusters import AskedQuestions, clusters, is_parallel, resolve
from ..scoring.gather import Aggregation, Gathered, GroupRow, Key, Scored, TaskFacts, gather, groups, own_code
from ..scoring.not_means import PAIR_METRICS, Function, is_registered
from ..scoring.rescore import right_answers
from . import outputs
from .outputs import RunFiles
from .results import CLUSTER, Native
from .samples import GeneratedTexts, Samples, SamplesLog, asked_twice, read_samples
from .scan import Wanted, blocks


def wanted_of(native: Native, task: str, spec: ClusterSpec | None, options: ReadOptions) -> Wanted:
    """Return the parts to read of a task's samples file: filters, clusters, question key, metrics.

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
        cluster=None if cluster is None or is_parallel(cluster) else namer(cluster, task),
        key=None if key is None else namer(UserSpec(key)),
        fields=options.fields,
        names=names_of([cluster, None if key is None else UserSpec(key), *map(UserSpec, options.fields)]),
        raw=frozenset(
            metric
            for metric in (aggregations if native.results else PAIR_METRICS)
            if _needs_raw_values(metric, aggregations.get(metric))
        ),
        choices=plain and choices.BESIDE in aggregations and wants_choices,
        brier=plain and aggregations.get(choices.BRIER, "") in (None, choices.BRIER),
        doubled="acc_mutual_info" in aggregations,
    )


def names_of(specs: Iterable[Spec | None]) -> frozenset[bytes] | None:
    """Return the quoted JSON field names that these SPECs read. None if any field may be read.

    It is also None if a name has a character that JSON may write in two ways without a number."""
    texts = [spec.text if isinstance(spec, FileSpec) else str(spec) for spec in specs if spec is not None]
    if not all(
        is_plain(text) and text.isascii() and text.isprintable() and _TWO_WAYS.isdisjoint(text) for text in texts
    ):
        return None
    return frozenset(f'"{name}"'.encode() for text in ("doc", *texts) for name in (text, *text.split(".")))


_TWO_WAYS = frozenset('"\\/')


def _needs_raw_values(metric: str, aggregation: str | None) -> bool:
    """Return True if a metric's raw values are needed, as it is computed over all questions (F1, …).

    Either lm-eval computes the metric from all questions together, or the task's own code may compute an F1 from pairs.
    """
    own_code = metric in PAIR_METRICS and (aggregation is None or not aggregation.isidentifier())
    return own_code or is_registered(aggregation)


def task_facts(native: Native, samples: Samples, task: str) -> TaskFacts:
    """Return the facts on a task in its files that are needed to gather its scores."""
    aggregations, taken = native.aggregations(task), native.taken(task)
    answers = native.carried_answers.get(task, samples.answers)
    documents, log = samples.documents, SamplesLog(*samples.again)
    generated = native.config(task).get("output_type") in (None, "generate_until")
    # without such keys no match is made without the texts
    inputs, texts = (None, None) if samples.kind in CONTENT_KEYS else documents.read()
    hashes = (samples.keys, samples.kind, inputs, samples.targets, samples.prompts)
    fields = None if samples.fields is None else samples.fields.fields()
    twice = asked_twice(samples)
    questions = Questions(*hashes, texts, documents=documents, fields=fields, log=log, **twice)

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
        answers=lambda K: GeneratedTexts(*samples.again, K) if generated else None,
        scored_with=lambda metric, scorer: native.scored_with(task, metric, scorer),
        probabilities=probabilities,
    )


def _aggregation(name: str | None) -> Aggregation:
    """Return the aggregation of this name from a results file: lm-eval's own function, or only a name."""
    if name is None or not is_registered(name):
        return Aggregation(name, registered=name is None or name.isidentifier())
    return Aggregation(name, function=partial(_registered, name))


def _registered(name: str) -> Function:
    """Return lm-eval's own aggregation function of that name. Refuse without the extra that calls it."""
    function: Function = extra("corpus.aggregates", name).registered(name)
    return function


def cut_short(native: Native, task: str, samples: Samples, scores: Sequence[Scores]) -> Iterator[Note]:
    """Yield a note if the samples file has fewer questions than lm-eval's means are of.

    `n-samples` counts too many of a run with --samples up to 0.4.11, so it is believed only with --limit, or where the
    scores do not have the mean that is reported.
    """
    counted, n = native.counted.get(task), len(samples.keys)
    if counted is None and (native.limit is not None or not all(map(is_reproduced, scores))):
        counted = native.effective.get(task)
    if counted is not None and n < counted:
        said = (
            f"the samples file has {n} of the {counted} questions that the results are made of. It may have been "
            "cut short while it was written or copied"
        )
        yield Note("not_all_read", said).of(task)


def not_parsed(samples: Mapping[str, Samples], scores: Sequence[Scores]) -> Iterator[Note]:
    """Yield one note with the counts if answers scored 0 are empty or not parsed, unless lower is better."""
    found = []
    for part in scores:
        zeros, blank = samples[part.task].unread.get((part.metric, part.scorer), (0, 0))
        if blank and part.higher_is_better is not False:
            found.append((part.title, zeros, blank))
    if found:
        yield empty_answers(found)


def limited(native: Native, tasks: Sequence[str]) -> Iterator[Note]:
    """Yield a note if `--limit` made the run leave out questions."""
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
        said = f"the run was limited to {used} of {whole} questions (--limit {native.limit:g}){more}"
        yield Note("limited", said).of(task)


def score_answers(samples: Samples) -> list[Note]:
    """Replace pass@1 columns of `samples` by K scores per question if answers have none. Return notes on it.

    Only pass@1 says how many answers are right. Scoring the others again would run what the file says.

    Returns:
        What cannot be known, and what keeps it next time.
    """
    task = samples.wanted.task
    single = {metric for (metric, _), column in samples.columns.items() if max(column.counts) == 1}
    whole = sorted({metric for (metric, _), column in samples.columns.items() if column.raw is not None} & single)
    # one score to each of several answers is none of single answers
    scored = samples.scored and any(max(column.counts) > 1 for column in samples.columns.values())
    if samples.answers == 1 or (scored and not whole) or all(metric == "bypass" for metric, _ in samples.columns):
        return []
    if scored:
        return [Note("one_score", f"{', '.join(whole)}: {_one_score(samples.answers)}").of(task)]
    columns = counted(samples)
    samples.columns |= columns
    if columns:
        names = ", ".join(dict.fromkeys(metric for metric, _ in columns))
        said = f"{names} is a count of right answers out of {samples.answers}. Their order is not known"
        return [Note("counted", said).of(task)]
    return [Note("one_score", _one_score(samples.answers)).of(task)]


def _one_score(K: int) -> str:
    return (
        f"the file holds {K} answers per question but only lm-eval's one score, so the noise of the answers is not "
        "known: read as one answer (single_repeat). A run with --noise keeps the score of every answer"
    )


def counted(samples: Samples) -> dict[Key, Scored]:
    """Return the pass@1 columns alone, as K scores per question: c of K right become c ones and K − c zeros.

    A column that has no such counts is left out.
    """
    out: dict[Key, Scored] = {}
    for (metric, scorer), column in samples.columns.items():
        values = list(column.values)
        if not column.kinds <= {"number"} or len(values) != len(column.rows):
            continue
        if (repeats := right_answers(metric, values, samples.answers)) is not None:
            out[metric, scorer] = Scored()
            out[metric, scorer].extend(column.rows, values, repeats)
    return out


def _answers_differ(path: Path, K: int) -> bool:
    """Return True if some question's K answers in a samples file are not all equal."""
    return any(
        isinstance(answers, list) and any(answer != answers[0] for answer in answers[:K])
        for block in blocks(path, whole=True)
        for _, _, row, _ in block
        for answers in (row["resps"] if isinstance(row.get("resps"), list) else ())
    )


def read(output: RunFiles, options: ReadOptions) -> Run:
    """Read one lm-eval run from its files, missing scores filled in as the options say. Refuse unusable files.

    Args:
        output: its files; see `outputs.find`.
        options: `cluster` is a SPEC over the document; `columns["question"]` a field of it that
            identifies a question in place of lm-eval's doc_hash.

    Raises:
        InputError: there is nothing that can be used; says where and what to do.
    """
    return zeros_for_missing(read_output(output, options).run, options.missing)


@dataclass(frozen=True, slots=True)
class Reading:
    """One run and what it was read from."""

    run: Run
    """Its missing scores are NaN."""
    results: dict[str, Any]
    """The results file's object without our additions, empty if there is none."""
    samples: dict[str, Samples]
    cluster_asked: Any
    """SPEC of the clusters that our additions record, None without."""


def _notes_on_files(output: RunFiles, native: Native) -> list[Note]:
    """Return notes if a run has no results file, or ended before it had all its further answers."""
    notes: list[Note] = []
    if output.results is None:
        said = (
            f"{output.path.name}: there is no results file of this run next to it, so lm-eval's own values, its "
            "groups and the direction of its metrics are unknown. Every numeric metric is read as a mean"
        )
        notes.append(Note("no_results_file", said))
    if native.unfinished:
        said = (
            f"{output.path.name}: the run was ended before it had all its further answers, so these are lm-eval's own "
            "alone. Give the same command again to take up those that had come"
        )
        notes.append(Note("ended_early", said))
    return notes


def _with_outer(part: Scores, read: Samples) -> Scores:
    """Return the scores with the fields that contain their clusters, if clusters are the file's."""
    return replace(part, outer=read.outer.found()) if part.clusters == read.clusters else part


def _group_rows(native: Native) -> list[GroupRow]:
    """Return a row for each value (metric and filter) of lm-eval's groups, with its tasks and weighting."""
    return [
        GroupRow(name, key, value, native.leaves(name), native.weighting(name, key[0]))
        for name in native.group_names()
        for key, value in native.reported[name].items()
    ]


def read_output(output: RunFiles, options: ReadOptions) -> Reading:
    """Read one run's files as a `Reading`, missing scores kept as missing. Refuse files without any readable metric."""
    options.question_field(output.path)
    native = Native(outputs.read_results(output.results)) if output.results is not None else Native({})
    if output.only is not None:
        there = [output.only]
    else:
        there = list(native.tasks if output.results is not None else output.samples)
    tasks = _selected_tasks(there, native, options)
    # for the selection: to say what there is, and which of two files of a task counts
    unread = [Skipped(task, "", "", "it was not asked for") for task in there if task not in tasks]
    notes = _notes_on_files(output, native)
    spec = None if options.cluster is None else ClusterSpec.parse(options.cluster)
    samples: dict[str, Samples] = {}
    gathered = Gathered(notes=notes)
    for task in tasks:
        if task in output.samples:
            samples[task] = read_samples(output.samples[task], wanted_of(native, task, spec, options))
            notes += score_answers(samples[task])
            gather(task_facts(native, samples[task], task), samples[task].columns, gathered)
            notes += cut_short(native, task, samples[task], [part for part in gathered.scores if part.task == task])
        else:
            gathered.skipped += [
                Skipped(
                    task, *key, "there is no samples file for it: run lm-eval with --log_samples", value, NO_SAMPLES
                )
                for key, value in native.reported.get(task, {}).items()
            ]
    if not (gathered.scores or gathered.corpus or gathered.skipped) and (tasks or not unread):
        raise InputError(
            f"{output.path}: no metric in it that is named like lm-eval's since 0.4, with its filter (`acc,none`). "
            "Older versions and other programs write means alone: evaluate again with lm-eval 0.4 and --log_samples, "
            "or give the scores of the answers as a table with the columns question and score"
        )
    notes += [*limited(native, list(samples)), *not_parsed(samples, gathered.scores)]
    by_task = {
        task: AskedQuestions(
            logged.doc_ids, logged.targets, logged.clusters, native.carried_spec.get(task, CLUSTER), logged.unclustered
        )
        for task, logged in samples.items()
    }
    clustered = clusters(spec, by_task, notes)
    gathered.skipped += unread
    rows = _group_rows(native) if output.only is None else []
    run = gathered.run(
        clustered,
        model=native.model() or output.path.resolve().parent.name,
        name=str(output.path),
        harness="lm-eval",
        path=str(output.path),
        date=output.date(native.results),
        groups=groups(rows, native.reported, gathered.scores),
    )
    run = replace(run, scores=tuple(_with_outer(part, samples[part.task]) for part in run.scores))
    drawn = [of_task for of_task in native.drawn if of_task["task"] in samples]
    run = with_record(run, native.stops, drawn, native.original)
    if options.metrics:  # what is there now was asked for
        run = replace(run, scores=tuple(map(choices.asked_for, run.scores)))
    return Reading(with_groups(run, options.groups), native.results, samples, native.cluster_asked)


def _selected_tasks(tasks: list[str], native: Native, options: ReadOptions) -> list[str]:
    """Return the tasks that the option `tasks` selects by a glob of their name or group, in order. All without it."""
    if not options.tasks:
        return tasks
    keep: set[str] = set()
    for pattern in options.tasks:
        keep.update(task for task in tasks if fnmatchcase(task, pattern))
        for name in native.group_names():
            if fnmatchcase(name, pattern):
                keep.update(native.leaves(name))
    return [task for task in tasks if task in keep]
