"""What a gate promises: at most 2.5% false alarms, whatever it is held against; and what its cures give back."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.stats.baselines import RunSpread
from support.slow import rest_slow

pytestmark = pytest.mark.simulation


def share_of_alarms(rng: np.random.Generator, R: int, times: float, reps: int, *, no_loss: bool) -> float:
    """Share of alarms where nothing is lost (no-loss: of passes at a loss on the margin).

    The variance of a run's mean is 1 by its answers and `times` beside them; 400 questions, one answer each.
    """
    n, alarms = 400, 0
    for _ in range(reps):
        answers = rng.normal(0, np.sqrt(n), (n, R + 1)) + rng.normal(0, np.sqrt(times), R + 1)
        a, b = answers[:, 0], answers[:, 1:]
        residual = b - b.mean(axis=1, keepdims=True)
        residual -= residual.mean(axis=0)
        within = (residual**2).sum() / (n * (n - 1) * (R - 1))
        d = a - b.mean(axis=1)
        spread = RunSpread(R, float(b.mean(axis=0).var(ddof=1)), float(within), 1 + 1 / R)
        p = spread.tail(float(d.mean()), float(d.var(ddof=1) / n), n - 1)
        alarms += (1 - p if no_loss else p) < 0.025
    return alarms / reps


@pytest.mark.parametrize("no_loss", [False, True])
@pytest.mark.parametrize(("R", "times"), rest_slow([(2, 9.0), (3, 9.0), (2, 0.0), (5, 31.0), (8, 9.0)], quick=2))
def test_few_baseline_runs_keep_the_level(R: int, times: float, no_loss: bool) -> None:
    """Plug-in with Satterthwaite has 6.1% with R = 2 and 3.7% with R = 3."""
    reps = 2000
    found = share_of_alarms(np.random.default_rng([R, int(times), no_loss]), R, times, reps, no_loss=no_loss)
    assert found <= 0.029 + 3 * np.sqrt(0.029 * 0.971 / reps)


def test_ten_rows_on_the_margin_pass_no_loss_no_more_often_than_one() -> None:
    """Intersection and union [Berger]: unadjusted rows pass together in at most 2.5%; alike at most in all of it."""
    rng, reps, passes = np.random.default_rng(3), 60, 0
    for _ in range(reps):
        shared = rng.normal(-0.05, 1, (60, 1)) + 0.05 * rng.normal(size=(60, 10))
        sides = [
            hn.Run(name, name, "array", scores=tuple(
                hn.as_scores(sign * shared[:, t], task=f"t{t}", higher_is_better=True) for t in range(10)))
            for name, sign in (("a", 1.0), ("b", 0.0))
        ]  # fmt: skip
        passes += hn.gate(*sides, rule="no-loss", margin=0.05).passed
    assert passes / reps <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / reps)


@pytest.mark.parametrize("K_B", rest_slow([1, 8], quick=1))
def test_a_published_number_on_the_same_questions_is_covered(K_B: int) -> None:
    """p(1 − p) bounds what is not known of the number: its interval covers at least what it says."""
    rng, reps, n, covered = np.random.default_rng(K_B), 250, 60, 0
    p, q = rng.beta(0.9, 0.6, n), rng.beta(0.7, 0.7, n)
    for _ in range(reps):
        a = (rng.random((n, 6)) < p[:, None]).astype(float)
        number = float((rng.random((n, K_B)) < q[:, None]).mean())
        side = hn.Run("a", "a", "array", scores=(hn.as_scores(a, task="t", higher_is_better=True),))
        row = hn.compare(side, number, answers_b=K_B).rows[0]
        covered += row.ci_low <= p.mean() - q.mean() <= row.ci_high
    assert covered / reps >= 0.946 - 3 * np.sqrt(0.05 * 0.95 / reps)


@pytest.mark.parametrize("test", ["sign", "permutation", "wild"])
def test_other_tests_keep_the_level_of_the_gate(test: str) -> None:
    """The gate reads the p of the test that was asked for."""
    rng, reps, alarms = np.random.default_rng(11), 120, 0
    for _ in range(reps):
        a, b = (rng.random((2, 60)) < 0.6).astype(float)
        sides = [
            hn.Run(name, name, "array", scores=(hn.as_scores(x, task="t", higher_is_better=True),))
            for name, x in (("a", a), ("b", b))
        ]
        alarms += hn.gate(*sides, test=test, resamples=200).failed
    assert alarms / reps <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / reps)


def test_each_question_by_itself_keeps_the_level() -> None:
    """Fisher and Holm over 40 flaky tests of an unchanged suite."""
    rng, reps, alarms = np.random.default_rng(5), 150, 0
    rates = rng.beta(2, 1, 40)
    for _ in range(reps):
        sides = [
            hn.Run(name, name, "array", scores=(hn.as_scores(
                (rng.random((40, 10)) < rates[:, None]).astype(float), task="t", higher_is_better=True),))
            for name in ("a", "b")
        ]  # fmt: skip
        alarms += hn.gate(*sides, each=True).failed
    assert alarms / reps <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / reps)
