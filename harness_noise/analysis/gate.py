"""The regression gate: is A worse than B by more than a margin, anywhere in a comparison?

It reads the intervals that the rows show, so that with one row it trips exactly where the interval, in
the metric's direction, lies wholly below the margin. A gate is one decision, so all rows that it judges are one
family: Holm's method keeps the chance that a comparison without any regression trips at (1 − level)/2, however many
tasks and groups it has.
"""

from __future__ import annotations

import math

import numpy as np

from ..data.native_values import MISMATCH
from ..results.rows import Comparison, Difference, Gate
from ..stats import decision


def regressions(result: Comparison, margin: float | None = None) -> Gate:
    """Test every row for "A is not worse than B by more than a margin", adjusted over all rows.

    One-sided at (1 − level)/2, in the metric's direction, by the limits of the row's own interval
    (`interval`): t's, or the bootstrap's or a small-sample rule's, read through t (see
    `decision.p_beyond`). The family-wise method is Holm's, whatever adjusts the p-values that are
    shown, as the false discovery rate says nothing of a single trip; none where that was chosen.

    Args:
        result: of `compare`.
        margin: on the metric's scale, not negative; None: the comparison's own, or 0.

    Raises:
        ValueError: a negative margin.
    """
    if margin is None:
        margin = float(result.settings.get("margin") or 0.0)
    if not margin >= 0:
        raise ValueError(f"margin {margin:g} must not be negative")
    rows = result.comparisons
    p = [_p_not_worse(row, margin) for row in rows]
    adjust = "none" if result.settings.get("adjust") == "none" else "holm"
    adjusted = decision.adjusted([math.nan if value is None else value for value in p], adjust)
    level = rows[0].level if rows else float(result.settings.get("level", 0.95))
    found = tuple(None if np.isnan(value) else float(value) for value in adjusted)
    return Gate(margin, (1 - level) / 2, adjust, rows, tuple(p), found)


def _p_not_worse(row: Difference, margin: float) -> float | None:
    """One-sided p of one row; None without an interval or anything that stands in for it, and where the scores are
    not those of the harness's own value."""
    if row.diff is None or MISMATCH in row.diagnostics:
        return None
    up = row.higher_is_better is not False
    gain = row.diff if up else -row.diff
    best_case = row.ci_high if up else row.ci_low
    if best_case is not None:
        df = row.df if row.df is not None and row.se else math.inf
        best_case = best_case if up else -best_case
        return float(decision.p_beyond(gain, best_case, df, row.level, -margin))
    if "zero_variance" not in row.diagnostics:
        return None
    if gain >= -margin:  # every question moved by this amount, and no farther
        return 1.0
    return None if row.p_sign is None else row.p_sign / 2
