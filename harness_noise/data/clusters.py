"""Cluster SPECs: which questions belong together, said as a field, a path, a template or a preset.

A SPEC is `none`, `auto`, `task`, a field, a dotted path (`idx.paragraph`), a Jinja template
(`{{sentence}}|{{question}}`), `A*B` of two of the last three, for questions that are clustered in two crossed ways at
once (template × language), or `TASK=SPEC` repeated, separated by commas.

Where a SPEC is from is a type. A `UserSpec` is what a person has typed and may be a template; a `FileSpec` is what a
file says of itself, and names a field or a path: a template of a file is never rendered.

A SPEC also names a property of the questions beside their scores (`Fields`), where `auto` takes every field that holds
a text, a number or a truth value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NewType, TypeAlias

from ..arrays import picked
from ..errors import FinalError, InputError, some_of
from . import numbers
from .notes import Note, natural_clusters, not_all_clustered

CROSS = " ⨯ "
"""The text between the two names of a question in two crossed clusters. No name contains it.

A joined name passes through files and sequences of names as any other name does.
"""

FEWEST_OUTER = 5
"""Values of a field below which it is a kind of question rather than a sample of clusters, and too few to be one."""
LONGEST_NAME = 200
"""Characters of a value beyond which it is a text of its own and names nothing."""
UserSpec = NewType("UserSpec", str)
"""A SPEC of the command line, of Python, of lm-eval's YAML, of the metadata of a live eval, or of a table of ours."""
_LONGEST_SPEC = 1000
"""Characters of a file's SPEC beyond which it names no field."""
_WAYS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|(?P<cross>\s*[*×]\s*)")
_PER_TASK = re.compile(r"\s*([^\s=,{}]+)=((?:\{\{.*?\}\}|[^,])+)(?:,|$)")


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A SPEC that a file itself names."""

    text: str

    @property
    def is_template(self) -> bool:
        """True if the SPEC is a template or too long to be a field. Those from files are shown and never run."""
        return len(self.text) > _LONGEST_SPEC or any(mark in self.text for mark in ("{{", "{%", "{#"))

    def for_task(self, *names: str) -> FileSpec | None:
        """Return the part of this SPEC (`TASK=SPEC,…`) for a task of one of these names, or None. Too long: itself."""
        if len(self.text) > _LONGEST_SPEC:
            return self
        parsed = ClusterSpec.parse(UserSpec(self.text))  # which only takes it apart
        found = next(filter(None, map(parsed.for_task, names)), None)
        return None if found is None else FileSpec(found)


Spec: TypeAlias = UserSpec | FileSpec


class MissingFieldError(FinalError):
    """The document has no such field. `fields` lists those it has."""

    def __init__(self, spec: str, fields: Iterable[str]) -> None:
        self.spec = spec
        self.fields = sorted(map(str, fields))
        super().__init__(f"cluster field {spec!r} does not exist. The fields are {', '.join(self.fields) or '(none)'}")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A parsed SPEC."""

    default: UserSpec | None = None
    by_task: tuple[tuple[str, UserSpec], ...] = ()
    """(glob pattern, SPEC) pairs. The first that matches wins."""

    @classmethod
    def parse(cls, text: UserSpec | Mapping[str, UserSpec] | None) -> ClusterSpec:
        """Parse a cluster SPEC (field, path, template, `TASK=SPEC,…`) or {task: SPEC}. Refuse empty and broken ones."""
        if text is None:
            return cls()
        if isinstance(text, Mapping):
            for spec in text.values():
                _check_ways(str(spec))
            return cls(by_task=tuple((str(task), UserSpec(str(spec))) for task, spec in text.items()))
        text = UserSpec(text.strip())
        if not text:
            raise InputError("the cluster SPEC is empty: name a field, `auto` or `none`")
        pairs, position = [], 0
        while match := _PER_TASK.match(text, position):
            pairs.append((match[1], UserSpec(match[2].strip())))
            position = match.end()
        if pairs and (rest := text[position:].strip()):
            raise InputError(f"cluster SPEC {text!r}: {rest!r} is not TASK=SPEC, but what is before it is")
        for spec in [spec for _, spec in pairs] or [text]:
            _check_ways(spec)
        return cls(by_task=tuple(pairs)) if pairs else cls(default=text)

    def for_task(self, task: str) -> UserSpec | None:
        """Return the SPEC of one task: of the first pattern that its name matches, else the default or None."""
        for pattern, spec in self.by_task:
            if fnmatchcase(task, pattern):
                return spec
        return self.default


