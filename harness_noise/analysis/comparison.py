"""Two runs, task by task, group by group and question by question: who is compared with whom, in which family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..arrays import IntArray, picked
from ..data.native_values import agreed_pairs
from ..data.scores import CorpusScores, Run, Scores
from ..errors import InputError, NothingSharedError, some_of
from ..io.joining import check_clusters
from ..results.forms import merge_notes
from ..results.rows import ByQuestion, Comparison, Difference, Flip
from ..settings import Settings
from ..stats.contrast import question_stats
from .difference import Compared, run_difference
from .repeats import copies
from .rows import NO_DIRECTION, RowDecision, decided
from .sample import group_parts, is_scored, named_repeats, scored_pairs, texts_of

AnyScores = TypeVar("AnyScores", Scores, CorpusScores)


def compare_runs(pairs: Sequence[tuple[Run, Run]], settings: Settings, n_questions: int = 0) -> Comparison:
    """A − B for every pair of runs and everything that both measured; p-values adjusted over families of rows.

    Args:
        pairs: (A, B) runs; rows of all of them are in the families.
        settings: the test, its level and the rest.
        n_questions: how many of the questions that flipped most to list for each row.

    What two runs measured on different questions is left out with a note, if they share anything else.

    Raises:
        InputError: nothing in common; says what each run has.
    """
    settings.check("compare")
    check_clusters(settings.cluster, [run for pair in pairs for run in pair])
    rows: list[RowDecision] = []
    flips: list[Flip] = []
    named, notes = agreed_pairs(pairs)
    for run_a, run_b in named:
        of_pair, listed, remarks = _of_pair(run_a, run_b, settings, n_questions)
        rows += [row.named(run_a=run_a.name, run_b=run_b.name) for row in of_pair]
        flips += listed
        notes += [*run_a.notes, *run_b.notes, *remarks]
    notes += _no_direction(rows)
    return Comparison(
        settings.to_dict(),
        tuple(decided(rows, settings)),
        merge_notes(notes),
        tuple(flips),
        families=tuple(row.family for row in rows),
        skews=tuple(row.skew for row in rows),
    )


def _of_pair(
    run_a: Run, run_b: Run, settings: Settings, n_questions: int
) -> tuple[list[RowDecision], list[Flip], list[str]]:
    """The rows of two runs, the questions that flipped most, and notes."""
    groups = [
        (group, parts_a, parts_b)
        for group in run_a.groups
        if (parts_a := group_parts(run_a, group)) and (parts_b := group_parts(run_b, group))
    ]
    # a group's subtasks are a family, the smallest group's where there are several; all else is the first family
    by_size = sorted((group for group, _, _ in groups), key=lambda group: -len(group.tasks))
    family = {task: group.name for group in by_size for task in group.tasks}
    wholes = _both(run_a.corpus, run_b.corpus)
    matched, remarks = matched_scores(run_a, run_b, alone=not groups and not wholes)
    notes = [*remarks, *copies((run_a, run_b))]
    notes += named_repeats([part for parts in matched for part in parts], settings)
    compared: list[Compared | tuple[CorpusScores, CorpusScores]] = [
        *(Compared([part_a], [part_b], run_a, run_b) for part_a, part_b in matched),
        *(Compared(parts_a, parts_b, run_a, run_b, group) for group, parts_a, parts_b in groups),
        *wholes,
    ]
    rows: list[RowDecision] = []
    flips: list[Flip] = []
    left_out: list[NothingSharedError] = []
    for what in compared:
        try:
            if isinstance(what, Compared):
                row, said = run_difference(what, settings)
            else:
                from .corpus import corpus_difference

                row, said = corpus_difference(*what, run_a, run_b, settings), []
        except NothingSharedError as error:  # one task without a shared question must not take the others with it
            left_out.append(error)
            continue
        of_group = isinstance(what, Compared) and what.group is not None
        rows.append(row if of_group else replace(row, family=family.get(row.fields["task"], "")))
        notes += said
        if isinstance(what, Compared) and not of_group and n_questions and not settings.unpaired:
            listed, remarks = flipped(what.parts_a[0], what.parts_b[0], (run_a, run_b), n_questions)
            flips += listed
            notes += remarks
    if left_out and not rows:
        raise left_out[0]
    return rows, flips, [*notes, *(f"left out: {error}" for error in left_out)]


def _no_direction(rows: Sequence[RowDecision]) -> list[str]:
    """A note on the metrics of which no run says whether higher or lower is better."""
    unknown = dict.fromkeys(row.fields["metric"] for row in rows if row.fields["higher_is_better"] is None)
    return [f"{', '.join(unknown)}: {NO_DIRECTION}"] if unknown else []


def _both(a: Iterable[AnyScores], b: Iterable[AnyScores]) -> list[tuple[AnyScores, AnyScores]]:
    """What both have of the same task, metric and scorer, in A's order."""
    where = {part.key: part for part in b}
    return [(part, where[key]) for part in a if (key := part.key) in where]


def matched_scores(run_a: Run, run_b: Run, alone: bool) -> tuple[list[tuple[Scores, Scores]], list[str]]:
    """Scores of the same task, metric and scorer; or the only one of each run.

    `alone`: nothing else (a group, a corpus metric) can be compared.
    """
    matched = _both(run_a.scores, run_b.scores)
    if matched or not alone:
        kept, again = _each_once(matched)
        return kept, [*_only(run_a, run_b), *_only(run_b, run_a), *again]
    if len(run_a.scores) == len(run_b.scores) == 1:
        part_a, part_b = run_a.scores[0], run_b.scores[0]
        return [(part_a, part_b)], [f"compared {part_a.title} of {run_a.name} with {part_b.title} of {run_b.name}"]
    for run in (run_a, run_b):
        if not run.scores and run.skipped:
            reasons = "; ".join(dict.fromkeys(skip.reason for skip in run.skipped[:3]))
            bare = (
                " Two bare numbers, such as 0.71 and 0.68, are compared with the noise of their benchmark in "
                "`references`"
            )
            raise InputError(
                f"{run.name} has no answers that can be compared question by question ({reasons})."
                + bare * any(skip.native is not None for skip in run.skipped)
            )
    raise InputError(
        f"{run_a.name} and {run_b.name} measured nothing in common. The first has {_list(run_a.scores)}; the second "
        f"has {_list(run_b.scores)}. Name one of each with `tasks`, `metrics` and `scorers`"
    )


