"""Files on disk that make one lm-eval run: a results file and the samples files of its date."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from harness_noise.errors import InputError
from harness_noise.io.door import is_inside
from harness_noise.io.paths import BESIDE, load, opened

_DATE = r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(?:\.\d+)?"
_DAY = r"\d{8}_\d{6}"
"""The date in the names of lmms-eval, which has it first: 20250401_120000_samples_mme.jsonl."""
_RESULTS = re.compile(rf"(?:(?:.*_)?(?P<date>{_DATE})|(?P<first>{_DATE}|{_DAY})_results)\.json")
_SAMPLES = re.compile(
    rf"samples_(?P<task>.+)_(?P<date>{_DATE})\.jsonl?|(?P<first>{_DATE}|{_DAY})_samples_(?P<name>.+)\.jsonl"
)
"""Between 0.4.2 and 0.4.3 they were named `.json`, with the same lines in them."""
_UNDATED = re.compile(r"samples_(?P<task>.+)\.jsonl")
_OPENING = re.compile(rb'\s*\{\s*"results"\s*:\s*\{')
_ROW = re.compile(rb'\s*\{\s*"doc_id"\s*:')
_ROWS = re.compile(rb'\s*\[\s*\{\s*"doc_id"\s*:')
"""All rows in one array, as versions before 0.4.3 wrote them."""
_FIRST_LINE = 1 << 24
_LATEST = 1 << 34
"""Seconds since 1970: the year 2514."""
DAMAGED = ". The file is damaged, truncated or still being written"
_TABLES = {"groups": dict, "group_subtasks": list, "configs": dict, "higher_is_better": dict, "n-samples": dict}
"""Parts of a results file that map tasks to something, with the type of their values."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run."""

    results: Path | None
    samples: dict[str, Path] = field(default_factory=dict)
    """Task → samples file."""
    only: str | None = None
    """The task, where the user named its samples file and no other."""

    @property
    def path(self) -> Path:
        """Path that stands for the run: its results file, or a samples file if named alone or without results."""
        if self.only is not None or self.results is None:
            return next(iter(self.samples.values()))
        return self.results

    def date(self, results: Mapping[str, Any]) -> str:
        """Return when the run was made, from a file's name or the results. "" if unknown."""
        if (named := _date(self.path)) or (self.results is not None and (named := _date(self.results))):
            return named
        seconds = results.get("date")
        if isinstance(seconds, (int, float)) and 0 < seconds < _LATEST:
            return time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(seconds))
        return ""

    def __str__(self) -> str:
        return str(self.path)


def sniff(path: Path) -> bool:
    """Return True if a file or folder seems to be lm-eval's output. Never raises."""
    try:
        if path.is_dir():
            return any(map(_is_results, _candidates(path))) or any(
                map(_dated_samples, _files_below(path, "*samples_*.json*"))
            )
        return _is_results(path) or _is_samples(path)
    except OSError:
        return False


def find(path: Path) -> list[RunFiles]:
    """Return the runs in a folder (refuse if none) or the one of a file, as groups of files by folder and date.

    Args:
        path: an output folder (of one or several runs), a results file, or a samples file.

    Raises:
        InputError: there is no run.
    """
    if path.is_file():
        is_samples = path.suffix == ".jsonl" or _dated_samples(path)
        return [_run_of_samples(path) if is_samples else _run_of_results(path, _samples_in(path.parent))]
    beside = cache(_samples_in)  # many runs may lie in one folder, which is listed once
    outputs = [_run_of_results(file, beside(file.parent)) for file in _candidates(path) if _is_results(file)]
    taken = {file for output in outputs for file in output.samples.values()}
    orphans: dict[tuple[Path, str], dict[str, Path]] = {}
    for file in _files_below(path, "*samples_*.json*"):
        name = _dated_samples(file)
        if name and file not in taken:
            orphans.setdefault((file.parent, name[0]), {})[name[1]] = file
    outputs += [RunFiles(None, samples) for samples in orphans.values()]
    if not outputs:
        raise InputError(f"{path}: no lm-eval results (results_….json) or samples (samples_….jsonl) in this folder")
    return sorted(outputs, key=lambda output: (output.path.parent, _date(output.path), output.path))


def read_results(path: Path) -> dict[str, Any]:
    """Read a results file as a dictionary. Refuse one that is not lm-eval's.

    Raises:
        InputError: not readable, not JSON, or not lm-eval's.
    """
    results = load(path, DAMAGED)
    if not isinstance(results, dict) or not _is_table(results.get("results"), dict):
        raise InputError(f"{path}: not a results file of lm-eval (no object `results` of tasks in it)")
    for name, kind in _TABLES.items():
        if name in results and not _is_table(results[name], kind):
            raise InputError(f"{path}: not a results file of lm-eval (`{name}` is not what lm-eval writes)")
    return results


