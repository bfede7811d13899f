"""The part of a run's answers that people are to label: drawn at random, with whole clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.matching import pair
from ..data.questions import QuestionText
from ..data.scores import Run, Scores, answer_id
from ..errors import InputError, some_of
from ..results.labels import LabelRow, LabelSample
from ..settings import Settings
from ..stats.arrays import FloatArray, IntArray
from ..stats.contrast import cluster_codes, question_stats
from .drawing import draw, drawing_chances
from .ranges import Ends, score_range
from .sample import stack

NO_TEXT = "the run does not hold the words of its answers, so the file only says which they are"


def label_sample(
    runs: Sequence[Run], size: str | float, *, by_score: bool = False, blind: bool = True, seed: int = 0
) -> LabelSample:
    """Answers to random questions, one of each run to each question, in a random order of clusters.

    A person who stops early has still labelled a random part.

    Args:
        runs: whose answers; questions without a scored answer in every run are not drawn.
        size: of the part, see `drawing.wanted`.
        by_score: draw questions of uncertain score more often, with probabilities that the file holds.
        blind: show neither the model nor its score.
        seed: of the drawing.

    Raises:
        InputError: no question that all runs have answered, or no such size.
    """
    models = [run.model for run in runs]
    names = [run.model if models.count(run.model) == 1 else run.name for run in runs]
    notes: list[str] = []
    tasks = _tasks(runs, notes)
    n = sum(len(task) for task in tasks)
    if n < 2:
        raise InputError(f"{some_of(names, 3)}: fewer than two questions have a scored answer of every run")
    strata = np.repeat(np.arange(len(tasks)), [len(task) for task in tasks])
    labels = stack([task.first for task in tasks]).labels
    if labels is not None:
        start = np.cumsum([0, *(len(task.first.questions) for task in tasks)])
        labels = tuple(labels[start[t] + i] for t, task in enumerate(tasks) for i in task.rows[0])
    expected = np.concatenate([task.expected() for task in tasks])
    chances = drawing_chances(size, expected, labels, strata) if by_score else None
    drawn = draw(n, size, labels, strata, seed=seed, chances=chances)
    if by_score and chances is None:
        notes.append("no score is more uncertain than another, or the part is too small: all have the same probability")
    chance = np.full(n, len(drawn) / n) if chances is None else chances
    codes = np.arange(n) if labels is None else cluster_codes(labels)[0]
    rng = np.random.default_rng([seed, 1])
    shuffled = drawn[np.argsort(rng.permutation(int(codes.max()) + 1)[codes[drawn]], kind="stable")]
    first = np.searchsorted(strata, np.arange(len(tasks)))
    texts = [task.texts(drawn[strata[drawn] == t] - first[t], notes) for t, task in enumerate(tasks)]
    rows: list[LabelRow] = []
    for at in shuffled.tolist():
        t = int(strata[at])
        for r in rng.permutation(len(runs)).tolist():
            told = texts[t][r].get(at - int(first[t]), QuestionText())
            rows.append(tasks[t].row(r, at - int(first[t]), names[r], told, rng, (float(chance[at]), seed)))
    if blind:
        rows = [_hidden(row) for row in rows]
    return LabelSample(tuple(rows), blind, tuple(dict.fromkeys(notes)))


def _hidden(row: LabelRow) -> LabelRow:
    return LabelRow(*(getattr(row, name) for name in tuple(LabelRow.__dataclass_fields__)[:-2]))


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """One task of all runs."""

    parts: tuple[Scores, ...]
    """Of each run, its first metric and scorer."""
    rows: tuple[list[int], ...]
    """Of each run, the n questions that all have answered, in one order."""

    def __len__(self) -> int:
        return len(self.rows[0])

    @property
    def first(self) -> Scores:
        return self.parts[0]

    def expected(self) -> FloatArray:
        """(n,) mean score over the runs, as a share of the range; ½ where no range is known."""
        bounds = score_range([Ends.of(self.parts)], Settings())
        if bounds is None:
            return np.full(len(self), 0.5)
        means = [question_stats(part.values).mean[rows] for part, rows in zip(self.parts, self.rows, strict=True)]
        return np.asarray((np.mean(means, axis=0) - bounds[0]) / (bounds[1] - bounds[0])).clip(0, 1)

    def texts(self, drawn: IntArray, notes: list[str]) -> list[dict[int, QuestionText]]:
        """For each run, what its log says of the questions that were drawn."""
        out = []
        for part, rows in zip(self.parts, self.rows, strict=True):
            told: Sequence[QuestionText] = ()
            if part.questions.log is not None:
                try:
                    told = part.questions.log.read([rows[i] for i in drawn.tolist()], part.scorer)
                except InputError as error:
                    notes.append(f"{NO_TEXT}: {error}")
            out.append(dict(zip(drawn.tolist(), told, strict=False)))
            if not any(text.answers for text in told):
                notes.append(f"{part.task}: {NO_TEXT}")
        return out

    def row(
        self, r: int, i: int, name: str, told: QuestionText, rng: np.random.Generator, drawn: tuple[float, int]
    ) -> LabelRow:
        """A random one of the answers of a run to a question."""
        part, at = self.parts[r], self.rows[r][i]
        j = int(rng.choice(np.flatnonzero(~np.isnan(part.values[at]))))
        key, shown = part.questions.keys[at], part.questions.shown()
        complete = len(told.answers) == part.values.shape[1]
        answer = told.answers[j] if complete else told.answers[0] if len(told.answers) == 1 else None
        return LabelRow(
            answer_id(name, part.task, key, j),
            part.task,
            key,
            j + 1,
            told.text if told.text is not None or shown is None else shown[at],
            told.target,
            answer,
            None,
            *drawn,
            model=name,
            score=float(part.values[at, j]),
        )


def _tasks(runs: Sequence[Run], notes: list[str]) -> list[_Task]:
    """The tasks that all runs have, with the questions that all have answered."""
    each = [{part.task: part for part in reversed(run.scores)} for run in runs]
    shared = [task for task in dict.fromkeys(part.task for part in runs[0].scores) if all(task in x for x in each)]
    left = {task for x in each for task in x} - set(shared)
    if left:
        notes.append(f"left out, as not all runs have it: {some_of(sorted(left), 3)}")
    out = []
    for task in shared:
        parts = tuple(x[task] for x in each)
        where = [_answered(parts[0], part) for part in parts]
        keys = sorted(set(where[0]).intersection(*where[1:]))
        if keys:
            out.append(_Task(parts, tuple([x[i] for i in keys] for x in where)))
    return out


def _answered(first: Scores, part: Scores) -> dict[int, int]:
    """Row of the first run → row of this one, of the questions that it has a scored answer to."""
    same = pair(first.questions, part.questions)
    scored = question_stats(part.values).count > 0
    return {i: j for i, j in zip(same.rows_a, same.rows_b, strict=True) if scored[j]}
