"""`python -m harness_noise.extra.demo -o DIR` (`make demo`): simulated models through the real harnesses."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from harness_noise_adapters.extra.demo import in_inspect, in_lm_eval
from harness_noise_adapters.extra.demo.word_problems import ENOUGH, MODELS, PAIR

from ...cli import options
from ...cli.commands import cli
from ...errors import InputError
from .cli import type_command, typed


@options.command("demo", "python -m harness_noise.extra.demo -o demo-out")
@options.target("-o out", "DIR", "The folder to write to.", required=True)
@options.DEBUG
def command(out: Path, debug: bool) -> None:
    """Run simulated models through the real harnesses, end to end.

    The models are simulated: they answer word problems by chance, each problem with a probability of
    its own. Everything else is real: the harnesses, their files, and the noise found in them.
    """
    click.echo("The models in this demo are simulated. The harnesses, the files and the statistics are real.")
    harnesses: list[Any] = [harness for harness in (in_lm_eval, in_inspect) if harness.installed()]
    if not harnesses:
        raise InputError("the demo needs a harness: pip install 'harness-noise[lm-eval,inspect]'")
    out.mkdir(parents=True, exist_ok=True)
    start, log_file = time.monotonic(), out / "harness.log"
    with log_file.open("w+", encoding="utf-8") as log:
        for harness in harnesses:
            _two_models(harness, out, log)
        _eight_models(harnesses[0], out, log)
        if in_lm_eval in harnesses:
            _stopped_early(out, log)
    click.echo(f"\nIt took {time.monotonic() - start:.0f} s. What else the harnesses said is in {log_file}.")
    click.echo(f"Open {out / 'arena' / 'index.html'} in a browser.")


def _two_models(harness: Any, out: Path, log: TextIO) -> None:
    """Run two simulated models through a harness, compare them and export the result, as a user would."""
    _title(f"{harness.NAME}: two models, 20 templates × 10 word problems, K = 5 answers each, noise on")
    with _harness(log) as show:
        folders = harness.run_models(PAIR, out, show)
    _title(f"{harness.NAME}: is A better than B?")
    type_command(cli, "compare", *folders, "--questions", 5, "--html", out / f"compare-{harness.NAME}.html")
    click.echo()
    type_command(cli, "export", folders[0], "-o", out / f"export-{harness.NAME}")


def _eight_models(harness: Any, out: Path, log: TextIO) -> None:
    """Run six more simulated models silently, and show the arena of all eight."""
    _title(f"{harness.NAME}: all pairs of eight models")
    for model in (each for each in MODELS if each not in PAIR):
        click.echo(f"{model.name} answers")
        with _harness(log, aloud=False):
            folder = harness.run_models([model], out, lambda _: None)[0].parent
    type_command(cli, "arena", folder, "--html", out / "arena", "--format", "sentence")


def _stopped_early(out: Path, log: TextIO) -> None:
    """Run a comparison that stops early, and show its verdict next to that of the complete run."""
    from ... import compare, read

    new, old = ENOUGH
    whole, against = (out / in_lm_eval.NAME / model.name for model in ENOUGH)
    _title(f"{in_lm_eval.NAME}: a third comparison, {new.name} (A) against {old.name} (B), stops when it is decided")
    with _harness(log) as show:
        folder = in_lm_eval.run(new, out, show, against)
    (looks,) = read(folder)[0].stops
    said = f"{looks['decision']}, after {looks['n_asked']} of {looks['n_total']} questions"
    if whole.exists():
        (row,) = compare(whole, against).rows
        same = "the same decision" if row.verdict == looks["decision"] else f"all questions say: {row.verdict}. This"
        share = looks["n_answers"] / looks["n_answers_total"]
        said += f": {same} with {share:.0%} of the answers"
    click.echo(f"\n{said}.")


@contextlib.contextmanager
def _harness(log: TextIO, *, aloud: bool = True) -> Iterator[Callable[[list[str]], None]]:
    """Write a harness's output to the open file `log` in the block, and print its notes and results. Yields a printer.

    Yields a function that shows a command.
    """
    os.environ.setdefault("COLUMNS", str(shutil.get_terminal_size((140, 24)).columns))
    said, terminal, place = io.StringIO(), sys.stdout, log.tell()

    def show(arguments: list[str]) -> None:
        tell()
        click.echo(typed(arguments), file=terminal)

    def tell() -> None:
        nonlocal place
        log.flush()
        log.seek(place)
        notes = [line for line in log.read().splitlines() if line.startswith("harness-noise: ")]
        log.write(said.getvalue())
        place = log.tell()
        for line in (*notes, *_results(said.getvalue())) if aloud else ():
            click.echo(line, file=terminal)
        said.seek(0)
        said.truncate()

    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(log):
            yield show
    finally:
        tell()


def _results(said: str) -> list[str]:
    """Return the last lines of a harness's output: its table of results, or what follows the last rule."""
    lines = said.strip().splitlines()
    rules = [i + 1 for i, line in enumerate(lines) if line.startswith("---")]
    start = next((i for i, line in enumerate(lines) if line.startswith("|")), max(rules, default=0))
    return lines[start:]


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


if __name__ == "__main__":
    try:
        command.main(prog_name="python -m harness_noise.extra.demo")
    except InputError as error:
        sys.exit(f"harness-noise: {error}")
