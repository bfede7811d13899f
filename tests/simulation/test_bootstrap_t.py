"""The bootstrap-t of a skewed mean covers about as often as it says, from six clusters on."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize(("n", "least"), [(6, 0.85), (30, 0.88)])
def test_a_mean_with_a_long_tail(n: int, least: float) -> None:
    rng, replications, covered = np.random.default_rng(n), 150, 0
    for _ in range(replications):
        row = hn.estimate(rng.exponential(size=n), interval="bootstrap-t", resamples=499)
        covered += row.ci_low is not None and row.ci_low <= 1.0 <= row.ci_high
    assert covered / replications >= least
