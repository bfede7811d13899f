"""Reference runs: from the part of a benchmark that a run has answered to all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...analysis.comparison import matched_scores
from ...analysis.ranges import Ends, score_range
from ...analysis.sample import group_parts, group_shares, in_order_of
from ...data.matching import pair_questions
from ...data.native_values import are_zero_one
from ...data.notes import Note
from ...data.questions import by_name
from ...data.scores import Run, Scores
from ...errors import InputError
from ...results.diagnostics import STOPPED
from ...results.parts import FullBenchmark, FullRow
from ...settings import Settings
from ...stats.contrast import question_stats
from ..partial import positions_look_random
from ..subsets import NotRandomError, benchmark_order, drawn_by_key, full_benchmark, part_of
from .two_parts import two_parts

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...data.questions import Questions
    from ..partial import Part

NEARLY_ALL = 0.95
"""Share of a task's questions that a run must have answered for its mean to count as known."""


def full_means(
    runs: Sequence[Run], references: Sequence[Run], settings: Settings, *, refuse: bool = True
) -> tuple[tuple[FullRow, ...], list[Note]]:
    """Estimate whole-benchmark means of runs by random subsets. Return rows, notes. Refuse other subsets if `refuse`.

    Args:
        runs: of which each has answered a part of the questions, drawn at random.
        references: runs that have answered them all.
        settings: its level.
        refuse: whether a part that was not drawn at random is an error; else its row says nothing of the whole.

    Raises:
        InputError: a part that was not drawn at random, or nothing that a reference has measured.
    """
    return _estimates([(run, None) for run in runs], references, settings, refuse=refuse)


def full_differences(
    pairs: Sequence[tuple[Run, Run]], references: Sequence[Run], settings: Settings
) -> tuple[tuple[FullRow, ...], list[Note]]:
    """Estimate A − B over whole benchmarks. Return rows and notes. Refuse an A that answered no random subset."""
    return _estimates(pairs, references, settings, refuse=True)


def _estimates(
    pairs: Sequence[tuple[Run, Run | None]], references: Sequence[Run], settings: Settings, *, refuse: bool
) -> tuple[tuple[FullRow, ...], list[Note]]:
    """Estimate whole-benchmark means (pairs with None) or A − B. Return rows and notes. Refuse if there are neither."""
    rows: list[FullRow] = []
    notes: list[Note] = []
    for run, base in pairs:
        others = [ref for ref in references if not any(same_run(ref, side) for side in (run, base) if side is not None)]
        theirs: dict[tuple[str, str, str], Scores] = {}
        mine = run
        if base is not None:
            matched, _ = matched_scores(run, base, alone=False)
            theirs = {part_a.key: part_b for part_a, part_b in matched}
            mine = replace(run, scores=tuple(part_a for part_a, _ in matched), parts=())
        for parts, name, shares in _tasks(mine):
            both = [(part, theirs.get(part.key)) for part in parts]
            row, said = _reference_row(both, others, name, (run, base), shares, settings, refuse=refuse)
            rows += [] if row is None else [row]
            notes += said
    return _checked(rows, notes, references)


def same_run(run: Run, other: Run) -> bool:
    """Return True if two runs have the same file path and the same model, so one run was given twice."""
    return bool(run.path) and run.path == other.path and run.model == other.model


def _checked(
    rows: list[FullRow], notes: list[Note], references: Sequence[Run]
) -> tuple[tuple[FullRow, ...], list[Note]]:
    if not rows and not notes:
        models = ", ".join(run.model for run in references[:6])
        raise InputError(
            f"the complete runs ({models}) have measured nothing that the runs have: name runs of the same tasks"
        )
    estimated = [row for row in rows if row.estimate is not None]
    for code, said, these in (
        (
            "references_gain_nothing",
            "the complete runs gain nothing",
            [row for row in estimated if row.gain is not None and row.gain <= 1],
        ),
        (
            "plain_mean",
            "nothing varies, or the subset has too few questions (clusters) to learn from the complete runs, so its "
            "plain mean is shown",
            [row for row in estimated if row.gain is None],
        ),
    ):
        names = dict.fromkeys(f"{row.task} {row.metric}".strip() for row in these)
        notes += [Note(code, f"{', '.join(names)}: {said}")] if names else []
    return tuple(rows), notes


