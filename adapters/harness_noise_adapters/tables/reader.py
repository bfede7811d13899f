"""Score tables: one row for each answer, in CSV, JSONL, JSON or Parquet; eval-arena's counts as well.

What a column is goes by its name, and only by names that can hardly mean anything else; the run's
notes say what was taken for what. `--columns` says the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.clusters import ClusterSpec, MissingFieldError, labeller, text_label
from harness_noise.data.fields import Fields
from harness_noise.data.native_values import fitting
from harness_noise.data.questions import Questions, occurrences
from harness_noise.data.scores import ReadOptions, Run, Scores, check_grid
from harness_noise.errors import InputError

from .columns import _FEW, _HEAD, _WATCHED, TASK, Columns
from .fields import fields_of
from .files import SUFFIXES, Record, records
from .questions import settle
from .values import _text

if TYPE_CHECKING:
    from harness_noise.data.scores import FloatArray

    from ..base import Analyzer

Factors = dict[str, tuple[tuple[str, ...], ...]]


class TableAdapter:
    """Score tables (CSV, JSONL, JSON, Parquet), read only: they have no place for an error bar."""

    name = "table"

    def sniff(self, path: Path) -> bool:
        """Whether the file's name says it is a table; a JSON file has to be a list."""
        if path.suffix.lower() not in SUFFIXES or not path.is_file():
            return False
        if path.suffix.lower() != ".json":
            return True
        try:
            with path.open("rb") as file:
                return file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        except OSError:
            return False

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """The models of a table, one Run each; see `harness_noise_adapters.base.Adapter.read`."""
        return read(path, options)

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
    rest = records(path)
    head = list(islice(rest, _HEAD))
    if not head:
        raise InputError(f"{path}: the table has no rows")
    columns = Columns.of(path, [record for _, record in head], _said_of(path, options.columns))
    cluster, spec = _cluster(path, columns, options)
    models: dict[str, dict[tuple[str, str, str], Cells]] = {}
    spare: dict[str, dict[Any, None]] = {name: {} for name in columns.unused}
    watched: list[tuple[tuple[Any, ...], Record]] = []
    for line, record in _chained(head, rest):
        for name in ("model", "task"):
            if name in columns.names and columns.text(record, name) is None:
                raise InputError(f"{path}, line {line}: no {columns.names[name]!r}, though the table has that column")
        model = columns.text(record, "model") or path.stem
        key = (columns.text(record, "task") or TASK, columns.text(record, "metric") or "score",
               columns.text(record, "scorer") or "none")  # fmt: skip
        cells = models.setdefault(model, {}).setdefault(key, Cells())
        question = cells.name(*columns.question_of(path, line, record))
        label = None if cluster is None else cluster(record, line)
        levels = _levels(path, line, record, options.factors)
        scored, repeat = columns.scores(path, line, record), columns.text(record, "repeat")
        cells.add(path, line, question, scored, repeat, label, levels)
        if options.fields:
            cells.records.setdefault(question, []).append(record)
        if "repeat" in columns.names and columns.text(record, "repeat") is None:
            raise InputError(f"{path}, line {line}: no {columns.names['repeat']!r}, which tells the answers apart")
        if "repeat" not in columns.names and columns.count is None and len(watched) < _WATCHED:
            few = {name: _hashable(record.get(name)) for name in spare}
            for name, value in few.items():
                spare[name][value] = None
            spare = {name: values for name, values in spare.items() if len(values) <= _FEW}
            watched.append(((model, key, question), {name: few[name] for name in spare}))
    settled = settle(path, columns, [cells for of_model in models.values() for cells in of_model.values()])
    watched = [
        ((model, key, settled.names(models[model][key]).get(question, question)), values)
        for (model, key, question), values in watched
    ]
    models = {model: {key: settled.of(cells) for key, cells in of_model.items()} for model, of_model in models.items()}
    notes = [columns.note(path), *settled.notes]
    notes += _overlooked(path, watched, spare)
    return _runs(path, models, columns, spec, options, notes)


def _runs(
    path: Path, models: Mapping[str, Mapping[tuple[str, str, str], Cells]], columns: Columns,
    spec: Callable[[str], str | None], options: ReadOptions, notes: Sequence[str],
) -> list[Run]:  # fmt: skip
    runs = []
    for model, of_model in models.items():
        scores, remarks = [], []
        for (task, metric, scorer), cells in of_model.items():
            known = fields_of(path, task, cells, columns, options.fields)
            part = cells.scores(path, task, metric, scorer, spec(task), options, known)
            scores.append(replace(part, bounds=fitting((0.0, 1.0), part.values)) if columns.right_or_wrong else part)
            if cells.twice:
                remarks.append(f"{task}: {cells.twice} rows say again what another row said and are left out")
        run = Run(
            model=model, name=str(path), harness="table", path=str(path), scores=tuple(scores),
            notes=(*notes, *remarks),
        )  # fmt: skip
        runs.append(run)
    return runs


