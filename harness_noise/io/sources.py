"""What a caller names, as runs: paths, runs, tables, and which of their models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..data.native_values import checked
from ..data.scores import ReadOptions, Run
from ..errors import InputError
from . import registry as adapters
from .joining import joined
from .paths import FRAME, PathInput, is_frame, is_path

if TYPE_CHECKING:
    import pandas as pd

Source: TypeAlias = "PathInput | Run | pd.DataFrame"


def runs_of(source: Source, options: ReadOptions) -> list[Run]:
    """The runs that a path or a Run stands for, read with these options.

    Raises:
        InputError: something that is no path, Run or table, or what reading raises.
    """
    if isinstance(source, Run):
        lost = any(part.n_missing for part in (*source.scores, *source.parts, *source.corpus))
        refill = options.missing != "drop" and lost
        fields = bool(options.fields) and all(part.questions.fields is None for part in source.scores)
        has_usage = set(options.usage) <= {name for part in source.scores for name in (part.metric, *part.usage)}
        if options.cluster is None and not refill and not fields and (has_usage or not source.path):
            return adapters.asked_of(checked(source), options)
        if not source.path:
            what = "missing answers can be counted as wrong" if refill else "clusters can be chosen"
            what = "what is known of its questions can be read" if fields else what
            raise InputError(f"{source.name}: {what} only while a file is read; give its path")
        again = adapters.read(source.path, options)
        return [run for run in again if (run.model, run.name) == (source.model, source.name)] or again
    if not is_path(source) and not is_frame(source):
        raise InputError(
            f"{source!r:.80} is no run: give a path, a Run or a DataFrame, or a list of them; for arrays of scores "
            "there are `estimate` and `estimate_difference`"
        )
    return adapters.read(source, options)


def listed(sources: Any) -> list[Source]:
    """One source or several, as a list."""
    single = (
        isinstance(sources, (Run, Mapping))
        or is_path(sources)
        or is_frame(sources)
        or not isinstance(sources, Iterable)
    )
    return [sources] if single else list(sources)


def names(value: Sequence[str]) -> tuple[str, ...]:
    """Several names; a single one may stand alone."""
    return (value,) if isinstance(value, str) else tuple(value)


def only_of(runs: list[Run], side: Sequence[Source]) -> Run:
    """The one run that a side of a comparison is."""
    if len(runs) != 1:
        place = side[0] if len(side) == 1 else "a list"
        models = ", ".join(run.model for run in runs)
        raise InputError(f"{place} holds {len(runs)} runs ({models}), and one is needed: name the file of one model")
    return runs[0]


def pair_of(
    runs: list[Run], sources: Sequence[Source], models: Sequence[str] = (), *, many: str = ""
) -> tuple[Run, Run]:
    """The two runs that are meant, A first; all tasks of a model whose files are many.

    Args:
        runs: all that were read.
        sources: what they were read from, for messages.
        models: the names of A and B; none: there are no others.
        many: what else can be done with more than two runs, for messages.
    """
    have = list(dict.fromkeys(run.model for run in runs))
    if models:
        unknown = [name for name in models if name not in have]
        if unknown or len(set(models)) != 2 or len(models) != 2:
            what = f"{unknown[0]!r} is not there" if unknown else "name two models"
            raise InputError(f"`models` {','.join(models)}: {what}; the models are {', '.join(have)}")
        runs = [run for name in models for run in runs if run.model == name]
        have = list(models)
    places = [src.name if isinstance(src, Run) else str(src) for src in sources if not is_frame(src)] or [FRAME]
    if len(runs) > 2 and len(have) == 2:
        runs = joined(runs, " ".join(places))
    if len(runs) == 2:
        return runs[0], runs[1]
    if len(runs) == 1:
        raise InputError(f"{places[0]} holds one run ({have[0]}): name a second run to compare it with")
    each = ", ".join(f"{run.model} ({run.name})" if len(have) < len(runs) else run.model for run in runs)
    raise InputError(
        f"{len(runs)} runs are given: {each}. Name two files or folders, choose two models with `models=('A', 'B')`, "
        f"{many}or join the runs of one model with `as_repeats=True`"
    )


def of_models(runs: list[Run], sources: Sequence[Source], models: Sequence[str] = ()) -> list[Run]:
    """The one run of the one model that is named, or the two of `pair_of`."""
    if len(models) != 1:
        return [*pair_of(runs, sources, models)]
    out = [run for run in runs if run.model == models[0]]
    if len(out) != 1:
        have = ", ".join(dict.fromkeys(run.model for run in runs))
        raise InputError(f"`models` {models[0]}: {len(out)} runs are of it; the models are {have}")
    return out


def is_same(run: Run, other: Run) -> bool:
    """Whether two runs are one that is given twice (`runs/*` with the baseline `runs/old`)."""
    if not run.path or not other.path or run.model != other.model:
        return False
    return Path(run.path).resolve() == Path(other.path).resolve()


def of_sides(columns: Mapping[str, str], sources: Sequence[Source]) -> dict[str, str]:
    """The columns with the paths of two sources in place of ``A:`` and ``B:``, unless a file is called so."""
    paths = [str(source) for source in sources if is_path(source)]
    if len(paths) != 2 or {Path(path).stem for path in paths} & {"A", "B"}:
        return dict(columns)
    named = dict(zip(("A:", "B:"), paths, strict=True))
    return {f"{named[key[:2]]}:{key[2:]}" if key[:2] in named else key: value for key, value in columns.items()}
