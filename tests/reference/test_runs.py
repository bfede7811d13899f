"""Repeats that share a cause (statistics §4), against the two-way ANOVA table written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness_noise import estimate, estimate_difference
from harness_noise.extra.arena.columns import shared_noise_p
from harness_noise.stats.contrast import design, sub_design
from harness_noise.stats.moments import run_component
from support.simulations import simulation
from support.slow import rest_slow


def anova(x):
    """Mean squares of the two-way table without replication: question, run, residual."""
    n, K = x.shape
    q, r, m = x.mean(axis=1, keepdims=True), x.mean(axis=0, keepdims=True), x.mean()
    ms_q = K * ((q - m) ** 2).sum() / (n - 1)
    ms_run = n * ((r - m) ** 2).sum() / (K - 1)
    ms_res = ((x - q - r + m) ** 2).sum() / ((n - 1) * (K - 1))
    return ms_q, ms_run, ms_res


def table(n, K, sd_run, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)) + sd_run * rng.normal(size=(1, K)) + rng.normal(size=(n, K))


@pytest.mark.parametrize(("G", "K", "sd_run", "few"), [(30, 3, 0.3, True), (9, 40, 0.3, True), (12, 40, 0.3, False)])
def test_few_degrees_of_freedom_of_clusters_or_of_runs(G, K, sd_run, few):
    """Three runs leave few though there are many clusters; nine clusters do though there are many runs."""
    labels = np.repeat(np.arange(G), 4)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(labels), K)) + sd_run * rng.normal(size=K) + rng.normal(size=G)[labels][:, None]
    independent, e = estimate(x, labels), estimate(x, labels, repeats_are="runs")
    _, ms_run, ms_res = anova(x)
    n, V = x.size, independent.se**2
    parts = [(V, G - 1), (ms_run / n, K - 1), (-ms_res / n, (len(x) - 1) * (K - 1))]
    satterthwaite = sum(part for part, _ in parts) ** 2 / sum(part**2 / df for part, df in parts)
    assert e.df == pytest.approx(max(satterthwaite, min(G, K) - 1), rel=1e-9)
    assert ("few_clusters" in e.diagnostics) == few
    assert ("few_clusters" in independent.diagnostics) == (G < 11)


@pytest.mark.parametrize(("n", "K", "sd_run"), [(30, 4, 0.5), (8, 3, 1.0), (200, 2, 0.1)])
def test_one_run(n, K, sd_run):
    x = table(n, K, sd_run)
    ms_q, ms_run, ms_res = anova(x)
    e = estimate(x, repeats_are="runs")
    se2 = (ms_q + ms_run - ms_res) / (n * K)
    assert e.se**2 == pytest.approx(se2, rel=1e-10)
    spread = (ms_q**2 / (n - 1) + ms_run**2 / (K - 1) + ms_res**2 / ((n - 1) * (K - 1))) / (n * K) ** 2
    assert e.df == pytest.approx(se2**2 / spread, rel=1e-10)
    var_run = (ms_run - ms_res) / n
    assert e.var_prediction == pytest.approx(ms_res / n + var_run, rel=1e-10)
    assert e.var_data == pytest.approx((ms_q - ms_res) / (n * K), rel=1e-10)
    assert e.se_total**2 == pytest.approx(e.var_data + e.var_prediction, rel=1e-10)
    assert e.se**2 == pytest.approx(e.var_data + e.var_prediction / K, rel=1e-10)


def test_clusters_take_the_place_of_the_question_term():
    x = table(40, 5, 0.4)
    clusters = np.arange(40) % 8
    _, ms_run, ms_res = anova(x)
    plain, runs = estimate(x, clusters=clusters), estimate(x, clusters=clusters, repeats_are="runs")
    assert runs.se**2 == pytest.approx(plain.se**2 + (ms_run - ms_res) / 200, rel=1e-10)


def test_difference_adds_both_run_components():
    a, b = table(50, 3, 0.3, 1), table(50, 6, 0.6, 2)
    d = estimate_difference(a, b, repeats_are="runs")
    V = (a.mean(axis=1) - b.mean(axis=1)).var(ddof=1) / 50
    extra = [(run - res) / (50 * x.shape[1]) for x in (a, b) for _, run, res in [anova(x)]]
    assert d.se**2 == pytest.approx(V + sum(extra), rel=1e-10)
    single = [res / 50 + (run - res) / 50 for x in (a, b) for _, run, res in [anova(x)]]
    assert d.var_prediction == pytest.approx(sum(single), rel=1e-10)
    assert d.se_total**2 == pytest.approx(d.var_data + d.var_prediction, rel=1e-10)


def test_f_test_is_the_diagnostic():
    hits = 0
    for seed in range(40):
        x = table(60, 4, 0.5, seed)
        _, ms_run, ms_res = anova(x)
        p = stats.f.sf(ms_run / ms_res, 3, 59 * 3)
        found = "shared_repeat_noise" in estimate(x).diagnostics
        assert found == (p < 0.05)
        assert "shared_repeat_noise" not in estimate(x, repeats_are="runs").diagnostics
        hits += found
    assert 20 < hits <= 40


def test_missing_answers_keep_the_run_component():
    """Run means come from the questions that every run has; the others are moved by them."""
    x = table(60, 4, 1.0, 3)
    x[:6, 0] = np.nan
    e = estimate(x, repeats_are="runs")
    _, ms_run, ms_res = anova(x[6:])
    var_run = (ms_run - ms_res) / 54
    assert e.var_prediction == pytest.approx(var_run + ms_res / 60, rel=0.05)
    assert "missing_repeats" in e.diagnostics


def test_negative_run_component_is_raw():
    x = table(30, 4, 0.0, 6)
    x -= x.mean(axis=0)
    _, ms_run, ms_res = anova(x)
    assert ms_run < ms_res
    plain, runs = estimate(x), estimate(x, repeats_are="runs")
    assert runs.se**2 == pytest.approx(plain.se**2 - ms_res / 120, rel=1e-10)


def test_nothing_left_falls_back_to_independent_answers():
    """σ²_run estimated below −V: an SE of 0 would be the worst answer."""
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert estimate(x, repeats_are="runs").se == estimate(x).se > 0


@pytest.mark.simulation
@pytest.mark.parametrize(("K", "n"), rest_slow([(3, 10), (3, 40), (5, 10)]))
def test_coverage_of_a_difference_over_runs(K, n):
    """Without runs that differ, σ²_run often comes out below 0: the interval must stay one, and hold."""
    rng = np.random.default_rng(2)
    reps, hit, widest = 1000, 0, 0.0
    for _ in range(reps):
        u = rng.random((n, 1))
        d = estimate_difference(rng.random((n, K)) < u, rng.random((n, K)) < u, repeats_are="runs")
        assert d.df >= K - 1
        hit += d.ci_low <= 0 <= d.ci_high
        widest = max(widest, d.ci_high - d.ci_low)
    assert hit / reps > 0.93
    assert widest < 3


@pytest.mark.simulation
@pytest.mark.parametrize(("K", "seen", "at_001"), [(3, 0.62, 0.36), (5, 0.90, 0.74)])
def test_what_the_diagnostic_sees(K, seen, at_001):
    """Graded answers of 200 questions to K prompts whose interval, taken as that of answers, covers 79%."""
    draw, rng = simulation("coverage_weak").shared_cause("graded", 200, K, 1.5), np.random.default_rng(5)
    found = covered = 0
    for row, truth in (draw(rng) for _ in range(400)):
        found += "shared_repeat_noise" in row.diagnostics
        covered += row.ci_low <= truth <= row.ci_high
    assert 0.73 < covered / 400 < 0.85
    assert abs(found / 400 - seen) < 4 * (seen * (1 - seen) / 400) ** 0.5
    assert found / 400 > at_001


@pytest.mark.slow
def test_false_alarms_of_the_diagnostic():
    """Independent 0/1 answers, easy to hard, small tables: about 1 in 20, as the threshold says."""
    rng = np.random.default_rng(0)
    for n, K in ((10, 2), (10, 8), (50, 4)):
        alarms = 0
        for _ in range(2000):
            p = rng.beta(0.5, 0.5, (n, 1))
            alarms += "shared_repeat_noise" in estimate(rng.random((n, K)) < p).diagnostics
        assert alarms <= 139, (n, K, alarms)  # P(more | rate .05) < 1e-4


@pytest.mark.slow
def test_coverage_of_the_mean_over_runs():
    """Nominal 95%, K = 3 and 5 runs: at least .93, where the interval that ignores runs fails."""
    from harness_noise.stats.intervals import critical

    rng = np.random.default_rng(1)
    n, reps = 60, 3000
    for K in (3, 5):
        hit = naive = 0
        for _ in range(reps):
            x = rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(1, K)) + rng.normal(size=(n, K))
            e = estimate(x, repeats_are="runs", interval="t")
            hit += e.ci_low <= 0 <= e.ci_high
            m = x.mean(axis=1)
            naive += abs(m.mean()) <= critical(0.95, n - 1) * m.std(ddof=1) / n**0.5
        assert hit / reps > 0.93, (K, hit / reps)
        assert naive / reps < 0.91, (K, naive / reps)


@pytest.mark.parametrize("tasks", [1, 3])
def test_the_f_test_on_many_sets_of_questions_is_that_of_each_set(tasks):
    rng = np.random.default_rng(tasks)
    n, K = 40, 4
    values = rng.normal(size=(n, K)) + 0.2 * rng.normal(size=K)
    values[rng.random((n, K)) < 0.05] = np.nan
    strata = np.arange(n) % tasks
    plan = design(n, strata=strata, stratum_weights=rng.dirichlet(np.ones(tasks)) if tasks > 1 else None)
    shown = rng.random((6, n)) < 0.6
    shown[-1] = np.arange(n) < 3 * tasks - 2  # a task with one question has no residual
    shown[-1, 0] = True
    found = shared_noise_p(values, plan, shown)
    for row, p in zip(shown, found, strict=True):
        part = sub_design(plan, np.flatnonzero(row))
        alone = run_component(values[row], part.weights, part.strata)
        expected = np.nan if alone is None or alone.p_value is None else alone.p_value
        assert p == pytest.approx(expected, rel=1e-9, nan_ok=True)
    assert 3 < np.isfinite(found).sum() < 6


def test_runs_that_differ_by_the_same_on_every_question_have_no_residual_to_test_against():
    values = np.random.default_rng(4).random((12, 1)) + np.array([[0.1, 0.25, 0.7]])
    plan = design(12)
    assert run_component(values, plan.weights, plan.strata).p_value is None
    assert shared_noise_p(values, plan, np.arange(12) < np.array([[12], [2]])).tolist() == [1.0, 1.0]
