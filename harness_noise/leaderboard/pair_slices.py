"""Every pair of models on every slice of a benchmark's questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..analysis.known import Known, taken
from ..analysis.slices import divided
from ..data.scores import Scores
from ..results.arena import BenchmarkResult, PairSlice
from ..settings import Settings
from ..stats import decision
from .benchmark import _Measured, _paired

MOST = 50_000
"""Pairs × slices that are computed; of more, `compare` has those of any two models."""


def pair_slices(
    board: BenchmarkResult, measured: Sequence[_Measured], by: Sequence[str], settings: Settings
) -> tuple[PairSlice, ...]:
    """A − B of all pairs by slice, as `compare` has it; p-values adjusted over the slices of each pair.

    The slices are those of the run with the most questions; none where there are too many of them.
    """
    widest = max(measured, key=lambda item: len(item.parts[0].questions))
    fields = widest.parts[0].questions.fields
    if fields is None or len(widest.parts) > 1:
        return ()
    found = list(_slices(Known(widest.parts, (widest.run,), fields), by))
    if not found or len(found) * len(board.pairs) > MOST:
        return ()
    alone = replace(settings, adjust="none")
    out = []
    for field, value, keys in found:
        some = [replace(item, parts=tuple(_of(part, keys) for part in item.parts)) for item in measured]
        pairs = _paired(some, None, alone)[1]
        if pairs is not None:
            out.append(PairSlice(field, value, len(keys), pairs))
    p = np.array([one.pairs.columns["p_value"] for one in out])
    if len(out) and settings.adjust != "none":
        p = np.column_stack([decision.adjusted(column, "bh") for column in p.T])
    return tuple(
        replace(one, pairs=replace(one.pairs, columns=dict(one.pairs.columns) | {"p_adjusted": row}))
        for one, row in zip(out, p, strict=True)
    )


def _slices(item: Known, by: Sequence[str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """(field, value, the keys of its questions) of every slice."""
    for cut in divided(item, by, []):
        keys = np.asarray(cut.item.parts[0].questions.keys, dtype=object)
        for code, label in enumerate(cut.labels):
            yield cut.field, label, frozenset(keys[cut.codes == code])


def _of(part: Scores, keys: frozenset[str]) -> Scores:
    return taken(part, np.array([i for i, key in enumerate(part.questions.keys) if key in keys], dtype=np.intp))
