"""The public functions: `read`, `analyze`, `compare`; the commands are thin clients of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .analysis.comparison import compare_runs
from .analysis.mean import analyze_runs
from .analysis.slices import slices_of_pairs, slices_of_runs
from .data.scores import ReadOptions, Run
from .errors import InputError
from .io import registry as adapters
from .io.paths import Place
from .io.sources import Source, listed, runs_of, split
from .results.arena import Arena
from .results.explanation import Explanation
from .results.rows import Analysis, Comparison


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


def analyze(
    run: Source | Sequence[Source],
    *,
    level: float = 0.95,
    cluster: str | None = None,
    by: Sequence[str] = (),
    **choices: Any,
) -> Analysis:
    """The noise of every mean of one or several runs.

    Args:
        run: a path, a Run, or several.
        level: coverage of the confidence intervals, in (0, 1).
        cluster: SPEC of the clusters; None: those the run carries.
        by: SPECs of the questions' fields: the same slice by slice; `auto`: every field.
        **choices: fields of `Settings` (`se`, `interval`, …) and `ReadOptions` (`tasks`, `columns`, …).

    Raises:
        InputError: input or choices that cannot be used.
    """
    settings, options = split(choices, level=level, cluster=cluster)
    options = replace(options, fields=tuple(by))
    runs = adapters.those_with(partial(runs_of, item, options) for item in listed(run))
    result = analyze_runs(runs, settings)
    return slices_of_runs(runs, by, settings).beside(result) if by else result


def compare(
    a: Source,
    b: Source,
    *,
    level: float = 0.95,
    cluster: str | None = None,
    by: Sequence[str] = (),
    questions: int = 0,
    **choices: Any,
) -> Comparison:
    """A − B, paired by question, for everything that both runs measured.

    Args:
        a: a path or a Run; of one model.
        b: the run that it is compared with.
        level: coverage of the confidence intervals, in (0, 1).
        cluster: SPEC of the clusters; None: those the runs carry.
        by: SPECs of the questions' fields: the same slice by slice; `auto`: every field.
        questions: list this many of the questions that flipped most.
        **choices: fields of `Settings` (`test`, `adjust`, `margin`, …) and `ReadOptions`.

    Raises:
        InputError: input or choices that cannot be used, or no question in common.
    """
    settings, options = split(choices, level=level, cluster=cluster)
    options = replace(options, fields=tuple(by))
    pairs = [(_one(a, options), _one(b, options))]
    result = compare_runs(pairs, settings, questions)
    return slices_of_pairs(pairs, by, settings).beside(result) if by else result


def explain(
    a: Source,
    b: Source | None = None,
    *,
    on: Sequence[str],
    categories: Sequence[str] = (),
    level: float = 0.95,
    cluster: str | None = None,
    **choices: Any,
) -> Explanation:
    """What goes with the scores of a run, or with the difference of two, question by question.

    Args:
        a: a path or a Run; of one model.
        b: the run that it is compared with; None: the scores of `a` themselves.
        on: SPECs of the questions' fields; numbers as they are, categories against their most frequent value.
        categories: those of `on` whose numbers are names.
        level: coverage of the confidence intervals, in (0, 1).
        cluster: SPEC of the clusters; None: those the runs carry.
        **choices: `adjust` of `Settings`, and fields of `ReadOptions`.

    Raises:
        InputError: input or choices that cannot be used, or fields that explain nothing.

    Source: CR2 and its degrees of freedom by Pustejovsky & Tipton (2018), for any design matrix.
    """
    from .analysis.explain import explain_runs

    settings, options = split(choices, level=level, cluster=cluster)
    runs = [_one(source, replace(options, fields=tuple(on))) for source in (a, b) if source is not None]
    return explain_runs(runs[0], runs[1] if len(runs) > 1 else None, on, settings, categories)


def _one(source: Source, options: ReadOptions) -> Run:
    runs = runs_of(source, options)
    if len(runs) != 1:
        models = ", ".join(run.model for run in runs)
        raise InputError(f"{source} holds {len(runs)} runs ({models}); compare two of them as Run objects")
    return runs[0]


def arena(
    runs: Source | Sequence[Source],
    *,
    level: float = 0.95,
    cluster: str | None = None,
    baseline: str | None = None,
    top: int | None = None,
    **choices: Any,
) -> Arena:
    """Every pair of many runs, and the noise that is characteristic of each benchmark.

    Args:
        runs: a path that holds several runs, or several paths or Runs.
        level: coverage of the confidence intervals, in (0, 1).
        cluster: SPEC of the clusters; None: those the runs carry.
        baseline: a model that becomes B in all its pairs.
        top: K, to ask which models may be among the K best.
        **choices: fields of `Settings` (`test`, `adjust`, `margin`, …) and `ReadOptions`.

    Raises:
        InputError: input or choices that cannot be used, or nothing that two runs share.
    """
    from .leaderboard.build import arena as compute

    settings, options = split(choices, level=level, cluster=cluster)
    found = [item for source in listed(runs) for item in runs_of(source, options)]
    return compute(found, settings, baseline=baseline, top=top)
