"""Read the rows of a file by columns, by the paths of its format's preset or the columns of a table.

Each block of rows adds to the columns of one frame of answers; each model, task, metric and scorer in it is then some
of its rows, of which `harness_noise.data.answers` makes the scores.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from harness_noise.arrays import BoolArray, FloatArray, IntArray
from harness_noise.data.answers import levels_of
from harness_noise.data.clusters import OuterFields, clusters_of_file
from harness_noise.data.doubled import find_doubles
from harness_noise.data.measures import numeric_fields, spellings, usage_of, usages
from harness_noise.data.native_values import drop_other_native
from harness_noise.data.notes import Note
from harness_noise.data.numbers import is_infinite, numbers_of, refuse_rounded
from harness_noise.data.questions import Questions, TextSource, content_hash, excerpt
from harness_noise.data.scores import ReadOptions, Run, Scores, Skipped
from harness_noise.errors import FinalError, InputError, are, counted, parameter, some_of

from ..records import uncollected
from .blocks import Block
from .cells import Answered, Key
from .evidence.lexicon import is_of_input
from .fields import clusters_of, fields_of
from .frame import TOLD, Frame, Table
from .log import RowLog
from .opening import Record, stem
from .presets import (
    ANY,
    Cause,
    Getter,
    Preset,
    Recognised,
    column,
    getter,
    holds,
    is_empty,
    of_file,
    of_row,
    rendered,
)
from .rules import Found, Rule
from .values import MOST_ODD, NoScoreError, cell_text, odd_scores, rounded_key, score_of


class FileReader:
    """A reader that collects the answers in one file's rows."""

    again: Callable[[], FileReader]
    """Makes another reader of the same file. It can be pickled."""
    says_model = True
    """True if rows name their model or their task."""

    def __init__(self, source: Recognised, options: ReadOptions, chosen: Mapping[str, str]) -> None:
        self.source, self.options, self.chosen, self.path = source, options, chosen, source.path
        self.preset = preset = source.preset
        self.strict, self.used = source.strict, {"score", *(preset.question if len(preset.question) == 1 else ())}
        self.causes: list[Cause] = [*preset.missing]
        self.happened = [holds(cause.where) for cause in preset.missing]
        self.rules = [Rule.of(path, self.causes) for path in preset.score]
        got = {name: self.of(getattr(preset, name)) for name in (*TOLD, "repeat", "condition")}
        self.columns_of = {name: self.cells(getattr(preset, name), get) for name, get in got.items() if get}
        self.text, self.target = self.of(preset.text), self.of(preset.target)
        self.solution = preset.target if preset.answer and not preset.text else ""
        self.question, self.questions = self._key(preset)
        self.known_by = [getter(path) for path in preset.known_by]
        self.more = {
            name: self.of(path) or partial(self._of_file, of_file(path)) for name, path in preset.fields.items()
        }
        self.frame = Frame()
        self.names = self.frame.names
        own = preset.cluster, self.of(preset.cluster)
        self.spec, self.cluster = clusters_of(self.path, options, *own, self.names["cluster"])
        self.scores_of: dict[str | None, float | None] = {}
        """Text of a cell → its score, None if it is not a score."""
        self.measurable: tuple[str, ...] = ()
        self.outer: dict[str, OuterFields] = defaultdict(OuterFields)
        """Task → which columns contain its clusters."""
        self.lost: list[tuple[Record, int, int]] = []
        """Row, line and cause of what went wrong before there was a score of any metric."""
        self.notes = [Note("read_as", f"{self.path.name}: read as {preset.name}")]

    def of(self, spec: str) -> Getter | None:
        """Return a function from a row to the value at a path, or None if the path is only of the file."""
        return of_row(spec)

    def cells(self, spec: str, get: Getter | None) -> Callable[[Block], Sequence[Any]]:
        """Return a function from a batch of n rows to the (n,) list of their values at a path."""
        return column(spec, get)

    def _of_file(self, get: Getter, row: Record) -> Any:
        return get(self.source.file)

    def _key(self, preset: Preset) -> tuple[Callable[[Record], str | None], Callable[[Block], Sequence[Any]]]:
        """Return two functions that name questions, of a row and of a block: by a cell, or a hash of several cells."""
        gets = [getter(path) for path in preset.question]
        if len(gets) == 1:
            return (lambda row: cell_text(gets[0](row))), column(preset.question[0], gets[0])

        def key(row: Record) -> Any:
            values = [get(row) for get in gets]
            if (rounded := rounded_key(values)) is not None:
                return rounded
            try:
                text = json.dumps(values, sort_keys=True, default=str)
            except RecursionError:
                raise FinalError(f"{self.path}: what names a question is nested too deeply") from None
            return None if all(value is None for value in values) else sha256(text.encode()).hexdigest()[:16]

        return key, lambda block: list(map(key, block.rows))

    def names_read(self) -> Sequence[str]:
        """Return the names of the only row fields to decode, an empty sequence if any may be needed."""
        preset, options = self.preset, self.options
        if self.cluster or self.text or preset.known_by or options.fields or options.factors or options.usage:
            return ()
        causes = [*preset.missing, *(cause for score in preset.score for cause in score.missing)]
        paths = {getattr(preset, name) for name in (*TOLD, "repeat", "condition")} | {*preset.question, self.solution}
        paths |= {path for score in preset.score for path in (score.path, *score.where)}
        paths |= {path for cause in causes for path in cause.where}
        plain = not {*"".join(paths)} & {*" *|{"}
        return sorted({path.partition(".")[0] for path in paths if path and path[0] != "@"}) if plain else ()

    def blocks(self, names: Sequence[str] = ()) -> Iterator[Block]:
        """Yield the file's rows in batches, decoded only for the fields `names` if these are given."""
        return self.source.blocks(names)

    def read(self) -> list[Run]:
        """Read the whole file and return one Run for each model. Refuse a file without a score."""
        with uncollected():
            for block in self.blocks(self.names_read()):
                if len(block):
                    self.add(block)
        if self.lost:
            self._add_lost()
        tables = self.frame.answers(self.rules, self.causes)
        self.finish(tables)
        if not tables:
            raise InputError(f"{self.path}: {self.preset.reads}: there is no score in it")
        return [self._run(model, tables) for model in dict.fromkeys(model for model, *_ in tables)]

    def finish(self, tables: Mapping[Table, Answered]) -> None:
        """Do what needs all rows once they are read: nothing here, subclasses override it."""

    # rows
    def add(self, block: Block) -> None:
        """Read the scores of a batch of rows and add them to the collected answers. Refuse rows of another kind."""
        for line, row in block if self.known_by else ():
            if all(is_empty(get(row)) for get in self.known_by):
                raise InputError(f"{self.path}, entry {line}: {self.preset.advice} ({parameter('columns', _LIKE)})")
        causes = self.causes_of(block)
        covers = [rule.covers(block) for rule in self.rules]
        covered = np.logical_or.reduce(covers)
        self.lost += self.lost_of(block, causes, covered)
        if not covered.any():
            return
        codes = self.codes(block, covered)
        found = [rule.found(block, causes, mine) for rule, mine in zip(self.rules, covers, strict=True)]
        if any(len(one.rows) for one in found):
            self.put(block, codes, *self._joined(found))

    def causes_of(self, block: Block) -> IntArray:
        """Return (n,) numbers of the first cause whose conditions each row meets, scored or not, −1 for none."""
        causes = np.full(len(block), -1)
        for number in reversed(range(len(self.happened))):
            where = self.causes[number].where
            path = next(iter(where))
            plain = len(where) == 1 and not set(path) & set(".*|{")
            cells = block.column(path) if plain else ()
            kinds = {*map(type, cells)}
            if kinds == {type(None)} and where[path] == ANY:
                continue
            rows = ({path: cell} for cell in cells) if plain and block.cells else block.rows
            causes[np.fromiter(map(self.happened[number], rows), bool, len(block))] = number
        return causes

    def lost_of(self, block: Block, causes: IntArray, covered: BoolArray) -> list[tuple[Record, int, int]]:
        """Return (row, line number, cause number) of failed rows that no rule covers. Refuse one without question.

        Their metrics are known only when all rows are.
        """
        lost = np.flatnonzero(~covered & (causes >= 0)).tolist()
        if lost:
            self.require_question(block, self.names["question"].codes(self.questions(block)), ~covered & (causes >= 0))
        return [(block.rows[i], block.lines[i], int(causes[i])) for i in lost]

    def codes(self, block: Block, covered: BoolArray) -> dict[str, IntArray]:
        """Return {question, model, …: (n,) whole numbers that stand for names}. Refuse a row without question."""
        out = {"question": self._names_in("question", block, self.questions(block))}
        self.require_question(block, out["question"], covered)
        for name in TOLD:
            get = self.columns_of.get(name)
            out[name] = np.full(len(block), -1) if get is None else self._names_in(name, block, get(block))
        repeat = self.columns_of.get("condition", self.columns_of.get("repeat"))
        if repeat is not None:
            out["repeat"] = self._names_in("repeat", block, repeat(block))
        return out

    def _names_in(self, name: str, block: Block, cells: Sequence[Any]) -> IntArray:
        """Return (n,) whole numbers that stand for the names in cells. Raise an error if a name was rounded.

        Raises:
            InputError: a name was rounded.
        """
        kinds = {*map(type, cells)}
        if float in kinds and (rounded := rounded_key(cells)) is not None:
            refuse_rounded(name, rounded, f"{self.path}, line {block.lines[cells.index(rounded)]}")
        return self.names[name].codes(cells, kinds)

    def require_question(self, block: Block, codes: IntArray, rows: BoolArray) -> None:
        """Raise an error if any of the marked rows does not say which question it answers."""
        bare = np.flatnonzero((codes < 0) & rows)
        if bare.size:
            names = " or ".join(map(repr, self.preset.question))
            where = f"{self.path}, line {block.lines[bare[0]]}"
            raise InputError(f"{where}: no {names}: which question is it? If the line has totals, delete it")

    def _joined(self, found: Sequence[Found]) -> tuple[Found, IntArray]:
        """Merge what several rules read, in row order. Return it with the (n,) number of each score's rule."""
        if len(found) == 1:
            return found[0], np.zeros(len(found[0].rows), dtype=np.intp)
        rules = np.repeat(np.arange(len(found)), [len(one.rows) for one in found])
        order = np.argsort(np.concatenate([one.rows for one in found]), kind="stable")
        values = [value for one in found for value in one.values]
        named = [
            name
            for one, rule in zip(found, self.rules, strict=True)
            for name in ([rule.metric] * len(one.rows) if one.metrics is None else one.metrics)
        ]
        rows, causes = (np.concatenate([getattr(one, name) for one in found])[order] for name in ("rows", "causes"))
        spread = any(one.metrics is not None for one in found)
        return Found(
            rows,
            [values[i] for i in order],
            causes,
            [named[i] for i in order] if spread or len({rule.metric for rule in self.rules}) > 1 else None,
        ), rules[order]

    def put(self, block: Block, codes: dict[str, IntArray], found: Found, rules: IntArray) -> None:
        """Add read scores to the collected answers, with model, task and question numbers of their rows."""
        rows, values = found.rows, found.values
        answers = {name: column[rows] for name, column in codes.items()}
        metrics = self.names["metric"]
        if found.metrics is None:
            own = np.full(len(rows), metrics.number(self.rules[0].metric))
        else:
            own = metrics.codes(found.metrics)
        of_row = answers["metric"]
        if "metric" in self.columns_of:
            starred = np.array([rule.get is None for rule in self.rules])[rules]
            own = np.where((of_row >= 0) & ~starred, of_row, own)
        answers["metric"] = own
        for number, rule in enumerate(self.rules):
            if rule.says is not None and rule.says[0] != "metric":
                name, text = rule.says
                if name not in answers:
                    answers[name] = np.full(len(rows), -1)
                answers[name][rules == number] = self.names[name].number(text)
        self.fill(block, answers, rows, rules, values, found.causes)

    def fill(
        self,
        block: Block,
        answers: dict[str, IntArray],
        rows: IntArray,
        rules: IntArray,
        values: list[Any],
        causes: IntArray,
    ) -> None:
        """Convert cells to scores, missing where a cause applies, and add these answers. Refuse too many odd cells."""
        for number, cause in enumerate(self.causes):
            mine = np.flatnonzero(causes == number)
            if cause.if_empty:
                mine = mine[[is_empty(values[i]) for i in mine]] if mine.size else mine
                causes = np.where(causes == number, -1, causes)
                causes[mine] = number
            for i in mine:
                values[i] = None
        lines = block.numbers()[rows]
        scores = self.numbers(values, lines, rules, answers)
        self.tell(block, answers, rows, scores, causes, lines)
        self.frame.add(**answers, rule=rules, cause=causes, line=lines, score=scores)

    def numbers(
        self, values: Sequence[Any], lines: IntArray, rules: IntArray, answers: Mapping[str, IntArray]
    ) -> FloatArray:
        """Return (n,) scores of cells, NaN for an empty cell or no score, which is noted. Refuse too many of these."""
        if (numbers := numbers_of(values)) is not None and not is_infinite(numbers):
            return numbers
        kinds, known = {*map(type, values)}, self.scores_of
        if kinds <= {str, type(None)}:
            known.update((cell, self._one_score(cell)) for cell in {*values} - known.keys())
            found = [known[cell] for cell in values]
        else:
            found = [self._one_score(value) for value in values]
        if None in found:
            for place, number in enumerate(found):
                if number is None:
                    key = tuple(int(answers[name][place]) for name in TOLD)
                    self._note_odd(key, values[place], int(lines[place]), self.rules[rules[place]])
        return np.array(found, dtype=np.float64)

    def _one_score(self, value: Any) -> float | None:
        """Return the score of a cell, NaN if it is empty, None if it is not a score."""
        if isinstance(value, str) and self.strict and _DIGIT.match(value):
            return None
        try:
            return score_of(self.path, 0, "", value)
        except NoScoreError:
            return None

    def _note_odd(self, key: tuple[int, ...], value: Any, line: int, rule: Rule) -> None:
        """Remember a cell that is no score, for an error. Raise it if there are too many (unless the path has `*`)."""
        odd, shown = self.frame.odd[key], repr(value)[:200]
        if shown in odd or len(odd) > MOST_ODD:
            return
        name = rule.path.metric or rule.path.path
        try:
            if isinstance(value, str) and self.strict and _DIGIT.match(value):
                raise NoScoreError(f"{self.path}, entry {line}: {name} {value[:40]!r} is a text and no number")
            score_of(self.path, line, name, value)
        except NoScoreError as error:
            odd[shown] = error
        if len(odd) > MOST_ODD and "*" not in rule.path.path:
            raise odd_scores(odd) from None

    def tell(
        self,
        block: Block,
        answers: dict[str, IntArray],
        rows: IntArray,
        scores: FloatArray,
        causes: IntArray,
        lines: IntArray,
    ) -> None:
        """Collect what the user asks for besides scores: question texts, clusters, fields, usage and factors."""
        if self.text is not None:
            self._note_words(block, answers, rows)
        elif self.solution:
            self._note_targets(block, answers, rows)
        options = self.options
        if not (self.cluster or options.fields or options.factors or options.usage):
            return
        filled = block.filled(self.more)
        if self.cluster is not None:
            answers["cluster"] = self._clusters(filled, answers, rows)
        if not (options.fields or options.factors or options.usage):
            return
        beside = self.frame.beside
        if options.fields:
            answers["record"] = np.arange(len(rows)) + len(beside["records"])
            beside["records"] += [filled.rows[i] for i in rows]
        if options.usage:
            self.measurable = self.measurable or tuple(numeric_fields(filled.at([int(rows[0])]).rows[0]))
            beside["usage"] += self._usages(filled, rows.tolist(), lines.tolist(), causes.tolist())
        if factors := options.factors:
            told_levels = zip(rows, lines.tolist(), (~np.isnan(scores)).tolist(), strict=True)
            beside["levels"] += [
                levels_of(self.path, line, filled.rows[i], factors, scored=scored, text=cell_text)
                for i, line, scored in told_levels
            ]

    def _usages(
        self, block: Block, rows: Sequence[int], lines: Sequence[int], causes: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Return {measure: value, or why it is missing} of each of some answers. Refuse texts and negative usage."""
        names, said = self.options.usage, [self.causes[cause].cause if cause >= 0 else "" for cause in causes]
        if any("." in name for name in names if name not in block.cells):  # perhaps a field inside another
            told = zip(rows, lines, said, strict=True)
            return [usage_of(block.rows[i], names, self.path, line, why) for i, line, why in told]
        cells = {name: block.picked(rows, name) for name in spellings(names) if block.has(name)}
        return usages(cells, len(rows), names, self.path, lines, said)

    def _note_words(self, block: Block, answers: Mapping[str, IntArray], rows: IntArray) -> None:
        """Store hashes of question text and target for each question not seen before."""
        assert self.text is not None
        words_of, texts = self.frame.words, self.frame.texts
        known = zip(*(answers[name].tolist() for name in ("model", "task", "question")), strict=True)
        for key, i in zip(known, rows.tolist(), strict=True):
            if key in words_of:
                continue
            row, words_of[key] = block.rows[i], len(texts)
            words = cell_text(self.text(row))
            target = "" if self.target is None else cell_text(self.target(row)) or ""
            beside = [str(cell) for name, cell in row.items() if is_of_input(name)]
            hashed, shown = "" if words is None else content_hash(words), excerpt(words or "") if self.shown else ""
            texts.append((hashed, shown, content_hash("\x1f".join([target, *beside]))))

    def _note_targets(self, block: Block, answers: Mapping[str, IntArray], rows: IntArray) -> None:
        """Store hashes of the right answer for each question not seen before, where no column holds its text."""
        assert self.target is not None
        words_of, texts = self.frame.words, self.frame.texts
        picked = rows.tolist()
        whole = block.has(self.solution)
        cells = block.picked(picked, self.solution) if whole else [self.target(block.rows[i]) for i in picked]
        known = zip(*(answers[name].tolist() for name in ("model", "task", "question")), strict=True)
        for key, cell in zip(known, cells, strict=True):
            if key not in words_of:
                words_of[key], right = len(texts), cell_text(cell)
                texts.append(("", "", "" if right is None else content_hash(right)))

    @property
    def either(self) -> str:
        """Path of words that may be the right answer or the model's, "" if there is none."""
        return ""

    @property
    def shown(self) -> bool:
        """True if a question's name is only a hash, so that its first words are shown instead."""
        return len(self.preset.question) > 1

    def _clusters(self, block: Block, answers: Mapping[str, IntArray], rows: IntArray) -> IntArray:
        """Return (n,) cluster numbers of rows, and note in the reader which fields contain whole clusters."""
        assert self.cluster is not None
        some = block if len(rows) == len(block) and (np.diff(rows) == 1).all() else block.at(rows.tolist())
        tasks = self.tasks_of(answers["task"])
        codes, questions = self.cluster(some, tasks), answers["question"]
        for task in np.unique(answers["task"]):
            mine = np.flatnonzero((answers["task"] == task) & (codes >= 0))
            if mine.size and (outer := self.outer[tasks[mine[0]]]).is_open:
                names = self.names["question"].all_of(np.unique(questions[mine]))
                clusters = self.names["cluster"].all_of(codes[mine])
                outer.add_all(names, clusters, some.names_of(int(mine[0])), partial(some.picked, mine.tolist()))
        return codes

    def tasks_of(self, codes: IntArray) -> list[str]:
        """Return the task names that these numbers stand for, the file's own task for −1."""
        own = cell_text(of_file(self.preset.task)(self.source.file)) or self.preset.name
        return [text or own for text in self.names["task"].of(codes)]

    def _add_lost(self) -> None:
        """Add failed rows without a score as missing under each metric of their model and task, unless answered."""
        lost = Block([line for _, line, _ in self.lost], [row for row, _, _ in self.lost])
        causes = np.array([cause for *_, cause in self.lost])
        codes = self.codes(lost, np.ones(len(lost), dtype=bool))
        frame = self.frame.joined()
        repeat = codes.get("repeat", np.full(len(lost), -1))
        for of_table in self.frame.tables().values():
            told = {name: int(frame[name][of_table[0]]) for name in (*TOLD, "rule")}
            questions = frame["question"][of_table].tolist()
            asked = {*questions}
            answered = (
                {*zip(questions, frame["repeat"][of_table].tolist(), strict=True)} if "repeat" in codes else set()
            )
            rows = []
            for i in np.flatnonzero((codes["model"] == told["model"]) & (codes["task"] == told["task"])).tolist():
                q, j = int(codes["question"][i]), int(repeat[i])
                if q in asked and (j < 0 or (q, j) in answered):
                    continue
                asked.add(q)
                rows.append(i)
            if rows:
                picked = np.array(rows)
                answers = {name: column[picked] for name, column in codes.items()}
                answers |= {name: np.full(len(rows), told[name]) for name in TOLD}
                rules = np.full(len(rows), told["rule"])
                self.fill(lost, answers, picked, rules, [None] * len(rows), causes[picked])

    def called(self, model: str) -> str:
        """Return the name of a run: the given model, else the file's model, else the file's name."""
        return model or cell_text(of_file(self.preset.model)(self.source.file)) or stem(self.path)

    def _run(self, model: str, tables: Mapping[Table, Answered]) -> Run:
        file, preset, named = self.source.file, self.preset, self.called(model)
        scores, skipped, notes = [], [], [*self.notes]
        if others := [name for rule in self.rules for name in rule.others]:
            ways = parameter("columns", {"metrics": "NAME+NAME"})
            said = f"{self.path.name}: not taken for metrics: {some_of(others, 6)} ({ways} takes what you name)"
            notes.append(Note("read_as", said))
        for (of_model, of_task, metric, scorer), cells in tables.items():
            if of_model != model:
                continue
            task = of_task or cell_text(of_file(preset.task)(file)) or preset.name
            if cells.odd and ("*" not in cells.rule.path or not np.isnan(cells.values).all()):
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

    def scores(self, model: str, key: Key, cells: Answered, notes: list[Note]) -> Scores:
        """Return one model's, task's and metric's scores. Add to `notes` what is left out. Refuse cluster gaps."""
        preset, rule, options = self.preset, cells.rule, self.options
        conditions = cells.by_condition() if "condition" in self.columns_of else 0
        repeated = len(cells.values) > len(cells.keys)
        fields: dict[str, Any] = {
            "bounds": tuple(rule.bounds) or None,
            "questions": self._questions(model, key, cells),
            "repeats_named": self.repeats_named(cells, conditions) if repeated else None,
            "repeats_are_runs": preset.shared_repeats and repeated,
        }
        if preset.stops_on:
            fields["stops_on"] = preset.stops_on
        if rule.native:
            fields["native"] = rendered(rule.native, file=self.source.file, model=model, metric=key[1])
        part = cells.scores(
            self.path,
            key,
            options,
            clusters=clusters_of_file(key[0], self._clusters_of(cells), notes),
            cluster_spec=self.spec(key[0]),
            outer=self.outer[key[0]].found() if key[0] in self.outer else None,
            **fields,
        )
        inside = (part.values > 0) & (part.values < 1 if preset.name == "table" else part.values <= 1)
        if rule.bounds and part.bounds is None and inside.any():
            said = "some scores lie in 0 to 1 and others beyond: shares among percentages?"
            notes.append(Note("scales_mixed", said).of(*key[:2]))
        if cells.twice:
            said = f"{counted(cells.twice, 'row repeats', 'rows repeat')} another row and {are(cells.twice)} left out"
            notes.append(Note("said_twice", said).of(*key[:2]))
        return drop_other_native(part)

    def _clusters_of(self, cells: Answered) -> list[str | None]:
        """Return the cluster of each question, None without one. Raise an error if a named column has gaps.

        Raises:
            InputError: a question is in two clusters, or in none of a column that the user named.
        """
        clusters = cells.clusters_of_questions(self.path)
        if "cluster" in self.chosen and None in clusters and {*clusters} != {None}:
            line = cells.lines[np.flatnonzero(np.array(cells.places) == clusters.index(None))[0]]
            raise InputError(f"{self.path}, line {line}: no {self.chosen['cluster']!r}, the cluster that you named")
        return clusters

    def repeats_named(self, cells: Answered, conditions: int) -> str | None:
        """Return the cause that all repeats share (`seed`, `prompt`), None if unknown."""
        shared = self.preset.condition if conditions > 1 else self.preset.repeat if self.preset.shared_repeats else ""
        return shared.partition(" | ")[0] or None

    def _questions(self, model: str, key: Key, cells: Answered) -> Questions:
        keys = cells.keys
        fields = fields_of(self.path, key[0], cells.records, self.used, self.options.fields)
        worded = self.text is not None and "" not in cells.hashes.odd()
        return Questions(
            keys,
            doubles=find_doubles(cells.hashes, cells.targets) if worded else (),
            by_words=self.preset.text,
            inputs=cells.hashes if worded else None,
            targets=cells.targets if self.solution and len(cells.targets) == len(keys) else None,
            texts=tuple(cells.texts) if self.shown and any(cells.texts) else None,
            documents=self.documents(keys),
            fields=fields,
            log=RowLog(self.again, keys, (model, *key)),
        )

    def documents(self, keys: Sequence[str]) -> TextSource | None:
        """Return the source to read question texts from later: None here, subclasses may override it."""
        return None

    def are_of(self, block: Block, key: Sequence[str]) -> BoolArray:
        """Return (n,) True for rows of this model, task, metric and scorer. An empty cell, or no column, fits any."""
        out = np.ones(len(block), dtype=bool)
        for name, wanted in zip(TOLD, key, strict=True):
            if (get := self.columns_of.get(name)) is not None:
                out &= np.array([(cell_text(cell) or wanted) == wanted for cell in get(block)], dtype=bool)
        return out


_LIKE = {"question": "FIELD"}
_DIGIT = re.compile(r"\s*[+-]?[.\d]")
