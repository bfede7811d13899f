"""Display of slices: their tables, and sentences on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import some_of
from ...report import fmt
from ...report.columns import (
    Column,
    Marks,
    Section,
    TextColumn,
    difference_columns,
    mean_columns,
    section,
    significance_tone,
)
from ...results.diagnostics import SCORED
from ...results.rows import Comparison, Difference, DifferenceSlice, EstimateSlice, Heterogeneity

SLICES = 60
"""The most slices in a table. If there are more, those with the smallest p are shown."""


def sections(table: Any, marks: Marks) -> list[Section]:
    """Return the table of a result's slices, always (at most 60, of the smallest p), and that of its tests, if any."""
    rows: Sequence[EstimateSlice | DifferenceSlice] = table.slices
    title, left = "By slice", len(rows) - SLICES
    if left > 0:
        title = f"By slice ({left} more in JSON and frames)"
        p = [2.0 if row.p_value is None else row.p_value for row in rows]
        rows = [rows[i] for i in sorted(sorted(range(len(rows)), key=p.__getitem__)[:SLICES])]
    tested = [row for row in table.heterogeneity if row.p_value is not None]
    return [_slice_table(title, rows, marks), *([_heterogeneity(tested, marks)] if tested else [])]


def _slice_names(rows: Sequence[EstimateSlice | DifferenceSlice] | Sequence[Heterogeneity]) -> list[Column]:
    """Return three columns that name a slice: model and task (empty unless there are several), and field."""
    several = len({(fmt.models_of(row), fmt.what_of(row)) for row in rows}) > 1
    return [
        TextColumn("Model", lambda row: fmt.models_of(row) if several else "", optional=True),
        TextColumn("Task", lambda row: fmt.what_of(row) if several else "", optional=True),
        TextColumn("Field", "field"),
    ]


def _slice_table(title: str, rows: Sequence[EstimateSlice | DifferenceSlice], marks: Marks) -> Section:
    compared, level = isinstance(rows[0], Difference), fmt.percent(rows[0].level)
    null = "of no difference" if compared else "of the mean of all other questions"
    columns = [
        *_slice_names(rows),
        TextColumn("Slice", lambda row: fmt.shorten(row.slice, 40), "questions that share this value"),
        Column("n", "n_questions", "questions", 3),
        *mean_columns("g"),
        *(difference_columns("diff ci", level) if compared else mean_columns("mean ci", level)),
        Column("SE", "se", "standard error", 2),
        Column(
            "shrunken",
            "shrunken",
            "pulled towards the other slices, the more the noisier it is",
            1,
            optional=True,
            detail=True,
        ),
        Column(
            "shrunken CI",
            "shrunken_ci_low, shrunken_ci_high",
            "confidence interval of the shrunken value",
            5,
            optional=True,
            detail=True,
        ),
        Column("p", "p_value", null, 6),
        Column("p adj.", "p_adjusted", "adjusted for all slices (Benjamini–Hochberg)", tone=significance_tone),
        marks.column(),
    ]
    return section(title, rows, columns)


def _heterogeneity(rows: Sequence[Heterogeneity], marks: Marks) -> Section:
    spread = "standard deviation of the true slice means, as estimated"
    columns = [
        *_slice_names(rows),
        Column("slices", "n_slices", "how many there are"),
        Column(
            "F*", lambda row: fmt.number(row.statistic, 2), "Brown and Forsythe's test that all slices are equal", 2
        ),
        Column("df", lambda row: _both_df(row, ", "), "degrees of freedom", 3),
        Column("p", "p_value", "of equal slices", 1),
        Column("p adj.", "p_adjusted", "adjusted for all fields (Benjamini–Hochberg)"),
        Column("spread", lambda row: fmt.shown(row, row.spread, digits=3), spread, 4, optional=True),
        Column("without", lambda row: str(row.n_left_out or ""), "questions that lack the field", 5, optional=True),
        marks.column(),
    ]
    shown = section("Do the slices differ?", rows, columns, detail=True)
    return shown if any(row.spread is not None for row in rows) else replace(shown, units="")


def _both_df(row: Heterogeneity, joint: str) -> str:
    """Return both degrees of freedom of an F test as text, with `joint` between them."""
    return joint.join(fmt.degrees(df) for df in (row.df, row.df_residual) if df is not None)


