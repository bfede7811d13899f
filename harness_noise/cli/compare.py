"""`harness-noise compare A B`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from ..errors import InputError
from . import options
from .flags import noted_in_flags


@click.command("compare")
@options.RUN
@click.option("--baseline", metavar="RUN", help="Compare every given run with this one.")
@click.option("--models", metavar="A,B", help="Which models, where the RUNs hold more than two.")
@options.reading
@options.computing
@click.option(
    "--test",
    type=click.Choice(["t", "sign", "permutation", "bootstrap", "wild"]),
    default="t",
    show_default=True,
    help="wild: the wild cluster bootstrap with the null imposed, for few or very unequal clusters.",
)
@click.option(
    "--runs-shared",
    is_flag=True,
    help="With --repeats-are runs: run j of A and of B share their prompt, seed or judge.",
)
@options.ADJUST
@click.option("--unpaired", is_flag=True, help="Ignore which question is which (different questions).")
@click.option("--margin", type=float, metavar="M", help="Test equivalence within ±M; slack of --fail-on.")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "none"]),
    default="none",
    show_default=True,
    help="Exit with 1 if A is worse than B by more than the margin in any row (Holm over all rows).",
)
@click.option("--combine", is_flag=True, help="What all rows (independent tasks or models) say together.")
@options.BY
@click.option("--questions", type=click.IntRange(0), default=0, metavar="N", help="List N questions that flipped.")
@click.option("--wide", is_flag=True, help="With --questions: whole questions, targets and answers.")
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="RUN|NAME|FILE",
    help="A complete run, used to extrapolate from a random subset of the questions (repeatable); or, where A and B "
    "are bare numbers, the benchmark's noise profile (see references, arena).",
)
@click.option(
    "--looks", metavar="L", help="A is a run that grows: allow for the looks that were taken at it, 5 or anytime."
)
@click.option("--html", type=options.Output(dir_okay=False), metavar="FILE", help="Write a page.")
@options.printing
def command(runs: tuple[str, ...], **choices: Any) -> int:
    """A − B of two runs, paired by question, with a test.

    A and B are matched question by question; A is the candidate, B the baseline. Where only counts
    are known, write them as 74/100 66/100.
    """
    from .. import compare

    page = choices.pop("html")
    if choices["wide"] and not choices["questions"]:
        raise InputError("--wide shows the questions of --questions N whole: say how many, as in --questions 5 --wide")
    result = noted_in_flags(compare(_sides(runs), by_question=page is not None, **options.keywords(choices)))
    options.show(result, choices)
    if page is not None:
        from .. import write_html

        options.wrote(write_html(result, page, command=options.typed()), choices)
    if result.gate is None:
        return 0
    from ..report.sentences import gate_sentences

    options.hints(gate_sentences(result.gate))
    return {"pass": 0, "fail": 1, "cannot judge": 2}[result.gate.outcome]


def _sides(runs: tuple[str, ...]) -> list[Any]:
    """The runs; counts, 74/100, and bare numbers, 0.655, as such."""
    if all(map(_COUNTS.fullmatch, runs)):
        return [tuple(map(int, text.split("/"))) for text in runs]
    return [float(text) if _is_number(text) else text for text in runs]


_COUNTS = re.compile(r"(\d+)/(\d+)")


def _is_number(text: str) -> bool:
    """Whether it is a number, and no file is called so."""
    try:
        float(text)
    except ValueError:
        return False
    return not Path(text).exists()
