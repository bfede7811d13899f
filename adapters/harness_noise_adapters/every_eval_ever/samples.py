"""Samples of Every Eval Ever: a line of `UUID_samples.jsonl` for each sample and metric.

`is_correct` is not read: converters set it by rules of their own. A sample with an `error` is missing; so is one that
belongs to no result (converters write such a line where a sample has no score), under each result of its evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path

from harness_noise import InputError
from harness_noise.data.questions import content_hash, excerpt
from harness_noise.data.scores import ReadOptions, Run, Scores

from ..records import field
from ..tables.columns import cell_text
from ..tables.files import Record, objects
from ..tables.formats import RowReader, as_chosen
from ..tables.presets import Recognised, formats_in
from .results import DAMAGED, RESULT, Results

(PRESET,) = formats_in("samples.toml", files(__package__).joinpath("samples.toml").read_text("utf-8"))


def read_samples(samples: Path, results: Results, options: ReadOptions) -> list[Run]:
    """The runs of a file of samples, one for each model, with what the results say of each metric."""
    reader = _reader(samples, options)
    runs, lost = reader.read(), len(reader.unscored)
    name, date = str(results.path or samples), str(results.data.get("evaluation_timestamp") or "")
    notes = [f"{samples}: {lost} samples belong to no result; they are missing under each"] if lost else []
    out = []
    for run in runs:
        scores = tuple(reader.described(part, results) for part in run.scores)
        out.append(replace(run, name=name, date=date, notes=(*run.notes[1:], *notes), scores=scores))
    return out


class _Reader(RowReader):
    """What the samples have said so far."""

    def add_plain(self, rows: Sequence[Record]) -> bool:
        late = self.metric is None and any(row.get(RESULT) is not None for row in rows)
        return not late and super().add_plain(rows)

    def add(self, line: int, row: Record) -> None:
        if self.metric is None and row.get(RESULT) is not None:
            raise InputError(f"{self.path}, line {line}: it says its {RESULT}, others before do not{DAMAGED}")
        if self.metric is not None and row.get(RESULT) is None:
            self.lost(line, row, None)
        else:
            super().add(line, row)

    def described(self, part: Scores, results: Results) -> Scores:
        """The scores with the names and what else the result that they belong to says of them."""
        key = part.task if self.metric is None else part.metric
        places, apart = results.called(key), "task" in self.chosen  # apart: a result is of more answers than these
        if self.metric is None and len(places) > 1 and part.values.shape[1] > 1 and self.repeat is None:
            raise InputError(
                f"{self.path}: {len(places)} results are called {key!r:.80}, and the samples do not "
                f"say of which they are ({RESULT}): several metrics cannot be told from several answers"
            )
        if len(places) != 1:
            return part if apart else replace(part, task=key, metric="score")
        scores = results.described(part, places[0])
        return replace(scores, task=part.task, native=None) if apart else scores

    def documents(self, keys: Sequence[str]) -> _Words | None:
        if isinstance(self.path, Path) and "question" not in self.chosen:
            return _Words(self.path, keys)
        return None


def _reader(samples: Path, options: ReadOptions) -> _Reader:
    """The reader of a samples file, whose first lines say whether results have ids and samples have epochs."""
    first: list[Record] = []
    for _, rows in objects(samples):
        first += rows
        if len(first) >= 1000:
            break
    epochs = any(field(row, "metadata", "epoch") is not None for row in first)
    named = any(row.get(RESULT) is not None for row in first)
    preset = replace(PRESET, repeat="metadata.epoch" if epochs else "", metric=RESULT if named else "")
    reader = _Reader(as_chosen(Recognised(samples, preset), options.columns), options, options.columns)
    reader.again = partial(_reader, samples, options)
    return reader


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of the questions, read when somebody asks for them."""

    samples: Path
    keys: Sequence[str]

    def read(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """Hashes and beginnings; no hashes where a sample has no words."""
        by_key: dict[str, tuple[str, str]] = {}
        for _, rows in objects(self.samples):
            for row in rows:
                pair = str(field(row, "input", "raw") or ""), str(row.get("sample_hash") or "")
                by_key.setdefault(cell_text(row.get("sample_id")) or "", pair)
        of_each = [by_key.get(key, ("", "")) for key in self.keys]
        words = [text or hashed for text, hashed in of_each]
        return tuple(map(content_hash, words)) if all(words) else None, tuple(excerpt(text) for text, _ in of_each)
