"""Questions clustered in two crossed ways: statsmodels, the two-way ANOVA, matrices, and coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import special, stats

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import CROSS
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.settings import Settings
from harness_noise.stats.cluster_variance import _interaction, clustered_variance, crossed_variance
from harness_noise.stats.contrast import design
from harness_noise.stats.moments import mean_variance
from harness_noise.stats.pairs import extended_samples


def ragged(seed, n=120, N_A=14, N_B=6, effects=0.7):
    """Labels of both ways, some cells empty and some with several questions, and values with effects of both."""
    rng = np.random.default_rng(seed)
    a = np.concatenate([np.arange(N_A), rng.integers(0, N_A, n - N_A)])
    b = np.concatenate([np.arange(N_A) % N_B, rng.integers(0, N_B, n - N_A)])
    y = effects * rng.normal(size=N_A)[a] + effects * rng.normal(size=N_B)[b] + rng.normal(size=n)
    return y, a, b


def crossed(a, b):
    """The design of (n,) codes of two ways."""
    smaller = min((a, b), key=lambda codes: codes.max())
    plan = design(len(a), smaller)
    return replace(plan, crossed=(np.unique(a, return_inverse=True)[1], np.unique(b, return_inverse=True)[1]))


def test_cr0_and_cr1_are_the_two_way_covariance_of_statsmodels():
    """Its two-way variance, or that of the larger of the two ways alone: both are found here."""
    equal = []
    for seed in range(12):
        y, a, b = ragged(seed)
        groups = np.column_stack([a, b])
        for se, corrected in (("cr0", False), ("cr1", True)):
            by = [
                sm.OLS(y, np.ones_like(y)).fit(cov_type="cluster", cov_kwds={"groups": of, "use_correction": corrected})
                for of in (groups, a, b)
            ]
            errors = [float(fit.bse[0]) for fit in by]
            row = hn.estimate(y, crossed=(a, b), se=se)
            assert row.se == pytest.approx(max(errors), rel=1e-10)
            assert (row.cluster, row.n_clusters, row.icc) == ("clusters", 6, None)
            equal.append(errors[0] == max(errors))
    assert 3 <= sum(equal) < len(equal)


@pytest.mark.parametrize("m", [1, 3])
def test_balanced_data_give_the_mean_squares_of_the_anova(m):
    """V = (MS_A + MS_B − MS_AB)/n, and Satterthwaite's degrees of freedom over the three."""
    rng = np.random.default_rng(5)
    N_A, N_B = 9, 5
    y = (
        rng.normal(size=(N_A, 1, 1))
        + rng.normal(size=(1, N_B, 1))
        + 0.4 * rng.normal(size=(N_A, N_B, 1))
        + rng.normal(size=(N_A, N_B, m))
    )
    cells, n = y.mean(axis=2), N_A * N_B * m
    rows, columns, mean = cells.mean(axis=1), cells.mean(axis=0), cells.mean()
    MS = [N_B * m * rows.var(ddof=1), N_A * m * columns.var(ddof=1),
          m * ((cells - rows[:, None] - columns + mean) ** 2).sum() / (N_A - 1) / (N_B - 1)]  # fmt: skip
    dfs = [N_A - 1, N_B - 1, (N_A - 1) * (N_B - 1)]
    a, b = np.repeat(np.arange(N_A), N_B * m), np.tile(np.repeat(np.arange(N_B), m), N_A)
    row = hn.estimate(y.ravel(), crossed=(a, b))
    V = (MS[0] + MS[1] - MS[2]) / n
    assert row.se**2 == pytest.approx(V, rel=1e-10)
    assert row.df == pytest.approx(V**2 / sum((ms / n) ** 2 / df for ms, df in zip(MS, dfs, strict=True)), rel=1e-10)
    other = hn.estimate(y.ravel(), crossed=(b, a))
    assert (other.se, other.df) == pytest.approx((row.se, row.df), rel=1e-12)


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_interaction_by_matrices_of_full_size(seed, tasks):
    """Residuals from all dummies at once, and Σ_c uᵀ(I − H)u without elimination."""
    _, a, b = ragged(seed, n=90)
    rng = np.random.default_rng(seed)
    strata = np.arange(90) % tasks
    plan = design(90, b, strata, np.full(tasks, 1 / tasks) if tasks > 1 else None)
    plan = (
        crossed(a, b)
        if tasks == 1
        else type(plan)(plan.weights, strata, plan.clusters, plan.n_clusters, True, crossed=(a, b))
    )
    e = rng.normal(size=90)
    cell = np.unique(np.column_stack([a, b]), axis=0, return_inverse=True)[1].reshape(-1)
    found = _interaction(e, plan, cell)
    Z = np.concatenate([np.eye(n)[codes] for n, codes in ((14, a), (6, b), (tasks, strata))], axis=1)
    rest = np.eye(90) - Z @ np.linalg.pinv(Z)
    u = np.eye(cell.max() + 1)[cell] * plan.weights[:, None]
    scores = u.T @ rest @ e
    w2 = plan.weights @ plan.weights
    assert found.value == pytest.approx(w2 * (scores @ scores) / np.trace(u.T @ rest @ u), rel=1e-9)
    assert found.df == cell.max() + 1 - np.linalg.matrix_rank(Z)


