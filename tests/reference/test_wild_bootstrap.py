"""The wild cluster bootstrap against least squares fitted anew for every weight vector, and its properties.

The reference knows no formula of ours: it imposes the null by regression, multiplies the restricted residuals of each
cluster by its weight, adds them to the restricted fit, and takes statsmodels' clustered t of the new data.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import statsmodels.api as sm

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.settings import Settings
from harness_noise.stats import resampling as wild
from harness_noise.stats.contrast import design
from harness_noise.stats.resampling import wild_test, wild_weights

SIX = [s * v**0.5 for s in (-1, 1) for v in (1.5, 1.0, 0.5)]


def draws(G=9, n=60, seed=1, shift=0.25):
    rng = np.random.default_rng(seed)
    clusters = np.concatenate([np.arange(G), rng.zipf(1.6, n - G) % G])
    return shift + 0.5 * (rng.exponential(size=G) - 1)[clusters] + rng.normal(size=n), clusters


def clustered_t(y, X, w, null, clusters):
    fit = sm.OLS(y, X).fit(cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False})
    return float((w @ fit.params - null) / (w @ fit.cov_params() @ w) ** 0.5)


def by_refitting(y, X, w, null, clusters, points):
    """The two-sided p over all weight vectors."""
    G = clusters.max() + 1
    observed = clustered_t(y, X, w, null, clusters)
    inverse = np.linalg.inv(X.T @ X)
    free = inverse @ X.T @ y
    restricted = free - inverse @ w * (w @ free - null) / (w @ inverse @ w)
    residual = y - X @ restricted
    found = np.array([
        clustered_t(X @ restricted + np.array(v)[clusters] * residual, X, w, null, clusters)
        for v in itertools.product(points, repeat=G)
    ])  # fmt: skip
    return (np.abs(found) >= abs(observed) - 1e-9).mean()


@pytest.mark.parametrize(("G", "points"), [(8, [-1, 1]), (4, SIX)])
@pytest.mark.parametrize("null", [0.0, -0.3])
def test_one_task_by_refitting(G, points, null):
    y, clusters = draws(G, n=30)
    found = wild_test(y, design(30, clusters), 10_000, np.random.default_rng(0))
    two = by_refitting(y, np.ones((30, 1)), np.ones(1), null, clusters, points)
    assert found.exact
    assert found.p_value(null)[0] == pytest.approx(two, abs=1e-12)


@pytest.mark.parametrize("null", [0.0, 0.5])
def test_a_group_whose_clusters_cross_its_tasks_by_refitting(null):
    y, clusters = draws(8, n=40)
    strata = np.arange(40) % 3
    shares = np.array([0.5, 0.3, 0.2])
    found = wild_test(y, design(40, clusters, strata, shares), 10_000, np.random.default_rng(0))
    X = np.eye(3)[strata]
    two = by_refitting(y, X, shares, null, clusters, [-1, 1])
    assert found.p_value(null)[0] == pytest.approx(two, abs=1e-12)


def ends(found, level):
    """The limits of one difference."""
    low, high = found.limits(level)
    return low[0], high[0]


@pytest.mark.parametrize("G", [5, 10, 40])
def test_many_at_once_are_each_alone(G):
    rng = np.random.default_rng(3)
    _, clusters = draws(G, n=90)
    d = rng.normal(size=(90, 4)) + rng.normal(size=(G, 4))[clusters]
    many = wild_test(d.T, design(90, clusters), 999, np.random.default_rng(5))
    low, high = many.limits(0.9)
    for i in range(4):
        one = wild_test(d[:, i], design(90, clusters), 999, np.random.default_rng(5))
        assert many.p_value()[i] == one.p_value()[0]
        assert many.p_value(-0.1)[i] == one.p_value(-0.1)[0]
        assert (low[i], high[i]) == pytest.approx(ends(one, 0.9), abs=1e-8)


def test_the_interval_holds_what_is_not_rejected():
    y, clusters = draws(10)
    found = wild_test(y, design(len(y), clusters), 9_999, np.random.default_rng(0))
    low, high = ends(found, 0.95)
    width = high - low
    assert found.p_value(low + 1e-3 * width)[0] >= 0.05 > found.p_value(low - 1e-3 * width)[0]
    assert found.p_value(high - 1e-3 * width)[0] >= 0.05 > found.p_value(high + 1e-3 * width)[0]
    lowest, highest = ends(found, 0.99)
    assert lowest < low < y.mean() < high < highest


def test_weights():
    """All signs from 8 to 12 clusters, Webb's six below, drawn signs beyond; variance 1 and mean 0 throughout."""
    rng = np.random.default_rng(0)
    for G, exact, size, levels in ((3, True, 216, 6), (5, True, 7776, 6), (7, False, 9_999, 6), (8, True, 256, 2),
                                   (12, True, 4096, 2), (13, False, 9_999, 2)):  # fmt: skip
        batches, known = wild_weights(G, 9_999, rng)
        v = np.concatenate(list(batches))
        assert (known, len(v), len(np.unique(v))) == (exact, size, levels)
        if exact:
            assert len(np.unique(v, axis=0)) == size
            assert np.abs(v.mean(axis=0)).max() < 1e-12
            assert np.allclose((v**2).mean(axis=0), 1)


