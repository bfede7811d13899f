"""Tests over several tasks or models.

Signed ranks [Wilcoxon], Stouffer's z [Stouffer; Liptak for the weights], and
inverse-variance (fixed-effect) weights [Cochran].
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from ..arrays import FloatArray
from ..data.numbers import number_array
from .tolerances import SLACK, SMALLEST

LEAST_DF = 20.0
"""Degrees of freedom of every row below which inverse-variance weights and Cochran's Q are refused."""


HETEROGENEOUS_P = 0.05
"""Below this p of Cochran's Q the tasks are shown to differ."""


@dataclass(frozen=True, slots=True)
class Combined:
    """One difference from several independent tasks or models."""

    method: str
    n: int
    """Tasks or models that went into it."""
    diff: float | None
    """The combined difference, None if the method gives none."""
    se: float | None
    statistic: float | None
    p_value: float | None
    heterogeneity_p: float | None = None
    """Cochran's Q: small where the tasks do not share one difference."""
    df: float | None = None
    """Degrees of freedom of the t test behind the p-value, None if the p-value is from another distribution."""
    note: str | None = None
    """The reason why a method gives no result."""
    diagnostics: tuple[str, ...] = ()
    """Codes, each explained in docs/diagnostics.md."""
    metric: str = ""
    """The metric of the combined rows. The next fields are theirs, too. All are empty for arrays."""
    scorer: str = ""
    model_a: str = ""
    model_b: str = ""
    run_a: str = ""
    run_b: str = ""


SKEWED = "skewed_rows"
SHARED = "tasks_share_questions"
DIFFER = "tasks_differ"
_WHY = {
    SKEWED: "the tasks are skewed in the same direction. Each one's t test withstands that, but their sum would reject "
    "a true null far too often, so it is refused. Take the overall row",
    SHARED: "it takes the tasks for independent, but they share questions or clusters, so it is refused. The overall "
    "row counts what is shared once",
    DIFFER: "it takes one difference for all tasks, and the tasks are shown to differ (Cochran's Q), so it is refused. "
    "Take the overall row, or look at the tasks one by one",
    "scored_differently": "equal answers are scored differently: the scoring differs, not the models, so it is refused",
}
"""Code → why a method is refused."""


def refused(merged: Combined, code: str) -> Combined:
    """Return a combined test without its numbers, refused for the reason `code`. "tasks_differ" keeps Cochran's p."""
    kept = merged.heterogeneity_p if code == DIFFER else None
    return Combined(merged.method, merged.n, None, None, None, None, kept, note=_WHY[code], diagnostics=(code,))


