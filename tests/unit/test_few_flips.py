"""Few flips: what the extended sample is, where it counts, and that arena and compare agree on it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from harness_noise import estimate_difference
from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.extra.arena.build import arena
from harness_noise.settings import Estimator, Settings
from harness_noise.stats.cluster_variance import Cells, cells, clustered_variance
from harness_noise.stats.contrast import Design, design
from harness_noise.stats.intervals import (
    ExtendedSample,
    Extension,
    critical,
    effective_flips,
    level_sums,
    t_limits,
)
from harness_noise.stats.moments import mean_variance
from harness_noise.stats.pairs import extended_samples
from support.same_rows import assert_same_row


def extended(d: np.ndarray, plan: Design, estimator: Estimator = "cr2") -> ExtendedSample:
    """What the far limits of these differences come from, which are few."""
    far = extended_samples(d[None, :], plan, mean_variance(d, plan, estimator), estimator)
    assert np.isfinite(far.mean).all()
    return far


def flipped(n: int, wins: int, losses: int = 0) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.zeros(n), np.zeros(n)
    a[:wins], b[wins : wins + losses] = 1.0, 1.0
    return a, b


def test_effective_flips_count_equal_ones() -> None:
    assert effective_flips(np.array([1.0, -1.0, 0.0, 1.0])) == 3
    assert effective_flips(np.array([[2e-9] * 5 + [0.0] * 9, [3e9] * 7 + [0.0] * 7])) == pytest.approx([5, 7])
    assert np.isnan(effective_flips(np.zeros(4)))
    d = np.random.default_rng(0).normal(size=200_000)
    assert effective_flips(d) / len(d) == pytest.approx(1 / 3, rel=0.02)


@pytest.mark.parametrize("estimator", ["cr0", "cr1", "cr2", "cr3"])
@pytest.mark.parametrize("sizes", [(1,) * 40, (3,) * 40, (1, 5, 2, 8) * 10])
def test_it_is_the_sample_with_two_clusters_added(estimator: Estimator, sizes: tuple[int, ...]) -> None:
    """By matrix algebra on a design that has the two clusters, every question copied so that sizes are whole."""
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    d = np.where(np.isin(labels, (3, 8, 21)), rng.integers(1, 4, len(labels)), 0) * np.where(labels == 8, -1.0, 1.0)
    far = extended(d, design(len(d), labels), estimator)
    sums = np.bincount(labels, weights=d)
    mean_size = len(d) / len(sizes)
    top = np.abs(sums - d.mean() * np.array(sizes)).max()
    all_sums = np.array([*sums, top, -top])
    all_sizes = np.array([*sizes, mean_size, mean_size])
    n = all_sizes.sum()
    mean = all_sums.sum() / n
    kept = 1 - all_sizes / n
    e = all_sums - all_sizes * mean
    power = {"cr2": 1, "cr3": 2}.get(estimator, 0)
    V = (e**2 / kept**power).sum() / n**2 * (len(all_sizes) / (len(all_sizes) - 1) if estimator == "cr1" else 1)
    P = np.diag(all_sizes / kept) - np.outer(all_sizes / np.sqrt(kept), all_sizes / np.sqrt(kept)) / n
    df = np.trace(P) ** 2 / np.trace(P @ P)
    assert (far.mean[0], far.variance[0], far.df[0]) == pytest.approx((mean, V, df), rel=1e-12)
    G, own = len(sizes), np.array([sizes, sizes], dtype=float)  # of several designs at once
    codes, tasks = np.arange(G), np.zeros(G, dtype=np.intp)
    many = Extension(Cells(own, codes, tasks, np.full((2, 1), 1 / len(d))), estimator)(np.stack([sums, sums]))
    for found in zip(many.mean, many.variance, many.df, strict=True):
        assert found == pytest.approx((mean, V, df), rel=1e-12)


def test_unclustered_it_is_two_questions_more() -> None:
    a, b = flipped(500, 5, 1)
    row = estimate_difference(a, b)
    more = np.array([*(a - b), 1 + row.diff, -1 - row.diff])  # type: ignore[operator]
    low, _ = stats.t.interval(0.95, 499, row.diff, row.se)
    _, high = stats.t.interval(0.95, 501, more.mean(), more.std(ddof=1) / np.sqrt(502))
    assert (row.ci_low, row.ci_high) == pytest.approx((low, high), rel=1e-12)
    assert "few_flips" in row.diagnostics
    turned = estimate_difference(b, a)
    assert (turned.ci_low, turned.ci_high) == pytest.approx((-high, -low), rel=1e-12)


@pytest.mark.parametrize(("n", "wins", "few"), [(400, 60, False), (400, 59, True), (100, 25, False), (100, 24, True)])
def test_it_ends_at_sixty_flips_and_at_a_quarter(n: int, wins: int, few: bool) -> None:
    row = estimate_difference(*flipped(n, wins - 4, 4))
    assert ("few_flips" in row.diagnostics) is few
    half = stats.t.ppf(0.975, n - 1) * row.se
    assert row.ci_low == row.diff - half
    assert (row.ci_high == row.diff + half) is not few


def test_elsewhere_the_interval_is_scipys_to_the_last_digit() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        a, b = rng.normal(size=(2, 60))
        row = estimate_difference(a, b)
        assert (row.ci_low, row.ci_high) == (
            row.diff - stats.t.ppf(0.975, 59) * row.se, row.diff + stats.t.ppf(0.975, 59) * row.se,
        )  # fmt: skip
        assert "few_flips" not in row.diagnostics


def test_one_win_in_500_is_not_equivalent_within_three_of_them() -> None:
    a, b = flipped(500, 1)
    assert estimate_difference(a, b, margin=0.006).verdict == "not separable"
    assert estimate_difference(a, b, margin=0.02).verdict == "equivalent within 0.02"


@pytest.mark.parametrize("test", ["t", "sign", "permutation", "bootstrap"])
def test_no_test_has_a_shorter_far_limit(test: Any) -> None:
    a, b = flipped(300, 6)
    row = estimate_difference(a, b, test=test, resamples=2000)
    expected = estimate_difference(a, b)
    assert row.ci_high is not None
    assert expected.ci_high is not None
    assert row.ci_high >= expected.ci_high
    assert row.interval == ("bootstrap" if test == "bootstrap" else "t")


def test_crossed_clusters_have_a_far_limit_with_the_degrees_of_freedom_of_both_ways() -> None:
    """The flips lie in one template: two templates added make 11 degrees of freedom, where there are 9 of both ways."""
    template, language = np.arange(240) // 24, np.arange(240) % 24
    a = ((template == 3) & (language < 20)).astype(float)
    row = estimate_difference(a, np.zeros(240), crossed=(template, language))
    far = extended(a, design(240, template))
    assert "few_flips" in row.diagnostics
    assert (far.df[0], row.df) == (pytest.approx(11), pytest.approx(9))
    assert far.variance[0] > row.se**2
    assert row.ci_high == pytest.approx(far.mean[0] + critical(0.95, 9.0) * np.sqrt(far.variance[0]))


@pytest.mark.parametrize("rounded", [0.0, 2.8e-17, -2.8e-17])
def test_a_difference_of_zero_is_far_from_both_limits_however_it_was_summed(rounded: float) -> None:
    far = ExtendedSample(np.array([0.0]), np.array([0.04]), np.array([9.0]))
    estimate = np.array([rounded])
    ends = t_limits(estimate, np.array([0.1]), np.array([9.0]), 0.95).widened_to(estimate, far, 0.95)
    reach = float(critical(0.95, 9.0)) * 0.2
    assert (ends.low[0], ends.high[0]) == (pytest.approx(-reach), pytest.approx(reach))


def test_runs_that_differ_are_in_the_far_limit_too() -> None:
    rng = np.random.default_rng(1)
    a = np.zeros((200, 4))
    a[:6] = 1.0
    b = np.zeros((200, 4))
    b[6:8, rng.integers(0, 4, 2)] = 1.0
    answers, runs = (estimate_difference(a, b, repeats_are=kind) for kind in ("answers", "runs"))
    for row in (answers, runs):
        assert "few_flips" in row.diagnostics
    assert (runs.ci_high, runs.ci_low) != (answers.ci_high, answers.ci_low)
    assert runs.ci_high - runs.diff > runs.diff - runs.ci_low  # type: ignore[operator]


SWE_BENCH = (231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1)
"""Questions of SWE-bench Verified by repository."""


def test_the_size_of_a_cluster_is_no_flip() -> None:
    """A third of the questions are won, in every repository alike: what is uneven is their number."""
    rng = np.random.default_rng(628)
    labels = np.repeat(np.arange(12), SWE_BENCH)
    b = (rng.random(500) < 0.02).astype(float)
    a = (rng.random(500) < 0.65).astype(float)
    row = estimate_difference(a, b, clusters=labels)
    assert "few_flips" not in row.diagnostics
    half = stats.t.ppf(0.975, row.df) * row.se  # type: ignore[operator]
    assert row.ci_high == row.diff + half  # type: ignore[operator]


def test_flips_in_clusters_of_unequal_size_are_few() -> None:
    """All flips in two of the repositories: the far limit is some per cent wider than t's, not three times as far."""
    labels = np.repeat(np.arange(12), SWE_BENCH)
    d = np.zeros(500)
    d[[240, 250, 260, 310, 320]] = 1.0
    row = estimate_difference(d, np.zeros(500), clusters=labels)
    assert "few_flips" in row.diagnostics
    low, high = row.diff - row.ci_low, row.ci_high - row.diff  # type: ignore[operator]
    assert 1.0 - 1e-12 <= high / low < 1.2  # but for the last digit of a difference


