"""`harness-noise factors RUN… --factor NAME=COLUMN`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ..errors import InputError
from . import options


@click.command("factors")
@options.RUN
@click.option(
    "--factor",
    "factors",
    multiple=True,
    required=True,
    metavar="NAME=COLUMN",
    help="A source of noise: a column of the table, an argument of the task, or task, model, run (repeatable).",
)
@options.reading
@options.printing
def command(runs: tuple[str, ...], factors: tuple[str, ...], **choices: Any) -> None:
    """How much of the noise comes from the prompt, the seed, the judge.

    All answers of all runs are taken together; the same question in two tasks or runs is one
    question. Ends with the answer to: where would the next thousand answers help most?
    """
    from ..analysis.factors import RUN_LEVEL, factors_of_runs

    named = options.mapping(factors, "--factor")
    columns = tuple(dict.fromkeys(column for column in named.values() if column not in RUN_LEVEL))
    if choices.pop("as_repeats"):
        raise InputError("--as-repeats hides which run an answer is of: name it as a factor, --factor run=run")
    reading = replace(options.read_options(choices, columns), apart=True)  # every answer counts
    options.settings(choices).check("factors")
    found = options.read_runs(runs, reading, some=True)
    for run in found:
        if not choices["quiet"]:
            options.hints(run.notes)
    options.show(factors_of_runs(found, named), choices)
