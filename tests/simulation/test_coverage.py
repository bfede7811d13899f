"""Coverage and type I error on part of the grid of `make coverage`, with fixed seeds.

The whole grid is in docs/methods/coverage.md. Bounds leave 3.5 simulation errors beside the promise.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("coverage_simulation", ROOT / "benchmarks" / "coverage.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


REPLICATIONS = 2000


def slack(level):
    return 3.5 * math.sqrt(level * (1 - level) / REPLICATIONS)


@pytest.mark.slow
@pytest.mark.parametrize("K", [1, 8])
@pytest.mark.parametrize(
    ("n", "G", "shape"),
    [(10, 0, ""), (10, 5, "giant"), (30, 0, ""), (30, 5, "balanced"), (100, 10, "giant"), (100, 30, "balanced"),
     (300, 0, ""), (300, 5, "balanced")],
)  # fmt: skip
def test_coverage(simulation, n, G, shape, K):
    for difficulty in simulation.DIFFICULTY:
        for effect in (0.0, 0.15):
            cell = simulation.Cell(n, K, G, shape, difficulty, effect)
            found = simulation.coverage(cell, REPLICATIONS)
            low, high = simulation.bands(cell)
            assert low - slack(low) <= found.difference <= high + slack(high), cell
            assert found.run >= 0.92 - slack(0.92), cell
            if n == 300 and G == 5:  # what the default is for
                assert found.run_z < 0.80
                assert found.run_pooled < 0.90


@pytest.mark.slow
def test_type_one(simulation):
    for n, G, shape, K in ((10, 0, "", 4), (30, 5, "balanced", 4), (100, 10, "giant", 1), (300, 30, "balanced", 8)):
        for difficulty in simulation.DIFFICULTY:
            errors = simulation.type_one(simulation.Cell(n, K, G, shape, difficulty, 0.0), REPLICATIONS)
            for test, limit in (("t", 0.06), ("sign", 0.05), ("permutation", 0.05), ("bootstrap", 0.075)):
                assert errors[test] <= limit + slack(limit), (n, G, shape, K, difficulty, errors)


def test_bowyer(simulation):
    """CLT covers .50 / .78 / .88 / .92 at n = 3 / 10 / 30 / 100; Wilson about .95 throughout."""
    for n, expected in ((3, 0.50), (10, 0.78), (30, 0.88), (100, 0.92)):
        clt, wilson = simulation.bowyer(n, 20_000)
        assert clt == pytest.approx(expected, abs=0.015)
        assert wilson == pytest.approx(0.95, abs=0.015)
