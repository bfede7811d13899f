"""Score tables: one row for each answer, in CSV, JSONL, JSON or Parquet; eval-arena's counts as well.

What a column is goes by its name, and only by names that can hardly mean anything else; the run's
notes say what was taken for what. `--columns` says the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.clusters import OuterFields
from harness_noise.data.measures import usage_of
from harness_noise.data.questions import Questions, QuestionText
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import InputError, parameter

from ..records import ReadOnly
from .columns import HEAD, TASK, TableColumns, cell_text, odd_scores
from .files import Record, Rows, has_rows, records, stem, suffix_of
from .formats import FormatReader, opened
from .presets import all_presets
from .questions import Key, Pooled, TableAnswers, clusters_of, fields_of, hashed, levels_of, refuse_one_question, settle

if TYPE_CHECKING:
    from harness_noise.data.scores import LabelFile


class TableAdapter(ReadOnly):
    """Score tables (CSV, JSONL, JSON, Parquet; `.gz`), read only: they have no place for an error bar."""

    name = "table"

    def formats(self, own: str | None = None) -> dict[str, str]:
        """The formats of which there is a preset, and what each reads."""
        return {preset.name: preset.reads for preset in all_presets(own)}

    def sniff(self, path: Path) -> bool:
        """Whether the file's name says it is a table; a JSON file has to be a list, or an object that holds one."""
        if not suffix_of(path) or not path.is_file():
            return False
        return suffix_of(path) != ".json" or has_rows(path)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """The models of a table, one Run each; see `harness_noise.io.protocol.Adapter.read`."""
        return read(path, options)

    def read_rows(self, name: str, rows: Sequence[Record], options: ReadOptions) -> list[Run]:
        """The models of a table in memory, called `name`."""
        place: Any = Rows(name, rows)  # what is read is asked for its name only
        return read(place, options)

    def read_labels(self, path: Path | None, rows: Sequence[Record] = ()) -> LabelFile:
        """People's labels from a file, or from rows in memory."""
        from .labels import read_labels

        return read_labels(Rows("labels", rows) if path is None else path)


adapter = TableAdapter()


def read(path: Path, options: ReadOptions) -> list[Run]:
    """The runs in a table, one for each model, in the order in which they appear.

    A repeat column tells a question's answers apart; without one, its rows are its answers in order.

    Raises:
        InputError: the file is damaged or empty, a column is missing or ambiguous, a score is not a
            number, or one repeat of a question has two scores; says file, line and what to do.
    """
    chosen = _columns_of(path, options.columns)
    known, whole = opened(path, options.format_file, chosen)
    if known is not None:
        return FormatReader(known, options, chosen).read()
    inside = chosen.pop("rows", None)
    rest = records(path, inside, whole)
    head = list(islice(rest, HEAD))
    if not head:
        raise InputError(f"{path}: the table has no rows")
    columns = TableColumns.of(path, [record for _, record in head], chosen, inside)
    table = _TableReader(path, columns, options)
    for line, record in chain(head, rest):
        table.add(line, columns.filled(record))
    if columns.odd:
        raise odd_scores(columns.odd)
    return table.runs()


