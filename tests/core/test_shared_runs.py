"""Runs of A and B that share their cause: paired by run, by level or by position."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.settings import Settings
from support.notes import noted
from support.slow import rest_slow

SHARED = {"repeats_are": "runs", "runs_shared": True}


def table(seed, n=60, K=4, run=0.3):
    """Two models whose run j has one common effect."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.5, (n, 1)) + rng.normal(0, run, (1, K))
    return [common + rng.normal(0, 0.05, (1, K)) + rng.normal(0, 0.4, (n, K)) for _ in range(2)]


def a_run(model, values, levels=None, name="prompt", task="t"):
    n = len(values)
    factors = None if levels is None else {name: (tuple(levels),) * n}
    keys = Questions(tuple(f"{task}{i}" for i in range(n)))
    return Run(model, model, "test", scores=(Scores(task, "acc", "none", keys, values, factors=factors),))


def test_the_anova_is_that_of_the_table_of_differences():
    """se² = (MS_q + MS_run − MS_res)/(nK) of d_ij, which is the estimate of d as one run of K runs."""
    a, b = table(1)
    d = a - b
    n, K = d.shape
    q, r, m = d.mean(axis=1), d.mean(axis=0), d.mean()
    MS_q, MS_run = K * q.var(ddof=1), n * r.var(ddof=1)
    MS_res = ((d - q[:, None] - r + m) ** 2).sum() / (n - 1) / (K - 1)
    row = hn.estimate_difference(a, b, **SHARED)
    assert row.diff == pytest.approx(m, abs=1e-12)
    assert row.se**2 == pytest.approx((MS_q + MS_run - MS_res) / (n * K), rel=1e-9)
    alone = hn.estimate(d, repeats_are="runs")
    for field in ("se", "df", "se_total", "var_data", "var_prediction"):
        assert getattr(row, field) == pytest.approx(getattr(alone, field), rel=1e-12), field


def test_levels_say_which_run_is_which():
    a, b = table(2)
    order = [2, 0, 3, 1]
    shuffled = a_run("b", b[:, order], [f"p{j}" for j in order])
    row, notes = (lambda found: (found.comparisons[0], noted(found)))(
        compare_runs([(a_run("a", a, ["p0", "p1", "p2", "p3"]), shuffled)], Settings(**SHARED))
    )
    straight = hn.estimate_difference(a, b, **SHARED)
    assert (row.diff, row.se, row.df) == pytest.approx((straight.diff, straight.se, straight.df), rel=1e-12)
    assert any("paired by prompt" in note for note in notes)


@pytest.mark.parametrize("which", [0, 1])
def test_scores_that_never_differ_are_no_copies_where_either_run_says_that_its_answers_do(which):
    rng = np.random.default_rng(3)
    runs = [a_run(model, np.repeat(rng.integers(0, 2, (30, 1)).astype(float), 3, axis=1)) for model in "ab"]
    told = [replace(run.scores[0], answers_differ=i == which) for i, run in enumerate(runs)]
    pair = tuple(replace(run, scores=(part,)) for run, part in zip(runs, told, strict=True))
    row = compare_runs([pair], Settings(**SHARED)).comparisons[0]
    assert {"identical_repeats", "identical_scores_only"} & {*row.diagnostics} == {"identical_scores_only"}


def test_runs_that_only_one_has_are_left_out_and_said():
    a, b = table(3)
    found = compare_runs([(a_run("a", a, "wxyz"), a_run("b", b[:, 1:], "xyz"))], Settings(**SHARED))
    expected = hn.estimate_difference(a[:, 1:], b[:, 1:], **SHARED)
    row = found.comparisons[0]
    assert (row.diff, row.se, row.repeats_a) == (pytest.approx(expected.diff), pytest.approx(expected.se), 3)
    assert any("1 that only one of them has are left out" in note for note in noted(found))


