"""`harness-noise analyze RUN…`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from . import options
from .flags import noted_in_flags


@options.command("analyze", consumer="analyze", example="harness-noise analyze runs/new --cluster template")
@options.RUN
@options.to_read(options.reading("analyze"), options.REFERENCES)
@options.to_compute(options.computing("analyze"), options.BY)
@options.to_show(options.printing)
def command(runs: tuple[str, ...], **choices: Any) -> None:
    """Estimate the noise of every mean in one or several runs.

    For each task and metric: the mean, its confidence interval, its standard error (SE), the SE that it
    would have with one answer per question (total) and with infinitely many (data), and the share of the
    model's own randomness (prediction).
    """
    from ..analysis.mean import analyze_runs

    reading = options.read_options(choices)
    found = options.read_runs(runs, reading, as_repeats=choices.pop("as_repeats"), some=True)
    by, settings, references = choices.pop("by"), options.settings(choices), choices.pop("references")
    result = analyze_runs(found, settings)
    if by:
        from ..analysis.slices import slices_of_runs

        result = slices_of_runs(found, by, settings).beside(result)
    if references:
        from ..analysis.references import of_runs

        rows, notes = of_runs(found, options.references(references, reading), settings)
        result = replace(result, full_benchmark=rows, notes=(*result.notes, *notes))
    options.show(noted_in_flags(result), choices)
