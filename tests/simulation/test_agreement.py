"""Variance, bootstrap and sign test say the same once wins + losses > 20 (Wang 2025, §3.6)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness_noise import estimate_difference
from harness_noise.stats.contrast import design
from harness_noise.stats.resampling import bootstrap
from support.slow import rest_slow


def _pair(wins, losses, ties):
    a = np.repeat([1.0, 0.0, 1.0], [wins, losses, ties])
    return a, np.repeat([0.0, 1.0, 1.0], [wins, losses, ties])


@pytest.mark.parametrize("n", rest_slow([200, 1000]))
@pytest.mark.parametrize("discordant", [24, 50, 100])
def test_three_methods_agree(n, discordant):
    """|z| from 0 to 2.5: the p-values differ by less than 0.06, and by less than 0.02 where p < 0.1."""
    for wins in range(discordant // 2, discordant + 1):
        losses = discordant - wins
        z = (wins - losses) / math.sqrt(discordant)
        if z > 2.5:
            break
        a, b = _pair(wins, losses, n - discordant)
        p = {test: estimate_difference(a, b, test=test).p_value for test in ("t", "sign", "permutation")}
        values = bootstrap(a - b, design(n), 10_000, np.random.default_rng(wins)).values
        # discrete distributions against continuous ones: half of what is observed counts (mid-p)
        below = np.mean(values < -1e-9) + np.mean(np.abs(values) <= 1e-9) / 2
        p["bootstrap"] = 2 * min(below, 1 - below)
        step = math.comb(discordant, wins) / 2**discordant
        p["sign"] -= step if wins > losses else 0.0
        p["permutation"] -= step if wins > losses else 0.0
        spread = max(p.values()) - min(p.values())
        assert spread < (0.02 if p["t"] < 0.1 else 0.06), (n, discordant, wins, p)


def test_variances_agree():
    """n Var: (q_A + q_B − (q_A − q_B)²) of the paper's eq. 3, the sample's, and the bootstrap's."""
    for wins, losses, ties in ((15, 9, 176), (40, 25, 135), (30, 30, 940)):
        a, b = _pair(wins, losses, ties)
        n = len(a)
        qa, qb = wins / n, losses / n
        paper = (qa + qb - (qa - qb) ** 2) / n
        assert estimate_difference(a, b, se="cr0").se ** 2 == pytest.approx(paper, rel=1e-12)
        found = bootstrap(a - b, design(n), 40_000, np.random.default_rng(0)).variance
        assert found == pytest.approx(paper, rel=0.03)
        sign = (wins + losses) / n**2  # the sign test's, which ignores (q_A − q_B)²
        assert sign >= paper
        assert sign == pytest.approx(paper, rel=0.05)
