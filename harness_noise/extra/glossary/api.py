"""The public functions of the glossary, and the tooltips of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from ...errors import InputError
from ...io.paths import exists, is_path, resolve_path
from ...report import fmt
from ...report.sentences import asked_for
from ...results.rows import Difference, Estimate
from . import figures
from .terms import Term, all_terms, by_every_name, find

SITE = "https://harness-noise.github.io/harness-noise/"
ROWS = 8
"""The most rows whose numbers are told."""
_NEAREST = 4
"""Terms that are proposed for one that is unknown."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A term, its definition, and what the rows of runs say of it."""

    term: str
    definition: str
    columns: tuple[str, ...]
    """The columns that show it."""
    fields: tuple[str, ...]
    """Its names in JSON."""
    figures: tuple[tuple[str, str], ...]
    """(Row, sentence with its numbers), of the first eight rows that have any."""
    remark: str
    """Advice if the runs have no number of the term, else ""."""
    page: str
    """The address of the page that says more."""

    def __str__(self) -> str:
        rows = [f"  {row}: {text}" for row, text in self.figures]
        shown = [("Columns", self.columns), ("JSON", self.fields)]
        places = " ".join(f"{where}: {', '.join(names)}." for where, names in shown if names)
        last = filter(None, (self.remark, places, f"More: {self.page}"))
        return "\n".join([f"{self.term}: {self.definition}", *rows, *last])


def terms() -> dict[str, str]:
    """Return the glossary: each term with its definition.

    Returns
    -------
    dict of str to str
        In alphabetical order. `what` also knows the columns, JSON fields and codes of diagnostics.
    """
    return {name: term.says for name, term in all_terms().items()}


def what(
    term: str,
    *runs: Any,
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    cluster: Any = None,
    columns: Mapping[str, str] | None = None,
    level: float = 0.95,
    **others: Any,
) -> Meaning:
    """Return what a term means, and what the numbers of runs say of it.

    Parameters
    ----------
    term
        A term, the label of a column (``deff``), a field of JSON (``design_effect``), or a code of a diagnostic.
    *runs
        Runs whose numbers are told. Two runs are compared. If their difference does not have the term, each run is
        analyzed.
    tasks, metrics
        Only these tasks and metrics.
    cluster
        The field that related questions share, as in `analyze`.
    columns
        What the columns of a table are called.
    level
        Coverage of the intervals.
    **others
        Other keywords that both `analyze` and `compare` obey.

    Returns
    -------
    Meaning
        It prints as `harness-noise what` does.

    Raises
    ------
    InputError
        No term has the name: it proposes the nearest. Or a run cannot be read.

    Examples
    --------
    >>> import harness_noise as hn
    >>> hn.what("deff").term
    'design effect'
    """
    found = find(term)
    if found is None:
        raise InputError(_unknown(term))
    rows: list[tuple[str, str]] = []
    if runs:
        said = {"tasks": tasks, "metrics": metrics, "cluster": cluster, "columns": columns, "level": level}
        rows = _sentences_on_runs(found, runs, {name: value for name, value in said.items() if value} | others)
    labels = tuple(label for label in found.labels if label)
    remark = "" if rows or not runs else _why_none(found, len(runs))
    page = f"{SITE}{found.page}/{found.anchor and f'#{found.anchor}'}"
    return Meaning(found.name, found.says, labels, found.fields, tuple(rows[:ROWS]), remark, page)


def _unknown(term: str) -> str:
    if is_path(term) and exists(resolve_path(term)):
        return f"{term} is a run: name a term before it, as in `harness-noise what deff {term}`"
    near = get_close_matches(term.lower(), [name for name in by_every_name() if name], _NEAREST, 0.5)
    names = list(dict.fromkeys(by_every_name()[name].name for name in near))
    nearest = f"the nearest are {', '.join(names)}" if names else "it has none that is similar"
    return f"the glossary has no term {term!r}: {nearest} (`harness-noise what` lists all)"


def _sentences_on_runs(term: Term, runs: Sequence[Any], choices: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (row's name, sentence with the number) for two runs' difference if it has any, else for every mean."""
    from ...api.runs import analyze, compare

    told = _sentences_on_rows(term, asked_for(compare(*runs, **choices).comparisons)) if len(runs) == 2 else []
    return told or _sentences_on_rows(term, asked_for(analyze(list(runs), **choices).estimates))


def _sentences_on_rows(term: Term, rows: Sequence[Estimate | Difference]) -> list[tuple[str, str]]:
    """Return (row's name, sentence with the term's number) for each row that has that number."""
    told = [(_name(row), figures.sentence(term, row)) for row in rows]
    return [(name, text) for name, text in told if text]


def _name(row: Estimate | Difference) -> str:
    who = row.model if isinstance(row, Estimate) else "A − B"
    return " ".join(filter(None, (fmt.plain(who), fmt.what_of(row))))


def _why_none(term: Term, n_runs: int) -> str:
    if term.shown_by:
        return f"`harness-noise {term.shown_by}` shows it."
    if term.page == "diagnostics" and term.fields:
        return "No row of these runs has it."
    two = "Two runs may have it: a difference has numbers that a mean does not." if n_runs == 1 else ""
    return f"These runs have no number of it. {two}".rstrip()


@cache
def _definition(label: str) -> str:
    term = find(label) if label else None
    return "" if term is None else f"{term.name}: {term.says}"


def tooltip(label: str, row: Any = None) -> str:
    """Return the definition of a column's label, or, for a row, a sentence on its number. "" if none."""
    if row is None:
        return _definition(label)
    term = find(label) if label else None
    return "" if term is None else figures.own_sentence(term, row)
