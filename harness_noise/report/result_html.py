"""The page of one analysis or comparison: first the answer, then where it comes from, then every number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..results.rows import Analysis, ByQuestion, Comparison, Difference, Estimate
from . import html, pair_figures
from .columns import Column, Section, level_of, names_of, number, plain, section, shorten, what_of
from .html import foot
from .sentences import count_line, sentence, verdict_parts
from .summary import FLIPPED, lost_to_adjustment, summarise

if TYPE_CHECKING:
    from .canvas import Picture

DETAILS = 24
"""Rows that are shown in detail; of more, those with the smallest p."""
FLIPS = 12
"""Questions that a detail lists."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One row from the inside."""

    key: str
    title: str
    sentence: str
    pictures: list[tuple[Picture, Any]]
    flips: Section | None
    cards: list[Card]
    models: tuple[str, str] | None = None
    """A and B, of a difference."""


@dataclass(frozen=True, slots=True)
class Card:
    """A question that flipped, with both sides' answers, each different one once."""

    question: str
    target: str | None
    cluster: str | None
    scores: tuple[str, str]
    answers: tuple[list[str], list[str]]


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in words."""

    kind: str
    said: str
    how: str


def page(
    table: Analysis | Comparison,
    title: str | None = None,
    *,
    command: str | None = None,
    questions: Sequence[ByQuestion] = (),
) -> str:
    """One self-contained page of a result: the verdict in words and drawn, slices, clusters and questions, tables.

    Args:
        table: what is shown.
        title: of the page.
        command: what was typed to make it.
        questions: of a comparison, its rows question by question (`analysis.by_question`), for clusters and questions.
    """
    whole, table = table, html.clipped(table)
    summary = summarise(table)
    rows: Sequence[Estimate | Difference] = table.rows
    compared = isinstance(table, Comparison)
    value = "A − B" if compared else "Mean"
    labels = [column.label for column in summary.sections[0].columns]
    plots, note = html.bars(rows)
    details = _details(whole, table, questions)
    runs = [pair for item in rows for pair in _runs(item)]
    return html.render(
        "result.html",
        title=title or _title(table),
        headline=_headline(table) if isinstance(table, Comparison) else None,
        pictures=html.drawn(pair_figures.opening(table)),
        summary=summary,
        heading="Differences" if compared else "Means",
        sentences=[
            *(sentence(item) for item in rows if item.se is not None),
            *(lost_to_adjustment(table) if isinstance(table, Comparison) else ()),
        ],
        details=details,
        sections=[
            one for one in summary.sections if not (one.title == FLIPPED and any(x.flips or x.cards for x in details))
        ],
        plots=plots,
        plot_head="plot",
        plot_after=labels.index(value, 1 if labels[0] == value else 0) + 2,
        plot_note=note,
        foot=foot(table.settings, rows, runs, command),
        notes=table.notes,
    )


def _runs(item: Estimate | Difference) -> list[tuple[str, str]]:
    if isinstance(item, Estimate):
        return [(item.model, item.run)]
    return [(item.model_a, item.run_a), (item.model_b, item.run_b)]


def _title(table: Analysis | Comparison) -> str:
    if isinstance(table, Analysis):
        names = list(dict.fromkeys(item.model for item in table.estimates))
        return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}: means with their noise"
    pairs = list(dict.fromkeys(names_of(item) for item in table.comparisons))
    if len(pairs) == 1:
        return f"{shorten(pairs[0][0], 80)} against {shorten(pairs[0][1], 80)}"
    return f"{len(pairs)} comparisons"


def _headline(table: Comparison) -> Headline | None:
    """The verdict of the one row, or how many rows have which."""
    rows = [row for row in table.comparisons if row.diff is not None]
    if not rows:
        return None
    if len(rows) == 1:
        verdict, evidence = verdict_parts(rows[0], table.settings)
        return Headline(html.kind(rows[0]), f"{plain(verdict)}.", plain(evidence))
    a, b = (any(row.verdict == word for row in rows) for word in ("A better", "B better"))
    kind = "is-a" if a and not b else "is-b" if b and not a else "is-none"
    return Headline(kind, count_line(table), f"{level_of(rows)} intervals.")


def _details(
    whole: Analysis | Comparison, table: Analysis | Comparison, questions: Sequence[ByQuestion]
) -> list[Detail]:
    """The rows that have slices or questions, those with the smallest p where there are many."""
    rows: Sequence[Any] = whole.rows
    shown: Sequence[Any] = table.rows
    by = {_key(item): item for item in questions}
    found = []
    for i, (item, short) in enumerate(zip(rows, shown, strict=True)):
        slices = [one for one in table.slices if _key(one) == _key(item)]
        asked = by.get(_key(item))
        if slices or (asked is not None and len(asked.keys)):
            found.append((i, short, slices, asked))
    if len(found) > DETAILS:
        p = {i: 1.0 if item.p_value is None else item.p_value for i, item, *_ in found if isinstance(item, Difference)}
        keep = set(sorted(p, key=p.__getitem__)[:DETAILS] if p else [i for i, *_ in found[:DETAILS]])
        found = [one for one in found if one[0] in keep]
    margin = table.settings.get("margin")
    out = []
    for i, item, slices, asked in found:
        one = detail(f"row-{i}", item, slices, asked, margin, _detail_title(item, table))
        cards = _cards(rows[i], whole) if isinstance(whole, Comparison) else []
        out.append(replace(one, cards=cards, flips=None if cards else one.flips))
    return out


def _cards(row: Difference, table: Comparison) -> list[Card]:
    """The questions of a row that flipped most, where the result has the answers to them."""
    out = []
    for flip in table.questions:
        same = all(
            getattr(flip, name) == getattr(row, name) for name in ("task", "metric", "scorer", "model_a", "model_b")
        )
        answers: Any = [getattr(flip, name, ()) for name in ("answers_a", "answers_b")]
        if same and any(answers):
            counted = tuple(
                [_counted(text, n, len(side)) for text, n in Counter(side).most_common()] for side in answers
            )
            scores = (number(flip.mean_a, 2), number(flip.mean_b, 2))
            target = getattr(flip, "target", None)
            out.append(Card(flip.text or flip.question, target, flip.cluster, scores, (counted[0], counted[1])))
    return out


def _counted(text: str, n: int, of: int) -> str:
    return text if of == 1 else f"({n} of {of}) {text}"


def _key(item: Any) -> tuple[str, ...]:
    fields = ("task", "metric", "scorer", "model", "run", "model_a", "model_b", "run_a", "run_b")
    return tuple(str(getattr(item, name, "")) for name in fields)


def _detail_title(item: Any, table: Analysis | Comparison) -> str:
    """What a row is about, with its models where the page has several."""
    title = what_of(item)
    if isinstance(table, Comparison):
        several = len({(row.model_a, row.model_b) for row in table.comparisons}) > 1
        return f"{' − '.join(names_of(item))}, {title}" if several else title
    return f"{item.model}, {title}" if len({row.model for row in table.estimates}) > 1 else title


def detail(
    key: str, item: Any, slices: Sequence[Any], asked: ByQuestion | None, margin: float | None, title: str = ""
) -> Detail:
    """A row with its slices, its clusters and its questions, as far as they are known."""
    sign = -1.0 if item.higher_is_better is False else 1.0
    pictures = [pair_figures.slices(f"slices-{key}", slices, item, margin)]
    flips = None
    if asked is not None and len(asked.keys):
        d = asked.diff
        if asked.clusters is not None:
            pictures.append(pair_figures.clusters(f"clusters-{key}", d, asked.clusters, sign))
        pictures.append(pair_figures.histogram(f"questions-{key}", d, sign))
        flips = flip_table(asked)
    words = sentence(item) if item.se is not None else ""
    models = (item.model_a, item.model_b) if isinstance(item, Difference) else None
    return Detail(key, title, words, html.drawn([one for one in pictures if one is not None]), flips, [], models)


def flip_table(asked: ByQuestion, limit: int = FLIPS) -> Section | None:
    """The questions on which A and B differ most."""
    d = asked.diff
    order = [int(i) for i in np.argsort(-np.abs(d), kind="stable")[:limit] if abs(d[i]) > 1e-12]
    if not order:
        return None
    columns = [
        Column("Question", lambda i: shorten((asked.texts[i] if asked.texts else "") or asked.keys[i], 100), text=True),
        Column("Cluster", lambda i: shorten(asked.clusters[i], 40) if asked.clusters else "", text=True, optional=True),
        Column("A", lambda i: number(float(asked.mean_a[i]), 2)),
        Column("B", lambda i: number(float(asked.mean_b[i]), 2)),
        Column("A − B", lambda i: number(float(d[i]), 2)),
    ]
    return section(FLIPPED, order, columns)
