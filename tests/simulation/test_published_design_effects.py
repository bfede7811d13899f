"""The shape of Miller (2024), table 4: clustered against naive SEs of three benchmarks.

The data are not public. Benchmarks of the same sizes are simulated with the accuracy that the naive SE
implies and the intraclass correlation that the ratio implies; our estimators must give both SEs back.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise import estimate


@pytest.mark.parametrize(
    ("name", "n", "G", "clustered", "naive"),
    [("DROP", 9622, 588, 1.34, 0.44), ("RACE-H", 3498, 1045, 0.51, 0.46), ("MGSM", 2500, 250, 1.62, 0.86)],
)
def test_clustered_and_naive(name, n, G, clustered, naive):
    rng = np.random.default_rng(0)
    passage = np.sort(np.concatenate([np.arange(G), rng.integers(0, G, n - G)])) if name != "MGSM" else np.arange(n) % G
    sizes = np.bincount(passage)
    # Var(mean) = naive² · (1 + ICC (Σ n_c²/n − 1)) for an exchangeable correlation
    icc = ((clustered / naive) ** 2 - 1) / ((sizes**2).sum() / n - 1)
    p = 0.5 + np.sqrt(0.25 - n * (naive / 100) ** 2)
    found = []
    for _ in range(20):
        ability = rng.beta(p * (1 / icc - 1), (1 - p) * (1 / icc - 1), G)
        e = estimate(rng.random(n) < ability[passage], clusters=passage)
        found.append((100 * e.se, 100 * e.se_naive, e.icc))
    se, plain, rho = np.mean(found, axis=0)
    assert se == pytest.approx(clustered, rel=0.04)
    assert plain == pytest.approx(naive, rel=0.04)
    assert rho == pytest.approx(icc, abs=0.03)
