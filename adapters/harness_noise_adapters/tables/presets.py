"""Formats that are tables in disguise, as data: those of `formats.toml`, and a user's own.

A preset names the rows of a file and, for each of our columns, the path at which it stands. Nothing here knows a
format; what it takes more than paths to read is an adapter.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from harness_noise.data.clusters import MissingFieldError, UserSpec, is_plain, namer, value_of
from harness_noise.errors import FinalError, InputError
from harness_noise.io.paths import opened
from harness_noise.settings import CAUSES

from .blocks import Block
from .documents import VALUE, document, keyed_rows, object_at
from .files import blocks, gathered, is_document, is_lines, narrow, objects, records
from .opening import Record, Rows, readable, stem, suffix_of

T = TypeVar("T")
Getter = Callable[[Any], Any]
ANY = "*"
OF_FILE = "@"
OFF = "none"
"""The word in `columns` that forbids a column."""
_HEAD = 5
"""Rows that are looked at to recognise a format."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why an answer has no score, and the values of a row that show it."""

    cause: str = ""
    """The name of the reason, empty if it is unknown."""
    where: Mapping[str, Any] = field(default_factory=dict)
    if_empty: bool = False
    """True if it applies only to rows without a score. Otherwise it removes the row's score."""


@dataclass(frozen=True, slots=True)
class ScorePath:
    """The place of one metric's scores, or of several metrics' scores if the path has a `*`."""

    path: str
    metric: str = ""
    """The metric's name. By default it is the key that `*` matched, or the last part of the path."""
    name: str = ""
    """The path to the metric's name inside each item that `*` matches."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Only rows that say this."""
    leave_out: Sequence[str] = ()
    """Globs of metrics that are none."""
    take: Sequence[str] = ()
    """Globs of the only metrics that are any, where other numbers may stand beside them."""
    several: bool = False
    """True if a list there holds the scores of several answers, in order."""
    words: bool = True
    """True if a word may be a score."""
    bounds: Sequence[float] = ()
    native: str = ""
    """A Jinja template of the format's own mean, from `file`, `model` and `metric`."""
    missing: Sequence[Cause] = ()
    """Causes that are told beside each score, and not by the row."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The places of questions, scores and everything else in the files of one format."""

    name: str
    reads: str
    """One line for people."""
    when: Sequence[str]
    """Paths that are in the file (`@…`) or in its first row, if it is of this format."""
    question: Sequence[str]
    """The path of the question's name, or several paths whose values name it together."""
    score: Sequence[ScorePath]
    rows: Sequence[str] = ()
    """The places of the rows in a JSON object. `a + b` are the rows of both."""
    files: Sequence[str] = ()
    """Globs inside a folder of files that hold a row each, whose `@key` is where it lies."""
    document: Sequence[str] = ()
    """Names that only such lines have as speak of the whole file."""
    known_by: Sequence[str] = ()
    """Paths of which one has a value in each row, or the questions cannot be told apart."""
    advice: str = ""
    """Advice for a file in which no row has a score."""
    text: str = ""
    target: str = ""
    answer: str = ""
    model: str = ""
    task: str = ""
    metric: str = ""
    """The path of a row's metric, if rows name it themselves."""
    scorer: str = ""
    repeat: str = ""
    shared_repeats: bool = False
    """True if a repeat shares a cause with the repeats of the same name of all other questions."""
    condition: str = ""
    """The path of a condition, such as a prompt, under which all questions are asked in turn. Answers under several are
    repeats."""
    cluster: str = ""
    date: str = ""
    stops_on: str = ""
    """The outcome that ends the answers to a question, success or failure, else empty."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """More fields of each row, for `by`, `cluster` and `factors`."""
    missing: Sequence[Cause] = ()


_TYPES: dict[str, type] = {"str": str, "bool": bool, "Mapping": dict, "Sequence": list}


def _checked_entry(kind: type[T], place: str, data: Any, **more: Any) -> T:
    """Build an object of class `kind` from one entry of a formats file. Refuse unknown, missing or wrong fields."""
    if not isinstance(data, dict):
        raise InputError(f"{place}: is no table of names and values")
    by_name = {each.name: each for each in fields(kind) if each.name not in more}  # type: ignore[arg-type]
    if unknown := data.keys() - by_name.keys():
        raise InputError(f"{place}: {min(unknown)!r} is not known. There are {', '.join(sorted(by_name))}")
    for name, value in data.items():
        wanted = _TYPES[str(by_name[name].type).partition("[")[0]]
        listed = value if isinstance(value, list) else []
        if not isinstance(value, wanted) or {*map(type, listed)} - {str, int, float}:
            raise InputError(f"{place}: {name} is not what it should be, but {value!r:.60}")
    try:
        return kind(**more, **data)
    except TypeError as error:
        raise InputError(f"{place}: {str(error).partition(' ')[2]}") from None


def _preset(file: str, name: str, data: Any) -> Preset:
    place = f"{file}: [{name}]"
    if not isinstance(data, dict):
        raise InputError(f"{place}: is no table of names and values")
    data = {"reads": name, "when": [], "question": []} | data
    for key in ("rows", "when", "question", "document", "known_by", "files"):
        data |= {key: [data[key]]} if isinstance(data.get(key), str) else {}
    scores = data.pop("score", None)
    made = []
    for entry in scores if isinstance(scores, list) else [{"path": scores} if isinstance(scores, str) else scores]:
        beside = _causes(place, entry.pop("missing", ()) if isinstance(entry, dict) else ())
        made.append(_checked_entry(ScorePath, f"{place}: score", entry, missing=beside))
    causes = _causes(place, data.pop("missing", ()))
    preset = _checked_entry(Preset, place, data, name=name, score=made, missing=causes)
    if not (preset.when and preset.question and all(score.path for score in made)):
        raise InputError(f"{place}: says neither `when` a file is of this format nor which path is the `question`")
    if preset.stops_on not in ("", "success", "failure"):
        raise InputError(f"{place}: stops_on is success or failure, not {preset.stops_on!r:.40}")
    return preset


def _causes(place: str, data: Any) -> list[Cause]:
    made = [_checked_entry(Cause, f"{place}: missing", entry) for entry in data]
    for cause in made:
        if cause.cause and cause.cause not in CAUSES:
            raise InputError(f"{place}: missing: {cause.cause!r} is no cause. There are {', '.join(CAUSES)}")
        if not cause.where:
            raise InputError(f"{place}: missing: {cause.cause}: `where` says nothing, so every answer would be missing")
    return made


def all_presets(own: str | None = None) -> list[Preset]:
    """Return formats of a user's file (`own`, else in settings), then built-ins of other names. Refuse a faulty file.

    Raises:
        InputError: a file of formats that cannot be used; says which entry.
    """
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = home / "harness-noise" / "formats.toml" if own is None else Path(own)
    if own is None and not path.is_file():
        return list(_built_in())
    try:
        with opened(path) as file:
            mine = formats_in(str(path), file.read().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    names = {preset.name for preset in mine}
    return [*mine, *(preset for preset in _built_in() if preset.name not in names)]


@cache
def _built_in() -> tuple[Preset, ...]:
    return formats_in("formats.toml", (files(__package__) / "formats.toml").read_text(encoding="utf-8"))


def formats_in(file: str, text: str) -> tuple[Preset, ...]:
    """Parse the table formats that a TOML text describes, with errors that name the faulty entry.

    Raises:
        InputError: an entry that cannot be used; says which.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not TOML ({error})") from None
    return tuple(_preset(file, name, entry) for name, entry in data.items())


