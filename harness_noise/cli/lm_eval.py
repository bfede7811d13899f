"""`harness-noise lm-eval …`: lm-eval's own command line, with our flag."""

from __future__ import annotations

import click


@click.command(
    "lm-eval",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run lm-eval; --noise adds error bars to its results.

    Everything is lm-eval's own but the options that begin with --noise:
    `harness-noise lm-eval run --help` lists them.
    """
    from ..io.registry import load

    code: int = load("lm-eval").cli(list(arguments))  # type: ignore[attr-defined]
    return code
