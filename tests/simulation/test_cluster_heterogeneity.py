"""The permutation test of clusters that differ rejects as often as it says, for clusters of any size and 0/1 scores."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise.stats.resampling import cluster_means

pytestmark = pytest.mark.simulation
R = 250


@pytest.mark.parametrize(
    ("sizes", "binary"),
    [([5] * 20, True), ([2] * 60, False), ([50, 3, 3, 2, 2, 20], True), ([50, 3, 3, 2, 2, 20], False)],
)
def test_equal_clusters_are_called_different_as_often_as_promised(sizes: list[int], binary: bool) -> None:
    rng, codes = np.random.default_rng(sum(sizes) + binary), np.repeat(np.arange(len(sizes)), sizes)
    rejected = 0
    for _ in range(R):
        d = rng.normal(size=len(codes)) ** 3
        if binary:  # differences of two 0/1 scores: mostly ties
            d = rng.choice([-1.0, 0.0, 1.0], size=len(codes), p=[0.1, 0.7, 0.2])
        rejected += cluster_means(d, codes).p_value <= 0.05
    assert rejected / R <= 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / R)
    if not binary:
        assert rejected / R >= 0.05 - 3.5 * np.sqrt(0.05 * 0.95 / R)


def test_clusters_that_differ_are_found() -> None:
    rng, codes = np.random.default_rng(5), np.repeat(np.arange(20), 10)
    found = [cluster_means(rng.normal(size=200) + 0.7 * rng.normal(size=20)[codes], codes).p_value for _ in range(40)]
    assert np.mean(np.array(found) <= 0.05) > 0.9
