"""Answers that were repeated until one passed: how many there are depends on what they are.

Retries, and agents that stop at their first success, leave sequences such as 0 0 1. Their mean is no mean of K answers:
a question that fails first counts for all its failures, so that the mean over answers is too high by .11 with up to
three answers at a pass rate of .5. What tells such sequences from answers that are missing is when they end: right
after a success, far more often than chance would have it, while nearly no success goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from .tolerances import SLACK

How = Literal["success", "failure"]

P_STOPPED = 0.001
"""Below this chance of ending so often after a success, sequences are said to stop there."""
FEWEST_STOPPED = 3
"""Sequences that ended early after a success, below which nothing is said."""
MOST_GOING_ON = 0.05
"""Share of the successes before the last position after which a sequence may go on: scores changed afterwards."""
MOST_OTHERS = 0.25
"""Share of the early ends that may come after a failure: answers that were lost."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """All that ended the answers to a question early."""

    how: How
    n_stopped: int
    """Sequences that ended early after one."""
    p: float
    """The chance of so many, if ending had nothing to do with the scores."""


def stopped_at(
    values: FloatArray, bounds: tuple[float, float] | None = None, *, lower_is_better: bool = False
) -> Stopped | None:
    """Return a finding if repeats end at the first success, or first failure, of each question. None if not.

    None if neither is seen.

    For each position j before the last, N_j sequences have a score there, S_j of them a success; T_j end there, U_j of
    these with a success. p = Π_j P(Hypergeometric(N_j, S_j, T_j) ≥ U_j) is exact if ending has nothing to do with the
    score. None of 300 runs is accused in any null case: scores missing at random or of hard questions, time-outs that
    lose wrong answers, a last round that was cut, retries after errors.

    Args:
        values: (n, K) scores in the order in which the answers were given, NaN where there is none.
        bounds: the metric's range. A success is its best end. If it is unknown, 0 and 1 are the ends of 0/1 scores; of
            graded scores a success is at least the smallest after which a sequence ended early, and p is multiplied by
            the number of different scores.
        lower_is_better: the best score is the lowest.
    """
    there = ~np.isnan(values)
    if values.shape[1] < 2 or there.all() or not there.any():
        return None
    lengths = np.where(there.any(axis=1), values.shape[1] - there[:, ::-1].argmax(axis=1), 0)
    scored = values[there]
    if bounds is None and np.isin(scored, (0.0, 1.0)).all():
        bounds = (0.0, 1.0)
    sign = -1.0 if lower_is_better else 1.0
    hows: tuple[tuple[How, float], ...] = (("success", sign), ("failure", -sign))
    for how, turn in hows:
        seen = _early_ends(turn * values, lengths, None if bounds is None else max(turn * bounds[0], turn * bounds[1]))
        if seen is not None:
            return Stopped(how, *seen)
    return None


def _early_ends(x: FloatArray, lengths: IntArray, top: float | None) -> tuple[int, float] | None:
    """Return (number of questions that ended early after a score ≥ `top`, p-value) if significant, else None."""
    K = int(lengths.max())
    ends = lengths[(lengths > 0) & (lengths < K)] - 1
    if len(ends) < FEWEST_STOPPED:
        return None
    times = 1
    if top is None:
        last = x[(lengths > 0) & (lengths < K), ends]
        top, times = float(last.min()), len(np.unique(x[~np.isnan(x)]))
    with np.errstate(invalid="ignore"):
        success = x >= top - SLACK * max(1.0, abs(top))
    N, S, T, U = _counts(~np.isnan(x), success, lengths, K)
    if U.sum() < FEWEST_STOPPED or (S - U).sum() > MOST_GOING_ON * S.sum() or (T - U).sum() > MOST_OTHERS * T.sum():
        return None
    from scipy.stats import hypergeom  # most runs need nothing of scipy but its special functions

    p = min(1.0, times * float(np.prod(hypergeom.sf(U - 1, N, S, T))))
    return (int(U.sum()), p) if p < P_STOPPED else None


def _counts(
    there: BoolArray, success: BoolArray, lengths: IntArray, K: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return 4 (K − 1,) counts by repeat before the last: scored, successes, last ones, last ones with success."""
    before = np.arange(K - 1)
    ends = lengths[:, None] == before + 1
    there, success = there[:, : K - 1], success[:, : K - 1]
    each = (there, there & success, ends, ends & success)
    N, S, T, U = (np.asarray(x.sum(axis=0), dtype=np.intp) for x in each)
    return N, S, T, U


def within_k(values: FloatArray, k: int, how: How) -> FloatArray:
    """Return (n,) pass@k or pass^k of repeats that stop early: 1, 0, or NaN if still undecided.

    NaN if fewer than k answers of 0 and 1 are there, and none of them decides it.
    """
    part = values[:, :k]
    decisive = 1.0 if how == "success" else 0.0
    stopped, whole = (part == decisive).any(axis=1), ~np.isnan(part).any(axis=1) & (part.shape[1] >= k)
    return np.where(stopped, decisive, np.where(whole, 1.0 - decisive, np.nan))
