"""Resampling whole clusters: the bootstrap (percentile, BCa, t), sign flips, and the wild cluster bootstrap.

Everything is a sum over clusters, so one matrix of random weights serves any number of contrasts.
Random numbers are drawn resample by resample from one stream: how many resamples are held at a time
changes the memory, not the result.

The wild cluster bootstrap, with the null imposed and studentised, is for few clusters, and for very unequal ones. Under
the null θ = μ₀ the residuals of every cluster keep their size and take a random weight v_c; each resample gives a
t statistic of its own, and p is the share of them that lie as far out as the observed one. Everything is a function of
δ = θ̂ − μ₀, so one set of weights serves every null, which is how the interval is found: it holds the nulls that are
not rejected.

Sources:
  [Efron]       Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapters 13–14
  [Cameron2008] Cameron, Gelbach & Miller (2008), Review of Economics and Statistics 90(3): resample clusters; the null
        imposed
  [Hesterberg]  Hesterberg (2015), The American Statistician 69(4): expanded percentile intervals
  [Good]        Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses: sign flips,
        and the shuffling of what names the groups
  [Webb]        Webb (2023), Canadian J. Economics 56(3): the six-point weights
  [Roodman]     Roodman, MacKinnon, Nielsen & Webb (2019), Stata Journal 19(1): enumeration, intervals by inversion
  [MacKinnon]   MacKinnon, Nielsen & Webb (2023), J. Applied Econometrics 38(5): WCR-S; where the null leaves no
        parameter, as for a mean, restricted residuals need no leverage correction, and WCR-S is WCR [Cameron2008]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray, IntArray
from ..choices import WILD_LIMITS
from ..errors import check_computed
from ..settings import Settings
from .contrast import Design, sum_by
from .decision import Test, two_one_sided
from .intervals import Limits, OneMean, critical
from .tolerances import ROUNDING, SLACK, SMALLEST

BATCH_BYTES = 2**23
"""Memory of one batch of resamples. The peak is a small multiple of it."""
ENUMERATED = 12
"""Clusters up to which all 2^G sign vectors are taken."""
FEW = 8
"""Fewer clusters give too few sign vectors (2^(G − 1) values of |t*|): Webb's six weights take their place."""
_SIX = np.array([-np.sqrt(1.5), -1.0, -np.sqrt(0.5), np.sqrt(0.5), 1.0, np.sqrt(1.5)])
_FARTHEST = 1e6
"""Standard errors beyond which an interval has no end."""

Method = Literal["bca", "percentile"]


@dataclass(frozen=True, slots=True, eq=False)
class ResampledClusters:
    """Clusters that are resampled together: those of one task, or of tasks that share clusters.

    Different blocks are strata: each keeps its number of clusters in every resample.
    """

    sums: FloatArray
    """(G, T, R) sum of each of R contrasts over the questions of cluster c in task t."""
    sizes: FloatArray
    """(G, T) number of those questions."""
    shares: FloatArray
    """(T,) weight of each task in the mean."""


