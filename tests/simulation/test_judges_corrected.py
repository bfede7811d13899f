"""Means and differences that labels correct, on part of the grid of `benchmarks/coverage_judges.py`, with fixed seeds.

The whole grid is in docs/methods/coverage-judges.md. Bounds leave 3.5 simulation errors beside the promise.
"""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import difference_of_scores
from harness_noise.extra.labels.correcting import LabelOptions, label_arrays
from support import simulations
from support.slow import rest_slow

AT_RANDOM = LabelOptions(at_random=True)


@pytest.fixture(scope="module")
def simulation():
    return simulations.simulation("coverage_judges")


def missed(R):
    """The largest share of misses that 5% can come to."""
    return 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / R)


@pytest.mark.parametrize(("judge", "m", "size"), rest_slow([
    ("LENIENT", 100, 1), ("GOOD", 100, 1), ("POOR", 100, 1), ("GRADES", 100, 1), ("LENIENT", 300, 10), ("GOOD", 30, 1),
]))  # fmt: skip
def test_means_cover_whatever_the_judge(simulation, judge, m, size):
    R = 120
    cell = simulation.Cell(simulation.MEANS, (getattr(simulation, judge),), 2000, m, size)
    found = simulation.shares(cell, R)
    assert 1 - found.covered <= missed(R)
    assert found.naive < 0.8


@pytest.mark.parametrize("unlike", rest_slow([True, False]))
def test_a_difference_that_is_the_judges_alone_is_called_no_more_often_than_promised(simulation, unlike):
    R = 120
    judges = (simulation.LENIENT, simulation.HARSH if unlike else simulation.LENIENT)
    cell = simulation.Cell(simulation.UNLIKE, judges, 2000, 300, 1, (0.7, 0.7))
    found = simulation.shares(cell, R)
    assert found.rejected <= missed(R)
    assert 1 - found.covered <= missed(R)
    if unlike:
        assert found.naive_rejected > 0.95


def test_near_an_end_the_labels_alone_cover() -> None:
    """Models at .97 to 1, 22 and 50 of 400 labelled: the corrected mean covered 38–73% of them, [0, 1] aside."""
    rng = np.random.default_rng(21)
    for p, m in ((1.0, 22), (0.98, 50), (0.97, 22)):
        covered, few, widths, replications = 0, 0, [], 200
        for _ in range(replications):
            truth = (rng.random(400) < p).astype(float)
            judge = np.where(rng.random(400) < 0.97, truth, 1 - truth)
            labels = np.full(400, np.nan)
            at = rng.permutation(400)[:m]
            labels[at] = truth[at]
            row = hn.estimate_with_labels(judge, labels, at_random=True, range=(0, 1))
            few += "few_labelled_failures" in row.diagnostics
            covered += row.ci_low <= p <= row.ci_high
            widths.append(row.ci_high - row.ci_low)
        assert few / replications >= 0.95
        assert covered / replications >= 0.90
        assert np.mean(widths) < 0.25


def test_few_labels_of_judged_failures_are_no_random_part() -> None:
    """Fewer than 30 labels, with three times the chance for what the judge calls wrong: refused, or 18% too low.

    A random subset of as many is let through as often as |z| > 3 of two sides lets it.
    """
    rng, refused, R = np.random.default_rng(31), {"drawn": 0, "chosen": 0}, 150
    for _ in range(R):
        truth = (rng.random(300) < 0.9).astype(float)
        judge = np.where(rng.random(300) < 0.95, truth, 1 - truth)
        wrong = np.where(judge == 0, 12.0, 1.0)
        for how, chance in (("drawn", None), ("chosen", wrong / wrong.sum())):
            labels = np.full(300, np.nan)
            at = rng.choice(300, 25, replace=False, p=chance)
            labels[at] = truth[at]
            try:
                hn.estimate_with_labels(judge, labels, range=(0, 1))
            except hn.InputError as error:
                refused[how] += "not a random subset" in str(error)
    assert refused["drawn"] / R <= 0.03 + 3 * np.sqrt(0.03 * 0.97 / R)
    assert refused["chosen"] / R >= 0.9


def test_a_difference_by_labels_is_not_said_to_hang_on_few_flips() -> None:
    """Corrected values are influences and no flips, so that the code would stand on every difference."""
    rng, R, covered = np.random.default_rng(32), 60, 0
    for _ in range(R):
        truth = (rng.random((2, 300)) < 0.7).astype(float)
        judge = np.where(rng.random((2, 300)) < 0.9, truth, 1 - truth)
        labels = np.full((2, 300), np.nan)
        at = rng.permutation(300)[:100]
        labels[:, at] = truth[:, at]
        a, b = (
            label_arrays(hn.as_scores(scores[:, None], bounds=(0.0, 1.0)), label, AT_RANDOM, hn.Settings())
            for scores, label in zip(judge, labels, strict=True)
        )
        row = difference_of_scores(a, b, hn.Settings())
        assert "few_flips" not in row.diagnostics
        covered += row.ci_low <= 0 <= row.ci_high
    assert 1 - covered / R <= missed(R)
