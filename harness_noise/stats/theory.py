"""What the noise of a comparison is before anything was measured, from the accuracy alone.

All are variances per question of A − B with one answer each, for two models of accuracy p.
"""

from __future__ import annotations

import numpy as np

from .arrays import FloatArray
from .planning import Variances


def rule_of_thumb(p: float) -> Variances:
    """Var[A − B] ≈ p(1 − p) in total [Wang 2025, §4.1.2].

    It does not say how much of that is prediction noise, so all of it is counted as data noise:
    more answers per question are never promised to help.
    """
    return Variances(p * (1 - p), 0.0, 0.0)


def beta_variance(p: FloatArray, solved: float = 1.0) -> FloatArray:
    """s · (p/s)(1 − p/s) with s the share `solved` of the questions that any model solves [Wang 2025, §4.1.3]."""
    return p * (1 - p / solved) if solved > 0 else np.zeros_like(p)


def beta_theory(p: float, solved: float = 1.0) -> Variances:
    """Question difficulties ~ Beta(p, 1 − p), the same for both models: all noise is prediction noise.

    E[u(1 − u)] = p(1 − p)/2 for each model. With only a share `solved` of the questions solvable
    the rest adds none: `beta_variance` in total.
    """
    each = float(beta_variance(np.array(p), solved)) / 2
    return Variances(0.0, each, each)


def independence_bound(p: float) -> Variances:
    """2p(1 − p): the two models' successes fall on unrelated questions; all of it data noise."""
    return Variances(2 * p * (1 - p), 0.0, 0.0)
