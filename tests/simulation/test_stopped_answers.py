"""Answers that were repeated until one passed: seen when it is so, never otherwise, and then right on average."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.stats.stopped import stopped_at

pytestmark = pytest.mark.simulation
R = 150


def answers(rng, n, K, rate):
    p = rng.beta(2 * rate, 2 * (1 - rate), n)
    return (rng.random((n, K)) < p[:, None]).astype(float), p


def stopped(x):
    x = x.copy()
    for row in x:
        right = np.flatnonzero(row == 1)
        row[right[0] + 1 if len(right) else len(row) :] = np.nan
    return x


def lost(rng, x, share):
    return np.where(rng.random(x.shape) < share, np.nan, x)


def wrong_answers_lost(rng, x, p):
    return np.where((x == 0) & (rng.random(x.shape) < 0.4), np.nan, x)


def hard_questions_cut(rng, x, p):
    out = x.copy()
    out[(p < 0.4) & (rng.random(len(p)) < 0.5), 1:] = np.nan
    return out


def easy_questions_cut(rng, x, p):
    out = x.copy()
    out[(p > 0.6) & (rng.random(len(p)) < 0.5), 1:] = np.nan
    return out


def last_round_cut(rng, x, p):
    out = x.copy()
    out[len(x) // 2 :, -1] = np.nan
    return out


NULLS = {
    "2% lost": lambda rng, x, p: lost(rng, x, 0.02),
    "30% lost": lambda rng, x, p: lost(rng, x, 0.3),
    "time-outs that lose wrong answers": wrong_answers_lost,
    "a last round that was cut": last_round_cut,
    "hard questions cut": hard_questions_cut,
    "easy questions cut": easy_questions_cut,
}


@pytest.mark.parametrize("name", NULLS)
def test_no_other_gap_is_taken_for_retries(name):
    rng = np.random.default_rng(17)
    alarms = total = 0
    for n, K, rate in ((15, 3, 0.5), (50, 2, 0.8), (50, 5, 0.3), (200, 3, 0.6)):
        for _ in range(R // 3):
            x, p = answers(rng, n, K, rate)
            seen = stopped_at(NULLS[name](rng, x, p))
            alarms += seen is not None and seen.how == "success"
            total += 1
    assert alarms == 0, (alarms, total)


def test_retries_are_seen():
    rng = np.random.default_rng(18)
    for n, K, rate, share, least in (
        (15, 3, 0.6, 0.0, 0.85),
        (50, 2, 0.6, 0.02, 0.9),
        (200, 3, 0.6, 0.02, 0.98),
        (200, 3, 0.9, 0.1, 0.95),
    ):
        seen = [stopped_at(lost(rng, stopped(answers(rng, n, K, rate)[0]), share)) for _ in range(R)]
        assert np.mean([x is not None and x.how == "success" for x in seen]) >= least


def test_first_attempts_cover_and_the_mean_over_answers_does_not():
    rng = np.random.default_rng(19)
    covered, naive = [], []
    for _ in range(R):
        x = stopped(answers(rng, 100, 3, 0.5)[0])
        row = hn.estimate(x)
        assert "stopped_on_success" in row.diagnostics
        covered.append(row.ci_low <= 0.5 <= row.ci_high)
        naive.append(np.nanmean(np.nanmean(x, axis=1)) - 0.5)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / R)
    assert np.mean(naive) > 0.08
