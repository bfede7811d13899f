"""Agreement of several judges of the same answers.

Agreement beyond chance is Gwet's AC1 [Gwet], which keeps its meaning where nearly all verdicts are alike, as Cohen's
kappa does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IntArray
from ...stats.cluster_variance import clustered_variance
from ...stats.contrast import Design

MOST_CATEGORIES = 20
"""More different verdicts than these are not categories: two of them are rarely equal."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of judges on the same answers, with standard errors that are clustered as the questions are."""

    raw: float
    """Chance that two judges give one answer the same verdict."""
    raw_se: float | None
    ac1: float | None
    """Gwet's AC1: `raw` beyond chance. None if all verdicts are the same or there are too many different ones."""
    ac1_se: float | None


def agreement(verdicts: FloatArray, questions: IntArray, plan: Design) -> Agreement:
    """Return `Agreement` of judges on A answers: raw share, AC1 (None unless few categories), SEs, or None [Gwet].

    p_a is the share of agreeing pairs of judges, p_e = Σ_q π_q (1 − π_q)/(Q − 1) that of raters who guess on the
    hard answers, AC1 = (p_a − p_e)/(1 − p_e) [Gwet]. Its variance is that of its linear part,
    which for independent answers is Gwet's own, by the kernel.

    Args:
        verdicts: (A, J) NaN where a judge gave none; each answer has at least two.
        questions: (A,) number 0 … n−1 of the question of each answer.
        plan: the n questions, with their clusters.
    """
    values = np.unique(verdicts[~np.isnan(verdicts)])
    raters = (~np.isnan(verdicts)).sum(axis=1).astype(np.float64)
    counts = np.array([(verdicts == value).sum(axis=1) for value in values], dtype=np.float64)
    of_question = np.bincount(questions).astype(np.float64)

    def by_question(of_answers: FloatArray) -> FloatArray:
        return np.bincount(questions, weights=of_answers) / of_question

    def se(linear: FloatArray) -> float | None:
        variance = clustered_variance(linear - linear.mean(), plan)
        return None if variance is None else float(np.sqrt(max(0.0, variance.value)))

    agree = by_question((counts * (counts - 1)).sum(axis=0) / (raters * (raters - 1)))
    p_a, Q = float(agree.mean()), len(values)
    if not 2 <= Q <= MOST_CATEGORIES:
        return Agreement(p_a, se(agree), None, None)
    shares = np.array([by_question(row / raters) for row in counts])
    pi = shares.mean(axis=1)
    p_e = float((pi * (1 - pi)).sum()) / (Q - 1)
    chance = ((1 - 2 * pi) @ shares) / (Q - 1)
    linear = agree / (1 - p_e) - (1 - p_a) / (1 - p_e) ** 2 * chance
    return Agreement(p_a, se(agree), (p_a - p_e) / (1 - p_e), se(linear))
