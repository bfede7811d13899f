"""Figures of small functions of the kernel, each by its formula, on both sides of its thresholds."""

from __future__ import annotations

import math
from math import nan

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from harness_noise import arena, compare_in_sequence, estimate, estimate_difference, factor_noise, plan
from harness_noise.analysis.mean import analyze_run
from harness_noise.analysis.ranges import difference_if_missing
from harness_noise.analysis.sample import as_scores, outer_note
from harness_noise.data.scores import Group, Run
from harness_noise.errors import InputError
from harness_noise.extra.arena.columns import shared_noise_p
from harness_noise.extra.arena.rank_sets import rank_sets
from harness_noise.extra.boundaries import exits_above, expected_fraction, mixture_boundaries, mixture_critical
from harness_noise.extra.boundaries import mixture_tuning as tuning
from harness_noise.extra.partial import Part, positions_look_random
from harness_noise.extra.references.estimating import same_run
from harness_noise.settings import Settings
from harness_noise.stats.contrast import design, question_stats
from harness_noise.stats.data_limit import chi_square
from harness_noise.stats.decision import adjusted, noise_codes, p_beyond, two_one_sided, two_sided
from harness_noise.stats.intervals import (
    MOST,
    SHARE,
    are_few,
    binomial_size,
    binomial_skewness,
    bonett_price,
    clopper_pearson,
    korn_graubard,
    rescaled,
    tail_shift,
    wilson,
)
from harness_noise.stats.moments import (
    intraclass_correlation,
    run_component,
    without_rounding,
)
from harness_noise.stats.resampling import Distribution, studentised


@pytest.mark.parametrize(
    ("skewness", "allowed", "expected"),
    [
        (0.2, 0.0, 0.0),  # a threshold is not above itself
        (0.21, 0.0, 0.21 * 1.5),
        (0.5, 0.2, 0.3 * 1.5),
        (-0.5, -0.2, -0.3 * 1.5),
        (0.5, -0.2, 0.5 * 1.5),  # what is allowed for on the other side counts for nothing
        (0.3, 0.25, 0.0),  # less than half the threshold is left
        (0.31, 0.2, 0.11 * 1.5),
    ],
)
def test_the_limit_on_the_side_of_the_tail_moves_by_halls_quantile(skewness, allowed, expected):
    assert tail_shift(skewness, allowed, 2.0) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0.5, 0.05, 1000, 200, 50), 100),  # p(1 − p)/se²
        ((0.5, 0.05, 80, 200, 50), 80),  # no more than there are answers
        ((1.0, 0.0, math.inf, 40, 0), 40),  # nothing is known of how failures go together
        ((0.95, math.sqrt(0.0475 / 100), 1000, 40, 5), 1 / 0.0175),  # half of the way from 1/40 to 1/100
        ((0.95, math.sqrt(0.0475 / 20), 1000, 40, 5), 20),  # fewer than clusters: as it is
        ((0.95, math.sqrt(0.0475 / 100), 1000, 4, 2), 1 / (0.5 * 0.01 + 0.5 * 0.25)),  # two of four clusters
    ],
)
def test_effective_answers_of_a_mean(arguments, expected):
    assert binomial_size(*arguments) == pytest.approx(expected, rel=1e-12)


def test_intervals_of_a_share():
    assert binomial_skewness(0.9, 100) == pytest.approx(-0.8 / 3)
    assert binomial_skewness(1.0, 100) == 0.0
    ours = korn_graubard(0.9, 50, 60, 12, 0.95)
    n = min(50 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 12)) ** 2, 60)
    assert (ours.low, ours.high) == pytest.approx(tuple(stats.beta.ppf([0.025, 0.975], [0.9 * n, 0.9 * n + 1], [
        n - 0.9 * n + 1, n - 0.9 * n])), rel=1e-9)  # fmt: skip
    capped, exact = korn_graubard(0.9, 1e6, 60, 12, 0.95), clopper_pearson(0.9, 60, 0.95)
    assert (capped.low, capped.high) == pytest.approx((exact.low, exact.high), rel=1e-12)
    assert wilson(0.0, 10, 2.0).low == 0.0
    assert wilson(1.0, 10, 2.0).high == 1.0
    assert (rescaled(wilson(0.5, 10, 2.0), (1.0, 5.0)).low - 1) / 4 == pytest.approx(wilson(0.5, 10, 2.0).low)


