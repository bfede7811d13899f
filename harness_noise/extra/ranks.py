"""Sets of ranks that many models may have, from decisions that are right together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RankSets:
    """Ranks 1 … M, 1 the best."""

    low: IntArray
    """(M,) the best rank that a model may have."""
    high: IntArray
    """(M,) the worst."""
    ties: IntArray
    """(M,) number of other models from which a model is not shown to differ."""
    better: BoolArray
    """(M, M) whether the row's model is shown to be better than the column's."""


def from_decisions(better: BoolArray) -> RankSets:
    """Return `RankSets`: (M,) lowest and highest possible ranks, ties, from (M, M) "row is better than column"."""
    M = len(better)
    low, high = 1 + better.sum(axis=0), M - better.sum(axis=1)
    ties = M - 1 - (better | better.T).sum(axis=1)
    return RankSets(low.astype(np.intp), high.astype(np.intp), ties.astype(np.intp), better)
