"""Contrasts of corrected runs: what the labels of a part add to the variance, and leave of its degrees of freedom.

Source: [Satterthwaite] Satterthwaite (1946), Biometrics Bulletin 2(6): degrees of freedom of a sum of variances
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray
from ...data.corrected import Correction
from ...results.forms import finite
from ...results.rows import PEOPLE, JudgeCorrection
from ...stats.cluster_variance import OF_RESIDUALS, cells
from ...stats.contrast import Design, cluster_codes, design
from ...stats.moments import Moments, mean_variance
from ...stats.tolerances import FEWEST_UNITS, ROUNDING, SLACK
from .results import FEW_LABELLED


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedColumns(Correction):
    """Everything that a correction by labels needs of n questions, besides their corrected values."""

    judge: FloatArray
    """(n,) the judge's mean score of the question's answers."""
    label: FloatArray
    """(n,) the mean label, NaN without a label."""
    error: FloatArray
    """(n,) the label less its prediction from the judge's score, by a fit without its fold, NaN without a label."""
    residual: FloatArray
    """(n,) what the label adds to the corrected value."""
    alone: FloatArray
    """(n,) values whose mean is that of only the labels."""
    extra: FloatArray
    """(n,) variance of the value that the few errors seen do not show."""
    n_labels: IntArray
    """(n,) labels, of all people and answers."""
    corrected: FloatArray
    """(n,) values whose mean is the corrected mean. It is the row's, unless the row uses only the labels."""
    corrected_residual: FloatArray
    """(n,) `residual` of these."""
    corrected_extra: FloatArray
    """(n,) `extra` of these."""
    alone_only: BoolArray
    """(n,) whether the row is of the labels alone, because too few of them are failures, or passes."""
    estimand: ClassVar[str] = PEOPLE
    one_sided: ClassVar[str] = (
        "there are labels of one model only, and a corrected mean less one that is not says nothing: label answers of "
        "both, or compare without `labels`"
    )
    one_task: ClassVar[str] = "labels correct the scores of one side only: both need labels, or neither"

    def contrast(self, each: Sequence[CorrectedColumns], coefficients: Sequence[float]) -> CorrectedColumns:
        """Return the correction of Σ coefficient × mean over runs: labels where every run has one, counts summed."""
        return contrast_of(each, coefficients)

    def moments(self, m: Moments, plan: Design) -> Moments:
        """Return the mean's moments with the variance that comes from having few labels."""
        return with_correction(m, self, plan)

    def codes(self, plan: Design) -> dict[str, bool]:
        """Return {diagnostic code: True if it holds}: `few_labels`. `single_repeat` is switched off.

        One value of a question is not one answer.
        """
        return {"few_labels": self.n_clusters(plan) < FEW_LABELLED, "single_repeat": False}

    def n_clusters(self, plan: Design) -> int:
        """Return the number of clusters that have at least one labelled question."""
        return len(np.unique(plan.clusters[self.n_labels > 0]))

    def scores(self) -> FloatArray:
        """Return one flat array of the judge's scores and then the human labels."""
        return np.concatenate([self.judge, self.label])

    def within_range(self) -> tuple[IntArray, FloatArray]:
        """Return (m,) rows of labelled questions and their (m,) labels, which must lie within the range."""
        rows = np.flatnonzero(self.n_labels)
        return rows, self.label[rows]

    def fields(self, m: Moments, plan: Design) -> dict[str, Any]:
        """Return the result row's fields `judge` (bias, R², …) and `estimand`."""
        return {"judge": correction(self, m, plan), "estimand": self.estimand}


def correction(of: CorrectedColumns, m: Moments, plan: Design) -> JudgeCorrection | None:
    """Return figures on the judge: labels, mean, and bias, gain, R² (None if unknown). Or None if there is no mean."""
    if np.isnan(m.mean[0]):
        return None
    bias, variance = bias_of(of, plan)
    own = float(plan.weights @ of.judge)
    bias = 0.0 if abs(bias) <= SLACK * abs(own) else bias  # what cancels is 0, however it was summed
    gain = math.nan if of.alone_only.all() else alone_variance(of, plan) / (m.variance.item() or math.nan)
    return JudgeCorrection(
        n_labelled=int((of.n_labels > 0).sum()),
        n_labels=int(of.n_labels.sum()),
        mean_judge=min(max(own, float(of.judge.min())), float(of.judge.max())),
        bias=finite(bias),
        bias_se=finite(math.sqrt(variance)),
        gain=finite(gain) or None,
        r2=finite(r_squared(of)),
    )


def contrast_of(columns: Sequence[CorrectedColumns], coefficients: Sequence[float]) -> CorrectedColumns:
    """Return the correction of Σ coefficient × mean over runs: labels where every run has one, counts summed."""

    def of(name: str, power: int = 1) -> FloatArray:
        terms = [a**power * getattr(x, name) for a, x in zip(coefficients, columns, strict=True)]
        return np.asarray(np.sum(terms, axis=0))

    linear = ("judge", "label", "error", "residual", "alone", "corrected", "corrected_residual")
    fields = {name: of(name) for name in linear} | {name: of(name, 2) for name in ("extra", "corrected_extra")}
    n_labels = np.sum([x.n_labels for x in columns], axis=0).astype(np.intp)
    alone_only = np.all([x.alone_only for x in columns], axis=0)
    return CorrectedColumns(**fields, n_labels=n_labels, n_answers=columns[0].n_answers, alone_only=alone_only)


def with_correction(m: Moments, of: CorrectedColumns, plan: Design) -> Moments:
    """Return a corrected mean's moments, their variance and df from judge and labels. Without variance only df change.

    `extra` is the variance that few errors do not show.

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


def correction_df(labelled: BoolArray, plan: Design, *, slopes: bool = True) -> float:
    """Return df of the labelled errors: clusters less one per task and per slope, as CR2 counts them, at least 1.

    Of the labels alone (not `slopes`) no slope is fitted.
    """
    codes, G = cluster_codes(plan.clusters[labelled])
    if G < 2:
        return 1.0
    per_task = [len(np.unique(plan.clusters[labelled & (plan.strata == t)])) for t in np.unique(plan.strata[labelled])]
    spent = sum((slopes and count >= FEWEST_UNITS) + 1 for count in per_task) - 1
    return max(1.0, cells(design(len(codes), codes)).df.item() - spent)


def bias_of(of: CorrectedColumns, plan: Design) -> tuple[float, float]:
    """Return (corrected mean − judge's mean, its variance). NaN if it cannot be estimated."""
    corrected = replace(
        of,
        residual=of.corrected_residual,
        extra=of.corrected_extra,
        alone_only=np.zeros_like(of.alone_only),
    )
    m = with_correction(mean_variance(of.corrected - of.judge, plan, OF_RESIDUALS), corrected, plan)
    return m.mean.item(), m.variance.item()


def alone_variance(of: CorrectedColumns, plan: Design) -> float:
    """Return the variance of the labels' mean without use of the judge. NaN if it cannot be estimated."""
    return mean_variance(of.alone, plan, OF_RESIDUALS).variance.item()


def r_squared(of: CorrectedColumns) -> float:
    """Return R², the share of the labels' variance that the judge predicts (may be < 0). NaN if none varies or unused.

    Of a judge that was not used every error is the label itself.
    """
    error, label = of.error[~np.isnan(of.error)], of.label[~np.isnan(of.label)]
    if not len(label) or label.var() <= ROUNDING or np.array_equal(error, label):
        return np.nan
    return 1 - float(error.var() / label.var())
