"""The runs of one benchmark on the union of their questions: what the pair engine takes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..analysis.sample import SHARED_NOISE_P, below
from ..data.clusters import both_ways, in_words
from ..data.matching import pair
from ..data.questions import CONTENT_KEYS, Questions
from ..data.scores import Scores
from ..errors import InputError
from ..stats.arrays import BoolArray, FloatArray, IntArray
from ..stats.contrast import cluster_codes, question_stats
from ..stats.pairs import Strata, Table
from ..stats.runs import run_component


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The runs of one benchmark on the union of their questions."""

    questions: Questions
    table: Table
    values: tuple[FloatArray, ...]
    """M arrays (N, K_m) of single scores, NaN where missing."""
    labels: tuple[str | None, ...]
    cluster_spec: str | None
    prompts: IntArray | None
    """(N, M) codes of the prompts, −1 where missing; None where they cannot differ."""
    unit: BoolArray
    solved: BoolArray
    """(N, M) at least one answer has score 1."""
    shared_noise: BoolArray
    notes: tuple[str, ...]


def grid(parts: Sequence[Scores]) -> Grid:
    """The runs of one task, metric and scorer; one Scores of each."""
    questions, rows, notes = _union([part.questions for part in parts])
    N, M = len(questions), len(parts)
    mean, var = np.full((N, M), np.nan), np.full((N, M), np.nan)
    count = np.zeros((N, M), dtype=np.intp)
    solved = np.zeros((N, M), dtype=np.bool_)
    unit = np.zeros(M, dtype=np.bool_)
    noisy = np.zeros(M, dtype=np.bool_)
    binary = True
    for m, (part, at) in enumerate(zip(parts, rows, strict=True)):
        try:
            stats = question_stats(part.values)
        except ValueError as error:
            raise InputError(f"{part.task}, {part.metric}: {error}") from None
        mean[at, m], var[at, m], count[at, m] = stats.mean, stats.var, stats.count
        scored = part.values[~np.isnan(part.values)]
        unit[m] = len(scored) > 0 and scored.min() >= 0 and scored.max() <= 1
        binary = binary and bool(((scored == 0) | (scored == 1)).all())
        solved[at, m] = (part.values >= 1).any(axis=1)
        runs = part.repeats_are_runs and part.values.shape[1] > 1
        noisy[m] = runs or _shared_noise(part.values, stats.count)
    labels, spec, told = _labels(parts, rows, N)
    keep = np.flatnonzero(count.any(axis=1))
    values = tuple(_scatter(part.values, at, N)[keep] for part, at in zip(parts, rows, strict=True))
    clusters = None
    if any(part.clusters is not None for part in parts):
        clusters = _codes([labels[i] for i in keep])
    table = Table(
        mean[keep],
        var[keep],
        count[keep],
        clusters,
        identical=np.array(["identical_repeats" in part.diagnostics for part in parts]),
        answers_differ=np.array([part.answers_differ for part in parts]),
        answers=None if binary or not (count > 1).any() else values,
        binary=binary,
    )
    return Grid(
        _take(questions, keep),
        table,
        values,
        tuple(labels[i] for i in keep),
        spec,
        _prompts(parts, rows, count, keep),
        unit,
        solved[keep],
        noisy,
        tuple(dict.fromkeys([*notes, *told])),
    )


def _labels(
    parts: Sequence[Scores], rows: Sequence[IntArray], N: int
) -> tuple[list[str | None], str | None, list[str]]:
    """(N,) cluster labels, each of the first run that has the question, how they were named, and notes."""
    labels: list[str | None] = [None] * N
    spec, notes = None, []
    for part, at in zip(parts, rows, strict=True):
        if part.clusters is None:
            continue
        _check_one_way(part)
        if spec is not None and part.cluster_spec != spec:
            notes.append(
                f"{part.task}: runs carry different clusters ({spec}, {part.cluster_spec}); "
                "a question keeps those of the first run that has it"
            )
        spec = spec or part.cluster_spec
        for i, label in zip(at, part.clusters, strict=True):
            labels[i] = label if labels[i] is None else labels[i]
    return labels, spec, notes


