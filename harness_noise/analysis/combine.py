"""Other methods over several tasks than the overall row: Stouffer, inverse variance, Wilcoxon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..results.diagnostics import SCORED
from ..results.rows import Difference
from ..stats import combine as methods
from ..stats.decision import Skew, skewed_alike


def other_methods(whole: Difference, rows: Sequence[tuple[Difference, Skew | None]]) -> tuple[methods.Combined, ...]:
    """Return Stouffer's and the inverse-variance (both from two rows on) and Wilcoxon's test, or why each is refused.

    A metric where lower is better counts with its sign turned, so that above 0 always means that A is better. Rows
    without a standard error above 0 and its degrees of freedom are left out of all but Wilcoxon's test. All three take
    the rows for independent, and are refused if these share a cluster or a question. Stouffer and inverse variance are
    refused if all rows are skewed alike, which they add up.

    Args:
        whole: the overall row.
        rows: the top-level rows, each with how skewed it is (`Comparison.skews`); an unknown one does not count.
    """
    pairs = [(row, skew) for row, skew in rows if row.diff is not None]
    sign = -1.0 if whole.higher_is_better is False else 1.0
    usable = [(row, skew) for row, skew in pairs if row.se and row.df]
    shared = whole.n_clusters < sum(row.n_clusters for row, _ in rows)
    out = [methods.wilcoxon([sign * (row.diff or 0.0) for row, _ in pairs])]
    if len(usable) > 1:
        diffs = [sign * (row.diff or 0.0) for row, _ in usable]
        columns = diffs, [row.se or 0.0 for row, _ in usable], [row.df or 0.0 for row, _ in usable]
        skewed = [skew.turned() if sign < 0 else skew for _, skew in usable if skew]
        summed = [methods.stouffer(*columns), methods.inverse_variance(*columns)]
        if skewed_alike(skewed):
            summed = [methods.refused(merged, methods.SKEWED) for merged in summed]
        out = [*summed, *out]
    if shared:
        out = [methods.refused(merged, methods.SHARED) for merged in out]
    if SCORED in whole.diagnostics:
        out = [methods.refused(merged, SCORED) for merged in out]
    about = {name: getattr(whole, name) for name in ("metric", "scorer", "model_a", "model_b", "run_a", "run_b")}
    return tuple(replace(merged, **about) for merged in out)
