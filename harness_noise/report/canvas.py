"""SVG drawn by hand: axes, marks that name themselves, and stacked intervals. Nothing is loaded.

Every mark carries a `<title>`, so that a pointer shows its numbers without any script; `data-m` says which models it is
about, which lets a page mark them in all its figures. Colours are told apart by the colour-blind (Okabe–Ito hues,
darkened for contrast) and doubled by the shape of the mark or the dash of the line.
"""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal
from unicodedata import east_asian_width

import numpy as np

from ..arrays import FloatArray, IntArray, PixelArray
from ..errors import check_computed
from . import fmt

_THEME = {
    "#1b1f24": "var(--ink)",
    "#565d66": "var(--muted)",
    "#d5d9de": "var(--line)",
    "#0a5c9e": "var(--fig1)",
    "#b3500d": "var(--fig2)",
    "#19704f": "var(--fig3)",
    "#8a3d78": "var(--fig4)",
    "#6d5a00": "var(--fig5)",
    "#fefefe": "var(--paper)",
}
INK, MUTED, LINE, *COLOURS = list(_THEME)[:8]
PAPER = "#fefefe"
_NOTEBOOK = {
    INK: "currentColor",
    MUTED: "#808791",
    LINE: "#80879155",
    COLOURS[0]: "#2f7fc1",
    COLOURS[1]: "#c46a1b",
    PAPER: "none",
}
"""Colours that show on light and on dark backgrounds, for notebooks, which allow no style sheet."""
DASHES = ("", "6 3", "6 3 1.5 3", "1.5 3", "6 2 1.5 2 1.5 2")
_SHAPES = (
    "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0Z",
    "M-3-3H3V3H-3Z",
    "M0-3.8L3.7 2.8H-3.7Z",
    "M0-4L4 0L0 4L-4 0Z",
    "M0 3.8L3.7-2.8H-3.7Z",
)
WIDTH = 420
"""Units of a picture's width. A unit is about a pixel of a narrow page."""
SIZE = 12
"""Size of the letters, in the same units."""
_HALF_LETTER = 0.3 * SIZE
"""Half the width of a digit, about: by as much per letter a tick's text stays within the picture."""
Theme = Literal["page", "file", "notebook"]


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The places of a figure's pairs that are not drawn one by one."""

    rows: IntArray
    """The numbers of the pairs on the board."""
    x: FloatArray
    """In the picture's units."""
    y: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """One figure: its file's name, its title, what it shows in words, and its markup."""

    name: str
    title: str
    alt: str
    body: str
    height: float
    points: Points | None = None


def svg(picture: Picture, theme: Theme = "file") -> str:
    """Return a picture as one `<svg>` for a page (colours of its style sheet), a notebook, or as a file (whole XML)."""
    size = f'viewBox="0 0 {WIDTH} {number(picture.height)}"'
    said = f'role="img" aria-label="{escaped(f"{picture.title}. {picture.alt}")}"'
    font = f'font-family="system-ui, sans-serif" font-size="{SIZE}"'
    body = picture.body
    check_computed("theme", theme, "page", "file", "notebook")
    if theme == "page":
        # several figures share a page, so each has its own ids
        body = re.sub(r'(\bid="|href="#)', rf"\g<1>{picture.name}-", _coloured(body, _THEME))
        return f'<svg {size} {said} data-figure="{picture.name}">{body}</svg>'
    if theme == "notebook":
        style = f'style="max-width: {WIDTH}px; display: block"'
        return f"<svg {size} {said} {font} {style}>{_coloured(body, _NOTEBOOK)}</svg>"
    words = f"<title>{escaped(picture.title)}</title><desc>{escaped(picture.alt)}</desc>"
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" {size} {said} {font} '
        f'width="{WIDTH}" height="{number(picture.height)}">{words}{body}</svg>\n'
    )


def _coloured(body: str, colours: dict[str, str]) -> str:
    return re.sub(r'(?<==")#[0-9a-f]{6}(?=")', lambda match: colours.get(match[0], match[0]), body)


