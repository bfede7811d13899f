"""Two samples on the questions that both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from ..data.matching import pair, same_partition
from ..data.questions import Questions
from ..data.scores import Scores
from ..stats.arrays import FloatArray
from .sample import Sample, sample


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Two samples on the same questions, in the same order, and what was left out."""

    a: Sample
    b: Sample
    only_a: int
    only_b: int
    different_prompts: bool
    cluster: str | None
    notes: tuple[str, ...]


def align(parts_a: Sequence[Scores], parts_b: Sequence[Scores], shares: list[float] | None) -> Aligned:
    """Reduce each task to the questions that both runs scored."""
    kept_a, kept_b, notes = [], [], []
    only_a = only_b = 0
    prompts = False
    for one, other in zip(parts_a, parts_b, strict=True):
        scored_a = np.isnan(one.values).sum(axis=1) < one.values.shape[1]  # an infinite score is refused below
        scored_b = np.isnan(other.values).sum(axis=1) < other.values.shape[1]
        found = pair(one.questions, other.questions)
        both = scored_a[found.rows_a] & scored_b[found.rows_b]
        rows_a, rows_b = list(compress(found.rows_a, both)), list(compress(found.rows_b, both))
        only_a += int(scored_a.sum()) - len(rows_a)
        only_b += int(scored_b.sum()) - len(rows_a)
        if found.note is not None:
            notes.append(f"{one.task}: {found.note}")
        if one.questions.prompts is not None and other.questions.prompts is not None:
            pa, pb = one.questions.prompts, other.questions.prompts
            prompts |= any(pa[i] != pb[j] for i, j in zip(rows_a, rows_b, strict=True))
        clusters, spec = _shared_clusters(one, rows_a, other, rows_b)
        theirs = clusters if other.clusters is None else [other.clusters[j] for j in rows_b]
        if clusters is not None and theirs is not None and not same_partition(clusters, theirs):
            notes.append(f"{one.task}: the two runs cluster the questions differently; A's clusters count")
        part_a, part_b = one.take(rows_a), other.take(rows_b)
        outer = one.outer if one.clusters is not None else other.outer
        kept_a.append(replace(part_a, clusters=clusters, cluster_spec=spec, outer=outer))
        kept_b.append(replace(part_b, questions=part_a.questions, clusters=clusters, cluster_spec=spec))
    spec = next((part.cluster_spec for part in kept_a if part.cluster_spec), None)
    a, b = sample(kept_a, shares), sample(kept_b, shares)
    return Aligned(a, b, only_a, only_b, prompts, spec, tuple(notes))


def in_order_of(questions: Questions, part: Scores) -> FloatArray:
    """(n, K) the scores of these n questions, NaN where `part` has none."""
    same = pair(questions, part.questions)
    out = np.full((len(questions), part.values.shape[1]), np.nan)
    out[same.rows_a] = part.values[same.rows_b]
    return out


def _shared_clusters(
    one: Scores, rows_a: list[int], other: Scores, rows_b: list[int]
) -> tuple[tuple[str, ...] | None, str | None]:
    """A's clusters, or B's where A has none: the questions are the same, so their clusters are."""
    if one.clusters is not None:
        return tuple(one.clusters[i] for i in rows_a), one.cluster_spec
    if other.clusters is not None:
        return tuple(other.clusters[j] for j in rows_b), other.cluster_spec
    return None, None
