"""The clusters of a log's questions, and those that the tasks of inspect_evals are known to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness_noise.data.clusters import (
    ClusterSpec,
    FileSpec,
    MissingFieldError,
    OuterFields,
    Spec,
    UserSpec,
    clusters_of_file,
    name_or_none,
    namer,
    resolve_for_task,
)
from harness_noise.data.notes import Note, no_cluster_known
from harness_noise.data.scores import Scores
from harness_noise.errors import InputError, parameter

from ..records import field as lookup
from .records import bare

UNKNOWN = "cluster_template"
"""The diagnostic of a log whose clusters come from a template that it names. Templates from files are never run."""
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
    """Return the known cluster SPEC (metadata key or template) of a task. None: unknown, or no sample has it."""
    spec = AUTO.get(bare(task))
    if spec is None:
        return None
    name = namer(UserSpec(spec))
    for doc in metadata:
        try:
            name(doc or {})
        except MissingFieldError:
            continue
        return spec
    return None


_SHOWN = 200
"""Characters of a template that a note repeats."""
INPUT = "input"
"""The name by which a SPEC means a sample's input, unless the samples' metadata have a key of this name."""
Clusters: TypeAlias = tuple[tuple[str, ...] | None, str | None]
"""(n,) names of clusters, and their SPEC in words."""


def spec_for(spec: Spec | None, task: str) -> Spec | None:
    """Return the part of a cluster SPEC for a task, found by its full or bare name, or None."""
    if isinstance(spec, FileSpec):
        return spec.for_task(task, bare(task))
    parsed = ClusterSpec.parse(spec)
    return parsed.for_task(task) or parsed.for_task(bare(task))


@dataclass(slots=True)
class TaskClusters:
    """The samples of a task, in which clusters are looked up."""

    task: str
    """Its name, for `auto` and `task`."""
    keys: Sequence[str]
    """(n,) sample ids. A SPEC may name them as `id`."""
    metadata: Sequence[Mapping[str, Any] | None]
    """(n,) of the samples."""
    notes: list[Note] = field(default_factory=list)
    """Sentences for the user, to which this class appends."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Sample id → cluster, if the log holds those that a template made (see `inject.clusters_of`)."""
    inputs: Sequence[str] | None = None
    """(n,) hashes of input, target and choices, None if unknown. A SPEC may name them as `input`."""
    _known: dict[tuple[Spec | None, bool], Clusters] = field(default_factory=dict)

    def by_spec(self, spec: Spec | None, *, plain: bool = False) -> Clusters:
        """Return ((n,) clusters, SPEC in words), (None, None) without. Refuse a field that is missing.

        Args:
            spec: of the clusters.
            plain: whether it is a key of the metadata, as a scorer's own stderr names it, that may be called `task`.

        Raises:
            MissingFieldError: a sample lacks the field.
            InputError: a template that fails.
        """
        if (spec, plain) not in self._known:
            self._known[spec, plain] = self._by_spec(spec, plain)
        return self._known[spec, plain]

    def _by_spec(self, spec: Spec | None, plain: bool) -> Clusters:
        text = spec.text if isinstance(spec, FileSpec) else spec
        words: str | None = text
        if not plain:
            typed = None if text is None else UserSpec(text)
            known, words = resolve_for_task(ClusterSpec(typed), self.task, lambda task: natural(task, self.metadata))
            if known is None:
                return None, None
            spec = known if known != text else spec  # the meaning of `auto` is ours
        if spec is None:
            return None, None
        name = namer(spec, None if plain else self.task)
        clusters, squeezed, odd = [], dict[str, str](), False
        for i, (key, doc) in enumerate(zip(self.keys, self.metadata, strict=True)):
            asked = {} if self.inputs is None else {INPUT: self.inputs[i]}
            fields = {"id": key, **asked, **(doc or {})}
            value = name(fields)
            if value not in squeezed:
                if value == "NaN":
                    raise MissingFieldError(str(text), fields)
                odd = odd or value[:1] in "[{"
                squeezed[value] = " ".join(value.split())  # as summaries do; a cluster must not depend on it
            clusters.append(squeezed[value])
        if odd:
            said = f"some values of {text} are lists or dictionaries: equal text is one cluster"
            self.notes.append(Note("odd_clusters", said).of(self.task))
        return tuple(clusters), words

    def by_spec_or_none(self, spec: Spec | None, *, plain: bool = False) -> Clusters:
        """Return clusters like `by_spec`, but (None, None) and a note if a field is missing or a template fails."""
        try:
            return self.by_spec(spec, plain=plain)
        except InputError as error:
            self.notes.append(Note("not_clustered", f"{error}. The questions count as independent").of(self.task))
            return self._known.setdefault((spec, plain), (None, None))

    def of_run(self, named: Spec | None, record: Any = None) -> tuple[Clusters, bool]:
        """Return a run's clusters (named, copied or `cluster`, a note on failure), and True if stderr may name others.

        Args:
            named: the SPEC of the user or of the run; without one the run's clusters are those that it has taken from
                another, or the key `cluster` of its samples.
            record: see `taken_clusters`.
        """
        if isinstance(named, FileSpec) and named.is_template:
            return self._logged_template_clusters(named), False
        if named is not None:
            clusters = self.by_spec_or_none(named)
            return clusters, is_auto(named) and clusters[0] is None
        taken = taken_clusters(record, self.keys)
        if taken[0] is not None:
            return taken, False
        own = [name_or_none((doc or {}).get("cluster")) for doc in self.metadata]
        if clusters_of_file(self.task, own, self.notes) is not None:
            return self.by_spec_or_none(FileSpec("cluster")), True
        return (None, None), True

    def _logged_template_clusters(self, spec: FileSpec) -> Clusters:
        """Return a template's clusters as the log stores them. Without them: one cluster for all, and a note.

        If the log has none, it is unknown which questions belong together. They then form one cluster, which has no
        standard error.
        """
        if all(key in self.written for key in self.keys):
            return tuple(self.written[key] for key in self.keys), spec.text
        shown = spec.text if len(spec.text) <= _SHOWN else f"{spec.text[:_SHOWN]}…"
        said = (
            "no standard error, because its clusters are those of a template that the log names, and a template of a "
            f"file is never run. To repeat it, if you trust it: {parameter('cluster', shown)}. Or name a field, or "
            "`cluster='none'`"
        )
        self.notes.append(Note("cluster_template", said).of(self.task))
        return (UNKNOWN,) * len(self.keys), shown

    def auto_hint(self) -> Note:
        """Return the note that `cluster='auto'` found no clusters, with the samples' metadata fields."""
        fields = sorted({str(key) for doc in self.metadata[:100] for key in doc or {}})
        return no_cluster_known(self.task, fields)


