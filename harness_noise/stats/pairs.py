"""All pairs of many models at once: the moments of every difference, and what a result says beside them.

P differences come from the questions, in chunks, each pair on the questions that both models have: the functions are
those of a single comparison (`contrast`, `moments`, `flips`), and so are the numbers. Where all models have all
questions, matrix products give those pairs whose variance they do not lose to rounding and that differ on many
questions (`_from_products`); the others go through `_from_questions` all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .cluster_variance import Cells, cells, leverage_factor, task_weights
from .contrast import Design, QuestionStats, cluster_codes, contrast, repeat_codes, sum_by
from .decision import noise_flags
from .flips import MOST, SHARE, ExtendedSample, Extension
from .moments import MomentColumns, fixed_columns, mean_variance, moment_columns, without_rounding
from .ranks import answers_above, count_above, dense_ranks
from .tolerances import ROUNDING
from .wild import Wild, wild_many, wild_test

CHUNK = 400_000
"""Entries of a pairs × questions block that is worked on at once (3 MB, so that it stays in a cache)."""
CANCELLED = 1e-4
"""A variance below this share of the models' variances is computed from the questions: products lose its digits."""
NOTHING = 1e-20
"""As is one below this number."""
NEAR = 1.001
"""Flips that are few within this factor, or whose sums of powers cancel, are counted on the questions."""
_CANCELLED_POWERS = 1e-6
_WILD_ENTRIES = 4_000_000
"""Resamples × pairs that are held at once (some 200 MB)."""


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The tasks that a group of questions is made of."""

    codes: IntArray
    """(N,) task codes 0 … T−1."""
    shares: FloatArray | None = None
    """(T,) weights of the tasks in the mean, summing to 1; None: by size."""
    between: bool = False
    """The tasks themselves are the sample, each one cluster."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """M models on N questions, reduced to question statistics."""

    mean: FloatArray
    """(N, M) mean over the scored repeats; NaN where the model has no score."""
    var: FloatArray
    """(N, M) variance between repeats, ddof = 1; NaN where fewer than two are scored."""
    count: IntArray
    """(N, M) scored repeats."""
    clusters: IntArray | None = None
    """(N,) cluster codes 0 … G−1; None: independent questions."""
    identical: BoolArray | None = None
    """(M,) models whose answers are known to have been identical."""
    answers_differ: BoolArray | None = None
    """(M,) models of which some answers to one question are known to differ, whatever their scores say."""
    strata: Strata | None = None
    """The tasks of a group."""
    answers: tuple[FloatArray, ...] | None = field(default=None, repr=False)
    """M arrays (N, K_m) of single scores; None where `mean` holds them all or they are only 0 and 1."""
    binary: bool = False
    """All single scores are 0 or 1."""

    def design(self) -> Design:
        """The design of all N questions; those of one pair may be fewer."""
        N = len(self.mean)
        clusters = np.arange(N) if self.clusters is None else self.clusters
        of = self.strata or Strata(np.zeros(N, dtype=np.intp))
        if of.between:
            clusters = np.unique(of.codes, return_inverse=True)[1]
        sizes = np.bincount(of.codes, minlength=0 if of.shares is None else len(of.shares))
        shares = sizes / N if of.shares is None else of.shares
        return Design(
            (shares / np.maximum(sizes, 1))[of.codes],
            of.codes,
            clusters,
            int(clusters.max(initial=-1)) + 1,
            clustered=of.between or self.clusters is not None,
            between_tasks=of.between,
            shares=of.shares,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Everything about P pairs A − B, over the questions that both have; NaN is "not identified"."""

    a: IntArray
    b: IntArray
    n: IntArray
    n_clusters: IntArray
    only_a: IntArray
    only_b: IntArray
    repeats_a: IntArray
    repeats_b: IntArray
    mean_a: FloatArray
    mean_b: FloatArray
    diff: FloatArray
    variance: FloatArray
    df: FloatArray
    naive: FloatArray
    variance_a: FloatArray
    """Variance of A's own mean over the shared questions."""
    variance_b: FloatArray
    var_data: FloatArray
    var_prediction: FloatArray
    var_total: FloatArray
    correlation: FloatArray
    wins_a: FloatArray
    wins_b: FloatArray
    signs_a: IntArray
    """Questions (with clusters: clusters) on which A is ahead: the counts of the sign test."""
    signs_b: IntArray
    zero: BoolArray
    same: BoolArray
    """The two agree on every question."""
    gain: FloatArray
    """Σ of the clusters' weighted sums of d that are above 0, and of those below: the mean where nothing varies."""
    loss: FloatArray
    flags: dict[str, BoolArray]
    """Diagnostic code → which pairs have it."""
    far: ExtendedSample
    """What the far limits of the intervals come from, where few questions (clusters) differ."""

    def __len__(self) -> int:
        return len(self.a)


