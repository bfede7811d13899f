"""The one-sided upper limit of the data noise: the largest of three, each for what the others do not see.

V is the variance of the mean, W = Σ a_i² w_i what the repeats alone make of it, S_c the clusters' scores, V = Σ S_c².

1. u₁ = V df_k/χ²_{df_k}(α) − W takes V for χ² [Satterthwaite] and W for known. df_k is the smaller of V's degrees
   of freedom and 2 n_f/(1 − n_f/G), n_f = (Σ S_c²)²/Σ S_c⁴: where few questions vary at all, V hangs on few terms.
2. u₂ solves T((X − u)/s) = α T(X/s) for X = V − W, with s from the spread of the clusters' own S_c² − Σ a_i² w_i:
   with two answers W is no better known than V, and both have the same noise in them.
3. u₃ = V/q_α − W, where clusters differ in size, with q_α a quantile of V's distribution when clusters are all that
   matters: V is too small there, by up to a third.

By simulation the largest covers 94–100% at 95% (10 to 400 questions, K = 2 to 10, singles and pairs, 3 to 50
clusters). u₁ alone covered 0 to 92% where few questions vary, u₁ and u₂ 61 to 93% with unequal clusters.

Sources:
  [Satterthwaite] Satterthwaite (1946), Biometrics Bulletin 2(6)
  [Zou]           Zou & Donner (2008), Statistics in Medicine 27(10): limits of a sum from the limits of its terms
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray
from ..settings import Estimator
from .cluster_variance import cells, task_weights
from .contrast import Contrast, Design, sum_by
from .intervals import effective_flips
from .tolerances import ROUNDING, SLACK

ALPHA = 0.05
"""One-sided level of the limit that results show."""
_DRAWS = 20_000
_SEED = 0
Shares = tuple[tuple[float, int], ...]
"""Shares of the clusters in the mean, each with how many clusters have it."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """All that the limit of P contrasts is made of."""

    variance: FloatArray
    """(P,) V."""
    answers: FloatArray
    """(P,) W."""
    df: FloatArray
    """(P,) of V."""
    flips: FloatArray
    """(P,) n_f of the clusters' residual sums, NaN if all are 0."""
    n_clusters: FloatArray
    """(P,) G."""
    spread: FloatArray
    """(P,) s, 0 if it is not known, so that u₂ sets no limit."""
    shares: tuple[Shares, ...] = ((),)
    """The clusters' sizes, for each contrast or for all of them, empty for clusters of one size."""

    def row(self, i: int) -> Terms:
        """Select the inputs for contrast number i only."""
        names = ("variance", "answers", "df", "flips", "n_clusters", "spread")
        shares = self.shares[i : i + 1] if len(self.shares) > 1 else self.shares
        return Terms(**{name: getattr(self, name)[i : i + 1] for name in names}, shares=shares)

    def upper(self, alpha: float = ALPHA) -> FloatArray:
        """Return (P,) upper confidence limits (one-sided, 1 − alpha) of the data variance. NaN if unknown or ≤ 0."""
        V, W, df = self.variance, self.answers, self.df
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            of_flips = 2 * self.flips / np.maximum(1 - self.flips / self.n_clusters, 0.0)
            df_k = np.fmin(df, of_flips)
            first = V * df_k / special.chdtri(df_k, 1 - alpha) - W
            X, s = V - W, self.spread
            second = X - s * special.stdtrit(df, alpha * special.stdtr(df, X / s))
            second = np.where((s > 0) & np.isfinite(second), second, -np.inf)
            q = np.array([_quantile(shares, alpha) for shares in self.shares])
            limit = np.fmax(np.fmax(first, second), np.where(np.isnan(q), -np.inf, V / q - W))
        return np.where((limit > 0) & ~np.isnan(V + W), limit, np.nan)


