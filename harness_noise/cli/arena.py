"""`harness-noise arena RUN…`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from . import options
from .flags import in_flags


@options.command(
    "arena",
    example="harness-noise arena runs --html report",
    old={
        "--baseline": "--baseline names a run; here a model is named, with --baseline-model",
        "--budget": "write --needed; --budget N is the number of questions that gate asks about",
        "--questions": "write --with-questions; --questions is the number of questions that compare lists",
        "--reference": "it names what is read, and an arena reads its RUNs only; to write the noise profile use "
        "--write-profile FILE",
    },
)
@options.RUN
@options.to_read(
    options.reading("arena"),
    *options.LABELS,
    click.option("--strict", is_flag=True, help="Stop at a run that cannot be read, in place of leaving it out."),
    click.option("--jobs", type=click.IntRange(1), metavar="N", help="Read with N processes of this machine (1)."),
    click.option("--dask", metavar="ADDRESS", help="Read on the workers of the Dask cluster with this scheduler."),
)
@options.to_compute(
    options.computing(
        "arena",
        interval="Interval of a model's mean.",
        test="Test of every pair. wild is the wild cluster bootstrap, for few or very unequal clusters.",
    ),
    click.option("--top", type=click.IntRange(1), metavar="K", help="Test which models could be among the K best."),
    options.BY,
    click.option(
        "--frontier",
        metavar="MEASURE",
        help="Test which models are on the frontier of score and a measure, such as cost: no other is as good and as "
        "cheap, and better in one of both.",
    ),
    click.option(
        "--over",
        metavar="NAME",
        help="The runs are checkpoints: compare each with the first and the one before. step reads step_1000 or "
        "checkpoint-500 off the names; else a word of the names, or a field.",
    ),
    click.option(
        "--needed",
        is_flag=True,
        help="Estimate how many more questions or answers would show which models are worse than the best.",
    ),
    click.option("--select", is_flag=True, help="Estimate how much of the best model's lead is selection."),
)
@options.to_show(
    click.option("--baseline-model", metavar="MODEL", help="Show the differences from this model."),
    click.option("--html", type=options.Output(file_okay=False), metavar="DIR", help="Write a report of HTML pages."),
    click.option(
        "--figures", type=options.Output(file_okay=False), metavar="DIR", help="Write each figure as an SVG file."
    ),
    click.option("--tables", type=options.Output(file_okay=False), metavar="DIR", help="Write all tables."),
    click.option(
        "--tables-format",
        type=click.Choice(["csv", "json", "parquet"]),
        default="csv",
        show_default=True,
        help="Format of --tables: one file each for models, pairs, benchmarks and questions; --by adds slices, "
        "--over checkpoints.",
    ),
    click.option(
        "--write-profile",
        type=options.Output(dir_okay=False),
        metavar="FILE",
        help="Write the benchmarks' noise profile, which compare and plan read with --reference.",
    ),
    click.option(
        "--with-questions", is_flag=True, help="With --write-profile: add every model's score on each question."
    ),
    click.option("--force", is_flag=True, help="With --write-profile: replace FILE even if it is not a profile."),
    options.printing,
)
def command(runs: tuple[str, ...], **choices: Any) -> None:
    """Compare every pair of many runs and measure the noise of each benchmark.

    RUN may be a folder of runs, also of several harnesses. A run that cannot be read is left out with a
    warning.
    """
    from .. import arena, write_figures, write_html, write_profile, write_tables

    pages, pictures, tables, kind, profile, with_questions, force = (
        choices.pop(name)
        for name in ("html", "figures", "tables", "tables_format", "write_profile", "with_questions", "force")
    )
    _check_profile(profile, with_questions=with_questions, force=force)
    result = options.answer(arena, choices, runs)
    options.show(result, choices)
    written: list[Path] = []
    if pages is not None:
        written += write_html(result, pages, command=options.typed(), words=in_flags)
    if pictures is not None:
        written += write_figures(result, pictures)
    if tables is not None:
        written += write_tables(result, tables, kind)
    if profile is not None:
        written.append(write_profile(result, profile, with_questions=with_questions, force=force))
    options.wrote(written, choices)


def _check_profile(profile: Path | None, *, with_questions: bool, force: bool) -> None:
    """Refuse to write a profile over a file that is none, before anything is read."""
    if profile is not None:
        from ..api.files import check_profile_path

        check_profile_path(profile, force=force)
    elif force or with_questions:
        flag = "--force" if force else "--with-questions"
        raise InputError(f"{flag} is about the profile that --write-profile FILE writes: name the FILE")