def check_tasks(spec: ClusterSpec, tasks: Iterable[str], option: str = "`cluster`") -> None:
    """Refuse a `TASK=SPEC` for a task that the run does not have, as it would be ignored silently.

    Args:
        spec: the user's.
        tasks: names of all tasks; each may be called by what stands behind its last slash, too.
        option: how the SPEC is given.

    Raises:
        InputError: lists the tasks.
    """
    have = list(dict.fromkeys(tasks))
    for pattern, way in spec.by_task:
        if not any(fnmatchcase(name, pattern) for task in have for name in (task, task.rpartition("/")[2])):
            raise InputError(
                f"{option} {pattern}={way}: there is no task {pattern}. The tasks are {some_of(have, 20)} (a "
                "group has the clusters of its tasks: name these, with * for several)"
            )


def resolve_for_task(
    spec: ClusterSpec, task: str, natural: Callable[[str], str | None]
) -> tuple[UserSpec | None, str | None]:
    """Return the SPEC to use for one task, `auto` resolved, and its name in words. (None, None): no clusters.

    Args:
        spec: the user's.
        task: its name.
        natural: task → the SPEC of its natural clusters, by a table of ours, which `auto` stands for; None where none
            is known.

    Returns:
        None twice where the task is not clustered: nothing was said of it, or `none`, or `auto` and nothing is known.
    """
    wanted = spec.for_task(task)
    if wanted is None or wanted == "none":
        return None, None
    if wanted != "auto":
        return wanted, wanted
    auto = natural(task)
    return (None, None) if auto is None else (UserSpec(auto), f"{auto} (auto)")


def cluster_of_task(
    spec: ClusterSpec | None,
    task: str,
    natural: Callable[[str], str | None],
    own: Callable[[Any], str | None],
    called: str | None,
) -> tuple[Callable[[Any], str | None], str | None]:
    """Return a function from a document to its cluster name (None: no clusters), and the SPEC in words.

    A task that the SPEC does not name keeps the clusters that it carries: `own`, which are called `called`.
    """
    if spec is None or spec.for_task(task) is None:
        return own, called
    wanted, named = resolve_for_task(spec, task, natural)
    return (lambda doc: None) if wanted is None else namer(wanted, task), named


def ways_of(spec: str) -> list[UserSpec]:
    """Split a crossed SPEC `A*B` into its SPECs, A and B (or more). Return any other SPEC as a list of one."""
    ways, start = list[UserSpec](), 0
    for match in _WAYS.finditer(spec):
        if match["cross"] is not None:
            ways.append(UserSpec(spec[start : match.start()]))
            start = match.end()
    ways.append(UserSpec(spec[start:]))
    return ways if all(ways) else [UserSpec(spec)]


def _check_ways(spec: str) -> None:
    ways = ways_of(spec)
    words = [way for way in ways if way in ("auto", "none", "task")]
    if len(ways) > 2 or (len(ways) == 2 and words):
        problem = f"{words[0]!r} cannot be crossed with another" if words else f"{len(ways)} ways are crossed"
        raise InputError(
            f"cluster SPEC {spec!r}: {problem}. A*B takes two fields, paths or templates (a template may join fields)"
        )


def spec_in_words(spec: str | None) -> str | None:
    """Return a SPEC as text for results: `A*B` becomes `A × B`. None stays None."""
    return None if spec is None else " × ".join(ways_of(spec))