def _said_of(path: Path, said: Mapping[str, str]) -> dict[str, str]:
    """What `--columns` says of this file: `score=COL` of every file, `FILE:score=COL` of the one of that name."""
    everywhere = {name: column for name, column in said.items() if ":" not in name}
    for name, column in said.items():
        file, _, ours = name.rpartition(":")
        if file and file in (path.name, path.stem, str(path)):
            everywhere[ours] = column
    return everywhere


@dataclass(slots=True)
class Cells:
    """The scores of one model × task × metric, question by question."""

    lines: dict[str, dict[str | int, tuple[float, int]]] = field(default_factory=dict)
    """question → repeat → (score, line)."""
    clusters: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    levels: dict[tuple[str, str | int], tuple[str, ...]] = field(default_factory=dict)
    """(question, repeat) → what the answer was made with."""
    counts: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """question → right answers and all answers, for each row that counts several."""
    twice: int = 0
    words: dict[str, str] = field(default_factory=dict)
    """Question → the words beside its name."""
    double: dict[str, str] = field(default_factory=dict)
    """Questions that are called by name and words, because the name has come with other words → the name."""
    records: dict[str, list[Record]] = field(default_factory=dict)
    """question → its rows, where something is to be known of the questions."""

    def name(self, question: str, words: str | None) -> str:
        """What a question is called for now."""
        if words is None or self.words.setdefault(question, words) == words:
            return question
        both = f"{question}\x1f{words}"
        self.double[both], self.words[both] = question, words
        return both

    def add(
        self,
        path: Path,
        line: int,
        question: str,
        scored: tuple[float, int],
        repeat: str | None,
        cluster: str | None,
        levels: tuple[str, ...] = (),
    ) -> None:
        if question not in self.lines:
            self.lines[question] = {}
            self.clusters[question] = (cluster, line)
        before, at = self.clusters[question]
        if cluster != before:
            raise InputError(
                f"{path}: question {question!r} is in cluster {before!r} on line {at} and in {cluster!r} on line {line}"
            )
        known = self.lines[question]
        score, count = scored
        if count > 1:
            self.counts.setdefault(question, []).append((int(score), count))
            return
        if repeat is None:
            self._label(question, len(known), levels)
            known[len(known)] = (score, line)
            return
        if levels:  # repeat 1 under prompt 2 is another answer than repeat 1 under prompt 1
            repeat = "\x1f".join((repeat, *levels))
        self._label(question, repeat, levels)
        old, at = known.get(repeat, (None, 0))
        if old is None:
            known[repeat] = (score, line)
        elif old == score or (old != old and score != score):
            self.twice += 1
        else:
            raise InputError(
                f"{path}: question {question!r}, repeat {repeat!r} has the score {old:g} on line {at} and "
                f"{score:g} on line {line}: is there a column of models or tasks? (--columns model=…, task=…)"
            )

    def _label(self, question: str, repeat: str | int, levels: tuple[str, ...]) -> None:
        if levels:
            self.levels[question, repeat] = levels

    def renamed(self, path: Path, names: Mapping[str, str]) -> Cells:
        """The same rows, each of the question that `names` says."""
        out = Cells(twice=self.twice)
        for question, found in self.records.items():
            out.records.setdefault(names.get(question, question), []).extend(found)
        for question, rows in self.lines.items():
            for repeat, (score, line) in rows.items():
                label, levels = self.clusters[question][0], self.levels.get((question, repeat), ())
                known = repeat if isinstance(repeat, str) else None
                if levels and known is not None:
                    known = known.partition("\x1f")[0]  # `add` puts the levels behind it again
                out.add(path, line, names.get(question, question), (score, 0), known, label, levels)
        return out

    def numbered(self) -> Cells:
        """The same rows, each a question of its own."""
        rows = [
            (question, repeat, scored) for question, known in self.lines.items() for repeat, scored in known.items()
        ]
        out = Cells(twice=self.twice)
        for key, (question, repeat, (score, line)) in zip(
            occurrences([question for question, _, _ in rows]), rows, strict=True
        ):
            out.lines[key] = {0: (score, line)}
            out.clusters[key] = (self.clusters[question][0], line)
            out.records[key] = self.records.get(question, [])
            if (question, repeat) in self.levels:
                out.levels[key, 0] = self.levels[question, repeat]
        return out

    def factors(self, names: Sequence[str], places: Sequence[Mapping[int, str | int]], K: int) -> Factors:
        """Column → (n, K) levels, from the repeat at each place; an answer that is not there has the level ""."""
        none = ("",) * len(names)
        rows = [
            [self.levels.get((question, at[j]), none) if j in at else none for j in range(K)]
            for question, at in zip(self.lines, places, strict=True)
        ]
        return {name: tuple(tuple(levels[i] for levels in row) for row in rows) for i, name in enumerate(names)}

    def scores(
        self, path: Path, task: str, metric: str, scorer: str, spec: str | None, options: ReadOptions,
        fields: Fields | None,
    ) -> Scores:  # fmt: skip
        import numpy as np

        repeats = _in_order({repeat for known in self.lines.values() for repeat in known})
        most = max(map(len, self.lines.values()))
        # labels that questions do not share (a seed drawn for each answer) only say the order
        shared = len(repeats) <= 2 * most
        place = {repeat: j for j, repeat in enumerate(repeats)}
        K = len(repeats) if shared else most
        answers = sum(map(len, self.lines.values()))
        for question, rows in self.counts.items():
            counted = sum(count for _, count in rows)
            K = max(K, len(self.lines[question]) + counted)
            answers += counted
        check_grid(len(self.lines), K, answers, path)
        values = np.full((len(self.lines), K), np.nan)
        places: list[dict[int, str | int]] = [{} for _ in self.lines]
        missing = 0
        for i, known in enumerate(self.lines.values()):
            order = known if shared else sorted(known, key=place.__getitem__)
            for j, repeat in enumerate(order):
                score = known[repeat][0]
                missing += score != score
                filled = 0.0 if score != score and options.missing == "zero" else score
                column = place[repeat] if shared else j
                values[i, column] = filled
                places[i][column] = repeat
        if self.counts and options.factors:
            raise InputError(f"{path}: counts of right answers do not say which answer is which: --factor needs rows")
        if self.counts:
            self._fill(values)
            # counts do not tell the order of the answers: draw one, or repeat 1 would always be right
            values = np.random.default_rng(0).permuted(values, axis=1)
        labels = tuple(label for label, _ in self.clusters.values() if label is not None)
        if labels and len(labels) < len(self.lines):
            line = next(line for label, line in self.clusters.values() if label is None)
            raise InputError(f"{path}, line {line}: no cluster, though other questions have one")
        return Scores(
            task=task, metric=metric, scorer=scorer, questions=Questions(tuple(self.lines), fields=fields),
            values=values,
            clusters=labels or None, cluster_spec=spec if labels else None, n_missing=missing,
            factors=self.factors(options.factors, places, values.shape[1]) if options.factors else None,
        )  # fmt: skip

    def _fill(self, values: FloatArray) -> None:
        """Put the counted answers behind those that have rows of their own."""
        for i, (question, known) in enumerate(self.lines.items()):
            start = len(known)
            for right, count in self.counts.get(question, ()):
                values[i, start : start + right] = 1.0
                values[i, start + right : start + count] = 0.0
                start += count


