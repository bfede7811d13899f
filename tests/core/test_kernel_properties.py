"""What must hold for any scores: hypothesis looks for the table that breaks it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness_noise import estimate, estimate_difference
from harness_noise.results.diagnostics import DIAGNOSTICS

GRADES = st.sampled_from([0.0, 1.0, 0.5, 0.25, 1 / 3, 2.5, -1.0, math.nan])
ESTIMATORS = st.sampled_from(["cr0", "cr1", "cr2", "cr3"])


@st.composite
def scored(draw, min_n=0, max_n=14, elements=GRADES, whole=False):
    """(n, K) scores with holes, and clusters or None."""
    n, K = draw(st.integers(min_n, max_n)), draw(st.integers(1, 4))
    values = draw(hnp.arrays(float, (n, K), elements=elements))
    if whole:
        values[np.isnan(values).all(axis=1), 0] = 0.5
    clusters = draw(st.none() | st.lists(st.sampled_from("abcd"), min_size=n, max_size=n))
    return values, clusters


@st.composite
def two_scored(draw):
    values, clusters = draw(scored(whole=True, min_n=1))
    other = draw(hnp.arrays(float, (len(values), draw(st.integers(1, 4))), elements=GRADES))
    other[np.isnan(other).all(axis=1), 0] = 1.0
    return values, other, clusters


def numbers(result):
    return {key: value for key, value in asdict(result).items() if isinstance(value, float)}


def same(one, other, leave_out=()):
    one, other = ({k: v for k, v in asdict(x).items() if not k.startswith("_")} for x in (one, other))
    for key, value in one.items():
        if key in leave_out:
            continue
        if isinstance(value, float) and isinstance(other[key], float):
            assert value == pytest.approx(other[key], rel=1e-9, abs=1e-12), key
        else:
            assert value == other[key], key


@given(scored(), ESTIMATORS)
def test_always_strict_json_and_known_codes(data, se):
    result = estimate(*data, se=se)
    json.dumps(result.to_dict(), allow_nan=False)
    assert set(result.diagnostics) <= set(DIAGNOSTICS)
    if result.ci_low is not None:
        assert result.ci_low <= result.mean + 1e-12
        assert result.mean - 1e-12 <= result.ci_high
        if result.interval == "wilson":
            assert 0 <= result.ci_low <= result.ci_high <= 1


@given(two_scored(), ESTIMATORS)
def test_law_of_total_variance(data, se):
    """total² = data (raw) + prediction, exactly, wherever the split is identified."""
    a, b, clusters = data
    for result in (estimate(a, clusters, se=se), estimate_difference(a, b, clusters, se=se)):
        if result.var_prediction is None:
            assert result.var_data is None
            assert result.se_data is None
            continue
        # the one clipping: a raw sum below 0 has no root
        total = max(0.0, result.var_data + result.var_prediction)
        assert result.se_total**2 == pytest.approx(total, rel=1e-10, abs=1e-15)
        assert result.se_prediction**2 == pytest.approx(result.var_prediction, rel=1e-10, abs=1e-15)
        assert result.se_data**2 == pytest.approx(max(0.0, result.var_data), rel=1e-10, abs=1e-15)
        assert ("negative_data_variance" in result.diagnostics) == (result.var_data < 0)


@given(hnp.arrays(float, st.tuples(st.integers(2, 9), st.integers(2, 4)), elements=st.floats(0, 1)))
def test_se_with_equal_repeats(values):
    """se² = var_data + var_prediction / K."""
    result = estimate(values)
    assume(result.var_prediction is not None)
    expected = result.var_data + result.var_prediction / values.shape[1]
    assert result.se**2 == pytest.approx(expected, rel=1e-9, abs=1e-15)


@given(two_scored(), ESTIMATORS)
def test_label_swap(data, se):
    a, b, clusters = data
    one, other = estimate_difference(a, b, clusters, se=se), estimate_difference(b, a, clusters, se=se)
    swap = {"A better": "B better", "B better": "A better"}
    assert one.verdict == swap.get(other.verdict, other.verdict)
    assert one.diff == pytest.approx(-other.diff, abs=1e-12)
    if one.ci_low is not None:
        assert (one.ci_low, one.ci_high) == pytest.approx((-other.ci_high, -other.ci_low), abs=1e-12)
    for key in ("se", "se_total", "var_data", "var_prediction", "p_value", "p_sign", "df", "mde", "correlation"):
        x, y = getattr(one, key), getattr(other, key)
        assert x == y if x is None or y is None else x == pytest.approx(y, rel=1e-9, abs=1e-12)
    assert (one.wins_a, one.wins_b) == pytest.approx((other.wins_b, other.wins_a))
    assert one.wins_a + one.wins_b + one.ties == pytest.approx(one.n_questions)


@given(two_scored(), st.randoms(use_true_random=False))
def test_order_of_questions_does_not_matter(data, random):
    a, b, clusters = data
    order = list(range(len(a)))
    random.shuffle(order)
    moved = None if clusters is None else [clusters[i] for i in order]
    same(estimate(a, clusters), estimate(a[order], moved))
    same(estimate_difference(a, b, clusters), estimate_difference(a[order], b[order], moved))


@given(scored(min_n=1), st.permutations("abcd"))
def test_names_of_clusters_do_not_matter(data, names):
    values, clusters = data
    assume(clusters is not None)
    new = [dict(zip("abcd", names, strict=True))[cluster] for cluster in clusters]
    same(estimate(values, clusters), estimate(values, new))


@given(scored(min_n=1, whole=True), st.integers(0, 3))
def test_order_of_repeats_does_not_matter(data, shift):
    values, clusters = data
    same(estimate(values, clusters), estimate(np.roll(values, shift, axis=1), clusters))


@given(scored(min_n=2, elements=st.floats(0, 1), whole=True))
def test_duplicated_repeats_are_no_news(data):
    """A repeat counted twice leaves the mean and its SE as they were: answers are never pooled."""
    values, clusters = data
    one, twice = estimate(values, clusters), estimate(np.repeat(values, 2, axis=1), clusters)
    for key in ("mean", "se", "df", "se_naive"):
        x, y = getattr(one, key), getattr(twice, key)
        assert x == y if x is None or y is None else x == pytest.approx(y, rel=1e-6, abs=1e-9)
    if values.shape[1] == 1:
        assert "single_repeat" in one.diagnostics
        assert "identical_repeats" in twice.diagnostics
        assert twice.se_prediction is None


@given(scored(min_n=2, whole=True), ESTIMATORS)
def test_singletons_are_no_clusters(data, se):
    values, _ = data
    plain, single = estimate(values, se=se), estimate(values, range(len(values)), se=se)
    if se == "cr1":  # G/(G−1) is what turns cr0 into ddof = 1
        same(single, estimate(values, range(len(values)), se="cr2"), ("estimator",))
    same(plain, single, ("diagnostics", "cluster", "icc", "design_effect", "n_effective"))
    assert set(single.diagnostics) - set(plain.diagnostics) <= {"singleton_clusters"}


@given(scored(min_n=2, whole=True), ESTIMATORS)
def test_one_cluster_has_no_standard_error(data, se):
    values, _ = data
    result = estimate(values, ["only"] * len(values), se=se)
    assert result.mean is not None
    fields = ("se", "ci_low", "ci_high", "df", "se_total", "se_data", "se_prediction", "se_naive", "var_data",
              "var_prediction", "design_effect", "n_effective", "icc")  # fmt: skip
    assert all(getattr(result, key) is None for key in fields)
    assert "too_few_clusters" in result.diagnostics


@given(scored(min_n=2, elements=st.floats(-5, 5), whole=True), st.floats(-3, 3), st.floats(0.1, 10))
def test_shift_and_scale(data, shift, scale):
    values, clusters = data
    one = estimate(values, clusters, interval="t")
    other = estimate(shift + scale * values, clusters, interval="t")
    assert other.mean == pytest.approx(shift + scale * one.mean, abs=1e-9)
    for key in ("se", "se_data", "se_prediction"):
        x, y = getattr(one, key), getattr(other, key)
        # tiny variances may cross the threshold of zero variance, or vanish into the shift's rounding
        if x is not None and y is not None and (x == 0 or x > 1e-6):
            assert y == pytest.approx(scale * x, rel=1e-4, abs=1e-7), key


@given(scored(min_n=3, whole=True))
def test_cr2_never_below_cr0(data):
    values, clusters = data
    small, large = estimate(values, clusters, se="cr0"), estimate(values, clusters)
    assume(small.se is not None)
    assert large.se >= small.se - 1e-12
    assert large.df == pytest.approx(small.df)
    assert 1 - 1e-9 <= large.df <= len(values) - 1 + 1e-9
