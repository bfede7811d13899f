"""Wins between answers of any scores, counted by ranks, against all pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise.stats.ranks import answers_above


@pytest.mark.parametrize("levels", [2, 5, 100, 10**6])
def test_answers_above_is_the_share_of_pairs_that_one_by_one_gives(levels: int) -> None:
    draw = np.random.default_rng(levels)
    answers = tuple(draw.integers(-levels, levels, (7, K)) / 3 for K in (40, 1, 60, 80))
    for values in answers:
        values[draw.random(values.shape) < 0.2] = np.nan
    answers[0][3] = np.nan  # a question that one model did not answer
    expected = np.zeros((4, 4))
    for a, one in enumerate(answers):
        for b, other in enumerate(answers):
            for x, y in zip(one, other, strict=True):
                pairs = [u > v for u in x[~np.isnan(x)] for v in y[~np.isnan(y)]]
                expected[a, b] += np.mean(pairs) if pairs else 0.0
    np.testing.assert_allclose(answers_above(answers), expected, rtol=1e-12, atol=1e-12)
