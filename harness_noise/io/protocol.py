"""All that a harness adapter has to be. The built-in ones come through the same door as anybody's.

An adapter is registered under the entry point group `harness_noise.adapters`; the entry point
names an object with the attributes below. Importing its module must be cheap: load the harness
inside the methods that need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..data.scores import ReadOptions, Run
from ..errors import InputError
from ..results.rows import Analysis


@dataclass(frozen=True, slots=True)
class PartRead:
    """All that reading one part of a place gives. Small, because it may come from another machine."""

    runs: tuple[Run, ...]
    about: Any = None
    """The facts besides the runs that the adapter's `join` needs. They can be pickled."""


@runtime_checkable
class Adapter(Protocol):
    """Reads the runs of one harness, and writes them back with their noise."""

    name: str
    # about: str  # may be set: what it reads, in a line; else the first line of the docstring of its class
    # owns_folders: bool = False  # may be set: a folder that it recognises has no other adapter's runs

    def sniff(self, path: Path) -> bool:
        """Return True if an existing file or folder seems to be this harness's output. Fast, and never raises."""
        ...

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read the runs at `path`, one for each model and run. Only called if `sniff` returned True.

        Everything in `options` is the reader's to do but the choice of tasks, metrics and scorers,
        which it may use to read less, and what concerns several runs: a model's files are joined by
        their tasks (which needs the `date` of each Run), and groups made, by `harness_noise.io.registry`.

        Raises:
            harness_noise.InputError: the file cannot be used; says where and what to do.
        """
        ...

    def write(self, path: Path, out: Path, analyze: Analyzer, options: ReadOptions) -> list[Path]:
        """Write the run at `path` again under folder `out`, error bars added, native values unchanged.

        `out` may be the run's own folder (`--in-place`). Files are replaced atomically; a second
        call changes nothing. Returns the files written.
        """
        ...


@runtime_checkable
class AdapterInParts(Adapter, Protocol):
    """An adapter whose places hold many files, which several processes or machines read at a time.

    Without these three methods the whole of a run is read at once, and a folder of several runs is walked by
    `harness_noise.io.registry`. With them, `harness_noise.io.registry.read_with` is `read`.
    """

    def parts(self, path: Path) -> Sequence[Any]:
        """Return the parts of `path` that can be read separately (usually files), always in the same order.

        Cheap; a part can be pickled, and its `str` names the file.

        Raises:
            harness_noise.InputError: there is nothing.
        """
        ...

    def read_part(self, part: Any, options: ReadOptions) -> PartRead:
        """Read one of `parts`, possibly in another process.

        Raises:
            harness_noise.InputError: it cannot be used.
        """
        ...

    def join(self, path: Path, found: Sequence[PartRead | InputError], options: ReadOptions) -> list[Run | InputError]:
        """Return the runs at `path` from all parts that were read, and an error for what cannot be used.

        An error in the answer is a note of the runs beside it; it ends the command where there are none, or where it
        is a `harness_noise.errors.FinalError`. A reading of many runs goes on in any case.
        """
        ...


class Analyzer(Protocol):
    """The way `write` gets its numbers, with the user's settings already in it."""

    def __call__(self, run: Run) -> Analysis: ...
