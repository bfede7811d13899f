"""Several runs of one model, joined as the repeats of one run (`--as-repeats`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .errors import InputError
from .pairing import Pairing, pair, same_partition
from .results import merge_notes
from .scores import Run, Scores, occurrences


def as_repeats(runs: Sequence[Run]) -> list[Run]:
    """Join the runs of each model: the repeats of all its runs, question by question.

    A question that only some runs have keeps the repeats it has. The order of models is kept.

    Raises:
        InputError: two runs of a model with no question in common.
    """
    models: dict[str, list[Run]] = {}
    for run in runs:
        models.setdefault(run.model, []).append(run)
    return [_join(group) if len(group) > 1 else group[0] for group in models.values()]


def _join(runs: Sequence[Run]) -> Run:
    first = runs[0]
    joined = []
    notes = list(merge_notes(*(run.notes for run in runs)))
    runs = [replace(run, scores=tuple(_distinct(item) for item in run.scores)) for run in runs]
    for scores in runs[0].scores:
        key = (scores.task, scores.metric, scores.scorer)
        others = [item for run in runs[1:] for item in run.scores if (item.task, item.metric, item.scorer) == key]
        if len(others) < len(runs) - 1:
            notes.append(f"{scores.task}, {scores.metric}: only {1 + len(others)} of {len(runs)} runs have it")
        for other in others:
            scores = _append(scores, other, first, notes)
        joined.append(scores)
    return replace(
        first,
        name=f"{first.name} + {len(runs) - 1} more",
        path="",
        scores=tuple(joined),
        groups=tuple(replace(group, native=None) for group in first.groups),
        notes=tuple(notes),
    )


def _distinct(scores: Scores) -> Scores:
    """A run that gave one answer K times has one repeat to offer, not K."""
    if "identical_repeats" not in scores.diagnostics:
        return scores
    rest = tuple(code for code in scores.diagnostics if code != "identical_repeats")
    return replace(scores, values=scores.values[:, :1], diagnostics=rest)


def _append(one: Scores, other: Scores, run: Run, notes: list[str]) -> Scores:
    """`other`'s repeats as further columns of `one`; questions that only `other` has come at the end."""
    found = pair(one.questions, other.questions)
    if not found.rows_a:
        raise InputError(f"{one.task}: two runs of {run.model} have no question in common; they cannot be repeats")
    if found.note:
        notes.append(f"{one.task}: {found.note}")
    n, k = one.values.shape
    seen = set(found.rows_b)
    new = [j for j in range(len(other.questions)) if j not in seen]
    values = np.full((n + len(new), k + other.values.shape[1]), np.nan)
    values[:n, :k] = one.values
    values[np.ix_(found.rows_a, range(k, values.shape[1]))] = other.values[found.rows_b]
    values[n:, k:] = other.values[new]
    clusters, spec = _clusters(one, other, found, new, run, notes)

    def extend(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if a is None or b is None else a + tuple(b[j] for j in new)

    q, r = one.questions, other.questions
    questions = replace(
        q,
        keys=occurrences(q.keys + tuple(r.keys[j] for j in new)),
        inputs=extend(q.inputs, r.inputs),
        targets=extend(q.targets, r.targets),
        prompts=extend(q.prompts, r.prompts),
        texts=extend(q.texts, r.texts),
    )
    return replace(
        one,
        questions=questions,
        values=values,
        clusters=clusters,
        cluster_spec=spec,
        native=None,
        n_missing=one.n_missing + other.n_missing,
        diagnostics=tuple(sorted(set(one.diagnostics) | set(other.diagnostics))),
    )


def _clusters(
    one: Scores, other: Scores, found: Pairing, new: Sequence[int], run: Run, notes: list[str]
) -> tuple[tuple[str, ...] | None, str | None]:
    """The clusters of the joined questions, whichever of the runs names them."""
    if one.clusters is None and other.clusters is None:
        return None, None
    mixed = InputError(
        f"{one.task}: one run of {run.model} has clusters, another has none and other questions: which clusters those "
        "are in is not known; use --cluster SPEC, or --cluster none"
    )
    if one.clusters is None:
        assert other.clusters is not None
        labels = {i: other.clusters[j] for i, j in zip(found.rows_a, found.rows_b, strict=True)}
        if len(labels) < len(one.questions):
            raise mixed
        old, spec = tuple(labels[i] for i in range(len(one.questions))), other.cluster_spec
    else:
        old, spec = one.clusters, one.cluster_spec
        if other.clusters is None:
            if new:
                raise mixed
            return old, spec
        if not same_partition([old[i] for i in found.rows_a], [other.clusters[j] for j in found.rows_b]):
            notes.append(
                f"{one.task}: two runs of {run.model} cluster the questions differently; those of {run.name} count"
            )
    return old + tuple(other.clusters[j] for j in new), spec
