"""The kernel: the noise of a mean of question statistics, clustered, paired or grouped.

Every analysis is one estimator applied to a contrast of runs: a value d_i per question and the
prediction variance that goes with it. A single run, a paired difference, any linear combination of
runs and a group of tasks differ only in how the contrast is built.

Sources, cited at the lines that use them:
  [Wang]        Wang (2025), Measuring all the noises of LLM evaluations, arXiv 2512.21326
  [Miller]      Miller (2024), Adding error bars to evals, arXiv 2411.00640
  [Bell]        Bell & McCaffrey (2002), Survey Methodology 28(2)
  [Pustejovsky] Pustejovsky & Tipton (2018), J. Business & Economic Statistics 36(4)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .arrays import BoolArray, FloatArray, IntArray
from .tolerances import FEWEST_REPEATED, SLACK


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
        raise InputError(f"scores must be an (n, K) array with K ≥ 1, not of shape {values.shape}")
    present = ~np.isnan(values)
    count = np.count_nonzero(present, axis=1)
    if np.isinf(values).any():
        raise InputError("a score is infinite; leave it out (NaN) or use a bounded metric")
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
    if n and abs(shares.sum() - 1) > SLACK:
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
