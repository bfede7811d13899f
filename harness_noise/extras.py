"""The doors between the core and `harness_noise/extra/`: the core names no extra, and asks here what each adds.

An extra is a package in that folder whose `EXTRA` says what it has. Any of them can be deleted, and all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from .errors import InputError

FOLDER = f"{__package__}.extra"


@dataclass(frozen=True, slots=True)
class CommandFlag:
    """An option that an extra adds to commands of the core."""

    flag: str
    words: str
    """Its help."""

    @property
    def name(self) -> str:
        """Python parameter name of the flag: `follow_links` for `--follow-links`."""
        return self.flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Switch(CommandFlag):
    """A flag that makes a command of the core call another function instead."""

    functions: Mapping[str, str]
    """Command → the public function that it calls with this flag."""
    metavar: str = ""
    """The name of its value in the help, "" for a flag without one. The function gets the value by the flag's name."""
    kind: type = int
    """The type of its value."""
    beside: str = ""
    """Another flag that this one is about, "" if it calls the function by itself."""


@dataclass(frozen=True, slots=True)
class Writer(CommandFlag):
    """An option of commands of the core that names a folder, into which a function writes the result."""

    function: str
    """The public function, of the result and the folder, with `command`: what was typed, and `words`: what rewrites a
    sentence."""
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword of functions of the core whose work an extra does."""

    module: str
    """The module that does it."""
    obeyed_by: str
    """Calculations of the core that obey it."""
    display: str = ""
    """The module that shows what it adds to a result."""
    metavar: str = ""
    """The name of its value in the help, "" if the core has an option for it."""
    words: str = ""
    """Its help."""


@dataclass(frozen=True, slots=True)
class Option(CommandFlag):
    """An option of commands of the core that says what is read, and gives a keyword of their function."""

    commands: tuple[str, ...]
    metavar: str = ""
    """Its value in the help: LOW,HIGH for two numbers; "" if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation:
    """What a calculation of an extra obeys, and how it refuses what it does not obey (see `settings`)."""

    like: str = ""
    """A calculation of the core that obeys the same fields of `Settings`, in the same values."""
    obeys: str = ""
    """Fields of `Settings` and other keywords that it obeys in any value."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field of `Settings` → the values that it obeys besides the default."""
    values_of: Mapping[str, str] = field(default_factory=dict)
    """Field of `Settings` → a calculation of the core that obeys the same values."""
    refusals: Mapping[str, str]
    """Keyword → the sentence that refuses it, with `{what}` for the keyword. "" is for all others."""
    words: str = ""
    """Its name on the page of all choices, "" if that does not say which choices it obeys."""


@dataclass(frozen=True, slots=True)
class Extra:
    """All that an extra adds. Modules are named from its package and imported when they are needed."""

    functions: Mapping[str, str] = field(default_factory=dict)
    """Public name → the module that has it."""
    results: str = ""
    """The module of its kinds of results."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Name of a command → the module that has it, as `command`."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Public function → the command that calls it, where that has another name."""
    switches: tuple[Switch, ...] = ()
    keywords: Mapping[str, Keyword] = field(default_factory=dict)
    """Keyword of functions of the core → who does what it asks for."""
    options: tuple[Option, ...] = ()
    writers: tuple[Writer, ...] = ()
    forms: Mapping[str, str] = field(default_factory=dict)
    """Format → the module whose `make` writes a run in it for `export`, as an adapter's does, with `say` for notes."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Model of lm-eval (`--model NAME`) → the module, by its whole name, whose `prepare(arguments)` makes it known."""
    calculations: Mapping[str, Calculation] = field(default_factory=dict)
    """Name → what it obeys. A command has the name of its calculation."""
    prepares: Mapping[str, str] = field(default_factory=dict)
    """Field or property of `Settings` → the module that changes runs by it, all together, before anything is computed.

    Its function is `prepare(runs, settings)`. Its `fields(settings)` are the fields of the questions that it needs.
    """
    whole: str = ""
    """The module that makes the rows of metrics over all questions at once, which are no means.

    Its functions are `estimate_corpus(part, run, settings)` and `corpus_difference(a, b, run_a, run_b, settings)`, and
    those that shipped tests name in `of_corpus`.
    """
    explains: Mapping[str, str] = field(default_factory=dict)
    """Optional field of rows → the module that explains a row which has it.

    Its functions are `estimand(rows)`, `size(row)`, `remark(row)` and `noise(row, scale, assurance)`, for sizes of
    designs. Its SUBJECT is the estimand in a sentence.
    """
    tooltips: str = ""
    """The module of its function `tooltip(heading, row)`, which explains columns and cells of pages."""
    listing: str = ""
    """The module of what `list` says beside formats: `heading` and `rows` of all, and `about` of one name or file."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Code of its notes → what such a note is about."""
    routine_notes: tuple[str, ...] = ()
    """Codes of what is mostly as it should be: other notes are shown before them."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Place in a help, a sentence or a page of the core → what is said there of this extra."""
    needs: tuple[str, ...] = ()
    """Folders of other extras, without which it is not there."""


