"""From a finished lm-eval run to a `Run`: scores per repeat, clusters, groups, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from harness_noise.arrays import FloatArray, HashArray
from harness_noise.data.clusters import ClusterSpec, namer
from harness_noise.data.native_values import MISMATCH
from harness_noise.data.notes import NOT_SCORED, Note
from harness_noise.data.questions import Questions, occurrences, text_hash
from harness_noise.data.scores import Run, Weighting, with_groups
from harness_noise.errors import InputError

from ..scoring import choices
from ..scoring.clusters import AskedQuestions, ClusterNames, clusters, is_parallel, resolve
from ..scoring.gather import BYPASS, Aggregation, Gathered, GroupRow, Key, Scored, TaskFacts, gather, own_code, reported
from ..scoring.gather import groups as in_groups
from ..scoring.rescore import (
    FilterScores,
    Row,
    copied_answers,
    identical_answers,
    logged,
    rescore,
    unrepeated,
    without_copies,
)
from .options import Options
from .repeats import Asking


@dataclass(slots=True)
class TaskScores:
    """One task of a finished run."""

    name: str
    rows: dict[str, list[Row]]
    """filter → logged samples, one for each question, all filters in one order."""
    filters: dict[str, FilterScores] = field(default_factory=dict)
    identical: bool | None = None
    """True if all answers of every question are the same, None with one answer per question."""
    copied: bool = False
    """True if lm-eval's own answers are copies of each other and count as one."""
    clusters: ClusterNames | None = None
    """The clusters of its questions, None if they have none."""

    @property
    def questions(self) -> list[Row]:
        return next(iter(self.rows.values()))


def columns_of(task_scores: TaskScores, task: Any) -> dict[Key, Scored]:
    """Return {(metric, filter): scores} of a live task, without metrics that only predict (bypass).

    What a run that only predicts has in place of scores is left out.
    """
    out: dict[Key, Scored] = {}
    doubled = _doubled(task)
    for scorer, scores in task_scores.filters.items():
        for metric, raw in scores.values.items():
            aggregation = _aggregation(task, metric)
            if metric == BYPASS or aggregation.name == "bypass_agg":
                continue
            own = scores.native.get(metric, [None] * len(raw))
            if aggregation.registered and aggregation.name == choices.BRIER:
                own = [choices.brier_score(row, doubled) for row in task_scores.rows[scorer]]
                raw = [[value] for value in own]
            column = out[metric, scorer] = Scored(raw=[])
            column.extend(range(len(own)), own, raw)
    return out


def _doubled(task: Any) -> bool:
    """Return True if the task asks every choice a second time without context (acc_mutual_info)."""
    return "acc_mutual_info" in task.aggregation()


def task_facts(scores: TaskScores, task: Any, results: Mapping[str, Any], columns: Mapping[Key, Scored]) -> TaskFacts:
    """Return the facts on a live task that are needed to gather its scores.

    Args:
        scores: its scores.
        task: lm-eval's object.
        results: what `evaluate` returned.
        columns: see `columns_of`.
    """
    first = scores.questions
    values = reported(results["results"][scores.name])

    def probabilities(scorer: str) -> FloatArray | None:
        if task.OUTPUT_TYPE != "multiple_choice":
            return None
        return choices.of_task(task, scores.rows[scorer], _doubled(task))

    return TaskFacts(
        name=scores.name,
        questions=Questions(
            keys=occurrences([row["doc_hash"] for row in first]),
            kind="doc_hash",
            targets=tuple(row["target_hash"] for row in first),
            prompts=tuple(row["prompt_hash"] for row in first),
        ),
        reported={key: values.get(key) for key in columns},
        aggregations={metric: _aggregation(task, metric) for metric, _ in columns},
        higher_is_better=results["higher_is_better"].get(scores.name, {}),
        used={scorer: filter_scores.used for scorer, filter_scores in scores.filters.items()},
        at_once=[scorer for scorer, filter_scores in scores.filters.items() if not filter_scores.singly],
        mismatch=[(metric, scorer) for metric, scorer in columns if metric in scores.filters[scorer].mismatch],
        copied=scores.copied,
        identical=scores.identical is True,
        answers_differ=lambda: scores.identical is False,
        texts=cache(lambda: _texts(first) if own_code(results["configs"].get(scores.name, {})) else None),
        probabilities=probabilities,
    )