def _in_order(repeats: set[str | int]) -> list[str | int]:
    """Numbers by value, texts by alphabet."""
    try:
        return sorted(repeats, key=lambda repeat: (float(repeat), str(repeat)))
    except ValueError:
        return sorted(repeats, key=str)


def _cluster(
    path: Path, columns: Columns, options: ReadOptions
) -> tuple[Callable[[Record, int], str | None] | None, Callable[[str], str | None]]:
    """A function from a row to its cluster, and one from a task to the words for it."""
    if options.cluster is None:
        if "cluster" not in columns.names:
            return None, lambda task: None
        return (lambda record, line: columns.text(record, "cluster")), (lambda task: columns.names["cluster"])
    parsed = ClusterSpec.parse(options.cluster)
    labels: dict[str, Callable[[Mapping[str, Any]], str]] = {}

    def spec(task: str) -> str | None:
        found = parsed.for_task(task)
        if found == "auto":
            raise InputError(
                f"{path}: --cluster auto knows the tasks of harnesses, not a table's columns; name a column"
            )
        return None if found == "none" else found

    def label(record: Record, line: int) -> str | None:
        task = columns.text(record, "task") or TASK
        wanted = spec(task)
        if wanted is None or wanted == "task":
            return wanted and task
        if wanted not in labels:
            labels[wanted] = labeller(wanted)
        try:
            return labels[wanted](record)
        except MissingFieldError as error:
            have = ", ".join(error.fields)
            raise InputError(
                f"{path}, line {line}: cluster column {wanted!r} is not there or empty; there are {have}"
            ) from None

    return label, spec


def _overlooked(
    path: Path, watched: Sequence[tuple[tuple[Any, ...], Record]], spare: Mapping[str, Mapping[Any, None]]
) -> list[str]:
    """Hints at an unused column that tells the rows of every question apart: a model, a prompt, a seed?"""
    if len({key for key, _ in watched}) == len(watched):
        return []
    suspects = [name for name, values in spare.items() if len(values) > 1]
    seen: dict[str, set[tuple[Any, ...]]] = {name: set() for name in suspects}
    for key, values in watched:
        for name in suspects:
            seen[name].add((*key, values[name]))
    return [
        f"{path.name}: column {name!r} tells the rows of each question apart; they were taken for repeats of one "
        f"model. If it is the model or the task, say --columns model={name}"
        for name in suspects
        if len(seen[name]) == len(watched)
    ]


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


def _chained(head: Sequence[tuple[int, Record]], rest: Iterator[tuple[int, Record]]) -> Iterator[tuple[int, Record]]:
    yield from head
    yield from rest


def _hashable(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else text_label(value)
