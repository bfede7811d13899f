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

from harness_noise.data.clusters import MissingFieldError, is_plain, labeller, value_of
from harness_noise.errors import FinalError, InputError
from harness_noise.settings import CAUSES

from .files import Record, Rows, document, is_lines, objects, readable, records, suffix_of

T = TypeVar("T")
Getter = Callable[[Any], Any]
ANY = "*"
OF_FILE = "@"
_BLOCK = 1024
"""Rows of a table that are read at once."""
_HEAD = 5
"""Rows that are looked at to recognise a format."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an answer has no score, and how a row says so."""

    cause: str = ""
    """Empty where nobody says."""
    where: Mapping[str, Any] = field(default_factory=dict)
    if_empty: bool = False
    """Only where the row has no score; else whatever stands there is none."""


@dataclass(frozen=True, slots=True)
class ScorePath:
    """Where the scores of one metric stand, or, with `*` in the path, of several."""

    path: str
    metric: str = ""
    """Its name; by default what the `*` stands for, or the last part of the path."""
    name: str = ""
    """Where each of the things that `*` stands for says its name."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Only rows that say this."""
    leave_out: Sequence[str] = ()
    """Globs of metrics that are none."""
    words: bool = True
    """Whether a word may be a score."""
    bounds: Sequence[float] = ()
    native: str = ""
    """A Jinja template of the format's own mean, from `file`, `model` and `metric`."""
    missing: Sequence[Cause] = ()
    """Causes that are told beside each score, and not by the row."""


@dataclass(frozen=True, slots=True)
class Preset:
    """What is where in the files of one format."""

    name: str
    reads: str
    """One line for people."""
    when: Sequence[str]
    """Paths that are in the file (`@…`) or in its first row, if it is of this format."""
    question: Sequence[str]
    """What names a question: one path, or several whose values do so together."""
    score: Sequence[ScorePath]
    rows: Sequence[str] = ()
    """Where a JSON object holds the rows; `a + b` are those of both."""
    document: Sequence[str] = ()
    """Names that only such lines have as speak of the whole file."""
    known_by: Sequence[str] = ()
    """Paths of which one has a value in each row, or the questions cannot be told apart."""
    advice: str = ""
    """What to do where none has."""
    text: str = ""
    target: str = ""
    answer: str = ""
    model: str = ""
    task: str = ""
    metric: str = ""
    """Where a row says its metric, in place of the name of a score."""
    scorer: str = ""
    repeat: str = ""
    shared_repeats: bool = False
    """Whether a repeat shares a cause with the repeats of that name of all other questions."""
    condition: str = ""
    """What a model is asked all questions with in turn, such as a prompt: answers under several are repeats."""
    cluster: str = ""
    date: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    """More fields of each row, for `by`, `cluster` and `factors`."""
    missing: Sequence[Cause] = ()


_TYPES: dict[str, type] = {"str": str, "bool": bool, "Mapping": dict, "Sequence": list}


def _made(kind: type[T], place: str, data: Any, **more: Any) -> T:
    """One entry of a formats file."""
    if not isinstance(data, dict):
        raise InputError(f"{place}: is no table of names and values")
    by_name = {each.name: each for each in fields(kind) if each.name not in more}  # type: ignore[arg-type]
    if unknown := data.keys() - by_name.keys():
        raise InputError(f"{place}: {min(unknown)!r} is not known; there are {', '.join(sorted(by_name))}")
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
    for key in ("rows", "when", "question", "document", "known_by"):
        data |= {key: [data[key]]} if isinstance(data.get(key), str) else {}
    scores = data.pop("score", None)
    made = []
    for entry in scores if isinstance(scores, list) else [{"path": scores} if isinstance(scores, str) else scores]:
        beside = _causes(place, entry.pop("missing", ()) if isinstance(entry, dict) else ())
        made.append(_made(ScorePath, f"{place}: score", entry, missing=beside))
    causes = _causes(place, data.pop("missing", ()))
    preset = _made(Preset, place, data, name=name, score=made, missing=causes)
    if not (preset.when and preset.question and all(score.path for score in made)):
        raise InputError(f"{place}: says neither `when` a file is of this format nor which path is the `question`")
    return preset


def _causes(place: str, data: Any) -> list[Cause]:
    made = [_made(Cause, f"{place}: missing", entry) for entry in data]
    for cause in made:
        if cause.cause and cause.cause not in CAUSES:
            raise InputError(f"{place}: missing: {cause.cause!r} is no cause; there are {', '.join(CAUSES)}")
        if not cause.where:
            raise InputError(f"{place}: missing: {cause.cause}: `where` says nothing, so every answer would be missing")
    return made


