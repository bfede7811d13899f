"""HTML: a fragment for notebooks and self-contained pages with their provenance; everything from a log escaped.

The templates escape by default; the only markup that enters unescaped is our own style, script and
figures. A page loads nothing and its content security policy allows no script but ours.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..results.rows import Analysis, Comparison, Difference, Estimate
from ..settings import ESTIMATORS
from . import canvas, pair_figures
from .columns import number, shorten
from .summary import summarise

if TYPE_CHECKING:
    from jinja2 import Environment

    from .canvas import Picture
    from .summary import Result


_TEMPLATES = Path(__file__).parent / "templates"
_ASSETS = Path(__file__).parent / "assets"


def fragment(table: Result) -> str:
    """A picture and the tables of a result for a notebook: inline styles only, no script."""
    from markupsafe import Markup

    short = clipped(table) if isinstance(table, (Analysis, Comparison)) else table
    pictures = [Markup(canvas.svg(one, "notebook")) for one in _pictures(short)]
    return environment().get_template("fragment.html").render(summary=summarise(short), pictures=pictures)


def _pictures(table: Result) -> list[Picture]:
    """What a notebook shows above the tables."""
    if isinstance(table, (Analysis, Comparison)):
        return pair_figures.opening(table)[:3]
    from ..results.arena import Arena

    if not isinstance(table, Arena):
        return []
    from .figures import means

    return [one for board in table.boards[:3] if (one := means(board)) is not None]


def drawn(pictures: Sequence[Picture]) -> list[tuple[Picture, Any]]:
    """Each picture with its markup; `canvas` escapes every text in it."""
    from markupsafe import Markup

    return [(one, Markup(canvas.svg(one, "page"))) for one in pictures]


def clipped(table: Analysis | Comparison) -> Analysis | Comparison:
    """The table with names that fit a page; the whole names are in JSON and CSV."""

    def clip(item: Any) -> Any:
        names = ("task", "metric", "scorer", "model", "model_a", "model_b", "cluster")
        have = {name: getattr(item, name, None) for name in names}
        return replace(item, **{name: shorten(text, 60) for name, text in have.items() if text})

    if isinstance(table, Analysis):
        return replace(table, estimates=tuple(map(clip, table.estimates)))
    return replace(table, comparisons=tuple(map(clip, table.comparisons)), questions=tuple(map(clip, table.questions)))


def render(template: str, *, title: str, **values: Any) -> str:
    """A page from one of our templates."""
    style, script, script_hash = _assets()
    return (
        environment()
        .get_template(template)
        .render(
            title=shown(title, 200),
            style=style,
            script=script,
            script_hash=script_hash,
            version=__version__,
            **values,
        )
    )


@cache
def environment() -> Environment:
    """Our templates; autoescape is on for all of them."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = shown
    return made


