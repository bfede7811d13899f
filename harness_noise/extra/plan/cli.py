"""`harness-noise plan`."""

from __future__ import annotations

from typing import Any

import click

from ...cli import options
from ...errors import InputError


class Costs(options.ParamType):
    """Type of costs by what they buy: question=2,answer=0.1."""

    name = "costs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        if isinstance(value, dict):
            return value
        costs = options.mapping(value.split(","), "--costs")
        try:
            return {name: float(cost) for name, cost in costs.items()}
        except ValueError:
            self.fail(f"{value!r} does not give costs as numbers, such as question=2,answer=0.1.", param, ctx)


@options.command(
    "plan",
    "harness-noise plan --effect 0.03 --from run-a run-b",
    shown="--effect --from --n --power --repeats --accuracy --profile --looks --cluster --format",
    old={
        **{
            flag: f"{flag} is now `hn.plan({flag[2:].replace('-', '_')}=…)`, in Python alone"
            for flag in ("--k-max", "--sigma2-judge", "--assurance")
        },
        "--clusters": "write --cluster",
        **dict.fromkeys(
            ("--judged", "--r2", "--target-se", "--labels"), "how many people must label says label --plan"
        ),
    },
)
@click.argument("more", metavar="", nargs=-1)
@options.to_read(
    options.several("--from runs", "RUN [RUN]", "Take the noise from a run, or from A − B."),
    options.switch("--two-like-this", "With one run: plan two runs like it, as if unrelated."),
    options.value("--models", "A[,B]", "The models to plan for, if the RUNs of --from hold several."),
    *options.reading("plan"),
    options.PROFILE,
    options.OMEGA2,
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
        "Questions per cluster, with --icc or --design-effect. Without them --omega2 includes clustering.",
        float,
    ),
    options.value(
        "--icc", "R", "With --cluster-size: correlation of two questions' differences in one cluster, 0 to 1.", float
    ),
    options.value("--accuracy", "P", "The accuracy that you expect: 0.7, or 70%.", options.MEAN),
    options.value("--solved", "S", "With --accuracy: the share that any model solves (1).", float),
)
@options.to_compute(
    options.EFFECT,
    options.value("--n n", "N", "Number of questions.", int),
    options.POWER,
    options.value("--repeats", "K", "Answers per question.", int),
    options.value("--answers", "N", "With --from: spread N answers over the tasks, K by task.", int),
    options.value("--looks", "L", "Also plan to stop when it is decided, at L looks or anytime."),
    options.value(
        "--costs",
        "question=C,answer=C[,judge=C]",
        "Find the best K for the money. With the cost of a judge call, also say what another one is worth.",
        Costs(),
    ),
    *options.computing("plan", level="Confidence level of the two-sided test."),
)
@options.to_show(
    *options.PRINTING,
)
def command(more: tuple[str, ...], **choices: Any) -> None:
    """Plan how many questions and answers a comparison needs, or what it can detect.

    Of --effect, --n and --power two give the third. The noise comes from runs (--from), from a
    benchmark's profile (--profile), from its variances (--omega2, --sigma2), or, without any data,
    from the expected --accuracy (with --cluster-size and --icc). With --profile alone: what the benchmark
    as it is can show.
    """
    from ... import plan

    sources = choices.pop("runs") + more
    if more and len(sources) == len(more):  # `--from A B` gives A to the option, and B to us
        raise InputError(f"{more[0]!r}: runs to take the noise from are named with --from")
    options.answer(plan, choices, runs=sources)
