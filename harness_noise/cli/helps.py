"""Help texts: of --help, of --help-all, and of `harness-noise help reading`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from types import MappingProxyType
from typing import Any

import click

from .. import extras
from ..errors import is_now
from ..settings import REFUSALS, Settings, refusal
from .flags import in_flags, parameter_of

DOCS = "https://harness-noise.github.io/harness-noise/"
FORMATS = (
    "A RUN is an lm-eval output folder or results file, an Inspect log or log folder, or a score table (CSV, JSONL, "
    "Parquet, …): `harness-noise list` names all formats, `harness-noise list FILE` says how one is read."
)
READING = "What to read"
MOST_SHOWN = 10
"""Options that --help shows of a command."""


def refused(name: str, consumer: str, what: str) -> str:
    """Return the error text that `consumer` does not use the keyword `name`, with flags for parameters."""
    return in_flags(refusal(name, consumer, what))


class Command(click.Command):
    """A command with an example, groups of options, and a hint for an option that it does not have.

    Args:
        example: a command line, shown first.
        shown: the flags that --help shows, at most ten; empty: all.
        old: options that it does not have → what to write.
        alone: what to write in place of several RUNs, for a command that takes one.
    """

    def __init__(
        self, name: str, *, example: str, shown: str, old: Mapping[str, str], alone: str, **choices: Any
    ) -> None:
        super().__init__(name, **choices)
        self.example, self.shown, self.old, self.alone = example, tuple(shown.split()), old, alone

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's parameters, with --help-all added, hidden where --help shows all options anyway."""
        whole = click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, hidden=not self.shown,
            help="Show all options and exit.", callback=_show_all,
        )  # fmt: skip
        return [*super().get_params(ctx), whole]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_usage(ctx, formatter)
        formatter.write(f"\nExample: {self.example}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        whole = bool(ctx.meta.get(_WHOLE)) or not self.shown
        listed = [param for param in every if not is_shared(param)] if whole else self._short(every)
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in listed:
            if record := param.get_help_record(ctx):
                title = getattr(param, "group", "") or "Other options"
                groups.setdefault(title if whole and len(every) > MOST_SHOWN else "Options", []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)
        self._write_more(ctx, formatter, every, whole=whole)

    def _short(self, every: Sequence[click.Option]) -> list[click.Option]:
        by_flag = {flag: param for param in every for flag in param.opts}
        return [by_flag[flag] for flag in self.shown]

    def _write_more(
        self, ctx: click.Context, formatter: click.HelpFormatter, every: Sequence[click.Option], *, whole: bool
    ) -> None:
        shared = [longest(param) for param in every if is_shared(param)]
        lines = []
        if not whole:
            lines.append(f"{ctx.command_path} --help-all lists all {len(self.params_with_flags())} options.")
        elif shared:
            lines.append(f"How files are read: {', '.join(shared)}.")
        if shared:
            lines.append("harness-noise help reading explains the options that say how files are read.")
        for line in lines:
            formatter.write(f"\n{unbroken(line, formatter.width)}\n")

    def params_with_flags(self) -> list[click.Option]:
        """Return the command's options, without its positional arguments."""
        return [param for param in self.params if isinstance(param, click.Option)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            self._refuse_doubled(ctx, args)
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flag, name = error.option_name, parameter_of(error.option_name)
            hint = self.old.get(flag) or is_now(flag)
            of_setting = name in Settings.__dataclass_fields__ or f"{self.name}.{name}" in REFUSALS
            if not hint and self.name in REFUSALS and of_setting:
                hint = refused(name, self.name, flag)
            short = f"-{name}"
            hint = hint or (f"it is {short}" if any(short in param.opts for param in self.params) else "")
            if not hint and _is_of_an_extra(flag, str(self.name)):
                raise click.UsageError(extras.not_installed(flag), ctx) from None
            hint = hint or _commands_with(flag, ctx)
            if hint:
                raise click.UsageError(f"No such option {error.option_name}: {hint}.", ctx) from None
            raise
        except click.UsageError as error:
            if self.alone and error.message.startswith("Got unexpected extra argument"):
                raise click.UsageError(f"{self.name} takes one RUN. {self.alone}", ctx) from None
            raise

    def _refuse_doubled(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Raise a usage error if an option that takes one value is given twice, as the first would be ignored.

        Raises:
            click.UsageError: names it.
        """
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        single = [param for param in given if isinstance(param, click.Option) and not (param.multiple or param.is_flag)]
        for param, times in Counter(single).items():
            if times > 1:
                raise click.UsageError(f"{longest(param)} is given {times} times: it takes one value. Keep one.", ctx)


_FEW = 3
"""Commands that a hint names."""


def _is_of_an_extra(flag: str, command: str) -> bool:
    """Return True if a flag is a keyword of the command's function that an extra would handle, were it there."""
    from inspect import signature

    from ..api import runs

    name, function = flag.removeprefix("--").replace("-", "_"), getattr(runs, command, None)
    return name in runs.OF_EXTRAS and function is not None and name in signature(function).parameters


def _commands_with(flag: str, ctx: click.Context) -> str:
    """Return words such as "compare and regress have it" for an option of other commands, "" if none or many do."""
    every = getattr(ctx.find_root().command, "commands", {})
    have = [name for name, one in every.items() if any(flag in param.opts for param in one.params)]
    return f"{' and '.join(have)} {'have' if have[1:] else 'has'} it" if 0 < len(have) <= _FEW else ""


def command(
    name: str, example: str, old: Mapping[str, str] = MappingProxyType({}), shown: str = "", alone: str = ""
) -> Callable[[Callable[..., Any]], click.Command]:
    """Return a decorator that turns a function into a click command with this name and example."""
    return click.command(name, cls=Command, example=example, shown=shown, old=old, alone=alone)


def unbroken(text: str, width: int) -> str:
    """Wrap a text to lines of this width, without breaking inside a flag such as --help-all."""
    return fill(text, width, break_on_hyphens=False, break_long_words=False)


_WHOLE = "harness_noise.help_all"


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_WHOLE] = True
        click.echo(ctx.get_help())
        ctx.exit()


def longest(param: click.Option) -> str:
    """Return the longest spelling of an option, such as `--output` of `-o, --output`."""
    return max(param.opts, key=len)


def is_shared(param: click.Option) -> bool:
    """Return True if an option is about reading files, and so the same in all commands."""
    return bool(getattr(param, "shared", False))


def reading(commands: Iterable[click.Command]) -> str:
    """Return the help page on the options for reading files, which all commands share."""
    every: dict[str, tuple[str, str]] = {}
    for each in commands:
        context = click.Context(each, info_name=each.name)
        for param in each.params:
            if isinstance(param, click.Option) and is_shared(param) and (record := param.get_help_record(context)):
                every.setdefault(longest(param), record)
    formatter = click.Context(click.Command("help"), max_content_width=1000).make_formatter()
    formatter.write_text(FORMATS)
    formatter.write_paragraph()
    formatter.write_text(
        "These options say what is read, and how. Every command takes those that it can obey: --help-all names them."
    )
    with formatter.section("Options"):
        formatter.write_dl([*every.values()])
    return formatter.getvalue().rstrip("\n")
