"""One decision for all: a row of compare, a pair of an arena and a profile cannot say different things."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from harness_noise import as_scores
from harness_noise.analysis.comparison import compare_runs
from harness_noise.arrays import rows_of
from harness_noise.data.scores import Run
from harness_noise.extra.arena.build import arena
from harness_noise.extra.numbers.counts import compare_counts, fisher_exact
from harness_noise.settings import Settings
from harness_noise.stats import decision
from harness_noise.stats.decision import Differences, apply_adjustment, decide
from harness_noise.stats.intervals import ExtendedSample


def drawn(P: int = 40) -> Differences:
    rng = np.random.default_rng(0)
    diff = rng.normal(size=P)
    zero = rng.random(P) < 0.2
    diff[zero & (rng.random(P) < 0.5)] = 0.0
    variance = np.where(zero, 0.0, rng.gamma(2.0, 0.2, P))
    variance[:3] = np.nan
    zero[:3] = False
    far = ExtendedSample(np.where(rng.random(P) < 0.3, diff, np.nan), np.full(P, 1.0), np.full(P, 9.0))
    return Differences(
        diff, variance, rng.uniform(3, 60, P), zero, rng.random(P),
        lambda level: decision.Limits(diff - level, diff + level), far,
    )  # fmt: skip


def test_many_differences_are_decided_as_each_alone() -> None:
    of = drawn()
    whole = decide(of, Settings(level=0.9, margin=0.5))
    for i in range(len(of.diff)):
        at = slice(i, i + 1)
        alone = Differences(
            of.diff[at], of.variance[at], of.df[at], of.zero[at], of.p_zero[at],
            lambda level, at=at: decision.Limits(of.diff[at] - level, of.diff[at] + level),  # type: ignore[misc]
            rows_of(of.far, np.array([i])) if of.far is not None else None,
        )  # fmt: skip
        found = decide(alone, Settings(level=0.9, margin=0.5))
        for field in fields(found):
            assert getattr(found, field.name)[0] == pytest.approx(getattr(whole, field.name)[i], nan_ok=True), field


def test_what_is_not_identified_is_not_decided() -> None:
    found = decide(drawn(), Settings(margin=10.0))
    assert np.isnan(np.stack([found.ci_low, found.p_value, found.p, found.statistic, found.mde])[:, :3]).all()
    assert (found.interval[:3] == "none").all()
    assert not found.separable[:3].any()
    assert not found.equivalent[:3].any()


def test_verdicts_follow_the_adjusted_p() -> None:
    found = decide(drawn(), Settings())
    verdicts = apply_adjustment(found, drawn().diff > 0, Settings())
    by_p = verdicts.p_adjusted < 0.05
    known = ~np.isnan(verdicts.p_adjusted) & (found.interval == "t")
    assert ((verdicts.codes != decision.SAME) == by_p)[known].all()
    assert (verdicts.lost_to_adjustment == (found.separable & ~by_p))[known].all()
    assert verdicts.lost_to_adjustment.any()


def test_a_limit_on_the_boundary_neither_excludes_it_nor_lies_within() -> None:
    ends = decision.Limits(np.array([0.0, -0.5, -0.2, -0.5]), np.array([0.4, 0.0, 0.5, 0.4]))
    assert not ends.exclude()[:2].any()
    assert ends.within(0.5).tolist() == [True, False, False, False]


def test_an_interval_without_an_end_is_none_in_the_arena_as_in_compare() -> None:
    """With eight questions no null is rejected at 99.9%, and the far limit alone is no interval."""
    a = np.full(8, 0.5)
    b = a.copy()
    b[0] = 0.3
    runs = [Run(name, name, "array", scores=(as_scores(x, task="t"),)) for name, x in (("a", a), ("b", b))]
    chosen = Settings(test="wild", level=0.999, margin=0.05)
    (ours,), (theirs,) = arena(runs, chosen).pairs, compare_runs([(runs[0], runs[1])], chosen).comparisons
    assert "few_flips" in ours.diagnostics
    for row in (ours, theirs):
        assert (row.ci_low, row.ci_high, row.interval) == (None, None, "none")


def test_counts_are_decided_by_fishers_test() -> None:
    row = compare_counts((74, 100), (66, 100), ("A", "B"), Settings(margin=0.3))
    assert (row.p_value, row.verdict) == (fisher_exact(74, 100, 66, 100), "equivalent within 0.3")
    assert (row.se, row.df, row.mde, row.p_sign) == (None, None, None, None)
    row = compare_counts((90, 100), (60, 100), ("A", "B"), Settings())
    assert (row.verdict, row.interval, row.test) == ("A better", "agresti-caffo", "fisher")
    assert compare_counts((5, 5), (5, 5), ("A", "B"), Settings()).verdict == "not separable"


@pytest.mark.parametrize("interval", ["bootstrap", "bootstrap-t"])
def test_p_and_interval_are_of_one_test(interval: str) -> None:
    """Where no test is named beside a resampled interval: p < .05 exactly where the interval leaves out 0."""
    seen = set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        a, b = rng.lognormal(0.15 * (seed % 3), 1, (2, 40))
        runs = [
            Run(model=name, name=name, harness="", scores=(as_scores(x[:, None], unit="$", metric="cost"),))
            for name, x in (("a", a), ("b", b))
        ]
        ((row,), (sides,)) = (
            (found := compare_runs([(runs[0], runs[1])], Settings(interval=interval, resamples=400))).comparisons,
            found.one_sided,
        )
        assert (row.test, row.interval) == (interval, interval)
        assert (row.p_value < 0.05) == (not row.ci_low <= 0 <= row.ci_high) == (row.verdict != "not separable")
        assert 2 * min(sides.below_low, sides.above_low) == pytest.approx(row.p_value)
        seen.add(row.verdict == "not separable")
    assert seen == {True, False}
