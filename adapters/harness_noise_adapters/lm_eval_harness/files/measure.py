"""What scoring has to know of a task in files: from its results file, and from the samples once they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness_noise.data.clusters import labeller
from harness_noise.data.native_values import is_reproduced
from harness_noise.data.questions import CONTENT_KEYS, Questions
from harness_noise.data.scores import ReadOptions, Scores

from ..scoring import aggregates, choices, pairs
from ..scoring.clusters import AskedQuestions
from ..scoring.gather import Aggregation, TaskFacts
from ..scoring.groups import GroupRow
from . import rebuild
from .answers import SamplesLog
from .lines import changed, rows, stamp
from .native import Native
from .native_block import CLUSTER
from .samples import Samples
from .wanted import Wanted

if TYPE_CHECKING:
    from harness_noise.arrays import FloatArray


def wanted_of(native: Native, task: str, spec: str | None, options: ReadOptions) -> Wanted:
    """What is to be read of a task's samples file.

    Args:
        native: what the results file says.
        task: its name.
        spec: what is looked up in each document for its cluster; None where nothing is.
        options: the user's.
    """
    config, aggregations = native.config(task), native.aggregations(task)
    key, repeats = options.columns.get("question"), config.get("repeats")
    plain = config.get("output_type") == "multiple_choice" and config.get("process_results") is None
    asked = not options.metrics or any(fnmatchcase(choices.METRIC, pattern) for pattern in options.metrics)
    return Wanted(
        task=task,
        filters=tuple(dict.fromkeys(scorer for _, scorer in native.reported.get(task, ()))) or ("none",),
        effective=native.effective.get(task, 0),
        repeats=repeats if isinstance(repeats, int) and repeats > 0 else 0,
        media=bool(config.get("doc_to_image") or config.get("doc_to_audio")),
        cluster=None if spec is None else labeller(spec, task),
        key=None if key is None else labeller(key),
        fields=options.fields,
        raw=frozenset(
            metric
            for metric in (aggregations if native.results else pairs.METRICS)
            if _is_raw(metric, aggregations.get(metric))
        ),
        choices=plain and choices.BESIDE in aggregations and asked,
        brier=plain and aggregations.get(choices.BRIER, "") in (None, choices.BRIER),
        doubled="acc_mutual_info" in aggregations,
    )


def _is_raw(metric: str, aggregation: str | None) -> bool:
    """Whether a metric's values are to be kept as they are: lm-eval makes it of all questions at once, or it may be an
    F1 that the task's own code makes of pairs."""
    own_code = metric in pairs.METRICS and (aggregation is None or not aggregation.isidentifier())
    return own_code or aggregates.is_registered(aggregation)


def task_facts(native: Native, found: Samples, task: str) -> TaskFacts:
    """The facts of a task whose samples are read."""
    aggregations, arrows, taken = native.aggregations(task), native.higher_is_better(task), native.taken(task)
    documents = found.documents
    log = SamplesLog(documents.path, documents.wanted, documents.stamp)
    if found.kind in CONTENT_KEYS:
        questions = Questions(
            found.keys, found.kind, None, found.targets, found.prompts, documents=documents, fields=found.fields,
            log=log,
        )  # fmt: skip
    else:  # no match is made without the texts
        inputs, texts = documents.read()
        questions = Questions(
            found.keys, found.kind, inputs, found.targets, found.prompts, texts, fields=found.fields, log=log
        )

    def probabilities(scorer: str) -> FloatArray | None:
        log = found.logs.get(scorer)
        return None if log is None else log.probabilities(len(questions))

    return TaskFacts(
        name=task,
        questions=questions,
        reported=native.reported.get(task, {}),
        aggregations={metric: _aggregation(name) for metric, name in aggregations.items()},
        higher_is_better=arrows,
        own_answers=native.carried_answers.get(task, found.answers),
        taken=taken,
        scored=found.scored,
        copied=task in native.copied,
        answers_differ=cache(lambda: found.answers > 1 and _answers_differ(documents.path, found.answers)),
        probabilities=probabilities,
    )


def _aggregation(name: str | None) -> Aggregation:
    """A results file names lm-eval's own aggregations, and holds the source of others."""
    if name is None or not aggregates.is_registered(name):
        return Aggregation(name, registered=name is None or name.isidentifier())
    return Aggregation(name, function=partial(aggregates.registered, name))


def asked_questions(native: Native, found: Samples, task: str) -> AskedQuestions:
    """The questions of a task, as far as clusters go."""
    spec = native.carried_spec.get(task, CLUSTER)
    return AskedQuestions(found.doc_ids, found.targets, found.clusters, spec, found.unlabelled)


def group_rows(native: Native) -> Iterator[GroupRow]:
    """The rows of the groups; the file does not say how they are weighted."""
    for name in native.group_names():
        leaves = [task for task in native.leaves(name) if task in native.table]
        for key, value in native.reported[name].items():
            yield GroupRow(name, key, value, leaves)


def cut_short(native: Native, task: str, found: Samples, scores: Sequence[Scores]) -> Iterator[str]:
    """One sentence where the samples file has fewer questions than lm-eval counted when it made its means.

    `n-samples` counts too many of a run with --samples up to 0.4.11, so it is believed only with --limit, or where the
    scores do not have the mean that is reported.
    """
    counted, n = native.counted.get(task), len(found.keys)
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


def score_answers(path: Path, wanted: Wanted, native: Native, found: Samples) -> list[str]:
    """Give a file with K answers but one score the other scores too, where that is safe; what to say of it.

    Raises:
        InputError: the file changed meanwhile.
    """
    task = wanted.task
    whole = {metric for (metric, _), column in found.columns.items() if column.raw is not None}
    # scores per repeat in the file are numbers: a metric that is no mean has none
    # one score to each of several answers is none of single answers: it is tried, or refused, as it was at first
    several = any(
        max(column.uneven.counts if column.uneven is not None else (column.width,)) > 1
        for column in found.columns.values()
    )
    scored = found.scored and several
    only = whole if scored else None
    if found.answers == 1 or only == set() or all(metric == "bypass" for metric, _ in found.columns):
        return []
    try:
        columns, remarks = rebuild.rescored(path, wanted, native.config(task), found, only)
    except rebuild.NotSafeError as reason:
        if scored:
            return [f"{task}: {', '.join(sorted(whole))}: read as one answer (single_repeat): {reason}"]
        columns = rebuild.counted(found)
        found.columns |= columns
        if columns:
            names = ", ".join(dict.fromkeys(metric for metric, _ in columns))
            return [f"{task}: {names} is a count of right answers out of {found.answers}; their order is not known"]
        return [
            f"{task}: the file holds {found.answers} answers per question but only lm-eval's one score, and they "
            f"cannot be scored again: {reason}; read as one answer (single_repeat)"
        ]
    if stamp(path) != found.stamp:  # the answers were read in a second pass
        raise changed(path)
    found.columns |= columns
    return [] if scored else [f"{task}: {remark}" for remark in remarks]


def _answers_differ(path: Path, K: int) -> bool:
    """Whether any question got other answers than one, K times: a pass of its own, up to the first that did."""
    return any(
        isinstance(answers, list) and any(answer != answers[0] for answer in answers[:K])
        for _, _, row, _ in rows(path, whole=True)
        for answers in (row["resps"] if isinstance(row.get("resps"), list) else ())
    )
