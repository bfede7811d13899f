"""The public functions on runs: `read`, `analyze`, `compare`, and the others that commands call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from ..data.notes import Note, merge_notes
from ..data.scores import Run
from ..errors import InputError, check_count
from ..extras import module_of
from ..io import registry
from ..io.paths import PathInput
from ..io.sources import Source, Sources, listed, names
from ..results.rows import Analysis, Comparison
from ..settings import Settings, check_obeyed
from .keywords import Choices, Request

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    import pandas as pd

    Number = float | tuple[int, int]

OF_EXTRAS = ("by", "complete", "looks", "profile")
"""Keywords for whose work an extra is asked."""


def read(
    path: PathInput | pd.DataFrame,
    *,
    factors: Sequence[str] = (),
    fields: Sequence[str] = (),
    strict: bool = False,
    **choices: Unpack[Choices],
) -> list[Run]:
    """Read lm-eval outputs, Inspect logs or score tables into a list of runs, one for each model.

    Parameters
    ----------
    path
        A file or a folder: a path, a URL that fsspec knows (``s3://``, ``gs://``, …) or a ``upath.UPath``; or a
        DataFrame (pandas, polars) with the columns of a score table.
    factors
        Columns of a table, or arguments of a task, that say what each answer was made with.
    fields
        Properties of the questions to be read along, as a cluster's SPEC, into `Questions.fields`.
    strict
        A file that cannot be used is an error even if others of the folder can. Otherwise it is left out with a note.
    **choices
        `cluster`, `missing`, and how paths are read: see `Choices`.

    Returns
    -------
    list of Run
        One for each model, or each run with `apart`; a list also of one.

    Raises
    ------
    InputError
        Nothing there can be used: no file, an unknown format, a column or field that is not there, scores that are
        not numbers. It says what and where.
    """
    request = Request.of("read", None, choices, factors=names(factors), fields=names(fields), strict=strict)
    return registry.read(path, request.options)


def analyze(
    *runs: Sources | Number | Sequence[Source | Number],
    by: Sequence[str] = (),
    complete: Sources = (),
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Analysis:
    """Return every mean of one or several runs, with its standard error and confidence interval.

    Parameters
    ----------
    *runs
        A path, a Run, a DataFrame with a row for each answer, or several of them, one after the other, in a list, or
        under names of yours, ``{"new": frame}``; or the count of right answers and the number of questions,
        ``(17, 20)``.
    by
        Properties of the questions, as a cluster's SPEC: also the estimates of every slice; ``"auto"``: every field.
    complete
        Runs that have answered everything, from which the mean of the whole benchmark follows if a run answered a
        random subset of it; or a noise profile that has its questions.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `se`, `interval`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Analysis
        One estimate for each task, metric and scorer, then for each group of tasks, then the overall rows. Means and
        standard errors are on the metric's own scale.

    Raises
    ------
    InputError
        A run that cannot be read (see `read`); a task, metric, cluster or property that is not there; a setting out
        of range, about differences only (`test`), or that these scores cannot have (Wilson's interval without a
        `range`).

    References
    ----------
    Miller (2024), "Adding error bars to evals", arXiv:2411.00640, §2; Wang (2025), "Measuring all the noises of
    LLM evals", arXiv:2512.21326, §3.
    """
    from ..analysis.mean import analyze_runs
    from ..analysis.overall import overall_estimates, unknown_weights

    given: list[Any] = [
        source for run in runs for source in ([run] if _score_or_count(run) is not None else listed(run))
    ]
    by, whole = names(by), listed(complete)
    sources = [
        _run_of_count(count) if isinstance(count := _score_or_count(source), tuple) else source for source in given
    ]
    own = {"by": by, "complete": whole}
    request = Request.of("analyze", settings, choices, own, sources=[*sources, *whole], fields=by)
    request.check_measures(complete=whole)
    read_runs = request.prepared(request.runs(sources, some=True, tell_apart=True))
    result = analyze_runs(read_runs, request.settings, overall_estimates)
    result = replace(result, notes=merge_notes(result.notes, unknown_weights(read_runs, request.settings)))
    if by:
        result = module_of("by").slices_of_runs(read_runs, by, request.settings).beside(result)
    if known := request.complete(whole):
        rows, notes = module_of("complete").full_means(read_runs, known, request.settings)
        result = replace(result, full_benchmark=rows, notes=(*result.notes, *notes))
    return result


def compare(
    a: Sources | Number | Sequence[Source | Number],
    b: Source | Number | Sequence[Source] | None = None,
    *,
    against: Source | None = None,
    models: Sequence[str] = (),
    by: Sequence[str] = (),
    questions: int = 0,
    profile: str | Path | None = None,
    complete: Sources = (),
    looks: int | str | None = None,
    by_question: bool = False,
    answers_b: float | None = None,
    n: int | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Comparison:
    """Return A − B, paired by question, with test and interval, for every metric that both runs measured.

    Parameters
    ----------
    a
        A path, a Run or a DataFrame, of one model; without `b` all that holds A and B, such as two of them under names
        of yours, ``{"new": frame, "old": other}``. Without the runs:
        counts of right answers, ``(74, 100)``, or a bare score, ``0.71``, whose noise `profile` names.
    b
        The run that A is compared with.
    against
        The run that every run of `a` is compared with, in place of `b`.
    models
        Names of A and B, if `a` holds more than two models; of counts and bare scores what they are called.
    by
        Properties of the questions, as a cluster's SPEC: also the differences of every slice; ``"auto"``: every field.
    questions
        List this many of the questions that flipped most, as `Comparison.questions`.
    profile
        Of bare scores: the noise profile of their benchmark, by name (`profiles`) or file.
    complete
        Runs that have answered everything, from which the difference on the whole benchmark follows if A answered a
        random subset of it; or a noise profile that has its questions.
    looks
        A is still running: correct for this number of repeated looks, or ``"anytime"``; the looks are kept in a file
        beside the run.
    by_question
        Also keep A and B question by question, as `Comparison.by_question`.
    answers_b
        `b` is a published number on the same questions, with so many answers to each; infinite if it was greedy.
    n
        `b` is a published number on so many other questions.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `se`, `interval`, `test`, `adjust`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Comparison
        One difference for each task, metric and scorer that both have, then for each group of tasks, then the overall
        rows. Means, differences and standard errors are on the metric's own scale.

    Raises
    ------
    InputError
        What `analyze` refuses; no run or several on a side, or no question in common; a bare score without `profile`,
        `answers_b` or `n`; `looks` outside 1 to 50; a negative `margin`.

    References
    ----------
    Miller (2024), arXiv:2411.00640, §4; Wang (2025), arXiv:2512.21326, §3.3; Bell & McCaffrey (2002) for CR2 and
    its degrees of freedom.
    """
    stopping = None if looks is None else module_of("looks")
    by, models = names(by), names(models)
    sides: list[Any] = [[x] if _score_or_count(x) is not None else listed(x) for x in ((a,) if b is None else (a, b))]
    sources, whole = [source for side in sides for source in side], listed(complete)
    numbers, base = [_score_or_count(source) for source in sources], [] if against is None else listed(against)
    check_count("questions", questions, least=0)
    extras = {"questions": questions or None, "by_question": by_question}
    own: dict[str, Any] = extras | {"by": by, "looks": looks, "against": base, "complete": whole}
    of_numbers = {"answers_b": answers_b, "n": n, "profile": profile}
    own |= of_numbers
    for name, value in of_numbers.items():
        if value is not None:
            module_of(name)
    form = "compare"
    pairs: list[tuple[Run, Run]] = []
    if any(number is not None for number in numbers):
        form = "counts" if all(isinstance(number, tuple) for number in numbers) else "profile"
        form = "published" if [type(number) for number in numbers] == [type(None), float] else form
    request = Request.of("compare", settings, choices, own, form=form, sources=(*sources, *base, *whole), fields=by)
    if request.settings.unpaired:
        check_obeyed("unpaired", extras)
    request.check_measures(complete=whole, looks=looks)
    if form == "published":
        numbers_of = module_of("answers_b", "a comparison with a published number")
        result: Comparison = numbers_of.compare_with_published(sources[0], numbers[1], answers_b, n, request)
    elif form != "compare":
        result = _compare_numbers(numbers, models, profile, request)
    else:
        known = request.complete(whole)
        pairs = request.pair(sides, models, base)
        each = {id(run): run for pair in pairs for run in pair}
        prepared = dict(zip(each, request.prepared([*each.values()]), strict=True))
        pairs = [(prepared[id(first)], prepared[id(second)]) for first, second in pairs]
        result = _compare_pairs(pairs, known, request.settings, by, questions)
        if stopping is not None:
            result = stopping.looked(result, pairs, known, request.settings, looks)
        if by_question:
            from ..analysis.comparison import by_question as each_question

            why = "no table question by question: groups and corpus metrics aside, the runs share no question"
            tables = each_question(pairs)
            said = () if tables else (Note("nothing_shared", why),)
            result = replace(result, by_question=tables, notes=(*result.notes, *said))
    if pairs and looks is None:
        from ..analysis.overall import with_differences

        result = with_differences(result, pairs, request.settings)
    return result


def _compare_pairs(
    pairs: list[tuple[Run, Run]], known: list[Run], settings: Settings, by: Sequence[str], questions: int
) -> Comparison:
    """Compare all pairs (A, B), whose metrics it names alike in place, with slices and estimates by complete runs."""
    from ..analysis.comparison import compare_runs
    from ..data.native_values import agreed_pairs

    pairs[:], _ = agreed_pairs(pairs)
    result = compare_runs(pairs, settings, questions)
    if by:
        result = module_of("by").slices_of_pairs(pairs, by, settings).beside(result)
    if known:
        rows, notes = module_of("complete").full_differences(pairs, known, settings)
        result = replace(result, full_benchmark=rows, notes=(*result.notes, *notes))
    return result


def _score_or_count(side: object) -> Number | None:
    """Return a number as a float (a bare score), a tuple of two whole numbers as a count, None for anything else."""
    if isinstance(side, Real) and not isinstance(side, bool):
        return float(side)
    if not isinstance(side, tuple) or len(side) != 2:
        return None
    right, total = side
    counted = isinstance(total, Integral) and isinstance(right, Real) and float(right).is_integer()
    return (int(right), int(total)) if counted else None


_MOST_COUNTED = 1_000_000


def _run_of_count(count: tuple[int, int]) -> Run:
    """Return a run of 1s and 0s that stands for a count (right, n). Refuse what is no count.

    Raises:
        InputError: more right answers than questions, or none.
    """
    from ..analysis.sample import as_scores

    right, n = count
    if not (0 <= right <= n and 1 <= n <= _MOST_COUNTED):
        raise InputError(
            f"{right}/{n} is no count of right answers and questions (at most {_MOST_COUNTED:,}), as 17/20"
        )
    scores = as_scores([1.0] * right + [0.0] * (n - right), metric="counts", higher_is_better=True, bounds=(0.0, 1.0))
    return Run(f"{right} of {n}", f"{right}/{n}", "counts", scores=(scores,))


def _compare_numbers(
    numbers: Sequence[Number | None], models: Sequence[str], profile: str | Path | None, request: Request
) -> Comparison:
    """Compare two counts (Fisher's exact test), or two bare scores by a stored noise profile. Refuse all else.

    The profile has the noise of their benchmark.
    """
    if len(models) not in (0, 2):
        raise InputError(f"`models` {','.join(models)}: name two models")
    called, settings = (models[0], models[1]) if models else ("A", "B"), request.settings
    counts = [number for number in numbers if isinstance(number, tuple)]
    if len(counts) == len(numbers):
        if len(counts) != 2:
            raise InputError(f"{len(counts)} counts are given: compare two, as 74/100 66/100")
        compared: Comparison = module_of("answers_b", "a comparison of two counts").of_counts(*counts, called, settings)
        return compared
    scores = [number for number in numbers if isinstance(number, float)]
    if not len(scores) == len(numbers) == 2:
        raise InputError(
            "A and B are runs, paths or DataFrames. For arrays of scores use `estimate_difference`. With the noise "
            "profile of a benchmark in `profile` they are two numbers, such as 0.71 and 0.68"
        )
    if profile is None:
        raise InputError(_no_noise(scores))
    noise = module_of("profile")
    known = noise.chosen(profile, request.options)
    row = noise.compare(known, *scores, names=called, level=settings.level, margin=settings.margin)
    source = noise.sentence(profile)
    return Comparison(settings.to_dict(), (row,), () if source is None else (Note("source", source),))


def _no_noise(numbers: Sequence[float]) -> str:
    shares = [x / 100 if x > 1 else x for x in numbers]
    return (
        f"{' and '.join(f'{x:g}' for x in numbers)} are bare numbers, which say nothing of their noise. If you know "
        "how many questions there were, give the counts of right answers: of 500 questions "
        f"{' and '.join(f'{500 * x:.0f}/500' for x in shares)}. If you know the benchmark, give scores in [0, 1] "
        "and name it: `profile='gpqa_diamond'` (`profiles` lists the names). Best, give the runs themselves"
    )
