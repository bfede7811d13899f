"""Multiple choice by next-token probabilities: a score without prediction noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from .arrays import BoolArray, FloatArray


def acc_prob(loglikelihoods: Sequence[float], gold: int | Sequence[int]) -> float:
    """The probability that a model which samples among the choices gives a right one.

    softmax of the choices' log-likelihoods at the gold choice [Miller 2024, §3.2]. It is another
    estimand than the accuracy of the likeliest choice: report it beside `acc`, never in its place.

    Args:
        loglikelihoods: one for each choice; −inf is a choice that the model never gives.
        gold: index of the right choice, or of several that are.

    Raises:
        ValueError: no choice, a NaN or +inf, all −inf, or a gold index that does not exist.
    """
    values = np.asarray(loglikelihoods, dtype=np.float64)
    right = np.unique(np.asarray(gold, dtype=np.intp))
    if values.ndim != 1 or len(values) == 0 or np.isnan(values).any() or values.max() in (np.inf, -np.inf):
        raise ValueError("log-likelihoods of the choices must be numbers, at least one of them above −inf")
    if len(right) == 0 or right.min() < 0 or right.max() >= len(values):
        raise ValueError(f"gold choice {gold} is none of the {len(values)} choices")
    return float(min(1.0, special.softmax(values)[right].sum()))


def acc_probs(loglikelihoods: FloatArray, gold: BoolArray) -> FloatArray:
    """(n,) `acc_prob` of n questions with C choices each: (n, C) log-likelihoods, (n, C) whether a choice is right.

    NaN where it does not exist: no right choice, a NaN or +inf, or all −inf.
    """
    usable = gold.any(axis=1) & ~np.isnan(loglikelihoods).any(axis=1) & np.isfinite(loglikelihoods.max(axis=1))
    out = np.full(len(gold), np.nan)
    out[usable] = np.minimum(
        1.0, np.where(gold[usable], special.softmax(loglikelihoods[usable], axis=1), 0.0).sum(axis=1)
    )
    return out
