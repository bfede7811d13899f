"""What a caller names, as runs: paths, runs, and the keyword arguments that go to reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..data.native_values import checked
from ..data.scores import ReadOptions, Run
from ..errors import InputError
from ..settings import Settings
from . import registry as adapters
from .joining import select
from .paths import PathInput, is_frame, is_path

if TYPE_CHECKING:
    import pandas as pd

Source: TypeAlias = "PathInput | Run | pd.DataFrame"


def runs_of(source: Source, options: ReadOptions) -> list[Run]:
    """The runs that a path or a Run stands for, read with these options."""
    if isinstance(source, Run):
        lost = sum(item.n_missing for item in (*source.scores, *source.parts))
        lost += sum(item.n_missing for item in source.corpus)
        refill = options.missing == "zero" and lost > 0
        fields = bool(options.fields) and all(item.questions.fields is None for item in source.scores)
        if options.cluster is None and not refill and not fields:
            return [select(checked(source), options)]
        if not source.path:
            what = "missing answers can be counted as wrong" if refill else "clusters can be chosen"
            what = "what is known of its questions can be read" if fields else what
            raise InputError(f"{source.name}: {what} only while a file is read; give its path")
        again = adapters.read(source.path, options)
        return [run for run in again if (run.model, run.name) == (source.model, source.name)] or again
    return adapters.read(source, options)


def listed(given: Any) -> list[Source]:
    return [given] if isinstance(given, Run) or is_path(given) or is_frame(given) else list(given)


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


def only_run(side: Source | Sequence[Source], options: ReadOptions) -> Run:
    """The one run that a side of a comparison is."""
    runs = [run for source in listed(side) for run in runs_of(source, options)]
    if len(runs) != 1:
        place = "a list" if isinstance(side, Sequence) and not isinstance(side, str) else side
        models = ", ".join(run.model for run in runs)
        raise InputError(f"{place} holds {len(runs)} runs ({models}); compare two of them as Run objects")
    return runs[0]
