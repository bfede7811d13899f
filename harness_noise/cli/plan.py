"""`harness-noise plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import InputError
from . import options

if TYPE_CHECKING:
    from ..data.scores import Run
    from ..leaderboard.profiles import Profile
    from ..results.plan import Plan


@options.command(
    "plan",
    consumer="plan",
    example="harness-noise plan --effect 0.03 --from run-a run-b",
    old={"--clusters": "write --cluster"},
)
@click.argument("more", metavar="", nargs=-1)
@options.to_read(
    click.option(
        "--from", "sources", multiple=True, metavar="RUN [RUN]", help="Take the noise from a run, or from A − B."
    ),
    click.option("--two-like-this", is_flag=True, help="With one run: plan two runs like it, as if unrelated."),
    click.option("--models", metavar="A[,B]", help="Which models of --from, where its RUNs hold more."),
    options.reading("plan"),
    click.option("--reference", type=click.Path(path_type=Path), metavar="NAME|FILE", help="Take a benchmark's noise."),
    click.option("--omega2", type=float, metavar="V", help="Data variance per question."),
    click.option("--sigma2", metavar="S[,S]", help="Prediction variance of one answer, of each model."),
    click.option(
        "--design-effect", type=float, metavar="D", help="Design effect of clusters that --omega2 does not hold."
    ),
    click.option("--cluster-size", type=float, metavar="M", help="Questions per cluster, where --omega2 holds them."),
    click.option("--accuracy", type=float, metavar="P", help="The accuracy that the models will have."),
)
@options.to_compute(
    click.option("--effect", type=float, metavar="D", help="The true difference to detect, on the metric's scale."),
    click.option("--n", "n", type=int, metavar="N", help="Number of questions."),
    click.option("--power", type=float, metavar="P", help="The chance to detect the effect (0.8 if two are missing)."),
    click.option("--level", type=float, metavar="L", help="Confidence level of the two-sided test (0.95)."),
    click.option("--alpha", type=float, metavar="A", help="Write the level as --alpha 0.05 in place of --level 0.95."),
    click.option("--repeats", type=int, metavar="K", help="Answers per question."),
    click.option("--k-max", type=int, default=10, show_default=True, metavar="K", help="The most answers to consider."),
    click.option("--looks", metavar="L", help="Also plan to stop when it is decided: 5 looks, or anytime."),
    click.option("--cost-question", type=float, metavar="C", help="With --cost-answer: find the best K for the money."),
    click.option("--cost-answer", type=float, metavar="C", help="Cost of one answer."),
    click.option(
        "--assurance",
        type=float,
        metavar="P",
        help="With --from: the share of such pilots whose plan has the power (0.8).",
    ),
    options.computing("plan"),
)
@options.to_show(
    click.option("--plot", type=options.Output(dir_okay=False), metavar="FILE", help="Draw the curve (SVG)."),
    options.printing,
)
def command(more: tuple[str, ...], **choices: Any) -> None:
    """Plan how many questions and answers a comparison needs, or what it can detect.

    Of --effect, --n and --power two give the third. The noise comes from runs (--from), from a
    benchmark's profile (--reference), from its variances (--omega2, --sigma2), or, without any data,
    from the expected --accuracy. With --reference alone: what the benchmark as it is can show.
    """
    from ..analysis.plan import plan
    from ..leaderboard import shipped

    printing = {name: choices.pop(name) for name in ("form", "output", "details", "quiet", "debug")}
    plot, profile = choices.pop("plot"), choices.pop("reference")
    sources, sigma2 = choices.pop("sources") + more, choices.pop("sigma2")
    if more and not _belongs(sources, more):
        raise InputError(f"{more[0]!r}: runs to take the noise from are named with --from")
    names = {name: choices.pop(name) for name in ("tasks", "metrics", "scorers")}
    how = {name: choices.pop(name) for name in _OF_RUNS}
    choices["alpha"] = _alpha(choices.pop("level"), choices["alpha"])
    choices["looks"] = options.looks(choices["looks"])
    runs: Sequence[str | Run] = ()
    if sigma2 is not None:
        choices["sigma2"] = _numbers("--sigma2", sigma2, "one number, or two with a comma")
    if not sources:
        _check_of_runs()
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
        choices |= names | {name: how.pop(name) for name in _SETTINGS}
        runs, said = _read(sources, names | how)
        choices |= said
    result = plan(runs=runs, **choices)
    if profile is not None:
        result = _borrowed(result, found, accuracy, shipped.sentence(profile))
    options.show(result, printing)
    if plot is not None:
        from ..report import planning

        planning.draw(result, plot)
        options.wrote([plot], printing)


_SETTINGS = ("se", "range", "repeats_are", "seed", "resamples")
_OF_RUNS = (*_SETTINGS, "cluster", "missing", "groups", "columns", "models", "as_repeats")
"""Options that say how the runs of --from are read and what is computed of them."""


def _check_of_runs() -> None:
    """Refuse such an option where no run is named."""
    context = click.get_current_context()
    for name in _OF_RUNS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            flag = {"groups": "--group"}.get(name, "--" + name.replace("_", "-"))
            raise InputError(f"{flag} says how the runs of --from are read: name a run")


def _alpha(level: float | None, alpha: float | None) -> float:
    """The two-sided level of the test, of --level or --alpha."""
    if level is None:
        return 0.05 if alpha is None else alpha
    if alpha is not None:
        raise InputError("--level and --alpha say the same (alpha = 1 − level): give one of them")
    return round(1 - level, 12)


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

    models, repeated = how.pop("models"), how["as_repeats"]
    reading = options.read_options(how)
    if models is None and not repeated:
        said = ("cluster", "missing", "groups", "columns")
        return sources, {name: getattr(reading, name) for name in said}
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
