"""Inspect's reducers: from the scores of a question's repeats to its one value.

With one repeat all of them but the thresholds are the score itself. What a log calls them is their name and
their k; a threshold other than 1 is not said, so whatever comes out is compared with the native value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness_noise.stats.passk import pass_at_k

FloatArray = NDArray[np.float64]
Reduce = Callable[[FloatArray], FloatArray]
"""(n, K) scores, NaN where there is none → (n,) values, NaN where there is none."""

_WITH_K = re.compile(r"(pass_at|pass_k|at_least)_([1-9][0-9]{0,4})")


def of(name: str | None) -> Reduce | None:
    """The reducer of that name; None for the mean over repeats, and for one that is not Inspect's own."""
    if found := _WITH_K.fullmatch(name or ""):
        return partial({"pass_at": _pass_at, "pass_k": _pass_k, "at_least": _at_least}[found[1]], k=int(found[2]))
    return {"mode": _mode, "max": _max, "median": _median}.get(name or "")


def single(table: FloatArray) -> FloatArray:
    """Of a table with one repeat, whatever the reducer: the score."""
    return np.asarray(table[:, 0], dtype=np.float64)


def _rights(table: FloatArray) -> FloatArray:
    """1 where a score reaches 1, as Inspect's reducers take it by default."""
    return np.where(np.isnan(table), np.nan, (table >= 1.0).astype(np.float64))


def _pass_at(table: FloatArray, k: int) -> FloatArray:
    return pass_at_k(_rights(table), k)


def _pass_k(table: FloatArray, k: int) -> FloatArray:
    """The chance that all of k answers are right: C(c, k)/C(K, k), that none is wrong."""
    return 1.0 - pass_at_k(1.0 - _rights(table), k)


def _at_least(table: FloatArray, k: int) -> FloatArray:
    out = (np.nansum(_rights(table), axis=1) >= k).astype(np.float64)
    return np.where(np.isnan(table).all(axis=1), np.nan, out)


def _rows(table: FloatArray, value: Callable[[FloatArray], float]) -> FloatArray:
    return np.array([value(row[~np.isnan(row)]) if not np.isnan(row).all() else np.nan for row in table], np.float64)


def _max(table: FloatArray) -> FloatArray:
    return _rows(table, lambda row: float(row.max()))


def _median(table: FloatArray) -> FloatArray:
    return _rows(table, lambda row: float(np.median(row)))


def _mode(table: FloatArray) -> FloatArray:
    """The most frequent value, of several the one that came first."""
    return _rows(table, lambda row: float(Counter(row.tolist()).most_common(1)[0][0]))
