"""Options that several commands share, and what the commands do with them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from ..errors import InputError
from ..io.paths import is_url
from ..settings import REFUSALS, Settings, obeyed, refusal
from .flags import in_flags, parameter_of

if TYPE_CHECKING:
    from ..report.summary import Result

    Choice = click.Choice[str]
    ParamType = click.ParamType[Any]
else:  # older ones take no type parameter: 8.2 does not
    Choice = click.Choice
    ParamType = click.ParamType

T = TypeVar("T")
R = TypeVar("R", bound="Result")
Option = Callable[[Callable[..., Any]], Callable[..., Any]]

FORMATS = ("table", "json", "markdown", "latex", "csv", "sentence")
_FIELDS = Settings.__dataclass_fields__


class Output(click.Path):
    """A local file or folder to write to."""

    def __init__(self, **choices: Any) -> None:
        super().__init__(path_type=Path, **choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if is_url(value):
            self.fail(f"{value} is a URL; results are written to local files: copy them afterwards.", param, ctx)
        path = Path(str(super().convert(value, param, ctx)))
        typed = ctx.find_root().obj if ctx else None
        if path.is_file() and typed and (why := _given_as(path, typed)):
            self.fail(f"{path} is {why}, and no input is ever overwritten: write to another file.", param, ctx)
        return path


def _given_as(path: Path, typed: Sequence[str]) -> str:
    """What a file that is to be written is of the input that a command line names; "" where it is nothing."""
    # a word may be joined to its option: --html=FILE, -oFILE
    texts = [{word, word.partition("=")[2], word.removeprefix("-o")} for word in typed]
    places = [{Path(os.path.realpath(text)) for text in each if text and "\0" not in text} for each in texts]
    if sum(path.resolve() in each for each in places) > 1:
        return "named twice"
    if set[Path]().union(*places).isdisjoint((path.parent.resolve() / path.name).parents):
        return ""
    from .. import read

    with suppress(InputError):
        return "a run of a folder that is named" if read(path) else ""
    return ""


class NumberList(ParamType):
    """Numbers with commas between them, of which there may be so many.

    Args:
        what: what they are, for the message.
        counts: how many there may be.
    """

    name = "numbers"

    def __init__(self, what: str, *counts: int) -> None:
        self.what, self.counts = what, counts

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            numbers = tuple(map(float, str(value).split(",")))
        except ValueError:
            numbers = ()
        if len(numbers) not in self.counts:
            self.fail(f"{value!r} is not {self.what}.", param, ctx)
        return numbers


RANGE = NumberList("the metric's lowest and highest value, such as 0,1 or 0,100", 2)


class Values(Choice):
    """The values of a setting that a command obeys; of any other it says why it does not."""

    def __init__(self, name: str, consumer: str) -> None:
        self.all, some = get_args(_types()[name]), obeyed(name, consumer)  # None: all
        super().__init__([choice for choice in self.all if some is None or choice in (_FIELDS[name].default, *some)])
        self.setting, self.consumer = name, consumer

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.all and value not in self.choices:
            self.fail(_refused(self.setting, self.consumer, f"--{self.setting} {value}"), param, ctx)
        return super().convert(value, param, ctx)


def _refused(name: str, consumer: str, what: str) -> str:
    """The sentence that refuses a keyword which `consumer` does not obey, with flags for parameters."""
    return in_flags(refusal(name, consumer, what))


@cache
def _types() -> dict[str, Any]:
    """The type of every keyword that makes an option; columns are typed as one text."""
    return {"columns": str, "format_file": str, "apart": bool, "as_repeats": bool, **get_type_hints(Settings)}


class Command(click.Command):
    """A command with an example, groups of options, and a hint for an option that it does not have.

    Args:
        example: a command line, shown first.
        old: former spellings of options → what to write now.
    """

    def __init__(self, name: str, *, example: str, old: Mapping[str, str], **choices: Any) -> None:
        super().__init__(name, **choices)
        self.example, self.old = example, old

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_usage(ctx, formatter)
        formatter.write(f"\nExample: {self.example}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                groups.setdefault(getattr(param, "group", ""), []).append(record)
        for title, records in groups.items():
            with formatter.section(title or ("Other options" if len(groups) > 1 else "Options")):
                formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flag, name = error.option_name, parameter_of(error.option_name)
            hint = self.old.get(flag, "")
            if not hint and self.name in REFUSALS and (name in _FIELDS or f"{self.name}.{name}" in REFUSALS):
                hint = _refused(name, self.name, flag)
            if hint:
                raise click.UsageError(f"No such option {error.option_name}: {hint}.", ctx) from None
            raise


def command(
    name: str, example: str, old: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command; `settings` knows by the same name what it obeys. See `Command`."""
    return click.command(name, cls=Command, example=example, old=old)