def _arrays(
    diffs: Sequence[float], ses: Sequence[float], dfs: Sequence[float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    given = {"differences": diffs, "standard errors": ses, "degrees of freedom": dfs}
    d, s, df = (number_array(values, what) for what, values in given.items())
    if d.ndim != 1 or len(d) == 0 or not d.shape == s.shape == df.shape:
        raise ValueError(
            f"{d.size} differences, {s.size} standard errors and {df.size} degrees of freedom: give one of each for "
            "every task"
        )
    if not np.isfinite(d).all() or not np.isfinite(s).all() or (s <= 0).any() or not (df > 0).all():
        raise ValueError(
            "differences must be finite, standard errors and degrees of freedom above 0: leave out what is not "
            "identified"
        )
    return d, s, df


def equal_weights(diffs: Sequence[float], ses: Sequence[float], dfs: Sequence[float]) -> Combined:
    """Return the unweighted mean of T tasks' differences with SE √Σse²/T, t, p and Satterthwaite's df.

    Args:
        diffs: (T,) differences.
        ses: (T,) their standard errors, which are estimates.
        dfs: (T,) degrees of freedom of each standard error; infinite where it is known.
    """
    d, s, df = _arrays(diffs, ses, dfs)
    mean, variance = float(d.mean()), float(s @ s)
    se = math.sqrt(variance) / len(s)
    spread = float((s**4 / df).sum())
    freedom = variance**2 / spread if spread > 0 else math.inf
    t = mean / se
    p = float(2 * special.stdtr(freedom, -abs(t)))
    return Combined("equal weights", len(d), mean, se, t, p, df=freedom if math.isfinite(freedom) else None)


def stouffer(diffs: Sequence[float], ses: Sequence[float], dfs: Sequence[float]) -> Combined:
    """Combine T differences by Stouffer's test Σ z / √T, each t turned into z. Gives p, no mean.

    Without the detour through p, t is taken for z, and small tasks reject a true null several times too often.
    """
    d, s, df = _arrays(diffs, ses, dfs)
    t = d / s
    each = -np.sign(t) * special.ndtri(np.maximum(special.stdtr(df, -np.abs(t)), SMALLEST))
    z = float(each.sum() / math.sqrt(len(d)))
    return Combined("Stouffer", len(d), None, None, z, _two_sided(z))


def inverse_variance(diffs: Sequence[float], ses: Sequence[float], dfs: Sequence[float]) -> Combined:
    """Return T differences' mean by 1/se² and Cochran's Q p. Refused, with a note, if a df < 20 or Q finds they differ.

    Refused (null, with a note) where a task has df < 20: weights from a standard error that is hardly known prefer
    the tasks whose scatter came out small by chance, and neither its p nor Q holds. Refused, too, where Q shows that
    the tasks do not share one difference: the most precise task would then stand for all.
    """
    d, s, df = _arrays(diffs, ses, dfs)
    if (few := int((df < LEAST_DF).sum())) > 0:
        note = (
            f"inverse-variance weights and Cochran's Q take the standard errors for known, and are refused: {few} of "
            f"{len(d)} rows {'has' if few == 1 else 'have'} fewer than {LEAST_DF:.0f} degrees of freedom"
        )
        return Combined("inverse variance", len(d), None, None, None, None, note=note)
    w = 1 / s**2
    mean, se = float(w @ d / w.sum()), float(w.sum() ** -0.5)
    q = float(w @ (d - mean) ** 2)
    hetero = float(special.chdtrc(len(d) - 1, q)) if len(d) > 1 else None
    merged = Combined("inverse variance", len(d), mean, se, mean / se, _two_sided(mean / se), hetero)
    return refused(merged, DIFFER) if hetero is not None and hetero < HETEROGENEOUS_P else merged


def _two_sided(z: float) -> float:
    return float(2 * special.ndtr(-abs(z)))


def wilcoxon(diffs: Sequence[float]) -> Combined:
    """Return Wilcoxon's signed-rank test over T differences, one per task or model, zeros dropped. Refuse NaN.

    The tasks or models are the sample: it asks about a new one, not about new questions. With tied
    |d| the exact distribution is that of all sign patterns up to n = 20, else the normal one.
    """
    d = number_array(diffs, "differences")
    if d.ndim != 1 or not np.isfinite(d).all():
        raise ValueError("differences must be a list of finite numbers")
    d = np.round(d / max(float(np.abs(d).max(initial=0.0)), SMALLEST), 12)  # rounding makes no ranks
    d = d[d != 0]
    n = len(d)
    if n == 0:
        return Combined("Wilcoxon signed-rank", 0, None, None, None, 1.0)
    from scipy import stats  # takes long to import, and most commands have no overall row

    ties, ranks = len(np.unique(np.abs(d))) < n, stats.rankdata(np.abs(d))
    plus = float(ranks[d > 0].sum())
    if ties and n <= 20:
        patterns = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) @ ranks
        p = min(1.0, 2 * float(min((patterns >= plus - SLACK).mean(), (patterns <= plus + SLACK).mean())))
    else:
        method: Literal["exact", "approx"] = "approx" if ties or n > 50 else "exact"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scipy warns of ties in the normal approximation
            p = float(stats.wilcoxon(d, method=method).pvalue)
    return Combined("Wilcoxon signed-rank", n, None, None, plus, p)
