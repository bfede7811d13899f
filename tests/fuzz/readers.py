"""The readers under attack: real files to damage, how to damage them, and what may come of it."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import assume
from hypothesis import strategies as st

from harness_noise.analysis.mean import analyze_runs
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise.extra.arena import profiles as reference
from harness_noise.io import registry as adapters
from harness_noise.report import html, terminal
from harness_noise.report import text as texts
from harness_noise.results.schema import json_schema
from harness_noise.settings import Settings
from support.notes import noted

from . import mutate, private

Files = dict[str, bytes]
"""Name → content of the files that are one run."""


@dataclass(frozen=True, slots=True)
class Case:
    """A damaged file and the files of its run."""

    name: str
    files: Files

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """What hypothesis prints: its own way would print every byte."""
        data = self.files[self.name]
        printer.text(f"{self.name} ({len(data)} bytes) {data[:300]!r}")


@dataclass(frozen=True, slots=True)
class Reader:
    """One way into the program."""

    name: str
    seeds: Callable[[Path], list[tuple[str, Files]]]
    """From the folder of `write_seeds.py`: the name of the file that is damaged, and all files of its run."""
    damaged: Callable[[st.DrawFn, str, bytes], bytes]
    check: Callable[[Path], bool]


def used(path: Path) -> bool:
    """Whether the run at `path` was read; then it is analysed and shown in every format.

    Raises:
        Exception: anything but the two allowed outcomes, a refusal and results that are whole.
    """
    try:
        runs = adapters.read(path)
        table = analyze_runs(runs, Settings(resamples=100))
    except InputError as refused:
        told = str(refused)
    else:
        told = ""
    if told:
        return False
    document = json.loads(table.to_json(), parse_constant=_not_strict)
    _schema().validate(document)
    for form in (texts.csv, texts.markdown, texts.latex, html.page, html.fragment):
        form(table)
    assert all(c.isprintable() or c == "\n" for c in terminal.text(table))
    return True


def _used_whole(path: Path) -> bool:
    """Whether the folder that a run is was read; see `used`."""
    return used(path.parents[1] if (path.parents[1] / "result.json").is_file() else path.parent)


INTACT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "intact", "task_id": "intact", "model": "intact", "created": "2020-01-01T00:00:00+00:00"},
    "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}}}]},
    "samples": [{"id": i, "epoch": 1, "input": f"{i}", "scores": {"match": {"value": i % 2}}} for i in range(4)],
}
"""A log that lies beside a damaged file."""


def _beside(path: Path) -> bool:
    """Whether nothing in a folder is left out: whatever one file is, the others are read."""
    (path.parent / "intact.json").write_text(json.dumps(INTACT))
    runs = adapters.read(path.parent)
    (intact,) = [run for run in runs if run.model == "intact"]
    assert [item.values.ravel().tolist() for item in intact.scores] == [[0, 1, 0, 1]]
    return not any(note.startswith("left out") for note in noted(intact))


def _profile(path: Path) -> bool:
    try:
        one = reference.choose(reference.read(path)[:1], ReadOptions())
        row = reference.compare(one, 0.5, 0.4)
        one.planning()
    except InputError:
        return False
    json.dumps(row.to_dict(), allow_nan=False)
    return True


def _options(path: Path) -> bool:
    from harness_noise_adapters.lm_eval_harness.live.options import Options, read_file

    try:
        Options.of(read_file(path), str(path))
    except InputError:
        return False
    return True


def _not_strict(constant: str) -> None:
    raise AssertionError(f"{constant} in strict JSON")


@cache
def _schema() -> Any:
    return jsonschema.Draft202012Validator(json_schema())


def _json(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    """A JSON document with nodes changed, or its bytes."""
    if draw(st.integers(0, 3)) == 0:
        return mutate.edited(data, draw(mutate.edits))
    return mutate.text(mutate.changed(json.loads(data), draw(mutate.changes)), ascii_only=draw(st.booleans()))


def _lines(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    """A JSONL file: a few lines changed, dropped, doubled; or its bytes."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return mutate.edited(data, draw(mutate.edits))
    lines = data.splitlines()
    if kind == 1:
        rows = mutate.changed(list(map(json.loads, lines)), draw(mutate.changes))
        return b"\n".join(map(mutate.text, rows if isinstance(rows, list) else [rows]))
    todo, ascii_only = draw(mutate.changes), draw(st.booleans())
    for i in draw(st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=3)) if kind == 2 else range(len(lines)):
        lines[i] = mutate.text(mutate.changed(json.loads(lines[i]), todo), ascii_only=ascii_only)
    return b"\n".join(lines) + b"\n"


