"""Paired differences of one or all pairs of many models on their questions: moments and further numbers.

P differences come from the questions, in chunks, each pair on the questions that both models have; a row of `compare`
is P = 1. Where all models have all questions, matrix products give those pairs whose variance they do not lose to
rounding and that differ on many questions (`_from_products`); the others go through `_from_questions` all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..arrays import AnyArray, BoolArray, FloatArray, IntArray, blank, columns_of, put, rows_of
from ..settings import Estimator
from .cluster_variance import Cells, cells, leverage_factor, task_weights
from .contrast import (
    Contrast,
    Design,
    QuestionStats,
    any_repeat_codes,
    contrast,
    noise_can_be_split,
    repeat_codes,
    sub_design,
    sum_by,
)
from .data_limit import DataLimit, Terms, terms
from .decision import Differences, noise_flags, sign_p
from .intervals import MOST, SHARE, ExtendedSample, Extension, bonett_price
from .moments import Moments, contrast_moments, mean_variance, without_rounding
from .ranks import answers_above
from .tolerances import ROUNDING

CHUNK = 400_000
"""Entries of a pairs × questions block that is worked on at once (3 MB, so that it stays in a cache)."""
CANCELLED = 1e-4
"""A variance below this share of the models' variances is computed from the questions: products lose its digits."""
NOTHING = 1e-20
"""A variance below this number is computed from the questions, too."""
NEAR = 1.001
"""Flips that are few within this factor, or whose sums of powers cancel, are counted on the questions."""
_CANCELLED_POWERS = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """M models on N questions, reduced to question statistics."""

    stats: QuestionStats
    """(M, N) statistics, with NaN and a `count` of 0 for a question without a score of the model."""
    design: Design
    """The design of all N questions. One pair may have fewer."""
    answers: tuple[FloatArray, ...] | None = field(default=None, repr=False)
    """M arrays (N, K_m) of single scores, None if all are 0 or 1, because then the means suffice."""
    order: IntArray | None = field(default=None, repr=False)
    """(N,) the rows by the questions' names, which is their order for random draws. None keeps the order."""

    @property
    def mean(self) -> FloatArray:
        """(N, M) mean score of each question for each model."""
        return self.stats.mean.T

    @property
    def rows(self) -> IntArray:
        """(N,) rows of the questions, in the order of `order`."""
        return np.arange(self.stats.mean.shape[1]) if self.order is None else self.order


@dataclass(frozen=True, slots=True, eq=False)
class Leads:
    """On which clusters A leads, and B, of P differences A − B."""

    signs_a: IntArray
    """Questions (with clusters: clusters) on which A is ahead: the counts of the sign test."""
    signs_b: IntArray
    same: BoolArray
    """The two agree on every question."""
    gain: FloatArray
    """Σ of the clusters' weighted sums of d that are above 0, and of those below: the mean where nothing varies."""
    loss: FloatArray


