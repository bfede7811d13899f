"""Rows that have the same question, model, task, metric and scorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness_noise.arrays import BoolArray, IntArray

from .table import ColumnFacts


@dataclass(frozen=True)
class Pools:
    """The rows that have the same question, model, task, metric and scorer."""

    codes: IntArray
    """(rows,) number of each row's pool."""
    counts: IntArray
    """(pools,) number of rows in each pool."""

    @classmethod
    def of(cls, keys: Sequence[ColumnFacts], n: int) -> Pools:
        joint = np.zeros(n, dtype=np.intp)
        for column in keys:
            joint = joint * (int(column.codes.max(initial=0)) + 2) + column.codes + 1
            joint = np.unique(joint, return_inverse=True)[1].reshape(-1)
        return cls(joint, np.bincount(joint, minlength=1))

    def apart_at(self, rows: BoolArray) -> Pools:
        """Return the pools with each of these rows in one of its own."""
        if not rows.any():
            return self
        codes = np.where(rows, len(self.counts) + np.arange(len(rows)), self.codes)
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
        return Pools(codes, np.bincount(codes, minlength=1))

    @property
    def several(self) -> IntArray:
        """Numbers (g,) of the groups of rows (same question and model, say) that have more than one row."""
        return np.flatnonzero(self.counts > 1)

    def share_varied(self, column: ColumnFacts) -> float:
        """Return the share of the row groups with several rows in which a column has different values."""
        several = len(column.distinct) + 1
        pairs = np.unique(self.codes * several + column.codes + 1)
        different = np.bincount(pairs // several, minlength=len(self.counts))
        return float((different[self.several] > 1).mean()) if self.several.size else 0.0
