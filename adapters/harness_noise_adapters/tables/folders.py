"""Formats whose rows are the files of a folder, one each: `files` of a preset."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from harness_noise.errors import InputError
from harness_noise.io.paths import load

from .documents import KEY
from .opening import Rows
from .presets import Preset, Recognised, all_presets


def of_folder(path: Path, own: str | None = None) -> Preset | None:
    """Return the known format that keeps one row in each file of such a folder, None if none fits."""
    return next((preset for preset in all_presets(own) if _first(path, preset) is not None), None)


def recognised_folder(path: Path, own: str | None = None) -> Recognised | None:
    """Read a folder of one-row files as a table of a known format, None if none fits. Refuse damaged files.

    Raises:
        InputError: a file that is damaged, or holds no object.
    """
    preset, rows = of_folder(path, own), []
    if preset is None:
        return None
    for file in sorted(set(chain.from_iterable(map(path.glob, preset.files)))):
        row = load(file)
        if not isinstance(row, dict):
            raise InputError(f"{file}: not an object, as a file of {preset.name} is, but {type(row).__name__}")
        rows.append({KEY: file.parent.relative_to(path).as_posix(), **row})
    models = {row[preset.model] for row in rows if isinstance(row.get(preset.model), str)}
    if len(models) == 1:  # a row that ended in an error says less, and is of the same run
        rows = [{preset.model: next(iter(models)), **row} for row in rows]
    return Recognised(Rows(str(path), rows), preset)


def _first(path: Path, preset: Preset) -> Path | None:
    return next(chain.from_iterable(map(path.glob, preset.files)), None)
