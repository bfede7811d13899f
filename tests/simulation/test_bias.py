"""Bias of every variance component, against variances that are known exactly.

x_ij = u_cluster + q_i + ε_ij with variances σ²_u, σ²_q, σ²_ε: the mean has variance
σ²_u Σn_c²/n² + σ²_q/n + Σσ²_ε/k_i/n². The estimates of all replications come from the library's kernel.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise import estimate
from harness_noise.stats.contrast import design, question_stats
from harness_noise.stats.moments import contrast_moments
from support.slow import rest_slow

replications = pytest.mark.parametrize("replications", rest_slow([400, 4000]))
"""The bounds are standard errors of as many."""


def simulate(replications, labels, counts, icc, seed, noise=1.0):
    """(R, 3) estimates of V, var_data, var_prediction, and their true values."""
    rng = np.random.default_rng(seed)
    n, G, K = len(labels), labels.max() + 1, counts.max()
    plan = design(n, labels)
    holes = np.arange(K) >= counts[:, None]
    out = np.empty((replications, 3))
    for r in range(replications):
        q = np.sqrt(icc) * rng.standard_normal(G)[labels] + np.sqrt(1 - icc) * rng.standard_normal(n)
        x = q[:, None] + np.sqrt(noise) * rng.standard_normal((n, K))
        x[holes] = np.nan
        m = contrast_moments([question_stats(x)], [1.0], plan, "cr2").m
        out[r] = np.ravel([m.variance, m.var_data, m.var_prediction])
    sizes = np.bincount(labels)
    data = icc * (sizes**2).sum() / n**2 + (1 - icc) / n
    return out, np.array([data + (noise / counts).sum() / n**2, data, noise / n])


def unbiased(found, truth):
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    return np.abs(found.mean(axis=0) - truth) < 3.5 * error


def sizes(*counts):
    return np.repeat(np.arange(len(counts)), counts)


@replications
@pytest.mark.parametrize("icc", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("labels", [sizes(*[1] * 24), sizes(*[4] * 6)], ids=["singletons", "balanced"])
def test_singletons_and_balanced_at_any_icc(labels, icc, replications):
    found, truth = simulate(replications, labels, np.full(24, 4), icc, seed=1)
    assert unbiased(found, truth).all()


@replications
@pytest.mark.parametrize("labels", [sizes(12, 4, 4, 2, 1, 1), sizes(10, 7, 4, 2, 1)], ids=["giant", "unequal"])
def test_any_clusters_without_correlation(labels, replications):
    found, truth = simulate(replications, labels, np.full(24, 3), 0.0, seed=2)
    assert unbiased(found, truth).all()


@replications
def test_unequal_repeats(replications):
    """k_i from 2 to 6: the small-K correction with each question's own count."""
    found, truth = simulate(replications, sizes(*[1] * 30), 2 + np.arange(30) % 5, 0.0, seed=3)
    assert unbiased(found, truth).all()


@replications
@pytest.mark.parametrize("icc", [0.0, 0.5])
def test_balanced_clusters_across_tasks(icc, replications):
    """Two tasks of 24 and 12 questions, equal weights, with six clusters in common."""
    rng = np.random.default_rng(6)
    labels, strata = np.concatenate([np.arange(24) % 6, np.arange(12) % 6]), np.repeat([0, 1], [24, 12])
    plan = design(36, labels, strata, np.array([0.5, 0.5]))
    found = np.empty((replications, 3))
    for r in range(replications):
        q = np.sqrt(icc) * rng.standard_normal(6)[labels] + np.sqrt(1 - icc) * rng.standard_normal(36)
        x = q[:, None] + rng.standard_normal((36, 3))
        m = contrast_moments([question_stats(x)], [1.0], plan, "cr2").m
        found[r] = np.ravel([m.variance, m.var_data, m.var_prediction])
    each = 0.25 / 24 + 0.25 / 12
    data = icc / 6 + (1 - icc) * each
    assert unbiased(found, np.array([data + each / 3, data, each])).all()


@replications
def test_run_component(replications):
    """Four runs that move all 20 questions together."""
    rng = np.random.default_rng(7)
    n, K, run = 20, 4, 0.09
    found = np.empty((replications, 3))
    for r in range(replications):
        x = rng.standard_normal((n, 1)) + np.sqrt(run) * rng.standard_normal(K) + rng.standard_normal((n, K))
        e = estimate(x, repeats_are="runs")
        found[r] = e.se**2, e.var_data, e.var_prediction
    assert unbiased(found, np.array([1 / n + run / K + 1 / (n * K), 1 / n, 1 / n + run])).all()


@pytest.mark.slow
def test_where_cr2_is_biased():
    """Very unequal clusters that do correlate: too small by what docs/methods/clusters.md states."""
    zipf = np.maximum(1, np.round(100 / np.arange(1, 21) / (1 / np.arange(1, 21)).sum())).astype(int)
    for labels, ratio in ((sizes(*zipf), 0.91), (sizes(50, *[6] * 8, 2), 0.71), (sizes(50, *[1] * 50), 0.57)):
        found, truth = simulate(4000, labels, np.full(len(labels), 3), 0.3, seed=4)
        assert found[:, 0].mean() / truth[0] == pytest.approx(ratio, abs=0.05)
        assert unbiased(found, truth)[2]


@pytest.mark.slow
def test_small_k_correction():
    """Figure 3 of Wang (2025): without the correction the data noise is too large by σ²_ε/(K ω²), at any n.

    `plain` is eval-arena's estimator: Var of the question means with ddof = 0, nothing subtracted.
    """
    rng = np.random.default_rng(5)
    K, noise, error, plain_error, largest = 10, 4.0, [], [], []
    for n in (50, 500):
        ours, plain = np.empty(1000), np.empty(1000)
        for r in range(1000):
            x = rng.standard_normal((n, 1)) + np.sqrt(noise) * rng.standard_normal((n, K))
            m = x.mean(axis=1)
            ours[r] = m.var(ddof=1) - x.var(axis=1, ddof=1).mean() / K
            plain[r] = m.var()
            if r < 3:
                assert n * estimate(x).var_data == pytest.approx(ours[r], rel=1e-9)
        error.append(np.sqrt(((ours - 1) ** 2).mean()))
        plain_error.append(np.sqrt(((plain - 1) ** 2).mean()))
        largest.append(abs(ours.mean() - 1))
    assert plain_error[1] > 0.38  # does not go away with more questions
    assert error[1] < 0.1
    assert error[1] < error[0] / 2.5
    assert max(largest) < 0.03
