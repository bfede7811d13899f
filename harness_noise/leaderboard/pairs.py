"""All pairs of the runs of one benchmark: the runs on the union of their questions, and the pair columns as results.

What is said of every pair is what `compare` says of one, by the same functions; the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..analysis.sample import Sample, linearised, stack
from ..data.clusters import CROSS
from ..data.matching import pair
from ..data.questions import CONTENT_KEYS, Questions
from ..data.scores import Scores
from ..results.arena import Pairs
from ..settings import Settings
from ..stats import decision
from ..stats.arrays import BoolArray, FloatArray, IntArray
from ..stats.contrast import QuestionStats, question_stats
from ..stats.pairs import Columns, Table, difference_columns, paired


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The runs of one benchmark on the union of their questions."""

    questions: Questions
    table: Table
    samples: tuple[Sample, ...]
    """The M runs, each with all N questions, NaN where it has no score; the first has the clusters."""
    labels: tuple[str | None, ...]
    """(N,) cluster labels."""
    cluster_spec: str | None
    prompts: IntArray | None
    """(N, M) codes of the prompts, −1 where missing; None where they cannot differ."""
    missing: tuple[tuple[FloatArray, FloatArray], ...]
    """For each task, (n, M): whether a run was asked a question, and the share of its answers without a score."""
    notes: tuple[str, ...]


def grid(tasks: Sequence[Sequence[Scores]], shares: Sequence[float] | None = None) -> Grid:
    """The runs of one task, or of the tasks of a group, one below the other.

    Args:
        tasks: of each task one `Scores` of each of the M runs, of one metric and scorer.
        shares: fixed weights of the tasks in the mean, summing to 1; None: by size.
    """
    blocks = [_on_union(parts) for parts in tasks]
    samples = [stack(parts, shares) for parts in zip(*(block.parts for block in blocks), strict=True)]
    whole = blocks[0] if len(blocks) == 1 else _one_below_the_other(blocks)
    scored = np.stack([item.stats.count > 0 for item in samples], axis=1)
    ratio = any(item.per is not None for item in samples)
    # a ratio is of the questions that its sums are of, so that every run has to have them
    keep: BoolArray = np.all(scored, axis=1) if ratio else np.any(scored, axis=1)
    scored &= keep[:, None]
    if not keep.all():
        samples = [item.take(np.flatnonzero(keep)) for item in samples]
    if ratio:
        samples = _ratios(samples)
    mean, var, count = (np.stack([getattr(item.stats, name) for item in samples]) for name in ("mean", "var", "count"))
    binary = all(bool((np.isnan(x.values) | (x.values == 0) | (x.values == 1)).all()) for x in samples)
    place = np.cumsum(keep) - 1
    order = tuple(place[rows[scored[rows, m]]] for m, rows in enumerate(whole.rows))
    table = Table(
        QuestionStats(
            mean,
            var,
            count,
            np.array([item.stats.identical for item in samples]),
            np.array([item.stats.answers_differ for item in samples]),
        ),
        samples[0].design(),
        answers=None if binary else tuple(item.values for item in samples),
        order=None if all((np.diff(rows) > 0).all() for rows in order) else order,
    )
    prompts = None
    if (whole.prompts >= 0).any():
        prompts = np.where(scored, whole.prompts, -1)[keep]
        top = prompts.max(axis=1, keepdims=True, initial=-1)
        prompts = None if ((prompts == top) | (prompts < 0)).all() else prompts
    kept = np.flatnonzero(keep).tolist()
    texts = whole.questions.shown()
    return Grid(
        Questions(
            tuple(whole.questions.keys[i] for i in kept),
            whole.questions.kind,
            texts=None if texts is None else tuple(texts[i] for i in kept),
        ),
        table,
        tuple(samples),
        tuple(whole.labels[i] for i in kept),
        next((part.cluster_spec for block in blocks for part in block.parts if part.cluster_spec), None),
        prompts,
        tuple(map(_missing, blocks)) if any(part.n_missing for parts in tasks for part in parts) else (),
        tuple(dict.fromkeys(note for block in blocks for note in block.notes)),
    )


def _ratios(samples: Sequence[Sample]) -> list[Sample]:
    """The runs' ratios, linearised; one that is undefined has no value on any question."""
    out = []
    for item in samples:
        made = linearised(replace(item, labels=samples[0].labels))
        nothing = np.full_like(made.values, np.nan)
        made = replace(made, values=nothing, stats=question_stats(nothing)) if made.undefined else made
        out.append(replace(made, labels=item.labels))
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _Union:
    """The runs on all questions of one task, or of all tasks."""

    questions: Questions
    parts: Sequence[Scores]
    rows: Sequence[IntArray]
    """Each run's rows of the questions."""
    labels: Sequence[str | None]
    prompts: IntArray
    """(N, M) codes of the prompts, −1 where they are not known; (N, 1) where no run has any."""
    notes: Sequence[str] = ()


