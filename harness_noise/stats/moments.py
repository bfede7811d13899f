"""The moments of contrasts: mean, variance and the split into data and prediction noise. Numbers, no diagnostics.

One contrast or P of them at once, all on the same n questions or each with gaps of its own: the numbers of a run, of a
comparison and of every pair of a leaderboard come from `contrast_moments`.

Repeats may share a cause: a seed, a prompt or a judge that moves all questions together. The two-way table
question × run then has, beside the residual, a run component σ²_run, the variance of the whole mean from run to run
(two-way random effects without replication [Searle, §4.5]). K resampled answers have none; an F test says when they do.

Sources, cited at the lines that use them:
  [Wang]          Wang (2025), Measuring all the noises of LLM evaluations, arXiv 2512.21326
  [Satterthwaite] Satterthwaite (1946), Biometrics Bulletin 2(6): degrees of freedom of a sum of variances
  [Searle]        Searle, Casella & McCulloch (1992), Variance Components, ch. 3 and 4
  [Cramér]        Cramér (1946), Mathematical Methods of Statistics, §29.3: the unbiased skewness G₁ of a sample
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special

from ..arrays import BoolArray, FloatArray, IntArray, blank, rows_of
from ..settings import Estimator
from .cluster_variance import Cells, cells, crossed_variance, leverage_factor, task_weights
from .contrast import (
    Contrast,
    Design,
    QuestionStats,
    contrast,
    noise_can_be_split,
    once,
    question_stats,
    repeat_codes,
    sum_by,
)
from .data_limit import Terms, terms
from .intervals import Extension
from .tolerances import ROUNDING, SKEWED_MEASURE, SMALLEST


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The kernel's results for P contrasts, (P,) each. NaN is "not identified"."""

    n: FloatArray
    n_clusters: FloatArray
    mean: FloatArray
    variance: FloatArray
    """V, the variance of the mean as it was measured."""
    df: FloatArray
    naive: FloatArray
    """The variance that ignores clusters."""
    var_data: FloatArray
    var_prediction: FloatArray
    var_total: FloatArray
    zero_variance: BoolArray
    data_upper: FloatArray
    """One-sided 95% upper limit of `var_data`, see `data_limit`."""


class OfContrasts(NamedTuple):
    """The numbers of P contrasts of some runs."""

    c: Contrast
    m: Moments
    codes: dict[str, BoolArray]
    """Codes of their repeats."""
    limit: Terms | None
    """The terms of the data noise's upper limit, None if they are not needed."""
    alone: Sequence[Moments] = ()
    """The mean and the variance of each run by itself, if they were asked for."""


def contrast_moments(
    runs: Sequence[QuestionStats],
    coefficients: Sequence[float],
    design: Design,
    estimator: Estimator,
    *,
    fixed: bool = False,
    shown: BoolArray | None = None,
    alone: bool = False,
) -> OfContrasts:
    """Compute means or differences over runs: mean, variance, noise split, diagnostics, data-noise limit.

    Data noise is V − Σ a_i² w_i, the small-K correction of [Wang, §3.3]; it may be negative. Prediction noise is
    Σ a_i² v_i, at one answer per question; total noise V + Σ a_i² Σ_r a_r² s² (1 − 1/k) is their sum where they are
    identified, and always exists.

    Of questions that are no sample V is Σ a_i² w_i, what the repeats alone say: given the questions, answers are
    independent, and clusters change nothing, for what questions share is part of what is fixed. The degrees of freedom
    are those of a sum of variances [Satterthwaite]. What belongs to a sample of questions is NaN.

    Args:
        runs: question statistics of each, (n,) or (P, n).
        coefficients: of each run.
        design: weights, tasks and clusters of the n questions.
        estimator: of the variance.
        fixed: the questions are no sample.
        shown: (P, n) the questions that each contrast has; None: all of them.
        alone: the runs' own means and variances are wanted, too. There is one contrast, and the questions are a sample.
    """
    c, codes = contrast(runs, coefficients, design.strata, shown), repeat_codes(runs, design.strata, shown)
    each = np.array([c.d, *(run.mean for run in runs)]) if alone else c.d
    identified, m, by_itself = noise_can_be_split(codes), mean_variance(each, design, estimator, shown), list[Moments]()
    if alone:
        m, *by_itself = (rows_of(m, np.s_[i : i + 1]) for i in range(len(each)))
    weights, _ = task_weights(design, shown)
    v, w = ((weights**2 * sum_by(design.strata, np.atleast_2d(x), weights.shape[1])).sum(axis=1) for x in (c.v, c.w))
    if not fixed:
        split = identified & ~np.isnan(m.variance)
        limit = terms(c, design, m.variance, m.df, estimator, shown) if split.any() else None
        m = replace(
            m,
            var_data=np.where(split, without_rounding(m.variance, w), np.nan),
            var_prediction=np.where(split, v, np.nan),
            var_total=m.variance + (v - w),
            data_upper=m.data_upper if limit is None else np.where(split, limit.upper(), np.nan),
        )
        return OfContrasts(c, m, codes, limit, by_itself)
    varies = identified & (w > 0)
    codes["identical_repeats"] |= identified & ~varies
    with np.errstate(invalid="ignore", divide="ignore"):
        each_run = zip(runs, coefficients, strict=True)
        shares = ((run, (weights[:, design.strata] * a) ** 2 / np.maximum(run.count, 1)) for run, a in each_run)
        df = 1 / sum(_inverse_df_of_answer_noise(run, share, design, shown, w) for run, share in shares)
    w, df, v = (np.where(varies, x, np.nan) for x in (w, df, v))
    m = replace(undefined_moments(m.n, m.n), mean=m.mean, variance=w, df=df, var_prediction=v, var_total=v)
    return OfContrasts(c, m, codes, None)


