"""From answers that come one at a time to `Scores`: the part that every reader of a format has in common.

    answers = Answers(path, options, auto={"drop": "passage"}.get)
    for line, row in enumerate(rows, 1):
        answers.add("drop", "f1", "none", row["id"], row["trial"], row["f1"], row, line=line)
    run = answers.run(model="mine", harness="format")

It keeps order, tells repeats apart, refuses contradictions, and does what a user can say in `ReadOptions` of
clusters, of the field that identifies a question, of factors and of missing scores.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from math import fsum, nan
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ..arrays import HUGE, FloatArray, HashArray, IntArray
from ..errors import FinalError, InputError, are
from ..errors import counted as in_words
from ..settings import CAUSES, counts_as_zero
from .clusters import (
    ClusterSpec,
    FieldReader,
    MissingFieldError,
    check_one_cluster,
    cluster_of_task,
    clusters_of_file,
    name_or_none,
    namer,
    value_of,
    value_text,
)
from .measures import numeric_fields, usage_of
from .native_values import drop_other_native, fitting_bounds
from .notes import Note, no_cluster_known
from .numbers import is_rounded, number_of, refuse_rounded, refuse_score
from .places import AnswerPlaces, number_within_question
from .questions import AnswerTexts, Questions, content_hash, excerpt, occurrences
from .scores import Gradings, ReadOptions, Run, Scores, Skipped, Usage

if TYPE_CHECKING:
    import pandas as pd

Repeat = str | int
Doc = Mapping[str, Any]
CLUSTER = "cluster"
"""The field of a document that counts where the user names no SPEC."""


@dataclass(slots=True)
class MetricAnswers:
    """The answers to one task under one metric and scorer: few bytes for each, as there may be millions.

    A column has an entry for each answer, in the order in which they came, or is empty; it is an array, or a list.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("places", "values", "lines", "repeats", "levels", "usage", "answered")
    keys: Any = field(default_factory=dict)
    """Question → its place, or the questions in the order of their places."""
    places: Any = field(default_factory=lambda: array("i"))
    """The place of its question."""
    values: Any = field(default_factory=lambda: array("d"))
    """Its score, NaN where it has none."""
    lines: Any = field(default_factory=lambda: array("q"))
    """The line of each answer, 0 if it is not known."""
    repeats: Any = field(default_factory=list)
    """The repeat of each answer among those to its question, None for the next number."""
    levels: list[tuple[str, ...]] = field(default_factory=list)
    """The levels of the factors with which each answer was made."""
    usage: list[Mapping[str, float | str]] = field(default_factory=list)
    """Its measures, numbers or causes, where they were asked for."""
    answered: Any = field(default_factory=lambda: array("Q"))
    """A hash of each answer's text and of the right answer, 0 for an answer without text."""
    causes: dict[int, str] = field(default_factory=dict)
    """Number of the answer → why it has no score, where that is known."""
    twice: int = 0
    """Answers that repeat another one and are left out."""

    def append(self, question: str, value: float) -> None:
        """Add an answer's question name and score. The caller appends to the columns that it uses besides."""
        self.places.append(self.keys.setdefault(question, len(self.keys)))
        self.values.append(value)

    def take(self, numbers: Sequence[int]) -> None:
        """Keep only the answers with these index numbers, in this order. Changes the object."""
        for name in self.COLUMNS:
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                setattr(self, name, column[numbers] if len(column) else column)
            elif len(column):
                setattr(self, name, [column[number] for number in numbers])
        causes = self.causes
        self.causes = {new: causes[old] for new, old in enumerate(numbers) if old in causes}

    def counts(self) -> IntArray:
        """Return (n,) the number of answers to each question, in the order in which questions came."""
        return np.bincount(np.array(self.places, dtype=np.intp), minlength=len(self.keys))

    def ids(self) -> list[Repeat]:
        """Return an id per answer, unique within its question: the repeat and its factor levels, or a number."""
        if not self.levels and None not in self.repeats:
            return cast("list[Repeat]", self.repeats)
        out: list[Repeat] = []
        taken_at = defaultdict[int, set[Repeat]](set)
        for number, (place, own) in enumerate(zip(self.places, self.repeats, strict=True)):
            taken = taken_at[place]
            if own is None:
                own = next(free for free in count(len(taken)) if free not in taken)
            elif self.levels:  # repeat 1 under prompt 2 is another answer than repeat 1 under prompt 1
                own = "\x1f".join((str(own), *self.levels[number]))
            taken.add(own)
            out.append(own)
        return out

    def _kept_answers(self, where: object, ids: Sequence[Repeat]) -> list[int]:
        """Return the index numbers of the answers that do not repeat an earlier one. Refuse contradictions.

        Raises:
            InputError: the same answer has two scores, or two usages.
        """
        first_of: dict[tuple[int, Repeat], int] = {}
        for number, key in enumerate(zip(self.places, ids, strict=True)):
            first = first_of.setdefault(key, number)
            if first == number:
                continue
            old, value = self.values[first], self.values[number]
            if old != value and (old == old or value == value):
                raise InputError(
                    f"{where}: question {[*self.keys][key[0]]!r}, repeat {key[1]!r} has the score "
                    f"{old:g}{self.at(first)} and {value:g}{self.at(number)}: is there a column of models or tasks? "
                    "(`columns={'model': …, 'task': …}`)"
                )
            if self.usage and self.usage[first] != self.usage[number]:
                usages = (self.usage[first], self.usage[number])
                text = "; ".join(", ".join(f"{name} {x}" for name, x in usage.items()) for usage in usages)
                raise InputError(f"{where}: the answer{self.at(first)} comes again with another usage: {text}")
        return list(first_of.values())

    def at(self, number: int) -> str:
        """Return " on line N", with the line of its file that holds this answer, for messages. "" if unknown."""
        return _line_words(self.lines[number] if len(self.lines) else 0)

    def _grid(self, where: object) -> tuple[IntArray, tuple[str, ...] | None]:
        """Return (n, K) answer numbers (−1: none), repeat names or None. Drop self's duplicates, refuse contradictions.

        With it come the (K,) names of the repeats, None if questions share none.

        Ids of answers that questions share are columns, in their order; ids that they do not share (a seed
        drawn for each answer) only say the order.
        """
        shared, columns, names = 0, np.zeros(len(self.values), dtype=np.intp), None
        places = np.array(self.places, dtype=np.intp)
        if any(repeat is not None for repeat in self.repeats):
            ids = self.ids()
            order = {own: j for j, own in enumerate(_sorted_repeats({*ids}))}
            shared, columns = len(order), np.array([order[own] for own in ids])
            names = None if self.levels or None in self.repeats else tuple(map(str, order))
            if not np.diff(np.sort(places * shared + columns)).all():  # a question has an id twice
                kept = self._kept_answers(where, ids)
                self.twice += len(ids) - len(kept)
                self.take(kept)
                places, columns = places[kept], columns[kept]
        if not 0 < shared <= 2 * int(self.counts().max(initial=0)):
            columns, names = number_within_question(places, columns), None
        return AnswerPlaces.of(places, len(self.keys), where, columns).fill(np.arange(len(places)), -1), names

    def scores(
        self,
        where: object,
        what: tuple[str, str, str],
        options: ReadOptions,
        *,
        clusters: tuple[str, ...] | None = None,
        cluster_spec: str | None = None,
        questions: Questions | None = None,
        bounds: tuple[float, float] | None = None,
        **fields: Any,
    ) -> Scores:
        """Return all answers of this metric as `Scores`: an (n, K) table with clusters and missing answers.

        Args:
            where: the file or run, for messages.
            what: task, metric and scorer.
            options: `missing`, `factors` and `usage` count here.
            clusters: the cluster of each question, in the order in which they came; None where there are none.
            cluster_spec: where the clusters come from, for people.
            questions: in the order in which they came; by default only their names are known.
            bounds: the metric's range; left out where a score lies outside it.
            **fields: further fields of `Scores`.

        Raises:
            InputError: answers contradict each other, or nearly every question lacks nearly every repeat.
        """
        numbers, names = self._grid(where)
        missing, zero, scores = count_missing(self.values, self.causes, options.missing)
        values = np.append(scores, nan)[numbers]
        texts = np.append(np.array(self.answered, np.uint64), np.uint64(0))[numbers] if len(self.answered) else None
        return Scores(
            *what,
            questions=questions or Questions(tuple(self.keys)),
            values=values,
            asked=None if (numbers >= 0).all() else numbers >= 0,
            repeat_names=names,
            clusters=clusters,
            cluster_spec=cluster_spec if clusters else None,
            n_missing=missing,
            missing=Counter(self.causes.values()),
            n_zero=zero,
            factors=self._factors(options.factors, numbers.tolist()) if options.factors else None,
            usage=self._usage(options.usage, numbers),
            answers=None if texts is None else HashedTexts(texts),
            gradings=self._gradings(texts, values),
            bounds=fitting_bounds(bounds, values),
            **fields,
        )

    def _gradings(self, texts: HashArray | None, values: FloatArray) -> Gradings | None:
        """Return (n, K) hashes of graded texts. None without texts, or if no question has two different scores."""
        if texts is None or not (np.fmin.reduce(values, axis=1) < np.fmax.reduce(values, axis=1)).any():
            return None
        return Gradings(np.where(np.isnan(values), np.uint64(0), texts))

    def _usage(self, names: Sequence[str], numbers: IntArray) -> dict[str, Usage]:
        """Return {measure: `Usage`} of all these: (n, K) values, NaN where not logged, and counts of the reasons."""
        out = {}
        for name in names:
            logged = [usage.get(name, "not_logged") for usage in self.usage]
            column = np.array([*(nan if isinstance(value, str) else value for value in logged), nan])
            out[name] = Usage(column[numbers], Counter(value for value in logged if isinstance(value, str)))
        return out

    def _factors(self, names: tuple[str, ...], numbers: list[list[int]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Return each factor's (n, K) levels, such as the prompt of each answer. "" where there is no answer."""
        levels = [*self.levels, ("",) * len(names)]
        return {name: tuple(tuple(levels[j][i] for j in row) for row in numbers) for i, name in enumerate(names)}


@dataclass(frozen=True, slots=True, eq=False)
class HashedTexts:
    """The hashes of the texts of answers, kept with them (see `questions.AnswerTexts`)."""

    texts: HashArray

    def hashes(self, rows: Sequence[int]) -> HashArray:
        """Return the (m, K) hashes of the answer texts of the questions in these rows."""
        return self.texts[list(rows)]

    def shared(self, first: Callable[[Sequence[str]], Sequence[str]]) -> AnswerTexts:
        """Return the object itself: there are no strings in it of which runs could share one copy."""
        return self


def levels_of(
    where: object,
    line: int,
    doc: Doc,
    names: Sequence[str],
    *,
    scored: bool,
    text: Callable[[Any], str | None] = value_text,
) -> tuple[str, ...]:
    """Read an answer's factor levels (prompt, seed, …) from its document, "" if absent. Refuse a scored one without.

    Args:
        where: the file or run, for messages.
        line: where the answer stands; 0 if that is not known.
        doc: its fields.
        names: the factors, fields or dotted paths.
        scored: whether it has a score.
        text: value → its text; None where the value is empty.

    Raises:
        FinalError: an answer with a score lacks a level.
    """
    levels = []
    for name in names:
        level = None
        with suppress(MissingFieldError):
            value = value_of(name, doc)
            level = None if value is None else text(value)
        if level is None and scored:
            have = ", ".join(map(str, doc)) or "none"
            raise FinalError(f"{where}{_line_words(line)}: factor {name!r} is not there or empty. There are {have}")
        levels.append(level or "")
    return tuple(levels)


def count_missing(
    values: Sequence[float] | FloatArray, causes: Mapping[int, str], missing: str
) -> tuple[int, int, FloatArray]:
    """Count the answers without a score, and those that count as 0. Return both and the scores with zeros put in.

    Args:
        values: scores by the number of the answer, NaN where one has none.
        causes: number → why it has none, where that is known.
        missing: as in `ReadOptions`.
    """
    scores = np.array(values)
    absent = np.isnan(scores)
    zero = absent & counts_as_zero(missing)
    for number, cause in causes.items():
        zero[number] = counts_as_zero(missing, cause)
    return int(absent.sum()), int(zero.sum()), np.where(zero, 0.0, scores)


def zeros_for_missing(run: Run, missing: str) -> Run:
    """Return the run with missing scores replaced by 0 if the setting `missing` asks for that, else unchanged.

    Args:
        run: what was read, whose missing answers are NaN.
        missing: as in `ReadOptions`.
    """
    if not counts_as_zero(missing):
        return run
    filled = []
    for part in run.scores:
        zero = np.isnan(part.values) & part.was_asked
        filled.append(
            replace(part, values=np.where(zero, 0.0, part.values), n_zero=min(part.n_missing, int(zero.sum())))
        )
    return replace(run, scores=tuple(filled))


def _line_words(line: int) -> str:
    return f" on line {line}" if line else ""


def _sorted_repeats(repeats: set[Repeat]) -> list[Repeat]:
    """Sort repeats: as numbers if all are, else as texts in which r2 comes before r10.

    So r10 comes after r2, because the first answer is the first attempt of what was retried.
    """
    try:
        return sorted(repeats, key=lambda repeat: (float(repeat), str(repeat)))
    except ValueError:
        return sorted(repeats, key=lambda repeat: (_by_numbers(str(repeat)), str(repeat)))


def _by_numbers(text: str) -> list[str | int]:
    """Split a text into texts and integers ("r10" → ["r", 10, ""]), as a key for sorting."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", text))]


@dataclass(slots=True)
class _Asked:
    """The facts about the questions of one task."""

    name: Callable[[Doc], str | None]
    """Document → the name of its question's cluster."""
    spec: str | None
    """SPEC of the clusters, for people."""
    keys: dict[str, str] = field(default_factory=dict)
    """The adapter's name of each question → the key that the user chose in its place."""
    clusters: dict[str, str | None] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """Question → the line of its first answer."""
    last: Doc = field(default_factory=dict)
    """The document that came last."""
    inputs: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    docs: dict[str, list[Doc]] = field(default_factory=dict)
    """Question → the document that came with each of its answers, if some of them are to be kept."""


class Answers:
    """The answers of one run of one model, from which `run` makes the `Run`.

    Args:
        where: the file or run, for messages.
        options: what the user said. `cluster`, `columns["question"]`, `factors` and `missing` count here, and
            name fields of the documents; the rest is `harness_noise.io.registry`'s.
        kind: what the names of questions are ("sample id", …); two runs of one kind are matched by them.
        text: the field of a document that holds the words of its question, by which it is found in the runs of other
            harnesses, and shown to people.
        auto: task → the field of its natural clusters, for `--cluster auto`; None where none is known.
        repeats_are_runs: whether the repeats share a cause (a seed, a prompt, a judge), each one that of all questions.
    """

    def __init__(
        self,
        where: object,
        options: ReadOptions | None = None,
        *,
        kind: str = "question",
        text: str | None = None,
        auto: Callable[[str], str | None] = lambda task: None,
        repeats_are_runs: bool = False,
    ) -> None:
        self.where, self.options, self.kind, self.text, self.auto = where, options or ReadOptions(), kind, text, auto
        self.repeats_are_runs = repeats_are_runs
        self.file: object = where
        """The file that answers are read from, for messages about one. The run unless an adapter names it."""
        self.notes: list[Note] = []
        """Sentences for the user. An adapter may add to them."""
        self._spec = None if self.options.cluster is None else ClusterSpec.parse(self.options.cluster)
        self._key = None if (key := self.options.question_field(where)) is None else namer(key)
        self._metrics: dict[tuple[str, str, str], MetricAnswers] = {}
        self._fields: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._tasks: dict[str, _Asked] = {}
        self._measurable: tuple[str, ...] = ()

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, where: object, options: ReadOptions | None = None, **how: Any) -> Answers:
        """Read one model's answers from a pandas frame, one per row. Refuse several models and lacking columns.

        Args:
            frame: the columns `question` and `score`, and if they are there `task`, `metric`, `scorer`, `repeat`,
                `cluster` and `cause` (why an answer has no score, one of `settings.CAUSES`); all others are fields.
            where: the file or run, for messages.
            options: what the user said.
            **how: the further arguments of `Answers`.

        Raises:
            InputError: a column is missing or there twice, a row has no question, its score is no number, or its cause
                unknown; or as `add`.
        """
        if lacking := [name for name in ("question", "score") if name not in frame.columns]:
            have = ", ".join(map(str, frame.columns))
            raise InputError(f"{where}: the frame has no column {lacking[0]!r}. There are {have}")
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise InputError(f"{where}: two columns are called {twice!r}")
        if "model" in frame.columns and frame["model"].nunique() > 1:
            raise InputError(f"{where}: the frame has several models: give those of each, frame.groupby('model')")
        answers = cls(where, options, **how)
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        for line, row in enumerate(rows, 1):
            doc, score = {str(name): value for name, value in row.items()}, row["score"]
            question, task, metric, scorer, repeat = (
                _cell_as_name(name, doc, f"{where}, row {line}") for name in _NAMES
            )
            if question is None:
                raise InputError(f"{where}, row {line}: no question")
            value = score
            if score is None and (value := doc.get("cause")) is not None and value not in CAUSES:
                raise InputError(f"{where}, row {line}: the cause {value!r} is none of {', '.join(CAUSES)}")
            what = task or "table", metric or "score", scorer or "none"
            answers.add(*what, question, repeat, value, doc, line=line)
        return answers

    def add(
        self,
        task: str,
        metric: str,
        scorer: str,
        question: str,
        repeat: Repeat | None,
        value: Any,
        doc: Doc | None = None,
        *,
        line: int = 0,
    ) -> None:
        """Record one answer with its score (or why it has none) and its document. Refuse what is no finite number.

        Args:
            task: the benchmark.
            metric: the name of the score.
            scorer: what gave it; "none" where there is only one.
            question: its name, unique within the task.
            repeat: which answer to the question it is; None: the next.
            value: the score as the harness has it; where there is none the cause, one of `settings.CAUSES`, or None or
                NaN where that is not known.
            doc: the fields of the question and of the answer, for clusters, factors and the question's words.
            line: where it stands in the file.

        Raises:
            InputError: a field that the user named is not there, the answer contradicts another one, or its score is
                not a finite number.
        """
        seen = self._tasks.get(task)
        if seen is None:
            seen = self._tasks[task] = _Asked(*self._namer(task))
        fields = doc or {}
        if question not in seen.clusters:
            self._ask(seen, question, fields, line)
        elif fields and fields is not seen.last:
            self._ask_again(seen, question, fields, line)
        if self.options.fields:
            seen.docs.setdefault(question, []).append(fields)
        what = (task, metric, scorer)
        answers = self._metrics.get(what)
        if answers is None:
            answers = self._metrics[what] = MetricAnswers()
        cause = value if isinstance(value, str) and value in CAUSES else ""
        if cause:
            answers.causes[len(answers.values)] = cause
        if (number := nan if cause else number_of(value)) is None or abs(number) > HUGE:
            refuse_score(value, f"{self.file}{_line_words(line)}: {task}, {metric}")
        answers.append(question, number)
        answers.lines.append(line)
        answers.repeats.append(repeat)
        if factors := self.options.factors:
            scored = number == number
            answers.levels.append(levels_of(self.file, line, fields, factors, scored=scored))
        if names := self.options.usage:
            self._measurable = self._measurable or tuple(numeric_fields(fields))
            answers.usage.append(usage_of(fields, names, self.file, line, cause))

    def describe(self, task: str, metric: str, scorer: str, **fields: Any) -> None:
        """Record facts about a metric: the harness's own mean (`native`), `higher_is_better`, `bounds`, ….

        `native_of_answers=True`: the harness's mean is that of all answers, however many each question has, in which
        a missing one counts as 0.
        """
        self._fields.setdefault((task, metric, scorer), {}).update(fields)

    def scores(self) -> tuple[Scores, ...]:
        """Return one `Scores` per task, metric and scorer. Left out: a metric without any score in a task with some.

        Raises:
            InputError: nearly every question lacks nearly every repeat.
        """
        clusters = {task: self._clusters(task, seen) for task, seen in self._tasks.items()}
        out, unmeasured = [], self._unmeasured()
        for what, answers in self._metrics.items():
            if what in unmeasured:
                continue
            seen = self._tasks[what[0]]
            of_question = clusters[what[0]]
            fields = dict(self._fields.get(what, {}))
            of_answers = fields.pop("native_of_answers", False)
            part = answers.scores(
                self.where,
                what,
                self.options,
                clusters=tuple(of_question[question] for question in answers.keys) if of_question else None,
                cluster_spec=seen.spec,
                questions=self._questions(what[0], seen, answers),
                repeats_are_runs=self.repeats_are_runs,
                **fields,
            )
            out.append(drop_other_native(part) if of_answers else part)
            if answers.twice:
                again = in_words(answers.twice, "answer repeats", "answers repeat")
                said = f"{again} another answer and {are(answers.twice)} left out"
                self.notes.append(Note("said_twice", said).of(what[0]))
        return tuple(out)

    def _unmeasured(self) -> set[tuple[str, str, str]]:
        """Return the metrics without any score or cause of its lack, in tasks whose answers other metrics do score."""
        scored = {what for what, answers in self._metrics.items() if any(value == value for value in answers.values)}
        tasks = {what[0] for what in scored}
        return {what for what, answers in self._metrics.items() if what[0] in tasks and not answers.causes} - scored

    def run(self, model: str, harness: str, **fields: Any) -> Run:
        """Return a `Run` of all recorded answers. `fields` sets more of its fields. Refuse if no answer is recorded.

        Raises:
            InputError: as `scores`; or there are no answers.
        """
        if not self._metrics:
            raise InputError(f"{self.where}: there is no score in it")
        scores, name = self.scores(), str(self.where)
        skipped = []
        for what in sorted(self._unmeasured()):
            self.notes.append(Note("no_value", f"no answer has a value of {what[1]}, which is left out").of(what[0]))
            if (native := self._fields.get(what, {}).get("native")) is not None:
                skipped.append(Skipped(*what, "no answer has a value of it", native))
        more: dict[str, Any] = {"name": name, "path": name, "skipped": tuple(skipped)} | fields
        more["measurable"] = self._measurable
        return Run(model=model, harness=harness, scores=scores, notes=tuple(dict.fromkeys(self.notes)), **more)

    def _namer(self, task: str) -> tuple[Callable[[Doc], str | None], str | None]:
        """Return a function from a document to its cluster name (None: no clusters), and the SPEC. May add a note."""
        found = cluster_of_task(self._spec, task, self.auto, lambda doc: name_or_none(doc.get(CLUSTER)), CLUSTER)
        if self._spec is not None and found[1] is None and self._spec.for_task(task) == "auto":
            self.notes.append(no_cluster_known(task))
        return found

    def _ask(self, seen: _Asked, question: str, doc: Doc, line: int) -> None:
        """Record a new question's cluster, key, line and text from its document. Refuse absent fields."""
        at = f"{self.file}{f', line {line}' if line else ''}"
        seen.clusters[question] = _user_field(seen.name, doc, f"{at}: cluster")
        seen.lines[question], seen.last = line, doc
        if self._key is not None:
            seen.keys[question] = _user_field(self._key, doc, f"{at}: question")
        words = None if self.text is None else doc.get(self.text)
        if isinstance(words, str) and words.strip():
            seen.inputs[question], seen.texts[question] = content_hash(words), excerpt(words)

    def _ask_again(self, seen: _Asked, question: str, doc: Doc, line: int) -> None:
        """Refuse a further answer to a question if its document gives the question another cluster."""
        seen.last, before = doc, seen.clusters[question]
        try:
            cluster = seen.name(doc)
        except MissingFieldError:  # a further answer may come without it
            return
        if cluster != before and cluster is not None:
            lines = _line_words(seen.lines[question]), _line_words(line)
            check_one_cluster(self.file, question, (before, lines[0]), (cluster, lines[1]))

    def _clusters(self, task: str, seen: _Asked) -> dict[str, str]:
        """Return question → cluster for a task. Empty if not all of its questions have one."""
        natural = (lambda: self.auto(task)) if self._spec is None else (lambda: None)
        clusters = clusters_of_file(task, [*seen.clusters.values()], self.notes, natural)
        return {} if clusters is None else dict(zip(seen.clusters, clusters, strict=True))

    def _questions(self, task: str, seen: _Asked, answers: MetricAnswers) -> Questions:
        names, fields = tuple(answers.keys), None
        if self.options.fields:
            reader = FieldReader(self.options.fields, task)
            for name in names:
                reader.add(_with_mean_measures(seen.docs[name]))
            fields = reader.fields()
        shown = tuple(seen.texts.get(name, "") for name in names)
        texts = shown if any(shown) else None
        if self._key is not None:  # a key that the user vouches for is not checked against the text
            return Questions(occurrences([seen.keys[name] for name in names]), "question", texts=texts, fields=fields)
        inputs = tuple(seen.inputs[name] for name in names if name in seen.inputs)
        return Questions(names, self.kind, inputs if len(inputs) == len(names) else None, texts=texts, fields=fields)


_NAMES = ("question", "task", "metric", "scorer", "repeat")
"""The columns of a frame that name something."""


def _cell_as_name(column: str, doc: Doc, where: str) -> str | None:
    """Return a document's cell as a name: 1.0 becomes "1", an empty cell None. Refuse inexact floats."""
    value = doc.get(column)
    if is_rounded(value):
        refuse_rounded(column, value, where)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = None if value is None else value_text(value).strip()
    return text or None


def _with_mean_measures(docs: Sequence[Doc]) -> Doc:
    """Return a question's first document, in which numbers (cost, length) are means over its answers."""
    measured: dict[str, list[float]] = {}
    for doc in docs:
        for name, value in doc.items():
            if isinstance(value, (int, float)):
                measured.setdefault(name, []).append(value)
    means = {name: fsum(values) / len(values) for name, values in measured.items() if len(set(values)) > 1}
    return {**docs[0], **means}


def _user_field(get: Callable[[Doc], Any], doc: Doc, what: str) -> Any:
    """Return `get(doc)`, the value of a field that the user named. Refuse an absent field, listing those there are."""
    try:
        return get(doc)
    except MissingFieldError as error:
        have = ", ".join(error.fields) or "none"
        raise FinalError(f"{what} field {error.spec!r} is not in the document. There are {have}") from None
