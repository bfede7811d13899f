"""How many questions and answers a comparison needs: the sample-size formula and its inverses.

Source: Miller (2024), §5 (eqs. 9–10), with σ²/K for each of the two runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances per question of a contrast (n times those of the mean)."""

    omega2: float
    """Data noise, ω²."""
    sigma2_a: float
    """Prediction noise of one answer of A, σ²_A."""
    sigma2_b: float | None = None
    """… and of B; None where the contrast is a single run."""

    def at(self, repeats: float) -> float:
        """ω² + σ²_A/K + σ²_B/K; an estimate of ω² below 0 counts as 0."""
        return max(0.0, self.omega2) + (self.sigma2_a + (self.sigma2_b or 0.0)) / repeats


def _z(p: float) -> float:
    return float(special.ndtri(p))


def required_questions(variance: float, effect: float, alpha: float, power: float) -> float:
    """n = (z_{α/2} + z_β)² · variance / δ² for a two-sided test [Miller, eq. 9]; not rounded."""
    return (_z(1 - alpha / 2) + _z(power)) ** 2 * variance / effect**2


def detectable_effect(variance: float, n: float, alpha: float, power: float) -> float:
    """δ = (z_{α/2} + z_β) √(variance/n) [Miller, eq. 10]."""
    return (_z(1 - alpha / 2) + _z(power)) * math.sqrt(variance / n)


def achieved_power(variance: float, n: float, effect: float, alpha: float) -> float:
    """Φ(|δ|/√(variance/n) − z_{α/2}); the chance of significance in the wrong direction is left out."""
    if variance == 0:
        return 1.0
    return float(special.ndtr(abs(effect) / math.sqrt(variance / n) - _z(1 - alpha / 2)))


def best_repeats(v: Variances, cost_question: float, cost_answer: float, k_max: int) -> int:
    """The K ≤ k_max that makes the variance smallest for a budget, the same for every run.

    Var ∝ (ω² + Σσ²/K)(c_q + M·c_a·K) for M runs, whose real minimum is
    √(σ²/ω² · c_q/c_a) for one run and √((σ²_A + σ²_B)/ω² · c_q/(2c_a)) for two.
    With ω² ≤ 0 only answers count: as many as allowed.
    """
    if v.omega2 <= 0:
        return k_max
    runs = 1 if v.sigma2_b is None else 2
    scale = v.at(1) * (cost_question + runs * cost_answer)  # so that ties are ties, and the smaller K wins
    return min(
        range(1, k_max + 1), key=lambda K: (round(v.at(K) * (cost_question + runs * cost_answer * K) / scale, 12), K)
    )


def best_unequal_repeats(
    omega2: float, sigma2: Sequence[float], cost_question: float, cost_answer: float
) -> list[float]:
    """K_r = (σ_r/ω) √(c_q/c_a) for each run, not rounded; inf where ω² ≤ 0."""
    if omega2 <= 0:
        return [math.inf] * len(sigma2)
    return [math.sqrt(s2 / omega2 * cost_question / cost_answer) for s2 in sigma2]
