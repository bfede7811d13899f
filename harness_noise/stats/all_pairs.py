"""All pairs of models on one benchmark at once: the kernel's numbers from Gram matrices.

One pair's difference is a contrast (see `contrast`), and every sum over its questions is an entry of
a product FᵀW of two question × model tables. So the columns below are matrix products and
arithmetic on vectors with one entry per pair. Two kinds of pairs go through `_direct`, which looks
at the questions again, many pairs at a time: those whose variance is so small that a difference of
products would be rounding error, and, with clusters, those whose two models lack different questions.

The formulas are those of `contrast` and `tests`, cited there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .fixed import spread_sums
from .flips import extended_flips
from .pair_flips import of_task
from .pair_noise import _all_binary, _most, _prediction, _signs, _wins
from .pair_table import Columns, Table
from .pair_variances import _CANCELLED, _clustered, _constant, _direct, _small_sample, _Sums, _Variances


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
