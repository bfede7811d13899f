"""`harness-noise demo --out DIR`."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from ..errors import InputError
from . import options


@options.command("demo", "harness-noise demo --out demo-out")
@options.target("--out", "DIR", "The folder to write to.", required=True)
@options.DEBUG
def command(out: Path, debug: bool) -> None:
    """Run simulated models through the real harnesses, end to end.

    The models are simulated: they answer word problems by chance, each problem with a probability of
    its own. Everything else is real: the harnesses, their files, and the noise found in them.
    """
    from ..io import registry as adapters

    every: dict[str, Any] = {name: adapters.load(name) for name in reversed(adapters.names())}
    harnesses = {name: adapter for name, adapter in every.items() if hasattr(adapter, "demo") and adapter.installed()}
    if not harnesses:
        raise InputError("the demo needs a harness: pip install 'harness-noise[lm-eval,inspect]'")
    out.mkdir(parents=True, exist_ok=True)
    start, log_file = time.monotonic(), out / "harness.log"
    click.echo("The models in this demo are simulated; the harnesses, the files and the statistics are real.")
    with log_file.open("w+", encoding="utf-8") as log:
        for adapter in harnesses.values():
            _two_models(adapter, out, log)
        _eight_models(next(iter(harnesses.values())), out, log)
        for adapter in harnesses.values():
            if hasattr(adapter, "demo_until"):
                _stopped_early(adapter, out, log)
    click.echo(f"\nIt took {time.monotonic() - start:.0f} s; what else the harnesses said stands in {log_file}.")
    click.echo(f"Open {out / 'arena' / 'index.html'} in a browser.")


def _two_models(adapter: Any, out: Path, log: TextIO) -> None:
    """Run, compare, export: what a user does with two models."""
    from harness_noise_adapters.word_problems import PAIR

    _title(f"{adapter.name}: two models, 20 templates × 10 word problems, K = 5 answers each, noise on")
    with _harness(log) as show:
        folders = adapter.demo(out, show, PAIR)
    _title(f"{adapter.name}: is A better than B?")
    _type("compare", *folders, "--questions", 5, "--html", out / f"compare-{adapter.name}.html")
    click.echo()
    _type("export", folders[0], "-o", out / f"export-{adapter.name}")


def _eight_models(adapter: Any, out: Path, log: TextIO) -> None:
    """The arena of all simulated models; the runs of the other six are quiet."""
    from harness_noise_adapters.word_problems import MODELS, PAIR

    _title(f"{adapter.name}: all pairs of eight models")
    with _harness(log, aloud=False):
        folder = adapter.demo(out, lambda _: None, [model for model in MODELS if model not in PAIR])[0].parent
    _type("arena", folder, "--html", out / "arena", "--format", "sentence")


def _stopped_early(adapter: Any, out: Path, log: TextIO) -> None:
    """A third comparison, which asks no more questions than it takes; what the run of all questions says is there."""
    from harness_noise_adapters.word_problems import ENOUGH

    from .. import compare, read

    new, old = ENOUGH
    whole, against = (out / adapter.name / model.name for model in ENOUGH)
    _title(f"{adapter.name}: a third comparison, {new.name} (A) against {old.name} (B), stops when it is decided")
    with _harness(log) as show:
        folder = adapter.demo_until(out, show, new, against)
    (looks,) = read(folder)[0].sequential
    said = f"{looks['decision']}, after {looks['n_asked']} of {looks['n_total']} questions"
    if whole.exists():
        (row,) = compare(whole, against).rows
        same = "the same decision" if row.verdict == looks["decision"] else f"all questions say: {row.verdict}; this"
        share = looks["n_answers"] / looks["n_answers_total"]
        said += f": {same} with {share:.0%} of the answers".replace("%", " %")
    click.echo(f"\n{said}.")


@contextlib.contextmanager
def _harness(log: TextIO, *, aloud: bool = True) -> Iterator[Callable[[list[str]], None]]:
    """What a harness prints goes to `log`; of that its results are also shown, and what this package says of them.

    Yields a function that shows a command.
    """
    os.environ.setdefault("COLUMNS", str(shutil.get_terminal_size((140, 24)).columns))
    said, terminal, place = io.StringIO(), sys.stdout, log.tell()

    def show(arguments: list[str]) -> None:
        tell()
        click.echo(_typed(arguments), file=terminal)

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
    """The lines of a harness's output from its table of results on, or after its last rule."""
    lines = said.strip().splitlines()
    rules = [i + 1 for i, line in enumerate(lines) if line.startswith("---")]
    start = next((i for i, line in enumerate(lines) if line.startswith("|")), max(rules, default=0))
    return lines[start:]


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _typed(arguments: list[str]) -> str:
    """The command that a user would type for what happens next."""
    return f"$ {shlex.join(arguments)}"


def _type(*words: object) -> None:
    """Show one of our commands, with paths as they are seen from here, and run it."""
    here = Path.cwd()
    local = (os.path.relpath(word) if isinstance(word, Path) and word.is_relative_to(here) else word for word in words)
    arguments = tuple(map(str, local))
    click.echo(_typed(["harness-noise", *arguments]))
    commands = click.get_current_context().find_root().command
    commands.main(arguments, standalone_mode=False, obj=arguments)