def _group(title: str, *options: Option) -> Option:
    """Options of one group of --help, as one decorator."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        params = function.__dict__.setdefault("__click_params__", [])
        before = len(params)
        for option in reversed(options):
            option(function)
        for param in params[before:]:
            param.group = title
        return function

    return wrap


to_read = partial(_group, "What to read")
to_compute = partial(_group, "What to compute")
to_show = partial(_group, "What to show")


def value(flag: str, metavar: str | None, words: str, kind: Any = str, default: Any = None, **more: Any) -> Option:
    """An option with a value; behind the flag may stand the name of its parameter, where that is another."""
    more |= {"default": default, "show_default": default is not None}
    return click.option(*flag.split(), metavar=metavar, help=words, type=kind, **more)


several = partial(value, multiple=True)
"""An option that may be given again."""


def switch(flag: str, words: str) -> Option:
    """An option without a value."""
    return click.option(*flag.split(), is_flag=True, help=words)


def choice(flag: str, values: Sequence[str], words: str) -> Option:
    """An option with one of these values, the first by default."""
    return value(flag, None, words, click.Choice(values), values[0])


def target(flag: str, metavar: str, words: str, **more: Any) -> Option:
    """An option that names a file, or with the metavar DIR a folder, to write to."""
    return value(flag, metavar, words, Output(file_okay=metavar != "DIR", dir_okay=metavar == "DIR"), **more)


RUN = click.argument("runs", metavar="RUN...", nargs=-1, required=True)

REFERENCES = several(
    "--reference references",
    "RUN",
    "A complete run, used to extrapolate from this random subset, or a profile that has its questions "
    "(arena --write-profile FILE --with-questions); repeatable.",
)

BY = several(
    "--by",
    "SPEC",
    "Repeat the analysis in slices of this property of the questions (a SPEC as of --cluster; repeatable). "
    "Numbers are cut at their quartiles. auto: every category of 2 to 50 values and every number.",
)

LABELS = (
    value(
        "--labels",
        "FILE",
        "People's labels of a random part of the answers (question, label[, task][, model][, repeat][, person]), "
        "which correct the judge's scores; `label` draws such a part.",
    ),
    value(
        "--labels-scorer",
        "NAME",
        "The scorer of the log whose scores are people's labels, or edits: scores that people have edited.",
    ),
    value("--label-range", "LOW,HIGH", "Labels that stand for the lowest and highest score.", RANGE),
    switch("--labels-at-random", "The labelled answers are a random part, even if they do not look like one."),
)

MODELS = value("--models", "A,B", "Which models, where the RUNs hold several.")

_REPEATABLE = ("tasks", "metrics", "scorers", "measures", "prices", "cluster", "groups")
"""Keywords that take several values; their flag, which may be given again, is in the singular."""
_METAVARS = {
    "prices": "[MODEL:]input=$,output=$",
    "cluster": "SPEC",
    "groups": "NAME=PATTERN",
    "columns": "NAME=COL,…",
    "format_file": "FILE",
    "missing": "drop|zero|CAUSE=zero,…",
    "level": "L",
    "margin": "M",
    "range": "LOW,HIGH",
    "seed": "N",
    "resamples": "N",
}
_READING = {
    "tasks": "Only this task (glob, repeatable).",
    "metrics": "Only this metric (repeatable).",
    "scorers": "Only this scorer or filter (repeatable).",
    "measures": "Analyse cost, output_tokens, time, …, a numeric column, consistency, pass^K, or a ratio such as "
    "cost/score, in place of the score (repeatable; the score itself is called score).",
    "prices": "Dollars per million tokens, also cache_read= and cache_write=, for --measure cost (repeatable).",
    "cluster": "What related questions share: a field, a.dotted.path, a Jinja template, task, none, auto, or TASK=SPEC "
    "(repeatable; twice for one task: crossed, as A*B). Default: the clusters that the run carries.",
    "groups": "Average the tasks that match PATTERN.",
    "as_repeats": "Treat several runs of one model as its repeats.",
    "apart": "Keep every run of a folder by itself, not one of each model.",
    "missing": "Leave out errored or missing answers, or count them as wrong: all, or those with a cause (agent, "
    "infrastructure, verifier, refused, limit, unanswered). Their number is always reported.",
    "columns": "Which column or field is the question, score, cluster, …",
    "format_file": "Your own formats of tables, in TOML (docs/formats.md).",
}
_COMPUTING = {
    "level": "Coverage of the intervals.",
    "se": "Variance estimator. cr0 is that of the papers (ddof = 0); cr3, the jackknife, suits very unequal clusters.",
    "interval": "Interval of a mean.",
    "test": "Test of a difference. wild is the wild cluster bootstrap, for few or very unequal clusters.",
    "adjust": "Adjust p-values within each family of rows.",
    "margin": "Test equivalence within ±M, on the metric's scale.",
    "unpaired": "Ignore which question is which: for runs on different questions.",
    "repeats_are": "Repeats are independent answers, or runs (seeds, prompts) that move all questions together.",
    "runs_shared": "With --repeats-are runs: run j of A and of B share their prompt, seed or judge.",
    "questions_are": "The questions are a sample of all that could be asked, or fixed: only these count, judged from "
    "the repeats alone.",
    "range": "Lowest and highest value of the metric, as 0,100 for a percentage. Default: what the run declares.",
    "seed": "Seed of the resampling tests and intervals.",
    "resamples": "Number of resamples.",
}


def _obeyed_of(helps: Mapping[str, str], consumer: str) -> list[Option]:
    """An option for every keyword that `consumer` obeys, with the values that it obeys."""
    return [_option(name, consumer, words) for name, words in helps.items() if obeyed(name, consumer) != ()]


def reading(consumer: str) -> list[Option]:
    """The options that say what is read, and how."""
    return _obeyed_of(_READING, consumer)


def computing(consumer: str, **words: str) -> list[Option]:
    """The options that say how to compute; `words` replace their help."""
    return _obeyed_of(_COMPUTING | words, consumer)


def _option(name: str, consumer: str, words: str) -> Option:
    """The option of one keyword of `Choices`; its type is that of the keyword."""
    metavar, kind = _METAVARS.get(name), _types().get(name, str)
    if name in _REPEATABLE:
        singular = name.removesuffix("s")
        return several(f"--{singular} {name}", metavar or singular.upper(), words)
    flag = "--" + name.replace("_", "-")
    if kind is bool:
        return switch(flag, words)
    taken = RANGE if name == "range" else Values(name, consumer) if get_origin(kind) is Literal else None
    default = _FIELDS[name].default if name in _FIELDS else None
    return value(flag, metavar, words, taken or {int: int, str: str}.get(kind, float), default)


FORMAT_FILE = _option("format_file", "read", _READING["format_file"])
QUIET = switch("-q --quiet", "Print no hints.")
DEBUG = switch("--debug", "Show a traceback when something fails.")
PRINTING = (
    choice("--format form", FORMATS, "Form of the output; sentence: one for a paper, of each row."),
    value("-o output", "FILE", "Write to FILE.", Output()),
    switch("--details", "Show all tables, columns and rows, however narrow the terminal."),
    switch("--explain legend", "Say what each column means."),
    choice("--color", ("auto", "always", "never"), "Colours; auto: in a terminal, unless NO_COLOR is set."),
    QUIET,
    DEBUG,
)
_OF_PRINTING = ("form", "output", "details", "legend", "color", "quiet", "debug", "wide")


def mapping(pairs: Iterable[str], option: str, *, one_word: bool = False) -> dict[str, str]:
    """NAME=VALUE pairs as a dictionary; with `one_word`, a word without `=` is both.

    Raises:
        InputError: a pair without `=`, or with an empty side.
    """
    out = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        value = name if one_word and not equals else value
        if not name or not value:
            raise InputError(f"{option} {pair!r}: write NAME=VALUE")
        out[name] = value
    return out


def keywords(choices: Mapping[str, Any]) -> dict[str, Any]:
    """A command's options as the keywords of the function that it calls, without those of printing."""
    chosen = {name: value for name, value in choices.items() if name not in _OF_PRINTING and value is not None}
    if "columns" in chosen:
        chosen["columns"] = mapping(re.split(",(?=[^,=]*=)", chosen["columns"]), "--columns")  # a name may have commas
    if "groups" in chosen:
        chosen["groups"] = mapping(chosen["groups"], "--group")
    if "models" in chosen:
        chosen["models"] = [name.strip() for name in chosen["models"].split(",")]
    return chosen | {"progress": progress, "say": lambda text: hints([text])}


