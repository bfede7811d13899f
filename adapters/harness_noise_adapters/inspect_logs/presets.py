"""The clusters that the tasks of inspect_evals are known to have; what `auto` stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness_noise.data.clusters import MissingFieldError, labeller

AUTO: dict[str, str] = {
    "squad": "context_hash",
    "drop": "passage_hash",
    "race_h": "article_hash",
    "docvqa": "document_id",
    # hashes language and text together, so every sample is its own cluster: `singleton_clusters` says it
    "mgsm": "question_id",
    # its numbers of examples and of templates start again in every category
    "bbq": "{{category}}/{{question_index}}",
    "zerobench_subquestions": "main_question_id",
    "frontierscience": "task_group_id",
    "cyse4_malware_analysis": "sha256",
    "cyse4_threat_intelligence": "report_id",
}
"""Task → the key (or template) of its samples' metadata that related questions share."""


def bare(task: str) -> str:
    """The task's name without the package that registered it."""
    return task.rsplit("/", 1)[-1]


def natural(task: str, metadata: Sequence[Mapping[str, Any] | None]) -> str | None:
    """The known cluster of a task, if one of its samples has it."""
    spec = AUTO.get(bare(task))
    if spec is None:
        return None
    label = labeller(spec)
    for doc in metadata:
        try:
            label(doc or {})
        except MissingFieldError:
            continue
        return spec
    return None
