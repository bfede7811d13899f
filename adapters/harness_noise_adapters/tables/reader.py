"""Score tables: one row for each answer, in CSV, JSONL, JSON or Parquet; eval-arena's counts as well.

What a column is goes by its name, and only by names that can hardly mean anything else; the run's
notes say what was taken for what. `--columns` says the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.answers import MetricAnswers
from harness_noise.data.clusters import ClusterSpec, MissingFieldError, OuterFields, labeller, resolved
from harness_noise.data.native_values import fitting
from harness_noise.data.questions import Hashes, Questions, content_hash, occurrences
from harness_noise.data.scores import ReadOptions, Run, Scores
from harness_noise.errors import InputError, parameter

from .answers import TableLog
from .columns import _HEAD, TASK, Columns
from .fields import fields_of
from .files import Record, Rows, has_rows, records, stem, suffix_of
from .questions import Pooled, refuse_one_question, settle
from .values import _text

if TYPE_CHECKING:
    from harness_noise.arrays import FloatArray
    from harness_noise.io.protocol import Analyzer

Key = tuple[str, str, str]
"""Task, metric and scorer."""


class TableAdapter:
    """Score tables (CSV, JSONL, JSON, Parquet; `.gz`), read only: they have no place for an error bar."""

    name = "table"

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

    def write(self, path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
        """Refused: a table has no place for it."""
        raise InputError(
            f"{path}: a score table has no place for error bars; use `analyze {path} --format csv -o FILE`"
        )


adapter = TableAdapter()


def read(path: Path, options: ReadOptions) -> list[Run]:
    """The runs in a table, one for each model, in the order in which they appear.

    A repeat column tells a question's answers apart; without one, its rows are its answers in order.

    Raises:
        InputError: the file is damaged or empty, a column is missing or ambiguous, a score is not a
            number, or one repeat of a question has two scores; says file, line and what to do.
    """
    chosen = _columns_of(path, options.columns)
    inside = chosen.pop("rows", None)
    rest = records(path, inside)
    head = list(islice(rest, _HEAD))
    if not head:
        raise InputError(f"{path}: the table has no rows")
    columns = Columns.of(path, [record for _, record in head], chosen, inside)
    table = _Table(path, columns, options)
    for line, record in chain(head, rest):
        table.add(line, columns.filled(record))
    if columns.odd:
        raise columns.no_scores(path)
    return table.runs()


class _Table:
    """What the rows of one file have said so far."""

    def __init__(self, path: Path, columns: Columns, options: ReadOptions) -> None:
        self.path, self.columns, self.options = path, columns, options
        self.cluster, self.spec = _cluster(path, columns, options)
        self.models: dict[str, dict[Key, Cells]] = {}
        known = (*options.fields, *(() if options.cluster is None else (options.cluster,)))
        self.pooled = None if options.factors else Pooled(path, columns, known)  # `factors` asks what else makes noise
        self.outer: dict[str, OuterFields] = {}
        """Task → which columns contain its clusters."""

    def add(self, line: int, record: Record) -> None:
        """One row."""
        path, columns = self.path, self.columns
        for name in ("model", "task"):
            if name in columns.names and columns.text(record, name) is None:
                raise InputError(f"{path}, line {line}: no {columns.names[name]!r}, though the table has that column")
        model = columns.text(record, "model") or stem(path)
        key = (columns.text(record, "task") or TASK, columns.text(record, "metric") or "score",
               columns.text(record, "scorer") or "none")  # fmt: skip
        cells = self.models.setdefault(model, {}).setdefault(key, Cells())
        question = cells.name(*columns.question_of(path, line, record))
        if columns.wording is not None and question not in cells.numbers:
            cells.hashes.append(hashed(record.get(columns.wording)))
        label = None if self.cluster is None else self.cluster(record, line)
        if label is not None:
            if key[0] not in self.outer:
                self.outer[key[0]] = OuterFields(columns.unused)
            self.outer[key[0]].add(question, label, record)
        levels = _levels(path, line, record, self.options.factors)
        (scores, count), repeat = columns.scores(path, line, record), columns.text(record, "repeat")
        if count > 1:
            cells.question(path, question, label, line)
            cells.counts.setdefault(question, []).append((int(scores[0]), count))
        elif len(scores) == 1:
            cells.add(path, question, repeat, scores[0], cluster=label, levels=levels, line=line)
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
        notes = [columns.note(path, self.options.fields), *settled.notes]
        return [
            self._run(model, {key: settled.of(cells) for key, cells in of_model.items()}, notes)
            for model, of_model in self.models.items()
        ]

    def _questions(self, model: str, key: Key, cells: Cells) -> Questions:
        known = fields_of(self.path, key[0], cells, self.columns, self.options.fields)
        said = zip(("model", "task", "metric", "scorer"), (model, *key), strict=True)
        names, keys = self.columns.names, tuple(cells.numbers)
        log = TableLog(self.path, self.columns, tuple(text if name in names else None for name, text in said), keys)
        told = self.columns.wording is not None and "" not in cells.hashes.odd()
        return Questions(keys, inputs=cells.hashes if told else None, fields=known, log=log)

    def _run(self, model: str, cells: Mapping[Key, Cells], notes: Sequence[str]) -> Run:
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
            model=model, name=str(self.path), harness="table", path=str(self.path), scores=tuple(scores),
            notes=(*notes, *twice),
        )  # fmt: skip


def _columns_of(path: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What `--columns` says of this file: `score=COL` of every file, `FILE:score=COL` of the one of that name."""
    everywhere = {name: column for name, column in given.items() if ":" not in name}
    for name, column in given.items():
        file, _, ours = name.rpartition(":")
        if file and file in (path.name, stem(path), str(path)):
            everywhere[ours] = column
    return everywhere


