"""The kernel: the noise of a mean of question statistics, clustered, paired or grouped.

Every analysis is one estimator applied to a contrast of runs: a value d_i per question and the
prediction variance that goes with it. A single run, a paired difference, any linear combination of
runs and a group of tasks differ only in how the contrast is built.

Sources, cited at the lines that use them:
  [W]   Wang (2025), Measuring all the noises of LLM evaluations, arXiv 2512.21326
  [M]   Miller (2024), Adding error bars to evals, arXiv 2411.00640
  [BM]  Bell & McCaffrey (2002), Survey Methodology 28(2)
  [PT]  Pustejovsky & Tipton (2018), J. Business & Economic Statistics 36(4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Estimator = Literal["cr0", "cr1", "cr2", "cr3"]


FEWEST_REPEATED = 10
"""Questions with two answers from which more questions than these may borrow their variance: the mean of fewer
s², each of two or three answers, says next to nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class QuestionStats:
    """The scores of one run, reduced to what the kernel needs."""

    mean: FloatArray
    """(n,) mean over the repeats that have a score; NaN where none has."""
    var: FloatArray
    """(n,) variance between the repeats, ddof = 1; NaN where fewer than two have a score."""
    count: IntArray
    """(n,) number of repeats that have a score, k_i."""

    def take(self, index: IntArray | BoolArray) -> QuestionStats:
        return QuestionStats(self.mean[index], self.var[index], self.count[index])

    def __len__(self) -> int:
        return len(self.count)


