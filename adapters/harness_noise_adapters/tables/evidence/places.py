"""Meaning of a file's path: its model, its task, the number of its repeat (rule 13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from harness_noise.data.run_names import without_run

from .lexicon import WORDS
from .verdicts import AskError, Choice

FILE, FOLDER, NUMBER = "@file", "@folder", ":number"
"""Words in `columns` for the parts of a path. With `:number`, only the number in that part."""
_GRID = 0.8
"""Share of the combinations of two parts that must be there for them to be models and tasks."""


@dataclass(frozen=True)
class Places:
    """Parts of paths that name the model, the task and the repeat, as SPECs such as `@folder`, "" for none."""

    model: str = ""
    task: str = ""
    repeat: str = ""


def stem_of(path: PurePath) -> str:
    """Return a file's name without its ending, and without both endings if the last is `.gz`."""
    return PurePath(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def places_of(paths: Sequence[PurePath]) -> Places:
    """Return which part of files' paths (folder, file, "") gives model, task, repeat. Raise AskError if unclear.

    Raises:
        AskError: one part varies, and it is not known whether it names models or tasks.
    """
    files, folders = [stem_of(path) for path in paths], [path.parent.name for path in paths]
    for spec, names in ((FOLDER, folders), (FILE, files)):
        stems = {without_run(name) for name in names}
        if len({*names}) > 1 and len(stems) == 1 and None not in stems:
            others = files if spec == FOLDER else folders
            return Places(repeat=spec + NUMBER, task=FILE if spec == FOLDER and len({*others}) > 1 else "")
    several_files, several_folders = len({*files}), len({*folders})
    if several_files > 1 and several_folders > 1:
        if len({*zip(folders, files, strict=True)}) >= _GRID * several_files * several_folders:
            return Places(model=FOLDER, task=FILE)
        return Places(model=FILE)
    if several_folders > 1:
        return Places(model=FOLDER)
    if (several_files > 1 and _are_tasks(files)) or _has_telling_name(folders):
        _ask(paths, f"the files of {folders[0] or 'this folder'} may be tasks or models")
    return Places(model=FILE)


def _are_tasks(names: Sequence[str]) -> bool:
    """Return True if any of these file or folder names contains the name of a known benchmark."""
    words = {word for name in names for word in re.split(r"[^a-z0-9]+", name.lower())}
    return bool(words & {*WORDS["places"]["tasks"]})


def _has_telling_name(folders: Sequence[str]) -> bool:
    """Return True if the first folder has a telling name, not a generic one such as "results"."""
    return bool(folders[0]) and folders[0].lower() not in WORDS["places"]["folders"]


def _ask(paths: Sequence[PurePath], why: str) -> None:
    raise AskError(
        "paths",
        f"{len(paths)} tables: {why}",
        (
            Choice({"task": FILE, "model": FOLDER}, "each file is a task of its folder's model"),
            Choice({"model": FILE}, "each file is a model"),
        ),
    )
