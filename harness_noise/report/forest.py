"""Intervals one below the other: differences, slices, means, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .canvas import COLOURS, INK, LINE, MUTED, SIZE, WIDTH, Axis, Drawing, Picture, escaped, name, number

ROWS = 40
"""Rows that one figure has room for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One interval with its name."""

    label: str
    low: float | None
    value: float
    high: float | None
    title: str
    """Its name and its numbers."""
    colour: str = COLOURS[0]
    hollow: bool = False
    models: str = ""
    bold: bool = False


def colour_of(verdict: str) -> tuple[str, bool]:
    """The colour of a difference, and whether it is hollow: not told from 0."""
    return {"A better": (COLOURS[0], False), "B better": (COLOURS[1], False)}.get(verdict, (MUTED, True))


def label_of(text: str, width: int = 23) -> str:
    """A name as a row shows it: of a long one its beginning and, where names differ more often, its end."""
    whole = name(text, 200)
    return whole if len(whole) <= width else f"{whole[: width // 3]}…{whole[-(width - 1 - width // 3) :]}"


def forest(
    what: str,
    title: str,
    alt: str,
    rows: Sequence[Row],
    label: str,
    *,
    zero: bool = False,
    margin: float | None = None,
    whole: bool = False,
) -> Picture:
    """The rows in their order, on one axis; with `zero` a line there, and a band of ± margin around it."""
    values = [v for row in rows for v in (row.low, row.value, row.high) if v is not None]
    if margin is not None:
        values += [-margin, margin]
    axis = replace(Axis.around([*values, *([0.0] if zero else [])], label), whole=whole)
    longest = max((len(label_of(row.label)) for row in rows), default=1)
    left = min(168.0, 16 + 6.6 * longest)
    pitch = 19
    drawing = Drawing(axis, Axis(len(rows) - 0.5, -0.5, ticked=False), height=52 + pitch * len(rows), left=left, top=8)
    if margin is not None:
        drawing.bar(-margin, margin, -0.5, len(rows) - 0.5, LINE, f"within the margin, ±{margin:g}", opacity=0.55)
    if zero:
        drawing.upright(0.0)
    for y, row in enumerate(rows):
        low, high = (row.value if end is None else end for end in (row.low, row.high))
        at = number(float(drawing.py(y)) + 4)
        weight = ' font-weight="600"' if row.bold else ""
        about = f' data-m="{row.models}"' if row.models else ""
        drawing.parts.append(
            f'<text x="{number(left - 8)}" y="{at}" text-anchor="end" fill="{INK}"{weight}{about}>'
            f"{escaped(label_of(row.label))}<title>{escaped(row.title)}</title></text>"
        )
        drawing.interval((low, row.value, high), y, row.colour, row.title, row.models, hollow=row.hollow)
    return drawing.done(what, title, alt)


def verdict_picture(row: Row, label: str, ends: tuple[str, str], margin: float | None, alt: str) -> Picture:
    """One difference, large: its interval against 0 and the margin, and which way is better.

    Args:
        row: the difference.
        label: of the axis.
        ends: what it means to lie left and right of 0.
        margin: of equivalence, if there is one.
        alt: what it shows, in words.
    """
    values = [v for v in (row.low, row.value, row.high, 0.0) if v is not None]
    if margin is not None:
        values += [-margin, margin]
    reach = max(map(abs, values)) or 0.5
    # 0 in sight with room on both sides, but not more empty space than that
    low, high = min(min(values), -0.3 * reach), max(max(values), 0.3 * reach)
    drawing = Drawing(
        Axis.around([low, high], label, room=0.08), Axis(0, 1, ticked=False), height=120, left=26, top=24, right=26
    )
    if margin is not None:
        drawing.bar(-margin, margin, 0, 1, LINE, f"within the margin, ±{margin:g}", opacity=0.55)
    drawing.upright(0.0, dash="")
    at = float(drawing.px(0.0))
    for words, px, anchor in ((f"← {ends[0]}", at - 8, "end"), (f"{ends[1]} →", at + 8, "start")):
        room = at - 8 if anchor == "end" else WIDTH - at - 8
        if 6.2 * len(words) > room:
            px, anchor = (4, "start") if anchor == "end" else (WIDTH - 4, "end")
        drawing.text(px, 15, words, anchor, MUTED, SIZE)
    left, right = (row.value if end is None else end for end in (row.low, row.high))
    drawing.interval((left, row.value, right), 0.5, row.colour, row.title, hollow=row.hollow, size=1.9)
    return drawing.done("verdict", "The difference and its interval", alt)
