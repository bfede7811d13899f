"""`harness-noise compare A B`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from . import options
from .flags import noted_in_flags

if TYPE_CHECKING:
    from ..analysis.gate import Gate
    from ..analysis.sequential import Looks
    from ..data.scores import ReadOptions, Run
    from ..results.rows import Comparison, Difference
    from ..settings import Settings


@options.command("compare", consumer="compare", example="harness-noise compare new-run baseline-run --task gsm8k")
@options.RUN
@options.to_read(
    click.option("--baseline", metavar="RUN", help="Compare every given run with this one."),
    options.MODELS,
    options.reading("compare"),
    click.option(
        "--reference",
        "references",
        multiple=True,
        metavar="RUN|NAME|FILE",
        help="A complete run, used to extrapolate from a random subset of the questions (repeatable); or, where A and "
        "B are bare numbers, the benchmark's noise profile (see references, arena).",
    ),
)
@options.to_compute(
    options.computing(
        "compare",
        interval="Interval of the difference; auto: that of the test.",
        margin="Test equivalence within ±M, on the metric's scale; also the slack of --fail-on.",
    ),
    options.BY,
    click.option(
        "--combine", is_flag=True, help="Combine all rows, which must be independent tasks or models, into one answer."
    ),
    click.option("--looks", metavar="L", help="A is still running: correct for repeated looks, such as 5, or anytime."),
    click.option(
        "--fail-on",
        type=click.Choice(["regression", "none"]),
        default="none",
        show_default=True,
        help="Exit with 1 if A is worse than B by more than the margin in any row (Holm over all rows).",
    ),
)
@options.to_show(
    click.option(
        "--questions", type=click.IntRange(0), default=0, metavar="N", help="List the N questions that flipped most."
    ),
    click.option("--wide", is_flag=True, help="With --questions: show whole questions, targets and answers."),
    click.option("--html", type=options.Output(dir_okay=False), metavar="FILE", help="Write an HTML page."),
    options.printing,
)
def command(runs: tuple[str, ...], **choices: Any) -> int:
    """Compare two runs question by question and test the difference.

    The difference is A − B: A, the first RUN, is the candidate, and B the baseline. Where only counts are
    known, write them as 74/100 66/100.
    """
    from ..analysis.comparison import compare_runs
    from ..data.native_values import agreed_pairs

    named, together, looks = choices.pop("references"), choices.pop("combine"), options.looks(choices.pop("looks"))
    baseline, models, by = choices.pop("baseline"), choices.pop("models"), choices["by"]
    gate, page, questions = choices.pop("fail_on"), choices.pop("html"), choices.pop("questions")
    if choices["wide"] and not questions:
        raise InputError("--wide shows the questions of --questions N whole: say how many, as in --questions 5 --wide")
    choices["columns"] = _of_sides(choices["columns"], runs)
    # a gate must not pass because the file with the regression could not be read
    reading, repeated = options.read_options(choices, strict=gate == "regression"), choices.pop("as_repeats")
    if by and (any(map(_is_number, runs)) or all(_COUNTS.fullmatch(item) for item in runs)):
        raise InputError(f"--by {by[0]}: bare numbers have no questions to slice")
    if all(_COUNTS.fullmatch(item) for item in runs):
        return _finish(_counts(runs, models, options.settings(choices)), choices, gate, page)
    if not named and len(runs) > 1 and all(map(_is_number, runs)):
        raise InputError(_no_noise(runs))
    if named and any(map(_is_number, runs)):
        if len(named) > 1:
            raise InputError("of bare numbers the noise comes from one profile: name one --reference FILE")
        result = _bare(runs, Path(named[0]), models, reading, options.settings(choices))
        return _finish(result, choices, gate, page)
    references = options.references(named, reading)
    pairs, _ = agreed_pairs(_pairs(runs, baseline, models, reading, repeated))
    chosen = options.settings(choices)
    result = compare_runs(pairs, chosen, questions)
    if by:
        from ..analysis.slices import slices_of_pairs

        result = slices_of_pairs(pairs, by, chosen).beside(result)
    if references:
        from ..analysis.references import of_pairs

        rows, notes = of_pairs(pairs, references, chosen)
        result = replace(result, full_benchmark=rows, notes=(*result.notes, *notes))
    if together:
        from ..analysis.combine import combined

        result = combined(result, pairs)
    if looks is not None:
        result = _looked(result, pairs, chosen, looks)
    return _finish(result, choices, gate, page, pairs)


def _pairs(
    runs: tuple[str, ...], baseline: str | None, models: str | None, reading: ReadOptions, repeated: bool
) -> list[tuple[Run, Run]]:
    """The runs that are compared: A and B, or all that are given with the baseline."""
    # of two places, what lies in one is joined, though both may call the model by one name
    sides = [(run,) for run in runs] if repeated and len(runs) == 2 and baseline is None else [runs]
    found = [run for side in sides for run in options.read_runs(side, reading, as_repeats=repeated)]
    if baseline is None:
        return [pair_of(found, runs, models)]
    if models is not None:
        raise InputError("--models chooses A and B; with --baseline all given runs are A: leave one of the two out")
    against = _one(options.read_runs([baseline], reading, as_repeats=repeated), baseline)
    pairs = [(run, against) for run in found if not _same(run, against)]
    if not pairs:
        raise InputError(f"--baseline {baseline}: no other run is given; name what is compared with it")
    return pairs


def _of_sides(columns: str | None, runs: tuple[str, ...]) -> str | None:
    """--columns with the paths of two RUNs in place of A: and B:, unless a file is called so."""
    if columns is None or len(runs) != 2 or {Path(run).stem for run in runs} & {"A", "B"}:
        return columns
    sides = dict(zip(("A:", "B:"), runs, strict=True))
    parts = [part.strip() for part in columns.split(",")]
    return ",".join(f"{sides[part[:2]]}:{part[2:]}" if part[:2] in sides else part for part in parts)


def _is_number(text: str) -> bool:
    """0.655, if no file is called so."""
    try:
        float(text)
    except ValueError:
        return False
    return not Path(text).exists()


def _no_noise(numbers: tuple[str, ...]) -> str:
    shares = [f"{float(text) / 100:g}" if float(text) > 1 else text for text in numbers]
    return (
        f"{' and '.join(numbers)} are bare numbers, which say nothing of their noise. Name their benchmark: if it is "
        f"GPQA, `harness-noise compare {' '.join(shares)} --reference gpqa_diamond` (`harness-noise references` lists "
        "the names that are known); or give the counts, as in 74/100 66/100; or the runs themselves"
    )


def _looked(result: Comparison, pairs: list[tuple[Run, Run]], chosen: Settings, looks: Looks) -> Comparison:
    """The comparison with what the looks at A, which grows, say; they are kept beside its file."""
    from ..analysis import growing
    from ..io.paths import is_url

    if len(pairs) != 1 or not pairs[0][0].path or is_url(pairs[0][0].path):
        raise InputError(
            "--looks is for one run that grows, in a local file or folder, and the one it is compared with"
        )
    if result.slices or result.combined:
        what, other = ("slices", "--by") if result.slices else ("combined rows", "--combine")
        raise InputError(f"--looks corrects rows for repeated looks, but {what} are not: leave --looks or {other} out")
    memory = growing.beside(pairs[0][0].path)
    found = growing.look(*pairs[0], chosen, looks, memory)
    note = f"the looks at {pairs[0][0].model} are kept in {memory}"
    return growing.judged_by_looks(replace(result, notes=(*result.notes, note)), found, chosen)


def _finish(
    result: Comparison, choices: dict[str, Any], gate: str, page: Path | None, pairs: Sequence[tuple[Run, Run]] = ()
) -> int:
    """Show the result; the exit code of the gate."""
    result = noted_in_flags(result)
    options.show(result, choices)
    if page is not None:
        from ..analysis.by_question import by_question
        from ..io.atomic import write_text
        from ..report import result_html

        asked = () if result.settings.get("unpaired") else by_question(pairs)
        write_text(page, result_html.page(result, command=options.typed(), questions=asked))
        options.wrote([page], choices)
    if gate != "regression":
        return 0
    from ..analysis.gate import regressions

    found = regressions(result)
    options.hints(_told(found))
    return 2 if found.blind else 1 if found.tripped else 0


def _told(found: Gate) -> list[str]:
    """What the gate did, also where it lets everything pass."""
    from ..report.columns import interval_words

    how = "Holm over all rows" if found.adjust == "holm" else "unadjusted (--adjust none)"
    kinds = dict.fromkeys(interval_words(row) for row in found.rows if row.interval != "none")
    shown = ", ".join(list(kinds)[:4]) + (", …" if len(kinds) > 4 else "")
    test = f"one-sided at {100 * found.alpha:g} %, {how}, by the intervals shown: {shown or 'none'}"
    rows = f"{len(found.worse)} of {len(found.rows)} rows shown to be worse by more than {found.margin:g}"
    said = "fail" if found.tripped else "pass"
    if found.blind:
        few = "no row" if len(found.unjudged) == len(found.rows) else "not every row"
        said = f"{few} could be judged, which is no pass (exit code 2)"
    lines = [f"--fail-on regression: {said}, {rows} ({test})"]
    lines += [
        f"--fail-on regression: the {row.n_missing:,} missing answers of {_name(row)} could change this: "
        "--missing zero counts them as wrong"
        for row in found.rows
        if "missing_matters" in row.diagnostics
    ]
    for a, b in dict.fromkeys((row.model_a, row.model_b) for row in found.worse):
        names = [_name(row) for row in found.worse if (row.model_a, row.model_b) == (a, b)]
        lines.append(f"{a} is worse than {b} on {', '.join(names)}")
    odd = "its scores do not have the mean that the harness reports (mean_mismatch)"
    return lines + [
        f"--fail-on regression cannot judge {_name(row)}: "
        + (odd if "mean_mismatch" in row.diagnostics else "it has no interval")
        for row in found.unjudged
    ]


def _name(row: Difference) -> str:
    return f"{row.task} {row.metric}".strip()


_COUNTS = re.compile(r"(\d+)/(\d+)")


def _counts(runs: tuple[str, ...], models: str | None, chosen: Settings) -> Comparison:
    """Two counts of right answers, `74/100 66/100`: Fisher's exact test, the pairing lost."""
    from ..analysis.counts import compare_counts
    from ..results.rows import Comparison

    chosen.check("counts")
    if len(runs) != 2:
        raise InputError(f"{len(runs)} counts are given: compare two, as 74/100 66/100")
    (x, n), (y, m) = (map(int, item.split("/")) for item in runs)
    row, exact = compare_counts((x, n), (y, m), _two_names(models or "A,B"), chosen)
    return Comparison(chosen.to_dict(), (row,), (exact.note,))


