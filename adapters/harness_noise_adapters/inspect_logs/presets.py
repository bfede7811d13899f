"""The clusters that the tasks of inspect_evals are known to have; what `auto` stands for."""

from __future__ import annotations

AUTO: dict[str, str] = {
    "squad": "context_hash",
    "drop": "passage_hash",
    "race_h": "article_hash",
    "docvqa": "document_id",
    # hashes language and text together, so every sample is its own cluster: `singleton_clusters` says it
    "mgsm": "question_id",
    "bbq": "source_id",
    "zerobench": "main_question_id",
    "frontierscience": "task_group_id",
    "cyse4_malware_analysis": "question_id",
    "cyse4_threat_intelligence": "question_id",
}
"""Task → the key of its samples' metadata that related questions share."""


def bare(task: str) -> str:
    """The task's name without the package that registered it."""
    return task.rsplit("/", 1)[-1]


def natural(task: str) -> str | None:
    """The known cluster key of a task."""
    return AUTO.get(bare(task))
