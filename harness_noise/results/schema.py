"""The JSON Schema of the results, made from the dataclasses: `python -m harness_noise.results.schema`."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from typing import Any, Literal, get_args, get_origin

from ..data.notes import Note, codes
from ..stats import combine
from .diagnostics import DIAGNOSTICS
from .forms import SCHEMA_VERSION, Document, all_kinds, modules, shown_fields

_PLAIN: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer", "minimum": 0},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
}
_OF_MODULES = [item for module in (*modules(), combine) for item in vars(module).items()]
_PLAIN |= {name: {"enum": [*get_args(kind)]} for name, kind in _OF_MODULES if get_origin(kind) is Literal}
_DOCUMENTS = [kind for _, kind in sorted(all_kinds().items()) if issubclass(kind, Document)]
_CODES = {"type": "array", "items": {"enum": sorted(DIAGNOSTICS)}}
_JOURNAL = {
    "type": "object",
    "properties": {
        "mode": {"enum": ["auto", "reuse"]},
        "taken_up": {"type": "integer", "minimum": 0},
        "asked": {"type": "integer", "minimum": 0},
        "began": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["mode", "taken_up", "asked", "began"],
    "additionalProperties": False,
}
"""In the `noise` block of a live lm-eval run: answers taken up from runs that began then, and answers asked for."""
_KINDS: dict[str, Any] = {name: kind for name, kind in _OF_MODULES if is_dataclass(kind)}


class _Definitions(dict[str, dict[str, Any]]):
    """The schema of every class of rows that a result refers to."""

    def json_of(self, text: str) -> dict[str, Any]:
        """Return the JSON Schema of a dataclass field's type, given as text such as `float | None`."""
        if " | " in text:
            kinds = [self.json_of(part) for part in text.split(" | ")]
            if any("$ref" in kind for kind in kinds):
                return {"anyOf": kinds}
            together = {key: value for kind in kinds for key, value in kind.items()}
            return together | {"type": [kind["type"] for kind in kinds]}
        name, _, inner = text.removesuffix("]").partition("[")
        types = inner.split(", ")
        if name in ("tuple", "Iterator"):
            whole = name == "Iterator" or types[-1] == "..."
            size = {} if whole else {"minItems": len(types), "maxItems": len(types)}
            return {"type": "array", "items": self.json_of(types[0])} | size
        if name == "Mapping":
            counted = {"minimum": 1} if types[1] == "int" else {}
            return {"type": "object", "additionalProperties": self.json_of(types[1]) | counted}
        return _PLAIN.get(text) or self.row(text)

    def row(self, name: str) -> dict[str, Any]:
        """Return a JSON Schema reference to a result class of this name, and add the definition of the class."""
        if name == Note.__name__:
            self[name] = self.object({"code": "str", "text": "str", "task": "str | None"})
            self[name]["properties"]["code"] = {"enum": sorted(codes())}
        if name not in self:
            self[name] = {}
            kind = _KINDS[name]
            self[name] = self.object(kind.json_types() if issubclass(kind, Document) else shown_fields(kind))
        return {"$ref": f"#/$defs/{name}"}

    def object(self, types: dict[str, str]) -> dict[str, Any]:
        """Return the JSON Schema of an object with exactly these fields."""
        properties = {name: _CODES if name == "diagnostics" else self.json_of(text) for name, text in types.items()}
        return {"type": "object", "properties": properties, "required": list(types), "additionalProperties": False}

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return a dict from each result table's name to its JSON Schema, merged over all commands."""
        shapes: dict[str, list[dict[str, Any]]] = {}
        for kind in _DOCUMENTS:
            for name in () if kind.under else (*kind.always, *kind.if_any):
                shape = self.json_of(_type_of(kind, name))
                if shape not in shapes.setdefault(name, []):
                    shapes[name].append(shape)
        return {name: forms[0] if len(forms) == 1 else {"anyOf": forms} for name, forms in shapes.items()}


def _type_of(kind: type[Document], name: str) -> str:
    """Return the type annotation, as text, of a result class's field or property."""
    value = getattr(kind, name)
    types = value.fget.__annotations__ if isinstance(value, property) else {"return": kind.__annotations__[name]}
    return str(types["return"])


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `--format json` prints, which is shipped as `schema.json`."""
    defined = _Definitions()
    first = {
        "schema_version": {"const": SCHEMA_VERSION},
        "harness_noise_version": {"type": "string"},
        "settings": {"type": "object"},
    }
    only = {"only": {"type": "array", "items": {"type": "string"}, "minItems": 1}}
    wholes = {kind.under: defined.row(kind.__name__) for kind in _DOCUMENTS if kind.under}
    required = [
        [kind.under] if kind.under else [name for name in kind.always if name != "notes"] for kind in _DOCUMENTS
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "harness-noise",
        "type": "object",
        "properties": first | only | defined.tables() | wholes | {"journal": _JOURNAL},
        "required": list(first),
        "anyOf": [{"required": names} for names in required],
        "additionalProperties": False,
        "$defs": dict(defined),
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
