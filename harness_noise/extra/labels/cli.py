"""`harness-noise label RUN…`: draws the answers that people label, or plans how many."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ...cli import options
from ...cli.helps import longest
from ...errors import InputError

_DRAWING = ("n", "by_score", "force")
_PLANNING = ("effect", "target_se", "power", "judged", "r2", "omega2")
_NEEDS = (
    "how many answers people must label follows from a RUN and some labels "
    "(`harness-noise label RUN --plan --labels FILE --target-se S`), or, without a RUN, from what you expect "
    "(`harness-noise label --plan --judged N --r2 R --omega2 V --target-se S`: V is the variance of the labels, at "
    "most 0.25 of right and wrong answers)"
)


@options.command(
    "label",
    "harness-noise label runs/new -n 100 -o labels.csv",
    old={"--no-blind": "people see neither the model nor the judge's score. In Python `label_sample(blind=False)`"},
    shown="-o -n --by-score --plan --target-se --effect --labels --judged --r2 --force",
)
@click.argument("runs", metavar="RUN...", nargs=-1, callback=lambda _context, _param, words: options.expanded(words))
@options.to_read(*options.reading("label"))
@options.to_compute(
    options.value("-n n", "N|SHARE", "Questions to be labelled.", default="100"),
    options.switch("--by-score", "Draw questions of uncertain score more often."),
    options.switch("--plan planned", "Say how many answers people must label, instead of drawing them."),
    options.value(
        "--target-se", "S", "With --plan: the standard error to reach, instead of --effect.", options.DIFFERENCE
    ),
    options.EFFECT,
    options.POWER,
    options.value("--judged", "N", "With --plan: the questions that the judge scores.", int),
    options.value(
        "--r2", "R", "With --plan and no labels: the share of the labels' variance that the judge predicts.", float
    ),
    options.OMEGA2,
    *options.computing("label", seed="Seed of the drawing, which the file records."),
)
@options.to_show(options.switch("--force", "Replace FILE, with the labels that it may hold."), *options.PRINTING)
def command(runs: tuple[str, ...], planned: bool, **choices: Any) -> None:
    """Draw the answers that people label, to correct a judge's scores, or plan their number.

    FILE is a table with the question, the answer and an empty column label, which people fill in with a
    spreadsheet; then give it to analyze, compare, arena or gate as --labels FILE. Rows without a label do not
    count, so that one may stop early.

    With --plan: how many answers must people label for --target-se or --effect? The judge's worth comes from
    the RUN and its --labels, or from --r2, --omega2 and --judged.
    """
    drawing = {name: choices.pop(name) for name in _DRAWING}
    planning = {name: choices.pop(name) for name in _PLANNING}
    _check_given(_DRAWING if planned else (*_PLANNING, *_LABELS), planned=planned)
    if planned:
        from ..ground import needed

        expected = all(planning[name] is not None for name in ("judged", "r2", "omega2"))
        if not (choices["labels"] if runs else expected):
            raise InputError(_NEEDS)

        options.answer(needed("plan"), choices, runs=runs, **planning)
        return
    from .api import label_sample

    if not runs or choices["output"] is None:
        missing = "-o FILE.csv" if runs else "a RUN"
        raise InputError(
            f"{missing} is missing: `harness-noise label RUN -o FILE.csv` draws answers, --plan plans them"
        )
    output: Path = choices["output"]
    chosen = {name: value for name, value in options.keywords(choices).items() if name not in _LABELS}
    drawn = label_sample(runs, output=output, **drawing, **chosen)
    if not choices["quiet"]:
        options.hints(drawn.notes)
    options.wrote([output], choices)


_LABELS = ("labels", "labels_scorer", "label_range", "labels_at_random")


def _check_given(others: tuple[str, ...], *, planned: bool) -> None:
    """Refuse typed options among `others`: drawing options with --plan, planning or label options without it.

    Raises:
        InputError: names the first.
    """
    context = click.get_current_context()
    for param in context.command.params:
        typed = context.get_parameter_source(str(param.name)) is not ParameterSource.DEFAULT
        if isinstance(param, click.Option) and param.name in others and typed:
            if planned:
                raise InputError(f"{longest(param)} draws answers: leave it or --plan out")
            raise InputError(_labels_unused(context) if param.name in _LABELS else _of_plan(longest(param)))


def _of_plan(option: str) -> str:
    return f"{option} belongs to a plan: add --plan, or leave {option} out"


def _labels_unused(context: click.Context) -> str:
    """Return a message that labels are not used here, with the commands that use them."""
    runs = shlex.join(context.params["runs"]) or "RUN"
    labels = shlex.quote(str(context.params["labels"] or "FILE"))
    return (
        "labels that people gave are not used to draw answers. To correct the judge's scores: `harness-noise analyze "
        f"{runs} --labels {labels}`. To plan how many more are needed: `harness-noise label {runs} --plan --labels "
        f"{labels} --target-se S`"
    )