def mean_variance(d: FloatArray, design: Design, estimator: Estimator, shown: BoolArray | None = None) -> Moments:
    """Return means of (P, n) values by weight, with cluster-robust variances and df. Noise is not split into kinds."""
    d = np.atleast_2d(d)
    P, n = d.shape
    weights, counts = task_weights(design, shown)
    task_means = sum_by(design.strata, d, counts.shape[1]) / np.maximum(counts, 1)
    one_task = counts.shape[1] == 1
    of_tasks = weights * counts
    mean = task_means[:, 0] if one_task else (of_tasks * task_means).sum(axis=1)
    largest = np.abs(d).max(axis=1, initial=0.0)
    mean = np.where(np.abs(mean) <= ROUNDING * largest, 0.0, mean)  # what cancels is 0, however it was summed
    means = task_means if one_task else task_means[:, design.strata]
    e = d - means
    rounding = ROUNDING * np.maximum(1.0, largest)
    e[np.abs(e) <= rounding[:, None]] = 0.0
    residual = np.broadcast_to(means - mean[:, None], d.shape) if design.between_tasks else e
    if shown is not None:
        e, residual = (np.where(shown, x, 0.0) for x in (e, residual))
    G = np.full(P, _count_clusters(design, shown))
    if n == 0:
        return undefined_moments(np.zeros(P), G)
    V, df = _variance(residual, design, cells(design, shown), estimator)
    V = np.where(np.isnan(mean), np.nan, V)  # a task is not there
    defined = ~np.isnan(V)
    with np.errstate(invalid="ignore", divide="ignore"):
        zero = np.sqrt(V) <= rounding
        leverage = np.where(counts > 0, 1 / counts, 0.0)
        each = (weights * leverage_factor(leverage, "cr2")) ** 2  # every question its own cluster
        naive = (each * sum_by(design.strata, e * e, counts.shape[1])).sum(axis=1)
    number, unknown = np.full(P, counts.sum(axis=1)), np.full(P, np.nan)
    return Moments(
        n=number,
        n_clusters=G,
        mean=np.where(number > 0, mean, np.nan),
        variance=np.where(zero, 0.0, V),
        df=np.where(defined, df, np.nan),
        naive=np.where(defined & np.isfinite(naive), naive, np.nan),
        var_data=unknown,
        var_prediction=unknown,
        var_total=unknown,
        zero_variance=zero,
        data_upper=unknown,
    )


def _count_clusters(design: Design, shown: BoolArray | None) -> FloatArray:
    """Return (Q,) how many clusters have at least one question that is shown."""
    if shown is None:
        return once(design, "clusters", lambda: np.array([np.count_nonzero(np.bincount(design.clusters))], np.float64))
    return np.asarray((sum_by(design.clusters, shown, design.n_clusters) > 0).sum(axis=1).astype(np.float64))