@dataclass(slots=True)
class Cells(MetricAnswers):
    """The rows of one model × task × metric, question by question."""

    counts: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """question → right answers and all answers, for each row that counts several."""
    words: dict[str, str] = field(default_factory=dict)
    """Question → the words beside its name."""
    double: dict[str, str] = field(default_factory=dict)
    """Questions that are called by name and words, because the name has come with other words → the name."""
    records: dict[str, list[Record]] = field(default_factory=dict)
    """question → its rows, where something is to be known of the questions."""
    hashes: Hashes = field(default_factory=Hashes)
    """Of the words of each question, in their order; "" where it has none."""

    def shares_labels(self) -> bool:
        """Whether the labels of repeats are those of all questions, as `columns` has it, and no seed of each answer."""
        labels = {repeat for known in self.numbers.values() for repeat in known}
        return len(labels) <= 2 * max(map(len, self.numbers.values()), default=0)

    def name(self, question: str, words: str | None) -> str:
        """What a question is called for now."""
        if words is None or self.words.setdefault(question, words) == words:
            return question
        both = f"{question}\x1f{words}"
        self.double[both], self.words[both] = question, words
        return both

    def renamed(self, path: Path, names: Mapping[str, str]) -> Cells:
        """The same rows, each of the question that `names` says."""
        out = Cells(twice=self.twice)
        for question, found in self.records.items():
            out.records.setdefault(names.get(question, question), []).extend(found)
        hashes = dict(zip(self.numbers, self.hashes, strict=False))
        for question, repeat, number in self:
            known, levels = repeat if isinstance(repeat, str) else None, self.levels.get(number, ())
            if levels and known is not None:
                known = known.partition("\x1f")[0]  # `add` puts the levels behind it again
            self._copy(number, question, out, path, names.get(question, question), known, hashes)
        return out

    def numbered(self, path: Path) -> Cells:
        """The same rows, each a question of its own."""
        out, rows = Cells(twice=self.twice), list(self)
        hashes = dict(zip(self.numbers, self.hashes, strict=False))
        for key, (question, _, number) in zip(occurrences([row[0] for row in rows]), rows, strict=True):
            self._copy(number, question, out, path, key, None, hashes)
            out.records[key] = self.records.get(question, [])
        return out

    def _copy(
        self, number: int, question: str, out: Cells, path: Path, key: str, repeat: str | None,
        hashes: Mapping[str, str],
    ) -> None:  # fmt: skip
        if key not in out.numbers and question in hashes:
            out.hashes.append(hashes[question])
        out.add(
            path, key, repeat, self.values[number], cluster=self.clusters[question][0],
            levels=self.levels.get(number, ()), line=self.lines[number],
        )  # fmt: skip

    def scores(self, where: object, what: Key, options: ReadOptions, **fields: Any) -> Scores:
        """See `MetricAnswers.scores`; answers that are only counted stand in no known order."""
        if not self.counts:
            return MetricAnswers.scores(self, where, what, options, **fields)
        if options.factors:
            raise InputError(f"{where}: counts of right answers do not say which answer is which: `factors` needs rows")
        counted = {question: sum(count for _, count in rows) for question, rows in self.counts.items()}
        part = MetricAnswers.scores(self, where, what, options, more=counted, **fields)
        self._fill(part.values)
        # counts do not tell the order of the answers: draw one, or repeat 1 would always be right
        import numpy as np

        values = np.random.default_rng(0).permuted(part.values, axis=1)
        return replace(part, values=values, bounds=fitting(fields.get("bounds"), values))

    def _fill(self, values: FloatArray) -> None:
        """Put the counted answers behind those that have rows of their own."""
        for i, (question, known) in enumerate(self.numbers.items()):
            start = len(known)
            for right, count in self.counts.get(question, ()):
                values[i, start : start + right] = 1.0
                values[i, start + right : start + count] = 0.0
                start += count


def hashed(words: Any) -> str:
    """The hash of a question's words; "" where there are none."""
    text = _text(words)
    return "" if text is None else content_hash(text)


def _cluster(
    path: Path, columns: Columns, options: ReadOptions
) -> tuple[Callable[[Record, int], str | None] | None, Callable[[str], str | None]]:
    """A function from a row to its cluster, and one from a task to the words for it."""
    if options.cluster is None:
        if "cluster" not in columns.names:
            return None, lambda task: None
        return (lambda record, line: columns.text(record, "cluster")), (lambda task: columns.names["cluster"])
    parsed = ClusterSpec.parse(options.cluster)
    labels: dict[str, Callable[[Mapping[str, Any]], str] | None] = {}

    def natural(task: str) -> str:
        raise InputError(f"{path}: `cluster='auto'` knows the tasks of harnesses, not a table's columns; name a column")

    def spec(task: str) -> str | None:
        return resolved(parsed, task, natural)[0]

    def label(record: Record, line: int) -> str | None:
        task = columns.text(record, "task") or TASK
        if task not in labels:
            wanted = spec(task)
            labels[task] = None if wanted is None else labeller(wanted, task)
        known = labels[task]
        try:
            return None if known is None else known(record)
        except MissingFieldError as error:
            have = ", ".join(error.fields)
            raise InputError(
                f"{path}, line {line}: cluster column {spec(task)!r} is not there or empty; there are {have}"
            ) from None

    return label, spec


def _levels(path: Path, line: int, record: Record, names: Sequence[str]) -> tuple[str, ...]:
    """What the answer of a row was made with."""
    found = []
    for name in names:
        level = _text(record.get(name))
        if level is None:
            have = ", ".join(map(str, record))
            raise InputError(f"{path}, line {line}: factor column {name!r} is not there or empty; there are {have}")
        found.append(level)
    return tuple(found)
