"""`harness-noise adapters`."""

from __future__ import annotations

import click

from . import options


@options.command("adapters", example="harness-noise adapters")
def command() -> None:
    """List the harnesses and file formats that can be read."""
    from ..io import registry as adapters

    for name in adapters.names():
        kind = type(adapters.load(name))
        summary = (kind.__doc__ or "").strip().splitlines()
        click.echo(f"{name:10} {summary[0] if summary else ''}")
