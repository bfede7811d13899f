"""Rows without questions of their own: two counts of right answers, and other methods over several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..choices import AGRESTI_CAFFO, FISHER
from ..results.diagnostics import SCORED
from ..results.rows import Difference
from ..settings import Settings, check_scale
from ..stats import combine as methods
from ..stats import decision
from ..stats.decision import Skew, skewed_alike
from ..stats.intervals import agresti_caffo
from .rows import RowDecision, decide_rows


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


def compare_counts(a: tuple[int, int], b: tuple[int, int], names: tuple[str, str], settings: Settings) -> Difference:
    """Return A − B of counts, x of n and y of m right: Fisher's exact p (unpaired), Agresti–Caffo interval, verdict.

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
    test = decision.Test(p, statistic=z, by_p=True, of_all=True, limits=limits, interval=AGRESTI_CAFFO.name)
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
        test=FISHER.name,
        _zero_one=True,
    )
    return decide_rows([row], settings)[0]
