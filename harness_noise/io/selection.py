"""The part of a run that was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..data.clusters import ClusterSpec, check_tasks
from ..data.scores import ReadOptions, Run, Scores
from ..errors import NotThereError
from .joining import tasks_of


def select(run: Run, options: ReadOptions) -> Run:
    """The part of a run that `--task`, `--metric` and `--scorer` name (globs)."""
    from fnmatch import fnmatchcase

    run = replace(run, scores=tuple(_called(part, options.metrics) for part in run.scores))
    kept: list[Any] = [*run.scores, *run.groups, *run.corpus, *run.skipped]
    notes = run.notes
    for option, attribute, wanted in (
        ("tasks", "task", options.tasks),
        ("metrics", "metric", options.metrics),
        ("scorers", "scorer", options.scorers),
    ):
        if not wanted:
            continue
        have = list(dict.fromkeys(_name(item, attribute) for item in kept))
        unknown = [name for name in wanted if not any(fnmatchcase(other, name) for other in have)]
        if unknown:  # another run may have it: two harnesses name one scorer differently
            absent = NotThereError([run.name], option, unknown, have)
            if len(unknown) == len(wanted):
                raise absent
            notes += (str(absent),)
        kept = [item for item in kept if any(fnmatchcase(_name(item, attribute), name) for name in wanted)]
    chosen = {id(item) for item in kept}
    names = {_name(item, "task") for item in kept}
    groups = tuple(item for item in run.groups if id(item) in chosen)
    return replace(
        run,
        scores=tuple(item for item in run.scores if id(item) in chosen),
        parts=(*run.parts, *(item for item in run.scores if id(item) not in chosen)) if groups else (),
        groups=groups,
        corpus=tuple(item for item in run.corpus if id(item) in chosen),
        skipped=tuple(item for item in run.skipped if id(item) in chosen),
        notes=notes,
        sequential=tuple(item for item in run.sequential if item["task"] in names),
    )


def check_clusters(cluster: str | None, runs: Iterable[Run]) -> None:
    """Refuse a `cluster` of a task that none of the runs has.

    Raises:
        InputError: lists the tasks.
    """
    if cluster is not None:
        check_tasks(ClusterSpec.parse(cluster), (task for run in runs for task in tasks_of(run)))


def _called(part: Scores, wanted: Sequence[str]) -> Scores:
    """The scores under the name that is asked for, where it is one of those that they may have."""
    from fnmatch import fnmatchcase

    known = (part.metric, *(part.names or ()))
    found = next((name for name in known if any(fnmatchcase(name, item) for item in wanted)), part.metric)
    return part if found == part.metric else replace(part, metric=found, names=(found,))


def _name(item: Any, attribute: str) -> str:
    value = getattr(item, attribute, None)
    return str(item.name if value is None and attribute == "task" else value)
