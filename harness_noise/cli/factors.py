"""`harness-noise factors RUN… --factor NAME=COLUMN`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from . import options


@options.command(
    "factors",
    consumer="factors",
    example="harness-noise factors runs --factor prompt=task --factor seed",
    old={"--as-repeats": "it hides which run an answer is of; name it as a factor, --factor run"},
)
@options.RUN
@options.to_read(
    click.option(
        "--factor",
        "factors",
        multiple=True,
        required=True,
        metavar="NAME[=COLUMN]",
        help="A source of noise: a column of the table, an argument of the task, or task, model, run (repeatable). "
        "One word is both its name and its column.",
    ),
    options.reading("factors", without=("as_repeats",)),
)
@options.to_show(options.printing)
def command(runs: tuple[str, ...], factors: tuple[str, ...], **choices: Any) -> None:
    """Split the noise by source: the prompt, the seed, the judge.

    All answers of all runs are taken together; a question that two tasks or runs share is one question.
    The last line says where the next thousand answers would help most.
    """
    from ..analysis.factors import RUN_LEVEL, factors_of_runs

    named = options.mapping(factors, "--factor", one_word=True)
    columns = tuple(dict.fromkeys(column for column in named.values() if column not in RUN_LEVEL))
    reading = replace(options.read_options(choices, columns), apart=True)  # every answer counts
    options.settings(choices).check("factors")
    found = options.read_runs(runs, reading, some=True)
    for run in found:
        if not choices["quiet"]:
            options.hints(run.notes)
    options.show(factors_of_runs(found, named), choices)
