"""HTML: a fragment for notebooks, and the page of a result.

The templates escape by default; the only markup that enters unescaped is our own style, script and figures. A page is
one file, loads nothing, and its content security policy allows no script but ours, which finds its numbers in the page.
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
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .. import extras
from .._version import __version__
from ..data.notes import texts
from ..io.atomic import write_text
from ..results.rows import Analysis, ByQuestion, Comparison, Difference, Estimate, Flip
from . import canvas, figures, fmt, summary
from .canvas import Picture
from .columns import Column, Section, Words
from .sentences import count_line, methods, sentence, trade_offs, verdict_parts

_TEMPLATES = Path(__file__).parent / "templates"
_ASSETS = Path(__file__).parent / "assets"


def fragment(table: summary.Result) -> str:
    """Return a result as an HTML fragment (pictures, tables) for a notebook, without scripts."""
    short = clipped(table) if isinstance(table, (Analysis, Comparison)) else table
    pictures = figures.opening(short)[:3]
    return (
        environment()
        .get_template("fragment.html")
        .render(summary=summary.summarise(short, brief=bool(table.whole)), pictures=pictures)
    )


def clipped(table: Analysis | Comparison) -> Analysis | Comparison:
    """Return the result with names (task, metric, scorer, model, cluster) cut to 60 characters, for a page.

    JSON and CSV keep the whole names.
    """

    def clip(row: Any) -> Any:
        names = ("task", "metric", "scorer", "model", "model_a", "model_b", "cluster")
        have = {name: getattr(row, name, None) for name in names}
        return replace(row, **{name: fmt.shorten(text, 60) for name, text in have.items() if text})

    if isinstance(table, Analysis):
        return replace(table, estimates=tuple(map(clip, table.estimates)))
    return replace(table, comparisons=tuple(map(clip, table.comparisons)), questions=tuple(map(clip, table.questions)))


def render(template: str, *, title: str, beside: Path | None = None, **values: Any) -> str:
    """Fill one of our HTML templates, or one in the folder `beside`, and return the page."""
    made = environment(beside).get_template(template)
    return made.render(title=shown(title, 200), version=__version__, **_assets(beside), **values)


@cache
def environment(beside: Path | None = None) -> Environment:
    """Return a Jinja environment with our templates and those in the folder `beside`, which escapes all text."""
    made = Environment(
        loader=FileSystemLoader([_TEMPLATES, *([] if beside is None else [beside])]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"shown": shown, "counted": summary.counted, "svg": _svg}
    made.filters["score"] = lambda value, flip: fmt.shown(flip, value, mean=True, digits=fmt.digits_of_flip(flip))
    made.globals |= {"explained": explained, "tip": tip}
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def explained(column: Column, words: Words = str) -> str:
    """Return a column's tooltip: its meaning in this table, then the glossary's definition."""
    return "\n".join(filter(None, (words(column.hint), extras.tooltip(column.heading))))


def tip(section: Section, row: int, column: Column) -> str:
    """Return a cell's tooltip, which says its number in words. "" for most cells."""
    return extras.tooltip(column.heading, section.of[row]) if section.of and len(section.rows) <= TOLD_ROWS else ""


TOLD_ROWS = 50
"""The most rows of a table whose cells have tooltips. Each of its columns has one in any case."""


def _svg(picture: Picture, theme: canvas.Theme = "page") -> Markup:
    """Return a picture as SVG markup that templates do not escape again."""
    return Markup(canvas.svg(picture, theme))


@cache
def _assets(beside: Path | None) -> dict[str, str]:
    """Return {"style", "script", "script_hash"} of our files and scripts in `beside`, the hash for a page's policy."""
    style = (_ASSETS / "style.css").read_text(encoding="utf-8")
    places = [_ASSETS / "tables.js", _ASSETS / "figures.js", *([] if beside is None else sorted(beside.glob("*.js")))]
    script = "".join(place.read_text(encoding="utf-8") for place in places)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"style": Markup(style), "script": Markup(script), "script_hash": f"sha256-{digest}"}


def shown(text: object, width: int = 160) -> str:
    """Return text from a log for a page: one line, cut to `width`, no control characters, right-to-left isolated.

    What is written right to left is isolated, so that the numbers beside it keep their place.
    """
    return _RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", fmt.shorten(str(text), width))


