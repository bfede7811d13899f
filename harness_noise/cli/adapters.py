"""`harness-noise adapters`."""

from __future__ import annotations

import click


@click.command("adapters")
def command() -> None:
    """The harnesses and file formats that are understood."""
    from .. import adapters

    for name, reads in adapters().items():
        click.echo(f"{name:10} {reads}")
