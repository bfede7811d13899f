"""Groups of tasks in the arena: every pair is that of `compare`, by Gram matrices or one by one."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import as_scores
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import CROSS
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.errors import InputError
from harness_noise.extra.arena import columns as engine
from harness_noise.extra.arena.build import arena
from harness_noise.settings import Settings
from harness_noise.stats.intervals import bonett_price
from support.notes import noted
from support.same_rows import assert_same_row

TASKS = ("french", "german", "swahili")
SIZES = (12, 20, 7)


def drawn(
    M: int = 4, K: int = 3, *, clusters: str | None = None, missing: float = 0.0, ragged: bool = False,
    real: bool = False, group: Group | None = None, seed: int = 0,
) -> list[Run]:  # fmt: skip
    rng = np.random.default_rng(seed)
    hardness = [rng.uniform(size=n) for n in SIZES]
    runs = []
    for m in range(M):
        parts = []
        for t, (task, n) in enumerate(zip(TASKS, SIZES, strict=True)):
            p = np.clip(hardness[t] + 0.05 * m, 0, 1)[:, None]
            values = (rng.uniform(size=(n, K)) < p).astype(float)
            if real:
                values = 5 * values + rng.normal(size=(n, K))
            if ragged:
                values[rng.uniform(size=values.shape) < 0.2] = np.nan
            if missing:
                values[rng.uniform(size=n) < missing] = np.nan
                values[0] = 1.0
            labels, spec = None, None
            if clusters == "across":  # one question in three languages
                labels, spec = tuple(f"q{i}" for i in range(n)), "id"
            elif clusters == "within" and t < 2:
                labels, spec = tuple(f"{i % 5}" for i in range(n)), f"passage {t}"
            elif clusters == "task":
                labels, spec = (task,) * n, "task"
            questions = Questions(tuple(f"{task} {i}" for i in range(n)))
            parts.append(Scores(task, "acc", "none", questions, values, clusters=labels, cluster_spec=spec))
        whole = group or Group("languages", "acc", "none", TASKS, "equal")
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=tuple(parts), groups=(whole,)))
    return runs


def alone(runs: list[Run]) -> list[Run]:
    """Runs that show their group and no task of it: a board and a row less for each task to be computed."""
    return [replace(run, scores=(), parts=run.scores) for run in runs]


def assert_same(runs: list[Run], choices: Settings, with_tasks: bool = False) -> None:
    choices = replace(choices, adjust="none")  # the families differ
    runs = runs if with_tasks else alone(runs)
    board = arena(runs, choices).boards[-1]
    assert board.key == ("languages", "acc", "none")
    for ours, (a, b) in zip(board.pairs, combinations(runs, 2), strict=True):
        theirs = compare_runs([(a, b)], choices).comparisons[-1]
        assert theirs.task == "languages"
        assert_same_row(ours, theirs, 1e-11)
    means = [analyze_run(run, choices).estimates[-1] for run in runs]
    for model, estimate in zip(board.models, means, strict=True):
        assert (model.task, model.mean, model.se) == (estimate.task, estimate.mean, estimate.se)


WEIGHTINGS: dict[str, Any] = {
    "equal": {"weighting": "equal"},
    "size": {"weighting": "size"},
    "fixed": {"weights": (0.5, 0.3, 0.2)},
}


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("clusters", [None, "across", "within"])
@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("se", ["cr0", "cr1", "cr2", "cr3"])
def test_every_field_of_a_groups_pair_is_that_of_compare(weighting: str, clusters: str | None, K: int, se: Any) -> None:
    group = Group("languages", "acc", "none", TASKS, **WEIGHTINGS[weighting])
    assert_same(drawn(3, K, clusters=clusters, group=group), Settings(se=se))


@pytest.mark.parametrize("clusters", [None, "across", "within", "task"])
@pytest.mark.parametrize("real", [False, True])
def test_masked_and_ragged_groups(clusters: str | None, real: bool) -> None:
    assert_same(drawn(K=3, clusters=clusters, real=real, missing=0.2), Settings(test="sign"))
    assert_same(drawn(K=3, clusters=clusters, real=real, ragged=True), Settings())


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("clusters", [None, "across", "crossed"])
def test_a_pair_that_shares_no_question_of_a_task_has_no_mean_and_no_error(fixed: bool, clusters: str | None) -> None:
    runs = []
    for run, rows in zip(
        drawn(3, 2, clusters="across" if clusters else None), (range(3), range(3, 7), range(7)), strict=True
    ):
        parts = [*run.scores[:2], run.scores[2].take(rows)]
        if clusters == "crossed":
            both = [tuple(f"{label}{CROSS}{i % 3}" for i, label in enumerate(part.clusters or ())) for part in parts]
            parts = [replace(part, clusters=labels) for part, labels in zip(parts, both, strict=True)]
        runs.append(replace(run, scores=tuple(replace(part, unit="s") for part in parts)))
    for choices in [Settings(questions_are="fixed")] if fixed else [Settings(), Settings(se="cr0", margin=0.5)]:
        assert_same(runs, choices)
    pair = arena(alone(runs), Settings()).boards[-1].pairs[0]
    assert (pair.diff, pair.se, pair.ci_low) == (None, None, None)
    assert "skewed" not in pair.diagnostics


def test_tasks_as_the_sample() -> None:
    for with_tasks in (False, True):
        assert_same(drawn(K=2, clusters="task"), Settings(margin=0.5), with_tasks)


def test_groups_without_variance() -> None:
    """Each task has its own constant difference, so the small-sample interval adds up over tasks."""
    runs = drawn(3, 1)
    flat = []
    for m, run in enumerate(runs):
        parts = tuple(
            replace(part, values=np.full_like(part.values, float(m > t) if m < 2 else 1.0))
            for t, part in enumerate(run.scores)
        )
        flat.append(replace(run, scores=parts))
    assert_same(flat, Settings())
    assert_same(flat, Settings(margin=0.9))
    assert_same(flat, Settings(test="sign"))
    first = arena(flat, Settings()).boards[-1].pairs[0]
    assert "zero_variance" in first.diagnostics
    assert first.ci_low is not None


def test_the_same_questions_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    from_questions = engine._from_questions

    def counted(work: Any, rows: Any) -> None:
        calls.extend(rows)
        from_questions(work, rows)

    monkeypatch.setattr(engine, "_from_questions", counted)
    arena(alone(drawn(6, 3, real=True)), Settings())
    assert len(calls) < 8  # those whose flips are few
    calls.clear()
    arena(alone(drawn(6, 3, missing=0.1)), Settings())
    assert len(calls) == 15


def test_a_task_that_a_pair_does_not_share_leaves_the_group_without_numbers() -> None:
    a, b = drawn(2)
    emptied = replace(b.scores[2], values=np.full_like(b.scores[2].values, np.nan))
    hidden = [replace(a, scores=(), parts=a.scores), replace(b, scores=(), parts=(*b.scores[:2], emptied))]
    (board,) = arena(hidden, Settings()).boards
    ours, theirs = board.pairs[0], compare_runs([(hidden[0], hidden[1])], Settings()).comparisons[0]
    assert (ours.n_questions, ours.n_only_a, ours.n_clusters) == (32, 7, theirs.n_clusters)
    assert (ours.diff, ours.se, ours.mean_a, ours.verdict) == (None, None, None, "not separable")
    assert ours.diagnostics == theirs.diagnostics
    names = ("wins_a", "wins_b", "ties", "correlation")
    assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names] == [None] * 4


@pytest.mark.parametrize("clusters", [None, "across"])
def test_a_task_that_a_pair_does_not_share_leaves_a_group_by_size_its_other_tasks(clusters: str | None) -> None:
    group = Group("languages", "acc", "none", TASKS, "size")
    a, b, c = drawn(3, clusters=clusters, group=group)
    emptied = replace(b.scores[2], values=np.full_like(b.scores[2].values, np.nan))
    b = replace(b, scores=(*b.scores[:2], emptied))
    assert_same([a, b, c], Settings())
    assert arena([a, b, c], Settings()).boards[-1].pairs[0].design_effect is not None


def test_missing_answers_in_a_group_count_where_both_runs_were_asked() -> None:
    """The third task, on other questions, is in no difference, whatever is missing there."""
    a, b, c = drawn(3, group=Group("languages", "acc", "none", TASKS, "size"))
    values = a.scores[0].values.copy()
    values[:6] = np.nan
    hollow = replace(a.scores[0], values=values, n_missing=18, bounds=(0.0, 1.0))
    a = replace(a, scores=(hollow, *a.scores[1:]))
    others = Questions(tuple(f"other {i}" for i in range(SIZES[2])))
    b = replace(b, scores=(*b.scores[:2], replace(b.scores[2], questions=others)))
    assert_same([a, b, c], Settings())
    (note,) = [note for note in noted(compare_runs([(a, b)], Settings())) if note.startswith("languages")]
    low, high = map(float, re.findall(r"between (\S+) and (\S+)", note.replace("−", "-"))[0])
    assert high - low == pytest.approx(100 * 6 / 32, rel=0.01)
    assert "points" in note


@pytest.mark.parametrize("weights", [(0.998, 0.001, 0.001), (0.5, 0.3, 0.2)])
def test_differences_that_never_vary_rest_on_as_many_clusters_as_the_weights_leave(weights: tuple[float, ...]) -> None:
    """Seven questions carry nearly all the weight of the group, and one equal answer each is no proof of equality."""
    group = Group("languages", "acc", "none", TASKS[::-1], weights=weights)
    first, second, third = (
        replace(run, scores=tuple(replace(part, values=np.ones_like(part.values)) for part in run.scores))
        for run in drawn(3, 1, group=group)
    )
    runs = [first, second, third]
    assert_same(runs, Settings(margin=0.2))
    pair = arena(runs, Settings(margin=0.2)).boards[-1].pairs[0]
    ci = bonett_price(np.zeros(1), np.zeros(1), min(39.0, pair.df + 1), 1.0, 0.95)
    assert (pair.ci_low, pair.ci_high) == (pytest.approx(ci.low.item()), pytest.approx(ci.high.item()))
    assert pair.verdict == ("not separable" if weights[0] > 0.9 else "equivalent within 0.2")


def test_groups_are_made_of_runs_that_were_read_before() -> None:
    runs = [replace(run, groups=()) for run in drawn()]
    for result in (hn.analyze(runs[0], groups={"all": "*"}), hn.arena(runs, groups={"all": "*"})):
        rows = result.estimates if isinstance(result, hn.Analysis) else result.benchmarks
        assert [row.task for row in rows] == [*TASKS, "all"]
    again = replace(runs[0], groups=(Group("all", "acc", "none", TASKS),))
    assert [row.task for row in hn.analyze(again, groups={"all": "*"}).estimates] == [*TASKS, "all"]


def test_a_group_with_the_name_of_another_of_the_run_is_refused() -> None:
    run = replace(drawn()[0], groups=(Group("all", "acc", "none", TASKS),))
    with pytest.raises(InputError, match=r"`groups` all=french: the run has a group all of other tasks .*another name"):
        hn.analyze(run, groups={"all": "french"})


def test_a_group_is_over_the_tasks_that_all_its_runs_have() -> None:
    runs = drawn(3)
    found = arena([*runs[:2], replace(runs[2], scores=runs[2].scores[:2])], Settings())
    assert [len(board.models) for board in found.boards] == [3, 3, 2, 3]
    assert found.boards[-1].benchmark.n_questions == sum(SIZES[:2])
    assert any(f"over the 2 tasks that all its runs have, without {TASKS[2]}" in note for note in noted(found))


def test_weights_that_do_not_fit_are_refused() -> None:
    for weights in ((0.5, 0.5), (0.6, 0.4, 0.0)):
        group = Group("languages", "acc", "none", TASKS, weights=weights)
        with pytest.raises(InputError, match="weights"):
            arena(drawn(2, group=group), Settings())


def test_questions_of_a_group_carry_their_task() -> None:
    board = arena(drawn(), Settings()).boards[-1]
    assert len(board.questions) == sum(SIZES)
    assert board.questions[0].question == "french: french 0"
    assert board.benchmark.n_questions == sum(SIZES)


def test_a_groups_native_value_is_that_of_each_run() -> None:
    """Whose mean the harness reports differs from run to run; only a value that is not theirs is a mismatch."""
    rng = np.random.default_rng(1)

    def measured(model: str, off: float = 0.0) -> Run:
        values = [(rng.random(40) < 0.6).astype(float) for _ in range(2)]
        scores = tuple(as_scores(x, task=f"t{i}", native=float(x.mean())) for i, x in enumerate(values))
        group = Group("g", "score", "none", ("t0", "t1"), native=float(np.mean(values)) + off)
        return Run(model, model, "array", scores=scores, groups=(group,))

    runs = [measured("a"), measured("b"), measured("c", off=0.1)]
    *_, board = arena(runs, Settings()).boards
    assert board.benchmark.task == "g"
    assert ["mean_mismatch" in model.diagnostics for model in board.models] == [m.model == "c" for m in board.models]
    assert board.pairs.flags["mean_mismatch"].tolist() == [False, True, True]
    pairs = [compare_runs([(runs[i], runs[j])], Settings()).rows for i, j in ((0, 1), (0, 2), (1, 2))]
    assert [["mean_mismatch" in row.diagnostics for row in rows] for rows in pairs] == [
        [False] * 3, [False, False, True], [False, False, True]
    ]  # fmt: skip
