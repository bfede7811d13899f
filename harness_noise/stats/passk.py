"""pass@k and pass^k: the chances that one, or all, of k answers are right, without bias from K ≥ k answers."""

from __future__ import annotations

import numpy as np

from .arrays import FloatArray


def pass_at_k(values: FloatArray, k: int) -> FloatArray:
    """(n,) 1 − C(K_i − c_i, k)/C(K_i, k) for (n, K) scores of 0 and 1; NaN where K_i < k.

    Source: Chen et al. (2021), Evaluating large language models trained on code, eq. 1.

    Raises:
        ValueError: scores other than 0 and 1, or k < 1.
    """
    if k < 1:
        raise ValueError(f"pass@k needs k ≥ 1, not k = {k}")
    present = ~np.isnan(values)
    if not np.isin(values[present], (0.0, 1.0)).all():
        raise ValueError("pass@k is for answers that are right or wrong: scores of 0 or 1")
    K = present.sum(axis=1).astype(np.float64)
    c = np.where(present, values, 0.0).sum(axis=1)
    # C(K − c, k)/C(K, k) as a product of k ratios, so that nothing overflows
    steps = np.arange(k)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.maximum(K[:, None] - c[:, None] - steps, 0.0) / (K[:, None] - steps)
    return np.where(k <= K, 1 - ratios.prod(axis=1), np.nan)


def pass_hat_k(values: FloatArray, k: int) -> FloatArray:
    """(n,) pass^k, the chance that all of k answers are right, C(c_i, k)/C(K_i, k); NaN where K_i < k.

    Source: Yao et al. (2024), τ-bench, arXiv 2406.12045, §3.

    Raises:
        ValueError: as for `pass_at_k`.
    """
    out: FloatArray = 1 - pass_at_k(1 - values, k)
    return out


def steps_of_k(K: int) -> list[int]:
    """The k that a curve up to K is drawn at: all up to 10, then 20, 50, 100, …, and K."""
    ks = set(range(1, min(K, 10) + 1)) | {K}
    scale = 10
    while scale <= K:
        ks |= {k for k in (scale, 2 * scale, 5 * scale) if k <= K}
        scale *= 10
    return sorted(ks)