def escaped(text: str) -> str:
    """Escape text for SVG markup, control characters replaced by "�"."""
    return escape("".join(c if c.isprintable() else "�" for c in text))


def element(tag: str, *inner: str, **attributes: str | float) -> str:
    """Return one SVG element. Attribute values are not escaped, and "" ones left out. `title` is an escaped child.

    Args:
        tag: its name.
        *inner: what it holds, as markup.
        **attributes: with _ in place of -; `title` is what a pointer shows of it.
    """
    title = str(attributes.pop("title", ""))
    words = "".join(
        f' {key.replace("_", "-")}="{number(value) if isinstance(value, float) else value}"'
        for key, value in attributes.items()
        if value != ""
    )
    held = "".join([*([f"<title>{escaped(title)}</title>"] if title else []), *inner])
    return f"<{tag}{words}>{held}</{tag}>" if held else f"<{tag}{words}/>"


def name(text: str, width: int = 34) -> str:
    """Return a model's name shortened to `width` characters in one line, for a figure."""
    return fmt.shorten(text, width)


def number(value: float) -> str:
    """Format an SVG coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`. On a logarithmic axis both are above 0."""

    low: float
    high: float
    caption: str = ""
    log: bool = False
    ticked: bool = True
    whole: bool = False
    """Counts: no tick between two numbers."""
    times: float = 1.0
    """Factor from drawn values to the numbers at the ticks, 100 for percentages and points."""
    unit: str = ""
    """Behind each of them."""
    between: tuple[float, float] = (-math.inf, math.inf)
    """Values that exist: no tick is outside of them."""

    @classmethod
    def around(cls, values: Iterable[float], caption: str = "", **more: Any) -> Axis:
        """Return an axis that spans the finite values with 5% room at both ends."""
        finite = [value for value in values if math.isfinite(value)]
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        room = 0.05 * (high - low) if high > low else 0.5 * abs(high) or 0.5
        return cls(low - room, high + room, caption, **more)

    def share(self, values: Any) -> FloatArray:
        """Return where values lie along the axis (in logarithms if `log`), 0 at its low end and 1 at its high end."""
        x: FloatArray = np.asarray(values, dtype=np.float64)
        if self.log:
            return np.asarray((np.log(x) - math.log(self.low)) / (math.log(self.high) - math.log(self.low)))
        return np.asarray((x - self.low) / (self.high - self.low))

    def ticks(self, most: int = 6) -> list[float]:
        """Return at most about `most` round numbers on the axis and in `between`. Of a `log` axis 1, 2, 5 × 10^k."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1.0,) if len(powers) > 4 else (1.0, 2.0, 5.0)
            marks = [digit * 10.0**power for power in powers for digit in steps]
            return [value for value in marks if self.low * 0.999 <= value <= self.high * 1.001]
        rough = (self.high - self.low) / most
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough * 0.999)
        step = max(step, 1.0) if self.whole else step
        low, high = max(self.low, self.between[0]), min(self.high, self.between[1])
        first = math.ceil(low / step - 1e-9)
        return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]

    def texts(self, most: int = 6) -> list[tuple[float, str]]:
        """Return (value, text with unit) of each tick, all with the same decimals unless the axis is `log`."""
        if self.times != 1:
            low, high, first, last = (self.times * end for end in (self.low, self.high, *self.between))
            shown = replace(self, low=low, high=high, between=(first, last), times=1.0)
            return [(tick / self.times, text) for tick, text in shown.texts(most)]
        ticks = self.ticks(most)
        texts = [f"{tick:.6g}" for tick in ticks]
        if not self.log and not any("e" in text for text in texts):
            digits = max((len(text.partition(".")[2]) for text in texts), default=0)
            texts = [f"{tick:.{digits}f}" if abs(tick) > 1e-12 else "0" for tick in ticks]
        return [(tick, text.replace("-", "−") + self.unit) for tick, text in zip(ticks, texts, strict=True)]


@dataclass(slots=True)
class Drawing:
    """A picture in the making, drawn part by part on one pair of axes."""

    x: Axis
    y: Axis
    height: float = 300
    left: float = 46
    right: float = 10
    top: float = 10
    bottom: float = 40
    parts: list[str] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)
    """(drawing of the mark, its words)."""
    shapes: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        numbers = [text for _, text in self.y.texts(5)] if self.y.ticked else []
        self.left = max(self.left, 24 + 7 * max(map(len, numbers), default=0))  # next to the caption of the axis

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height in pixels of the plot area inside the axes."""
        return self.left, self.top, WIDTH - self.left - self.right, self.height - self.top - self.bottom

    def px(self, values: Any) -> FloatArray:
        left, _, width, _ = self.box
        return left + width * self.x.share(values)

    def py(self, values: Any) -> FloatArray:
        _, top, _, height = self.box
        return top + height * (1 - self.y.share(values))

    def points(
        self, x: Any, y: Any, series: int, caption: str, titles: Sequence[str] = (), models: Sequence[str] = ()
    ) -> None:
        """Draw a marker of one series at each finite (x, y), each with a tooltip (required). `models` may be empty."""
        shape = series % len(COLOURS)
        self.shapes.add(shape)
        at = zip(self.px(x).tolist(), self.py(y).tolist(), titles, models or [""] * len(titles), strict=True)
        marks = (element("use", title=title, href=f"#s{shape}", x=px, y=py, data_m=m) for px, py, title, m in at)
        self.parts.append(element("g", *marks, fill=COLOURS[shape], fill_opacity=".75"))
        if caption:
            self.legend.append((element("path", d=_SHAPES[shape], fill=COLOURS[shape]), caption))

    def cloud(self, x: Any, y: Any) -> None:
        """Draw many points as one blue image, more opaque where more points lie."""
        left, top, width, height = self.box
        columns, rows = int(width * 1.5), int(height * 1.5)
        across, down = (self.px(x) - left) / width * columns, (self.py(y) - top) / height * rows
        counts, _, _ = np.histogram2d(down, across, bins=(rows, columns), range=[[0, rows], [0, columns]])
        alpha = np.where(counts > 0, 70 + 185 * np.minimum(1, np.log1p(counts) / math.log(12)), 0)
        blue = np.full((rows, columns, 3), (70, 130, 180))
        self.image(np.dstack([blue, alpha]).astype(np.uint8), "")

    def image(self, pixels: PixelArray, style: str) -> None:
        """Draw an RGBA pixel array that fills the area within the axes."""
        left, top, width, height = self.box
        place: dict[str, str | float] = {"x": left, "y": top, "width": width, "height": height, "href": png(pixels)}
        self.parts.append(element("image", **place, preserveAspectRatio="none", style=style))

    def line(
        self, x: Any, y: Any, colour: str = INK, *, dash: str = "", width: float = 1.2, caption: str = "", **about: str
    ) -> None:
        """Draw a line through the finite points (x, y). `about` sets its tooltip and its models."""
        path = self._path(x, y)
        if not path:
            return
        style = {"fill": "none", "stroke": colour, "stroke_width": f"{width:g}", "stroke_dasharray": dash}
        self.parts.append(element("path", d=path, **style, **about))
        if caption:
            self.legend.append((element("path", d="M-9 0H9", **style), caption))

    def curve(self, x: Any, y: Any, series: int, *, caption: str = "", **about: str) -> None:
        """Draw a line in the colour and dash pattern of series number `series`."""
        i = series % len(COLOURS)
        self.line(x, y, COLOURS[i], dash=DASHES[i], width=1.6, caption=caption, **about)

    def _path(self, x: Any, y: Any) -> str:
        """Return SVG path data for a line through the finite points, "" if there are none."""
        at = zip(self.px(x).tolist(), self.py(y).tolist(), strict=True)
        path = "L".join(f"{number(px)} {number(py)}" for px, py in at if math.isfinite(px + py))
        return f"M{path}" if path else ""

    def area(self, x: Any, low: Any, high: Any, colour: str = LINE, opacity: float = 0.45) -> None:
        """Fill the area between the curves `low` and `high` over x."""
        path = self._path([*x, *x[::-1]], [*high, *low[::-1]])
        self.parts.append(element("path", d=f"{path}Z", fill=colour, fill_opacity=f"{opacity:g}"))

    def bar(
        self, x: tuple[float, float], y: tuple[float, float], colour: str, *, opacity: float = 1, **about: str
    ) -> None:
        """Draw a filled rectangle with these (from, to) values on the x and y axes."""
        (left, right), (top, bottom) = sorted(self.px(x).tolist()), sorted(self.py(y).tolist())
        place: dict[str, str | float] = {"x": left, "y": top, "width": right - left, "height": max(bottom - top, 0.5)}
        shade = "" if opacity == 1 else f"{opacity:g}"
        self.parts.append(element("rect", **place, fill=colour, fill_opacity=shade, **about))

    def interval(
        self, values: tuple[float, float, float], y: float, colour: str, *, hollow: bool, **about: str
    ) -> None:
        """Draw an interval (finite low, estimate, high, not cut) at height y. Hollow: it includes the reference."""
        low, middle, high = self.px(values).tolist()
        at = float(self.py(y))
        line = f"M{number(low)} {number(at)}H{number(high)}"
        ring = {"fill": PAPER if hollow else colour, "stroke": colour, "stroke_width": "1.6"}
        drawn = (
            element("path", d=line, stroke=colour, stroke_width="2", stroke_linecap="round"),
            element("circle", cx=middle, cy=at, r="3.6", **ring),
        )
        self.parts.append(element("g", *drawn, **about, **{"class": "iv"}))

    def zero(self, margin: float | None) -> None:
        """Draw a vertical line at x = 0, and behind it a band of ± margin unless that is None."""
        ends = (self.y.low, self.y.high)
        if margin is not None:
            self.bar((-margin, margin), ends, LINE, opacity=0.55, title=f"within the margin, ±{margin:g}")
        self.line([0.0, 0.0], ends, dash="4 3", width=1)

    def text(self, px: float, py: float, words: str, **style: str) -> None:
        """Write text at a point (px, py) of the picture in pixels, not in values of the axes."""
        self.parts.append(element("text", escaped(words), x=px, y=py, **style))

    def done(self, picture: str, title: str, alt: str, points: Points | None = None) -> Picture:
        """Return the finished drawing as a `Picture`, not yet text: axes, everything drawn so far, and the legend."""
        shown = [element("path", id=f"s{i}", d=_SHAPES[i]) for i in sorted(self.shapes)]
        shapes = element("defs", *shown) if shown else ""
        below, row, at = [], 0, 18.0
        for mark, words in self.legend:  # as many in a row as fit
            wide = 30 + 6.4 * len(words)
            if at > 18 and at + wide > WIDTH:
                row, at = row + 1, 18.0
            text = element("text", escaped(words), x=14, y=4, fill=INK)
            place = f"translate({number(at)} {number(self.height + 8 + 18 * row)})"
            below.append(element("g", mark, text, transform=place))
            at += wide
        tall = self.height + (18 * (1 + row) + 6 if below else 0)
        body = "".join([shapes, self._axes(), *self.parts, *below])
        return Picture(picture, title, alt, body, tall, points)

    def _axes(self) -> str:
        left, top, width, height = self.box
        grid, out = [], []
        for value, text in self.x.texts() if self.x.ticked else ():
            px = float(self.px(value))
            grid.append(f"M{number(px)} {number(top)}v{number(height)}")
            inside = min(px, WIDTH - _HALF_LETTER * len(text))
            out.append(element("text", text, x=inside, y=top + height + 15, text_anchor="middle", fill=MUTED))
        for value, text in self.y.texts(5) if self.y.ticked else ():
            py = float(self.py(value))
            grid.append(f"M{number(left)} {number(py)}h{number(width)}")
            out.append(element("text", text, x=left - 5, y=py + 4, text_anchor="end", fill=MUTED))
        if grid:
            out.insert(0, element("path", d="".join(grid), stroke=LINE, stroke_width=".7"))
        turned = f"translate(11 {number(top + height / 2)}) rotate(-90)"
        named = {"text_anchor": "middle", "fill": INK}
        if self.x.caption:
            out.append(element("text", escaped(self.x.caption), x=left + width / 2, y=self.height - 6.0, **named))
        if self.y.caption:
            out.append(element("text", escaped(self.y.caption), transform=turned, **named))
        return "".join(out)


