"""How slices are shown: a table of slices, one of whether they differ, and what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..results.rows import Analysis, Comparison, Difference, Estimate
from .columns import (
    MISSING,
    Column,
    Section,
    decimals,
    degrees,
    drop_empty,
    interval,
    metric_name,
    number,
    p_text,
    plain,
    shorten,
)
from .words import NOTES

if TYPE_CHECKING:
    from ..results.arena import Arena
    from ..results.rows import DifferenceSlice, EstimateSlice, Heterogeneity

SHOWN = 60
"""Slices that a table shows; of more, those with the smallest p."""


def sections(table: Analysis | Comparison | Arena, marks: Mapping[str, str]) -> list[Section]:
    """The tables of a result's slices; none where it has none."""
    if not table.slices:
        return []
    rows: Sequence[EstimateSlice | DifferenceSlice] = table.slices
    left = len(rows) - SHOWN
    if left > 0:
        order = sorted(rows, key=lambda item: 2.0 if item.p_value is None else item.p_value)[:SHOWN]
        kept = set(map(id, order))
        rows = [item for item in rows if id(item) in kept]
    title = f"By slice ({left} more in JSON and frames)" if left > 0 else "By slice"
    return [_slices(title, rows, marks), _heterogeneity(table.heterogeneity, marks)]


def _what(item: EstimateSlice | DifferenceSlice | Heterogeneity) -> str:
    return f"{plain(item.task)} {metric_name(item.metric, item.scorer)}"


def _value(item: Estimate | Difference) -> float | None:
    return item.mean if isinstance(item, Estimate) else item.diff


def _models(item: EstimateSlice | DifferenceSlice | Heterogeneity) -> str:
    if isinstance(item, Estimate):
        return plain(item.model)
    assert not isinstance(item, Estimate)
    return plain(item.model_a if item.model_b is None else f"{item.model_a} − {item.model_b}")


def _slices(title: str, rows: Sequence[EstimateSlice | DifferenceSlice], marks: Mapping[str, str]) -> Section:
    compared = isinstance(rows[0], Difference)
    several = len({(_models(item), _what(item)) for item in rows}) > 1
    level = f"{100 * rows[0].level:g} %"
    columns = (
        Column("Model", text=True),
        Column("Task", text=True),
        Column("Field", text=True),
        Column("Slice", text=True, hint="questions that share this value"),
        Column("n", hint="questions", rank=3),
        Column("G", hint="clusters: groups of questions that are right or wrong together", rank=4),
        Column("A − B" if compared else "Mean"),
        Column(f"{level} CI"),
        Column("SE", hint="standard error", rank=2),
        Column("shrunken", hint="pulled towards the other slices, the more the noisier it is", rank=1),
        Column("shrunken CI", hint="confidence interval of the shrunken value", rank=5),
        Column("p", hint="of no difference" if compared else "of the mean of all other questions", rank=6),
        Column("p adj.", hint="adjusted for all slices (Benjamini–Hochberg)"),
        NOTES,
    )
    cells = []
    for item in rows:
        digits = decimals(item.se, _value(item))
        cells.append(
            (
                _models(item) if several else "",
                _what(item) if several else "",
                plain(item.field),
                shorten(item.value, 40),
                str(item.n_questions),
                str(item.n_clusters) if item.cluster else "",
                number(_value(item), digits),
                interval(item.ci_low, item.ci_high, digits),
                number(item.se, digits),
                number(item.shrunken, digits),
                interval(item.shrunken_ci_low, item.shrunken_ci_high, digits),
                p_text(item.p_value),
                p_text(item.p_adjusted),
                " ".join(marks[code] for code in item.diagnostics),
            )
        )
    return Section(title, *drop_empty(columns, cells, ("Model", "Task", "G", "shrunken", "shrunken CI", "")))


