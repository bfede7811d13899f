"""The wild cluster bootstrap with the null imposed, studentised: for few clusters, and for very unequal ones.

Under the null θ = μ₀ the residuals of every cluster keep their size and take a random weight v_c; each resample gives a
t statistic of its own, and p is the share of them that lie as far out as the observed one. Everything is a function of
δ = θ̂ − μ₀, so one set of weights serves every null, which is how the interval is found: it holds the nulls that are
not rejected.

Sources:
  [Cameron2008] Cameron, Gelbach & Miller (2008), Review of Economics and Statistics 90(3): the null imposed
  [Webb]        Webb (2023), Canadian J. Economics 56(3): the six-point weights
  [Roodman]     Roodman, MacKinnon, Nielsen & Webb (2019), Stata Journal 19(1): enumeration, intervals by inversion
  [MacKinnon]   MacKinnon, Nielsen & Webb (2023), J. Applied Econometrics 38(5): WCR-S; where the null leaves no
        parameter, as for a mean, restricted residuals need no leverage correction, and WCR-S is WCR [Cameron2008]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .contrast import Design
from .intervals import Limits
from .tolerances import ROUNDING, SLACK

BATCH_BYTES = 2**25
ENUMERATED = 12
"""Clusters up to which all 2^G sign vectors are taken."""
FEW = 8
"""Fewer clusters give too few sign vectors (2^(G − 1) values of |t*|): Webb's six weights take their place."""
_SIX = np.array([-np.sqrt(1.5), -1.0, -np.sqrt(0.5), np.sqrt(0.5), 1.0, np.sqrt(1.5)])
_FARTHEST = 1e6
"""Standard errors beyond which an interval has no end."""


