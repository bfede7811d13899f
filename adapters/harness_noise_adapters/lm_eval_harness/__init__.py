"""lm-evaluation-harness: live runs that carry their noise, and files read and written back.

Importing this module loads neither lm-eval nor numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.extras import models

if TYPE_CHECKING:
    from harness_noise.data.scores import ReadOptions, Run
    from harness_noise.errors import InputError
    from harness_noise.io.protocol import Analyzer, PartRead

    from .files.outputs import RunFiles
    from .live.sessions import noise

__all__ = ["LmEvalAdapter", "adapter", "noise"]


class LmEvalAdapter:
    """The adapter of lm-eval. See `harness_noise.io.protocol`."""

    name = "lm-eval"
    about = "lm-evaluation-harness: output folders, results and samples files, read and written. Live runs."

    def sniff(self, path: Path) -> bool:
        """Return True if `path` seems to be an lm-eval output folder, results file or samples file."""
        from .files.outputs import sniff

        return sniff(path)

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read all lm-eval runs in a file or folder, one Run (all scores of one model) for each results file."""
        from harness_noise.io.registry import read_with

        return read_with(self, path, options)

    def parts(self, path: Path) -> list[RunFiles]:
        """Return the runs at `path` as groups of files: a results file (or None) and its samples. Refuse if none."""
        from .files.outputs import find

        return find(path)

    def read_part(self, part: RunFiles, options: ReadOptions) -> PartRead:
        """Read one results file with its samples files as a run."""
        from harness_noise.io.protocol import PartRead

        from .files.read import read

        return PartRead((read(part, options),))

    def join(self, path: Path, found: Sequence[PartRead | InputError], options: ReadOptions) -> list[Run | InputError]:
        """Return the runs of all parts in order, with errors for those that cannot be used."""
        from harness_noise.io.registry import in_order

        return in_order(found)

    def write(self, path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
        """Write the runs at `path` again under `out` with error bars. Return the paths. Refuse if none is added."""
        from .files.export import write

        return write(path, out, analyze, options)

    def cli(self, argv: list[str]) -> int:
        """Run lm-eval's command line with `--noise` options and our simulated models added. Return its exit code."""
        from .live.cli import main

        for name in models().keys() & {*argv}:
            import_module(models()[name]).prepare(argv)
        return main(argv)


adapter = LmEvalAdapter()


def __getattr__(name: str) -> Any:
    if name == "noise":
        from .live.sessions import noise

        return noise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
