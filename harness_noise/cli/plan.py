"""`harness-noise plan`."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from ..errors import InputError
from . import options


@options.command("plan", "harness-noise plan --effect 0.03 --from run-a run-b", {"--clusters": "write --cluster"})
@click.argument("more", metavar="", nargs=-1)
@options.to_read(
    options.several("--from runs", "RUN [RUN]", "Take the noise from a run, or from A − B."),
    options.switch("--two-like-this", "With one run: plan two runs like it, as if unrelated."),
    options.value("--models", "A[,B]", "Which models, where the RUNs of --from hold several."),
    *options.reading("plan"),
    *options.LABELS,
    options.value("--reference references", "NAME|FILE", "Take the noise from a benchmark's profile."),
    options.value("--omega2", "V", "Data variance per question.", float),
    options.value(
        "--sigma2",
        "S[,S]",
        "Prediction variance of one answer, of each model.",
        options.NumberList("one number, or two with a comma", 1, 2),
    ),
    options.value("--design-effect", "D", "Design effect of clusters that --omega2 leaves out.", float),
    options.value(
        "--cluster-size",
        "M",
        "Questions per cluster, with --icc or --design-effect; else --omega2 includes clustering.",
        float,
    ),
    options.value(
        "--icc", "R", "With --cluster-size: correlation of two questions' differences in one cluster, 0 to 1.", float
    ),
    options.value("--accuracy", "P", "The accuracy that you expect.", float),
    options.value("--solved", "S", "With --accuracy: the share that any model solves (1).", float),
)
@options.to_compute(
    options.value("--effect", "D", "The true difference to detect, on the metric's scale.", float),
    options.value("--n n", "N", "Number of questions.", int),
    options.value("--power", "P", "The chance to detect the effect (0.8 if two are missing).", float),
    options.value("--alpha", "A", "Write the level as --alpha 0.05 in place of --level 0.95.", float),
    options.value("--repeats", "K", "Answers per question.", int),
    options.value("--k-max", "K", "The most answers to consider.", int, default=10),
    options.value("--answers", "N", "With --from: spread N answers over the tasks, K by task.", int),
    options.value("--looks", "L", "Also plan to stop when it is decided, at L looks or anytime."),
    options.value("--cost-question", "C", "With --cost-answer: find the best K for the money.", float),
    options.value("--cost-answer", "C", "Cost of one answer.", float),
    options.value("--cost-judge", "C", "Cost of one judge call: what is another one worth?", float),
    options.value("--sigma2-judge", "S", "The judge's variance on one answer, if not --from's.", float),
    options.value("--judged", "N", "A judge scores N questions: how many must people label?", int),
    options.value("--r2", "R", "With --judged: the share of the labels' variance it predicts.", float),
    options.value("--target-se", "S", "With labels: standard error, in place of --effect.", float),
    options.value("--assurance", "P", "With --from: the share of pilots whose plan reaches the power (0.8).", float),
    *options.computing("plan", level="Confidence level of the two-sided test."),
)
@options.to_show(
    options.target("--plot", "FILE", "Draw the curve (SVG)."),
    *options.PRINTING,
)
def command(more: tuple[str, ...], **choices: Any) -> None:
    """Plan how many questions and answers a comparison needs, or what it can detect.

    Of --effect, --n and --power two give the third. The noise comes from runs (--from), from a
    benchmark's profile (--reference), from its variances (--omega2, --sigma2), or, without any data,
    from the expected --accuracy (with --cluster-size and --icc). With --reference alone: what the benchmark
    as it is can show.
    """
    from .. import plan

    plot, sources = choices.pop("plot"), choices.pop("runs") + more
    if more and len(sources) == len(more):  # `--from A B` gives A to the option, and B to us
        raise InputError(f"{more[0]!r}: runs to take the noise from are named with --from")
    if click.get_current_context().get_parameter_source("level") is ParameterSource.DEFAULT:
        choices["level"] = None  # --alpha may say it
    result = options.answer(plan, choices, runs=sources)
    if plot is not None:
        from .. import write_figures

        options.wrote(write_figures(result, plot), choices)
