"""Ranks that models may have, how stable their order is, and what still tells them apart."""

from __future__ import annotations

import itertools
import json
from math import comb
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from scipy import stats

import harness_noise as hn
from harness_noise.cli.commands import cli
from harness_noise.extra.arena.rank_sets import rank_sets, stability
from harness_noise.extra.arena.ranks import passes
from harness_noise.extra.arena.report import summarise
from harness_noise.extra.ranks import from_decisions
from harness_noise.results.schema import json_schema
from harness_noise.stats.contrast import design
from harness_noise.stats.decision import holm
from harness_noise.stats.passk import pass_at_k, pass_curves
from support.commands import runner

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def runs_of(values, clusters=None, task="t"):
    """One run for each column of (n, M) scores, or of (n, M, K) ones."""
    n = len(values)
    questions = hn.Questions(tuple(f"q{i}" for i in range(n)))
    out = []
    for m in range(values.shape[1]):
        part = values[:, m] if values.ndim == 3 else values[:, m, None]
        scores = hn.Scores(
            task,
            "acc",
            "none",
            questions,
            part,
            clusters=clusters,
            cluster_spec=clusters and "c",
            higher_is_better=True,
        )
        out.append(hn.Run(model=f"m{m}", name=f"m{m}", harness="array", scores=(scores,)))
    return out


def leaderboard(seed, n, means):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, 1))
    latent = np.sqrt(0.8) * base + np.sqrt(0.2) * rng.normal(size=(n, len(means)))
    return (stats.norm.cdf(latent) < np.asarray(means)).astype(float)


def test_two_models_are_the_exact_sign_flip_test():
    """With all 2ⁿ signs written out; the sets follow its p-value."""
    rng = np.random.default_rng(1)
    told = []
    for shift in (0.2, 0.6, 1.0):
        d = rng.normal(size=10) + shift
        signs = np.array(list(itertools.product((-1, 1), repeat=10)))
        exact = np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-12)
        found = rank_sets(np.column_stack([d, np.zeros(10)]), 0.95, np.random.default_rng(0), draws=20_000)
        if abs(exact - 0.05) > 0.01:  # but for Monte Carlo error
            assert found.better[0, 1] == (exact < 0.05)
            told.append(bool(found.better[0, 1]))
    assert {True, False} == set(told)


def test_the_sets_follow_from_the_decisions():
    better = np.zeros((4, 4), dtype=bool)
    better[0, [1, 2, 3]] = better[[1, 2], 3] = True
    found = from_decisions(better)
    assert found.low.tolist() == [1, 2, 2, 4]
    assert found.high.tolist() == [1, 3, 3, 4]
    assert found.ties.tolist() == [0, 1, 1, 0]


def test_few_clusters_decide_nothing():
    x = np.column_stack([np.ones(5) + np.arange(5) / 10, np.zeros(5)])
    found = rank_sets(x, 0.95, np.random.default_rng(0))
    assert not found.better.any()  # 2 of 32 signs are as extreme: p = .0625
    x = np.column_stack([np.ones(9) + np.arange(9) / 10, np.zeros(9)])
    assert rank_sets(x, 0.95, np.random.default_rng(0)).better[0, 1]


def test_models_that_answer_alike_are_tied():
    x = leaderboard(0, 200, [0.6, 0.6, 0.8])
    found = rank_sets(np.column_stack([x, x[:, 2]]), 0.95, np.random.default_rng(0))
    assert found.low[3] == found.low[2] == 1
    assert not found.better[2, 3]
    assert not found.better[3, 2]
    same = rank_sets(np.ones((20, 3)), 0.95, np.random.default_rng(0))
    assert same.low.tolist() == [1, 1, 1]
    assert same.high.tolist() == [3, 3, 3]


def test_a_constant_lead_is_seen():
    """Every difference is 1: no variance, and yet no tie."""
    found = rank_sets(np.column_stack([np.ones(30), np.zeros(30)]), 0.95, np.random.default_rng(0))
    assert found.better[0, 1]


