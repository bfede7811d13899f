"""The door to the harnesses: adapters registered as entry points, the built-in ones included."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .. import extras
from ..data.native_values import agree_on_metrics, check_native
from ..data.notes import Note
from ..data.only import with_only
from ..data.scores import ReadOptions, Run, with_groups
from ..errors import FaultyScoresError, FinalError, InputError, NotThereError, some_of, without_secrets
from ..results.parts import KEPT_BESIDE
from .door import Place, inside, is_inside, is_special, is_there_itself, links_note, named_place
from .first_answers import with_stops
from .joining import joined, left_out_message, runs_and_errors, select, usable, with_causes
from .measures import measured
from .paths import (
    BESIDE,
    PathInput,
    columns_of,
    exists,
    is_frame,
    is_url,
    name_of,
    reason,
    refuse_pointer,
    resolve_path,
)
from .protocol import PartRead
from .shapes import shape_of_file

if TYPE_CHECKING:
    import pandas as pd

    from .protocol import Adapter, AdapterInParts

T = TypeVar("T")

GROUP = "harness_noise.adapters"
LAST = "table"
"""The adapter that takes whatever has columns: it is asked when no other wants a file."""


@cache
def _points() -> dict[str, EntryPoint]:
    """Return the installed adapters' entry points by name, without importing them.

    Looked for once, in the metadata of all that is installed.
    """
    return {point.name: point for point in reversed(list(entry_points(group=GROUP)))}


def names() -> list[str]:
    """Return the names of all usable adapters in the order in which files are offered: alphabetical, tables last."""
    return sorted(_points().keys() - left_out(), key=lambda name: (name == LAST, name))


@cache
def left_out() -> list[str]:
    """Return the names of adapters that are registered, but whose extra is not installed."""
    return sorted(name for name, point in _points().items() if extras.is_left_out(point.module))


@cache
def load(name: str) -> Adapter:
    """Import and return the adapter of this name. Refuse unknown names and ones not installed.

    Raises:
        InputError: none is registered, or what it needs is not installed.
    """
    if name in left_out():
        raise InputError(extras.not_installed(name))
    point = _points().get(name)
    if point is None:
        raise InputError(f"no adapter is called {name!r}. There are {', '.join(names())}")
    adapter: Adapter = point.load()
    return adapter


def described(format_file: str | None = None) -> dict[str, str]:
    """Return {adapter or format name: one line on what it reads}. Raise if an adapter cannot be loaded.

    Args:
        format_file: the user's own formats of tables; None: those of the folder of settings.
    """
    lines: dict[str, str] = {}
    for name in names():
        adapter: Any = load(name)
        about = getattr(adapter, "about", "") or type(adapter).__doc__ or ""  # `python -OO` has no docstrings
        lines[name] = next(iter(about.strip().splitlines()), "")
        lines |= adapter.formats(format_file) if hasattr(adapter, "formats") else {}
    return lines


def _loaded() -> dict[str, Adapter]:
    """Import all adapters and return them by name. One that fails to import gives a warning."""
    adapters: dict[str, Adapter] = {}
    for name in names():
        try:
            adapters[name] = load(name)
        except Exception as error:  # noqa: BLE001 - whatever its import raises
            warnings.warn(f"adapter {name!r} cannot be loaded: {error}", stacklevel=3)
    return adapters


@dataclass(frozen=True, slots=True)
class ReadUnit:
    """All that is read at a time, by this process or by a worker."""

    adapter: str
    part: Any
    place: str = ""
    """The place that the user named, inside which it is read."""

    def __str__(self) -> str:
        return str(self.part)


ReadUnits = Callable[[Sequence[ReadUnit], ReadOptions], Sequence[PartRead | InputError]]
"""Function that reads many units. Its answers are in their order."""


def find(path: PathInput) -> list[tuple[Adapter, Path]]:
    """Return (adapter, path) for each adapter that recognises `path`. Refuse a path that none recognises.

    Raises:
        InputError: the path does not exist, or no adapter recognises it.
    """
    where = resolve_path(path)
    return [(load(name), where) for name in _recognised(where)]


def _recognised(path: Path) -> list[str]:
    """Return the names of adapters that recognise a path: one for a file, maybe more for a folder. Refuse if none."""
    if not exists(path):
        raise InputError(f"{path}: no such file or directory")
    is_file, owners = path.is_file(), list[str]()
    if is_file:
        refuse_pointer(path)
    elif not is_url(path) and is_special(path):
        raise InputError(
            f"{path}: a pipe or a device, not a file or a folder. Of these `/dev/stdin` and `<(…)` are read"
        )
    elif not _may_be_listed(path):
        raise closed_folders(path)[0]
    for name, adapter in _loaded().items():
        if adapter.sniff(path):
            owners.append(name)
            if is_file or getattr(adapter, "owns_folders", False):
                break
    owners = owners or [name for name, adapter in _loaded().items() if _runs_below(adapter, path)]
    if owners:
        return owners
    for error in closed_folders(path):
        raise error
    shape = shape_of_file(path)
    raise InputError(
        f"{path}: {'not a run' if is_file else 'a folder without a run'} that any adapter reads "
        f"({', '.join(names())}){shape and f'; it is {shape}'}. Expected: lm-eval results or samples files, Inspect "
        "logs (.eval, .json), or score tables (CSV, JSONL, Parquet) with the columns question and score. JSON has a "
        "list of objects, one for each answer, or an object with a key for each question. `adapters` names all formats"
        f"{_and_left_out()}"
    )


def _and_left_out() -> str:
    """Return words for a message on adapters that are not installed and might read a file, or ""."""
    readers = f"the reader of {', '.join(left_out())}"
    return f", and {extras.not_installed(readers)}" if left_out() else ""


def read(path: PathInput | pd.DataFrame, options: ReadOptions | None = None) -> list[Run]:
    """Read the runs at a path, URL or DataFrame, joined and cut to the options. Note what is unusable. Refuse no run.

    A file of a folder that cannot be used is a note of the runs beside it; see `joining.usable`.

    Raises:
        InputError: nothing readable there; with `strict`, something that is not.
        NotThereError: nothing of what was asked for; lists what there is.
    """
    options = options or ReadOptions()
    single = _of_each_file(options)
    if is_frame(path):
        table: Any = load("table")
        name = name_of(path)
        of_frame = table.read_columns(name, columns_of(path), single)
        return chosen([check_native(replace(run, path="")) for run in of_frame], name, options)
    path = cast("PathInput", path)
    with inside(resolve_path(path), follow=options.follow_links) as place:
        claims = _claims(path)
        (answers,) = _read_units([claims], single, one_by_one)
        answers += _passed_over(path, claims)
    runs = usable(answers, path, strict=options.strict)
    if not runs:
        raise InputError(f"{path}: no run in it{_and_links(place)}")
    if place.left_out:
        runs = [replace(runs[0], notes=(*runs[0].notes, Note("left_out", links_note(place)))), *runs[1:]]
    try:
        return chosen(runs, path, options)
    except NotThereError as error:
        causes = tuple(str(answer) for answer in answers if isinstance(answer, InputError))
        raise NotThereError(error.runs, error.option, error.unknown, error.have, error.where, causes) from None


def _and_links(place: Place) -> str:
    return f"; {links_note(place)}" if place.left_out else ""


def _of_each_file(options: ReadOptions) -> ReadOptions:
    """Return the options for a single file: no groups, but all their tasks, which may be in other files.

    All of them are needed.
    """
    tasks = (*options.tasks, *options.groups.values()) if options.tasks else ()
    return replace(options, groups={}, tasks=tasks)


def chosen(runs: Sequence[Run], path: PathInput, options: ReadOptions) -> list[Run]:
    """Return runs joined by model (unless `apart`) and reduced to what the options ask for. Refuse if none has it.

    The runs of each model are joined, and cut to the groups and tasks that were asked for. A run that has none of them
    is left out with a note, if another has some.

    Raises:
        NotThereError: no run has what was asked for.
    """
    runs, _ = agree_on_metrics(runs)
    if not options.apart:
        runs = joined(runs, path)
    return those_with((partial(asked_of, run, options) for run in runs), path)


def asked_of(run: Run, options: ReadOptions) -> list[Run]:
    """Return [run] reduced to the questions, measures, groups, tasks and metrics of the options. Refuse if none.

    Raises:
        NotThereError: it has none of them.
    """
    run = measured(with_only(with_stops(run), options.only), options)
    return [with_causes(select(with_groups(run, options.groups), options), options.missing)]


def those_with(readers: Iterable[Callable[[], list[Run]]], path: PathInput | None = None) -> list[Run]:
    """Call each reader and return the runs. Leave out, with a note, those without what is asked. Refuse if all are.

    Raises:
        NotThereError: none has it; lists what all of them have.
    """
    runs: list[Run] = []
    lacking: list[NotThereError] = []
    for read_some in readers:
        try:
            runs += read_some()
        except NotThereError as error:
            lacking.append(error)
    if not lacking:
        return runs
    if not runs:
        raise lacking[0] if len(lacking) == 1 else NotThereError.of_all(lacking, str(path or ""))
    names = [name for error in lacking for name in error.runs]
    note = Note("left_out", f"left out, for want of {lacking[0].wanted}: {some_of(names, 3)}")
    return [replace(runs[0], notes=(*runs[0].notes, note)), *runs[1:]]


def read_with(adapter: AdapterInParts, path: Path, options: ReadOptions) -> list[Run]:
    """Read all runs at `path` with one adapter. Files that cannot be used become notes or errors.

    Raises:
        InputError: nothing there can be used; with `strict`, something cannot.
    """
    parts = [_read_part(adapter, part, options) for part in adapter.parts(path)]
    return usable(_joined(adapter, path, parts, options), path, strict=options.strict)


def _joined(
    adapter: AdapterInParts, path: Path, parts: Sequence[PartRead | InputError], options: ReadOptions
) -> list[Run | InputError]:
    try:
        runs = adapter.join(path, parts, options)
        return [run if isinstance(run, InputError) else _without_password(check_native(run)) for run in runs]
    except FaultyScoresError as error:
        return [_faulty(adapter, path, error)]


def _without_password(run: Run) -> Run:
    """Return the run with passwords removed from its name, if it is a URL. Its `path` keeps them."""
    return replace(run, name=without_secrets(run.name)) if is_url(run.name) else run


def read_unit(unit: ReadUnit, options: ReadOptions) -> PartRead | InputError:
    """Read one unit (a file, for one adapter). Return the error instead of raising if it cannot be used."""
    with inside(unit.place or unit.part, follow=options.follow_links):
        return _read_part(_in_parts(load(unit.adapter)), unit.part, options)


def _read_part(adapter: AdapterInParts, part: Any, options: ReadOptions) -> PartRead | InputError:
    try:
        return adapter.read_part(part, options)
    except InputError as error:
        error.path = str(part)
        return error
    except FaultyScoresError as error:
        return _faulty(adapter, part, error)
    except Exception as error:
        if not (is_url(part) or isinstance(error, OSError)):
            raise
        failed = InputError(f"{getattr(error, 'filename', None) or part}: cannot be read ({reason(error)})")
        failed.__cause__ = error
        return failed


def _faulty(adapter: Any, place: Any, error: FaultyScoresError) -> InputError:
    fault = FinalError(
        f"{place}: the adapter {adapter.name!r} returned impossible scores ({error}). This is a bug in the adapter, "
        "not in your file. Please report it to its authors"
    )
    fault.__cause__ = error
    return fault


def places(adapter: Adapter, path: Path) -> list[Path]:
    """Return the paths that an adapter reads one by one: `path` if it recognises it, else runs below, else `path`."""
    return [path] if adapter.sniff(path) else _runs_below(adapter, path) or [path]


LEVELS = 5
"""Depth below a folder to which runs are searched: an export to Every Eval Ever has data / task / developer / model."""


def _runs_below(adapter: Adapter, folder: Path, levels: int = LEVELS) -> list[Path]:
    """Return the runs below a folder that an adapter recognises, by name. [] for one that reads in parts.

    An adapter that reads in parts walks its folders itself. A file is the first adapter's that recognises it, and in a
    folder that another one recognises no file is a score table.
    """
    if hasattr(adapter, "parts") or levels == 0 or not folder.is_dir():
        return []
    places: list[Path] = []
    for child in sorted(folder.iterdir()):
        if child.name.startswith(".") or child.name.endswith(KEPT_BESIDE):
            continue
        if child.is_symlink() and (child.is_dir() or is_there_itself(child)):
            continue
        if not is_inside(child) or not exists(child) or (not is_url(child) and is_special(child)):
            continue
        if child.is_dir() and not _may_be_listed(child):
            continue
        if adapter.sniff(child):
            first = next(name for name, other in _loaded().items() if other.sniff(child))
            places += [child] if child.is_dir() or first == adapter.name else []
        elif adapter.name != LAST or not any(other.sniff(child) for other in _loaded().values() if other != adapter):
            places += _runs_below(adapter, child, levels - 1)
    return places


def _may_be_listed(folder: Path) -> bool:
    """Return True if a folder may be listed. Always True for a URL."""
    return is_url(folder) or os.access(folder, os.R_OK | os.X_OK)


def closed_folders(path: PathInput, owned: Collection[str] = ()) -> list[InputError]:
    """Return an error for each folder at or below `path` without read permission. Those in `owned` ones are left out.

    Those in `owned` folders, of which there may be thousands, are left to the adapter that owns them.
    """
    if is_url(path) or not Path(path).is_dir() or str(Path(path)) in owned:
        return []
    folders = [str(Path(path))]
    for place, below, _ in os.walk(folders[0]):
        below[:] = [name for name in below if name != BESIDE and f"{place}{os.sep}{name}" not in owned]
        folders += [f"{place}{os.sep}{name}" for name in below]
    closed = [folder for folder in folders if not os.access(folder, os.R_OK | os.X_OK)]
    return [InputError(f"{folder}: cannot be opened (Permission denied)") for folder in closed]


def _passed_over(path: PathInput, claims: Claims | InputError) -> list[InputError]:
    """Return an error for each unreadable subfolder that no adapter reports itself."""
    units = [] if isinstance(claims, InputError) else [unit for _, part in claims for unit in part]
    owned = {str(unit) for unit in units if getattr(load(unit.adapter), "owns_folders", False)}
    return [] if isinstance(claims, InputError) else closed_folders(path, owned)


class _Whole:
    """An adapter that reads a run in one go, as one that reads it in parts, of a folder of runs each is a part."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.name = adapter.name

    def parts(self, path: Path) -> list[Path]:
        return places(self.adapter, path)

    def read_part(self, part: Path, options: ReadOptions) -> PartRead:
        return PartRead(tuple(self.adapter.read(part, options)))

    def join(self, path: Path, found: Sequence[PartRead | InputError], options: ReadOptions) -> list[Run | InputError]:
        answers, arranged = in_order(found), getattr(self.adapter, "arranged", None)
        return answers if arranged is None else arranged(path, answers, options)