def test_level_sums_of_clusters_of_one_size_are_their_sums() -> None:
    rng = np.random.default_rng(2)
    S = rng.normal(1.0, 2.0, size=(3, 20))
    mean = S.mean(axis=1)
    assert level_sums(S - mean[:, None], mean, np.full((1, 20), 0.3)) == pytest.approx(S, rel=1e-12)


@pytest.mark.parametrize("truth", [0.0, 0.1, 0.5])
def test_independent_questions_have_a_third_of_the_clusters_whatever_their_sizes(truth: float) -> None:
    """Clusters of 1 to 400 questions count like equal ones: G/3 and more, the farther the mean is from 0."""
    rng = np.random.default_rng(3)
    sizes = np.tile([1.0, 2, 5, 20, 400], 400)
    sums = sizes * truth + np.sqrt(sizes) * rng.normal(size=(50, 2000))
    mean = sums.sum(axis=1) / sizes.sum()
    e = sums - mean[:, None] * sizes
    spread = sizes * (1 - sizes / sizes.sum())
    n_f = effective_flips(level_sums(e, mean * sizes.mean(), spread)).mean() / 2000
    assert n_f == pytest.approx(1 / 3, rel=0.02) if truth == 0 else n_f > 0.32


def test_no_limit_lies_beyond_the_range() -> None:
    """Three questions, all won or nearly: t's own limit is beyond 1, and no difference of scores can be."""
    a, b = np.array([1.0, 1.0, 0.8]), np.zeros(3)
    row = estimate_difference(a, b)
    assert row.ci_high == 1.0
    assert estimate_difference(b, a).ci_low == -1.0
    assert estimate_difference(100 * a, b, range=(0, 100)).ci_high == 100.0
    assert estimate_difference(a, b, unpaired=True).ci_high == 1.0
    free = estimate_difference(5 * a, b)
    assert free.ci_high == pytest.approx(free.diff + stats.t.ppf(0.975, 2) * free.se)  # type: ignore[operator]
    for test in ("bootstrap", "wild"):
        assert abs(estimate_difference(a, b, test=test, resamples=200).ci_high or 0) <= 1.0  # type: ignore[arg-type]


