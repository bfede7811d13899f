"""Slices, explanations and ranks on part of the grid of `benchmarks/coverage_slices.py`, with fixed seeds.

The whole grid is in docs/methods/coverage-slices.md. Bounds leave 3.5 simulation errors beside the promise.
"""

from __future__ import annotations

import numpy as np
import pytest

from support import simulations


@pytest.fixture(scope="module")
def simulation():
    return simulations.simulation("coverage_slices")


def above(promise, R):
    return promise + 3.5 * np.sqrt(promise * (1 - promise) / R)


@pytest.mark.parametrize("G", [0, 60])
@pytest.mark.parametrize("worse", [0.0, 0.4])
def test_false_discoveries_among_correlated_fields(simulation, G, worse):
    rate, power, told = simulation.discoveries(60, 600, G, True, worse)
    assert rate <= above(0.05, 60)
    if worse:
        assert power > 0.5
        assert told > 0.5
    else:
        assert told <= above(0.05, 60)


@pytest.mark.parametrize("accuracy", [0.5, 0.97])
def test_slices_of_one_run_near_and_far_from_the_ceiling(simulation, accuracy):
    assert simulation.false_means(50, 400, 0, accuracy, "unequal") <= above(0.05, 50)


def test_shrunken_slices_are_nearer_to_the_truth(simulation):
    for spread, ratio in ((0.0, 0.2), (0.05, 0.5), (0.15, 0.95)):
        error, covered, _ = simulation.shrinkage(60, 20, spread, 0.7)
        assert error < ratio
        assert covered >= 1 - above(0.05, 60 * 20)


@pytest.mark.parametrize("G", [10, 30])
def test_coverage_of_coefficients(simulation, G):
    found = simulation.coefficients(150, G, 200)
    assert min(found) >= 1 - above(0.06, 150)