def test_differences_that_do_not_vary_on_a_wide_range():
    narrow = bonett_price(np.array([0.1]), np.array([0.0]), 20.0, 1.0, 0.95)
    wide = bonett_price(np.array([10.0]), np.array([0.0]), 20.0, 100.0, 0.95)
    p1, p2, z = (20 * 0.1 + 1) / 22, 1 / 22, stats.norm.ppf(0.975)
    half = z * math.sqrt((p1 + p2 - (p1 - p2) ** 2) / 22)
    assert (narrow.low[0], narrow.high[0]) == pytest.approx((p1 - p2 - half, p1 - p2 + half), rel=1e-12)
    assert (wide.low[0], wide.high[0]) == pytest.approx((100 * narrow.low[0], 100 * narrow.high[0]), rel=1e-12)


def test_p_values_read_off_an_interval():
    z, t = stats.norm.ppf(0.975), stats.t.ppf(0.975, 20)
    assert two_sided(0.3 - 0.1 * z, 0.3 + 0.1 * z, 0.95) == pytest.approx(2 * stats.norm.sf(3), rel=1e-12)
    assert p_beyond(0.02, 0.02 + 0.01 * t, 20, 0.95, 0.05) == pytest.approx(stats.t.cdf(-3, 20), rel=1e-12)
    assert p_beyond(0.02, 0.05, 20, 0.95, 0.05) == pytest.approx(0.025, rel=1e-12)
    assert p_beyond(0.05, 0.05, 20, 0.95, 0.05) == 0.5  # 0/0: neither side
    assert (two_one_sided(0.95), two_one_sided(0.4)) == (pytest.approx(0.9), 0.0)


def test_each_family_is_adjusted_by_itself():
    p, families = [0.01, 0.04, 0.03, math.nan, 0.02], ["a", "a", "b", "b", "b"]
    np.testing.assert_allclose(adjusted(p, "holm", families), [0.02, 0.04, 0.04, math.nan, 0.04])
    np.testing.assert_allclose(adjusted(p, "bh", families), [0.02, 0.04, 0.03, math.nan, 0.03])
    np.testing.assert_allclose(adjusted(p, "holm"), [0.04, 0.06, 0.06, math.nan, 0.06])
    np.testing.assert_allclose(adjusted(p, "none", families), p)


def test_codes_of_a_variance_on_both_sides_of_their_thresholds():
    assert noise_codes(9.99) == {"few_clusters"}
    assert noise_codes(10.0) == noise_codes(np.nan) == noise_codes(50.0, var_data=0.0) == set()
    assert noise_codes(50.0, zero=True, var_data=-1e-9) == {"zero_variance", "negative_data_variance"}
    for G in (20.0, 10_000.0):
        least = min(MOST, SHARE * G)
        assert are_few(np.array([least * 0.999, least, least * 1.001]), G).tolist() == [True, False, False]


def test_limits_of_a_variance():
    upper = 2.0 * 12 / stats.chi2.ppf(0.05, 12)
    assert chi_square(2.0, 12.0).upper() == pytest.approx(upper, rel=1e-10)
    assert chi_square(2.0, 12.0, 0.5).upper() == pytest.approx(upper - 0.5, rel=1e-10)
    assert chi_square(2.0, 12.0, 0.5).upper(0.2) == pytest.approx(2.0 * 12 / stats.chi2.ppf(0.2, 12) - 0.5, rel=1e-10)
    assert math.isnan(chi_square(2.0, 12.0, 9.0).upper())  # not above 0: null


def limit_by_hand(values, clusters, alpha):
    """The three limits from their definitions, cluster by cluster."""
    n, K = values.shape
    m, w = values.mean(axis=1), values.var(axis=1, ddof=1) / K
    e, codes = m - m.mean(), np.unique(clusters)
    sums = np.array([e[clusters == c].sum() for c in codes])
    sizes = np.array([(clusters == c).sum() for c in codes])
    G, V, W = len(codes), float((sums**2 / (1 - sizes / n)).sum()) / n**2, float(w.sum()) / n**2
    df = estimate(values, clusters.tolist()).df
    n_f = float((sums**2).sum() ** 2 / (sums**4).sum())
    df_k = min(df, 2 * n_f / (1 - n_f / G))
    first = V * df_k / stats.chi2.ppf(alpha, df_k) - W
    u = sums**2 / (1 - sizes / n) - np.array([w[clusters == c].sum() for c in codes])
    s, X = math.sqrt(G) * float(u.std(ddof=1)) / n**2, V - W
    second = X - s * stats.t.ppf(alpha * stats.t.cdf(X / s, df), df)
    z = np.random.default_rng(1).standard_normal((200_000, G))
    whole = (z @ sizes / n)[:, None]
    draws = (sizes**2 * (z - whole) ** 2 / (1 - sizes / n)).sum(axis=1) / float((sizes**2).sum())
    third = V / np.quantile(draws, alpha) - W if np.ptp(sizes) else -np.inf
    return first, second, third