def test_without_levels_position_counts_and_is_said():
    a, b = table(4)
    found = compare_runs([(a_run("a", a), a_run("b", b, "wxyz"))], Settings(**SHARED))
    assert any("by position" in note for note in noted(found))
    with pytest.raises(hn.InputError, match=r"which run of A \(4\) is which of B \(3\)"):
        hn.estimate_difference(a, b[:, 1:], **SHARED)


def test_a_level_that_changes_within_a_run_is_no_level():
    a, b = table(5, n=3)
    rows = (("p", "q", "r", "s"), ("p", "q", "r", "s"), ("q", "p", "r", "s"))
    one = a_run("a", a, "pqrs")
    other = Run("b", "b", "test", scores=(Scores(
        "t", "acc", "none", one.scores[0].questions, b, factors={"prompt": rows}),))  # fmt: skip
    notes = noted(compare_runs([(one, other)], Settings(**SHARED)))
    assert any("by position" in note for note in notes)


def test_missing_answers_leave_their_run_out_of_the_question():
    a, b = table(6)
    a[0, 1] = b[0, 2] = np.nan
    row = hn.estimate_difference(a, b, **SHARED)
    alone = hn.estimate(a - b, repeats_are="runs")
    assert (row.diff, row.se) == pytest.approx((alone.mean, alone.se), rel=1e-12)
    assert row.diff == pytest.approx(row.mean_a - row.mean_b, abs=1e-12)
    b[0, :] = np.nan
    b[0, 1] = 1.0  # the only run of B is the one that A lacks
    with pytest.raises(hn.InputError, match="no run that both models answered"):
        hn.estimate_difference(a, b, **SHARED)


def test_fewer_than_two_common_runs_are_refused():
    a, b = table(7)
    with pytest.raises(hn.InputError, match="at least two runs that A and B have in common, and there is one"):
        compare_runs([(a_run("a", a, "wxyz"), a_run("b", b, "zabc"))], Settings(**SHARED))


def test_groups_pair_the_runs_of_each_task():
    tasks = {"s": table(8, n=40), "t": table(9, n=25)}

    def run(model, side):
        parts = tuple(a_run(model, pair[side], task=task).scores[0] for task, pair in tasks.items())
        return Run(model, model, "test", scores=parts, groups=(Group("g", "acc", "none", ("s", "t")),))

    rows = {row.task: row for row in compare_runs([(run("a", 0), run("b", 1))], Settings(**SHARED)).comparisons}
    d = np.concatenate([a - b for a, b in tasks.values()])
    assert rows["g"].diff == pytest.approx(d.mean(), abs=1e-12)
    assert rows["g"].se < compare_runs([(run("a", 0), run("b", 1))], Settings(repeats_are="runs")).comparisons[2].se


@pytest.mark.simulation
@pytest.mark.parametrize("R", rest_slow([200, 700]))
def test_coverage(R):
    """Paired they keep the level; taken as unrelated runs they cover nearly always, with several times the variance."""
    hit, V = np.zeros(2), np.zeros(2)
    for seed in range(R):
        a, b = table(1000 + seed, K=5)
        for k, choices in enumerate((SHARED, {"repeats_are": "runs"})):
            row = hn.estimate_difference(a, b, **choices)
            hit[k] += row.ci_low <= 0 <= row.ci_high
            V[k] += row.se**2
    assert abs(hit[0] / R - 0.95) <= 0.01 + 3 * (0.05 * 0.95 / R) ** 0.5
    assert hit[1] / R > 0.99
    assert V[1] > 3.5 * V[0]


def test_needs_runs_and_pairs():
    with pytest.raises(hn.InputError, match="needs `repeats_are='runs'`"):
        Settings(runs_shared=True)
    with pytest.raises(hn.InputError, match="leave it or `unpaired` out"):
        Settings(**SHARED, unpaired=True)
    with pytest.raises(hn.InputError, match="`runs_shared=True` is about a difference"):
        hn.estimate(table(1)[0], **SHARED)
