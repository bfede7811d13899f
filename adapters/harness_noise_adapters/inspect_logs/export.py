"""A log written again, native as it was, with our metrics and a record of who added them.

Samples and reductions are not touched: of an `.eval` file only the header member is replaced, of a
`.json` file only the text of `results`, `log_updates` and `metadata`.
"""

from __future__ import annotations

import filecmp
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise._version import __version__
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import FileSpec
from harness_noise.data.measures import SCORE
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError, NothingToAddError
from harness_noise.io.atomic import Unchanged, alone, replacing_path, sweep, write_bytes
from harness_noise.io.door import also
from harness_noise.io.measures import measured
from harness_noise.io.paths import load
from harness_noise.results.diagnostics import meaning_of
from harness_noise.results.rows import Analysis

from ..records import after_space
from . import inject
from .clusters import UNKNOWN, is_unknown, spec_for
from .finding import logs_in
from .logfile import check_header
from .logfile import read as read_file
from .read import LogRun, Recorded, assemble, cluster_fields, read_log, read_logs
from .records import EXPORT, Keep

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults

    from harness_noise.io.protocol import Analyzer
    from harness_noise.results.rows import Estimate

    from .flags import Flag

_UNKNOWN_NOISE = (UNKNOWN, "too_few_clusters", "too_few_questions")
"""Diagnostics of a mean without any error bar."""
CHANGED = ("results", "log_updates", "metadata")
"""The parts of a `.json` log that an export changes."""
Placed = dict[int, dict[str | None, "Estimate"]]
"""Number of an EvalScore → key of its dictionaries, None for the scorer itself → the estimate beside it."""


