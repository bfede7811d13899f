"""Reference runs: from the part of a benchmark that a run has answered to all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from ..data.matching import pair
from ..data.scores import Run, Scores
from ..errors import InputError
from ..results.sequential import FullRow
from ..settings import Settings
from ..stats.contrast import question_stats
from .comparison import matched_scores
from .drawing import STOPPED
from .partial import NotRandomError, full_benchmark, part_of
from .ranges import hull
from .sample import group_parts, group_shares

if TYPE_CHECKING:
    from ..data.questions import Questions
    from ..stats.arrays import FloatArray, IntArray
    from ..stats.partial import Part

NEARLY_ALL = 0.95
"""Share of a task's questions that a run must have answered for its mean to count as known."""


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
    return _estimates([(run, None) for run in runs], references, settings, refuse=refuse)


def of_pairs(
    pairs: Sequence[tuple[Run, Run]], references: Sequence[Run], settings: Settings
) -> tuple[tuple[FullRow, ...], list[str]]:
    """The differences A − B on whole benchmarks: A's mean, which B and the references predict, minus B's mean."""
    return _estimates(pairs, references, settings, refuse=True)


def _estimates(
    pairs: Sequence[tuple[Run, Run | None]], references: Sequence[Run], settings: Settings, *, refuse: bool
) -> tuple[tuple[FullRow, ...], list[str]]:
    """The rows of runs, each by itself or minus another; and notes."""
    rows: list[FullRow] = []
    notes: list[str] = []
    for run, base in pairs:
        others = [item for item in references if not any(same_run(item, one) for one in (run, base) if one is not None)]
        theirs: dict[tuple[str, str, str], Scores] = {}
        mine = run
        if base is not None:
            matched, _ = matched_scores(run, base, alone=False)
            theirs = {one.key: other for one, other in matched}
            mine = replace(run, scores=tuple(one for one, _ in matched), parts=())
        for parts, name, shares in _tasks(mine):
            subtracted = [theirs[part.key] for part in parts if base is not None]
            try:
                row, said = _row(parts, subtracted, others, name, (run, base), shares, settings)
            except NotRandomError as error:
                if refuse:
                    raise
                row, said = _nothing(parts, others, name, run), [str(error)]
            rows += [] if row is None else [row]
            notes += said
    return _checked(rows, notes, references)


def same_run(one: Run, other: Run) -> bool:
    """Whether two runs are one, given twice."""
    return bool(one.path) and one.path == other.path and one.model == other.model


def _checked(rows: list[FullRow], notes: list[str], references: Sequence[Run]) -> tuple[tuple[FullRow, ...], list[str]]:
    if not rows and not notes:
        models = ", ".join(run.model for run in references[:6])
        raise InputError(
            f"the references ({models}) have measured nothing that the runs have: name runs of the same tasks"
        )
    known = [row for row in rows if row.estimate is not None]
    for said, these in (
        ("the references gain nothing", [row for row in known if row.gain is not None and row.gain <= 1]),
        (
            "nothing varies, or the part has too few questions (clusters) to learn from the references, so its plain "
            "mean is shown",
            [row for row in known if row.gain is None],
        ),
    ):
        names = dict.fromkeys(f"{row.task} {row.metric}".strip() for row in these)
        notes += [f"{', '.join(names)}: {said}"] if names else []
    return tuple(rows), notes


def _tasks(run: Run) -> list[tuple[list[Scores], str, list[float] | None]]:
    """Every task of a run, and every group of which it has all tasks."""
    out: list[tuple[list[Scores], str, list[float] | None]] = [([part], part.task, None) for part in run.scores]
    for group in run.groups:
        parts = group_parts(run, group)
        if parts is not None:
            out.append((parts, group.name, group_shares(parts, group)))
    return out


def _stopped(parts: Sequence[Scores]) -> tuple[str, ...]:
    """The code of a row with a part whose number of questions its scores decided."""
    return (STOPPED,) if any(STOPPED in part.diagnostics for part in parts) else ()