def _in_parts(adapter: Adapter) -> AdapterInParts:
    in_parts: Any = adapter if hasattr(adapter, "parts") else _Whole(adapter)
    return in_parts  # type: ignore[no-any-return]


def in_order(parts: Sequence[PartRead | InputError]) -> list[Run | InputError]:
    """Return the runs of all parts in order, with an error in place of each part that failed."""
    return [run for part in parts for run in ([part] if isinstance(part, InputError) else part.runs)]


def one_by_one(units: Sequence[ReadUnit], options: ReadOptions) -> list[PartRead | InputError]:
    """Read all units in this process, one after the other. Other functions read them in parallel."""
    return [read_unit(unit, options) for unit in units]


def read_what_can_be(
    paths: Sequence[PathInput], options: ReadOptions | None = None, read_units: ReadUnits = one_by_one
) -> tuple[list[Run], list[InputError]]:
    """Read the runs of several paths. Return the runs, and errors for all that cannot be used.

    Of a folder only the part that is broken is left out, and what only other adapters know is read beside it.

    Args:
        paths: files, folders, URLs.
        options: how they are read.
        read_units: reads the units of all paths at once, perhaps elsewhere.
    """
    options = options or ReadOptions()
    single = _of_each_file(options)
    left_out: dict[str, None] = {}
    claims = [_attempt(_claims_of, path, options, left_out) for path in paths]
    answers = _read_units(claims, single, read_units)
    broken = [i for i, answer in enumerate(answers) if any(isinstance(run, InputError) for run in answer)]
    beside = [_other_places_at(paths[i], claims[i], options) for i in broken]
    for i, rest in zip(broken, _read_units(beside, single, read_units), strict=True):
        answers[i] += rest
    out: list[Run | InputError] = []
    for path, claim, answer in zip(paths, claims, answers, strict=True):
        runs, errors = runs_and_errors([*answer, *_passed_over(path, claim)])
        selected = _attempt(chosen, runs, path, options)
        out += [selected] if isinstance(selected, InputError) else selected
        out += [InputError(left_out_message(error, runs)) for error in errors]
    out += [InputError(said) for said in left_out]
    return runs_and_errors(out)


