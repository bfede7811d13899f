"""CR0 to CR3 and Satterthwaite's degrees of freedom as R's clubSandwich 0.5.8 prints them.

    library(clubSandwich)
    i <- 1:24
    cluster <- rep(c("a", "b", "c", "d", "e", "f"), times = c(9, 5, 4, 3, 2, 1))
    y <- round(sin(1.7 * i) + 0.4 * match(cluster, letters) %% 3, 3)
    fit <- lm(y ~ 1)
    for (type in c("CR0", "CR1", "CR2", "CR3")) {
      found <- coef_test(fit, vcov = type, cluster = cluster, test = "Satterthwaite")
      cat(type, format(c(found$SE, found$df_Satt), digits = 12), "\\n")
    }
    task <- rep(c("s", "t"), times = c(14, 10))
    shared <- c(rep(c("a", "b", "c", "d"), times = c(6, 4, 3, 1)), rep(c("a", "b", "c", "e"), times = c(4, 3, 2, 1)))
    fit <- lm(y ~ 0 + task)
    for (type in c("CR2", "CR3")) for (w in list(c(0.5, 0.5), c(14, 10) / 24)) {
      found <- linear_contrast(fit, vcov = type, cluster = shared, contrasts = matrix(w, 1), test = "Satterthwaite")
      cat(format(c(found$Est, found$SE, found$df), digits = 12), "\\n")
    }

Tolerance: the twelve digits that it prints. The degrees of freedom here are those of CR2, for all four: with them CR3
was chosen by simulated coverage.
"""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise import estimate, estimate_difference
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.settings import Settings

CLUSTER = np.repeat(list("abcdef"), [9, 5, 4, 3, 2, 1])
SHARED = np.concatenate([np.repeat(list("abcd"), [6, 4, 3, 1]), np.repeat(list("abce"), [4, 3, 2, 1])])
Y = np.round(np.sin(1.7 * np.arange(1, 25)) + 0.4 * (np.array(["abcdef".index(c) + 1 for c in CLUSTER]) % 3), 3)


@pytest.mark.parametrize(
    ("se", "expected"),
    [("cr0", 0.104131351537), ("cr1", 0.11407018036), ("cr2", 0.112913871464), ("cr3", 0.122787839376)],
)
def test_a_mean(se, expected):
    assert estimate(Y, clusters=CLUSTER, se=se).se == pytest.approx(expected, rel=1e-10)
    b = np.cos(np.arange(24.0))
    assert estimate_difference(Y + b, b, clusters=CLUSTER, se=se).se == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("se", ["cr0", "cr1", "cr2", "cr3"])
def test_degrees_of_freedom(se):
    assert estimate(Y, clusters=CLUSTER, se=se).df == pytest.approx(3.368551509837, rel=1e-10)


@pytest.mark.parametrize(
    ("weighting", "mean", "cr2", "cr3", "df"),
    [
        ("equal", 0.458435714286, 0.194480254603, 0.231939724339, 2.370885078991),
        ("size", 0.470708333333, 0.183054740970, 0.216839815072, 2.344789671468),
    ],
)
def test_a_group_whose_tasks_share_clusters(weighting, mean, cr2, cr3, df):
    parts = []
    for name, rows in (("s", slice(0, 14)), ("t", slice(14, 24))):
        keys = Questions(tuple(f"{name}{i}" for i in range(len(Y[rows]))))
        named = tuple(SHARED[rows])
        parts.append(Scores(name, "score", "none", keys, Y[rows, None], clusters=named, cluster_spec="field"))
    group = Group("g", "score", "none", ("s", "t"), weighting)
    run = Run("m", "r", "test", scores=tuple(parts), groups=(group,))
    for name, se in (("cr2", cr2), ("cr3", cr3)):
        row = analyze_run(run, Settings(se=name)).estimates[2]
        assert (row.mean, row.se, row.df) == pytest.approx((mean, se, df), rel=1e-10)
