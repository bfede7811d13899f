"""Metrics that are not means: against a mean in disguise, against brute force, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import estimate, estimate_difference
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.settings import Settings
from harness_noise.stats.passk import pass_at_k


def keys(n):
    return Questions(tuple(str(i) for i in range(n)))


def run(item, model="m"):
    return Run(model=model, name=model, harness="test", corpus=(item,))


def mean_by_call(values, clusters=None, **fields):
    records = tuple(tuple(None if math.isnan(x) else x for x in row) for row in values)
    return CorpusScores(
        "t", "m", "none", keys(len(values)), records, lambda xs: float(np.mean(xs)), clusters=clusters, **fields
    )  # fmt: skip


def mean_by_sums(values, clusters=None, **fields):
    stats = np.stack([values, np.where(np.isnan(values), np.nan, 1.0)], axis=2)
    return CorpusScores(
        "t", "m", "none", keys(len(values)), stats=stats, value=lambda s: s[..., 0] / s[..., 1], clusters=clusters,
        **fields,
    )  # fmt: skip


def f1_by_sums(right, predicted, true):
    """F1 from summed counts, (n, K) each."""
    stats = np.stack([right, predicted, true], axis=2).astype(float)
    return CorpusScores(
        "t", "f1", "none", keys(len(right)), stats=stats, value=lambda s: 2 * s[..., 0] / (s[..., 1] + s[..., 2])
    )  # fmt: skip


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    return (rng.random((120, 4)) < rng.random((120, 1))).astype(float)


def test_a_difference_of_two_declared_ranges_is_not_cut_to_the_first(values):
    """One run of a metric in [0, 1] and one in per cent: their difference is what it is, however odd."""
    pair = run(mean_by_sums(values, bounds=(0.0, 1.0))), run(mean_by_sums(100 * values, bounds=(0.0, 100.0)), "n")
    (row,) = compare_runs([pair], Settings()).comparisons
    assert row.diff < -20
    assert row.ci_low < row.diff < row.ci_high


@pytest.mark.parametrize("kind", [mean_by_call, mean_by_sums])
@pytest.mark.parametrize("clusters", [None, tuple(str(i % 30) for i in range(120))])
def test_a_mean_in_disguise(values, kind, clusters):
    """As a corpus metric a mean has the closed form's noise: resampled to Monte Carlo error, called exactly."""
    (e,) = analyze_run(run(kind(values, clusters)), Settings()).estimates
    known = estimate(values, clusters, se="cr0", interval="t")
    assert e.mean == pytest.approx(known.mean, rel=1e-12)
    assert e.se == pytest.approx(known.se, rel=0.08)
    assert (e.ci_low, e.ci_high) == pytest.approx((known.ci_low, known.ci_high), abs=0.2 * known.se)
    assert e.var_prediction == pytest.approx(values.mean(axis=0).var(ddof=1), rel=1e-12)
    assert e.se_total**2 == pytest.approx(e.var_data + e.var_prediction, rel=1e-10)
    assert e.se**2 == pytest.approx(e.var_data + e.var_prediction / 4, rel=1e-10)
    how = ("t", "jackknife") if kind is mean_by_call else ("bootstrap", "bootstrap")
    assert (e.interval, e.estimator) == how
    assert e.df == known.df
    assert e.n_clusters == (120 if clusters is None else 30)


def test_both_forms_draw_the_same_resamples(values):
    """Of an order statistic, or of what is known to be one: other calls are not resampled."""
    parts = replace(mean_by_call(values), of_rows="order"), mean_by_sums(values)
    one, other = (analyze_run(run(part), Settings(resamples=500)).estimates[0] for part in parts)
    assert (one.se, one.ci_low, one.ci_high) == pytest.approx((other.se, other.ci_low, other.ci_high), rel=1e-10)


