"""`harness-noise gate RUN --against BASELINE`."""

from __future__ import annotations

from typing import Any

import click

from . import options

CODES = {"pass": 0, "fail": 1, "cannot judge": 2}


@options.command("gate", "harness-noise gate new-run --against baseline-run --margin 0.01")
@click.argument("run", metavar="RUN")
@options.to_read(
    options.several(
        "--against",
        "RUN|DIR",
        "The baseline. Repeat it for several runs of one configuration, whose spread then counts; or a folder of "
        "--store.",
    ),
    options.value("--thresholds", "FILE", "YAML file of the scores to reach, as inference engines keep them."),
    *options.reading("gate"),
    *options.LABELS,
)
@options.to_compute(
    options.choice(
        "--rule",
        ("regression", "no-loss"),
        "Fail only where a loss is shown, or pass only where a loss is excluded.",
    ),
    options.value("--ratio", "R", "The share of the baseline to be kept, such as 0.99.", float),
    options.value("--floor", "VALUE", "The score that every row must reach.", float),
    options.value("--floor-questions", "N", "Questions that --floor or --thresholds were measured on.", int),
    options.switch("--pooled", "Decide on the equal-weight mean of all rows."),
    options.switch("--skip-missing", "Leave out, by name, what cannot be judged."),
    options.switch("--self-test", "How often identical models would fail, and which loss is seen."),
    options.value(
        "--budget",
        "N",
        "The loss that N questions could show (arena --needed: how many a pair needs). Never decides.",
        int,
    ),
    *options.computing(
        "gate",
        interval="Interval of the difference; auto: that of the test.",
        margin="The loss that is accepted, on the metric's scale; 0 if not given.",
    ),
)
@options.to_show(
    options.value("--store", "DIR", "Keep what a gate needs of this run in DIR, if it passes."),
    options.value("--keep", "R", "Runs that --store keeps.", int, default=6),
    options.target("--junit", "FILE", "Write JUnit's XML."),
    *options.PRINTING,
)
def command(run: str, **choices: Any) -> int:
    """Decide whether a run is good enough, by one rule over all its tasks.

    Exit codes: 0 pass, 1 fail, 2 cannot judge (or wrong usage).
    """
    from .. import gate

    page = choices.pop("junit")
    result = options.answer(gate, choices, run)
    if choices["output"] is not None or choices["form"] in ("json", "csv"):
        options.hints([result.sentence, *result.warnings])
    if not choices["quiet"]:
        options.hints(note for note in result.notes if note.startswith("wrote "))
    if page is not None:
        from ..io.atomic import write_text

        write_text(page, result.to_junit())
        options.wrote([page], choices)
    return CODES[result.outcome]