def export(path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
    """Write logs with error bars under `out` (refuse if none gets any), copy a folder's other files. Return the logs.

    Returns:
        The logs with noise in `out`, also those that were there already, with the same content; none for a log
        to which there is nothing to add. Of a folder, what is not changed is copied, too.

    Raises:
        NothingToAddError: there is nothing to add to any log; nothing is written then.
        InputError: a log that cannot be used, or a target that is another log.
    """
    folder = path if path.is_dir() else path.parent
    if folder is path and _is_inside(out, path):
        raise InputError(
            f"{out}: lies inside {path}, where a copy of a log would hide the original from Inspect. "
            "Choose a folder next to it, or write with `in_place=True`"
        )
    sources = Unchanged(logs_in(path) if folder is path else [path])
    options = replace(options, tasks=())  # a log is written whole
    logs = read_logs(path, options) if folder is path else [read_log(path, options)]
    outcomes = [_change(log, analyze, sources) for log in logs]
    changes = [change for change in outcomes if isinstance(change, _Change)]
    if not changes:
        raise NothingToAddError(path, "; ".join(dict.fromkeys(map(str, outcomes))))
    copied = folder is path and not (out.exists() and out.samefile(path))
    rest = _other_files(path, out, {change.path for change in changes}) if copied else []
    with alone(out):  # Inspect opens a file twice to read it, so no process may replace it in between
        written = [_export(change, out / change.path.relative_to(folder), sources) for change in changes]
        for source, target in rest:
            with replacing_path(target, [source]) as temporary:
                shutil.copyfile(source, temporary)
    return written


def _other_files(folder: Path, out: Path, exported: set[Path]) -> list[tuple[Path, Path]]:
    """Return (source, target) of unexported files to copy, not hidden or links. Refuse if `out` has another there.

    They are logs that are left out, `eval-set.json`, …, to be copied unchanged.


    Raises:
        InputError: `out` has another file of that name.
    """
    copies = []
    for source in sorted(folder.rglob("*")):
        where = source.relative_to(folder)
        if source in exported or source.is_symlink() or not source.is_file():
            continue
        if any(part.startswith(".") for part in where.parts):
            continue
        target = out / where
        if not target.exists():
            copies.append((source, target))
        elif not filecmp.cmp(source, target, shallow=False):
            raise InputError(f"{target}: exists and is not the copy of {source}. Choose another folder")
    return copies


def _is_inside(folder: Path, other: Path) -> bool:
    try:
        there, here = folder.resolve(), other.resolve()
    except (OSError, RuntimeError):  # a loop of links, for the writer to refuse
        return False
    return there != here and there.is_relative_to(here)


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """A log with its additions, before it is written."""

    path: Path
    native: EvalLog
    """Its header as it is."""
    header: EvalLog
    analysis: Analysis


def _change(log: LogRun, analyze: Analyzer, sources: Unchanged) -> _Change | str:
    """Return a log with our metrics in its header, not yet written, or why it gets none. Refuse a changed log."""
    if not log.header.computed:
        return "the run ended before Inspect computed its results"
    native = _native_header(log.path, sources)
    analysis = analyze(log.run)
    header = native.model_copy(deep=True)
    assert header.results is not None
    placed = insert(header.results, log, analysis.estimates)
    if not any(map(inject.injected, header.results.scores)):
        return _why_none(header.results, placed)
    return _Change(log.path, native, header, analysis)


def _why_none(results: EvalResults, placed: Placed) -> str:
    """Return why results have none of our metrics, by the diagnostics of the estimates without an error bar."""
    codes = {code for part in placed.values() for estimate in part.values() for code in estimate.diagnostics}
    if why := next((code for code in _UNKNOWN_NOISE if code in codes), None):
        return meaning_of(why).rstrip(".")
    if inject.of_authors(results.scores):
        return "its task has noise() among its own metrics"
    return "no native value of it is a mean that its scores reproduce on its own scale"


def _export(change: _Change, target: Path, sources: Unchanged) -> Path:
    source, header = change.path, change.header
    assert header.results is not None
    if _is_exported_already(source, change.native, target, header.results):
        sweep(target.parent)
        return target
    n_edits = len(header.log_updates or ())
    header = _recorded(header, change.analysis)
    if source.suffix == ".json":
        _write_json(source, target, header, n_edits, sources)
    else:
        _write_header(header, source, target, sources)
    return target


def insert(results: EvalResults, log: LogRun, estimates: Iterable[Estimate]) -> Placed:
    """Put estimates of reproduced means into Inspect's results, replacing ours. Return {row index: {key: estimate}}."""
    by_key = {(row.task, row.scorer, row.metric): row for row in estimates}
    authors = inject.of_authors(results.scores)
    fresh: Placed = {}
    for mean, scores in zip(log.gathered.means, log.run.scores, strict=True):
        estimate = by_key.get((scores.task, scores.scorer, scores.metric))
        es = results.scores[mean.index]
        if "uses_all_repeats" in scores.diagnostics:
            continue  # a value of all repeats has no noise of its repeats
        if mean.reproduced and estimate is not None and (es.scorer, es.name) not in authors:
            fresh.setdefault(mean.index, {})[mean.key] = estimate
    for grouped in log.gathered.grouped:
        es, estimate = results.scores[grouped.index], by_key.get((grouped.group.name, *grouped.group.key[:0:-1]))
        if estimate is not None and (es.scorer, es.name) not in authors:
            fresh.setdefault(grouped.index, {}).setdefault(None, estimate)
    natives = [(index, es) for index, es in enumerate(results.scores) if not inject.is_measure(es)]
    inject.replace_all([(es, fresh.get(index, {})) for index, es in natives])
    inject.put_measures(results, by_key.values())
    _put_clusters(results, log)
    return fresh


def _put_clusters(results: EvalResults, log: LogRun) -> None:
    """Store the samples' clusters in the results if they come from a template, which is not run on reading.

    A template is not run when the log is read.
    """
    for scores in log.run.scores:
        if scores.clusters is None or scores.cluster_spec is None or is_unknown(scores.clusters):
            continue
        if FileSpec(scores.cluster_spec).is_template:
            inject.put_clusters(results, dict(zip(scores.questions.keys, scores.clusters, strict=True)))
            return


def _native_header(path: Path, sources: Unchanged) -> EvalLog:
    """Read a log's header with Inspect itself. Refuse a log that Inspect cannot read or that changed.

    Raises:
        InputError: Inspect is not installed, or does not take the log for one of its own, or it changed meanwhile.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise InputError(
            f"{path}: to write an Inspect log again needs inspect-ai ({error}): pip install 'harness-noise[inspect]'"
        ) from None
    check_header(path)
    try:
        header = read_eval_log(str(path), header_only=True)
    except Exception as error:
        sources.check(path)
        why = " ".join(str(error.__cause__ or error).split())[:300] or type(error).__name__
        raise InputError(
            f"{path}: can be analysed, but not written again, because Inspect itself does not read it ({why})"
        ) from error
    if header.results is None:
        raise InputError(f"{path}: can be analysed, but not written again, because Inspect finds no results in it")
    return header


def _is_exported_already(source: Path, native: EvalLog, target: Path, results: EvalResults) -> bool:
    """Return True if `target` already is the exported log with these results. Refuse a file of another eval.

    Raises:
        InputError: it is something else.
    """
    if not target.exists():
        return False
    from inspect_ai.log import read_eval_log

    if target.samefile(source):
        there = native
    else:
        try:
            there = read_eval_log(str(target), header_only=True)
        except Exception as error:
            raise InputError(f"{target}: exists and is not an Inspect log. Choose another folder") from error
        if there.eval != native.eval:
            raise InputError(f"{target}: exists and is of another eval. Choose another folder")
        with also(target.parent):
            if _body(target) != _body(source):
                return False
    return _sorted_json(there.results) == _sorted_json(results)


def _sorted_json(results: EvalResults | None) -> str:
    """Return Inspect's results as one JSON text with sorted keys, for comparison.

    Some versions of Inspect read the numbers of metadata as Decimal.
    """
    return "" if results is None else json.dumps(results.model_dump(), default=float, sort_keys=True)


def _body(path: Path) -> Any:
    """Return the part of a log file that an export does not change (samples), in a form that can be compared."""
    if path.suffix == ".json":
        data = load(path)
        return {key: value for key, value in data.items() if key not in CHANGED}
    from zipfile import ZipFile

    with ZipFile(path) as archive:
        return {
            member.filename: (member.CRC, member.file_size)
            for member in archive.infolist()
            if member.filename != "header.json"
        }


def _recorded(header: EvalLog, analysis: Analysis) -> EvalLog:
    """Return the header with an edit record: what we added, our version and the settings."""
    from inspect_ai.log import MetadataEdit, ProvenanceData, edit_eval_log

    settings = {name: analysis.settings[name] for name in ("level", "se", "interval", "missing", "cluster")}
    before = (header.metadata or {}).get(EXPORT)
    if spec_for(settings["cluster"], header.eval.task) is None:  # an edit keeps the former clusters
        settings["cluster"] = before.get("cluster") if isinstance(before, Mapping) else None
    edit = MetadataEdit(metadata_set={EXPORT: {"version": __version__, **settings}})
    author = ProvenanceData(author=f"harness-noise {__version__}", reason="added the noise of the means")
    return edit_eval_log(header, [edit], author)


def _write_header(header: EvalLog, source: Path, target: Path, sources: Unchanged) -> None:
    """Copy an .eval log, replace the copy's header, and put it in the target's place atomically. Refuse a changed log.

    A full disk cannot cost the log."""
    from inspect_ai.log import write_eval_log

    with replacing_path(target, [source]) as temporary:
        shutil.copyfile(source, temporary)
        # the format is said, for Inspect takes whatever ends in .eval for a log, hidden or not
        write_eval_log(header, str(temporary), format="eval", header_only=True)
        sources.check(source)


def _write_json(source: Path, target: Path, header: EvalLog, n_edits: int, sources: Unchanged) -> None:
    """Write a JSON log with three top-level values replaced, other bytes unchanged. Refuse an old layout.

    Args:
        source: the log as it is.
        target: the file to write.
        header: with the new results, and the new edit behind the `n_edits` older ones.
        n_edits: how many edits the source has.
        sources: what the header was read from.
    """
    assert header.results is not None
    text = source.read_bytes().decode("utf-8")
    sources.check(source)
    values = dict(_members(text))
    old = {name: json.loads(text[slice(*values[name])]) for name in CHANGED if name in values}
    new = [entry.model_dump(mode="json", exclude_none=True) for entry in (header.log_updates or [])[n_edits:]]
    changes: dict[str, Any] = {
        "results": old["results"] | {"scores": _raw_scores(source, old["results"], header.results)},
        "log_updates": [*old.get("log_updates", []), *new],
        "metadata": old.get("metadata", {}) | {EXPORT: header.metadata[EXPORT]},
    }
    inserted = "" if "log_updates" in values else f',\n  "log_updates": {_indented(changes["log_updates"])}'
    for name, (start, end) in sorted(values.items(), key=lambda entry: -entry[1][0]):
        if name in changes:
            text = text[:start] + _indented(changes[name]) + (inserted if name == "results" else "") + text[end:]
    write_bytes(target, text.encode("utf-8"), [source])


def _raw_scores(source: Path, old: Mapping[str, Any], results: EvalResults) -> list[dict[str, Any]]:
    """Return the log's score rows (dicts) with our metrics added, else as in the file. Refuse an old layout.

    They may have been written in any schema.
    """
    measures = [es for es in results.scores if inject.is_measure(es)]
    natives = [es for es in results.scores if not inject.is_measure(es)]
    raw = old.get("scores")
    raw = [row for row in raw if inject.MEAN not in row.get("metrics", ())] if isinstance(raw, list) else raw
    if not isinstance(raw, list) or len(raw) != len(natives):
        raise InputError(f"{source}: its scores are laid out in an old way. Convert it with `inspect log convert`")
    out = []
    for row, es in zip(raw, natives, strict=True):
        ours = {name: es.metrics[name].model_dump(mode="json", exclude_none=True) for name in inject.injected(es)}
        native = {key: value for key, value in row["metrics"].items() if key in es.metrics and key not in ours}
        out.append(row | {"metrics": native | ours})
    return [*out, *(es.model_dump(mode="json", exclude_none=True) for es in measures)]


def _indented(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n  ")


def _members(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield (name, (start, end) of its value in the text) for each top-level name of a JSON object."""
    decoder = json.JSONDecoder()
    position = text.index("{") + 1
    while True:
        position = after_space(text, position)
        if text[position] == "}":
            return
        name, position = decoder.raw_decode(text, position)
        position = after_space(text, position)
        start = after_space(text, position + 1)
        _, position = decoder.raw_decode(text, start)
        yield name, (start, position)
        position = after_space(text, position)
        if text[position] == ",":
            position += 1


def rewrite(path: Path, on: Flag) -> tuple[LogRun, Analysis]:
    """Add our metrics, if any fit, to a log file in place. Return (LogRun, Analysis). Refuse without file or samples.

    Raises:
        InputError: the log cannot be read, or is on no disk of this machine.
    """
    cluster, measures = on.cluster, on.measures
    if not path.is_file():
        raise InputError("the log is on no disk of this machine. `harness-noise export LOG -o DIR` adds them")
    log_file = read_file(path, lambda header: cluster_fields(header, cluster), Keep(usage=bool(measures)))
    if not len(log_file.answers):
        raise InputError("they need logged samples")
    options = ReadOptions(measures=(SCORE, *measures) if measures else ())
    read = assemble(path, log_file, options, Recorded(cluster))
    analysis = analyze_run(measured(read.run, options), on.settings)
    sources = Unchanged([path])
    if isinstance(change := _change(read, lambda _: analysis, sources), _Change):
        _export(change, path, sources)
    return read, analysis
