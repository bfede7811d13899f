"""`harness-noise explain A [B] --on FIELD…`."""

from __future__ import annotations

from typing import Any

import click

from . import options
from .flags import noted_in_flags


@click.command("explain")
@options.RUN
@click.option(
    "--on",
    multiple=True,
    required=True,
    metavar="SPEC",
    help="A property of the questions: a field, a.dotted.path, a Jinja template (repeatable).",
)
@click.option(
    "--category", "categories", multiple=True, metavar="SPEC", help="This SPEC's numbers are names of categories."
)
@click.option("--models", metavar="A,B", help="Which models, where the RUNs hold more than one or two.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Coverage of the intervals.")
@options.ADJUST
@options.reading
@options.printing
def command(runs: tuple[str, ...], on: tuple[str, ...], categories: tuple[str, ...], **choices: Any) -> None:
    """What goes with a score or a difference, question by question.

    A regression of the question means of A (or of A − B, paired by question) on fields of the questions:
    numbers as they are, categories against their most frequent value. Standard errors are CR2, clustered
    where the questions are, with degrees of freedom for each coefficient.
    """
    from .. import explain

    result = explain(runs, on=on, categories=categories, **options.keywords(choices))
    options.show(noted_in_flags(result), choices)
