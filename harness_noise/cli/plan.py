"""`harness-noise plan`."""

from __future__ import annotations

from typing import Any

import click

from ..errors import InputError
from . import options
from .flags import noted_in_flags


@click.command("plan")
@click.argument("more", metavar="", nargs=-1)
@click.option("--effect", type=float, metavar="D", help="The true difference to be found, on the metric's scale.")
@click.option("--n", "n", type=int, metavar="N", help="Number of questions.")
@click.option("--power", type=float, metavar="P", help="The chance to find the effect (0.8 if not asked for).")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Two-sided level of the test.")
@click.option("--repeats", type=int, metavar="K", help="Answers per question.")
@click.option("--k-max", type=int, default=10, show_default=True, help="The most answers per question to consider.")
@click.option("--from", "sources", multiple=True, metavar="RUN [RUN]", help="Take the noise from a run, or from A − B.")
@click.option("--accuracy", type=float, metavar="P", help="The accuracy that the models will have.")
@click.option("--reference", "references", metavar="NAME|FILE", help="Take a benchmark's noise.")
@click.option("--omega2", type=float, help="Data variance per question.")
@click.option("--sigma2", metavar="S[,S]", help="Prediction variance of one answer, of each model.")
@click.option("--design-effect", type=float, help="Of clusters, where ω² comes from independent questions.")
@click.option("--looks", metavar="L", help="Also plan to stop when it is decided: 5 looks, or anytime.")
@click.option("--cost-question", type=float, metavar="C", help="With --cost-answer: find the best K for the money.")
@click.option("--cost-answer", type=float, metavar="C", help="Cost of one answer.")
@click.option("--two-like-this", is_flag=True, help="Of one run of --from: plan two runs like it, as if unrelated.")
@click.option("--assurance", type=float, metavar="P", help="Share of such pilots whose plan has the power (0.8).")
@click.option(
    "--cluster", "--clusters", "cluster", multiple=True, metavar="SPEC", help="What questions share, for --from."
)
@click.option("--cluster-size", type=float, metavar="M", help="Questions per cluster, where ω² holds the clustering.")
@click.option("--range", "bounds", metavar="LOW,HIGH", help="The metric's range, for --from.")
@click.option("--task", "tasks", multiple=True, metavar="TASK", help="Which task of --from or --reference.")
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Which metric.")
@click.option("--scorer", "scorers", multiple=True, metavar="SCORER", help="Which scorer or filter.")
@click.option("--models", metavar="A[,B]", help="Which models of --from, where its RUNs hold more.")
@click.option("--as-repeats", is_flag=True, help="Several runs of one model of --from are its repeats.")
@click.option("--missing", type=click.Choice(["drop", "zero"]), default="drop", help="Missing answers of --from.")
@click.option("--columns", metavar="question=COL,…", help="Which column of --from is the question, score, cluster, …")
@click.option("--plot", type=options.Output(dir_okay=False), metavar="FILE", help="Draw the curve (SVG).")
@options.printing
def command(more: tuple[str, ...], **choices: Any) -> None:
    """How many questions and answers a comparison needs, or what it can see.

    Of --effect, --n and --power two give the third. The noise comes from runs (--from), from a
    benchmark's profile (--reference), from its variances (--omega2, --sigma2), or, without any data,
    from the expected --accuracy. With --reference alone: what the benchmark as it is can show.
    """
    from .. import plan

    plot, bounds, sources = choices.pop("plot"), choices.pop("bounds"), choices.pop("sources") + more
    if more and not _belongs(sources, more):
        raise InputError(f"{more[0]!r}: runs to take the noise from are named with --from")
    if choices["sigma2"] is not None:
        choices["sigma2"] = _numbers("--sigma2", choices["sigma2"], "one number, or two with a comma")
    if bounds is not None:
        choices["range"] = tuple(_numbers("--range", bounds, "the lowest and the highest value"))
    result = plan(runs=sources, **options.keywords(choices))
    options.show(noted_in_flags(result), choices)
    if plot is not None:
        from .. import write_figures

        options.wrote(write_figures(result, plot), choices)


def _belongs(sources: tuple[str, ...], more: tuple[str, ...]) -> bool:
    """`--from A B` gives A to the option and B to us: only then may there be an argument."""
    return len(sources) > len(more)


def _numbers(option: str, text: str, wanted: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text}: write {wanted}") from None