def is_empty(value: Any) -> bool:
    """Return True if a cell holds nothing: null, NaN, or an empty text, list or object."""
    return value is None or (
        not value if isinstance(value, (str, list, dict)) else value is not True and value != value
    )


def getter(spec: str) -> Getter:
    """Return a function from a row to the value at a path such as `a.b | c` (the first not empty one), else None."""
    if not spec:
        return lambda row: None
    if not is_plain(spec) or " | " not in spec:
        return _single(spec)
    ways = [_single(part.strip()) for part in spec.split(" | ")]

    def first(row: Any) -> Any:
        return next((value for way in ways if not is_empty(value := way(row))), None)

    return first


def column(spec: str, get: Getter | None) -> Callable[[Block], Sequence[Any]]:
    """Return a function from a batch of n rows to the (n,) values at a path, faster than one by one."""
    if get is None:
        return lambda block: [None] * len(block)
    first, *others = [""] if set(spec) & set(" *|{@") else spec.split(".")
    steps = [itemgetter(name) for name in others]

    def values(block: Block) -> Sequence[Any]:
        if spec in block.cells:
            return block.cells[spec]
        if first in block.cells:
            picked: Iterable[Any] = block.cells[first]
        else:
            picked = map(itemgetter(first), block.rows)
        for step in steps:
            picked = map(step, picked)
        try:
            return list(picked if first else map(get, block.rows))
        except (KeyError, TypeError, IndexError):
            return list(map(get, block.rows))

    return values