def blocks(values: FloatArray, design: Design) -> list[ResampledClusters]:
    """Return a list of `ResampledClusters` of (n, R) values, one for each block of tasks that share clusters.

    Args:
        values: (n,) or (n, R) contrast values per question.
        design: their weights, tasks and clusters.
    """
    values = values[:, None] if values.ndim == 1 else values
    R = values.shape[1]
    if design.between_tasks:  # the tasks are the clusters of one mean, Σ w_t d̄_t / Σ w_t
        sums = sum_by(design.clusters, (values * design.weights[:, None]).T, design.n_clusters).T
        weight = np.bincount(design.clusters, weights=design.weights, minlength=design.n_clusters).astype(np.float64)
        return [ResampledClusters(sums[:, None, :], weight[:, None], np.ones(1))]
    T = int(design.strata.max()) + 1
    task_of, block_of_task = np.arange(T), np.zeros(T, dtype=np.int32)
    if T > 1:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        ends = (design.strata, design.clusters)
        links = coo_array((np.ones(len(values)), ends), shape=(T, design.n_clusters)).tocsr()
        block_of_task = connected_components(links @ links.T, directed=False)[1]
    shares = np.bincount(design.strata, weights=design.weights, minlength=T).astype(np.float64)
    out = []
    for b in range(int(block_of_task.max()) + 1):
        tasks = task_of[(block_of_task == b) & (shares > 0)]
        rows = np.flatnonzero(np.isin(design.strata, tasks))
        if len(rows) == 0:
            continue
        _, clusters = np.unique(design.clusters[rows], return_inverse=True)
        t = np.searchsorted(tasks, design.strata[rows])
        G = int(clusters.max()) + 1
        cell = clusters * len(tasks) + t
        sums = sum_by(cell, values[rows].T, G * len(tasks)).T.reshape(G, len(tasks), R)
        sizes = np.bincount(cell, minlength=G * len(tasks)).astype(np.float64).reshape(G, len(tasks))
        out.append(ResampledClusters(sums, sizes, shares[tasks]))
    return out


