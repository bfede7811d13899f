"""What a comparison is the mean of: A and B on each question that both have scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.matching import pair
from ..data.scores import Run, Scores
from ..errors import InputError
from ..results.rows import ByQuestion
from ..stats.contrast import question_stats
from .comparison import matched_scores


def by_question(pairs: Sequence[tuple[Run, Run]]) -> tuple[ByQuestion, ...]:
    """Every task × metric × scorer that both runs of a pair measured, question by question; groups have none."""
    out = []
    for run_a, run_b in pairs:
        try:
            matched = matched_scores(run_a, run_b, alone=True)[0]
        except InputError:  # groups and corpus metrics alone are shared
            continue
        out += [_one(*parts, run_a, run_b) for parts in matched]
    return tuple(out)


def _one(one: Scores, other: Scores, run_a: Run, run_b: Run) -> ByQuestion:
    found = pair(one.questions, other.questions)
    at_a, at_b = np.array(found.rows_a, dtype=np.intp), np.array(found.rows_b, dtype=np.intp)
    with np.errstate(invalid="ignore"):
        a, b = question_stats(one.values).mean[at_a], question_stats(other.values).mean[at_b]
    keep = np.flatnonzero(np.isfinite(a) & np.isfinite(b))
    at_a, at_b = at_a[keep], at_b[keep]

    def of_either(mine: Sequence[str] | None, theirs: Sequence[str] | None) -> list[str] | None:
        values, at = (mine, at_a) if mine is not None else (theirs, at_b)
        return None if values is None else [values[i] for i in at]

    return ByQuestion(
        one.task,
        one.metric,
        one.scorer,
        run_a.model,
        run_b.model,
        run_a.name,
        run_b.name,
        keys=[one.questions.keys[i] for i in at_a],
        texts=of_either(one.questions.shown(), other.questions.shown()),
        clusters=of_either(one.clusters, other.clusters),
        mean_a=a[keep],
        mean_b=b[keep],
    )