def test_a_group_of_one_task_has_the_tasks_extension() -> None:
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(30), 4)
    d = np.where(labels < 3, rng.integers(0, 2, 120), 0).astype(float)
    d[0] = 1.0
    one = extended(d, design(120, labels))
    copies = design(240, np.tile(labels, 2), np.repeat([0, 1], 120), np.array([1.0, 0.0]))
    other = extended(np.concatenate([d, rng.normal(size=120)]), copies)
    assert (other.mean[0], other.variance[0]) == pytest.approx((one.mean[0], one.variance[0]), rel=1e-12)


def test_the_mean_of_an_extended_group_shrinks_by_its_clusters() -> None:
    d = np.zeros(90)
    d[[2, 40, 41]] = 1.0
    plan = design(90, strata=np.repeat([0, 1, 2], [20, 30, 40]), stratum_weights=np.array([0.5, 0.3, 0.2]))
    far = extended(d, plan)
    assert far.mean[0] == pytest.approx(float(plan.weights @ d) * 90 / 92)
    e = d - np.array([d[:20].mean(), d[20:50].mean(), d[50:].mean()])[plan.strata]
    plain = clustered_variance(e, plan)
    assert plain is not None
    top = np.abs(plan.weights * (d - plan.weights @ d)).max()
    assert far.variance[0] == pytest.approx(plain.value + 2 * top**2, rel=0.08)


# --- arena and compare -------------------------------------------------------------------------------------------


def close_runs(
    M: int, n: int, K: int, kind: str, G: int | None, missing: float, tasks: int = 1, spec: str = "c",
    group: Group | None = None,
) -> list[Run]:  # fmt: skip
    """Models that differ on few questions."""
    rng = np.random.default_rng(M * n + K)
    base = [(rng.random(n) < 0.6).astype(float) for _ in range(tasks)]
    runs = []
    for m in range(M):
        scores = []
        for t in range(tasks):
            values = np.repeat(base[t][:, None], K, axis=1)
            at = rng.choice(n, 3 + m, replace=False)
            values[at] = rng.random((len(at), K)) if kind == "grades" else (rng.random((len(at), K)) < 0.5)
            if missing:
                values[rng.random(n) < missing] = np.nan
            labels = None
            if spec == "task":
                labels = (f"t{t}",) * n
            elif G is not None:
                labels = tuple(f"c{(i * i + i) % G}" for i in range(n))
            scores.append(
                Scores(f"t{t}", "acc", "none", Questions(tuple(f"{t} {i}" for i in range(n))), values, clusters=labels,
                       cluster_spec=None if labels is None else spec, higher_is_better=True)
            )  # fmt: skip
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=tuple(scores), groups=(group,) if group else ()))
    return runs


