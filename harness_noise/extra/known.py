"""The scores of one run, or of two on the same questions, with what is known of these questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..analysis.sample import Sample, align, is_scored, sample, scored_pairs, scores_of_rows, stack_rows
from ..arrays import FloatArray, HashArray, IntArray
from ..data.clusters import Fields, Value, numeral
from ..data.native_values import are_zero_one
from ..data.numbers import number_text
from ..data.questions import AnswerTexts, Questions
from ..data.scores import Group, Run, Scores, causes_of
from ..errors import InputError
from ..stats.contrast import Contrast, Design, contrast

Runs: TypeAlias = tuple[Run] | tuple[Run, Run]


@dataclass(frozen=True, slots=True, eq=False)
class WithFields:
    """One task × metric × scorer: of the questions that every run has scored, the scores and the fields."""

    parts: tuple[Scores, ...]
    """Scores of one run, or of A and B: the same questions in the same order."""
    runs: Runs
    fields: Fields

    def __len__(self) -> int:
        return len(self.parts[0].questions)

    @property
    def name(self) -> str:
        return self.parts[0].title

    @property
    def about(self) -> dict[str, Any]:
        """Dict of a result row's first fields: task, metric, scorer, model_a, model_b (None: one run), `_zero_one`."""
        first, models = self.parts[0], [run.model for run in self.runs]
        of_models = {"model_a": models[0], "model_b": models[1] if len(models) > 1 else None}
        scale = {"_zero_one": are_zero_one(self.parts)}
        return {"task": first.task, "metric": first.metric, "scorer": first.scorer, **of_models, **scale}

    def samples(self) -> list[Sample]:
        """Return one sample for a mean, or two (A, B) for a difference, on the questions that both runs scored."""
        if len(self.parts) == 1:
            return [sample(self.parts)]
        both = align(self.parts[:1], self.parts[1:], None)
        return [both.a, both.b]

    def contrast(self, who: str) -> tuple[Contrast, list[Sample], Design]:
        """Return the contrast (mean or A − B), samples and design. Refuse questions clustered in two crossed ways.

        Raises:
            InputError: clusters in two crossed ways; `who` says what does not know these.
        """
        samples = self.samples()
        design = samples[0].design()
        if design.crossed is not None:
            raise InputError(
                f"{self.name}: {who} clusters of one kind, and these questions are clustered in two crossed ways: name "
                "one of the two with `cluster`"
            )
        stats, coefficients = [sample.stats for sample in samples], [1.0, -1.0][: len(samples)]
        return contrast(stats, coefficients, design.strata), samples, design

    def take(self, rows: IntArray) -> WithFields:
        """Return the same scores and fields, restricted to the questions in these rows."""
        return replace(
            self, parts=tuple(scores_of_rows(part, rows) for part in self.parts), fields=self.fields.take(rows)
        )


def with_fields(parts: Sequence[Scores], runs: Runs) -> WithFields | None:
    """Return the questions that all `parts` have scored, with scores and fields. None if no fields were read.

    If both runs have a field, the values of the first are used.
    """
    at = [np.flatnonzero(is_scored(parts[0]))]
    if len(parts) == 2:
        pairing = scored_pairs(*parts)
        at = [np.array(pairing.rows_a, dtype=np.intp), np.array(pairing.rows_b, dtype=np.intp)]
    of_parts = [
        part.questions.fields.take(rows)
        for part, rows in zip(parts, at, strict=True)
        if part.questions.fields is not None
    ]
    if not of_parts:
        return None
    kept = [scores_of_rows(part, rows) for part, rows in zip(parts, at, strict=True)]
    return WithFields(tuple(replace(part, questions=kept[0].questions) for part in kept), runs, _merge_fields(of_parts))


def stack_tasks(tables: Sequence[WithFields], group: Group) -> WithFields:
    """Return the questions of a group's tasks as one table of scores and fields. Absent fields become None."""
    specs = dict.fromkeys(spec for table in tables for spec in table.fields.values)
    values = {
        spec: [value for table in tables for value in table.fields.values.get(spec, [None] * len(table))]
        for spec in specs
    }
    auto, names = (
        tuple(dict.fromkeys(name for part in lists for name in part))
        for lists in ([table.fields.auto for table in tables], [table.fields.names for table in tables])
    )
    parts = tuple(_stacked([table.parts[r] for table in tables], group) for r in range(len(tables[0].parts)))
    return WithFields(parts, tables[0].runs, Fields(values, auto, names))


