"""Contrasts of corrected runs: what the labels of a part add to the variance, and leave of its degrees of freedom.

Source: [Satterthwaite] Satterthwaite (1946), Biometrics Bulletin 2(6): degrees of freedom of a sum of variances
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..data.corrected import CorrectedColumns
from .cluster_variance import OF_RESIDUALS, cells
from .contrast import Design, cluster_codes, design
from .moments import Moments, mean_variance
from .tolerances import FEWEST_UNITS, ROUNDING


def contrast_of(columns: Sequence[CorrectedColumns], coefficients: Sequence[float]) -> CorrectedColumns:
    """Return the columns of Σ a_r of several corrected runs on the same questions. Labels where each has one."""

    def of(name: str, power: int = 1) -> FloatArray:
        terms = [a**power * getattr(x, name) for a, x in zip(coefficients, columns, strict=True)]
        return np.asarray(np.sum(terms, axis=0))

    linear = ("judge", "label", "error", "residual", "alone", "corrected", "corrected_residual")
    fields = {name: of(name) for name in linear} | {name: of(name, 2) for name in ("extra", "corrected_extra")}
    n_labels = np.sum([x.n_labels for x in columns], axis=0).astype(np.intp)
    alone_only = np.all([x.alone_only for x in columns], axis=0)
    return CorrectedColumns(**fields, n_labels=n_labels, n_answers=columns[0].n_answers, alone_only=alone_only)


def with_correction(m: Moments, of: CorrectedColumns, plan: Design) -> Moments:
    """Return the moments of one mean with the variance that few errors do not show, and the df that the labels leave.

    V is that of the predictions over all questions and that of the labelled errors; df by [Satterthwaite].
    """
    extra, of_labels_alone = float(plan.weights**2 @ of.extra), bool(of.alone_only.all())
    variance, own_df = m.variance + extra, correction_df(of.n_labels > 0, plan, slopes=not of_labels_alone)
    if not (variance > 0).all():
        return replace(m, df=np.where(np.isnan(m.df), np.nan, own_df))
    sums = np.bincount(plan.clusters, weights=plan.weights * of.residual)
    of_labels = np.minimum(variance, float(sums @ sums) + extra)
    spread = of_labels**2 / own_df + (variance - of_labels) ** 2 / m.df
    unknown = np.full(1, np.nan)
    df = np.full(1, own_df) if of_labels_alone else variance**2 / spread
    widened = replace(m, variance=variance, df=df, naive=m.naive + extra)
    return replace(widened, zero_variance=np.zeros(1, dtype=np.bool_), var_data=unknown, var_total=unknown)


def n_corrected(of: CorrectedColumns, plan: Design) -> int:
    """Return the clusters that hold a label."""
    return len(np.unique(plan.clusters[of.n_labels > 0]))


def correction_df(labelled: BoolArray, plan: Design, *, slopes: bool = True) -> float:
    """Return degrees of freedom of the labelled questions' errors: one is spent in each task, and one on its slope.

    Of the labels alone (not `slopes`) no slope is fitted.
    """
    codes, G = cluster_codes(plan.clusters[labelled])
    if G < 2:
        return 1.0
    per_task = [len(np.unique(plan.clusters[labelled & (plan.strata == t)])) for t in np.unique(plan.strata[labelled])]
    spent = sum((slopes and count >= FEWEST_UNITS) + 1 for count in per_task) - 1
    return max(1.0, cells(design(len(codes), codes)).df.item() - spent)


def bias_of(of: CorrectedColumns, plan: Design) -> tuple[float, float]:
    """Return what the correction adds to the judge's mean, θ̂ − f̄, and its variance.

    NaN where they are not identified.
    """
    corrected = replace(
        of,
        residual=of.corrected_residual,
        extra=of.corrected_extra,
        alone_only=np.zeros_like(of.alone_only),
    )
    m = with_correction(mean_variance(of.corrected - of.judge, plan, OF_RESIDUALS), corrected, plan)
    return m.mean.item(), m.variance.item()


def alone_variance(of: CorrectedColumns, plan: Design) -> float:
    """Return the variance of the mean of the labels alone. NaN where it is not identified."""
    return mean_variance(of.alone, plan, OF_RESIDUALS).variance.item()


def r_squared(of: CorrectedColumns) -> float:
    """Return the share of the labels' variance that the judge predicts, by fits without the fold.

    NaN where nothing varies, and where the judge was not used, so that every error is the label itself.
    """
    error, label = of.error[~np.isnan(of.error)], of.label[~np.isnan(of.label)]
    if not len(label) or label.var() <= ROUNDING or np.array_equal(error, label):
        return np.nan
    return 1 - float(error.var() / label.var())