def _on_union(parts: Sequence[Scores]) -> _Union:
    """The runs on the union of their questions, with the clusters of the first run that has the question."""
    questions, rows, notes = _union([part.questions for part in parts])
    N = len(questions)
    labels: list[str | None] = [None] * N
    with_clusters = [(part, at) for part, at in zip(parts, rows, strict=True) if part.clusters is not None]
    first = with_clusters[0][0] if with_clusters else None
    for part, at in with_clusters:
        if first and first.cluster_spec != part.cluster_spec:
            notes.append(
                f"{part.task}: runs carry different clusters ({first.cluster_spec}, {part.cluster_spec}); "
                "a question keeps those of the first run that has it"
            )
        for i, label in zip(at, part.clusters or (), strict=True):
            labels[i] = label if labels[i] is None else labels[i]
    plain = [
        replace(
            part,
            questions=Questions(questions.keys, questions.kind),
            **part.arrays(partial(_scatter, at=at, N=N)),
            corrected=None if part.corrected is None else part.corrected.spread(at, N),
            clusters=None,
            cluster_spec=None if first is None else first.cluster_spec,
            outer=None if first is None else first.outer,
            factors=None,
        )
        for part, at in zip(parts, rows, strict=True)
    ]
    if first:  # a question without a label is its own cluster, in both ways where there are two
        own = [f"\x1f{i}" if label is None else label for i, label in enumerate(labels)]
        if any(CROSS in label for label in own):
            own = [label if CROSS in label else label + CROSS + label for label in own]
        plain[0] = replace(plain[0], clusters=tuple(own))
    return _Union(questions, plain, rows, labels, _prompts(parts, rows, N), notes)


def _one_below_the_other(blocks: Sequence[_Union]) -> _Union:
    """The questions of several tasks on the same M runs."""
    sizes = [len(block.questions) for block in blocks]
    start = np.cumsum([0, *sizes])
    M = len(blocks[0].rows)
    keys = [f"{block.parts[0].task}: {key}" for block in blocks for key in block.questions.keys]
    texts = None
    if any(block.questions.texts for block in blocks):
        texts = tuple(
            text for n, block in zip(sizes, blocks, strict=True) for text in block.questions.texts or ("",) * n
        )
    return _Union(
        Questions(tuple(keys), blocks[0].questions.kind, texts=texts),
        (),
        [np.concatenate([block.rows[m] + at for block, at in zip(blocks, start, strict=False)]) for m in range(M)],
        [label for block in blocks for label in block.labels],
        np.concatenate([np.broadcast_to(block.prompts, (n, M)) for n, block in zip(sizes, blocks, strict=True)]),
    )


def _missing(block: _Union) -> tuple[FloatArray, FloatArray]:
    """(n, M) whether each run was asked a question, and the share of its answers without a score."""
    asked = np.zeros((len(block.questions), len(block.rows)))
    for m, rows in enumerate(block.rows):
        asked[rows, m] = 1.0
    holes = np.stack([np.isnan(part.values).mean(axis=1) for part in block.parts], axis=1)
    return asked, holes * asked


def _scatter(values: FloatArray, at: IntArray, N: int) -> FloatArray:
    out = np.full((N, values.shape[1]), np.nan)
    out[at] = values
    return out


def _prompts(parts: Sequence[Scores], rows: Sequence[IntArray], N: int) -> IntArray:
    """Codes of the prompts, for `different_prompts`."""
    if all(part.questions.prompts is None for part in parts):
        return np.full((N, 1), -1, dtype=np.intp)
    codes = np.full((N, len(parts)), -1, dtype=np.intp)
    index: dict[tuple[int, str], int] = {}
    for m, (part, at) in enumerate(zip(parts, rows, strict=True)):
        if part.questions.prompts is not None:
            codes[at, m] = [
                index.setdefault((int(i), text), len(index)) for i, text in zip(at, part.questions.prompts, strict=True)
            ]
    return codes


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


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What pairs say beside their numbers."""

    names: tuple[str, ...]
    """(M,) model names."""
    runs: tuple[str, ...]
    """(M,) what their runs are called."""
    missing: tuple[Mapping[str, int], ...]
    """(M,) cause → answers that are missing by it."""
    common: Mapping[str, Any]
    """The fields that all pairs share."""
    n_missing: IntArray
    """(M,) answers of each model without a score."""
    codes: dict[str, BoolArray]
    """Diagnostic code → (P,) pairs that have it, beside those of the engine."""
    width: FloatArray | float | None
    """(P,) of the metric's range; None or NaN where it is not known."""


def decided(c: Columns, table: Table, facts: Facts, settings: Settings) -> Pairs:
    """Everything a comparison says, for every pair; p-values adjusted over all of them.

    Args:
        c: the engine's columns.
        table: what it took, for a test that looks at the questions again.
        facts: names, missing answers and what else is known.
        settings: level, test, margin and adjustment.
    """
    common = facts.common
    of = paired(c.of, c.leads, c.far, facts.width)
    test = None
    if settings.test == "sign":
        test = decision.by_sign(of.p_zero)
    elif settings.test == "wild":
        from ..stats.resampling import by_wild, wild_pairs

        test = by_wild(wild_pairs(table, c, settings), len(c), settings)
    found = decision.decide(of, settings, test)
    a_better = (of.diff > 0) == (common["higher_is_better"] is not False)
    verdicts = decision.apply_adjustment(found, a_better, settings)
    columns = (
        difference_columns(c.of, c.leads, c.sides, common["cluster"] is not None)
        | found.numbers()
        | {
            "interval": found.interval,
            "p_adjusted": verdicts.p_adjusted,
            "n_missing": facts.n_missing[c.a] + facts.n_missing[c.b],
        }
    )
    flags = dict(c.flags)
    more = {"identical_scores": c.leads.same, "not_after_adjustment": verdicts.lost_to_adjustment}
    for code, has in (facts.codes | more).items():
        flags[code] = flags[code] | has if code in flags else has
    flags = {code: has for code, has in flags.items() if has.any()}
    models = (facts.names, facts.runs, facts.missing)
    return Pairs(*models, common, c.a, c.b, columns, verdicts.codes, verdicts.words, flags)
