"""The glossary's words with the numbers of a run: one sentence for each row that has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import counted
from ...report import fmt
from ...report.columns import DIFFERENCES, MEANS, Column
from ...report.sentences import answers, gap_words
from ...results.rows import Difference, Estimate
from .terms import Term


def sentence(term: Term, row: Any) -> str:
    """Return a sentence that explains a term with the numbers of a row, "" if the row has no such number."""
    if not isinstance(row, (Estimate, Difference)):
        return ""
    if term.name in row.diagnostics:
        return "this row has it."
    made = _SENTENCES.get(term.name) or _IN_A_TABLE.get(term.name)
    return made(row) if made is not None else "; ".join(_cells_with_term(term, row))


def own_sentence(term: Term, row: Any) -> str:
    """Return a sentence on a term that says more than the table's cell, "" for most terms."""
    return sentence(term, row) if term.name in _SENTENCES else ""


def _cells_with_term(term: Term, row: Estimate | Difference) -> list[str]:
    """Return "heading text" of each of the row's columns that shows the term."""
    columns = MEANS if isinstance(row, Estimate) else DIFFERENCES
    shown = [(column.heading, column.text_of(row)) for column in columns.values() if _is_of(column, term)]
    return [f"{heading} {text}" for heading, text in shown if text not in ("", fmt.MISSING)]


def _is_of(column: Column, term: Term) -> bool:
    return bool(column.heading) and column.heading in term.labels


def _mean(row: Estimate | Difference) -> str:
    if isinstance(row, Estimate):
        return "" if row.mean is None else f"{fmt.mean_of(row, row.mean, unit=True)}."
    both = (("A", row.mean_a), ("B", row.mean_b))
    said = ", ".join(f"{side} {fmt.mean_of(row, mean, unit=True)}" for side, mean in both if mean is not None)
    return said and f"{said}."


def _difference(row: Estimate | Difference) -> str:
    return "" if isinstance(row, Estimate) or row.diff is None else f"A − B is {fmt.amount(row, row.diff)}."


def _freedom(row: Estimate | Difference) -> str:
    return "" if row.df is None else f"{fmt.degrees(row.df)} degrees of freedom."


def _codes(row: Estimate | Difference) -> str:
    return ", ".join(row.diagnostics)


def _design_effect(row: Estimate | Difference) -> str:
    if not row.cluster or not row.design_effect:
        return ""
    worth, n = row.n_questions / row.design_effect, row.n_questions
    return (
        f"{counted(n, 'question')} in {counted(row.n_clusters, 'cluster')} count like {worth:,.0f} "
        f"({n:,} / {fmt.number(row.design_effect, 2)})."
    )


def _clusters(row: Estimate | Difference) -> str:
    if not row.cluster:
        return "no clusters: the questions are taken to be unrelated."
    return f"{counted(row.n_questions, 'question')} in {counted(row.n_clusters, 'cluster')} ({fmt.plain(row.cluster)})."


def _error(row: Estimate | Difference) -> str:
    if row.se is None:
        return ""
    if isinstance(row, Estimate):
        return f"the mean is {fmt.mean_of(row, row.mean, unit=True)}, typically {fmt.amount(row, row.se)} off."
    return f"A − B is {fmt.amount(row, row.diff)}, typically {fmt.amount(row, row.se)} off."


def _interval(row: Estimate | Difference) -> str:
    if row.ci_low is None:
        return ""
    of, level = ("true mean" if isinstance(row, Estimate) else "true difference"), fmt.percent(row.level)
    return f"the {of} lies in {fmt.interval_of(row)}, with {level} confidence."


def _data_noise(row: Estimate | Difference) -> tuple[float | None, str]:
    """Return (SE of data noise or None, ""), or (its upper limit, "less than ") if the estimate is below 0."""
    if row.var_data is not None and row.var_data < 0:
        return row.se_data_upper, "less than "
    return row.se_data, ""


def _data(row: Estimate | Difference) -> str:
    data, less = _data_noise(row)
    if row.se_total is None or data is None:
        return ""
    total, left = fmt.amount(row, row.se_total), fmt.data_noise(row).removeprefix("< ")  # a limit is rounded up
    unit = fmt.scale_of(row).size
    return f"more answers lower the standard error from {total} (1 answer) to {less}{left}{unit} at best."


def _prediction(row: Estimate | Difference) -> str:
    data, less = _data_noise(row)
    if not row.se_total or row.se_prediction is None or data is None:
        return ""
    share = row.se_prediction**2 / (row.se_prediction**2 + data**2)
    said = f"more than {math.floor(100 * share)}%" if less else f"{100 * share:.0f}%"
    gap = gap_words(row) if isinstance(row, Estimate) else ""
    return f"{said} of the variance with one answer per question. {gap}".rstrip()


def _one_answer(row: Estimate | Difference) -> str:
    if row.se_total is None or row.se is None:
        return ""
    return f"{fmt.amount(row, row.se_total)} with one answer per question, {fmt.amount(row, row.se)} with those asked."


def _p(row: Estimate | Difference) -> str:
    if isinstance(row, Estimate) or row.p_value is None:
        return ""
    times = 100 * row.p_value
    often = "less than 1" if times < 1 else f"{times:.0f}"
    return f"p {fmt.equals_p(row.p_value)}: if A and B were equal, {often} of 100 comparisons would differ as much."


def _detectable(row: Estimate | Difference) -> str:
    if isinstance(row, Estimate) or row.mde is None or not math.isfinite(row.mde):
        return ""
    seen = "" if row.diff is None else f"; A − B was {fmt.amount(row, row.diff)}"
    return f"a true difference of {fmt.amount(row, row.mde)} would be found in 80 of 100 such comparisons{seen}."


def _paired(row: Estimate | Difference) -> str:
    if isinstance(row, Estimate) or not (row.se and row.se_unpaired) or "unpaired" in row.diagnostics:
        return ""
    return (
        f"the standard error is {fmt.amount(row, row.se)}, and without pairing {fmt.amount(row, row.se_unpaired)}: "
        f"pairing is worth {(row.se_unpaired / row.se) ** 2:.1f} × the questions."
    )


def _answers(row: Estimate | Difference) -> str:
    return f"{counted(row.n_questions, 'question')}, {answers(row)}."


def _missing(row: Estimate | Difference) -> str:
    if not row.n_missing:
        return "every answer has a score."
    bounds = fmt.if_missing(row, " to ") if isinstance(row, Estimate) and row.mean_if_missing_wrong is not None else ""
    between = f" Depending on it, the mean is {bounds}." if bounds else ""
    return f"{counted(row.n_missing, 'answer has', 'answers have')} no score.{between}"


_SENTENCES: dict[str, Callable[[Estimate | Difference], str]] = {
    "answer": _answers,
    "cluster": _clusters,
    "confidence interval": _interval,
    "data noise": _data,
    "design effect": _design_effect,
    "missing answer": _missing,
    "p-value": _p,
    "paired": _paired,
    "prediction noise": _prediction,
    "SE (1 answer)": _one_answer,
    "smallest detectable difference": _detectable,
    "standard error": _error,
}
"""Term → the sentence with a row's numbers. Other terms show the cells of their columns."""

_IN_A_TABLE: dict[str, Callable[[Estimate | Difference], str]] = {
    "degrees of freedom": _freedom,
    "diagnostic": _codes,
    "difference": _difference,
    "mean": _mean,
}
"""Term → the sentence with numbers that a table has with their units, so that a page needs no tooltip of them."""
