"""The wild cluster bootstrap for all pairs of models on one benchmark; see `wild`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import FloatArray, IntArray
from .contrast import cluster_codes
from .group_pairs import group_design
from .pair_table import Columns, Table
from .ranks import one_hot
from .wild import Wild, wild_many, wild_test

_ENTRIES = 4_000_000
"""Resamples × pairs that are held at once (some 200 MB)."""


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

    def put(found: Wild, at: IntArray) -> None:
        out[0][at] = found.p_value()
        for column, level in zip(out[1:], levels, strict=True):
            column[:, at] = np.stack(found.limits(level))

    scored = ~np.isnan(table.mean)
    if table.strata is not None:
        for i in rows.tolist():
            shared = np.flatnonzero(scored[:, c.a[i]] & scored[:, c.b[i]])
            plan = group_design(table, shared)
            if plan is not None:
                d = table.mean[shared, c.a[i]] - table.mean[shared, c.b[i]]
                put(wild_test(d, plan, resamples, np.random.default_rng(seed)), np.array([i]))
        return out
    patterns: dict[bytes, list[int]] = {}
    for i in rows.tolist():
        patterns.setdefault(np.packbits(scored[:, c.a[i]] & scored[:, c.b[i]]).tobytes(), []).append(i)
    step = max(1, _ENTRIES // resamples)
    for same in patterns.values():
        shared = np.flatnonzero(scored[:, c.a[same[0]]] & scored[:, c.b[same[0]]])
        n = len(shared)
        codes, G = (np.arange(n), n) if table.clusters is None else cluster_codes(table.clusters[shared])
        sums = one_hot(codes, G).T
        share = np.bincount(codes, minlength=G) / n
        for start in range(0, len(same), step):
            at = np.array(same[start : start + step])
            d = table.mean[np.ix_(shared, c.a[at])] - table.mean[np.ix_(shared, c.b[at])]
            mean = d.mean(axis=0)
            put(wild_many((sums @ (d - mean)) / n, share, mean, resamples, np.random.default_rng(seed)), at)
    return out
