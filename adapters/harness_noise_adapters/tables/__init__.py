"""Score tables: one row for each answer, in CSV, JSONL, JSON or Parquet; eval-arena's counts as well.

What a column is goes by its name, and only by names that can hardly mean anything else; the run's
notes say what was taken for what. `--columns` says the rest.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.arrays import FloatArray
from harness_noise.data.clusters import OuterFields
from harness_noise.data.scores import ReadOptions, Run, Scores, check_grid
from harness_noise.errors import InputError, parameter
from harness_noise.io.paths import POINTER

from ..records import ReadOnly, head
from .cells import BESIDE, Answered, Key
from .columns import HEAD, MOST_COUNTED, TableColumns, answers_of, cell_text
from .files import Record, Rows, columns_of, has_rows, records, suffix_of
from .formats import RowReader, as_chosen
from .presets import TABLE, Cause, Getter, Recognised, ScorePath, all_presets, recognised
from .questions import Pooled, refuse_guess, settle

if TYPE_CHECKING:
    from harness_noise.data.labels import LabelFile


class TableAdapter(ReadOnly):
    """Score tables (CSV, JSONL, JSON, Parquet; `.gz`), read only: they have no place for an error bar."""

    name = "table"

    def formats(self, own: str | None = None) -> dict[str, str]:
        """The formats of which there is a preset, and what each reads."""
        return {preset.name: preset.reads for preset in all_presets(own)}

    def sniff(self, path: Path) -> bool:
        """Whether the file's name says it is a table; a JSON file has to be a list, or an object that holds one.

        A pointer of Git LFS may stand for one, and whoever reads it says so.
        """
        if not suffix_of(path) or not path.is_file():
            return False
        return suffix_of(path) != ".json" or has_rows(path) or head(path).startswith(POINTER)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """The models of a table, one Run each; see `harness_noise.io.protocol.Adapter.read`."""
        return reader_of(path, options, columns_of(path, options.columns)).read()

    def read_rows(self, name: str, rows: Sequence[Record], options: ReadOptions) -> list[Run]:
        """The models of a table in memory, called `name`."""
        table = Rows(name, rows)
        return reader_of(table, options, columns_of(table, options.columns)).read()

    def read_labels(self, path: Path | None, rows: Sequence[Record] = ()) -> LabelFile:
        """People's labels from a file, or from rows in memory."""
        from .labels import read_labels

        return read_labels(Rows("labels", rows) if path is None else path)


adapter = TableAdapter()


def reader_of(path: Path | Rows, options: ReadOptions, chosen: Mapping[str, str]) -> RowReader:
    """The reader of a file: by the preset of its format, else by its columns."""
    source = recognised(path, options.format_file, chosen)
    if source.preset is TABLE:
        reader = table_reader(source, options, chosen)
    else:
        reader = RowReader(as_chosen(source, chosen), options, chosen)
    reader.again = partial(reader_of, path, options, chosen)
    return reader


def table_reader(source: Recognised, options: ReadOptions, chosen: Mapping[str, str]) -> RowReader:
    """The reader of a table, whose first rows say what its columns are."""
    path = source.path
    head = [record for _, record in islice(records(path, source.inside, source.whole), HEAD)]
    if not head:
        raise InputError(f"{path}: the table has no rows")
    columns = TableColumns.of(path, head, {name: chosen[name] for name in chosen if name != "rows"})
    others: dict[str, Any] = {
        name: columns.names.get(name, "") for name in ("model", "task", "metric", "scorer", "repeat", "cluster")
    }
    preset = replace(
        TABLE,
        question=(columns.question,),
        score=(ScorePath(columns.names["score"], bounds=(0.0, 1.0) if columns.right_or_wrong else ()),),
        text=columns.wording or "",
        target=columns.target,
        answer=columns.answer,
        **others,
    )
    return TableReader(replace(source, preset=preset), options, chosen, columns)


