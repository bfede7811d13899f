"""The public functions: `read`, `analyze`, `compare`; the commands are thin clients of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from .analysis.difference import compare_runs
from .analysis.mean import analyze_runs
from .data.scores import ReadOptions, Run
from .errors import InputError
from .io import registry as adapters
from .io.paths import Place, is_place
from .results.arena import Arena
from .results.rows import Analysis, Comparison
from .settings import Settings

Source: TypeAlias = Place | Run


def read(path: Place, **options: Any) -> Run | list[Run]:
    """The run at `path`: an lm-eval output, an Inspect log, or a score table.

    Args:
        path: a file or a folder; a path, a URL that fsspec knows (s3://, gs://, …) or a `upath.UPath`.
        **options: fields of `ReadOptions`: `cluster`, `columns`, `missing`, `tasks`, ….

    Returns:
        One Run; a list of them where the file or folder holds several models, or runs that are not joined
        (`apart=True`, score tables).

    Raises:
        InputError: nothing there that can be used; says what and where.
    """
    runs = adapters.read(path, ReadOptions(**options))
    return runs[0] if len(runs) == 1 else runs


def runs_of(source: Source, options: ReadOptions) -> list[Run]:
    """The runs that a path or a Run stands for, read with these options."""
    if isinstance(source, Run):
        lost = sum(item.n_missing for item in (*source.scores, *source.parts))
        lost += sum(item.n_missing for item in source.corpus)
        refill = options.missing == "zero" and lost > 0
        if options.cluster is None and not refill:
            return [adapters.select(source, options)]
        if not source.path:
            what = "missing answers can be counted as wrong" if refill else "clusters can be chosen"
            raise InputError(f"{source.name}: {what} only while a file is read; give its path")
        again = adapters.read(source.path, options)
        return [run for run in again if (run.model, run.name) == (source.model, source.name)] or again
    return adapters.read(source, options)


def analyze(
    run: Source | Sequence[Source], *, level: float = 0.95, cluster: str | None = None, **choices: Any
) -> Analysis:
    """The noise of every mean of one or several runs.

    Args:
        run: a path, a Run, or several.
        level: coverage of the confidence intervals, in (0, 1).
        cluster: SPEC of the clusters; None: those the run carries.
        **choices: fields of `Settings` (`se`, `interval`, …) and `ReadOptions` (`tasks`, `columns`, …).

    Raises:
        InputError: input or choices that cannot be used.
    """
    settings, options = split(choices, level=level, cluster=cluster)
    return analyze_runs(adapters.those_with(partial(runs_of, item, options) for item in _listed(run)), settings)


def compare(
    a: Source, b: Source, *, level: float = 0.95, cluster: str | None = None, questions: int = 0, **choices: Any
) -> Comparison:
    """A − B, paired by question, for everything that both runs measured.

    Args:
        a: a path or a Run; of one model.
        b: the run that it is compared with.
        level: coverage of the confidence intervals, in (0, 1).
        cluster: SPEC of the clusters; None: those the runs carry.
        questions: list this many of the questions that flipped most.
        **choices: fields of `Settings` (`test`, `adjust`, `margin`, …) and `ReadOptions`.

    Raises:
        InputError: input or choices that cannot be used, or no question in common.
    """
    settings, options = split(choices, level=level, cluster=cluster)
    pair = []
    for source in (a, b):
        runs = runs_of(source, options)
        if len(runs) != 1:
            models = ", ".join(run.model for run in runs)
            raise InputError(f"{source} holds {len(runs)} runs ({models}); compare two of them as Run objects")
        pair.append(runs[0])
    return compare_runs([(pair[0], pair[1])], settings, questions)


def arena(
    runs: Source | Sequence[Source],
    *,
    level: float = 0.95,
    cluster: str | None = None,
    baseline: str | None = None,
    **choices: Any,
) -> Arena:
    """Every pair of many runs, and the noise that is characteristic of each benchmark.

    Args:
        runs: a path that holds several runs, or several paths or Runs.
        level: coverage of the confidence intervals, in (0, 1).
        cluster: SPEC of the clusters; None: those the runs carry.
        baseline: a model that becomes B in all its pairs.
        **choices: fields of `Settings` (`test`, `adjust`, `margin`, …) and `ReadOptions`.

    Raises:
        InputError: input or choices that cannot be used, or nothing that two runs share.
    """
    from .leaderboard.build import arena as compute

    settings, options = split(choices, level=level, cluster=cluster)
    return compute([item for source in _listed(runs) for item in runs_of(source, options)], settings, baseline=baseline)


def _listed(given: Any) -> list[Source]:
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