@cache
def found() -> dict[str, Extra]:
    """Return {package: `Extra`} of all extras that are installed with those that they need. {} without the folder."""
    try:
        folder = import_module(FOLDER)
    except ModuleNotFoundError:
        return {}
    names = sorted(module.name for module in iter_modules(folder.__path__) if module.ispkg)
    every = {name: import_module(f"{FOLDER}.{name}").EXTRA for name in names}
    return {f"{FOLDER}.{name}": extra for name, extra in every.items() if every.keys() >= {*extra.needs}}


def public(name: str) -> Any:
    """Return the public function or class with this name from an installed extra, None if none has it."""
    for package, extra in found().items():
        if name in extra.functions:
            return getattr(import_module(f"{package}.{extra.functions[name]}"), name)
    return None


def module_of(keyword: str, what: str = "") -> Any:
    """Return the extra's module that handles a keyword of the core, or raise an error if it is not installed.

    Args:
        keyword: it.
        what: the name of what is missing if no extra does, for a user who has not given the keyword.

    Raises:
        InputError: no extra does.
    """
    if (found := module_if_any(keyword)) is None:
        raise InputError(not_installed(what or f"`{keyword}`"))
    return found


def module_if_any(keyword: str) -> Any:
    """Return the extra's module that handles a keyword of the core, None if none is installed."""
    for package, extra in found().items():
        if keyword in extra.keywords:
            return import_module(f"{package}.{extra.keywords[keyword].module}")
    return None


def preparing(name: str, what: str) -> Any:
    """Return the extra's module that changes runs by a field of `Settings`. Raise an error if it is not installed.

    Args:
        name: of the field or property.
        what: the option, as its user knows it.

    Raises:
        InputError: no extra does.
    """
    for package, extra in found().items():
        if name in extra.prepares:
            return import_module(f"{package}.{extra.prepares[name]}")
    raise InputError(not_installed(what))


def whole() -> Any:
    """Return the extra's module for metrics over all questions at once, None if none is installed."""
    for package, extra in found().items():
        if extra.whole:
            return import_module(f"{package}.{extra.whole}")
    return None


def display_of(keyword: str) -> Any:
    """Return the extra's module that shows what a keyword added to a result. The extra must be installed."""
    return next(
        import_module(f"{package}.{extra.keywords[keyword].display}")
        for package, extra in found().items()
        if keyword in extra.keywords
    )


def result_modules() -> list[ModuleType]:
    """Import and return the modules in which installed extras define their result classes."""
    return [import_module(f"{package}.{extra.results}") for package, extra in found().items() if extra.results]


def commands() -> dict[str, str]:
    """Return a dict from each extra's command to the name of its module, not imported yet."""
    return {
        name: f"{package}.{module}" for package, extra in found().items() for name, module in extra.commands.items()
    }


