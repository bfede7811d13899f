"""Adapter for score tables: one row for each answer, in CSV, JSONL, JSON or Parquet, or right answers counted.

What a column is goes by its values and its neighbours, and not by its name alone (`evidence`). The run's notes say
which column was read as what. Where two readings stand, reading asks; `--columns` answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness_noise.data.notes import Note
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import InputError
from harness_noise.io.paths import POINTER, is_url

from ..records import ReadOnly, head, uncollected
from .documents import document, object_of
from .evidence.places import FOLDER, places_of
from .fields import as_chosen
from .files import has_rows, is_lines, records
from .folders import of_folder, recognised_folder
from .opening import Record, Rows, columns_of, stem, suffix_of
from .presets import TABLE, all_presets, recognised
from .reader import FileReader
from .table_reader import table_reader

_RESULT = re.compile(rb'\s*\{\s*"schema_version":\s*\d+,\s*"harness_noise_version"')
"""The beginning of what `--format json` writes."""


class TableAdapter(ReadOnly):
    """The adapter of score tables. It follows `harness_noise.io.protocol`."""

    name = "table"
    about = "Score tables (CSV, JSONL, JSON, Parquet; `.gz`), read only: they have no place for an error bar."

    def formats(self, own: str | None = None) -> dict[str, str]:
        """Return a dict from each known format's name to a phrase for what it reads, the user's file `own` included."""
        return {preset.name: preset.reads for preset in all_presets(own)}

    def sniff(self, path: Path) -> bool:
        """Return True if a path seems to be a table: by its ending, for JSON also by its content, or a known folder.

        A pointer of Git LFS passes, too. Its reader reports it.
        """
        if path.is_dir():
            return of_folder(path) is not None
        if not suffix_of(path) or not path.is_file():
            return False
        return suffix_of(path) != ".json" or has_rows(path) or head(path).startswith(POINTER)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read a table file into one Run for each model. Refuse our own results, unless the user names columns."""
        if not options.columns and _RESULT.match(head(path)):
            raise InputError(
                f"{path}: this is a result that harness-noise wrote (`format='json'`), not a run. Give the run itself, "
                "or read the result with any JSON reader"
            )
        with uncollected():
            return reader_of(path, options, columns_of(path, options.columns)).read()

    def rows(self, path: Path) -> list[Record]:
        """Return all rows of a table file as dictionaries, unchanged, for tables that do not hold a model's answers.

        A JSON document is a list of rows, or one object, which is one row.
        """
        if suffix_of(path) != ".json" or is_lines(path):
            return [row for _, row in records(path)]
        data = document(path)
        listed = data if isinstance(data, list) else [data]
        return [object_of(path, f"entry {number}", row) for number, row in enumerate(listed, 1)]

    def arranged(
        self, place: Path, answers: Sequence[Run | InputError], options: ReadOptions
    ) -> list[Run | InputError]:
        """Return a folder's runs, with model (folder) and task (file) by their paths if no row and no user says so."""
        mine = [run for run in answers if isinstance(run, Run) and _is_named_by_file(run)]
        named_by_user = options.columns.keys() & {"model", "task", "models"}
        if len({run.path for run in mine}) < 2 or named_by_user or is_url(place):
            return list(answers)
        first = Path(mine[0].path)
        if reader_of(first, options, columns_of(first, options.columns)).says_model:
            return list(answers)  # a column does, by the same name
        places = places_of([Path(run.path).relative_to(place) for run in mine])
        if not (places.model == FOLDER and len(mine) == len(answers)):
            return list(answers)
        named = [replace(run, model=Path(run.path).parent.name) for run in mine]
        if not places.task:
            return list(named)
        by_task = [
            replace(run, scores=tuple(replace(part, task=stem(Path(run.path))) for part in run.scores)) for run in named
        ]
        said = f"{place}: each folder is a model and each file a task. If that is wrong, say `columns` model=@file"
        note = Note("read_as", said)
        return [replace(run, notes=(*run.notes, note)) for run in by_task]

    def read_columns(self, name: str, cells: Mapping[str, Sequence[Any]], options: ReadOptions) -> list[Run]:
        """Return one Run for each model of a table in memory, given as column name → cells.

        `name` is what the table is called.
        """
        table = Rows(name, cells=cells)
        with uncollected():
            return reader_of(table, options, columns_of(table, options.columns)).read()


adapter = TableAdapter()


def _is_named_by_file(run: Run) -> bool:
    """Return True if a run's model name is only the name of its file, and its task is the default one."""
    return (
        run.harness == TABLE.name
        and run.model == stem(Path(run.path))
        and all(part.task == TABLE.name for part in run.scores)
    )


def reader_of(path: Path | Rows, options: ReadOptions, chosen: Mapping[str, str]) -> FileReader:
    """Return the object that reads one table file: for its known format, else by what its columns seem to hold."""
    source = recognised_folder(path, options.format_file) if isinstance(path, Path) and path.is_dir() else None
    source = source or recognised(path, options.format_file, chosen)
    if source.preset is TABLE:
        reader: FileReader = table_reader(source, options, chosen)
    else:
        reader = FileReader(as_chosen(source, chosen), options, chosen)
    reader.again = partial(reader_of, path, options, chosen)
    return reader
