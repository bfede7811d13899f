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
from .tolerances import FEW_FAILURES, FEWEST_UNITS, ROUNDING

NO_ERROR = 0.01
"""Share of the range below which an error is none: what a fit leaves of a judge that is right."""


def corrected_values(
    judge: QuestionStats, label: FloatArray, seen: FloatArray, part: Part, width: float, n_labels: IntArray
) -> tuple[FloatArray, LabelColumns, bool]:
    """(n,) values whose mean is the corrected one, what else is known of them, and whether the errors seen are few.

    Args:
        judge: its scores of the n questions.
        label: (m,) mean labels of the part.
        seen: (m,) mean score of the answers that were labelled.
        part: which questions have a label; clusters are drawn whole.
        width: of the range of label and score, which an error has where none is seen.
        n_labels: (n,) labels of each question.
    """
    n, at, plan, judged = len(judge), part.asked, part.design(), judge.mean
    columns = [np.full(n, np.nan), np.full(n, np.nan), np.zeros(n), np.zeros(n), np.zeros(n)]
    full, error, residual, alone, extra = columns
    full[at] = label
    if len(at) == n:  # nothing is left to be predicted
        error[at], alone[at] = label - label.mean(), label
        return full.copy(), LabelColumns(judged, full, error, residual, alone, extra, n_labels, judge.count), False
    fitted, e, used = _predicted(judged, label, seen, part, plan)
    weights = 1 / n + (1 - len(at) / n) * part.weights_of_others(plan)  # 1/(nπ) [Särndal, eq. 5.7.1]
    centre, mean = float(weights @ e), float(weights @ label)
    factor = _factors(part, plan, weights, used=used)
    residual[at] = n * factor * weights * (e - centre)
    values = fitted + centre + residual
    values += fitted.mean() + centre - values.mean()
    alone[at] = n * _factors(part, plan, weights, used=0) * weights * (label - mean)
    alone += mean - alone.mean()
    error[at] = e
    more = _unseen(np.bincount(plan.clusters, weights=weights * (e - centre)).astype(np.float64), width)
    extra[at] = more * n**2 / len(at) * (1 - len(at) / n)
    return values, LabelColumns(judged, full, error, residual, alone, extra, n_labels, judge.count), more > 0


def _predicted(
    judge: FloatArray, label: FloatArray, seen: FloatArray, part: Part, plan: Design
) -> tuple[FloatArray, FloatArray, int]:
    """(n,) predictions from the judge's score, (m,) errors, each by a fit without its fold; and how many slopes."""
    Z = features(judge[:, None], plan.n_clusters)
    if plan.n_clusters < FEWEST_UNITS or Z.shape[1] == 0:
        return np.zeros(len(judge)), label, 0
    at_seen = ((seen - judge.mean()) / judge.std())[:, None]
    e, fitted = cross_fit(label, Z, at_seen, part, plan)
    return fitted, e, 1


def _factors(part: Part, plan: Design, weights: FloatArray, *, used: int) -> FloatArray:
    """(m,) what residuals count for: CR2's leverage in the part in place of that among all questions, and the slope."""
    share = np.bincount(plan.clusters, weights=weights)[plan.clusters]
    whole = (np.bincount(part.clusters) / len(part.clusters))[part.clusters[part.asked]]
    df = float(plan.n_clusters - 1)
    return np.asarray(np.sqrt((1 - whole) / (1 - share) * df / max(df - used, 1.0)))


def _unseen(sums: FloatArray, width: float) -> float:
    """What two more clusters with the largest error seen, one up and one down, add to the variance of the mean error.

    Only where few clusters hold the errors, `FEW_FAILURES` by their effective number: that the judge is right on all
    labels does not show that it is right everywhere. Where none is seen, the error of a cluster is the whole range.
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
    """The columns of Σ a_r of several corrected runs on the same questions; labels where each has one."""

    def of(name: str, power: int = 1) -> FloatArray:
        terms = [a**power * getattr(x, name) for a, x in zip(coefficients, columns, strict=True)]
        return np.asarray(np.sum(terms, axis=0))

    n_labels = np.sum([x.n_labels for x in columns], axis=0)
    judge, label, error, residual, alone = map(of, ("judge", "label", "error", "residual", "alone"))
    return LabelColumns(
        judge, label, error, residual, alone, of("extra", 2), n_labels.astype(np.intp), columns[0].n_answers
    )


def with_labels(m: Moments, of: LabelColumns, plan: Design) -> Moments:
    """The moments of one mean with the variance that few errors do not show, and the df that the labels leave.

    V is that of the predictions over all questions and that of the labelled errors; df by [Satterthwaite].
    """
    extra = float(plan.weights**2 @ of.extra)
    variance = m.variance + extra
    if not (variance > 0).all():
        return m
    sums = np.bincount(plan.clusters, weights=plan.weights * of.residual)
    of_labels = np.minimum(variance, float(sums @ sums) + extra)
    spread = of_labels**2 / labels_df(of.n_labels > 0, plan) + (variance - of_labels) ** 2 / m.df
    unknown = np.full(1, np.nan)
    widened = replace(m, variance=variance, df=variance**2 / spread, naive=m.naive + extra)
    return replace(widened, zero_variance=np.zeros(1, dtype=np.bool_), var_data=unknown, var_total=unknown)


def n_labelled(of: LabelColumns, plan: Design) -> int:
    """Clusters that hold a label."""
    return len(np.unique(plan.clusters[of.n_labels > 0]))


def labels_df(labelled: BoolArray, plan: Design) -> float:
    """Degrees of freedom of the errors of the labelled questions: one is spent in each task, and one on its slope."""
    codes, G = cluster_codes(plan.clusters[labelled])
    if G < 2:
        return 1.0
    per_task = [len(np.unique(plan.clusters[labelled & (plan.strata == t)])) for t in np.unique(plan.strata[labelled])]
    spent = sum((count >= FEWEST_UNITS) + 1 for count in per_task) - 1
    return max(1.0, cells(design(len(codes), codes)).df().item() - spent)


def bias_of(d: FloatArray, of: LabelColumns, plan: Design) -> tuple[float, float]:
    """What the correction adds to the judge's mean, θ̂ − f̄, and its variance; NaN where they are not identified."""
    m = with_labels(mean_variance(d - of.judge, plan, OF_RESIDUALS), of, plan)
    return m.mean.item(), m.variance.item()


def alone_variance(of: LabelColumns, plan: Design) -> float:
    """The variance of the mean of the labels alone; NaN where it is not identified."""
    return mean_variance(of.alone, plan, OF_RESIDUALS).variance.item()


def r_squared(of: LabelColumns) -> float:
    """The share of the labels' variance that the judge predicts, by fits without the fold.

    NaN where nothing varies, and where the judge was not used, so that every error is the label itself.
    """
    error, label = of.error[~np.isnan(of.error)], of.label[~np.isnan(of.label)]
    if not len(label) or label.var() <= ROUNDING or np.array_equal(error, label):
        return np.nan
    return 1 - float(error.var() / label.var())
