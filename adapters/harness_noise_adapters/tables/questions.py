"""Which rows of a table are answers to one question.

An id names it where there is one. Repeats are believed where an id comes again, or where most of the
questions do; a few that have the same words are different questions.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_noise.arrays import FloatArray
from harness_noise.data.answers import MetricAnswers
from harness_noise.data.clusters import (
    ClusterSpec,
    FieldReader,
    Fields,
    MissingFieldError,
    labeller,
    resolved,
    text_label,
    value_of,
)
from harness_noise.data.native_values import fitting
from harness_noise.data.questions import Hashes, content_hash, occurrences
from harness_noise.data.scores import ReadOptions, Scores
from harness_noise.errors import FinalError, InputError, parameter

from .columns import TableColumns, cell_text, is_worded, mentioned
from .files import Record, Rows

Key = tuple[str, str, str]
"""Task, metric and scorer."""


@dataclass(slots=True)
class TableAnswers(MetricAnswers):
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
    """Hashes of the words of each question, in their order; "" where it has none."""

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

    def renamed(self, path: Path, names: Mapping[str, str] | None) -> TableAnswers:
        """A copy in which each row is of the question that `names` says; None: of a question of its own."""
        out, rows = TableAnswers(twice=self.twice), list(self)
        questions = [question for question, _, _ in rows]
        keys = occurrences(questions) if names is None else [names.get(question, question) for question in questions]
        hashes = dict(zip(self.numbers, self.hashes, strict=False))
        for key, (question, repeat, number) in zip(keys, rows, strict=True):
            if key not in out.numbers and question in hashes:
                out.hashes.append(hashes[question])
            known, levels = (
                repeat if names is not None and isinstance(repeat, str) else None,
                self.levels.get(number, ()),
            )
            if levels and known is not None:
                known = known.partition("\x1f")[0]  # `add` puts the levels behind it again
            cluster, line = self.clusters[question][0], self.lines[number]
            again = out.add(path, key, known, self.values[number], cluster=cluster, levels=levels, line=line)
            if number in self.usage:
                out.measure(path, again, self.usage[number])
        for key, question in dict.fromkeys(zip(keys, questions, strict=True)):
            out.records.setdefault(key, []).extend(self.records.get(question, ()))
        return out

    def scores(self, where: object, what: Key, options: ReadOptions, **fields: Any) -> Scores:
        """See `MetricAnswers.scores`; answers that are only counted stand in no known order."""
        if not self.counts:
            return MetricAnswers.scores(self, where, what, options, **fields)
        if options.factors or options.usage:
            name = "factors" if options.factors else "measures"
            raise InputError(f"{where}: counts of right answers do not say which answer is which: `{name}` needs rows")
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
    text = cell_text(words)
    return "" if text is None else content_hash(text)


def clusters_of(
    path: Path | Rows,
    options: ReadOptions,
    own: tuple[str, Callable[[Record], Any]] | None,
    task_of: Callable[[Record], str],
) -> tuple[Callable[[Record, int], str | None] | None, Callable[[str], str | None]]:
    """A function from a row to its cluster, and one from a task to the words for it.

    Args:
        path: the file, for messages.
        options: what the user asks for.
        own: what the file calls its clusters, and where a row says its own; None where it has none.
        task_of: the task of a row.
    """
    if options.cluster is None:
        if own is None:
            return None, lambda task: None
        name, value = own
        return (lambda record, line: cell_text(value(record))), (lambda task: name)
    parsed = ClusterSpec.parse(options.cluster)
    labels: dict[str, Callable[[Mapping[str, Any]], str] | None] = {}

    def natural(task: str) -> str:
        raise InputError(f"{path}: `cluster='auto'` knows the tasks of harnesses, not a table's columns; name a column")

    def spec(task: str) -> str | None:
        return resolved(parsed, task, natural)[0]

    def label(record: Record, line: int) -> str | None:
        task = task_of(record)
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


def levels_of(path: Path | Rows, line: int, record: Record, names: Sequence[str]) -> tuple[str, ...]:
    """What the answer of a row was made with."""
    found = []
    for name in names:
        try:
            level = cell_text(value_of(name, record))
        except MissingFieldError:
            level = None
        if level is None:
            have = ", ".join(map(str, record))
            raise InputError(f"{path}, line {line}: factor column {name!r} is not there or empty; there are {have}")
        found.append(level)
    return tuple(found)


_WATCHED = 20_000
"""Rows that are looked at for a column that tells more than one thing of a question."""
_FEW = 64
"""Values that a column of conditions (models, prompts, judges) has at most."""
_OF_ANSWER = re.compile(
    "answer|respon|output|predict|pred$|completion|generat|choice|letter|option|extract|parsed|raw|reason|rationale|"
    "thought|time|latency|duration|elapsed|token|cost|length|prob|confidence|score|correct|match|acc|pass|reward|grade|"
    "judge?ment|verdict|error|status|finish|stop|uuid|hash|date|created|trace|trajectory|messages|conversation|feedback|"
    "comment|explanation|critique|code$|patch|solution|continuation|result|eval|turn|step|num|count|^n_|"
    "^is_|^has_"
)
"""Names of columns that tell of an answer, and may differ between the answers to one question."""
_OF_REPEAT = re.compile("sample|gen|iter|try|trial|rep|run|seed|roll|attempt|shot|epoch")
_OF_QUESTION = re.compile("target|gold|ground_truth|expected|reference|prompt|input|stimul|passage|context")


@dataclass(slots=True)
class Settled:
    """The tables as they are in the end."""

    new: dict[int, TableAnswers] = field(default_factory=dict)
    """Identity of an old table → the one in its place."""
    notes: list[str] = field(default_factory=list)

    def of(self, cells: TableAnswers) -> TableAnswers:
        return self.new.get(id(cells), cells)


def settle(path: Path, columns: TableColumns, tables: Sequence[TableAnswers]) -> Settled:
    """Decide for a whole file, and tell the columns.

    Args:
        path: the file, for the notes.
        columns: the words become `question` where they are the question, and the id is not used.
        tables: its scores, one for each model, task and metric, by whatever names the question so far.
    """
    if any(cells.counts for cells in tables):
        return Settled()
    return _without_id(path, columns, tables) if columns.words is None else _beside(path, columns, tables)


def _beside(path: Path, columns: TableColumns, tables: Sequence[TableAnswers]) -> Settled:
    """An id beside the words: the id, unless it numbers the rows or the answers of a question."""
    name, words = columns.question, columns.words
    assert words is not None
    ambiguous = sum(len(set(cells.double.values())) for cells in tables)
    ids = sum(len(cells.numbers) - len(cells.double) for cells in tables)
    unique = all(len(rows) == 1 for cells in tables for rows in cells.numbers.values()) and not ambiguous
    shared, distinct = (sum(found) for found in zip(*map(_shared_words, tables), strict=True))
    counted = "repeat" in columns.names and all(map(_counted, tables))
    if 2 * ambiguous > ids or (unique and shared and (counted or 2 * shared > distinct)):
        columns.names["question"], columns.words = words, None
        columns.unused = [*columns.unused, name]
        return Settled({id(cells): cells.renamed(path, cells.words) for cells in tables})
    out = Settled({id(cells): cells.renamed(path, cells.double) for cells in tables if cells.double})
    if unique and shared:
        out.notes.append(
            f"{path.name}: {shared} texts in {words!r} stand beside several {name!r}, which are as many questions; if "
            f"they are repeats, say {parameter('columns', {'question': words})}"
        )
    return out


def _counted(cells: TableAnswers) -> bool:
    """Whether the repeats of a table number the answers that have the same words, and nothing else (a row's seed)."""
    answers = Counter[str]()
    numbers: dict[tuple[str, str], None] = {}
    n = 0
    for question, rows in cells.numbers.items():
        words = cells.words.get(question, question)
        for repeat in rows:
            n += 1
            answers[words] += 1
            numbers[words, str(repeat).partition("\x1f")[0]] = None
    return len(numbers) == n and len({repeat for _, repeat in numbers}) == max(answers.values(), default=0)


def _shared_words(cells: TableAnswers) -> tuple[int, int]:
    """How many texts are those of several questions, and how many texts there are."""
    count = Counter(cells.words.get(question, question) for question in cells.numbers)
    return sum(n > 1 for n in count.values()), len(count)


def _without_id(path: Path, columns: TableColumns, tables: Sequence[TableAnswers]) -> Settled:
    """Only one column tells the question: a few equal sentences in it are no repeats."""
    name = columns.question
    repeated = sum(len(rows) > 1 for cells in tables for rows in cells.numbers.values())
    n = sum(len(cells.numbers) for cells in tables)
    if name in columns.chosen or "repeat" in columns.names or not 0 < 2 * repeated <= n:
        return Settled()
    if not is_worded([question for cells in tables for question in cells.numbers]):
        return Settled()
    note = (
        f"{path.name}: {repeated} of {n} texts in {name!r} come more than once; so few are different questions with "
        f"the same words, not repeats; if they are repeats, say {parameter('columns', {'question': name})}"
    )
    return Settled({id(cells): cells.renamed(path, None) for cells in tables}, notes=[note])


def refuse_one_question(path: Path, columns: TableColumns, tables: Sequence[TableAnswers]) -> None:
    """Refuse a guess by which most rows of a table are the answers to one question."""
    name = columns.question
    if name in columns.chosen or "repeat" in columns.names or columns.off:
        return
    for cells in tables:
        most = max(map(len, cells.numbers.values()), default=0)
        if len(cells.values) >= _SEVERAL and 2 * most > len(cells.values) and not cells.counts and not columns.lists:
            raise InputError(
                f"{path}: by {name!r}, {most} of {len(cells.values)} rows are answers to one question, so it hardly "
                f"names the questions: say which column does, as in {parameter('columns', {'question': 'COLUMN'})} "
                f"(or {parameter('columns', {'question': name})} if it does)"
            )


_SEVERAL = 20


class Pooled:
    """What the columns that are not used say in the rows of one question.

    Repeats differ in what tells of the answer. Where they differ in a column of conditions, of stimuli or of judges,
    the user has to say what that is: it would be taken for the model's own noise.
    """

    def __init__(self, path: Path, columns: TableColumns, known: Sequence[str]) -> None:
        self.path, self.columns = path, columns
        asked = "repeat" not in columns.names and columns.count is None and not {"repeat", "question"} & {*columns.off}
        names = [name for name in columns.unused if not mentioned(name, known)] if asked else []
        self._hashes: dict[str, list[int]] = {name: [] for name in names}
        self._texts: dict[str, list[Any]] = {name: [] for name in names}
        """The first values."""
        self._rows: dict[int, int] = {}
        """Line → row, of those that are watched."""

    def add(self, line: int, record: Record) -> None:
        """One row, of the first ones."""
        if not self._hashes or len(self._rows) >= _WATCHED:
            return
        first = len(self._rows) < _FEW
        self._rows[line] = len(self._rows)
        for name, column in self._hashes.items():
            value = record.get(name)
            if isinstance(value, (list, dict)):
                value = text_label(value)
            column.append(hash(value))
            if first:
                self._texts[name].append(value)

    def ask(self, tables: Sequence[TableAnswers]) -> None:
        """Refuse a table that pools what its columns tell apart.

        Raises:
            InputError: names the column, and what can be said of it.
        """
        questions, rows = array("q"), array("q")
        n = 0
        for cells in tables:
            for found in cells.numbers.values():
                if len(found) < 2:
                    continue
                at = [self._rows[line] for number in found.values() if (line := cells.lines[number]) in self._rows]
                questions.extend([n] * len(at))
                rows.extend(at)
                n += 1
        if n < 2:
            return
        most = max(len(found) for cells in tables for found in cells.numbers.values())
        for name, hashes in self._hashes.items():
            if self._tells_apart(name, questions, [hashes[row] for row in rows]):
                raise InputError(self._question(name, n, most))

    def _tells_apart(self, name: str, questions: Sequence[int], values: Sequence[int]) -> bool:
        """Whether a column stands for conditions that questions share, or words questions of its own."""
        import numpy as np

        q, v = np.asarray(questions), np.unique(np.asarray(values, dtype=np.int64), return_inverse=True)[1].reshape(-1)
        Q, V, N = int(q[-1]) + 1, int(v.max()) + 1, len(v)
        cells, counts = np.unique(q * V + v, return_counts=True)
        varied = (np.bincount(cells // V, minlength=Q) > 1).mean()
        plain = str(name).strip().lower().replace(" ", "_")
        if varied <= 0.5 or _OF_REPEAT.search(plain) is not None:
            return False
        texts = [text for text in self._texts[name] if text is not None]
        numeric = all(map(_is_number, texts))
        of_question = not numeric and _OF_QUESTION.search(plain) is not None
        of_answer = not of_question and _OF_ANSWER.search(plain) is not None
        shares = len(cells) / (Q * V)
        if V <= _FEW and shares == 1 and (counts.reshape(Q, V) == counts[:V]).all():
            return not of_answer or Q >= _SEVERAL  # each value equally often under every question, not by chance
        if of_question or of_answer:
            return of_question
        recurs = (len(cells) == N and N >= 2 * V) or shares >= _MOSTLY
        if numeric:
            return recurs and 2 < V <= _FEW
        return recurs or is_worded([str(text) for text in texts])

    def _question(self, name: str, n: int, most: int) -> str:
        columns = self.columns
        shown = ", ".join(repr(str(text)[:30]) for text in dict.fromkeys(map(str, self._texts[name][:_FEW])))
        shown = shown if len(shown) <= 100 else f"{shown[:100]}…"
        both = f"{columns.question}*{name}"
        ways = "; ".join(
            f"{what}: {parameter('columns', said)}"
            for what, said in (
                ("a model", {"model": name}),
                ("a task or condition of its own", {"task": name}),
                ("part of the question", {"question": both}),
                ("the number of the answer", {"repeat": name}),
                ("nothing but a remark on the answer", {"repeat": "none"}),
            )
            if not (what in ("a model", "a task or condition of its own") and next(iter(said)) in columns.names)
        )
        return (
            f"{self.path}: {n} questions by {columns.question!r} have up to {most} rows each, which differ in {name!r} "
            f"({shown}): are they answers of one model to one question? Say what {name!r} is: {ways}"
        )


_MOSTLY = 0.9


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def fields_of(
    path: Path | Rows, task: str, records: Mapping[str, Sequence[Record]], used: Collection[str], specs: Sequence[str]
) -> Fields | None:
    """The values of SPECs for each question of one model × task × metric; None where nothing is asked.

    Args:
        path: the file, for messages.
        task: its name.
        records: question → its rows, in the order of the questions.
        used: columns that say something else.
        specs: what is asked.

    Raises:
        FinalError: a column that differs between the answers to one question is no property of the question.
    """
    if not specs:
        return None
    docs: list[dict[str, Any]] = []
    varying: dict[str, str] = {}
    for question, (first, *others) in records.items():
        docs.append({name: value for name, value in first.items() if name not in used})
        for other in others:
            if other != first:
                varying |= {name: question for name, value in other.items() if first.get(name) != value}
    for name, question in varying.items():
        if name not in used and mentioned(name, specs):
            raise FinalError(
                f"{path}: column {name!r} has several values for question {question!r}: it tells of an answer, not "
                f"of a question; with {name} among the `factors`, `factors` says how much noise it makes"
            )
    reader = FieldReader(specs, task)
    for doc in docs:
        reader.add({name: value for name, value in doc.items() if name not in varying})
    return reader.fields()