class _TableReader:
    """What the rows of one file have said so far."""

    def __init__(self, path: Path, columns: TableColumns, options: ReadOptions) -> None:
        self.path, self.columns, self.options = path, columns, options
        own = columns.names.get("cluster")
        self.cluster, self.spec = clusters_of(
            path, options, None if own is None else (own, lambda record: record.get(own)), self._task
        )
        self.models: dict[str, dict[Key, TableAnswers]] = {}
        known = (*options.fields, *options.usage, *(() if options.cluster is None else (options.cluster,)))
        self.pooled = None if options.factors else Pooled(path, columns, known)  # `factors` asks what else makes noise
        self.outer: dict[str, OuterFields] = {}
        """Task → which columns contain its clusters."""

    def _task(self, record: Record) -> str:
        return self.columns.text(record, "task") or TASK

    def add(self, line: int, record: Record) -> None:
        """One row."""
        path, columns = self.path, self.columns
        for name in ("model", "task"):
            if name in columns.names and columns.text(record, name) is None:
                raise InputError(f"{path}, line {line}: no {columns.names[name]!r}, though the table has that column")
        model = columns.text(record, "model") or stem(path)
        key = (
            self._task(record),
            columns.text(record, "metric") or "score",
            columns.text(record, "scorer") or "none",
        )
        cells = self.models.setdefault(model, {}).setdefault(key, TableAnswers())
        question = cells.name(*columns.question_of(path, line, record))
        if columns.wording is not None and question not in cells.numbers:
            cells.hashes.append(hashed(record.get(columns.wording)))
        label = None if self.cluster is None else self.cluster(record, line)
        if label is not None:
            if key[0] not in self.outer:
                self.outer[key[0]] = OuterFields(columns.unused)
            self.outer[key[0]].add(question, label, record)
        levels = levels_of(path, line, record, self.options.factors)
        (scores, count), repeat = columns.scores(path, line, record), columns.text(record, "repeat")
        if count > 1:
            cells.question(path, question, label, line)
            cells.counts.setdefault(question, []).append((int(scores[0]), count))
        elif len(scores) == 1:
            number = cells.add(path, question, repeat, scores[0], cluster=label, levels=levels, line=line)
            if self.options.usage:
                cells.measure(path, number, usage_of(record, self.options.usage, path, line))
        else:
            for j, score in enumerate(scores):
                which = None if repeat is None else f"{repeat}.{j}"
                cells.add(path, question, which, score, cluster=label, levels=levels, line=line)
        if self.options.fields:
            cells.records.setdefault(question, []).append(record)
        if repeat is None and "repeat" in columns.names:
            raise InputError(
                f"{path}, line {line}: no {columns.names['repeat']!r}, which tells the answers apart; if it does not, "
                f"say {parameter('columns', {'repeat': 'none'})}, and the rows of a question are its answers in order"
            )
        if self.pooled is not None:
            self.pooled.add(line, record)

    def runs(self) -> list[Run]:
        path, columns = self.path, self.columns
        tables = [cells for of_model in self.models.values() for cells in of_model.values()]
        settled = settle(path, columns, tables)
        tables = [settled.of(cells) for cells in tables]
        refuse_one_question(path, columns, tables)
        if self.pooled is not None:
            self.pooled.ask(tables)
        notes = [columns.note(path, (*self.options.fields, *self.options.usage)), *settled.notes]
        return [
            self._run(model, {key: settled.of(cells) for key, cells in of_model.items()}, notes)
            for model, of_model in self.models.items()
        ]

    def _questions(self, model: str, key: Key, cells: TableAnswers) -> Questions:
        used = {theirs for ours, theirs in self.columns.names.items() if ours != "cluster"}
        records = {question: cells.records.get(question, []) for question in cells.numbers}
        known = fields_of(self.path, key[0], records, used, self.options.fields)
        said = zip(("model", "task", "metric", "scorer"), (model, *key), strict=True)
        names, keys = self.columns.names, tuple(cells.numbers)
        log = TableLog(self.path, self.columns, tuple(text if name in names else None for name, text in said), keys)
        told = self.columns.wording is not None and "" not in cells.hashes.odd()
        return Questions(keys, inputs=cells.hashes if told else None, fields=known, log=log)

    def _run(self, model: str, cells: Mapping[Key, TableAnswers], notes: Sequence[str]) -> Run:
        bounds = (0.0, 1.0) if self.columns.right_or_wrong else None
        scores = [
            found.scores(
                self.path,
                key,
                self.options,
                cluster_spec=self.spec(key[0]),
                outer=self.outer[key[0]].found() if key[0] in self.outer else None,
                bounds=bounds,
                questions=self._questions(model, key, found),
                repeats_named=self.columns.cause if self.columns.cause and found.shares_labels() else None,
            )
            for key, found in cells.items()
        ]
        twice = [
            f"{task}: {found.twice} rows say again what another row said and are left out"
            for (task, _, _), found in cells.items()
            if found.twice
        ]
        return Run(
            model=model,
            name=str(self.path),
            harness="table",
            path=str(self.path),
            scores=tuple(scores),
            measurable=self.columns.numeric,
            notes=(*notes, *twice),
        )


def _columns_of(path: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What `--columns` says of this file: `score=COL` of every file, `FILE:score=COL` of the one of that name."""
    everywhere = {name: column for name, column in given.items() if ":" not in name}
    for name, column in given.items():
        file, _, ours = name.rpartition(":")
        if file and file in (path.name, stem(path), str(path)):
            everywhere[ours] = column
    return everywhere


TARGETS = ("target", "gold", "ground_truth", "expected", "expected_answer", "reference_answer", "correct_answer")
ANSWERS = ("response", "completion", "output", "prediction", "model_answer", "model_output", "generated", "answer")
"""Names of columns, in lower case, in the order in which one is taken."""


@dataclass(frozen=True, slots=True)
class TableLog:
    """Read again where somebody asks; see `harness_noise.data.questions.AnswerSource`."""

    path: Path
    columns: TableColumns
    key: tuple[str | None, ...]
    """What the rows say of model, task, metric and scorer; None where the table has no such column."""
    keys: Sequence[str]

    def read(self, rows: Sequence[int], scorer: str) -> list[QuestionText]:
        """What is told of these questions, by their place; of names that were made up (`name#2`) nothing."""
        wanted: dict[str, list[Record]] = {self.keys[row]: [] for row in rows}
        for line, raw in records(self.path, self.columns.rows):
            record = self.columns.filled(raw)
            question = self.columns.question_of(self.path, line, record)[0]
            if question in wanted and self._is_ours(record):
                wanted[question].append(record)
        return [self._told(wanted[self.keys[row]]) for row in rows]

    def _is_ours(self, record: Record) -> bool:
        names = ("model", "task", "metric", "scorer")
        return all(
            known is None or self.columns.text(record, name) == known
            for name, known in zip(names, self.key, strict=True)
        )

    def _told(self, found: Sequence[Record]) -> QuestionText:
        if not found:
            return QuestionText()
        plain = {str(name).strip().lower().replace(" ", "_"): name for name in found[0]}
        free = [name for name in plain if plain[name] not in self.columns.names.values()]
        target = next((plain[name] for name in TARGETS if name in free), None)
        answer = next((plain[name] for name in ANSWERS if name in free and plain[name] != target), None)
        words = self.columns.words
        return QuestionText(
            text=None if words is None else cell_text(found[0].get(words)),
            target=None if target is None else cell_text(found[0].get(target)),
            answers=() if answer is None else tuple(cell_text(record.get(answer)) or "" for record in found),
        )
