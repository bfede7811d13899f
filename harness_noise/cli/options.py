"""Options that several commands share, and what the commands do with them."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from .. import extras
from ..choices import REGISTERS, load_packages
from ..errors import InputError, counted, without_secrets
from ..io.paths import is_url
from ..report import FORMATS
from ..settings import Settings, difference, obeyed
from .flags import in_flags
from .helps import READING, refused
from .helps import command as command  # the commands take it from here

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

_FIELDS = Settings.__dataclass_fields__


class Output(click.Path):
    """The type of an option for a local file or folder to write to."""

    def __init__(self, **choices: Any) -> None:
        super().__init__(path_type=Path, **choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if is_url(value):
            self.fail(f"{value} is a URL, and results are written to local files. Copy them afterwards.", param, ctx)
        path = Path(str(super().convert(value, param, ctx)))
        typed = ctx.find_root().obj if ctx else None
        if path.is_file() and typed and (why := _clash_with_words(path, typed)):
            self.fail(f"{path} is {why}, and no input is ever overwritten: write to another file.", param, ctx)
        return path


def _clash_with_words(path: Path, typed: Sequence[str]) -> str:
    """Return why an output path would overwrite an input (named twice, or a run in a named folder), "" if not."""
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
    """The type of an option for a list of numbers with commas between them.

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


class Jobs(ParamType):
    """The type of an option for a number of processes, or for the address of a cluster."""

    name = "jobs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        return int(value) if str(value).lstrip("-").isdecimal() else str(value)


class DifferenceOption(ParamType):
    """The type of an option for a difference or a mean, also in points or per cent if the scale is 0 to 1."""

    name = "difference"

    def __init__(self, what: str) -> None:
        self.what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return difference(str(value))
        except ValueError:
            self.fail(f"{value!r} is not {self.what}.", param, ctx)


DIFFERENCE = DifferenceOption("a difference, such as 0.015, 1.5% or 1.5pt")
MEAN = DifferenceOption("a mean, such as 0.85 or 85%")
JOBS = Jobs()
RANGE = NumberList("the metric's lowest and highest value, such as 0,1 or 0,100", 2)


class Values(Choice):
    """The type of an option for a setting's values, limited to those that the command obeys.

    The error for another value says why the command does not.
    """

    def __init__(self, name: str, consumer: str) -> None:
        self.setting, self.consumer = name, consumer
        super().__init__(self.choices)

    @property
    def all(self) -> tuple[str, ...]:
        """All values of the setting, also those registered by other packages."""
        if self.setting not in REGISTERS:
            return tuple(get_args(_types()[self.setting]))
        load_packages()
        return tuple(dict.fromkeys((str(_FIELDS[self.setting].default), *REGISTERS[self.setting].named())))

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of the setting that this command supports."""
        some = obeyed(self.setting, self.consumer)  # None: all
        return tuple(value for value in self.all if some is None or value in (_FIELDS[self.setting].default, *some))

    @choices.setter
    def choices(self, choices: Any) -> None:
        """Ignore what click would keep: a package may register more."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.all and value not in self.choices:
            self.fail(refused(self.setting, self.consumer, f"--{self.setting} {value}"), param, ctx)
        return super().convert(value, param, ctx)


@cache
def _types() -> dict[str, Any]:
    """Return a dict from each keyword to its Python type, with columns and weights as plain text.

    Columns and weights are typed as one text.
    """
    texts = {"columns": str, "format_file": str, "follow_links": bool, "apart": bool, "as_repeats": bool}
    return texts | get_type_hints(Settings) | {"weights": str, "chance": str}


def _group(title: str, *options: Option) -> Option:
    """Return one decorator that adds these options to a command under a heading of its --help."""

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        params = function.__dict__.setdefault("__click_params__", [])
        before = len(params)
        for option in reversed(options):
            option(function)
        for param in params[before:]:
            param.group = title
            param.shared = param.name in _SHARED
        return function

    return wrap


to_read = partial(_group, READING)
to_compute = partial(_group, "What to compute")
to_show = partial(_group, "What to show")