def terms(
    c: Contrast,
    design: Design,
    variance: FloatArray,
    df: FloatArray,
    estimator: Estimator,
    shown: BoolArray | None = None,
) -> Terms:
    """Return the inputs (variances, df, flips, cluster shares) for upper limits of P contrasts' data variance.

    Args:
        c: the contrasts, (n,) or (P, n).
        design: weights, tasks and clusters of the n questions.
        variance: (P,) V.
        df: (P,) its degrees of freedom.
        estimator: of V.
        shown: (P, n) the questions that each contrast has; None: all of them.
    """
    d, w = np.atleast_2d(c.d), np.atleast_2d(c.w)
    by_cell, (weights, counts) = cells(design, shown), task_weights(design, shown)
    means = sum_by(design.strata, d, counts.shape[1]) / np.maximum(counts, 1)
    inside = means[:, design.strata]
    with np.errstate(invalid="ignore", divide="ignore"):
        e = inside - (weights * counts * means).sum(axis=1)[:, None] if design.between_tasks else d - inside
        e = np.where(np.abs(e) <= ROUNDING * np.maximum(1.0, np.abs(d).max(axis=1, initial=0.0))[:, None], 0.0, e)
        e = e if shown is None else np.where(shown, e, 0.0)
        each = weights[:, design.strata] ** 2 * w
        of_answers = each.sum(axis=1)
        own = by_cell.scores(by_cell.sums(e), estimator) ** 2 - sum_by(design.clusters, each, design.n_clusters)
        here = by_cell.by_cluster(by_cell.sizes) > 0
        G = here.sum(axis=1).astype(np.float64)
        centred = np.where(here, own - (own * here).sum(axis=1, keepdims=True) / G[:, None], 0.0)
        top = np.abs(own).max(axis=1, initial=0.0)  # squares of squares of huge scores would not be numbers
        spread = top * np.sqrt(G / np.maximum(G - 1, 1.0) * ((centred / top[:, None]) ** 2).sum(axis=1))
        sizes = by_cell.sizes
        shares = by_cell.by_cluster(sizes * weights[:, by_cell.strata] if by_cell.shares is None else sizes)
    P = len(d)
    return Terms(
        variance,
        np.full(P, of_answers),
        df,
        effective_flips(by_cell.weighted_sums(e)),
        np.full(P, G),
        np.where(spread > ROUNDING * top, spread, 0.0),
        tuple(_cluster_shares(row[there]) for row, there in zip(shares, here, strict=True)),
    )


def _cluster_shares(shares: FloatArray) -> Shares:
    """Return ((share, count), …) of (G,) cluster shares: each distinct one and how many have it. () if equal or NaN."""
    if len(shares) < 2 or np.isnan(shares).any() or np.ptp(shares) <= SLACK * float(shares.max()):
        return ()
    values, counts = np.unique(np.round(shares, 12), return_counts=True)
    return tuple(zip(values.tolist(), counts.tolist(), strict=True))


@lru_cache(maxsize=64)
def _relative(shares: Shares) -> FloatArray:
    """Simulate 20,000 ratios of estimated to true variance for clusters with these shares, and return them sorted.

    V*(z) = Σ_c a_c² (z_c − Σ_k a_k z_k)²/(1 − a_c) / Σ_c a_c², z independent standard normal. The clusters of one size
    have a mean and a sum of squares of their own, which is all that V* knows of them.
    """
    a, N = (np.array(x, dtype=np.float64)[:, None] for x in zip(*shares, strict=True))
    rng = np.random.default_rng(_SEED)
    means = rng.standard_normal((len(a), _DRAWS)) / np.sqrt(N)
    inside = rng.chisquare(np.maximum(N - 1, 1), (len(a), _DRAWS)) * (N > 1)
    whole = (a * N * means).sum(axis=0)
    squares = a**2 / np.maximum(1 - a, SLACK) * (inside + N * (means - whole) ** 2)
    return np.sort(squares.sum(axis=0) / float((N * a**2).sum()))


def _quantile(shares: Shares, alpha: float) -> float:
    """Return the α quantile of (estimated variance / true variance). NaN if all clusters have equal shares."""
    return float(np.quantile(_relative(shares), alpha)) if shares else math.nan


class DataLimit:
    """The limit of one row at any level, as sizes of designs need it, or of the sum of two independent parts."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Terms]) -> None:
        self._parts = tuple(parts)

    def parts(self) -> Sequence[Terms]:
        """Return the inputs of the limit: one item, or two for the sum of two independent variances."""
        return self._parts

    def upper(self, alpha: float = ALPHA) -> float:
        """Return the upper confidence limit (1 − alpha) of the data variance, NaN if unknown.

        Two parts are added by [Zou].
        """
        each = [(part.upper(alpha).item(), (part.variance - part.answers).item()) for part in self.parts()]
        if len(each) == 1:
            return each[0][0]
        up = sum(X for _, X in each) + math.sqrt(sum((max(u, X) - X) ** 2 for u, X in each if not math.isnan(u)))
        return up if up > 0 and not all(math.isnan(u) for u, _ in each) else math.nan

    def above(self, alpha: float = ALPHA) -> float:
        """Return the upper confidence limit minus the estimate of the data variance."""
        return self.upper(alpha) - sum((part.variance - part.answers).item() for part in self.parts())

    def without_answers(self) -> DataLimit:
        """Return the limit of the total variance instead of the data variance, no answer noise subtracted."""
        return DataLimit([replace(part, answers=np.zeros_like(part.answers)) for part in self.parts()])


def chi_square(variance: float, df: float, answers: float = 0.0) -> DataLimit:
    """Return a χ² upper limit of a variance minus `answers`, if only its value and degrees of freedom are known."""
    one, unknown = np.ones(1), np.full(1, math.nan)
    return DataLimit([Terms(variance * one, answers * one, df * one, unknown, unknown, 0 * one)])