def question_stats(values: FloatArray) -> QuestionStats:
    """Reduce (n, K) scores, NaN where a repeat has no score, to question statistics.

    Raises:
        ValueError: not two-dimensional, no repeat at all, or an infinite score.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"scores must be an (n, K) array with K ≥ 1, not of shape {values.shape}")
    present = ~np.isnan(values)
    count = np.count_nonzero(present, axis=1)
    if np.isinf(values).any():
        raise ValueError("a score is infinite; leave it out (NaN) or use a bounded metric")
    filled = np.where(present, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
        constant = low == high  # rounding must not turn identical answers into noise
        mean = np.where(constant, low, filled.sum(axis=1) / count)
        filled -= mean[:, None]
        filled[~present] = 0.0
        squares = np.square(filled, out=filled).sum(axis=1)
        var = np.where(constant, 0.0, squares / (count - 1))
    mean[count == 0] = np.nan
    var[count < 2] = np.nan
    return QuestionStats(mean, var, count.astype(np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """Σ_r a_r m_ri of several runs on the same n questions, with what the repeats say of its noise."""

    d: FloatArray
    """(n,) value per question."""
    v: FloatArray
    """(n,) prediction variance of one answer per question, Σ a_r² s²_ri."""
    w: FloatArray
    """(n,) prediction variance that is left in d, Σ a_r² s²_ri / k_ri."""
    more: FloatArray
    """(n,) what one answer in place of k would add, Σ a_r² s²_ri (1 − 1/k_ri)."""
    identified: bool
    """Whether v and w are known, so that the data / prediction split is."""
    diagnostics: tuple[str, ...]


def contrast(
    runs: Sequence[QuestionStats], coefficients: Sequence[float] = (1.0,), strata: IntArray | None = None
) -> Contrast:
    """Build the contrast Σ_r a_r m_ri of `runs`, all on the same n questions.

    Args:
        runs: statistics of each run; every question must have at least one score in each.
        coefficients: a_r; (1,) for one run, (1, −1) for a paired difference.
        strata: (n,) task codes, where the questions are of several tasks: a question with one
            answer borrows its variance only from its own task.

    A question with a single answer takes the mean s² of the others of its run and task
    (`partly_single_repeat`); where none or too few have two answers (`single_repeat`), or where all
    answers of a run agree on every question (`identical_repeats`), the split is not identified.
    """
    n = len(runs[0])
    if len(runs) != len(coefficients) or any(len(run) != n for run in runs):
        raise ValueError("one coefficient per run, and the same questions in every run")
    if any((run.count == 0).any() for run in runs):
        raise ValueError("a question without any score: drop it before the contrast is built")
    codes = np.zeros(n, dtype=np.intp) if strata is None else strata
    d, v, w, more = (np.zeros(n) for _ in range(4))
    found: set[str] = set()
    for run, a in zip(runs, coefficients, strict=True):
        single = run.count < 2
        s2 = np.where(single, 0.0, run.var)
        if single.any():
            known, lone = np.bincount(codes, weights=~single), np.bincount(codes, weights=single)
            if (known < np.minimum(FEWEST_REPEATED, lone)).any():
                found.add("single_repeat")
            else:
                mean_s2 = np.bincount(codes, weights=s2) / np.maximum(known, 1)
                s2 = np.where(single, mean_s2[codes], s2)
                found.add("partly_single_repeat")
        most = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.intp)
        np.maximum.at(most, codes, run.count)
        if (run.count != most[codes]).any():
            found.add("missing_repeats")
        if (~single).any() and not (run.var[~single] > 0).any():
            found.add("identical_repeats")
        d += a * run.mean
        v += a * a * s2
        w += a * a * s2 / run.count
        more += a * a * s2 * (1 - 1 / run.count)
    return Contrast(d, v, w, more, not found & {"single_repeat", "identical_repeats"}, tuple(sorted(found)))


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """How n questions are weighted and what they share."""

    weights: FloatArray
    """(n,) weight of each question in the mean, w_t/n_t; sums to 1."""
    strata: IntArray
    """(n,) task codes 0 … T−1; zero throughout for one task."""
    clusters: IntArray
    """(n,) cluster codes 0 … G−1; clusters may cross tasks."""
    n_clusters: int
    clustered: bool
    """False where every question is its own cluster because nobody named clusters."""
    between_tasks: bool = False
    """The tasks themselves are the sample, each one cluster."""
    crossed: tuple[IntArray, IntArray] | None = None
    """Codes of both ways, where the questions are clustered in two crossed ways; `clusters` is the way with fewer."""


def design(
    n: int,
    clusters: Sequence[str] | NDArray[np.generic] | None = None,
    strata: IntArray | None = None,
    stratum_weights: FloatArray | None = None,
) -> Design:
    """The design of n questions: independent by default, of one task, each weighted 1/n.

    Args:
        n: number of questions.
        clusters: (n,) labels, compared by equality.
        strata: (n,) task codes 0 … T−1.
        stratum_weights: (T,) weights of the tasks in the mean; by default by size.
    """
    strata = np.zeros(n, dtype=np.intp) if strata is None else np.asarray(strata, dtype=np.intp)
    T = 1 if stratum_weights is None else len(stratum_weights)
    sizes = np.bincount(strata, minlength=T).astype(np.float64)
    shares = sizes / max(n, 1) if stratum_weights is None else np.asarray(stratum_weights, dtype=np.float64)
    if n and abs(shares.sum() - 1) > 1e-9:
        raise ValueError("the weights of the tasks must sum to 1")
    if n and (shares[sizes == 0] > 0).any():
        raise ValueError("a task of non-zero weight has no question")
    weights = (shares / np.maximum(sizes, 1))[strata]
    if clusters is None:
        return Design(weights, strata, np.arange(n), n, clustered=False)
    if len(clusters) != n:
        raise ValueError(f"{len(clusters)} cluster labels for {n} questions")
    codes, n_clusters = cluster_codes(clusters)
    return Design(weights, strata, codes, n_clusters, clustered=True)


def cluster_codes(labels: Sequence[object] | NDArray[np.generic]) -> tuple[IntArray, int]:
    """Codes 0 … G−1 of cluster labels, in order of first appearance."""
    items = labels.tolist() if isinstance(labels, np.ndarray) else labels
    index = {label: code for code, label in enumerate(dict.fromkeys(items))}
    return np.fromiter(map(index.__getitem__, items), np.intp, len(items)), len(index)


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a weighted mean, and the degrees of freedom it is known with."""

    value: float
    df: float


