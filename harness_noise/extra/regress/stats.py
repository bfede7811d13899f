"""Regression with clustered standard errors: CR2 for any design matrix, Satterthwaite's df for each coefficient.

[Bell]; [Pustejovsky, eq. 5 and 8–9]. The mean of `cluster_variance` is the case of one constant column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ...arrays import BoolArray, FloatArray, IntArray
from ...stats.cluster_variance import satterthwaite
from ...stats.tolerances import SMALLEST

RANK = 1e-9
"""A column that the others explain to this share of its length is one of them."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """Results of a weighted least squares fit for p coefficients."""

    coefficients: FloatArray
    """(p,)"""
    covariance: FloatArray
    """(p, p) CR2."""
    df: FloatArray
    """(p,) Satterthwaite's degrees of freedom, NaN for a coefficient that is not identified."""
    identified: BoolArray
    """(p,) False where the clusters that alone carry a coefficient leave no residual to learn from."""
    residuals: FloatArray
    """(n,) y − Xβ."""
    r2: float | None
    """Share of the weighted variance about the mean that the columns explain, None without variance."""

    @property
    def variances(self) -> FloatArray:
        """(p,) variances of the coefficients, NaN where not identified."""
        return np.where(self.identified, np.diag(self.covariance), np.nan)


def dependent_columns(X: FloatArray) -> list[int]:
    """Return a list of the indexes of the columns of X that are linear combinations of earlier columns."""
    R = np.linalg.qr(X / np.maximum(np.linalg.norm(X, axis=0), SMALLEST), mode="r")
    left = np.zeros(X.shape[1])
    left[: len(R)] = np.abs(np.diag(R))
    return np.flatnonzero(left <= RANK).tolist()


def regress(y: FloatArray, X: FloatArray, clusters: IntArray, weights: FloatArray | None = None) -> LinearFit:
    """Fit (weighted) least squares of y on X, with cluster-robust CR2 covariance of the coefficients.

    Args:
        y: (n,) outcomes.
        X: (n, p) covariates of full column rank (`dependent_columns`), a constant column among them.
        clusters: (n,) codes 0 … G − 1.
        weights: (n,) inverse variances up to a factor; the fit is that of √w y on √w X, and the adjustment of CR2
            is made there, with errors of equal variance for its working model. None: equal.

    With clusters g, whitened rows Z = X(XᵀX)^(−1/2) and H_g = Z_g Z_gᵀ: V = Σ_g u_g u_gᵀ, u_g = E_gᵀ e_g,
    E_g = (I − H_g)^(−1/2) X_g (XᵀX)⁻¹ (a pseudo-inverse where a cluster determines a coefficient alone). For
    coefficient j, df = tr(P)²/tr(P²), P_gh = δ_gh |E_gj|² − b_gᵀ b_h with b_g = Z_gᵀ E_gj.
    """
    n, p = X.shape
    w = np.ones(n) if weights is None else weights * (n / weights.sum())
    root = np.sqrt(w)
    Y, D = root * y, root[:, None] * X
    _, s, Vt = np.linalg.svd(D / (scale := np.linalg.norm(D, axis=0)), full_matrices=False)
    S = (Vt.T / s) @ Vt / scale[:, None]  # S Sᵀ = (DᵀD)⁻¹
    Z = D @ S
    beta = S @ (Z.T @ Y)
    beta[np.abs(beta) * scale <= 1e-12 * np.linalg.norm(Y)] = 0.0  # rounding
    e = Y - D @ beta
    e[np.abs(e) <= 1e-12 * max(1.0, float(np.abs(Y).max(initial=0.0)))] = 0.0
    order = np.argsort(clusters, kind="stable")
    codes, starts = np.unique(clusters[order], return_index=True)
    E = _adjusted(Z[order], starts) @ S.T
    Z, e = Z[order], e[order]
    u = np.add.reduceat(E * e[:, None], starts, axis=0)
    inverse = np.einsum("jk,jk->j", S, S)
    df, identified = np.full(p, np.nan), np.zeros(p, dtype=np.bool_)
    for j in range(p):
        d = np.add.reduceat(E[:, j] ** 2, starts)
        b = np.add.reduceat(Z * E[:, j, None], starts, axis=0)
        bb = np.einsum("gk,gk->g", b, b)
        trace = float(d.sum() - bb.sum())
        # CR2 is unbiased under its working model unless a pseudo-inverse has lost a direction
        identified[j] = len(codes) > 1 and trace > (1 - 1e-6) * inverse[j]
        if identified[j]:
            gram = b.T @ b
            df[j] = satterthwaite(trace, float(d @ d - 2 * d @ bb + (gram * gram).sum()))
    mean = float(w @ y) / n
    total = float(w @ (y - mean) ** 2)
    residuals = y - X @ beta
    r2 = 1 - float(w @ residuals**2) / total if total > 1e-24 * max(1.0, mean**2) * n else None
    return LinearFit(beta, u.T @ u, df, identified, residuals, r2)


def _adjusted(Z: FloatArray, starts: IntArray) -> FloatArray:
    """Return (n, p) CR2-adjusted rows (I − Z_g Z_gᵀ)^(−1/2) Z_g of each cluster g. `starts`: first row of each."""
    n = len(Z)
    sizes = np.diff(np.append(starts, n))
    out = np.zeros_like(Z)
    alone = starts[sizes == 1]
    left = 1 - np.einsum("ij,ij->i", Z[alone], Z[alone])
    out[alone] = Z[alone] * np.where(left > RANK, 1 / np.sqrt(np.where(left > RANK, left, 1.0)), 0.0)[:, None]
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        block = Z[start : start + size]
        values, vectors = linalg.eigh(block.T @ block)
        left = 1 - values
        power = np.where(left > RANK, 1 / np.sqrt(np.where(left > RANK, left, 1.0)), 0.0)
        out[start : start + size] = block @ ((vectors * power) @ vectors.T)
    return out


def repeat_weights(y_variance: float, noise: FloatArray) -> FloatArray:
    """Return (n,) weights 1/(ω² + noise_i) of mean 1, with ω² from `y_variance`, at least 0. All 1 if any sum is 0.

    Args:
        y_variance: residual variance of the question means of an unweighted fit.
        noise: (n,) Σ_r a_r² σ̄_r²/k_ri, with σ̄_r² the run's mean variance of one answer. Each question's own variance
            would tie its weight to its own answers and bias the fit.

    Equal noise gives equal weights; ω² = max(0, y_variance − mean noise).
    """
    total = max(0.0, y_variance - float(noise.mean())) + noise
    if not (total > 0).all():
        return np.ones_like(noise)
    inverse: FloatArray = 1 / total
    return inverse * (len(noise) / float(inverse.sum()))
