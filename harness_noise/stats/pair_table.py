"""What all pairs of many runs are computed from, and what comes out: one column for each quantity."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .flips import Far


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