def clustered_variance(e: FloatArray, plan: Design, estimator: Estimator = "cr2") -> Variance | None:
    """Variance of Σ a_i d_i from the residuals `e` = d_i − (mean of its task); None with G < 2.

    CR2 for a weighted mean of task means, clusters crossing tasks:
    V = Σ_c [Σ_t (w_t/n_t) (1 − n_ct/n_t)^(−1/2) Σ_{i∈c∩t} e_i]², which for one task is
    V = (1/n²) Σ_c (Σ_{i∈c} e_i)² / (1 − n_c/n) [BM; PT eq. 5 for an intercept-only model].
    CR0 leaves the leverage out [M, eq. 4]; CR1 multiplies that by G/(G − 1); CR3 has the leverage's
    full inverse in place of the square root, the jackknife [BM]. The degrees of freedom depend on the
    design alone: Satterthwaite under working independence [BM], for all four.
    A task of non-zero weight with one cluster has no residual to learn from: None.
    """
    if len(e) < 2 or plan.n_clusters < 2:
        return None
    return cells_variance(cells(e, plan), estimator)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Values summed by cluster and task: all that a clustered variance needs to know of the questions."""

    sums: FloatArray
    """(C,) sum of the values in each cell."""
    sizes: FloatArray
    """(C,) questions in each cell, n_ct."""
    clusters: IntArray
    """(C,) cluster codes, ascending."""
    strata: IntArray
    """(C,) task codes."""
    weights: FloatArray
    """(T,) weight of one question of each task in the mean, a_t = w_t/n_t."""
    n_clusters: int


def cells(values: FloatArray, plan: Design) -> Cells:
    """The values of all questions by cluster × task."""
    G, T = plan.n_clusters, int(plan.strata.max()) + 1
    if T == 1:
        cell_cluster, cell_stratum, cell_of = np.arange(G), np.zeros(G, dtype=np.intp), plan.clusters
    else:
        found, cell_of = np.unique(plan.clusters * T + plan.strata, return_inverse=True)
        cell_cluster, cell_stratum = np.divmod(found, T)
    weights = np.zeros(T)
    weights[plan.strata] = plan.weights
    sums, sizes = (np.bincount(cell_of, weights=w).astype(np.float64) for w in (values, None))
    return Cells(sums, sizes, cell_cluster, cell_stratum, weights, G)


def cells_variance(found: Cells, estimator: Estimator) -> Variance | None:
    """The variance of `clustered_variance` from sums of residuals by cell."""
    G, T, n_ct = found.n_clusters, len(found.weights), found.sizes
    cell_cluster, cell_stratum = found.clusters, found.strata
    n_t = np.bincount(cell_stratum, weights=n_ct, minlength=T)[cell_stratum]
    a = found.weights[cell_stratum]
    used = a > 0
    if (n_ct[used] == n_t[used]).any():
        return None
    s = 1 / np.sqrt(np.where(used, 1 - n_ct / n_t, 1.0))
    scale = {"cr2": s, "cr3": s * s}.get(estimator, np.ones_like(s))
    sums = np.bincount(cell_cluster, weights=a * scale * found.sums, minlength=G)
    V = float(sums @ sums) * (G / (G - 1) if estimator == "cr1" else 1.0)

    # P_cd = Σ_t a_t² s_ct s_dt (n_ct δ_cd − n_ct n_dt/n_t) = diag(D) − U Uᵀ; both traces without P.
    D = np.bincount(cell_cluster, weights=a * a * s * s * n_ct, minlength=G)
    u = a * s * n_ct / np.sqrt(n_t)
    uu = np.bincount(cell_cluster, weights=u * u, minlength=G)
    trace = D.sum() - uu.sum()
    trace2 = D @ D - 2 * D @ uu + _gram_norm2(u, cell_cluster, cell_stratum, (G, T))
    return Variance(V, float(satterthwaite(trace, trace2)))


def between_task_variance(means: FloatArray, shares: FloatArray, estimator: Estimator = "cr2") -> Variance | None:
    """Variance of Σ w_t d̄_t when the T tasks are the sample; None with T < 2.

    V = Σ w_t² (d̄_t − d̄)² / (1 − w_t), with the degrees of freedom of CR2, w_t in place of n_c/n.
    """
    w = shares[shares > 0]
    T = len(w)
    if T < 2:
        return None
    e = means[shares > 0] - float(shares @ means)
    leverage = {"cr2": 1 - w, "cr3": (1 - w) ** 2}.get(estimator, np.ones(T))
    V = float((w * e) ** 2 @ (1 / leverage)) * (T / (T - 1) if estimator == "cr1" else 1.0)
    D, u2 = w / (1 - w), w**2 / (1 - w)
    trace = D.sum() - u2.sum()
    trace2 = D @ D - 2 * D @ u2 + u2.sum() ** 2
    return Variance(V, float(satterthwaite(trace, trace2)))


def satterthwaite(trace: FloatArray | float, trace2: FloatArray | float) -> FloatArray:
    """tr(P)²/tr(P²); a whole number where only rounding keeps it from being one (balanced clusters)."""
    df = np.asarray(trace**2 / trace2)
    whole = np.rint(df)
    return np.where(np.abs(df - whole) < 1e-9 * df, whole, df)


def _gram_norm2(u: FloatArray, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> float:
    """‖UᵀU‖² (Frobenius) of the sparse G × T matrix U."""
    if shape[1] == 1:
        return float(u @ u) ** 2
    from scipy.sparse import csr_array

    U = csr_array((u, (rows, columns)), shape=shape)
    gram = U.T @ U
    return float((gram.data**2).sum())


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
        nothing = dict.fromkeys(("mean", "variance", "df", "naive", "var_data", "var_prediction"))
        return Moments(
            0, 0, **nothing, var_total=None, icc=None, zero_variance=False, diagnostics=("too_few_questions",)
        )
    sizes = np.bincount(plan.strata).astype(np.float64)
    shares = np.bincount(plan.strata, weights=plan.weights).astype(np.float64)
    task_means = np.bincount(plan.strata, weights=c.d) / np.maximum(sizes, 1)
    mean = float(task_means[0]) if len(sizes) == 1 else float(shares @ task_means)
    e = c.d - task_means[plan.strata]
    e[np.abs(e) <= 1e-12 * max(1.0, float(np.abs(c.d).max()))] = 0.0
    if plan.between_tasks:
        result = between_task_variance(task_means, shares, estimator)
    elif plan.crossed is not None:
        from .crossed import crossed_variance

        result = crossed_variance(e, plan, estimator)
    else:
        result = clustered_variance(e, plan, estimator)
    if result is None:
        found.add("too_few_questions" if n < 2 else "too_few_clusters")
        return Moments(n, plan.n_clusters, mean, None, None, None, None, None, None, None, False, tuple(sorted(found)))
    independent = Design(plan.weights, plan.strata, np.arange(n), n, clustered=False)
    naive = clustered_variance(e, independent)
    V, df = result.value, result.df
    zero = math.sqrt(V) <= 1e-12 * max(1.0, float(np.abs(c.d).max()))
    V = 0.0 if zero else V
    a2 = plan.weights**2
    var_prediction = float(a2 @ c.v) if c.identified else None
    var_data = _difference(V, float(a2 @ c.w)) if c.identified else None
    if zero:
        found.add("zero_variance")
    if var_data is not None and var_data < 0:
        found.add("negative_data_variance")
    if plan.clustered and plan.n_clusters == n:
        found.add("singleton_clusters")
    if df < 10:
        found.add("few_clusters")
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


def upper_variance(V: FloatArray | float, df: FloatArray | float, assurance: float) -> FloatArray:
    """One-sided upper limit V df/χ²_df(1 − assurance) of a variance estimated as V with df degrees of freedom."""
    return np.asarray(V * df / special.chdtri(df, assurance))


def _difference(x: float, y: float) -> float:
    """x − y, 0 where only rounding is left: its sign is a diagnostic."""
    return 0.0 if abs(x - y) <= 1e-12 * max(x, y) else x - y


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
