"""All that a caller names, as runs: paths, runs, tables, and which of their models."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..data.native_values import check_native
from ..data.scores import ReadOptions, Run
from ..errors import InputError
from ..extras import words
from . import registry as adapters
from .joining import joined
from .paths import FRAME, PathInput, is_frame, is_path, name_of

if TYPE_CHECKING:
    import pandas as pd

Source: TypeAlias = "PathInput | Run | pd.DataFrame"
Sources: TypeAlias = "Source | Sequence[Source] | Mapping[str, Source]"
"""One source, several, or several under names of the caller's."""


@dataclass(frozen=True, slots=True)
class Named:
    """A source with the name that the caller gives its run."""

    name: str
    source: Source

    def __str__(self) -> str:
        return self.name


def runs_of(source: Source | Named, options: ReadOptions) -> list[Run]:
    """Return the runs of a path, DataFrame or Run (if options need more, read again, refused without its path).

    Raises:
        InputError: something that is no path, Run or table, or what reading raises.
    """
    if isinstance(source, Named):
        return [_renamed(only_of(runs_of(source.source, options), (source,)), source.name)]
    if isinstance(source, Run):
        lost = any(part.n_missing for part in (*source.scores, *source.parts, *source.corpus))
        refill = options.missing != "drop" and lost
        fields = bool(options.fields) and all(part.questions.fields is None for part in source.scores)
        has_usage = set(options.usage) <= {name for part in source.scores for name in (part.metric, *part.usage)}
        if options.cluster is None and not refill and not fields and (has_usage or not source.path):
            return adapters.asked_of(check_native(source), options)
        if not source.path:
            what = "missing answers can be counted as wrong" if refill else "clusters can be chosen"
            what = "what is known of its questions can be read" if fields else what
            raise InputError(f"{source.name}: {what} only while a file is read. Give its path")
        again = adapters.read(source.path, options)
        return [run for run in again if (run.model, run.name) == (source.model, source.name)] or again
    if not is_path(source) and not is_frame(source):
        raise InputError(
            f"{source!r:.80} is no run: give a path, a Run or a DataFrame, or a list of them. For arrays of scores "
            "use `estimate` and `estimate_difference`"
        )
    return adapters.read(source, options)


def is_unnamed(source: object) -> bool:
    """Return True if a source is a DataFrame without ``attrs["name"]``."""
    return is_frame(source) and name_of(source) == FRAME


def numbers_of(sources: Sequence[object]) -> list[int]:
    """Return the number of each unnamed DataFrame among the sources, 0 for all others. A single one has none."""
    unnamed = [*map(is_unnamed, sources)]
    if sum(unnamed) < 2:
        return [0] * len(unnamed)
    return [number * found for number, found in zip(accumulate(unnamed), unnamed, strict=True)]


def numbered(run: Run, number: int) -> Run:
    """Return the run renamed to "DataFrame N" if it came from a DataFrame without any name."""
    return _renamed(run, f"{FRAME} {number}") if run.model == FRAME else run


def lettered(run: Run, side: str) -> Run:
    """Return the run of one side of a comparison, called A or B if it came from a DataFrame without any name."""
    return _renamed(run, side) if run.model == FRAME and not run.path else run


def _renamed(run: Run, name: str) -> Run:
    """Return the run with this text as its name and as its model's name."""
    notes = run.notes if run.path else tuple(note.of_source(FRAME, name) for note in run.notes)
    return replace(run, name=name, model=name, notes=notes)


def listed(sources: Any) -> list[Any]:
    """Return a source, or several in a list or dict, as a list. A dict's keys become the runs' names."""
    if isinstance(sources, Mapping):
        return [Named(str(name), source) for name, source in sources.items()]
    single = isinstance(sources, Run) or is_path(sources) or is_frame(sources) or not isinstance(sources, Iterable)
    single = single or getattr(sources, "ndim", 1) == 0
    return [sources] if single else list(sources)


def all_of(given: Iterable[Any]) -> list[Any]:
    """Return the sources of a call: each one given, and each item of a list or dict. ``f(a, b)`` is ``f([a, b])``."""
    return [source for each in given for source in listed(each)]


def names(value: Any) -> tuple[str, ...]:
    """Return one string or several strings as a tuple, () for None. Refuse all else.

    Raises:
        InputError: something that is no string.
    """
    several = isinstance(value, Iterable) and not isinstance(value, str)
    out = () if value is None else tuple(value) if several else (value,)
    for name in out:
        if not isinstance(name, str):
            raise InputError(f"{name!r:.60} is no name: give a text, or a list of texts")
    return out


def only_of(runs: list[Run], side: Sequence[Source | Named]) -> Run:
    """Return the single run of a list. Refuse none or several, naming the source."""
    if len(runs) != 1:
        place = side[0] if len(side) == 1 else "a list"
        models = ", ".join(run.model for run in runs)
        raise InputError(f"{place} holds {len(runs)} runs ({models}), and one is needed: name the file of one model")
    return runs[0]


def pair_of(
    runs: list[Run], sources: Sequence[Source], models: Sequence[str] = (), *, many: str = ""
) -> tuple[Run, Run]:
    """Return the two runs to compare, A first: the two `models`, else the only two, each joined. Refuse if not two.

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
            raise InputError(f"`models` {','.join(models)}: {what}. The models are {', '.join(have)}")
        runs = [run for name in models for run in runs if run.model == name]
        have = list(models)
    places = [src.name if isinstance(src, Run) else str(src) for src in sources if not is_frame(src)] or [FRAME]
    if len(runs) > 2 and len(have) == 2:
        runs = joined(runs, " ".join(places))
    if len(runs) == 2:
        return runs[0], runs[1]
    if len(runs) == 1:
        raise InputError(f"{places[0]} holds one run ({have[0]}): name a second run to compare it with")
    if many:
        typed = shlex.join(places) if all(map(is_path, sources)) else " ".join(["RUN"] * len(runs))
        many += words("many runs", runs=typed)
    each = ", ".join(f"{run.model} ({run.name})" if len(have) < len(runs) else run.model for run in runs)
    raise InputError(
        f"{len(runs)} runs are given: {each}. Name two files or folders, choose two models with `models=('A', 'B')`, "
        f"{many}or join the runs of one model with `as_repeats=True`"
    )


def of_models(runs: list[Run], sources: Sequence[Source], models: Sequence[str] = ()) -> list[Run]:
    """Return the run of the one model named. For none or two, return the two of `pair_of`. Refuse if not found."""
    if len(models) != 1:
        return [*pair_of(runs, sources, models)]
    out = [run for run in runs if run.model == models[0]]
    if len(out) != 1:
        have = ", ".join(dict.fromkeys(run.model for run in runs))
        raise InputError(f"`models` {models[0]}: {len(out)} runs are of it. The models are {have}")
    return out


def is_same(run: Run, other: Run) -> bool:
    """Return True if two runs have the same model and path, so that one run was given twice."""
    if not run.path or not other.path or run.model != other.model:
        return False
    return Path(run.path).resolve() == Path(other.path).resolve()


SIDES = ("A", "B")


def columns_of_side(columns: Mapping[str, str], side: str) -> dict[str, str]:
    """Return the `columns` setting for one side: ``A:score`` holds for A only, ``score`` for both."""
    prefixes = {letter: f"{letter}:" for letter in SIDES}
    out = {key: value for key, value in columns.items() if not key.startswith(tuple(prefixes.values()))}
    own = prefixes[side]
    return out | {key.removeprefix(own): value for key, value in columns.items() if key.startswith(own)}
