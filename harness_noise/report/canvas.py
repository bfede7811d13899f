"""What all figures share: their style, and SVG that carries no font and no script."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from .columns import metric_name, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..results.arena import BenchmarkResult


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
_INK, _MUTED, _LINE, *_COLOURS = list(_THEME)[:8]
_PAPER = "#fefefe"
_MARKS = ("o", "s", "^", "D", "v")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_MANY = 1500
"""More points than this are drawn as pixels, not one by one."""
_ROWS = 40
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "harness-noise",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "text.color": _INK,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


def available() -> bool:
    """Whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def svg(picture: Picture, *, themed: bool = False) -> str:
    """The figure as one `<svg>` element; `themed`, for a page, takes its colours from the style sheet.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("figures are drawn by matplotlib: pip install 'harness-noise[plots]'") from None
    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = Figure(figsize=(6.4, picture.height), layout="constrained")
        picture.draw(figure.subplots())
        return _markup(figure, picture, themed)


def _markup(figure: Figure, picture: Picture, themed: bool) -> str:
    from markupsafe import escape

    out = BytesIO()
    figure.savefig(out, format="svg", dpi=130, metadata={"Date": None, "Creator": None})
    text = out.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, count=1, flags=re.DOTALL)
    if themed:
        text = re.sub("|".join(_THEME), lambda match: _THEME[match[0]], text)
        head = r"<svg \1 xmlns:xlink='http://www.w3.org/1999/xlink'>"
        text = re.sub(r"<svg[^>]*?(viewBox=\"[^\"]*\")[^>]*>", head, text, count=1)
        # several figures share a page, so each has its own ids
        text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{picture.name}-", text)
    label = f'role="img" aria-label="{escape(f"{picture.title}. {picture.alt}")}"'
    text = text.replace("<svg ", f"<svg {label} ", 1)
    if not themed:
        head, rest = text.split(">", 1)
        text = (
            f'<?xml version="1.0" encoding="utf-8"?>\n{head}>\n<title>{escape(picture.title)}</title>'
            f"<desc>{escape(picture.alt)}</desc>{rest}"
        )
    return text


def _measure(board: BenchmarkResult) -> str:
    return _name(metric_name(board.benchmark.metric, board.benchmark.scorer), 40)


def _scatter(axes: Axes, x: Any, y: Any, i: int, label: str, **more: Any) -> None:
    axes.scatter(
        x, y, s=16, marker=_MARKS[i], label=label, facecolor=_COLOURS[i], edgecolor="none",
        **{"alpha": 0.75, "rasterized": len(x) > _MANY} | more,
    )  # fmt: skip


def _legend(axes: Axes, columns: int, *, reverse: bool = False) -> None:
    """The legend below the axes, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    step = -1 if reverse else 1
    axes.get_figure(root=True).legend(handles[::step], labels[::step], loc="outside lower center", ncols=columns)  # type: ignore[union-attr]


def _close(board: BenchmarkResult) -> Any:
    c = board.pairs.columns
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((np.abs(c["diff"]) < 5 * c["se_total"]) & (c["n_questions"] > 1))


@dataclass(frozen=True, slots=True)
class Picture:
    """One figure: its file's name, its title, and what it shows in words."""

    name: str
    title: str
    alt: str
    draw: Callable[[Axes], None]
    height: float = 4.0


def _name(text: str, width: int = 34) -> str:
    """A model's name in a figure: short, without characters that an SVG file may not hold."""
    return "".join(c if c.isprintable() else "�" for c in shorten(text, width))
