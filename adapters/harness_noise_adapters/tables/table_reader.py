"""Reader of a plain table, whose columns are known by the evidence of its first rows or named by the user."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.arrays import BoolArray, FloatArray, HashArray, IntArray
from harness_noise.data.clusters import OuterFields
from harness_noise.data.measures import spellings
from harness_noise.data.notes import Note
from harness_noise.data.places import check_grid
from harness_noise.data.questions import text_hash
from harness_noise.data.scores import ReadOptions, Scores
from harness_noise.errors import InputError, parameter

from .blocks import Block, Names
from .cells import Answered, Key
from .columns import HEAD, MOST_COUNTED, TableColumns
from .evidence import RefuseError
from .frame import Table
from .opening import Record, Rows, stem
from .presets import TABLE, Getter, Recognised, ScorePath
from .reader import FileReader
from .rules import Rule
from .values import answers_of, cell_text

PLACES = ("@file", "@folder")
"""The words for parts of a file's path that `columns` accepts."""


def table_reader(source: Recognised, options: ReadOptions, chosen: Mapping[str, str]) -> TableReader:
    """Return the reader of a table without known format, columns decided by its first rows. Refuse one without rows."""
    path, blocks = source.path, source.blocks()
    first: list[Block] = []
    n = 0
    for block in blocks:
        first.append(block)
        n += len(block)
        if n >= HEAD:
            break
    if not n:
        raise InputError(f"{path}: the table has no rows")
    whole = Block.joined([block for block in first if len(block)])
    head, rest = (whole, None) if n <= HEAD else (whole.cut(0, HEAD), whole.cut(HEAD))
    header = header_of(head)
    if header is not None:
        head = head.cut(1)
        check_whole(path, header, len(head), at_least=n >= HEAD)
    placed = {ours: theirs for ours, theirs in chosen.items() if theirs in PLACES and ours in ("model", "task")}
    of_rows = {name: chosen[name] for name in chosen if name != "rows" and name not in placed}
    columns = TableColumns.of(path, head, of_rows, options)
    names = ("model", "task", "metric", "scorer", "repeat", "cluster")
    others: dict[str, Any] = {name: columns.names.get(name, "") for name in names if name != columns.names_are} | placed
    preset = replace(
        TABLE,
        question=(columns.question,),
        text=columns.wording or "",
        target=columns.target,
        answer=columns.answer,
        missing=columns.causes(),
        **others,
    )
    reader = TableReader(replace(source, preset=preset), options, chosen, columns)
    reader.header = header
    reader.waiting = chain([head] if rest is None else [head, rest], blocks)
    return reader


def header_of(head: Block) -> Record | None:
    """Return a file's first row if it describes the file (no field shared with later rows), else None."""
    if head.cells:
        return None
    first, *rest = head.rows[:_COMPARED]
    return first if rest and not {*first} & {name for row in rest for name in row} else None


_COMPARED = 50
_TOTALS = ("total_count", "total", "n_total", "num_total", "count")


def check_whole(path: Path | Rows, header: Record, n: int, *, at_least: bool = False) -> None:
    """Raise an error if a file's first line counts more answers than its n rows, unless n is only `at_least`.

    Raises:
        RefuseError: only a part of the answers is there.
    """
    total = next((header[name] for name in _TOTALS if isinstance(header.get(name), int)), None)
    if total is not None and total > n and not at_least:
        raise RefuseError(
            f"{path}: only a part of the answers is in it: the first line counts {total:,}, and {n:,} rows follow (the "
            "failed ones, perhaps)"
        )


