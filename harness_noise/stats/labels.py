"""A judge corrected by people's labels of a random part of the questions: values of questions whose mean is corrected.

The estimate is that of `stats.partial`, with the judge's score as the one feature and the label as what is known of the
part [Angelopoulos; Särndal]. Here it is written as a value for each question, θ̂'s influence function: the prediction
from the judge's score, and where there is a label the error of it, 1/π times. The mean of the values is the estimate,
and their clustered variance is that for the questions that could be asked, so that a difference, a group of tasks and
the bias of the judge are contrasts of them like any others.

Sources, cited at the lines that use them:
  [Angelopoulos]  Angelopoulos, Duchi & Zrnic (2023), PPI++: Efficient Prediction-Powered Inference, arXiv 2311.01453
  [Särndal]       Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, ch. 6
  [Satterthwaite] Satterthwaite (1946), Biometrics Bulletin 2(6): degrees of freedom of a sum of variances
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..data.labels import LabelColumns
from .cluster_variance import OF_RESIDUALS, cells
from .contrast import Design, QuestionStats, cluster_codes, design
from .intervals import effective_flips
from .moments import Moments, mean_variance
from .partial import Part, cross_fit, features
from .tolerances import FEW_FAILURES, FEWEST_FAILED, FEWEST_UNITS, ROUNDING, SLACK

NO_ERROR = 0.01
"""Share of the range below which an error is none: what a fit leaves of a judge that is right."""


def corrected_values(
    judge: QuestionStats,
    label: FloatArray,
    seen: FloatArray,
    part: Part,
    width: float,
    n_labels: IntArray,
    *,
    alone_only: bool = False,
) -> tuple[FloatArray, LabelColumns, bool]:
    """Return (n,) values whose mean is the corrected one, their columns, and True if the errors seen are few.

    Args:
        judge: its scores of the n questions.
        label: (m,) mean labels of the part.
        seen: (m,) mean score of the answers that were labelled.
        part: which questions have a label; clusters are drawn whole.
        width: of the range of label and score, which an error has where none is seen.
        n_labels: (n,) labels of each question.
        alone_only: the values are those of the labels alone, see `too_few_to_correct`.
    """
    n, at, plan, judged = len(judge), part.asked, part.design(), judge.mean
    columns = [np.full(n, np.nan), np.full(n, np.nan), np.zeros(n), np.zeros(n), np.zeros(n)]
    full, error, residual, alone, extra = columns
    full[at], which, few = label, np.full(n, alone_only), False
    if len(at) == n:  # nothing is left to be predicted
        error[at], alone[at], corrected = label - label.mean(), label, full.copy()
    else:
        fitted, e, used = _predicted(judged, label, seen, part, plan)
        weights = 1 / n + (1 - len(at) / n) * part.weights_of_others(plan)  # 1/(nπ) [Särndal, eq. 5.7.1]
        centre, mean = float(weights @ e), float(weights @ label)
        factor = _factors(part, plan, weights, used=used)
        residual[at] = n * factor * weights * (e - centre)
        corrected = fitted + centre + residual
        corrected += fitted.mean() + centre - corrected.mean()
        alone[at] = n * _factors(part, plan, weights, used=0) * weights * (label - mean)
        alone += mean - alone.mean()
        error[at] = e
        more = _unseen(np.bincount(plan.clusters, weights=weights * (e - centre)).astype(np.float64), width)
        extra[at], few = more * n**2 / len(at) * (1 - len(at) / n), more > 0
    own = (alone - alone.mean(), np.zeros(n)) if alone_only else (residual, extra)
    known = LabelColumns(
        judged, full, error, own[0], alone, own[1], n_labels, judge.count, corrected, residual, extra, which
    )
    return alone.copy() if alone_only else corrected.copy(), known, few and not alone_only


def too_few_to_correct(label: FloatArray, clusters: IntArray, bounds: tuple[float, float] | None) -> bool:
    """Return True if fewer than five labelled clusters hold a failure, or fewer than five a pass: then use only labels.

    Near an end of the range the corrected mean is unreliable: with one or two failures among the labels its interval
    covers 81–93%, that of the labels alone 91–98% while it is shorter.

    Near an end of the range the corrected mean says little: with one or two failures among the labels its interval
    covers 81–93%, that of the labels alone 91–98% while it is shorter.

    Args:
        label: (m,) labels.
        clusters: (m,) codes of their clusters.
        bounds: of the range; without one there is no failure, and nothing is too few.
    """
    if bounds is None:
        return False
    slack = SLACK * (bounds[1] - bounds[0])
    held = [len(np.unique(clusters[rows])) for rows in (label < bounds[1] - slack, label > bounds[0] + slack)]
    return min(held) < FEWEST_FAILED


def _predicted(
    judge: FloatArray, label: FloatArray, seen: FloatArray, part: Part, plan: Design
) -> tuple[FloatArray, FloatArray, int]:
    """Return (n,) predictions from the judge's score, (m,) errors, each by a fit without its fold, and the number of
    slopes."""
    Z = features(judge[:, None], plan.n_clusters)
    if plan.n_clusters < FEWEST_UNITS or Z.shape[1] == 0:
        return np.zeros(len(judge)), label, 0
    at_seen = ((seen - judge.mean()) / judge.std())[:, None]
    e, fitted = cross_fit(label, Z, at_seen, part, plan)
    return fitted, e, 1


def _factors(part: Part, plan: Design, weights: FloatArray, *, used: int) -> FloatArray:
    """Return (m,) factors of the residuals: CR2's leverage in the subset instead of among all, and the slope."""
    share = np.bincount(plan.clusters, weights=weights)[plan.clusters]
    whole = (np.bincount(part.clusters) / len(part.clusters))[part.clusters[part.asked]]
    df = float(plan.n_clusters - 1)
    return np.asarray(np.sqrt((1 - whole) / (1 - share) * df / max(df - used, 1.0)))


