"""Two runs, task by task, group by group and question by question: who is compared with whom, in which family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import extras
from ..arrays import IntArray, NamesLike, picked
from ..data.native_values import agreed_pairs, are_zero_one
from ..data.notes import NO_ERROR_BAR, Note, merge_notes
from ..data.scores import CorpusScores, Group, Run, Scores
from ..errors import InputError, NothingSharedError, parameter, some_of
from ..io.first_answers import first_of
from ..io.joining import check_clusters
from ..results.diagnostics import NOT_ASKED
from ..results.forms import finite
from ..results.rows import ByQuestion, Comparison, Difference, Flip
from ..settings import Settings
from ..stats.contrast import question_stats
from ..stats.decision import OneSided
from .difference import Compared, run_difference
from .doubled import doubled_note
from .otherwise import would_change
from .ranges import zeros_below
from .recorded import correction
from .repeats import copy_notes
from .rows import NO_DIRECTION, NO_WHOLE, RowDecision, decide_rows, null_row
from .sample import as_scores, is_scored, members_of, named_repeats, scored_pairs, texts_of
from .scoring import Checked, alike_note

AnyScores = TypeVar("AnyScores", Scores, CorpusScores)


def compare_runs(pairs: Sequence[tuple[Run, Run]], settings: Settings, n_questions: int = 0) -> Comparison:
    """Return A − B of each given (A, B) pair of runs, for every metric that both have, with p adjusted per family.

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
    alone: list[Compared | tuple[CorpusScores, CorpusScores]] = []
    flips: list[Flip] = []
    named, notes = agreed_pairs(pairs)
    for run_a, run_b in named:
        of_pair, listed, remarks, each_what = _compare_pair(run_a, run_b, settings, n_questions)
        alone += each_what
        if (stopped := correction((run_a, run_b))) is not None:
            of_pair, why_not = stopped.correct(of_pair, each_what, settings)
            remarks = [*remarks, *why_not]
        rows += [row.named(run_a=run_a.name, run_b=run_b.name) for row in of_pair]
        flips += listed
        notes += [*run_a.notes, *run_b.notes, *remarks]
    notes += _no_direction(rows)
    final = decide_rows(rows, settings)
    asked = [i for i, row in enumerate(rows) if NOT_ASKED not in row.codes] or list(range(len(rows)))
    if len(asked) == 1 and isinstance(what := alone[asked[0]], Compared):
        final[asked[0]] = would_change(final[asked[0]], rows[asked[0]], what, settings)
    return Comparison(
        settings.to_dict(),
        tuple(final),
        merge_notes(notes),
        tuple(flips),
        families=tuple(row.family for row in rows),
        # limits that allow for early stopping have no other p
        one_sided=tuple(None if row.recorded else OneSided(*row.decision.one_sided[0].tolist()) for row in rows),
        skews=tuple(row.skew for row in rows),
    )


def _compare_pair(
    run_a: Run, run_b: Run, settings: Settings, n_questions: int
) -> tuple[list[RowDecision], list[Flip], list[Note], list[Compared | tuple[CorpusScores, CorpusScores]]]:
    """Return rows of A − B, questions most flipped, notes, scores behind the rows. Refuse if there is no row."""
    compared, notes = compared_of(run_a, run_b)
    wholes = _shared_scores(run_a.corpus, run_b.corpus)
    # a group's subtasks are a family, the smallest group's where there are several; all else is the first family
    groups = [what.group for what in compared if what.group is not None]
    by_size = sorted(groups, key=lambda group: -len(group.tasks))
    family = {task: group.name for group in by_size for task in group.tasks}
    notes += copy_notes((run_a, run_b))
    alone = [part for what in compared if what.group is None for part in what.parts]
    notes += [*named_repeats(alone, settings), *zeros_below(alone, settings)]
    rows: list[RowDecision] = []
    flips: list[Flip] = []
    left_out: list[NothingSharedError] = []
    each_what: list[Compared | tuple[CorpusScores, CorpusScores]] = []
    each: list[Compared | tuple[CorpusScores, CorpusScores]] = [*compared, *wholes]
    for what in each:
        try:
            if isinstance(what, Compared):
                row, said = run_difference(what, settings)
                said = [*said, *_doubled_notes(what, row, settings)]
            else:
                row, said = _whole_difference(*what, run_a, run_b, settings)
        except NothingSharedError as error:  # one task without a shared question must not take the others with it
            left_out.append(error)
            continue
        each_what.append(what)
        of_group = isinstance(what, Compared) and what.group is not None
        row = row if of_group else replace(row, family=family.get(row.fields["task"], ""))
        # a metric that nobody asked for must not weaken those that were asked for
        rows.append(replace(row, family=f"{row.family} {NOT_ASKED}") if NOT_ASKED in row.codes else row)
        notes += said
        if isinstance(what, Compared) and not of_group and n_questions and not settings.unpaired:
            listed, remarks = most_flipped(what.parts_a[0], what.parts_b[0], (run_a, run_b), n_questions)
            flips += listed
            notes += remarks
    if left_out and not rows:
        raise left_out[0]
    notes += [Note("nothing_shared", f"left out: {error}") for error in left_out]
    return rows, flips, notes, each_what


