"""`harness-noise export RUN -o DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import options


@click.command("export")
@options.RUN
@click.option("-o", "output", type=options.Output(file_okay=False), metavar="DIR", help="The folder to write to.")
@click.option("--in-place", is_flag=True, help="Replace the run's own files (atomically).")
@options.reading
@options.computing
@click.option("-q", "--quiet", is_flag=True, help="No hints on stderr.")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def command(runs: tuple[str, ...], output: Path | None, in_place: bool, **choices: Any) -> None:
    """Write a run again, native as it was, with its noise.

    The files keep their names, and every value that the harness wrote; running it twice changes
    nothing.
    """
    from .. import export

    asked = options.keywords(choices)
    for path in options.progress(runs, "exporting", len(runs)):
        result = export(path, output, in_place=in_place, **asked)
        for file in result.written:
            click.echo(file)
        if not choices["quiet"]:
            options.hints(result.notes)