@dataclass(frozen=True, slots=True, eq=False)
class Wild:
    """The resamples of P differences: t*(δ) = (x + δy)/√(q0 + δ q1 + δ² q2) under the null that lies δ below each."""

    estimate: FloatArray
    """(P,)"""
    se: FloatArray
    """(P,) what the estimate is studentised by: CR0, as in every resample (a constant factor would cancel)."""
    x: FloatArray
    """(B, P)"""
    y: FloatArray
    """(B, 1) or (B, P), as are the next three."""
    q0: FloatArray
    q1: FloatArray
    q2: FloatArray
    exact: bool
    """All weight vectors there are, the observed signs among them; else drawn, and the observed are counted in."""

    def _terms(self, null: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """δ, and (B, P) numerators and squared denominators of t*."""
        delta = np.asarray(self.estimate - null)
        delta = np.where(np.abs(delta) <= ROUNDING * self.se, 0.0, delta)  # a difference of 0, however it was summed
        return delta, self.x + delta * self.y, self.q0 + delta * (self.q1 + delta * self.q2)

    def _share(self, extreme: BoolArray) -> FloatArray:
        count, resamples = extreme.sum(axis=0), len(extreme)
        out: FloatArray = count / resamples if self.exact else (count + 1) / (resamples + 1)
        return out

    def p_value(self, null: FloatArray | float = 0.0) -> FloatArray:
        """(P,) two-sided: the share of |t*| at least as large as the observed |t|; never 0."""
        delta, above, spread = self._terms(null)
        np.square(above, out=above)
        above *= self.se**2 * (
            1 + 2 * SLACK
        )  # the observed signs are one of the resamples: rounding must not lose them
        spread *= delta**2
        return self._share(above >= spread)

    def p_one_sided(self, shift: FloatArray | float) -> FloatArray:
        """(P,) of "θ is not below `shift`": small where the estimate lies far below it. For a gate, shift = −M."""
        delta, above, spread = self._terms(shift)
        with np.errstate(invalid="ignore", divide="ignore"):
            resampled, t = above / np.sqrt(np.maximum(spread, 0.0)), delta / self.se
        return self._share(resampled <= t + SLACK * np.abs(t) + ROUNDING)

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """(P,) ends of the nulls around the estimate with p ≥ 1 − level; infinite where no null is rejected."""
        return self._end(-1.0, 1 - level), self._end(1.0, 1 - level)

    def interval(self, level: float) -> Limits[float] | None:
        """Of the first difference; None where a side has no end: the clusters are too few for that level."""
        low, high = (float(side[0]) for side in self.limits(level))
        return Limits(low, high) if np.isfinite([low, high]).all() else None

    def _end(self, side: float, alpha: float) -> FloatArray:
        """By bisection between the estimate, where p is 1, and the first of doubled distances that is rejected."""
        inner, outer = np.zeros(len(self.estimate)), 4 * self.se
        while (open_ := self.p_value(self.estimate + side * outer) >= alpha).any() and (
            outer < _FARTHEST * self.se
        ).any():
            inner, outer = np.where(open_, outer, inner), np.where(open_, 2 * outer, outer)
        endless = open_
        for _ in range(30):
            middle = (inner + outer) / 2
            inside = self.p_value(self.estimate + side * middle) >= alpha
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        return np.where(endless, side * np.inf, self.estimate + side * inner)


def weights(G: int, resamples: int, rng: np.random.Generator) -> tuple[Iterator[FloatArray], bool]:
    """Batches of (rows, G) weights, and whether they are all there are.

    Signs (Rademacher): all 2^G up to 12 clusters, drawn beyond. With fewer than 8 clusters Webb's six points: all 6^G
    where they are no more than `resamples`, else drawn.
    """
    points = _SIX if G < FEW else np.array([-1.0, 1.0])
    exact = G <= ENUMERATED if G >= FEW else len(points) ** G <= resamples
    total = len(points) ** G if exact else resamples
    rows = max(1, BATCH_BYTES // (16 * G))

    def batches() -> Iterator[FloatArray]:
        codes: IntArray
        for start in range(0, total, rows):
            size = min(rows, total - start)
            if exact:
                codes = np.arange(start, start + size)[:, None] // len(points) ** np.arange(G) % len(points)
            elif len(points) == 2:
                words = rng.integers(0, 2**32, size=(size, -(-G // 32)), dtype=np.uint32)
                codes = np.unpackbits(words.view(np.uint8), axis=1, count=G).astype(np.intp)
            else:
                codes = rng.integers(0, len(points), size=(size, G))
            yield points[codes]

    return batches(), exact


def wild_test(d: FloatArray, plan: Design, resamples: int, rng: np.random.Generator) -> Wild:
    """The resamples of Σ a_i d_i = θ̂, of one task or of a group.

    The null Σ w_t μ_t = μ₀ is imposed by least squares: restricted residuals are e_i + δ a_i/Σ a_i². A resample takes
    the tasks' means out of v_c times them, and clusters may cross tasks, as in `contrast.clustered_variance`.

    Args:
        d: (n,) contrast values, not all equal within their tasks.
        plan: their weights, tasks and clusters.
        resamples: how many weight vectors, where not all are taken.
        rng: source of the draws.
    """
    from scipy.sparse import csr_array  # not on the way of every comparison

    a, G = plan.weights, plan.n_clusters
    estimate = float(a @ d)
    if plan.between_tasks:  # the tasks are the clusters of one mean
        e, task = d - estimate, np.zeros(len(d), dtype=np.intp)
        h_values, share = a, a
    else:
        task = plan.strata
        sizes = np.bincount(task).astype(np.float64)
        e = d - (np.bincount(task, weights=d) / np.maximum(sizes, 1))[task]
        h_values, share = 1 / sizes[task], a**2 / float(a @ a)
    shape = (G, int(task.max()) + 1)
    E, L, h = (csr_array((values, (plan.clusters, task)), shape=shape) for values in (a * e, share, h_values))
    for table in (E, L, h):
        table.sum_duplicates()
    E_c: FloatArray = np.asarray(E.sum(axis=1)).ravel()
    L_c: FloatArray = np.asarray(L.sum(axis=1)).ravel()
    parts: list[list[FloatArray]] = [[] for _ in range(5)]
    batches, exact = weights(G, resamples, rng)
    for v in batches:
        residuals = []
        for table, sums in ((E, E_c), (L, L_c)):
            task_means = np.asarray(v @ table)
            residuals.append(v * sums - np.asarray(h @ task_means.T).T)
        r0, r1 = residuals
        found = (v @ E_c, v @ L_c, (r0**2).sum(axis=1), 2 * (r0 * r1).sum(axis=1), (r1**2).sum(axis=1))
        for part, column in zip(parts, found, strict=True):
            part.append(column[:, None])
    x, y, q0, q1, q2 = (np.concatenate(part) for part in parts)
    return Wild(np.array([estimate]), np.array([float(E_c @ E_c) ** 0.5]), x, y, q0, q1, q2, exact)


def wild_many(E: FloatArray, share: FloatArray, estimate: FloatArray, resamples: int, rng: np.random.Generator) -> Wild:
    """The resamples of P means over the same questions of one task, by matrix products.

    Args:
        E: (G, P) sums over each cluster of a_i (d_i − d̄), 1/n being a_i.
        share: (G,) n_c/n.
        estimate: (P,) d̄.
        resamples: how many weight vectors, where not all are taken.
        rng: source of the draws.
    """
    batches, exact = weights(len(E), resamples, rng)
    h, H = share[:, None], float(share @ share)
    parts: list[list[FloatArray]] = [[] for _ in range(5)]
    for v in batches:
        x, z0, y, z1 = v @ E, v @ (h * E), v @ h, v @ h**2
        squares = v**2
        A0, A1, A2 = squares @ E**2, squares @ (h * E), squares @ h**2
        q0, q2 = A0 - 2 * x * z0 + x**2 * H, A2 - 2 * y * z1 + y**2 * H
        found = (x, y, q0, 2 * (A1 - x * z1 - y * z0 + x * y * H), q2)
        for part, column in zip(parts, found, strict=True):
            part.append(column)
    x, y, q0, q1, q2 = (np.concatenate(part) for part in parts)
    return Wild(estimate, np.sqrt((E**2).sum(axis=0)), x, y, q0, q1, q2, exact)