def _whole_difference(
    a: CorpusScores, b: CorpusScores, run_a: Run, run_b: Run, settings: Settings
) -> tuple[RowDecision, list[Note]]:
    """Return the row of A − B of a metric that is not a mean, null with a note where nothing installed estimates it."""
    if (whole := extras.whole()) is not None:
        return whole.corpus_difference(a, b, run_a, run_b, settings), []
    return null_row(a, b, run_a, run_b, settings), [Note(NO_ERROR_BAR, NO_WHOLE).of(a.task, a.metric)]


def _doubled_notes(what: Compared, row: RowDecision, settings: Settings) -> list[Note]:
    """Return a note with the SE of A − B if questions of equal text were one cluster. [] if none, or of a group."""
    side = next((name for name in ("parts_a", "parts_b") if getattr(what, name)[0].questions.doubles), None)
    if what.group is not None or side is None or (side == "parts_b" and what.parts_a[0].clusters is not None):
        return []

    def again(part: Scores) -> float | None:
        other: dict[str, Any] = {side: [replace(part, answers=None, gradings=None)]}
        se: float = run_difference(replace(what, **other), settings)[0].fields["se"]
        return finite(se)

    return doubled_note(getattr(what, side)[0], finite(row.fields["se"]), again)


def compared_of(run_a: Run, run_b: Run) -> tuple[list[Compared], list[Note]]:
    """Return tasks and groups that both runs measured (else the only score of each), and notes. Refuse if none."""
    groups: list[Compared] = []
    notes: list[Note] = []
    mine, theirs = ({group.key: group for group in run.groups} for run in (run_a, run_b))
    for key in dict.fromkeys((*mine, *theirs)):
        common, said = _common_group(run_a, run_b, mine.get(key), theirs.get(key))
        groups += common
        notes += said
    matched, remarks = matched_scores(run_a, run_b, alone=not groups and not _shared_scores(run_a.corpus, run_b.corpus))
    tasks = [Compared([part_a], [part_b], run_a, run_b) for part_a, part_b in matched]
    checked: dict[tuple[int, int], Checked] = {}
    alike = [note for pair in matched if (note := alike_note(*pair)) is not None]
    return [replace(what, scoring=checked) for what in (*tasks, *groups)], [*remarks, *notes, *alike]


def _common_group(run_a: Run, run_b: Run, of_a: Group | None, of_b: Group | None) -> tuple[list[Compared], list[Note]]:
    """Restrict a task group to the tasks that both runs have. Return it ([] if none) and notes on the others.

    A run that has no such group needs the scores of all its tasks.
    """
    group = of_a or of_b
    assert group is not None
    groups = [each or group for each in (of_a, of_b)]
    sides = [
        {part.task: part for part in members_of(run, each, each.tasks)}
        for run, each in zip((run_a, run_b), groups, strict=True)
    ]
    common = [task for task in sides[0] if task in sides[1]]
    if (of_a is None or of_b is None) and len(common) < len(group.tasks):
        return [], []
    if not common:
        both = f"{run_a.name} and {run_b.name} have no task of it in common"
        left = Note("nothing_shared", f"{group.name} {group.metric}: left out: {both}", group.name)
        return [], [left] if all(sides) else []
    only = [[part for task, part in mine.items() if task not in theirs] for mine, theirs in (sides, sides[::-1])]
    parts_a, parts_b = ([side[task] for task in common] for side in sides)
    what = Compared(parts_a, parts_b, run_a, run_b, group.over(common), (n_scored(only[0]), n_scored(only[1])))
    return [what], note_partial_group(what, only, "group_in_part")


def n_scored(parts: Iterable[Scores]) -> int:
    """Return how many questions of these scores have one."""
    return sum(int(is_scored(part).sum()) for part in parts)


