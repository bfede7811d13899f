"""All pairs of models on one benchmark at once: the kernel's numbers from Gram matrices.

One pair's difference is a contrast (see `contrast`), and every sum over its questions is an entry of
a product FᵀW of two question × model tables. So the columns below are matrix products and
arithmetic on vectors with one entry per pair. Two kinds of pairs go through `_direct`, which looks
at the questions again, many pairs at a time: those whose variance is so small that a difference of
products would be rounding error, and, with clusters, those whose two models lack different questions.

The formulas are those of `contrast` and `tests`, cited there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .cluster_variance import clustered_variance
from .contrast import FEWEST_REPEATED, design
from .fixed import spread_sums
from .flips import Far, extended_flips
from .pair_flips import chunks, of_task
from .ranks import answers_above, count_above, dense_ranks, one_hot

_CANCELLED = 1e-4
"""A difference of sums of squares below this share of the sums is computed again from the questions."""


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """The tasks that a group of questions is made of."""

    codes: IntArray
    """(N,) task codes 0 … T−1."""
    shares: FloatArray | None = None
    """(T,) weights of the tasks in the mean, summing to 1; None: by size."""
    between: bool = False
    """The tasks themselves are the sample, each one cluster."""

    def weights(self, rows: IntArray) -> FloatArray | None:
        """Weight of each of these questions in the mean; None where a task of non-zero weight has none."""
        codes = self.codes[rows]
        if self.shares is None:
            return np.full(len(rows), 1 / max(1, len(rows)))
        sizes = np.bincount(codes, minlength=len(self.shares))
        if (sizes[self.shares > 0] == 0).any():
            return None
        out: FloatArray = (self.shares / np.maximum(sizes, 1))[codes]
        return out


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
    unsplit: BoolArray | None = None
    """(M,) models whose data and prediction noise cannot be told apart for another reason."""
    strata: Strata | None = None
    """The tasks of a group; see `group_pairs`."""
    answers: tuple[FloatArray, ...] | None = field(default=None, repr=False)
    """M arrays (N, K_m) of single scores; None where `mean` holds them all or they are only 0 and 1."""
    binary: bool = False
    """All single scores are 0 or 1."""


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
    flags: dict[str, BoolArray]
    """Diagnostic code → which pairs have it."""
    gain: FloatArray | None = None
    """Where nothing varies, the mean over clusters of max(d, 0), and of max(−d, 0); None: of the mean."""
    loss: FloatArray | None = None
    far: Far | None = None
    """What the far limits of the intervals come from, where few questions (clusters) differ."""

    def __len__(self) -> int:
        return len(self.a)


def every_pair(n_models: int) -> tuple[IntArray, IntArray]:
    """Indices (a, b) of all pairs a < b, in the order (0, 1), (0, 2), …, (1, 2), …."""
    a, b = np.triu_indices(n_models, 1)
    return a.astype(np.intp), b.astype(np.intp)


def all_pairs(
    table: Table, a: IntArray, b: IntArray, estimator: Estimator = "cr2", *, counts: bool = True, fixed: bool = False
) -> Columns:
    """The columns of the pairs (a[i], b[i]) of a table's models.

    Args:
        table: question statistics of all models.
        a: (P,) columns of the first models.
        b: (P,) columns of the second.
        estimator: of the variance over questions.
        counts: wins and sign tests too, most of the time where scores have many levels; else 0.
        fixed: the questions are no sample: variances from the repeats alone (`fixed.fixed_moments`).

    Time is that of a few matrix products (M × N)(N × M); memory O(M N + M² + pairs).
    """
    X = table.mean
    W = ~np.isnan(X)
    whole = bool(W.all())
    x = X if whole else np.where(W, X, 0.0)
    S = _Sums(W, whole, a, b)
    n = S.n
    with np.errstate(invalid="ignore", divide="ignore"):
        sum_a, sum_b = S(x)
        mean_a, mean_b = sum_a / n, sum_b / n
        diff = (sum_a - sum_b) / n

        # Residuals from each model's own mean, which keep the products small.
        centre = x.sum(axis=0) / np.maximum(W.sum(axis=0), 1)
        e = x - centre if whole else np.where(W, x - centre, 0.0)
        gram = e.T @ e
        cross = gram[a, b]
        if whole:
            diagonal = gram.diagonal()
            ss_a, ss_b = diagonal[a], diagonal[b]
            product = cross
        else:
            q_a, q_b = S(e * e)
            r_a, r_b = S(e)
            ss_a, ss_b = q_a - r_a**2 / n, q_b - r_b**2 / n
            product = cross - r_a * r_b / n
        ss_d = ss_a + ss_b - 2 * product
        naive = ss_d / n / (n - 1.0)
        correlation = product / np.sqrt(ss_a * ss_b)
        raw = cross + centre[b] * sum_a + centre[a] * sum_b - n * centre[a] * centre[b]  # Σ x_a x_b
        if _all_binary(x):
            raw = np.rint(raw)

        flat_a, flat_b = (_constant(x, W, whole, a, b, *side) for side in ((a, ss_a), (b, ss_b)))
        correlation[flat_a | flat_b | (n < 2)] = np.nan
        ss_a[flat_a] = 0.0
        ss_b[flat_b] = 0.0

        doubtful = ss_d <= _CANCELLED * (ss_a + ss_b) + 1e-20 * n
        if table.clusters is None:
            factor = _small_sample(n, estimator)
            columns = _Variances(ss_d / n * factor, n - 1.0, naive, ss_a / n * factor, ss_b / n * factor, n.copy())
        else:
            columns, unsure = _clustered(table.clusters, e, W, a, b, naive, estimator)
            doubtful |= unsure
        again = np.flatnonzero(doubtful & (n > 0))
        biggest = np.zeros(len(a))
        signs_a, signs_b = np.zeros((2, len(a)), dtype=np.intp)
        wins_a, wins_b = np.zeros((2, len(a)))
        if counts:
            signs_a, signs_b = _signs(table, x, W, S, raw, sum_a, sum_b)
            wins_a, wins_b = _wins(table, x, W, S, raw, sum_a, sum_b)
        if len(again):
            biggest[again] = _direct(table, x, W, a, b, again, columns, diff, signs_a, signs_b, estimator)

        V = columns.variance
        unknown = (n < 2) | (columns.n_clusters < 2)
        for column in (V, columns.df, columns.naive, columns.variance_a, columns.variance_b):
            column[unknown] = np.nan
        nothing = (1e-12 * np.maximum(1.0, biggest)) ** 2
        zero = ~unknown & (nothing >= V)
        for column in (V, columns.variance_a, columns.variance_b):
            column[column <= 1e-24] = 0.0
        V[zero] = 0.0
        if table.clusters is None and _all_binary(x):
            far = extended_flips(np.rint(sum_a + sum_b - 2 * raw), sum_a - sum_b, n, estimator)
        else:
            far = of_task(x, W, table.clusters, a, b, estimator)
        for column in (far.mean, far.variance, far.df):
            column[unknown | zero] = np.nan
        V = columns.variance
        noise, flags = _prediction(table, W, whole, S)
        identified = noise.identified & (~unknown | fixed)  # of fixed questions one, or one cluster, is enough
        var_prediction = np.where(identified, noise.v / n**2, np.nan)
        left = noise.w / n**2
        var_data = np.where(np.abs(V - left) <= 1e-12 * np.maximum(V, left), 0.0, V - left)
        var_data[~identified] = np.nan
        var_total = V + noise.more / n**2
    only = W.sum(axis=0)
    flags |= {
        "too_few_questions": n < 2,
        "too_few_clusters": (n > 1) & unknown,
        "zero_variance": zero,
        "few_flips": ~np.isnan(far.mean),
        "negative_data_variance": var_data < 0,
        "few_clusters": columns.df < 10,
        "unpaired_questions": (only[a] > n) | (only[b] > n),
    }
    if table.clusters is not None:
        flags["singleton_clusters"] = (columns.n_clusters == n) & ~unknown
    found = Columns(
        a, b, n.astype(np.intp), columns.n_clusters.astype(np.intp), (only[a] - n).astype(np.intp),
        (only[b] - n).astype(np.intp), *_most(table.count, W, whole, a, b), mean_a, mean_b, diff, V, columns.df,
        columns.naive, columns.variance_a, columns.variance_b, var_data, var_prediction, var_total, correlation,
        wins_a, wins_b, signs_a, signs_b, zero, zero & (biggest <= 1e-12), flags, far=far,
    )  # fmt: skip
    return fixed_columns(found, fixed_sides(table, W, S), noise.identified) if fixed else found


def fixed_sides(table: Table, W: BoolArray, S: _Sums) -> list[tuple[FloatArray, FloatArray]]:
    """For A's and for B's side of each pair, V and its Σ (…)²/(k − 1) over the shared questions; see `fixed`."""
    known = W & (table.count >= 2)
    s2, k = np.where(known, table.var, 0.0), np.where(known, table.count, 1).astype(np.float64)
    parts = [S(F) for F in (s2 / k, s2, known.astype(np.float64), *spread_sums(s2, k))]
    n2 = np.maximum(S.n, 1.0) ** 2
    out = []
    for left, total, n_known, x, y, z in zip(*parts, strict=True):
        lent = (S.n - n_known) / np.maximum(n_known, 1)
        out.append(((left + lent * total) / n2, (x + 2 * lent * y + lent**2 * z) / n2**2))
    return out


def fixed_columns(c: Columns, sides: list[tuple[FloatArray, FloatArray]], identified: BoolArray) -> Columns:
    """The columns where the questions are no sample: what belongs to a sample of questions is NaN or 0."""
    (V_a, spread_a), (V_b, spread_b) = sides
    known = identified & (c.n > 0) & (V_a + V_b > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        V = np.where(known, V_a + V_b, np.nan)
        df = V**2 / (spread_a + spread_b)
    nothing, none = np.full(len(c), np.nan), np.zeros(len(c), dtype=np.bool_)
    no_signs = np.zeros(len(c), dtype=np.intp)
    prediction = np.where(known, c.var_prediction, np.nan)
    about_a_sample = ("too_few_questions", "too_few_clusters", "zero_variance", "negative_data_variance",
                      "singleton_clusters", "few_flips")  # fmt: skip
    flags = {code: has for code, has in c.flags.items() if code not in about_a_sample}
    flags |= {"few_clusters": df < 10, "too_few_questions": c.n == 0}
    return replace(
        c, n_clusters=c.n, variance=V, df=df, naive=nothing, variance_a=np.where(known, V_a, np.nan),
        variance_b=np.where(known, V_b, np.nan), var_data=nothing, var_prediction=prediction, var_total=prediction,
        signs_a=no_signs, signs_b=no_signs, zero=none, same=none, flags=flags, gain=None, loss=None, far=None,
    )  # fmt: skip


class _Sums:
    """Σ_i F_ia over the questions that A and B share, for A's and for B's column of F."""

    def __init__(self, W: BoolArray, whole: bool, a: IntArray, b: IntArray) -> None:
        self.whole, self.a, self.b = whole, a, b
        self.W = W.astype(np.float64) if not whole else None
        if self.W is None:
            self.n = np.full(len(a), float(len(W)))
        else:
            self.n = (self.W.T @ self.W)[a, b]

    def __call__(self, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """F is (N, M), 0 where the model has no score."""
        if self.W is None:
            total = F.sum(axis=0)
            return total[self.a], total[self.b]
        sums = F.T @ self.W
        return sums[self.a, self.b], sums[self.b, self.a]


@dataclass(slots=True, eq=False)
class _Variances:
    """(P,) columns that `_direct` corrects in place."""

    variance: FloatArray
    df: FloatArray
    naive: FloatArray
    variance_a: FloatArray
    variance_b: FloatArray
    n_clusters: FloatArray


def _constant(
    x: FloatArray, W: BoolArray, whole: bool, a: IntArray, b: IntArray, side: IntArray, ss: FloatArray
) -> BoolArray:
    """In which pairs the model `side` has one and the same mean on every shared question."""
    low = (x if whole else np.where(W, x, np.inf)).min(axis=0, initial=np.inf)
    high = (x if whole else np.where(W, x, -np.inf)).max(axis=0, initial=-np.inf)
    found: BoolArray = (low == high)[side]
    if whole:
        return found
    tiny = np.flatnonzero(~found & (ss <= 1e-9 * np.maximum(1.0, np.abs(high))[side] ** 2))
    for rows in chunks(tiny, len(x)):
        shared = W.T[a[rows]] & W.T[b[rows]]
        values = x.T[side[rows]]
        found[rows] = np.where(shared, values, np.inf).min(axis=1) >= np.where(shared, values, -np.inf).max(axis=1)
    return found


def _clustered(
    clusters: IntArray, e: FloatArray, W: BoolArray, a: IntArray, b: IntArray, naive: FloatArray, estimator: Estimator
) -> tuple[_Variances, BoolArray]:
    """Clustered variances of pairs whose models lack the same questions, and which pairs are still open."""
    P = len(a)
    out = _Variances(np.full(P, np.nan), np.full(P, np.nan), naive, *np.full((3, P), np.nan))
    open_ = np.ones(P, dtype=np.bool_)
    _, pattern = np.unique(np.packbits(W, axis=0), axis=1, return_inverse=True)
    pattern = pattern.reshape(-1)
    for code in np.unique(pattern):
        models = np.flatnonzero(pattern == code)
        rows = np.flatnonzero(W[:, models[0]])
        pairs = np.flatnonzero((pattern[a] == code) & (pattern[b] == code))
        if len(pairs) == 0 or len(rows) < 2:
            continue
        plan = design(len(rows), clusters[rows])
        found = clustered_variance(np.zeros(len(rows)), plan, estimator)
        out.n_clusters[pairs] = plan.n_clusters
        if found is None:
            open_[pairs] = False
            continue
        n, G = len(rows), plan.n_clusters
        sums = one_hot(plan.clusters, G).T @ e[np.ix_(rows, models)]
        sums *= _leverage(np.bincount(plan.clusters).astype(np.float64), n, estimator)[:, None]
        small_sample = G / (G - 1) if estimator == "cr1" else 1.0
        gram = sums.T @ sums * (small_sample / n**2)
        at = np.full(W.shape[1], -1)
        at[models] = np.arange(len(models))
        i, j = at[a[pairs]], at[b[pairs]]
        own = gram.diagonal()
        out.variance_a[pairs], out.variance_b[pairs] = own[i], own[j]
        out.variance[pairs] = own[i] + own[j] - 2 * gram[i, j]
        out.df[pairs] = found.df
        open_[pairs] = out.variance[pairs] <= _CANCELLED * (own[i] + own[j]) + 1e-20
    return out, open_


def _leverage(sizes: FloatArray, n: FloatArray | int, estimator: Estimator) -> FloatArray:
    """The factor (1 − n_c/n)^(−1/2) of CR2, its square of CR3, 1 otherwise."""
    if estimator not in ("cr2", "cr3"):
        return np.ones_like(sizes)
    left = 1 - sizes / n
    return 1 / (np.sqrt(left) if estimator == "cr2" else left)


def _small_sample(n: FloatArray, estimator: Estimator) -> FloatArray:
    """What n V is of the mean square Σ e²/n where every question is its own cluster: CR1 and CR2 are one."""
    return {"cr0": 1 / n, "cr3": n / (n - 1.0) ** 2}.get(estimator, 1 / (n - 1.0))


def _direct(
    table: Table, x: FloatArray, W: BoolArray, a: IntArray, b: IntArray, rows: IntArray, out: _Variances,
    diff: FloatArray, signs_a: IntArray, signs_b: IntArray, estimator: Estimator,
) -> FloatArray:  # fmt: skip
    """Means and variances of some pairs from their questions, written in place; returns max |d| of each."""
    order = np.arange(len(x)) if table.clusters is None else np.argsort(table.clusters, kind="stable")
    xt, wt = np.ascontiguousarray(x[order].T), np.ascontiguousarray(W[order].T)
    starts = None
    if table.clusters is not None:
        starts = np.flatnonzero(np.diff(table.clusters[order], prepend=-1))
    biggest = []
    for part in chunks(rows, len(x)):
        shared = wt[a[part]] & wt[b[part]]
        n = shared.sum(axis=1).astype(np.float64)[:, None]
        values_a, values_b = xt[a[part]] * shared, xt[b[part]] * shared
        d = values_a - values_b
        top = np.maximum(d.max(axis=1), -d.min(axis=1))
        biggest.append(top)
        e = _residual(d, shared, n)
        diff[part] = d.sum(axis=1) / n[:, 0]
        out.naive[part] = (e**2).sum(axis=1) / n[:, 0] / (n[:, 0] - 1)
        if starts is None:
            factor = (_small_sample(n, estimator) / n)[:, 0]
            out.variance[part] = (e**2).sum(axis=1) * factor
            out.variance_a[part] = (_residual(values_a, shared, n) ** 2).sum(axis=1) * factor
            out.variance_b[part] = (_residual(values_b, shared, n) ** 2).sum(axis=1) * factor
            continue
        sizes, sums_a, sums_b, sums, left = (
            np.add.reduceat(block, starts, axis=1, dtype=np.float64) for block in (shared, values_a, values_b, d, e)
        )
        G = (sizes > 0).sum(axis=1).astype(np.float64)
        alone = (G < 2)[:, None]
        factor = (G / (G - 1) if estimator == "cr1" else 1.0) / n[:, 0] ** 2
        scale = _leverage(np.where(alone, 0.0, sizes), n, estimator)
        out.variance[part] = ((scale * left) ** 2).sum(axis=1) * factor
        for column, own in ((out.variance_a, sums_a), (out.variance_b, sums_b)):
            centred = own - sizes * (own.sum(axis=1, keepdims=True) / n)
            column[part] = ((scale * centred) ** 2).sum(axis=1) * factor
        # Satterthwaite: D, the diagonal of P, and u uᵀ, what is taken from it; see `clustered_variance`.
        D = np.where(alone, 0.0, sizes / (n * (n - sizes)))
        uu = D * sizes / n
        trace = (D - uu).sum(axis=1)
        df = trace**2 / ((D * D - 2 * D * uu).sum(axis=1) + uu.sum(axis=1) ** 2)
        out.df[part] = np.where(np.abs(df - np.rint(df)) < 1e-9 * df, np.rint(df), df)
        out.n_clusters[part] = G
        tolerance = 1e-12 * np.maximum(1.0, np.abs(sums).max(axis=1))[:, None]
        signs_a[part] = (sums > tolerance).sum(axis=1)
        signs_b[part] = (sums < -tolerance).sum(axis=1)
    return np.concatenate(biggest)


def _residual(values: FloatArray, shared: BoolArray, n: FloatArray) -> FloatArray:
    """(P, N) deviations of `values`, 0 where not shared, from each pair's mean; rounding error set to 0."""
    e: FloatArray = (values - values.sum(axis=1, keepdims=True) / n) * shared
    top = np.maximum(values.max(axis=1), -values.min(axis=1))
    e[np.abs(e) <= 1e-12 * np.maximum(1.0, top)[:, None]] = 0.0
    return e


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    v: FloatArray
    w: FloatArray
    more: FloatArray
    identified: BoolArray


