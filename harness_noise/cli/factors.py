"""`harness-noise factors RUN… --factor NAME=COLUMN`."""

from __future__ import annotations

from typing import Any

import click

from . import options
from .flags import noted_in_flags


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
    from .. import factors as noise_by_factor

    result = noise_by_factor(runs, options.mapping(factors, "--factor"), **options.keywords(choices))
    options.show(noted_in_flags(result), choices)