def note_partial_group(what: Compared, only: Sequence[Sequence[Scores]], code: str) -> list[Note]:
    """Return a note that names a group's (or overall row's) tasks that only one of two runs has. [] if none."""
    lone = [
        f"{some_of([part.task for part in parts], 4)} ({n_scored(parts):,} questions), which only {run.name} has"
        for parts, run in zip(only, (what.run_a, what.run_b), strict=True)
        if parts
    ]
    if not lone:
        return []
    n = len(what.parts_a)
    tasks = "the one task" if n == 1 else f"the {n} tasks"
    about = f"{what.task} {what.parts_a[0].metric}"
    said = f"{about}: compared over {tasks} that both runs have, without {' and without '.join(lone)}"
    return [Note(code, said, what.task)]


def _no_direction(rows: Sequence[RowDecision]) -> list[Note]:
    """Return a note naming the metrics for which no run states if higher or lower is better. [] if none."""
    unknown = dict.fromkeys(row.fields["metric"] for row in rows if row.fields["higher_is_better"] is None)
    return [Note("no_direction", f"{', '.join(unknown)}: {NO_DIRECTION}")] if unknown else []


def _shared_scores(a: Iterable[AnyScores], b: Iterable[AnyScores]) -> list[tuple[AnyScores, AnyScores]]:
    """Match two runs' scores by task, metric and scorer: return (A's, B's) pairs of those that both have."""
    where = {part.key: part for part in b}
    return [(part, where[key]) for part in a if (key := part.key) in where]


def matched_scores(run_a: Run, run_b: Run, alone: bool) -> tuple[list[tuple[Scores, Scores]], list[Note]]:
    """Return (A, B) scores of equal key, and notes. If none: [], or with `alone` the only one of each run, else refuse.

    `alone`: nothing else (a group, a corpus metric) can be compared.
    """
    matched = _shared_scores(run_a.scores, run_b.scores)
    if matched or not alone:
        kept, again = _without_aliases(matched)
        return kept, [*_missing_in_other(run_a, run_b), *_missing_in_other(run_b, run_a), *again]
    if len(run_a.scores) == len(run_b.scores) == 1:
        part_a, part_b = run_a.scores[0], run_b.scores[0]
        said = f"compared {part_a.title} of {run_a.name} with {part_b.title} of {run_b.name}"
        return [(part_a, part_b)], [Note("named_differently", said)]
    for run in (run_a, run_b):
        if not run.scores and run.skipped:
            reasons = "; ".join(dict.fromkeys(skip.reason for skip in run.skipped[:3]))
            bare = (
                " Two bare numbers, such as 0.71 and 0.68, are compared with the noise of their benchmark in `profile`"
            )
            raise InputError(
                f"{run.name} has no answers that can be compared question by question ({reasons})."
                + bare * any(skip.native is not None for skip in run.skipped)
            )
    raise NothingSharedError(
        f"{run_a.name} and {run_b.name} measured nothing in common. The first has {_list(run_a.scores)}. The second "
        f"has {_list(run_b.scores)}. Name one of each: {_options_for_one_pair(run_a.scores, run_b.scores)}"
    )


def _options_for_one_pair(a: Sequence[Scores], b: Sequence[Scores]) -> str:
    """Return options for a message, such as `metrics=[…]`, that select the first scores of A and of B only."""
    if not (a and b):
        return "`tasks`, `metrics` and `scorers`"
    names = ("metric", "task", "scorer")
    for used in (names[:1], names[:2], names):
        wanted = {name: list(dict.fromkeys(getattr(side[0], name) for side in (a, b))) for name in used}
        left = [[part for part in side if all(getattr(part, name) in wanted[name] for name in used)] for side in (a, b)]
        if max(map(len, left)) == 1:
            break
    return " ".join(parameter(f"{name}s", values) for name, values in wanted.items())


def _without_aliases(matched: Sequence[tuple[Scores, Scores]]) -> tuple[list[tuple[Scores, Scores]], list[Note]]:
    """Drop pairs equal to an earlier one but for their scorers' paths. Return the kept pairs and a note per drop."""
    kept: list[tuple[Scores, Scores]] = []
    notes = []
    for both in matched:
        same = next((old for old in kept if all(map(_same_quantity, old, both))), None)
        if same is None:
            kept.append(both)
        else:
            said = f"{both[0].title} is {same[0].title} under another name: the same scores are tested once"
            notes.append(Note("two_names", said, both[0].task))
    return kept, notes


