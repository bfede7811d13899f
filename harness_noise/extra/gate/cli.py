"""`harness-noise gate RUN --against BASELINE`."""

from __future__ import annotations

from typing import Any

import click

from ...cli import options

CODES = {"pass": 0, "fail": 1, "cannot judge": 2}


@options.command(
    "gate",
    "harness-noise gate new-run --against baseline-run --margin 0.01",
    shown="--against --margin --rule --floor --github --store --task --cluster --format -o",
    alone="Name the baseline with --against. compare takes two runs, arena takes many.",
)
@click.argument("run", metavar="RUN")
@options.to_read(
    options.several(
        "--against",
        "RUN|DIR",
        "The baseline. Repeat it for several runs of one configuration, whose spread then counts, or name a folder of "
        "--store.",
    ),
    options.value("--thresholds", "FILE", "YAML file of the scores to reach, as inference engines keep them."),
    *options.reading("gate"),
)
@options.to_compute(
    options.choice(
        "--rule",
        ("regression", "no-loss"),
        "Fail only if a loss is shown, or pass only if a loss is excluded.",
    ),
    options.value("--ratio", "R", "The share of the baseline to be kept, such as 0.99.", float),
    options.value("--floor", "VALUE", "The mean that every row must reach: 0.85, or 85%.", options.MEAN),
    options.value("--n", "N", "Questions that --floor or --thresholds were measured on.", int),
    options.value(
        "--answers-b",
        "K",
        "Answers to each question behind --floor, which is of the same questions (inf: greedy).",
        float,
    ),
    options.switch("--pooled", "Decide on the equal-weight mean of all rows."),
    options.switch("--each", "Decide on every question by itself: which single test broke?"),
    *options.of_extras("gate"),
    options.switch("--skip-missing", "Leave out, by name, what cannot be judged."),
    options.several("--vouch", "CAUSE", "Answers missing for CAUSE are missing at random, by your word. Repeatable."),
    options.switch("--self-test", "How often identical models would fail, and which loss is seen."),
    *options.computing(
        "gate",
        interval="Interval of the difference. auto: that of the test.",
        margin="The loss that is accepted, as 0.01 on the metric's scale, or 1pt. Default: 0.",
    ),
)
@options.to_show(
    options.value("--store", "DIR", "Keep what a gate needs of this run in DIR, if it passes. The last six runs stay."),
    options.target("--junit", "FILE", "Write JUnit's XML."),
    options.target(
        "--github",
        "FILE",
        "Write this gate as a GitHub workflow, such as .github/workflows/gate.yml. Nothing is judged.",
    ),
    options.target("--verdict", "FILE", "Write the verdict as JSON, next to what is printed."),
    *options.PRINTING,
)
def command(run: str, **choices: Any) -> int:
    """Decide whether a run is good enough, by one rule over all its tasks.

    Exit codes: 0 pass, 1 fail, 2 cannot judge (or wrong usage).
    """
    from ... import gate

    if (file := choices.pop("github")) is not None:
        from ...io.atomic import write_text
        from .workflow import workflow

        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, workflow(click.get_current_context()))
        options.wrote([file], choices)
        if not choices["quiet"]:
            options.hints(["nothing was judged. Leave --github out for the verdict"])
        return 0
    page, verdict = choices.pop("junit"), choices.pop("verdict")
    result = options.answer(gate, choices, run)
    if choices["output"] is not None or choices["form"] in ("json", "csv"):
        options.hints([result.sentence, *result.warnings])
    if not choices["quiet"]:
        options.hints(note for note in result.notes if note.code == "wrote")
    if page is not None:
        from ...io.atomic import write_text

        write_text(page, result.to_junit())
        options.wrote([page], choices)
    if verdict is not None:
        from ...io.atomic import write_text
        from ...report.text import render

        write_text(verdict, render(result, "json"))
        options.wrote([verdict], choices)
    return CODES[result.outcome]
