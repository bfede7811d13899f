"""`harness-noise analyze RUN…`."""

from __future__ import annotations

from typing import Any

import click

from . import options


@click.command("analyze")
@options.RUN
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
    from ..analysis.mean import analyze_runs

    reading = options.read_options(choices)
    found = options.read_runs(runs, reading, as_repeats=choices.pop("as_repeats"), some=True)
    by, settings = choices.pop("by"), options.settings(choices)
    result = analyze_runs(found, settings)
    if by:
        from ..analysis.slices import slices_of_runs

        result = slices_of_runs(found, by, settings).beside(result)
    options.show(result, choices)