@pytest.mark.parametrize("kind", ["few vary", "two answers", "giant cluster"])
def test_the_limit_of_the_data_noise_is_the_largest_of_three(kind):
    rng = np.random.default_rng(6)
    n, K = 60, 2 if kind == "two answers" else 4
    p = np.where(rng.random(n) < 0.9, 1.0, 0.5) if kind == "few vary" else np.full(n, 0.5)
    clusters = np.minimum(np.arange(n) // 2, 12) if kind == "giant cluster" else np.arange(n)
    values = (rng.random((n, K)) < p[:, None]).astype(float)
    each = limit_by_hand(values, clusters, 0.05)
    assert int(np.argmax(each)) == {"few vary": 0, "two answers": 1, "giant cluster": 2}[kind]
    row = estimate(values, clusters.tolist())
    assert row.se_data_upper**2 == pytest.approx(max(each), rel=0.02 if kind == "giant cluster" else 1e-9)
    assured = plan(runs=row, effect=0.1, assurance=0.8).omega2_upper
    assert assured == pytest.approx(n * max(limit_by_hand(values, clusters, 0.2)), rel=0.02)


@pytest.mark.parametrize("scale", [1e-90, 1e69])
def test_the_limit_of_the_data_noise_is_on_the_scale_of_the_scores(scale):
    scores = np.random.default_rng(0).random((12, 3))
    clusters = np.repeat(np.arange(4), [1, 2, 4, 5])
    plain = estimate(scores, clusters=clusters).se_data_upper
    assert estimate(scale * scores, clusters=clusters).se_data_upper == pytest.approx(scale * plain, rel=1e-12)


def test_a_plan_reads_the_limit_of_both_sides_of_an_unpaired_difference():
    rng = np.random.default_rng(3)
    a, b = ((rng.random((40, 3)) < rng.beta(1, 1, 40)[:, None]).astype(float) for _ in "ab")
    row, sides = estimate_difference(a, b, unpaired=True), [estimate(x) for x in (a, b)]
    X = sum(x.var_data for x in sides)
    up = X + math.sqrt(sum((x.se_data_upper**2 - x.var_data) ** 2 for x in sides))
    assert row.se_data_upper**2 == pytest.approx(up)


def test_rounding_is_taken_out_of_a_difference_of_variances():
    assert without_rounding(1.0, 1.0 - 1e-13) == 0.0
    assert without_rounding(1.0, 1.2) == pytest.approx(-0.2)
    assert without_rounding(1.0, 1.0 - 1e-11) == pytest.approx(1e-11, rel=1e-4)


def test_intraclass_correlation_is_that_of_the_table():
    d = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert intraclass_correlation(d, design(6, [0, 0, 1, 1, 2, 2])) == pytest.approx((8 - 0.5) / (8 + 0.5))
    # one way with sizes 3, 2, 1: n0 = (6 − 14/6)/2
    groups, n0 = [d[:3], d[3:5], d[5:]], (6 - 14 / 6) / 2
    between = sum(len(x) * (x.mean() - 3.5) ** 2 for x in groups) / 2
    within = sum(((x - x.mean()) ** 2).sum() for x in groups) / 3
    found = intraclass_correlation(d, design(6, [0, 0, 0, 1, 1, 2]))
    assert found == pytest.approx((between - within) / (between + (n0 - 1) * within))
    assert intraclass_correlation(d, design(6)) is None
    assert intraclass_correlation(np.ones(6), design(6, [0, 0, 1, 1, 2, 2])) is None
    constant = np.full(20, 0.0005)  # the mean of which differs by rounding: it was an ICC of 1
    assert intraclass_correlation(constant, design(20, [i % 4 for i in range(20)])) is None


@pytest.mark.parametrize("test", ["t", "sign", "permutation", "wild"])
def test_the_same_answers_in_another_order_are_no_difference(test):
    """Of numbers of a million the means differ by rounding, which was a difference of 2e-12 ± 2e-12 with p = 0.26."""
    a = np.random.default_rng(0).integers(1, 9, (40, 3)) * 1e5 / 3 + 0.1
    row = estimate_difference(a, a[:, [2, 0, 1]], test=test)
    assert not np.array_equal(a.sum(axis=1), a[:, [2, 0, 1]].sum(axis=1))
    assert (row.diff, row.se, row.p_value, row.wins_a, row.verdict) == (0, 0, 1, row.wins_b, "not separable")
    assert {"identical_scores", "zero_variance"} <= set(row.diagnostics)


def test_differences_that_cancel_in_each_cluster_have_a_mean_of_0():
    """Rounding decided who was ahead, and so who may be the best: p 1 of one model and 0.5 of the other."""
    a, b = ([[1, nan, nan], [0, nan, nan], [0, nan, nan]], [[1, 1, 0], [0, 0, 0], [0, 1, 0]])
    assert np.mean([1 - 2 / 3, 0, -1 / 3]) != 0
    row = estimate_difference(a, b, [1, 0, 1])
    assert (row.diff, row.se, row.p_value) == (0, 0, 1)
    names = ["question", "cluster", "model", "repeat", "score"]
    rows = [(q, "101"[q], m, k, x) for m, side in (("a", a), ("b", b)) for q in range(3) for k, x in enumerate(side[q])]
    models = arena(pd.DataFrame(rows, columns=names)).models
    assert [model.p_best for model in models] == [1, 1]


def test_a_confidence_sequence_spends_what_is_left_at_the_end():
    early = mixture_boundaries((0.25, 0.5), 0.05, 0.5)
    assert early == pytest.approx([float(mixture_critical(t, 0.05, tuning(0.05, 0.5))) for t in (0.25, 0.5)])
    whole = mixture_boundaries((0.25, 0.5, 1.0), 0.05, 0.5)
    assert whole[:2] == pytest.approx(early)
    assert 2 * exits_above((0.25, 0.5, 1.0), whole).sum() == pytest.approx(0.05, rel=1e-6)


def test_the_information_that_is_expected():
    stop = 2 * special.ndtr(-2.5)
    assert expected_fraction((0.5, 1.0), (2.5, 1.99), 0.0) == pytest.approx(0.5 * stop + 1.0 * (1 - stop), rel=1e-9)


@pytest.mark.parametrize(("m", "random"), [(4, True), (5, False)])
def test_places_in_a_row_are_random_as_long_as_they_may_be(m, random):
    """47 of the 230,300 parts of 4 in 50 lie in a row (2e-4), and 46 of the 2,118,760 of 5 (2e-5)."""
    zeros = np.zeros(50, dtype=np.intp)
    assert positions_look_random(Part(20 + np.arange(m), np.arange(50), zeros)) is random
    scattered = np.array([1, 12, 23, 34, 45])[:m]
    assert positions_look_random(Part(scattered, np.arange(50), zeros)) is True


def test_where_every_resample_is_on_one_side_p_is_of_the_share_that_one_more_would_be():
    found = Distribution(0.5, np.linspace(0.1, 1.0, 99), 0.0)
    assert found.p_value(0.0, "percentile") == pytest.approx(2 / 100, rel=1e-12)


@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 2, 1)])
def test_scores_that_are_no_table_of_questions_and_repeats_are_refused(shape):
    with pytest.raises(InputError, match=r"\(n, K\) array with K ≥ 1"):
        question_stats(np.zeros(shape))