def _check_one_way(part: Scores) -> None:
    if both_ways(part.clusters) is not None:
        raise InputError(
            f"{part.task}, {part.metric}: these questions are clustered in two crossed ways "
            f"({in_words(part.cluster_spec)}), which arena does not compute: name one of the two with `cluster`, or "
            "use `compare` on the pairs that need both"
        )


def stacked(grids: Sequence[Grid], tasks: Sequence[str], shares: Sequence[float] | None) -> Grid:
    """The tasks of a group, one below the other, on the same M runs.

    Equal cluster labels in two tasks are one cluster if both come from the same cluster SPEC.

    Args:
        grids: one for each task.
        tasks: their names.
        shares: fixed weights of the tasks in the mean, summing to 1; None: by size.
    """
    M = grids[0].table.mean.shape[1]
    sizes = [len(item.questions) for item in grids]
    strata = np.repeat(np.arange(len(grids)), sizes)
    labels: list[Hashable] = []
    for item in grids:
        labels += [None if label is None else (item.cluster_spec, label) for label in item.labels]
    clustered = any(item.table.clusters is not None for item in grids)
    values = tuple(below([item.values[m] for item in grids]) for m in range(M))
    tables = [item.table for item in grids]
    count = np.concatenate([item.count for item in tables])
    binary = all(item.binary for item in tables)
    table = Table(
        np.concatenate([item.mean for item in tables]),
        np.concatenate([item.var for item in tables]),
        count,
        _codes(labels) if clustered else None,
        identical=np.any([item.identical for item in tables if item.identical is not None], axis=0),
        answers_differ=np.any([item.answers_differ for item in tables if item.answers_differ is not None], axis=0),
        answers=None if binary or not (count > 1).any() else values,
        binary=binary,
        strata=Strata(
            strata,
            None if shares is None else np.asarray(shares, dtype=np.float64),
            between=all(item.cluster_spec == "task" for item in grids),
        ),
    )
    prompts = None
    if any(item.prompts is not None for item in grids):
        blocks = [
            np.zeros((n, M), dtype=np.intp) if item.prompts is None else item.prompts
            for n, item in zip(sizes, grids, strict=True)
        ]
        prompts = np.where(count > 0, np.concatenate(blocks), -1)
    keys = [f"{task}: {key}" for task, item in zip(tasks, grids, strict=True) for key in item.questions.keys]
    texts = None
    if any(item.questions.texts for item in grids):
        texts = tuple(text for n, item in zip(sizes, grids, strict=True) for text in item.questions.texts or ("",) * n)
    return Grid(
        Questions(tuple(keys), grids[0].questions.kind, texts=texts),
        table,
        values,
        tuple(label for item in grids for label in item.labels),
        next((item.cluster_spec for item in grids if item.cluster_spec), None),
        prompts,
        np.all([item.unit for item in grids], axis=0),
        np.concatenate([item.solved for item in grids]),
        np.array([_shared_noise(values[m], count[:, m], table.strata) for m in range(M)]),
        tuple(dict.fromkeys(note for item in grids for note in item.notes)),
    )


def _codes(labels: Sequence[Hashable]) -> IntArray:
    """Cluster codes; a question without a label is its own cluster."""
    own = [("", i) if label is None else (label,) for i, label in enumerate(labels)]
    return cluster_codes(own)[0]


def _take(questions: Questions, keep: IntArray) -> Questions:
    texts = questions.shown()
    return Questions(
        tuple(questions.keys[i] for i in keep),
        questions.kind,
        texts=None if texts is None else tuple(texts[i] for i in keep),
    )


def _scatter(values: FloatArray, at: IntArray, N: int) -> FloatArray:
    out = np.full((N, values.shape[1]), np.nan)
    out[at] = values
    return out


def _shared_noise(values: FloatArray, count: IntArray, tasks: Strata | None = None) -> bool:
    """The F test of `sample.kernel`: do the repeats of this run move together?"""
    scored = np.flatnonzero(count > 0)
    if len(scored) == 0 or values.shape[1] < 2:
        return False
    codes = np.zeros(len(scored), dtype=np.intp) if tasks is None else tasks.codes[scored]
    weights = _weights(codes, None if tasks is None else tasks.shares)
    if weights is None:
        return False
    component = run_component(values[scored], weights, codes)
    p = None if component is None else component.p_value
    return p is not None and p < SHARED_NOISE_P


