"""From a finished lm-eval run to a `Run`: scores per repeat, clusters, groups, and what was left out."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness_noise.data.clusters import ClusterSpec, MissingFieldError, labeller
from harness_noise.data.scores import CorpusScores, Group, Run, Scores, Skipped, Weighting, with_groups
from harness_noise.errors import InputError

from ..scoring import aggregates, choices, passes, presets
from ..scoring.rescore import (
    Row,
    copied_answers,
    identical_answers,
    logged,
    rescore,
    unrepeated,
    without_copies,
)
from .measured import TaskScores, _get, _measured
from .options import Options

log = logging.getLogger("harness_noise")


@dataclass(slots=True)
class Collected:
    """A run, with the raw values that it was made of."""

    run: Run
    tasks: dict[str, TaskScores]
    """Raw values per repeat of every metric, also of those that are not means."""


def flat_tasks(task_dict: Mapping[Any, Any]) -> dict[str, Any]:
    """name → task object, for both shapes of lm-eval's task dict.

    Up to 0.4.11 it is nested {group or name: task or dict}; from 0.4.12 {"tasks", "groups", …}.
    """
    if "tasks" in task_dict and isinstance(task_dict["tasks"], Mapping):
        return dict(task_dict["tasks"])
    return dict(_leaves(task_dict))


def _leaves(node: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, item in node.items():
        item = item[1] if isinstance(item, tuple) else item
        if isinstance(item, Mapping):
            yield from _leaves(item)
        elif item is not None:
            yield str(name), item


def native_groups(task_dict: Mapping[Any, Any]) -> dict[str, tuple[list[str], list[Any]]]:
    """group → (its tasks, its aggregate metric configurations); groups inside groups included."""
    if "tasks" in task_dict and isinstance(task_dict["tasks"], Mapping):
        return {
            name: ([task.task_name for task in group.get_all_tasks()], list(group.aggregate_metric_list or ()))
            for name, group in (task_dict.get("groups") or {}).items()
        }
    out: dict[str, tuple[list[str], list[Any]]] = {}
    for key, item in task_dict.items():
        if isinstance(item, Mapping):
            config = getattr(key, "config", None) or {}
            name = str(getattr(key, "group_name", None) or key)
            out[name] = ([task for task, _ in _leaves(item)], list(config.get("aggregate_metric_list") or ()))
            out |= native_groups(item)
    return out


def collect(
    results: Mapping[str, Any],
    tasks: Mapping[str, Any],
    groups: Mapping[str, tuple[list[str], list[Any]]],
    repeats: Mapping[str, tuple[int, int]],
    options: Options,
    model: str,
) -> Collected:
    """Everything that a finished run measured.

    Args:
        results: what `evaluate` returned, with samples.
        tasks: name → task object.
        groups: see `native_groups`.
        repeats: generate_until task → (answers that the harness's own filters saw, answers in all).
        options: the user's choices.
        model: a name for the model.
    """
    notes: list[str] = []
    found: dict[str, TaskScores] = {}
    for name, task in tasks.items():
        rows = by_filter(results["samples"].get(name, []))
        if rows:
            found[name] = _score(name, task, rows, repeats.get(name, (1, 1)), notes)
    _cluster(found, options.cluster, notes)
    scores: list[Scores] = []
    corpus: list[CorpusScores] = []
    skipped: list[Skipped] = []
    left_out: dict[str, list[str]] = {}
    budget = aggregates.Budget()
    for name, item in found.items():
        native_K = 1 if item.copied else repeats.get(name, (1, 1))[0]
        parts = list(_measured(item, tasks[name], results, native_K, budget))
        if not parts:
            notes.append(f"{name}: the run only predicts (predict_only): nothing was scored, so it has no error bar")
        scores += passes.with_passes([part for part in parts if isinstance(part, Scores)], native_K)
        corpus += [part for part in parts if isinstance(part, CorpusScores)]
        skipped += [part for part in parts if isinstance(part, Skipped)]
        scores += _probabilities(item, tasks[name], scores, left_out)
    run = Run(
        model=model, name=model, harness="lm-eval", scores=tuple(scores),
        groups=tuple(choices.in_groups(list(_groups(groups, results, scores)), scores)),
        corpus=tuple(corpus), skipped=tuple(skipped), notes=(*notes, *choices.why_not(left_out)),
    )  # fmt: skip
    for group, pattern in options.groups.items():
        try:
            run = with_groups(run, {group: pattern})
        except InputError as error:
            run = replace(run, notes=(*run.notes, str(error)))
    return Collected(run, found)


def _probabilities(
    item: TaskScores, task: Any, scores: Sequence[Scores], left_out: dict[str, list[str]]
) -> list[Scores]:
    """`acc_prob` beside each `acc` of a multiple-choice task; where there is none, `left_out` learns why."""
    out: list[Scores] = []
    own = [part for part in scores if part.task == item.name]
    if task.OUTPUT_TYPE != "multiple_choice" or any(part.metric == choices.METRIC for part in own):
        return out
    for part in [part for part in own if part.metric == choices.BESIDE]:
        try:
            out.append(choices.beside(part, choices.of_task(task, item.rows[part.scorer])))
        except choices.LeftOutError as error:
            left_out.setdefault(str(error), []).append(item.name)
        except Exception as error:  # noqa: BLE001 - the task's own code
            left_out.setdefault(f"{type(error).__name__}: {error}", []).append(item.name)
    return out


def by_filter(samples: Sequence[Row]) -> dict[str, list[Row]]:
    """filter → samples in one order of documents, whatever order the ranks left them in."""
    out: dict[str, list[Row]] = {}
    for row in sorted(samples, key=lambda row: row["doc_id"]):
        out.setdefault(row["filter"], []).append(row)
    first = next(iter(out.values()), [])
    for name, rows in out.items():
        if [_identity(row) for row in rows] != [_identity(row) for row in first]:
            raise ValueError(f"filter {name!r} has other documents than the first filter")
    return out


def _identity(row: Row) -> tuple[Any, Any]:
    return row["doc_id"], row["target_hash"]


def _score(name: str, task: Any, rows: dict[str, list[Row]], repeats: tuple[int, int], notes: list[str]) -> TaskScores:
    out = TaskScores(name, rows)
    native_K, K = repeats
    out.identical = K > 1 and identical_answers(out.questions, K)
    repeated = any(len(answers) > 1 for row in out.questions for answers in row["resps"])
    out.differ = K > 1 and repeated and not out.identical
    copies = copied_answers(out.questions, native_K, K)
    out.copied = copies > 0
    if copies:
        notes.append(
            f"{name}: lm-eval's own {native_K} answers are copies of each other on {copies} of {len(out.questions)} "
            "questions (one seed for all of them?) and count as one answer (copied_repeats)"
        )
    ensembles = {ensemble.name: ensemble for ensemble in getattr(task, "_filters", ())}
    for key, samples in rows.items():
        if K > 1 and key in ensembles:
            scores = rescore(task, ensembles[key], samples, K, native_K)
            scores = without_copies(scores, native_K) if out.copied else scores
        elif all("scores_per_repeat" in row for row in samples):
            scores = logged(key, samples)
        else:
            scores = unrepeated(key, samples)
        out.filters[key] = scores
        notes += [f"{name}, {key}: {note}" for note in scores.notes]
        if scores.mismatch:
            metrics = ", ".join(sorted(scores.mismatch))
            notes.append(f"{name}, {key}: the first repeat is not what lm-eval scored ({metrics}): see mean_mismatch")
    return out


def _cluster(found: Mapping[str, TaskScores], spec: ClusterSpec, notes: list[str]) -> None:
    families: dict[str, dict[str, TaskScores]] = {}
    naturally = [presets.preset(name) for name in found]
    for name, item in found.items():
        wanted = presets.resolve(spec, name)
        if wanted is None:
            hint = presets.describe("auto", name) if spec == ClusterSpec() else None
            if hint and not (naturally.count(presets.preset(name)) == 1 and presets.is_parallel(presets.preset(name))):
                notes.append(f"{name}: its questions have natural clusters, {hint}: ask with --noise_cluster auto")
            continue
        if presets.is_parallel(wanted):
            families.setdefault(wanted, {})[name] = item
            continue
        try:
            label = (lambda _doc, task=name: task) if wanted == "task" else labeller(wanted)
            item.clusters = tuple(label(row["doc"]) for row in item.questions)
            item.cluster_spec = presets.describe(spec, name)
        except InputError as error:
            notes.append(f"{name}: not clustered: {error}")
    for family, members in families.items():
        if len(members) == 1:  # nothing to be parallel with
            continue
        docs = {
            name: presets.ParallelDocs(
                [row["doc_id"] for row in item.questions], [row["target_hash"] for row in item.questions]
            )
            for name, item in members.items()
        }
        for name, labels in presets.parallel_labels(docs).items():
            members[name].clusters = labels
            members[name].cluster_spec = presets.describe(spec, name) if labels is not None else None
            if labels is None:
                notes.append(
                    f"{name}: not clustered: its reference answers are not those of the other "
                    f"{family.removeprefix(presets.PARALLEL)} tasks, so its questions are not the same"
                )


def first_missing(tasks: Mapping[str, Any], spec: ClusterSpec) -> tuple[list[str], list[str]]:
    """What is wrong with the cluster fields before the run starts.

    Returns:
        (errors, warnings): a field that the user named and the documents lack is an error; a preset
        that does not fit is a warning.
    """
    errors: list[str] = []
    warnings: list[str] = []
    for name, task in tasks.items():
        wanted = presets.resolve(spec, name)
        if wanted is None or wanted == "task" or presets.is_parallel(wanted):
            continue
        docs = getattr(task, "task_docs", None)
        doc = next(iter(docs if docs is not None else task.eval_docs), None)
        if doc is None:
            continue
        try:
            labeller(wanted)(doc)
        except MissingFieldError as error:
            (warnings if spec.for_task(name) == "auto" else errors).append(f"{name}: {error}")
    return errors, warnings


def _groups(
    groups: Mapping[str, tuple[list[str], list[Any]]], results: Mapping[str, Any], scores: Sequence[Scores]
) -> Iterator[Group]:
    have = {(part.task, part.metric, part.scorer) for part in scores}
    for name, (members, configurations) in groups.items():
        row = results.get("groups", {}).get(name) or {}
        for config in configurations:
            metric = _get(config, "metric")
            weighting: Weighting = "size" if _get(config, "weight_by_size") else "equal"
            for key, value in row.items():
                base, _, scorer = key.partition(",")
                if base != metric or not scorer or not isinstance(value, (int, float)):
                    continue
                # lm-eval averages the tasks that have the metric; one that is listed twice counts twice
                used = [task for task in members if key in results["results"].get(task, {})]
                whole = len(set(used)) == len(used) and all((task, metric, scorer) in have for task in used)
                native = float(value) if math.isfinite(value) else None
                yield Group(name, metric, scorer, tuple(used) if whole else (), weighting, native)
