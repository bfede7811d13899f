"""lighteval 0.13: `details/MODEL/DATE/details_TASK_DATE.parquet`, a row for each document with its metrics.

`lighteval eval` runs on Inspect, whose logs are read as such.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from harness_noise import InputError
from harness_noise.data.answers import Answers
from harness_noise.data.numbers import finite
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.io.door import also, is_inside
from harness_noise.io.paths import refuse_pointer

from ...records import ReadOnly, document, field
from ...tables.files import parquet_rows
from ...tables.opening import readable

_DATE = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
FILE = re.compile(rf"details_(.+)_({_DATE})\.parquet")
DAMAGED = ": was it written by lighteval, and is it whole?"
COLUMNS = ("doc.id", "doc.query", "doc.task_name", "doc.specific", "metric", "metrics")


class LightevalAdapter(ReadOnly):
    """The adapter of lighteval. It follows `harness_noise.io.protocol`."""

    name = "lighteval"
    about = "lighteval details (details_TASK_DATE.parquet), read only"

    def sniff(self, path: Path) -> bool:
        """Return True if a path is a lighteval details file, or a folder with some in it, or below its "details"."""
        if path.is_dir():
            below = (path / "details").rglob("details_*.parquet") if (path / "details").is_dir() else path.iterdir()
            return any(FILE.fullmatch(child.name) and child.is_file() for child in below)
        return FILE.fullmatch(path.name) is not None

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read lighteval details files into one Run for each model and date. Refuse a path without details."""
        runs: dict[tuple[Path, str], list[Path]] = defaultdict(list)
        for file in sorted(path.rglob("details_*.parquet")) if path.is_dir() else [path]:
            if (match := FILE.fullmatch(file.name)) and file.is_file() and is_inside(file):
                runs[file.parent, match[2]].append(file)
        if not runs:
            raise InputError(f"{path}: no details in it{DAMAGED}")
        dates = Counter(folder for folder, _ in runs)
        out = []
        for (folder, date), files in runs.items():
            run = _run(folder if path.is_dir() else path, folder, date, files, options)
            out.append(replace(run, name=f"{run.name}/{date}") if dates[folder] > 1 else run)
        return out


adapter = LightevalAdapter()


def _run(place: Path, folder: Path, date: str, files: list[Path], options: ReadOptions) -> Run:
    """Read one model's and date's details files into a Run, with lighteval's own means. Refuse damaged files."""
    answers = Answers(place, options, kind="lighteval id", text="query")
    for file in files:
        _add_task(answers, file)
    parts = folder.parts[:-1] if re.fullmatch(_DATE, folder.name) else folder.parts
    at = max((i for i, part in enumerate(parts) if part == "details"), default=len(parts) - 2)
    model = "/".join(parts[at + 1 :]) or folder.name
    native = Path(*parts[:at], "results", model, f"results_{date}.json")
    with also(Path(*parts[:at])):  # the output folder: what was named may be the details in it
        if at > 0 and native.is_file() and is_inside(native):
            model = _describe(answers, native, model)
    return answers.run(model, adapter.name, date=date)


def _add_task(answers: Answers, file: Path) -> None:
    """Read one task's answers from a details file and add them to `answers`. Refuse an empty or damaged file."""
    answers.file = file
    refuse_pointer(file)
    task, number = FILE.sub(r"\1", file.name), 0
    with readable(file):
        for number, row in parquet_rows(file, COLUMNS):
            where, doc, metrics = f"{file}, row {number}", row.get("doc") or {}, row.get("metric") or row.get("metrics")
            if not isinstance(metrics, dict) or not isinstance(doc, dict):
                raise InputError(f"{where}: no document and its metrics{DAMAGED}")
            question = doc.get("id")
            if question in (None, "") and not doc.get("query"):
                raise InputError(f"{where}: a document with neither id nor query: which question is it?{DAMAGED}")
            key = str(number if question in (None, "") else question)
            for metric, value in metrics.items():
                if not isinstance(value, (dict, list)):  # what a metric over all documents is computed from
                    answers.add(task, metric, "none", key, None, value, doc, line=number)
    if not number:
        raise InputError(f"{file}: there is no row in it{DAMAGED}")


def _describe(answers: Answers, path: Path, model: str) -> str:
    """Add the means of lighteval's results file (refused if absent) to `answers`. Return the full or given model."""
    data = document(path, DAMAGED)
    results = field(data, "results")
    for key, values in results.items() if isinstance(results, dict) else ():
        for metric, value in values.items() if isinstance(values, dict) else ():
            answers.describe(key, metric, "none", native=finite(value))
    return str(field(data, "config_general", "model_name") or model)
