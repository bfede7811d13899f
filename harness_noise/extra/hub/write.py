"""Entries of `.eval_results/*.yaml`, from which the Hugging Face Hub shows a model's results.

The fields `dataset` (`id`, `task_id`, `revision`), `value`, `date`, `source`, `verifyToken`, `notes` are those of
https://huggingface.co/docs/hub/eval-results. Which are required says `EvalResultEntry` of huggingface_hub, which reads
them back by `eval_result_entries_to_yaml`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._version import __version__
from ...data.notes import Note
from ...errors import InputError, counted, some_of
from ...io.atomic import write_text
from ...report import fmt
from ...report.sentences import answers, asked_for, first_metrics

if TYPE_CHECKING:
    from ...data.scores import Run
    from ...results.rows import Analysis, Estimate

_NAMED = re.compile(r"([\w.-]+/[\w.-]+):([\w./-]+)")
"""A task that says itself which benchmark it is: dataset:task_id."""
_NAME_IT = (
    "A task that is called dataset:task_id, such as openai/gsm8k:gsm8k, is taken as it says: task_id is in the "
    "dataset's eval.yaml"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")


def make(run: Run, analysis: Analysis, folder: Path, *, say: Callable[[Note], None]) -> list[Path]:
    """Write a run as a Hugging Face Hub file `.eval_results/MODEL-RUN.yaml`. Return [path]. Refuse if no row can be.

    Args:
        run: of any harness.
        analysis: of the run.
        folder: of the model's repository.
        say: takes a note on the tasks that are left out.

    Raises:
        InputError: no task is a benchmark.
    """
    rows = [row for row in _main(run, analysis) if not row.is_overall]
    entries = [_entry(row, benchmark, run.date) for row in rows if (benchmark := benchmark_of(row.task))]
    if unknown := [fmt.plain(row.task) for row in rows if not benchmark_of(row.task)]:
        text = f"{run.name}: not known as a benchmark of the Hub, so left out: {some_of(unknown, 4)}. {_NAME_IT}"
        if not entries:
            raise InputError(text)
        say(Note("left_out", text))
    if not entries:
        raise InputError(f"{run.name}: no task has an error bar")
    path = folder / ".eval_results" / f"{_slug(f'{run.model}-{run.name}')}.yaml"
    write_text(path, "\n".join(map(_yaml, entries)))
    return [path]


def _slug(name: str) -> str:
    """Return a name made safe as a file name, with a hash appended if that changed it."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[-120:]
    return slug if slug == name else f"{slug}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def _main(run: Run, analysis: Analysis) -> list[Estimate]:
    """Return one estimate with an SE for each task that has any: of its headline metric, else of the first asked for.

    A Hub entry does not name the metric.
    """
    have = [row for row in analysis.estimates if row.se is not None]
    main = [row for row in have if row.key in run.headline]
    return first_metrics([*main, *asked_for(have)])


def benchmark_of(task: str) -> tuple[str, str] | None:
    """Return (dataset, task_id) on the Hub for a task's name, None if it is not known there."""
    if named := _NAMED.fullmatch(task):
        return named[1], named[2]
    return next((tuple(found) for pattern, found in _benchmarks().items() if re.fullmatch(pattern, task)), None)


@cache
def _benchmarks() -> dict[str, Any]:
    text = files(__package__).joinpath("benchmarks.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["benchmarks"]
    return table


def _entry(row: Estimate, benchmark: tuple[str, str], date: str) -> dict[str, Any]:
    """Return a Hub entry for an estimate: dataset, value, date and notes with its error.

    `value` is in per cent for 0/1 scores, as in some of its examples, else on the metric's scale.
    """
    scale = fmt.scale_of(row)
    entry: dict[str, Any] = {"dataset": dict(zip(("id", "task_id"), benchmark, strict=True))}
    entry["value"] = float(f"{scale.times * (row.mean or 0.0):.10g}")
    if found := _DATE.match(date):
        entry["date"] = found[0]
    error = f"± {fmt.amount(row, row.se)} (standard error"
    error += f", clustered by {fmt.plain(row.cluster)})" if row.cluster else ")"
    what = fmt.metric_name(row.metric, row.scorer)
    entry["notes"] = (
        f"{what}; {error}; {counted(row.n_questions, 'question')}, {answers(row)}; harness-noise {__version__}"
    )
    return entry


def _yaml(entry: dict[str, Any]) -> str:
    """Format an evaluation result for the Hugging Face Hub as YAML text."""
    parts = [("    ", entry["dataset"]), ("  ", {name: entry[name] for name in entry if name != "dataset"})]
    each = [(f"{indent}{name}", value) for indent, part in parts for name, value in part.items()]
    return "\n".join(["- dataset:", *(f"{name}: {_scalar(value)}" for name, value in each), ""])


def _scalar(value: str | float) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text
