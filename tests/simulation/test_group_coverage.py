"""Coverage of the intervals that are not in the grid: groups, tasks as clusters, unpaired runs, bootstrap."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness_noise import estimate, estimate_difference
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.settings import Settings
from support.slow import rest_slow

replications = pytest.mark.parametrize("replications", rest_slow([100, 1000]))


def slack(replications):
    """3.5 standard errors of a coverage of 95%."""
    return 3.5 * math.sqrt(0.95 * 0.05 / replications)


def task(name, values, labels=None, spec=None):
    keys = Questions(tuple(str(i) for i in range(len(values))))
    return Scores(name, "acc", "none", keys, values.astype(float), clusters=labels, cluster_spec=spec)


def hit(row, truth):
    return row.ci_low <= truth <= row.ci_high


@replications
@pytest.mark.parametrize("weighting", ["size", "equal"])
def test_clusters_across_tasks(weighting, replications):
    """Three languages of 25, 25 and 12 questions, the same questions: one run, and a paired difference."""
    rng = np.random.default_rng(1)
    labels = tuple(str(i) for i in range(25))
    group = Group("g", "acc", "none", ("a", "b", "c"), weighting)
    one = both = naive = 0
    for _ in range(replications):
        u = rng.random(25)
        runs = []
        for model in "xy":
            parts = []
            for name, n in (("a", 25), ("b", 25), ("c", 12)):
                parts.append(task(name, rng.random((n, 2)) < u[:n, None], labels[:n], "field"))
            runs.append(Run(model, model, "test", scores=tuple(parts), groups=(group,)))
        row = analyze_run(runs[0], Settings()).estimates[3]
        one += hit(row, 0.5)
        naive += abs(row.mean - 0.5) <= 1.96 * row.se_naive
        both += hit(compare_runs([(runs[0], runs[1])], Settings()).comparisons[3], 0.0)
    assert abs(one / replications - 0.95) < 0.02 + slack(replications)
    assert abs(both / replications - 0.95) < 0.015 + slack(replications)
    assert naive / replications < 0.88


@replications
def test_tasks_as_the_sample(replications):
    rng = np.random.default_rng(2)
    sizes = [12, 30, 20, 8, 25, 15, 40, 10]
    names = tuple(f"t{i}" for i in range(8))
    group = Group("g", "acc", "none", names, "equal")
    hits = 0
    for _ in range(replications):
        parts = [
            task(name, rng.random((n, 1)) < rng.beta(6, 4), (name,) * n, "task")
            for name, n in zip(names, sizes, strict=True)
        ]
        hits += hit(
            analyze_run(Run("m", "r", "test", scores=tuple(parts), groups=(group,)), Settings()).estimates[8], 0.6
        )
    assert abs(hits / replications - 0.95) < 0.015 + slack(replications)


@replications
@pytest.mark.parametrize(("n", "m", "p"), [(15, 60, 0.5), (40, 40, 0.9), (10, 10, 0.8)])
def test_unpaired(n, m, p, replications):
    rng = np.random.default_rng(3)
    hits = sum(
        hit(estimate_difference(rng.random(n) < p, rng.random(m) < p, unpaired=True), 0.0) for _ in range(replications)
    )
    assert 0.93 - slack(replications) < hits / replications < 0.99 + slack(replications)


@replications
@pytest.mark.parametrize(("n", "G"), [(40, None), (60, 6), (60, 12)])
def test_bootstrap_interval(n, G, replications):
    rng = np.random.default_rng(4)
    labels = None if G is None else np.arange(n) % G
    hits = 0
    for _ in range(replications):
        x = rng.exponential(size=n)
        if G is not None:
            x = x + rng.normal(0, 0.5, G)[labels]
        hits += hit(estimate(x, clusters=labels, interval="bootstrap", resamples=500), 1.0)
    assert 0.92 - slack(replications) < hits / replications < 0.98 + slack(replications)
