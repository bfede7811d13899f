"""The public functions `arena`, `profiles` and `write_profile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.keywords import Choices, Request
from ...data.measures import HIGHER, SCORE
from ...data.scores import Run
from ...errors import InputError, NotThereError, check_count, check_kind
from ...io import registry
from ...io.paths import is_path
from ...io.sources import Source, Sources, all_of, names, numbered, numbers_of, runs_of
from ...settings import Settings
from . import workers
from .results import Arena

if TYPE_CHECKING:
    from typing import Unpack

    from .profiles import NamedProfile


def arena(
    *runs: Sources,
    against: str | None = None,
    top: int | None = None,
    by: Sequence[str] = (),
    frontier: str | None = None,
    over: str | None = None,
    needed: bool = False,
    select: bool = False,
    jobs: int | str = 1,
    strict: bool = False,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Arena:
    """Compare every pair of many runs on each benchmark. Return models, pairs and each benchmark's noise as an `Arena`.

    Parameters
    ----------
    *runs
        A path that holds several runs; or paths, Runs or DataFrames, one after the other, in a list, or under names of
        yours, ``{"new": frame, "old": other}``.
    against
        A model that becomes B in all its pairs.
    top
        K, to test which models could be among the K best.
    by
        Properties of the questions, as a cluster's SPEC: also the models' means in every slice; ``"auto"``: every
        field.
    frontier
        A measure, such as ``"cost"``: also test which models are on the frontier of score and measure.
    over
        The runs are checkpoints: also compare each with the first and with the one before, in the order of the
        numbers behind this word in their names, or of this field, which has one number in each run. ``"step"`` reads
        ``step_1000``, ``checkpoint-500`` and ``global_step2000``.
    needed
        Also compute how many more questions or answers would show which models are worse than the best.
    select
        Also compute how much of the best model's lead comes from its having been chosen as the best of these.
    jobs
        Processes of this machine that read the files, or the address of the scheduler of a Dask cluster whose workers
        read them.
    strict
        A path that cannot be used is an error. Otherwise `say` is told that it is left out.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `se`, `interval`, `test`, `adjust`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Arena
        Models, pairs, benchmarks and questions; M models make M(M − 1)/2 pairs for each benchmark. Means, differences
        and standard errors are on the metric's own scale.

    Raises
    ------
    InputError
        Fewer than two runs that can be read, or nothing that two of them share; a model, measure, cluster or property
        that is not there; a setting out of range, or that pairs of many models do not have (a bootstrap or permutation
        test, `unpaired`, runs as repeats); `over` without steps in names and fields.

    References
    ----------
    Wang (2025), arXiv:2512.21326, §4; Mogstad, Romano, Shaikh & Wilhelm (2024) for the rank sets; Chen et al. (2021)
    and Yao et al. (2024) for pass@k and pass^k.
    """
    from .build import arena as compute
    from .ranks import with_budget, with_frontier, with_selection

    by = names(by)
    check_kind("`frontier`", frontier, str, type(None))
    if frontier is not None:
        choices["measures"] = tuple(dict.fromkeys((*names(choices.get("measures") or ()), SCORE, frontier)))
    sources = all_of(runs)
    request = Request.of("arena", settings, choices, {"by": by}, sources=sources, fields=by, strict=strict)
    request.check_measures()
    check_count("top", top)
    _check_jobs(jobs)
    read_runs = request.prepared(request.joined(_read_many(sources, request, jobs, over, frontier)))
    result = compute(read_runs, request.settings, baseline=against, top=top, by=by, over=over)
    if frontier is not None:
        result = with_frontier(result, frontier.removesuffix(HIGHER), request.settings.level)
    result = with_selection(result, request.settings.seed) if select else result
    return with_budget(result) if needed else result


def _check_jobs(jobs: int | str) -> None:
    """Refuse a `jobs` that is neither a number of processes nor a scheduler's address (host:port)."""
    check_kind("`jobs`", jobs, Integral, str)
    if not isinstance(jobs, str):
        check_count("jobs", jobs)
    elif ":" not in jobs:
        raise InputError(
            f"`jobs` {jobs} is neither a number of processes nor the address of a Dask scheduler, such as "
            "tcp://10.0.0.1:8786"
        )


def _without_measure(error: InputError, frontier: str | None) -> InputError:
    """Return an error for a run without the measure of `frontier` in terms of it. Any other error as it is."""
    if not isinstance(error, NotThereError) or error.option != "measures" or frontier not in error.unknown:
        return error
    return NotThereError(error.runs, "frontier", [str(frontier)], error.have, error.where, error.left_out)


def _read_many(
    sources: Sequence[Source], request: Request, jobs: int | str, over: str | None = None, frontier: str | None = None
) -> list[Run]:
    """Return all sources' runs in order, files read in parallel. Tell `request.say` of unusable ones, refuse if strict.

    The files by all workers at once, without those that cannot be used.

    What is read now has the field `over` where it can; runs that were read before may have it.
    """
    options = request.options
    along = options if over is None else replace(options, fields=(*options.fields, over), over=over)

    def watch(answers: Any, total: int) -> Any:
        return request.watched(answers, "reading", total)

    read_units = partial(workers.read_units, jobs=jobs, say=request.say, watch=watch)
    out: list[Run] = []
    told = numbers_of(sources) if not request.as_repeats else [0] * len(sources)
    for files, group in groupby(zip(sources, told, strict=True), key=lambda each: is_path(each[0])):
        several = list(group)
        places: list[Any] = [source for source, _ in several]
        if not files:
            for source, number in several:
                found = runs_of(source, options if isinstance(source, Run) else along)
                out += [numbered(run, number) for run in found] if number else found
            continue
        read_runs, errors = registry.read_what_can_be(places, along, read_units)
        errors = [_without_measure(error, frontier) for error in errors]
        if errors and options.strict:
            raise errors[0]
        for error in errors:
            request.say(f"left out: {error}")
        out += read_runs
    return out


def profiles(name: str | Path | None = None) -> tuple[NamedProfile, ...]:
    """Return the noise profiles of a benchmark or file, or all in this package. `compare` takes them as `profile`.

    Parameters
    ----------
    name
        Of a benchmark whose noise comes with this package, or a file that `write_profile` wrote. None: all benchmarks
        that come with this package.

    Returns
    -------
    tuple of NamedProfile
        Each profile with its name and, of those that come with this package, its source.

    Raises
    ------
    InputError
        No such profile.
    """
    from . import profiles

    return tuple(noise for each in (profiles.names() if name is None else [name]) for noise in profiles.named(each))


def write_profile(result: Arena, path: str | Path, *, with_questions: bool = False, force: bool = False) -> Path:
    """Write an arena's noise profile, which `compare` takes as `profile`. Return its path. Replace only a profile.

    Parameters
    ----------
    result
        Of `arena`.
    path
        The file. One that is there and is no noise profile is left as it is.
    with_questions
        Also what every model scored on each question.
    force
        Replace any file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        No benchmark has close models, or the file must not be replaced.
    """
    from . import profiles

    check_kind("write_profile", result, Arena)
    check_profile_path(path, force=force)
    profiles.write(result, path, questions=with_questions)
    return Path(path)


def check_profile_path(path: str | Path, *, force: bool = False) -> None:
    """Refuse to overwrite an existing file that is not a noise profile, unless `force`."""
    from .profiles import is_profile

    if not force and Path(path).exists() and not is_profile(path):
        raise InputError(
            f"`write_profile` {path}: the file is there and is not a noise profile, so it is left as it is. Write to "
            "another file, or replace it with `force=True`"
        )
