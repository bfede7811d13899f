"""Fixed questions: what the repeats alone say of a mean over these questions and no others.

Given the questions, answers are independent and only their own randomness is left:
V = Σ_i a_i² w_i, (1/n²) Σ w_i for one task, with Satterthwaite's (1946) degrees of freedom over the variances within
questions. Clusters change nothing: what questions share is part of what is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .arrays import FloatArray
from .contrast import Contrast, Design, QuestionStats
from .decision import noise_codes
from .moments import Moments, nothing


def fixed_moments(runs: Sequence[QuestionStats], coefficients: Sequence[float], c: Contrast, plan: Design) -> Moments:
    """The moments of a contrast whose questions are no sample; what belongs to a sample of questions is None.

    Args:
        runs: statistics of each run, as `contrast` took them.
        coefficients: a_r.
        c: their contrast. Where it is not identified there is no variance.
        plan: the weights of the questions; its clusters are not used.
    """
    n = len(c.d)
    mean = float(plan.weights @ c.d)
    V = float(plan.weights**2 @ c.w)
    if not c.identified or V <= 0:
        found = c.diagnostics if not c.identified else (*c.diagnostics, "identical_repeats")
        return replace(nothing(n, n), mean=mean, diagnostics=tuple(sorted(found)))
    df = V**2 / sum(_spread(run, a, plan) for run, a in zip(runs, coefficients, strict=True))
    prediction = float(plan.weights**2 @ c.v)
    return Moments(
        n=n, n_clusters=n, mean=mean, variance=V, df=df, naive=None, var_data=None, var_prediction=prediction,
        var_total=prediction, icc=None, zero_variance=False,
        diagnostics=tuple(sorted({*c.diagnostics} | noise_codes(df))),
    )  # fmt: skip


def _spread(run: QuestionStats, a: float, plan: Design) -> float:
    """Σ (c_i s²_i)²/(k_i − 1), where Σ c_i s²_i is what this run adds to V.

    The share of questions with one answer, which borrow the mean s² of the others of their task, goes to these.
    """
    share = (plan.weights * a) ** 2 / run.count
    single = run.count < 2
    if single.any():
        lone = np.bincount(plan.strata, weights=share * single)
        known = np.bincount(plan.strata, weights=~single)
        share = share + (lone / np.maximum(known, 1))[plan.strata]
    terms = (share[~single] * run.var[~single]) ** 2 / (run.count[~single] - 1)
    return float(terms.sum())


def spread_sums(s2: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The three tables whose sums over questions x, y, z give Σ (s²/k + L s²)²/(k − 1) = x + 2L y + L² z of a pair.

    L is what each question with two answers or more lends to those with one.

    Args:
        s2: (N, M) variances, 0 where a model has fewer than two answers.
        count: (N, M) answers.
    """
    square, k = s2**2 / np.maximum(count - 1, 1), np.maximum(count, 1)
    return square / k**2, square / k, square
