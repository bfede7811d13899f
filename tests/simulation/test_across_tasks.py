"""Mean ranks over tasks: how often rank sets miss a true order, and what they are by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

import harness_noise as hn
from harness_noise.extra.arena.rank_sets import rank_sets
from harness_noise.extra.arena.ranks import mid_ranks
from harness_noise.extra.arena.results import AcrossTasks
from support.slow import rest_slow

R = 200


def runs(means, n=40, rng=None, K=1, **more):
    """Runs of M models on T tasks, whose chances to be right are (T, M) means."""
    rng = rng or np.random.default_rng(0)
    T, M = means.shape
    scores = [[] for _ in range(M)]
    for t in range(T):
        keys = hn.Questions(tuple(f"t{t}q{i}" for i in range(n)))
        hard = rng.normal(0, 0.15, (n, 1))
        for m in range(M):
            right = (rng.random((n, K)) < np.clip(means[t, m] + hard, 0, 1)).astype(float)
            scores[m].append(hn.Scores(f"t{t}", "acc", "none", keys, right, **({"higher_is_better": True} | more)))
    return [hn.Run(f"m{m}", f"m{m}", "array", scores=tuple(parts)) for m, parts in enumerate(scores)]


def across(found) -> dict[str, AcrossTasks]:
    return {row.model: row for row in found.across_tasks}


def test_mean_ranks_and_win_rates_by_hand():
    found = hn.arena(runs(np.random.default_rng(1).uniform(0.3, 0.8, (8, 4))))
    means = np.array([[board.models[m].mean for m in range(4)] for board in found.boards if not board.is_overall])
    ranks = rankdata(-np.round(means, 12), axis=1).mean(axis=0)
    rows = across(found)
    assert [rows[f"m{m}"].mean_rank for m in range(4)] == pytest.approx(ranks)
    wins = (means[:, :, None] > means[:, None, :]) + (means[:, :, None] == means[:, None, :]) / 2
    rates = (wins.sum(axis=2) - 0.5).mean(axis=0) / 3
    assert [rows[f"m{m}"].win_rate for m in range(4)] == pytest.approx(rates)
    assert {row.n_tasks for row in rows.values()} == {8}
    assert [row["model"] for row in found.to_dict()["across_tasks"]] == sorted(rows, key=lambda m: rows[m].mean_rank)


def test_lower_is_better_turns_the_ranks():
    means = np.random.default_rng(1).uniform(0.3, 0.8, (8, 4))
    up, down = (across(hn.arena(runs(means, higher_is_better=side))) for side in (True, False))
    assert {name: 5 - row.mean_rank for name, row in up.items()} == pytest.approx(
        {name: row.mean_rank for name, row in down.items()}
    )


def test_one_task_has_none_and_few_tasks_show_nothing():
    assert hn.arena(runs(np.full((1, 3), 0.5))).across_tasks == ()
    rows = across(hn.arena(runs(np.tile([0.9, 0.5, 0.1], (4, 1)))))
    assert {(row.rank_low, row.rank_high) for row in rows.values()} == {(1, 3)}
    many = across(hn.arena(runs(np.tile([0.9, 0.5, 0.1], (12, 1)))))
    assert [(row.rank_low, row.rank_high) for row in many.values()] == [(1, 1), (2, 2), (3, 3)]


def test_only_tasks_that_all_models_have_count_and_groups_do_not():
    every = runs(np.random.default_rng(2).uniform(0.3, 0.8, (6, 3)))
    short = [every[0], every[1], hn.Run("m2", "m2", "array", scores=every[2].scores[:4])]
    assert {row.n_tasks for row in hn.arena(short).across_tasks} == {4}
    grouped = hn.arena(every, groups={"all": "t*"})
    assert across(grouped) == across(hn.arena(every))


def shared(T, M, n, rng, by="words"):
    """Runs of M equal models on T tasks that ask the same n questions, of which each model likes some."""
    likes, scores = rng.normal(0, 0.25, (n, M)), [[] for _ in range(M)]
    for t in range(T):
        keys = [f"what is {i} and {i}" if by == "words" else f"{t}-{i}" for i in range(n)]
        clusters = {"clusters": tuple(f"c{i}" for i in range(n)), "cluster_spec": "passage"} if by == "clusters" else {}
        for m in range(M):
            right = (rng.random((n, 1)) < np.clip(0.5 + likes[:, [m]], 0, 1)).astype(float)
            part = hn.Scores(
                f"t{t}", "acc", "none", hn.Questions(tuple(keys)), right, higher_is_better=True, **clusters
            )
            scores[m].append(part)
    return [hn.Run(f"m{m}", f"m{m}", "array", scores=tuple(parts)) for m, parts in enumerate(scores)]


@pytest.mark.parametrize("by", ["words", "clusters"])
def test_tasks_that_share_questions_are_one_of_the_sample(by):
    """As twelve, 40% of these leaderboards called one of three equal models better."""
    for seed in range(8):
        for row in hn.arena(shared(12, 3, 40, np.random.default_rng(seed), by)).across_tasks:
            assert (row.n_tasks, row.n_clusters, row.rank_low, row.rank_high) == (12, 1, 1, 3)
    apart = hn.arena(shared(12, 3, 40, np.random.default_rng(0), "names"))
    assert {row.n_clusters for row in apart.across_tasks} == {12}
    assert "12 tasks, acc; the tasks are the sample" in hn.render(apart, "markdown", details=True)
    assert "; 1 without those that share questions" in hn.render(
        hn.arena(shared(12, 3, 40, np.random.default_rng(0))), "markdown", details=True
    )


def test_a_chain_of_shared_questions_is_one_and_the_ranks_of_its_tasks_add_up():
    """Tasks 0 and 1 share a question, and 1 and 2 another one: three tasks are one, beside nine others."""
    tasks = runs(np.tile([0.9, 0.5, 0.1], (12, 1)))
    keys = [[f"what is {t} and {i}" for i in range(40)] for t in range(12)]
    keys[1][0], keys[2][1] = keys[0][0], keys[1][1]
    asked = [
        replace(
            run,
            scores=tuple(replace(p, questions=hn.Questions(tuple(k))) for p, k in zip(run.scores, keys, strict=True)),
        )
        for run in tasks
    ]
    rows = across(hn.arena(asked))
    assert {row.n_clusters for row in rows.values()} == {10}
    assert [(row.rank_low, row.rank_high) for row in rows.values()] == [(1, 1), (2, 2), (3, 3)]


def test_equal_models_share_the_mean_rank():
    first = runs(np.full((6, 1), 0.6))[0]
    same = [hn.Run(name, name, "array", scores=first.scores) for name in "ab"]
    rows = across(hn.arena([*same, *runs(np.full((6, 1), 0.1), rng=np.random.default_rng(9))]))
    assert rows["a"].mean_rank == rows["b"].mean_rank == 1.5
    assert rows["a"].win_rate == 0.75


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("M", "T", "half"), rest_slow([(4, 10, False), (4, 10, True), (10, 8, False), (10, 30, False), (10, 30, True)], 2)
)
def test_the_sets_are_right_together_in_95_percent(M, T, half):
    """Tasks differ in difficulty, and each model has its strengths. Of two equal models none is called better."""
    rng, wrong = np.random.default_rng([M, T, half]), 0
    for _ in range(R):
        skill = rng.normal(0, 0.3, (T, M)) - 0.5 * (np.arange(M) >= (M + 1) // 2) * half
        right = rng.binomial(100, 1 / (1 + np.exp(-skill - rng.normal(0, 1, (T, 1))))) / 100
        better = rank_sets(-np.array(list(map(mid_ranks, right))), 0.95, rng).better
        top = np.arange(M) < (M + 1) // 2
        null = top[:, None] == top[None, :] if half else np.ones((M, M), dtype=bool)
        wrong += bool((better & null).any())
    assert wrong / R <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / R)
