"""`harness-noise arena RUN…`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from . import options
from .flags import noted_in_flags

if TYPE_CHECKING:
    from ..data.scores import ReadOptions, Run


@click.command("arena")
@options.RUN
@click.option("--baseline", metavar="MODEL", help="Show the differences to this model.")
@click.option("--top", type=click.IntRange(1), metavar="K", help="Who may be among the K best.")
@click.option("--html", type=options.Output(file_okay=False), metavar="DIR", help="Write a report.")
@click.option("--figures", type=options.Output(file_okay=False), metavar="DIR", help="Write each figure as an SVG.")
@click.option(
    "--write-profile",
    "profile",
    type=options.Output(dir_okay=False),
    metavar="FILE",
    help="Write the benchmarks' noise profile, which compare and plan read with --reference.",
)
@click.option("--questions", is_flag=True, help="With --write-profile: also what every model scored on each question.")
@click.option("--force", is_flag=True, help="With --write-profile: replace FILE even if it is not a profile.")
@click.option("--reference", hidden=True)
@click.option(
    "--budget",
    is_flag=True,
    help="How many more questions or answers would show who is worse than the best.",
)
@click.option("--tables", type=options.Output(file_okay=False), metavar="DIR", help="Write all tables.")
@click.option(
    "--tables-format",
    type=click.Choice(["csv", "json", "parquet"]),
    default="csv",
    show_default=True,
    help="What --tables writes: models, pairs, benchmarks, questions and, with --by, slices, one file each.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Read with N processes of this machine (default 1).")
@click.option("--dask", metavar="ADDRESS", help="Read on the workers of the Dask cluster with this scheduler.")
@click.option("--strict", is_flag=True, help="A run that cannot be read ends it all, instead of being left out.")
@options.reading
@options.computing
@click.option(
    "--test",
    type=click.Choice(["t", "sign", "wild"]),
    default="t",
    show_default=True,
    help="Of every pair; wild: the wild cluster bootstrap, for few or very unequal clusters.",
)
@options.ADJUST
@options.BY
@options.printing
def command(runs: tuple[str, ...], **choices: Any) -> None:
    """Every pair of many runs, and the noise of each benchmark.

    RUN may be a folder of runs, of several harnesses. A run that cannot be read is left out with a
    warning.
    """
    jobs, dask = choices.pop("jobs"), choices.pop("dask")
    if dask is not None and jobs is not None:
        raise click.UsageError("--jobs is for processes of this machine and --dask for a cluster: give one of them.")

    baseline, pages, pictures, profile, strict = (
        choices.pop(name) for name in ("baseline", "html", "figures", "profile", "strict")
    )
    with_questions, budget = choices.pop("questions"), choices.pop("budget")
    _check_profile(profile, choices.pop("reference"), force=choices.pop("force"))
    top = choices.pop("top")
    if with_questions and profile is None:
        raise InputError("--questions adds means by question to the profile of --write-profile FILE: name the FILE")
    tables, kind = choices.pop("tables"), choices.pop("tables_format")
    by = choices["by"]
    reading, joined = options.read_options(choices, strict=strict), choices.pop("as_repeats")
    found = _read(runs, reading, jobs or 1, dask)
    from ..leaderboard.build import arena

    if joined:
        from ..analysis.repeats import as_repeats

        found = as_repeats(found)
    result = noted_in_flags(arena(found, options.settings(choices), baseline=baseline, top=top, by=by))
    if budget:
        from ..leaderboard.budget import with_budget

        result = with_budget(result)
    options.show(result, choices)
    written: list[Path] = []
    if pages is not None:
        from ..report import arena_html

        written += arena_html.write(result, pages, options.typed())
    if pictures is not None:
        from ..report import figures

        written += figures.save(result, pictures)
    if tables is not None:
        from ..report.text import write_tables

        written += write_tables(result, tables, kind)
    if profile is not None:
        from ..leaderboard import profiles as reference

        reference.write(result, profile, questions=with_questions)
        written.append(profile)
    options.wrote(written, choices)


def _check_profile(profile: Path | None, reference: str | None, *, force: bool) -> None:
    """Refuse to write a profile over a file that is none, before anything is read."""
    if reference is not None:
        raise InputError(
            f"--reference {reference}: --reference names what is read, and an arena reads its RUNs only. To write the "
            f"noise profile use --write-profile {reference}"
        )
    if force and profile is None:
        raise InputError("--force replaces the file of --write-profile FILE: name the FILE")
    if profile is None or force or not profile.exists():
        return
    from ..leaderboard.question_means import is_profile

    if not is_profile(profile):
        raise InputError(
            f"--write-profile {profile}: the file is there and is not a noise profile, so it is left as it is; "
            "write to another file, or replace it with --force"
        )


def _read(paths: tuple[str, ...], reading: ReadOptions, jobs: int, dask: str | None) -> list[Run]:
    from ..io import registry as adapters
    from ..io import workers

    read_units = partial(
        workers.read_units,
        jobs=jobs,
        dask=dask,
        watch=lambda answers, total: options.progress(answers, "reading", total),
        say=lambda text: options.hints([text]),
    )
    found, errors = adapters.read_what_can_be(paths, reading, read_units)
    if errors and reading.strict:
        raise errors[0]
    options.hints(f"left out: {error}" for error in errors)
    return found