def _bytes(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    return mutate.edited(data, draw(mutate.edits))


def _csv(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    """A CSV file: cells changed; or its bytes."""
    import csv

    if draw(st.integers(0, 2)) == 0:
        return mutate.edited(data, draw(mutate.edits))
    rows = mutate.changed(list(csv.reader(io.StringIO(data.decode()))), draw(mutate.changes))
    out = io.StringIO()
    for row in rows if isinstance(rows, list) else [rows]:
        csv.writer(out).writerow(row if isinstance(row, list) else [row])
    return out.getvalue().encode("utf-8", "surrogatepass")


def _parquet(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    """A Parquet file of changed rows, or its bytes."""
    if draw(st.booleans()):
        return mutate.edited(data, draw(mutate.edits))
    import pyarrow
    from pyarrow import parquet

    rows = mutate.changed(parquet.read_table(io.BytesIO(data)).to_pylist(), draw(mutate.changes))
    out = io.BytesIO()
    try:
        kept = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        parquet.write_table(pyarrow.Table.from_pylist(kept), out)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        assume(False)
    return out.getvalue()


def _zip(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    """An .eval log: the JSON of a member changed, the members' list, or the file's bytes."""
    import inspect_ai.log  # noqa: F401 - teaches zipfile Zstandard, which Inspect packs with

    kind = draw(st.integers(0, 5))
    if kind == 0:
        return mutate.edited(data, draw(mutate.edits))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = {item: file.read(item) for item in file.namelist()}
    chosen = draw(st.sampled_from([item for item in members if "_journal" not in item] * 2 + list(members)))
    if kind == 1:
        members[chosen] = mutate.edited(members[chosen], draw(mutate.edits))
    elif kind == 2:
        members[draw(st.sampled_from(("../x", "/x", "summaries.json", "a\x00b", "samples/x_epoch_1.json")))] = (
            members.pop(chosen)
        )
    else:
        members[chosen] = _json(draw, chosen, members[chosen])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", draw(st.sampled_from((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, 93)))) as file:
        for item, content in members.items():
            file.writestr(item, content)
    return out.getvalue()


def _runs(pattern: str) -> Callable[[Path], list[tuple[str, Files]]]:
    """The lm-eval runs of the seeds: a file that matches is damaged, and its run goes with it."""

    def seeds(folder: Path) -> list[tuple[str, Files]]:
        return [
            (path.name, {other.name: other.read_bytes() for other in path.parent.iterdir()})
            for path in sorted((folder / "lm_eval").glob(f"*/*/{pattern}"))
            if path.parts[-3] != "several"
        ]

    return seeds


def _alone(pattern: str) -> Callable[[Path], list[tuple[str, Files]]]:
    def seeds(folder: Path) -> list[tuple[str, Files]]:
        return [(path.name, {path.name: path.read_bytes()}) for path in sorted(folder.glob(pattern))]

    return seeds


def _samples(folder: Path) -> list[tuple[str, Files]]:
    """Samples files with the results beside them and by themselves."""
    runs = _runs("samples_*.jsonl")(folder)
    with_results = [
        (name, {other: data for other, data in files.items() if other == name or other.startswith("results")})
        for name, files in runs
    ]
    return with_results + [(name, {name: files[name]}) for name, files in runs]


def _any_run(folder: Path) -> list[tuple[str, Files]]:
    """Results, samples and logs."""
    return [*_runs("results_*.json")(folder), *_samples(folder), *_alone("inspect/*.json")(folder)]


def _either(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    return (_lines if name.endswith(".jsonl") else _json)(draw, name, data)


def _any_format(draw: st.DrawFn, name: str, data: bytes) -> bytes:
    damaged = {".csv": _csv, ".parquet": _parquet}.get(Path(name).suffix, _either)
    return damaged(draw, name, data)


def _harnesses(folder: Path) -> list[tuple[str, Files]]:
    """Each file of each run that is a folder, with all others."""
    found = []
    for run in sorted((folder / "harnesses").iterdir()):
        files = {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
        found += [(name, files) for name in files if not name.endswith("config.json")]
    return found


def _old_samples(folder: Path) -> list[tuple[str, Files]]:
    """Samples in one array, as lm-eval wrote them before 0.4.3."""
    found = []
    for name, files in _runs("samples_*.jsonl")(folder):
        rows = [json.loads(line) for line in files[name].splitlines()]
        found.append(("old.jsonl", {"old.jsonl": json.dumps(rows, indent=1).encode()}))
    return found[:2]


READERS = {
    reader.name: reader
    for reader in (
        Reader("results", _runs("results_*.json"), _json, used),
        Reader("samples", _samples, _lines, used),
        Reader("samples-old", _old_samples, _json, used),
        Reader("eval", _alone("inspect/*.eval"), _zip, used),
        Reader("inspect-json", _alone("inspect/*.json"), _json, used),
        Reader("folder", _any_run, _either, _beside),
        Reader("csv", _alone("tables/*.csv"), _csv, used),
        Reader("jsonl", _alone("tables/*.jsonl"), _lines, used),
        Reader("json", _alone("tables/*.json"), _json, used),
        Reader("formats", _alone("formats/*"), _any_format, used),
        Reader("harnesses", _harnesses, _any_format, _used_whole),
        Reader("parquet", _alone("tables/*.parquet"), _parquet, used),
        Reader("reference", _alone("profile/*.json"), _json, _profile),
        Reader("config", _alone("config/*.yaml"), _bytes, _options),
        Reader("kept-runs", private.kept, private.packed, private.check_kept),
        Reader("looks", private.looks, _json, private.check_looks),
        Reader("arena-looks", private.arena_looks, _json, private.check_arena_looks),
        Reader("thresholds", private.thresholds, private.yaml, private.check_thresholds),
    )
}


def cases(reader: Reader, folder: Path) -> Iterator[st.SearchStrategy[Case]]:
    """A strategy for each seed."""
    for name, files in reader.seeds(folder):

        @st.composite
        def damaged(draw: st.DrawFn, name: str = name, files: Files = files) -> Case:
            return Case(name, {**files, name: reader.damaged(draw, name, files[name])})

        yield damaged()


def attack(reader: Reader, case: Case, folder: Path) -> bool:
    """Write a case into an empty folder and read it; whether it could be used."""
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, data in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return reader.check(folder / case.name)
