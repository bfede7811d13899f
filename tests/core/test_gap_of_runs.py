"""How far two single runs of one model differ by its own randomness: `gap_of_runs`."""

import numpy as np
import pytest
from scipy import stats

import harness_noise as hn
from support.slow import rest_slow

R = 2000


def test_it_is_the_repeatability_limit():
    rng = np.random.default_rng(1)
    x = rng.random((30, 4)) < rng.random((30, 1))
    row = hn.estimate(x)
    var = x.var(axis=1, ddof=1)
    df = var.sum() ** 2 / (var**2 / 3).sum()
    assert row.gap_of_runs == pytest.approx(stats.t.ppf(0.975, df) * np.sqrt(2 * var.sum()) / 30)
    wide = hn.estimate(x, level=0.8).gap_of_runs
    assert wide == pytest.approx(stats.t.ppf(0.9, df) * np.sqrt(2 * var.sum()) / 30)
    assert hn.estimate(x, np.arange(30) // 3).gap_of_runs == pytest.approx(row.gap_of_runs)  # not about questions
    scaled = hn.estimate(100.0 * x, range=(0, 100)).gap_of_runs
    assert scaled == pytest.approx(100 * row.gap_of_runs)


def test_questions_with_many_answers_count_in_the_degrees_of_freedom():
    """Σ s²_i weighs every question alike: three with two answers among 200 with 40 leave thousands of them."""
    rng = np.random.default_rng(3)
    x = (rng.random((203, 40)) < 0.5).astype(float)
    x[:3, 2:] = np.nan
    x[:3, :2] = [0.0, 1.0]
    row = hn.estimate(x)
    count, var = (~np.isnan(x)).sum(axis=1), np.nanvar(x, axis=1, ddof=1)
    df = var.sum() ** 2 / (var**2 / (count - 1)).sum()
    assert df > 2000
    assert row.gap_of_runs == pytest.approx(stats.t.ppf(0.975, df) * np.sqrt(2 * var.sum()) / 203)


@pytest.mark.parametrize("scores", [np.eye(20)[:, :1], np.tile(np.arange(20)[:, None] % 2, 3)])
def test_one_answer_or_equal_answers_have_none(scores):
    assert hn.estimate(scores).gap_of_runs is None


def test_a_gap_as_wide_as_the_range_says_nothing():
    assert hn.estimate(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])).gap_of_runs is None


def test_repeats_that_move_together_have_none(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.random((200, 4)) < np.array([0.3, 0.5, 0.7, 0.9])
    lines = [f"q{i},{j},{int(x[i, j])}" for i in range(200) for j in range(4)]
    (tmp_path / "a.csv").write_text("question,repeat,score\n" + "\n".join(lines) + "\n")
    (row,) = hn.analyze(tmp_path / "a.csv").estimates
    assert "shared_repeat_noise" in row.diagnostics
    assert row.gap_of_runs is None


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("n", "K", "shape"),
    rest_slow([(20, 3, (0.3, 0.3)), (10, 2, (1, 1)), (20, 2, (8, 1)), (50, 5, (8, 1)), (200, 10, (1, 1))], 2),
)
def test_new_runs_differ_by_less_in_95_percent(n, K, shape):
    rng, inside = np.random.default_rng([n, K]), []
    for _ in range(R):
        p = rng.beta(*shape, n)
        gap = hn.estimate(rng.random((n, K)) < p[:, None]).gap_of_runs
        a, b = (rng.random((2, n)) < p).mean(axis=1)
        inside += [] if gap is None else [abs(a - b) <= gap + 1e-9]
    assert np.mean(inside) >= 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / R)
