"""Does the first of K repeats have another mean than the others? One contrast of the two-way table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness_noise.stats.moments import run_component


def component(values):
    n = len(values)
    return run_component(values, np.full(n, 1 / n), np.zeros(n, dtype=np.intp))


def test_with_two_repeats_it_is_the_paired_t_test():
    values = np.random.default_rng(1).random((40, 2))
    expected = stats.ttest_rel(values[:, 0], values[:, 1]).pvalue
    found = component(values)
    assert found.first_p_value == pytest.approx(expected, rel=1e-9)
    assert found.p_value == pytest.approx(expected, rel=1e-9)
    assert found.others_p_value is None


def test_the_two_contrasts_make_up_the_whole_test():
    """Sums of squares: 1 of the first against the others, K − 2 among the others, K − 1 in all."""
    K = 5
    values = np.random.default_rng(2).random((30, K))
    found = component(values)
    df = found.df_residual
    F = {
        "all": stats.f.isf(found.p_value, K - 1, df) * (K - 1),
        "first": stats.f.isf(found.first_p_value, 1, df),
        "others": stats.f.isf(found.others_p_value, K - 2, df) * (K - 2),
    }
    assert F["first"] + F["others"] == pytest.approx(F["all"], rel=1e-8)


def test_p_is_uniform_where_the_repeats_are_alike():
    draw = np.random.default_rng(3)
    ease = draw.beta(1, 1, size=(600, 60, 1))
    runs = (draw.random((600, 60, 4)) < ease).astype(float)
    p = np.array([component(values).first_p_value for values in runs])
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 10 <= (p < 0.05).sum() <= 52


def test_answers_without_any_spread_tell_nothing():
    same = np.repeat(np.arange(6.0)[:, None], 3, axis=1)
    found = component(same)
    assert found.first_p_value is found.others_p_value is None
