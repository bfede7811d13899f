"""Every pair of models on every slice of a benchmark's questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..analysis.known import WithFields, taken
from ..analysis.slices import divided
from ..data.matching import Pairing, pair
from ..data.scores import Scores
from ..results.arena import BenchmarkResult, PairSlice
from ..settings import Settings
from ..stats import decision
from .benchmark import MeasuredRun, grid_of, pairs_of

MOST = 50_000
"""Pairs × slices that are computed; of more, `compare` has those of any two models."""


def pair_slices(
    board: BenchmarkResult, measured: Sequence[MeasuredRun], by: Sequence[str], settings: Settings
) -> tuple[PairSlice, ...]:
    """A − B of all pairs by slice, as `compare` has it; p-values adjusted over the slices of each pair.

    The slices are those of the run with the most questions; none where there are too many of them.
    """
    widest = max(measured, key=lambda item: len(item.parts[0].questions))
    fields = widest.parts[0].questions.fields
    if fields is None or len(widest.parts) > 1:
        return ()
    found = list(_slices(WithFields(widest.parts, (widest.run,), fields), by))
    if not found or len(found) * len(board.pairs) > MOST:
        return ()
    alone = replace(settings, adjust="none")
    questions = widest.parts[0].questions
    places = [pair(questions, item.parts[0].questions) for item in measured]
    out = []
    for field, value, keys in found:
        chosen = [key in keys for key in questions.keys]
        some = [
            replace(item, parts=(_of(item.parts[0], same, chosen),))
            for item, same in zip(measured, places, strict=True)
        ]
        pairs = pairs_of(some, grid_of(some, None)[0], None, alone)[0]
        if pairs is not None:
            out.append(PairSlice(field, value, len(keys), pairs))
    p = np.array([one.pairs.columns["p_value"] for one in out])
    if len(out) and settings.adjust != "none":
        p = np.column_stack([decision.adjusted(column, "bh") for column in p.T])
    return tuple(
        replace(one, pairs=replace(one.pairs, columns=dict(one.pairs.columns) | {"p_adjusted": row}))
        for one, row in zip(out, p, strict=True)
    )


def _slices(item: WithFields, by: Sequence[str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """(field, value, the keys of its questions) of every slice."""
    for cut in divided(item, by, []):
        keys = np.asarray(cut.item.parts[0].questions.keys, dtype=object)
        for code, label in enumerate(cut.labels):
            yield cut.field, label, frozenset(keys[cut.codes == code])


def _of(part: Scores, same: Pairing, chosen: Sequence[bool]) -> Scores:
    rows = sorted(j for i, j in zip(same.rows_a, same.rows_b, strict=True) if chosen[i])
    return taken(part, np.array(rows, dtype=np.intp))
