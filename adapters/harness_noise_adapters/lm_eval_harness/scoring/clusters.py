"""The clusters of the questions of each task: by a SPEC or preset, across parallel tasks, or as samples carry them.

`auto` finds a task in the presets. Most of them are a field of the document. Parallel tasks (one benchmark
in many languages, or under many prompts) ask question i in every task: their cluster is the
document's index, across tasks, and it counts only where the reference answers agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness_noise.data.clusters import ClusterSpec, UserSpec, resolve_for_task
from harness_noise.data.notes import Note, natural_clusters, no_cluster_known, not_all_clustered
from harness_noise.errors import some_of

PARALLEL = "parallel:"
"""Prefix of a SPEC that stands for the document's index across the tasks of one family."""

FIELDS: dict[str, tuple[str, ...]] = {
    "flores_passage": ("belebele*",),
    "context": ("squadv2*", "xquad*", "mlqa*", "tydiqa*", "eus_reading*"),
    "passage": ("boolq*", "super-glue-boolq*", "drop*", "record*", "super_glue-record*"),
    "idx.paragraph": ("multirc*", "super_glue-multirc*"),
    "{{sentence}}|{{question}}": ("mc_taco*",),
    "document_str": ("qa4mre*",),
    "title": ("qasper*",),
    "article": ("mutual*",),
    "source_id": ("hellaswag",),
    "scenario": ("*ethics_virtue", "*ethics_deontology", "*ethics_justice"),
    "decision_question_id": ("discrim_eval*",),
    "question_id": ("*_robustness_*",),
}
"""SPEC → globs of the tasks. The first that matches wins."""

FAMILIES: dict[str, str] = {
    r"mgsm_(direct|en_cot|native_cot)_[a-z]+": "mgsm",
    r"(afri(mgsm|mmlu|xnli))_.+": r"\1",
    r"xcopa_[a-z]+": "xcopa",
    r"xnli_[a-z]+(_mt)?": "xnli",
    r"paws_[a-z]{2}": "paws-x",
    r"xstorycloze_[a-z]+": "xstorycloze",
    r"global_mmlu(_full)?_[a-z]{2}(_.+)?": r"global_mmlu\1\2",
    r"global_piqa_parallel(_[a-z]+)?_[a-z]{3}_[a-z]{4}": "global_piqa_parallel",
    r"(.+)_prompt_\d+": r"\1",
}
"""Task → family of parallel tasks. The first that matches the whole name wins."""


def preset(task: str) -> str | None:
    """Return the known cluster SPEC of a built-in lm-eval task. None: independent or unknown."""
    for spec, patterns in FIELDS.items():
        if any(fnmatchcase(task, pattern) for pattern in patterns):
            return spec
    for pattern, family in FAMILIES.items():
        if match := re.fullmatch(pattern, task):
            return PARALLEL + match.expand(family)
    return None


def is_parallel(spec: str | None) -> bool:
    """Return True if a SPEC clusters questions by index over a family's parallel tasks (languages)."""
    return spec is not None and spec.startswith(PARALLEL)


def resolve(spec: ClusterSpec, task: str) -> UserSpec | None:
    """Return the cluster SPEC of a task: the user's, or for `auto` the known one. None: no clusters.

    Returns:
        None where the task is not clustered (nothing said, `none`, or `auto` without a preset);
        `task`; a SPEC for `harness_noise.data.clusters.namer`; or `parallel:FAMILY` (see
        `parallel_clusters`).
    """
    return resolve_for_task(spec, task, preset)[0]


def describe(spec: ClusterSpec, task: str) -> str | None:
    """Return a task's clusters in words: "passage (auto)". None without clusters."""
    wanted, named = resolve_for_task(spec, task, preset)
    return f"question across {wanted.removeprefix(PARALLEL)} tasks (auto)" if wanted and is_parallel(wanted) else named


