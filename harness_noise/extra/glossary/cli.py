"""`harness-noise what TERM RUN…`."""

from __future__ import annotations

from typing import Any

import click

from ...cli import options
from ...cli.flags import in_flags


@options.command("what", "harness-noise what deff")
@click.argument("words", metavar="[TERM] [RUN...]", nargs=-1)
@options.to_read(*options.reading("analyze", "tasks", "metrics", "cluster", "columns"))
@options.to_compute(options.LEVEL)
@options.to_show(options.QUIET, options.DEBUG)
def command(words: tuple[str, ...], **choices: Any) -> None:
    """Say what a number means, and what it says of your runs.

    TERM is a word of the glossary, a column (deff), a field of the JSON, or the code of a diagnostic. With one RUN its
    numbers are told, with two those of the difference. Without TERM: all terms.
    """
    from .api import terms, what

    if not words:
        known = terms()
        width = max(map(len, known))
        for name, says in known.items():
            click.echo(f"{name:{width}}  {says}")
        return
    term, runs = _split(words)
    click.echo(in_flags(str(what(term, *runs, **options.keywords(choices)))))


def _split(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Split command-line words into a glossary term (one word or more) and the runs that follow."""
    from .terms import find

    for n in range(len(words), 0, -1):
        if find(" ".join(words[:n])) is not None:
            return " ".join(words[:n]), options.expanded(words[n:])
    return words[0], options.expanded(words[1:])