def all_presets(own: str | None = None) -> list[Preset]:
    """All formats, the user's own first: those of the file `own`, else of their folder of settings.

    Raises:
        InputError: a file of formats that cannot be used; says which entry.
    """
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    path = home / "harness-noise" / "formats.toml" if own is None else Path(own)
    if own is None and not path.is_file():
        return list(_built_in())
    try:
        mine = formats_in(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    names = {preset.name for preset in mine}
    return [*mine, *(preset for preset in _built_in() if preset.name not in names)]


@cache
def _built_in() -> tuple[Preset, ...]:
    return formats_in("formats.toml", (files(__package__) / "formats.toml").read_text(encoding="utf-8"))


def formats_in(file: str, text: str) -> tuple[Preset, ...]:
    """The formats that a TOML text describes.

    Raises:
        InputError: an entry that cannot be used; says which.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: not TOML ({error})") from None
    return tuple(_preset(file, name, entry) for name, entry in data.items())


def is_empty(value: Any) -> bool:
    """Whether a value says nothing: null, NaN, or a text, list or object with nothing in it."""
    return value is None or (
        not value if isinstance(value, (str, list, dict)) else value is not True and value != value
    )


def getter(spec: str) -> Getter:
    """A function from a row (or, for what stands behind `@`, a file) to the value at a path; None where it is not."""
    if not spec:
        return lambda row: None
    if not is_plain(spec) or " | " not in spec:
        return _single(spec)
    ways = [_single(part.strip()) for part in spec.split(" | ")]

    def first(row: Any) -> Any:
        return next((value for way in ways if not is_empty(value := way(row))), None)

    return first


def column(spec: str, get: Getter | None) -> Callable[[Sequence[Any]], list[Any]]:
    """A function from many rows to the values at a path, as its getter has them, but faster where all rows have one."""
    if get is None:
        return lambda rows: [None] * len(rows)
    steps = [] if not spec or set(spec) & set(" *|{@") else [itemgetter(name) for name in spec.split(".")]

    def values(rows: Sequence[Any]) -> list[Any]:
        picked: Iterable[Any] = rows
        for step in steps:
            picked = map(step, picked)
        try:
            return list(picked) if steps else list(map(get, rows))
        except (KeyError, TypeError, IndexError):
            return list(map(get, rows))

    return values


def _single(path: str) -> Getter:
    if not is_plain(path):
        label = labeller(path)

        def rendered(row: Any) -> Any:
            try:
                return label(row)
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
        outer = _opened(row.get(first)) if isinstance(row, Mapping) else None
        try:
            return value_of(path, row if outer is None else {first: outer})
        except MissingFieldError:
            return None

    return at


def _opened(cell: Any) -> Any:
    """The object or list that a cell of CSV holds, as JSON or as Python writes it; None where it holds none."""
    if not isinstance(cell, str) or cell[:1] not in ("{", "["):
        return None
    for decode in (json.loads, literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return decode(cell)
    return None


def spread(path: str, row: Any) -> Iterator[tuple[str, Any, Any]]:
    """What a `*` in a path stands for: its name, what holds it (a list's item, else the row), and the value there."""
    before, _, after = path.partition("*")
    inside = getter(before[:-1])(row) if before.endswith(".") else None
    inside = _opened(inside) if isinstance(inside, str) else inside
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
    """A function that says whether a row has all these values; of a list one of them, of `*` any at all."""

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
    """Whether a row or a file has something at one of the paths, if only null."""
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
    """What is said of the whole file, as far as it has been read."""
    whole: Any = None
    """The document that a JSON file is; of a known format, the list of its rows."""
    inside: str | None = None
    """The path to the rows inside the objects of a JSON file, for a table without a format."""

    @property
    def strict(self) -> bool:
        """Whether numbers are numbers and no texts, as in JSON."""
        return isinstance(self.path, Path) and suffix_of(self.path) not in (".csv", ".tsv")

    def blocks(self) -> Iterator[tuple[Sequence[int], Sequence[Record]]]:
        """The rows with their numbers, many at a time; what lines say of the whole file is in `file` at the end."""
        if is_lines(self.path) and isinstance(self.path, Path) and self.inside is None:
            yield from self._lines(self.path)
        else:
            rows = records(self.path, self.inside, self.whole)
            while block := list(islice(rows, _BLOCK)):
                yield [number for number, _ in block], [row for _, row in block]

    def _lines(self, path: Path) -> Iterator[tuple[Sequence[int], Sequence[Record]]]:
        self.file = {}
        for numbers, rows in objects(path, _unwanted(self.preset)):
            file_lines = {i: name for name in self.preset.document for i, row in enumerate(rows) if name in row}
            for i, name in sorted(file_lines.items()):
                if self.file.setdefault(name, rows[i][name]) != rows[i][name]:
                    raise InputError(f"{path}, line {numbers[i]}: a second {name!r}: two runs in one file; split it")
            kept = [i for i in range(len(rows)) if i not in file_lines] if file_lines else []
            yield ([numbers[i] for i in kept], [rows[i] for i in kept]) if file_lines else (numbers, rows)


def kinds(preset: Preset) -> tuple[str, set[str]] | None:
    """The one field whose word says what a row is, and all words that the preset asks for; None: it is not so."""
    wheres = [*(score.where for score in preset.score), *(cause.where for cause in preset.missing)]
    names = {name for where in wheres for name in where}
    values = [value for where in wheres for value in where.values()]
    plain = all(isinstance(value, str) and value != ANY for value in values) and not set("".join(names)) & set(".*|{")
    return (names.pop(), set(values)) if len(names) == 1 and all(wheres) and plain else None


def _unwanted(preset: Preset) -> Callable[[bytes], bool] | None:
    """A function that says, without decoding it, whether a line is of a kind that nobody asks for; None: none can."""
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
"""Bytes within which a line says its kind, once it has named the key; one that takes more is decoded."""


def recognised(path: Path | Rows, own: str | None, chosen: Mapping[str, str]) -> Recognised:
    """A file with the preset of its format; `TABLE` where there is none.

    Args:
        path: the file.
        own: the user's file of formats.
        chosen: columns that the user names; with others than `OURS` it is a table without a format.

    Raises:
        InputError: the file, or that of the formats, cannot be read.
    """
    with readable(path):
        whole = document(path) if isinstance(path, Path) and suffix_of(path) == ".json" else None
        table = Recognised(path, TABLE, whole=whole, inside=chosen.get("rows"))
        if not set(chosen) <= set(OURS):
            return table
        head = [] if whole is not None else [row for _, row in islice(records(path), _HEAD)]
    sources = (_as_of(path, preset, whole, head) for preset in all_presets(own))
    return next((source for source in sources if source is not None), table)


TABLE = Preset(name="table", reads="a table", when=(), question=(), score=())


def _as_of(path: Path | Rows, preset: Preset, whole: Any, head: Sequence[Record]) -> Recognised | None:
    """The file with this format; None where it is of another."""
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
    if about and preset.rows and isinstance(whole, dict) and rows is None:
        raise InputError(
            f"{path}: a file of {preset.name} ({preset.reads}) with no answers in it, at {' or '.join(preset.rows)}"
        )
    of_row = [way for way in preset.when if not way.startswith(OF_FILE)]
    fits = isinstance(row, Mapping) and all(is_there(way, row) for way in of_row)
    return Recognised(path, preset, file, rows) if fits else None


OURS = ("question", "model", "task", "repeat", "cluster")
"""What a user can say of a file whose format is known; with more of them it is a table like any other."""


def _list_at(whole: Any, places: Sequence[str]) -> list[Any] | None:
    """The first of the lists that has rows."""
    for place in places:
        rows: list[Any] = []
        for path in place.split(" + "):
            value = getter(path)(whole) if isinstance(whole, dict) else None
            rows += value if isinstance(value, list) else []
        if rows:
            return rows
    return None


def _ways(spec: str) -> list[str]:
    return [way.strip() for way in spec.split(" | ")] if is_plain(spec) else [spec]


def of_file(spec: str) -> Getter:
    """A function from a file to the value that the part of a path behind `@` has there."""
    return getter(" | ".join(way[1:] for way in _ways(spec) if way.startswith(OF_FILE)))


def of_row(spec: str) -> Getter | None:
    """A function from a row to the value at a path; None where only the file says it."""
    ways = [way for way in _ways(spec) if way and not way.startswith(OF_FILE)]
    return getter(" | ".join(ways)) if ways else None


def rendered(template: str, **values: Any) -> float | None:
    """The number that a template comes to; None where something in it is not there."""
    try:
        return float(labeller(template)(values))
    except (FinalError, ValueError):
        return None
