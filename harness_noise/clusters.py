"""Cluster SPECs: which questions belong together, said as a field, a path, a template or a preset.

A SPEC is `none`, `auto`, `task`, a field, a dotted path (`idx.paragraph`), a Jinja template
(`{{sentence}}|{{question}}`), or `TASK=SPEC` repeated, separated by commas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from .errors import InputError

_PER_TASK = re.compile(r"\s*([^\s=,{}]+)=((?:\{\{.*?\}\}|[^,])+)(?:,|$)")


class MissingFieldError(InputError):
    """The document has no such field; `fields` lists those it has."""

    def __init__(self, spec: str, fields: Iterable[str]) -> None:
        self.spec = spec
        self.fields = sorted(map(str, fields))
        super().__init__(f"cluster field {spec!r} does not exist; the fields are {', '.join(self.fields) or '(none)'}")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A parsed SPEC."""

    default: str | None = None
    by_task: tuple[tuple[str, str], ...] = ()
    """(glob pattern, SPEC) pairs; the first that matches wins."""

    @classmethod
    def parse(cls, text: str | Mapping[str, str] | None) -> ClusterSpec:
        """Parse a SPEC, or a mapping {task: SPEC} as a configuration file gives it."""
        if text is None:
            return cls()
        if isinstance(text, Mapping):
            return cls(by_task=tuple((str(task), str(spec)) for task, spec in text.items()))
        text = text.strip()
        if not text:
            raise InputError("the cluster SPEC is empty: name a field, `auto` or `none`")
        pairs, position = [], 0
        while found := _PER_TASK.match(text, position):
            pairs.append((found[1], found[2].strip()))
            position = found.end()
        if pairs and (rest := text[position:].strip()):
            raise InputError(f"cluster SPEC {text!r}: {rest!r} is not TASK=SPEC, as what stands before it is")
        return cls(by_task=tuple(pairs)) if pairs else cls(default=text)

    def for_task(self, task: str) -> str | None:
        """The SPEC of one task; None where nothing was said."""
        for pattern, spec in self.by_task:
            if fnmatchcase(task, pattern):
                return spec
        return self.default


def labeller(spec: str) -> Callable[[Mapping[str, Any]], str]:
    """A function from a document to its cluster label.

    Raises (when called):
        MissingFieldError: the document lacks the field, or it is empty (None).
    """
    if "{{" in spec or "{%" in spec:
        return _template(spec)

    def label(doc: Mapping[str, Any]) -> str:
        value: Any = doc[spec] if spec in doc else _path(doc, spec)
        if value is None:
            raise MissingFieldError(spec, doc)
        return text_label(value)

    return label


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
        raise InputError(f"the cluster template {spec!r} is not valid Jinja: {error}") from None

    def label(doc: Mapping[str, Any]) -> str:
        try:
            return template.render({str(key): value for key, value in doc.items()})
        except UndefinedError:
            raise MissingFieldError(spec, doc) from None
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise InputError(f"the cluster template {spec!r} fails on a document: {error}") from None

    return label


def text_label(value: Any) -> str:
    """A label for any value: text as it is, everything else as canonical JSON.

    Raises:
        InputError: the value is nested too deeply.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except RecursionError:
        raise InputError("a value is nested too deeply to be a label; name another field") from None