class TableReader(RowReader):
    """What the rows of a table have said so far, whose columns are known by their names.

    A repeat column tells a question's answers apart; without one, its rows are its answers in order.
    """

    def __init__(
        self, source: Recognised, options: ReadOptions, chosen: Mapping[str, str], columns: TableColumns
    ) -> None:
        self.columns = columns
        super().__init__(source, options, chosen)
        score, words = columns.names["score"], columns.words
        self.rules = [replace(self.rules[0], get=lambda row: row.get(score), metric="score")]
        self.words: Getter = (lambda row: None) if words is None else lambda row: cell_text(row.get(words))
        self.question = lambda row: cell_text(row.get(columns.question)) or self.words(row)
        self.strict, self.detailed, self.plain = False, True, False
        self.used = {theirs for ours, theirs in columns.names.items() if ours != "cluster"}
        self.outer = defaultdict(partial(OuterFields, columns.unused))
        self.measurable = columns.numeric
        specs = (*options.fields, *options.usage, *(() if options.cluster is None else (options.cluster,)))
        self.pooled = None if options.factors else Pooled(self.path, columns, specs)  # `factors` asks for other noise
        self.n_rows = self.n_counted = 0
        self.right, self.of_how_many = array("q"), array("q")
        """How many answers were right, and of how many, for each row that counts answers."""

    def of(self, spec: str) -> Getter | None:
        return (lambda row: row.get(spec)) if spec else None

    def rows(self) -> Iterator[Record]:
        return map(self.columns.filled, super().rows())

    def add(self, line: int, row: Record) -> None:
        record, names = self.columns.filled(row), self.columns.names
        for name in ("model", "task", "repeat"):
            if name in names and cell_text(record.get(names[name])) is None:
                advice = f", which tells the answers apart; if it does not, say {parameter('columns', {name: 'none'})}"
                raise InputError(
                    f"{self.path}, line {line}: no {names[name]!r}, though the table has that column"
                    + (f"{advice}, and the rows of a question are its answers in order" if name == "repeat" else "")
                )
        super().add(line, record)
        if self.pooled is not None:
            self.pooled.add(record)
        self.n_rows += 1

    def answer(self, cells: Answered, question: str, row: Record, line: int, value: Any, cause: Cause | None) -> None:
        words = self.words(row)
        if words is not None and cells.words.setdefault(question, words) != words:
            question = f"{question}{BESIDE}{words}"
            cells.words[question] = words
        answers = [value]
        if self.columns.count is not None:
            right, n = self.columns.counted(self.path, line, row)
            self._count(n, line)
            answers = [float(len(self.right))]  # as many answers as it counts are made at the end: `_counted`
            self.right.append(right)
            self.of_how_many.append(n)
        elif (several := answers_of(value)) is not None:
            self.columns.lists, answers = True, several or [nan]
        for part, each in enumerate(answers):
            super().answer(cells, question, row, line, each, cause)
            cells.rows.append(self.n_rows)
            if len(answers) > 1 and self.repeat is not None:
                cells.repeats[-1] = f"{cells.repeats[-1]}.{part}"

    def _count(self, n: int, line: int) -> None:
        """Take note of answers that are only counted, of which nobody knows which is which."""
        self.n_counted += n
        if self.n_counted > MOST_COUNTED:
            raise InputError(
                f"{self.path}, line {line}: the rows so far stand for {self.n_counted} answers, more than "
                f"{MOST_COUNTED}: split the file by model or task"
            )
        if n > 1 and (self.options.factors or self.options.usage):
            name = "factors" if self.options.factors else "measures"
            raise InputError(
                f"{self.path}: counts of right answers do not say which answer is which: `{name}` needs rows"
            )

    def finish(self) -> None:
        tables, notes = list(self.tables.values()), []
        if self.n_counted <= self.n_rows:
            notes = settle(self.path, self.columns, tables)
            refuse_guess(self.path, self.columns, tables)
        if self.pooled is not None:
            self.pooled.ask(tables)
        if self.columns.question not in self.used:  # the words, and not the id beside them
            self.used |= {self.columns.question}
            self.again = partial(reader_of, self.path, self.options, {**self.chosen, "question": self.columns.question})
        asked = (*self.options.fields, *self.options.usage, *self.options.factors)
        self.notes = [self.columns.note(self.path, asked), *notes]

    def scores(self, model: str, key: Key, cells: Answered, notes: list[str]) -> Scores:
        part = super().scores(model, key, cells, notes)
        if self.columns.count is None:
            return part
        return replace(part, values=self._counted(part.values), bounds=(0.0, 1.0))

    def _counted(self, numbers: FloatArray) -> FloatArray:
        """(n, K) scores of all answers, from the (n, R) numbers of the rows that count them, NaN for none."""
        import numpy as np

        there = ~np.isnan(numbers)
        rows = np.where(there, numbers, 0).astype(np.intp)
        right, n = (np.where(there, np.array(column)[rows], 0) for column in (self.right, self.of_how_many))
        if self.n_counted <= self.n_rows:
            return np.where(there, right, nan)
        answers, hits = n.sum(axis=1, keepdims=True), right.sum(axis=1, keepdims=True)
        K = int(answers.max())
        check_grid(len(n), K, int(answers.sum()), self.path)
        place = np.arange(K)
        values = np.full((len(n), K), nan)
        values[place < answers] = 0.0
        values[place < hits] = 1.0
        # counts do not tell the order of the answers: draw one, or repeat 1 would always be right
        return np.random.default_rng(0).permuted(values, axis=1)

    def repeats_named(self, cells: Answered, conditions: int) -> str | None:
        rows = cells.distinct()
        shared = len({label for _, label in rows}) <= 2 * max(Counter(place for place, _ in rows).values(), default=0)
        return self.columns.cause if shared else None
