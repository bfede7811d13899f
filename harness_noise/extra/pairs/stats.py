"""Strengths of many models from their points on pairs, with jackknife errors by cluster.

Sources:
  [Bradley]  Bradley & Terry (1952), Biometrika 39: P(i beats j) = 1/(1 + exp(θ_j − θ_i)), ties half a point for each
  [Ford]     Ford (1957), American Mathematical Monthly 64: strengths exist where "took a point from" connects strongly
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy.sparse import csgraph

from ...arrays import BoolArray, FloatArray, IntArray
from ...errors import InputError

FEWEST_CLUSTERS = 5
"""Below, a jackknife says nothing."""
_STEPS, _CLOSE, _LONGEST = 500, 1e-10, 2.0
_ALIKE = 1e-7
"""Tables without one cluster whose strengths differ by less do not differ."""


def connected(points: FloatArray) -> BoolArray:
    """Return (M,) True for the largest set of models linked by wins both ways, also without any one cluster [Ford].

    Args:
        points: (G, M, M) points that i took from j, by cluster.
    """
    M, whole = points.shape[1], points.sum(axis=0)
    inside = np.ones(M, dtype=np.bool_)
    # a table without cluster g has other edges only if g alone holds one of the whole
    only = [g for g in range(len(points)) if ((points[g] > 0) & (whole - points[g] <= _CLOSE)).any()]
    tables = [whole > 0, *(whole - points[g] > _CLOSE for g in only)]
    while True:
        before = inside.copy()
        for table in tables:
            at = np.flatnonzero(inside)
            _, part = csgraph.connected_components(table[np.ix_(at, at)], directed=True, connection="strong")
            inside[at] = part == np.bincount(part).argmax() if len(at) else True
        if (inside == before).all():
            return inside if inside.sum() > 1 else np.zeros(M, dtype=np.bool_)


def strengths(points: FloatArray) -> FloatArray:
    """Return (…, M) Bradley–Terry strengths, mean 0, of (…, M, M) points i took from j [Bradley]. Refuse divergence.

    Raises:
        InputError: they do not converge, because the tables are nearly separated.
    """
    games = points + np.swapaxes(points, -1, -2)
    M = points.shape[-1]
    theta = np.zeros(points.shape[:-1])
    for _ in range(_STEPS):
        p = special.expit(theta[..., :, None] - theta[..., None, :])
        gradient = (points - games * p).sum(axis=-1)
        if np.abs(gradient).max(initial=0.0) <= _CLOSE * max(1.0, float(games.max(initial=0.0))):
            return theta
        weight = games * p * (1 - p)
        hessian = -weight
        hessian[..., np.arange(M), np.arange(M)] += weight.sum(axis=-1)
        step = np.linalg.solve(hessian + 1.0 / M, gradient[..., None])[..., 0]  # the mean stays 0
        longest = np.abs(step).max(axis=-1, keepdims=True)
        theta = theta + step * np.minimum(1.0, _LONGEST / np.maximum(longest, _LONGEST))
    raise InputError(
        "the strengths of these models do not converge: one group of models has nearly all points against the others"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Strengths:
    """Bradley–Terry strengths of M models, their errors, and the pairs that are told apart."""

    theta: FloatArray
    """(M,) log-strengths of mean 0."""
    se: FloatArray
    """(M,) of a strength less the mean of all, NaN if no cluster changes it."""
    p: FloatArray
    """(M, M) two-sided p of equal strengths, NaN if no cluster changes their difference."""


def with_errors(points: FloatArray) -> Strengths:
    """Return Bradley–Terry strengths, with standard errors and p by a jackknife over clusters.

    Args:
        points: (G, M, M) points that i took from j, by cluster, of models that are `connected`.
    """
    G, whole = len(points), points.sum(axis=0)
    theta, without = strengths(whole), strengths(whole - points)
    scale = (G - 1) / G
    se = _spread(without) * math.sqrt(scale)
    apart = _spread(without[:, :, None] - without[:, None, :]) * math.sqrt(scale)
    t = (theta[:, None] - theta[None, :]) / apart
    return Strengths(theta, se, 2 * special.stdtr(G - 1, -np.abs(t)))


def _spread(without: FloatArray) -> FloatArray:
    """Return √Σ of squared deviations over jackknife values (first axis). NaN where it is rounding only."""
    spread = np.sqrt(((without - without.mean(axis=0)) ** 2).sum(axis=0))
    return np.where(spread > _ALIKE, spread, np.nan)


def by_cluster(G: int, M: int, codes: IntArray, first: IntArray, second: IntArray, values: FloatArray) -> FloatArray:
    """Sum points to (G, M, M): in cluster g, the points that model i took from model j.

    Args:
        G: clusters.
        M: models.
        codes: (N,) cluster of each comparison.
        first: (N,) one of its models.
        second: (N,) the other.
        values: (N,) points of `first`, in [0, 1].
    """
    out = np.zeros((G, M, M))
    np.add.at(out, (codes, first, second), values)
    np.add.at(out, (codes, second, first), 1 - values)
    return out
