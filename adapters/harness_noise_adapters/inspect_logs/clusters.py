"""The clusters of a log's questions, and those that the tasks of inspect_evals are known to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness_noise.data.clusters import ClusterSpec, MissingFieldError, OuterFields, labeller, resolved
from harness_noise.data.scores import Scores
from harness_noise.errors import InputError

from ..records import field as lookup
from .records import bare

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


Clusters: TypeAlias = tuple[tuple[str, ...] | None, str | None]
"""Labels of the questions, and their SPEC in words."""


def spec_for(text: str | None, task: str) -> str | None:
    """The SPEC that a SPEC text has for this task, by its full or its bare name."""
    spec = ClusterSpec.parse(text)
    chosen: str | None = spec.for_task(task) or spec.for_task(bare(task))
    return chosen


@dataclass(slots=True)
class TaskClusters:
    """The samples of a task, in which clusters are looked up."""

    task: str
    """Its name, for `auto` and `task`."""
    keys: Sequence[str]
    """(n,) sample ids; a SPEC may name them as `id`."""
    metadata: Sequence[Mapping[str, Any] | None]
    """(n,) of the samples."""
    notes: list[str] = field(default_factory=list)
    """Sentences for the user; this class appends to it."""
    _known: dict[tuple[str | None, bool], Clusters] = field(default_factory=dict)

    def labels(self, spec: str | None, *, plain: bool = False) -> Clusters:
        """The clusters by a SPEC of this task; None and "none" are no clusters.

        Args:
            spec: of the clusters.
            plain: whether it is a key of the metadata, as a scorer's own stderr names it, that may be called `task`.

        Raises:
            MissingFieldError: a sample lacks the field.
            InputError: a template that fails.
        """
        if (spec, plain) not in self._known:
            self._known[spec, plain] = self._labels(spec, plain)
        return self._known[spec, plain]

    def _labels(self, spec: str | None, plain: bool) -> Clusters:
        words = spec
        if not plain:
            spec, words = resolved(ClusterSpec(spec), self.task, lambda task: natural(task, self.metadata))
        if spec is None:
            return None, None
        label = labeller(spec, None if plain else self.task)
        labels, odd = [], False
        for key, doc in zip(self.keys, self.metadata, strict=True):
            fields = {"id": key, **(doc or {})}
            value = label(fields)
            if value == "NaN":
                raise MissingFieldError(spec, fields)
            odd = odd or value[:1] in "[{"
            labels.append(" ".join(value.split()))  # summaries squeeze white space; a cluster must not depend on it
        if odd:
            self.notes.append(
                f"{self.task}: some values of {spec} are lists or dictionaries; equal text is one cluster"
            )
        return tuple(labels), words

    def labels_or_none(self, spec: str | None, *, plain: bool = False) -> Clusters:
        """The clusters, see `labels`; none where a sample lacks the field, as a note says."""
        try:
            return self.labels(spec, plain=plain)
        except InputError as error:
            self.notes.append(f"{self.task}: {error}; the questions count as independent")
            return self._known.setdefault((spec, plain), (None, None))

    def of_run(self, named: str | None, record: Any = None) -> tuple[Clusters, bool]:
        """The clusters of a run, and whether a scorer's own stderr may name others, because nobody has.

        Args:
            named: the SPEC of the user or of the run; without one the run's clusters are those that it has taken from
                another, or the key `cluster` of its samples.
            record: see `taken_clusters`.
        """
        if named is not None:
            clusters = self.labels_or_none(named)
            return clusters, named == "auto" and clusters[0] is None
        taken = taken_clusters(record, self.keys)
        if taken[0] is not None:
            return taken, False
        labelled = sum((doc or {}).get("cluster") is not None for doc in self.metadata)
        if labelled == len(self.metadata):
            return self.labels_or_none("cluster"), True
        if labelled:
            self.notes.append(
                f"{self.task}: {len(self.metadata) - labelled} of {len(self.metadata)} samples have no cluster of "
                "their own, so none is used and the questions count as independent; name one with `cluster`"
            )
        return (None, None), True

    def auto_hint(self) -> str:
        """What to say where `auto` has found nothing."""
        fields = sorted({str(key) for doc in self.metadata[:100] for key in doc or {}})
        has = f"its samples have {', '.join(fields[:8])}" if fields else "its samples have no metadata"
        return f"{self.task}: auto knows no cluster of this task, so the questions count as independent; {has}"


def taken_clusters(record: Any, keys: Sequence[str]) -> Clusters:
    """The clusters that a run has taken from the one it was compared with, as its record of the stopping has them.

    Args:
        record: `noise` of the metadata of `results.early_stopping`, whoever wrote it.
        keys: (n,) sample ids.
    """
    labels = lookup(record, "clusters", "labels")
    if not isinstance(labels, dict) or not all(key in labels for key in keys):
        return None, None
    return tuple(str(labels[key]) for key in keys), str(record["clusters"].get("spec", "cluster"))


def outer_fields(scores: Scores, metadata: Sequence[Mapping[str, Any] | None]) -> dict[str, dict[str, str]] | None:
    """`Scores.outer` from the (n,) metadata of its samples; None without clusters."""
    if scores.clusters is None or len(scores.clusters) != len(metadata):
        return None
    outer = OuterFields()
    for key, label, doc in zip(scores.questions.keys, scores.clusters, metadata, strict=True):
        outer.add(key, label, doc or {})
    return outer.found()
