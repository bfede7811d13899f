"""Boundaries and confidence sequences against published tables, multivariate normal integrals and quadrature."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from harness_noise.extra.boundaries import (
    Spending,
    critical_values,
    drift_for_power,
    error_spent,
    exits_above,
    futility_bounds,
    information,
    mixture_critical,
    mixture_tuning,
    normal_z,
    predictive_power,
    stagewise_shifts,
    student_t,
)


def _equal(looks: int) -> list[float]:
    return [(k + 1) / looks for k in range(looks)]


def _error(looks: int, bounds: list[float]) -> float:
    return 2 * float(exits_above(_equal(looks), bounds).sum())


# Jennison & Turnbull (2000), tables 2.1 and 2.3: C_P(K, α) and C_B(K, α), two-sided
POCOCK = {(2, 0.05): 2.178, (3, 0.05): 2.289, (4, 0.05): 2.361, (5, 0.05): 2.413, (10, 0.05): 2.555,
          (2, 0.01): 2.772, (3, 0.01): 2.873, (4, 0.01): 2.939, (5, 0.01): 2.986,
          (2, 0.1): 1.875, (5, 0.1): 2.122}  # fmt: skip
OBRIEN_FLEMING = {(2, 0.05): 1.977, (3, 0.05): 2.004, (4, 0.05): 2.024, (5, 0.05): 2.040, (10, 0.05): 2.087,
                  (2, 0.01): 2.580, (3, 0.01): 2.595, (4, 0.01): 2.609, (5, 0.01): 2.621,
                  (2, 0.1): 1.678, (5, 0.1): 1.751}  # fmt: skip


@pytest.mark.parametrize(("looks", "alpha"), POCOCK)
def test_a_constant_boundary_is_pococks(looks: int, alpha: float) -> None:
    found = optimize.brentq(lambda c: _error(looks, [c] * looks) - alpha, 1, 4, xtol=1e-10)
    assert round(found, 3) == POCOCK[looks, alpha]


@pytest.mark.parametrize(("looks", "alpha"), OBRIEN_FLEMING)
def test_a_boundary_falling_as_the_root_of_the_look_is_obrien_and_flemings(looks: int, alpha: float) -> None:
    shape = [math.sqrt(looks / (k + 1)) for k in range(looks)]
    found = optimize.brentq(lambda c: _error(looks, [c * x for x in shape]) - alpha, 1, 4, xtol=1e-10)
    assert round(found, 3) == OBRIEN_FLEMING[looks, alpha]


def test_spending_of_pocock_type_has_the_boundaries_of_lan_and_demets() -> None:
    """Two-sided .05, five equal looks: 2.438, 2.427, 2.410, 2.397, 2.386, as in ldbounds."""
    found = critical_values(_equal(5), 0.05, "pocock")
    assert np.round(found, 3).tolist() == [2.438, 2.427, 2.41, 2.397, 2.386]


def test_spending_of_obrien_fleming_type_has_the_boundaries_of_lan_and_demets_program() -> None:
    """At two-sided .05 it spends .025 on each side."""
    published = [4.877, 3.357, 2.680, 2.290, 2.031]
    assert np.round(critical_values(_equal(5), 0.05, "obrien-fleming"), 3).tolist() == published
    cumulative = np.cumsum(exits_above(_equal(5), published))
    asked = [error_spent(t, 0.025, "obrien-fleming") for t in _equal(5)]
    np.testing.assert_allclose(cumulative, asked, rtol=5e-3)
    assert abs(cumulative[-1] - 0.025) < 3e-5


def test_the_recursion_agrees_with_multivariate_normal_integrals() -> None:
    t, drift = np.array([0.15, 0.5, 0.7, 1.0]), 1.3
    bounds = critical_values(t, 0.05)
    covariance = np.sqrt(np.minimum.outer(t, t) / np.maximum.outer(t, t))
    mean = drift * np.sqrt(t)
    within = [1.0]
    np.random.seed(0)  # scipy's integral is a random one, whatever its tolerance
    for k in range(1, 5):
        within.append(
            stats.multivariate_normal.cdf(
                bounds[:k], mean[:k], covariance[:k, :k], maxpts=400_000, abseps=1e-8, releps=1e-8,
                lower_limit=-np.array(bounds[:k]),
            )
        )  # fmt: skip
    above = exits_above(t, bounds, drift)
    below = exits_above(t, bounds, -drift)
    np.testing.assert_allclose(np.cumsum(above + below), 1 - np.array(within[1:]), atol=1e-6)


@pytest.mark.parametrize("spending", get_args(Spending))
def test_what_is_spent_is_what_is_crossed(spending: Spending) -> None:
    t = [0.1, 0.35, 0.36, 0.8, 1.0]
    found = np.cumsum(exits_above(t, critical_values(t, 0.06, spending)))
    np.testing.assert_allclose(found, [error_spent(x, 0.03, spending) for x in t], rtol=1e-6)


def test_what_is_spent_may_follow_another_share_than_the_information() -> None:
    """A look that was planned at another share spends that share; its z correlates by the information that is there."""
    planned, there = [0.3, 0.6, 1.0], [2.0, 9.0, 10.0]
    bounds = critical_values(planned, 0.05, info=there)
    found = np.cumsum(exits_above(there, bounds))
    np.testing.assert_allclose(found, [error_spent(t, 0.025) for t in planned], rtol=1e-6)
    np.testing.assert_allclose(bounds, critical_values(planned, 0.05, info=[t / 10 for t in there]), rtol=1e-9)


def test_the_spending_of_hwang_shih_and_decani() -> None:
    """gsDesign: sfHSD(.025, (1:4)/4, -4) = 0.000801, 0.002980, 0.008902, 0.025."""
    found = [error_spent(k / 4, 0.025) for k in range(1, 5)]
    np.testing.assert_allclose(found, [0.000801, 0.002980, 0.008902, 0.025], atol=6e-7)
    assert error_spent(0.3, 0.025, gamma=0) == pytest.approx(0.0075)
    assert error_spent(0.3, 0.025, gamma=1e-9) == pytest.approx(0.0075)


def test_information_is_that_of_the_variances() -> None:
    assert information(0.3) == pytest.approx(0.3)
    assert information(1.0, repeats=1 / 4, prediction=1.0) == pytest.approx(4)
    # of 100 questions 40 were asked; residuals have half of the variance: V = .5 (1/40 − 1/100) + 1/100
    assert information(0.4, residual=0.5) == pytest.approx(0.01 / (0.5 * (1 / 40 - 1 / 100) + 0.01))
    # a third of the variance is prediction noise, and half of the questions have two answers
    assert information(1.0, repeats=0.75, prediction=1 / 3) == pytest.approx(1 / (2 / 3 + 1 / 3 * 0.75))


@pytest.mark.parametrize(("z", "t"), [(0.0, 0.5), (1.1, 0.3), (-2.0, 0.8)])
def test_the_predictive_probability_is_that_of_drawn_runs(z: float, t: float) -> None:
    rng = np.random.default_rng(3)
    drift = z / math.sqrt(t) + rng.standard_normal(400_000) / math.sqrt(t)  # the posterior with a flat prior
    last = z * math.sqrt(t) + (1 - t) * drift + math.sqrt(1 - t) * rng.standard_normal(400_000)
    assert predictive_power(z, t, 2.1) == pytest.approx(float((np.abs(last) > 2.1).mean()), abs=0.003)
    both = float(((np.abs(last) > 2.1) | (np.abs(last) < 0.7)).mean())
    assert predictive_power(z, t, 2.1, 0.7) == pytest.approx(both, abs=0.003)


def test_a_planned_effect_is_lost_to_futility_as_often_as_was_spent() -> None:
    t, beta = [k / 10 for k in range(1, 11)], 0.1
    bounds = critical_values(t, 0.05)
    drift = drift_for_power(t, bounds, 0.8)
    inner = np.array(futility_bounds(t, t, bounds, drift, beta))
    assert (inner < bounds).all()
    steps = np.random.default_rng(4).standard_normal((200_000, 10)) * math.sqrt(0.1) + 0.1 * drift
    z = np.cumsum(steps, axis=1) / np.sqrt(t)
    above, below = np.abs(z) > bounds, np.abs(z) < inner
    first = np.where((above | below).any(axis=1), (above | below).argmax(axis=1), 9)
    lost = below[np.arange(len(z)), first].mean()
    assert lost == pytest.approx(beta, abs=0.003)
    assert (above.any(axis=1) & below[np.arange(len(z)), first]).mean() < 0.01  # what that costs of the power


def test_one_look_has_the_normal_interval_and_estimate() -> None:
    z = special.ndtri(0.975)
    np.testing.assert_allclose(stagewise_shifts(2.4, [1.0], [z], 0.95), (z, 0, -z), atol=1e-6)


def test_the_stagewise_interval_excludes_zero_exactly_where_the_boundary_is_crossed() -> None:
    bounds = critical_values(_equal(5), 0.05)
    for k in range(1, 6):
        for z, crossed in ((bounds[k - 1] + 1e-4, True), (bounds[k - 1] - 1e-4, False)):
            low = z - stagewise_shifts(z, _equal(5)[:k], bounds[:k], 0.95)[0]
            assert (low > 0) == crossed or (k < 5 and not crossed)


def test_p_in_the_stagewise_order_is_uniform_and_its_inverse_the_interval() -> None:
    rng = np.random.default_rng(7)
    t, drift, R = np.array(_equal(3)), 2.8, 1500
    bounds = critical_values(t, 0.05)
    z = np.cumsum(rng.standard_normal((R, 3)) / math.sqrt(3) + drift / 3, axis=1) / np.sqrt(t)
    p = []
    for r, row in enumerate(z):
        k = next((k for k in range(3) if abs(row[k]) > bounds[k]), 2) + 1
        p.append(float(exits_above(t[:k], [*bounds[: k - 1], row[k - 1]], drift).sum()))
        if r < 20:
            shifts = stagewise_shifts(float(row[k - 1]), t[:k], bounds[:k], 0.95)
            low, middle, high = (float(row[k - 1] - s) / math.sqrt(t[k - 1]) for s in shifts)
            assert (low <= drift <= high) == (0.025 <= p[-1] <= 0.975)
            assert (middle <= drift) == (p[-1] >= 0.5)
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_a_t_statistic_and_its_z_have_one_p() -> None:
    for df in (3.0, 9.5, 400.0, math.inf):
        for t in (-4.0, -1e-9, 0.0, 0.3, 2.5, 8.0):
            z = normal_z(t, df)
            assert float(special.ndtr(-abs(z))) == pytest.approx(float(stats.t.sf(abs(t), df)), rel=1e-9)
            assert math.copysign(1, z) == math.copysign(1, t) or t == 0
            if abs(z) < 6:
                assert student_t(z, df) == pytest.approx(t, rel=1e-7, abs=1e-12)
    assert normal_z(-1e9, 50) == -37.0


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.2])
@pytest.mark.parametrize("when", [20, 300])
def test_the_confidence_sequence_is_where_the_mixture_martingale_reaches_one_over_alpha(
    alpha: float, when: int
) -> None:
    """Robbins (1970): ∫ exp(λS − λ²n/2) dN(λ; 0, ρ²) = 1/α at S = critical · √n, by quadrature."""
    rho = mixture_tuning(alpha, when)
    for n in (5, 37, 300, 4000):
        boundary = float(mixture_critical(n, alpha, rho)) * math.sqrt(n)

        def integrand(x: float, n: int = n, boundary: float = boundary) -> float:
            return math.exp(x * boundary - x * x * n / 2 - x * x / (2 * rho**2)) / (rho * math.sqrt(2 * math.pi))

        peak = boundary / (n + 1 / rho**2)
        spread = 1 / math.sqrt(n + 1 / rho**2)
        value, _ = integrate.quad(integrand, peak - 12 * spread, peak + 12 * spread, epsabs=0, epsrel=1e-12, limit=200)
        assert value == pytest.approx(1 / alpha, rel=1e-8)


def test_the_confidence_sequence_is_nearly_narrowest_where_it_was_tuned() -> None:
    best = optimize.minimize_scalar(
        lambda x: float(mixture_critical(300, 0.05, math.exp(x))), bounds=(-8, 3), method="bounded"
    )
    assert float(mixture_critical(300, 0.05, mixture_tuning(0.05, 300))) <= best.fun * 1.001


def test_fractions_that_do_not_rise_are_refused() -> None:
    for bad in ([], [0.5, 0.5], [0.0, 1.0], [0.5, 1.1]):
        with pytest.raises(ValueError, match="must rise"):
            critical_values(bad, 0.05)
