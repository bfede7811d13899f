"""`harness-noise arena RUN…`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from . import options
from .flags import noted_in_flags


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
    from .. import arena, write_figures, write_html, write_profile, write_tables

    pages, pictures, tables, kind, profile, questions, force, reference = (
        choices.pop(name)
        for name in ("html", "figures", "tables", "tables_format", "profile", "questions", "force", "reference")
    )
    _check_profile(profile, reference, questions=questions, force=force)
    result = noted_in_flags(arena(runs, **options.keywords(choices)))
    options.show(result, choices)
    written: list[Path] = []
    if pages is not None:
        written += write_html(result, pages, command=options.typed())
    if pictures is not None:
        written += write_figures(result, pictures)
    if tables is not None:
        written += write_tables(result, tables, kind)
    if profile is not None:
        written.append(write_profile(result, profile, questions=questions, force=force))
    options.wrote(written, choices)


def _check_profile(profile: Path | None, reference: str | None, *, questions: bool, force: bool) -> None:
    """Refuse to write a profile over a file that is none, before anything is read."""
    if reference is not None:
        raise InputError(
            f"--reference {reference}: --reference names what is read, and an arena reads its RUNs only. To write the "
            f"noise profile use --write-profile {reference}"
        )
    if profile is None and force:
        raise InputError("--force replaces the file of --write-profile FILE: name the FILE")
    if profile is None and questions:
        raise InputError("--questions adds means by question to the profile of --write-profile FILE: name the FILE")
    if profile is not None:
        from ..api.files import check_profile_path

        check_profile_path(profile, force=force)