def test_a_run_is_the_same_by_its_file_and_model():
    run = Run("m", "r", "test", path="a.csv")
    assert same_run(run, Run("m", "another name", "test", path="a.csv"))
    assert not same_run(run, Run("n", "r", "test", path="a.csv"))
    assert not same_run(run, Run("m", "r", "test", path="b.csv"))
    assert not same_run(Run("m", "r", "test"), Run("m", "r", "test"))  # arrays have no file


def test_the_note_on_outer_fields_is_of_rows_with_its_code():
    part = as_scores(np.resize([0.0, 1.0], 6), list("aabbcc"), outer={"book": {"a": "x", "b": "x", "c": "y"}})
    assert outer_note(part, ["few_clusters"]) == []
    (note,) = outer_note(part, ["inner_clusters"])
    assert (note.code, note.task) == ("inner_clusters", part.task)
    assert "use `cluster='book'`" in note.as_text()


def test_what_missing_answers_could_change_is_not_asked_where_none_is_missing():
    whole, part = as_scores(np.array([1.0, 0.0, 1.0])), as_scores(np.array([1.0, np.nan, 1.0]), bounds=(0.0, 1.0))
    assert difference_if_missing([whole], [whole], None, (0.0, 1.0)) is None
    assert difference_if_missing([part], [part], None, None) is None