def value(flag: str, metavar: str | None, words: str, kind: Any = str, default: Any = None, **more: Any) -> Option:
    """Return a click option that takes a value. `flag` may also name its Python parameter after a space."""
    more |= {"default": default, "show_default": default is not None}
    return click.option(*flag.split(), metavar=metavar, help=words, type=kind, **more)


several = partial(value, multiple=True)
"""An option that may be given again."""


def switch(flag: str, words: str) -> Option:
    """Return a click option without a value: True if given."""
    return click.option(*flag.split(), is_flag=True, help=words)


def choice(flag: str, values: Sequence[str], words: str) -> Option:
    """Return a click option with a fixed set of values, the first being the default."""
    return value(flag, None, words, click.Choice(values), values[0])


def target(flag: str, metavar: str, words: str, **more: Any) -> Option:
    """Return a click option for an output file, or for an output folder if the metavar is DIR."""
    return value(flag, metavar, words, Output(file_okay=metavar != "DIR", dir_okay=metavar == "DIR"), **more)


def expanded(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words with each glob pattern replaced by the paths that match, unless a file has its name.

    An existing file of such a name is itself.
    """
    from glob import glob

    out: list[str] = []
    for word in words:
        is_glob = re.search(r"[*?[]", word) and not is_url(word) and not Path(word).exists()
        out += (sorted(glob(word)) if is_glob else []) or [word]  # noqa: PTH207  a glob may begin anywhere
    return tuple(out)


def is_place(word: str) -> bool:
    """Return True if a word is a URL, a path that exists, or a glob that matches such paths."""
    return is_url(word) or all(Path(name).exists() for name in expanded([word]))


RUN = click.argument(
    "runs", metavar="RUN...", nargs=-1, required=True, callback=lambda _context, _param, words: expanded(words)
)

COMPLETE = several(
    "--complete",
    "RUN",
    "A run that answered everything, used to extrapolate from a random subset of the questions"
    f"{extras.words('--complete')}. Repeatable.",
)
PROFILE = value(
    "--profile",
    "NAME|FILE",
    f"Take the noise from a benchmark's profile{extras.words('--profile')}.",
)

EFFECT = value(
    "--effect", "D", "The true difference to detect: 0.015 on the metric's scale, or 1.5%, 1.5pt.", DIFFERENCE
)
POWER = value("--power", "P", "The chance to detect the effect (0.8 if two are missing).", float)
OMEGA2 = value("--omega2", "V", "Data variance per question.", float)
BY = several(
    "--by",
    "SPEC",
    "Repeat the analysis in slices of this property of the questions (a SPEC as of --cluster). Repeatable. "
    "Numbers are cut at their quartiles. auto: every category of 2 to 50 values and every number.",
)

MODELS = value("--models", "A,B", "The models to use, if the RUNs have more.")

_REPEATABLE = ("only", "tasks", "metrics", "scorers", "measures", "prices", "cluster", "groups")
"""Keywords that take several values. Their flag may be given again and is in the singular."""
_METAVARS = {
    "prices": "[MODEL:]input=$,output=$",
    "only": "'FIELD OP VALUE'",
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
    "weights": "equal|size|none|FILE",
    "chance": "auto|C|FILE",
}
_READING = {
    "only": "Only the questions that meet this condition, such as 'level >= 3' or 'date < 2024-06-01' (repeatable: all "
    "must hold). OP is = != < <= > >=.",
    "tasks": "Only this task (glob, repeatable).",
    "metrics": "Only this metric (repeatable).",
    "scorers": "Only this scorer or filter (repeatable).",
    "measures": "Analyse cost, output_tokens, time, …, a numeric column, consistency, pass^K, or a ratio such as "
    "cost/score, instead of the score. Repeatable. The score itself is called score.",
    "prices": "Dollars per million tokens, also cache_read= and cache_write=, for --measure cost (repeatable).",
    "cluster": "Field that related questions share, such as passage. Also a.dotted.path, a Jinja template, task, none, "
    "auto (known benchmarks), TASK=SPEC, or A*B (two crossed fields). Repeatable. Default: the clusters recorded "
    "in the run.",
    "groups": "Average the tasks that match PATTERN.",
    "as_repeats": "Treat several runs of one model as its repeats.",
    "apart": "Treat each file in a folder as its own run. By default the files of one model are merged.",
    "missing": "Answers without a score: drop them, count them as wrong (zero), or count only some causes as wrong, "
    "such as "
    "limit=zero (agent, infrastructure, verifier, refused, limit, unanswered). Their number is always reported.",
    "columns": "Say which column holds what, such as question=id,score=passed, if the guess is wrong.",
    "format_file": "Your own formats of tables, in TOML (docs/formats.md).",
    "follow_links": "Follow links that lead out of the named folder.",
}
_COMPUTING = {
    "level": "Coverage of the intervals.",
    "se": "How the standard error is estimated. cr2 suits most runs. cr3 (jackknife) suits clusters of very unequal "
    "size. cr1 is Inspect's, and cr0 divides by n.",
    "interval": "Interval of a mean.",
    "test": "Test of a difference. wild is the wild cluster bootstrap, for few or very unequal clusters.",
    "adjust": "Adjust p-values within each family of rows.",
    "margin": "Test equivalence within ±M: on the metric's scale, or 1pt, 1% of a metric in [0, 1].",
    "unpaired": "Ignore which question is which: for runs on different questions.",
    "repeats_are": "answers: repeats are independent. runs: each repeat is one seed, prompt or judge that affects "
    "all questions.",
    "runs_shared": "With --repeats-are runs: run j of A and of B share their prompt, seed or judge.",
    "questions_are": "population: the questions are a sample of similar ones. fixed: draw conclusions about these "
    "questions only (needs several answers per question).",
    "range": "Lowest and highest value of the metric, as 0,100 for a percentage. Default: what the run declares.",
    "weights": "Weights of the tasks in the overall row, a group counting as one task. FILE has task,weight, or "
    "field,value,weight to weight the questions.",
    "chance": "Correct scores for guessing, (x − C)/(1 − C). Give C, such as 0.25, or a FILE with task,chance. auto "
    "takes C from the number of choices of each question.",
    "seed": "Seed of the resampling tests and intervals.",
    "resamples": "Number of resamples.",
}


_SHARED = {*_READING, *(option.name for option in extras.options())}
"""Options that say how files are read, in all commands: `help reading` explains them."""


def _obeyed_of(helps: Mapping[str, str], consumer: str) -> list[Option]:
    """Return a click option for each of these keywords that the calculation `consumer` uses."""
    return [_option(name, consumer, words) for name, words in helps.items() if obeyed(name, consumer) != ()]


def reading(consumer: str, *names: str) -> list[Option]:
    """Return the click options for reading files: those named, or all with the extras' own."""
    found = _obeyed_of({name: _READING[name] for name in names or _READING}, consumer)
    return found if names else [*found, *map(_of_extra, extras.options(consumer))]


def _of_extra(option: extras.Option) -> Option:
    """Return the click option for an option that an extra package declares."""
    if not option.metavar:
        return switch(option.flag, option.words)
    return value(option.flag, option.metavar, option.words, RANGE if option.metavar == "LOW,HIGH" else str)


def computing(consumer: str, **words: str) -> list[Option]:
    """Return the click options for how to compute. Keyword arguments replace their help texts."""
    return _obeyed_of(_COMPUTING | words, consumer)


def flag_of(name: str) -> str:
    """Return the command-line flag of a Python parameter: `follow_links` gives `--follow-links`."""
    return "--" + name.replace("_", "-")


def _option(name: str, consumer: str, words: str) -> Option:
    """Return the click option for one keyword of `Choices`, with the type and default of its setting."""
    metavar, kind = _METAVARS.get(name), _types().get(name, str)
    if name == "columns":
        return several(flag_of(name), metavar, words)
    if name in _REPEATABLE:
        singular = name.removesuffix("s")
        return several(f"--{singular} {name}", metavar or singular.upper(), words)
    flag = flag_of(name)
    if kind is bool:
        return switch(flag, words)
    one_of = name in REGISTERS or get_origin(kind) is Literal
    taken = {"range": RANGE, "margin": DIFFERENCE}.get(name) or (Values(name, consumer) if one_of else None)
    default = _FIELDS[name].default if name in _FIELDS else None
    return value(flag, metavar, words, taken or {int: int, str: str}.get(kind, float), default)


LEVEL = _option("level", "analyze", _COMPUTING["level"])
FORMAT_FILE = _option("format_file", "read", _READING["format_file"])
COLUMNS = _option("columns", "read", _READING["columns"])
QUIET = switch("-q --quiet", "Print no hints.")
DEBUG = switch("--debug", "Show a traceback when something fails.")
PRINTING = (
    choice("--format form", FORMATS, "Form of the output. sentence: one for a paper, of each row. svg: the figure."),
    value("-o output", "FILE", "Write to FILE.", Output()),
    switch("--details", "Show all tables, columns and rows, however narrow the terminal."),
    switch("--legend", "Say what each column means."),
    QUIET,
    DEBUG,
)
_OF_PRINTING = ("form", "output", "details", "legend", "quiet", "debug")


def of_extras(command: str) -> list[Option]:
    """Return the click options that extra packages add to a command, for functions and keywords of theirs."""
    out = [
        value(each.flag, each.metavar, each.words, each.kind) if each.metavar else switch(each.flag, each.words)
        for each in extras.switches(command)
    ]
    for name, each in extras.keywords().items():
        if each.metavar and command in each.obeyed_by.split():
            out.append(value(f"--{name.replace('_', '-')}", each.metavar, each.words))
    return out


def writing(command: str) -> list[Option]:
    """Return the click options by which extra packages write a command's result to a folder."""
    return [target(each.flag, "DIR", each.words) for each in extras.writers(command)]


def mapping(pairs: Iterable[str], option: str, *, one_word: bool = False) -> dict[str, str]:
    """Convert NAME=VALUE texts to a dictionary. Raise InputError for a text without `=` or a name with two values.

    With `one_word`, a word without `=` is both name and value.

    Raises:
        InputError: a pair without `=`, or with an empty side; a name with two values.
    """
    out: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        value = name if one_word and not equals else value
        if not name or not value:
            raise InputError(f"{option} {pair!r}: write NAME=VALUE")
        if out.get(name, value) != value:
            raise InputError(f"{option} {name} is both {out[name]!r} and {value!r}: say one of them")
        out[name] = value
    return out


def keywords(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a command's options to the library's keywords. Drop None and those on printing, add `progress`, `say`."""
    chosen = {name: value for name, value in choices.items() if name not in _OF_PRINTING and value is not None}
    if "columns" in chosen:
        pairs = [pair for text in chosen["columns"] for pair in _split_pairs(text)]
        chosen["columns"] = mapping(pairs, "--columns") or None
    if "groups" in chosen:
        chosen["groups"] = mapping(chosen["groups"], "--group")
    if "models" in chosen:
        chosen["models"] = [name.strip() for name in chosen["models"].split(",")]
    return chosen | {"progress": progress, "say": lambda text: hints([text])}


_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def _split_pairs(text: str) -> list[str]:
    """Split a text at commas into NAME=VALUE pairs, but not at commas inside names or templates."""
    templates = _TEMPLATE.findall(text)
    parts = re.split(",(?=[^,=]*=)", _TEMPLATE.sub("\x00", text))
    rest = iter(templates)
    return [re.sub("\x00", lambda _: next(rest), part) for part in parts]


def answer(function: Callable[..., R], choices: dict[str, Any], *sides: Any, **more: Any) -> R:
    """Call a library function, or that of an extra's flag, with options. Show and return its result. Refuse two flags.

    Its notes name flags.

    With the flag of an extra, call the extra's function, which knows no more than the options.
    """
    from dataclasses import replace

    name = str(click.get_current_context().info_name)
    taken = [(each, choices.pop(each.name)) for each in extras.switches(name)]
    given = [(each, value) for each, value in taken if value is not None and value is not False]
    flags = [each for each, _ in given if not each.beside]
    places = {each: choices.pop(each.name) for each in extras.writers(name)}
    if len(flags) > 1:
        raise InputError(f"{flags[0].flag} and {flags[1].flag} ask for two things: give one of them")
    if alone := next((one for one, _ in given if one.beside and one.beside not in [each.flag for each in flags]), None):
        raise InputError(f"{alone.flag} is about {alone.beside}: give it, too")
    if flags:
        function = extras.public(flags[0].functions[name])
        more = {each.name: value for each, value in given if each.metavar}
    result = function(*sides, **keywords(choices), **more)
    table: Any = result  # a dataclass with notes, as all kinds that a command prints are
    result = replace(table, notes=tuple(note.reworded(in_flags) for note in table.notes))
    _show(result, choices)
    for each, place in places.items():
        if place is not None:
            wrote(extras.public(each.function)(result, place, command=typed(), words=in_flags), choices)
    return result


def counts(text: str) -> str | tuple[int, int]:
    """Convert a text such as 17/20 to (17, 20), unless a file has that name. Return other texts unchanged."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    return text if match is None or Path(text).exists() else (int(match[1]), int(match[2]))


def progress(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """Yield the items unchanged. On a terminal, show a bar of several items on stderr after two seconds."""
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
    """Print a result in the chosen format, or write it to the output file, and print its notes."""
    form, output = choices["form"], choices["output"]
    in_table = getattr(table, "shows_notes", False) and form not in ("json", "csv")
    shown: dict[str, Any] = {"details": choices["details"], "wide": choices["details"]}
    shown |= {"legend": choices["legend"] or (False if choices["quiet"] else None), "words": in_flags}
    from ..report.text import render

    if choices["quiet"] and in_table:  # how files were read is a hint; what limits the result is not
        told: Any = table
        table = replace(told, notes=tuple(note for note in told.notes if note.place < 2))
    text = render(table, form, **shown, color="auto" if output is None else "never")
    if output is None:
        click.echo(text, nl=False, color=True)
    else:
        from ..io.atomic import write_text

        write_text(output, text)
        wrote([output], choices)
    if not choices["quiet"] and not in_table:
        _hints_after(getattr(table, "notes", ()), every=choices.get("details", False))


MOST_HINTS = 2
"""Hints that follow a result unless all are asked for."""


def _hints_after(notes: Sequence[Any], *, every: bool) -> None:
    """Print a result's notes on stderr: all of them, or the most important and the number of others."""
    sys.stdout.flush()
    if every:
        hints(notes)
        return
    first = sorted(notes, key=lambda note: note.place)[:MOST_HINTS]
    hints(first)
    left = len(notes) - len(first)
    if left:
        hints([f"{counted(left, 'more hint')}: --details"])


def wrote(paths: Iterable[Path], choices: dict[str, Any]) -> None:
    """Print on stderr the path of each file written, unless the user asked for quiet."""
    if not choices["quiet"]:
        hints(f"wrote {path}" for path in paths)


def typed() -> str | None:
    """Return the running click command's line as the user typed it, without secrets, None if unknown."""
    import shlex

    arguments = click.get_current_context().find_root().obj
    return None if arguments is None else without_secrets(shlex.join(["harness-noise", *arguments]))


def hints(said: Iterable[Any]) -> None:
    """Print notes or sentences on stderr, each on a line after "harness-noise: ", with parameters reworded as flags."""
    for one in said:
        sentence = one if isinstance(one, str) else one.as_text()
        clean = "".join(c if c.isprintable() else "�" for c in in_flags(sentence))
        click.echo(_wrapped(f"harness-noise: {clean}"), err=True)


def _wrapped(text: str) -> str:
    """Wrap a text to the terminal's width, or leave it on one line if stderr is not a terminal."""
    if not sys.stderr.isatty():
        return text
    width = max(40, shutil.get_terminal_size().columns)
    how: dict[str, Any] = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, width, **how)
