"""Chances of right answers: pass@k and pass^k, without bias from K ≥ k answers, and next-token probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray
from ..errors import check_count


def pass_at_k(values: FloatArray, k: int) -> FloatArray:
    """Return (n,) unbiased pass@k: the chance that any of k answers is right [Chen, eq. 1]. NaN below k answers.

    Raises:
        ValueError: scores other than 0 and 1, or k < 1.
    """
    K, right = _counts(values)
    return 1 - _none_of(K, right, k)


def consistency(values: FloatArray, k: int) -> FloatArray:
    """Return (n,) the chance that k answers to a question all have the same score. NaN with fewer than k.

    Unbiased whatever K_i ≥ k is, as pass^k is of which it is the sum over all scores; NaN where K_i < k.
    """
    K = (~np.isnan(values)).sum(axis=1).astype(np.float64)
    equal = (values[:, :, None] == values[:, None, :]).sum(axis=2).astype(np.float64)  # 0 where there is no answer
    chances = np.stack([_none_of(K, K - column, k) for column in equal.T], axis=1)
    return np.asarray((chances / np.maximum(equal, 1.0)).sum(axis=1))  # each score once for all its answers


def pass_curves(values: FloatArray, ks: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Return pass@k (any of k right) and pass^k (all k right) of questions, (n, len(ks)) each. NaN below k answers.

    pass^k is the chance that all of k answers are right, C(c_i, k)/C(K_i, k) [Yao, §3].

    Raises:
        ValueError: as for `pass_at_k`.
    """
    K, right = _counts(values)
    most = K.max(initial=0.0) + 1
    kinds, of = np.unique(K * most + right, return_inverse=True)  # few: (K_i, c_i) is all that counts
    K, right = np.divmod(kinds, most)
    at = np.stack([1 - _none_of(K, right, k) for k in ks], axis=1)
    return at[of], np.stack([_none_of(K, K - right, k) for k in ks], axis=1)[of]


def _counts(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (n,) numbers of answers and (n,) numbers of right answers. Refuse scores other than 0 and 1."""
    present = ~np.isnan(values)
    if not (~present | (values == 0.0) | (values == 1.0)).all():
        raise ValueError("pass@k is for answers that are right or wrong: scores of 0 or 1")
    return present.sum(axis=1).astype(np.float64), np.where(present, values, 0.0).sum(axis=1)


def _none_of(K: FloatArray, c: FloatArray, k: int) -> FloatArray:
    """Return (n,) the chance that k of K answers, drawn at random, include none of c. NaN if k > K."""
    check_count("k", k)
    steps = np.arange(k)  # a product of k ratios, so that nothing overflows
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.maximum(K[:, None] - c[:, None] - steps, 0.0) / (K[:, None] - steps)
    return np.where(k <= K, ratios.prod(axis=1), np.nan)


def acc_probs(loglikelihoods: FloatArray, gold: BoolArray) -> FloatArray:
    """Return (n,) the probability of a right choice if a model samples choices by their likelihood, or NaN.

    softmax of the choices' log-likelihoods at the gold choices [Miller, §3.2]. It is another estimand than the
    accuracy of the likeliest choice: report it beside `acc`, never in its place. NaN where it does not exist: no right
    choice, a NaN or +inf, or all −inf.

    Args:
        loglikelihoods: (n, C); −inf is a choice that the model never gives.
        gold: (n, C) whether a choice is right.
    """
    usable = gold.any(axis=1) & ~np.isnan(loglikelihoods).any(axis=1) & np.isfinite(loglikelihoods.max(axis=1))
    out = np.full(len(gold), np.nan)
    chances = special.softmax(loglikelihoods[usable], axis=1)
    out[usable] = np.minimum(1.0, (chances * gold[usable]).sum(axis=1))
    return out
