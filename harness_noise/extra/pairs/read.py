"""Verdicts from tables, and from the files of arena-hard, MT-bench, AlpacaEval and promptfoo (`select-best`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import InputError, some_of
from ..ground import Row, column_of, is_empty, number_of, rows_of

_NAMES = {
    "question": ("question", "question_id", "item_id", "prompt_id", "instruction", "id"),
    "first": ("first", "shown_first"),
    "model_a": ("model_a", "model_1"),
    "model_b": ("model_b", "model_2"),
    "winner": ("winner", "verdict", "preference"),
    "cluster": ("cluster",),
}
_TIES = {"tie", "draw", "equal", "same", "both", "tie (bothbad)", "bothbad", "neither", "a=b", "b=a"}
_FIRST = {"a", "model_a", "model_1", "first", "a>b", "a>>b", "b<a", "b<<a"}
_SECOND = {"b", "model_b", "model_2", "second", "b>a", "b>>a", "a<b", "a<<b"}


class Judged(NamedTuple):
    """One verdict of a judge on two answers to a question."""

    question: str
    cluster: str | None
    first: str
    """The model whose answer was shown first."""
    second: str
    points: float
    """The first model's points: 1, ½ or 0, NaN if the judge gave no verdict."""


def read_verdicts(source: Any, columns: Mapping[str, str]) -> list[Judged]:
    """Read a judge's verdicts on pairs from a table or a known tool's file. Refuse none, and a model against itself.

    Args:
        source: see `ground.rows_of`.
        columns: role → column, as the user says.

    Raises:
        InputError: a column is not there, a verdict has words that are not known, or a model meets itself; says where.
    """
    where, rows = rows_of(source)
    reader = next((read for keys, read in _FORMATS if keys <= rows[0].keys() and not columns), None)
    out = list(_of_table(where, rows, columns) if reader is None else reader(where, rows))
    for number, one in enumerate(out, 1):
        if one.first == one.second:
            raise InputError(f"{where}, verdict {number}: {one.first} is compared with itself")
    if all(math.isnan(one.points) for one in out):
        raise InputError(f"{where}: it has no verdict")
    return out


def _of_table(where: str, rows: Sequence[Row], columns: Mapping[str, str]) -> Iterator[Judged]:
    if unknown := set(columns) - set(_NAMES):
        raise InputError(f"{where}: verdicts have no {sorted(unknown)[0]!r}: `columns` names {', '.join(_NAMES)}")
    named = {role: column_of(where, rows, role, names, columns) for role, names in _NAMES.items()}
    both = bool(named["model_a"] and named["model_b"])
    lacking = [role for role in ("question", "winner") if not named[role]]
    lacking += [] if both or named["first"] else ["model_a and model_b (or first, of two models)"]
    if lacking:
        raise InputError(
            f"{where}: no column is the {lacking[0]}. There are {some_of(list(rows[0]), 12)}. Name it, as in "
            f"`columns={{'{lacking[0].split()[0]}': 'COL'}}`"
        )
    other = {} if both else _two(where, rows, named)
    for number, row in enumerate(rows, 1):
        cells = {role: _told(row.get(name)) if name else None for role, name in named.items()}
        first = cells["model_a"] if both else cells["first"]
        second = cells["model_b"] if both else other.get(first or "")
        if cells["question"] is None or first is None or second is None:
            raise InputError(f"{where}, row {number}: the question or a model is empty")
        points = _points(f"{where}, row {number}", cells["winner"], first, second)
        yield Judged(cells["question"], cells["cluster"], first, second, points)


def _two(where: str, rows: Sequence[Row], named: Mapping[str, str]) -> dict[str, str]:
    """Return {model: the other} for a table that names only the model shown first. Refuse other than two models."""
    names = dict.fromkeys(str(row[named["first"]]).strip() for row in rows if not is_empty(row.get(named["first"])))
    winners = dict.fromkeys(str(row[named["winner"]]).strip() for row in rows if not is_empty(row.get(named["winner"])))
    names |= {word: None for word in winners if word.lower() not in _TIES | _FIRST | _SECOND}
    if len(names) != 2:
        raise InputError(
            f"{where}: it names {some_of(list(names), 6)}. A column `first` is for two models: give the columns "
            "model_a and model_b"
        )
    a, b = names
    return {a: b, b: a}


