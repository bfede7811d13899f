"""Wide tables: a column for each model, metric or repeat (rule 10)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from .lexicon import WORDS, is_metric, is_model, is_vetoed, snake
from .scores import ScoreCandidate
from .table import ColumnFacts
from .verdicts import AskError, Choice

_NUMBERED = re.compile(r"(?:[a-z]+[_ -]?)?(\d+)")
_QUESTION = re.compile(r"(q|question|item|problem)_?\d+")


@dataclass(frozen=True)
class Family:
    """Columns of scores whose names differ in one word."""

    columns: Sequence[ColumnFacts]
    names: Sequence[str]
    """The part of each column's name that the others' names lack."""
    affix: str

    @property
    def kind(self) -> str | None:
        """Meaning of the names: `models`, `repeats` or `metrics`, None if unknown."""
        if all(map(is_model, self.names)):
            return "models"
        if all(map(is_number_of_run, self.names)):
            return "repeats"
        if all(is_metric(snake(name)) for name in self.names):
            return "metrics"
        return None


def is_number_of_run(name: str) -> bool:
    """Return True if a column's name is that of a repeat: `run_1`, `seed3` or `2`."""
    match = _NUMBERED.fullmatch(snake(name))
    word = snake(name).rstrip("0123456789").strip("_") if match else None
    return word is not None and (word == "" or word in WORDS["families"]["runs"])


def families(candidates: Sequence[ScoreCandidate]) -> list[Family]:
    """Return groups of score columns that share a known prefix or ending: `A_correct`, `B_correct`."""
    groups: dict[tuple[str, str], list[tuple[ColumnFacts, str]]] = defaultdict(list)
    for one in candidates:
        for affix, name in _affixes(one.column):
            groups[affix, one.column.scale].append((one.column, name))
    found = []
    for (affix, _), members in groups.items():
        names = [name for _, name in members]
        if len(members) > 1 and len({*names}) == len(names):
            found.append(Family([column for column, _ in members], names, affix))
    return sorted(found, key=lambda family: -len(family.columns))


def _affixes(column: ColumnFacts) -> list[tuple[str, str]]:
    """Return each way to split a column's name into (known score word, rest of the name)."""
    if column.depth and len(column.keys) > 1:
        known = _known(column.last)
        return [(column.last, ".".join(column.keys[:-1]))] if known else []
    text = column.keys[-1]
    out = []
    for end in re.finditer(r"[_\-. ]+", text):
        before, after = text[: end.start()], text[end.end() :]
        if before and after and _known(snake(after)):
            out.append((snake(after), before))
        if before and after and _known(snake(before)):
            out.append((snake(before), after))
    return out


def _known(word: str) -> bool:
    kinds = ("verdict", "graded", "weak")
    return any(word in WORDS[kind]["exact"] for kind in kinds) or is_metric(word)


def take_family(family: Family, question: ColumnFacts | None) -> tuple[str, list[ColumnFacts], list[str]] | None:
    """Return (kind, columns, names) of a column group that is clearly models, repeats or metrics, else None."""
    kind = family.kind
    if kind is None or has_parts(question):
        return None
    return kind, list(family.columns), list(family.names)


def ask_of_crossed(found: Sequence[Family]) -> None:
    """Raise AskError if score columns combine models and metrics: `opal_faithfulness`, `opal_relevance`.

    Raises:
        AskError: names the columns of each metric.
    """
    metrics = [family for family in found if is_metric(family.affix) or _known(family.affix)]
    for family in metrics:
        others = [other for other in metrics if other is not family and {*other.names} == {*family.names}]
        same = {column.name for column in family.columns}
        others = [other for other in others if not same & {column.name for column in other.columns}]
        if others and not (all(map(is_number_of_run, family.names)) or all(map(_names_metric, family.names))):
            ways = tuple(
                Choice({"models": "+".join(column.name for column in each.columns)}, f"models, {each.affix}")
                for each in (family, *others)
            )
            names = [column.name for column in family.columns]
            raise AskError(
                "wide",
                f"the columns are models or conditions times metrics ({', '.join(names)}, …)",
                ways,
                tuple(names),
            )


def ask_of_baseline(
    columns: Sequence[ColumnFacts], found: Sequence[ScoreCandidate], question: ColumnFacts | None
) -> None:
    """Raise AskError if beside score columns of models stands one of a `baseline`, which may be a model or a bar.

    Raises:
        AskError: models or metrics.
    """
    bars = [column for column in columns if "baseline" in column.last.split("_") and not column.is_constant]
    for bar in bars:
        beside = [one.column for one in found if one.column.scale == bar.scale and _differ_by_model(one.column, bar)]
        if beside:
            ask_bare([column for column in columns if column in beside or column is bar], question)


def _differ_by_model(column: ColumnFacts, bar: ColumnFacts) -> bool:
    """Return True if the names are of one model (or of right answers) and of the baseline, with the same score word."""
    alone = is_model(column.name) and bar.last == "baseline" and not _affixes(column)
    told = {affix for affix, name in _affixes(bar) if snake(name) == "baseline"}
    of_right = column.scale == "01"  # right or wrong under the same word, of whatever is held against the baseline
    return alone or any(affix in told and (of_right or is_model(name)) for affix, name in _affixes(column))


def _names_metric(name: str) -> bool:
    return is_metric(snake(name))


def possible_scores(columns: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Return the columns of verdicts, or numbers from 0 to 1, whose names do not rule out scores."""
    return [
        column
        for column in columns
        if column.scale in ("01", "unit") and column.kind != "scores" and not is_vetoed(column.last) and column.last
    ]


def of_questions(columns: Sequence[ColumnFacts], model: ColumnFacts | None) -> list[ColumnFacts]:
    """Return the columns q1 … qn (one score column for each question) in a table with a model column, else []."""
    found = [column for column in columns if _QUESTION.fullmatch(column.last) and column.scored]
    return found if model is not None and len(found) > 2 else []


def ask_bare(columns: Sequence[ColumnFacts], question: ColumnFacts | None) -> None:
    """Raise AskError, always: these score columns without known names may be models or metrics.

    Raises:
        AskError: models or metrics.
    """
    names = "+".join(column.name for column in columns)
    parts = " (some rows look like repeats of others: 1, 1.1, 1.2)" if has_parts(question) else ""
    raise AskError(
        "wide",
        f"{len(columns)} columns hold scores ({_listed(columns)}), as in a wide table{parts}",
        (
            Choice({"models": names}, "each a model"),
            Choice({"metrics": names}, "each a metric"),
        ),
        tuple(column.name for column in columns[:2]),
    )


def _listed(columns: Sequence[ColumnFacts]) -> str:
    names = [column.name for column in columns[:6]]
    return ", ".join(names) + (f" and {len(columns) - 6} more" if len(columns) > 6 else "")


def has_parts(question: ColumnFacts | None) -> bool:
    """Return True if question names look like 1, 1.1, 1.2, as for repeats of one question."""
    names = {str(cell) for cell in question.distinct} if question is not None else set()
    return any(re.fullmatch(r"\d+\.[1-9]\d*", name) and name.partition(".")[0] in names for name in names)
