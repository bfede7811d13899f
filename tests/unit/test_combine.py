"""Across tasks or models, tests on counts, and next-token probabilities."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.proportion import proportions_ztest

from harness_noise.analysis.combine import other_methods
from harness_noise.extra.numbers.counts import compare_counts, fisher_exact
from harness_noise.settings import Settings
from harness_noise.stats.combine import (
    equal_weights,
    inverse_variance,
    stouffer,
    wilcoxon,
)
from harness_noise.stats.decision import skew_of, skewed_alike
from harness_noise.stats.passk import acc_probs
from support.simulations import simulation

D, SE = [0.03, -0.01, 0.05, 0.02], [0.01, 0.02, 0.03, 0.015]
DF, KNOWN = [40.0, 25.0, 60.0, 21.0], [math.inf] * 4


def test_inverse_variance_is_fixed_effect_meta_analysis():
    ours, theirs = inverse_variance(D, SE, DF), combine_effects(np.array(D), np.array(SE) ** 2)
    assert (ours.diff, ours.se) == pytest.approx((theirs.mean_effect_fe, theirs.sd_eff_w_fe), rel=1e-10)
    assert ours.heterogeneity_p == pytest.approx(stats.chi2.sf(theirs.q, 3), rel=1e-10)
    assert inverse_variance([0.1], [0.05], [30]).heterogeneity_p is None


def test_equal_weights_are_a_t_test_with_welchs_df():
    """For two tasks the sum of means is Welch's unpaired test with one sign turned."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, 9), rng.normal(0.1, 2, 14)
    theirs = stats.ttest_ind(a, -b, equal_var=False)
    ses = [float(x.std(ddof=1) / len(x) ** 0.5) for x in (a, b)]
    ours = equal_weights([float(a.mean()), float(b.mean())], ses, [8, 13])
    assert (ours.statistic, ours.p_value, ours.df) == pytest.approx((theirs.statistic, theirs.pvalue, theirs.df))
    known = equal_weights(D, SE, KNOWN)
    assert (known.diff, known.se) == pytest.approx((0.0225, math.sqrt(sum(s * s for s in SE)) / 4))
    assert known.p_value == pytest.approx(2 * stats.norm.sf(known.diff / known.se))
    assert known.df is None


@pytest.mark.parametrize("dfs", [KNOWN, DF, [4, 4, 9, 1.5]])
def test_stouffer_is_scipy_on_p_values_of_t(dfs):
    """scipy combines one-sided p-values; ours combines z and is two-sided."""
    one_sided = stats.t.sf(np.array(D) / SE, dfs)
    theirs = stats.combine_pvalues(one_sided, method="stouffer")
    ours = stouffer(D, SE, dfs)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    assert ours.p_value == pytest.approx(2 * min(theirs.pvalue, 1 - theirs.pvalue), rel=1e-8)
    assert ours.diff is None


def test_stouffer_of_what_no_p_value_can_hold():
    assert math.isfinite(stouffer([1.0, 1.0], [1e-6, 1e-6], [500, math.inf]).statistic)


def test_wilcoxon_ties_and_zeros_are_those_of_the_numbers_and_not_of_their_rounding():
    whole = wilcoxon([3, -3, 1, 0, 2])
    found = wilcoxon([0.1 + 0.2, -0.3, 0.1, 1e-17, 0.2])
    assert 0.1 + 0.2 != 0.3
    assert (found.n, found.statistic, found.p_value) == (whole.n, whole.statistic, whole.p_value) == (4, 6.5, 0.75)


def test_inverse_variance_is_refused_where_tasks_differ():
    found = inverse_variance([0.1, -0.1], [0.01, 0.01], [40.0, 40.0])
    assert (found.diff, found.p_value, found.diagnostics) == (None, None, ("tasks_differ",))
    assert found.heterogeneity_p < 1e-10
    assert inverse_variance([0.1, 0.11], [0.01, 0.01], [40.0, 40.0]).diff == pytest.approx(0.105)


def test_inverse_variance_and_q_are_refused_for_small_rows():
    found = inverse_variance(D, SE, [40.0, 19.9, 4.0, 60.0])
    assert (found.diff, found.se, found.statistic, found.p_value, found.heterogeneity_p) == (None,) * 5
    assert "refused: 2 of 4 rows have fewer than 20 degrees of freedom" in found.note
    assert inverse_variance(D, SE, [20.0] * 4).note is None


