"""`harness-noise demo`: compare two small runs that come with this package. It needs no harness."""

from __future__ import annotations

import os
import shlex
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import click

from ...cli import options

RUNS = "extra/demo/runs"
"""Folder of `harness_noise_adapters` with what the real harnesses wrote (its README says how)."""


@options.command("demo", "harness-noise demo -o demo")
@options.target("-o out", "DIR", "The folder to write to.", default=Path("harness-noise-demo"))
@options.DEBUG
def command(out: Path, debug: bool) -> None:
    """Compare two small runs that come with this package, and write a page.

    The models are simulated: they answer word problems by chance. The files are those of the real lm-eval and the
    real Inspect, and are copied to DIR, where you can try the other commands on them.
    """
    cli = click.get_current_context().find_root().command
    with as_file(files("harness_noise_adapters") / RUNS) as runs:
        shutil.copytree(runs, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    click.echo(f"The models in this demo are simulated. The harnesses' files, in {out}, and the statistics are real.\n")
    pages = out / "compare.html"
    type_command(cli, "compare", *(out / "lm-eval" / model for model in ("sim-a", "sim-e")), "--html", pages)
    click.echo()
    type_command(cli, "compare", *(out / "inspect" / f"{model}.eval" for model in ("sim-a", "sim-e")), "-q")
    if "plan" not in getattr(cli, "commands", ()):
        click.echo(f"\nOpen {pages} in a browser.")
        return
    click.echo(f"\nOpen {pages} in a browser. How many questions would show a difference of 5 points?\n")
    type_command(
        cli, "plan", "--effect", "5pt", "--from", *(out / "lm-eval" / model for model in ("sim-a", "sim-e")), "-q"
    )


def typed(arguments: list[str]) -> str:
    """Return a command line as a user would type it, with "$ " in front."""
    return f"$ {shlex.join(arguments)}"


def type_command(cli: click.Command, *words: object) -> None:
    """Print one of this package's commands with relative paths, and run it."""
    here = Path.cwd()
    local = (os.path.relpath(word) if isinstance(word, Path) and word.is_relative_to(here) else word for word in words)
    arguments = tuple(map(str, local))
    click.echo(typed(["harness-noise", *arguments]))
    cli.main(arguments, standalone_mode=False, obj=arguments)
