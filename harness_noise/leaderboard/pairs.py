"""The pair columns as results: intervals, tests, verdicts and adjusted p-values, many pairs at once.

It says of every pair what `compare` says of one; the tests hold the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from ..results.arena import Pairs
from ..settings import Settings
from ..stats import decision, tests
from ..stats.intervals import z_quantile
from ..stats.moments import upper_variance
from ..stats.wild_pairs import wild_columns

if TYPE_CHECKING:
    from ..stats.arrays import BoolArray, FloatArray, IntArray
    from ..stats.pair_table import Columns, Table


def judged(
    columns: Columns,
    table: Table,
    names: tuple[str, ...],
    runs: tuple[str, ...],
    common: dict[str, Any],
    settings: Settings,
    *,
    width: float | None,
    n_missing: IntArray,
    codes: dict[str, BoolArray],
) -> Pairs:
    """Everything a comparison says, for every pair; p-values adjusted over all of them.

    Args:
        columns: the engine's columns.
        table: what it took, for a test that looks at the questions again.
        names: (M,) model names.
        runs: (M,) what their runs are called.
        common: the fields that all pairs share.
        settings: level, test, margin and adjustment.
        width: of the metric's range; None where it is not known.
        n_missing: (M,) answers of each model without a score.
        codes: diagnostic code → (P,) pairs that have it, beside those of the engine.
    """
    c, level = columns, settings.level
    alpha = 1 - level
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(np.maximum(c.variance, 0.0))
        known = ~np.isnan(se)
        test = known & ~c.zero
        statistic = np.where(test, c.diff / se, np.nan)
        p_sign = sign_p(c.signs_a, c.signs_b)
        p_value = np.where(test, 2 * special.stdtr(c.df, -np.abs(statistic)), np.nan)
        level_p = c.zero & (np.abs(c.diff) <= 1e-12)
        p_value[level_p] = 1.0
        limits = _limits(c, se, width, level)
        narrow = _limits(c, se, width, max(0.0, 1 - 2 * alpha))
        if settings.test == "wild":
            statistic = np.full(len(c), np.nan)
            levels = [level] if settings.margin is None else [level, max(0.0, 1 - 2 * alpha)]
            levels = levels if settings.interval_of_difference == "wild" else []
            p, *ends = wild_columns(table, c, np.flatnonzero(test), levels, settings.resamples, settings.seed)
            p_value[test] = p[test]
            for shown, at, (low, high) in zip((limits, narrow), levels, ends, strict=False):
                own = decision.Limits(low, high).reaching(c.diff, c.far, at)
                shown.low[test], shown.high[test] = own.low[test], own.high[test]
        if settings.test == "sign":
            statistic = np.full(len(c), np.nan)
            p_value = np.where(known, np.where(np.isnan(p_sign), 1.0, p_sign), np.nan)
            p, separable = p_value, p_value < alpha
        else:
            p = np.where(c.zero & ~level_p, p_sign, p_value)  # where nothing varies the sign test decides
            found = p_value < alpha if settings.test == "wild" else limits.exclude()
            separable = np.where(c.zero, ~level_p & (p_sign < alpha), test & found)
        p_adjusted = decision.adjusted(p, settings.adjust)
        a_better = (c.diff > 0) == (common["higher_is_better"] is not False)
        equivalent = np.zeros(len(c), dtype=np.bool_)
        if settings.margin is not None:
            equivalent = narrow.within(settings.margin)
        verdict, taken_back = decision.verdicts(separable, p, p_adjusted, a_better, equivalent, level)
        data_limit = upper_variance(c.variance, c.df, 0.95) - (c.variance - c.var_data)
        data_limit[c.zero] = np.nan
        design_effect = np.where(known & ~np.isnan(c.naive), 1.0, np.nan)
        if common["cluster"] is not None:
            design_effect = np.where(c.naive > 0, c.variance / c.naive, np.nan)
    fields = {
        "n_questions": c.n,
        "n_clusters": c.n_clusters,
        "n_only_a": c.only_a,
        "n_only_b": c.only_b,
        "repeats_a": c.repeats_a,
        "repeats_b": c.repeats_b,
        "mean_a": c.mean_a,
        "mean_b": c.mean_b,
        "diff": c.diff,
        "se": se,
        "ci_low": limits.low,
        "ci_high": limits.high,
        "df": c.df,
        "statistic": statistic,
        "p_value": p_value,
        "p_adjusted": np.where(np.isnan(p_value), np.nan, p_adjusted),
        "p_sign": p_sign,
        "wins_a": c.wins_a,
        "wins_b": c.wins_b,
        "ties": np.maximum(c.n - c.wins_a - c.wins_b, 0.0),
        "correlation": c.correlation,
        "se_unpaired": np.sqrt(c.variance_a + c.variance_b),
        "se_total": np.sqrt(np.maximum(c.var_total, 0.0)),
        "se_data": np.sqrt(np.maximum(c.var_data, 0.0)),
        "se_prediction": np.sqrt(c.var_prediction),
        "var_data": c.var_data,
        "var_prediction": c.var_prediction,
        "design_effect": design_effect,
        "mde": tests.minimum_detectable(np.where(test, se, np.nan), c.df, level),
        "se_data_upper": np.sqrt(np.maximum(data_limit, 0.0)),
        "n_missing": n_missing[c.a] + n_missing[c.b],
    }
    flags = dict(c.flags)
    for code, has in (codes | {"identical_scores": c.same, "not_after_adjustment": taken_back}).items():
        flags[code] = flags[code] | has if code in flags else has
    flags = {code: has for code, has in flags.items() if has.any()}
    shown_by = "wild" if settings.interval_of_difference == "wild" else "t"
    return Pairs(names, runs, common, c.a, c.b, fields, verdict, decision.words(settings.margin), flags, shown_by)


def sign_p(wins: IntArray, losses: IntArray) -> FloatArray:
    """(P,) two-sided exact sign tests; NaN where nothing differs. See `tests.sign_test`."""
    decided = wins + losses
    p = np.minimum(1.0, 2 * special.bdtr(np.minimum(wins, losses).astype(np.float64), decided, 0.5))
    return np.where(decided > 0, p, np.nan)


def _limits(c: Columns, se: FloatArray, width: float | None, level: float) -> decision.Limits:
    """t's limits, with far ones; where nothing varies and the range is known those of `intervals.bonett_price`."""
    found = decision.t_limits(c.diff, se, c.df, level, c.far)
    low, high = found.low, found.high
    if c.zero.any():
        # Without variance every question (cluster) has the mean difference, so the sums are G times it;
        # in a group of tasks each task has its own.
        G, d = c.n_clusters[c.zero], c.diff[c.zero]
        gain = np.maximum(d, 0) if c.gain is None else c.gain[c.zero]
        loss = np.maximum(-d, 0) if c.loss is None else c.loss[c.zero]
        unit = np.nan if width is None else width
        p1, p2 = (G * gain / unit + 1) / (G + 2), (G * loss / unit + 1) / (G + 2)
        small = z_quantile(level) * np.sqrt((p1 + p2 - (p1 - p2) ** 2) / (G + 2))
        low[c.zero] = unit * np.maximum(-1.0, p1 - p2 - small)
        high[c.zero] = unit * np.minimum(1.0, p1 - p2 + small)
    return decision.Limits(low, high)