def _weights(codes: IntArray, shares: FloatArray | None) -> FloatArray | None:
    """Weight of each question of these tasks in the mean; None where a task of non-zero weight has none."""
    if shares is None:
        return np.full(len(codes), 1 / len(codes))
    sizes = np.bincount(codes, minlength=len(shares))
    return None if (sizes[shares > 0] == 0).any() else np.asarray((shares / np.maximum(sizes, 1))[codes])


def _union(questions: Sequence[Questions]) -> tuple[Questions, list[IntArray], list[str]]:
    """All questions of the runs, each once, and the row there of every run's questions.

    Where hashes of whole questions do not say it at once, runs are matched by `pairing.pair`, one after
    the other, to the questions found so far; it starts with a run that knows its questions' texts and has
    most of them.
    """
    largest = max(questions, key=lambda one: (len(one), one.documents is not None or one.texts is not None))
    at_once = _among(largest, questions)
    if at_once is not None:
        return largest, at_once, []
    order = sorted(range(len(questions)), key=lambda i: (questions[i].inputs is None, -len(questions[i])))
    union = questions[order[0]]
    rows: list[IntArray] = [np.zeros(0, dtype=np.intp)] * len(questions)
    notes: list[str] = []
    for i in order:
        one = questions[i]
        if (one.kind, one.keys, one.inputs, one.targets) == (union.kind, union.keys, union.inputs, union.targets):
            rows[i] = np.arange(len(union))
            continue
        found = pair(union, one)
        if found.note is not None:
            notes.append(found.note.replace(": left out", ": taken for different questions"))
        at = np.full(len(one), -1, dtype=np.intp)
        at[found.rows_b] = found.rows_a
        new = np.flatnonzero(at < 0)
        at[new] = len(union) + np.arange(len(new))
        rows[i] = at
        if len(new):
            union = _extend(union, one, new)
    return union, rows, notes


def _among(largest: Questions, questions: Sequence[Questions]) -> list[IntArray] | None:
    """The rows of all runs' questions in the largest run, without their texts, which may have to be read.

    None if that has not all of them, or if equal keys need not be equal questions.
    """
    if largest.kind not in CONTENT_KEYS or any(one.kind != largest.kind for one in questions):
        return None
    where: dict[str, int] = {}
    rows: list[IntArray] = []
    for one in questions:
        if one.keys == largest.keys:
            rows.append(np.arange(len(one)))
            continue
        where = where or {key: i for i, key in enumerate(largest.keys)}
        found = [where.get(key, -1) for key in one.keys]
        if -1 in found:
            return None
        rows.append(np.array(found, dtype=np.intp))
    return rows


def _extend(union: Questions, one: Questions, new: IntArray) -> Questions:
    """The union with the questions of another run that it did not have."""
    taken = set(union.keys)
    keys = []
    for j in new:
        key, n = one.keys[j], 2
        while key in taken:
            key = f"{one.keys[j]}#{n}"
            n += 1
        taken.add(key)
        keys.append(key)

    def more(have: Sequence[str] | None, his: Sequence[str] | None, blank: str) -> tuple[str, ...] | None:
        if have is None:
            return None
        # a text that no other run's can equal, where this run does not say
        return (*have, *(f"{blank}{key}" if his is None else his[j] for key, j in zip(keys, new, strict=True)))

    return replace(
        union,
        keys=(*union.keys, *keys),
        inputs=more(union.inputs, one.inputs, "\x00"),
        targets=more(union.targets, one.targets, "\x00"),
        prompts=None,
        texts=more(union.texts, one.texts, ""),
    )


def _prompts(parts: Sequence[Scores], rows: Sequence[IntArray], count: IntArray, keep: IntArray) -> IntArray | None:
    """Codes of the prompts, for `different_prompts`; None where all that are known agree."""
    codes = np.full(count.shape, -1, dtype=np.intp)
    index: dict[tuple[int, str], int] = {}
    for m, (part, at) in enumerate(zip(parts, rows, strict=True)):
        if part.questions.prompts is not None:
            codes[at, m] = [
                index.setdefault((int(i), text), len(index)) for i, text in zip(at, part.questions.prompts, strict=True)
            ]
    codes[count == 0] = -1
    codes = codes[keep]
    top = codes.max(axis=1, keepdims=True, initial=-1)
    return None if ((codes == top) | (codes < 0)).all() else codes