def combine_specs(specs: Iterable[UserSpec]) -> UserSpec | None:
    """Join several `--cluster` SPECs into one, None if empty, two of a task as `A*B`. Refuse one for all with others.

    Raises:
        InputError: SPECs for all tasks beside TASK=SPEC.
    """
    by_task: dict[str | None, dict[str, None]] = {}
    for text in specs:
        parsed = ClusterSpec.parse(text)
        for task, way in parsed.by_task or ((None, parsed.default),):
            by_task.setdefault(task, {})[str(way)] = None
    if None in by_task and len(by_task) > 1:
        raise InputError(
            f"`cluster` {next(iter(by_task[None]))} is for all tasks and others are for one: write *=SPEC for all, last"
        )
    whole = {task: "*".join(ways) for task, ways in by_task.items()}
    for crossed in whole.values():
        _check_ways(crossed)
    written = ",".join(spec if task is None else f"{task}={spec}" for task, spec in whole.items())
    return UserSpec(written) if written else None


def split_crossed(clusters: Sequence[str] | None) -> tuple[list[str], list[str]] | None:
    """Split crossed clusters `a × b` into the list of all a and the list of all b. None if not crossed."""
    if not clusters or any(name.count(CROSS) != 1 for name in clusters):
        return None
    pairs = [name.split(CROSS) for name in clusters]
    return [first for first, _ in pairs], [second for _, second in pairs]


def all_or_none(clusters: Sequence[str | None]) -> tuple[tuple[str, ...] | None, int]:
    """Return the clusters if all questions have one, else None, and the number without one (0 if none has any).

    It is 0 if no question has one: then nothing is lacking.
    """
    named = tuple(name for name in clusters if name is not None)
    bare = len(clusters) - len(named)
    return (named, 0) if named and not bare else (None, bare if named else 0)


def clusters_of_file(
    task: str, clusters: Sequence[str | None], notes: list[Note], natural: Callable[[], str | None] = lambda: None
) -> tuple[str, ...] | None:
    """Return the clusters in a run's own file if all questions have one, else None. May add to `notes`.

    What a user names has to be there. What a run carries in part is left out with a note, as no run is lost by it.

    Args:
        task: its name.
        clusters: (n,) of the questions, None for a question without a cluster.
        notes: gets why the questions count as independent, if the user should know.
        natural: returns the SPEC of the task's natural clusters, None if none are known.
    """
    found, bare = all_or_none(clusters)
    if bare:
        notes.append(not_all_clustered(task, bare, len(clusters)))
    elif found is None and (spec := natural()) is not None:
        notes.append(natural_clusters(task, spec))
    return found


def check_one_cluster(
    where: object, question: str, before: tuple[str | None, str], now: tuple[str | None, str]
) -> None:
    """Refuse a question if two of its answers name different clusters for it.

    Args:
        where: the file or run, for the message.
        question: its name.
        before: the cluster that an answer names, and the words for its line.
        now: those of another answer.

    Raises:
        InputError: the clusters differ.
    """
    if before[0] != now[0]:
        places = " and in ".join(f"{name!r}{line}" for name, line in (before, now))
        raise InputError(f"{where}: question {question!r} is in cluster {places}")


class OuterFields:
    """Finds the fields of the documents that contain the clusters: articles of passages, repositories of files.

    Args:
        fields: those that it may be; None: of the first document.
    """

    def __init__(self, fields: Iterable[str] | None = None) -> None:
        self._questions: set[str] = set()
        self._values: dict[str, dict[str, str]] | None = None if fields is None else {field: {} for field in fields}
        """Field → cluster → the value that all its documents have so far."""

    @property
    def is_open(self) -> bool:
        """True if some field may still turn out to group the clusters."""
        return self._values is None or bool(self._values)

    def add_all(
        self,
        questions: Iterable[str],
        clusters: Sequence[str],
        fields: Iterable[str],
        column: Callable[[str], Sequence[Any]],
    ) -> None:
        """Add questions with their clusters and field values, and drop the fields that have two values in a cluster."""
        if self._values is None:
            self._values = {field: {} for field in fields}
        if not self._values:
            return
        self._questions.update(questions)
        for field, by_cluster in list(self._values.items()):
            names = (str(value) if isinstance(value, (str, int)) else "" for value in column(field))
            for cluster, name in dict.fromkeys(zip(clusters, names, strict=True)):
                if not 0 < len(name) <= LONGEST_NAME or by_cluster.setdefault(cluster, name) != name:
                    del self._values[field]
                    break

    def found(self) -> dict[str, dict[str, str]]:
        """Return {field: {cluster: value}} of fields that group whole clusters. {} if most clusters are single.

        Where most clusters hold one question, every property of a question would be such a field: there are none.
        """
        most = len(self._questions) / 2
        return {
            field: by_cluster
            for field, by_cluster in (self._values or {}).items()
            if FEWEST_OUTER <= len(set(by_cluster.values())) < len(by_cluster) <= most
        }


