"""Every Eval Ever 0.3: `UUID.json` has the results of a run, `UUID_samples.jsonl` a line for each sample and metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from harness_noise import InputError
from harness_noise.data.notes import Note
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.errors import FinalError

from ....records import head
from ....tables.opening import columns_of
from ....tables.presets import OURS
from .results import Results
from .samples import PRESET, read_samples

if TYPE_CHECKING:
    from harness_noise.io.protocol import Analyzer
    from harness_noise.results.rows import Analysis

SAMPLES = "_samples.jsonl"


class EveryEvalEverAdapter:
    """The adapter of Every Eval Ever. It follows `harness_noise.io.protocol`."""

    name = PRESET.name
    about = "Every Eval Ever (UUID.json and UUID_samples.jsonl), read and written"

    def sniff(self, path: Path) -> bool:
        """Return True if a path is a file of the Every Eval Ever format, or a folder that holds some.

        A results file and its samples file make one run.
        """
        if path.is_dir():
            return any(map(_is_file, islice(_files(path), 20)))
        return _is_file(path)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read files into one Run per model and file. Faulty ones: a note (`strict`: refused). No samples: no bars."""
        options = replace(options, columns=columns_of(path, options.columns))
        if not options.columns.keys() <= set(OURS):
            raise InputError(f"{path}: of this format `columns` names only {', '.join(OURS)}")
        runs: list[Run] = []
        broken: list[InputError] = []
        for file, samples in _pairs(path):
            try:
                results = Results.read(file)
                runs += [results.alone(self.name)] if samples is None else read_samples(samples, results, options)
            except FinalError:
                raise
            except InputError as error:
                broken.append(error)
        if broken and (options.strict or not runs):
            raise broken[0]
        left_out = tuple(Note("left_out", f"left out: {error}") for error in broken)
        return [replace(run, notes=(*run.notes, *left_out)) for run in runs]

    def write(self, path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
        """Write copies with `score_details.uncertainty` in all results that have samples. Refuse if none has."""
        from .writing import write_again

        written: list[Path] = []
        for file, samples in _pairs(path):
            if file is not None and samples is not None:
                results = Results.read(file)
                runs = read_samples(samples, results, options)
                written += write_again(results, samples, [row for run in runs for row in analyze(run).estimates], out)
        if not written:
            raise InputError(f"{path}: no result here has its samples, so there is nothing to compute an error bar of")
        return written

    def make(self, run: Run, analysis: Analysis, out: Path) -> list[Path]:
        """Write any harness's run as a result and a sample file of this format. Return both paths."""
        from .writing import write_anew

        return write_anew(run, analysis, out)


adapter = EveryEvalEverAdapter()


def _is_file(path: Path) -> bool:
    start = head(path) if path.suffix in (".json", ".jsonl") else b""
    return b'"evaluation_id"' in start and b'"schema_version"' in start


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(child for child in path.iterdir() if child.suffix in (".json", ".jsonl") and child.is_file())


def _pairs(path: Path) -> Iterator[tuple[Path | None, Path | None]]:
    """Yield (results file, samples file) that belong together, None for one that is missing."""
    stems = {
        file.with_name(file.name.removesuffix(".json").removesuffix(SAMPLES)): file
        for file in filter(_is_file, _files(path))
    }
    for stem, file in stems.items():
        results, samples = (stem.with_name(f"{stem.name}{end}") for end in (".json", SAMPLES))
        samples = file if file.suffix == ".jsonl" else samples
        yield results if results.is_file() else None, samples if samples.is_file() else None
