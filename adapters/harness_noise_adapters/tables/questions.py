"""Which rows of a table are answers to one question.

An id names it where there is one. Repeats are believed where an id comes again, or where most of the
questions do; a few that have the same words are different questions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from harness_noise.arrays import IntArray
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
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import FinalError, InputError, parameter

from .cells import BESIDE, Answered
from .columns import PROMPTS, TableColumns, cell_text, is_worded, like, mentioned, plain_name
from .files import Record, Rows


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

    def natural(task: str) -> str:
        raise InputError(f"{path}: `cluster='auto'` knows the tasks of harnesses, not a table's columns; name a column")

    def spec(task: str) -> str | None:
        return resolved(parsed, task, natural)[0]

    @cache
    def of_task(task: str) -> Callable[[Record], str | None]:
        return labeller(wanted, task) if (wanted := spec(task)) is not None else lambda record: None

    def label(record: Record, line: int) -> str | None:
        task = task_of(record)
        try:
            return of_task(task)(record)
        except MissingFieldError as error:
            have = ", ".join(error.fields)
            raise InputError(
                f"{path}, line {line}: cluster column {spec(task)!r} is not there or empty; there are {have}"
            ) from None

    return label, spec


def levels_of(path: Path | Rows, line: int, record: Record, names: Sequence[str]) -> tuple[str, ...]:
    """What the answer of a row was made with."""
    levels = []
    for name in names:
        level = None
        with suppress(MissingFieldError):
            level = cell_text(value_of(name, record))
        if level is None:
            have = ", ".join(map(str, record))
            raise InputError(f"{path}, line {line}: factor column {name!r} is not there or empty; there are {have}")
        levels.append(level)
    return tuple(levels)


_WATCHED = 20_000
"""Rows that are looked at for a column that tells more than one thing of a question."""
_FEW = 64
"""Values that a column of conditions (models, prompts, judges) has at most."""
_OF_ANSWER, _OF_REPEAT, _OF_QUESTION = map(like, ("answer", "repeat", "question"))
_OPAQUE = re.compile("^[0-9a-f-]{8,}$|[0-9a-z]{12,}", re.IGNORECASE)
"""Drawn by a machine to name a row."""


def settle(path: Path | Rows, columns: TableColumns, tables: Sequence[Answered]) -> list[str]:
    """Decide for a whole file which rows are one question, and tell the columns; returns what is to be said of it.

    Args:
        path: the file, for the notes.
        columns: the words become `question` where they are the question, and the id is not used.
        tables: its scores, one for each model, task and metric, by whatever names the question so far.
    """
    return _without_id(path, columns, tables) if columns.words is None else _beside(path, columns, tables)


def _beside(path: Path | Rows, columns: TableColumns, tables: Sequence[Answered]) -> list[str]:
    """An id beside the words: the id, unless it numbers the rows or the answers of a question."""
    name, words = columns.question, columns.words
    assert words is not None
    double = [_double(cells) for cells in tables]
    ambiguous = sum(len(set(names.values())) for names in double)
    ids = sum(len(cells.keys) - len(names) for cells, names in zip(tables, double, strict=True))
    unique = all(len(cells.distinct()) == len(cells.keys) for cells in tables) and not ambiguous
    shared, distinct = (sum(counts) for counts in zip(*map(_shared_words, tables), strict=True))
    counted = "repeat" in columns.names and all(map(_counted, tables))
    if 2 * ambiguous > ids or (unique and shared and (counted or 2 * shared > distinct)):
        columns.names["question"], columns.words = words, None
        columns.unused = [*columns.unused, name]
        for cells in tables:
            cells.rename(cells.words)
        return []
    for cells, names in zip(tables, double, strict=True):
        if names:
            cells.rename(names)
    if not (unique and shared):
        return []
    return [
        f"{path.name}: {shared} texts in {words!r} stand beside several {name!r}, which are as many questions; if "
        f"they are repeats, say {parameter('columns', {'question': words})}"
    ]


def _double(cells: Answered) -> dict[str, str]:
    """Questions that are called by name and words, because the name has come with other words → the name."""
    ends = {question: f"{BESIDE}{words}" for question, words in cells.words.items()}
    return {question: question.removesuffix(end) for question, end in ends.items() if question.endswith(end)}


def _counted(cells: Answered) -> bool:
    """Whether the repeats of a table number the answers that have the same words, and nothing else (a row's seed)."""
    keys, rows = list(cells.keys), cells.distinct()
    answers_to = zip(cells.places, cells.repeats, strict=True)
    numbers = {(cells.words.get(keys[place], keys[place]), repeat) for place, repeat in answers_to}
    answers = Counter(words for words, _ in numbers)
    return len(numbers) == len(rows) and len({repeat for _, repeat in numbers}) == max(answers.values(), default=0)


def _shared_words(cells: Answered) -> tuple[int, int]:
    """How many texts are those of several questions, and how many texts there are."""
    texts = Counter(cells.words.get(question, question) for question in cells.keys)
    return sum(n > 1 for n in texts.values()), len(texts)


def _without_id(path: Path | Rows, columns: TableColumns, tables: Sequence[Answered]) -> list[str]:
    """Only one column tells the question: a few equal sentences in it are no repeats."""
    name = columns.question
    repeated = sum(int((cells.counts() > 1).sum()) for cells in tables)
    n = sum(len(cells.keys) for cells in tables)
    if name in columns.chosen or "repeat" in columns.names or not 0 < 2 * repeated <= n:
        return []
    if not is_worded([question for cells in tables for question in cells.keys]):
        return []
    for cells in tables:
        cells.rename(None)
    return [
        f"{path.name}: {repeated} of {n} texts in {name!r} come more than once; so few are different questions with "
        f"the same words, not repeats; if they are repeats, say {parameter('columns', {'question': name})}"
    ]


def refuse_guess(path: Path | Rows, columns: TableColumns, tables: Sequence[Answered]) -> None:
    """Refuse a guess by which most rows of a table answer one question, or none is the repeat that it says to be."""
    name, repeat = columns.question, columns.names.get("repeat")
    if name in columns.chosen or columns.off or columns.lists:
        return
    for cells in tables:
        n, most = len(cells.values), int(cells.counts().max(initial=0))
        if repeat is None and n >= _SEVERAL and 2 * most > n:
            raise _no_name(path, name, f"{most} of {n} rows are answers to one question", "COLUMN")
        if repeat is not None and most == 1 and _even(numbers := Counter(cells.repeats), n):
            what = f"every row is a question of its own, though {repeat!r} tells {len(numbers)} answers apart"
            raise _no_name(path, name, what, "COLUMN")


def _even(rows: Counter[Any], n: int) -> bool:
    """Whether values come again, and about equally often, as the numbers of repeats and the words of questions do."""
    return 1 < len(rows) <= n // 2 and max(rows.values()) < 2 * min(rows.values())


def _no_name(path: Path | Rows, name: str, what: str, other: str) -> InputError:
    return InputError(
        f"{path}: by {name!r}, {what}, so it hardly names the questions: say which column does, as in "
        f"{parameter('columns', {'question': other})} (or {parameter('columns', {'question': name})} if it does)"
    )


_SEVERAL = 20


class Pooled:
    """What the columns that are not used say in the rows of one question.

    Repeats differ in what tells of the answer. Where they differ in a column of conditions, of stimuli or of judges,
    the user has to say what that is: it would be taken for the model's own noise.
    """

    def __init__(self, path: Path | Rows, columns: TableColumns, specs: Sequence[str]) -> None:
        self.path, self.columns = path, columns
        watch = "repeat" not in columns.names and columns.count is None and not {"repeat", "question"} & {*columns.off}
        names = [name for name in columns.unused if not mentioned(name, specs)] if watch else []
        self._hashes: dict[str, list[int]] = {name: [] for name in names}
        self._texts: dict[str, list[Any]] = {name: [] for name in names}
        """The first values."""
        self._ids: set[str] = set()
        """Columns that name finer questions."""
        self._n = 0
        """Rows that have come so far."""

    def add(self, record: Record) -> None:
        """One row, of the first ones."""
        self._n += 1
        if not self._hashes or self._n > _WATCHED:
            return
        for name, values in self._hashes.items():
            value = record.get(name)
            if isinstance(value, (list, dict)):
                value = text_label(value)
            values.append(hash(value))
            if self._n <= _FEW:
                self._texts[name].append(value)

    def ask(self, tables: Sequence[Answered]) -> None:
        """Refuse a table that pools what its columns tell apart.

        Raises:
            InputError: names the column, and what can be said of it.
        """
        import numpy as np

        n, questions, rows = 0, [], []
        for cells in tables:
            self._refuse_numbers(cells)
            places, of_row, several = np.array(cells.places), np.array(cells.rows), cells.counts() > 1
            which = np.flatnonzero(several[places] & (of_row < _WATCHED))
            questions.append(n + (np.cumsum(several) - 1)[places[which]])
            rows.append(of_row[which])
            n += int(several.sum())
        q, at = np.concatenate(questions), np.concatenate(rows)
        if n < 2 or not q.size:
            return
        most = max(int(cells.counts().max()) for cells in tables)
        for name, hashes in self._hashes.items():
            if self._tells_apart(name, q, np.array(hashes, dtype=np.int64)[at]):
                raise InputError(self._question(name, n, most))

    def _refuse_numbers(self, cells: Answered) -> None:
        """Refuse an id of its own for every row, where the words of a prompt come again as often as each other."""
        name, plain = self.columns.question, {text: plain_name(str(text)) for text in self._hashes}
        prompt = next(
            (text for text in plain if plain[text] in PROMPTS and is_worded([*map(str, self._texts[text])])), None
        )
        if prompt is None or name in self.columns.chosen or cells.counts().max() > 1:
            return
        told = [self._hashes[text] for text in plain if plain[text] in PROMPTS or _OF_QUESTION.search(plain[text])]
        words = Counter(tuple(values[row] for values in told) for row in cells.rows if row < _WATCHED)
        if _even(words, words.total()) and max(words.values()) < len(words):
            what = f"every row is a question of its own, though {len(words)} texts in {prompt!r} come again"
            raise _no_name(self.path, name, what, prompt)

    def _tells_apart(self, name: str, q: IntArray, values: IntArray) -> bool:
        """Whether a column stands for conditions that questions share, or words questions of its own."""
        import numpy as np

        v = np.unique(values, return_inverse=True)[1].reshape(-1)
        Q, V, N = int(q.max()) + 1, int(v.max()) + 1, len(v)
        cells, counts = np.unique(q * V + v, return_counts=True)
        varied = (np.bincount(cells // V, minlength=Q) > 1).mean()
        plain = str(name).strip().lower().replace(" ", "_")
        if varied <= 0.5 or _OF_REPEAT.search(plain) is not None:
            return False
        texts = [text for text in self._texts[name] if text is not None]
        numeric = all(map(_is_number, texts))
        if plain.endswith("id") and not numeric and len(cells) == V and not any(_OPAQUE.search(str(t)) for t in texts):
            as_many = np.bincount(np.bincount(q, minlength=Q)).max()
            if 2 * as_many < Q:  # repeats would be as many for most questions
                self._ids.add(name)
                return True
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
        ways = "; ".join(
            f"{what}: {parameter('columns', said)}"
            for what, said in (
                ("a model", {"model": name}),
                ("a task or condition of its own", {"task": name}),
                ("part of the question", {"question": name if name in self._ids else f"{columns.question}*{name}"}),
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