@pytest.mark.parametrize("n", [15, 60, 400])
def test_all_sets_are_right_together(n):
    """200 leaderboards of six models, two and two equal: at most 5% wrong, and four simulation errors."""
    means = np.repeat([0.5, 0.7, 0.85], 2)
    best, worst = np.repeat([5, 3, 1], 2), np.repeat([6, 4, 2], 2)
    wrong = 0
    for seed in range(200):
        x = leaderboard((7, n, seed), n, means)
        found = rank_sets(x, 0.95, np.random.default_rng(seed), draws=200)
        wrong += not ((found.low <= best) & (worst <= found.high)).all()
    assert wrong / 200 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


def test_no_wider_than_holm_on_a_real_leaderboard():
    path = DATA / "tables" / "matharena_aime_II.csv"
    if not path.exists():
        pytest.skip("the shared data are not here")
    import pandas as pd

    frame = pd.read_csv(path, index_col=0)
    x = frame.astype(float).groupby([str(name).split(".")[0] for name in frame.index]).mean().to_numpy()
    ours = rank_sets(x, 0.95, np.random.default_rng(0))
    a, b = np.triu_indices(x.shape[1], 1)
    d = x[:, a] - x[:, b]
    with np.errstate(invalid="ignore", divide="ignore"):
        t = d.mean(axis=0) / (d.std(axis=0, ddof=1) / np.sqrt(len(d)))
    told = holm(np.nan_to_num(2 * stats.t.sf(np.abs(t), len(d) - 1), nan=1.0)) < 0.05
    better = np.zeros((x.shape[1],) * 2, dtype=bool)
    better[a, b], better[b, a] = told & (t > 0), told & (t < 0)
    theirs = from_decisions(better)
    assert (ours.high - ours.low).sum() <= 0.92 * (theirs.high - theirs.low).sum()


def test_arena_has_them(tmp_path):
    x = leaderboard(3, 300, [0.8, 0.78, 0.6, 0.3])
    result = hn.arena(runs_of(x), top=2)
    models = {item.model: item for item in result.models}
    assert [models[f"m{m}"].rank for m in range(4)] == [1, 2, 3, 4]
    assert [(models[f"m{m}"].rank_low, models[f"m{m}"].rank_high) for m in (2, 3)] == [(3, 3), (4, 4)]
    assert [models[f"m{m}"].in_top for m in range(4)] == ["yes", "yes", "no", "no"]
    row = result.benchmarks[0]
    assert row.rank_method == "bootstrap"
    assert row.solved_by_all == int(x.all(axis=1).sum())
    assert row.n_top == 2
    assert row.dead_for_top == int((x[:, 0] == x[:, 1]).sum())
    assert row.n_for_top == 300
    assert 0.8 < row.order_tau <= 1
    assert 0.5 < row.same_best <= 1
    out = json.loads(result.to_json())
    jsonschema.validate(out, json_schema())
    text = str(result.to_frame("models").columns.tolist())
    assert "rank_low" in text
    assert hn.arena(runs_of(x)).models[0].in_top is None


def test_questions_that_a_top_model_lacks_separate_nothing():
    x = leaderboard(3, 300, [0.8, 0.78, 0.6])
    x[:20, 1] = np.nan
    board = hn.arena(runs_of(x), top=2)
    row, both = board.benchmarks[0], ~np.isnan(x[:, :2]).any(axis=1)
    assert (row.n_questions, row.n_for_top) == (300, 280)
    assert row.dead_for_top == int((x[both, 0] == x[both, 1]).sum())
    left = 280 - row.dead_for_top
    said = f"score differently on {left} of 280 questions that they all have ({left / 2.8:.0f}%)."
    assert f"The 2 models at the top {said}" in summarise(board).sentences


def test_lower_is_better_turns_the_ranks():
    x = leaderboard(3, 300, [0.8, 0.3])
    runs = runs_of(x)
    from dataclasses import replace

    turned = [replace(run, scores=(replace(run.scores[0], higher_is_better=False),)) for run in runs]
    assert [item.rank for item in hn.arena(turned).models] == [2, 1]
    assert [item.rank_low for item in hn.arena(turned).models] == [2, 1]


def test_missing_questions_send_it_to_holm():
    x = leaderboard(3, 300, [0.8, 0.3, 0.5])
    x[:5, 0] = np.nan
    result = hn.arena(runs_of(x))
    assert result.benchmarks[0].rank_method == "holm"
    assert [item.rank_low for item in result.models] == [1, 3, 2]
    assert result.benchmarks[0].order_tau is None