def leads(d: FloatArray, design: Design, m: Moments, shown: BoolArray | None = None) -> Leads:
    """Return `Leads` of P pairs: clusters (questions) on which A or B is ahead (crossed: 0), gains, losses, equality.

    Questions clustered in two crossed ways have no sign test.

    Args:
        d: (P, n) differences, 0 on questions that are not shown.
        design: weights, tasks and clusters of the n questions.
        m: the moments of the P differences.
        shown: (P, n) the questions that each difference has; None: all of them.
    """
    sums = cells(design, shown).weighted_sums(d)
    scaled = sums * m.n[:, None]
    tolerance = ROUNDING * np.maximum(1.0, np.abs(scaled).max(axis=1, initial=0.0))[:, None]
    each = (scaled > tolerance).sum(axis=1), (scaled < -tolerance).sum(axis=1)
    signs_a, signs_b = each if design.crossed is None else np.zeros((2, len(d)), dtype=np.intp)
    same = m.zero_variance & (np.abs(d).max(axis=1, initial=0.0) <= ROUNDING)
    return Leads(signs_a, signs_b, same, np.maximum(sums, 0.0).sum(axis=1), np.maximum(-sums, 0.0).sum(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """All that each run of P differences is by itself, over the questions that both have."""

    n_only_a: IntArray
    """Questions that A alone has."""
    n_only_b: IntArray
    repeats_a: IntArray
    """The most answers to a question."""
    repeats_b: IntArray
    mean_a: FloatArray
    mean_b: FloatArray
    variance_a: FloatArray
    """Variance of A's own mean."""
    variance_b: FloatArray
    correlation: FloatArray
    wins_a: FloatArray
    """Expected number of higher scores, over all pairs of answers."""
    wins_b: FloatArray


def sides_of(
    only: Sequence[IntArray], repeats: Sequence[IntArray], each: Sequence[Moments], correlated: FloatArray
) -> Sides:
    """Return `Sides` of P pairs: unshared questions, most answers, means, variances, correlations. Wins are NaN.

    The wins are not known.
    """
    a, b = each
    sides = (only[0], only[1], repeats[0], repeats[1], a.mean, b.mean, a.variance, b.variance)
    return Sides(*sides, correlated, np.full_like(correlated, np.nan), np.full_like(correlated, np.nan))


def correlation(x: FloatArray, y: FloatArray, shown: BoolArray | None = None) -> FloatArray:
    """Return (P,) correlations over questions between A's and B's mean scores. NaN if one is constant."""
    here = np.ones(x.shape) if shown is None else shown
    n, each = here.sum(axis=1, keepdims=True), []
    with np.errstate(invalid="ignore", divide="ignore"):
        for values in (x * here, y * here):
            e = (values - values.sum(axis=1, keepdims=True) / n) * here
            flat = np.abs(e).max(axis=1, initial=0.0) <= ROUNDING * np.abs(values).max(axis=1, initial=0.0)
            each.append((e, np.where(flat, 0.0, np.einsum("pn,pn->p", e, e))))
        (e_x, xx), (e_y, yy) = each
        out: FloatArray = np.einsum("pn,pn->p", e_x, e_y) / np.sqrt(xx * yy)
        out = np.minimum(np.maximum(out, -1.0), 1.0)
    return np.where((n[:, 0] < 2) | (xx == 0) | (yy == 0), np.nan, out)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Everything about P pairs A − B, over the questions that both have. NaN is "not identified"."""

    a: IntArray
    b: IntArray
    of: Moments
    """The moments of A − B."""
    leads: Leads
    far: ExtendedSample
    """The source of the intervals' far limits, if few questions (clusters) differ."""
    sides: Sides
    flags: dict[str, BoolArray]
    """Diagnostic code → which pairs have it."""

    def __len__(self) -> int:
        return len(self.a)

    def fill(self, rows: IntArray, flags: dict[str, BoolArray], **parts: Any) -> None:
        """Write values into these rows (pairs) of the named columns, and into the flags of the diagnostics."""
        for name, part in parts.items():
            put(getattr(self, name), rows, part)
        for code, has in flags.items():
            self.flags.setdefault(code, np.zeros(len(self), dtype=np.bool_))[rows] = has


def pair_columns(
    table: Table, a: IntArray, b: IntArray, estimator: Estimator = "cr2", *, fixed: bool = False
) -> Columns:
    """Compute A − B for pairs (a[i], b[i]) of a table's models: mean, variance, counts and flags as columns.

    Args:
        table: question statistics of all models.
        a: (P,) columns of the first models.
        b: (P,) columns of the second.
        estimator: of the variance over questions.
        fixed: the questions are no sample: variances from the repeats alone.

    Of complete tables time is that of a few matrix products (M × N)(N × M), and memory O(M N + M² + pairs).
    """
    work = _Work(table, a, b, estimator, fixed=fixed)
    out, left, crossed = work.out, np.arange(len(a)), table.design.crossed is not None
    if crossed and not work.whole:  # the way with fewer clusters may be another for each pair
        for i in left.tolist():
            _fill_single(work, i)
        left = left[:0]
    elif work.whole and not fixed and not crossed and len(a) > 1 and table.stats.mean.shape[1] > 1:
        left = _from_products(work)
    step = max(1, CHUNK // max(1, table.stats.mean.shape[1]))
    for start in range(0, len(left), step):
        _from_questions(work, left[start : start + step])
    out.sides.wins_a[:], out.sides.wins_b[:] = _wins(work)
    defined = ~np.isnan(out.of.mean)
    for name in ("mean_a", "mean_b", "wins_a", "wins_b", "correlation"):
        getattr(out.sides, name)[~defined & (out.of.n > 0)] = np.nan  # a task is not shared, or a ratio is undefined
    flags = {code: has & defined for code, has in out.flags.items()} | variance_flags(out.of, table.design, fixed=fixed)
    flags["few_flips"] = ~np.isnan(out.far.mean)
    flags["unpaired_questions"] = (out.sides.n_only_a > 0) | (out.sides.n_only_b > 0)
    return replace(out, flags=flags)


class PairLimit(DataLimit):
    """The limit of one pair of a table, from the questions that both have, computed when it is asked for."""

    __slots__ = ("_pair",)

    def __init__(self, table: Table, estimator: Estimator, a: int, b: int) -> None:
        super().__init__(())
        self._pair = table, estimator, np.array([a, b])

    def parts(self) -> Sequence[Terms]:
        """Return the inputs of the data-noise limit of A − B, from the questions both have. Computed at each call."""
        table, estimator, models = self._pair
        rows = np.flatnonzero((table.stats.count[models] > 0).all(axis=0))
        design = sub_design(table.design, rows)
        both = [table.stats.runs(models[i : i + 1]).take(np.s_[:, rows]) for i in range(2)]
        c, m, _, limit, _ = contrast_moments(both, (1.0, -1.0), design, estimator)
        return [limit or terms(c, design, m.variance, m.df, estimator)]


class _Work:
    """The columns while they are filled in, and the table by model."""

    def __init__(self, table: Table, a: IntArray, b: IntArray, estimator: Estimator, *, fixed: bool) -> None:
        self.table, self.estimator, self.fixed = table, estimator, fixed
        self.design, self.scored = table.design, table.stats.count > 0
        self.whole = bool(self.scored.all()) and not np.isnan(table.stats.mean).any()
        mean = np.where(self.scored, table.stats.mean, 0.0)  # NaN is left of a ratio that is undefined
        self.stats = replace(table.stats, mean=mean, var=np.nan_to_num(table.stats.var))
        P = len(a)
        self.out = Columns(a, b, blank(Moments, P), blank(Leads, P), blank(ExtendedSample, P), blank(Sides, P), {})


def from_questions(
    runs: Sequence[QuestionStats],
    design: Design,
    estimator: Estimator,
    *,
    fixed: bool = False,
    shown: BoolArray | None = None,
) -> tuple[dict[str, Any], dict[str, BoolArray], Contrast, Terms | None]:
    """Compute A − B in P pairs from question statistics: columns, repeat flags, contrasts, data-noise limits.

    Args:
        runs: statistics of A and of B, (P, n) each.
        design: weights, tasks and clusters of the n questions.
        estimator: of the variance over questions.
        fixed: the questions are no sample.
        shown: (P, n) the questions that both have; None: all of them.
    """
    c, m, repeats, limit, _ = contrast_moments(runs, (1.0, -1.0), design, estimator, fixed=fixed, shown=shown)
    parts: dict[str, Any] = {"of": m}
    if fixed:
        alone = [contrast_moments([x], (1.0,), design, estimator, fixed=True, shown=shown).m for x in runs]
    else:
        masked = [run.mean if shown is None else run.mean * shown for run in runs]
        alone = [mean_variance(values, design, estimator, shown) for values in masked]
        parts["leads"] = leads(c.d, design, m, shown)
        parts["far"] = extended_samples(c.d, design, m, estimator, shown)
    top = [(run.count if shown is None else run.count * shown).max(axis=1, initial=0) for run in runs]
    none = np.zeros(len(m.n), dtype=np.intp)
    parts["sides"] = sides_of((none, none), top, alone, correlation(runs[0].mean, runs[1].mean, shown))
    return parts, repeats, c, limit


def _from_questions(work: _Work, rows: IntArray) -> None:
    """Fill in the columns of these pairs, each from the questions that both of its models have."""
    models = (work.out.a[rows], work.out.b[rows])
    shown = None if work.whole else work.scored[models[0]] & work.scored[models[1]]
    runs = [work.stats.runs(each) for each in models]
    parts, repeats, _, _ = from_questions(runs, work.design, work.estimator, fixed=work.fixed, shown=shown)
    only = [work.scored[each].sum(axis=1) - parts["of"].n.astype(np.intp) for each in models]
    parts["sides"] = replace(parts["sides"], n_only_a=only[0], n_only_b=only[1])
    work.out.fill(rows, repeats, **parts)


def _fill_single(work: _Work, i: int) -> None:
    """Fill in the columns of pair number i, from a smaller table of the questions that both models have."""
    models = np.array([work.out.a[i], work.out.b[i]])
    rows = np.flatnonzero(work.scored[models].all(axis=0))
    part = Table(work.stats.runs(models).take(np.s_[:, rows]), sub_design(work.design, rows))
    own = _Work(part, np.array([0]), np.array([1]), work.estimator, fixed=work.fixed)
    _from_questions(own, np.arange(1))
    only = [work.scored[m].sum(keepdims=True) - len(rows) for m in models]
    sides = replace(own.out.sides, n_only_a=only[0], n_only_b=only[1])
    parts = {"of": own.out.of, "leads": own.out.leads, "far": own.out.far, "sides": sides}
    work.out.fill(np.array([i]), own.out.flags, **parts)


def _from_products(work: _Work) -> IntArray:
    """Fill in pairs of models with all questions, by matrix products. Return the pairs' row numbers left to do.

    What adds up over the two models of a pair comes from each model alone, and the rest from the products of their
    cluster scores, of their residuals and of powers of them.
    """
    design, x, out = work.design, work.stats.mean, work.out
    by_cell = cells(design)
    if not by_cell.identified.all() or np.isnan(by_cell.weights).any():
        return np.arange(len(out))
    m = mean_variance(x, design, work.estimator)
    grams = [scores @ scores.T for scores in _scores(x, design, by_cell, work.estimator)]
    done = ~_maybe_few(Extension(by_cell, work.estimator), x, out.a, out.b)
    for gram in grams:
        own = gram.diagonal()
        square = _squared_distances(gram, out.a, out.b)
        done &= ~(square - CANCELLED * (own[out.a] + own[out.b]) <= NOTHING)  # NaN: not identified for any pair
    rows = np.flatnonzero(done)
    a, b = out.a[rows], out.b[rows]
    V, naive = _squared_distances(grams[0], a, b), _squared_distances(grams[-1], a, b)
    c, codes = contrast([work.stats], (1.0,), design.strata), repeat_codes([work.stats], design.strata)
    v, w = (part @ design.weights**2 for part in (c.v, c.w))
    repeats = any_repeat_codes([{code: has[models] for code, has in codes.items()} for models in (a, b)])
    identified = noise_can_be_split(repeats)
    weights, P = task_weights(design)[0][0], len(rows)
    task_sums = sum_by(design.strata, x, len(weights))
    pairs = replace(
        rows_of(m, np.zeros(P, dtype=np.intp)),
        mean=(task_sums[a] - task_sums[b]) @ weights,
        variance=V,
        naive=naive,
        var_data=np.where(identified, without_rounding(V, w[a] + w[b]), np.nan),
        var_prediction=np.where(identified, v[a] + v[b], np.nan),
        var_total=V + ((v - w)[a] + (v - w)[b]),
        zero_variance=np.zeros(P, dtype=np.bool_),
        data_upper=_data_limits(work, c, V, m.df, np.flatnonzero(identified), (a, b)),
    )
    centred, top, none = x - x.mean(axis=1, keepdims=True), work.stats.count.max(axis=1), np.zeros(P, dtype=np.intp)
    gram, varies = centred @ centred.T, np.ptp(x, axis=1) > ROUNDING * np.abs(x).max(axis=1)
    own = np.where(varies, gram.diagonal(), np.nan)
    correlated = gram[a, b] / np.sqrt(own[a] * own[b])
    sides = sides_of((none, none), (top[a], top[b]), (rows_of(m, a), rows_of(m, b)), correlated)
    out.fill(rows, repeats, of=pairs, sides=sides)
    above = answers_above([column[:, None] for column in by_cell.weighted_sums(x) * x.shape[1]])
    out.leads.signs_a[rows], out.leads.signs_b[rows] = above[a, b], above[b, a]
    return np.flatnonzero(~done)


def _data_limits(
    work: _Work, c: Contrast, V: FloatArray, df: FloatArray, known: IntArray, models: tuple[IntArray, IntArray]
) -> FloatArray:
    """Return (P,) upper limits of the data variance for pairs that answered every question. NaN if unknown."""
    out, (a, b) = np.full(len(V), np.nan), models
    step = max(1, CHUNK // max(1, c.d.shape[1]))
    for start in range(0, len(known), step):
        rows = known[start : start + step]
        of_pairs = Contrast(c.d[a[rows]] - c.d[b[rows]], *(x[a[rows]] + x[b[rows]] for x in (c.v, c.w)))
        out[rows] = terms(of_pairs, work.design, V[rows], np.broadcast_to(df[:1], len(rows)), work.estimator).upper()
    return out


def _scores(x: FloatArray, design: Design, by_cell: Cells, estimator: Estimator) -> list[FloatArray]:
    """Return [(M, G) weighted cluster sums of the models' residuals], and (M, n) of questions if these differ."""
    sizes = np.maximum(np.bincount(design.strata), 1).astype(np.float64)
    means = (sum_by(design.strata, x, len(sizes)) / sizes)[:, design.strata]
    residual = means - (x @ design.weights)[:, None] if design.between_tasks else x - means
    S = by_cell.scores(by_cell.sums(residual), estimator)
    if not design.clustered and np.array_equal(by_cell.factors(estimator), by_cell.factors("cr2")):
        return [S]
    with np.errstate(invalid="ignore", divide="ignore"):
        each = (x - means) * (design.weights * leverage_factor(1 / sizes, "cr2")[design.strata])
    return [S, each]


def _squared_distances(gram: FloatArray, a: IntArray, b: IntArray) -> FloatArray:
    """Return (P,) squared distances between rows a[i] and b[i] of a matrix, from its Gram matrix."""
    own = gram.diagonal()
    return np.asarray(own[a] + own[b] - 2 * gram[a, b])


def _maybe_few(extension: Extension, x: FloatArray, a: IntArray, b: IntArray) -> BoolArray:
    """Return (P,) True for pairs in which possibly too few clusters differ. May be True too often."""
    level = extension.level_sums(extension.cells.sums(x))
    z = level - level.mean(axis=0)  # the difference stays, the powers get small
    z2 = z * z
    cubes, squared = z @ (z2 * z).T, z2 @ z2.T
    gram = z @ z.T
    own2, own4 = (part.diagonal()[a] + part.diagonal()[b] for part in (gram, squared))
    squares = own2 - 2 * gram[a, b]
    fourth = own4 - 4 * (cubes[a, b] + cubes[b, a]) + 6 * squared[a, b]
    doubtful = (squares <= _CANCELLED_POWERS * own2) | (fourth <= _CANCELLED_POWERS * own4)
    few = squares * squares < NEAR * np.minimum(MOST, SHARE * extension.cells.n_clusters) * fourth
    return np.asarray(few | doubtful)


def _wins(work: _Work) -> tuple[FloatArray, FloatArray]:
    """Return (P,) A's and B's expected wins: per question, the share of answer pairs with the higher score, summed."""
    table, x, a, b = work.table, work.stats.mean, work.out.a, work.out.b
    if table.answers is not None:
        above = answers_above(table.answers)
    else:
        shown = work.scored.astype(np.float64)
        above = np.maximum(x @ shown.T - x @ x.T, 0.0)
        above = np.rint(above) if ((x == 0) | (x == 1)).all() else above  # means of graded answers may be 0 or 1, too
    return above[a, b], above[b, a]


def difference_columns(m: Moments, of: Leads, sides: Sides, clustered: bool, *, lower: bool) -> dict[str, AnyArray]:
    """Return {name: column} of P differences except interval, p, verdict. `lower`: the lower score wins."""
    shown = columns_of(replace(sides, wins_a=sides.wins_b, wins_b=sides.wins_a) if lower else sides)
    variance_a, variance_b = shown.pop("variance_a"), shown.pop("variance_b")
    return {
        "n_questions": m.n.astype(np.intp),
        "n_clusters": m.n_clusters.astype(np.intp),
        **shown,
        "diff": m.mean,
        "df": m.df,
        "ties": np.maximum(m.n - sides.wins_a - sides.wins_b, 0.0),
        "p_sign": sign_p(of.signs_a, of.signs_b),
        "se_unpaired": np.sqrt(variance_a + variance_b),
        **noise_columns(m, clustered),
    }


def extended_samples(
    d: FloatArray,
    design: Design,
    m: Moments,
    estimator: Estimator,
    shown: BoolArray | None = None,
    whole: Moments | None = None,
) -> ExtendedSample:
    """Return samples extended by two made-up clusters, for pairs in which few clusters differ. Else NaN.

    The extended sample knows the clusters of one way and nothing of the variance between runs: of crossed clusters, and
    where `whole` has these runs' moments, it has that variance on top, and no less than the difference itself.
    """
    last = m if whole is None else whole
    varies = ~np.isnan(last.variance) & ~last.zero_variance
    far = blank(ExtendedSample, len(d))
    if varies.any():
        some = cells(design, shown).take(varies)
        put(far, varies, Extension(some, estimator)(some.sums(d[varies])))
    if whole is None and design.crossed is None:
        return far
    variance = np.maximum(far.variance + (last.variance - m.variance), last.variance)
    return ExtendedSample(far.mean, np.where(np.isnan(far.mean), np.nan, variance), np.minimum(far.df, last.df))


def paired(m: Moments, of: Leads, far: ExtendedSample | None, width: FloatArray | float | None) -> Differences:
    """Bundle P paired differences with what a decision needs: variance, sign test, small-sample limits.

    Where nothing varies the sign test decides, and the interval is Bonett and Price's for as many clusters as there
    are, or as the weights of a group's tasks leave, one more than the degrees of freedom.

    Args:
        m: their moments.
        of: who leads where.
        far: what their far limits come from.
        width: of the metric's range; None or NaN where it is not known.
    """
    widths: FloatArray = np.full(len(m.n), np.nan if width is None else width)
    n = np.fmin(m.n_clusters, m.df + 1)
    small = None if np.isnan(widths).all() else partial(bonett_price, of.gain, of.loss, n, widths)
    unbounded = np.where(np.isnan(widths), np.inf, widths)
    p_zero, side = sign_p(of.signs_a, of.signs_b), np.sign(of.signs_a - of.signs_b).astype(np.float64)
    return Differences(m.mean, m.variance, m.df, m.zero_variance, p_zero, small, far, width=unbounded, side=side)


def noise_columns(m: Moments, clustered: bool) -> dict[str, FloatArray]:
    """Return {name: (P,) column}: standard errors (0 for a negative variance), variance parts, design effect."""
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = m.variance / m.naive if clustered else np.where(np.isnan(m.variance + m.naive), np.nan, 1.0)
        highest = np.where(np.isnan(m.var_data), np.nan, m.data_upper)
        roots = {"se": m.variance, "se_total": m.var_total, "se_data": m.var_data, "se_prediction": m.var_prediction}
        return {name: np.sqrt(np.maximum(x, 0.0)) for name, x in (roots | {"se_data_upper": highest}).items()} | {
            "var_data": m.var_data,
            "var_prediction": m.var_prediction,
            "design_effect": np.where(np.isfinite(effect), effect, np.nan),
        }


def variance_flags(m: Moments, design: Design, *, fixed: bool = False) -> dict[str, BoolArray]:
    """Return {diagnostic code: (P,) flags} for variances with too few questions or clusters, or none."""
    unknown, short = np.isnan(m.variance), np.isnan(m.mean) | (m.n < 2)
    # of two crossed ways the one with fewer clusters decides, whatever both together have
    df = m.df if fixed or design.crossed is None else np.minimum(m.df, m.n_clusters - 1)
    flags = noise_flags(df, zero=m.zero_variance, var_data=m.var_data)
    flags["too_few_questions"] = np.isnan(m.mean) if fixed else unknown & short
    flags["too_few_clusters"] = unknown & ~short & (not fixed)
    flags["singleton_clusters"] = ~unknown & design.clustered & (m.n_clusters == m.n) & (not fixed)
    return flags