class TableReader(FileReader):
    """Collector of the answers in a table's rows, whose columns have names.

    A repeat column tells a question's answers apart; without one, its rows are its answers in order.
    """

    def __init__(
        self, source: Recognised, options: ReadOptions, chosen: Mapping[str, str], columns: TableColumns
    ) -> None:
        self.columns = columns
        super().__init__(source, options, chosen)
        bounds = (0.0, 1.0) if columns.right_or_wrong else ()
        if columns.wide:
            path = ScorePath("score", bounds=bounds)
            self.rules = [Rule.of_column(name, path, (columns.names_are, told)) for name, told in columns.wide.items()]
        else:
            score = columns.names["score"]
            self.rules = [Rule.of_column(score, ScorePath(score, bounds=bounds))]
        self.strict = False
        self.used = {theirs for ours, theirs in columns.names.items() if ours not in ("cluster", "over")}
        self.outer = defaultdict(partial(OuterFields, columns.unused))
        self.measurable = columns.numeric
        self.says_model = bool({"model", "task"} & columns.names.keys())
        self.checkpoints: dict[str, str] = {}
        """Joined name of a model and its step → the model."""
        self.n_rows = self.n_counted = 0
        self.header: Record | None = None
        """The first line, if it is about the whole file."""
        self.waiting: Iterator[Block] | None = None
        """The rows, of which the first have been looked at."""
        self.right, self.of_how_many = array("q"), array("q")
        """Right answers, and all answers, of each row that counts answers."""

    def of(self, spec: str) -> Getter | None:
        return (lambda row: row.get(spec)) if spec and spec not in PLACES else None

    def cells(self, spec: str, get: Getter | None) -> Callable[[Block], Sequence[Any]]:
        return lambda block: block.column(spec)

    def names_read(self) -> Sequence[str]:
        return ()

    def blocks(self, names: Sequence[str] = ()) -> Iterator[Block]:
        blocks, self.waiting = self.waiting or self.source.blocks(), None
        return (block.filled(self.columns.specs) for block in blocks)

    def add(self, block: Block) -> None:
        if self.header is not None and self.n_rows == 0 and block.rows[0] == self.header:
            block = block.cut(1)
        super().add(block)
        self.n_rows += len(block)

    def codes(self, block: Block, covered: BoolArray) -> dict[str, IntArray]:
        codes = super().codes(block, covered)
        for name in ("model", "task", "repeat"):
            if name in self.columns_of:
                self._require(name, block, codes[name])
        if over := self.columns.names.get("over"):
            models, own = self.names["model"], stem(self.path)
            told = zip(models.of(codes["model"]), map(cell_text, block.column(over)), strict=True)
            pairs = [(model or own, step) for model, step in told]
            apart = {pair: pair[0] if pair[1] is None else f"{pair[0]} {over}_{pair[1]}" for pair in {*pairs}}
            self.checkpoints |= {name: model for (model, _), name in apart.items()}
            codes["model"] = models.exactly([apart[pair] for pair in pairs])
        return codes

    def called(self, model: str) -> str:
        each = [*self.checkpoints.values()]
        if len(each) == len({*each}):  # each model has one: the models are the checkpoints
            model = self.checkpoints.get(model, model)
        return super().called(model)

    def _require(self, name: str, block: Block, codes: IntArray) -> None:
        """Raise an error if a column that tells answers apart (model, task, repeat) is empty in some row."""
        empty = np.flatnonzero(codes < 0)
        if empty.size:
            named = self.columns.names[name]
            advice = f", which tells the answers apart. If it does not, say {parameter('columns', {name: 'none'})}"
            raise InputError(
                f"{self.path}, line {block.lines[empty[0]]}: no {named!r}, though the table has that column"
                + (f"{advice}, and the rows of a question are its answers in order" if name == "repeat" else "")
            )

    def fill(
        self,
        block: Block,
        answers: dict[str, IntArray],
        rows: IntArray,
        rules: IntArray,
        values: list[Any],
        causes: IntArray,
    ) -> None:
        lists = None
        if self.columns.count is not None:
            values = self._numbered(block, rows)
        elif (lists := _score_lists(values)) is not None:
            self.columns.roles.kind = "list"
        sizes = np.ones(len(rows), dtype=np.intp) if lists is None else np.array([len(each) for each in lists])
        if self.tells_answers:
            said = np.where(sizes == 1, self._answered(block)[rows], np.uint64(0))
            self.frame.add(answered=np.repeat(said, sizes))
        if lists is not None:
            several = np.repeat(sizes > 1, sizes)
            parts = np.arange(len(several)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            values = [value for each in lists for value in each]
            answers = {name: np.repeat(column, sizes) for name, column in answers.items()}
            rows, rules, causes = (np.repeat(column, sizes) for column in (rows, rules, causes))
            if "repeat" in answers:
                names = self.names["repeat"]
                for i, text in enumerate(names.of(answers["repeat"])):
                    if several[i]:
                        answers["repeat"][i] = names.number(f"{text}.{parts[i]}")
        super().fill(block, answers, rows, rules, values, causes)

    @property
    def tells_answers(self) -> bool:
        """True if a column holds the model's answers, so that identical answers can be counted."""
        return bool(self.columns.answer) and not self.columns.wide and self.columns.count is None

    @property
    def either(self) -> str:
        return self.columns.target if self.columns.roles.either else ""

    def _answered(self, block: Block) -> HashArray:
        """Return (n,) hashes of each row's answer with the right answer, 0 without an answer."""
        names = Names()
        answer, target = (
            names.codes(block.column(name)) if name else np.full(len(block), -1)
            for name in (self.columns.answer, self.columns.target)
        )
        n = len(names.texts) + 1
        pairs, inverse = np.unique((answer + 1) * n + target + 1, return_inverse=True)
        texts = zip(names.of(pairs // n - 1), names.of(pairs % n - 1), strict=True)
        hashes = [text_hash(f"{text}\x1f{right or ''}") if text else 0 for text, right in texts]
        return np.array(hashes, dtype=np.uint64)[inverse.reshape(-1)]

    def _numbered(self, block: Block, rows: IntArray) -> list[Any]:
        """Store rows' (right, total) counts and return their indices, for scores. Refuse too many answers.

        `_counted` makes as many answers at the end.
        """
        start = len(self.right)
        for i in rows.tolist():
            right, n = self.columns.counted(self.path, block.lines[i], block.rows[i])
            self._count(n, block.lines[i])
            self.right.append(right)
            self.of_how_many.append(n)
        return [float(number) for number in range(start, len(self.right))]

    def _count(self, n: int, line: int) -> None:
        """Add a row's number of answers to the total. Refuse too many, and factors or measures of counted answers."""
        self.n_counted += n
        if self.n_counted > MOST_COUNTED:
            raise InputError(
                f"{self.path}, line {line}: the rows so far count {self.n_counted} answers, more than "
                f"{MOST_COUNTED}: split the file by model or task"
            )
        if n > 1 and (self.options.factors or self.options.usage):
            name = "factors" if self.options.factors else "measures"
            raise InputError(
                f"{self.path}: counts of right answers do not say which answer is which: `{name}` needs rows"
            )

    def finish(self, tables: Mapping[Table, Answered]) -> None:
        if self.header is not None:
            check_whole(self.path, self.header, self.n_rows)
        if self.columns.roles.apart:
            for cells in tables.values():
                cells.keep_apart()
        repeated = any(len(cells.keys) < len(cells.values) for cells in tables.values())
        usage = spellings(self.options.usage) if self.options.usage else ()
        asked = (*self.options.fields, *usage, *self.options.factors)
        notes = [Note(code, f"{self.path.name}: {text}") for code, text in self.columns.roles.notes]
        certified = self.columns.note(self.path, asked, repeated=repeated)
        self.notes = [certified, *self.columns.clusters_note(asked), *notes]

    def scores(self, model: str, key: Key, cells: Answered, notes: list[Note]) -> Scores:
        part = super().scores(model, key, cells, notes)
        if self.columns.count is None:
            return part
        return replace(part, values=self._counted(part.values), bounds=(0.0, 1.0), asked=None, repeat_names=None)

    def _counted(self, numbers: FloatArray) -> FloatArray:
        """Return (n, K) zeros and ones in random order, padded with NaN, from (n, k) indices of stored counts."""
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
        if self.columns.cause is None:
            return None
        ids = cells.ids() if len(cells.repeats) else range(len(cells.places))
        rows = {*zip(cells.places, ids, strict=True)}
        shared = len({own for _, own in rows}) <= 2 * max(Counter(place for place, _ in rows).values(), default=0)
        return self.columns.cause if shared else None


def _score_lists(values: Sequence[Any]) -> list[list[Any]] | None:
    """Return for each cell its list of scores, None if no cell lists several."""
    kinds = {*map(type, values)}
    texts = {*values} if kinds <= {str} else {value for value in values if type(value) is str}
    if list not in kinds and not any(text.lstrip()[:1] == "[" for text in texts):
        return None
    found = [answers_of(value) for value in values]
    if all(each is None for each in found):
        return None
    return [[value] if each is None else each or [nan] for value, each in zip(values, found, strict=True)]
