"""All pairs of many models on their questions: moments and further numbers of the paired differences, and their tests.

P differences come from the questions, in chunks, each pair on the questions that both models have, by the functions of
`compare`. Where all models have all questions, matrix products give those pairs whose variance they do not lose to
rounding and that differ on many questions (`_from_products`); the others go through `_from_questions` all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special

from ...arrays import BoolArray, FloatArray, IntArray, blank, put, rows_of
from ...settings import Estimator, Settings
from ...stats import decision
from ...stats.cluster_variance import Cells, cells, leverage_factor, task_weights
from ...stats.contrast import (
    Contrast,
    Design,
    QuestionStats,
    any_repeat_codes,
    contrast,
    noise_can_be_split,
    question_stats,
    repeat_codes,
    sub_design,
    sum_by,
)
from ...stats.data_limit import DataLimit, Terms, terms
from ...stats.intervals import MOST, SHARE, ExtendedSample, Extension
from ...stats.moments import Moments, contrast_moments, mean_variance, without_rounding
from ...stats.pairs import Leads, Sides, from_questions, sides_of, variance_flags
from ...stats.ranks import answers_above
from ...stats.resampling import Wild, by_wild, wild_test
from ...stats.tolerances import ROUNDING

CHUNK = 400_000
"""Entries of a pairs × questions block that is worked on at once (3 MB, so that it stays in a cache)."""
CANCELLED = 1e-4
"""A variance below this share of the models' variances is computed from the questions: products lose its digits."""
NOTHING = 1e-20
"""A variance below this number is computed from the questions, too."""
NEAR = 1.001
"""Flips that are few within this factor, or whose sums of powers cancel, are counted on the questions."""
_CANCELLED_POWERS = 1e-6
_WILD_ENTRIES = 4_000_000
"""Resamples × pairs that are held at once (some 200 MB)."""


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
    none = np.flatnonzero(~defined)
    put(out.leads, none, blank(Leads, len(none)))
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


def _from_questions(work: _Work, rows: IntArray) -> None:
    """Fill in the columns of pairs `rows` at once, each from the questions that both of its models have."""
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


def shared_noise_p(values: FloatArray, design: Design, shown: BoolArray) -> FloatArray:
    """Return (P,) p of the F test that whole repeats shift, on P subsets of questions. 1 without residual, NaN for few.

    What `run_component` has as `p_value`, from sums: with e the run means less their mean, the variance that is left
    within a question when e is taken out adds up to Σ s²_i − n Σ e²/(K − 1). 1 where nothing is left, and NaN where too
    few questions have all repeats for a test.

    Args:
        values: (n, K), NaN where a run has no score for a question.
        design: weights and tasks of the n questions.
        shown: (P, n) the questions of each set.
    """
    K, P = values.shape[1], len(shown)
    complete = ~np.isnan(values).any(axis=1)
    weights, counts = task_weights(design, shown)
    shares = np.broadcast_to(weights * counts, (P, weights.shape[1]))
    means, residual, df, defined = np.zeros((P, K)), np.zeros(P), np.zeros(P), np.full(P, K > 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        for t, share in enumerate(shares.T):
            rows = complete & (design.strata == t)
            here, whole = shown[:, rows].astype(np.float64), values[rows]
            size = here.sum(axis=1)
            task_means = here @ whole / size[:, None]
            effects = task_means - task_means.mean(axis=1, keepdims=True)
            within = without_rounding(here @ question_stats(whole).var, size * (effects**2).sum(axis=1) / (K - 1))
            used = share > 0
            defined &= ~used | (size > 1)
            means += np.where(used[:, None], share[:, None] * task_means, 0.0)
            residual += np.where(used, share**2 * within / (size * (size - 1)), 0.0)
            df += np.where(used, (size - 1) * (K - 1), 0.0)
        between = means.var(axis=1, ddof=1)
        p = special.fdtrc(K - 1, df, between / residual)
    return np.where(defined, np.where(residual > ROUNDING**2, p, 1.0), np.nan)


def wild_pairs(table: Table, c: Columns, settings: Settings) -> Iterator[tuple[IntArray, Wild]]:
    """Yield (rows, wild bootstrap) for batches of pairs that share their questions. Skip pairs without variance.

    Every pair takes the weights that `compare` takes for it, for its clusters by the names of their questions: the same
    stream of random numbers, from its start.
    """
    resamples, scored = settings.resamples, ~np.isnan(table.mean)
    patterns: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(~np.isnan(c.of.variance) & ~c.of.zero_variance).tolist():
        both = scored[:, c.a[i]] & scored[:, c.b[i]]
        patterns.setdefault(np.packbits(both).tobytes(), []).append(i)
    step = max(1, _WILD_ENTRIES // resamples) if not table.design.strata.any() else 1
    for same in patterns.values():
        rows = table.rows
        shown = rows[scored[rows, c.a[same[0]]] & scored[rows, c.b[same[0]]]]
        part = sub_design(table.design, shown)
        for start in range(0, len(same), step):
            at = np.array(same[start : start + step])
            d = table.mean[np.ix_(shown, c.a[at])] - table.mean[np.ix_(shown, c.b[at])]
            yield at, wild_test(d.T, part, resamples, np.random.default_rng(settings.seed))


def pairs_by_t(of: decision.Differences, c: Columns, table: Table, settings: Settings) -> decision.Test:
    """Return an empty test for all pairs at once, which stands for the default, Student's t."""
    return decision.Test()


def pairs_by_sign(of: decision.Differences, c: Columns, table: Table, settings: Settings) -> decision.Test:
    """Return the sign test of every pair of models at once, from the questions that each side leads on."""
    return decision.by_sign(of)


def pairs_by_wild(of: decision.Differences, c: Columns, table: Table, settings: Settings) -> decision.Test:
    """Return the wild cluster bootstrap test of every pair of models, from shared random draws."""
    return by_wild(wild_pairs(table, c, settings), len(c), settings)