def _claims_of(path: PathInput, options: ReadOptions, left_out: dict[str, None]) -> Claims:
    """Return the units to read at a path. Add one message on skipped links to `left_out`. Refuse if there is none."""
    with inside(resolve_path(path), follow=options.follow_links) as place:
        claims = _attempt(_claims, path)
    if isinstance(claims, InputError):
        raise InputError(f"{claims}{_and_links(place)}") if place.left_out else claims
    if place.left_out:
        left_out[links_note(place)] = None
    return claims


def _other_places_at(path: PathInput, claims: Claims | InputError, options: ReadOptions) -> Claims:
    with inside(resolve_path(path), follow=options.follow_links):
        return _other_places(claims)


Claims = list[tuple[Path, list[ReadUnit]]]
"""The units that one adapter has at a place, for each adapter that recognises it."""


def _claims(path: PathInput) -> Claims:
    """Return (place, units) of a path, and of folders linked in it if no harness knows the path. Refuse if none.

    A folder that no harness knows also stands for those that are linked in it.
    """
    where = resolve_path(path)
    own = _attempt(_recognised, where)
    recognised = {where: own}
    if isinstance(own, InputError) or own == [LAST]:
        local = not is_url(where) and exists(where) and where.is_dir() and _may_be_listed(where)
        linked = sorted(filter(_is_linked_folder, where.iterdir())) if local else []
        recognised |= {child: _attempt(_recognised, child) for child in linked}
    claims = [(place, names) for place, names in recognised.items() if not isinstance(names, InputError)]
    if not claims and isinstance(own, InputError):
        raise own
    return [(place, _units(name, place)) for place, names in claims for name in names]