def _prediction(table: Table, W: BoolArray, whole: bool, S: _Sums) -> tuple[_Noise, dict[str, BoolArray]]:
    """Σ v, Σ w and Σ more of each pair, and what its repeats give reason to say; see `contrast`."""
    known = table.count >= 2
    s2 = np.where(known, table.var, 0.0)
    k = np.maximum(table.count, 1)
    n = S.n
    all_known = bool(known.all() if whole else (known | ~W).all())
    even = _even(table.count, W)
    any_known = bool(known.any())
    nothing = np.zeros(len(n))
    v, w, more = nothing.copy(), nothing.copy(), nothing.copy()
    single, partly, same, missing = (np.zeros(len(n), dtype=np.bool_) for _ in range(4))
    n_known = (n, n) if all_known else S(known.astype(np.float64)) if any_known else (nothing, nothing)
    s2_sums = S(s2) if any_known else (nothing, nothing)
    if even.all():
        first = np.where(W, table.count, 0).max(axis=0)
        share = 1 / np.maximum(first, 1)
        s2_k = s2_sums[0] * share[S.a], s2_sums[1] * share[S.b]
    else:
        s2_k = S(s2 / k)
        missing = _uneven(table.count, S)
    for i in range(2):
        lone = n - n_known[i]
        enough = n_known[i] >= np.minimum(FEWEST_REPEATED, lone)
        mean_s2 = np.where(enough, s2_sums[i] / np.maximum(n_known[i], 1), 0.0)
        single |= ~enough & (n > 0)
        partly |= enough & (lone > 0)
        same |= (n_known[i] > 0) & (s2_sums[i] <= 0)
        v += s2_sums[i] + lone * mean_s2
        w += s2_k[i] + lone * mean_s2
        more += s2_sums[i] - s2_k[i]
    identified = ~(single | same)
    if table.identical is not None:
        told = table.identical[S.a] | table.identical[S.b]
        same, identified = same | told, identified & ~told
    if table.unsplit is not None:
        identified &= ~(table.unsplit[S.a] | table.unsplit[S.b])
    flags = {
        "single_repeat": single, "partly_single_repeat": partly, "identical_repeats": same, "missing_repeats": missing,
    }  # fmt: skip
    return _Noise(v, w, np.maximum(more, 0.0), identified), flags


