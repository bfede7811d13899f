"""The terms of the glossary by all their names: on the screen, in JSON, and in other words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ...results.diagnostics import DIAGNOSTICS
from ...results.forms import all_kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of the screen, the pages and the docs, defined once."""

    name: str
    says: str
    """The definition."""
    page: str
    """The page of the docs that says more."""
    labels: tuple[str, ...] = ()
    """The columns that show it."""
    also: tuple[str, ...] = ()
    """Other words for it."""
    fields: tuple[str, ...] = ()
    """Its names in JSON."""
    shown_by: str = ""
    """The command that shows it, if `analyze` and `compare` do not."""
    anchor: str = ""
    """Its place on the page."""

    @property
    def names(self) -> Iterator[str]:
        """All names by which the term can be looked up, its own name first."""
        yield from (self.name, *self.labels, *self.also, *self.fields)


@cache
def all_terms() -> dict[str, Term]:
    """Return {name: term} of the glossary, in the order of its file."""
    found = tomllib.loads((files(__package__) / "terms.toml").read_text(encoding="utf-8"))
    return {name: _term(name, each) for name, each in found.items()}


def _term(name: str, said: dict[str, Any]) -> Term:
    known: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
    return Term(name=name, **known)


@cache
def by_every_name() -> dict[str, Term]:
    """Return {lower-case name: term} with all names of every term: labels, fields and synonyms.

    A term's own name comes before what others call it.
    """
    every = list(all_terms().values())
    out = {name.lower(): term for term in every for name in term.names}
    return out | {term.name.lower(): term for term in every}


def find(word: str) -> Term | None:
    """Return the glossary's term with this name (plural, too), label, JSON field or diagnostic code, or None."""
    word = " ".join(word.split())
    for name in (_general(word).lower(), _general(word).lower().removesuffix("s")):
        if (term := by_every_name().get(name)) is not None:
            return term
    all_kinds()  # those of extras have codes of their own
    if word not in DIAGNOSTICS:
        return None
    item = DIAGNOSTICS[word]
    says = f"{item.page or item.meaning.format(units='questions or clusters')} {item.to_do}"
    says = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", says)  # a screen has no links
    return Term(name=word, says=says, page="diagnostics", fields=("diagnostics",), anchor=word)


_LM_EVAL = r"(?:avg_|avg_clustered_|avg_ci_low_|avg_ci_high_|total_|data_|data_upper_|prediction_)stderr"
"""How the names end that lm-eval's results have of a metric."""
_GENERAL = (
    (rf"^\w+?_({_LM_EVAL})(,.*)?$", r"\1"),
    (r"\d+(\.\d+)?%", "95%"),
    (r"^K = \d+$", "K = …"),
    (r"^pass[@^]\d+$", "pass@k"),
)


def _general(label: str) -> str:
    """Return a column label without its numbers, or a name in lm-eval's results without its metric, to look it up."""
    for pattern, general in _GENERAL:
        label = re.sub(pattern, general, label)
    return label