def _heterogeneity(rows: Sequence[Heterogeneity], marks: Mapping[str, str]) -> Section:
    several = len({(_models(item), _what(item)) for item in rows}) > 1
    columns = (
        Column("Model", text=True),
        Column("Task", text=True),
        Column("Field", text=True),
        Column("slices", hint="how many there are"),
        Column("F*", hint="Brown and Forsythe's test that all slices are equal", rank=2),
        Column("df", hint="degrees of freedom", rank=3),
        Column("p", hint="of equal slices", rank=1),
        Column("p adj.", hint="adjusted for all fields (Benjamini–Hochberg)"),
        Column("spread", hint="standard deviation of the true slice means, as estimated", rank=4),
        Column("without", hint="questions that lack the field", rank=5),
        NOTES,
    )
    cells = [
        (
            _models(item) if several else "",
            _what(item) if several else "",
            plain(item.field),
            str(item.n_slices),
            number(item.statistic, 2),
            MISSING if item.df is None or item.df_residual is None
            else f"{degrees(item.df)}, {degrees(item.df_residual)}",
            p_text(item.p_value),
            p_text(item.p_adjusted),
            number(item.spread, 3),
            str(item.n_left_out) if item.n_left_out else "",
            " ".join(marks[code] for code in item.diagnostics),
        )
        for item in rows
    ]  # fmt: skip
    return Section("Do the slices differ?", *drop_empty(columns, cells, ("Model", "Task", "without", "spread", "")))


def sentences(table: Analysis | Comparison | Arena) -> list[str]:
    """One sentence for each field, and one for the slices that stand out."""
    out = []
    alpha = 1 - float(table.settings.get("level", 0.95))
    unknown: dict[tuple[str, str, str], list[str]] = {}
    for item in table.heterogeneity:
        what = "difference" if item.model_b is not None else "mean"
        where = f"{_models(item)} on {_what(item)}"
        if item.p_adjusted is None or item.df is None or item.df_residual is None:
            unknown.setdefault((_what(item), what, plain(item.field)), []).append(_models(item))
            continue
        p = p_text(item.p_adjusted)
        p = p if p.startswith("<") else f"= {p}"
        found = (
            f"F* = {number(item.statistic, 2)} on {degrees(item.df)} and {degrees(item.df_residual)} df, adjusted p {p}"
        )
        out.append(
            f"{where}: the {what} varies over {plain(item.field)} ({found})."
            if item.p_adjusted < alpha
            else f"{where}: no sign that the {what} varies over {plain(item.field)} ({found}); its slices may look "
            "different by noise alone."
        )
    for (task, what, field), names in unknown.items():
        whose = names[0] if len(names) == 1 else f"each of {len(names)} models"
        out.append(f"{whose} on {task}: it is not known whether the {what} varies over {field}.")
    return [*out, _standing_out(table)] if table.slices else out


def untested(rows: Sequence[EstimateSlice | DifferenceSlice]) -> str:
    """Why none of these slices has a p; empty where some have."""
    if any(item.p_adjusted is not None for item in rows):
        return ""
    codes = [set(item.diagnostics) for item in rows]
    if all("too_few_clusters" in found for found in codes):
        return "each lies in one cluster, which alone does not tell its noise"
    if all(found & {"too_few_clusters", "too_few_questions"} for found in codes):
        return "each lies in one cluster or has one question, which alone does not tell its noise"
    return "none has a p-value"


def _standing_out(table: Analysis | Comparison | Arena) -> str:
    rows: Sequence[EstimateSlice | DifferenceSlice] = table.slices
    tested = [item for item in rows if item.p_adjusted is not None]
    told = [item for item in tested if item.p_adjusted is not None and item.p_adjusted < 1 - item.level]
    n = f"{len(rows)} slices"
    what = "have a difference" if isinstance(table, Comparison) else "differ from the rest"
    if not tested:
        return f"None of {n} could be tested: {untested(rows)}."
    if len(tested) < len(rows):
        n = f"the {len(tested)} slices that could be tested (of {len(rows)})"
    if not told:
        return f"None of {n} is shown to {what} (p adjusted for all of them, Benjamini–Hochberg)."
    told = sorted(told, key=lambda item: 1.0 if item.p_adjusted is None else item.p_adjusted)
    several = len({(_models(item), _what(item)) for item in rows}) > 1
    names = []
    for item in told[:5]:
        value = number(_value(item), decimals(item.se, _value(item)))
        where = f", {_models(item)} on {_what(item)}" if several else ""
        names.append(f"{plain(item.field)} = {shorten(item.value, 40)} ({value}{where})")
    if len(told) > 5:
        names.append(f"and {len(told) - 5} more")
    rate = f"false discovery rate {100 * (1 - rows[0].level):g} %, Benjamini–Hochberg"
    return f"{len(told)} of {n} {what} ({rate}): {', '.join(names)}."
