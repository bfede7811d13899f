"""Groups of tasks, clusters across them, tasks as clusters, and the unpaired comparison, through Runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness_noise import estimate_difference
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.settings import Settings


def scores(task, values, labels=None, spec="passage"):
    keys = tuple(f"{task}{i}" for i in range(len(values)))
    clusters = None if labels is None else tuple(map(str, labels))
    return Scores(
        task=task, metric="acc", scorer="none", questions=Questions(keys), values=np.asarray(values, dtype=float),
        clusters=clusters, cluster_spec=None if labels is None else spec,
    )  # fmt: skip


def run(model, parts, group):
    return Run(model=model, name=model, harness="test", scores=tuple(parts), groups=(group,))


def group_row(parts, group, **choices):
    return analyze_run(run("m", parts, group), Settings(**choices)).estimates[len(parts)]


def brute(parts, shares, kind="cr2"):
    """V of §3, cluster by cluster and task by task, in plain loops."""
    total = {}
    for t, part in enumerate(parts):
        m = np.nanmean(part.values, axis=1)
        n = len(m)
        labels = part.clusters or [f"{t}/{i}" for i in range(n)]
        for c in set(labels):
            rows = [i for i in range(n) if labels[i] == c]
            scale = (1 - len(rows) / n) ** {"cr2": -0.5, "cr3": -1.0}.get(kind, 0.0)
            total[c] = total.get(c, 0.0) + shares[t] / n * scale * sum(m[i] - m.mean() for i in rows)
    V = sum(value**2 for value in total.values())
    return V * len(total) / (len(total) - 1) if kind == "cr1" else V


@pytest.fixture
def languages():
    """One question in three languages is one cluster; the languages have unequal sizes."""
    rng = np.random.default_rng(4)
    difficulty = rng.random(30)
    return [
        scores(f"l{t}", rng.random((n, 4)) < difficulty[:n, None], labels=range(n)) for t, n in enumerate((30, 20, 11))
    ]


@pytest.mark.parametrize("se", ["cr0", "cr1", "cr2", "cr3"])
@pytest.mark.parametrize("weighting", ["size", "equal", "nested"])
def test_group_row(languages, weighting, se):
    sizes = np.array([30, 20, 11])
    # nested: the mean of (l0, l1 by size) and l2
    shares = {"size": sizes / 61, "equal": np.ones(3) / 3, "nested": np.array([0.3, 0.2, 0.5])}[weighting]
    fixed = (0.6, 0.4, 1.0) if weighting == "nested" else None
    group = Group("g", "acc", "none", ("l0", "l1", "l2"), "equal" if weighting == "equal" else "size", weights=fixed)
    row = group_row(languages, group, se=se)
    assert row.mean == pytest.approx(shares @ [part.values.mean() for part in languages], rel=1e-12)
    assert row.se**2 == pytest.approx(brute(languages, shares, se), rel=1e-10)
    assert (row.n_questions, row.n_clusters) == (61, 30)
    a2 = np.repeat((shares / sizes) ** 2, sizes)
    s2 = np.concatenate([part.values.var(axis=1, ddof=1) for part in languages])
    assert row.var_prediction == pytest.approx(a2 @ s2, rel=1e-10)
    assert row.var_data == pytest.approx(row.se**2 - a2 @ s2 / 4, rel=1e-9)
    naive = sum(
        (w**2) * part.values.mean(axis=1).var(ddof=1) / n for w, part, n in zip(shares, languages, sizes, strict=True)
    )
    assert row.se_naive**2 == pytest.approx(naive, rel=1e-10)
    assert row.design_effect == pytest.approx(row.se**2 / naive, rel=1e-10)


def test_one_label_under_two_specs_is_two_clusters():
    rng = np.random.default_rng(0)
    parts = [
        scores("a", rng.random((9, 2)), "xxxyyyzzz", "passage"),
        scores("b", rng.random((9, 2)), "xxxyyyzzz", "idx"),
    ]
    group = Group("g", "acc", "none", ("a", "b"))
    assert group_row(parts, group).n_clusters == 6


def test_subjects_are_strata():
    """Without clusters: the stratified variance Σ w_t² s_t²/n_t, no variance between subjects."""
    rng = np.random.default_rng(1)
    parts = [scores(t, rng.random((n, 1)) + shift) for t, n, shift in (("a", 8, 0), ("b", 15, 5), ("c", 4, 9))]
    row = group_row(parts, Group("g", "acc", "none", ("a", "b", "c")))
    V = sum((len(p.values) / 27) ** 2 * p.values.var(ddof=1) / len(p.values) for p in parts)
    assert row.se**2 == pytest.approx(V, rel=1e-12)
    assert row.df < 24


@pytest.mark.parametrize("weighting", ["size", "equal"])
def test_tasks_as_clusters(weighting):
    rng = np.random.default_rng(2)
    sizes = np.array([12, 5, 9, 20])
    parts = [scores(f"t{i}", rng.random((n, 3)), [f"t{i}"] * n, "task") for i, n in enumerate(sizes)]
    row = group_row(parts, Group("g", "acc", "none", tuple(p.task for p in parts), weighting))
    w = sizes / sizes.sum() if weighting == "size" else np.full(4, 0.25)
    means = np.array([part.values.mean() for part in parts])
    V = (w**2 * (means - w @ means) ** 2 / (1 - w)).sum()
    assert row.se**2 == pytest.approx(V, rel=1e-12)
    assert row.n_clusters == 4
    if weighting == "equal":
        assert row.df == pytest.approx(3)
        assert row.se == pytest.approx(means.std(ddof=1) / 2)


def test_paired_groups(languages):
    """A group's difference is the group of the differences."""
    rng = np.random.default_rng(6)
    other = [
        scores(part.task, rng.random((len(part.values), 2)) < 0.5, labels=range(len(part.values))) for part in languages
    ]
    group = Group("g", "acc", "none", ("l0", "l1", "l2"), "equal")
    (*_, row) = compare_runs([(run("a", languages, group), run("b", other, group))], Settings()).comparisons
    d = [
        scores(a.task, (a.values.mean(axis=1) - b.values.mean(axis=1))[:, None], a.clusters)
        for a, b in zip(languages, other, strict=True)
    ]
    assert row.task == "g"
    assert row.diff == pytest.approx(np.mean([x.values.mean() for x in d]), rel=1e-12)
    assert row.se**2 == pytest.approx(brute(d, np.ones(3) / 3), rel=1e-10)
    assert row.wins_a + row.wins_b + row.ties == pytest.approx(61)
    for test in ("sign", "permutation", "bootstrap"):
        other_row = compare_runs(
            [(run("a", languages, group), run("b", other, group))], Settings(test=test)
        ).comparisons[-1]
        assert 0 <= other_row.p_value <= 1
        assert other_row.diff == row.diff


