"""Options that several commands share, and what the commands do with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import InputError
from ..io.paths import is_url

if TYPE_CHECKING:
    from ..report.summary import Result

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # older ones take no type parameter: 8.2 does not

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

FORMATS = ("table", "json", "markdown", "latex", "csv", "sentence")


class Output(click.Path):
    """A local file or folder to write to."""

    def __init__(self, **choices: Any) -> None:
        super().__init__(path_type=Path, **choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if is_url(value):
            self.fail(f"{value} is a URL; results are written to local files: copy them afterwards.", param, ctx)
        path = Path(str(super().convert(value, param, ctx)))
        if path.is_file() and sum(_names(word, path) for word in _typed_words(ctx)) > 1:
            self.fail(f"{path} is named twice, and no input is ever overwritten: write to another file.", param, ctx)
        return path


def _typed_words(ctx: click.Context | None) -> Sequence[str]:
    return () if ctx is None else ctx.find_root().obj or ()


def _names(word: str, path: Path) -> bool:
    """Whether a word of the command line, perhaps joined to its option (--html=FILE, -oFILE), names that file."""
    for text in (word, word.partition("=")[2], word.removeprefix("-o")):
        try:
            if text and Path(text).is_file() and Path(text).samefile(path):
                return True
        except (OSError, ValueError):  # no name that a file can have
            continue
    return False


class Range(ParamType):
    """LOW,HIGH: two numbers."""

    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            low, high = (float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not the metric's lowest and highest value, such as 0,1 or 0,100.", param, ctx)
        return low, high


def _stack(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    def wrap(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return wrap


RUN = click.argument("runs", metavar="RUN...", nargs=-1, required=True)

ADJUST = click.option(
    "--adjust",
    type=click.Choice(["holm", "bh", "none"]),
    default="holm",
    show_default=True,
    help="Adjust p-values within each family of rows.",
)

REFERENCES = click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="RUN",
    help="A complete run, used to extrapolate from this random subset, or a profile that has its questions "
    "(arena --write-profile FILE --questions); repeatable.",
)

BY = click.option(
    "--by",
    multiple=True,
    metavar="SPEC",
    help="Also slice by slice of this property of the questions, as a cluster's SPEC; numbers are cut at their "
    "quartiles (repeatable). auto: every category of 2 to 50 values and every number.",
)

reading: Callable[[F], F] = _stack(
    [
        click.option("--task", "tasks", multiple=True, metavar="TASK", help="Only this task (glob, repeatable)."),
        click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Only this metric."),
        click.option("--scorer", "scorers", multiple=True, metavar="SCORER", help="Only this scorer or filter."),
        click.option(
            "--cluster",
            multiple=True,
            metavar="SPEC",
            help="What questions share: a field, a.dotted.path, a Jinja template, task, none, auto, or TASK=SPEC "
            "(repeatable; twice for one task: crossed, as A*B). Default: the clusters that the run carries.",
        ),
        click.option(
            "--group", "groups", multiple=True, metavar="NAME=PATTERN", help="Average the tasks that match PATTERN."
        ),
        click.option("--as-repeats", is_flag=True, help="Several runs of one model are its repeats."),
        click.option("--apart", is_flag=True, help="Keep every run of a folder by itself, not one of each model."),
        click.option(
            "--missing",
            type=click.Choice(["drop", "zero"]),
            default="drop",
            help="Errored or missing answers: left out (default) or wrong. They are always counted.",
        ),
        click.option(
            "--columns", metavar="question=COL,…", help="Which column (or field) is the question, score, cluster, …"
        ),
    ]
)

computing: Callable[[F], F] = _stack(
    [
        click.option("--level", type=float, default=0.95, show_default=True, help="Coverage of the intervals."),
        click.option(
            "--se",
            type=click.Choice(["cr0", "cr1", "cr2", "cr3"]),
            default="cr2",
            show_default=True,
            help="Variance estimator; cr0 is the papers' (ddof = 0), cr3 the jackknife, for very unequal clusters.",
        ),
        click.option(
            "--interval",
            type=click.Choice(["auto", "t", "wilson", "clopper-pearson", "korn-graubard", "bootstrap"]),
            default="auto",
            show_default=True,
            help="Interval of a mean.",
        ),
        click.option(
            "--range",
            type=Range(),
            metavar="LOW,HIGH",
            help="Lowest and highest value of the metric, as 0,100 for a percentage. Default: what the run declares.",
        ),
        click.option(
            "--repeats-are",
            type=click.Choice(["answers", "runs"]),
            default="answers",
            show_default=True,
            help="Independent answers, or runs (seeds, prompts) that move all questions together.",
        ),
        click.option(
            "--questions-are",
            type=click.Choice(["population", "fixed"]),
            default="population",
            show_default=True,
            help="A sample of the questions that could be asked, or fixed: only these, judged from the repeats alone.",
        ),
        click.option("--seed", type=int, metavar="N", help="Of the resampling tests and intervals (default 0)."),
        click.option("--resamples", type=int, metavar="N", help="How many of them, 100 or more (default 10,000)."),
    ]
)

printing: Callable[[F], F] = _stack(
    [
        click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True),
        click.option("-o", "output", type=Output(), metavar="FILE", help="Write to FILE."),
        click.option("--details", is_flag=True, help="All tables, columns and rows, however narrow the terminal."),
        click.option("-q", "--quiet", is_flag=True, help="No hints on stderr, and no legend of the columns."),
        click.option("--debug", is_flag=True, help="Show a traceback when something fails."),
    ]
)


def mapping(items: Iterable[str], option: str) -> dict[str, str]:
    """NAME=VALUE pairs.

    Raises:
        InputError: an item without `=`.
    """
    out = {}
    for item in items:
        name, found, value = item.partition("=")
        if not found or not name.strip() or not value.strip():
            raise InputError(f"{option} {item!r}: write NAME=VALUE")
        out[name.strip()] = value.strip()
    return out


PRINTING = ("form", "output", "details", "quiet", "debug", "wide")


def keywords(choices: dict[str, Any]) -> dict[str, Any]:
    """A command's options as the keywords of the function that it calls, without those of printing."""
    found = {name: value for name, value in choices.items() if name not in PRINTING}
    if "columns" in found:
        found["columns"] = mapping((found["columns"] or "").split(",") if found["columns"] else (), "--columns")
    if "groups" in found:
        found["groups"] = mapping(found["groups"], "--group")
    if found.get("models") is not None:
        found["models"] = [name.strip() for name in found["models"].split(",")]
    given = {name: value for name, value in found.items() if value is not None}
    return given | {"progress": progress, "say": lambda text: hints([text])}


