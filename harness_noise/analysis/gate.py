"""The regression gate: is A worse than B by more than a margin, anywhere in a comparison?

It reads the intervals that the rows show, so that with one row it trips exactly where the interval, in
the metric's direction, lies wholly below the margin. A gate is one decision, so all rows that it judges are one
family: Holm's method keeps the chance that a comparison without any regression trips at (1 − level)/2, however many
tasks and groups it has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..data.native_values import MISMATCH
from ..stats import decision

if TYPE_CHECKING:
    from ..results.rows import Comparison, Difference


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate found, row by row."""

    margin: float
    alpha: float
    """One-sided level, (1 − level)/2."""
    adjust: str
    """holm; none where the comparison was asked not to adjust."""
    rows: tuple[Difference, ...]
    p_values: tuple[float | None, ...]
    """One-sided p of "A is not worse than B by more than the margin"; None where the row cannot be judged."""
    p_adjusted: tuple[float | None, ...]
    """The same, adjusted over all rows that can be judged."""

    @property
    def worse(self) -> tuple[Difference, ...]:
        """The rows in which A is worse by more than the margin."""
        return tuple(row for row, p in zip(self.rows, self.p_adjusted, strict=True) if p is not None and p < self.alpha)

    @property
    def unjudged(self) -> tuple[Difference, ...]:
        """The rows that have no interval to judge by."""
        return tuple(row for row, p in zip(self.rows, self.p_adjusted, strict=True) if p is None)

    @property
    def tripped(self) -> bool:
        return bool(self.worse)

    @property
    def blind(self) -> bool:
        """Whether a pass would say more than was seen: no row could be judged, or the scores of one are not those of
        the harness's own value."""
        odd = any(MISMATCH in row.diagnostics for row in self.rows)
        return not self.tripped and (odd or len(self.unjudged) == len(self.rows))


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
    rows = result.differences
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