def test_paired_difference(values):
    rng = np.random.default_rng(1)
    other = (rng.random((120, 3)) < values.mean(axis=1, keepdims=True) * 0.8).astype(float)
    rows = compare_runs([(run(mean_by_sums(values)), run(mean_by_sums(other), "o"))], Settings()).comparisons
    known = estimate_difference(values, other, se="cr0")
    assert rows[0].diff == pytest.approx(known.diff, rel=1e-12)
    assert rows[0].se == pytest.approx(known.se, rel=0.05)
    assert rows[0].verdict == known.verdict == "A better"
    assert (rows[0].test, rows[0].wins_a, rows[0].df) == ("t", None, known.df)
    cr2 = estimate_difference(values, other)  # the jackknife of a mean of singletons is its variance
    assert (rows[0].ci_low, rows[0].ci_high) == pytest.approx((cr2.ci_low, cr2.ci_high), rel=1e-9)
    unpaired = compare_runs([(run(mean_by_sums(values)), run(mean_by_sums(other), "o"))], Settings(unpaired=True))
    assert unpaired.comparisons[0].se == pytest.approx(known.se_unpaired, rel=0.05)
    assert unpaired.comparisons[0].se > rows[0].se


def test_f1_against_brute_force():
    rng = np.random.default_rng(2)
    true = rng.random((80, 1)) < 0.4
    predicted = np.where(rng.random((80, 3)) < 0.8, true, ~true)
    item = f1_by_sums(predicted & true, predicted, np.broadcast_to(true, (80, 3)))
    (e,) = analyze_run(run(item), Settings(resamples=4000)).estimates

    def f1(rows):
        hit, said, there = (x[rows].sum(axis=0) for x in (predicted & true, predicted, np.broadcast_to(true, (80, 3))))
        return (2 * hit / (said + there)).mean()

    assert e.mean == pytest.approx(f1(np.arange(80)))
    brute = np.std([f1(rng.integers(0, 80, 80)) for _ in range(4000)], ddof=1)
    assert e.se == pytest.approx(brute, rel=0.06)


def test_one_repeat_and_identical_repeats(values):
    (e,) = analyze_run(run(mean_by_sums(values[:, :1])), Settings()).estimates
    assert (e.var_data, e.se_prediction) == (None, None)
    assert e.diagnostics == ("single_repeat",)
    assert e.se_total == e.se
    (e,) = analyze_run(run(mean_by_sums(np.repeat(values[:, :1], 3, axis=1))), Settings()).estimates
    assert (e.var_data, e.diagnostics) == (None, ("identical_repeats",))


def test_degenerate(values):
    (e,) = analyze_run(run(mean_by_sums(values[:1])), Settings()).estimates
    assert (e.se, e.ci_low, e.diagnostics) == (None, None, ("too_few_questions",))
    (e,) = analyze_run(run(mean_by_sums(values, ("a",) * 120)), Settings()).estimates
    assert (e.se, e.diagnostics) == (None, ("too_few_clusters",))
    (e,) = analyze_run(run(mean_by_sums(np.ones((20, 2)))), Settings()).estimates
    assert (e.mean, e.se, e.ci_low) == (1.0, 0.0, None)
    assert "zero_variance" in e.diagnostics
    (e,) = analyze_run(run(mean_by_call(np.full((5, 2), np.nan))), Settings()).estimates
    assert (e.mean, e.n_questions) == (None, 0)
    (row,) = compare_runs([(run(mean_by_sums(values)), run(mean_by_sums(values), "o"))], Settings()).comparisons
    assert (row.diff, row.p_value, row.ci_low, row.verdict) == (0.0, 1.0, None, "not separable")
    assert {"zero_variance", "identical_scores"} <= set(row.diagnostics)


def test_a_value_that_no_resample_moves_is_without_noise_on_any_scale():
    """What is left of 10⁶ Σa/Σb with a = b/10 is rounding, some 10⁻¹⁰."""
    weights = np.random.default_rng(7).random((40, 1))
    stats = np.stack([weights / 10, weights], axis=2)
    item = CorpusScores("t", "m", "none", keys(40), stats=stats, value=lambda s: 1e6 * s[..., 0] / s[..., 1])
    (row,) = analyze_run(run(item), Settings(resamples=200)).estimates
    assert (row.mean, row.se) == (pytest.approx(1e5), 0.0)
    assert "zero_variance" in row.diagnostics