def assert_same(runs: list[Run], choices: Settings) -> int:
    """Compare the last benchmark both ways; returns how many of its pairs have few flips."""
    few = 0
    for ours, (a, b) in zip(arena(runs, choices).boards[-1].pairs, combinations(runs, 2), strict=True):
        theirs = compare_runs([(a, b)], choices).comparisons[-1]
        assert ours.diagnostics == theirs.diagnostics
        assert_same_row(ours, theirs, 1e-11)
        few += "few_flips" in ours.diagnostics
    return few


@pytest.mark.parametrize("se", ["cr0", "cr1", "cr2"])
@pytest.mark.parametrize(("kind", "K"), [("binary", 1), ("binary", 4), ("grades", 2)])
@pytest.mark.parametrize(("G", "missing"), [(None, 0.0), (60, 0.0), (None, 0.1), (60, 0.1)])
def test_arena_has_the_far_limits_of_compare(se: Any, kind: str, K: int, G: int | None, missing: float) -> None:
    runs = close_runs(4, 120, K, kind, G, missing)
    assert assert_same(runs, Settings(se=se, margin=0.05, adjust="none")) > 0


@pytest.mark.parametrize("weights", [None, (0.5, 0.3, 0.2)])
@pytest.mark.parametrize(("K", "missing", "G"), [(1, 0.0, None), (3, 0.0, None), (1, 0.1, None), (1, 0.0, 200)])
def test_arenas_groups_have_the_far_limits_of_compare(weights: Any, K: int, missing: float, G: int | None) -> None:
    group = Group("all", "acc", "none", ("t0", "t1", "t2"), "size", weights=weights)
    runs = close_runs(3, 60, K, "binary", G, missing, tasks=3, group=group)
    assert assert_same(runs, Settings(margin=0.05, adjust="none")) > 0


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_arena_and_compare_agree_where_clusters_are_unequal(tasks: int, missing: float) -> None:
    """Some pairs of close models have few flips, those of a weak and a strong one have not."""
    rng = np.random.default_rng(12)
    labels = tuple(f"r{i}" for i in np.repeat(np.arange(12), SWE_BENCH))
    group = Group("all", "acc", "none", ("t0", "t1"), "equal", weights=(0.7, 0.3)) if tasks > 1 else None
    base, runs = rng.random(500) < 0.5, []
    for m in range(6):
        scores = []
        for t in range(tasks):
            values = np.where(rng.random(500) < (0.01, 0.6)[m % 2], rng.random(500) < m / 5, base).astype(float)
            values[rng.random(500) < missing] = np.nan
            questions = Questions(tuple(f"{t} {i}" for i in range(500)))
            scores.append(
                Scores(f"t{t}", "acc", "none", questions, values[:, None], clusters=labels, cluster_spec="repo")
            )
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=tuple(scores), groups=(group,) if group else ()))
    assert 0 < assert_same(runs, Settings(margin=0.05, adjust="none")) < 15


def test_tasks_as_the_sample_have_far_limits_too() -> None:
    group = Group("all", "acc", "none", tuple(f"t{t}" for t in range(24)), "equal")
    runs = close_runs(2, 10, 1, "binary", None, 0.0, tasks=24, spec="task", group=group)
    quiet = [
        Scores(item.task, "acc", "none", item.questions, runs[0].scores[i].values if i > 2 else item.values,
               clusters=item.clusters, cluster_spec="task")
        for i, item in enumerate(runs[1].scores)
    ]  # fmt: skip
    runs[1] = Run("m1", "r1", "array", scores=tuple(quiet), groups=(group,))
    assert assert_same(runs, Settings(adjust="none")) == 1


def test_clusters_of_unequal_size_are_levelled_by_the_variance_of_their_sums() -> None:
    """A cluster's deviation has the variance n_c (1 − n_c/n) under working independence; each is brought to one."""
    labels = np.repeat(np.arange(5), (1, 2, 3, 4, 10))
    d = np.random.default_rng(3).integers(-1, 2, 20).astype(float)
    sizes, sums = np.bincount(labels), np.bincount(labels, weights=d)
    spread = sizes * (1 - sizes / 20)
    expected = (sums - d.mean() * sizes) * np.sqrt(spread.mean() / spread) + d.sum() / 5
    extension = Extension(cells(design(20, labels)), "cr2")
    assert extension.level_sums(sums[None, :])[0] * 20 == pytest.approx(expected, rel=1e-12)
