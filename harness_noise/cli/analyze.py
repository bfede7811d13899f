"""`harness-noise analyze RUN…`."""

from __future__ import annotations

from typing import Any

import click

from . import options
from .flags import noted_in_flags


@click.command("analyze")
@options.RUN
@options.REFERENCES
@options.reading
@options.computing
@options.BY
@options.printing
def command(runs: tuple[str, ...], **choices: Any) -> None:
    """The noise of every mean of one or several runs.

    For each task and metric: the mean, its confidence interval, its standard error (SE), and the SE
    it would have with one answer per question (total), with infinitely many (data), and what the
    model's own randomness adds (prediction).
    """
    from .. import analyze

    options.show(noted_in_flags(analyze(runs, **options.keywords(choices))), choices)
