"""`harness-noise arena RUN…`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...cli import options
from ...cli.flags import in_flags
from ...errors import InputError


@options.command(
    "arena",
    "harness-noise arena runs --html report",
    shown="--against --cluster --task --metric --top --needed --html --format -o --details",
    old={
        "--budget": "write --needed",
        "--questions": "write --with-questions (--questions is the number of questions that compare lists)",
        "--profile": "an arena reads its RUNs only. To write the noise profile use --write-profile FILE",
    },
)
@options.RUN
@options.to_read(
    *options.reading("arena"),
    options.switch("--strict", "Stop at a run that cannot be read, instead of leaving it out."),
    options.value("--jobs", "N|ADDRESS", "Read with N processes (1), or on a Dask cluster.", options.JOBS),
)
@options.to_compute(
    *options.computing(
        "arena",
        interval="Interval of a model's mean.",
        test="Test of every pair. wild is the wild cluster bootstrap, for few or very unequal clusters.",
    ),
    options.value("--top", "K", "Test which models could be among the K best.", click.IntRange(1)),
    options.BY,
    options.value(
        "--frontier",
        "MEASURE",
        "Test which models are on the frontier of score and a measure, such as cost: no other is as good and as "
        "cheap, and better in one of the two.",
    ),
    options.value(
        "--over",
        "NAME",
        "The runs are checkpoints: compare each with the first and the one before. step reads step_1000 or "
        "checkpoint-500 off the names. Else name a word of the names, or a field.",
    ),
    options.switch(
        "--needed",
        "Estimate how many more questions or answers would show which models are worse than the best.",
    ),
    options.switch("--select", "Estimate how much of the best model's lead is selection."),
    *options.of_extras("arena"),
)
@options.to_show(
    options.value("--against", "MODEL", "Show the differences from this model."),
    options.target("--html", "DIR", "Write a report of HTML pages."),
    options.target("--figures", "DIR", "Write each figure as an SVG file."),
    options.target(
        "--tables",
        "DIR",
        "Write all tables as CSV: models, pairs, benchmarks and questions. --by adds slices, --over checkpoints.",
    ),
    options.target("--write-profile", "FILE", "Write the benchmarks' noise profile, which --profile reads."),
    options.switch("--with-questions", "With --write-profile: add every model's score on each question."),
    options.switch("--force", "With --write-profile: replace FILE even if it is not a profile."),
    *options.writing("arena"),
    *options.PRINTING,
)
def command(runs: tuple[str, ...], **choices: Any) -> None:
    """Compare every pair of many runs and measure the noise of each benchmark.

    RUN may be a folder of runs, also of several harnesses. A run that cannot be read is left out with a
    warning.
    """
    from ... import arena, write_figures, write_html, write_profile, write_tables
    from .api import check_profile_path

    pages, pictures, tables, profile, with_questions, force = (
        choices.pop(name) for name in ("html", "figures", "tables", "write_profile", "with_questions", "force")
    )
    if profile is not None:  # before anything is read
        check_profile_path(profile, force=force)
    elif force or with_questions:
        flag = "--force" if force else "--with-questions"
        raise InputError(f"{flag} is about the profile that --write-profile FILE writes: name the FILE")
    result = options.answer(arena, choices, runs)
    written: list[Path] = []
    if pages is not None:
        written += write_html(result, pages, command=options.typed(), words=in_flags)
    if pictures is not None:
        written += write_figures(result, pictures)
    if tables is not None:
        written += write_tables(result, tables)
    if profile is not None:
        written.append(write_profile(result, profile, with_questions=with_questions, force=force))
    options.wrote(written, choices)
