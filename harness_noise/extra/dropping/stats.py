"""The looks at several models, of which those behind beyond a boundary are no longer asked.

Sources:
  [Lan]       Lan & DeMets (1983), Biometrika 70: a look spends what its share of the information allows
  [Hwang]     Hwang, Shih & DeCani (1990), Statistics in Medicine 9: γ = −4
  [Jennison]  Jennison & Turnbull (2000), §8.4: limits and estimates by the stage-wise ordering

The leader may change from look to look. The best model is dropped only if one of its M − 1 rivals crosses its own
boundary against it at some look, whoever leads, and each does so with probability α/(M − 1) at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...arrays import FloatArray, IntArray
from ...choices import CR2
from ...settings import Estimator
from ...stats.contrast import Design, QuestionStats, question_stats, sub_design
from ...stats.moments import Moments, contrast_moments
from ..boundaries import MOST_Z, critical_values, information, normal_z, stagewise_shifts, student_t

FEWEST_CLUSTERS = 7
"""Clusters (questions) before the first look: a variance of fewer drops where it happens to be small."""
RISE = 1.01
"""Smallest ratio of the information of a look to that of the look before."""


@dataclass(frozen=True, slots=True)
class Looked:
    """One model at the last look that it was part of."""

    look: int
    """Counted from 1."""
    n: int
    """Questions that it had answered by then, as all models that were left."""
    answers: int
    leader: int
    """The model with the best mean of that look."""
    mean: float
    diff: float
    """Its mean minus the leader's: median-unbiased if it was dropped, 0 for the leader."""
    low: float
    """Limits of `diff`: stage-wise if it was dropped, else those of repeated looks. NaN if they are unknown."""
    high: float
    dropped: bool


@dataclass(frozen=True, slots=True)
class Rival:
    """The comparison of one model with the leader at a look."""

    mean: float
    diff: float = 0.0
    """Its mean minus the leader's."""
    se: float = math.nan
    df: float = math.nan
    z: float = 0.0
    """The z with the p-value of its lag, 0 if it leads or nothing can be said."""


@dataclass(frozen=True, slots=True)
class SeenModels:
    """The means and comparisons that one look at several models sees."""

    n: int
    fraction: float
    """Share of the information of the whole."""
    information: float
    leader: int
    rivals: Mapping[int, Rival]
    """All models that are left, the leader too."""
    answers: Mapping[int, int]


@dataclass(slots=True)
class ModelFamily:
    """Several models that are looked at together, with what was found so far."""

    M: int
    """Models at the first look."""
    level: float
    info: list[float] = field(default_factory=list)
    """Information at the looks, in units of one answer to every question."""
    fractions: list[float] = field(default_factory=list)
    """Share of the whole by which each spent its error."""
    models: dict[int, Looked] = field(default_factory=dict)
    """Model → its last look."""

    @property
    def alpha(self) -> float:
        """The two-sided error for one rival, of which half is spent on the side that drops."""
        return min(2 * (1 - self.level) / (self.M - 1), 1 - 1e-9)

    @property
    def left(self) -> list[int]:
        """Models still in the race: those not shown to be worse than the leader at an earlier interim look."""
        return [m for m in range(self.M) if not (m in self.models and self.models[m].dropped)]

    def look(self, seen: SeenModels) -> None:
        """Add one interim look: compare each model left with the leader, and drop those shown to be worse."""
        self.info.append(max(seen.information, RISE * self.info[-1] if self.info else 0.0))
        self.fractions.append(min(1.0, max([seen.fraction, *self.fractions])))
        bounds = critical_values(self.fractions, self.alpha, info=self.info)  # [Lan], spent as [Hwang]
        for m, of in seen.rivals.items():
            dropped = m != seen.leader and of.z >= bounds[-1]
            ends = of.diff, math.nan, math.nan
            if of.se > 0:
                shifts = 0.0, bounds[-1], -bounds[-1]
                if dropped:
                    z = math.copysign(of.z, of.diff)
                    # [Jennison, §8.4]
                    low, middle, high = stagewise_shifts(z, self.info, bounds, 1 - self.alpha)
                    shifts = middle, low, high
                middle, low, high = (of.diff - of.se * student_t(shift, of.df) for shift in shifts)
                ends = middle, low, high
            self.models[m] = Looked(len(bounds), seen.n, seen.answers[m], seen.leader, of.mean, *ends, dropped)


