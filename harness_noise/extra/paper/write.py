"""The function that writes a result for a paper."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ...errors import InputError, check_kind, some_of
from ...io.atomic import write_text
from ...report.columns import Words
from ...report.text import render
from ...results.forms import Document, all_kinds, renderers_of
from ...results.rows import Analysis, Comparison, Estimate
from .methods import FORM, rows_of, text

_FILES = ("table.tex", "sentence.txt", "figure.svg", "methods.md", "result.json")


def write_paper(result: Document, folder: str | Path, *, command: str | None = None, words: Words = str) -> list[Path]:
    """Write what a paper needs of a result: table, sentence, figure, methods and numbers.

    Parameters
    ----------
    result
        The result of `analyze`, `compare` or `arena`.
    folder
        Gets `table.tex` (booktabs), `sentence.txt`, `figure.svg`, `methods.md` (a paragraph, and the references of what
        was computed) and `result.json`: all numbers, unrounded, with the settings and, under `run`, the command.
    command
        The command line that makes the result again. None: the JSON names the runs and the settings.
    words
        Rewrites each sentence. By default a sentence names parameters in backticks, as ``weights='size'``.

    Returns
    -------
    list of Path
        The files that were written. A result that nothing can be drawn of has no figure.

    Raises
    ------
    InputError
        Another kind of result, or a folder that cannot be written or that has other files of these names. The files of
        an earlier call are replaced.

    Notes
    -----
    The result is made again by the command, or in Python by the function of the runs with
    ``settings=hn.Settings(**json["settings"])`` (of an arena without `baseline`) and what else you gave.
    """
    if FORM not in renderers_of(result):
        more = (kind for kind in all_kinds().values() if FORM in kind.renderers)
        check_kind("write_paper", result, Analysis, Comparison, *more)
    _check_folder(Path(folder))
    files = {"table.tex": render(result, "latex"), "sentence.txt": render(result, "sentence", words=words)}
    try:
        files["figure.svg"] = render(result, "svg")
    except InputError:  # nothing to draw
        Path(folder, "figure.svg").unlink(missing_ok=True)
    files["methods.md"] = words(text(result))
    whole = result.to_dict() | {"run": {"command": command, "runs": _names_of_runs(result)}}
    files["result.json"] = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    for name in reversed(files):  # the JSON first, by which a later call knows the folder
        write_text(Path(folder) / name, files[name])
    return [Path(folder) / name for name in files]


def _check_folder(folder: Path) -> None:
    """Refuse a folder that has files of these names which `write_paper` has not written.

    Raises:
        InputError: names them.
    """
    there = [name for name in _FILES if os.path.lexists(folder / name)]
    if there and not _is_paper(folder / _FILES[-1]):
        raise InputError(
            f"{folder} has {some_of(there, 5)} already, and not of an earlier result: nothing of yours is overwritten. "
            "Name another folder, or move them away"
        )


def _is_paper(path: Path) -> bool:
    """Return True if a file is a `result.json` that `write_paper` has written."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"harness_noise_version", "settings", "run"} <= {*found}


def _names_of_runs(result: Document) -> list[str]:
    """Return the names of a result's runs, each once. A's come before B's."""
    if isinstance(result, Comparison):
        return list(dict.fromkeys(name for row in result.rows for name in (row.run_a, row.run_b) if name))
    return list(dict.fromkeys(row.run for row in rows_of(result) if isinstance(row, Estimate)))
