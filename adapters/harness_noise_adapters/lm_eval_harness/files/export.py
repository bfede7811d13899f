"""Write a finished lm-eval run again: native as it was, with its noise, under the same file names.

Samples first, results last; every file by an atomic rename. A line of a samples file keeps its own
bytes and gets our keys at its end; the results file is written as lm-eval writes it. What is there
already is recognised, so that a second call changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness_noise.data.answers import zeros_for_missing
from harness_noise.data.clusters import ClusterSpec, UserSpec
from harness_noise.data.native_values import MISMATCH, reproduces
from harness_noise.data.notes import Note
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import InputError, NothingToAddError, some_of
from harness_noise.io import atomic as files
from harness_noise.io.protocol import Analyzer
from harness_noise.results.diagnostics import meaning_of
from harness_noise.results.rows import Estimate

from . import outputs
from .outputs import RunFiles
from .read import Reading, read_output
from .results import CLUSTER, SCORES, UNUSABLE, inject, strict_scores
from .scan import Row, Scan, metrics_of

_NO_BAR = (MISMATCH, "too_few_questions", "too_few_clusters")


def write(path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
    """Write the runs at `path` under `out` as they lie there, with error bars. Return paths. Refuse if none has any.

    Args:
        path: an output folder, a results file or a samples file; of the latter, its whole run.
        out: a folder; the run's own folder rewrites it in place.
        analyze: gives the numbers.
        options: how the run is read; `tasks`, `metrics` and `scorers` do not matter here.

    Returns:
        The files, in the order in which they were written; a run without any error bar is not.

    Raises:
        NothingToAddError: no run has one.
        InputError: the run cannot be read, a file cannot be written, or `out` would change the input
            without being its folder. A file that had been written by then is whole.
    """
    options = replace(options, tasks=(), metrics=(), scorers=(), strict=True)
    runs = [_whole_run(output) for output in outputs.find(path)]
    why: dict[str, None] = {}
    written = [file for output in runs for file in _write_run(output, path, out, analyze, options, why)]
    if not written:
        raise NothingToAddError(path, some_of([*why], 3))
    return written


def _whole_run(output: RunFiles) -> RunFiles:
    """Return all files of a run if the user named only one of its samples files, else the run unchanged."""
    return outputs.find(output.results)[0] if output.only is not None and output.results is not None else output


def _write_run(
    output: RunFiles, path: Path, out: Path, analyze: Analyzer, options: ReadOptions, why: dict[str, None]
) -> list[Path]:
    """Write one run's files. Return them; [] if no metric has an error bar, with the reasons added to `why`."""
    sources = files.Unchanged([*output.samples.values(), *filter(None, [output.results])])
    reading = read_output(output, options)
    model = reading.results.get("model_name_sanitized")
    targets = {task: _target(output.samples[task], path, out, model) for task in reading.samples}
    results = _target(output.results, path, out, model) if output.results is not None else None
    # the block must not depend on where the run lies
    elsewhere = _in_percent(reading.run)
    notes = [
        Note(
            "in_percent",
            f"lm-eval's own {metric} is a percentage of the scores: its error bars are in the noise block alone",
        ).of(task)
        for task, metric, _ in elsewhere
    ]
    run = zeros_for_missing(reading.run, options.missing)
    analysis = analyze(replace(run, name=output.path.name, notes=(*run.notes, *notes)))
    if not any(map(_has_bar, analysis.estimates)):
        codes = {code for estimate in analysis.estimates for code in estimate.diagnostics}
        reasons = [part.reason for part in run.skipped]
        why |= dict.fromkeys([*reasons, *(meaning_of(code).rstrip(".") for code in _NO_BAR if code in codes)])
        return []
    drop = options.cluster is not None
    with files.alone(out):
        for task, target in targets.items():
            _write_samples(output.samples[task], target, task, reading, sources, drop=drop)
        if output.results is not None and results is not None:
            asked = _asked_in_all(analysis.settings["cluster"], reading.cluster_asked)
            analysis = replace(analysis, settings={**analysis.settings, "cluster": asked})
            inject(reading.results, analysis, elsewhere=elsewhere)
            sources.check(output.results)
            files.write_bytes(results, _encoded(reading.results, indent=2), [output.results])
    return [*targets.values(), *filter(None, [results])]


def _has_bar(row: Estimate) -> bool:
    """Return True if an estimate has an error bar, or a part of one, that the native value can have."""
    return UNUSABLE.isdisjoint(row.diagnostics) and {row.se, row.se_total, row.se_prediction} != {None}