@pytest.mark.slow
def test_type_one_error_over_many_small_tasks():
    """57 tasks of 5 questions without a difference: what stays near 5%, and what the refused ones did."""
    rng = np.random.default_rng(0)
    reps, tasks, n = 2000, 57, 5
    scale = rng.uniform(0.1, 0.5, tasks)
    d = rng.normal(0, 1, (reps, tasks, n)) * scale[:, None]
    diffs, ses = d.mean(axis=2), d.std(axis=2, ddof=1) / n**0.5
    dfs = [n - 1.0] * tasks
    rejected = {
        method.__name__: np.mean([method(*row, dfs).p_value < 0.05 for row in zip(diffs, ses, strict=True)])
        for method in (equal_weights, stouffer)
    }
    assert 0.040 < rejected["equal_weights"] < 0.062
    assert 0.033 < rejected["stouffer"] < 0.060
    infinite = [math.inf] * tasks
    naive = [[m(*row, infinite) for m in (stouffer, inverse_variance)] for row in zip(diffs, ses, strict=True)]
    assert np.mean([one.p_value < 0.05 for one, _ in naive]) > 0.12
    assert np.mean([two.heterogeneity_p < 0.05 for _, two in naive]) > 0.75


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("normal", 0), ("0/1, 10% gained, 10% lost", 0), ("0/1, 15% gained, 10% lost", 0),
        ("exponential", 1), ("10% exponential, the others 0", 1),
    ],
)  # fmt: skip
def test_rows_that_are_skewed_alike_are_not_summed(name, refused):
    """20 tasks of 100 questions; a difference of 0/1 scores is no ground to refuse."""
    found = simulation("coverage_weak").Summed(name, 20, 100)
    rejected, _, alike, _ = found.shares(np.random.default_rng(1), 200)
    assert alike == pytest.approx(refused, abs=0.02)
    if refused:  # what is refused would have rejected
        assert rejected > 0.06
    elif "15%" not in name:
        assert rejected < 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5


def test_pooled_skewness():
    e = np.random.default_rng(0).exponential(size=400)
    one = skew_of(e - e.mean())
    assert one.shift == pytest.approx(-stats.skew(e) / (2 * 20))
    assert skew_of(1000 * (e - e.mean())).third == pytest.approx(one.third)
    assert skew_of(e.mean() - e).third == pytest.approx(one.turned().third)
    assert skewed_alike([one] * 16)
    assert not skewed_alike([one, one.turned()] * 8)
    assert skew_of(np.zeros(5)) is None
    assert not skewed_alike([])


class TestWilcoxon:
    def test_seven_pairs_of_seed_003(self):
        """Its two sets of seven models: the one exception has rank 2, then rank 3."""
        one = [1.0, -2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
        assert wilcoxon(one).p_value == pytest.approx(0.046875)
        two = [1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 7.0]
        assert wilcoxon(two).p_value == pytest.approx(0.078125)

    @pytest.mark.parametrize("n", [5, 12, 40])
    def test_exact_is_scipy(self, n):
        d = np.random.default_rng(n).normal(0.2, 1, n)
        theirs = stats.wilcoxon(d, method="exact")
        assert wilcoxon(d).p_value == pytest.approx(theirs.pvalue, rel=1e-10)

    def test_ties_by_all_sign_patterns(self):
        d = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0, 0.0])
        ours = wilcoxon(d)
        assert ours.n == 6
        ranks = stats.rankdata(np.abs(d[:-1]))
        plus = [sum(r for r, s in zip(ranks, f"{i:06b}", strict=True) if s == "1") for i in range(64)]
        observed = ranks[d[:-1] > 0].sum()
        assert ours.p_value == pytest.approx(2 * np.mean(np.array(plus) >= observed - 1e-9))

    def test_nothing_differs(self):
        assert wilcoxon([0.0, 0.0]).p_value == 1.0

    def test_large_and_tied(self):
        d = np.round(np.random.default_rng(0).normal(0.3, 1, 80), 1)
        assert wilcoxon(d).p_value == pytest.approx(stats.wilcoxon(d[d != 0], method="approx").pvalue)


