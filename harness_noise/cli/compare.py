"""`harness-noise compare A B`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from . import options

if TYPE_CHECKING:
    from ..analysis.gate import Gate
    from ..data.scores import ReadOptions, Run
    from ..results.rows import Comparison, Difference
    from ..settings import Settings


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
    help="Exit with 1 if A is worse than B by more than the margin in any row (Holm within each family).",
)
@click.option("--combine", is_flag=True, help="What all rows (independent tasks or models) say together.")
@options.BY
@click.option("--questions", type=click.IntRange(0), default=0, metavar="N", help="List N questions that flipped.")
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A and B are bare numbers; the noise comes from this benchmark's profile (see arena).",
)
@click.option("--html", type=options.Output(dir_okay=False), metavar="FILE", help="Write a page.")
@options.printing
def command(runs: tuple[str, ...], **choices: Any) -> int:
    """A − B of two runs, paired by question, with a test.

    A and B are matched question by question; A is the candidate, B the baseline. Where only counts
    are known, write them as 74/100 66/100.
    """
    from ..analysis.comparison import compare_runs

    profile, together = choices.pop("reference"), choices.pop("combine")
    baseline, models = choices.pop("baseline"), choices.pop("models")
    by = choices["by"]
    gate, page, questions = choices.pop("fail_on"), choices.pop("html"), choices.pop("questions")
    # a gate must not pass because the file with the regression could not be read
    reading, repeated = options.read_options(choices, strict=gate == "regression"), choices.pop("as_repeats")
    if by and (profile is not None or all(_COUNTS.fullmatch(item) for item in runs)):
        raise InputError(f"--by {by[0]}: bare numbers have no questions to slice")
    if all(_COUNTS.fullmatch(item) for item in runs):
        return _finish(_counts(runs, models, options.settings(choices)), choices, gate, page)
    if profile is not None:
        result = _bare(runs, profile, models, reading, options.settings(choices))
        return _finish(result, choices, gate, page)
    # of two places, what lies in one is joined, though both may call the model by one name
    sides = [(run,) for run in runs] if repeated and len(runs) == 2 and baseline is None else [runs]
    found = [run for side in sides for run in options.read_runs(side, reading, as_repeats=repeated)]
    if baseline is not None:
        if models is not None:
            raise InputError("--models chooses A and B; with --baseline all given runs are A: leave one of the two out")
        against = _one(options.read_runs([baseline], reading, as_repeats=repeated), baseline)
        pairs = [(run, against) for run in found if not _same(run, against)]
        if not pairs:
            raise InputError(f"--baseline {baseline}: no other run is given; name what is compared with it")
    else:
        pairs = [pair_of(found, runs, models)]
    settings = options.settings(choices)
    result = compare_runs(pairs, settings, questions)
    if by:
        from ..analysis.slices import slices_of_pairs

        result = slices_of_pairs(pairs, by, settings).beside(result)
    if together:
        from ..analysis.combine import combine

        groups = {group.name for pair in pairs for run in pair for group in run.groups}
        rows = combine(row for row in result.comparisons if row.task not in groups)
        result = replace(result, combined=rows)
    return _finish(result, choices, gate, page)


def _finish(result: Comparison, choices: dict[str, Any], gate: str, page: Path | None) -> int:
    """Show the result; the exit code of the gate."""
    options.show(result, choices)
    if page is not None:
        from ..io.atomic import write_text
        from ..report import html

        write_text(page, html.page(result))
    if gate != "regression":
        return 0
    from ..analysis.gate import regressions

    found = regressions(result)
    options.hints(_told(found))
    return 1 if found.tripped else 0


def _told(found: Gate) -> list[str]:
    """What the gate did, also where it lets everything pass."""
    from ..report.columns import interval_name

    how = "Holm over each family of rows" if found.adjust == "holm" else "unadjusted (--adjust none)"
    kinds = dict.fromkeys(interval_name(row) for row in found.rows if row.interval != "none")
    shown = ", ".join(list(kinds)[:4]) + (", …" if len(kinds) > 4 else "")
    test = f"one-sided at {100 * found.alpha:g} %, {how}, by the intervals shown: {shown or 'none'}"
    rows = f"{len(found.worse)} of {len(found.rows)} rows worse by more than {found.margin:g}"
    lines = [f"--fail-on regression: {'fail' if found.tripped else 'pass'}, {rows} ({test})"]
    for a, b in dict.fromkeys((row.model_a, row.model_b) for row in found.worse):
        names = [_name(row) for row in found.worse if (row.model_a, row.model_b) == (a, b)]
        lines.append(f"{a} is worse than {b} on {', '.join(names)}")
    return [*lines, *(f"--fail-on regression cannot judge {_name(row)}: it has no interval" for row in found.unjudged)]


def _name(row: Difference) -> str:
    return f"{row.task} {row.metric}".strip()


_COUNTS = re.compile(r"(\d+)/(\d+)")


def _counts(runs: tuple[str, ...], models: str | None, chosen: Settings) -> Comparison:
    """Two counts of right answers, `74/100 66/100`: Fisher's exact test, the pairing lost.

    The verdict is the test's; the interval beside it is that of Agresti & Caffo (2000).
    """
    from ..report.columns import p_text
    from ..results.rows import Comparison, Difference
    from ..settings import check_scale
    from ..stats.combine import fisher_exact, two_proportions
    from ..stats.intervals import agresti_caffo

    if len(runs) != 2:
        raise InputError(f"{len(runs)} counts are given: compare two, as 74/100 66/100")
    check_scale("--margin", chosen.margin, (0.0, 1.0), "a share of right answers")
    x, n, y, m = (int(number) for item in runs for number in item.split("/"))
    try:
        exact, z = fisher_exact(x, n, y, m), two_proportions(x, n, y, m)
    except ValueError as error:
        raise InputError(str(error)) from None
    names = _two_names(models)
    ci, narrow = (agresti_caffo(x / n, n, y / m, m, level) for level in (chosen.level, max(0.0, 2 * chosen.level - 1)))
    words = "not separable"
    if exact.p_value < 1 - chosen.level:
        words = "A better" if exact.diff > 0 else "B better"
    elif chosen.margin is not None and -chosen.margin < narrow.low and narrow.high < chosen.margin:
        words = f"equivalent within {chosen.margin:g}"
    empty: dict[str, Any] = dict.fromkeys(
        ("se", "df", "p_sign", "wins_a", "wins_b", "ties", "correlation", "se_unpaired",
         "se_total", "se_data", "se_prediction", "var_data", "var_prediction", "design_effect", "mde")
    )  # fmt: skip
    row = Difference(
        task="", metric="counts", scorer="none", higher_is_better=None, model_a=names[0], model_b=names[1],
        n_questions=n + m, n_clusters=n + m, n_only_a=n, n_only_b=m, repeats_a=1, repeats_b=1, mean_a=x / n,
        mean_b=y / m, diff=exact.diff, ci_low=ci.low, ci_high=ci.high, level=chosen.level,
        statistic=z.statistic, p_value=exact.p_value,
        p_adjusted=exact.p_value, test="fisher", interval="agresti-caffo",
        verdict=words, diagnostics=("unpaired",), **empty,
    )  # fmt: skip
    p = p_text(z.p_value)
    p = p if p.startswith("<") else f"= {p}"
    notes = (exact.note, f"pooled two-proportion z test: z = {z.statistic:.3f}, p {p}")
    return Comparison(chosen.to_dict(), (row,), notes)


def _two_names(models: str | None) -> tuple[str, str]:
    names = tuple(name.strip() for name in models.split(",")) if models else ("A", "B")
    if len(names) != 2:
        raise InputError(f"--models {models}: name two models")
    return names[0], names[1]


def _bare(
    numbers: tuple[str, ...], profile: Path, models: str | None, reading: ReadOptions, chosen: Settings
) -> Comparison:
    """A − B of two leaderboard numbers, with the noise that is characteristic of their benchmark."""
    from ..leaderboard import profiles as reference
    from ..results.rows import Comparison

    try:
        a, b = (float(number) for number in numbers)
    except ValueError:
        raise InputError("with --reference, A and B are two numbers: compare 0.655 0.640 --reference FILE") from None
    wanted = [items[0] if items else None for items in (reading.tasks, reading.metrics, reading.scorers)]
    one = reference.choose(reference.read(profile), *wanted)
    row = reference.compare(one, a, b, names=_two_names(models), level=chosen.level, margin=chosen.margin)
    return Comparison(chosen.to_dict(), (row,))


def pair_of(found: list[Run], paths: tuple[str, ...], models: str | None) -> tuple[Run, Run]:
    """The two runs that are meant, A first. Of a model whose files are many, all its tasks are."""
    from ..io.joining import joined

    names = list(dict.fromkeys(run.model for run in found))
    if models is not None:
        wanted = [name.strip() for name in models.split(",")]
        unknown = [name for name in wanted if name not in names]
        if unknown or len(set(wanted)) != 2 or len(wanted) != 2:
            what = f"{unknown[0]!r} is not there" if unknown else "name two models"
            raise InputError(f"--models {models}: {what}; the models are {', '.join(names)}")
        found = [run for name in wanted for run in found if run.model == name]
        names = wanted
    if len(found) > 2 and len(names) == 2:
        found = joined(found, " ".join(paths))
    if len(found) == 2:
        return found[0], found[1]
    if len(found) == 1:
        raise InputError(f"{paths[0]} holds one run ({names[0]}): name a second run to compare it with")
    listed = ", ".join(f"{run.model} ({run.name})" if len(names) < len(found) else run.model for run in found)
    raise InputError(
        f"{len(found)} runs are given: {listed}. Name two files or folders, choose two models with --models A,B, "
        "compare all of them with one by --baseline RUN, or join the runs of one model with --as-repeats"
    )


def _one(found: list[Run], path: str) -> Run:
    if len(found) != 1:
        raise InputError(f"--baseline {path} holds {len(found)} runs: name one")
    return found[0]


def _same(one: Run, other: Run) -> bool:
    """The baseline itself, given once more among the runs (`runs/* --baseline runs/old`)."""
    if not one.path or not other.path or one.model != other.model:
        return False
    return Path(one.path).resolve() == Path(other.path).resolve()