def test_a_task_that_a_pair_lacks_has_no_part_in_the_f_test():
    values, tasks = np.random.default_rng(3).random((30, 3)), np.repeat([0, 1], 15)
    shown = np.array([tasks < 2, tasks == 0])
    whole, part = shared_noise_p(values, design(30, strata=tasks), shown)
    alone = [
        run_component(x, np.full(len(x), 1 / len(x)), t).p_value
        for x, t in ((values, tasks), (values[:15], tasks[:15]))
    ]
    assert (whole, part) == pytest.approx(alone)


def test_ranks_are_told_by_the_second_largest_of_20_draws():
    """Of 19 signs and the identity the statistic is the largest, which at 95% is above what one in 20 may reach."""
    sums = np.stack([np.ones(12), np.zeros(12)], axis=1)
    assert rank_sets(sums, 0.95, np.random.default_rng(0), draws=19).low.tolist() == [1, 2]
    assert rank_sets(sums, 0.96, np.random.default_rng(0), draws=19).low.tolist() == [1, 1]


def test_one_cluster_has_no_studentised_resamples():
    d, tasks = np.arange(8.0), np.repeat([0, 1], 4)
    for plan_ in (design(8, [0] * 8), design(8, [0, 1, 2, 3] + [4] * 4, strata=tasks)):
        assert studentised(d, plan_, 100, np.random.default_rng(0)) is None


def test_constant_scores_have_components_of_0_and_no_gains():
    rows = factor_noise(np.ones(36), [i % 6 for i in range(36)], {"seed": [i // 6 for i in range(36)]}).factors
    assert [(row.var, row.share, row.gain) for row in rows] == [(0, None, None)] * 3


def test_the_plan_shows_one_answer_beside_more():
    table = plan(effect=0.1, omega2=0.1, sigma2=0.1, repeats=3, k_max=5).table
    assert sorted({row.repeats for row in table}) == [1, 2, 3, 4, 5]


def test_p_of_looks_that_end_undecided_is_read_off_the_last_boundary():
    """At the first look no level shows anything here, which says nothing of the last one: p was not 1."""
    rng = np.random.default_rng(1)
    p = rng.random(60)
    a, b = ((rng.random(60) < p).astype(float) for _ in range(2))
    row = compare_in_sequence(a, b, looks=5, seed=1)
    assert (row.decision, row.look) == ("cannot be decided", 4)
    assert row.p_value == pytest.approx(0.60157, abs=1e-4)


def test_questions_with_one_answer_are_held_against_others_of_their_task():
    """In one task nearly all have two answers, in the other, which is harder, one: the answers do not say that."""
    i = np.arange(20)
    easy, hard = (
        np.stack([x, np.where(twice, x[::-1], nan)], axis=1)
        for x, twice in (((i % 4 > 0) * 1.0, i > 1), ((i % 4 == 0) * 1.0, i > 17))
    )
    parts = [as_scores(values, task=task) for values, task in ((easy, "easy"), (hard, "hard"))]
    group = Group("both", "score", "none", ("easy", "hard"), "size")
    rows = analyze_run(Run("m", "r", "array", scores=tuple(parts), groups=(group,)), Settings()).estimates
    assert not any("single_repeats_differ" in row.diagnostics for row in rows)


def test_of_models_with_equal_means_rounding_does_not_choose_the_best():
    wins = np.random.default_rng(3).random((20, 2)) < 0.5
    sides = {
        "b": np.where(wins[:, 0], 0.3, 0),
        "a": np.where(wins[:, 0], 0.1 + 0.2, 0),
        "c": np.where(wins[:, 1], 0.3, 0),
    }
    frame = pd.DataFrame(
        [(m, q, x) for m, side in sides.items() for q, x in enumerate(side)], columns=["model", "question", "score"]
    )
    found = arena(frame, needed=True)
    b, a, c = (model.mean for model in found.models)
    assert a > b > c
    assert {row.best for row in found.budget} == {"b"}
