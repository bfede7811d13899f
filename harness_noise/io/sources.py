"""What a caller names, as runs: paths, runs, and the keyword arguments that go to reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..data.scores import ReadOptions, Run
from ..errors import InputError
from ..settings import Settings
from . import registry as adapters
from .paths import PathInput, is_path
from .selection import select

Source: TypeAlias = PathInput | Run


def runs_of(source: Source, options: ReadOptions) -> list[Run]:
    """The runs that a path or a Run stands for, read with these options."""
    if isinstance(source, Run):
        lost = sum(item.n_missing for item in (*source.scores, *source.parts))
        lost += sum(item.n_missing for item in source.corpus)
        refill = options.missing == "zero" and lost > 0
        if options.cluster is None and not refill:
            return [select(source, options)]
        if not source.path:
            what = "missing answers can be counted as wrong" if refill else "clusters can be chosen"
            raise InputError(f"{source.name}: {what} only while a file is read; give its path")
        again = adapters.read(source.path, options)
        return [run for run in again if (run.model, run.name) == (source.model, source.name)] or again
    return adapters.read(source, options)


def listed(given: Any) -> list[Source]:
    return [given] if isinstance(given, Run) or is_path(given) else list(given)


def reading(
    settings: Settings, tasks: Sequence[str], metrics: Sequence[str], scorers: Sequence[str],
    groups: Mapping[str, str] | None, columns: Mapping[str, str] | None, apart: bool,
) -> ReadOptions:  # fmt: skip
    """How paths are read; clusters and what is missing are as in the settings."""
    return ReadOptions(
        cluster=settings.cluster, missing=settings.missing, tasks=names(tasks), metrics=names(metrics),
        scorers=names(scorers), groups=dict(groups or {}), columns=dict(columns or {}), apart=apart,
    )  # fmt: skip


def names(given: Sequence[str]) -> tuple[str, ...]:
    """Several names; a single one may stand alone."""
    return (given,) if isinstance(given, str) else tuple(given)