_R = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]"
_RIGHT_TO_LEFT = re.compile(rf"{_R}(?:[\w ./-]*{_R})?")


RUNS = 40


def foot(
    settings: Mapping[str, Any],
    rows: Sequence[Estimate | Difference],
    runs: Iterable[tuple[str, str]],
    command: str | None,
    family: str = "",
) -> dict[str, Any]:
    """Return the template's values for the foot of a page: date, command, runs, methods and settings."""
    named = list(dict.fromkeys((model, path) for model, path in runs if path))
    now = datetime.now().astimezone()
    return {
        "made": f"{now.day} {now:%B %Y}",
        "command": command,
        "runs": [(fmt.shorten(model, 60), fmt.shorten(path, 200)) for model, path in named[:RUNS]],
        "more_runs": max(0, len(named) - RUNS),
        "words": methods(rows, settings, family=family) if rows else "",
        "settings": settings,
    }


DETAILS = 24
"""The most rows that are shown in detail. If there are more, those with the smallest p are."""
FLIPS = 12
"""Questions that a detail lists."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One row from the inside."""

    key: str
    title: str
    pictures: list[Picture]
    flips: Section | None
    cards: Sequence[Flip]
    """The questions that flipped most, where the result has the answers to them."""
    heading: str
    """The heading above the flipped questions, as a table or as cards."""

    @property
    def folded(self) -> bool:
        """True if more questions flipped as much as the last one listed, so that the list is cut arbitrarily."""
        return self.heading != summary.FLIPPED


def page(
    table: Analysis | Comparison,
    *,
    command: str | None = None,
    questions: Sequence[ByQuestion] = (),
    words: Words = str,
) -> str:
    """Return a result as one self-contained HTML page: verdict, figures, slices, questions and tables.

    Args:
        table: what is shown.
        command: what was typed to make it.
        questions: of a comparison, its rows question by question (`by_question`), for clusters and questions.
        words: rewrites each sentence, which names parameters in backticks.
    """
    whole, table = table, clipped(table)
    shown_whole = summary.summarise(table)
    rows: Sequence[Estimate | Difference] = table.rows
    details = _details(whole, questions)
    flipped = any(detail.flips or detail.cards for detail in details)
    lost = summary.lost_to_adjustment(table) if isinstance(table, Comparison) else []
    return render(
        "result.html",
        title=_title(table),
        headline=_headline(table) if isinstance(table, Comparison) else {},
        changes=summary.changes_of(table) if isinstance(table, Comparison) else (),
        pictures=figures.opening(table),
        legend=shown_whole.legend,
        heading="Differences" if isinstance(table, Comparison) else "Means",
        sentences=[*(sentence(row) for row in rows if row.se is not None), *lost],
        details=details,
        words=words,
        sections=[section for section in shown_whole.sections if not (flipped and section.title == summary.FLIPPED)],
        data=whole.to_dict(),
        foot=foot(table.settings, rows, [pair for row in rows for pair in _runs(row)], command),
        notes=texts(table.notes),
    )


def _runs(row: Estimate | Difference) -> list[tuple[str, str]]:
    if isinstance(row, Estimate):
        return [(row.model, row.run)]
    return [(row.model_a, row.run_a), (row.model_b, row.run_b)]


def _title(table: Analysis | Comparison) -> str:
    if isinstance(table, Analysis):
        names = list(dict.fromkeys(row.model for row in table.estimates))
        return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}: means with their noise"
    pairs = list(dict.fromkeys(fmt.names_of(row) for row in table.comparisons))
    if len(pairs) == 1:
        return f"{fmt.shorten(pairs[0][0], 80)} against {fmt.shorten(pairs[0][1], 80)}"
    return f"{len(pairs)} comparisons"


_KINDS = {"A better": "is-a", "B better": "is-b"}
"""Verdict → the class of its colour. `is-none` is drawn hollow, so that the shape says it, too."""