def _row(
    parts: Sequence[Scores],
    subtracted: Sequence[Scores],
    references: Sequence[Run],
    name: str,
    runs: tuple[Run, Run | None],
    shares: list[float] | None,
    settings: Settings,
) -> tuple[FullRow | None, list[str]]:
    """One row, and notes; None where no reference has measured it, or all its questions were asked."""
    found = [block_of(part, references, other) for part, other in zip_longest(parts, subtracted)]
    blocks = [block for block in found if block is not None]
    if len(blocks) < len(found):
        return None, []
    names = [n for n in blocks[0].names if all(n in block.names for block in blocks)]
    run, base = runs
    if not names and base is None:
        return None, []
    model, notes = run.model, list[str]()
    drawn = {item["task"]: item["n_total"] for item in run.drawn}
    if base is not None:
        blocks, notes = _with_known(parts, subtracted, references, blocks, base.model)
        model = f"{run.model} − {base.model}"
        if blocks[0].b is None:  # what both have answered is a random part if both are
            both = {item["task"] for item in base.drawn}
            drawn = {task: n for task, n in drawn.items() if task in both}
    by_name = all(drawn.get(part.task) == block.n_all for part, block in zip(parts, blocks, strict=True))
    y, part, X, b = joined(blocks, names, shares, drawn=by_name)
    what, row = f"{name} {parts[0].metric}", None
    if len(part.asked) >= len(X):
        notes.append(f"{run.model} has answered all {len(X):,} questions of the references")
    else:
        bounds = hull([item.bounds for item in (*parts, *subtracted)])
        if bounds is not None and base is not None:
            bounds = bounds[0] - bounds[1], bounds[1] - bounds[0]
        whole = full_benchmark(y, part, X, tuple(names), settings.level, name, against=b, bounds=bounds)
        codes = tuple(sorted((*whole.diagnostics, *_stopped((*parts, *subtracted)))))
        fields = asdict(whole) | {"diagnostics": codes}
        row = FullRow(task=name, metric=parts[0].metric, scorer=parts[0].scorer, model=model, **fields)
    return row, [f"{what}: {note}" for note in notes]


def joined(
    blocks: Sequence[Block], names: Sequence[str], shares: list[float] | None, *, drawn: bool
) -> tuple[FloatArray, Part, FloatArray, FloatArray | None]:
    """What the regression takes, over all tasks: y, the part, the references' means, those of what is subtracted."""
    start = np.cumsum([0, *(len(block.X) for block in blocks)])
    asked = np.concatenate([block.asked + at for block, at in zip(blocks, start, strict=False)])
    labels = [label for block in blocks for label in block.clusters] if any(x.clustered for x in blocks) else None
    tasks = np.repeat(np.arange(len(blocks)), np.diff(start))
    unequal = any(block.unequal for block in blocks)
    chances = np.concatenate([block.chances for block in blocks]) if unequal else None
    part = part_of(asked, int(start[-1]), labels, tasks, shares, drawn=drawn, chances=chances)
    X = np.concatenate([block.X[:, [block.names.index(n) for n in names]] for block in blocks])
    b = [block.b for block in blocks if block.b is not None]
    return np.concatenate([block.y for block in blocks]), part, X, np.concatenate(b) if b else None


def _with_known(
    parts: Sequence[Scores], others: Sequence[Scores], references: Sequence[Run], blocks: list[Block], name: str
) -> tuple[list[Block], list[str]]:
    """The questions of which the subtracted run has answers, if that is nearly all; else the differences; and notes."""
    have = [0 if block.b is None else int(np.isfinite(block.b).sum()) for block in blocks]
    every = [len(block.X) for block in blocks]
    if any(n < NEARLY_ALL * N for n, N in zip(have, every, strict=True)):
        for part, other in zip(parts, others, strict=True):
            if other.chances is not None and _chances_within(part, other) is None:
                raise InputError(
                    f"{part.task}, {part.metric}: the questions of {name} were drawn with different probabilities, and "
                    "the other run's were not drawn from them: which questions both have is no part with known "
                    "probabilities"
                )
        said = (
            f"{name} has answered {sum(have):,} of {sum(every):,} questions only: the references predict A − B itself"
        )
        return [block.subtracted() for block in blocks], [f"{said}, which gains little"]
    left = sum(every) - sum(have)
    said = f"{name} has no answer to {left:,} of {sum(every):,} questions, which are left out of the whole benchmark"
    inside = [block_of(within(part, other), references, other) for part, other in zip(parts, others, strict=True)]
    return [block.of_known() for block in inside if block is not None], [said] if left else []