def _variance(e: FloatArray, design: Design, by_cell: Cells, estimator: Estimator) -> tuple[FloatArray, FloatArray]:
    """Return (P,) variances of P means and their df, from (P, n) residuals, clusters crossed or not. NaN if none."""
    if design.crossed is None:
        return by_cell.variances(e, estimator), np.full(len(e), by_cell.df)
    each = [crossed_variance(row, design, estimator) for row in e]
    V, df = np.array([(np.nan, np.nan) if x is None else (x.value, x.df) for x in each]).T
    return V, df


def undefined_moments(n: FloatArray, n_clusters: FloatArray) -> Moments:
    """Return moments that are all NaN except the numbers of questions and clusters."""
    return replace(blank(Moments, len(n)), n=n, n_clusters=n_clusters)


def _inverse_df_of_answer_noise(
    run: QuestionStats, shares: FloatArray, design: Design, shown: BoolArray | None, whole: FloatArray
) -> FloatArray:
    """Return (P,) one run's part Σ (c_i s²_i/V)²/(k_i − 1) of 1/df. If k_i = 1, others of its task take its share.

    It is free of the scale of the scores, of which it would take the fourth power. The share of questions with one
    answer, which borrow the mean s² of the others of their task, goes to these.

    Args:
        run: its statistics, (n,) or (P, n).
        shares: (P, n) c.
        design: the tasks of the questions.
        shown: (P, n) the questions that each contrast has; None: all of them.
        whole: (P,) V.
    """
    count, var = np.atleast_2d(run.count), np.atleast_2d(run.var)
    here = np.ones_like(count, dtype=np.bool_) if shown is None else shown
    several, T = (count >= 2) & here, int(design.strata.max(initial=0)) + 1
    lone = sum_by(design.strata, np.where(here & ~several, shares, 0.0), T)
    lent = lone / np.maximum(sum_by(design.strata, several, T), 1)
    added = (shares + lent[:, design.strata]) * np.where(several, var, 0.0)
    terms = (added / whole[:, None]) ** 2 / np.maximum(count - 1, 1)
    return np.asarray(terms.sum(axis=1))


def gap_of_runs(run: QuestionStats, design: Design, var_prediction: float, level: float) -> float:
    """Return the limit, at `level`, of the difference that answer noise alone makes between two runs, or NaN.

    t √2 √(Σ c_i² s²_i), the repeatability limit of ISO 5725-6, with the degrees of freedom of this sum of variances
    [Satterthwaite]. NaN if the prediction noise is not identified, or 0.
    """
    if not var_prediction > 0:
        return math.nan
    shares, var = design.weights[None] ** 2, np.array([var_prediction])
    df = 1 / float(_inverse_df_of_answer_noise(run, shares, design, None, var)[0])
    return float(special.stdtrit(df, (1 + level) / 2)) * math.sqrt(2 * var_prediction)


@dataclass(frozen=True, slots=True, eq=False)
class RunComponent:
    """The variance between the runs of one model. On the scale of the mean."""

    runs: int
    """K."""
    between: float
    """Variance of the K run means, MS_run / n."""
    residual: float
    """The part of it that independent answers would give, MS_res / n."""
    df_residual: float
    means: FloatArray
    """(K,) mean of each run."""
    effects: FloatArray
    """(T, K) by how much the mean of a task in each run differs from its mean in all of them."""
    correction: FloatArray
    """(T,) n_t/(n_t − 1): the run means took n_t − 1 of n_t degrees of freedom."""

    @property
    def variance(self) -> float:
        """Variance between runs σ²_run, not cut off at 0, so possibly negative."""
        return self.between - self.residual

    def spread(self, scale: float) -> float:
        """Return Σ V²/df over the two mean squares, scaled, as Satterthwaite's formula for df needs it."""
        between = (scale * self.between) ** 2 / (self.runs - 1)
        return between + (scale * self.residual) ** 2 / self.df_residual

    @property
    def p_value(self) -> float | None:
        """p-value of the F test that all runs have one mean. None if nothing is left besides the run effects."""
        return self._p(self.between, self.runs - 1)

    @property
    def first_p_value(self) -> float | None:
        """p-value of the F test that run 0 has the mean of the other runs. None without any residual."""
        others = np.full(self.runs - 1, self.means[1:].mean())
        return self._p(float(np.append(self.means[0], others).var(ddof=self.runs - 1)), 1)

    @property
    def others_p_value(self) -> float | None:
        """p-value of the F test that all runs but run 0 have one mean. None for under two, or without residuals."""
        return self._p(float(self.means[1:].var(ddof=1)), self.runs - 2) if self.runs > 2 else None

    def _p(self, between: float, df: int) -> float | None:
        """Return the p-value of the F test that runs with these means have one true mean. None if undefined."""
        if self.residual <= ROUNDING**2:
            return None
        return float(special.fdtrc(df, self.df_residual, between / self.residual))