def called() -> dict[str, str]:
    """Return a dict from function to command, of the functions of extras whose command has another name."""
    return {name: command for extra in found().values() for name, command in extra.called.items()}


@cache
def calculations() -> dict[str, Calculation]:
    """Return a dict from name to declaration of the calculations that installed extras add."""
    return {name: each for extra in found().values() for name, each in extra.calculations.items()}


@cache
def notes() -> dict[str, str]:
    """Return the codes of notes of extras, and what each is about."""
    return {code: about for extra in found().values() for code, about in extra.notes.items()}


@cache
def routine_notes() -> frozenset[str]:
    """Return the codes of notes of extras that are shown last."""
    return frozenset(code for extra in found().values() for code in extra.routine_notes)


def words(place: str, **values: str) -> str:
    """Return what installed extras say of themselves at a place of the core, with {name} replaced by its value."""
    text = "".join(said(place))
    return text.format(**values) if values else text


def said(place: str) -> list[str]:
    """Return what each installed extra says of itself at a place of the core."""
    return [extra.words[place] for extra in found().values() if place in extra.words]


def switches(command: str) -> list[Switch]:
    """Return the flags that installed extras add to a command."""
    return [switch for extra in found().values() for switch in extra.switches if command in switch.functions]


def forms() -> dict[str, str]:
    """Return a dict from each format in which extras can write a run to the name of its module."""
    return {name: f"{package}.{module}" for package, extra in found().items() for name, module in extra.forms.items()}


def models() -> dict[str, str]:
    """Return a dict from each model that extras add to lm-eval to the module that registers it."""
    return {name: module for extra in found().values() for name, module in extra.models.items()}


def options(command: str = "") -> list[Option]:
    """Return the options for reading that extras add to a command, or to any command if none is named."""
    every = [option for extra in found().values() for option in extra.options]
    return [option for option in every if command in ("", *option.commands)]


@cache
def keywords() -> dict[str, Keyword]:
    """Return a dict from each keyword of the core that an extra handles to its declaration."""
    return {name: each for extra in found().values() for name, each in extra.keywords.items()}


def writers(command: str) -> list[Writer]:
    """Return the options by which installed extras write a command's result to files."""
    return [writer for extra in found().values() for writer in extra.writers if command in writer.commands]


def tooltip(heading: str, row: Any = None) -> str:
    """Return an extra's explanation of a table column, or of a row's cell in it, "" if there is none."""
    for package, extra in found().items():
        if extra.tooltips and (text := import_module(f"{package}.{extra.tooltips}").tooltip(heading, row)):
            return str(text)
    return ""


def is_left_out(module: str) -> bool:
    """Return True if a module belongs to an optional feature (extra) that is not installed."""
    package, is_extra, name = module.partition(".extra.")
    if not is_extra:
        return False
    try:
        return find_spec(f"{package}.extra.{name.partition('.')[0]}") is None
    except ModuleNotFoundError:
        return True


@cache
def _explains() -> dict[str, str]:
    return {
        name: f"{package}.{module}" for package, extra in found().items() for name, module in extra.explains.items()
    }


def explaining(row: Any) -> Any:
    """Return the extra's module that explains an optional field which this row has, None without one."""
    modules = (module for name, module in _explains().items() if getattr(row, name, None) is not None)
    return import_module(found_module) if (found_module := next(modules, "")) else None


def listings() -> list[Any]:
    """Import and return the extras' modules that add lines to the command `list`."""
    return [import_module(f"{package}.{extra.listing}") for package, extra in found().items() if extra.listing]


def not_installed(name: str) -> str:
    """Return the error text that a command or function belongs to an extra that is not installed."""
    return (
        f"{name} is not installed: the folder of its extra was left out of this copy of harness-noise. Install the "
        "whole package with pip install --force-reinstall harness-noise"
    )
