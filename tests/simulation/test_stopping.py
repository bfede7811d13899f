"""Small pinned cells of the simulation in docs/methods/sequential.md, through the library's own looks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness_noise import as_scores
from harness_noise.extra.stopping.observed import Observed, repeats_enough
from harness_noise.extra.stopping.rules import Look, Looks, Progress, StoppingRule, Taken
from harness_noise.settings import Settings

R = 2000


def stops(d: np.ndarray, rule: StoppingRule) -> tuple[int, int]:
    """Sign of the decision, and the questions asked, for (G, size) differences in a random order."""
    G, size = d.shape
    order = rule.order(G)
    taken = Taken()
    for u in order.units:
        sums = d[:u].sum(axis=1)
        mean = float(sums.mean()) / size
        se = float(sums.std(ddof=1)) / math.sqrt(u) / size  # CR2 of equal clusters
        o = Observed(estimate=mean, se=se or None, df=u - 1, units=u)
        look = Look(rule, o, Progress(u, G, u, G), taken)
        decision, taken = look.decision, look.taken
        if decision in ("A better", "B better"):
            return (1 if mean > 0 else -1), u * size
    return 0, G * size


def difference(rng: np.random.Generator, G: int, size: int, gap: float) -> np.ndarray:
    shared = rng.standard_normal((G, 1)) * (size > 1)
    p = 1 / (1 + np.exp(-0.8 * shared - 0.8 * rng.standard_normal((G, size))))
    return (rng.random((G, size)) < np.clip(p + gap, 0, 1)).astype(float) - (rng.random((G, size)) < p)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("G", "size", "looks"), [(100, 1, 5), (10, 10, 5), (25, 4, 5), (100, 1, "anytime"), (30, 10, "anytime")]
)
def test_a_difference_that_is_not_there_is_found_as_often_as_was_asked_for(G: int, size: int, looks: Looks) -> None:
    rng = np.random.default_rng(G + size)
    rule = StoppingRule(looks=looks)
    found = sum(stops(difference(rng, G, size, 0.0), rule)[0] != 0 for _ in range(R)) / R
    bound = 0.06 if 10 <= G <= 30 else 0.05
    assert found <= bound + 2 * math.sqrt(0.05 * 0.95 / R)
    assert found > 0.025


@pytest.mark.slow
def test_looking_at_p_after_every_block_is_what_it_replaces() -> None:
    rng = np.random.default_rng(1)
    naive = 0
    for _ in range(500):
        d = difference(rng, 300, 1, 0.0)[:, 0]
        units = StoppingRule(looks="anytime").order(300).units
        naive += any(abs(d[:u].mean()) > 1.96 * d[:u].std(ddof=1) / math.sqrt(u) for u in units)
    assert naive / 500 > 0.25


@pytest.mark.slow
def test_a_large_difference_takes_a_quarter_of_the_questions() -> None:
    rng = np.random.default_rng(2)
    asked = [stops(difference(rng, 500, 1, 0.2), StoppingRule())[1] for _ in range(300)]
    assert 0.2 < float(np.mean(asked)) / 500 < 0.32


@pytest.mark.slow
def test_k_until_enough_does_not_bias_the_mean() -> None:
    rng = np.random.default_rng(3)
    gap = []
    for _ in range(300):
        p = rng.beta(0.3, 0.6, 150)
        values = (rng.random((150, 8)) < p[:, None]).astype(float)
        K = next((k for k in range(2, 9) if repeats_enough(as_scores(values[:, :k]), Settings()).enough), 8)
        gap.append(float(values[:, :K].mean() - p.mean()))
    assert abs(np.mean(gap)) < 3 * np.std(gap) / math.sqrt(300)