def is_auto(spec: Spec | None) -> bool:
    """Return True if a SPEC is `auto`, which finds clusters in the table of known benchmarks."""
    return spec in ("auto", FileSpec("auto"))


def is_unknown(clusters: Sequence[str] | None) -> bool:
    """Return True if all clusters are the placeholder for clusters by a template that was not run."""
    return clusters is not None and len(clusters) > 0 and set(clusters) == {UNKNOWN}


def taken_clusters(record: Any, keys: Sequence[str]) -> Clusters:
    """Return the clusters that a stopped run copied from its baseline, from its record. (None, None) without.

    Args:
        record: `noise` of the metadata of `results.early_stopping`, from any program.
        keys: (n,) sample ids.
    """
    named = lookup(record, "clusters", "cluster_of")
    if not isinstance(named, dict) or not all(key in named for key in keys):
        return None, None
    return tuple(str(named[key]) for key in keys), str(record["clusters"].get("spec", "cluster"))


def outer_fields(scores: Scores, metadata: Sequence[Mapping[str, Any] | None]) -> dict[str, dict[str, str]] | None:
    """Return {metadata field: {cluster: value}} of fields constant within clusters, or None if there are no clusters.

    `metadata` are the (n,) metadata of the samples.
    """
    if scores.clusters is None or len(scores.clusters) != len(metadata):
        return None
    outer, docs = OuterFields(), [doc or {} for doc in metadata]
    names = map(str, docs[0]) if docs else ()
    outer.add_all(scores.questions.keys, scores.clusters, names, lambda field: [doc.get(field) for doc in docs])
    return outer.found()