_CODES = (
    "single_repeat",
    "partly_single_repeat",
    "identical_repeats",
    "identical_scores_only",
    "missing_repeats",
    "too_few_questions",
    "too_few_clusters",
    "zero_variance",
    "few_flips",
    "negative_data_variance",
    "few_clusters",
    "singleton_clusters",
    "unpaired_questions",
)


def every_pair(n_models: int) -> tuple[IntArray, IntArray]:
    """Indices (a, b) of all pairs a < b, in the order (0, 1), (0, 2), …, (1, 2), …."""
    a, b = np.triu_indices(n_models, 1)
    return a.astype(np.intp), b.astype(np.intp)


def pair_columns(
    table: Table, a: IntArray, b: IntArray, estimator: Estimator = "cr2", *, counts: bool = True, fixed: bool = False
) -> Columns:
    """The columns of the pairs (a[i], b[i]) of a table's models.

    Args:
        table: question statistics of all models.
        a: (P,) columns of the first models.
        b: (P,) columns of the second.
        estimator: of the variance over questions.
        counts: wins and sign tests too, most of the time where scores have many levels; else 0.
        fixed: the questions are no sample: variances from the repeats alone.

    Of complete tables time is that of a few matrix products (M × N)(N × M), and memory O(M N + M² + pairs).
    """
    work = _Work(table, a, b, estimator, fixed=fixed)
    if counts:
        work.put(np.arange(len(a)), dict(zip(("wins_a", "wins_b"), _wins(work), strict=True)))
    left = np.arange(len(a))
    if work.whole and not fixed and len(a) > 1 and len(table.mean) > 1:
        left = _from_products(work, counts=counts)
    for rows in chunks(left, len(table.mean)):
        _from_questions(work, rows)
    return Columns(a, b, **work.columns, flags=work.flags, far=work.far)


