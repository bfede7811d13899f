"""`harness-noise analyze RUN…`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from . import options
from .flags import noted_in_flags


@click.command("analyze")
@options.RUN
@options.REFERENCES
@options.reading
@options.computing
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
    settings, references = options.settings(choices), options.references(choices.pop("references"), reading)
    result = analyze_runs(found, settings)
    if references:
        from ..analysis.references import of_runs

        rows, notes = of_runs(found, references, settings)
        result = replace(result, full_benchmark=rows, notes=(*result.notes, *notes))
    options.show(noted_in_flags(result), choices)