def _asked_in_all(now: UserSpec | None, before: Any) -> Any:
    """Return the SPEC that is asked for now and, for tasks that it does not name, the one that was asked before."""
    asked = ClusterSpec.parse(now)
    if now is None:
        return before
    if asked.default is not None or not isinstance(before, str):
        return now
    try:
        former = ClusterSpec.parse(UserSpec(before))  # which only takes it apart
    except InputError:
        return now
    ways = dict(asked.by_task)
    for task, way in former.by_task or (("*", UserSpec(before)),):
        ways.setdefault(task, way)
    return ",".join(f"{task}={way}" for task, way in ways.items())


def _in_percent(run: Run) -> dict[tuple[str, str, str], None]:
    """Return {(task or group, metric, filter): None} of the values that lm-eval reports as 100 times our scores."""
    in_percent: dict[tuple[str, str, str], None] = {}
    for part in run.scores:
        values = part.values[:, :1] if part.native_is_first else part.values
        if part.native is None or np.isnan(values).all():
            continue
        ours = float(np.nanmean(values))
        if reproduces(ours, part.native) and not reproduces(ours, part.native, percent=False):
            in_percent[part.key] = None
    groups = {
        (group.name, group.metric, group.scorer): None
        for group in run.groups
        if any((task, group.metric, group.scorer) in in_percent for task in group.tasks)
    }
    return in_percent | groups


def _target(file: Path, path: Path, out: Path, model: Any) -> Path:
    """Return `file` if `out` is its folder, else where below `out` to write it. Refuse if that is `file` too."""
    root = _real(path if path.is_dir() else path.parent)
    if _real(out) == root:
        return file
    target = out / _real(file.parent).relative_to(root.parent if root.name == model else root) / file.name
    if _real(target) == _real(file):
        raise InputError(
            f"{out}: writing there would change the input {file}. Name another folder or write with `in_place=True`"
        )
    return target


def _real(path: Path) -> Path:
    """Return the absolute path with links followed, or not followed if they form a loop.

    The writer refuses such a loop.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def _write_samples(
    source: Path, target: Path, task: str, reading: Reading, sources: files.Unchanged, *, drop: bool
) -> None:
    """Write a samples file again: `scores_per_repeat` added if missing, `cluster` set. Refuse a file that has grown.

    With `drop`, a line loses its cluster if the questions have none now.
    """
    samples = reading.samples[task]
    columns = samples.columns
    # metrics that we derive from the answers (acc_prob, pass@k) are not lm-eval's scores
    parts = [part for part in reading.run.scores if part.task == task and (part.metric, part.scorer) in columns]
    masks = {
        (part.metric, part.scorer): columns[part.metric, part.scorer].matrix(len(part.questions))[1] for part in parts
    }
    clusters = parts[0].clusters if parts else samples.clusters
    with files.replacing(target, [source]) as file:
        for _number, line, row, document, scorer, _new in Scan(source, samples.wanted):
            if document >= len(samples.keys):
                raise InputError(f"{source}: the file grew while it was read. Wait for the run to end")
            scores = {
                part.metric: part.values[document][masks[part.metric, scorer][document]].tolist()
                for part in parts
                if part.scorer == scorer and part.metric in row
            }
            file.write(_augmented(line, row, scores, None if clusters is None else clusters[document], drop=drop))
        sources.check(source)


def _augmented(line: bytes, row: Row, scores: Mapping[str, list[float]], cluster: str | None, *, drop: bool) -> bytes:
    metrics = metrics_of(row)
    added: Row = {} if SCORES in row or not scores else {SCORES: strict_scores(scores)}
    if CLUSTER not in metrics and row.get(CLUSTER) != cluster and (cluster is not None or drop):
        line = _without_cluster(line) if CLUSTER in row else line
        added |= {} if cluster is None else {CLUSTER: cluster}
    if not added:
        return line
    body = line.rstrip()
    return body[:-1] + b", " + _encoded(added)[1:-1] + b"}" + line[len(body) :]


def _without_cluster(line: bytes) -> bytes:
    body = line.rstrip()
    row = json.loads(body)
    row.pop(CLUSTER, None)
    return _encoded(row) + line[len(body) :]


def _encoded(value: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Encode a mapping as JSON bytes as lm-eval writes it, NaN allowed."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, escaped in the native file
        return json.dumps(value, indent=indent).encode("ascii")