def test_native_value_is_checked(values):
    good, bad = mean_by_sums(values, native=values.mean()), mean_by_sums(values, native=0.1)
    assert "mean_mismatch" not in analyze_run(run(good), Settings()).estimates[0].diagnostics
    assert "mean_mismatch" in analyze_run(run(bad), Settings()).estimates[0].diagnostics


def test_needs_one_form():
    with pytest.raises(ValueError, match="records and aggregate, or stats and value"):
        analyze_run(run(CorpusScores("t", "m", "none", keys(1), ((1,),))), Settings())


class TestPassAtK:
    def test_against_all_subsets(self):
        """1 − C(n−c, k)/C(n, k) is the share of k-subsets of answers with a right one."""
        from itertools import combinations

        rng = np.random.default_rng(3)
        x = (rng.random((12, 6)) < 0.3).astype(float)
        x[0, 4:] = np.nan
        for k in range(1, 7):
            found = pass_at_k(x, k)
            for row, value in zip(x, found, strict=True):
                answers = row[~np.isnan(row)]
                if len(answers) < k:
                    assert math.isnan(value)
                else:
                    expected = np.mean([max(subset) for subset in combinations(answers, k)])
                    assert value == pytest.approx(expected, abs=1e-12)

    def test_large_k_does_not_overflow(self):
        x = np.zeros((2, 1000))
        x[0, :10] = 1
        assert pass_at_k(x, 500) == pytest.approx([1 - math.comb(990, 500) / math.comb(1000, 500), 0.0])

    def test_needs_right_or_wrong(self):
        with pytest.raises(ValueError, match="0 or 1"):
            pass_at_k(np.array([[0.5, 1.0]]), 1)
        with pytest.raises(ValueError, match="`k` 0 is not a whole number of 1 or more"):
            pass_at_k(np.array([[1.0]]), 0)

    def test_of_arrays_it_takes_what_estimate_takes(self):
        assert hn.pass_at_k([1, 0, 1], 1).tolist() == [1.0, 0.0, 1.0]
        with pytest.raises(ValueError, match=r"an \(n, K\) array with K ≥ 1, not of shape \(2, 2, 2\)"):
            hn.pass_at_k(np.zeros((2, 2, 2)), 1)

    def test_estimates_for_every_k(self, values):
        rows = {k: estimate(pass_at_k(values, k)) for k in (1, 2, 3, 4)}
        one = estimate(values)
        assert (rows[1].mean, rows[1].se) == pytest.approx((one.mean, one.se), rel=1e-9)
        assert rows[4].mean == pytest.approx(values.max(axis=1).mean())
        for k, row in rows.items():
            assert (row.var_data, row.se_prediction) == (None, None)
            assert row.se == pytest.approx(np.std(pass_at_k(values, k), ddof=1) / 120**0.5)
        assert rows[1].mean < rows[2].mean < rows[4].mean


class TestPermutation:
    @pytest.mark.parametrize("kind", [mean_by_call, mean_by_sums])
    def test_a_mean_in_disguise_is_the_sign_flip_test(self, values, kind):
        rng = np.random.default_rng(4)
        other = (rng.random((120, 4)) < np.clip(values.mean(axis=1, keepdims=True) - 0.05, 0.05, 1)).astype(float)
        clusters = tuple(str(i % 40) for i in range(120))
        pair = run(kind(values, clusters)), run(kind(other, clusters), "o")
        few = Settings(test="permutation", resamples=3000)
        (row,) = compare_runs([pair], few).comparisons
        known = estimate_difference(values, other, clusters, test="permutation")
        assert row.test == "permutation"
        assert row.p_value == pytest.approx(known.p_value, abs=0.05)
        assert (row.verdict == "not separable") == (row.p_value >= 0.05)

    def test_unequal_repeats(self, values):
        (row,) = compare_runs(
            [(run(mean_by_sums(values)), run(mean_by_sums(1 - values[:, :3]), "o"))], Settings(test="permutation")
        ).comparisons
        assert 0 < row.p_value < 1


def test_runs_are_refused(values):
    from harness_noise.errors import InputError

    with pytest.raises(InputError, match="Leave this one out"):
        analyze_run(run(mean_by_sums(values)), Settings(repeats_are="runs"))