def namer(spec: Spec, task: str | None = None) -> Callable[[Mapping[str, Any]], str]:
    """Return a function from a document to its cluster name, never empty, by a SPEC. Refuse a template from a file.

    A field whose name is the whole SPEC comes first; of the SPEC `task` it is the `task`, where one is given.

    Raises:
        FinalError: a template that is no valid one, or that a file names.

    Raises (when called):
        MissingFieldError: the document lacks the field, or it is empty (None, NaN or a blank text).
    """
    if isinstance(spec, FileSpec):
        if spec.is_template:
            raise FinalError(f"a file names the cluster template {spec.text[:80]!r}, which is never run. Name a field")
        return namer(UserSpec(spec.text), task)
    if spec == "task" and task is not None:
        return lambda doc: task
    ways = ways_of(spec)
    if len(ways) == 2:
        both = [namer(way) for way in ways]

        def crossed(doc: Mapping[str, Any]) -> str:
            if doc.get(spec) is not None:
                return plain_name(doc[spec])
            return CROSS.join(way(doc) for way in both)

        return crossed
    if not is_plain(spec):
        return _template(spec)

    def name(doc: Mapping[str, Any]) -> str:
        found = name_or_none(value_of(spec, doc))
        if found is None:
            raise MissingFieldError(spec, doc)
        return found

    return name


def is_plain(spec: str) -> bool:
    """Return True if a SPEC is a single field or dotted path: no template, and not crossed (`A*B`)."""
    return len(ways_of(spec)) == 1 and "{{" not in spec and "{%" not in spec


def value_of(spec: str, doc: Mapping[str, Any]) -> Any:
    """Return a document's value at a field, or at a dotted path if no field has that name. Refuse an absent one.

    Raises:
        MissingFieldError: the document lacks it.
    """
    return doc[spec] if spec in doc else _path(doc, spec)


def _path(doc: Mapping[str, Any], spec: str) -> Any:
    value: Any = doc
    for part in spec.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise MissingFieldError(spec, doc)
    return value


def _template(spec: str) -> Callable[[Mapping[str, Any]], str]:
    from jinja2 import StrictUndefined, TemplateError, UndefinedError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    try:
        template = environment.from_string(spec)
    except TemplateError as error:
        raise FinalError(f"the cluster template {spec!r} is not valid Jinja: {error}") from None

    def name(doc: Mapping[str, Any]) -> str:
        try:
            return template.render({str(key): value for key, value in doc.items()}).replace(CROSS, " × ")
        except UndefinedError:
            raise MissingFieldError(spec, doc) from None
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise FinalError(f"the cluster template {spec!r} fails on a document: {error}") from None

    return name


def plain_name(value: Any) -> str:
    """Return any value as the text of a cluster name. The separator of crossed names is replaced in it.

    Raises:
        FinalError: the value is nested too deeply.
    """
    return value_text(value).replace(CROSS, " × ")


def name_or_none(value: Any) -> str | None:
    """Return a field's value as a cluster name, stripped. None if it is None, NaN or blank.

    Spaces around a text do not count, as in the cells of a table.
    """
    value = value.strip() if isinstance(value, str) else value
    return None if value is None or value != value or value == "" else plain_name(value)