def _stacked(parts: Sequence[Scores], group: Group) -> Scores:
    """Return the scores of a group's tasks stacked into one `Scores`, with the clusters of the group's row."""
    whole = sample(parts)
    of_task = [part.task for part in parts for _ in part.questions.keys]
    keys = [key for part in parts for key in part.questions.keys]
    return replace(
        parts[0],
        task=group.name,
        questions=Questions(tuple(map("\x1f".join, zip(of_task, keys, strict=True))), parts[0].questions.kind),
        values=whole.values,
        asked=stack_rows([part.was_asked.astype(np.float64) for part in parts]) == 1,
        gradings=None,
        answers=_texts_below(parts),
        clusters=tuple(of_task) if whole.between_tasks else whole.clusters,
        cluster_spec=whole.cluster_spec,
        bounds=whole.bounds,
        factors=None,
        native=None,
        n_missing=sum(part.n_missing for part in parts),
        missing=causes_of(parts),
        diagnostics=tuple(sorted({code for part in parts for code in part.diagnostics})),
        answers_differ=bool(whole.stats.answers_differ),
        repeats_are_runs=whole.repeats_are_runs,
    )


@dataclass(frozen=True, slots=True, eq=False)
class TextsBelow:
    """The texts of several tasks, stacked (see `AnswerTexts`)."""

    sources: tuple[AnswerTexts, ...]
    shapes: tuple[tuple[int, int], ...]
    """(n, K) of each."""

    def hashes(self, rows: Sequence[int]) -> HashArray:
        """Read (m, K) hashes of answer texts for rows counted over several tasks. 0: unknown. Raise if unreadable."""
        wanted, start = np.asarray(rows, dtype=np.intp), 0
        out = np.zeros((len(wanted), max(K for _, K in self.shapes)), dtype=np.uint64)
        for source, (n, K) in zip(self.sources, self.shapes, strict=True):
            here = np.flatnonzero((wanted >= start) & (wanted < start + n))
            if len(here):
                out[here, :K] = source.hashes((wanted[here] - start).tolist())
            start += n
        return out

    def shared(self, first: Callable[[Sequence[str]], Sequence[str]]) -> TextsBelow:
        """Return the object with the lists of strings of all sources replaced by equal ones kept by `first`."""
        return TextsBelow(tuple(source.shared(first) for source in self.sources), self.shapes)


def _texts_below(parts: Sequence[Scores]) -> TextsBelow | None:
    """Return the answer texts of several tasks, one below the other. None if one task has no texts."""
    sources = [part.answers for part in parts if part.answers is not None]
    if len(sources) < len(parts):
        return None
    return TextsBelow(tuple(sources), tuple((len(part.values), part.values.shape[1]) for part in parts))


def _merge_fields(of_runs: Sequence[Fields]) -> Fields:
    """Return A's fields that have any value, else B's of that name, with the `auto` and `names` of both."""
    values: dict[str, Sequence[Value]] = {}
    for fields in reversed(of_runs):
        values |= {key: column for key, column in fields.values.items() if any(value is not None for value in column)}
    auto = dict.fromkeys(name for fields in of_runs for name in fields.auto if name in values)
    return Fields(values, tuple(auto), tuple(dict.fromkeys(name for fields in of_runs for name in fields.names)))


def numbers_or_none(values: Sequence[Value]) -> FloatArray | None:
    """Parse a field's (n,) values as numbers, NaN if missing. None if all are missing or one is no number."""
    parsed = [numeral(value) for value in values]
    present = [number for number, value in zip(parsed, values, strict=True) if value is not None]
    if not present or None in present:
        return None
    return np.array(parsed, dtype=np.float64)


def level_text(value: object) -> str:
    """Return a field's value as text, to name a slice or a level of a factor."""
    return number_text(value) if isinstance(value, float) else str(value)


def check_known(tables: Iterable[WithFields], specs: Sequence[str], option: str) -> None:
    """Refuse a field (never `auto`) that no question of any task has (the message lists those there are), or no tables.

    Raises:
        InputError: lists the fields that there are.
    """
    tables = list(tables)
    if not tables:
        raise InputError(f"{option} {specs[0]}: nothing that these runs have is a mean over questions with fields")
    for spec in specs:
        if spec == "auto":
            continue
        if not any(value is not None for table in tables for value in table.fields.values.get(spec, ())):
            raise InputError(f"{option} {spec}: no question has it. The fields are {field_names(tables)}")


def field_names(tables: Iterable[WithFields]) -> str:
    """Return the names of all fields of the questions, comma-separated, at most 40, for a message."""
    names = dict.fromkeys(name for table in tables for name in table.fields.names)
    return ", ".join(list(names)[:40]) or "(none)"
