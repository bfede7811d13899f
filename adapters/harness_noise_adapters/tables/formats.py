"""Reading the rows of a file by paths, those of the preset of its format or of the columns of a table."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import compress
from math import nan
from typing import Any

from harness_noise.data.answers import compared
from harness_noise.data.clusters import OuterFields
from harness_noise.data.measures import numeric_fields, usage_of
from harness_noise.data.questions import Questions, QuestionText, TextSource, content_hash, excerpt
from harness_noise.data.scores import ReadOptions, Run, Scores, Skipped
from harness_noise.errors import FinalError, InputError, parameter

from ..records import uncollected
from .cells import Answered, Key
from .columns import HUGE, MOST_ODD, OFF, NoScoreError, cell_text, odd_scores, score_of
from .files import Record, stem
from .presets import (
    Cause,
    Getter,
    Preset,
    Recognised,
    ScorePath,
    column,
    getter,
    holds,
    is_empty,
    is_there,
    of_file,
    of_row,
    rendered,
    spread,
)
from .questions import clusters_of, fields_of, levels_of

_PLAIN = {float, int, bool}


@dataclass(frozen=True, slots=True)
class _Rule:
    """A `ScorePath` that can be called."""

    path: ScorePath
    applies: Callable[[Any], bool] | None
    get: Getter | None
    """None: there is a `*` in the path."""
    column: Callable[[Sequence[Record]], list[Any]]
    """The scores of many rows at once."""
    name: Getter
    metric: str
    causes: Sequence[tuple[Cause, Callable[[Any], bool]]]

    @classmethod
    def of(cls, path: ScorePath) -> _Rule:
        get = None if "*" in path.path else getter(path.path)
        return cls(
            path,
            holds(path.where) if path.where else None,
            get,
            column(path.path, get),
            getter(path.name),
            path.metric or path.path.rpartition(".")[2],
            _callable(path.missing),
        )

    def values(self, row: Record) -> Iterator[tuple[str, Any, Any]]:
        """Metric, what holds its score, and the score."""
        for name, holder, value in spread(self.path.path, row):
            metric = cell_text(self.name(holder)) if self.path.name else name
            if metric is not None and not any(fnmatchcase(metric, glob) for glob in self.path.leave_out):
                yield metric, holder, value


def _callable(causes: Sequence[Cause]) -> list[tuple[Cause, Callable[[Any], bool]]]:
    return [(cause, holds(cause.where)) for cause in causes]


class RowReader:
    """What the rows of one file have said so far."""

    again: Callable[[], RowReader]
    """Makes such a reader once more; it can be pickled."""

    def __init__(self, source: Recognised, options: ReadOptions, chosen: Mapping[str, str]) -> None:
        self.source, self.options, self.chosen, self.path = source, options, chosen, source.path
        self.preset = preset = source.preset
        self.strict, self.used = source.strict, {"score", *(preset.question if len(preset.question) == 1 else ())}
        self.tables: dict[tuple[str, str, str, str], Answered] = {}
        """Model, task, metric and scorer → the answers."""
        self.rules = [_Rule.of(path) for path in preset.score]
        self.causes = _callable(preset.missing)
        self.question = self._key(preset)
        self.model, self.task, self.metric = self.of(preset.model), self.of(preset.task), self.of(preset.metric)
        self.scorer, self.repeat, self.condition = map(self.of, (preset.scorer, preset.repeat, preset.condition))
        self.text = self.of(preset.text)
        self.known_by = [getter(path) for path in preset.known_by]
        own = (preset.cluster, self.of(preset.cluster) or getter("")) if preset.cluster else None
        self.cluster, self.spec = clusters_of(self.path, options, own, self._task)
        self.more = {name: (self.of(path), of_file(path)) for name, path in preset.fields.items()}
        self.labels = bool(options.factors or self.cluster or self.repeat or self.condition or options.usage)
        self.measurable: tuple[str, ...] = ()
        self.detailed = self.labels or self.text is not None or bool(options.fields)
        self.plain = not (self.detailed or self.known_by or len(preset.question) > 1)
        """Whether a row may say no more than the question and a number."""
        first = preset.question[0]
        others = ((preset.model, self.model), (preset.task, self.task), (preset.metric, self.metric))
        self.key_columns = [column(spec, get) for spec, get in ((first, getter(first)), *others)]
        """Question, model, task and metric of many rows."""
        self.outer: dict[str, OuterFields] = defaultdict(OuterFields)
        """Task → which columns contain its clusters."""
        self.unscored: list[tuple[str, str, str, Cause | None, int, Record]] = []
        """Model, task, question, cause, line and row of what went wrong before there was a score of any metric."""
        self.notes = [f"{self.path.name}: read as {preset.name}"]

    def of(self, spec: str) -> Getter | None:
        """A function from a row to the value at a path; None where no row says it."""
        return of_row(spec)

    def _key(self, preset: Preset) -> Callable[[Record], str | None]:
        """A function from a row to the name of its question."""
        gets = [getter(path) for path in preset.question]
        if len(gets) == 1:
            return lambda row: cell_text(gets[0](row))

        def key(row: Record) -> str | None:
            values = [get(row) for get in gets]
            try:
                text = json.dumps(values, sort_keys=True, default=str)
            except RecursionError:
                raise FinalError(f"{self.path}: what names a question is nested too deeply") from None
            return None if all(value is None for value in values) else sha256(text.encode()).hexdigest()[:16]

        return key

    def _task(self, row: Record) -> str:
        name = None if self.task is None else cell_text(self.task(row))
        return name or cell_text(of_file(self.preset.task)(self.source.file)) or self.preset.name

    def rows(self) -> Iterator[Record]:
        """The rows, one by one."""
        for _, rows in self.source.blocks():
            yield from rows

    def read(self) -> list[Run]:
        """The models of the file, one Run each."""
        with uncollected():
            for lines, rows in self.source.blocks():
                if not (self.plain and self.add_plain(rows)):
                    for line, row in zip(lines, rows, strict=True):
                        self.add(line, row)
        self.finish()
        if not self.tables:
            raise InputError(f"{self.path}: {self.preset.reads}: there is no score in it")
        return [self._run(model) for model in dict.fromkeys(model for model, *_ in self.tables)]

    def finish(self) -> None:
        """What can only be decided when all rows are known."""
        for (model, task, *_), cells in self.tables.items() if self.unscored else ():
            answered = {*zip(cells.places, cells.repeats, strict=False)}
            for of_model, of_task, question, cause, line, row in self.unscored:
                repeat = None if self.repeat is None else cell_text(self.repeat(row))
                scored = question in cells.keys and (repeat is None or (cells.keys[question], repeat) in answered)
                if (of_model, of_task) == (model, task) and not scored:
                    self.answer(cells, question, row, line, nan, cause)

    def add_plain(self, rows: Sequence[Record]) -> bool:
        """Rows that say no more than the question and a number, at once; False: some do, and nothing has been added."""
        if any(_any(cause, applies, rows) for cause, applies in self.causes):
            return False
        by_rule = [(rule, [*filter(rule.applies, rows)] if rule.applies else rows) for rule in self.rules]
        by_rule = [(rule, its_rows) for rule, its_rows in by_rule if its_rows]
        if not by_rule:
            return True
        (rule, rows), *others = by_rule
        if others or rule.get is None:
            return False
        names, *about = (values(rows) for values in self.key_columns)
        values, questions = rule.column(rows), _texts(names)
        if not _all_numbers(values) or None in questions or (self.metric is not None and None in about[-1]):
            return False
        same = all(column.count(column[0]) == len(column) for column in about)
        keys = [tuple(column[0] for column in about)] if same else list(zip(*about, strict=True))
        try:
            distinct = dict.fromkeys(keys)
        except TypeError:  # a name that is an object or a list
            return False
        for key in distinct:
            model, task, metric = map(cell_text, key)
            cells = self.cells(model, task, metric or rule.metric, None, rule)
            if same:
                cells.extend(questions, values)
            else:
                mine = [other == key for other in keys]
                cells.extend([*compress(questions, mine)], [*compress(values, mine)])
        return True

    def add(self, line: int, row: Record) -> None:
        """One row."""
        if self.known_by and all(is_empty(get(row)) for get in self.known_by):
            raise InputError(f"{self.path}, entry {line}: {self.preset.advice} ({parameter('columns', _LIKE)})")
        cause = next((why for why, applies in self.causes if applies(row)), None)
        rules = [rule for rule in self.rules if rule.applies is None or rule.applies(row)]
        if not rules:
            if cause is not None:
                self.lost(line, row, cause)
            return
        question = self.question_of(line, row)
        model, task, metric, scorer = (
            get and cell_text(get(row)) for get in (self.model, self.task, self.metric, self.scorer)
        )
        for rule in rules:
            if rule.get is not None:
                cells = self.cells(model, task, metric or rule.metric, scorer, rule)
                self.answer(cells, question, row, line, rule.get(row), cause)
                continue
            for name, holder, value in rule.values(row):
                if rule.path.words or not isinstance(value, (str, list, dict)):
                    beside = next((why for why, applies in rule.causes if applies(holder)), cause)
                    self.answer(self.cells(model, task, name, scorer, rule), question, row, line, value, beside)

    def question_of(self, line: int, row: Record) -> str:
        """The question of a row."""
        question = self.question(row)
        if question is None:
            names = " or ".join(map(repr, self.preset.question))
            raise InputError(f"{self.path}, line {line}: no {names}: which question is it?")
        return question

    def lost(self, line: int, row: Record, cause: Cause | None) -> None:
        """A row that has no score: of which metrics, is known when all rows are."""
        model, task = ("" if get is None else cell_text(get(row)) or "" for get in (self.model, self.task))
        self.unscored.append((model, task, self.question_of(line, row), cause, line, row))

    def cells(self, model: str | None, task: str | None, metric: str, scorer: str | None, rule: _Rule) -> Answered:
        """The answers under one metric."""
        key = (model or "", task or "", metric, scorer or "none")
        cells = self.tables.get(key)
        if cells is None:
            cells = self.tables[key] = Answered(rule=rule.path)
        return cells

    def answer(self, cells: Answered, question: str, row: Record, line: int, value: Any, cause: Cause | None) -> None:
        """One answer and its score."""
        if cause is not None and not (cause.if_empty and not is_empty(value)):
            if cause.cause:
                cells.causes[len(cells.values)] = cause.cause
            value = nan
        if type(value) in _PLAIN and -HUGE < value < HUGE:
            number = float(value)
        else:
            number = nan if value is nan else self.number(cells, line, value)
        if self.detailed:
            self.note(cells, question, row, line)
        cells.append(question, number)

    def note(self, cells: Answered, question: str, row: Record, line: int) -> None:
        """Everything but the score of an answer that somebody wants to know."""
        if self.text is not None and question not in cells.keys:
            words = cell_text(self.text(row))
            cells.hashes.append("" if words is None else content_hash(words))
            cells.texts.append(excerpt(words or ""))
        more = {name: get(row) if get else of(self.source.file) for name, (get, of) in self.more.items()}
        filled = {**row, **more} if more else row
        if self.cluster is not None:
            label = self.cluster(filled, line)
            cells.clusters.append(label)
            if label is not None:
                self.outer[self._task(row)].add(question, label, filled)
        if self.options.fields:
            cells.records.setdefault(question, []).append(filled)
        if factors := self.options.factors:
            cells.levels.append(levels_of(self.path, line, filled, factors))
        if names := self.options.usage:
            self.measurable = self.measurable or tuple(numeric_fields(filled))
            cause = cells.causes.get(len(cells.values), "")
            cells.usage.append(usage_of(filled, names, self.path, line, cause))
        if (repeat := self.condition or self.repeat) is not None:
            cells.repeats.append(cell_text(repeat(row)))
        if self.labels:
            cells.lines.append(line)

    def number(self, cells: Answered, line: int, value: Any) -> float:
        """A score that is no plain number."""
        name = cells.rule.metric or cells.rule.path
        try:
            if self.strict and isinstance(value, str) and _DIGIT.match(value):
                raise NoScoreError(f"{self.path}, entry {line}: {name} {value[:40]!r} is a text and no number")
            return score_of(self.path, line, name, value)
        except NoScoreError as error:
            cells.odd.setdefault(repr(value)[:200], error)
            if len(cells.odd) > MOST_ODD and "*" not in cells.rule.path:
                raise odd_scores(cells.odd) from None
            return nan

    def _run(self, model: str) -> Run:
        file, preset = self.source.file, self.preset
        named = model or cell_text(of_file(preset.model)(file)) or stem(self.path)
        scores, skipped, notes = [], [], [*self.notes]
        for (of_model, of_task, metric, scorer), cells in self.tables.items():
            if of_model != model:
                continue
            task = of_task or cell_text(of_file(preset.task)(file)) or preset.name
            if cells.odd and ("*" not in cells.rule.path or any(value == value for value in cells.values)):
                raise odd_scores(cells.odd)
            if cells.odd:
                skipped.append(
                    Skipped(task, metric, scorer, f"its values are no scores: {', '.join([*cells.odd][:3])}")
                )
                continue
            scores.append(self.scores(named, (task, metric, scorer), cells, notes))
        if not scores:
            raise InputError(f"{self.path}: {preset.reads}: there is no score in it")
        date = cell_text(of_file(preset.date)(file)) or ""
        name = str(self.path)
        run = Run(named, name, preset.name, path=name, date=date, scores=tuple(scores), measurable=self.measurable)
        return replace(run, skipped=tuple(skipped), notes=tuple(notes))

    def scores(self, model: str, key: Key, cells: Answered, notes: list[str]) -> Scores:
        """The scores under one metric; says in `notes` what it leaves out."""
        preset, rule, options = self.preset, cells.rule, self.options
        conditions = cells.by_condition() if self.condition is not None else 0
        repeated = len(cells.values) > len(cells.keys)
        fields: dict[str, Any] = {
            "bounds": tuple(rule.bounds) or None,
            "questions": self._questions(model, key, cells),
            "repeats_named": self.repeats_named(cells, conditions) if repeated else None,
            "repeats_are_runs": preset.shared_repeats and repeated,
        }
        if rule.native:
            fields["native"] = rendered(rule.native, file=self.source.file, model=model, metric=key[1])
        part = cells.scores(
            self.path,
            key,
            options,
            clusters=cells.labels_of_questions(self.path),
            cluster_spec=self.spec(key[0]),
            outer=self.outer[key[0]].found() if key[0] in self.outer else None,
            **fields,
        )
        inside = (part.values > 0) & (part.values < 1 if preset.name == "table" else part.values <= 1)
        if rule.bounds and part.bounds is None and inside.any():
            notes.append(f"{key[0]}, {key[1]}: some scores lie in 0 to 1 and others beyond: shares among percentages?")
        if cells.twice:
            notes.append(f"{key[0]}, {key[1]}: {cells.twice} rows say again what another row said and are left out")
        return compared(part)

    def repeats_named(self, cells: Answered, conditions: int) -> str | None:
        """What the repeats of all questions share; None: nothing that is known."""
        shared = self.preset.condition if conditions > 1 else self.preset.repeat if self.preset.shared_repeats else ""
        return shared.partition(" | ")[0] or None

    def _questions(self, model: str, key: Key, cells: Answered) -> Questions:
        keys = tuple(cells.keys)
        fields = fields_of(self.path, key[0], cells.records, self.used, self.options.fields)
        worded = self.text is not None and "" not in cells.hashes.odd()
        texts = tuple(cells.texts) if len(self.preset.question) > 1 and any(cells.texts) else None
        return Questions(
            keys,
            inputs=cells.hashes if worded else None,
            texts=texts,
            documents=self.documents(keys),
            fields=fields,
            log=RowLog(self.again, keys, (model, *key)),
        )

    def documents(self, keys: Sequence[str]) -> TextSource | None:
        """Where the words of the questions can be read; None: they have been read, or are not known."""
        return None

    def is_of(self, row: Record, key: Sequence[str]) -> bool:
        """Whether a row is of this model, task, metric and scorer."""
        gets = (self.model, self.task, self.metric, self.scorer)
        return all(get is None or (cell_text(get(row)) or name) == name for get, name in zip(gets, key, strict=True))


def as_chosen(source: Recognised, chosen: Mapping[str, str]) -> Recognised:
    """A file of a known format, with what the user says in the place of its preset."""
    first = next((row for _, rows in source.blocks() for row in rows), None) if chosen else None
    said: dict[str, Any] = {}
    for ours, theirs in chosen.items():
        if theirs == OFF and ours != "question":
            said[ours] = ""
            continue
        if first is not None and not theirs.startswith("@") and "{" not in theirs and not is_there(theirs, first):
            have = ", ".join(map(str, first))
            raise InputError(f"{source.path}: `columns` {ours}={theirs}: no such field; there are {have}")
        said[ours] = [theirs] if ours == "question" else theirs
        if ours in ("question", "repeat"):
            said |= {"known_by": (), "text": ""} if ours == "question" else {"condition": "", "shared_repeats": False}
    return replace(source, preset=replace(source.preset, **said))


def _any(cause: Cause, applies: Callable[[Any], bool], rows: Sequence[Record]) -> bool:
    """Whether any row tells of a cause."""
    path = next(iter(cause.where))
    holders = rows if set(path) & set(".*|{") else [row for row in rows if row.get(path) is not None]
    return any(map(applies, holders))


def _texts(values: Sequence[Any]) -> list[Any]:
    """What `cell_text` makes of each value."""
    with suppress(TypeError):
        if "".join(values).isascii() and all(stripped := list(map(str.strip, values))):
            return stripped
    return list(map(cell_text, values))


def _all_numbers(values: Sequence[Any]) -> bool:
    """Whether all are scores as they are: numbers, none of them NaN or without end."""
    return set(map(type, values)) <= _PLAIN and min(values) > -HUGE and max(values) < HUGE > sum(values)


_LIKE = {"question": "FIELD"}
_DIGIT = re.compile(r"\s*[+-]?[.\d]")


@dataclass(frozen=True, slots=True)
class RowLog:
    """Read again where somebody asks; see `harness_noise.data.questions.AnswerSource`."""

    again: Callable[[], RowReader]
    keys: Sequence[str]
    key: tuple[str, ...]
    """Model, task, metric and scorer."""

    def read(self, rows: Sequence[int], scorer: str) -> list[QuestionText]:
        """What is told of these questions, by their place; of names that were made up (`name#2`) nothing."""
        wanted: dict[str | None, list[Record]] = {self.keys[row]: [] for row in rows}
        reader = self.again()
        for row in reader.rows():
            if (question := reader.question(row)) in wanted and reader.is_of(row, self.key):
                wanted[question].append(row)
        preset = reader.preset
        text, target, answer = getter(preset.text), getter(preset.target), getter(preset.answer)

        def question_text(records: Sequence[Record]) -> QuestionText:
            if not records:
                return QuestionText()
            answers = tuple(cell_text(answer(row)) or "" for row in records) if preset.answer else ()
            return QuestionText(cell_text(text(records[0])), cell_text(target(records[0])), answers)

        return [question_text(wanted[self.keys[row]]) for row in rows]
