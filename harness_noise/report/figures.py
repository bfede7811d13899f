"""Figures of results, each with a text alternative.

A comparison has its verdict, its rows, and for each row slices, clusters and questions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import FloatArray, IntArray
from ..errors import counted
from ..extras import display_of
from ..io.atomic import write_text
from ..results.diagnostics import SCORED
from ..results.forms import rendered
from ..results.rows import Analysis, Comparison, Difference, DifferenceSlice, Estimate, EstimateSlice
from ..stats.resampling import cluster_means
from ..stats.tolerances import ROUNDING
from . import canvas, fmt
from .canvas import COLOURS, MUTED, ROWS, Axis, Drawing, Picture, Row, forest, name
from .columns import significance_tone
from .summary import Result


def save_rows(table: Analysis | Comparison, folder: Path) -> list[Path]:
    """Write the opening pictures of a result, one per metric, to folder/01-title.svg and so on. Return the paths."""
    written = []
    for i, drawn in enumerate(opening(table), 1):
        slug = re.sub(r"[^a-z0-9]+", "-", drawn.title.lower()).strip("-") or "rows"
        written.append(folder / f"{i:02d}-{slug}.svg")
        write_text(written[-1], canvas.svg(drawn))
    return written


DISTINCT = 31
"""Values of a difference up to which each has a bar of its own."""
BINS = 21


def numbers(row: Any) -> str:
    """Return a row's estimate and interval as text, such as "75.4% [67.2%, 82.1%]"."""
    ends = "" if row.ci_low is None else f" {fmt.interval_of(row)}"
    return f"{fmt.shown(row, fmt.value_of(row), mean=hasattr(row, 'mean'), unit=True)}{ends}"


def opening(table: Result) -> list[Picture]:
    """Return the pictures that come first on a result's page or notebook. [] if its kind has none."""
    return list(rendered("pictures", table)) if "pictures" in table.renderers else []


def of_rows(table: Analysis | Comparison) -> list[Picture]:
    """Draw the intervals of all rows of a table, one picture for each metric."""
    return all_rows(table.rows, table.settings.get("margin"))


def plot(table: Result) -> str:
    """Return the first picture of a result as SVG. Raise ValueError if the result has none.

    Raises:
        ValueError: there is none.
    """
    drawn = opening(table)
    if not drawn:
        raise ValueError("there is nothing that could be drawn")
    return canvas.svg(drawn[0])


def _better_sides(a: str, b: str, higher_is_better: bool | None) -> tuple[str, str]:
    """Return the texts below and above 0 on an axis of A − B: which model is better there."""
    left, right = fmt.cut_apart(*((a, b) if higher_is_better is False else (b, a)), 18)
    return f"{left} better", f"{right} better"


def colour_of(row: Estimate | Difference) -> tuple[str, bool]:
    """Return a row's colour, and True if its marker is hollow: a difference not shown to differ from 0."""
    if isinstance(row, Estimate):
        return COLOURS[0], False
    return {"A better": (COLOURS[0], False), "B better": (COLOURS[1], False)}.get(row.verdict, (MUTED, True))


def _row(row: Estimate | Difference, named: str, said: str = "") -> Row:
    """Return a row's line for a forest plot: name, interval, colour and tooltip."""
    title = f"{named}: {numbers(row)}{said}"
    return Row(named, row.ci_low, fmt.value_of(row) or 0.0, row.ci_high, title, *colour_of(row))