def _other_places(claims: Claims | InputError) -> Claims:
    """Return further (place, units): linked folders, and files that only other adapters recognise."""
    if isinstance(claims, InputError) or not claims or not (folder := claims[0][0]).is_dir():
        return []
    seen, taken = {place for place, _ in claims}, {unit.adapter for _, units in claims for unit in units}
    beside: Claims = []
    for child in sorted(folder.iterdir()):
        linked = _is_linked_folder(child)
        owners = _attempt(_recognised, child) if child not in seen and (linked or child.is_file()) else []
        if not isinstance(owners, InputError):  # else no run at all: a note, a picture
            beside += [(child, _units(name, child)) for name in owners if linked or name not in taken]
    return beside


def _is_linked_folder(child: Path) -> bool:
    return child.is_symlink() and child.is_dir() and is_inside(child)


def _units(name: str, path: Path) -> list[ReadUnit]:
    place = named_place() or str(path)
    return [ReadUnit(name, part, place) for part in _in_parts(load(name)).parts(path)]


def _read_units(
    claims: Sequence[Claims | InputError], options: ReadOptions, read_units: ReadUnits
) -> list[list[Run | InputError]]:
    """Read all claimed units, and return for each path one list in which its runs and errors are mixed."""
    units = [unit for claim in claims if not isinstance(claim, InputError) for _, part in claim for unit in part]
    read = iter(read_units(units, options) if units else ())
    out: list[list[Run | InputError]] = []
    for claim in claims:
        answers: list[Run | InputError] = [claim] if isinstance(claim, InputError) else []
        for path, part in () if isinstance(claim, InputError) else claim:
            if part:
                adapter = _in_parts(load(part[0].adapter))
                answers += _joined(adapter, path, list(islice(read, len(part))), options)
        out.append(answers)
    return out


def _attempt(function: Callable[..., T], *arguments: Any) -> T | InputError:
    try:
        return function(*arguments)
    except InputError as error:
        return error