def parallel_clusters(tasks: Mapping[str, AskedQuestions]) -> dict[str, ClusterNames | None]:
    """Return {task: document indices as clusters shared over parallel tasks, or None if its answers or indices differ}.

    A task belongs to the family if its reference answers are those of the first task wherever both
    have the index; another one gets None (it is not clustered).
    """
    targets: dict[int, str] = {}
    out: dict[str, ClusterNames | None] = {}
    for task, docs in tasks.items():
        pairs = list(zip(docs.doc_ids, docs.targets or (), strict=True))
        same = all(targets.get(index, target) == target for index, target in pairs)
        shared = not targets or any(index in targets for index, _ in pairs)
        if not (same and shared and len(set(docs.doc_ids)) == len(pairs)):
            out[task] = None
            continue
        targets.update(pairs)
        out[task] = tuple(str(index) for index in docs.doc_ids)
    return out


ClusterNames = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """The n questions of one task, as far as clusters go."""

    doc_ids: Sequence[int]
    targets: Sequence[str] | None
    """Hashes of the reference answers."""
    clusters: ClusterNames | None = None
    """The clusters by the SPEC's field, or those in the samples if there is no SPEC."""
    carried_spec: str | None = None
    """The source of the clusters in the samples."""
    unclustered: int = 0
    """Questions that carry none though others do."""


def clusters(
    spec: ClusterSpec | None,
    tasks: Mapping[str, AskedQuestions],
    notes: list[Note],
    *,
    flag: str = "`cluster`",
    whole: bool = False,
) -> dict[str, tuple[ClusterNames, str | None]]:
    """Return {task: (clusters, SPEC in words)} by the SPEC, else as carried, without unclustered tasks. Add notes.

    A task that the SPEC does not name keeps those that it carries.

    Args:
        spec: the user's; None where nothing was said.
        tasks: those of a run.
        notes: here goes what the user should know.
        flag: how a SPEC is given.
        whole: whether these are all the tasks of the run: a single one of a family has nothing to be parallel with.
    """
    if spec is None:
        _hint(tasks, notes, flag)
        return {task: (docs.clusters, docs.carried_spec) for task, docs in tasks.items() if docs.clusters is not None}
    named: dict[str, ClusterNames | None] = {}
    carried: dict[str, str | None] = {}
    families: dict[str, dict[str, AskedQuestions]] = {}
    unknown: list[str] = []
    for task, docs in tasks.items():
        wanted = resolve(spec, task)
        if wanted is None:
            if (said := spec.for_task(task)) == "auto":
                unknown.append(task)
            elif said is None:
                named[task], carried[task] = docs.clusters, docs.carried_spec
        elif not is_parallel(wanted):
            named[task] = docs.clusters
        elif docs.targets is not None:
            families.setdefault(wanted, {})[task] = docs
    if unknown:
        notes.append(no_cluster_known(some_of(unknown, 1)))
    for family in families.values():
        if whole and len(family) == 1:
            continue
        parallel = parallel_clusters(family)
        named |= parallel
        notes += [
            Note("not_clustered", "its reference answers are not those of its sister tasks: not clustered").of(task)
            for task, found in parallel.items()
            if found is None
        ]
    words = {task: describe(spec, task) for task in named} | carried
    return {task: (found, words[task]) for task, found in named.items() if found is not None}


def _hint(tasks: Mapping[str, AskedQuestions], notes: list[Note], flag: str) -> None:
    natural: dict[str, list[str]] = {}
    for task, docs in tasks.items():
        if docs.unclustered:
            notes.append(not_all_clustered(task, docs.unclustered, len(docs.doc_ids), flag))
        elif docs.clusters is None and (spec := describe(ClusterSpec(UserSpec("auto")), task)) is not None:
            natural.setdefault(spec, []).append(task)
    for spec, members in natural.items():
        if len(members) > 1 or not is_parallel(preset(members[0])):
            notes.append(natural_clusters(some_of(members, 1), spec, f"{flag} auto"))
