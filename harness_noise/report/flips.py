"""How questions that flipped are shown: a table, or with `--wide` each one whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..results.flips import Flip
from .columns import Column, Section, _drop_empty, metric_name, number, plain, shorten

TITLE = "Questions that flipped most"
Listing = tuple[str, tuple[tuple[str, str], ...]]
"""A heading, and what stands below it: labels with their texts."""


def flip_table(flips: Sequence[Flip]) -> Section:
    """One row for each question; of the answers the most frequent one's end, where the result stands."""
    several = len({(flip.task, flip.metric, flip.scorer) for flip in flips}) > 1
    columns = (
        Column("Task", text=True),
        Column("id", text=True, hint="what the harness calls the question", rank=5),
        Column("Question", text=True, hint="its beginning; --wide shows it whole"),
        Column("Cluster", text=True, rank=4),
        Column("Target", text=True, hint="the answer that is right", rank=1),
        Column("A says", text=True, hint="the end of A's most frequent answer; --wide shows all", rank=2),
        Column("B says", text=True, hint="the same of B", rank=2),
        Column("A", hint="A's mean score on the question"),
        Column("B", hint="B's mean score on it"),
        Column("A − B", hint="the difference"),
    )
    rows = [
        (
            f"{plain(flip.task)} {metric_name(flip.metric, flip.scorer)}" if several else "",
            shorten(flip.question, 12) if flip.text is not None else "",
            shorten(flip.text or flip.question, 60),
            shorten(flip.cluster or "", 24),
            shorten(flip.target or "", 16),
            _ending(flip.answers_a),
            _ending(flip.answers_b),
            number(flip.mean_a, 2),
            number(flip.mean_b, 2),
            number(flip.diff, 2),
        )
        for flip in flips
    ]
    optional = ("Task", "id", "Cluster", "Target", "A says", "B says")
    return Section(TITLE, *_drop_empty(columns, rows, optional))


def flip_listings(flips: Sequence[Flip]) -> tuple[Listing, ...]:
    """Every question whole, with its target and all answers."""
    out = []
    for i, flip in enumerate(flips, 1):
        name = " ".join(filter(None, (flip.task, metric_name(flip.metric, flip.scorer))))
        cluster = f", cluster {flip.cluster}" if flip.cluster else ""
        scores = f"{number(flip.mean_a, 2)} against {number(flip.mean_b, 2)}"
        lines = [("Question", flip.text or "not in the log")]
        lines += [("Target", flip.target)] if flip.target is not None else []
        lines += [(flip.model_a, text) for text in _counted(flip.answers_a)]
        lines += [(flip.model_b, text) for text in _counted(flip.answers_b)]
        shown = tuple((plain(label), _lines(text)) for label, text in lines)
        out.append((plain(f"{i}. {name}, {flip.question}{cluster}: {scores}"), shown))
    return tuple(out)


def _counted(answers: Sequence[str]) -> list[str]:
    """Each different answer once, with how often it came where that says something."""
    found = Counter(answers)
    return [f"({n} of {len(answers)}) {text}" if len(answers) > 1 else text for text, n in found.most_common()]


def _lines(text: str) -> str:
    """Without control characters, line by line."""
    return "\n".join(filter(None, map(plain, text.splitlines()))) or "(empty)"


def _ending(answers: Sequence[str], width: int = 16) -> str:
    if not answers:
        return ""
    text = plain(Counter(answers).most_common(1)[0][0])
    return text if len(text) <= width else "…" + text[1 - width :]
