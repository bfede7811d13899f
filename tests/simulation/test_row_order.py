"""What is drawn at random is drawn for questions by their names, and errs as often as it should."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn

pytestmark = pytest.mark.simulation
R = 200


@pytest.mark.parametrize("test", ["permutation", "bootstrap", "wild"])
def test_resampled_tests_of_no_difference_reject_as_often_as_they_say(test: str) -> None:
    rng = np.random.default_rng(4)
    rejected = 0
    for _ in range(R):
        p = rng.beta(2, 1, 60)
        a, b = ((rng.random(60) < p).astype(float) for _ in "ab")
        row = hn.estimate_difference(a, b, test=test, resamples=499)
        rejected += row.p_value is not None and row.p_value < 0.05
    assert rejected / R <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / R)