def test_group_with_zero_variance():
    """Every task agrees with itself: Bonett–Price at the group's weights, which make 40 questions worth fewer."""
    a = [scores("a", np.ones((10, 1))), scores("b", np.ones((30, 1)))]
    b = [scores("a", np.zeros((10, 1))), scores("b", np.ones((30, 1)))]
    group = Group("g", "acc", "none", ("a", "b"), "equal")
    (*_, row) = compare_runs([(run("x", a, group), run("y", b, group))], Settings()).comparisons
    n = 1 + (0.25 / 10 + 0.25 / 30) ** 2 / ((0.25 / 10) ** 2 / 9 + (0.25 / 30) ** 2 / 29)  # Welch's df, plus one
    p1, p2 = (n * 0.5 + 1) / (n + 2), 1 / (n + 2)
    half = 1.959964 * np.sqrt((p1 + p2 - (p1 - p2) ** 2) / (n + 2))
    assert (row.diff, row.se) == (pytest.approx(0.5), 0.0)
    assert (row.ci_low, row.ci_high) == pytest.approx((p1 - p2 - half, p1 - p2 + half), abs=1e-6)


class TestUnpaired:
    def test_is_welch(self):
        rng = np.random.default_rng(3)
        a, b = rng.random(40), rng.random(65) + 0.1
        d = estimate_difference(a, b, unpaired=True)
        theirs = stats.ttest_ind(a, b, equal_var=False)
        ci = theirs.confidence_interval(0.95)
        assert (d.statistic, d.p_value, d.df) == pytest.approx((theirs.statistic, theirs.pvalue, theirs.df), rel=1e-10)
        assert (d.ci_low, d.ci_high) == pytest.approx((ci.low, ci.high), rel=1e-10)
        assert (d.n_questions, d.n_only_a, d.n_only_b, d.n_clusters) == (105, 40, 65, 105)
        assert (d.wins_a, d.ties, d.correlation, d.p_sign) == (None, None, None, None)
        assert d.se_unpaired == d.se
        assert "unpaired" in d.diagnostics

    def test_noise_adds_up(self):
        rng = np.random.default_rng(5)
        a, b = rng.random((20, 3)), rng.random((30, 2))
        from harness_noise import estimate

        one, other, d = estimate(a), estimate(b), estimate_difference(a, b, unpaired=True)
        assert d.var_prediction == pytest.approx(one.var_prediction + other.var_prediction)
        assert d.var_data == pytest.approx(one.var_data + other.var_data)
        assert d.se_total**2 == pytest.approx(d.var_data + d.var_prediction)

    def test_zero_variance_is_agresti_caffo(self):
        d = estimate_difference(np.ones(10), np.zeros(20), unpaired=True)
        p, q = 11 / 12, 1 / 22
        half = 1.959964 * np.sqrt(p * (1 - p) / 12 + q * (1 - q) / 22)
        assert (d.ci_low, d.ci_high) == pytest.approx((p - q - half, min(1, p - q + half)), abs=1e-6)
        assert (d.p_value, d.statistic) == (None, None)

    def test_runs_with_their_own_clusters(self):
        rng = np.random.default_rng(7)
        a, b = scores("t", rng.random((30, 1)), np.arange(30) % 6), scores("t", rng.random((24, 1)), np.arange(24) % 8)
        group = Group("none", "x", "y", ("t",))
        (row,) = compare_runs([(run("a", [a], group), run("b", [b], group))], Settings(unpaired=True)).comparisons
        V = [brute([part], [1.0]) for part in (a, b)]
        assert row.se**2 == pytest.approx(sum(V), rel=1e-10)
        assert row.df == pytest.approx(sum(V) ** 2 / (V[0] ** 2 / 5 + V[1] ** 2 / 7), rel=1e-9)
        assert row.n_clusters == 14