def _tasks(run: Run) -> list[tuple[list[Scores], str, list[float] | None]]:
    """Return (scores, name, weights) of each task (weights None) and of each group whose tasks a run all has."""
    out: list[tuple[list[Scores], str, list[float] | None]] = [([part], part.task, None) for part in run.scores]
    for group in run.groups:
        parts = group_parts(run, group)
        if parts is not None:
            out.append((parts, group.name, group_shares(parts, group)))
    return out


def _reference_row(
    both: Sequence[tuple[Scores, Scores | None]],
    references: Sequence[Run],
    name: str,
    runs: tuple[Run, Run | None],
    shares: list[float] | None,
    settings: Settings,
    *,
    refuse: bool,
) -> tuple[FullRow | None, list[Note]]:
    """Return (row or None, notes): mean or A − B of all questions of `references`. Not random: refuse, or empty row."""
    all_blocks = [stratum_of(part if b is None else chances_within(part, b), references, b) for part, b in both]
    blocks = [block for block in all_blocks if block is not None]
    (run, base), (first, _) = runs, both[0]
    if len(blocks) < len(all_blocks) or not (base or shared_names(blocks)):
        return None, []
    what, model, notes, sizes = f"{name} {first.metric}", run.model, list[Note](), [len(x.X) for x in blocks]
    if base is not None:
        model = f"{run.model} − {base.model}"
        blocks, every = [block.of_known() for block in blocks], sum(sizes)
        left = every - sum(len(block.X) for block in blocks)
        if any(len(block.X) < NEARLY_ALL * size for block, size in zip(blocks, sizes, strict=True)):
            row = _of_two_parts(both, references, name, (run, base), settings)
            if row is not None:
                return row, []
            said = f"{base.model} has answered {every - left:,} of {every:,} questions only"
            why = (
                "and the mean of them all is estimated against a run that has answered all, or from two different "
                "random subsets of a task that split no cluster"
            )
            return None, [Note("no_full_benchmark", f"{what}: {said}, {why}", name)]
        if left:
            said = f"{base.model} has no answer to {left:,} of {every:,} questions"
            notes.append(
                Note("not_in_full_benchmark", f"{what}: {said}, which are left out of the whole benchmark", name)
            )
    drawn = {record["task"]: record["n_total"] for record in run.drawn}
    by_name = all(drawn.get(part.task) == size for (part, _), size in zip(both, sizes, strict=True))
    y, part, X, b = stacked_regression(blocks, shares, drawn=by_name)
    if len(part.asked) >= len(X):
        said = f"{what}: {run.model} has answered all {len(X):,} questions of the complete runs"
        return None, [*notes, Note("answered_all", said, name)]
    sides = [side for pair in both for side in pair if side is not None]
    bounds = score_range([Ends.of([side]) for side in sides], settings)
    if bounds is not None and base is not None:
        bounds = bounds[0] - bounds[1], bounds[1] - bounds[0]
    names = tuple(shared_names(blocks))
    try:
        whole = full_benchmark(y, part, X, names, settings.level, name, against=b, bounds=bounds)
    except NotRandomError as error:
        if refuse:
            raise
        notes.append(Note("not_a_random_part", str(error), name))
        m, code = len(part.asked), "not_a_random_part"
        whole = FullBenchmark(n_asked=m, n_total=len(X), references=names, diagnostics=(code,))
    stopped = [STOPPED] * any(STOPPED in side.diagnostics for side in sides)
    fields = asdict(whole) | {"diagnostics": tuple(sorted((*whole.diagnostics, *stopped)))}
    about: dict[str, Any] = {"task": name, "metric": first.metric, "scorer": first.scorer, "model": model}
    return FullRow(**about, **fields, _zero_one=are_zero_one(sides), _of_two=base is not None), notes