def run_component(values: FloatArray, weights: FloatArray, strata: IntArray) -> RunComponent | None:
    """Return a `RunComponent` from (n, K) scores, column j being run j. None with few questions that all runs have.

    Run means come from the questions that every run has scored; None with K < 2, or with fewer than
    two such questions in a task.

    Args:
        values: (n, K), NaN where a run has no score for a question.
        weights: (n,) weight of each question in the mean.
        strata: (n,) task codes; run means are taken out task by task.
    """
    n, K = values.shape
    if K < 2 or n == 0:
        return None
    answers = np.ascontiguousarray(values.T)  # as in `question_stats`
    complete = ~np.isnan(answers).any(axis=0)
    T = int(strata.max(initial=0)) + 1
    size = np.bincount(strata, weights=complete, minlength=T)
    shares = np.bincount(strata, weights=weights, minlength=T)
    if (size[shares > 0] < 2).any():
        return None
    whole, task = (answers, strata) if complete.all() else (answers[:, complete], strata[complete])
    task_runs = sum_by(task, whole, T).T / np.maximum(size, 1)[:, None]
    effects = task_runs - task_runs.mean(axis=1, keepdims=True)
    means, correction = shares @ task_runs, size / np.maximum(size - 1, 1)
    left = whole - whole.mean(axis=0) - (effects[task] if T > 1 else effects).T
    squares = np.einsum("kn,kn->n", left, left) * ((shares / np.maximum(size, 1)) ** 2 * correction)[task]
    return RunComponent(
        runs=K,
        means=means,
        between=float(means.var(ddof=1)),
        residual=float(squares.sum()) / (K - 1),
        df_residual=float((size[shares > 0] - 1).sum() * (K - 1)),
        effects=effects,
        correction=correction,
    )


def without_run_means(values: FloatArray, strata: IntArray, component: RunComponent) -> QuestionStats:
    """Return question statistics of (n, K) scores after each run's deviation from the mean is subtracted.

    Their `var` estimates the residual variance σ²_res.
    """
    stats = question_stats(values - component.effects[strata])
    return QuestionStats(stats.mean, stats.var * component.correction[strata], stats.count)


def moving_together_p(values: FloatArray) -> FloatArray:
    """Return (P,) p of the F test that whole repeats are higher or lower, for P complete runs. NaN if no residual.

    NaN without any residual.

    Args:
        values: (P, n, K) scores of P runs, none of them missing.
    """
    _, n, K = values.shape
    means = values.mean(axis=1)
    left = values - values.mean(axis=2, keepdims=True) - (means - means.mean(axis=1, keepdims=True))[:, None, :]
    residual = np.einsum("pnk,pnk->p", left, left) / ((n - 1) * (K - 1) * n)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = special.fdtrc(K - 1, (n - 1) * (K - 1), means.var(axis=1, ddof=1) / residual)
    return np.where(residual > ROUNDING**2, p, np.nan)


def with_runs(m: Moments, components: Sequence[RunComponent], coefficients: Sequence[float]) -> Moments:
    """Add the variance between runs, negative or not, and adjust df [Searle, §4.5]. Unchanged if nothing is left.

    For one run se² = (MS_q + MS_run − MS_res)/(nK) with Satterthwaite's degrees of freedom over its
    three mean squares; with clusters V takes the place of MS_q/(nK). One of them is subtracted, which
    can leave next to no degrees of freedom, and an interval without end: never fewer than the runs have.
    Where σ²_run is so far below 0 that nothing but rounding would be left, the moments are as they were.
    """
    each = [(component, a * a, component.runs) for component, a in zip(components, coefficients, strict=True)]
    variance = m.variance + sum(a2 * component.variance / K for component, a2, K in each)
    spread = m.variance**2 / m.df + sum(component.spread(a2 / K) for component, a2, K in each)
    single = sum(a2 * component.variance for component, a2, _ in each)
    nothing = np.maximum(ROUNDING * m.variance, ROUNDING**2 * np.maximum(1.0, m.mean**2))
    if not (variance > nothing).all():
        return m
    return replace(
        m,
        variance=variance,
        df=np.maximum(variance**2 / spread, np.minimum(m.df, min(K - 1 for _, _, K in each))),
        zero_variance=np.zeros_like(m.zero_variance),
        var_prediction=m.var_prediction + single,
        var_total=m.var_total + single,
    )


