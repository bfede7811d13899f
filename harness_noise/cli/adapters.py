"""`harness-noise adapters`."""

from __future__ import annotations

import click

from . import options


@options.command("adapters", example="harness-noise adapters")
def command() -> None:
    """List the harnesses and file formats that can be read."""
    from .. import adapters

    for name, reads in adapters().items():
        click.echo(f"{name:10} {reads}")