def all_rows(rows: Sequence[Estimate | Difference], margin: float | None = None) -> list[Picture]:
    """Draw the rows with a value as forest plots, a `Picture` for each metric and scorer, of its first `ROWS` rows."""
    out = []
    estimated = [row for row in rows if fmt.value_of(row) is not None]
    several = len({row.task for row in rows}) > 1
    models = len({fmt.models_of(row) for row in rows}) > 1
    for i, metric in enumerate(dict.fromkeys(fmt.metric_name(row.metric, row.scorer) for row in estimated)):
        on_scale = [row for row in estimated if fmt.metric_name(row.metric, row.scorer) == metric]
        first, drawn, scale = on_scale[0], [], fmt.scale_of(on_scale[0])
        for row in on_scale[:ROWS]:
            parts = [fmt.plain(row.task)] * (several or not models) + [fmt.models_of(row)] * models
            named = " ".join(filter(None, parts)) or metric
            drawn.append(_row(row, named, f", {fmt.verdict_words(row)}" if isinstance(row, Difference) else ""))
        sides, what = None, "means"
        if isinstance(first, Difference):
            a, b = ("A", "B") if models else fmt.names_of(first)
            sides, what = _better_sides(a, b, first.higher_is_better), "differences"
        more = f" (the first {ROWS} of {len(on_scale)})" if len(on_scale) > ROWS else ""
        alt = f"{len(drawn)} {what}{more}, {fmt.level_of(on_scale)} intervals" if len(on_scale) > 1 else drawn[0].title
        if sides and len(on_scale) > 1:
            alt += f"; {sum(not colour_of(row)[1] for row in on_scale)} of {len(on_scale)} are significant"
        caption = f"{'A − B' if sides else 'mean'}, {fmt.level_of(on_scale)} CI ({name(metric, 30)})"
        titled = (f"rows-{i}", name(metric, 40), f"{alt}.")
        out.append(forest(*titled, drawn, caption, sides=sides, margin=margin, scale=scale))
    return out


def slices(
    picture: str, slices: Sequence[DifferenceSlice | EstimateSlice], whole: Estimate | Difference, margin: float | None
) -> Picture | None:
    """Draw all questions and below them the first slices with a value as a `Picture`. None if either has no value."""
    shown = [sliced for sliced in slices if fmt.value_of(sliced) is not None][: ROWS - 1]
    if not shown or fmt.value_of(whole) is None:
        return None
    compared = isinstance(whole, Difference)
    rows = [_slice_row("all questions", whole, bold=True)]
    title, names = slice_names([(sliced.field, sliced.slice) for sliced in shown])
    rows += [_slice_row(named, sliced) for named, sliced in zip(names, shown, strict=True)]
    alt = f"{len(shown)} slices{f' (of {len(slices)})' if len(shown) < len(slices) else ''}"
    tested = sum(sliced.p_adjusted is not None and SCORED not in sliced.diagnostics for sliced in shown)
    differing = sum(bool(significance_tone(sliced)) for sliced in shown)
    if not tested:
        alt += f". None of them could be tested: {display_of('by').untested(shown)}."
    else:
        of = "them" if tested == len(shown) else f"the {tested} that could be tested"
        alt += f" with their intervals, {differing} of {of} differ from "
        alt += f"{'0' if compared else 'the other questions'} after adjustment (filled)."
    caption = f"{'A − B' if compared else 'mean'} ({fmt.metric_name(whole.metric, whole.scorer)})"
    sides = _better_sides("A", "B", whole.higher_is_better) if compared else None
    return forest(picture, title, alt, rows, name(caption, 40), sides=sides, margin=margin, scale=fmt.scale_of(whole))


