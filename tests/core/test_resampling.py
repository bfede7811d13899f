"""Bootstrap and permutation: against scipy, against exact values, whatever the batch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness_noise import estimate, estimate_difference
from harness_noise.stats import resampling
from harness_noise.stats.contrast import design
from harness_noise.stats.resampling import blocks, bootstrap, bootstrap_means, sign_flip_p, studentised


def generator():
    return np.random.default_rng(20)


def grouped():
    """Three tasks: two share clusters, the third stands alone."""
    rng = np.random.default_rng(5)
    strata = np.repeat([0, 1, 2], [40, 30, 25])
    clusters = np.concatenate([rng.integers(0, 9, 70), 100 + rng.integers(0, 6, 25)])
    shares = np.array([0.5, 0.3, 0.2])
    return rng.normal(size=(95, 3)), design(95, clusters, strata, shares)


class TestBootstrap:
    @pytest.mark.parametrize("kind", ["iid", "balanced", "unbalanced", "group"])
    def test_independent_of_the_batch(self, kind, monkeypatch):
        rng = np.random.default_rng(1)
        if kind == "group":
            values, plan = grouped()
        else:
            clusters = {"iid": None, "balanced": np.arange(60) % 12, "unbalanced": rng.integers(0, 12, 60)}[kind]
            values, plan = rng.normal(size=(60, 3)), design(60, clusters)
        whole = bootstrap_means(blocks(values, plan), 500, generator())
        for batch in (1, 5_000, 40_000):
            with monkeypatch.context() as m:
                m.setattr(resampling, "BATCH_BYTES", batch)
                assert np.allclose(bootstrap_means(blocks(values, plan), 500, generator()), whole, atol=1e-12)
        one = bootstrap_means(blocks(values[:, :1], plan), 500, generator())
        assert np.allclose(one[:, 0], whole[:, 0], atol=1e-12)

    def test_resamples_that_leave_a_task_without_questions_are_left_out_of_a_bootstrap_t(self):
        # the second task has one question each in two of seven clusters
        plan = design(23, np.r_[np.repeat([0, 1, 2, 3, 4, 5, 6], 3), 0, 1], np.r_[np.zeros(21, int), 1, 1])
        t = studentised(np.random.default_rng(6).random(23), plan, 400, generator())
        assert t is not None
        assert 200 < len(t) < 400
        assert np.isfinite(t).all()

    def test_shares_resamples_between_columns(self):
        values = np.random.default_rng(2).normal(size=(50, 2))
        means = bootstrap_means(blocks(values, design(50)), 400, generator())
        d = bootstrap_means(blocks(values[:, 0] - values[:, 1], design(50)), 400, generator())
        assert np.allclose(means[:, 0] - means[:, 1], d[:, 0], atol=1e-12)

    def test_weights_are_whole_clusters(self):
        """A resample is a multinomial reweighting of clusters: rebuilt here from the same stream."""
        rng = np.random.default_rng(3)
        clusters = rng.integers(0, 7, 40)
        clusters[:7] = np.arange(7)
        d = rng.random(40)
        found = bootstrap_means(blocks(d, design(40, clusters)), 50, generator())[:, 0]
        picked = generator().integers(0, 7, size=(50, 7), dtype=np.int32)
        # design codes clusters in order of first appearance, here 0 … 6
        expected = [np.concatenate([d[clusters == c] for c in row]).mean() for row in picked]
        assert found == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("method", ["percentile", "bca"])
    def test_interval_is_scipy(self, method):
        """Same method, other random numbers: equal to their Monte Carlo error."""
        x = np.random.default_rng(4).exponential(size=80)
        ours = bootstrap(x, design(80), 50_000, generator()).interval(0.9, method)
        theirs = stats.bootstrap(
            (x,), np.mean, confidence_level=0.9, n_resamples=50_000, method=method, rng=generator(), batch=5000
        ).confidence_interval
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)

    def test_bca_is_scipy_given_the_same_distribution(self):
        x = np.random.default_rng(4).exponential(size=40)
        theirs = stats.bootstrap((x,), np.mean, n_resamples=2000, method="bca", rng=generator())
        mine = bootstrap(x, design(40), 200, generator())
        same = resampling.Distribution(mine.estimate, np.sort(theirs.bootstrap_distribution), mine.acceleration)
        ci = same.interval(0.95, "bca")
        low, high = theirs.confidence_interval
        assert (ci.low, ci.high) == pytest.approx((low, high), rel=1e-9)

    @pytest.mark.parametrize("method", ["percentile", "bca"])
    @pytest.mark.parametrize("shift", [0.0, 0.1, 0.3, -0.2])
    def test_p_value_is_where_the_interval_touches_null(self, method, shift):
        x = shift + np.random.default_rng(9).exponential(size=50) - 1
        found = bootstrap(x, design(50), 20_000, generator())
        for read in (found, found.expanded(found.variance * 1.2, 8.5)):
            p = read.p_value(method=method)
            ci = read.interval(1 - p, method)
            assert min(abs(ci.low), abs(ci.high)) == pytest.approx(0, abs=0.01)

    def test_expanded_is_the_t_interval_of_a_normal_distribution(self):
        """[Hesterberg 2015]: where the resamples are normal nothing but t is left."""
        grid = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
        found = resampling.Distribution(3.0, 3.0 + 0.9 * grid, 0.0).expanded(1.0, 6.0)
        ci = found.interval(0.95)
        assert (ci.low, ci.high) == pytest.approx((3 - 2.446912, 3 + 2.446912), abs=1e-3)
        assert found.p_value() == pytest.approx(2 * stats.t.sf(3, 6), rel=0.01)

    @pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
    def test_p_and_interval_never_disagree(self, level):
        """Also where the null, or the tail, is beyond every resample."""
        rng = np.random.default_rng(10)
        told = 0
        for _ in range(60):
            G = int(rng.integers(2, 8))
            d = rng.normal(rng.choice([0, 1, 3]), 1, 4 * G)
            row = estimate_difference(
                d, np.zeros(4 * G), clusters=np.arange(4 * G) % G, test="bootstrap", level=level, resamples=4000
            )
            if abs(row.p_value - (1 - level)) > 0.1 * (1 - level):  # but for Monte Carlo error
                assert (row.verdict != "not separable") == (row.p_value < 1 - level), row
                told += 1
        assert told >= 40

    def test_variance_is_the_cluster_variance(self):
        """Bootstrap variance → CR0 as G grows; for a group too, clusters across tasks."""
        values, plan = grouped()
        from harness_noise.stats.moments import mean_variance

        d = values[:, 0]
        V = mean_variance(d, plan, "cr0").variance.item()
        found = bootstrap(d, plan, 40_000, generator()).variance
        assert found == pytest.approx(V, rel=0.1)

    def test_tasks_as_clusters(self):
        from dataclasses import replace

        rng = np.random.default_rng(7)
        strata = np.repeat(np.arange(8), 10)
        plan = design(80, strata=strata)
        plan = replace(plan, clusters=strata, n_clusters=8, clustered=True, between_tasks=True)
        d = rng.random(80)
        found = bootstrap(d, plan, 20_000, generator())
        means = d.reshape(8, 10).mean(axis=1)
        assert found.estimate == pytest.approx(d.mean())
        assert found.variance == pytest.approx(means.var() / 8, rel=0.05)

    def test_through_the_api(self):
        rng = np.random.default_rng(0)
        a, b = rng.random((40, 3)) + 0.15, rng.random((40, 3))
        e = estimate(a, interval="bootstrap")
        assert e.interval == "bootstrap"
        assert e == estimate(a, interval="bootstrap")
        assert e != estimate(a, interval="bootstrap", seed=1)
        assert e.ci_low < e.mean < e.ci_high
        d = estimate_difference(a, b, test="bootstrap")
        assert (d.test, d.statistic) == ("bootstrap", None)
        assert d.p_value == pytest.approx(estimate_difference(a, b).p_value, abs=0.02)
        assert (d.verdict == "not separable") == (d.p_value > 0.05)

    def test_points_are_no_intervals(self):
        assert estimate(np.ones(9), interval="bootstrap").interval == "wilson"
        assert estimate(np.full(9, 3.0), interval="bootstrap").ci_low is None


class TestPermutation:
    def test_exact_is_scipy(self):
        d = np.random.default_rng(3).normal(0.4, 1, 11)
        theirs = stats.permutation_test(
            (d, np.zeros(11)), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples",
            n_resamples=np.inf,
        )  # fmt: skip
        assert sign_flip_p(d, design(11), 10_000, generator()) == pytest.approx(theirs.pvalue, abs=1e-12)

    def test_binary_is_the_sign_test(self):
        """±1 differences: the permutation distribution is the binomial one."""
        d = np.repeat([1.0, -1.0, 0.0], [9, 3, 20])
        expected = stats.binomtest(3, 12).pvalue
        assert sign_flip_p(d, design(32), 10_000, generator()) == pytest.approx(expected, abs=1e-12)
        assert sign_flip_p(d, design(32), 2_000, generator()) == pytest.approx(expected, abs=0.02)

    def test_monte_carlo_counts_the_observed_pattern(self):
        assert sign_flip_p(np.ones(40), design(40), 999, generator()) == pytest.approx(1 / 1000)

    @pytest.mark.parametrize("batch", [1, 9_999, 100_000])
    def test_independent_of_the_batch(self, batch, monkeypatch):
        d = np.random.default_rng(3).normal(0.2, 1, 70)
        whole = sign_flip_p(d, design(70), 3_000, generator())
        monkeypatch.setattr(resampling, "BATCH_BYTES", batch)
        assert sign_flip_p(d, design(70), 3_000, generator()) == whole

    def test_whole_clusters_flip(self):
        """Twelve equal questions in two clusters: 4 sign patterns, 2 as extreme."""
        assert sign_flip_p(np.ones(12), design(12, ["a", "b"] * 6), 10_000, generator()) == 0.5

    def test_nothing_differs(self):
        assert sign_flip_p(np.zeros(5), design(5), 100, generator()) == 1.0

    def test_through_the_api(self):
        rng = np.random.default_rng(11)
        a, b = rng.random((60, 2)), rng.random((60, 2)) - 0.2
        d = estimate_difference(a, b, clusters=np.arange(60) % 20, test="permutation")
        t = estimate_difference(a, b, clusters=np.arange(60) % 20)
        assert d.p_value == pytest.approx(t.p_value, abs=0.02)
        assert (d.ci_low, d.ci_high) == (t.ci_low, t.ci_high)


def test_memory_is_bounded():
    """Ten times the resamples, the same peak."""
    import tracemalloc

    d = np.random.default_rng(0).random(5_000)

    def peak(resamples):
        tracemalloc.start()
        bootstrap(d, design(5_000), resamples, generator())
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(4_000) < 1.5 * peak(800)
    assert peak(4_000) < 100e6


def test_unpaired_bootstrap_is_two_independent_samples():
    rng = np.random.default_rng(8)
    a, b = rng.random(50), rng.random(90)
    d = estimate_difference(a, b, unpaired=True, test="bootstrap")
    theirs = stats.bootstrap(
        (a, b), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis), n_resamples=20_000, rng=generator(),
        method="percentile", batch=2000,
    ).confidence_interval  # fmt: skip
    t = estimate_difference(a, b, unpaired=True)
    assert (d.ci_low, d.ci_high) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert (d.ci_low, d.ci_high) == pytest.approx((t.ci_low, t.ci_high), abs=0.01)


def test_the_interval_of_the_wild_test_never_contradicts_its_p() -> None:
    a = np.ones(30)
    b = a.copy()
    b[[3, 9, 15, 20]] = 0
    one_way = estimate_difference(a, b, test="wild")
    assert one_way.p_value > 0.05
    assert (one_way.ci_low, one_way.verdict) == (0.0, "not separable")
    rng = np.random.default_rng(0)
    for i in range(40):
        x = (rng.random(24) < 0.8).astype(float)
        y = np.where(rng.random(24) < 0.7, x, rng.random(24) < 0.6)
        row = estimate_difference(x, y, (np.arange(24) % 8).tolist() if i % 2 else None, test="wild", resamples=999)
        if row.p_value is not None and row.ci_low is not None:
            assert (row.p_value < 0.05) == (row.ci_low > 0 or row.ci_high < 0)