def _even(count: IntArray, W: BoolArray) -> BoolArray:
    """Which models have one number of repeats throughout."""
    top = count.max(axis=0, initial=0)
    even: BoolArray = ((count == top) | ~W).all(axis=0)
    return even


def _uneven(count: IntArray, S: _Sums) -> BoolArray:
    """Pairs in which a model has different numbers of repeats: n Σk² > (Σk)², in whole numbers."""
    k = count.astype(np.float64)
    sums, squares = S(k), S(k * k)
    return (S.n * squares[0] > sums[0] ** 2 + 0.5) | (S.n * squares[1] > sums[1] ** 2 + 0.5)


def _most(count: IntArray, W: BoolArray, whole: bool, a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
    """The largest number of repeats of A and of B on a shared question."""
    top = count.max(axis=0, initial=0)
    if whole:
        return top[a], top[b]
    out_a, out_b = (np.zeros(len(a), dtype=np.intp) for _ in range(2))
    shared = W.astype(np.float32)
    for k in np.unique(count[W]):  # ascending: a larger one overwrites
        has = ((count == k) & W).astype(np.float32).T @ shared > 0
        out_a[has[a, b]] = k
        out_b[has[b, a]] = k
    return out_a, out_b


def _signs(
    table: Table, x: FloatArray, W: BoolArray, S: _Sums, raw: FloatArray, sum_a: FloatArray,
    sum_b: FloatArray,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """On how many questions A, and B, has the higher mean; with clusters, clusters by their summed d.

    With clusters and missing questions the counts of `_direct` replace these.
    """
    if table.clusters is not None:
        G = int(table.clusters.max(initial=-1)) + 1
        sums = one_hot(table.clusters, G).T @ x
        above = count_above(*dense_ranks(sums, np.ones_like(sums, dtype=np.bool_)))
    elif _all_binary(x):
        return (sum_a - raw).round().astype(np.intp), (sum_b - raw).round().astype(np.intp)
    elif table.binary and bool((table.count[W] == table.count.max(initial=0)).all()):
        right = np.where(W, np.rint(x * table.count), -1).astype(np.int32)
        above = count_above(right, int(table.count.max(initial=0)) + 1)
    else:
        above = count_above(*dense_ranks(x, W))
    return above[S.a, S.b].astype(np.intp), above[S.b, S.a].astype(np.intp)


def _all_binary(x: FloatArray) -> bool:
    return bool(((x == 0) | (x == 1)).all())


def _wins(
    table: Table, x: FloatArray, W: BoolArray, S: _Sums, raw: FloatArray, sum_a: FloatArray, sum_b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Expected wins of A and of B over all pairs of answers, Σ_i P(A_ij > B_ik)."""
    if table.binary or (table.answers is None and _all_binary(x)):
        return np.maximum(sum_a - raw, 0.0), np.maximum(sum_b - raw, 0.0)
    if table.answers is None:
        if (table.count > 1).any():
            raise ValueError("scores other than 0 and 1 need their single answers to count wins")
        above = count_above(*dense_ranks(x, W, exact=True))
    else:
        above = answers_above(table.answers)
    return above[S.a, S.b], above[S.b, S.a]