def _each_once(matched: Sequence[tuple[Scores, Scores]]) -> tuple[list[tuple[Scores, Scores]], list[str]]:
    """Without the rows that a log has under two names (`scorer/Metric` and `Metric`); a note of each."""
    kept: list[tuple[Scores, Scores]] = []
    notes = []
    for both in matched:
        same = next((old for old in kept if all(map(_same_quantity, old, both))), None)
        if same is None:
            kept.append(both)
        else:
            notes.append(f"{both[0].title} is {same[0].title} under another name: the same scores are tested once")
    return kept, notes


def _same_quantity(part: Scores, other: Scores) -> bool:
    names = [scores.scorer.rpartition("/")[2] for scores in (part, other)]
    return (
        (part.task, part.metric, names[0]) == (other.task, other.metric, names[1])
        and part.scorer != other.scorer
        and part.questions.keys == other.questions.keys
        and np.array_equal(part.values, other.values, equal_nan=True)
    )


def _only(run: Run, other: Run) -> list[str]:
    """What one run alone measured: nobody should take the table for all there is."""
    there = {part.key for part in other.scores}
    lone = tuple(part for part in run.scores if part.key not in there)
    return [f"only {run.name} has {_list(lone)}: not compared"] if lone else []


def _list(scores: Sequence[Scores]) -> str:
    return some_of([part.title for part in scores], 6, "; ") or "no scores"


def difference_of_scores(a: Scores, b: Scores, settings: Settings) -> Difference:
    """A − B of scores that come from arrays.

    Raises:
        ValueError: other numbers of questions, or none with a score in both.
    """
    if not settings.unpaired and len(a.questions) != len(b.questions):
        raise ValueError(f"{len(a.questions)} questions in a and {len(b.questions)} in b")
    if not settings.unpaired and not np.any(is_scored(a) & is_scored(b)):
        raise ValueError("no question has a score in both a and b")
    run_a, run_b = Run(model="A", name="a", harness="array"), Run(model="B", name="b", harness="array")
    return decided([run_difference(Compared([a], [b], run_a, run_b), settings)[0]], settings)[0]


def _each_question(part_a: Scores, part_b: Scores, run_a: Run, run_b: Run) -> tuple[ByQuestion, IntArray, IntArray]:
    """The questions that both have scored, with their rows in A and in B."""
    pairing = scored_pairs(part_a, part_b)
    at_a, at_b = np.array(pairing.rows_a, dtype=np.intp), np.array(pairing.rows_b, dtype=np.intp)

    shown = part_a.questions.shown()

    def of_either(mine: Sequence[str] | None, theirs: Sequence[str] | None) -> Sequence[str] | None:
        column: Sequence[str] | None = picked(theirs, at_b) if mine is None else picked(mine, at_a)
        return column

    questions = ByQuestion(
        part_a.task,
        part_a.metric,
        part_a.scorer,
        run_a.model,
        run_b.model,
        run_a.name,
        run_b.name,
        keys=picked(part_a.questions.keys, at_a),
        texts=of_either(shown, part_b.questions.shown() if shown is None else None),
        clusters=of_either(part_a.clusters, part_b.clusters),
        mean_a=question_stats(part_a.values).mean[at_a],
        mean_b=question_stats(part_b.values).mean[at_b],
    )
    return questions, at_a, at_b


def flipped(part_a: Scores, part_b: Scores, runs: tuple[Run, Run], limit: int) -> tuple[list[Flip], list[str]]:
    """At most `limit` questions, the largest difference first; of how many, and why their texts cannot be shown, if so.

    Whole questions, targets and answers are read from the logs now; no number depends on them.
    """
    each, at_a, at_b = _each_question(part_a, part_b, *runs)
    order, differ = each.most_flipped(limit), len(each.most_flipped(len(each.keys)))
    notes = []
    if differ:
        what = "question" if differ == 1 else "questions"
        notes.append(
            f"{part_a.task}, {part_a.metric}: {len(order)} of the {differ} {what} on which {runs[0].model} and "
            f"{runs[1].model} differ"
        )
    texts_a = texts_of(part_a, at_a[order].tolist(), notes, f"the answers of {runs[0].model} are not shown")
    texts_b = texts_of(part_b, at_b[order].tolist(), notes, f"the answers of {runs[1].model} are not shown")
    flips = []
    for k, a, b in zip(order, texts_a, texts_b, strict=True):
        flip, target = each.flip(k), b.target if a.target is None else a.target
        text = a.text or b.text or flip.text
        flips.append(replace(flip, text=text, target=target, answers_a=a.answers, answers_b=b.answers))
    return flips, notes


def by_question(pairs: Sequence[tuple[Run, Run]]) -> tuple[ByQuestion, ...]:
    """Every task × metric × scorer that both runs of a pair measured, question by question; groups have none."""
    out = []
    for runs in pairs:
        with suppress(InputError):  # groups and corpus metrics alone are shared
            out += [_each_question(*parts, *runs)[0] for parts in matched_scores(*runs, alone=True)[0]]
    return tuple(out)