def png(pixels: PixelArray) -> str:
    """Encode RGBA pixels (height, width, 4) as PNG, and return a `data:` URL of it."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 4 * width), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
    return "data:image/png;base64," + base64.b64encode(data + chunk(b"IEND", b"")).decode()


ROWS = 40
"""Rows that one figure has room for."""


@dataclass(frozen=True, slots=True)
class Row:
    """One interval with its name."""

    name: str
    low: float | None
    value: float
    high: float | None
    title: str
    """Its name and its numbers."""
    colour: str = COLOURS[0]
    hollow: bool = False
    models: str = ""
    bold: bool = False


def short_name(text: str, width: int = 23) -> str:
    """Shorten a name in its middle to about `width` letters, as names mostly differ at their ends."""
    whole = name(text, 200)
    cuts = (whole if len(whole) <= n else f"{whole[: n // 3]}…{whole[n // 3 + 1 - n :]}" for n in range(width, 3, -1))
    return next((cut for cut in cuts if _length(cut) <= 7 * width), "…")


def _length(text: str) -> float:
    """Estimate the width of a text in pixels from its kinds of letters. East Asian letters are wide."""
    wide = sum(c in "mwMW…<>" or east_asian_width(c) in "WF" for c in text)
    narrow = sum(c in "fijlrtI-.,:;|()[]/ " for c in text)
    return 7.3 * len(text) + 4.7 * wide - 2.7 * narrow + 1.1 * sum(map(str.isupper, text))


def name_width(names: Iterable[str]) -> float:
    """Return the pixels to leave for these names to the left of a figure's axes."""
    return min(168.0, 16 + max((_length(short_name(each)) for each in names), default=7.3))


