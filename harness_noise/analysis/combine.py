"""Rows without questions of their own: two counts of right answers, and what several tasks or models say together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

import numpy as np

from ..data.scores import Run
from ..errors import InputError
from ..results.rows import Comparison, Difference
from ..settings import Settings, check_scale
from ..stats import combine as methods
from ..stats import decision
from ..stats.decision import Skew, skewed_alike
from ..stats.intervals import agresti_caffo
from .rows import RowDecision, decided


def combined(result: Comparison, pairs: Iterable[tuple[Run, Run]]) -> Comparison:
    """The comparison of these pairs with what its rows say together; groups hold the same questions again."""
    groups = {group.name for pair in pairs for run in pair for group in run.groups}
    alone = [(row, skew) for row, skew in zip(result.comparisons, result.skews, strict=True) if row.task not in groups]
    return replace(result, combined=combine([row for row, _ in alone], [skew for _, skew in alone]))


def combine(rows: Iterable[Difference], skews: Sequence[Skew | None] = ()) -> tuple[methods.Combined, ...]:
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
    pairs = [(row, skew) for row, skew in zip_longest(rows, skews) if row is not None and row.diff is not None]
    metrics = sorted({row.metric for row, _ in pairs})
    if len(pairs) < 2 or len(metrics) != 1:
        raise InputError(
            f"combining needs at least two differences of one metric; there are {len(pairs)}"
            + (f" of {', '.join(metrics)}" if metrics else "")
        )
    signed = [(-1.0 if row.higher_is_better is False else 1.0) * (row.diff or 0.0) for row, _ in pairs]
    usable = [(d, row, skew) for d, (row, skew) in zip(signed, pairs, strict=True) if row.se and row.df]
    out = [methods.wilcoxon(signed)]
    if len(usable) > 1:
        diffs = [d for d, _, _ in usable]
        columns = diffs, [row.se or 0.0 for _, row, _ in usable], [row.df or 0.0 for _, row, _ in usable]
        skewed = [skew.turned() if row.higher_is_better is False else skew for _, row, skew in usable if skew]
        summed = [methods.stouffer(*columns), methods.inverse_variance(*columns)]
        if skewed_alike(skewed):
            summed = [methods.refused_as_skewed(merged) for merged in summed]
        out = [methods.equal_weights(*columns), *summed, *out]
    return tuple(out)


def compare_counts(a: tuple[int, int], b: tuple[int, int], names: tuple[str, str], settings: Settings) -> Difference:
    """x of n against y of m: Fisher's exact test, the pairing lost, and the interval of Agresti & Caffo [Agresti].

    The statistic is z of the pooled test of two proportions.

    Args:
        a: right answers and questions of A.
        b: of B.
        names: what to call them.
        settings: level and margin.

    Raises:
        InputError: more right answers than questions, or a margin that is not on the scale of shares.
    """
    (x, n), (y, m) = a, b
    check_scale("margin", settings.margin, (0.0, 1.0), "a share of right answers", known=True)
    p = np.array([methods.fisher_exact(x, n, y, m)])
    pooled, diff, unknown = (x + y) / (n + m), np.array([x / n - y / m]), np.array([np.nan])
    variance = np.array([pooled * (1 - pooled) * (1 / n + 1 / m)])
    z = diff / np.sqrt(np.where(variance > 0, variance, 1.0))
    of = decision.Differences(diff, variance, df=unknown, zero=np.array([False]), p_zero=unknown)
    limits = partial(agresti_caffo, np.array([x / n]), n, np.array([y / m]), m)
    test = decision.Test(p, z, by_p=True, of_all=True, limits=limits, interval="agresti-caffo")
    row = RowDecision.of(
        decision.decide(of, settings, test),
        {"unpaired"},
        task="",
        metric="counts",
        scorer="none",
        higher_is_better=None,
        model_a=names[0],
        model_b=names[1],
        n_questions=n + m,
        n_clusters=n + m,
        n_only_a=n,
        n_only_b=m,
        repeats_a=1,
        repeats_b=1,
        mean_a=x / n,
        mean_b=y / m,
        diff=diff.item(),
        level=settings.level,
        test="fisher",
    )
    return decided([row], settings)[0]