_OF_JSON = (bool, int, float, list, tuple, dict, type(None))


def value_text(value: Any) -> str:
    """Return any value as text: JSON values as JSON with sorted keys, others by `str`. Refuse too deep nesting.

    Raises:
        FinalError: the value is nested too deeply.
    """
    if not isinstance(value, _OF_JSON):
        return str(value)
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except RecursionError:
        raise FinalError("a value is nested too deeply to be a name. Name another field") from None


Value = str | float | None
"""A number if the value is one, else text, None for a question without value."""

AUTO = "auto"
MOST_VALUES = 50
"""Values that a field may have at most to be a category that `auto` tries."""


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """Values of the questions, by SPEC."""

    values: Mapping[str, Sequence[Value]]
    """SPEC, or for `auto` the name of the field → n values."""
    auto: tuple[str, ...] = ()
    """The names that `auto` found."""
    names: tuple[str, ...] = ()
    """The fields that there are, for messages."""

    def take(self, rows: Iterable[int]) -> Fields:
        """Return the fields with the values of the questions in these rows only."""
        kept = list(rows)
        return replace(self, values={key: picked(column, kept) for key, column in self.values.items()})


class FieldReader:
    """Collects the values of one task's questions, document by document."""

    def __init__(self, specs: Iterable[str], task: str) -> None:
        self.n = 0
        self._auto = False
        self.auto: dict[str, tuple[dict[int, Value], set[str]]] = {}
        """Field → (number of a question → its value, the texts among them), not filled further if not a category."""
        self.columns: dict[str, list[Value]] = {}
        self._get: dict[str, Callable[[Mapping[str, Any]], Any]] = {}
        self._names: dict[str, None] = {}
        for text in specs:
            spec = ClusterSpec.parse(UserSpec(text)).for_task(task)  # none of these comes out of a file
            if spec in ("none", "task"):
                raise InputError(f"{spec!r} is no property of the questions of a task: name a field, or auto")
            if spec == AUTO:
                self._auto = True
            elif spec is not None:
                self.columns[text] = []
                self._get[text] = partial(value_of, spec) if is_plain(spec) else namer(spec)

    def add(self, doc: Mapping[str, Any]) -> None:
        """Read the wanted fields (None if absent), for `auto` all plain ones, from the next question's document."""
        self._names.update(dict.fromkeys(map(str, doc)))
        for text, column in self.columns.items():
            try:
                column.append(_value(self._get[text](doc)))
            except MissingFieldError:
                column.append(None)
        for name, value in _scalars(doc) if self._auto else ():
            by_question, texts = self.auto.setdefault(name, ({}, set()))
            if len(texts) <= MOST_VALUES:
                by_question[self.n] = value
            if len(texts) <= MOST_VALUES and isinstance(value, str) and numeral(value) is None:
                texts.add(value)
        self.n += 1

    def fields(self) -> Fields:
        """Return field → one value per question added so far. Automatic fields with too many values are left out."""
        kept = {name: by_question for name, (by_question, texts) in self.auto.items() if len(texts) <= MOST_VALUES}
        auto = {name: [by_question.get(i) for i in range(self.n)] for name, by_question in kept.items()}
        return Fields(auto | self.columns, tuple(kept), tuple(self._names))


def _scalars(doc: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Yield (name, value) of all texts, numbers and truth values of a document, one level deep as `a.b`."""
    for key, value in doc.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if not prefix:
                yield from _scalars(value, f"{name}.")
        elif isinstance(value, (str, bool, int, float)):
            yield name, _value(value)


def _value(value: Any) -> Value:
    if isinstance(value, str):
        return " ".join(value.split()) or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    try:
        return None if value is None else value_text(value)
    except FinalError:
        return None


def numeral(value: Value) -> float | None:
    """Return a field value as a number, also from a text such as "3". None if it is not a number."""
    return numbers.numeral(value) if isinstance(value, str) else value
