"""The frontier of score and cost: a model that no rival dominates is rarely said to be dominated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness_noise.data.measures import UNBOUNDED
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.arena.build import arena
from harness_noise.extra.arena.ranks import with_frontier
from harness_noise.settings import Settings
from support.slow import rest_slow

R, N = 150, 60


def board(rng, models):
    """Runs of (name, chance to be right, mean cost), on questions of different difficulty and length."""
    keys = Questions(tuple(map(str, range(N))))
    hard, long = rng.normal(0, 0.15, N), rng.lognormal(0, 0.5, N)
    runs = []
    for name, p, cost in models:
        right = (rng.random(N) < np.clip(p + hard, 0, 1)).astype(float)[:, None]
        spent = (cost * long * rng.lognormal(0, 0.5, N))[:, None]
        score = Scores("t", "score", "none", keys, right, higher_is_better=True, bounds=(0.0, 1.0))
        price = Scores("t", "cost", "none", keys, spent, higher_is_better=False, bounds=UNBOUNDED, unit="$")
        runs.append(Run(name, name, "test", scores=(score, price)))
    result = with_frontier(arena(runs, Settings()), "cost", 0.95)
    return {model.model: model for model in result.boards[0].models}


@pytest.mark.parametrize(
    "rivals",
    rest_slow(
        [
            [("same", 0.6, 1.0)],  # equal in both: the hardest null of one rival
            [(f"as good {i}", 0.6, 0.5) for i in range(4)],  # equal in score, much cheaper: one test decides
            [(f"as cheap {i}", 0.9, 1.0) for i in range(4)],  # much better, as dear
            [("better", 0.75, 1.6), ("cheaper", 0.45, 0.6), ("same", 0.6, 1.0)],
        ]
    ),
)
def test_a_model_on_the_frontier_is_called_dominated_in_at_most_5_percent(rivals):
    rng = np.random.default_rng([7, len(rivals), round(100 * rivals[0][1])])
    no = sum(board(rng, [("m", 0.6, 1.0), *rivals])["m"].frontier == "no" for _ in range(R))
    assert no / R <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / R)


def test_a_dominated_model_is_found_and_never_on_the_frontier():
    rng = np.random.default_rng(8)
    found = [board(rng, [("m", 0.4, 1.6), ("better", 0.8, 1.0), ("cheap", 0.3, 0.3)])["m"] for _ in range(40)]
    places = [model.frontier for model in found]
    assert places.count("no") >= 36
    assert places.count("yes") <= 2
    assert {name for model in found for name in model.beaten_by} == {"better"}
