"""The limit that a no-loss gate reads where few questions differ, at a loss of exactly the margin."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise.stats.contrast import design
from harness_noise.stats.intervals import t_limits
from harness_noise.stats.moments import mean_variance
from harness_noise.stats.pairs import extended_samples

pytestmark = pytest.mark.simulation
R = 4000


@pytest.mark.parametrize(("n", "margin"), [(100, 0.05), (400, 0.03)])
def test_it_errs_in_about_four_per_cent(n: int, margin: float) -> None:
    """More than 2.5% pass, which the gate says, but not many more."""
    rng = np.random.default_rng(n)
    d = np.where(rng.random((R, n)) < margin, -1.0, 0.0)
    plan = design(n)
    m = mean_variance(d, plan, "cr2")
    far = extended_samples(d, plan, m, "cr2")
    low = t_limits(m.mean, np.sqrt(m.variance), m.df, 0.95).widened_to(m.mean, far, 0.95).low
    assert np.mean((low > -margin) & ~m.zero_variance) <= 0.045 + 3 * np.sqrt(0.045 / R)
