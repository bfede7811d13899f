"""All that is estimated: question statistics of runs, their contrasts, and the design of the questions.

Every analysis is one estimator applied to a contrast of runs: a value d_i per question and the prediction variance
that it has. A single run, a paired difference, any linear combination of runs and a group of tasks differ only in how
the contrast is built [Wang; Miller].

Sources:
  [Wang]    Wang (2025), Measuring all the noises of LLM evaluations, arXiv 2512.21326
  [Miller]  Miller (2024), Adding error bars to evals, arXiv 2411.00640
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any, TypeVar

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, NamesLike
from ..data.numbers import INFINITE, is_infinite
from ..errors import InputError
from .tolerances import FEWEST_REPEATED, ROUNDING

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, eq=False)
class QuestionStats:
    """The scores of one run, reduced to what the kernel needs."""

    mean: FloatArray
    """(n,) mean over the repeats that have a score, NaN if none has."""
    var: FloatArray
    """(n,) variance between the repeats, ddof = 1, NaN if fewer than two have a score."""
    count: IntArray
    """(n,) number of repeats that have a score, k_i."""
    identical: BoolArray | bool = False
    """True if the answers, and not only their scores, are known to have been identical."""
    answers_differ: BoolArray | bool = False
    """True if some answers to one question are known to differ, whatever their scores."""

    def take(self, index: Any) -> QuestionStats:
        return replace(self, mean=self.mean[index], var=self.var[index], count=self.count[index])

    def runs(self, index: IntArray) -> QuestionStats:
        """Select runs by index: (P, n) statistics become those of the runs in `index`."""
        flags = [np.broadcast_to(x, len(self.count))[index] for x in (self.identical, self.answers_differ)]
        return QuestionStats(self.mean[index], self.var[index], self.count[index], *flags)

    def __len__(self) -> int:
        return len(self.count)


def question_stats(values: FloatArray) -> QuestionStats:
    """Return (n,) means, variances, counts of an (n, K) array's rows (NaN: no score). Refuse infinite scores.

    Raises:
        ValueError: not two-dimensional, no repeat at all, or an infinite score.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"scores must be an (n, K) array with K ≥ 1, not of shape {values.shape}")
    answers = np.ascontiguousarray(values.T)  # numpy reduces many short rows slowly, a few long ones fast
    missing = np.isnan(answers)
    count = len(answers) - missing.sum(axis=0)
    filled = np.where(missing, 0.0, answers)
    low, high = np.fmin.reduce(answers, axis=0), np.fmax.reduce(answers, axis=0)
    if is_infinite(low) or is_infinite(high):
        raise InputError(f"{INFINITE}. Leave it out (NaN) or use a bounded metric")
    with np.errstate(invalid="ignore", divide="ignore"):
        constant = low == high  # rounding must not turn identical answers into noise
        mean = np.where(constant, low, filled.sum(axis=0) / count)
        filled -= mean
        filled[missing] = 0.0
        squares = np.square(filled, out=filled).sum(axis=0)
        var = np.where(constant, 0.0, squares / (count - 1))
    mean[count == 0] = np.nan
    var[count < 2] = np.nan
    return QuestionStats(mean, var, count.astype(np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """Σ_r a_r m_ri of several runs on the same n questions, with the noise that the repeats show.

    Many contrasts on the same questions are (P, n) arrays, 0 where one lacks a question.
    """

    d: FloatArray
    """(n,) value per question."""
    v: FloatArray
    """(n,) prediction variance of one answer per question, Σ a_r² s²_ri."""
    w: FloatArray
    """(n,) prediction variance that is left in d, Σ a_r² s²_ri / k_ri."""


def contrast(
    runs: Sequence[QuestionStats],
    coefficients: Sequence[float],
    strata: IntArray,
    shown: BoolArray | None = None,
) -> Contrast:
    """Return (n,) d = Σ coefficient × mean over runs, and its variances v of one answer, w of all. Refuse unscored.

    Args:
        runs: statistics of each run, (n,) or (P, n); every question needs a score in each, or is not `shown`.
        coefficients: a_r; (1,) for one run, (1, −1) for a paired difference.
        strata: (n,) task codes: a question with one answer borrows its variance only from its own task.
        shown: (P, n) the questions that each contrast has; None: all of them.

    A question with a single answer takes the mean s² of the others of its run and task. What the variances are worth
    says `repeat_codes`.
    """
    if shown is None and any((run.count == 0).any() for run in runs):
        raise ValueError("a question without any score: drop it before the contrast is built")
    d, size, v, w = np.zeros((4, *runs[0].count.shape))
    for run, a in zip(runs, coefficients, strict=True):
        s2 = _variances(run, strata, shown)
        d += a * run.mean
        size += np.abs(a * run.mean)
        v += a * a * s2
        w += a * a * s2 / np.maximum(run.count, 1)
    d[np.abs(d) <= ROUNDING * size] = 0.0  # the same answers, summed in another order
    if shown is not None:
        d, v, w = (np.where(shown, x, 0.0) for x in (d, v, w))
    return Contrast(d, v, w)


def _variances(run: QuestionStats, strata: IntArray, shown: BoolArray | None) -> FloatArray:
    """Return (n,) or (P, n) variances of questions' answers. With one answer its task's average, 0 if few have more."""
    single = run.count < 2
    s2 = np.where(single, 0.0, run.var)
    if single.all() or not single.any():
        return s2
    repeated, _, enough = _borrowing(run, strata, shown)
    total = sum_by(strata, s2 if shown is None else s2 * shown, repeated.shape[-1])
    mean = np.where(enough[..., None], total / np.maximum(repeated, 1), 0.0)
    return np.where(single, mean[..., strata], s2)


def _borrowing(
    run: QuestionStats, strata: IntArray, shown: BoolArray | None
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Count per task questions with several answers and with one. Also (P,) True if each task has enough to borrow."""
    T, several = int(strata.max(initial=0)) + 1, run.count >= 2
    here = np.ones_like(several) if shown is None else shown
    repeated, lone = (sum_by(strata, which & here, T) for which in (several, ~several))
    return repeated, lone, np.asarray((repeated >= np.minimum(FEWEST_REPEATED, lone)).all(axis=-1))


def repeat_codes(
    runs: Sequence[QuestionStats], strata: IntArray, shown: BoolArray | None = None
) -> dict[str, BoolArray]:
    """Return {diagnostic code: (P,) flags} on repeated answers that are missing, too few or all identical.

    Where no question, or too few, have two answers (`single_repeat`), or where all answers of a run agree on every
    question (`identical_repeats`; `identical_scores_only` where they are known to differ in their words), data and
    prediction noise cannot be told apart: see `noise_can_be_split`. The arguments are those of `contrast`.
    """
    each: list[dict[str, Any]] = []
    for run in runs:
        repeated, lone, enough = _borrowing(run, strata, shown)
        count = run.count if shown is None else run.count * shown
        n, (k, k2) = repeated + lone, (sum_by(strata, x, repeated.shape[-1]) for x in (count, count * count))
        alike = (repeated > 0).any(axis=-1) & ~((run.var > 0) & (count >= 2)).any(axis=-1)
        each.append(
            {
                "single_repeat": ~enough,
                "partly_single_repeat": enough & (lone > 0).any(axis=-1),
                "missing_repeats": (n * k2 > k**2 + 0.5).any(axis=-1),  # whole numbers: equal only if all k are
                "identical_repeats": (alike & ~np.asarray(run.answers_differ)) | run.identical,
                "identical_scores_only": alike,
            }
        )
    return any_repeat_codes(each)


def any_repeat_codes(each: Sequence[Mapping[str, BoolArray]]) -> dict[str, BoolArray]:
    """Merge several runs' `repeat_codes`, {code: (P,) flags}: a flag is True if it is True for one of the runs."""
    out = {code: np.array(reduce(or_, (codes[code] for codes in each)), ndmin=1) for code in each[0]}
    out["identical_scores_only"] &= ~out["identical_repeats"]
    return out


def noise_can_be_split(codes: Mapping[str, BoolArray]) -> BoolArray:
    """Return (P,) True where the repeats suffice to tell data noise from prediction noise."""
    return ~(codes["single_repeat"] | codes["identical_repeats"] | codes["identical_scores_only"])


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The way n questions are weighted and what they share."""

    weights: FloatArray
    """(n,) weight of each question in the mean, w_t/n_t. The sum is 1."""
    strata: IntArray
    """(n,) task codes 0 … T−1, all zero for one task."""
    clusters: IntArray
    """(n,) cluster codes 0 … G−1. Clusters may cross tasks."""
    n_clusters: int
    clustered: bool
    """True if the user or the data named clusters. Otherwise every question is its own cluster."""
    between_tasks: bool = False
    """The tasks themselves are the sample, each one cluster."""
    crossed: tuple[IntArray, IntArray] | None = None
    """Cluster codes of both ways if the questions are clustered in two crossed ways. `clusters` is the way with
    fewer."""
    shares: FloatArray | None = None
    """(T,) fixed weights of the tasks, None for weights by size or as in `weights`."""
    rule: Callable[[FloatArray | IntArray], FloatArray] | None = None
    """From (T,) numbers of questions to the `shares` of these, if others of the questions have other shares."""
    known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """All that was computed of it once, and is asked for several times (`cluster_variance.cells`)."""

    def shares_of(self, counts: FloatArray | IntArray) -> FloatArray | None:
        """Return the (…, T) weights of tasks with these numbers of questions, None for weights by size."""
        return self.shares if self.rule is None else np.apply_along_axis(self.rule, -1, counts)


def once(design: Design, name: str, make: Callable[[], Found]) -> Found:
    """Return the value cached under `name` in the design. If there is none, compute it by `make()` and cache it."""
    if name not in design.known:
        design.known[name] = make()
    found: Found = design.known[name]
    return found


def design(
    n: int,
    clusters: NamesLike | None = None,
    strata: IntArray | None = None,
    stratum_weights: FloatArray | None = None,
) -> Design:
    """Describe n questions: tasks (strata) and clusters, by default independent. Task weights are taken as they are.

    Args:
        n: number of questions.
        clusters: (n,) names, compared by equality.
        strata: (n,) task codes 0 … T−1.
        stratum_weights: (T,) weights of the tasks in the mean; by default by size.
    """
    strata = np.zeros(n, dtype=np.intp) if strata is None else np.asarray(strata, dtype=np.intp)
    T = 1 if stratum_weights is None else len(stratum_weights)
    sizes = np.bincount(strata, minlength=T).astype(np.float64)
    shares = sizes / max(n, 1) if stratum_weights is None else np.asarray(stratum_weights, dtype=np.float64)
    weights = (shares / np.maximum(sizes, 1))[strata]
    codes, G = (np.arange(n), n) if clusters is None else cluster_codes(clusters)
    return Design(weights, strata, codes, G, clustered=clusters is not None, shares=stratum_weights)


def with_crossed(design: Design, first: NamesLike, second: NamesLike) -> Design:
    """Return the design with two crossed clusterings. `first` and `second` have the cluster name of each question.

    `clusters` is the way with fewer, of as many the more unequal.
    """
    ways = [cluster_codes(names) for names in (first, second)]
    codes, n_clusters = min(ways, key=lambda way: (way[1], -int((np.bincount(way[0]) ** 2).sum())))
    crossed = (ways[0][0], ways[1][0])
    return replace(design, clusters=codes, n_clusters=n_clusters, clustered=True, crossed=crossed)


def sub_design(whole: Design, rows: IntArray) -> Design:
    """Return the design of the questions in `rows` only. Each task that has a weight must keep a question."""
    strata, T = whole.strata[rows], 0 if whole.shares is None else len(whole.shares)
    part = design(len(rows), whole.clusters[rows], strata, whole.shares_of(np.bincount(strata, minlength=T)))
    part = replace(part, clustered=whole.clustered, between_tasks=whole.between_tasks)
    return part if whole.crossed is None else with_crossed(part, *(codes[rows] for codes in whole.crossed))


def in_order(d: FloatArray, design: Design, rows: IntArray) -> tuple[FloatArray, Design]:
    """Return (…, n) values and their design with the questions rearranged into the order `rows`.

    Clusters are numbered anew, in order of appearance.
    """
    return d[..., rows], sub_design(design, rows)


def cluster_codes(names: NamesLike) -> tuple[IntArray, int]:
    """Number cluster names 0 … G−1 in order of first appearance. Return the (n,) codes and G."""
    values = names.tolist() if isinstance(names, np.ndarray) else names
    index = {name: code for code, name in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(index.__getitem__, values), np.intp, len(values)), len(index)


def sum_by(codes: IntArray, values: FloatArray | BoolArray | IntArray, size: int) -> FloatArray:
    """Return (…, size) sums of (…, n) values over those with the same code."""
    if size == 1:
        return np.asarray(np.add.reduce(values, axis=-1, keepdims=True, dtype=np.float64))
    if values.ndim == 1 or len(values) == 1:
        sums = np.asarray(np.bincount(codes, weights=values.ravel(), minlength=size), dtype=np.float64)
        return sums.reshape(*values.shape[:-1], -1)
    out: FloatArray = np.zeros((*values.shape[:-1], size))
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, values = codes[order], values[..., order]
    starts = np.concatenate([[0], np.flatnonzero(codes[1:] != codes[:-1]) + 1])[: len(codes)]
    if len(starts):
        out[..., codes[starts]] = np.add.reduceat(values, starts, axis=-1, dtype=np.float64)
    return out
