"""Power of the t test and its inverse: against statsmodels, a slow integral, and in the limits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats
from statsmodels.stats.power import TTestPower

from harness_noise.stats.power import noncentrality, power_t


@pytest.mark.parametrize("df", [4, 9, 29, 197, 5000])
@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.05, 0.5), (0.01, 0.9), (0.1, 0.99)])
def test_noncentrality_is_that_of_statsmodels(df: int, alpha: float, power: float) -> None:
    """At the root itself: statsmodels' own search stops at 1e-6 or so."""
    effect = noncentrality(alpha, power, df) / np.sqrt(df + 1)
    slope = (TTestPower().power(effect + 1e-5, df + 1, alpha) - TTestPower().power(effect - 1e-5, df + 1, alpha)) / 2e-5
    assert abs(TTestPower().power(effect, df + 1, alpha) - power) / slope < 1e-8 * effect


@pytest.mark.parametrize("df", [3, 7, 8, 15, 60, 1000])
def test_power_is_that_of_statsmodels(df: int) -> None:
    nc = np.array([0.0, 0.7, 2.0, 4.5])  # beyond some 8 its noncentral t is NaN
    effects = nc / np.sqrt(df + 1)
    expected = [TTestPower().power(effect, df + 1, 0.05) for effect in effects]
    assert power_t(nc, 0.05, df) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("df", [1.0, 1.3, 2.0, 2.7])
@pytest.mark.parametrize("nc", [0.0, 1.5, 4.0, 20.0])
def test_power_with_hardly_any_degrees_of_freedom(df: float, nc: float) -> None:
    """Where library routines for the noncentral t give NaN: P = E over s of Φ(nc − t s) + Φ(−nc − t s)."""
    t = stats.t.ppf(0.975, df)
    density = stats.chi(df, scale=df**-0.5).pdf

    def at(s: float) -> float:
        return float(density(s) * (special.ndtr(nc - t * s) + special.ndtr(-nc - t * s)))

    cuts = sorted({0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 40.0, nc / t, 0.8 * nc / t, 1.2 * nc / t})
    slow = sum(integrate.quad(at, low, high, epsabs=1e-13, limit=200)[0] for low, high in pairwise(cuts))
    assert power_t(nc, 0.05, df) == pytest.approx(slow, abs=1e-9)


def test_the_two_are_inverse_over_many_degrees_of_freedom() -> None:
    df = np.concatenate([np.geomspace(0.6, 1e7, 400), [np.inf]])
    for alpha, power in ((0.05, 0.8), (0.001, 0.9), (0.2, 0.3)):
        assert power_t(noncentrality(alpha, power, df), alpha, df) == pytest.approx(np.full(401, power), abs=1e-10)


def test_figures_of_the_design() -> None:
    assert noncentrality(0.05, 0.8, 4) == pytest.approx(3.761, abs=5e-4)
    normal = special.ndtri(0.975) + special.ndtri(0.8)
    assert noncentrality(0.05, 0.8, np.inf) == pytest.approx(normal, abs=1e-5)  # the other direction: 1e-6
    # with 5 clusters, the difference that the normal formula calls detectable at 80% is found in 56%
    assert power_t(normal, 0.05, 4) == pytest.approx(0.56, abs=0.005)


def test_shapes_and_what_is_not_known() -> None:
    assert noncentrality(0.05, 0.8, 4).shape == ()
    found = noncentrality(0.05, 0.8, np.array([[4.0, np.nan], [0.0, np.inf]]))
    assert found.shape == (2, 2)
    assert np.isnan(found[0, 1])
    assert np.isnan(found[1, 0])
    assert power_t(np.ones((3, 1)), 0.05, np.array([5.0, np.nan])).shape == (3, 2)
    assert power_t(0.0, 0.05, 12) == pytest.approx(0.05, abs=1e-12)
    for alpha, power in ((0.05, 0.05), (0.05, 0.01), (0.05, 1.0), (0.0, 0.8)):
        with pytest.raises(ValueError, match="above alpha"):
            noncentrality(alpha, power, 10)
