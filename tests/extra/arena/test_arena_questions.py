"""What an arena says of a benchmark and of its questions: noise, size, difficulty, suspects."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.arena.benchmark import kendall_tau, size_in_name, suspects
from harness_noise.extra.arena.build import arena
from harness_noise.extra.sizes import beta_variance
from harness_noise.settings import Settings
from support.boards import board, values_of, with_values


# Benchmarks
def test_the_noise_of_a_benchmark_is_over_its_close_pairs() -> None:
    runs = board(M=7, spread=0.07)
    found = arena(runs, Settings())
    row, pairs = found.benchmarks[0], found.to_frame("pairs")
    close = pairs[pairs["diff"].abs() < 5 * pairs.se_total]
    assert 0 < row.n_close_pairs == len(close) < len(pairs) == row.n_pairs
    for name in ("se_total", "se_data", "se_prediction", "correlation"):
        spread = getattr(row, name)
        assert spread.median == pytest.approx(close[name].median())
        assert (spread.min, spread.max) == (close[name].min(), close[name].max())
    disagreement = (close.wins_a + close.wins_b) / close.n_questions
    assert row.disagreement is not None
    assert row.disagreement.median == pytest.approx(disagreement.median())
    significant = pairs.verdict != "not separable"
    assert row.smallest_significant_diff == pairs["diff"].abs()[significant].min()
    assert row.largest_insignificant_diff == pairs["diff"].abs()[~significant].max()


def test_the_beta_theory_holds_where_it_is_true() -> None:
    """Questions from Beta(p, 1 − p), answers independent given the question: the ratios are about 1."""
    rng = np.random.default_rng(0)
    n, p = 4000, 0.4
    u = rng.beta(p, 1 - p, size=n)
    keys = tuple(map(str, range(n)))
    runs = []
    for m in range(30):
        values = (rng.uniform(size=(n, 1)) < u[:, None]).astype(float)
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=(Scores("t", "acc", "none", Questions(keys), values),)))
    row = arena(runs, Settings()).benchmarks[0]
    assert row.rule_of_thumb is not None
    assert row.rule_of_thumb.median == pytest.approx(1, abs=0.03)
    assert row.beta_theory is not None
    assert row.beta_theory.median > row.rule_of_thumb.median  # some questions happened to be solved by none
    assert row.solved_by_none is not None
    assert 0 < row.solved_by_none < n
    assert beta_variance(np.array([0.4]), 1.0)[0] == pytest.approx(0.24)


def test_signal_to_noise_comes_from_names_with_sizes() -> None:
    names = ["llama-3-8b-instruct", "llama-3-70b-instruct", "Qwen2.5-7B", "Mixtral-8x7B", "claude"]
    found = arena(board(names=names, spread=0.1), Settings())
    row = found.benchmarks[0]
    assert [(step.small, step.large) for step in row.steps] == [(names[0], names[1])]
    pair = found.boards[0].pairs.find(names[0], names[1])
    assert pair.diff is not None
    assert row.steps[0].diff == -pair.diff
    assert row.steps[0].ratio == pytest.approx(-pair.diff / (pair.se_total or 0))
    assert row.signal_to_noise is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-3-8b", ("llama-3-*", 8)),
        ("Qwen2.5-0.5B-Instruct", ("Qwen2.5-*-Instruct", 0.5)),
        ("Mixtral-8x7B", ("Mixtral-*", 56)),
        ("pythia-160m", ("pythia-*", 0.16)),
        ("gpt-4", None),
        ("merge-7b-13b", None),
        ("3base", None),
    ],
)
def test_sizes_in_names(name: str, expected: tuple[str, float] | None) -> None:
    assert size_in_name(name) == expected


# Questions
@pytest.mark.parametrize("levels", [2, 4, 1000])
def test_tau_is_scipys_of_the_item_against_the_rest(levels: int) -> None:
    from scipy.stats import kendalltau

    rng = np.random.default_rng(0)
    scores = rng.integers(0, levels, (60, 45)).astype(float)
    scores[rng.uniform(size=scores.shape) < 0.2] = np.nan
    scores[0] = 1.0
    scores[:, 44] = np.nan
    scores[1, 44] = 1.0  # one question only: no rest to compare with
    for i, tau in enumerate(kendall_tau(scores)[0]):
        rest = np.full(45, np.nan)
        others = np.delete(scores, i, axis=0)
        rest[:44] = np.nanmean(others[:, :44], axis=0)
        has = ~np.isnan(scores[i]) & ~np.isnan(rest)
        assert tau == pytest.approx(kendalltau(scores[i][has], np.round(rest[has], 12)).statistic, nan_ok=True)


@pytest.mark.parametrize(("M", "ties"), [(8, 2), (7, 7), (6, 3)])
def test_the_chance_of_a_low_tau_is_that_of_all_orders(M: int, ties: int) -> None:
    """Against every order of the models, whose means differ; never too small where it counts."""
    from itertools import permutations

    rng = np.random.default_rng(M)
    item = np.sort(rng.integers(0, ties, M)).astype(float)
    others = np.arange(M) + 10.0
    taus, chances = [], []
    for order in set(permutations(item)):
        tau, low = kendall_tau(np.stack([order, others]))
        taus.append(tau[0])
        chances.append(low[0])
    found = np.array(sorted(zip(taus, chances, strict=True)))
    exact = np.searchsorted(found[:, 0], found[:, 0] + 1e-9) / len(found)
    tail = exact < 0.1
    assert (found[tail, 1] > 0.85 * exact[tail]).all()
    assert np.abs(found[:, 1] - exact).max() < 0.12


@pytest.mark.parametrize(("M", "K"), [(8, 1), (40, 1), (20, 4)])
def test_noise_alone_averages_a_tau_of_0_and_hardly_a_suspect(M: int, K: int) -> None:
    rng = np.random.default_rng(M)
    taus, suspected = [], []
    for _ in range(60):
        scores = rng.binomial(K, rng.uniform(0.2, 0.8, (100, 1)), (100, M)) / K
        tau, low = kendall_tau(scores)
        taus.append(np.nanmean(tau))
        suspected.append(suspects(tau, low).sum())
    assert abs(np.mean(taus)) < 4 * np.std(taus) / 60**0.5
    assert abs(np.mean(taus)) < 0.01
    assert np.mean(suspected) < 1.2
    with_itself = np.mean([np.corrcoef(row, scores.mean(axis=0))[0, 1] for row in scores if row.std() > 0])
    assert with_itself > 0.05  # what the item brings along when it is left in


def test_a_wrong_reference_answer_is_a_suspect_among_enough_models() -> None:
    rng = np.random.default_rng(0)
    skill, ease = np.linspace(-2, 2, 40), rng.normal(0, 1, 300)
    scores = (rng.random((300, 40)) < 1 / (1 + np.exp(-(skill - ease[:, None])))).astype(float)
    scores[:5] = 1 - scores[:5]
    found = suspects(*kendall_tau(scores))
    assert found[:5].sum() >= 3
    assert found[5:].sum() == 0
    assert not suspects(*kendall_tau(scores[:, ::13])).any()  # four models cannot tell


def test_questions_tell_difficulty_solvers_and_suspects() -> None:
    runs = board(M=16, K=2, spread=0.05)
    odd = []
    for m, run in enumerate(runs):
        values = values_of(run).copy()
        values[0], values[1], values[2] = 0.0, float(m == 3), float(m < 8)  # nobody, one, the worst half
        odd.append(with_values(run, values))
    rows = list(arena(odd, Settings()).questions)
    assert [row.n_solved for row in rows[:3]] == [0, 1, 8]
    assert [row.difficulty for row in rows[:3]] == pytest.approx([1.0, 15 / 16, 8 / 16])
    assert rows[0].tau is None
    assert rows[0].suspect is rows[0].p_tau is None
    assert rows[2].suspect
    assert rows[2].p_tau < 1 / len(rows)
    assert arena(odd, Settings()).benchmarks[0].solved_by_none == sum(row.n_solved == 0 for row in rows)


def test_difficulty_is_not_made_up_for_metrics_outside_the_unit_interval() -> None:
    found = arena([with_values(run, values_of(run) * 50 - 3) for run in board()], Settings())
    row = next(iter(found.questions))
    assert (row.difficulty, row.n_solved) == (None, None)
    assert row.tau is not None
    assert (found.benchmarks[0].beta_theory, found.benchmarks[0].solved_by_none) == (None, None)
    assert found.models[0].pass_at_k is None
