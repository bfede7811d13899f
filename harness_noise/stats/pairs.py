"""Paired differences of P pairs of runs on their questions: moments and further numbers. `compare` has P = 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..arrays import AnyArray, BoolArray, FloatArray, IntArray, blank, columns_of, put
from ..settings import Estimator
from .cluster_variance import cells
from .contrast import (
    Contrast,
    Design,
    QuestionStats,
)
from .data_limit import Terms
from .decision import Differences, noise_flags, sign_p
from .intervals import ExtendedSample, Extension, bonett_price
from .moments import Moments, contrast_moments, mean_variance
from .tolerances import ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class Leads:
    """On which clusters A leads, and B, of P differences A − B."""

    signs_a: IntArray
    """Questions (with clusters: clusters) on which A is ahead: the counts of the sign test."""
    signs_b: IntArray
    same: BoolArray
    """The two agree on every question."""
    gain: FloatArray
    """Σ of the clusters' weighted sums of d that are above 0, and of those below: the mean where nothing varies."""
    loss: FloatArray


def leads(d: FloatArray, design: Design, m: Moments, shown: BoolArray | None = None) -> Leads:
    """Return `Leads` of P pairs: clusters (questions) on which A or B is ahead (crossed: 0), gains, losses, equality.

    Questions clustered in two crossed ways have no sign test.

    Args:
        d: (P, n) differences, 0 on questions that are not shown.
        design: weights, tasks and clusters of the n questions.
        m: the moments of the P differences.
        shown: (P, n) the questions that each difference has; None: all of them.
    """
    sums = cells(design, shown).weighted_sums(d)
    scaled = sums * m.n[:, None]
    tolerance = ROUNDING * np.maximum(1.0, np.abs(scaled).max(axis=1, initial=0.0))[:, None]
    each = (scaled > tolerance).sum(axis=1), (scaled < -tolerance).sum(axis=1)
    signs_a, signs_b = each if design.crossed is None else np.zeros((2, len(d)), dtype=np.intp)
    same = m.zero_variance & (np.abs(d).max(axis=1, initial=0.0) <= ROUNDING)
    return Leads(signs_a, signs_b, same, np.maximum(sums, 0.0).sum(axis=1), np.maximum(-sums, 0.0).sum(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """All that each run of P differences is by itself, over the questions that both have."""

    n_only_a: IntArray
    """Questions that A alone has."""
    n_only_b: IntArray
    repeats_a: IntArray
    """The most answers to a question."""
    repeats_b: IntArray
    mean_a: FloatArray
    mean_b: FloatArray
    variance_a: FloatArray
    """Variance of A's own mean."""
    variance_b: FloatArray
    correlation: FloatArray
    wins_a: FloatArray
    """Expected number of higher scores, over all pairs of answers."""
    wins_b: FloatArray


def sides_of(
    only: Sequence[IntArray], repeats: Sequence[IntArray], each: Sequence[Moments], correlated: FloatArray
) -> Sides:
    """Return `Sides` of P pairs: unshared questions, most answers, means, variances, correlations. Wins are NaN.

    The wins are not known.
    """
    a, b = each
    sides = (only[0], only[1], repeats[0], repeats[1], a.mean, b.mean, a.variance, b.variance)
    return Sides(*sides, correlated, np.full_like(correlated, np.nan), np.full_like(correlated, np.nan))


def correlation(x: FloatArray, y: FloatArray, shown: BoolArray | None = None) -> FloatArray:
    """Return (P,) correlations of A's and B's (P, n) mean scores over the `shown` questions. NaN if one is constant."""
    here = np.ones(x.shape) if shown is None else shown
    n, each = here.sum(axis=1, keepdims=True), []
    with np.errstate(invalid="ignore", divide="ignore"):
        for values in (x * here, y * here):
            e = (values - values.sum(axis=1, keepdims=True) / n) * here
            flat = np.abs(e).max(axis=1, initial=0.0) <= ROUNDING * np.abs(values).max(axis=1, initial=0.0)
            each.append((e, np.where(flat, 0.0, np.einsum("pn,pn->p", e, e))))
        (e_x, xx), (e_y, yy) = each
        out: FloatArray = np.einsum("pn,pn->p", e_x, e_y) / np.sqrt(xx * yy)
        out = np.minimum(np.maximum(out, -1.0), 1.0)
    return np.where((n[:, 0] < 2) | (xx == 0) | (yy == 0), np.nan, out)


def from_questions(
    runs: Sequence[QuestionStats],
    design: Design,
    estimator: Estimator,
    *,
    fixed: bool = False,
    shown: BoolArray | None = None,
) -> tuple[dict[str, Any], dict[str, BoolArray], Contrast, Terms | None]:
    """Compute A − B in P pairs from A's and B's (P, n) statistics: columns, repeat flags, contrasts, data-noise limits.

    Args:
        runs: statistics of A and of B, (P, n) each.
        design: weights, tasks and clusters of the n questions.
        estimator: of the variance over questions.
        fixed: the questions are no sample.
        shown: (P, n) the questions that both have; None: all of them.
    """
    c, m, repeats, limit, _ = contrast_moments(runs, (1.0, -1.0), design, estimator, fixed=fixed, shown=shown)
    parts: dict[str, Any] = {"of": m}
    if fixed:
        alone = [contrast_moments([x], (1.0,), design, estimator, fixed=True, shown=shown).m for x in runs]
    else:
        masked = [run.mean if shown is None else run.mean * shown for run in runs]
        alone = [mean_variance(values, design, estimator, shown) for values in masked]
        parts["leads"] = leads(c.d, design, m, shown)
        parts["far"] = extended_samples(c.d, design, m, estimator, shown)
    top = [(run.count if shown is None else run.count * shown).max(axis=1, initial=0) for run in runs]
    none = np.zeros(len(m.n), dtype=np.intp)
    parts["sides"] = sides_of((none, none), top, alone, correlation(runs[0].mean, runs[1].mean, shown))
    return parts, repeats, c, limit


def difference_columns(m: Moments, of: Leads, sides: Sides, clustered: bool, *, lower: bool) -> dict[str, AnyArray]:
    """Return {name: column} of P differences except interval, p, verdict. `lower`: the lower score wins."""
    shown = columns_of(replace(sides, wins_a=sides.wins_b, wins_b=sides.wins_a) if lower else sides)
    variance_a, variance_b = shown.pop("variance_a"), shown.pop("variance_b")
    return {
        "n_questions": m.n.astype(np.intp),
        "n_clusters": m.n_clusters.astype(np.intp),
        **shown,
        "diff": m.mean,
        "df": m.df,
        "ties": np.maximum(m.n - sides.wins_a - sides.wins_b, 0.0),
        "p_sign": sign_p(of.signs_a, of.signs_b),
        "se_unpaired": np.sqrt(variance_a + variance_b),
        **noise_columns(m, clustered),
    }


def extended_samples(
    d: FloatArray,
    design: Design,
    m: Moments,
    estimator: Estimator,
    shown: BoolArray | None = None,
    whole: Moments | None = None,
) -> ExtendedSample:
    """Return samples extended by two made-up clusters, for pairs in which few clusters differ. Else NaN.

    The extended sample knows the clusters of one way and nothing of the variance between runs: of crossed clusters, and
    where `whole` has these runs' moments, it has that variance on top, and no less than the difference itself.
    """
    last = m if whole is None else whole
    varies = ~np.isnan(last.variance) & ~last.zero_variance
    far = blank(ExtendedSample, len(d))
    if varies.any():
        some = cells(design, shown).take(varies)
        put(far, varies, Extension(some, estimator)(some.sums(d[varies])))
    if whole is None and design.crossed is None:
        return far
    variance = np.maximum(far.variance + (last.variance - m.variance), last.variance)
    return ExtendedSample(far.mean, np.where(np.isnan(far.mean), np.nan, variance), np.minimum(far.df, last.df))


def paired(m: Moments, of: Leads, far: ExtendedSample | None, width: FloatArray | float | None) -> Differences:
    """Bundle P paired differences with what a decision needs: variance, sign test, small-sample limits.

    Where nothing varies the sign test decides, and the interval is Bonett and Price's for as many clusters as there
    are, or as the weights of a group's tasks leave, one more than the degrees of freedom.

    Args:
        m: their moments.
        of: who leads where.
        far: what their far limits come from.
        width: of the metric's range; None or NaN where it is not known.
    """
    widths: FloatArray = np.full(len(m.n), np.nan if width is None else width)
    n = np.fmin(m.n_clusters, m.df + 1)
    small = None if np.isnan(widths).all() else partial(bonett_price, of.gain, of.loss, n, widths)
    unbounded = np.where(np.isnan(widths), np.inf, widths)
    p_zero, side = sign_p(of.signs_a, of.signs_b), np.sign(of.signs_a - of.signs_b).astype(np.float64)
    return Differences(m.mean, m.variance, m.df, m.zero_variance, p_zero, small, far, width=unbounded, side=side)


def noise_columns(m: Moments, clustered: bool) -> dict[str, FloatArray]:
    """Return {name: (P,) column}: standard errors (0 for a negative variance), variance parts, design effect."""
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = m.variance / m.naive if clustered else np.where(np.isnan(m.variance + m.naive), np.nan, 1.0)
        highest = np.where(np.isnan(m.var_data), np.nan, m.data_upper)
        roots = {"se": m.variance, "se_total": m.var_total, "se_data": m.var_data, "se_prediction": m.var_prediction}
        return {name: np.sqrt(np.maximum(x, 0.0)) for name, x in (roots | {"se_data_upper": highest}).items()} | {
            "var_data": m.var_data,
            "var_prediction": m.var_prediction,
            "design_effect": np.where(np.isfinite(effect), effect, np.nan),
        }


UNSCORED = "unscored_task"


def variance_flags(m: Moments, design: Design, *, fixed: bool = False) -> dict[str, BoolArray]:
    """Return {diagnostic code: (P,) flags} for variances with too few questions or clusters, or none."""
    unknown, short = np.isnan(m.variance), np.isnan(m.mean) | (m.n < 2)
    # of two crossed ways the one with fewer clusters decides, whatever both together have
    df = m.df if fixed or design.crossed is None else np.minimum(m.df, m.n_clusters - 1)
    flags = noise_flags(df, zero=m.zero_variance, var_data=m.var_data)
    flags[UNSCORED] = np.isnan(m.mean) & (m.n > 0)  # the weights of the tasks are fixed
    flags["too_few_questions"] = (np.isnan(m.mean) if fixed else unknown & short) & ~flags[UNSCORED]
    flags["too_few_clusters"] = unknown & ~short & (not fixed)
    flags["singleton_clusters"] = ~unknown & design.clustered & (m.n_clusters == m.n) & (not fixed)
    return flags
