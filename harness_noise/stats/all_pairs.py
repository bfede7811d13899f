"""All pairs of models on one benchmark at once: the kernel's numbers from Gram matrices.

One pair's difference is a contrast (see `contrast`), and every sum over its questions is an entry of
a product FᵀW of two question × model tables. So the columns below are matrix products and
arithmetic on vectors with one entry per pair. Two kinds of pairs go through `look_again`, which looks
at the questions again, many pairs at a time: those whose variance is so small that a difference of
products would be rounding error, and, with clusters, those whose two models lack different questions.

The formulas are those of `contrast` and `tests`, cited there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .arrays import BoolArray, Estimator, FloatArray, IntArray
from .decision import few_degrees, noise_flags
from .fixed import spread_sums
from .flips import Far, extended_flips
from .moments import without_rounding
from .pair_flips import of_task
from .pair_noise import most_repeats, prediction, signs, wins
from .pair_table import Columns, Table
from .pair_variances import Products, by_products, look_again
from .tolerances import ROUNDING


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
    with np.errstate(invalid="ignore", divide="ignore"):
        S = Products(table, a, b)
        n, correlation = S.n, S.correlation()
        columns, again = by_products(S, estimator)
        wins_a, wins_b = wins(S) if counts else np.zeros((2, len(a)))
        if counts:
            columns.signs_a, columns.signs_b = signs(S)
        if len(again):
            look_again(S, again, columns, estimator)
        unknown, zero = columns.without_unknown(n)
        if table.clusters is None and S.binary:
            far = extended_flips(np.rint(S.sum_a + S.sum_b - 2 * S.raw), S.sum_a - S.sum_b, n, estimator)
        else:
            far = of_task(S.x, S.W, table.clusters, a, b, estimator)
        far.put(unknown | zero, Far.none(int((unknown | zero).sum())))
        noise, flags = prediction(S)
        identified = noise.identified & (~unknown | fixed)  # of fixed questions one, or one cluster, is enough
        V, n_clusters = columns.variance, columns.n_clusters
        var_data = np.where(identified, without_rounding(V, noise.w / n**2), np.nan)
        only = S.W.sum(axis=0)
        flags |= noise_flags(columns.df, zero=zero, var_data=var_data, far=far) | {
            "too_few_questions": n < 2,
            "too_few_clusters": (n > 1) & unknown,
            "unpaired_questions": (only[a] > n) | (only[b] > n),
        }
        if table.clusters is not None:
            flags["singleton_clusters"] = (n_clusters == n) & ~unknown
        repeats_a, repeats_b = most_repeats(S)
        found = Columns(
            a, b, n.astype(np.intp), n_clusters.astype(np.intp), (only[a] - n).astype(np.intp),
            (only[b] - n).astype(np.intp), repeats_a, repeats_b, mean_a=S.sum_a / n, mean_b=S.sum_b / n,
            diff=columns.diff, variance=V, df=columns.df, naive=columns.naive, variance_a=columns.variance_a,
            variance_b=columns.variance_b, var_data=var_data,
            var_prediction=np.where(identified, noise.v / n**2, np.nan), var_total=V + noise.more / n**2,
            correlation=correlation, wins_a=wins_a, wins_b=wins_b, signs_a=columns.signs_a, signs_b=columns.signs_b,
            zero=zero, same=zero & (columns.biggest <= ROUNDING), flags=flags, far=far,
        )  # fmt: skip
        return fixed_columns(found, fixed_sides(S), noise.identified) if fixed else found


def fixed_sides(S: Products) -> list[tuple[FloatArray, FloatArray]]:
    """For A's and for B's side of each pair, V and its Σ (…)²/(k − 1) over the shared questions; see `fixed`."""
    table = S.table
    known = S.W & (table.count >= 2)
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
    flags |= {"few_clusters": few_degrees(df), "too_few_questions": c.n == 0}
    return replace(
        c, n_clusters=c.n, variance=V, df=df, naive=nothing, variance_a=np.where(known, V_a, np.nan),
        variance_b=np.where(known, V_b, np.nan), var_data=nothing, var_prediction=prediction, var_total=prediction,
        signs_a=no_signs, signs_b=no_signs, zero=none, same=none, flags=flags, gain=None, loss=None, far=None,
    )  # fmt: skip
