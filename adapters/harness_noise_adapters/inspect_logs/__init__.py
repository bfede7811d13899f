"""Inspect: its logs read and written, and the flag on `inspect eval`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness_noise.data.scores import ReadOptions, Run
    from harness_noise.errors import InputError
    from harness_noise.io.protocol import Analyzer, PartRead


class InspectAdapter:
    """The adapter of Inspect. See `harness_noise.io.protocol`."""

    name = "inspect"
    about = "Inspect: logs (.eval, .json) and folders of logs, read and written. Live runs."

    def sniff(self, path: Path) -> bool:
        from .finding import is_log

        try:
            return (
                any(child.is_file() and is_log(child) for child in path.rglob("*")) if path.is_dir() else is_log(path)
            )
        except OSError:
            return False

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        from harness_noise.io.registry import read_with

        return read_with(self, path, options)

    def parts(self, path: Path) -> list[Path]:
        """Return the paths of the logs at `path`, each set of shards as its folder."""
        from .finding import parts_in

        return parts_in(path) if path.is_dir() else [path]

    def read_part(self, part: Path, options: ReadOptions) -> PartRead:
        """Read one log, or the folder of a set of shards."""
        from .read import read_one

        return read_one(part, options)

    def join(self, path: Path, found: Sequence[PartRead | InputError], options: ReadOptions) -> list[Run | InputError]:
        """Return the errors, and a Run per log without copies and earlier tries of retried logs, which are noted."""
        from .identity import joined

        return joined(found)

    def write(self, path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
        from .export import export

        return export(path, out, analyze, options)


adapter = InspectAdapter()