def axis_of(values: Iterable[float], caption: str, scale: fmt.Scale, *, mean: bool) -> Axis:
    """Return an axis that fits means or differences, with its numbers in % or points for 0/1 scores."""
    more: dict[str, Any] = {"times": scale.times}
    if scale is fmt.PERCENT and mean:
        more["unit"] = scale.level
    return Axis.around(values, caption if mean or scale is not fmt.PERCENT else f"{caption}, points", **more)


def forest(
    what: str,
    title: str,
    alt: str,
    rows: Sequence[Row],
    caption: str,
    *,
    sides: tuple[str, str] | None = None,
    margin: float | None = None,
    scale: fmt.Scale | None = None,
) -> Picture:
    """Return a `Picture` of rows as a forest plot: one interval below the other on a common axis.

    Differences have `sides`, what it means to lie below 0 and above: there is a line, and a band of ± margin around it.
    """
    values = [v for row in rows for v in (row.low, row.value, row.high) if v is not None]
    values += [] if margin is None else [-margin, margin]
    if sides:  # 0 in sight, with room on both sides
        reach = 0.15 * max(map(abs, values)) or 0.5
        values += [-reach, reach]
    left, top = name_width(row.name for row in rows), 24 if sides else 8
    down = Axis(len(rows) - 0.5, -0.5, ticked=False)
    across = axis_of(values, caption, scale or fmt.Scale(), mean=not sides)
    drawing = Drawing(across, down, height=44 + top + 19 * len(rows), left=left, top=top)
    if sides:
        drawing.zero(margin)
        drawing.text(4, 15, f"← {sides[0]}", fill=MUTED)
        drawing.text(WIDTH - 4, 15, f"{sides[1]} →", text_anchor="end", fill=MUTED)
    for y, row in enumerate(rows):
        low, high = (row.value if end is None else end for end in (row.low, row.high))
        style = {"text_anchor": "end", "fill": INK, "font_weight": "600" if row.bold else "", "data_m": row.models}
        drawing.text(left - 8, float(drawing.py(y)) + 4, short_name(row.name), **style, title=row.title)
        drawing.interval((low, row.value, high), y, row.colour, hollow=row.hollow, title=row.title, data_m=row.models)
    return drawing.done(what, title, alt)