def chunks(rows: IntArray, width: int) -> list[IntArray]:
    """The rows in parts whose blocks of that width stay in a cache."""
    step = max(1, CHUNK // max(1, width))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


class _Work:
    """The columns while they are filled in, and the table by model."""

    def __init__(self, table: Table, a: IntArray, b: IntArray, estimator: Estimator, *, fixed: bool) -> None:
        self.table, self.a, self.b, self.estimator, self.fixed = table, a, b, estimator, fixed
        self.plan, self.scored = table.design(), np.ascontiguousarray(~np.isnan(table.mean).T)
        self.whole = bool(self.scored.all())
        self.stats = QuestionStats(
            np.nan_to_num(np.ascontiguousarray(table.mean.T)),
            np.nan_to_num(np.ascontiguousarray(table.var.T)),
            np.ascontiguousarray(table.count.T),
        )
        P = len(a)
        kinds = {name: kind for name, kind in Columns.__annotations__.items() if kind.endswith("Array")}
        del kinds["a"], kinds["b"]
        start = {"IntArray": np.zeros(P, dtype=np.intp), "BoolArray": np.zeros(P, dtype=np.bool_)}
        self.columns: dict[str, Any] = {
            name: start[kind].copy() if kind in start else np.full(P, np.nan) for name, kind in kinds.items()
        }
        self.columns |= {"wins_a": np.zeros(P), "wins_b": np.zeros(P)}
        self.flags = {code: np.zeros(P, dtype=np.bool_) for code in _CODES}
        self.far = ExtendedSample.none(P)

    def shown(self, rows: IntArray) -> BoolArray | None:
        """(P, N) the questions that these pairs share; None: all."""
        return None if self.whole else self.scored[self.a[rows]] & self.scored[self.b[rows]]

    def put(self, rows: IntArray, columns: dict[str, Any]) -> None:
        for name, column in columns.items():
            self.columns[name][rows] = column

    def flag(self, rows: IntArray, flags: dict[str, BoolArray]) -> None:
        for code, has in flags.items():
            self.flags[code][rows] = has

    def judged(self, rows: IntArray, repeats: dict[str, BoolArray], m: MomentColumns) -> None:
        """Name what the repeats and the variances of these pairs give reason for."""
        unknown, n = np.isnan(m.variance), m.n
        repeats = {code: has & ~np.isnan(m.mean) for code, has in repeats.items()}
        short = np.isnan(m.mean) | (n < 2)
        flags = repeats | noise_flags(
            m.df, zero=m.zero_variance, var_data=m.var_data, few_flips=~np.isnan(self.far.mean[rows])
        )
        only_a, only_b = self.columns["only_a"][rows], self.columns["only_b"][rows]
        flags["unpaired_questions"] = (only_a > 0) | (only_b > 0)
        flags["too_few_questions"] = (n == 0) if self.fixed else unknown & short
        if not self.fixed:
            flags["too_few_clusters"] = unknown & ~short
            flags["singleton_clusters"] = ~unknown & self.plan.clustered & (m.n_clusters == n)
        self.flag(rows, flags)

    def split(self, rows: IntArray, sides: dict[str, BoolArray]) -> tuple[BoolArray, dict[str, BoolArray]]:
        """(P,) whether data and prediction noise can be told apart, and the codes with what is known of the answers."""
        same = sides["identical_repeats"]
        t, both = self.table, (self.a[rows], self.b[rows])
        told = np.zeros(len(rows), dtype=np.bool_)
        if t.identical is not None:
            told = t.identical[both[0]] | t.identical[both[1]]
        alone = same & ~told & ~sides["_constant"]
        codes = {code: has for code, has in sides.items() if code != "_constant"} | {
            "identical_repeats": (same | told) & ~alone,
            "identical_scores_only": alone,
        }
        return ~(sides["single_repeat"] | same | told), codes


def _take(stats: QuestionStats, models: IntArray) -> QuestionStats:
    return QuestionStats(stats.mean[models], stats.var[models], stats.count[models])


def _differ(work: _Work) -> BoolArray:
    """(M,) models of which some answers to one question are known to differ."""
    known = work.table.answers_differ
    return np.zeros(len(work.stats.mean), dtype=np.bool_) if known is None else known


def _sides_codes(work: _Work, rows: IntArray, shown: BoolArray | None) -> dict[str, BoolArray]:
    """`repeat_codes` of these pairs; `_constant`: a model whose answers may be the same ones never varies."""
    out: dict[str, BoolArray] = {}
    constant = np.zeros(len(rows), dtype=np.bool_)
    for models in (work.a[rows], work.b[rows]):
        codes = repeat_codes([_take(work.stats, models)], work.plan.strata, shown)
        constant |= codes["identical_repeats"] & ~_differ(work)[models]
        out = {code: has | out[code] if out else has for code, has in codes.items()}
    return out | {"_constant": constant}


def _from_questions(work: _Work, rows: IntArray) -> None:
    """Fill in these pairs from the questions that each of them shares."""
    plan, shown = work.plan, work.shown(rows)
    sides = [_take(work.stats, models[rows]) for models in (work.a, work.b)]
    identified, repeats = work.split(rows, _sides_codes(work, rows, shown))
    c = contrast(sides, (1.0, -1.0), plan.strata, shown)
    if work.fixed:
        m = fixed_columns(sides, (1.0, -1.0), c, plan, identified=identified, shown=shown)
        each = [contrast([x], (1.0,), plan.strata, shown) for x in sides]
        alone = [
            fixed_columns([x], (1.0,), of_one, plan, identified=identified, shown=shown)
            for x, of_one in zip(sides, each, strict=True)
        ]
    else:
        m = moment_columns(c, plan, work.estimator, identified=identified, shown=shown)
        alone = [mean_variance(x.mean if shown is None else x.mean * shown, plan, work.estimator, shown) for x in sides]
    counts = [x.count if shown is None else x.count * shown for x in sides]
    scored = [work.scored[models[rows]].sum(axis=1) for models in (work.a, work.b)]
    work.put(
        rows,
        _numbers(m, alone)
        | {
            "only_a": scored[0] - m.n.astype(np.intp),
            "only_b": scored[1] - m.n.astype(np.intp),
            "repeats_a": counts[0].max(axis=1),
            "repeats_b": counts[1].max(axis=1),
            "correlation": _correlation(sides[0].mean, sides[1].mean, shown),
        },
    )
    if not work.fixed:
        _signs_and_flips(work, rows, c.d, m, shown)
    work.judged(rows, repeats, m)


def _numbers(m: MomentColumns, alone: Sequence[MomentColumns]) -> dict[str, Any]:
    """The columns that are moments of A − B, of A and of B."""
    return {
        "n": m.n.astype(np.intp),
        "n_clusters": m.n_clusters.astype(np.intp),
        "diff": m.mean,
        "variance": m.variance,
        "df": m.df,
        "naive": m.naive,
        "var_data": m.var_data,
        "var_prediction": m.var_prediction,
        "var_total": m.var_total,
        "zero": m.zero_variance,
        "mean_a": alone[0].mean,
        "mean_b": alone[1].mean,
        "variance_a": alone[0].variance,
        "variance_b": alone[1].variance,
    }


def _signs_and_flips(work: _Work, rows: IntArray, d: FloatArray, m: MomentColumns, shown: BoolArray | None) -> None:
    """Which clusters A and B lead in, whether nothing differs, and the extended samples."""
    found = cells(work.plan, shown)
    sums = _weighted_sums(found, d)
    scaled = sums * m.n[:, None]
    tolerance = ROUNDING * np.maximum(1.0, np.abs(scaled).max(axis=1, initial=0.0))[:, None]
    work.put(
        rows,
        {
            "signs_a": (scaled > tolerance).sum(axis=1),
            "signs_b": (scaled < -tolerance).sum(axis=1),
            "gain": np.maximum(sums, 0.0).sum(axis=1),
            "loss": np.maximum(-sums, 0.0).sum(axis=1),
            "same": m.zero_variance & (np.abs(d).max(axis=1, initial=0.0) <= ROUNDING),
        },
    )
    varies = ~np.isnan(m.variance) & ~m.zero_variance
    if varies.any():
        far = Extension(found.take(varies), work.estimator)(found.take(varies).sums(d[varies]))
        work.far.put(rows[varies], far)


def _correlation(x: FloatArray, y: FloatArray, shown: BoolArray | None) -> FloatArray:
    """(P,) correlation of A's and B's question means; NaN where one of them is constant."""
    n = np.full((len(x), 1), float(x.shape[1])) if shown is None else shown.sum(axis=1, keepdims=True)
    each = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for values in (x, y):
            values = values if shown is None else values * shown
            e = values - values.sum(axis=1, keepdims=True) / n
            e = e if shown is None else e * shown
            flat = np.abs(e).max(axis=1, initial=0.0) <= ROUNDING * np.abs(values).max(axis=1, initial=0.0)
            each.append((e, np.where(flat, 0.0, np.einsum("pn,pn->p", e, e))))
        (e_x, xx), (e_y, yy) = each
        out: FloatArray = np.clip(np.einsum("pn,pn->p", e_x, e_y) / np.sqrt(xx * yy), -1.0, 1.0)
    return np.where((n[:, 0] < 2) | (xx == 0) | (yy == 0), np.nan, out)


def _from_products(work: _Work, *, counts: bool) -> IntArray:
    """Fill in the pairs of complete models that matrix products give to all digits; returns the others.

    What adds up over the two models of a pair comes from each model alone, and the rest from the products of their
    cluster scores, of their residuals and of powers of them.
    """
    plan, x = work.plan, work.stats.mean
    design = cells(plan)
    if not design.identified.all() or np.isnan(design.weights).any() or (plan.weights == 0).any():
        return np.arange(len(work.a))
    m = mean_variance(x, plan, work.estimator)
    S, each = _scores(x, plan, design, work.estimator)
    done = ~_maybe_few(Extension(design, work.estimator), x, work.a, work.b)
    grams = [scores @ scores.T for scores in ((S,) if each is S else (S, each))]
    for gram in grams:
        own = gram.diagonal()
        square = _of_pairs(gram, work.a, work.b)
        done &= ~(square - CANCELLED * (own[work.a] + own[work.b]) <= NOTHING)  # NaN: not identified for any pair
    rows = np.flatnonzero(done)
    a, b = work.a[rows], work.b[rows]
    V, naive = _of_pairs(grams[0], a, b), _of_pairs(grams[-1], a, b)
    c, codes = contrast([work.stats], (1.0,), plan.strata), repeat_codes([work.stats], plan.strata)
    v, w = (part @ plan.weights**2 for part in (c.v, c.w))
    constant = codes["identical_repeats"] & ~_differ(work)
    of_pairs = {code: has[a] | has[b] for code, has in (codes | {"_constant": constant}).items()}
    identified, repeats = work.split(rows, of_pairs)
    weights, P = task_weights(plan)[0][0], len(rows)
    task_sums = sum_by(plan.strata, x, len(weights))
    pairs = MomentColumns(
        n=np.full(P, float(x.shape[1])),
        n_clusters=np.full(P, float(plan.n_clusters)),
        mean=(task_sums[a] - task_sums[b]) @ weights,
        variance=V,
        df=np.full(P, m.df[0]),
        naive=naive,
        var_data=np.where(identified, without_rounding(V, w[a] + w[b]), np.nan),
        var_prediction=np.where(identified, v[a] + v[b], np.nan),
        var_total=V + ((v - w)[a] + (v - w)[b]),
        zero_variance=np.zeros(P, dtype=np.bool_),
    )
    centred, top = x - x.mean(axis=1, keepdims=True), work.stats.count.max(axis=1)
    gram, varies = centred @ centred.T, np.ptp(x, axis=1) > ROUNDING * np.abs(x).max(axis=1)
    own = np.where(varies, gram.diagonal(), np.nan)
    work.put(
        rows,
        _numbers(pairs, [m.take(a), m.take(b)])
        | {"repeats_a": top[a], "repeats_b": top[b], "correlation": gram[a, b] / np.sqrt(own[a] * own[b])},
    )
    if counts:
        sums = (_weighted_sums(design, x) * x.shape[1]).T
        above = count_above(*dense_ranks(sums, np.ones_like(sums, dtype=np.bool_))).astype(np.intp)
        work.put(rows, {"signs_a": above[a, b], "signs_b": above[b, a]})
    work.judged(rows, repeats, pairs)
    return np.flatnonzero(~done)


def _scores(x: FloatArray, plan: Design, design: Cells, estimator: Estimator) -> tuple[FloatArray, FloatArray]:
    """(M, G) cluster scores of the models' means, and (M, n) scores of the questions as if each were a cluster."""
    sizes = np.maximum(np.bincount(plan.strata), 1).astype(np.float64)
    means = (sum_by(plan.strata, x, len(sizes)) / sizes)[:, plan.strata]
    residual = means - (x @ plan.weights)[:, None] if plan.between_tasks else x - means
    S = design.scores(design.sums(residual), estimator)
    if not plan.clustered and np.array_equal(design.factors(estimator), design.factors("cr2")):
        return S, S
    with np.errstate(invalid="ignore", divide="ignore"):
        each = (x - means) * (plan.weights * leverage_factor(1 / sizes, "cr2")[plan.strata])
    return S, each


def _weighted_sums(design: Cells, values: FloatArray) -> FloatArray:
    """(P, G) sums of the clusters' values, each counted as much as in the mean."""
    weights = design.weights[:, design.strata] if design.shares is None else np.ones((1, 1))
    return design.by_cluster(design.sums(values) * weights)


def _of_pairs(gram: FloatArray, a: IntArray, b: IntArray) -> FloatArray:
    """(P,) squared norms of the differences of rows a and b of a matrix whose Gram matrix this is."""
    own = gram.diagonal()
    out: FloatArray = own[a] + own[b] - 2 * gram[a, b]
    return out


def _maybe_few(extension: Extension, x: FloatArray, a: IntArray, b: IntArray) -> BoolArray:
    """Pairs whose flips are few, or so nearly that rounding could decide: n_f from products of powers of level sums."""
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
    """Expected wins of A and of B over all pairs of answers, Σ_i P(A_ij > B_ik)."""
    table, x, a, b = work.table, work.stats.mean, work.a, work.b
    right = bool(((x == 0) | (x == 1)).all())
    if table.binary or (table.answers is None and right):
        shown = work.scored.astype(np.float64)
        total = x.sum(axis=1)[:, None] if work.whole else x @ shown.T
        above = np.maximum(total - x @ x.T, 0.0)
    elif table.answers is None:
        if (table.count > 1).any():
            raise ValueError("scores other than 0 and 1 need their single answers to count wins")
        above = count_above(*dense_ranks(x.T, work.scored.T, exact=True))
    else:
        above = answers_above(table.answers)
    return (np.rint(above) if right else above)[a, b], (np.rint(above) if right else above)[b, a]


def wild_columns(
    table: Table, c: Columns, rows: IntArray, levels: Sequence[float], resamples: int, seed: int
) -> list[FloatArray]:
    """p-values, (P,), and for each level the two ends of the interval, (2, P), of the pairs `rows`; NaN elsewhere.

    Every pair takes the weights that `compare` takes for it: the same stream of random numbers, from its start.

    Args:
        table: the models' question statistics.
        c: the pairs, with the variance of each.
        rows: those with a variance.
        levels: of the intervals; infinite where a side has no end.
        resamples: weight vectors.
        seed: of the draws.
    """
    out = [np.full(len(c), np.nan), *(np.full((2, len(c)), np.nan) for _ in levels)]
    for at, wild in _wild(table, c, rows, resamples, seed):
        out[0][at] = wild.p_value()
        for column, level in zip(out[1:], levels, strict=True):
            column[:, at] = np.stack(wild.limits(level))
    return out


def _wild(table: Table, c: Columns, rows: IntArray, resamples: int, seed: int) -> Iterator[tuple[IntArray, Wild]]:
    """The resamples of these pairs, those of one task that share the same questions together."""
    plan, scored = table.design(), ~np.isnan(table.mean)
    patterns: dict[bytes, list[int]] = {}
    for i in rows.tolist():
        patterns.setdefault(np.packbits(scored[:, c.a[i]] & scored[:, c.b[i]]).tobytes(), []).append(i)
    step = max(1, _WILD_ENTRIES // resamples) if table.strata is None else 1
    for same in patterns.values():
        shown = scored[:, c.a[same[0]]] & scored[:, c.b[same[0]]]
        part = sub_design(plan, shown)
        for start in range(0, len(same), step):
            at = np.array(same[start : start + step])
            d = table.mean[np.ix_(shown, c.a[at])] - table.mean[np.ix_(shown, c.b[at])]
            rng = np.random.default_rng(seed)
            if table.strata is not None:
                yield at, wild_test(d[:, 0], part, resamples, rng)
                continue
            mean, n = d.mean(axis=0), len(d)
            share = np.bincount(part.clusters) / n
            yield at, wild_many(sum_by(part.clusters, (d - mean).T, len(share)).T / n, share, mean, resamples, rng)


def sub_design(plan: Design, shown: BoolArray) -> Design:
    """The design of some of the questions, none of whose weighted tasks is empty."""
    strata = plan.strata[shown]
    sizes = np.bincount(strata, minlength=1 if plan.shares is None else len(plan.shares))
    shares = sizes / max(1, len(strata)) if plan.shares is None else plan.shares
    codes, G = cluster_codes(plan.clusters[shown])
    return Design(
        (shares / np.maximum(sizes, 1))[strata], strata, codes, G, plan.clustered, plan.between_tasks, None, plan.shares
    )