@cache
def _assets() -> tuple[Any, Any, str]:
    """Our style and script, which alone need no escaping, and the hash that lets the script run."""
    from markupsafe import Markup

    style = (_ASSETS / "style.css").read_text(encoding="utf-8")
    script = "".join((_ASSETS / f"{name}.js").read_text(encoding="utf-8") for name in ("tables", "figures", "picker"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(style), Markup(script), f"sha256-{digest}"


def shown(text: object, width: int = 160) -> str:
    """A name or a text from a log as a page shows it: one line, not endless, no control characters.

    What is written right to left is isolated, so that the numbers beside it keep their place.
    """
    return _RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", shorten(str(text), width))


_R = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]"
_RIGHT_TO_LEFT = re.compile(rf"{_R}(?:[\w ./-]*{_R})?")


@dataclass(frozen=True, slots=True)
class Bar:
    """A confidence interval on a scale of 0 … 160."""

    low: float | None
    middle: float
    high: float | None
    zero: float | None
    kind: str
    open: bool
    """Drawn hollow: not separable from zero, said by shape as well as by colour."""


def bars(rows: Sequence[Estimate | Difference]) -> tuple[list[Bar | None], str]:
    """The interval of every row, drawn on one scale for each metric, and what the scales are."""
    scales = _scales(rows)
    return [_bar(item, scales) for item in rows], _scale_note(
        scales, any(isinstance(item, Difference) for item in rows)
    )


def _value(item: Estimate | Difference) -> float | None:
    return item.mean if isinstance(item, Estimate) else item.diff


def _scales(rows: Sequence[Estimate | Difference]) -> dict[tuple[str, str], tuple[float, float]]:
    """The range of each metric; differences always show 0."""
    scales: dict[tuple[str, str], tuple[float, float]] = {}
    for item in rows:
        values = [v for v in (_value(item), item.ci_low, item.ci_high) if v is not None]
        if isinstance(item, Difference):
            values.append(0.0)
        if values:
            key = (item.metric, item.scorer)
            low, high = scales.get(key, (values[0], values[0]))
            scales[key] = min(low, *values), max(high, *values)
    return scales


def _bar(item: Estimate | Difference, scales: dict[tuple[str, str], tuple[float, float]]) -> Bar | None:
    value = _value(item)
    if value is None:
        return None
    low, high = scales[item.metric, item.scorer]

    def at(x: float) -> float:
        return round(8 + 144 * (x - low) / (high - low), 2) if high > low else 80.0

    drawn = item.ci_low is not None and item.ci_high is not None
    mark = kind(item)
    return Bar(
        at(item.ci_low) if drawn and item.ci_low is not None else None,
        at(value),
        at(item.ci_high) if drawn and item.ci_high is not None else None,
        at(0.0) if isinstance(item, Difference) else None,
        mark,
        mark == "is-none" and isinstance(item, Difference),
    )


def kind(item: Estimate | Difference) -> str:
    """The class of a row's colour."""
    verdict = item.verdict if isinstance(item, Difference) else ""
    return {"A better": "is-a", "B better": "is-b"}.get(verdict, "is-none" if verdict else "is-a")


def _scale_note(scales: dict[tuple[str, str], tuple[float, float]], differences: bool) -> str:
    spans = [f"{metric} from {number(low, 3)} to {number(high, 3)}" for (metric, _), (low, high) in scales.items()]
    more = f" and {len(spans) - 4} more metrics" if len(spans) > 4 else ""
    text = f"The plots span {'; '.join(shorten(span, 80) for span in spans[:4])}{more}."
    return text + (" The dashed line is 0; a hollow mark is not separable from it." if differences else "")


RUNS = 40
_TESTS = {
    "t": "the t test",
    "sign": "the exact sign test",
    "permutation": "a permutation test",
    "bootstrap": "the bootstrap",
    "wild": "the wild cluster bootstrap",
}
_ADJUST = {
    "holm": "p-values are adjusted by Holm's method",
    "bh": "p-values are adjusted by Benjamini and Hochberg's method",
    "none": "p-values are not adjusted",
}


@dataclass(frozen=True, slots=True)
class Foot:
    """The provenance of a page."""

    made: str
    """The day."""
    command: str | None
    """The command line, if there was one."""
    runs: tuple[tuple[str, str], ...]
    """(model, where it was read from)."""
    more_runs: int
    words: str
    """A few sentences on how the numbers were computed."""
    settings: list[tuple[str, str]]
    """Every setting and its value."""


def foot(
    settings: Mapping[str, Any],
    items: Sequence[Estimate | Difference],
    runs: Iterable[tuple[str, str]],
    command: str | None,
) -> Foot:
    """The foot of a page of these rows and (model, path) runs."""
    found = list(dict.fromkeys((model, path) for model, path in runs if path))
    now = datetime.now().astimezone()
    return Foot(
        f"{now.day} {now:%B %Y}",
        command,
        tuple((shorten(model, 60), shorten(path, 200)) for model, path in found[:RUNS]),
        max(0, len(found) - RUNS),
        in_words(settings, items),
        settings_rows(settings),
    )


def in_words(settings: Mapping[str, Any], items: Sequence[Estimate | Difference]) -> str:
    """How the numbers of these rows were computed."""
    level = f"{100 * float(settings.get('level') or 0.95):g} %"
    compared = [item for item in items if isinstance(item, Difference)]
    bare = any(item.test in ("fisher", "reference") for item in compared)
    out = [_paired(compared)] if compared else []
    if settings.get("questions_are") == "fixed":
        out.append("The questions are all there is; the noise is that of the repeated answers alone.")
    elif settings.get("se") in ESTIMATORS and items and not bare:
        specs = list(dict.fromkeys(shorten(item.cluster, 60) for item in items if item.cluster))
        of = f"clustered by {', '.join(specs[:4])}" if specs else "independent of each other"
        out.append(f"Questions are a sample, {of}; standard errors are {ESTIMATORS[settings['se']]}.")
    method = settings.get("interval")
    text = f"Intervals have {level} coverage" + ("" if method in (None, "auto") else f" (method: {method})")
    if compared and not bare and settings.get("test") in _TESTS:
        text += f"; differences are tested by {_TESTS[settings['test']]}"
    if len(items) > 1 and compared and settings.get("adjust") in _ADJUST:
        text += f"; {_ADJUST[settings['adjust']]}"
    out.append(text + ".")
    if settings.get("margin") is not None:
        out.append(f"Two models are equivalent if they differ by less than {settings['margin']:g}.")
    if settings.get("repeats_are") == "runs":
        out.append("Repeats are runs that move all questions together.")
    missing = {"drop": "are left out and counted", "zero": "count as wrong"}.get(str(settings.get("missing")))
    if missing and not bare:
        out.append(f"Answers without a score {missing}.")
    return " ".join(out)


def _paired(items: Sequence[Difference]) -> str:
    """A sentence on what is compared."""
    if any("reference_noise" in item.diagnostics for item in items):
        return "Two numbers are compared; their noise is that of the benchmark's profile."
    if any(item.test == "fisher" for item in items):
        return "Two counts are compared; which question is which is not known."
    if any("unpaired" in item.diagnostics for item in items):
        return "Two samples of different questions are compared."
    return "Differences are paired: question by question, over the questions that both have answered."


def settings_rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every setting that has a value, as a page lists it."""
    return [
        (str(name), "yes" if value is True else "no" if value is False else str(value))
        for name, value in settings.items()
        if value is not None
    ]