def answer(function: Callable[..., R], choices: dict[str, Any], *sides: Any, **more: Any) -> R:
    """What a function of the library returns for a command's options, shown; its notes name flags."""
    from dataclasses import replace

    result = function(*sides, **keywords(choices), **more)
    result = replace(result, notes=tuple(map(in_flags, result.notes)))
    _show(result, choices)
    return result


def progress(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """The items, with a bar on stderr once they have taken two seconds."""
    start, bar, shown = time.monotonic(), None, total > 1 and sys.stderr.isatty()
    for done, item in enumerate(items):
        if bar is not None:
            bar.update(1)
        elif shown and time.monotonic() - start > 2:
            bar = click.progressbar(length=total, label=what, file=sys.stderr)
            bar.update(done)
        yield item
    if bar is not None:
        bar.update(1)
        bar.render_finish()


def _show(table: Result, choices: dict[str, Any]) -> None:
    """Print a result, or write it to a file; hints go to stderr."""
    form, output = choices["form"], choices["output"]
    in_table = getattr(table, "shows_notes", False) and form not in ("json", "csv")
    if not choices["quiet"] and not in_table:
        hints(getattr(table, "notes", ()))
    shown: dict[str, Any] = {name: choices.get(name, False) for name in ("details", "wide")}
    shown |= {"legend": choices["legend"] or (False if choices["quiet"] else None), "words": in_flags}
    from ..report.text import render

    text = render(table, form, **shown, color=choices["color"] if output is None else "never")
    if output is None:
        click.echo(text, nl=False, color=True)
    else:
        from ..io.atomic import write_text

        write_text(output, text)
        wrote([output], choices)


def wrote(paths: Iterable[Path], choices: dict[str, Any]) -> None:
    """Name on stderr every file that was written."""
    if not choices["quiet"]:
        hints(f"wrote {path}" for path in paths)


def typed() -> str | None:
    """The command as it was typed, for the foot of a page."""
    import shlex

    arguments = click.get_current_context().find_root().obj
    return None if arguments is None else shlex.join(["harness-noise", *arguments])


def hints(notes: Iterable[str]) -> None:
    """Print hints and warnings on stderr, one line each."""
    for note in notes:
        clean = "".join(c if c.isprintable() else "�" for c in in_flags(note))
        click.echo(f"harness-noise: {clean}", err=True)
