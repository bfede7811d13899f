"""The commands by name, and those that call one function of the library. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from .. import extras
from .._version import __version__
from ..errors import InputError, some_of
from . import compare, helps, listing, options, routing
from .flags import in_flags as in_flags  # with the flags of all commands
from .flags import know


@options.command(
    "analyze",
    "harness-noise analyze runs/new --cluster template",
    shown="--cluster --task --metric --columns --by --measure --level --format -o --details",
)
@options.RUN
@options.to_read(*options.reading("analyze"), options.COMPLETE)
@options.to_compute(*options.computing("analyze"), options.BY, *options.of_extras("analyze"))
@options.to_show(*options.writing("analyze"), *options.PRINTING)
def analyze(runs: tuple[str, ...], **choices: Any) -> None:
    """Estimate the noise of every mean in one or several runs.

    For each task and metric: the mean, its confidence interval, its standard error (SE), the SE that it
    would have with one answer per question and with infinitely many (data), and the share of the
    model's own randomness (prediction). Where only counts are known, write them as 17/20.
    """
    from .. import analyze

    options.answer(analyze, choices, list(map(options.counts, runs)))


@options.command(
    "export",
    "harness-noise export runs/new -o runs/new-with-noise",
    shown="-o --in-place --as --cluster --level --columns",
)
@options.RUN
@options.to_read(*options.reading("export"))
@options.to_compute(*options.computing("export"))
@options.to_show(
    options.target("-o output", "DIR", "The folder to write to."),
    options.switch("--in-place", "Replace the run's own files (atomically)."),
    options.value(
        "--as form",
        "FORMAT",
        f"Write another format: {', or '.join(extras.said('--as')) or 'those of extras, and none is installed'}.",
    ),
    options.QUIET,
    options.DEBUG,
)
def export(runs: tuple[str, ...], output: Path | None, in_place: bool, form: str | None, **choices: Any) -> None:
    """Rewrite result files with error bars. Native values stay unchanged.

    The files keep their names, and exporting twice changes nothing. Their paths go to stdout, one a line.
    """
    from .. import export

    keywords = options.keywords(choices)
    for path in options.progress(runs, "exporting", len(runs)):
        try:
            result = export(path, output, in_place=in_place, form=form, **keywords)
        except InputError as error:
            options.hints(() if choices["quiet"] else getattr(error, "__notes__", ()))
            raise
        for file in result.written:
            click.echo(file)
        options.wrote(result.written, choices)
        added = f"error bars of {some_of(result.means, 6)}. The harness's own values are unchanged"
        options.hints(() if choices["quiet"] else (*([added] if result.means else []), *result.notes))


@click.command(
    "lm-eval",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lm_eval(arguments: tuple[str, ...]) -> int:
    """Run lm-eval. The option --noise adds error bars to its results.

    Everything is lm-eval's own but the options that begin with --noise:
    `harness-noise lm-eval run --help` lists them.
    """
    from ..io.registry import load

    adapter: Any = load("lm-eval")  # the protocol of adapters has no command lines
    return int(adapter.cli(list(arguments)))


_OWN = (
    *(analyze, compare.command, listing.command),
    *(export, lm_eval),
)
_SHIPPED = "analyze compare gate regress arena factors plan label list export lm-eval demo what pairs"
"""Commands of the package, in the order of messages: those of extras that it ships, too. Others come behind them."""
_MANY = "arena"
"""The command for more than two runs, if none is named."""


class _Every(Mapping[str, click.Command]):
    """A mapping of all commands by name, which imports an extra's command on first use."""

    def __init__(self) -> None:
        self._of_core = {str(command.name): command for command in _OWN}
        order = _SHIPPED.split()
        self._names = sorted((*self._of_core, *extras.commands()), key=lambda name: (*order, name).index(name))

    def __getitem__(self, name: str) -> click.Command:
        if name in self._of_core:
            return self._of_core[name]
        found: click.Command = import_module(extras.commands()[name]).command
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


COMMANDS = _Every()
know(_OWN, COMMANDS)


_GROUPS = {
    "Start": "compare arena analyze demo",
    "In a run": "lm-eval",
    "Decide": "plan gate",
    "More": "regress factors label list export",
}
"""Title → the commands below it in --help. Other commands are below the last title."""
_INSPECT = "inspect eval TASK --metadata noise=true adds them to the log of Inspect."
_EXAMPLES = (
    ("harness-noise new-run old-run", "Is the new run better?"),
    ("harness-noise runs/*.csv --html report", "All pairs of many runs."),
)


class Commands(click.Group):
    """The click group of all commands, which finds the command for runs if none is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            if args[0] not in _SHIPPED.split() or options.is_place(args[0]):
                args = [*routing.command_of(args, COMMANDS, _MANY), *args]
            if args[0] not in COMMANDS:
                raise click.UsageError(extras.not_installed(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[COMMAND] RUN... [OPTIONS]")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            for typed, asked in _EXAMPLES:
                formatter.write(f"{'':{formatter.current_indent}}{typed:42}{asked}\n")
            formatter.write_paragraph()
            formatter.write_text(helps.FORMATS)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = {name for names in _GROUPS.values() for name in names.split()}
        for title, names in _GROUPS.items():
            more = [name for name in self.commands if name not in known] if title == "More" else []
            shown = [name for name in (*names.split(), *more) if name in self.commands]
            rows = [(name, (self.commands[name].help or "").splitlines()[0]) for name in shown]
            if not rows:  # of extras that are not there
                continue
            with formatter.section(title):
                formatter.write_dl(rows)
                if title == "In a run":
                    formatter.write_text(_INSPECT)
        told = (
            "COMMAND -h shows the options that people use, COMMAND --help-all all of them, help reading those that say "
            "how files are read, --version the version."
        )
        formatter.write(f"\n{helps.unbroken(told, formatter.width)}\nDocumentation: {helps.DOCS}\n")


@click.group(
    cls=Commands,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 1000},
)
@click.version_option(__version__, "--version", prog_name="harness-noise")
def cli() -> None:
    """Error bars for LLM evaluations.

    One RUN without a command is analyzed, two are compared, more are an arena.
    """
