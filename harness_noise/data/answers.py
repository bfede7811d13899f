"""From answers that come one at a time to `Scores`: the part that every reader of a format has in common.

    answers = Answers(path, options, auto={"drop": "passage"}.get)
    for line, row in enumerate(rows, 1):
        answers.add("drop", "f1", "none", row["id"], row["trial"], row["f1"], row, line=line)
    run = answers.run(model="mine", harness="format")

It keeps order, tells repeats apart, refuses contradictions, and does what a user can say in `ReadOptions` of
clusters, of the field that identifies a question, of factors and of missing scores.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, nan
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from ..errors import FaultyScoresError, FinalError, InputError
from ..settings import CAUSES, counts_as_zero
from .clusters import ClusterSpec, FieldReader, MissingFieldError, labeller, resolved, text_label
from .measures import BROKEN, numeric_fields, usage_of
from .native_values import fitting, is_reproduced, reproduces
from .questions import Questions, content_hash, excerpt, occurrences
from .scores import ReadOptions, Run, Scores, Skipped, Usage, check_grid

Repeat = str | int
Doc = Mapping[str, Any]
CLUSTER = "cluster"
"""The field of a document that counts where the user names no SPEC."""


@dataclass(slots=True)
class MetricAnswers:
    """The answers to one task under one metric and scorer."""

    numbers: dict[str, dict[Repeat, int]] = field(default_factory=dict)
    """question → repeat → number of the answer."""
    values: array[float] = field(default_factory=lambda: array("d"))
    """Scores by the number of the answer, NaN where one has none."""
    lines: array[int] = field(default_factory=lambda: array("q"))
    """Where each answer stands; 0 if that is not known."""
    clusters: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    """question → its label, and the line that said so."""
    levels: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Number of the answer → what it was made with."""
    causes: dict[int, str] = field(default_factory=dict)
    """Number of the answer → why it has no score, where that is known."""
    usage: dict[int, Mapping[str, float | str]] = field(default_factory=dict)
    """Number of the answer → its measures, numbers or causes, where they were asked for."""
    twice: int = 0
    """Answers that repeat another one and are left out."""

    def add(
        self,
        where: object,
        question: str,
        repeat: Repeat | None,
        value: float,
        *,
        cluster: str | None = None,
        levels: tuple[str, ...] = (),
        cause: str = "",
        line: int = 0,
    ) -> int:
        """One answer, and its number; without a `repeat` it is the question's next.

        Raises:
            InputError: its question is in another cluster already, or the same answer has another score.
        """
        known = self.question(where, question, cluster, line)
        if repeat is None:
            repeat = len(known)
            while repeat in known:
                repeat += 1
        elif levels:  # repeat 1 under prompt 2 is another answer than repeat 1 under prompt 1
            repeat = "\x1f".join((str(repeat), *levels))
        number = known.setdefault(repeat, len(self.values))
        if number == len(self.values):
            if levels:
                self.levels[len(self.values)] = levels
            if cause and value != value:
                if cause not in CAUSES:
                    raise FaultyScoresError(f"{cause!r} is no cause of a missing answer; they are {', '.join(CAUSES)}")
                self.causes[len(self.values)] = cause
            self.values.append(value)
            self.lines.append(line)
        elif (old := self.values[number]) == value or (old != old and value != value):
            self.twice += 1
        else:
            raise InputError(
                f"{where}: question {question!r}, repeat {repeat!r} has the score {old:g}{_on(self.lines[number])} and "
                f"{value:g}{_on(line)}: is there a column of models or tasks? (`columns={{'model': …, 'task': …}}`)"
            )
        return number

    def measure(self, where: object, number: int, usage: Mapping[str, float | str]) -> None:
        """Keep the measures of an answer, by its number.

        Raises:
            InputError: the same answer has other ones already.
        """
        if usage != self.usage.setdefault(number, usage):
            known, other = (", ".join(f"{name} {x}" for name, x in y.items()) for y in (self.usage[number], usage))
            raise InputError(
                f"{where}: the answer{_on(self.lines[number])} comes again with another usage: {known}; {other}"
            )

    def question(self, where: object, question: str, cluster: str | None, line: int) -> dict[Repeat, int]:
        """The answers of a question, which is new or in the same cluster as before."""
        known = self.numbers.get(question)
        if known is None:
            known = self.numbers[question] = {}
            self.clusters[question] = cluster, line
            return known
        before, at = self.clusters[question]
        if cluster != before:
            raise InputError(
                f"{where}: question {question!r} is in cluster {before!r}{_on(at)} and in {cluster!r}{_on(line)}"
            )
        return known

    def __iter__(self) -> Iterator[tuple[str, Repeat, int]]:
        """Question, repeat and number of every answer, question by question."""
        for question, known in self.numbers.items():
            for repeat, number in known.items():
                yield question, repeat, number

    def columns(self) -> tuple[int, list[int]]:
        """K, and the column of every answer, in the order of `__iter__`.

        Labels of repeats that questions share are columns, in their order; labels that they do not share (a seed
        drawn for each answer) only say the order.
        """
        repeats = _in_order({repeat for known in self.numbers.values() for repeat in known})
        most = max(map(len, self.numbers.values()), default=0)
        place = {repeat: j for j, repeat in enumerate(repeats)}
        if len(repeats) <= 2 * most:
            return len(repeats), [place[repeat] for _, repeat, _ in self]
        out = []
        for known in self.numbers.values():
            rank = {repeat: j for j, repeat in enumerate(sorted(known, key=place.__getitem__))}
            out += [rank[repeat] for repeat in known]
        return most, out

    def scores(
        self,
        where: object,
        what: tuple[str, str, str],
        options: ReadOptions,
        *,
        cluster_spec: str | None = None,
        questions: Questions | None = None,
        bounds: tuple[float, float] | None = None,
        **fields: Any,
    ) -> Scores:
        """The Scores of these answers.

        Args:
            where: the file or run, for messages.
            what: task, metric and scorer.
            options: `missing` and `factors` count here.
            cluster_spec: where the clusters come from, for people.
            questions: in the order in which they came; by default only their names are known.
            bounds: the metric's range; left out where a score lies outside it.
            **fields: further fields of `Scores`.

        Raises:
            InputError: nearly every question lacks nearly every repeat, or some questions are in no cluster.
        """
        n, (K, columns) = len(self.numbers), self.columns()
        check_grid(n, K, len(self.values), where)
        of_each = [len(known) for known in self.numbers.values()]
        numbers = np.full((n, K), -1)
        numbers[np.repeat(np.arange(n), of_each), columns] = [number for _, _, number in self]
        missing, zero, scores = counted(self.values, self.causes, options.missing)
        values = np.append(scores, nan)[numbers]
        labels = tuple(label for label, _ in self.clusters.values() if label is not None)
        if labels and len(labels) < n:
            line = next(line for label, line in self.clusters.values() if label is None)
            raise InputError(f"{where}{f', line {line}' if line else ''}: no cluster, though other questions have one")
        return Scores(
            *what,
            questions=questions or Questions(tuple(self.numbers)),
            values=values,
            clusters=labels or None,
            cluster_spec=cluster_spec if labels else None,
            n_missing=missing,
            missing=Counter(self.causes.values()),
            n_zero=zero,
            factors=self._factors(options.factors, numbers.tolist()) if options.factors else None,
            usage=self._usage(options.usage, numbers),
            bounds=fitting(bounds, values),
            **fields,
        )

    def _usage(self, names: Sequence[str], numbers: IntArray) -> dict[str, Usage]:
        """The measures of the answers with these (n, K) numbers; −1 stands for an answer that is not there."""
        out = {}
        for name in names:
            known = [self.usage.get(number, {}).get(name, "not_logged") for number in range(len(self.values))]
            column = np.array([*(nan if isinstance(value, str) else value for value in known), nan])
            out[name] = Usage(column[numbers], Counter(value for value in known if isinstance(value, str)))
        return out

    def _factors(self, names: tuple[str, ...], numbers: list[list[int]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Factor → (n, K) levels, from the number of each answer; one that is not there has the level ""."""
        none = ("",) * len(names)
        rows = [[self.levels.get(number, none) for number in row] for row in numbers]
        return {name: tuple(tuple(levels[i] for levels in row) for row in rows) for i, name in enumerate(names)}


def counted(
    values: Sequence[float] | FloatArray, causes: Mapping[int, str], missing: str
) -> tuple[int, int, FloatArray]:
    """How many answers are missing, how many of those count as 0, and the scores that follow from it.

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


def _on(line: int) -> str:
    return f" on line {line}" if line else ""


def _in_order(repeats: set[Repeat]) -> list[Repeat]:
    """The repeats in order: numbers by value, texts by the alphabet."""
    try:
        return sorted(repeats, key=lambda repeat: (float(repeat), str(repeat)))
    except ValueError:
        return sorted(repeats, key=str)


@dataclass(slots=True)
class _Asked:
    """What is known of the questions of one task."""

    label: Callable[[Doc], str | None]
    spec: str | None
    """SPEC of the clusters, for people."""
    keys: dict[str, str] = field(default_factory=dict)
    """The adapter's name of each question → the key that the user chose in its place."""
    labels: dict[str, str | None] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    docs: dict[str, list[Doc]] = field(default_factory=dict)
    """What is known of each question with each of its answers, where some of it is to be kept."""


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
        self.notes: list[str] = []
        """Sentences for the user; an adapter may add to them."""
        self._spec = None if self.options.cluster is None else ClusterSpec.parse(self.options.cluster)
        self._key = None if (key := self.options.question_field(where)) is None else labeller(key)
        self._metrics: dict[tuple[str, str, str], MetricAnswers] = {}
        self._fields: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._tasks: dict[str, _Asked] = {}
        self._measurable: tuple[str, ...] = ()

    def add(
        self,
        task: str,
        metric: str,
        scorer: str,
        question: str,
        repeat: Repeat | None,
        value: float | str | None,
        doc: Doc | None = None,
        *,
        line: int = 0,
    ) -> None:
        """One answer and its score.

        Args:
            task: the benchmark.
            metric: the name of the score.
            scorer: what gave it; "none" where there is only one.
            question: its name, unique within the task.
            repeat: which answer to the question it is; None: the next.
            value: where it has no score the cause, one of `settings.CAUSES`; None or NaN where that is not known.
            doc: the fields of the question and of the answer, for clusters, factors and the question's words.
            line: where it stands in the file.

        Raises:
            InputError: a field that the user named is not there, or the answer contradicts another one.
        """
        asked = self._tasks.get(task)
        if asked is None:
            asked = self._tasks[task] = _Asked(*self._labelled(task))
        fields = doc or {}
        if question not in asked.labels:
            self._ask(asked, question, fields, line)
        if self.options.fields:
            asked.docs.setdefault(question, []).append(fields)
        factors, what = self.options.factors, (task, metric, scorer)
        levels = tuple(self._level(name, fields, line) for name in factors) if factors else ()
        found = self._metrics.get(what)
        if found is None:
            found = self._metrics[what] = MetricAnswers()
        cause = value if isinstance(value, str) else ""
        number = nan if cause or value is None else float(value)
        place = found.add(self.where, question, repeat, number, levels=levels, cause=cause, line=line)
        if self.options.usage:
            found.measure(self.where, place, self._usage(fields, cause, line))

    def _usage(self, fields: Doc, cause: str, line: int) -> dict[str, float | str]:
        """The measures of one answer; what broke off on somebody else's account has used less than an answer takes."""
        self._measurable = self._measurable or tuple(numeric_fields(fields))
        names = self.options.usage
        return dict.fromkeys(names, cause) if cause in BROKEN else usage_of(fields, names, self.where, line)

    def describe(self, task: str, metric: str, scorer: str, **fields: Any) -> None:
        """What the harness says of a metric: `native` (its own mean), `higher_is_better`, `bounds`, … of `Scores`.

        `native_of_answers=True`: the harness's mean is that of all answers, however many each question has, in which
        a missing one counts as 0.
        """
        self._fields.setdefault((task, metric, scorer), {}).update(fields)

    def scores(self) -> tuple[Scores, ...]:
        """One for each task, metric and scorer with a score, in the order in which they came.

        Raises:
            InputError: nearly every question lacks nearly every repeat.
        """
        clusters = {task: self._clusters(task, asked) for task, asked in self._tasks.items()}
        out, unmeasured = [], self._unmeasured()
        for what, found in self._metrics.items():
            if what in unmeasured:
                continue
            asked = self._tasks[what[0]]
            found.clusters = {question: (clusters[what[0]].get(question), 0) for question in found.numbers}
            questions = self._questions(what[0], asked, found)
            fields = dict(self._fields.get(what, {}))
            of_answers = fields.pop("native_of_answers", False)
            part = found.scores(
                self.where,
                what,
                self.options,
                cluster_spec=asked.spec,
                questions=questions,
                repeats_are_runs=self.repeats_are_runs,
                **fields,
            )
            out.append(compared(part, found.values) if of_answers else part)
            if found.twice:
                self.notes.append(f"{what[0]}: {found.twice} answers say again what another said and are left out")
        return tuple(out)

    def _unmeasured(self) -> set[tuple[str, str, str]]:
        """Metrics that no answer has, for no cause that is known, though the answers have others."""
        scored = {what for what, found in self._metrics.items() if any(value == value for value in found.values)}
        tasks = {what[0] for what in scored}
        return {what for what, found in self._metrics.items() if what[0] in tasks and not found.causes} - scored

    def run(self, model: str, harness: str, **fields: Any) -> Run:
        """The Run of all answers; `fields` are further ones of `Run`.

        Raises:
            InputError: as `scores`; or there are no answers.
        """
        if not self._metrics:
            raise InputError(f"{self.where}: there is no score in it")
        scores, name = self.scores(), str(self.where)
        skipped = []
        for what in sorted(self._unmeasured()):
            self.notes.append(f"{what[0]}: no answer has a value of {what[1]}, which is left out")
            if (native := self._fields.get(what, {}).get("native")) is not None:
                skipped.append(Skipped(*what, "no answer has a value of it", native))
        more: dict[str, Any] = {"name": name, "path": name, "skipped": tuple(skipped)} | fields
        more["measurable"] = self._measurable
        return Run(model=model, harness=harness, scores=scores, notes=tuple(dict.fromkeys(self.notes)), **more)

    def _labelled(self, task: str) -> tuple[Callable[[Doc], str | None], str | None]:
        """A function from a document to its cluster, and what that is called."""
        if self._spec is None:
            return (lambda doc: None if (found := doc.get(CLUSTER)) is None else text_label(found)), CLUSTER
        wanted, named = resolved(self._spec, task, self.auto)
        if wanted is None:
            if self._spec.for_task(task) == "auto":
                self.notes.append(f"{task}: no natural cluster is known: the questions count as independent")
            return (lambda doc: None), None
        return labeller(wanted, task), named

    def _ask(self, asked: _Asked, question: str, doc: Doc, line: int) -> None:
        """Note what a document says of a question that has not come before."""
        at = f"{self.where}{f', line {line}' if line else ''}"
        asked.labels[question] = _read(asked.label, doc, f"{at}: cluster")
        if self._key is not None:
            asked.keys[question] = _read(self._key, doc, f"{at}: question")
        words = None if self.text is None else doc.get(self.text)
        if isinstance(words, str) and words.strip():
            asked.inputs[question], asked.texts[question] = content_hash(words), excerpt(words)

    def _level(self, name: str, doc: Doc, line: int) -> str:
        if doc.get(name) is None:
            have = ", ".join(map(str, doc)) or "none"
            raise FinalError(f"{self.where}{_on(line)}: factor {name!r} is not there or empty; there are {have}")
        return text_label(doc[name])

    def _clusters(self, task: str, asked: _Asked) -> dict[str, str]:
        """Question → label; none at all where only some questions carry one."""
        found = {question: label for question, label in asked.labels.items() if label is not None}
        bare = len(asked.labels) - len(found)
        if found and bare:
            self.notes.append(
                f"{task}: {bare} of {len(asked.labels)} questions carry no cluster, so none is used and the questions "
                "count as independent; name one with `cluster`"
            )
            return {}
        if self._spec is None and not found and (natural := self.auto(task)) is not None:
            self.notes.append(f"{task}: the questions have natural clusters, {natural}: ask with `cluster='auto'`")
        return found

    def _questions(self, task: str, asked: _Asked, found: MetricAnswers) -> Questions:
        names, known = tuple(found.numbers), None
        if self.options.fields:
            reader = FieldReader(self.options.fields, task)
            for name in names:
                reader.add(_of_answers(asked.docs[name]))
            known = reader.fields()
        shown = tuple(asked.texts.get(name, "") for name in names)
        texts = shown if any(shown) else None
        if self._key is not None:  # a key that the user vouches for is not checked against the text
            return Questions(occurrences([asked.keys[name] for name in names]), "question", texts=texts, fields=known)
        inputs = tuple(asked.inputs[name] for name in names if name in asked.inputs)
        return Questions(names, self.kind, inputs if len(inputs) == len(names) else None, texts=texts, fields=known)


def _of_answers(docs: Sequence[Doc]) -> Doc:
    """The first document of a question, with the means of what was measured of each of its answers: costs, lengths."""
    measured: dict[str, list[float]] = {}
    for doc in docs:
        for name, value in doc.items():
            if isinstance(value, (int, float)):
                measured.setdefault(name, []).append(value)
    means = {name: fsum(values) / len(values) for name, values in measured.items() if len(set(values)) > 1}
    return {**docs[0], **means}


def compared(part: Scores, values: Sequence[float]) -> Scores:
    """The scores without the harness's own mean, where that is right and of other answers than theirs.

    Args:
        part: the scores, with the harness's mean over answers, however many each question has.
        values: those of all answers, NaN where one has none; the harness leaves it out or counts it as 0.
    """
    if part.native is None or is_reproduced(part):
        return part
    scored = [value for value in values if value == value]
    means = [fsum(scored) / n for n in {len(scored), len(values)} - {0}]
    return replace(part, native=None) if any(reproduces(mean, part.native) for mean in means) else part


def _read(get: Callable[[Doc], Any], doc: Doc, what: str) -> Any:
    """What a document has at a field that the user named."""
    try:
        return get(doc)
    except MissingFieldError as error:
        have = ", ".join(error.fields) or "none"
        raise FinalError(f"{what} field {error.spec!r} is not in the document; there are {have}") from None
