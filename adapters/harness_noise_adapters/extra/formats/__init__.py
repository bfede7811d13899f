"""Formats of other harnesses than lm-eval and Inspect: how the files of each look, and the module that reads them.

A module is loaded for a place that may be of its format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...records import head

if TYPE_CHECKING:
    from harness_noise.data.scores import ReadOptions, Run
    from harness_noise.io.protocol import Analyzer
    from harness_noise.results.rows import Analysis

FIRST = 20
"""Files of a folder whose start is looked at."""
Looks = Mapping[str, tuple[bytes, ...]]
"""Glob of files → words of which the start of each has one. Without words any start will do."""


@dataclass(frozen=True, slots=True)
class Format:
    """The adapter of a format, which imports the format's own module when a file is read."""

    name: str
    module: str
    files: Looks
    """The names of files that may be given alone."""
    inside: Looks = field(default_factory=dict)
    """The files in a folder of the format."""

    @property
    def about(self) -> str:
        """Short phrase for what this format reads, shown to users."""
        return str(self._adapter.about)

    @property
    def owns_folders(self) -> bool:
        """True if folders of this format hold no other format's files, so that the search stops there."""
        return getattr(self._adapter, "owns_folders", False)

    def sniff(self, path: Path) -> bool:
        """Return True if a path looks like this format, by file name and first bytes, then by the format's module.

        The module is asked only about what may be of the format.
        """
        return self._may_be(path) and bool(self._adapter.sniff(path))

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        runs: list[Run] = self._adapter.read(path, options)
        return runs

    def write(self, path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
        written: list[Path] = self._adapter.write(path, out, analyze, options)
        return written

    def _may_be(self, path: Path) -> bool:
        if path.is_file():
            return any(fnmatchcase(path.name, glob) and _has_one(path, words) for glob, words in self.files.items())
        return any(
            _has_one(file, words)
            for glob, words in self.inside.items()
            for file in islice(sorted(path.glob(glob)), FIRST)
        )

    @property
    def _adapter(self) -> Any:
        return import_module(f"{__name__}.{self.module}").adapter


class WrittenFormat(Format):
    """A format in which a run of any harness can be written."""

    __slots__ = ()

    def make(self, run: Run, analysis: Analysis, out: Path) -> list[Path]:
        written: list[Path] = self._adapter.make(run, analysis, out)
        return written


def _has_one(file: Path, words: tuple[bytes, ...]) -> bool:
    start = head(file) if words else b""
    return not words or any(word in start for word in words)


_EVALUATION = dict.fromkeys(("*.json", "*.jsonl"), (b'"evaluation_id"',))
EVERY_EVAL_EVER = WrittenFormat("every-eval-ever", "every_eval_ever", _EVALUATION, _EVALUATION)
HARBOR = Format(
    "harbor",
    "harbor",
    {"result.json": (b'"trial_name"', b'"n_total_trials"')},
    {"result.json": (), "*/result.json": ()},
)
HELM = Format("helm", "helm", {"run_spec.json": (), "per_instance_stats.json": ()}, {"per_instance_stats.json": ()})
LIGHTEVAL = Format(
    "lighteval",
    "lighteval",
    {"details_*.parquet": ()},
    {"details_*.parquet": (), "details/**/details_*.parquet": ()},
)
SWE_BENCH = Format(
    "swe-bench",
    "swe_bench",
    {
        "*": (b'"no_generation"',),
        "*.json": (b'"total_instances"', b'"patch_successfully_applied"', b'"instance_'),
        "per_instance_details.json": (),
    },
    {"results/per_instance_details.json": (), "results/results.json": (), "*/report.json": ()},
)
