"""Effect of missing scores on t: bounds for all values that they could have.

t = d̄/√V, and V = Σ S_c² is a square of the scores. So a score that is far from the others may raise √V more than d̄, and
t then falls as the score rises. ∂t/∂d_j has the sign of a_j V − d̄ ½ ∂V/∂d_j, a_j the weight of question j. If it is
positive everywhere, the extremes of the scores are those of t. The bounds are of the triangle inequality.
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


UNTOLD = Reach()
"""Nothing is shown."""


def t_reach(low: FloatArray, high: FloatArray, design: Design, estimator: Estimator) -> Reach:
    """Return the range of t of a mean whose values may lie anywhere in [low, high]. `UNTOLD` if it is not known.

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
    se, more = (float(np.linalg.norm(x)) for x in (S, dS))
    if se <= more:
        return UNTOLD
    mean, half = float(weights @ middle), float(weights @ reach)
    ends = mean - half, mean + half
    each, move = (x[by_cell.clusters] * factors for x in (S, dS))
    slope, most = each - of_task(each * leverage), move + of_task(move * leverage)  # of V/2, over that of the mean
    steepest = np.max([d * g for d in ends for g in (slope - most, slope + most)], axis=0)
    rises = bool((steepest < weights * (se - more) ** 2)[(reach > 0) & (size > 0)].all())
    each_t = [d / s for d in ends for s in (se - more, se + more)]
    return Reach(rises, min(each_t), max(each_t))
