"""`harness-noise demo --out DIR`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from ..errors import InputError


@click.command("demo")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def command(out: Path, debug: bool) -> None:
    """Two simulated models through the real harnesses, end to end.

    The models are simulated: they answer word problems by chance, each problem with a probability of
    its own. Everything else is real: the harness, its results, and the noise found in them.
    """
    from .. import adapters
    from ..analysis import analyze_run
    from ..compare import compare_runs
    from ..files import write_text
    from ..report import html, terminal
    from ..scores import ReadOptions
    from ..settings import Settings

    harnesses = {name: demo for name in reversed(adapters.names()) if (demo := _demo(adapters.load(name))) is not None}
    if not harnesses:
        raise InputError("the demo needs a harness: pip install 'harness-noise[lm-eval,inspect]'")
    out.mkdir(parents=True, exist_ok=True)
    _say("The models in this demo are simulated; the harnesses, the files and the statistics are real.")
    written: list[Path] = []
    for name, demo in harnesses.items():
        _title(f"{name}: two models, 20 templates × 10 word problems, K = 5 answers each, noise on")
        folders = demo(out, _shown)
        runs = [run for folder in folders for run in adapters.read(folder, ReadOptions())]
        _title(f"{name}: is A better than B?")
        _shown(["harness-noise", "compare", *map(str, folders)])
        result = compare_runs([(runs[0], runs[1])], Settings(), 5)
        terminal.print_to(None, result)
        page = out / f"compare-{name}.html"
        write_text(page, html.page(result))
        table = out / f"compare-{name}.json"
        write_text(table, result.to_json() + "\n")
        written += [table, page]
        _shown(["harness-noise", "export", str(folders[0]), "-o", str(out / f"export-{name}")])
        adapter = adapters.load(name)
        written += adapter.write(
            folders[0], out / f"export-{name}", lambda run: analyze_run(run, Settings()), ReadOptions()
        )
    _title("Written")
    for path in written:
        click.echo(f"  {path}")


def _demo(adapter: Any) -> Any:
    """An adapter's demonstration, if it has one and its harness is installed."""
    demo = getattr(adapter, "demo", None)
    return demo if demo is not None and adapter.installed() else None


def _say(text: str) -> None:
    click.echo(text)


def _title(text: str) -> None:
    click.echo(f"\n\x1b[1m{text}\x1b[0m" if click.get_text_stream("stdout").isatty() else f"\n{text}")


def _shown(arguments: list[str]) -> None:
    """The command that a user would type for what happens next."""
    click.echo(f"$ {shlex.join(arguments)}")