def _same_quantity(part: Scores, other: Scores) -> bool:
    names = [scores.scorer.rpartition("/")[2] for scores in (part, other)]
    return (
        (part.task, part.metric, names[0]) == (other.task, other.metric, names[1])
        and part.scorer != other.scorer
        and part.questions.keys == other.questions.keys
        and np.array_equal(part.values, other.values, equal_nan=True)
    )


def _missing_in_other(run: Run, other: Run) -> list[Note]:
    """Return a note on the task metrics that `run` has and `other` lacks. [] if there are none."""
    there = {part.key for part in other.scores}
    lone = tuple(part for part in run.scores if part.key not in there)
    return [Note("only_one_has", f"only {run.name} has {_list(lone)}: not compared")] if lone else []


def _list(scores: Sequence[Scores]) -> str:
    return some_of([part.title for part in scores], 6, "; ") or "no scores"


def difference_of_arrays(
    a: ArrayLike,
    b: ArrayLike,
    clusters: NamesLike | None,
    crossed: tuple[NamesLike, NamesLike] | None,
    settings: Settings,
) -> Difference:
    """Return A − B with noise for two score arrays on the same questions. `clusters` holds for both."""
    each = as_scores(a, clusters, settings.missing, crossed=crossed), as_scores(b, missing=settings.missing)
    return difference_of_scores(first_of(each[0]), first_of(each[1]), settings)


def difference_of_scores(a: Scores, b: Scores, settings: Settings) -> Difference:
    """Return A − B with verdict of arrays' `Scores`. Match by position and refuse other lengths, unless unpaired.

    Raises:
        ValueError: other numbers of questions, or none with a score in both.
    """
    if not settings.unpaired and len(a.questions) != len(b.questions):
        raise ValueError(f"{len(a.questions)} questions in a and {len(b.questions)} in b")
    run_a, run_b = Run(model="A", name="a", harness="array"), Run(model="B", name="b", harness="array")
    try:
        row, _ = run_difference(Compared([a], [b], run_a, run_b), settings)
    except NothingSharedError:
        if settings.unpaired:
            raise
        raise ValueError("no question has a score in both a and b") from None
    return decide_rows([row], settings)[0]


def _questions_with_means(
    part_a: Scores, part_b: Scores, run_a: Run, run_b: Run
) -> tuple[ByQuestion, IntArray, IntArray]:
    """Return a `ByQuestion` of both runs' means on questions that both scored, and their rows in A and in B."""
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
        _zero_one=are_zero_one([part_a, part_b]),
    )
    return questions, at_a, at_b


def most_flipped(part_a: Scores, part_b: Scores, runs: tuple[Run, Run], limit: int) -> tuple[list[Flip], list[Note]]:
    """Return up to `limit` questions on which A and B differ, largest |A − B| first. Notes: their number, unread texts.

    It reads whole questions, targets and answers from the logs. No number depends on them.
    """
    each, at_a, at_b = _questions_with_means(part_a, part_b, *runs)
    order, differ = each.most_flipped(limit), len(each.most_flipped(len(each.keys)))
    notes = []
    if differ:
        what = "question" if differ == 1 else "questions"
        said = f"{len(order)} of the {differ} {what} on which {runs[0].model} and {runs[1].model} differ"
        notes.append(Note("questions_shown", said).of(part_a.task, part_a.metric))
    texts_a = texts_of(part_a, at_a[order].tolist(), notes, f"the answers of {runs[0].model} are not shown")
    texts_b = texts_of(part_b, at_b[order].tolist(), notes, f"the answers of {runs[1].model} are not shown")
    if any(a.either and b.either and a.either != b.either for a, b in zip(texts_a, texts_b, strict=True)):
        texts_a, texts_b = ([replace(x, target=None, answers=x.either) for x in each] for each in (texts_a, texts_b))
    flips = []
    for k, a, b in zip(order, texts_a, texts_b, strict=True):
        flip, target = each.flip(k), b.target if a.target is None else a.target
        text = a.text or b.text or flip.text
        flips.append(replace(flip, text=text, target=target, answers_a=a.answers, answers_b=b.answers))
    return flips, notes


def by_question(pairs: Sequence[tuple[Run, Run]]) -> tuple[ByQuestion, ...]:
    """Return tables of both runs' means on shared questions, one per pair and metric. Skip those without."""
    out: list[ByQuestion] = []
    for runs in pairs:
        with suppress(InputError):  # groups and corpus metrics alone are shared
            out += [_questions_with_means(*parts, *runs)[0] for parts in matched_scores(*runs, alone=True)[0]]
    return tuple(table for table in out if len(table.keys))