def _of_two_parts(
    both: Sequence[tuple[Scores, Scores | None]],
    references: Sequence[Run],
    name: str,
    runs: tuple[Run, Run],
    settings: Settings,
) -> FullRow | None:
    """Return A − B on a task of which A and B answered different subsets, or None. Refuse unknown questions.

    None for a group, without a reference, for questions that were drawn with different probabilities, or for parts that
    are too small, not random or have split a cluster.
    """
    (first, other), *more = both
    if more or other is None:
        return None
    sides = [stratum_of(part, references, None) for part in (first, other)]
    if any(side is None or side.unequal or not side.names for side in sides):
        return None
    a, b = (side for side in sides if side is not None)
    if np.array_equal(np.sort(a.asked), np.sort(b.asked)):
        return None  # of one part the references say nothing that the pairs do not
    drawn = [{record["task"]: record["n_total"] for record in run.drawn}.get(name) == len(a.X) for run in runs]
    (y_a, part_a, X, _), (y_b, part_b, _, _) = (
        stacked_regression([side], None, drawn=known) for side, known in zip((a, b), drawn, strict=True)
    )
    parts = [part for part in (part_a, part_b) if len(part.asked) < len(X)]
    if not all(part.drawn or positions_look_random(part) for part in parts):
        return None
    found = two_parts(y_a, part_a, y_b, part_b, X)
    if found is None:
        return None
    of, width, level = found.estimate, math.inf, settings.level
    if (bounds := score_range([Ends.of([side]) for side in (first, other)], settings)) is not None:
        width = bounds[1] - bounds[0]
    ends = [
        np.clip([of.estimate - half, of.estimate + half], -width, width).tolist()
        for half in (of.half_width(level, population=population) for population in (False, True))
    ]
    codes = {code for side in (first, other) for code in side.diagnostics if code == STOPPED}
    return FullRow(
        task=name,
        metric=first.metric,
        scorer=first.scorer,
        model=f"{runs[0].model} − {runs[1].model}",
        estimate=float(np.clip(of.estimate, -width, width)),
        se=math.sqrt(of.variance),
        ci_low=ends[0][0],
        ci_high=ends[0][1],
        n_asked=len(part_a.asked),
        n_asked_b=len(part_b.asked),
        n_total=len(X),
        gain=of.gain,
        references=tuple(a.names),
        diagnostics=tuple(sorted(codes | (set() if found.overlap_known else {"overlap_unknown"}))),
        se_population=math.sqrt(of.population_variance),
        ci_low_population=ends[1][0],
        ci_high_population=ends[1][1],
        _zero_one=are_zero_one((first, other)),
        _of_two=True,
    )


def shared_names(blocks: Sequence[Stratum]) -> list[str]:
    """Return the names of the reference runs that have scores on every one of these tasks."""
    return [name for name in blocks[0].names if all(name in block.names for block in blocks)]


def stacked_regression(
    blocks: Sequence[Stratum], shares: list[float] | None, *, drawn: bool
) -> tuple[FloatArray, Part, FloatArray, FloatArray | None]:
    """Stack tasks. Return (m,) subset means, their `Part`, (N, R) reference means with NaN, (N,) base or None."""
    names = shared_names(blocks)
    start = np.cumsum([0, *(len(block.X) for block in blocks)])
    rows = np.concatenate([block.asked + at for block, at in zip(blocks, start, strict=False)])
    clusters = [cluster for block in blocks for cluster in block.clusters]
    tasks = np.repeat(np.arange(len(blocks)), np.diff(start))
    unequal = any(block.unequal for block in blocks)
    chances = np.concatenate([block.chances for block in blocks]) if unequal else None
    part = part_of(rows, int(start[-1]), clusters, tasks, shares, drawn=drawn, chances=chances)
    keys = [(by_name(block.task), by_name(key)) for block in blocks for key in block.keys]
    part = drawn_by_key(part, np.array(sorted(range(len(keys)), key=lambda i: keys[i])))
    X = np.concatenate([block.X[:, [block.names.index(n) for n in names]] for block in blocks])
    b = [block.b for block in blocks if block.b is not None]
    return np.concatenate([block.y for block in blocks]), part, X, np.concatenate(b) if b else None


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
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
    """(N,) clusters, which no other task has but where both have the same clusters."""
    chances: FloatArray
    """(m,) probability with which each question was drawn."""
    unequal: bool
    """True if the chances differ."""
    task: str
    keys: list[str]
    """(N,) names of the questions."""

    def of_known(self) -> Stratum:
        """Return the task restricted to the questions that the base run B has answered."""
        assert self.b is not None
        answered = np.isfinite(self.b)
        place, both = np.cumsum(answered) - 1, answered[self.asked]
        return replace(
            self,
            y=self.y[both],
            asked=place[self.asked[both]],
            chances=self.chances[both],
            X=self.X[answered],
            b=self.b[answered],
            clusters=list(compress(self.clusters, answered)),
            keys=list(compress(self.keys, answered)),
        )


