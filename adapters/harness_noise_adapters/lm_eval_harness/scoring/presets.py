"""Cluster presets: which field of a known task says which questions belong together.

`auto` looks a task up here. Most presets are a field of the document. Parallel tasks (one benchmark
in many languages, or under many prompts) ask question i in every task: their cluster is the
document's index, across tasks, and it counts only where the reference answers agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness_noise.data.clusters import ClusterSpec, resolved

PARALLEL = "parallel:"
"""Prefix of a SPEC that stands for the document's index across the tasks of one family."""

FIELDS: tuple[tuple[str, str], ...] = (
    ("belebele*", "flores_passage"),
    ("squadv2*", "context"),
    ("xquad*", "context"),
    ("mlqa*", "context"),
    ("tydiqa*", "context"),
    ("eus_reading*", "context"),
    ("boolq*", "passage"),
    ("super-glue-boolq*", "passage"),
    ("drop*", "passage"),
    ("multirc*", "idx.paragraph"),
    ("record*", "passage"),
    ("mc_taco*", "{{sentence}}|{{question}}"),
    ("qa4mre*", "document_str"),
    ("qasper*", "title"),
    ("mutual*", "article"),
    ("hellaswag", "source_id"),
    ("*ethics_virtue", "scenario"),
    ("*ethics_deontology", "scenario"),
    ("*ethics_justice", "scenario"),
    ("discrim_eval*", "decision_question_id"),
    ("*_robustness_*", "question_id"),
)
"""(task glob, SPEC); the first that matches wins."""

FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (r"mgsm_(direct|en_cot|native_cot)_[a-z]+", "mgsm"),
        (r"(afri(mgsm|mmlu|xnli))_.+", r"\1"),
        (r"xcopa_[a-z]+", "xcopa"),
        (r"xnli_[a-z]+(_mt)?", "xnli"),
        (r"paws_[a-z]{2}", "paws-x"),
        (r"xstorycloze_[a-z]+", "xstorycloze"),
        (r"global_mmlu(_full)?_[a-z]{2}(_.+)?", r"global_mmlu\1\2"),
        (r"global_piqa_parallel(_[a-z]+)?_[a-z]{3}_[a-z]{4}", "global_piqa_parallel"),
        (r"(.+)_prompt_\d+", r"\1"),
    )
)
"""(task, family of parallel tasks); the first that matches the whole name wins."""


def preset(task: str) -> str | None:
    """The natural cluster SPEC of a built-in task; None where its questions are independent."""
    for pattern, spec in FIELDS:
        if fnmatchcase(task, pattern):
            return spec
    for name, family in FAMILIES:
        if found := name.fullmatch(task):
            return PARALLEL + found.expand(family)
    return None


def is_parallel(spec: str | None) -> bool:
    """Whether a resolved SPEC is the document's index across the tasks of a family."""
    return spec is not None and spec.startswith(PARALLEL)


def resolve(spec: str | ClusterSpec | Mapping[str, str] | None, task: str) -> str | None:
    """What a user's SPEC means for one task.

    Returns:
        None where the task is not clustered (nothing said, `none`, or `auto` without a preset);
        `task`; a SPEC for `harness_noise.data.clusters.labeller`; or `parallel:FAMILY` (see
        `parallel_labels`).
    """
    parsed = spec if isinstance(spec, ClusterSpec) else ClusterSpec.parse(spec)
    return resolved(parsed, task, preset)[0]


def describe(spec: str | ClusterSpec | Mapping[str, str] | None, task: str) -> str | None:
    """`resolve`, in words for people: "passage (auto)"; the `cluster_spec` of the Scores."""
    parsed = spec if isinstance(spec, ClusterSpec) else ClusterSpec.parse(spec)
    found, named = resolved(parsed, task, preset)
    return f"question across {found.removeprefix(PARALLEL)} tasks (auto)" if found and is_parallel(found) else named


@dataclass(frozen=True, slots=True)
class ParallelDocs:
    """What tells whether two tasks ask the same questions: (n,) each, in any order."""

    index: Sequence[int]
    targets: Sequence[str]
    """Hash of the reference answer."""


def parallel_labels(tasks: Mapping[str, ParallelDocs]) -> dict[str, tuple[str, ...] | None]:
    """Cluster labels across the tasks of one family: the documents' indices.

    A task belongs to the family if its reference answers are those of the first task wherever both
    have the index; another one gets None (it is not clustered).
    """
    known: dict[int, str] = {}
    out: dict[str, tuple[str, ...] | None] = {}
    for task, docs in tasks.items():
        pairs = list(zip(docs.index, docs.targets, strict=True))
        same = all(known.get(index, target) == target for index, target in pairs)
        shared = not known or any(index in known for index, _ in pairs)
        if not (same and shared and len(set(docs.index)) == len(pairs)):
            out[task] = None
            continue
        known.update(pairs)
        out[task] = tuple(str(index) for index in docs.index)
    return out