def _texts(rows: Sequence[Row]) -> HashArray | None:
    """Return (n, K) hashes of answers to single requests, 0 where missing. None if there are none or one is no text."""
    answers = [row["resps"][0] if len(row["resps"]) == 1 else [] for row in rows]
    K = max(map(len, answers), default=0)
    if not K or not all(isinstance(text, str) for row in answers for text in row):
        return None
    return np.array([[*map(text_hash, row), *[0] * (K - len(row))] for row in answers], dtype=np.uint64)


def _aggregation(task: Any, metric: str) -> Aggregation:
    function = task.aggregation().get(metric)
    if function is None:
        return Aggregation()
    registered = str(getattr(function, "__module__", "")).startswith("lm_eval.api.metrics")
    return Aggregation(str(getattr(function, "__name__", function)), registered, lambda: function)


Metrics: TypeAlias = tuple[tuple[str, Weighting], ...]
"""The metrics that a group averages, each with its weighting."""
NativeGroups: TypeAlias = dict[str, tuple[list[str], Metrics]]
"""Group → its tasks and the metrics that it averages. Groups inside groups are included."""
Carried: TypeAlias = Mapping[str, tuple[ClusterNames, str | None]]
"""Task → clusters of all its documents, by their numbers, and their SPEC in words."""


@dataclass(slots=True)
class Collected:
    """The Run of a finished lm-eval run, with the raw values that it was made of."""

    run: Run
    tasks: dict[str, TaskScores]
    """Raw values per repeat of every metric, also of those that are not means."""


def flat_tasks(task_dict: Mapping[Any, Any]) -> dict[str, Any]:
    """Return {name: task object} from lm-eval's task dictionary, nested or not.

    Up to 0.4.11 it is nested {group or name: task or dict}; from 0.4.12 {"tasks", "groups", …}.
    """
    if "tasks" in task_dict and isinstance(task_dict["tasks"], Mapping):
        return dict(task_dict["tasks"])
    return dict(_leaves(task_dict))