def skewness(d: FloatArray, design: Design) -> float:
    """Return the skewness of a mean of question values: G₁ of cluster sums [Cramér] over √G. 0 if unknown or crossed.

    0 for questions clustered in two crossed ways, and where there are fewer than three clusters.
    """
    G = design.n_clusters
    if design.crossed is not None or G < 3:
        return 0.0
    z = _level_sums(d, design)
    squares = float(z @ z)
    if squares <= SMALLEST:
        return 0.0
    return float((z / math.sqrt(squares)) ** 3 @ np.ones(len(z))) * math.sqrt(G * (G - 1)) / (G - 2)


def ratio_skewness(z: FloatArray, y: FloatArray, design: Design) -> float:
    """Return the skewness that the noise of its denominator ȳ adds to a ratio's t statistic.

    A ratio and its standard error have ȳ and the estimated R in common: where se is taken at the estimate, and not at
    the true R as in Fieller's theorem, t becomes t + cov(z̄, ȳ)/(se(z̄) ȳ) t², and a skewness γ changes t by −γ t²/3.

    Args:
        z: the ratio's linearised values.
        y: the denominators of the questions.
        design: of the questions.
    """
    if design.crossed is not None or design.n_clusters < 3:
        return 0.0
    of_ratio, below = _level_sums(z, design), _level_sums(y, design)
    spread = math.sqrt(float(of_ratio @ of_ratio)) * float(design.weights @ y)
    unbiased = math.sqrt(design.n_clusters / (design.n_clusters - 1))
    return -3 * unbiased * float(of_ratio @ below) / spread if abs(spread) > SMALLEST else 0.0


def _level_sums(d: FloatArray, design: Design) -> FloatArray:
    """Return (G,) sums by cluster of what questions lie above their mean, rescaled as if clusters had one size."""
    sizes = np.maximum(np.bincount(design.strata), 1)
    means = (np.bincount(design.strata, weights=d) / sizes)[design.strata]
    by_cell = cells(design)
    e = by_cell.sums((means - float(design.weights @ d) if design.between_tasks else d - means)[None, :])
    return np.asarray(Extension(by_cell, "cr2").level_sums(e)[0])


def is_skewed(d: FloatArray, design: Design) -> bool:
    """Return True if a mean is so skewed that its t interval is too short on the side of the long tail."""
    return abs(skewness(d, design)) > SKEWED_MEASURE


def without_rounding(x: FloatArray | float, y: FloatArray | float) -> FloatArray:
    """Return x − y elementwise, set to exactly 0 where it is only rounding error, so that its sign is reliable."""
    left = np.asarray(x - y)
    return np.where(np.abs(left) <= ROUNDING * np.maximum(x, y), 0.0, left)


def intraclass_correlation(d: FloatArray, design: Design) -> float | None:
    """Return the ANOVA intraclass correlation within clusters of one task [Searle, §3.6]. None if undefined, crossed.

    None without clusters or with crossed ones, over several tasks, with singletons only, or without any variance.
    """
    n, G = len(d), design.n_clusters
    if not design.clustered or design.crossed is not None or G < 2 or n <= G or design.strata.any():
        return None
    sizes = np.bincount(design.clusters, minlength=G).astype(np.float64)
    means = np.bincount(design.clusters, weights=d, minlength=G) / sizes
    between = float(sizes @ (means - d.mean()) ** 2) / (G - 1)
    within = float(((d - means[design.clusters]) ** 2).sum()) / (n - G)
    n0 = (n - float(sizes @ sizes) / n) / (G - 1)
    total = between + (n0 - 1) * within
    return (between - within) / total if total > (ROUNDING * float(np.abs(d).max())) ** 2 else None
