"""Cluster scores are the only place where a clustered variance is made: every pair, group and jackknife reads them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise
from harness_noise.arrays import FloatArray, IntArray
from harness_noise.stats.cluster_variance import (
    Cells,
    cells,
    cluster_scores,
    clustered_variance,
)
from harness_noise.stats.contrast import Design, design

ESTIMATORS: tuple[Any, ...] = ("cr0", "cr1", "cr2", "cr3")
N, T, M = 60, 4, 5


def designs() -> dict[str, Design]:
    rng = np.random.default_rng(3)
    tasks = np.sort(rng.integers(0, T, N))
    labels = rng.integers(0, 9, N)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    weights = (shares / np.bincount(tasks))[tasks]
    return {
        "independent": design(N),
        "clustered": design(N, labels),
        "tasks": design(N, None, tasks, shares),
        "clusters across tasks": design(N, labels, tasks, shares),
        "tasks as the sample": Design(weights, tasks, tasks, T, clustered=True, between_tasks=True),
    }


def residuals(x: FloatArray, plan: Design) -> FloatArray:
    codes: IntArray = plan.strata
    sizes = np.bincount(codes)
    means = np.stack([np.bincount(codes, weights=column) / sizes for column in x.T], axis=1)[codes]
    return means - plan.weights @ x if plan.between_tasks else x - means


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", designs())
def test_scores_give_every_model_and_every_difference_its_variance(name: str, estimator: Any) -> None:
    plan = designs()[name]
    e = residuals(np.random.default_rng(0).normal(size=(N, M)), plan)
    S = cluster_scores(e.T, plan, estimator)
    assert S is not None
    gram = S @ S.T
    for i in range(M):
        alone = clustered_variance(e[:, i], plan, estimator)
        assert alone is not None
        assert gram[i, i] == pytest.approx(alone.value, rel=1e-12)
        for j in range(i):
            both = clustered_variance(e[:, i] - e[:, j], plan, estimator)
            assert both is not None
            assert gram[i, i] + gram[j, j] - 2 * gram[i, j] == pytest.approx(both.value, rel=1e-10)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_difference_with_its_own_clusters_has_the_variance_of_its_design(estimator: Any) -> None:
    rng = np.random.default_rng(1)
    labels, d = rng.integers(0, 8, N), rng.normal(size=N)
    found = clustered_variance(d - d.mean(), design(N, labels), estimator)
    assert found is not None
    shown = np.stack([np.ones(N, dtype=bool), rng.random(N) < 0.5])
    many = cells(design(N, labels), shown)
    e = np.where(shown, d - np.array([[d[rows].mean()] for rows in shown]), 0.0)
    half = clustered_variance(e[1][shown[1]], design(int(shown[1].sum()), labels[shown[1]]), estimator)
    assert half is not None
    assert many.variances(e, estimator) == pytest.approx([found.value, half.value], rel=1e-12)
    assert many.df == pytest.approx([found.df, half.df], rel=1e-12)
    each = clustered_variance(d - d.mean(), design(N), estimator)
    by_hand = Cells(np.ones((1, N)), np.arange(N), np.zeros(N, dtype=np.intp), np.full((1, 1), 1 / N))
    assert each is not None
    assert by_hand.variances((d - d.mean())[None], estimator) == pytest.approx(each.value, rel=1e-12)


def test_a_task_with_one_cluster_has_no_scores() -> None:
    tasks = np.array([0, 0, 1, 1])
    assert cluster_scores(np.ones((2, 4)), design(4, ["a", "b", "c", "c"], tasks, np.array([0.5, 0.5]))) is None
    assert not cells(design(3, ["a", "a", "a"])).identified


def test_no_other_module_knows_what_the_estimators_are() -> None:
    """CR0 to CR3 are told apart in one module, and p, interval and verdict come from one."""
    root = Path(harness_noise.__file__).parent
    told, made = set(), set()
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.Dict)]
        if any(re.search(r"'cr[0-3]'", ast.unparse(node)) for node in compared):
            told.add(path.relative_to(root).as_posix())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        made |= {path.relative_to(root).as_posix() for node in calls if ast.unparse(node.func) == "Difference"}
    assert told <= {"stats/cluster_variance.py", "settings.py"}
    assert made == {"results/rows.py"}
