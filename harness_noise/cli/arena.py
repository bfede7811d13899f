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


@options.command(
    "arena",
    consumer="arena",
    example="harness-noise arena runs --html report",
    old={
        "--baseline": "--baseline names a run; here a model is named, with --baseline-model",
        "--questions": "write --with-questions; --questions is the number of questions that compare lists",
        "--reference": "it names what is read, and an arena reads its RUNs only; to write the noise profile use "
        "--write-profile FILE",
    },
)
@options.RUN
@options.to_read(
    options.reading("arena"),
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
        "--budget",
        is_flag=True,
        help="Estimate how many more questions or answers would show which models are worse than the best.",
    ),
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
        help="Format of --tables: one file each for models, pairs, benchmarks, questions and, with --by, slices.",
    ),
    click.option(
        "--write-profile",
        "profile",
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
    jobs, dask = choices.pop("jobs"), choices.pop("dask")
    if dask is not None and jobs is not None:
        raise click.UsageError("--jobs is for processes of this machine and --dask for a cluster: give one of them.")

    baseline, pages, pictures, profile, strict = (
        choices.pop(name) for name in ("baseline_model", "html", "figures", "profile", "strict")
    )
    with_questions, budget = choices.pop("with_questions"), choices.pop("budget")
    _check_profile(profile, force=choices.pop("force"))
    top = choices.pop("top")
    if with_questions and profile is None:
        raise InputError(
            "--with-questions adds means by question to the profile of --write-profile FILE: name the FILE"
        )
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
        from ..report import arena_tables as arena_export

        written += arena_export.write_tables(result, tables, kind)
    if profile is not None:
        from ..leaderboard import profiles as reference

        reference.write(result, profile, questions=with_questions)
        written.append(profile)
    options.wrote(written, choices)


def _check_profile(profile: Path | None, *, force: bool) -> None:
    """Refuse to write a profile over a file that is none, before anything is read."""
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
