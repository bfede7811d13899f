"""Answers, questions, calls of a judge and labels of people that a plan weighs, by what they cost and gain.

[Särndal] Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, ch. 6
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ...stats.tolerances import SLACK
from ..sizes import Units, Variances, beta_variance


def best_repeats(v: Variances, cost_question: float, cost_answer: float, k_max: int) -> int:
    """Return the answers per question K ≤ k_max that minimise the variance for a given budget.

    Var ∝ (ω² + Σσ²/K)(c_q + M·c_a·K) for M runs, whose real minimum is
    √(σ²/ω² · c_q/c_a) for one run and √((σ²_A + σ²_B)/ω² · c_q/(2c_a)) for two.
    """
    scale = v.at(1) * (cost_question + v.runs * cost_answer)  # so that ties are ties, and the smaller K wins
    return min(
        range(1, k_max + 1), key=lambda K: (round(v.at(K) * (cost_question + v.runs * cost_answer * K) / scale, 12), K)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """All that the next money buys: another question, another answer to each, or another judge call for each answer."""

    variance: float
    """The judge's own variance on one answer, for one call. For two runs it is the sum."""
    question: float
    """Share by which the variance of the mean falls with more questions that cost 1% more in all."""
    answer: float
    """With one more answer to every question, for each 1% that this adds to the cost."""
    judge: float
    """With a second judge call for every answer, likewise."""
    best_repeats: int
    """Answers per question that, with `best_calls`, make the variance smallest for a budget."""
    best_calls: int
    """Judge calls per answer."""


def spending(v: Variances, judge: float, costs: tuple[float, float, float], repeats: int, k_max: int) -> Spending:
    """Return the drops in variance by 1% more cost for questions, answers or judge calls, and the best K and calls.

    Var ∝ (ω² + Σσ²_m/K + Σσ²_j/(K·J)) (c_q + M·K·(c_a + J·c_j)) for M runs, with σ² = σ²_m + σ²_j of one answer that
    is graded once.

    Args:
        v: σ² of each run holds the judge's part.
        judge: Σσ²_j over the runs; what exceeds Σσ² does not count.
        costs: of a question, of an answer, and of a judge call.
        repeats: K.
        k_max: the most answers per question, and calls per answer, that are considered.
    """
    judge = min(judge, v.sigma2)

    def variance(K: int, J: int) -> float:
        return max(0.0, v.omega2) + (v.sigma2 - judge + judge / J) / K

    def cost(K: int, J: int) -> float:
        return costs[0] + v.runs * K * (costs[1] + J * costs[2])

    def gain(K: int, J: int) -> float:
        fall = 1 - variance(K, J) / variance(repeats, 1)
        return 0.01 * fall / (cost(K, J) / cost(repeats, 1) - 1)

    counts = range(1, k_max + 1)
    scale = variance(1, 1) * cost(1, 1)  # so that ties are ties, and the smaller numbers win
    best = min(product(counts, counts), key=lambda KJ: (round(variance(*KJ) * cost(*KJ) / scale, 12), KJ))
    return Spending(
        variance=judge,
        question=0.01,
        answer=gain(repeats + 1, 1),
        judge=gain(repeats, 2),
        best_repeats=best[0],
        best_calls=best[1],
    )


def repeats_by_task(prediction: Sequence[float], sizes: Sequence[int], answers: int, k_max: int) -> list[int]:
    """Return answers per question K_t of each task that minimise Σ v_t/K_t within `answers` in all.

    One more goes where it takes most off the variance for its price, as long as any fits. What it takes off falls with
    K, so this is the best there is until what is left is too little for the task that should have it.

    Args:
        prediction: (T,) prediction variance v_t of the mean over all tasks that is each task's, at one answer.
        sizes: (T,) questions n_t.
        answers: of all tasks together.
        k_max: the most to one question.
    """
    K, left = [1] * len(sizes), answers - sum(sizes)
    while True:
        gains = [
            v / (k * (k + 1) * n) if k < k_max and n <= left else 0.0
            for v, k, n in zip(prediction, K, sizes, strict=True)
        ]
        best = max(range(len(sizes)), key=gains.__getitem__)
        if gains[best] <= 0:
            return K
        K[best] += 1
        left -= sizes[best]


def labelled_variance(variance: float, r2: float, n_labels: float, n_judged: int) -> float:
    """Return the variance of a mean of N judged questions of which m have human labels: σ²[(1 − R²)(1/m − 1/N) + 1/N].

    The labels' variance σ² is left over all N, and of what the judge does not predict, 1 − R², only m are seen
    [Särndal].
    """
    return variance * ((1 - r2) * (1 / n_labels - 1 / n_judged) + 1 / n_judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """The number of judged questions that people must label."""

    n_judged: int
    """Questions that the judge scores."""
    r2: float
    """The share of the labels' variance that the judge predicts."""
    variance: float
    """The labels' variance per question that the plan starts from. For two runs it is that of their difference."""
    n_labels: int | None
    """Questions to label so that the corrected mean reaches the goal, null if labels of all `n_judged` do not."""
    n_labels_alone: int
    """Questions to label without a judge."""
    se: float
    """Standard error of the corrected mean with `n_labels`, or with labels of all questions if that is null."""


def labels_needed(
    variance: float, r2: float, n_judged: int, units: Units, enough: Callable[[float, float], bool]
) -> int | None:
    """Return the fewest of `n_judged` questions to label such that `enough(variance, n)`. None: all are too few.

    Args:
        variance: of the labels, per question, with the clustering in it.
        r2: the share of it that the judge predicts.
        n_judged: questions that have the judge's score.
        units: what is drawn.
        enough: whether this variance of the mean, with so many labels, is small enough; it is for all larger numbers.
    """

    def at(count: int) -> int:
        return min(units.questions(count), n_judged)

    def enough_at(count: int) -> bool:
        return enough(labelled_variance(variance, r2, at(count), n_judged), at(count))

    counts = range(2, math.ceil(n_judged / units.size - SLACK) + 1)
    first = bisect_left(counts, True, key=enough_at)
    return at(counts[first]) if first < len(counts) else None


def beta_theory(p: float, solved: float = 1.0) -> Variances:
    """Return planning variances if both models share difficulties ~ Beta(p, 1 − p): no data noise at all.

    E[u(1 − u)] = p(1 − p)/2 for each model. With only a share `solved` of the questions solvable
    the rest adds none: `beta_variance` in total.
    """
    each = float(beta_variance(np.array(p), solved)) / 2
    return Variances(0.0, each, each)
