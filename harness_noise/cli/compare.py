"""`harness-noise compare A B`."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from . import options
from .flags import in_flags


@options.command("compare", "harness-noise compare new-run baseline-run --task gsm8k")
@options.RUN
@options.to_read(
    options.value("--baseline", "RUN", "Compare every given run with this one."),
    options.MODELS,
    *options.reading("compare"),
    *options.LABELS,
    options.several(
        "--reference references",
        "RUN|NAME|FILE",
        "A complete run, used to extrapolate from a random subset of the questions (repeatable); or, where A and "
        "B are bare numbers, the benchmark's noise profile (see references, arena).",
    ),
)
@options.to_compute(
    *options.computing(
        "compare",
        interval="Interval of the difference; auto: that of the test.",
        margin="Test equivalence within ±M, on the metric's scale; also the slack of --fail-on.",
    ),
    options.BY,
    options.switch("--combine", "Combine all rows, which must be independent tasks or models, into one answer."),
    options.value("--looks", "L", "A is still running: correct for repeated looks, such as 5, or anytime."),
    options.value(
        "--fail-on",
        None,
        "Exit with 1 if A is worse than B by more than the margin in any row (Holm over all rows).",
        click.Choice(["regression", "none"]),
        default="none",
    ),
)
@options.to_show(
    options.value("--questions", "N", "List the N questions that flipped most.", click.IntRange(0), default=0),
    options.switch("--wide", "With --questions: show whole questions, targets and answers."),
    options.target("--html", "FILE", "Write an HTML page."),
    *options.PRINTING,
)
def command(runs: tuple[str, ...], **choices: Any) -> int:
    """Compare two runs question by question and test the difference.

    The difference is A − B: A, the first RUN, is the candidate, and B the baseline. Where only counts are
    known, write them as 74/100 66/100, and bare scores as 71% 68% with --reference.
    """
    from .. import compare

    page = choices.pop("html")
    if choices["wide"] and not choices["questions"]:
        raise InputError("--wide shows the questions of --questions N whole: say how many, as in --questions 5 --wide")
    sides = _sides(runs)
    listed = page is not None and not choices["unpaired"] and isinstance(sides[0], str)
    result = options.answer(compare, choices, sides, by_question=listed)
    if page is not None:
        from .. import write_html

        options.wrote(write_html(result, page, command=options.typed(), words=in_flags), choices)
    if result.gate is None:
        return 0
    from .gate import CODES

    options.hints([f"--fail-on regression: {result.gate.sentence}", *result.gate.warnings])
    return CODES[result.gate.outcome]


def _sides(runs: tuple[str, ...]) -> list[Any]:
    """The runs; counts, 74/100, and bare numbers, 0.655, as such."""
    if all(map(_COUNTS.fullmatch, runs)):
        return [tuple(map(int, text.split("/"))) for text in runs]
    return list(map(_side, runs))


_COUNTS = re.compile(r"(\d+)/(\d+)")


def _side(text: str) -> str | float:
    """A number, also in per cent, if no file is called so; else the text."""
    with suppress(ValueError):
        value = float(text.removesuffix("%"))
        if not Path(text).exists():
            return float(f"{value / 100:.12g}") if text.endswith("%") else value
    return text