def test_clusters_widen_the_sets():
    """30 questions each asked ten times are 30 questions."""
    once = np.ones((30, 2))
    once[:8, 1] = once[8:10, 0] = 0  # eight wins and two losses
    x, clusters = np.repeat(once, 10, axis=0), tuple(f"c{i // 10}" for i in range(300))
    alone, clustered = hn.arena(runs_of(x)).models[1], hn.arena(runs_of(x, clusters)).models[1]
    assert (alone.rank_low, alone.ties) == (2, 0)
    assert (clustered.rank_low, clustered.ties) == (1, 1)


def test_stability_of_a_clear_and_an_unclear_order():
    clear = leaderboard(1, 500, [0.2, 0.5, 0.8])
    found = stability(clear, np.ones(500), np.random.default_rng(0))
    assert (found.tau, found.same_best) == (1.0, 1.0)
    equal = leaderboard(1, 500, [0.5] * 4)
    assert stability(equal, np.ones(500), np.random.default_rng(0)).same_best < 0.9
    tied = np.repeat(leaderboard(1, 50, [0.5]), 3, axis=1)
    assert stability(tied, np.ones(50), np.random.default_rng(0)).same_best == pytest.approx(1.0)
    assert np.isnan(stability(np.ones((50, 3)), np.ones(50), np.random.default_rng(0)).tau)


def test_pass_hat_k_is_the_chance_that_all_are_right():
    values = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, np.nan, 0]], dtype=float)
    assert pass_curves(values, [2])[1][:, 0] == pytest.approx([comb(3, 2) / comb(4, 2), 0, 1, 0])
    np.testing.assert_allclose(pass_curves(values, [1])[1][:, 0], pass_at_k(values, 1))
    for k in (1, 2, 3):  # by writing out all choices of k answers
        rows = values[:3, list(itertools.combinations(range(4), k))]
        np.testing.assert_allclose(pass_curves(values[:3], [k])[1][:, 0], rows.all(axis=2).mean(axis=1))
        np.testing.assert_allclose(pass_at_k(values[:3], k), rows.any(axis=2).mean(axis=1))


def test_passes_carry_their_errors():
    rng = np.random.default_rng(2)
    values = (rng.random((120, 1, 4)) < rng.beta(1, 1, 120)[:, None, None]).astype(float)
    clusters = tuple(f"c{i // 4}" for i in range(120))
    model = hn.arena(runs_of(np.concatenate([values, 1 - values], axis=1), clusters)).models[0]
    codes = np.arange(120) // 4
    for k, each in ((2, pass_curves(values[:, 0], [2])[1][:, 0]), (4, values[:, 0].all(axis=1).astype(float))):
        row = hn.estimate(each, clusters=codes)
        assert model.pass_hat_k[k] == pytest.approx(row.mean)
        assert model.pass_hat_k_se[k] == pytest.approx(row.se)
    assert model.pass_at_k_se[1] == pytest.approx(model.se)
    lone = passes(np.array([[1.0, 0.0]]), design(1))
    assert lone["pass_at_k"] == {1: 0.5, 2: 1.0}
    assert lone["pass_at_k_se"] == {}  # one question: no standard error, and no 0


def test_the_command(tmp_path):
    x = leaderboard(3, 120, [0.8, 0.75, 0.4])
    path = tmp_path / "t.csv"
    lines = ["question,model,score", *(f"q{i},m{m},{int(x[i, m])}" for i in range(120) for m in range(3))]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = runner().invoke(cli, ["arena", str(path), "--top", "2", "--details"], env={"COLUMNS": "220"})
    assert found.exit_code == 0, found.exception
    text = " ".join(found.stdout.split())
    assert "Surely among the 2 best:" in text
    whole = runner().invoke(cli, ["arena", str(path), "--top", "2", "--details"], env={"COLUMNS": "220"})
    text = " ".join(whole.stdout.split())
    assert "Surely among the 2 best:" in text
    assert "models at the top score differently on" in text
    out = runner().invoke(cli, ["arena", str(path), "--format", "json"])
    jsonschema.validate(json.loads(out.stdout), json_schema())