def test_never_below_either_way_alone():
    for seed in range(40):
        y, a, b = ragged(seed, n=60, effects=0.0)
        plan = crossed(a, b)
        e = y - y.mean()
        both = crossed_variance(e, plan)
        alone = [clustered_variance(e, design(len(y), codes)) for codes in (a, b)]
        assert both.value >= max(item.value for item in alone) * (1 - 1e-12)
        assert both.df >= min(item.df for item in alone) * (1 - 1e-12)


def test_nested_clusters_are_the_larger_ones():
    y, a, _ = ragged(1)
    outer = a % 5
    nested = hn.estimate(y, crossed=(a, outer))
    alone = hn.estimate(y, clusters=outer)
    assert (nested.se, nested.df, nested.n_clusters) == pytest.approx((alone.se, alone.df, 5), rel=1e-12)


def test_one_cluster_of_a_way_says_nothing_of_that_way():
    y, a, _ = ragged(2)
    row = hn.estimate(y, crossed=(a, np.zeros_like(a)))
    assert (row.se, row.n_clusters) == (None, 1)
    assert "too_few_clusters" in row.diagnostics


def scores(task, values, labels):
    keys = Questions(tuple(f"{task}{i}" for i in range(len(values))))
    return Scores(
        task,
        "acc",
        "none",
        keys,
        np.asarray(values, dtype=float),
        clusters=tuple(labels),
        cluster_spec="template*language",
    )


def test_estimate_difference_and_group_of_runs():
    rng = np.random.default_rng(8)
    y, a, b = ragged(8)
    labels = [f"t{i}{CROSS}l{j}" for i, j in zip(a, b, strict=True)]
    x = rng.normal(size=(120, 2)) + y[:, None]
    z = rng.normal(size=(120, 3)) + 0.5 * y[:, None]

    def run(model, values):
        halves = [scores("s", values[:70], labels[:70]), scores("t", values[70:], labels[70:])]
        whole = scores("whole", values, labels)
        return Run(model, model, "test", scores=(*halves, whole), groups=(Group("g", "acc", "none", ("s", "t")),))

    rows = {row.task: row for row in compare_runs([(run("a", x), run("b", z))], Settings()).comparisons}
    expected = hn.estimate_difference(x, z, crossed=(a, b))
    for field in ("diff", "se", "df", "n_clusters", "var_data", "p_sign", "ci_low"):
        assert getattr(rows["whole"], field) == getattr(expected, field), field
    assert rows["whole"].cluster == "template × language"
    assert rows["whole"].p_sign is None
    # both halves of one size-weighted group share their clusters; taking out the tasks' means is all that differs
    assert rows["g"].n_clusters == 6
    assert rows["g"].se == pytest.approx(rows["whole"].se, rel=0.1)
    alone = analyze_run(run("a", x), Settings()).estimates
    assert [row.cluster for row in alone] == ["template × language"] * 4
    assert all(row.icc is None and row.se > 0 for row in alone)