@dataclass(frozen=True, slots=True)
class Whole:
    """The full design that looks are part of, and how a look is computed."""

    n: int
    """Questions."""
    repeats: float
    """Mean over the questions of one over the number of their answers, if all is asked."""
    sign: float = 1.0
    """−1 if less is better."""
    width: float | None = None
    """The width of the range of the scores, None if it is unknown."""
    estimator: Estimator = CR2.name


def see(stats: QuestionStats, plan: Design, left: Sequence[int], whole: Whole) -> SeenModels | None:
    """Return means and comparisons to the leader, on questions that all models left have answered. None: too few.

    Args:
        stats: (M, n) statistics of all models.
        plan: of the n questions.
        left: indexes of these models.
        whole: what is asked at most.
    """
    at = np.asarray(left, dtype=np.intp)
    rows = np.flatnonzero((stats.count[at] > 0).all(axis=0))
    tasks = len(np.unique(plan.strata))
    plan = plan if len(rows) == stats.count.shape[1] else sub_design(plan, rows)
    if plan.n_clusters < FEWEST_CLUSTERS or len(np.unique(plan.strata)) < tasks:
        return None
    stats = stats.take(np.s_[:, rows])
    means = stats.mean[at] @ plan.weights
    lead = int(np.argmax(whole.sign * means))
    leader, others = int(at[lead]), np.delete(at, lead)
    rivals, share = {leader: Rival(float(means[lead]))}, 1.0
    if len(others):
        both = [stats.runs(others), stats.runs(np.full(len(others), leader))]
        m = contrast_moments(both, (1.0, -1.0), plan, whole.estimator).m
        means = np.delete(means, lead)
        rivals |= {other: _rival(float(means[i]), m, i, whole) for i, other in enumerate(others.tolist())}
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = m.var_prediction / m.var_total
        known = shares[np.isfinite(shares)]
        share = float(np.clip(np.median(known), 0.0, 1.0)) if len(known) else 1.0
    count = stats.count[at]
    here = information(min(1.0, len(rows) / whole.n), float((1 / count).mean()), share)
    fraction = here / information(1.0, whole.repeats, share)
    return SeenModels(
        len(rows), fraction, here, leader, rivals, dict(zip(left, count.sum(axis=1).tolist(), strict=True))
    )


def _rival(mean: float, m: Moments, i: int, whole: Whole) -> Rival:
    """Return a model's `Rival`: difference to the leader, SE, df, z of lag (0: none, or no variance at unknown range).

    If the range of the scores is known, one more question is added that favours the model as far as the range goes,
    and the smaller z counts: few questions without a rare success do not show that there is none.
    """
    diff, variance, df, n = (float(x[i]) for x in (m.mean, m.variance, m.df, m.n))
    zero, behind = bool(m.zero_variance[i]), -whole.sign * diff
    if not math.isfinite(variance) or (zero and whole.width is None):
        return Rival(mean, diff)
    z = MOST_Z if zero else normal_z(behind / math.sqrt(variance), df)
    if whole.width is not None:
        moved = (n * behind - whole.width) / (n + 1)
        more = variance * (n / (n + 1)) ** 2 + ((whole.width + behind) / (n + 1)) ** 2
        z = min(z, normal_z(moved / math.sqrt(more), df + 1))
    return Rival(mean, diff, math.nan if zero else math.sqrt(variance), df, max(0.0, z))


def replay(
    values: FloatArray, plan: Design, steps: Sequence[IntArray], level: float, whole: Whole
) -> tuple[ModelFamily, IntArray]:
    """Replay interim looks on complete scores. Return the `ModelFamily`, and (M,) answers used up to its last look.

    Args:
        values: (M, n, K) scores, of each question those that are there first.
        plan: of the n questions.
        steps: (n,) answers to each question that a look sees, look by look.
        level: 1 − the error.
        whole: how a look is computed.
    """
    M, _, K = values.shape
    answers = np.zeros(M, dtype=np.intp)
    family, before, part = ModelFamily(M, level), -1, plan
    for asked in steps:
        rows = np.flatnonzero(asked)
        if len(rows) != before:
            before, part = len(rows), sub_design(plan, rows)
        shown = np.where(np.arange(K) < asked[rows, None], values[:, rows], np.nan)
        each = question_stats(shown.reshape(-1, K))
        stats = QuestionStats(each.mean.reshape(M, -1), each.var.reshape(M, -1), each.count.reshape(M, -1))
        seen = see(stats, part, family.left, whole)
        if seen is not None:
            answers[family.left] = stats.count[family.left].sum(axis=1)
            family.look(seen)
        if len(family.left) == 1:
            break
    return family, answers