def _unseen(sums: FloatArray, width: float) -> float:
    """Return what two more clusters with the largest error seen, one up and one down, add to the variance of the mean
    error.

    Only if few clusters hold the errors, `FEW_FAILURES` by their effective number: a judge that is right on all labels
    need not be right everywhere. If no error is seen, the error of a cluster is the whole range.
    """
    G = len(sums)
    top = float(np.abs(sums).max())
    if top <= NO_ERROR * width / G:
        top = width / G
    elif effective_flips(sums) >= FEW_FAILURES:
        return 0.0
    now = float(sums @ sums)
    return max(0.0, (now + 2 * top**2) / (1 + 2 / G) ** 2 - now)


def contrast_of(columns: Sequence[LabelColumns], coefficients: Sequence[float]) -> LabelColumns:
    """Return the columns of Σ a_r of several corrected runs on the same questions. Labels where each has one."""

    def of(name: str, power: int = 1) -> FloatArray:
        terms = [a**power * getattr(x, name) for a, x in zip(coefficients, columns, strict=True)]
        return np.asarray(np.sum(terms, axis=0))

    linear = ("judge", "label", "error", "residual", "alone", "corrected", "corrected_residual")
    fields = {name: of(name) for name in linear} | {name: of(name, 2) for name in ("extra", "corrected_extra")}
    n_labels = np.sum([x.n_labels for x in columns], axis=0).astype(np.intp)
    alone_only = np.all([x.alone_only for x in columns], axis=0)
    return LabelColumns(**fields, n_labels=n_labels, n_answers=columns[0].n_answers, alone_only=alone_only)


def with_labels(m: Moments, of: LabelColumns, plan: Design) -> Moments:
    """Return the moments of one mean with the variance that few errors do not show, and the df that the labels leave.

    V is that of the predictions over all questions and that of the labelled errors; df by [Satterthwaite].
    """
    extra, of_labels_alone = float(plan.weights**2 @ of.extra), bool(of.alone_only.all())
    variance, own_df = m.variance + extra, labels_df(of.n_labels > 0, plan, slopes=not of_labels_alone)
    if not (variance > 0).all():
        return replace(m, df=np.where(np.isnan(m.df), np.nan, own_df))
    sums = np.bincount(plan.clusters, weights=plan.weights * of.residual)
    of_labels = np.minimum(variance, float(sums @ sums) + extra)
    spread = of_labels**2 / own_df + (variance - of_labels) ** 2 / m.df
    unknown = np.full(1, np.nan)
    df = np.full(1, own_df) if of_labels_alone else variance**2 / spread
    widened = replace(m, variance=variance, df=df, naive=m.naive + extra)
    return replace(widened, zero_variance=np.zeros(1, dtype=np.bool_), var_data=unknown, var_total=unknown)


def n_labelled(of: LabelColumns, plan: Design) -> int:
    """Return the clusters that hold a label."""
    return len(np.unique(plan.clusters[of.n_labels > 0]))


def labels_df(labelled: BoolArray, plan: Design, *, slopes: bool = True) -> float:
    """Return degrees of freedom of the labelled questions' errors: one is spent in each task, and one on its slope.

    Of the labels alone (not `slopes`) no slope is fitted.
    """
    codes, G = cluster_codes(plan.clusters[labelled])
    if G < 2:
        return 1.0
    per_task = [len(np.unique(plan.clusters[labelled & (plan.strata == t)])) for t in np.unique(plan.strata[labelled])]
    spent = sum((slopes and count >= FEWEST_UNITS) + 1 for count in per_task) - 1
    return max(1.0, cells(design(len(codes), codes)).df.item() - spent)


def bias_of(of: LabelColumns, plan: Design) -> tuple[float, float]:
    """Return what the correction adds to the judge's mean, θ̂ − f̄, and its variance.

    NaN where they are not identified.
    """
    corrected = replace(
        of,
        residual=of.corrected_residual,
        extra=of.corrected_extra,
        alone_only=np.zeros_like(of.alone_only),
    )
    m = with_labels(mean_variance(of.corrected - of.judge, plan, OF_RESIDUALS), corrected, plan)
    return m.mean.item(), m.variance.item()


def alone_variance(of: LabelColumns, plan: Design) -> float:
    """Return the variance of the mean of the labels alone. NaN where it is not identified."""
    return mean_variance(of.alone, plan, OF_RESIDUALS).variance.item()


def r_squared(of: LabelColumns) -> float:
    """Return the share of the labels' variance that the judge predicts, by fits without the fold.

    NaN where nothing varies, and where the judge was not used, so that every error is the label itself.
    """
    error, label = of.error[~np.isnan(of.error)], of.label[~np.isnan(of.label)]
    if not len(label) or label.var() <= ROUNDING or np.array_equal(error, label):
        return np.nan
    return 1 - float(error.var() / label.var())
