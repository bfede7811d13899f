"""What several tasks, or several pairs of models, say together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..data.scores import Run
    from ..results.rows import Comparison, Difference
    from ..stats.combine import Combined
    from ..stats.decision import Skew


def combined(result: Comparison, pairs: Iterable[tuple[Run, Run]]) -> Comparison:
    """The comparison of these pairs with what its rows say together; groups hold the same questions again."""
    groups = {group.name for pair in pairs for run in pair for group in run.groups}
    alone = [item for item in zip(result.comparisons, result.skews, strict=True) if item[0].task not in groups]
    return replace(result, combined=combine([row for row, _ in alone], [skew for _, skew in alone]))


def combine(rows: Iterable[Difference], skews: Sequence[Skew | None] = ()) -> tuple[Combined, ...]:
    """Combine differences of independent tasks or models: equal weights, Stouffer, inverse variance, Wilcoxon.

    The first is the default. A metric where lower is better counts with its sign turned, so that above 0
    always means that A is better. Rows without a standard error above 0 and its degrees of freedom are left
    out of all but Wilcoxon's test.

    Args:
        rows: one for each task or pair of models, of one metric; not the rows of groups that hold the
            same questions again.
        skews: of each row (`Comparison.skews`); Stouffer and inverse variance are refused where all rows are skewed
            alike, which they add up. Unknown ones do not count.

    Raises:
        InputError: fewer than two rows, or several metrics.
    """
    from ..stats.combine import equal_weights, inverse_variance, refused_as_skewed, stouffer, wilcoxon
    from ..stats.decision import skewed_alike

    pairs = [(row, skew) for row, skew in zip_longest(rows, skews) if row is not None and row.diff is not None]
    found = [row for row, _ in pairs]
    metrics = sorted({row.metric for row in found})
    if len(found) < 2 or len(metrics) != 1:
        raise InputError(
            f"combining needs at least two differences of one metric; there are {len(found)}"
            + (f" of {', '.join(metrics)}" if metrics else "")
        )
    signed = [(-1.0 if row.higher_is_better is False else 1.0) * (row.diff or 0.0) for row in found]
    known = [(d, row.se, row.df) for d, row in zip(signed, found, strict=True) if row.se and row.df]
    out = [wilcoxon(signed)]
    if len(known) > 1:
        columns = [[item[i] for item in known] for i in range(3)]
        known_skews = [
            skew.turned() if row.higher_is_better is False else skew
            for row, skew in pairs
            if skew and row.se and row.df
        ]
        summed = [stouffer(*columns), inverse_variance(*columns)]
        if skewed_alike(known_skews):
            summed = [refused_as_skewed(item) for item in summed]
        out = [equal_weights(*columns), *summed, *out]
    return tuple(out)