class TestCounts:
    def test_are_scipy_and_statsmodels(self):
        row = compare_counts((74, 100), (60, 100), ("A", "B"), Settings())
        assert row.p_value == fisher_exact(74, 100, 60, 100) == stats.fisher_exact([[74, 26], [60, 40]]).pvalue
        assert row.statistic == pytest.approx(proportions_ztest([74, 60], [100, 100])[0], rel=1e-10)
        assert row.diff == pytest.approx(0.14)

    def test_all_right(self):
        row = compare_counts((5, 5), (7, 7), ("A", "B"), Settings())
        assert (row.p_value, row.statistic, row.diff) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inverse_variance([0.1], [0.1, 0.2], [30]), "one of each"),
        (lambda: equal_weights([], [], []), "one of each"),
        (lambda: stouffer([0.1, 0.2], [0.1, 0.0], [9, 9]), "above 0"),
        (lambda: inverse_variance([math.nan], [0.1], [30]), "finite"),
        (lambda: equal_weights([0.1], [0.1], [0.0]), "above 0"),
        (lambda: equal_weights([0.1, 0.2], [0.1, 0.2], [9]), "one of each"),
        (lambda: wilcoxon([math.inf]), "finite"),
        (lambda: fisher_exact(5, 4, 1, 2), "between 0 and the number"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_acc_prob():
    loglikelihoods = np.log([[0.2, 0.5, 0.3], [0.02, 0.05, 0.03], [0.2, 0.5, 0.3], [1, 1, 1]])
    gold = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 0, 1]], dtype=bool)
    assert acc_probs(loglikelihoods, gold) == pytest.approx([0.5, 0.3, 0.5, 1 / 3])
    extreme = np.array([[-2000.0, -2000.0], [0.0, -math.inf], [-math.inf, -math.inf], [math.nan, 0.0], [math.inf, 0.0]])
    first = np.array([[True, False]] * 5)
    np.testing.assert_allclose(acc_probs(extreme, first), [0.5, 1.0, math.nan, math.nan, math.nan])
    assert math.isnan(acc_probs(np.zeros((1, 2)), np.zeros((1, 2), dtype=bool))[0])


class TestRows:
    def rows(self, directions=(True, True, True)):
        from harness_noise import estimate_difference

        rng = np.random.default_rng(0)
        out = []
        for higher in directions:
            a, b = rng.random(30), rng.random(30) - 0.1
            row = estimate_difference(a, b) if higher else estimate_difference(b, a)
            out.append(replace(row, higher_is_better=higher))
        return out

    def combined(self, rows, skews=None):
        """The other methods beside an overall row of tasks that share nothing."""
        whole = replace(rows[0], n_clusters=sum(row.n_clusters for row in rows))
        return other_methods(whole, list(zip(rows, skews or [None] * len(rows), strict=True)))

    def test_beside_an_overall_row(self):
        found = self.combined(self.rows())
        assert [item.method for item in found] == ["Stouffer", "inverse variance", "Wilcoxon signed-rank"]
        assert {item.model_a for item in found} == {"A"}

    def test_tasks_that_share_clusters_are_not_independent(self):
        rows = self.rows()
        found = other_methods(rows[0], [(row, None) for row in rows])
        assert [(item.p_value, item.diagnostics) for item in found] == [(None, ("tasks_share_questions",))] * 3

    def test_lower_is_better_is_turned(self):
        one, other = self.combined(self.rows()), self.combined(self.rows((False, False, False)))
        assert [item.p_value for item in one] == pytest.approx([item.p_value for item in other])
        assert [item.statistic for item in one] == pytest.approx([item.statistic for item in other])

    def test_skewed_rows_are_refused_by_name(self):
        from harness_noise import as_scores
        from harness_noise.analysis.comparison import compare_runs
        from harness_noise.data.scores import Run
        from harness_noise.settings import Settings

        rng = np.random.default_rng(4)

        def result(draw):
            runs = []
            for name in "ab":
                parts = [replace(as_scores(draw(name, t)), task=f"t{t}", higher_is_better=True) for t in range(12)]
                runs.append(Run(model=name, name=name, harness="array", scores=tuple(parts)))
            return compare_runs([tuple(runs)], Settings())

        def rare(name, t):
            return np.where((name == "a") & (rng.random(40) < 0.15), rng.exponential(size=40), 0.0) + rng.normal(
                0, 0.01, 40
            )

        skewed = result(rare)
        found = self.combined(skewed.comparisons, skewed.skews)
        assert [item.p_value is None for item in found] == [True, True, False]
        assert found[0].diagnostics == found[1].diagnostics == ("skewed_rows",)
        assert "skewed in the same direction" in found[0].note
        plain = result(lambda name, t: rng.random(40))
        assert self.combined(plain.comparisons, plain.skews)[0].p_value is not None
