"""Means and differences that labels correct, on part of the grid of `benchmarks/coverage_judges.py`, with fixed seeds.

The whole grid is in docs/methods/coverage-judges.md. Bounds leave 3.5 simulation errors beside the promise.
"""

from __future__ import annotations

import numpy as np
import pytest

from support import simulations
from support.slow import rest_slow


@pytest.fixture(scope="module")
def simulation():
    return simulations.simulation("coverage_judges")


def missed(R):
    """The largest share of misses that 5 % can come to."""
    return 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / R)


@pytest.mark.parametrize(("judge", "m", "size"), rest_slow([
    ("LENIENT", 100, 1), ("GOOD", 100, 1), ("POOR", 100, 1), ("GRADES", 100, 1), ("LENIENT", 300, 10), ("GOOD", 30, 1),
]))  # fmt: skip
def test_means_cover_whatever_the_judge(simulation, judge, m, size):
    R = 120
    cell = simulation.Cell(simulation.MEANS, (getattr(simulation, judge),), 2000, m, size)
    found = simulation.shares(cell, R)
    assert 1 - found.covered <= missed(R)
    assert found.naive < 0.8


@pytest.mark.parametrize("unlike", rest_slow([True, False]))
def test_a_difference_that_is_the_judges_alone_is_called_no_more_often_than_promised(simulation, unlike):
    R = 120
    judges = (simulation.LENIENT, simulation.HARSH if unlike else simulation.LENIENT)
    cell = simulation.Cell(simulation.UNLIKE, judges, 2000, 300, 1, (0.7, 0.7))
    found = simulation.shares(cell, R)
    assert found.rejected <= missed(R)
    assert 1 - found.covered <= missed(R)
    if unlike:
        assert found.naive_rejected > 0.95
