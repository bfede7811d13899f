"""The moments of a contrast: its mean, its variance and the split into data and prediction noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from .arrays import Estimator, FloatArray
from .cluster_variance import cells, clustered_variance
from .contrast import Contrast, Design
from .crossed import crossed_variance
from .decision import noise_codes
from .flips import Extension
from .tolerances import ROUNDING, SMALLEST


@dataclass(frozen=True, slots=True)
class Moments:
    """What the kernel says of one contrast; None is "not identified"."""

    n: int
    n_clusters: int
    mean: float | None
    variance: float | None
    """V, the variance of the mean as it was measured."""
    df: float | None
    naive: float | None
    """The variance that ignores clusters."""
    var_data: float | None
    var_prediction: float | None
    var_total: float | None
    icc: float | None
    zero_variance: bool
    diagnostics: tuple[str, ...]


def moments(c: Contrast, plan: Design, estimator: Estimator = "cr2") -> Moments:
    """Mean, variance and noise decomposition of a contrast under a design.

    Data noise is V − Σ a_i² w_i, the small-K correction of [W §3.3]; it may be negative. Prediction
    noise is Σ a_i² v_i, at one answer per question; total noise V + Σ a_i² Σ_r a_r² s² (1 − 1/k) is
    their sum where they are identified, and always exists.
    """
    n = len(c.d)
    found = set(c.diagnostics)
    if n == 0:
        return nothing(0, 0)
    sizes = np.bincount(plan.strata).astype(np.float64)
    shares = np.bincount(plan.strata, weights=plan.weights).astype(np.float64)
    task_means = np.bincount(plan.strata, weights=c.d) / np.maximum(sizes, 1)
    mean = float(task_means[0]) if len(sizes) == 1 else float(shares @ task_means)
    e = c.d - task_means[plan.strata]
    rounding = ROUNDING * max(1.0, float(np.abs(c.d).max()))
    e[np.abs(e) <= rounding] = 0.0
    if plan.crossed is not None:
        result = crossed_variance(e, plan, estimator)
    else:
        result = clustered_variance(task_means[plan.strata] - mean if plan.between_tasks else e, plan, estimator)
    if result is None:
        found.add("too_few_questions" if n < 2 else "too_few_clusters")
        return replace(nothing(n, plan.n_clusters), mean=mean, diagnostics=tuple(sorted(found)))
    independent = Design(plan.weights, plan.strata, np.arange(n), n, clustered=False)
    naive = clustered_variance(e, independent)
    V, df = result.value, result.df
    zero = math.sqrt(V) <= rounding
    V = 0.0 if zero else V
    a2 = plan.weights**2
    var_prediction = float(a2 @ c.v) if c.identified else None
    var_data = float(without_rounding(V, float(a2 @ c.w))) if c.identified else None
    # of two crossed ways the one with fewer clusters decides, whatever both together have
    fewest = df if plan.crossed is None else min(df, *(float(codes.max()) for codes in plan.crossed))
    found |= noise_codes(fewest, zero=zero, var_data=var_data)
    if plan.clustered and plan.n_clusters == n:
        found.add("singleton_clusters")
    return Moments(
        n=n,
        n_clusters=plan.n_clusters,
        mean=mean,
        variance=V,
        df=df,
        naive=naive.value if naive is not None else None,
        var_data=var_data,
        var_prediction=var_prediction,
        var_total=V + float(a2 @ c.more),
        icc=intraclass_correlation(c.d, plan),
        zero_variance=zero,
        diagnostics=tuple(sorted(found)),
    )


def nothing(n: int, n_clusters: int, code: str = "too_few_questions") -> Moments:
    """What is known where there is no variance to speak of."""
    empty = dict.fromkeys(("mean", "variance", "df", "naive", "var_data", "var_prediction", "var_total", "icc"))
    return Moments(n, n_clusters, **empty, zero_variance=False, diagnostics=(code,))


def skewness(d: FloatArray, plan: Design) -> float:
    """Skewness of the mean: that of the clusters' `level_sums` of residuals, as of a sample (G₁), over √G.

    0 for questions clustered in two crossed ways, and where there are fewer than three clusters.
    """
    G = plan.n_clusters
    if plan.crossed is not None or G < 3:
        return 0.0
    sizes = np.maximum(np.bincount(plan.strata), 1)
    means = (np.bincount(plan.strata, weights=d) / sizes)[plan.strata]
    found = cells(plan)
    e = found.sums(means - float(plan.weights @ d) if plan.between_tasks else d - means)
    z = Extension(found, "cr2").level_sums(e[None, :])[0]
    squares = float(z @ z)
    if squares <= SMALLEST:
        return 0.0
    return float((z / math.sqrt(squares)) ** 3 @ np.ones(G)) * math.sqrt(G * (G - 1)) / (G - 2)


def upper_variance(V: FloatArray | float, df: FloatArray | float, assurance: float) -> FloatArray:
    """One-sided upper limit V df/χ²_df(1 − assurance) of a variance estimated as V with df degrees of freedom."""
    return np.asarray(V * df / special.chdtri(df, assurance))


def without_rounding(x: FloatArray | float, y: FloatArray | float) -> FloatArray:
    """x − y, 0 where only rounding is left: its sign is a diagnostic."""
    left = np.asarray(x - y)
    return np.where(np.abs(left) <= ROUNDING * np.maximum(x, y), 0.0, left)


def intraclass_correlation(d: FloatArray, plan: Design) -> float | None:
    """One-way ANOVA estimate of the ICC of d within clusters of unequal size, one task.

    None without clusters or with crossed ones, over several tasks, with singletons only, or without any variance.
    """
    n, G = len(d), plan.n_clusters
    if not plan.clustered or plan.crossed is not None or G < 2 or n <= G or plan.strata.any():
        return None
    sizes = np.bincount(plan.clusters, minlength=G).astype(np.float64)
    means = np.bincount(plan.clusters, weights=d, minlength=G) / sizes
    between = float(sizes @ (means - d.mean()) ** 2) / (G - 1)
    within = float(((d - means[plan.clusters]) ** 2).sum()) / (n - G)
    n0 = (n - float(sizes @ sizes) / n) / (G - 1)
    total = between + (n0 - 1) * within
    return (between - within) / total if total > 0 else None
