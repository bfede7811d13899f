"""The door to the harnesses: adapters registered as entry points, the built-in ones included."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .scores import ReadOptions, Run

if TYPE_CHECKING:
    from harness_noise_adapters.base import Adapter

GROUP = "harness_noise.adapters"


def names() -> list[str]:
    """The registered adapters, in alphabetical order."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@cache
def load(name: str) -> Adapter:
    """The adapter of that name.

    Raises:
        InputError: none is registered, or what it needs is not installed.
    """
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        raise InputError(f"no adapter is called {name!r}; there are {', '.join(names())}")
    adapter: Any = found[0].load()
    return adapter  # type: ignore[no-any-return]


def _load_or_warn(name: str) -> Adapter | None:
    """A broken adapter of somebody's must not keep the others from reading their files."""
    try:
        return load(name)
    except Exception as error:  # noqa: BLE001 - whatever its import raises
        warnings.warn(f"adapter {name!r} cannot be loaded: {error}", stacklevel=3)
        return None


def find(path: str | Path) -> list[tuple[Adapter, Path]]:
    """The adapters that recognise `path`: one for a file, for a folder perhaps several.

    Raises:
        InputError: the path does not exist, or nobody recognises it.
    """
    path = Path(path)
    try:
        exists = path.exists()
    except OSError as error:  # a symlink loop, no permission
        raise InputError(f"{path}: cannot be opened ({error.strerror})") from None
    if not exists:
        raise InputError(f"{path}: no such file or directory")
    found: list[tuple[Adapter, Path]] = []
    for name in names():
        adapter = _load_or_warn(name)
        if adapter is not None and adapter.sniff(path):
            found.append((adapter, path))
            if path.is_file():
                break
    if found:
        return found
    if path.is_dir():
        raise InputError(
            f"{path}: no run in this folder; expected an lm-eval results_….json, Inspect logs "
            "(.eval, .json), or name a score table"
        )
    raise InputError(
        f"{path}: not a run that any adapter reads ({', '.join(names())}); expected an lm-eval results or "
        "samples file, an Inspect log, or a table (CSV, JSONL, Parquet) with the columns question and score"
    )


def read(path: str | Path, options: ReadOptions | None = None) -> list[Run]:
    """All runs at `path`, with the tasks, metrics and scorers that were asked for.

    Raises:
        InputError: nothing readable there, or nothing of what was asked for; lists what there is.
    """
    options = options or ReadOptions()
    runs = [run for adapter, where in find(path) for run in adapter.read(where, options)]
    if not runs:
        raise InputError(f"{path}: no run in it")
    return [select(run, options) for run in runs]


def read_what_can_be(path: str | Path, options: ReadOptions | None = None) -> tuple[list[Run], list[InputError]]:
    """As `read`, but what cannot be used is left out: in a folder, only the part that is broken."""
    try:
        return read(path, options), []
    except InputError as error:
        whole = error
    path = Path(path)
    runs: list[Run] = []
    errors: list[InputError] = []
    for child in sorted(path.iterdir()) if path.is_dir() else []:
        try:
            find(child)
        except InputError:
            continue  # no run at all: a note, a picture
        more, broken = read_what_can_be(child, options)
        runs += more
        errors += broken
    return runs, errors or [whole]


def select(run: Run, options: ReadOptions) -> Run:
    """The part of a run that `--task`, `--metric` and `--scorer` name (globs)."""
    from fnmatch import fnmatchcase

    kept: list[Any] = [*run.scores, *run.groups, *run.corpus, *run.skipped]
    notes = run.notes
    for option, attribute, wanted in (
        ("--task", "task", options.tasks),
        ("--metric", "metric", options.metrics),
        ("--scorer", "scorer", options.scorers),
    ):
        if not wanted:
            continue
        have = list(dict.fromkeys(_name(item, attribute) for item in kept))
        unknown = [name for name in wanted if not any(fnmatchcase(other, name) for other in have)]
        absent = f"{run.name}: {option} {', '.join(unknown)} is not in this run; there are {', '.join(have) or 'none'}"
        if len(unknown) == len(wanted):
            raise InputError(absent)
        if unknown:  # another run may have it: two harnesses name one scorer differently
            notes += (absent,)
        kept = [item for item in kept if any(fnmatchcase(_name(item, attribute), name) for name in wanted)]
    chosen = {id(item) for item in kept}
    groups = tuple(item for item in run.groups if id(item) in chosen)
    return replace(
        run,
        scores=tuple(item for item in run.scores if id(item) in chosen),
        parts=tuple(item for item in run.scores if id(item) not in chosen) if groups else (),
        groups=groups,
        corpus=tuple(item for item in run.corpus if id(item) in chosen),
        skipped=tuple(item for item in run.skipped if id(item) in chosen),
        notes=notes,
    )


def _name(item: Any, attribute: str) -> str:
    value = getattr(item, attribute, None)
    return str(item.name if value is None and attribute == "task" else value)