def _two_names(models: str) -> tuple[str, str]:
    names = tuple(name.strip() for name in models.split(","))
    if len(names) != 2:
        raise InputError(f"--models {models}: name two models")
    return names[0], names[1]


def _bare(
    numbers: tuple[str, ...], profile: Path, models: str | None, reading: ReadOptions, chosen: Settings
) -> Comparison:
    """A − B of two leaderboard numbers, with the noise that is characteristic of their benchmark."""
    from ..leaderboard import profiles as reference
    from ..leaderboard import shipped
    from ..results.rows import Comparison

    chosen.check("profile")
    try:
        a, b = (float(number) for number in numbers)
    except ValueError:
        raise InputError("with --reference, A and B are two numbers: compare 0.71 0.68 --reference NAME") from None
    wanted = [items[0] if items else None for items in (reading.tasks, reading.metrics, reading.scorers)]
    one = reference.choose(reference.read(profile), *wanted)
    row = reference.compare(one, a, b, names=_two_names(models or "A,B"), level=chosen.level, margin=chosen.margin)
    told = shipped.sentence(profile)
    return Comparison(chosen.to_dict(), (row,), () if told is None else (told,))


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


def chosen(found: list[Run], paths: tuple[str, ...], models: str | None) -> list[Run]:
    """The one run of the one model that is named, or the two of `pair_of`."""
    if models is None or "," in models:
        return [*pair_of(found, paths, models)]
    out = [run for run in found if run.model == models.strip()]
    if len(out) != 1:
        names = ", ".join(dict.fromkeys(run.model for run in found))
        raise InputError(f"--models {models}: {len(out)} runs are of it; the models are {names}")
    return out


def _one(found: list[Run], path: str) -> Run:
    if len(found) != 1:
        raise InputError(f"--baseline {path} holds {len(found)} runs: name one")
    return found[0]


def _same(one: Run, other: Run) -> bool:
    """The baseline itself, given once more among the runs (`runs/* --baseline runs/old`)."""
    if not one.path or not other.path or one.model != other.model:
        return False
    return Path(one.path).resolve() == Path(other.path).resolve()
