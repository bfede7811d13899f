"""Reference runs: from the part of a benchmark that a run has answered to all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np

from ..data.matching import pair
from ..data.questions import Questions
from ..data.scores import Run, Scores
from ..errors import InputError
from ..results.sequential import FullRow
from ..settings import Settings
from ..stats.contrast import question_stats
from .comparison import _matched
from .drawing import STOPPED
from .partial import NotRandomError, full_benchmark, part_of
from .ranges import hull
from .sample import group_parts, group_shares

if TYPE_CHECKING:
    from ..stats.arrays import FloatArray, IntArray


def of_runs(
    runs: Sequence[Run], references: Sequence[Run], settings: Settings, *, refuse: bool = True
) -> tuple[tuple[FullRow, ...], list[str]]:
    """The means of whole benchmarks, for everything that a run and a reference measured; and notes.

    Args:
        runs: of which each has answered a part of the questions, drawn at random.
        references: runs that have answered them all.
        settings: its level.
        refuse: whether a part that was not drawn at random is an error; else its row says nothing of the whole.

    Raises:
        InputError: a part that was not drawn at random, or nothing that a reference has measured.
    """
    rows: list[FullRow] = []
    notes: list[str] = []
    for run in runs:
        others = [item for item in references if item.path != run.path or not run.path or item.model != run.model]
        for parts, name, shares in _tasks(run):
            try:
                rows += _row(parts, others, name, run, shares, settings, notes)
            except NotRandomError as error:
                if refuse:
                    raise
                notes.append(str(error))
                rows.append(_nothing(parts, others, name, run))
    return _checked(rows, notes, references)


def of_pairs(
    pairs: Sequence[tuple[Run, Run]], references: Sequence[Run], settings: Settings
) -> tuple[tuple[FullRow, ...], list[str]]:
    """The differences A − B on whole benchmarks, as `of_runs` has the means."""
    rows: list[FullRow] = []
    notes: list[str] = []
    for run_a, run_b in pairs:
        matched, _ = _matched(run_a, run_b, alone=False)
        differences = [_difference(one, other) for one, other in matched]
        both = {item["task"] for item in run_a.drawn} & {item["task"] for item in run_b.drawn}
        whole = replace(
            run_a, model=f"{run_a.model} − {run_b.model}", scores=tuple(differences), parts=(),
            drawn=tuple(item for item in run_a.drawn if item["task"] in both),
        )  # fmt: skip
        for parts, name, shares in _tasks(whole):
            rows += _row(parts, references, name, whole, shares, settings, notes)
    return _checked(rows, notes, references)


def _checked(rows: list[FullRow], notes: list[str], references: Sequence[Run]) -> tuple[tuple[FullRow, ...], list[str]]:
    if not rows and not notes:
        names = ", ".join(run.model for run in references[:6])
        raise InputError(
            f"the references ({names}) have measured nothing that the runs have: name runs of the same tasks"
        )
    nothing = [
        f"{row.task} {row.metric}".strip()
        for row in rows
        if row.estimate is not None and (row.gain is None or row.gain <= 1)
    ]
    if nothing:
        notes.append(
            f"{', '.join(dict.fromkeys(nothing))}: the references gain nothing, so the plain mean of the part is shown"
        )
    return tuple(rows), notes


def _tasks(run: Run) -> list[tuple[list[Scores], str, list[float] | None]]:
    """Every task of a run, and every group of which it has all tasks."""
    out: list[tuple[list[Scores], str, list[float] | None]] = [([part], part.task, None) for part in run.scores]
    for group in run.groups:
        parts = group_parts(run, group)
        if parts is not None:
            out.append((parts, group.name, group_shares(parts, group)))
    return out


def _difference(one: Scores, other: Scores) -> Scores:
    """A − B of the question means, as scores of one answer."""
    found = pair(one.questions, other.questions)
    d = question_stats(one.values).mean[found.rows_a] - question_stats(other.values).mean[found.rows_b]
    keys, rows = one.questions, found.rows_a
    inputs = None if keys.inputs is None else tuple(keys.inputs[i] for i in rows)
    return replace(
        one, values=d[:, None], clusters=None if one.clusters is None else tuple(one.clusters[i] for i in rows),
        questions=Questions(tuple(keys.keys[i] for i in rows), keys.kind, inputs=inputs), bounds=None, native=None,
        factors=None, n_missing=0, diagnostics=_stopped((one, other)),
    )  # fmt: skip


def _stopped(parts: Sequence[Scores]) -> tuple[str, ...]:
    """The code of a row with a part whose number of questions its scores decided."""
    return (STOPPED,) if any(STOPPED in part.diagnostics for part in parts) else ()


def _row(
    parts: Sequence[Scores], references: Sequence[Run], name: str, run: Run, shares: list[float] | None,
    settings: Settings, notes: list[str],
) -> list[FullRow]:  # fmt: skip
    """One row, or a note that says why there is none; nothing where no reference has measured it."""
    blocks = [_block(part, references) for part in parts]
    known = [block for block in blocks if block is not None]
    if len(known) < len(blocks) or not known:
        return []
    names = [n for n in known[0].names if all(n in block.names for block in known)]
    if not names:
        return []
    start = np.cumsum([0, *(len(block.X) for block in known)])
    asked = np.concatenate([block.asked + at for block, at in zip(known, start, strict=False)])
    if len(asked) >= start[-1]:
        notes.append(
            f"{name} {parts[0].metric}: {run.model} has answered all {start[-1]:,} questions of the references"
        )
        return []
    part = part_of(
        asked, int(start[-1]),
        [label for block in known for label in block.clusters] if any(block.clustered for block in known) else None,
        np.repeat(np.arange(len(known)), np.diff(start)), shares,
    )  # fmt: skip
    X = np.concatenate([block.X[:, [block.names.index(n) for n in names]] for block in known])
    y = np.concatenate([block.y for block in known])
    bounds = hull([item.bounds for item in parts])  # differences have none
    sizes = {item["task"]: item["n_total"] for item in run.drawn}
    drawn = all(sizes.get(item.task) == len(block.X) for item, block in zip(parts, known, strict=True))
    found = full_benchmark(y, part, X, tuple(names), settings.level, name, bounds=bounds, drawn=drawn)
    fields = asdict(found) | {"diagnostics": tuple(sorted((*found.diagnostics, *_stopped(parts))))}
    return [FullRow(task=name, metric=parts[0].metric, scorer=parts[0].scorer, model=run.model, **fields)]


def _nothing(parts: Sequence[Scores], references: Sequence[Run], name: str, run: Run) -> FullRow:
    """The row of a part that says nothing of the whole."""
    blocks = [block for part in parts if (block := _block(part, references)) is not None]
    return FullRow(
        task=name, metric=parts[0].metric, scorer=parts[0].scorer, model=run.model, estimate=None, se=None, ci_low=None,
        ci_high=None, n_asked=sum(len(block.asked) for block in blocks), n_total=sum(len(block.X) for block in blocks),
        r2=None, gain=None, references=tuple(dict.fromkeys(n for block in blocks for n in block.names)),
        diagnostics=("not_a_random_part", *_stopped(parts)),
    )  # fmt: skip


class _Block:
    """One task: all its N questions in the benchmark's order, and which of them a run has answered."""

    def __init__(self, part: Scores, references: Sequence[tuple[str, Scores]]) -> None:
        whole = max((item for _, item in references), key=lambda item: len(item.questions))
        order = benchmark_order(whole.questions)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        found = pair(part.questions, whole.questions)
        means = question_stats(part.values).mean
        scored = ~np.isnan(means)
        if len(found.rows_a) < len(part.questions):
            lost = len(part.questions) - len(found.rows_a)
            raise InputError(
                f"{part.task}, {part.metric}: {lost} of {len(part.questions)} questions are not among those of the "
                "references, which must have answered the whole benchmark"
            )
        rows_a, rows_b = np.array(found.rows_a, dtype=np.intp), np.array(found.rows_b, dtype=np.intp)
        kept = scored[rows_a]
        self.y: FloatArray = means[rows_a[kept]]
        self.asked: IntArray = place[rows_b[kept]]
        self.names = [name for name, _ in references]
        self.X: FloatArray = np.full((len(order), len(references)), np.nan)
        for r, (_, item) in enumerate(references):
            same = pair(item.questions, whole.questions)
            self.X[place[same.rows_b], r] = question_stats(item.values).mean[same.rows_a]
        labels = [f"\x1f{i}" for i in range(len(order))]
        self.clustered = part.clusters is not None or whole.clusters is not None
        if whole.clusters is not None:
            for i, label in enumerate(whole.clusters):
                labels[place[i]] = label
        elif part.clusters is not None:  # of the questions that were not asked nothing is known
            for i, j in zip(found.rows_a, found.rows_b, strict=True):
                labels[place[j]] = part.clusters[i]
        self.clusters = labels


def _block(part: Scores, references: Sequence[Run]) -> _Block | None:
    """None where no reference has measured it."""
    found: list[tuple[str, Scores]] = []
    for run in references:
        for item in (*run.scores, *run.parts):
            if (item.task, item.metric, item.scorer) == (part.task, part.metric, part.scorer):
                found.append((run.model if run.model not in dict(found) else run.name, item))
                break
    return _Block(part, found) if found else None


def benchmark_order(questions: Questions) -> IntArray:
    """The order in which a benchmark has its questions: by number where keys are numbers, else as they were read."""
    try:
        numbers = [int(key) for key in questions.keys]
    except ValueError:
        return np.arange(len(questions.keys))
    return np.argsort(np.array(numbers, dtype=np.float64), kind="stable")
