"""Prediction noise, wins and signs of all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .cluster_variance import sum_by
from .pair_variances import Products
from .ranks import answers_above, count_above, dense_ranks
from .tolerances import FEWEST_REPEATED


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    v: FloatArray
    w: FloatArray
    more: FloatArray
    identified: BoolArray


def prediction(S: Products) -> tuple[Noise, dict[str, BoolArray]]:
    """Σ v, Σ w and Σ more of each pair, and what its repeats give reason to say; see `contrast`."""
    table, W, whole = S.table, S.W, S.whole
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
    return Noise(v, w, np.maximum(more, 0.0), identified), flags


def _even(count: IntArray, W: BoolArray) -> BoolArray:
    """Which models have one number of repeats throughout."""
    top = count.max(axis=0, initial=0)
    even: BoolArray = ((count == top) | ~W).all(axis=0)
    return even


def _uneven(count: IntArray, S: Products) -> BoolArray:
    """Pairs in which a model has different numbers of repeats: n Σk² > (Σk)², in whole numbers."""
    k = count.astype(np.float64)
    sums, squares = S(k), S(k * k)
    return (S.n * squares[0] > sums[0] ** 2 + 0.5) | (S.n * squares[1] > sums[1] ** 2 + 0.5)


def most_repeats(S: Products) -> tuple[IntArray, IntArray]:
    """The largest number of repeats of A and of B on a shared question."""
    count, W, whole, a, b = S.table.count, S.W, S.whole, S.a, S.b
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


def signs(S: Products) -> tuple[IntArray, IntArray]:
    """On how many questions A, and B, has the higher mean; with clusters, clusters by their summed d.

    With clusters and missing questions the counts of `look_again` replace these.
    """
    table, x, W = S.table, S.x, S.W
    if table.clusters is not None:
        sums = sum_by(table.clusters, x, int(table.clusters.max(initial=-1)) + 1)
        above = count_above(*dense_ranks(sums, np.ones_like(sums, dtype=np.bool_)))
    elif S.binary:
        return (S.sum_a - S.raw).round().astype(np.intp), (S.sum_b - S.raw).round().astype(np.intp)
    elif table.binary and bool((table.count[W] == table.count.max(initial=0)).all()):
        right = np.where(W, np.rint(x * table.count), -1).astype(np.int32)
        above = count_above(right, int(table.count.max(initial=0)) + 1)
    else:
        above = count_above(*dense_ranks(x, W))
    return above[S.a, S.b].astype(np.intp), above[S.b, S.a].astype(np.intp)


def wins(S: Products) -> tuple[FloatArray, FloatArray]:
    """Expected wins of A and of B over all pairs of answers, Σ_i P(A_ij > B_ik)."""
    table = S.table
    if table.binary or (table.answers is None and S.binary):
        return np.maximum(S.sum_a - S.raw, 0.0), np.maximum(S.sum_b - S.raw, 0.0)
    if table.answers is None:
        if (table.count > 1).any():
            raise ValueError("scores other than 0 and 1 need their single answers to count wins")
        above = count_above(*dense_ranks(S.x, S.W, exact=True))
    else:
        above = answers_above(table.answers)
    return above[S.a, S.b], above[S.b, S.a]