def _nothing(parts: Sequence[Scores], references: Sequence[Run], name: str, run: Run) -> FullRow:
    """The row of a part that says nothing of the whole."""
    blocks = [block for part in parts if (block := block_of(part, references, None)) is not None]
    return FullRow(
        task=name,
        metric=parts[0].metric,
        scorer=parts[0].scorer,
        model=run.model,
        n_asked=sum(len(block.asked) for block in blocks),
        n_total=sum(len(block.X) for block in blocks),
        references=tuple(dict.fromkeys(n for block in blocks for n in block.names)),
        diagnostics=("not_a_random_part", *_stopped(parts)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One task: all its N questions in the benchmark's order, and which of them a run has answered."""

    y: FloatArray
    """(m,) question means."""
    asked: IntArray
    """(m,) indexes of the questions."""
    names: list[str]
    """Names of the references."""
    X: FloatArray
    """(N, R) question means of the references, NaN where one has none."""
    b: FloatArray | None
    """(N,) question means of the run that is subtracted, NaN where it has none."""
    clusters: list[str]
    clustered: bool
    n_all: int
    """Questions of the task."""
    chances: FloatArray
    """(m,) probability with which each question was drawn."""
    unequal: bool
    """Whether these differ."""

    def subtracted(self) -> Block:
        """The differences, of the questions that both have answered."""
        assert self.b is not None
        both = np.isfinite(self.b[self.asked])
        asked = self.asked[both]
        y = self.y[both] - self.b[asked]
        return replace(self, y=y, asked=asked, b=None, chances=self.chances[both] * both.mean())

    def of_known(self) -> Block:
        """The questions that the subtracted run has answered, as if they were all."""
        assert self.b is not None
        known = np.isfinite(self.b)
        place, both = np.cumsum(known) - 1, known[self.asked]
        return replace(
            self,
            y=self.y[both],
            asked=place[self.asked[both]],
            chances=self.chances[both],
            X=self.X[known],
            b=self.b[known],
            clusters=list(compress(self.clusters, known)),
        )


def block_of(
    part: Scores, references: Sequence[Run], against: Scores | None, clustered_as: Scores | None = None
) -> Block | None:
    """The part among all questions of its task; None where neither a reference nor `against` has measured it.

    Args:
        part: the scores of the run that has answered a part.
        references: runs that have answered all questions.
        against: the scores that are subtracted.
        clustered_as: the scores whose clusters count; None: those of whoever has answered most, else the part's.
    """
    found: list[tuple[str, Scores]] = []
    for run in references:
        for item in (*run.scores, *run.parts):
            if item.key == part.key:
                found.append((run.model if run.model not in dict(found) else run.name, item))
                break
    every = [item for _, item in found] + ([] if against is None else [against])
    if not every:
        return None
    whole = max(every, key=lambda item: len(item.questions))
    order = benchmark_order(whole.questions)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    same = pair(part.questions, whole.questions)
    if len(same.rows_a) < len(part.questions):
        lost = len(part.questions) - len(same.rows_a)
        raise InputError(
            f"{part.task}, {part.metric}: {lost} of {len(part.questions)} questions are not among those of the "
            "references, which must have answered the whole benchmark"
        )
    rows_a, rows_b = np.array(same.rows_a, dtype=np.intp), np.array(same.rows_b, dtype=np.intp)
    means = question_stats(part.values).mean
    scored = ~np.isnan(means[rows_a])
    columns = np.full((len(order), len(every)), np.nan)
    for r, item in enumerate(every):
        shared = pair(item.questions, whole.questions)
        columns[place[shared.rows_b], r] = question_stats(item.values).mean[shared.rows_a]
    labels = [f"\x1f{i}" for i in range(len(order))]
    by = clustered_as or (part if whole.clusters is None else whole)
    if by.clusters is not None:  # of the questions that were not asked the part knows nothing
        shared = pair(by.questions, whole.questions)
        for i, j in zip(shared.rows_a, shared.rows_b, strict=True):
            labels[place[j]] = by.clusters[i]
    return Block(
        means[rows_a[scored]],
        place[rows_b[scored]],
        [name for name, _ in found],
        columns[:, : len(found)],
        None if against is None else columns[:, -1],
        labels,
        by.clusters is not None,
        len(order),
        _chances(part, rows_a[scored], len(order)),
        part.chances is not None and scored.sum() < len(order),
    )


def _chances_within(part: Scores, other: Scores) -> dict[str, float] | None:
    """Question → the probability of being drawn among those that another run drew with unequal probabilities; None: the
    part was not drawn from them."""
    mine, theirs = part.chances or {}, other.chances or {}
    inside = {key: chance / theirs[key] for key, chance in mine.items() if key in theirs}
    nested = 0 < len(inside) == len(mine) and max(inside.values()) <= 1 + 1e-9
    return {key: min(chance, 1.0) for key, chance in inside.items()} if nested else None


def within(part: Scores, other: Scores) -> Scores:
    """The part with the probabilities of being drawn among the questions of the run that they were drawn from."""
    inside = _chances_within(part, other)
    if inside is None:
        return part
    differ = max(inside.values()) - min(inside.values()) > 1e-9
    return replace(part, chances=inside if differ else None)


def _chances(part: Scores, rows: IntArray, n: int) -> FloatArray:
    """(m,) probability with which each of these questions of a part was drawn, and had been asked by now."""
    if part.chances is None or len(rows) == n:
        return np.full(len(rows), len(rows) / n)
    drawn = [part.chances.get(part.questions.keys[i]) for i in rows]
    if None in drawn:
        raise InputError(
            f"{part.task}, {part.metric}: its questions were drawn with different probabilities, and of "
            f"{drawn.count(None)} of the {len(rows)} that have a score the run does not say with which"
        )
    return np.array(drawn, dtype=np.float64) * len(rows) / len(part.chances)


def expected_scores(
    questions: Questions, task: str, references: Sequence[Run], metric: str | None = None
) -> FloatArray | None:
    """(n,) mean score of the references on each question, as a share of the metric's range; None: none has one.

    Args:
        questions: of the task.
        task: as the references call it.
        references: runs that have answered all of them.
        metric: that decides, alone or with the scorer behind a comma; None: the first one with a range.
    """
    columns = []
    for run in references:
        for part in (*run.scores, *run.parts):
            names = (None, part.metric, f"{part.metric},{part.scorer}")
            if part.task == task and part.bounds is not None and metric in names:
                shared, column = pair(questions, part.questions), np.full(len(questions), np.nan)
                low, high = part.bounds
                column[shared.rows_a] = (question_stats(part.values).mean[shared.rows_b] - low) / (high - low)
                columns.append(column)
                break
    if not columns:
        return None
    there = np.isfinite(columns)
    return np.where(there.any(axis=0), np.nansum(columns, axis=0) / np.maximum(there.sum(axis=0), 1), 0.5).clip(0, 1)


def benchmark_order(questions: Questions) -> IntArray:
    """The order in which a benchmark has its questions: by number where keys are numbers, else as they were read."""
    try:
        numbers = [int(key) for key in questions.keys]
    except ValueError:
        return np.arange(len(questions.keys))
    return np.argsort(np.array(numbers, dtype=np.float64), kind="stable")
