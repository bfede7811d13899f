"""All that questions that are asked twice under several ids do to a standard error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..data.doubled import DOUBLED, clusters_with_doubles, n_doubled
from ..data.native_values import are_zero_one
from ..data.notes import Note
from ..data.scores import Scores
from ..data.units import PERCENT, Scale, decimals
from ..errors import parameter

BY_WORDS = "the words of the question"


def clustered_by_words(part: Scores) -> Scores | None:
    """Return the scores with questions of equal text put into one cluster. None if no clusters change."""
    clusters = clusters_with_doubles(part.questions, part.clusters)
    return None if clusters is None else replace(part, clusters=clusters, cluster_spec=BY_WORDS)


def doubled_note(part: Scores, se: float | None, again: Callable[[Scores], float | None]) -> list[Note]:
    """Return a note with the standard error if questions of equal text were one cluster. [] if none are equal.

    Args:
        part: scores of one run, with its doubled questions.
        se: the standard error of the row.
        again: the standard error of the row with other clusters.
    """
    clustered = clustered_by_words(part)
    if clustered is None or DOUBLED not in part.diagnostics:
        return []
    spec, one = part.questions.by_words, n_doubled(part.questions)
    how = f"with {parameter('cluster', spec)}" if spec and part.clusters is None else "with clusters by their words"
    other = again(clustered)
    scale = PERCENT if are_zero_one([part]) else Scale()
    found = [scale.text(x, decimals(se) + 1, unit=True) for x in (other, se) if x is not None]
    change = f" {how} the standard error is {found[0]} and not {found[1]}" if len(found) == 2 else ""
    verbs = ("is", "counts") if one == 1 else ("are", "count")
    same = f"{one:,} of {len(part.questions):,} questions {verbs[0]} the same as another one"
    said = f"{same}, under another id, and {verbs[1]} as independent:{change or f' cluster {how}'}"
    return [Note("doubled_questions", f"{part.task} {part.metric}: {said}", part.task)]
