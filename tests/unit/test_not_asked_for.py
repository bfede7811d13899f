"""A metric that nobody asked for is in JSON, and changes nothing of what was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.report.terminal import text
from harness_noise.results.diagnostics import NOT_ASKED


def run(name: str, rate: float, *, more: bool) -> hn.Run:
    rng = np.random.default_rng(len(name))
    questions = hn.Questions(tuple(f"q{i}" for i in range(80)), "id")
    values = (rng.random((80, 1)) < rate).astype(float)
    part = hn.Scores("t", "acc", "none", questions, values, bounds=(0.0, 1.0))
    other = replace(part, metric="acc_prob", values=rng.random((80, 1)), diagnostics=(NOT_ASKED,))
    return hn.Run(name, name, "array", scores=(part, other) if more else (part,))


def test_it_leaves_the_adjusted_p_of_the_others_alone() -> None:
    row, other = hn.compare(run("new", 0.62, more=True), run("older", 0.5, more=True)).comparisons
    (alone,) = hn.compare(run("new", 0.62, more=False), run("older", 0.5, more=False)).comparisons
    assert row.p_adjusted == row.p_value == alone.p_adjusted
    assert (row.verdict, row._would_change) == (alone.verdict, alone._would_change)
    assert other.p_adjusted == other.p_value


def test_the_first_screen_is_that_of_one_row() -> None:
    new, old = (run(name, rate, more=True) for name, rate in (("new", 0.62), ("older", 0.5)))
    for result, figure in (
        (hn.compare(new, old), "smallest detectable difference"),
        (hn.analyze(new), "standard error"),
    ):
        short, whole = (text(result, details=details) for details in (False, True))
        assert figure in short
        assert "acc_prob" not in short
        assert "acc_prob" in whole


@pytest.mark.parametrize("choices", [{"against": True}, {"floor": 0.3}, {"against": True, "pooled": True}])
def test_a_gate_shows_it_and_does_not_judge_by_it(choices: dict[str, Any]) -> None:
    def judged(*, more: bool) -> hn.Gate:
        others = {"against": run("older", 0.5, more=more)} if "against" in choices else {}
        return hn.gate(run("new", 0.62, more=more), **choices | others)

    both, alone = judged(more=True), judged(more=False)
    assert both.outcome == alone.outcome
    assert [row for row in both.rows if row.decides] == [row for row in alone.rows if row.decides]
    assert [row.metric for row in both.rows if not row.decides][-1] == "acc_prob"
    assert any("the harness does not report it: t acc_prob" in note.as_text() for note in both.notes)
