"""`harness-noise adapters`."""

from __future__ import annotations

import click


@click.command("adapters")
def command() -> None:
    """The harnesses and file formats that are understood."""
    from ..io import registry as adapters

    for name in adapters.names():
        kind = type(adapters.load(name))
        summary = (kind.__doc__ or "").strip().splitlines()
        click.echo(f"{name:10} {summary[0] if summary else ''}")
