"""`harness-noise plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from . import options

if TYPE_CHECKING:
    from ..data.scores import Run
    from ..leaderboard.profiles import Profile
    from ..results.plan import Plan


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
@click.option("--reference", type=click.Path(path_type=Path), metavar="NAME|FILE", help="Take a benchmark's noise.")
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
    from ..analysis.plan import plan
    from ..data.clusters import joined
    from ..leaderboard import shipped

    printing = {name: choices.pop(name) for name in ("form", "output", "details", "quiet", "debug")}
    plot, profile = choices.pop("plot"), choices.pop("reference")
    sources, sigma2, cluster = choices.pop("sources") + more, choices.pop("sigma2"), choices.pop("cluster")
    cluster, bounds = joined(cluster), choices.pop("bounds")
    if more and not _belongs(sources, more):
        raise InputError(f"{more[0]!r}: runs to take the noise from are named with --from")
    names = {name: choices.pop(name) for name in ("tasks", "metrics", "scorers")}
    how = {name: choices.pop(name) for name in ("models", "as_repeats", "missing", "columns")}
    choices["looks"] = options.looks(choices["looks"])
    runs: Sequence[str | Run] = ()
    if sigma2 is not None:
        choices["sigma2"] = _numbers("--sigma2", sigma2, "one number, or two with a comma")
    if profile is not None:
        taken = bool(sources) or choices["omega2"] is not None
        found = _profiled(profile, names, choices["effect"], taken=taken)
        accuracy = choices.pop("accuracy")
        if accuracy is not None:
            found.check(accuracy)
        choices |= found.planning(accuracy)
        if choices["effect"] is None and choices["n"] is None:
            choices["n"] = found.n_questions  # what the benchmark as it is can show
    elif sources:
        wide = None if bounds is None else tuple(_numbers("--range", bounds, "the lowest and the highest value"))
        choices |= names | {"range": wide}
        runs, said = _read(sources, names | how | {"cluster": cluster})
        choices |= said
    elif cluster is not None or bounds is not None or (*how.values(),) != (None, False, "drop", None):
        raise InputError(
            "--cluster, --range, --columns, --missing, --models and --as-repeats say how --from is read: name a run"
        )
    result = plan(runs=runs, **choices)
    if profile is not None:
        result = _borrowed(result, found, accuracy, shipped.sentence(profile))
    options.show(result, printing)
    if plot is not None:
        from ..report import planning

        planning.draw(result, plot)
        options.wrote([plot], printing)


def _borrowed(result: Plan, profile: Profile, accuracy: float | None, source: str | None) -> Plan:
    """The plan with whose noise it is; one answer to each question says nothing of ω² alone."""
    from dataclasses import replace

    said = f"The noise is that of other models on {profile.task}; no answer of the models to be compared was seen"
    beyond = accuracy is not None and profile.beyond(accuracy)
    return replace(
        result,
        basis="reference",
        omega2=None if profile.data_share is None else result.omega2,
        diagnostics=(*(["beyond_reference"] if beyond else ()), *result.diagnostics, "reference_noise"),
        notes=(*result.notes, f"{said}.", *([] if source is None else [source])),
    )


def _read(sources: tuple[str, ...], how: dict[str, Any]) -> tuple[Sequence[str | Run], dict[str, Any]]:
    """The runs of --from, and how those are read that are still paths."""
    from .compare import chosen

    models, repeated, cluster = how.pop("models"), how.pop("as_repeats"), how["cluster"]
    reading = options.read_options(
        how | {"cluster": (cluster,) if cluster else (), "groups": (), "as_repeats": repeated}
    )
    if models is None and not repeated:
        return sources, {"cluster": cluster, "missing": reading.missing, "columns": reading.columns}
    found = options.read_runs(sources, reading, as_repeats=repeated)
    return found if models is None else chosen(found, sources, models), {}


def _belongs(sources: tuple[str, ...], more: tuple[str, ...]) -> bool:
    """`--from A B` gives A to the option and B to us: only then may there be an argument."""
    return len(sources) > len(more)


def _numbers(option: str, text: str, wanted: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} {text}: write {wanted}") from None


def _profiled(path: Path, names: dict[str, tuple[str, ...]], effect: float | None, *, taken: bool) -> Profile:
    from ..leaderboard import profiles as reference
    from ..settings import check_scale

    if taken:
        raise InputError("the noise comes from one of --reference, --from and --omega2")
    wanted = {key[:-1]: value[0] if value else None for key, value in names.items()}
    found = reference.choose(reference.read(path), **wanted)
    check_scale("effect", effect, found.scale, found.metric)
    return found