@pytest.mark.slow
def test_coverage_of_template_by_language():
    """Both effects, one, none, and skewed ones; either way alone covers far less where both are there."""
    rng = np.random.default_rng(11)
    R, worst, alone = 600, 1.0, []
    for N_A, N_B, sa, sb, skewed in (
        (20, 8, 0.5, 0.5, False),
        (20, 8, 0.5, 0.0, False),
        (20, 8, 0.0, 0.0, False),
        (30, 10, 0.5, 0.5, True),
    ):
        a, b = np.repeat(np.arange(N_A), N_B), np.tile(np.arange(N_B), N_A)
        plan, one, two = crossed(a, b), design(N_A * N_B, a), design(N_A * N_B, b)
        hit = np.zeros(3)
        for _ in range(R):
            draw = (lambda k: rng.exponential(size=k) - 1) if skewed else (lambda k: rng.normal(size=k))
            y = sa * draw(N_A)[a] + sb * draw(N_B)[b] + rng.normal(size=N_A * N_B)
            e = y - y.mean()
            for k, V in enumerate((crossed_variance(e, plan), clustered_variance(e, one), clustered_variance(e, two))):
                hit[k] += abs(y.mean()) <= special.stdtrit(V.df, 0.975) * V.value**0.5
        worst = min(worst, hit[0] / R)
        alone.append(hit[1:].min() / R)
    assert worst >= 0.935 - 3.5 * (0.05 * 0.95 / R) ** 0.5
    assert alone[0] < 0.88


def test_the_far_limit_of_few_flips_has_the_degrees_of_freedom_of_both_ways():
    """The extended sample has eleven, of one way and two clusters more; both ways together have nine."""
    n = 200
    a, b = np.arange(n) % 10, np.arange(n) // 10
    d = np.zeros(n)
    d[[0, 10, 20, 30]] = 1.0
    row = hn.estimate_difference(d, np.zeros(n), crossed=(a, b))
    plan = design(n, a)
    one_way = extended_samples(d[None, :], plan, mean_variance(d, plan, "cr2"), "cr2")
    assert "few_flips" in row.diagnostics
    assert (row.df, float(one_way.df[0])) == (9, 11)
    reach = stats.t.ppf(0.975, 9) * float(one_way.variance[0]) ** 0.5
    assert row.ci_high == pytest.approx(float(one_way.mean[0]) + reach, rel=1e-12)
    assert row.ci_low == pytest.approx(row.diff - stats.t.ppf(0.975, row.df) * row.se, rel=1e-12)


@pytest.mark.parametrize("repeats_are", ["answers", "runs"])
def test_the_way_with_fewer_clusters_decides_whether_they_are_few(repeats_are):
    """Five templates are few, however many degrees of freedom languages and runs bring."""
    rng = np.random.default_rng(0)
    template, language = np.arange(120) % 5, np.arange(120) // 5
    noise = 0.1 * rng.normal(size=(120, 1)) + 0.1 * rng.normal(size=(120, 20))
    values = rng.normal(size=24)[language][:, None] + noise + 0.5 * rng.normal(size=20)
    row = hn.estimate(values, crossed=(template, language), repeats_are=repeats_are, interval="t")
    assert row.df > 20
    assert "few_clusters" in row.diagnostics


@pytest.mark.parametrize("interval", ["wilson", "korn-graubard"])
def test_of_ways_with_as_many_clusters_the_order_does_not_matter(interval):
    """The interval's end knows how many clusters hold a wrong answer, and took the way that was named first."""
    scores = np.ones(12)
    scores[[0, 1, 4]] = 0
    unequal, equal = [0] * 6 + [1] * 4 + [2] * 2, [0, 1, 2] * 4
    one, other = (hn.estimate(scores, crossed=ways, interval=interval) for ways in ((unequal, equal), (equal, unequal)))
    assert one == other