def _points(where: str, verdict: str | None, first: str, second: str) -> float:
    """Return the first model's points of a verdict or winner's name: 1, ½ (tie), 0, NaN if None. Refuse other words."""
    if verdict is None:
        return math.nan
    word = verdict.lower().replace(" ", "") if ">" in verdict or "<" in verdict or "=" in verdict else verdict.lower()
    known = {**dict.fromkeys(_TIES, 0.5), **dict.fromkeys(_FIRST, 1.0), **dict.fromkeys(_SECOND, 0.0)}
    known |= {first.lower(): 1.0, second.lower(): 0.0}  # a model may be called A
    if word not in known:
        raise InputError(
            f"{where}: the verdict {verdict[:40]!r} is neither {first}, {second} nor tie (nor A>B, A>>B, A=B, …)"
        )
    return known[word]


def _arena_hard(where: str, rows: Sequence[Row]) -> Iterator[Judged]:
    """Yield verdicts from arena-hard rows: two games per question, in both orders. Refuse unknown words."""
    for number, row in enumerate(rows, 1):
        model, base = str(row["model"]), str(row.get("baseline") or "baseline")
        question = str(row.get("question_id") or row.get("uid") or number)
        for game, (first, second) in zip(_list(row["games"]), ((base, model), (model, base)), strict=False):
            told = None if game is None else game.get("score")
            points = _points(f"{where}, line {number}", told, "A", "B")
            yield Judged(question, None, first, second, points)


def _mt_bench(where: str, rows: Sequence[Row]) -> Iterator[Judged]:
    """Yield verdicts from MT-bench rows: two orders, winners named by the first. Refuse unknown words."""
    for number, row in enumerate(rows, 1):
        a, b, at = str(row["model_1"]), str(row["model_2"]), f"{where}, line {number}"
        question = f"{row['question_id']} turn {row['turn']}" if "turn" in row else str(row["question_id"])
        cluster = str(row["question_id"]) if "turn" in row else None
        for first, second, told in ((a, b, row["g1_winner"]), (b, a, row["g2_winner"])):
            points = math.nan if told == "error" else _points(at, _told(told), "model_1", "model_2")
            yield Judged(question, cluster, first, second, points if first == a else 1 - points)


def _alpaca_eval(where: str, rows: Sequence[Row]) -> Iterator[Judged]:
    """Yield verdicts from AlpacaEval preferences, 1 (first) to 2 (second), 0 a tie. Refuse others."""
    for number, row in enumerate(rows, 1):
        told = number_of(row["preference"])
        if told is None or not (math.isnan(told) or told == 0 or 1 <= told <= 2):
            raise InputError(f"{where}, row {number}: the preference {row['preference']!r} is not between 1 and 2")
        points = 0.5 if told == 0 else 2 - told
        yield Judged(str(row["instruction"]), None, str(row["generator_1"]), str(row["generator_2"]), points)


def _promptfoo(where: str, rows: Sequence[Row]) -> Iterator[Judged]:
    """Yield verdicts from promptfoo's `select-best`: a test's chosen output beats the others. Refuse none."""
    inner = rows[0]["results"]
    results = inner.get("results") if isinstance(inner, dict) else inner
    tests: dict[str, list[tuple[str, bool]]] = {}
    for result in filter(None, _list(results)):
        provider = result.get("provider") or {}
        name = str(provider.get("label") or provider.get("id") or "") if isinstance(provider, dict) else str(provider)
        parts = _list((result.get("gradingResult") or {}).get("componentResults"))
        for part in parts:
            if part is not None and (part.get("assertion") or {}).get("type") == "select-best":
                tests.setdefault(str(result.get("testIdx")), []).append((name, bool(part.get("pass"))))
    if not tests:
        raise InputError(f"{where}: no test of it has the assertion select-best, which prefers one output")
    for test, outputs in tests.items():
        for i, (first, won) in enumerate(outputs):
            for second, lost in outputs[i + 1 :]:
                if won != lost:  # of two that were not chosen nothing is known
                    yield Judged(test, None, first, second, float(won))


def _list(value: Any) -> list[Any]:
    return [item if isinstance(item, dict) else None for item in value] if isinstance(value, list) else []


def _told(value: Any) -> str | None:
    return None if is_empty(value) else str(value).strip()


_FORMATS: tuple[tuple[frozenset[str], Callable[[str, Sequence[Row]], Iterator[Judged]]], ...] = (
    (frozenset(("model", "games")), _arena_hard),
    (frozenset(("model_1", "model_2", "g1_winner", "g2_winner")), _mt_bench),
    (frozenset(("generator_1", "generator_2", "preference", "instruction")), _alpaca_eval),
    (frozenset(("results",)), _promptfoo),
)
"""Names that the first row of a format has → its reader."""
