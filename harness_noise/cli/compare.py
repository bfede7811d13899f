"""`harness-noise compare A B`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from . import options
from .flags import in_flags


@options.command(
    "compare",
    "harness-noise compare new-run baseline-run --task gsm8k",
    shown="--cluster --task --metric --margin --by --questions --html --format -o --details",
    old={
        "--fail-on": "a verdict with an exit code is harness-noise gate A --against B",
        "--combine": "the row `overall` is there by itself (--weights says how), other methods are under --details",
    },
)
@options.RUN
@options.to_read(
    options.value("--against", "RUN", "Compare every given run with this one."),
    options.MODELS,
    *options.reading("compare"),
    options.PROFILE,
    options.COMPLETE,
)
@options.to_compute(
    *options.computing(
        "compare",
        interval="Interval of the difference. auto: that of the test.",
    ),
    options.BY,
    options.value("--answers-b", "K", "B is a number on the same questions, K answers to each (inf: greedy).", float),
    options.value("--n", "N", "B is a published number, such as 0.474, on N other questions.", int),
    *options.of_extras("compare"),
)
@options.to_show(
    options.value(
        "--questions",
        "N",
        "List the N questions that flipped most. --details shows them whole, with targets and answers.",
        click.IntRange(0),
        default=0,
    ),
    options.target("--html", "FILE", "Write an HTML page."),
    *options.writing("compare"),
    *options.PRINTING,
)
def command(runs: tuple[str, ...], **choices: Any) -> int:
    """Compare two runs question by question and test the difference.

    The difference is A − B: A, the first RUN, is the candidate, and B the baseline. Where only counts are
    known, write them as 74/100 66/100, and bare scores as 71% 68% with --profile. A published number
    is compare RUN 0.474 --answers-b K, or --n N if it is of other questions.
    """
    from .. import compare

    page = choices.pop("html")
    sides = _sides(runs)
    listed = page is not None and not choices["unpaired"] and isinstance(sides[0], str)
    result = options.answer(compare, choices, sides, by_question=listed)
    if page is not None:
        from .. import write_html

        options.wrote(write_html(result, page, command=options.typed(), words=in_flags), choices)
    return 0


def _sides(runs: tuple[str, ...]) -> list[Any]:
    """Convert words to counts if all are (74/100). Else convert each bare score (0.655) to a float. Keep paths."""
    counted = list(map(options.counts, runs))
    return counted if all(isinstance(side, tuple) for side in counted) else list(map(_number_or_path, runs))


def _number_or_path(text: str) -> str | float:
    """Convert a word to a float (71% to 0.71), but leave it a text if it is no number or a file has that name."""
    with suppress(ValueError):
        value = float(text.removesuffix("%"))
        if not Path(text).exists():
            return float(f"{value / 100:.12g}") if text.endswith("%") else value
    return text