def slice_names(slices: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
    """Return a title and a name per slice (field, value). If all have one field, names are values only."""
    fields = dict.fromkeys(field for field, _ in slices)
    if len(fields) == 1:
        return f"By {name(next(iter(fields)), 60)}", [fmt.shorten(value, 80) for _, value in slices]
    return "By slice", [f"{fmt.shorten(field, 60)} = {fmt.shorten(value, 80)}" for field, value in slices]


def _slice_row(named: str, row: Estimate | Difference, *, bold: bool = False) -> Row:
    p = getattr(row, "p_adjusted", 0.0)  # the mean of all questions is not held against anything
    significant = p is not None and p < 1 - row.level and SCORED not in row.diagnostics
    said = f", n = {row.n_questions}" + (f", adjusted p {fmt.p_text(p)}" if p else "")
    drawn = _row(row, named, said)
    return replace(drawn, colour=drawn.colour if significant else MUTED, hollow=not significant, bold=bold)


ENDS = 20
"""The most clusters that are drawn: of more, half from each end."""


def clusters(picture: str, d: FloatArray, held_by: Sequence[str], row: Difference) -> Picture | None:
    """Draw clusters' mean differences ± SE, sorted (many: both ends). None for one cluster or one question in each.

    The text says whether clusters differ by more than their questions do.

    Args:
        picture: its name.
        d: (n,) A − B of each question.
        held_by: (n,) cluster of each question.
        row: the row that they are of.
    """
    sign = -1.0 if row.higher_is_better is False else 1.0
    names, codes = np.unique(np.asarray(held_by, dtype=object).astype(str), return_inverse=True)
    if len(names) < 2 or len(names) == len(d):
        return None
    sizes, (means, errors, p) = np.bincount(codes), cluster_means(d, codes)
    ahead = side_of(sign * means)
    alt = f"Of {len(names)} clusters A is better in {(ahead > 0).sum()} and B in {(ahead < 0).sum()}"
    order = np.argsort(-means, kind="stable")
    if len(names) > ENDS:
        order = np.r_[order[: ENDS // 2], order[-(ENDS // 2) :]]
        alt += f". Shown are the {ENDS // 2} at each end"
    if not math.isnan(p):
        varies = "varies" if p < 1 - row.level else "is not shown to vary"
        alt += f". ± is the standard error, from the spread within clusters. The difference {varies} between clusters"
        alt += f" (permutation p {fmt.equals_p(p)})"
    rows = []
    for k in order.tolist():
        named, mean, se = str(names[k]), float(means[k]), None if math.isnan(errors[k]) else float(errors[k])
        found = (
            fmt.amount(row, mean, 3) if se is None else f"{fmt.shown(row, mean, digits=3)} ± {fmt.amount(row, se, 3)}"
        )
        title = f"{name(named, 40)}: A − B = {found}, {counted(sizes[k], 'question')}"
        ends = (None, None) if se is None else (mean - se, mean + se)
        rows.append(Row(named, ends[0], mean, ends[1], title, _COLOUR[int(ahead[k])]))
    sides, scale = _better_sides("A", "B", sign > 0), fmt.scale_of(row)
    return forest(picture, "By cluster", f"{alt}.", rows, "A − B of the cluster ± SE", sides=sides, scale=scale)


def histogram(picture: str, d: FloatArray, row: Difference) -> Picture:
    """Draw a histogram of per-question differences A − B, finite and at least one, as a `Picture`. Never None."""
    sign = -1.0 if row.higher_is_better is False else 1.0
    bars = bins(d, row)
    across = canvas.axis_of(d, "A − B of the question", fmt.scale_of(row), mean=False)
    across = replace(across, low=bars[0][0], high=bars[-1][1], between=(float(d.min()), float(d.max())))
    most = max(count for *_, count in bars)
    drawing = Drawing(across, Axis(0, 1.05 * most, "questions", whole=True), height=230)
    for low, top, words, count in bars:
        middle, inset = (low + top) / 2, 0.06 * (top - low)
        colour = _COLOUR[int(side_of(sign * middle))]
        title = f"A − B {words}: {counted(count, 'question')}"
        drawing.bar((low + inset, top - inset), (0, count), colour, title=title)
    up, down, same = (int((side_of(sign * d) == side).sum()) for side in (1, -1, 0))
    alt = (
        f"{counted(len(d), 'question')} by the means of their answers: A is better on {up}, B on {down}, and "
        f"{same} are equal."
    )
    return drawing.done(picture, "Questions by their difference", alt)


def bins(d: FloatArray, row: Any = None) -> list[tuple[float, float, str, int]]:
    """Return histogram bars (left, right, caption, count): one per value if few, else 21 equal ones around 0."""
    values, counts = np.unique(np.round(d, 9), return_counts=True)
    if len(values) <= DISTINCT:
        half = float(np.diff(values).min()) / 2 if len(values) > 1 else 0.5
        bars = zip(values.tolist(), counts.tolist(), strict=True)
        return [(value - half, value + half, f"= {fmt.amount(row, value, 3)}", n) for value, n in bars]
    reach = float(np.abs(d).max())
    counts, edges = np.histogram(d, np.linspace(-reach, reach, BINS + 1))
    held = zip(pairwise(edges.tolist()), counts.tolist(), strict=True)
    between = "from {} to {}".format
    return [(low, high, between(fmt.shown(row, low, digits=3), fmt.amount(row, high, 3)), n) for (low, high), n in held]


_COLOUR = {1: COLOURS[0], -1: COLOURS[1], 0: MUTED}


def side_of(better: ArrayLike) -> IntArray:
    """Return for each value 1 where A is better, −1 where B is better, 0 where they are equal up to rounding."""
    x = np.asarray(better)
    return np.where(np.abs(x) > ROUNDING, np.sign(x), 0).astype(np.intp)