def _leaves(node: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, below in node.items():
        below = below[1] if isinstance(below, tuple) else below
        if isinstance(below, Mapping):
            yield from _leaves(below)
        elif below is not None:
            yield str(name), below


def native_groups(task_dict: Mapping[Any, Any]) -> NativeGroups:
    """Return {group: (its tasks, weighting of each metric)} from lm-eval's task dictionary.

    Both shapes of lm-eval's task dict are read.
    """
    if "tasks" in task_dict and isinstance(task_dict["tasks"], Mapping):
        return {
            name: ([task.task_name for task in group.get_all_tasks()], _averaged(group.aggregate_metric_list))
            for name, group in (task_dict.get("groups") or {}).items()
        }
    out: NativeGroups = {}
    for key, below in task_dict.items():
        if isinstance(below, Mapping):
            config = getattr(key, "config", None) or {}
            name = str(getattr(key, "group_name", None) or key)
            out[name] = [task for task, _ in _leaves(below)], _averaged(config.get("aggregate_metric_list"))
            out |= native_groups(below)
    return out


def _averaged(configurations: Iterable[Any] | None) -> Metrics:
    # up to 0.4.11 also as a dataclass that is an empty dict
    settings = [config if type(config) is dict else vars(config) for config in configurations or ()]
    return tuple((config["metric"], "size" if config.get("weight_by_size") else "equal") for config in settings)


def collect(
    results: Mapping[str, Any],
    tasks: Mapping[str, Any],
    groups: NativeGroups,
    asking: Asking,
    options: Options,
    model: str,
    carried: Carried,
) -> Collected:
    """Return a finished live run's scores as a `Run`, raw ones by task. Raise ValueError if filters' documents differ.

    Args:
        results: what `evaluate` returned, with samples.
        tasks: name → task object.
        groups: see `native_groups`.
        asking: how often each question was asked.
        options: the user's choices.
        model: a name for the model.
        carried: clusters that come from the run compared with.
    """
    scored, gathered = measure(results, tasks, asking)
    questions = {name: scores.questions for name, scores in scored.items()}
    found = clusters_of_tasks(questions, options, gathered.notes, carried)
    for name, (clustered, _) in found.items():
        scored[name].clusters = clustered
    values = {name: reported(row) for name, row in results["results"].items()}
    rows = list(_group_rows(groups, results))
    run = gathered.run(
        found, model=model, name=model, harness="lm-eval", groups=in_groups(rows, values, gathered.scores)
    )
    for group, pattern in options.groups.items():
        try:
            run = with_groups(run, {group: pattern})
        except InputError as error:
            run = replace(run, notes=(*run.notes, Note("no_group", str(error), group)))
    return Collected(run, scored)


def measure(
    results: Mapping[str, Any], tasks: Mapping[str, Any], asking: Asking
) -> tuple[dict[str, TaskScores], Gathered]:
    """Return {task: raw scores} if sampled, and scores to analyze. Raise ValueError if filters' documents differ."""
    scored: dict[str, TaskScores] = {}
    gathered = Gathered()
    for name, task in tasks.items():
        if not (samples := results["samples"].get(name, [])):
            continue
        scores = scored[name] = TaskScores(name, by_filter(samples))
        _score(scores, task, asking, gathered.notes)
        if columns := columns_of(scores, task):
            gather(task_facts(scores, task, results, columns), columns, gathered)
        else:
            said = "the run only predicts (predict_only): nothing was scored, so it has no error bar"
            gathered.notes.append(Note(NOT_SCORED, said).of(name))
    return scored, gathered


def by_filter(samples: Sequence[Row]) -> dict[str, list[Row]]:
    """Return {filter: its samples sorted by document}. Raise ValueError if filters have different documents."""
    out: dict[str, list[Row]] = {}
    for row in sorted(samples, key=lambda row: row["doc_id"]):
        out.setdefault(row["filter"], []).append(row)
    documents = {name: [(row["doc_id"], row["target_hash"]) for row in rows] for name, rows in out.items()}
    first = next(iter(documents.values()), [])
    if others := [name for name, other in documents.items() if other != first]:
        raise ValueError(f"filter {others[0]!r} has other documents than the first filter")
    return out


def _score(out: TaskScores, task: Any, asking: Asking, notes: list[Note]) -> None:
    """Put scores of a live task's answers (K = 1: as logged) and signs of copies into `out`, remarks into `notes`."""
    name = out.name
    native_K, K = asking.times(name)
    out.identical = identical_answers(out.questions, K)
    copies = copied_answers(out.questions, native_K, K)
    out.copied = copies > 0 or (name in asking.copied and out.identical is not False)
    if copies:
        said = (
            f"lm-eval's own {native_K} answers are copies of each other on {copies} of {len(out.questions)} questions "
            "(one seed for all of them?) and count as one answer (copied_repeats)"
        )
        notes.append(Note("copied_repeats", said).of(name))
    ensembles = {ensemble.name: ensemble for ensemble in getattr(task, "_filters", ())}
    for key, samples in out.rows.items():
        if K > 1 and key in ensembles:
            scores = rescore(task, ensembles[key], samples, K, native_K, uneven=name in asking.uneven)
            scores = without_copies(scores, native_K) if out.copied else scores
        elif all("scores_per_repeat" in row for row in samples):
            scores = logged(samples)
        else:
            scores = unrepeated(samples)
        out.filters[key] = scores
        notes += [note.of(name, key) for note in scores.remarks]
        if scores.mismatch:
            metrics = ", ".join(sorted(scores.mismatch))
            said = f"the first repeat is not what lm-eval scored ({metrics}): see mean_mismatch"
            notes.append(Note(MISMATCH, said).of(name, key))


def clusters_of_tasks(
    questions: Mapping[str, Sequence[Row]], options: Options, notes: list[Note], carried: Carried
) -> dict[str, tuple[ClusterNames, str | None]]:
    """Return {task: ((n,) clusters, SPEC in words)}, without unclustered tasks, whose faults go to `notes`."""
    by_task: dict[str, AskedQuestions] = {}
    out: dict[str, tuple[ClusterNames, str | None]] = {}
    for name, rows in questions.items():
        if name in carried:
            every, words = carried[name]
            out[name] = tuple(every[row["doc_id"]] for row in rows), words
            continue
        own, wanted = None, resolve(options.cluster, name)
        if wanted is not None and not is_parallel(wanted):
            try:
                own = tuple(map(namer(wanted, name), (row["doc"] for row in rows)))
            except InputError as error:
                notes.append(Note("not_clustered", f"not clustered: {error}").of(name))
        by_task[name] = AskedQuestions([row["doc_id"] for row in rows], [row["target_hash"] for row in rows], own)
    spec = None if options.cluster == ClusterSpec() else options.cluster
    return out | clusters(spec, by_task, notes, flag=options.named("cluster"), whole=True)


def _group_rows(groups: NativeGroups, results: Mapping[str, Any]) -> Iterator[GroupRow]:
    """Yield a row for each value that lm-eval reports of a group's averaged metrics, with its tasks and weighting."""
    for name, (members, metrics) in groups.items():
        weighting = dict(metrics)
        for key, value in reported(results.get("groups", {}).get(name) or {}).items():
            if key[0] in weighting:
                yield GroupRow(name, key, value, members, weighting[key[0]])
