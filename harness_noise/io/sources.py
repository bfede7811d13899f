"""What a caller names, as runs: paths, runs, and the keyword arguments that go to reading."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from ..data.scores import ReadOptions, Run
from ..errors import InputError
from ..settings import Settings
from . import registry as adapters
from .paths import Place, is_place
from .selection import select

Source: TypeAlias = Place | Run


def runs_of(source: Source, options: ReadOptions) -> list[Run]:
    """The runs that a path or a Run stands for, read with these options."""
    if isinstance(source, Run):
        lost = sum(item.n_missing for item in (*source.scores, *source.parts))
        lost += sum(item.n_missing for item in source.corpus)
        refill = options.missing == "zero" and lost > 0
        fields = bool(options.fields) and all(item.questions.fields is None for item in source.scores)
        if options.cluster is None and not refill and not fields:
            return [select(source, options)]
        if not source.path:
            what = "missing answers can be counted as wrong" if refill else "clusters can be chosen"
            what = "what is known of its questions can be read" if fields else what
            raise InputError(f"{source.name}: {what} only while a file is read; give its path")
        again = adapters.read(source.path, options)
        return [run for run in again if (run.model, run.name) == (source.model, source.name)] or again
    return adapters.read(source, options)


def listed(given: Any) -> list[Source]:
    return [given] if isinstance(given, Run) or is_place(given) else list(given)


def split(choices: dict[str, Any], **common: Any) -> tuple[Settings, ReadOptions]:
    """Sort keyword arguments into what is read and what is computed; both know cluster and missing."""
    reading = {
        name: choices.pop(name)
        for name in ("columns", "groups", "tasks", "metrics", "scorers", "apart")
        if name in choices
    }
    known = set(Settings.__dataclass_fields__)
    unknown = [name for name in choices if name not in known]
    if unknown:
        raise InputError(f"unknown option {unknown[0]!r}; there are {', '.join(sorted(known | set(reading)))}")
    settings = Settings(**choices, **common)
    options = replace(ReadOptions(**reading), cluster=settings.cluster, missing=settings.missing)
    return settings, options
