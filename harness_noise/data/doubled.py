"""Questions that are asked twice under several ids: their answers are not independent observations.

Two questions are one where everything is equal that the model is given and the answer is held against: messages,
choices, attachments and target. They are marked and never clustered by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .clusters import CROSS
from .questions import Questions, maybe_repeated
from .scores import Run, Scores

DOUBLED = "doubled_questions"
"""The code of a row some of whose questions are the same, and in no cluster together."""


def find_doubles(*columns: Sequence[str] | None) -> tuple[tuple[int, ...], ...]:
    """Return groups of two or more rows equal in all these columns of known hashes. () if a column is None.

    Args:
        *columns: (n,) hashes of parts of the input, "" for one that is not known.
    """
    known = [column for column in columns if column is not None]
    if len(known) < len(columns) or not known:
        return ()
    n = len(known[0])
    fewest = min((maybe_repeated(column) for column in known), key=len)
    some = known if len(fewest) == n else [[column[i] for i in fewest] for column in known]
    rows: dict[tuple[str, ...], list[int]] = {}
    for i, what in zip(fewest, zip(*some, strict=True), strict=True):
        if all(map(bool, what)):
            rows.setdefault(what, []).append(i)
    return tuple(tuple(same) for same in rows.values() if len(same) > 1)


def clusters_with_doubles(questions: Questions, clusters: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return (n,) cluster names with questions of equal input in one cluster. None if none change or are crossed.

    Crossed clusters are left alone.
    """
    own = list(questions.keys if clusters is None else clusters)
    if any(CROSS in name for name in clusters or ()):
        return None
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while (above := root.get(name, name)) != name:
            name = above
        return name

    for same in questions.doubles:
        for i in same[1:]:
            a, b = find(own[same[0]]), find(own[i])
            if a != b:
                root[b] = a
    return tuple(map(find, own)) if root else None


def n_doubled(questions: Questions) -> int:
    """Return the number of questions whose input equals that of an earlier question."""
    once = clusters_with_doubles(questions, None)
    return 0 if once is None else len(once) - len(set(once))


LEAST = 0.01
"""Share by which doubled questions must be able to raise the variance. One pair among more than 200 cannot."""


def _doubles_matter(questions: Questions) -> bool:
    """Return True if enough questions are duplicates to raise the variance of the mean noticeably."""
    return sum(len(same) * (len(same) - 1) for same in questions.doubles) >= LEAST * len(questions)


def mark_doubled(run: Run) -> Run:
    """Return the run with code `doubled_questions` on scores with enough equal questions in different clusters."""

    def coded(part: Scores) -> Scores:
        if DOUBLED in part.diagnostics or not part.questions.doubles or not _doubles_matter(part.questions):
            return part
        if clusters_with_doubles(part.questions, part.clusters) is None:
            return part
        return replace(part, diagnostics=(*part.diagnostics, DOUBLED))

    scores, parts = tuple(map(coded, run.scores)), tuple(map(coded, run.parts))
    return replace(run, scores=scores, parts=parts)
