"""Effect of missing scores on t: bounds for all values that they could have.

t = d̄/√V, and V = Σ S_c² is a square of the scores. So a score that is far from the others may raise √V more than d̄, and
t then falls as the score rises. ∂t/∂d_j has the sign of a_j V − d̄ ½ ∂V/∂d_j, a_j the weight of question j. If it is
positive everywhere, the extremes of the scores are those of t. The bounds are of the triangle inequality, or, with few
missing scores, of each score's own effect on V. If d̄ has one sign for all of them, the t nearest to 0 is at an end of
each score, and with at most 12 of them all ends are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from ..settings import Estimator
from .cluster_variance import cells
from .contrast import Design


@dataclass(frozen=True, slots=True)
class Reach:
    """All that t could be."""

    rises: bool = False
    """True if t is shown to rise with each score, whatever the others are."""
    low: float = -math.inf
    high: float = math.inf
    """No t is beyond, and perhaps none near."""
    p_flat: float = 0.0
    """The largest p of the sign test that decides if nothing varies. 0 if something varies, whatever the scores are."""


UNTOLD = Reach()
"""Nothing is shown."""


def p_of_flat(design: Design) -> float:
    """Return the largest p that the sign test may have if nothing varies. With several tasks it may be 1."""
    return 1.0 if design.strata.any() else 2.0 ** (1 - design.n_clusters)


def t_reach(low: FloatArray, high: FloatArray, design: Design, estimator: Estimator) -> Reach:
    """Return bounds of t with values anywhere in [low, high], and whether t rises with each. `UNTOLD` if not known.

    Args:
        low: (n,) the lowest difference of each question that the missing scores allow.
        high: (n,) the highest.
        design: weights, tasks and clusters of the questions.
        estimator: of the variance.
    """
    by_cell = cells(design)
    if design.crossed is not None or design.between_tasks or not by_cell.identified.all():
        return UNTOLD
    weights, factors = by_cell.weights[0, by_cell.strata], by_cell.factors(estimator)[0]
    size, leverage = by_cell.sizes[0], by_cell.leverage[0]
    middle, reach = (by_cell.sums(x[None, :])[0] for x in ((low + high) / 2, (high - low) / 2))

    def of_task(values: FloatArray) -> FloatArray:
        """Return for each cell (cluster × task) the sum of `values` over all cells of its task."""
        return np.asarray(by_cell.by_task(values[None, :])[0, by_cell.strata])

    # a cell's residual sum falls by its share of what its task's sum rises by
    residual = middle - leverage * of_task(middle)
    moved = reach * (1 - leverage) + leverage * (of_task(reach) - reach)
    S, dS = (by_cell.by_cluster((factors * x)[None, :])[0] for x in (residual, moved))
    mean, half = float(weights @ middle), float(weights @ reach)
    ends = mean - half, mean + half
    moving = np.flatnonzero(reach)
    if len(moving) > _MOST_MOVING:
        se, more = (float(np.linalg.norm(x)) for x in (S, dS))
        least, most_se, nearest = se - more, se + more, 0.0
    else:
        each_cell = np.zeros((len(moving), len(reach)))
        each_cell[np.arange(len(moving)), moving] = reach[moving]
        by_itself = each_cell - leverage * by_cell.by_task(each_cell)[:, by_cell.strata]
        D = by_cell.by_cluster(factors * by_itself)
        least, most_se = _se_reach(S, D)
        nearest = _least_t(mean, weights[moving] * reach[moving], S, D) if min(ends) * max(ends) > 0 else 0.0
    each, move = (x[by_cell.clusters] * factors for x in (S, dS))
    slope, most = each - of_task(each * leverage), move + of_task(move * leverage)  # of V/2, over that of the mean
    steepest = np.max([d * g for d in ends for g in (slope - most, slope + most)], axis=0)
    rises = least > 0 and bool((steepest < weights * least**2)[(reach > 0) & (size > 0)].all())
    each_t = [d / s if s > 0 else float(np.copysign(np.inf, d)) for d in ends for s in (least, most_se)]
    least_t, most_t = min(each_t), max(each_t)
    if ends[0] > 0:
        least_t = max(least_t, nearest)
    elif ends[1] < 0:
        most_t = min(most_t, -nearest)
    return Reach(rises, least_t, most_t, 0.0 if least > _FLAT * most_se else p_of_flat(design))


_ROUNDED = 1 - 1e-9
_FLAT = 1e-6
"""Least standard error, of the largest, above which something surely varies."""
_MOST_MOVING, _MOST_ENDS = 200, 12
"""Cells with missing scores: whose effects on the variance are told apart, and whose ends are all tried."""


def _se_reach(S: FloatArray, D: FloatArray) -> tuple[float, float]:
    """Return the least and the largest norm of S + Σ z_i D_i over all z in [−1, 1]ᵏ, or bounds beyond them."""
    linear, gram = np.abs(D @ S), D @ D.T
    own = np.diag(gram)
    crossing = float(np.abs(gram).sum() - own.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        falls = np.where(linear < own, linear**2 / own, 2 * linear - own)
    least, most = float(S @ S - falls.sum()) - crossing, float(S @ S + 2 * linear.sum() + own.sum()) + crossing
    se, more = float(np.linalg.norm(S)), float(np.linalg.norm(np.abs(D).sum(axis=0)))
    return max(max(least, 0.0) ** 0.5, se - more), min(most**0.5, se + more)


def _least_t(mean: float, moves: FloatArray, S: FloatArray, D: FloatArray) -> float:
    """Return the least |t| over all missing scores, if the mean has one sign for all. 0 where they are too many.

    Where the mean is above 0, {t ≥ c} is convex for each c > 0 (the mean is linear in the scores, the SE a norm). So
    the least t is at one of the ends.
    """
    k = len(moves)
    if k > _MOST_ENDS:
        return 0.0
    z = 1.0 - 2.0 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
    variance = S @ S + 2 * (z @ (D @ S)) + np.einsum("ij,jk,ik->i", z, D @ D.T, z)
    with np.errstate(divide="ignore"):
        return float(np.min(np.abs(mean + z @ moves) / np.sqrt(np.maximum(variance, 0.0)))) * _ROUNDED