def draws(G: int, resamples: int, rng: np.random.Generator) -> Iterator[tuple[slice, IntArray]]:
    """Yield batches (index range, (rows, G) indexes) of resamples of G clusters drawn with replacement.

    int32.
    """
    rows = max(1, BATCH_BYTES // (16 * G))
    for start in range(0, resamples, rows):
        batch = slice(start, min(start + rows, resamples))
        yield batch, rng.integers(0, G, size=(batch.stop - start, G), dtype=np.int32)


def counts(picked: IntArray, G: int) -> FloatArray:
    """Count from the drawn indices how often each resample drew each of G clusters. Return (rows, G)."""
    rows = len(picked)
    flat = (picked + (np.arange(rows, dtype=np.int64) * G)[:, None]).ravel()
    return np.bincount(flat, minlength=rows * G).reshape(rows, G).astype(np.float64)


def bootstrap_means(parts: Sequence[ResampledClusters], resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return (resamples, R) means of R contrasts in bootstrap resamples of whole clusters [Cameron2008].

    A task's mean in a resample is the ratio of its sum and its number of questions. NaN where a
    resample leaves a task without any question.
    """
    out = np.zeros((resamples, parts[0].sums.shape[2]))
    for block in parts:
        G, T, R = block.sums.shape
        table = np.concatenate([block.sums.reshape(G, T * R), block.sizes], axis=1)
        for batch, picked in draws(G, resamples, rng):
            if table.shape[1] <= 2:  # cheaper to look up than to count
                total = np.stack([_drawn_sums(column, picked) for column in table.T], axis=1)
            else:
                total = counts(picked, G) @ table
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = total[:, : T * R].reshape(-1, T, R) / total[:, T * R :, None]
            out[batch] += np.einsum("btr,t->br", ratio, block.shares)
    return out


def _drawn_sums(column: FloatArray, picked: IntArray) -> FloatArray:
    """Return (rows,) the sum of a column's values over the clusters drawn in each resample."""
    if (column == column[0]).all():
        return np.full(len(picked), len(column) * column[0])
    # codes are never out of range: with `clip` numpy does not look whether they are, and fills `out` itself
    values = np.take(column, picked, out=np.empty(picked.shape), mode="clip")
    return np.asarray(values.sum(axis=1))


def acceleration(parts: Sequence[ResampledClusters]) -> FloatArray:
    """Return (R,) the acceleration constants for BCa intervals, by a jackknife over clusters [Efron, eq. 14.15]."""
    cubes, squares = np.float64(0.0), np.float64(0.0)
    for block in parts:
        G = len(block.sums)
        left = block.sizes.sum(axis=0) - block.sizes
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (block.sums.sum(axis=0) - block.sums) / left[:, :, None]
        theta = np.einsum("gtr,t->gr", means, block.shares)
        influence = (G - 1) * (theta.mean(axis=0) - theta) / G
        cubes = cubes + (influence**3).sum(axis=0)
        squares = squares + (influence**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(squares > 0, cubes / (6 * squares**1.5), 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The bootstrap distribution of one mean, and how to read it."""

    estimate: float
    values: FloatArray
    """(B,) the mean in every resample, sorted, without resamples that leave a task empty."""
    acceleration: float
    df: float = math.inf
    """Degrees of freedom that the variance is known with."""
    scale: float = 1.0
    """Standard error over the standard deviation of `values`, because resampling few clusters is too narrow.

    Tails are taken at z = scale · t_df in place of the normal quantile [Hesterberg]: with 5 clusters the plain
    percentile interval covers 85%."""

    @property
    def variance(self) -> float:
        return float(self.values.var(ddof=1))

    def expanded(self, variance: float, df: float) -> Distribution:
        """Return the bootstrap distribution scaled to have this variance, with these degrees of freedom."""
        own = self.variance
        return replace(self, df=df, scale=math.sqrt(variance / own) if own > 0 else 1.0)

    def _bias(self) -> float:
        """Return BCa's bias z₀: the normal quantile of the share of resamples below the estimate [Efron, eq. 14.14]."""
        B = len(self.values)
        slack = ROUNDING * max(1.0, abs(self.estimate))
        below = np.searchsorted(self.values, self.estimate - slack, side="left")
        upto = np.searchsorted(self.values, self.estimate + slack, side="right")
        return float(special.ndtri(np.clip((below + upto) / (2 * B), 0.5 / B, 1 - 0.5 / B)))

    def interval(self, level: float, method: Method = "bca") -> Limits[float]:
        """Return the BCa or percentile interval [Efron, eqs. 14.9–14.10], past the resamples Student's t if wider."""
        z = self.scale * float(critical(level, self.df))
        tails = special.ndtr(np.array([-z, z]))
        check_computed("method", method, "bca", "percentile")
        if method == "bca":
            z0 = self._bias()
            w = z0 + np.array([-z, z])
            tails = special.ndtr(z0 + w / np.maximum(1 - self.acceleration * w, 1e-3))
        low, high = (float(x) for x in np.quantile(self.values, tails))
        # beyond 1/(B + 1) the resamples say nothing: there the end of Student's t interval, if it is wider
        finest, half = 1 / (len(self.values) + 1), z * math.sqrt(self.variance)
        if tails[0] < finest:
            low = min(low, self.estimate - half)
        if tails[1] > 1 - finest:
            high = max(high, self.estimate + half)
        return Limits(low, high)

    def p_value(self, null: float = 0.0, method: Method = "bca") -> float:
        """Return the two-sided bootstrap p of a null: 1 − the level whose interval just touches the null.

        It is never 0.

        Every step of `interval` is inverted, so that p < α exactly where the interval of level 1 − α excludes the null.
        """
        slack = ROUNDING * max(1.0, abs(self.estimate))
        nearest = min(self._nearest(side, side * null + slack, method) for side in (1.0, -1.0)) / self.scale
        if math.isinf(self.df):
            return min(1.0, 2 * float(special.ndtr(max(nearest, -37.0))))
        return min(1.0, 2 * float(special.stdtr(self.df, max(nearest, -_FARTHEST))))

    def _nearest(self, side: float, null: float, method: Method) -> float:
        """Return the largest −z at which the lower limit (`side` −1: the upper) does not pass the null.

        Args:
            side: 1; −1 for the upper limit, which is a lower one with all signs turned.
            null: with that sign.
            method: of the interval.
        """
        check_computed("method", method, "bca", "percentile")
        values, B = (self.values if side > 0 else -self.values[::-1]), len(self.values)
        last = int(np.searchsorted(values, null, side="right"))
        share = 1.0 if last == B else 0.0  # the largest tail whose quantile does not exceed the null
        if 0 < last < B:
            share = (last - 1 + (null - values[last - 1]) / (values[last] - values[last - 1])) / (B - 1)
        z0, a = (side * self._bias(), side * self.acceleration) if method == "bca" else (0.0, 0.0)

        def turned_back(tail: float) -> float:
            """Return the −z whose BCa-corrected tail probability is `tail` [Efron, eq. 14.10]."""
            if tail in (0.0, 1.0):
                return math.inf if tail else -math.inf
            w = float(special.ndtri(tail)) - z0
            return w / (1 + a * w) - z0 if 1 + a * w > 1e-3 else math.copysign(math.inf, w)

        z, finest = turned_back(share), 1 / (B + 1)
        if share < finest:  # there the end of Student's t interval counts, if it is farther
            spread = math.sqrt(self.variance)
            student = (null - side * self.estimate) / spread if spread > 0 else -math.inf
            z = max(z, min(turned_back(finest), student))
        return z


def bootstrap(
    d: FloatArray,
    design: Design,
    resamples: int,
    rng: np.random.Generator,
    minus: tuple[FloatArray, Design] | None = None,
) -> Distribution | None:
    """Return the cluster-bootstrap `Distribution` of a mean, or of it less an independent one. None: too few clusters.

    Args:
        d: (n,) contrast values.
        design: their weights, tasks and clusters.
        resamples: how many.
        rng: source of the draws; the same state gives the same result.
        minus: values and design of a second, independent sample, to subtract (unpaired).
    """
    samples = [(d, design, 1.0)] if minus is None else [(d, design, 1.0), (*minus, -1.0)]
    total = np.zeros(resamples)
    estimate, parts = 0.0, []
    for values, its_design, sign in samples:
        cut = blocks(values, its_design)
        if any(len(block.sums) < 2 for block in cut):
            return None
        total += sign * bootstrap_means(cut, resamples, rng)[:, 0]
        estimate += sign * float(its_design.weights @ values)
        parts += [ResampledClusters(sign * block.sums, block.sizes, block.shares) for block in cut]
    kept = np.sort(total[np.isfinite(total)])
    if len(kept) < resamples / 2:
        return None
    a = float(acceleration(parts)[0])
    return Distribution(estimate, kept, a if np.isfinite(a) else 0.0)


def studentised(d: FloatArray, design: Design, resamples: int, rng: np.random.Generator) -> FloatArray | None:
    """Return t statistics (θ* − θ)/se* of those of B cluster resamples that vary [Efron, §12.5]. None if undefined.

    The errors are the clusters' own CR1 errors. Resamples in which nothing varies are left out. None if they are
    half of all, or a block has fewer than two clusters."""
    means, variances = np.zeros(resamples), np.zeros(resamples)
    for block in blocks(d, design):
        G, sums = len(block.sums), block.sums[:, :, 0]
        if G < 2:
            return None
        for batch, picked in draws(G, resamples, rng):
            times = counts(picked, G)
            with np.errstate(invalid="ignore", divide="ignore"):
                size = times @ block.sizes
                each, share = (times @ sums) / size, block.shares / size
                e = share @ sums.T - (share * each) @ block.sizes.T  # (rows, G): what each cluster adds to the mean
            means[batch] += each @ block.shares
            variances[batch] += (times * e * e).sum(axis=1) * G / (G - 1)
    estimate = float(design.weights @ d)
    varies = variances > (ROUNDING * max(1.0, abs(estimate))) ** 2
    t = (means[varies] - estimate) / np.sqrt(variances[varies])
    return t if len(t) >= resamples / 2 else None


def bootstrap_t(mean: float, se: float, t: FloatArray, level: float) -> Limits[float]:
    """Return the bootstrap-t interval of a mean, from the t statistics of its resamples [Efron, §12.5]."""
    low, high = np.quantile(t, [0.5 - level / 2, 0.5 + level / 2])
    return Limits(mean - float(high) * se, mean - float(low) * se)


def bootstrap_t_p(mean: float, se: float, t: FloatArray, null: float) -> float:
    """Return the two-sided bootstrap-t p of a null: 1 − the level whose interval just touches the null.

    It is never 0.
    """
    shares = np.linspace(0.0, 1.0, len(t))
    share = float(np.interp((mean - null) / se, np.sort(t), shares, left=0.0, right=1.0))
    return max(2 * min(share, 1 - share), 2 / (len(t) + 1))


def bootstrap_of_mean(of: OneMean) -> Limits[float] | None:
    """Return the bootstrap interval (percentile or BCa) of a mean. None if the mean cannot be resampled."""
    found: Distribution | None = of.distribution()
    return None if found is None else found.interval(of.level, of.method)


def studentised_of_mean(of: OneMean) -> Limits[float] | None:
    """Return the bootstrap-t interval of a mean. None if the mean cannot be resampled."""
    t = of.studentised()
    return None if t is None else bootstrap_t(of.mean, of.se, t, of.level)


def vectors(points: int, G: int, resamples: int, rng: np.random.Generator, *, exact: bool) -> Iterator[IntArray]:
    """Yield batches of (rows, G) random integers below `points`. `exact`: all points^G combinations once."""
    total, rows = points**G if exact else resamples, max(1, BATCH_BYTES // (16 * G))
    for start in range(0, total, rows):
        size = min(rows, total - start)
        if exact:
            yield np.arange(start, start + size)[:, None] // points ** np.arange(G) % points
        elif points == 2:
            words = rng.integers(0, 2**32, size=(size, -(-G // 32)), dtype=np.uint32)
            yield np.unpackbits(words.view(np.uint8), axis=1, count=G).astype(np.intp)
        else:
            yield rng.integers(0, points, size=(size, G))


def sign_flip_p(d: FloatArray, design: Design, resamples: int, rng: np.random.Generator) -> float:
    """Return the two-sided p of a zero mean by flips of cluster sums' signs [Good]: all 2^m, or random `resamples`.

    Exact over all 2^m patterns where they are no more than `resamples` (m clusters whose sum is not
    0); else Monte Carlo with the observed pattern counted in, so that p is never 0.
    """
    S = np.bincount(design.clusters, weights=design.weights * d, minlength=design.n_clusters)
    scale = float(np.abs(S).sum())
    S = S[np.abs(S) > ROUNDING * max(scale, SMALLEST)]
    if len(S) == 0:
        return 1.0
    observed, exact = abs(float(S.sum())) - 1e-10 * scale, 2 ** len(S) <= resamples
    flips = vectors(2, len(S), resamples, rng, exact=exact)
    extreme = sum(int((np.abs(2 * (bits @ S) - S.sum()) >= observed).sum()) for bits in flips)
    return extreme / 2 ** len(S) if exact else (extreme + 1) / (resamples + 1)


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
    """True if all weight vectors are used, including the observed signs. Otherwise they are drawn and the observed
    added."""

    def p_value(self, null: FloatArray | float = 0.0) -> FloatArray:
        """Return (P,) wild-bootstrap p of a null, for means that vary: the share of |t*| at least as large as |t|."""
        delta = np.asarray(self.estimate - null)
        delta = np.where(np.abs(delta) <= ROUNDING * self.se, 0.0, delta)  # a difference of 0, however it was summed
        above = np.square(self.x + delta * self.y)
        # the observed signs are one of the resamples: rounding must not lose them
        above *= self.se**2 * (1 + 2 * SLACK)
        extreme = above >= (self.q0 + delta * (self.q1 + delta * self.q2)) * delta**2
        count, resamples = extreme.sum(axis=0), len(extreme)
        return np.asarray(count / resamples if self.exact else (count + 1) / (resamples + 1))

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return (P,) wild-bootstrap limits: the range of nulls with p ≥ 1 − level [Roodman]. May be infinite.

        Infinite where none is rejected.

        They hold 0 exactly if it is not rejected: p may jump there, and bisection ends beside it.
        """
        alpha = 1 - level
        kept = self.p_value() >= alpha
        low, high = self._limit(-1.0, alpha, kept), self._limit(1.0, alpha, kept)
        return np.where(kept, np.minimum(low, 0.0), low), np.where(kept, np.maximum(high, 0.0), high)

    def _limit(self, side: float, alpha: float, kept: BoolArray) -> FloatArray:
        """Return (P,) limits on one side (`side` ±1) by bisection on p, before 0 where 0 is rejected (not `kept`).

        If 0 is rejected, the end lies before it.
        """
        inner, outer = np.zeros(len(self.estimate)), 4 * self.se
        outer = np.where(~kept & (side * self.estimate < 0), np.minimum(np.abs(self.estimate), outer), outer)
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


class ClusterMeans(NamedTuple):
    """The means of G clusters of questions, and whether they differ by more than their questions do."""

    means: FloatArray
    """(G,)"""
    se: FloatArray
    """(G,) s/√n_g, s² the variance of questions within clusters, pooled: Σ (d − d̄_g)²/(n − G)."""
    p_value: float
    """NaN if nothing varies within a cluster or every question is a cluster."""


SHUFFLES = 999


def cluster_means(d: FloatArray, codes: IntArray, seed: int = 0) -> ClusterMeans:
    """Return clusters' means, SEs by one pooled variance, and a permutation p that all are equal. NaN if none vary.

    The statistic is Σ n_g d̄_g², the sum of squares between clusters. Under the null the questions are exchangeable, so
    they are shuffled over clusters of the same sizes, `SHUFFLES` times; p = (1 + #{at least as large})/(1 + SHUFFLES)
    [Good]. It holds for any number and size of clusters.

    Args:
        d: (n,) A − B of each question.
        codes: (n,) its cluster, 0 … G − 1, of which each has a question.
        seed: of the shuffles.
    """
    sizes = np.bincount(codes)
    means = np.bincount(codes, weights=d) / sizes
    n, G = len(d), len(sizes)
    within = float(((d - means[codes]) ** 2).sum()) / (n - G) if n > G else 0.0
    if within <= ROUNDING * max(1.0, float(np.abs(d).max())) ** 2:
        return ClusterMeans(means, np.full(G, math.nan), math.nan)
    x, rng = (d - d.mean())[np.argsort(codes, kind="stable")], np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def between(values: FloatArray) -> float:
        return float((np.add.reduceat(values, starts) ** 2 / sizes).sum())

    least = between(x) * (1 - SLACK)
    larger = sum(between(rng.permutation(x)) >= least for _ in range(SHUFFLES))
    return ClusterMeans(means, np.sqrt(within / sizes), (1 + larger) / (1 + SHUFFLES))


def wild_weights(G: int, resamples: int, rng: np.random.Generator) -> tuple[Iterator[FloatArray], bool]:
    """Return (batches of (rows, G) random weights, True if these are all possible weights), for a wild bootstrap.

    Signs (Rademacher): all 2^G up to 12 clusters, drawn beyond [Roodman]. With fewer than 8 clusters Webb's six points
    [Webb]: all 6^G where they are no more than `resamples`, else drawn.
    """
    points = _SIX if G < FEW else np.array([-1.0, 1.0])
    exact = G <= ENUMERATED if G >= FEW else len(points) ** G <= resamples
    return (points[codes] for codes in vectors(len(points), G, resamples, rng, exact=exact)), exact


def wild_test(d: FloatArray, design: Design, resamples: int, rng: np.random.Generator) -> Wild:
    """Compute the wild cluster bootstrap of means of (P, n) values that vary, with the null imposed [MacKinnon].

    The null Σ w_t μ_t = μ₀ is imposed by least squares [MacKinnon]: restricted residuals are e_i + δ a_i/Σ a_i². A
    resample takes the tasks' means out of v_c times them, r_c = v_c S_c − Σ_t h_ct (Σ_c v_c S_ct), and clusters may
    cross tasks, as in `cluster_variance.clustered_variance`.

    Args:
        d: (n,) contrast values, not all equal within their tasks; or (P, n) of one task.
        design: their weights, tasks and clusters.
        resamples: how many weight vectors, where not all are taken.
        rng: source of the draws.
    """
    d, a, G = np.atleast_2d(d), design.weights, design.n_clusters
    if design.between_tasks:  # the tasks are the clusters of one mean
        task, share = np.zeros(len(a), dtype=np.intp), a
        means, leverage = (d @ a)[:, None], a
    else:
        task, share = design.strata, a**2 / float(a @ a)
        sizes = np.maximum(np.bincount(task), 1).astype(np.float64)
        means, leverage = (sum_by(task, d, len(sizes)) / sizes)[:, task], 1 / sizes[task]
    T = int(task.max()) + 1
    E, L, h = (_cluster_sums(x, design, task, T) for x in (a * (d - means), share, leverage))
    E_c, L_c = (x if T == 1 else np.asarray(x.sum(axis=1)).reshape(G, 1) for x in (E, L))
    shrunk_E, shrunk_L = (h * x if T == 1 else h.multiply(x).tocsr() for x in (E_c, L_c))
    H = h.T @ h if T == 1 else (h.T @ h).toarray()

    def dot(x: FloatArray, y: FloatArray) -> FloatArray:
        """Return the (…, 1) sums over tasks of x · y, for each row. One task: x · y as it is."""
        return x * y if T == 1 else (x * y).sum(axis=1, keepdims=True)

    parts: list[list[FloatArray]] = [[] for _ in range(5)]
    batches, exact = wild_weights(G, resamples, rng)
    for v in batches:
        squares, x, y = v**2, v @ E_c, v @ L_c
        of_E, of_L, cross_E, cross_L = (np.asarray(v @ part) for part in (E, L, shrunk_E, shrunk_L))
        taken_E, taken_L = (part * H if T == 1 else part @ H for part in (of_E, of_L))
        q0 = squares @ E_c**2 + dot(of_E, taken_E - 2 * cross_E)
        q1 = 2 * (squares @ (E_c * L_c) + dot(of_E, taken_L - cross_L) - dot(of_L, cross_E))
        q2 = squares @ L_c**2 + dot(of_L, taken_L - 2 * cross_L)
        for part, column in zip(parts, (x, y, q0, q1, q2), strict=True):
            part.append(column)
    x, y, q0, q1, q2 = (np.concatenate(part) for part in parts)
    return Wild(d @ a, np.sqrt((E_c**2).sum(axis=0)), x, y, q0, q1, q2, exact)


def _cluster_sums(values: FloatArray, design: Design, task: IntArray, T: int) -> Any:
    """Return (G, P) sums of (P, n) values by cluster. With several tasks P = 1: a sparse (G, T) matrix by task, too."""
    if T == 1:
        return sum_by(design.clusters, np.atleast_2d(values), design.n_clusters).T
    from scipy.sparse import csr_array  # not on the way of every comparison

    table = csr_array((values.ravel(), (design.clusters, task)), shape=(design.n_clusters, T))
    table.sum_duplicates()
    return table


def by_wild(wilds: Iterable[tuple[IntArray, Wild]], P: int, settings: Settings) -> Test:
    """Return a `Test` of P differences: the wild bootstrap's p-values, and its intervals if the settings ask for them.

    Args:
        wilds: rows, and the resamples of their differences; of other rows nothing is known.
        P: how many differences there are.
        settings: level, margin and interval.
    """
    own = settings.interval_of_difference == WILD_LIMITS.name
    levels = {settings.level} | (set() if settings.margin is None else {two_one_sided(settings.level)})
    margins = () if not settings.margin else (-settings.margin, settings.margin)
    p = {null: np.full(P, np.nan) for null in (0.0, *margins)}
    ends = {level: np.full((2, P), np.nan) for level in levels if own}
    for rows, wild in wilds:
        for null, column in p.items():
            column[rows] = wild.p_value(null)
        for level, both in ends.items():
            both[:, rows] = np.stack(wild.limits(level))
    limits = {level: Limits(*both) for level, both in ends.items()}
    test = Test(p[0.0], at=p.__getitem__, by_p=True)
    return replace(test, limits=limits.__getitem__, interval=WILD_LIMITS.name) if own else test
