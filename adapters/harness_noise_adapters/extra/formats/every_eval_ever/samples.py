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

import numpy as np

from harness_noise import InputError
from harness_noise.data.notes import Note
from harness_noise.data.questions import content_hash, excerpt
from harness_noise.data.scores import ReadOptions, Run, Scores
from harness_noise.errors import are, counted

from ....records import field
from ....tables.blocks import Block
from ....tables.fields import as_chosen
from ....tables.files import objects
from ....tables.opening import Record
from ....tables.presets import Recognised, formats_in
from ....tables.reader import FileReader
from ....tables.values import cell_text
from .results import DAMAGED, RESULT, Results

(PRESET,) = formats_in("samples.toml", files(__package__).joinpath("samples.toml").read_text("utf-8"))


def read_samples(samples: Path, results: Results, options: ReadOptions) -> list[Run]:
    """Read samples into one Run per model, with facts of results. Note samples of no result, refuse unclear repeats."""
    reader = _reader(samples, options)
    runs, lost = reader.read(), len(reader.lost)
    name, date = str(results.path or samples), str(results.data.get("evaluation_timestamp") or "")
    of_none = counted(lost, "sample belongs", "samples belong")
    said = f"{samples}: {of_none} to no result and {are(lost)} missing under each"
    notes = [Note("missing", said)] if lost else []
    out = []
    for run in runs:
        scores = tuple(reader.described(part, results) for part in run.scores)
        out.append(replace(run, name=name, date=date, notes=(*run.notes[1:], *notes), scores=scores))
    return out


class _Reader(FileReader):
    """Collector of the answers in the samples."""

    def names_read(self) -> Sequence[str]:
        names = super().names_read()
        return [*names, RESULT] if names and RESULT not in names else names

    def add(self, block: Block) -> None:
        results = block.column(RESULT)
        if "metric" not in self.columns_of:
            if told := [line for line, result in zip(block.lines, results, strict=True) if result is not None]:
                raise InputError(f"{self.path}, line {told[0]}: it says its {RESULT}, others before do not{DAMAGED}")
        elif None in results:
            bare = block.at([i for i, result in enumerate(results) if result is None])
            self.require_question(bare, self.names["question"].codes(self.questions(bare)), np.ones(len(bare), bool))
            self.lost += [(row, line, -1) for line, row in bare]
            block = block.at([i for i, result in enumerate(results) if result is not None])
        if len(block):
            super().add(block)

    def described(self, part: Scores, results: Results) -> Scores:
        """Return scores with the facts of their only result, if one. Refuse repeats that may be of several results."""
        key = part.task if "metric" not in self.columns_of else part.metric
        places, apart = results.called(key), "task" in self.chosen  # apart: a result is of more answers than these
        if not {"metric", "repeat"} & self.columns_of.keys() and len(places) > 1 and part.values.shape[1] > 1:
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
    """Build the reader of a samples file, after its first lines show if it has result ids, epochs and clusters."""
    first: list[Record] = []
    for _, rows in objects(samples):
        first += rows
        if len(first) >= 1000:
            break
    repeat, cluster = (
        f"metadata.{name}" if first and how(field(row, "metadata", name) is not None for row in first) else ""
        for name, how in (("epoch", any), ("cluster", all))
    )
    named = any(row.get(RESULT) is not None for row in first)
    preset = replace(PRESET, repeat=repeat, cluster=cluster, metric=RESULT if named else "")
    reader = _Reader(as_chosen(Recognised(samples, preset), options.columns), options, options.columns)
    reader.again = partial(_reader, samples, options)
    return reader


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of the questions, read on demand."""

    samples: Path
    keys: Sequence[str]

    def read(self) -> tuple[Sequence[str] | None, Sequence[str] | None]:
        """Return (hashes of texts or stored hashes, first words) by question. Hashes: None if one has neither."""
        by_key: dict[str, tuple[str, str]] = {}
        for _, rows in objects(self.samples):
            for row in rows:
                pair = str(field(row, "input", "raw") or ""), str(row.get("sample_hash") or "")
                by_key.setdefault(cell_text(row.get("sample_id")) or "", pair)
        of_each = [by_key.get(key, ("", "")) for key in self.keys]
        words = [text or hashed for text, hashed in of_each]
        return tuple(map(content_hash, words)) if all(words) else None, tuple(excerpt(text) for text, _ in of_each)
