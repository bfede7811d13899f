"""The questions on which two runs differ most, with what their logs say of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.matching import pair
from ..data.questions import QuestionText
from ..data.scores import Run, Scores
from ..errors import InputError
from ..results.rows import Flip
from ..stats.contrast import question_stats


def flipped(one: Scores, other: Scores, runs: tuple[Run, Run], limit: int) -> tuple[list[Flip], list[str]]:
    """At most `limit` questions, the largest difference first; of how many, and why their texts cannot be shown, if so.

    Whole questions, targets and answers are read from the logs now; no number depends on them.
    """
    found = pair(one.questions, other.questions)
    with np.errstate(invalid="ignore"):
        mean_a = question_stats(one.values).mean[found.rows_a]
        mean_b = question_stats(other.values).mean[found.rows_b]
    d = mean_a - mean_b
    order = np.argsort(-np.abs(d), kind="stable")
    differ = order[np.isfinite(d[order]) & (d[order] != 0)]
    order = differ[:limit]
    rows_a, rows_b = ([int(rows[k]) for k in order] for rows in (found.rows_a, found.rows_b))
    notes = []
    if len(differ):
        what = "question" if len(differ) == 1 else "questions"
        notes.append(
            f"{one.task}, {one.metric}: {len(order)} of the {len(differ)} {what} on which {runs[0].model} and "
            f"{runs[1].model} differ"
        )
    told_a, told_b = _told(one, runs[0], rows_a, notes), _told(other, runs[1], rows_b, notes)
    texts, rows = one.questions.shown(), rows_a
    if not texts:
        texts, rows = other.questions.shown(), rows_b
    flips = [
        Flip(
            one.task,
            one.metric,
            one.scorer,
            runs[0].model,
            runs[1].model,
            question=one.questions.keys[i],
            text=a.text or b.text or (texts[row] if texts else None),
            cluster=one.clusters[i] if one.clusters else None,
            mean_a=float(mean_a[k]),
            mean_b=float(mean_b[k]),
            diff=float(d[k]),
            target=b.target if a.target is None else a.target,
            answers_a=a.answers,
            answers_b=b.answers,
        )
        for k, i, row, a, b in zip(order, rows_a, rows, told_a, told_b, strict=True)
    ]
    return flips, notes


def _told(item: Scores, run: Run, rows: Sequence[int], notes: list[str]) -> Sequence[QuestionText]:
    """What the log says of these questions, nothing where it cannot be read."""
    nothing = [QuestionText()] * len(rows)
    if item.questions.log is None or not rows:
        return nothing
    try:
        return item.questions.log.read(rows, item.scorer)
    except InputError as error:
        notes.append(f"the answers of {run.model} are not shown: {error}")
        return nothing