def stratum_of(
    part: Scores, references: Sequence[Run], against: Scores | None, clustered_as: Scores | None = None
) -> Stratum | None:
    """Match a task's scored subset with references and `against`. None if none of these has it. Refuse other questions.

    Args:
        part: the scores of the run that has answered a part.
        references: runs that have answered all questions.
        against: the scores that are subtracted.
        clustered_as: the scores whose clusters are used. None: those of the run with most answers, else the part's.
    """
    named: dict[str, Scores] = {}
    for run in references:
        theirs = next((scores for scores in (*run.scores, *run.parts) if scores.key == part.key), None)
        if theirs is not None:
            named.setdefault(run.name if run.model in named else run.model, theirs)
    every = [*named.values(), *([] if against is None else [against])]
    if not every:
        return None
    whole = max(every, key=lambda scores: len(scores.questions))
    order = benchmark_order(whole.questions)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    same = pair_questions(part.questions, whole.questions)
    if len(same.rows_a) < len(part.questions):
        lost = len(part.questions) - len(same.rows_a)
        raise InputError(
            f"{part.task}, {part.metric}: {lost} of {len(part.questions)} questions are not among those of the "
            "complete runs, which must have answered the whole benchmark"
        )
    rows_a, rows_b = np.array(same.rows_a, dtype=np.intp), np.array(same.rows_b, dtype=np.intp)
    means = question_stats(part.values).mean
    scored = ~np.isnan(means[rows_a])
    columns = np.column_stack([question_stats(in_order_of(whole.questions, scores)).mean[order] for scores in every])
    clusters = [f"\x1f{part.task}\x1f{i}" for i in range(len(order))]  # of all tasks that are taken together
    by = clustered_as or (part if whole.clusters is None else whole)
    if by.clusters is not None:  # of the questions that were not asked the part knows nothing
        shared = pair_questions(by.questions, whole.questions)
        for i, j in zip(shared.rows_a, shared.rows_b, strict=True):
            clusters[place[j]] = f"{by.cluster_spec}\x1f{by.clusters[i]}"
    return Stratum(
        means[rows_a[scored]],
        place[rows_b[scored]],
        list(named),
        columns[:, : len(named)],
        None if against is None else columns[:, -1],
        clusters,
        _chances(part, rows_a[scored], len(order)),
        part.chances is not None and scored.sum() < len(order),
        part.task,
        [whole.questions.keys[i] for i in order],
    )


def chances_within(part: Scores, other: Scores) -> Scores:
    """Return scores with drawing chances relative to `other`'s, None if all equal. Unchanged if these cover not all."""
    mine, theirs = part.chances or {}, other.chances or {}
    inside = {key: chance / theirs[key] for key, chance in mine.items() if key in theirs}
    if not inside or len(inside) < len(mine) or max(inside.values()) > 1 + 1e-9:
        return part
    differ = max(inside.values()) - min(inside.values()) > 1e-9
    return replace(part, chances={key: min(chance, 1.0) for key, chance in inside.items()} if differ else None)


def _chances(part: Scores, rows: IntArray, n: int) -> FloatArray:
    """Return (m,) drawing probabilities of scored `rows`: m/n if the run has none or all, else its own. Refuse gaps."""
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
    """Return (n,) mean score of references by question as a share (0–1) of the range, ½ if none. None: no reference.

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
                shared, column = pair_questions(questions, part.questions), np.full(len(questions), np.nan)
                low, high = part.bounds
                column[shared.rows_a] = (question_stats(part.values).mean[shared.rows_b] - low) / (high - low)
                columns.append(column)
                break
    if not columns:
        return None
    there = np.isfinite(columns)
    return np.where(there.any(axis=0), np.nansum(columns, axis=0) / np.maximum(there.sum(axis=0), 1), 0.5).clip(0, 1)