def _is_table(value: Any, kind: type) -> bool:
    return isinstance(value, dict) and all(isinstance(row, kind) for row in value.values())


def _files_below(folder: Path, pattern: str) -> list[Path]:
    """Return the files below a folder that match a pattern, without our own and links out of it."""
    files = (file for file in folder.rglob(pattern) if BESIDE not in file.relative_to(folder).parts)
    return sorted(filter(is_inside, files))


def _candidates(folder: Path) -> list[Path]:
    return [
        file
        for file in _files_below(folder, "*.json")
        if not file.name.startswith(".") and (_RESULTS.fullmatch(file.name) or file.name.startswith("results"))
    ]


def _is_results(path: Path) -> bool:
    """Return True if a .json file has lm-eval results, by its first bytes, else by name and content (if readable)."""
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        with opened(path, 4096) as file:
            start = file.read(4096)
    except OSError:  # it has vanished, or may not be read
        return False
    if _OPENING.match(start):
        return True
    if not path.name.startswith("results"):
        return False
    try:
        content = load(path)
    except InputError:  # its reader says that it was cut, or not fetched
        return _RESULTS.fullmatch(path.name) is not None
    return isinstance(content, dict) and {"results", "configs"} <= content.keys()


def _dated_samples(path: Path) -> tuple[str, str] | None:
    """Parse (date, task) from a samples file's name. None if it is not named so, or holds results.

    `--output_path samples_x.json` gives results files such names, too.
    """
    name = _SAMPLES.fullmatch(path.name)
    if name is None or (path.suffix == ".json" and _is_results(path)):
        return None
    return name["date"] or name["first"], name["task"] or name["name"]


def _is_samples(path: Path) -> bool:
    if path.suffix != ".jsonl" or not path.is_file():
        return _dated_samples(path) is not None
    if _SAMPLES.fullmatch(path.name):
        return True
    with opened(path, 4096) as file:
        if _ROWS.match(file.read(4096)):
            return True
        file.seek(0)
        line = file.readline(_FIRST_LINE)
    if _ROW.match(line):
        return b'"doc"' in line
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and {"doc_id", "doc_hash", "filtered_resps"} <= row.keys()


def _date(path: Path) -> str:
    name = _RESULTS.fullmatch(path.name) or _SAMPLES.fullmatch(path.name)
    return (name["date"] or name["first"]) if name else ""


def _samples_in(folder: Path) -> dict[str, dict[str, Path]]:
    """Return {date: {task: samples file}} for a folder. The date is "" for files without one."""
    out: dict[str, dict[str, Path]] = {}
    for file in sorted(filter(is_inside, folder.iterdir())):
        if name := _dated_samples(file):
            out.setdefault(name[0], {})[name[1]] = file
        elif plain := _UNDATED.fullmatch(file.name):
            out.setdefault("", {})[plain["task"]] = file
    return out


def _run_of_results(path: Path, samples: Mapping[str, dict[str, Path]]) -> RunFiles:
    """Return a run: results and samples of their date. Without date: the only samples, undated, or named for it."""
    if date := _date(path):
        return RunFiles(path, samples.get(date, {}))
    if len(samples) == 1:
        (only,) = samples.values()
        return RunFiles(path, only)
    return RunFiles(path, samples.get("") or _named_after_model(path))


def _named_after_model(results: Path) -> dict[str, Path]:
    """Return {task: samples file} for lm-eval 0.4.0–0.4.2, which named them after the model's arguments."""
    files = {file.name: file for file in results.parent.glob("*.jsonl") if is_inside(file)}
    try:
        content = read_results(results) if files else {}
    except InputError:  # its reader says so
        return {}
    config = content.get("config")
    arguments = config.get("model_args") if isinstance(config, dict) else None
    if not isinstance(arguments, str):
        return {}
    start = re.sub("/|=", "__", arguments)
    named = {task: files.get(f"{start}_{task}.jsonl") for task in content.get("configs", {})}
    return {task: file for task, file in named.items() if file is not None}


def _run_of_samples(path: Path) -> RunFiles:
    """Return a samples file as a run of one task, with the results file next to it if there is one."""
    date, beside = _date(path), _samples_in(path.parent)
    files = sorted(path.parent.glob("*.json"), key=lambda file: (_date(file) != date, file))
    for file in filter(_is_results, files):
        for task, samples in _run_of_results(file, beside).samples.items():
            if samples == path:
                return RunFiles(file, {task: path}, only=task)
    name, plain = _dated_samples(path), _UNDATED.fullmatch(path.name)
    task = name[1] if name else plain["task"] if plain else path.stem
    return RunFiles(None, {task: path}, only=task)