def _headline(table: Comparison) -> dict[str, str]:
    """Return the template's values for the verdict at the top of a comparison's page. {} without a difference."""
    rows = [row for row in table.comparisons if row.diff is not None]
    if not rows:
        return {}
    kinds = {_KINDS[row.verdict] for row in rows if row.verdict in _KINDS}
    kind = kinds.pop() if len(kinds) == 1 else "is-none"
    if len(rows) == 1:
        verdict, evidence = verdict_parts(rows[0])
        return {"kind": kind, "said": f"{fmt.plain(verdict)}.", "how": fmt.plain(evidence)}
    whole = [row for row in rows if row.is_overall]
    if len(whole) == 1:
        verdict, evidence = verdict_parts(whole[0])
        said = f"{fmt.plain(verdict)}{fmt.on_task(whole[0])}."
        kind = _KINDS.get(whole[0].verdict, "is-none")
        return {"kind": kind, "said": said, "how": fmt.plain(f"{evidence} {count_line(table)}")}
    how = " ".join([*trade_offs(table), f"{fmt.level_of(rows)} intervals."])
    return {"kind": kind, "said": count_line(table), "how": how}


def _details(table: Analysis | Comparison, questions: Sequence[ByQuestion]) -> list[Detail]:
    """Return a `Detail` for each row with slices or questions. If many, for those with the smallest p."""
    rows: Sequence[Any] = table.rows
    by = {_key(answers): answers for answers in questions if len(answers.keys)}
    candidates = []
    for i, row in enumerate(rows):
        slices = [sliced for sliced in table.slices if _key(sliced) == _key(row)]
        if slices or _key(row) in by:
            candidates.append((getattr(row, "p_value", None), i, row, slices))
    candidates.sort(key=lambda candidate: 1.0 if candidate[0] is None else candidate[0])
    shown = table.questions if isinstance(table, Comparison) else ()
    out = []
    for _, i, row, slices in sorted(candidates[:DETAILS], key=lambda candidate: candidate[1]):
        key, answers = f"row-{i}", by.get(_key(row))
        pictures = _row_pictures(key, row, slices, answers, table.settings.get("margin"))
        cards = [flip for flip in shown if (flip.answers_a or flip.answers_b) and _key(flip) == _key(row)]
        flips = [answers.flip(k) for k in answers.most_flipped(FLIPS)] if answers is not None and not cards else []
        heading = _flipped(len(flips or cards), answers)
        listed = summary.flip_table(flips, heading) if flips else None
        out.append(Detail(key, _detail_title(row, table), pictures, listed, cards, heading))
    return out


def _flipped(shown: int, answers: ByQuestion | None) -> str:
    """Return the heading above `shown` flipped questions, with how many flipped as much if those are more."""
    last = answers.most_flipped(shown)[-1:] if answers is not None else []
    total = sum(answers.flipped_as_much(k) for k in last) if answers is not None else 0
    more = f" ({shown} of {total:,} that flipped at least as much as the last)"
    return f"{summary.FLIPPED}{more if total > shown else ''}"


def _key(row: Any) -> tuple[str, ...]:
    fields = ("task", "metric", "scorer", "model", "model_a", "model_b", "run", "run_a", "run_b")
    return tuple(str(getattr(row, name, "")) for name in fields)


def _detail_title(row: Any, table: Analysis | Comparison) -> str:
    """Return the heading of a row's details: task and metric, with models if there are several."""
    several = len(set(map(fmt.models_of, table.rows))) > 1
    return f"{fmt.models_of(row)}, {fmt.what_of(row)}" if several else fmt.what_of(row)


def _row_pictures(
    key: str, row: Any, slices: Sequence[Any], answers: ByQuestion | None, margin: float | None
) -> list[Picture]:
    """Return a row's pictures of slices, clusters and questions, for those that are known."""
    pictures = [figures.slices(f"slices-{key}", slices, row, margin)]
    if answers is not None:
        # where each slice is one cluster, its figure shows them
        if answers.clusters is not None and not (slices and all(sliced.n_clusters == 1 for sliced in slices)):
            pictures.append(figures.clusters(f"clusters-{key}", answers.diff, answers.clusters, row))
        pictures.append(figures.histogram(f"questions-{key}", answers.diff, row))
    return [picture for picture in pictures if picture is not None]


def write_page(table: Analysis | Comparison, place: Path, command: str | None = None, words: Words = str) -> list[Path]:
    """Write a result's HTML page to `place`, and return the list of files written."""
    questions = getattr(table, "by_question", ())
    write_text(place, page(table, command=command, questions=questions, words=words))
    return [place]
