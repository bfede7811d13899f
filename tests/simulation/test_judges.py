"""Judges by simulation: the variance on one text and its share are unbiased, and AC1's interval covers."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise.extra.factors.agreement import agreement
from harness_noise.stats.contrast import design
from harness_noise.stats.judges import judge_noise
from support.slow import rest_slow

replications = pytest.mark.parametrize("replications", rest_slow([300, 3000]))
"""The bounds are standard errors of as many."""


@replications
@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("graded", [False, True], ids=["right or wrong", "graded"])
def test_the_variance_on_one_text_is_unbiased(K, graded, replications):
    """The model answers with one of three texts, more or less surely; the judge errs alike on all."""
    rng = np.random.default_rng(11)
    n, found, flips = 40, [], []
    for _ in range(replications):
        sure = rng.beta(1, 1, n)[:, None]
        texts = np.where(rng.random((n, K)) < sure, 0, rng.integers(1, 3, (n, K)))
        codes = (3 * np.arange(n)[:, None] + texts).ravel()
        if graded:
            scores = 5 + 2.0 * texts.ravel() + rng.normal(0, 0.7, n * K)
        else:
            scores = ((texts.ravel() == 0) ^ (rng.random(n * K) < 0.15)).astype(float)
        noise = judge_noise(scores, codes)
        found.append(noise.variance)
        flips.append(noise.rate)
    truth = 0.49 if graded else 0.15 * 0.85
    error = np.std(found, ddof=1) / np.sqrt(replications)
    assert abs(np.mean(found) - truth) < 3.5 * error
    if not graded:
        assert np.mean(flips) == pytest.approx(2 * np.mean(found))


@replications
def test_noise_that_depends_on_the_answer_is_the_mean_over_answers_graded_twice(replications):
    """A question whose five answers are one text counts as five answers, not as ten pairs."""
    rng = np.random.default_rng(12)
    n, K, found = 60, 5, []
    flip = np.where(np.arange(n) % 2 == 0, 0.05, 0.4)  # sure questions have a sure judge
    texts = np.where(np.arange(n)[:, None] % 2 == 0, 0, [[0, 0, 1, 2, 3]])
    codes = (9 * np.arange(n)[:, None] + texts).ravel()
    for _ in range(replications):
        scores = (rng.random((n, K)) < flip[:, None]).astype(float)
        found.append(judge_noise(scores.ravel(), codes).variance)
    truth = (5 * 0.05 * 0.95 + 2 * 0.4 * 0.6) / 7
    assert abs(np.mean(found) - truth) < 3.5 * np.std(found, ddof=1) / np.sqrt(replications)


@replications
@pytest.mark.parametrize("per_cluster", [1, 5])
def test_the_interval_of_ac1_covers(per_cluster, replications):
    """Three judges of 120 answers, clusters whose answers are all easy or all hard; the truth is of a large sample."""

    def drawn(rng, G):
        hard = np.repeat(rng.beta(0.4, 1.2, G), per_cluster)
        right = np.repeat(rng.random(G) < 0.8, per_cluster)
        return (right[:, None] ^ (rng.random((len(hard), 3)) < hard[:, None] / 2)).astype(float)

    rng = np.random.default_rng(13)
    G, labels = 120 // per_cluster, np.repeat(np.arange(120 // per_cluster), per_cluster)
    n = 100_000
    truth = agreement(drawn(rng, n), np.arange(n * per_cluster), design(n * per_cluster))
    hits = 0
    for _ in range(replications):
        found = agreement(drawn(rng, G), np.arange(120), design(120, labels))
        hits += abs(found.ac1 - truth.ac1) < 1.96 * found.ac1_se
    coverage = hits / replications
    assert abs(coverage - 0.945) < 0.02 + 3.5 * np.sqrt(0.05 * 0.95 / replications)
