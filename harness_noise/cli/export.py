"""`harness-noise export RUN -o DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ..io.paths import is_url
from . import options
from .flags import noted_in_flags

if TYPE_CHECKING:
    from ..data.scores import Run
    from ..results.rows import Analysis


@options.command(
    "export",
    consumer="analyze",
    example="harness-noise export runs/new -o runs/new-with-noise",
    old={
        "--as-repeats": "it joins several runs, which have no common file; export them one by one",
        **dict.fromkeys(("--task", "--metric", "--scorer"), "export writes whole runs; leave it out"),
    },
)
@options.RUN
@options.to_read(options.reading("analyze", without=("tasks", "metrics", "scorers", "as_repeats")))
@options.to_compute(options.computing("analyze"))
@options.to_show(
    click.option("-o", "output", type=options.Output(file_okay=False), metavar="DIR", help="The folder to write to."),
    click.option("--in-place", is_flag=True, help="Replace the run's own files (atomically)."),
    options.QUIET,
    options.DEBUG,
)
def command(runs: tuple[str, ...], output: Path | None, in_place: bool, **choices: Any) -> None:
    """Rewrite result files with error bars; native values stay unchanged.

    The files keep their names, and exporting twice changes nothing.
    """
    from ..analysis.mean import analyze_run
    from ..data.native_values import checked
    from ..io import registry as adapters

    if (output is None) == (not in_place):
        raise InputError("say where to write: -o DIR for another folder, or --in-place")
    quiet = choices.pop("quiet")
    reading, chosen = options.read_options(choices), options.settings(choices)

    analyzed: list[Path] = []

    def analyze(run: Run) -> Analysis:
        result = noted_in_flags(analyze_run(checked(run), chosen))
        if not quiet:
            options.hints(result.notes)
            if not any({"skipped_metric", "mean_mismatch"}.isdisjoint(item.diagnostics) for item in result.estimates):
                options.hints([f"{run.name}: nothing to add, so it is not written"])
            else:
                analyzed.append(Path(run.name))
        return result

    for path in options.progress(runs, "exporting", len(runs)):
        for adapter, where in adapters.find(path):
            if is_url(where):
                raise InputError(f"{path}: export rewrites files and is for local ones: copy the run first")
            folder = output if output is not None else (where if where.is_dir() else where.parent)
            analyzed.clear()
            written = adapter.write(where, folder, analyze, reading)
            for file in written:
                click.echo(file)
            names = {file.name for file in written}
            unchanged = [run for run in analyzed if run.name not in names]
            options.hints(f"{run}: nothing to add beside its own values, so it is not changed" for run in unchanged)
