"""The upper limit of the data noise covers where V says little: few questions that vary, unequal clusters."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn

pytestmark = pytest.mark.simulation
R = 200
SLACK = 3 * np.sqrt(0.05 * 0.95 / R)


def covered(draw, truth, level=0.95):
    """Share of runs whose limit is no lower than the true data variance of the mean; null where nothing varied."""
    hits = []
    for _ in range(R):
        values, clusters = draw()
        row = hn.estimate(values, clusters)
        if row.var_data is not None:
            hits.append(row.se_data_upper is not None and row.se_data_upper**2 >= truth)
    return np.mean(hits)


@pytest.mark.parametrize(
    ("n", "share", "K", "least"), [(100, 0.1, 3, 0.95), (200, 0.05, 2, 0.95), (400, 0.02, 2, 0.92)]
)
def test_where_few_questions_vary(n, share, K, least):
    rng = np.random.default_rng(n)

    def draw():
        p = np.where(rng.random(n) < share, rng.random(n), 1.0)
        return (rng.random((n, K)) < p[:, None]).astype(float), None

    truth = (share / 3 + (1 - share) - (1 - share / 2) ** 2) / n
    assert covered(draw, truth) >= least - SLACK


def test_where_one_cluster_is_a_giant():
    rng = np.random.default_rng(2)
    sizes = np.array([40, *[3] * 20])
    labels = np.repeat(np.arange(21), sizes)
    n = len(labels)

    def draw():
        p = 0.5 + 0.3 * np.sign(rng.standard_normal(21))[labels]
        return (rng.random((n, 4)) < p[:, None]).astype(float), labels.tolist()

    truth = 0.3**2 * float((sizes**2).sum()) / n**2  # the questions of a cluster have one difficulty
    assert covered(draw, truth) >= 0.94 - SLACK
