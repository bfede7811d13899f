"""How often the best of several models is dropped: at most 5%, whoever leads in between.

`--looks` promises no more: with M equal models some model is dropped far more often.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import harness_noise as hn
from support.slow import rest_slow

QUICK, LONG = 120, 500


def bernoulli(p, rng, K=1):
    return (rng.random((*p.shape, K)) < p[..., None]).astype(float)


def equal(M, n, rng, K=1):
    return bernoulli(np.broadcast_to(rng.beta(1, 1, n), (M, n)), rng, K), None


def half_worse(M, n, rng):
    p = np.broadcast_to(rng.beta(1, 1, n), (M, n)).copy()
    p[M // 2 + M % 2 :] -= 0.1
    return bernoulli(np.clip(p, 0, 1), rng), None


def unequal_variances(M, n, rng):
    scores = 0.5 + rng.normal(0, 0.02, (M, n, 1))
    scores[0, :, 0] = rng.random(n) < 0.5
    return scores, None


def near_copies(M, n, rng):
    first = np.broadcast_to(rng.random(n) < 0.6, (M, n))
    other = rng.random((M, n)) < 0.6
    return np.where(rng.random((M, n)) < 0.03, other, first)[..., None].astype(float), None


def rare(M, n, rng):
    return bernoulli(np.full((M, n), 0.02), rng), None


def clustered(M, n, rng, labels):
    """Each model has its own effect in each cluster."""
    effects = rng.normal(0, 0.25, (M, labels.max() + 1))[:, labels]
    return bernoulli(np.clip(rng.beta(1, 1, n) + effects, 0, 1), rng), labels


def equal_clusters(M, n, rng, G=20):
    return clustered(M, n, rng, np.arange(n) % G)


def giant_cluster(M, n, rng):
    return clustered(M, n, rng, np.where(np.arange(n) < 0.3 * n, 0, 1 + np.arange(n) % 19))


def zipf(M, n, rng):
    share = 1 / np.arange(1, 31)
    return clustered(M, n, rng, np.append(np.arange(30), rng.choice(30, n - 30, p=share / share.sum())))


def lottery(M, n, rng):
    """The best succeeds on one question of twenty. The others score a twentieth on each, nearly without noise."""
    scores = 0.05 + rng.normal(0, 0.001, (M, n, 1))
    scores[0, :, 0] = rng.random(n) < 0.05
    return scores, None


def five_answers(M, n, rng):
    return equal(M, n, rng, 5)


CELLS = [
    (lottery, 2, 100), (half_worse, 5, 60), (equal, 30, 60),
    *((make, M, n) for M, n in ((2, 60), (2, 400), (10, 60))
      for make in (equal, half_worse, unequal_variances, near_copies, rare)),
    *((make, M, 400) for M in (2, 10) for make in (equal_clusters, giant_cluster, zipf, lottery)),
    *((five_answers, M, 100) for M in (2, 10)),
]  # fmt: skip


def dropped(make, M, n, replications):
    """The share of replications in which the first model, which is one of the best, is dropped."""
    rng = np.random.default_rng([16, M, n, len(make.__name__)])
    out = 0
    for seed in range(replications):
        scores, clusters = make(M, n, rng)
        found = hn.drop_in_sequence(scores, clusters, seed=seed, range=(0, 1) if scores.min() >= 0 else (-1, 2))
        out += next(not row.goes_on for row in found.models if row.model == "1")
    return out / replications


@pytest.mark.simulation
@pytest.mark.parametrize(("make", "M", "n"), CELLS[:2])
def test_the_best_is_dropped_in_at_most_5_percent(make, M, n):
    assert dropped(make, M, n, QUICK) <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / QUICK)


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize(("make", "M", "n"), CELLS)
def test_the_best_is_dropped_in_at_most_5_percent_in_every_cell(make, M, n):
    """Zipf clusters, whose CR2 variance is too small, and rare successes come near 7%."""
    most = 0.07 if make in (zipf, lottery) else 0.055
    assert dropped(make, M, n, LONG) <= most + 2.5 * math.sqrt(most * (1 - most) / LONG)


@pytest.mark.simulation
@pytest.mark.parametrize("lead", rest_slow([0.2, 0.1, 0.0]))
def test_the_limits_cover_wherever_the_looks_end(lead):
    rng, covers, asked = np.random.default_rng(17), 0, []
    for seed in range(QUICK):
        p = np.clip(rng.beta(2, 2, 300), 0.2, 0.8)
        scores = rng.random((2, 300)) < p + np.array([[0.0], [-lead]])
        found = hn.drop_in_sequence(scores, seed=seed)
        row = next((row for row in found.models if row.behind), None)
        truth = -lead if row is None or row.model == "2" else lead
        covers += row is None or row.diff_low <= truth <= row.diff_high
        asked.append(found.share_asked)
    assert covers / QUICK >= 0.9 - 2.5 * math.sqrt(0.9 * 0.1 / QUICK)
    assert lead < 0.2 or np.mean(asked) < 0.6
