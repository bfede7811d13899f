"""The ranges that metrics have by their names, and whether our mean is the harness's own value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]


def is_proportion(metric: str) -> bool:
    """Whether a metric's name says that its scores are right or wrong: acc_norm, exact_match, correct, pass@1, … ."""
    words = set(re.split(r"[^a-z0-9]+", metric.lower()))
    return bool(words & {"acc", "accuracy", "em", "correct", "match", "pass", "passed"})


def fitting(bounds: tuple[float, float] | None, values: FloatArray) -> tuple[float, float] | None:
    """The range that a metric of this name has, or None if the scores show that it has another."""
    import numpy as np

    scored = values[~np.isnan(values)]
    if bounds is None or (len(scored) and not (bounds[0] <= scored.min() and scored.max() <= bounds[1])):
        return None
    return bounds


_ROUNDED = 9
"""Decimals from which on a value counts as written in full."""


def reproduces(ours: float, native: float, *, percent: bool = True) -> bool:
    """Whether our mean is the value that a harness reports, on the scale and with the digits of that value.

    0.269230769… is 0.2692 rounded, and 26.92 in percent.

    Args:
        ours: on the scale of the scores.
        native: as reported.
        percent: whether one of the two may be a percentage of the other's scale.
    """
    if _agree(ours, native, _SHARE if abs(native) <= 1 else _PERCENT):
        return True
    # next to 0 every scale agrees with every other
    return percent and (
        (abs(native) >= 0.1 and _agree(100 * ours, native, _PERCENT))
        or (0.01 <= abs(native) <= 1 and _agree(ours / 100, native, _SHARE))
    )


def _agree(ours: float, native: float, fewest: int) -> bool:
    tolerance = 1e-9 * max(1.0, abs(native))
    decimals = len(f"{native:.12f}".rstrip("0").partition(".")[2])
    if decimals < _ROUNDED:
        tolerance += 0.5 * 10.0 ** -max(decimals, fewest)
    return abs(ours - native) <= tolerance


_SHARE, _PERCENT = 4, 2
"""Decimals that a harness keeps at least where it rounds: 0.2692, 26.92 %."""
