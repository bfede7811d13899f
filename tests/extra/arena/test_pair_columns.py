"""All pairs of many models at once, by matrix products, have the numbers that the questions of each pair give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness_noise.arrays import IntArray, columns_of
from harness_noise.extra.arena import columns as engine
from harness_noise.extra.arena.columns import Table, pair_columns
from harness_noise.stats.contrast import QuestionStats, design

ESTIMATORS: tuple[Any, ...] = ("cr0", "cr1", "cr2", "cr3")
N, T, M = 60, 4, 5


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clustered_groups_are_not_gone_through_pair_by_pair(
    estimator: Any, between: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(T), N // T)
    mean = rng.normal(size=(N, M))
    plan = design(N, codes if between else rng.integers(0, 9, N), codes, np.array([0.4, 0.3, 0.2, 0.1]))
    plan = replace(plan, between_tasks=between)
    table = Table(QuestionStats(mean.T.copy(), np.full((M, N), np.nan), np.ones((M, N), dtype=np.intp)), plan)
    a, b = (item.astype(np.intp) for item in np.triu_indices(M, 1))
    gone_through: list[int] = []
    from_questions = engine._from_questions

    def counted(work: Any, rows: IntArray) -> None:
        gone_through.extend(rows)
        from_questions(work, rows)

    monkeypatch.setattr(engine, "_from_questions", counted)
    found = pair_columns(table, a, b, estimator)
    assert len(gone_through) < len(a) / 4  # those whose flips are few
    monkeypatch.setattr(engine, "_from_products", lambda work: np.arange(len(a)))
    expected = pair_columns(table, a, b, estimator)
    for part in ("of", "sides"):
        for name, column in columns_of(getattr(expected, part)).items():
            assert getattr(getattr(found, part), name) == pytest.approx(column, rel=1e-11, nan_ok=True), name
    for name in ("signs_a", "signs_b"):
        assert (getattr(found.leads, name) == getattr(expected.leads, name)).all()
    assert all((found.flags[code] == has).all() for code, has in expected.flags.items())