def test_memory_of_a_batch_changes_nothing(monkeypatch):
    y, clusters = draws(9)
    whole = wild_test(y, design(len(y), clusters), 999, np.random.default_rng(2))
    monkeypatch.setattr(wild, "BATCH_BYTES", 2000)
    cut = wild_test(y, design(len(y), clusters), 999, np.random.default_rng(2))
    assert np.allclose(whole.q0, cut.q0)
    assert whole.p_value() == cut.p_value()


def test_two_clusters_have_a_p_value_but_no_interval():
    y = np.concatenate([np.linspace(0, 1, 10), np.linspace(0.5, 2, 12)])
    row = hn.estimate_difference(y, np.zeros(22), clusters=np.repeat([0, 1], [10, 12]), test="wild")
    assert row.p_value > 0.05
    assert (row.ci_low, row.ci_high, row.verdict) == (None, None, "not separable")


def test_the_verdict_the_interval_and_the_equivalence_are_the_tests():
    y, clusters = draws(12, n=120, shift=0.6)
    row = hn.estimate_difference(y, np.zeros(120), clusters=clusters, test="wild")
    found = wild_test(y, design(120, clusters), 10_000, np.random.default_rng(0))
    assert row.test == "wild"
    assert row.p_value == found.p_value()[0]
    assert (row.ci_low, row.ci_high) == pytest.approx(tuple(float(side[0]) for side in found.limits(0.95)), abs=1e-9)
    assert row.verdict == ("A better" if row.p_value < 0.05 else "not separable")
    assert (row.statistic, row.se) == (None, hn.estimate_difference(y, np.zeros(120), clusters=clusters).se)
    same = hn.estimate_difference(0.01 * y, np.zeros(120), clusters=clusters, test="wild", margin=0.5)
    assert same.verdict in ("A better", "equivalent within 0.5")
    kept = hn.estimate_difference(y, np.zeros(120), clusters=clusters, test="wild", interval="t")
    assert kept.ci_low == hn.estimate_difference(y, np.zeros(120), clusters=clusters).ci_low


def test_without_variance_there_is_nothing_to_resample():
    row = hn.estimate_difference(np.ones(20), np.zeros(20), clusters=np.arange(20) // 2, test="wild")
    plain = hn.estimate_difference(np.ones(20), np.zeros(20), clusters=np.arange(20) // 2)
    assert (row.p_value, row.ci_low, row.verdict) == (plain.p_value, plain.ci_low, plain.verdict)
    assert "zero_variance" in row.diagnostics


@pytest.mark.parametrize("missing", [False, True])
def test_arena_says_what_compare_says(missing):
    rng = np.random.default_rng(6)
    runs = []
    for m in range(4):
        parts = []
        for task, n in (("s", 40), ("t", 30)):
            values = (rng.random((n, 2)) < 0.4 + 0.1 * m).astype(float)
            if missing and m == 3:
                values[:4] = np.nan
            keys = Questions(tuple(f"{task}{i}" for i in range(n)))
            labels = tuple(str(i % 9) for i in range(n))
            parts.append(Scores(task, "acc", "none", keys, values, clusters=labels, cluster_spec="field"))
        groups = (Group("g", "acc", "none", ("s", "t"), "equal"),)
        runs.append(Run(f"m{m}", f"m{m}", "test", scores=tuple(parts), groups=groups))
    by_name = {run.model: run for run in runs}
    for pair in hn.arena(runs, test="wild", margin=0.3, adjust="none").pairs:
        settings = Settings(test="wild", margin=0.3, adjust="none")
        rows = compare_runs([(by_name[pair.model_a], by_name[pair.model_b])], settings).comparisons
        (row,) = (item for item in rows if item.task == pair.task)
        assert pair.p_value == pytest.approx(row.p_value, abs=1e-12)
        assert (pair.ci_low, pair.ci_high) == pytest.approx((row.ci_low, row.ci_high), abs=1e-8)
        assert (pair.verdict, pair.interval) == (row.verdict, row.interval)


@pytest.mark.simulation
def test_type_one_error_with_skewed_clusters_of_very_unequal_size():
    """Zipf sizes, skewed effects: closer to 5% than the t test, at most 8%."""
    rng = np.random.default_rng(12)
    R, rejected, by_t = 500, 0, 0
    for _ in range(R):
        clusters = np.concatenate([np.arange(20), rng.zipf(1.6, 180) % 20])
        y = 0.65 * (rng.exponential(size=20) - 1)[clusters] + rng.normal(size=200)
        rejected += wild_test(y, design(200, clusters), 499, rng).p_value()[0] <= 0.05
        by_t += hn.estimate_difference(y, np.zeros(200), clusters=clusters).p_value <= 0.05
    assert rejected <= by_t
    assert rejected / R <= 0.08 + 2 * (0.07 * 0.93 / R) ** 0.5


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"unpaired": True}, "needs pairs"),
        ({"repeats_are": "runs"}, "only the t test"),
        ({"questions_are": "fixed"}, "for a sample"),
        ({"interval": "bootstrap"}, "interval of its own"),
    ],
)
def test_what_it_cannot_be_combined_with(choices, words):
    with pytest.raises(hn.InputError, match=words):
        Settings(test="wild", **choices)
