"""Random subsets of a benchmark: which questions are drawn, with which chances, and in which clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..data.clusters import CROSS
from ..data.matching import pair_questions
from ..data.notes import Note
from ..data.questions import Questions
from ..data.scores import CorpusScores, Run, Scores
from ..errors import InputError
from ..results.diagnostics import STOPPED
from ..stats.contrast import cluster_codes

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray, NamesLike


def draw(
    n: int,
    size: str | float,
    clusters: NamesLike | None = None,
    tasks: NamesLike | None = None,
    *,
    seed: int = 0,
    chances: FloatArray | None = None,
) -> IntArray:
    """Return row numbers of a random subset of n questions: whole clusters, tasks in proportion. Refuse one question.

    Args:
        n: questions.
        size: see `number_wanted`.
        clusters: (n,) names, equal for what is asked together; None: single questions.
        tasks: (n,) names; None: one task.
        seed: of the order.
        chances: (n,) probability with which each is drawn, see `drawing_chances`; None: all have the same.

    Returns:
        Their indexes, in increasing order; all n where no fewer are asked for.

    Raises:
        InputError: no such size, or a part of one question.
    """
    count = number_wanted(size, n)
    if count < 2 <= n:
        raise InputError(f"a part of {size!r} is one of {n:,} questions, which says nothing of the others: ask more")
    codes, units = (np.arange(n), n) if clusters is None else cluster_codes(clusters)
    rng = np.random.default_rng(seed)
    if chances is not None:  # systematic in a random order, task by task [Särndal, §3.6.2]
        order = rng.permutation(units)
        order = order[np.argsort(tasks_touched(codes, units, tasks)[order], kind="stable")]
        place = np.floor(rng.random() + np.cumsum(chances[np.unique(codes, return_index=True)[1]][order]))
        return np.flatnonzero(np.isin(codes, order[np.diff(place, prepend=0) > 0]))
    ranks = proportional(codes, units, tasks, rng)
    ends = np.cumsum(np.bincount(ranks[codes], minlength=units))
    return np.flatnonzero(ranks[codes] <= last_unit(ends, count))


def last_unit(ends: IntArray, target: float) -> int:
    """Return the index of the first unit (question or cluster) whose running total `ends` reaches `target`."""
    return min(int(np.searchsorted(ends, target - 1e-9)), len(ends) - 1)


def proportional(codes: IntArray, units: int, tasks: NamesLike | None, rng: np.random.Generator) -> IntArray:
    """Return (units,) a random order (rank) of the clusters in which every task is spread evenly."""
    drawn = rng.permutation(units)
    sizes = np.bincount(codes, minlength=units).astype(np.float64)
    stratum = tasks_touched(codes, units, tasks)
    drawn = drawn[np.argsort(stratum[drawn], kind="stable")]
    cum = np.cumsum(sizes[drawn]) - sizes[drawn] * rng.random(units)
    totals = np.bincount(stratum, weights=sizes)
    start = np.cumsum(totals) - totals
    position = (cum - start[stratum[drawn]]) / totals[stratum[drawn]]
    ranks = np.empty(units, dtype=np.intp)
    ranks[drawn[np.argsort(position, kind="stable")]] = np.arange(units)
    return ranks


def tasks_touched(codes: IntArray, units: int, tasks: NamesLike | None) -> IntArray:
    """Return (units,) a code for each cluster that says in which set of tasks it has questions."""
    touched: list[set[int]] = [set() for _ in range(units)]
    of_task = np.zeros(len(codes), dtype=np.intp) if tasks is None else cluster_codes(tasks)[0]
    for code, task in zip(codes.tolist(), of_task.tolist(), strict=True):
        touched[code].add(task)
    return cluster_codes([tuple(sorted(together)) for together in touched])[0]


def drawing_chances(
    size: str | float, expected: FloatArray, clusters: NamesLike | None = None, tasks: NamesLike | None = None
) -> FloatArray | None:
    """Return (n,) drawing probabilities, higher for expected scores near ½. None: all would be equal, or too few units.

    They are equal within a cluster, by its mean, and every task has its share of the part. None, which is the same
    probability for all, where no score is more uncertain than another, as with a single answer of a single reference,
    or where the part has too few questions (clusters) for a regression.

    Args:
        size: see `number_wanted`.
        expected: (n,) p, the score to be expected of each question, in [0, 1].
        clusters: (n,) names, equal for what is asked together; None: single questions.
        tasks: (n,) names; None: one task.
    """
    from ..stats.tolerances import FEWEST_UNITS

    n = len(expected)
    codes, units = (np.arange(n), n) if clusters is None else cluster_codes(clusters)
    sizes = np.bincount(codes).astype(np.float64)
    uncertain = np.bincount(codes, weights=0.5 + 0.5 * np.sqrt(expected * (1 - expected))) / sizes
    stratum, out = tasks_touched(codes, units, tasks), np.ones(units)
    for s in range(int(stratum.max()) + 1):
        left, target = stratum == s, number_wanted(size, n) / n * sizes[stratum == s].sum()
        while left.any():
            out[left] = target * uncertain[left] / float(sizes[left] @ uncertain[left])
            certain = left & (out >= 1)
            if not certain.any():
                break
            out[certain] = 1
            target -= sizes[certain].sum()
            left &= ~certain
    differ = float(np.ptp(uncertain)) > 1e-9
    return out[codes] if differ and FEWEST_UNITS - 1e-9 <= out.sum() < units else None


def number_wanted(size: str | float, n: int) -> int:
    """Return how many of n questions "20%", 0.2 or 200 means (at most n). Refuse 1, 2.5, 150% and other text.

    Raises:
        InputError: neither a share nor a number of questions from 2.
    """
    text = str(size).strip()
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    share = value < 1 or text.endswith("%") or (value == 1 and "." in text)
    if not 0 < value < float("inf") or (share and value > 1) or (not share and value != int(value)):
        raise InputError(f"a part of {size!r} is neither a share, such as 0.2 or 20%, nor a number of questions")
    if not share and value < 2:
        raise InputError(f"a part of {size!r} is one question, which says nothing of the others: 1.0 or 100% are all")
    return min(n, max(1, round(value * n)) if share else int(value))


def check_against(run: Run, task: str) -> None:
    """Refuse a baseline run that stopped early itself: a growing run is only compared with complete ones.

    Args:
        run: the finished run.
        task: as the finished run calls it.

    Raises:
        InputError: it stopped early.
    """
    drawn = next((record for record in run.drawn if record["task"] == task and record["stopped_early"]), None)
    parts: tuple[Scores | CorpusScores, ...] = (*run.scores, *run.parts, *run.corpus)
    if drawn is None and not any(part.task == task and STOPPED in part.diagnostics for part in parts):
        return
    after = f" after {drawn['n_asked']:,} of {drawn['n_total']:,} questions" if drawn is not None else ""
    raise InputError(
        f"{run.name}: on {task} this run stopped early itself{after}, because of its scores on just these questions, "
        "which are therefore a little too extreme: a difference from them would be wrong, and would be taken for real "
        "too often. Compare with a run of all questions, or of a part whose size was fixed before "
        "(--noise_sample, in Inspect noise_sample)"
    )


def clusters_of_other(questions: Questions, other: Scores, option: str) -> tuple[tuple[str, ...], str] | None:
    """Return (names, SPEC) of clusters copied from the run compared with, None if it has none. Refuse crossed ones.

    They draw the order of the questions, so every row of the new run has them as well.

    Args:
        questions: all questions of the new run's task.
        other: scores of the run compared with.
        option: what names clusters, as this harness spells it.

    Returns:
        (n,) names, where a question that `other` lacks is a cluster of its own, and their SPEC in words; None where
        `other` has no clusters.

    Raises:
        InputError: `other` is clustered in two crossed ways, of which no part of the questions has whole clusters.
    """
    if other.clusters is None:
        return None
    if any(CROSS in name for name in other.clusters):
        raise InputError(
            f"{other.task}: the run compared with clusters the questions in two crossed ways, and no part of them has "
            f"whole clusters of both: name one way with {option}, or ask all questions"
        )
    names = [f"{other.task}: question {i} alone" for i in range(len(questions))]
    pairing = pair_questions(questions, other.questions)
    for i, j in zip(pairing.rows_a, pairing.rows_b, strict=True):
        names[i] = other.clusters[j]
    return tuple(names), other.cluster_spec or "cluster"


def about_clusters(what: str, spec: str, against: str, option: str, *, refused: bool = False) -> Note:
    """Return the note that a run uses (or refuses) the clusters of the run that it is compared with.

    Args:
        what: the task or tasks.
        spec: the clusters in words (see `clusters_of_other`).
        against: name of the run compared with.
        option: see `clusters_of_other`.
        refused: whether the user said `none`, so that they are not used.
    """
    if refused:
        said = (
            f"{against} is clustered by {spec}, and {option} none counts the questions as independent, in "
            "the looks too. If they are related, the standard errors are too small"
        )
        return Note("clusters_refused", said).of(what)
    said = (
        f"clustered by {spec}, as {against} is: whole clusters are asked, and every row counts them ({option} names "
        "others, or none)"
    )
    return Note("clusters_of_the_other", said).of(what)
