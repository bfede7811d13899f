"""A judge corrected by human labels of a random subset of the questions: values of questions whose mean is corrected.

The estimate is that of `extra.partial`, with the judge's score as the one feature and the label as what is known of the
part [Angelopoulos; Särndal]. Here it is written as a value for each question, θ̂'s influence function: the prediction
from the judge's score, and where there is a label the error of it, 1/π times. The mean of the values is the estimate,
and their clustered variance is that for the questions that could be asked, so that a difference, a group of tasks and
the bias of the judge are contrasts of them like any others.

Sources, cited at the lines that use them:
  [Angelopoulos]  Angelopoulos, Duchi & Zrnic (2023), PPI++: Efficient Prediction-Powered Inference, arXiv 2311.01453
  [Särndal]       Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling, ch. 6
"""

from __future__ import annotations

import numpy as np

from ...arrays import FloatArray, IntArray
from ...stats.contrast import Design, QuestionStats
from ...stats.intervals import effective_flips
from ...stats.tolerances import FEW_FAILURES, FEWEST_UNITS, SLACK
from ..partial import Part, cross_fit, features
from .contrasts import CorrectedColumns
from .results import FEWEST_FAILED

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
) -> tuple[FloatArray, CorrectedColumns, bool]:
    """Return (n,) values whose mean is the corrected mean, their correction, True if errors seen are few.

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
    known = CorrectedColumns(
        judge.count, judged, full, error, own[0], alone, own[1], n_labels, corrected, residual, extra, which
    )
    return alone.copy() if alone_only else corrected.copy(), known, few and not alone_only


def too_few_to_correct(label: FloatArray, clusters: IntArray, bounds: tuple[float, float] | None) -> bool:
    """Return True if under five labelled clusters hold a failure, or a pass: then only labels count.

    Near an end of the range the corrected mean is unreliable: with one or two failures among the labels its interval
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
    """Return (n,) cross-fitted predictions of labels by the judge, (m,) errors, number of slopes (0: no prediction)."""
    Z = features(judge[:, None], plan.n_clusters)
    if plan.n_clusters < FEWEST_UNITS or Z.shape[1] == 0:
        return np.zeros(len(judge)), label, 0
    at_seen = ((seen - judge.mean()) / judge.std())[:, None]
    e, fitted = cross_fit(label, Z, at_seen, part, plan)
    return fitted, e, 1


def _factors(part: Part, plan: Design, weights: FloatArray, *, used: int) -> FloatArray:
    """Return (m,) factors that correct labelled residuals for leverage and for the fitted slope."""
    share = np.bincount(plan.clusters, weights=weights)[plan.clusters]
    whole = (np.bincount(part.clusters) / len(part.clusters))[part.clusters[part.asked]]
    df = float(plan.n_clusters - 1)
    return np.asarray(np.sqrt((1 - whole) / (1 - share) * df / max(df - used, 1.0)))


def _unseen(sums: FloatArray, width: float) -> float:
    """Return variance to add for errors too rare to be seen, if few clusters hold the errors. Else 0.

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
