"""Which clusters the questions of each task are in: by a SPEC, across parallel tasks, or as the samples carry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness_noise.data.clusters import ClusterSpec

from . import presets

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """The n questions of one task, as far as clusters go."""

    doc_ids: Sequence[int]
    targets: Sequence[str] | None
    """Hashes of the reference answers."""
    labels: Labels | None = None
    """By the field that the SPEC names; without a SPEC those that the samples carry."""
    carried_spec: str | None = None
    """Where these come from."""
    unlabelled: int = 0
    """Questions that carry none though others do."""


def clusters(
    spec: ClusterSpec | None,
    tasks: Mapping[str, AskedQuestions],
    notes: list[str],
    *,
    flag: str = "--cluster",
    whole: bool = False,
) -> dict[str, tuple[Labels, str | None]]:
    """Task → the clusters of its questions, and their SPEC in words; tasks without clusters are left out.

    Args:
        spec: the user's; None where nothing was said.
        tasks: those of a run.
        notes: here goes what the user should know.
        flag: how a SPEC is given.
        whole: whether these are all the tasks of the run: a single one of a family has nothing to be parallel with.
    """
    if spec is None:
        _hint(tasks, notes, flag)
        return {task: (asked.labels, asked.carried_spec) for task, asked in tasks.items() if asked.labels is not None}
    found: dict[str, Labels | None] = {}
    families: dict[str, dict[str, presets.ParallelDocs]] = {}
    unknown: list[str] = []
    for task, asked in tasks.items():
        wanted = presets.resolve(spec, task)
        if wanted is None:
            if spec.for_task(task) == "auto":
                unknown.append(task)
        elif not presets.is_parallel(wanted):
            found[task] = asked.labels
        elif asked.targets is not None:
            families.setdefault(wanted, {})[task] = presets.ParallelDocs(asked.doc_ids, asked.targets)
    if unknown:
        notes.append(f"{several(unknown)}: no natural cluster is known: the questions count as independent")
    for family in families.values():
        if whole and len(family) == 1:
            continue
        parallel = presets.parallel_labels(family)
        found |= parallel
        notes += [
            f"{task}: its reference answers are not those of its sister tasks: not clustered"
            for task, labels in parallel.items()
            if labels is None
        ]
    return {task: (labels, presets.describe(spec, task)) for task, labels in found.items() if labels is not None}


def _hint(tasks: Mapping[str, AskedQuestions], notes: list[str], flag: str) -> None:
    natural: dict[str, list[str]] = {}
    for task, asked in tasks.items():
        if asked.unlabelled:
            notes.append(
                f"{task}: {asked.unlabelled} of {len(asked.doc_ids)} questions carry no cluster, so none is used and "
                f"the questions count as independent; name one with {flag}"
            )
        elif asked.labels is None and (spec := presets.describe("auto", task)) is not None:
            natural.setdefault(spec, []).append(task)
    for spec, members in natural.items():
        if len(members) > 1 or not presets.is_parallel(presets.preset(members[0])):
            notes.append(f"{several(members)}: the questions have natural clusters, {spec}: ask with {flag} auto")


def several(names: Sequence[str]) -> str:
    """The first of the names, and how many more there are."""
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