def _single(path: str) -> Getter:
    if not is_plain(path):
        name = namer(UserSpec(path))

        def rendered(row: Any) -> Any:
            try:
                return name(row)
            except MissingFieldError:
                return None

        return rendered
    if "*" in path:
        return lambda row: next((value for _, _, value in spread(path, row) if not is_empty(value)), None)
    parts = path.split(".")
    if len(parts) == 1:
        return lambda row: row.get(path)

    first, second, *others = parts

    def at(row: Any) -> Any:
        try:
            if not others:
                return row[first][second]
        except (KeyError, TypeError, IndexError):
            pass
        outer = parsed_cell(row.get(first)) if isinstance(row, Mapping) else None
        try:
            return value_of(path, row if outer is None else {first: outer})
        except MissingFieldError:
            return None

    return at


def parsed_cell(cell: Any) -> Any:
    """Parse a text cell that holds a JSON or Python list or dictionary, and return that, else None."""
    if not isinstance(cell, str) or cell[:1] not in ("{", "["):
        return None
    for decode in (json.loads, literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return decode(cell)
    return None


def spread(path: str, row: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (matched name, holding object, value) for each match of a path's `*` in a row."""
    before, _, after = path.partition("*")
    inside = getter(before[:-1])(row) if before.endswith(".") else None
    inside = parsed_cell(inside) if isinstance(inside, str) else inside
    if isinstance(inside, (list, dict)):
        named = inside.items() if isinstance(inside, dict) else enumerate(inside)
        rest = getter(after[1:]) if after else None
        for name, value in named:
            if rest is None:
                yield str(name), row, value
            elif isinstance(value, Mapping):
                yield str(name), value, rest(value)
        return
    pattern = _pattern(path)
    for name in row:
        if (match := pattern.fullmatch(str(name))) is not None:
            yield match[1], row, row[name]


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.escape(path).replace(r"\*", "(.+?)"), re.DOTALL)


def holds(where: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return a test of a row for all these values at these paths (list: any of them, `*`: not empty and not False)."""

    def of(path: str, wanted: Any) -> Callable[[Any], bool]:
        get = getter(path)
        if isinstance(wanted, str) and wanted != ANY and not set(path) & set(".*|{"):
            return lambda row: row.get(path) == wanted  # most rows of a log are asked this
        if wanted == ANY:
            return lambda row: (value := get(row)) is not None and value is not False and not is_empty(value)
        values = wanted if isinstance(wanted, list) else [wanted]
        if "*" in path:
            return lambda row: any(value in values for _, _, value in spread(path, row))
        return lambda row: get(row) in values

    checks = [of(path, wanted) for path, wanted in where.items()]
    return checks[0] if len(checks) == 1 else lambda row: all(check(row) for check in checks)


def is_there(path: str, place: Any) -> bool:
    """Return True if a row or file has a value (null too, of a top-level name or `*`) at one of the paths `a | b`."""
    ways = path.split(" | ")
    return (
        any(way in place for way in ways)
        or any(next(spread(way, place), None) for way in ways if "*" in way)
        or (getter(path)(place) is not None)
    )


@dataclass(slots=True)
class Recognised:
    """A file, its format, and where its rows are."""

    path: Path | Rows
    preset: Preset
    file: dict[str, Any] = field(default_factory=dict)
    """The facts about the whole file that have been read so far."""
    whole: Any = None
    """The document of a JSON file, or the list of its rows for a known format."""
    inside: str | None = None
    """The path to the rows inside the objects of a JSON file, for a table without a format."""

    def __post_init__(self) -> None:
        if isinstance(self.path, Path):
            self.file = {"file": stem(self.path), "folder": self.path.absolute().parent.name} | self.file

    @property
    def strict(self) -> bool:
        """True if a number in quotes is no score, as in JSON and Parquet. False for CSV and tables in memory."""
        return isinstance(self.path, Path) and suffix_of(self.path) not in (".csv", ".tsv")

    def blocks(self, names: Sequence[str] = ()) -> Iterator[Block]:
        """Yield the file's rows in batches. Facts about the whole file are complete after the last.

        Args:
            names: the only ones of each row that are wanted; none: all of them.
        """
        if is_lines(self.path) and isinstance(self.path, Path) and self.inside is None:
            one_kind = not self.preset.document and kinds(self.preset) is None
            return narrow(self.path, names) if names and one_kind else self._lines(self.path)
        return blocks(self.path, self.inside, self.whole)

    def _lines(self, path: Path) -> Iterator[Block]:
        self.file = {}
        self.__post_init__()
        for numbers, rows in gathered(objects(path, _unwanted(self.preset))):
            file_lines = {i: name for name in self.preset.document for i, row in enumerate(rows) if name in row}
            for i, name in sorted(file_lines.items()):
                if self.file.setdefault(name, rows[i][name]) != rows[i][name]:
                    raise InputError(f"{path}, line {numbers[i]}: a second {name!r}: two runs in one file. Split it")
            kept = [i for i in range(len(rows)) if i not in file_lines] if file_lines else range(len(rows))
            yield Block([numbers[i] for i in kept], [rows[i] for i in kept]) if file_lines else Block(numbers, rows)


def kinds(preset: Preset) -> tuple[str, set[str]] | None:
    """Return (field, values) by which a format picks the kinds of rows that it reads, None without one field."""
    wheres = [*(score.where for score in preset.score), *(cause.where for cause in preset.missing)]
    names = {name for where in wheres for name in where}
    values = [value for where in wheres for value in where.values()]
    plain = all(isinstance(value, str) and value != ANY for value in values) and not set("".join(names)) & set(".*|{")
    return (names.pop(), set(values)) if len(names) == 1 and all(wheres) and plain else None


def _unwanted(preset: Preset) -> Callable[[bytes], bool] | None:
    """Return a quick test, on bytes, for lines of a kind that the format skips, None if it skips none."""
    kind = kinds(preset)
    if kind is None:
        return None
    key, wanted = f'"{kind[0]}":'.encode(), {word.encode() for word in kind[1]}

    def unwanted(line: bytes) -> bool:
        at = -1 if len(line) <= _SHORT else line.find(key)
        if at < 0 or line.find(b"{", 1, at) >= 0:  # else the key is that of the object itself, and of none inside
            return False
        blank, *word = line[at + len(key) : at + _NEAR].split(b'"', 2)
        return len(word) > 1 and word[0] not in wanted and line.endswith(_ENDS) and not blank.strip()

    return unwanted


_ENDS = (b"}\n", b"}", b"}\r\n")
_SHORT = 500
"""Bytes of a line that is decoded as soon as its kind is found."""
_NEAR = 100
"""Bytes after its key within which a line names its kind. A line that needs more is decoded."""


def recognised(path: Path | Rows, own: str | None, chosen: Mapping[str, str]) -> Recognised:
    """Return the file with the format that fits, `TABLE` if none, or if `chosen` rules them out. Refuse if unreadable.

    Args:
        path: the file.
        own: the user's file of formats.
        chosen: columns that the user names; with others than `OURS` it is a table without a format.

    Raises:
        InputError: the file, or that of the formats, cannot be read.
    """
    with readable(path):
        whole = document(path) if isinstance(path, Path) and is_document(path) else None
        table = Recognised(path, TABLE, whole=whole, inside=chosen.get("rows"))
        if not set(chosen) <= set(OURS):
            return table
        head = [] if whole is not None else [row for _, row in islice(records(path), _HEAD)]
    sources = (_with_format(path, preset, whole, head) for preset in all_presets(own))
    return next((source for source in sources if source is not None), table)


TABLE = Preset(name="table", reads="a table", when=(), question=(), score=())


def _with_format(path: Path | Rows, preset: Preset, whole: Any, head: Sequence[Record]) -> Recognised | None:
    """Return the file together with this format if it fits, else None. Refuse a file of it without answers."""
    if whole is not None:
        file = whole if isinstance(whole, dict) else {}
        rows = whole if isinstance(whole, list) else _list_at(whole, preset.rows)
        row = next(iter(rows or ()), None)
    else:
        file_lines = [line for line in head if any(name in line for name in preset.document)]
        file, rows = {name: line[name] for line in file_lines for name in preset.document if name in line}, None
        row = next((line for line in head if line not in file_lines), None)
    about = [path.replace(OF_FILE, "") for path in preset.when if path.startswith(OF_FILE)]
    if not all(is_there(path, file) for path in about):
        return None
    if about and rows is None and any(_is_empty_at(whole, place) for place in preset.rows):
        raise InputError(
            f"{path}: a file of {preset.name} ({preset.reads}) with no answers in it, at {' or '.join(preset.rows)}"
        )
    of_row = [way for way in preset.when if not way.startswith(OF_FILE)]
    fits = isinstance(row, Mapping) and all(is_there(way, row) for way in of_row)
    return Recognised(path, preset, file, rows) if fits else None


OURS = ("question", "model", "task", "repeat", "cluster")
"""Words of `columns` that keep a known format. With any other word the file is read as a plain table."""


def _list_at(whole: Any, places: Sequence[str]) -> list[Any] | None:
    """Return the rows at the first of these paths of a JSON document that has any, None if none has."""
    for place in places:
        rows: list[Any] = []
        for path in place.split(" + "):
            if not isinstance(whole, dict):
                continue
            value = object_at(whole, path) if path.endswith(ANY) else getter(path)(whole)
            rows += _rows_keyed(value) if isinstance(value, dict) and path.endswith(ANY) else []
            rows += value if isinstance(value, list) else []
        if rows:
            return rows
    return None


def _rows_keyed(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return rows of an object that maps question names to answers, without plain values such as totals."""
    rows = list(keyed_rows(value))
    told = [row for row in rows if not (VALUE in row and isinstance(row[VALUE], (str, int, float, type(None))))]
    return told or rows


def _is_empty_at(whole: Any, place: str) -> bool:
    """Return True if a JSON document has an empty list or object at a path (or one of several joined by " + ")."""
    for path in place.split(" + "):
        value = object_at(whole, path) if path.endswith(ANY) else getter(path)(whole)
        if isinstance(value, (list, dict)) and not value:
            return True
    return False


def _ways(spec: str) -> list[str]:
    return [way.strip() for way in spec.split(" | ")] if is_plain(spec) else [spec]


def of_file(spec: str) -> Getter:
    """Return a function that takes the facts of the file and returns the value at the path's part after `@`."""
    return getter(" | ".join(way[1:] for way in _ways(spec) if way.startswith(OF_FILE)))


def of_row(spec: str) -> Getter | None:
    """Return a function that takes a row and returns the value at a path, None if only the file has it."""
    ways = [way for way in _ways(spec) if way and not way.startswith(OF_FILE)]
    return getter(" | ".join(ways)) if ways else None


def rendered(template: str, **values: Any) -> float | None:
    """Fill a template with values and return the result as a number, None if missing or not a number."""
    try:
        return float(namer(UserSpec(template))(values))
    except (FinalError, ValueError):
        return None