def sentences(table: Any) -> list[str]:
    """Return sentences on the fields over which results vary, or are not shown to, and on extreme slices."""
    rows, alpha = table.heterogeneity, 1 - float(table.settings.get("level", 0.95))
    what = "difference" if any(row.model_b is not None for row in rows) else "mean"
    adjusted = "adjusted " if len(rows) > 1 else ""
    out, unknown, without = [], dict[str, list[str]](), list[Heterogeneity]()
    for row in rows:
        on, field = fmt.what_of(row), fmt.plain(row.field)
        if row.p_adjusted is None or SCORED in row.diagnostics:
            said = f"on {on}: it is not known whether the {what} varies over {field}."
            unknown.setdefault(said, []).append(fmt.models_of(row))
        elif row.p_adjusted < alpha:
            test = f"F* = {fmt.number(row.statistic, 2)} on {_both_df(row, ' and ')} df"
            p = f"{adjusted}p {fmt.equals_p(row.p_adjusted)}"
            out.append(f"{fmt.models_of(row)} on {on}: the {what} varies over {field} ({test}, {p}).")
        else:
            without.append(row)
    if without:
        several = len({(fmt.models_of(row), fmt.what_of(row)) for row in rows}) > 1
        out.append(_no_sign(without, what, adjusted, several=several))
    for said, names in unknown.items():
        out.append(f"{names[0] if len(names) == 1 else f'each of {len(names)} models'} {said}")
    if table.slices:
        out.append(_standing_out(table) + _both_true(table, without))
    return out


def _no_sign(rows: Sequence[Heterogeneity], what: str, adjusted: str, *, several: bool) -> str:
    """Return a sentence that lists the fields over which results are not shown to vary."""
    fields = some_of(list(dict.fromkeys(fmt.plain(row.field) for row in rows)), 8)
    where = f" in {len(rows)} tests of models and fields" if several else ""
    p = fmt.equals_p(min(row.p_adjusted for row in rows if row.p_adjusted is not None))
    smallest = f"{'smallest ' if len(rows) > 1 else ''}{adjusted}p {p}"
    return f"The {what} is not shown to vary by {fields}{where} ({smallest}): slices may look different by noise alone."


def untested(rows: Sequence[EstimateSlice | DifferenceSlice]) -> str:
    """Return why none of these slices has a p-value, in words. "" if one has."""
    if any(row.p_adjusted is not None and SCORED not in row.diagnostics for row in rows):
        return ""
    codes = [set(row.diagnostics) for row in rows]
    if all(SCORED in of_row for of_row in codes):
        return "equal answers are scored differently"
    if all("too_few_clusters" in of_row for of_row in codes):
        return "each lies in one cluster, which alone does not tell its noise"
    if all(of_row & {"too_few_clusters", "too_few_questions"} for of_row in codes):
        return "each lies in one cluster or has one question, which alone does not tell its noise"
    return "none has a p-value"


def _tested(table: Any) -> list[EstimateSlice | DifferenceSlice]:
    return [row for row in table.slices if row.p_adjusted is not None and SCORED not in row.diagnostics]


def _both_true(table: Any, without: Sequence[Heterogeneity]) -> str:
    """Return " Both can be true: …" if a slice has a difference by whose field results are not shown to vary, or ""."""
    fields = {(fmt.models_of(row), fmt.what_of(row), row.field) for row in without}
    found = [row for row in _tested(table) if significance_tone(row)]
    n = sum((fmt.models_of(row), fmt.what_of(row), row.field) in fields for row in found)
    if not n:
        return ""
    if isinstance(table, Comparison):
        alone = "this slice alone differs from 0" if n == 1 else f"{n} slices, each alone, differ from 0"
    else:
        alone = "this slice differs from the rest" if n == 1 else f"{n} slices, each alone, differ from the rest"
    return f" Both can be true: {alone}. That the slices differ from each other is not shown by the test of all."


def _standing_out(table: Any) -> str:
    rows: Sequence[EstimateSlice | DifferenceSlice] = table.slices
    tested = _tested(table)
    significant = sorted(filter(significance_tone, tested), key=lambda row: row.p_adjusted or 0.0)
    if not tested:
        return f"None of {len(rows)} slices could be tested: {untested(rows)}."
    of = f"{len(rows)} slices"
    if len(tested) < len(rows):
        of = f"the {len(tested)} slices that could be tested (of {len(rows)})"
    what = "have a difference" if isinstance(table, Comparison) else "differ from the rest"
    if not significant:
        return f"None of {of} is shown to {what} (p adjusted for all of them, Benjamini–Hochberg)."
    several = len({(fmt.models_of(row), fmt.what_of(row)) for row in rows}) > 1
    names = []
    for row in significant:
        value = fmt.shown(row, fmt.value_of(row), mean=hasattr(row, "mean"), unit=True)
        where = f", {fmt.models_of(row)} on {fmt.what_of(row)}" if several else ""
        names.append(f"{fmt.plain(row.field)} = {fmt.shorten(row.slice, 40)} ({value}{where})")
    rate = f"false discovery rate {fmt.percent(1 - rows[0].level)}, Benjamini–Hochberg"
    return f"{len(significant)} of {of} {what} ({rate}): {some_of(names, 5)}."