def progress(items: Iterable[T], what: str, total: int) -> Iterable[T]:
    """The items, with a bar on stderr once it has taken two seconds."""
    if total < 2 or not sys.stderr.isatty():
        return items
    return _bar(items, what, total)


def _bar(items: Iterable[T], what: str, total: int) -> Iterable[T]:
    import time

    start = time.monotonic()
    bar = None
    for done, item in enumerate(items):
        if bar is None and time.monotonic() - start > 2:
            bar = click.progressbar(length=total, label=what, file=sys.stderr)
            bar.update(done)
        yield item
        if bar is not None:
            bar.update(1)
    if bar is not None:
        bar.render_finish()


def show(table: Result, choices: dict[str, Any]) -> None:
    """Print a result, or write it to a file; hints go to stderr."""
    form, output = choices["form"], choices["output"]
    told = getattr(table, "shows_notes", False) and form not in ("json", "csv")
    if not choices["quiet"] and not told:
        hints(getattr(table, "notes", ()))
    shown = {"details": choices["details"], "legend": not choices["quiet"], "wide": choices.get("wide", False)}
    if form == "table" and output is None:
        from ..report import terminal

        terminal.print_to(None, table, **shown)
        return
    from ..report.text import render

    text = render(table, form, **shown)
    if output is None:
        click.echo(text, nl=False)
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
    from .flags import in_flags

    for note in notes:
        clean = "".join(c if c.isprintable() else "�" for c in in_flags(note))
        click.echo(f"harness-noise: {clean}", err=True)
