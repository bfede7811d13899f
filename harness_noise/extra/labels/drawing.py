"""The drawing of answers for people to label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...analysis.ranges import Ends, score_range
from ...analysis.sample import scored_pairs, scores_of_rows, stack, texts_of
from ...arrays import FloatArray, IntArray
from ...data.notes import Note
from ...data.questions import QuestionText
from ...data.scores import Run, Scores
from ...errors import InputError, parameter, some_of
from ...settings import Settings
from ...stats.contrast import cluster_codes, question_stats
from ...stats.tolerances import FEWEST_UNITS
from ..drawing import draw, drawing_chances
from .correcting import FEWEST, MOST_NAMED, names_of
from .files import answer_id
from .numbering import names_of_repeats
from .results import LabelRow, LabelSample

NO_TEXT = "the run does not hold the words of its answers, so the file only says which they are"
TARGET_ALONE = (
    "the run holds right answers (target) but no words of the model. If a column of a table holds what the model said, "
    f"name it, {parameter('columns', {'response': 'COLUMN'})}, and draw again"
)
EITHER = (
    "the column answer is taken for what the model said. If it holds the right answers, draw again with "
    f"{parameter('columns', {'target': 'answer'})}"
)


def label_sample(
    runs: Sequence[Run], size: str | float, *, by_score: bool = False, blind: bool = True, seed: int = 0
) -> LabelSample:
    """Draw answers to label: random questions in whole clusters, one answer per run. Refuse fewer than two questions.

    A person who stops early has still labelled a random subset.

    Args:
        runs: whose answers; questions without a scored answer in every run are not drawn.
        size: of the part, see `drawing.wanted`.
        by_score: draw questions of uncertain score more often, with probabilities that the file holds.
        blind: show neither the model nor its score.
        seed: of the drawing.

    Raises:
        InputError: no question that all runs have answered, or no such size.
    """
    names = names_of(runs)
    notes: list[Note] = []
    tasks = _tasks(runs, notes)
    n = sum(len(task) for task in tasks)
    if n < 2:
        raise InputError(f"{some_of(names, 3)}: fewer than two questions have a scored answer of every run")
    whole = stack([scores_of_rows(task.first, task.rows[0]) for task in tasks])
    strata, clusters = whole.strata, whole.clusters
    expected = np.concatenate([task.expected() for task in tasks])
    chances = drawing_chances(size, expected, clusters, strata) if by_score else None
    drawn = draw(n, size, clusters, strata, seed=seed, chances=chances)
    if by_score and chances is None:
        said = "no score is more uncertain than another, or the part is too small: all have the same probability"
        notes.append(Note("drawn_alike", said))
    chance = np.full(n, len(drawn) / n) if chances is None else chances
    codes = np.arange(n) if clusters is None else cluster_codes(clusters)[0]
    rng = np.random.default_rng([seed, 1])
    shuffled = drawn[np.argsort(rng.permutation(int(codes.max()) + 1)[codes[drawn]], kind="stable")]
    first = np.searchsorted(strata, np.arange(len(tasks)))
    by_task = [drawn[strata[drawn] == t] for t in range(len(tasks))]
    texts = [task.texts(rows - at, notes) for task, rows, at in zip(tasks, by_task, first, strict=True)]
    notes += _too_few_to_use_the_judge(runs, tasks, [codes[rows] for rows in by_task])
    # one way for all, because a reader takes one way of counting for the whole file
    named = all(names_of_repeats(part) for task in tasks for part in task.parts)
    rows: list[LabelRow] = []
    for at in shuffled.tolist():
        t = int(strata[at])
        for r in rng.permutation(len(runs)).tolist():
            text = texts[t][r].get(at - int(first[t]), QuestionText())
            rows.append(
                tasks[t].row(r, at - int(first[t]), names[r], text, rng, (float(chance[at]), seed), named=named)
            )
    if blind:
        rows = [replace(row, model=None, score=None) for row in rows]
    return LabelSample(tuple(rows), blind, tuple(dict.fromkeys(notes)))


def _too_few_to_use_the_judge(runs: Sequence[Run], tasks: Sequence[_Joint], drawn: Sequence[IntArray]) -> list[Note]:
    """Return [note] if so few clusters of a task (or group) are drawn that its labels count alone, without the judge.

    Tasks that have too few labels for a row of their own are one part, together with the others of their group.
    """
    units = [len(np.unique(codes)) for codes in drawn]
    small = [
        task.first.task
        for task, m, codes in zip(tasks, units, drawn, strict=True)
        if m < FEWEST_UNITS and len(codes) < len(task)
    ]
    together = len(tasks) > 1 and min(units) < FEWEST and any(run.groups for run in runs)
    if not small or (together and sum(units) >= FEWEST_UNITS):
        return []
    what = "clusters" if any(task.first.clusters is not None for task in tasks) else "questions"
    number = sum(units) if together else min(units)
    said = (
        f"{some_of(small, MOST_NAMED)}: {number} {what} are drawn, and labels of fewer than {FEWEST_UNITS} count "
        "alone, without the judge's scores: draw more, if there are any"
    )
    return [Note("few_drawn", said)]


@dataclass(frozen=True, slots=True, eq=False)
class _Joint:
    """The questions of one task that all runs have answered."""

    parts: tuple[Scores, ...]
    """The scores of each run, under its first metric and scorer."""
    rows: tuple[list[int], ...]
    """The rows, in each run, of the n questions that all have answered, in one order."""

    def __len__(self) -> int:
        return len(self.rows[0])

    @property
    def first(self) -> Scores:
        return self.parts[0]

    def expected(self) -> FloatArray:
        """Return (n,) mean scores over the runs as a share (0–1) of the range. ½ if it is unknown."""
        bounds = score_range([Ends.of(self.parts)], Settings())
        if bounds is None:
            return np.full(len(self), 0.5)
        means = [question_stats(part.values).mean[rows] for part, rows in zip(self.parts, self.rows, strict=True)]
        return np.asarray((np.mean(means, axis=0) - bounds[0]) / (bounds[1] - bounds[0])).clip(0, 1)

    def texts(self, drawn: IntArray, notes: list[Note]) -> list[dict[int, QuestionText]]:
        """Return for each run {question: text, target, answers} of drawn questions, from its log. Add to `notes`."""
        out = []
        for part, rows in zip(self.parts, self.rows, strict=True):
            texts = texts_of(part, [rows[i] for i in drawn.tolist()], notes, NO_TEXT)
            out.append(dict(zip(drawn.tolist(), texts, strict=True)))
            if any(text.either for text in texts):
                notes.append(Note("read_as", EITHER).of(part.task))
            elif not any(text.answers for text in texts):
                said = TARGET_ALONE if any(text.target for text in texts) else NO_TEXT
                notes.append(Note("texts_not_shown", said).of(part.task))
        return out

    def row(
        self,
        r: int,
        i: int,
        name: str,
        text: QuestionText,
        rng: np.random.Generator,
        drawn: tuple[float, int],
        *,
        named: bool,
    ) -> LabelRow:
        """Return a random answer of run r to question i as a row to label. `named`: the repeat's own name."""
        part, at = self.parts[r], self.rows[r][i]
        j = int(rng.choice(np.flatnonzero(~np.isnan(part.values[at]))))
        key, shown = part.questions.keys[at], part.questions.shown()
        answers = text.either or text.answers
        complete = len(answers) == part.values.shape[1]
        answer = answers[j] if complete else answers[0] if len(answers) == 1 else None
        return LabelRow(
            answer_id(name, part.task, key, j),
            part.task,
            key,
            _number_or_name(names_of_repeats(part)[j]) if named else j + 1,
            text.text if text.text is not None or shown is None else shown[at],
            None if text.either else text.target,
            answer,
            None,
            *drawn,
            model=name,
            score=float(part.values[at, j]),
        )


def _number_or_name(name: str) -> int | str:
    return int(name) if name.isdecimal() and str(int(name)) == name else name


def _tasks(runs: Sequence[Run], notes: list[Note]) -> list[_Joint]:
    """Return tasks of all runs (first metric), cut to questions that all answered. Note other tasks, not questions."""
    each = [{part.task: part for part in reversed(run.scores)} for run in runs]
    shared = [task for task in dict.fromkeys(part.task for part in runs[0].scores) if all(task in x for x in each)]
    left = {task for x in each for task in x} - set(shared)
    if left:
        said = f"left out, as not all runs have it: {some_of(sorted(left), 3)}"
        notes.append(Note("not_in_all_runs", said))
    out = []
    for task in shared:
        parts = tuple(x[task] for x in each)
        pairings = [scored_pairs(parts[0], part) for part in parts]
        where = [dict(zip(each.rows_a, each.rows_b, strict=True)) for each in pairings]
        keys = sorted(set(where[0]).intersection(*where[1:]))
        if keys:
            out.append(_Joint(parts, tuple([x[i] for i in keys] for x in where)))
    return out
