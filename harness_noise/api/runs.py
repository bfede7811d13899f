"""The public functions on runs: `read`, `analyze`, `compare`, `arena`, and the others that commands call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

from ..data.measures import HIGHER, SCORE
from ..data.scores import Run
from ..errors import InputError, check_count, check_kind, check_one_of
from ..io import registry, workers
from ..io.paths import PathInput, is_path, is_url
from ..io.sources import Source, listed, names, of_models, of_sides, runs_of
from ..results.forms import merge_notes
from ..results.rows import Analysis, Comparison
from ..settings import Settings, check_obeyed
from .keywords import Choices, Request

if TYPE_CHECKING:
    from typing import Unpack

    import pandas as pd

    from ..analysis.sequential import Looks
    from ..results.arena import Arena
    from ..results.explanation import Explanation, Factors

    Number = float | tuple[int, int]

FailOn = Literal["regression", "none"]


def read(
    path: PathInput | pd.DataFrame,
    *,
    factors: Sequence[str] = (),
    fields: Sequence[str] = (),
    strict: bool = False,
    **choices: Unpack[Choices],
) -> list[Run]:
    """Read lm-eval outputs, Inspect logs or score tables.

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
        A file that cannot be used is an error also where others of the folder can; else it is left out with a note.
    **choices
        `cluster`, `missing`, and how paths are read: see `Choices`.

    Returns
    -------
    list of Run
        One for each model, or each run with `apart`; a list also of one.

    Raises
    ------
    InputError
        Nothing there can be used; says what and where.
    """
    request = Request.of("read", None, choices, factors=names(factors), fields=names(fields), strict=strict)
    return registry.read(path, request.options)


def analyze(
    run: Source | Sequence[Source],
    *,
    by: Sequence[str] = (),
    references: Source | Sequence[Source] = (),
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Analysis:
    """The noise of every mean of one or several runs.

    Parameters
    ----------
    run
        A path, a Run, a DataFrame with a row for each answer, or several of them.
    by
        Properties of the questions, as a cluster's SPEC: also the estimates of every slice; ``"auto"``: every field.
    references
        Complete runs, from which the mean of the whole benchmark follows where `run` answered a random part of it; or
        a noise profile that has its questions.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `se`, `interval`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Analysis
        One estimate for each task, metric and scorer, then for each group of tasks. Means and standard errors
        are on the metric's own scale.

    Raises
    ------
    InputError
        Input or settings that cannot be used.

    References
    ----------
    Miller (2024), "Adding error bars to evals", arXiv:2411.00640, §2; Wang (2025), "Measuring all the noises of
    LLM evals", arXiv:2512.21326, §3.
    """
    from ..analysis.mean import analyze_runs

    by, sources, whole = names(by), listed(run), listed(references)
    own = {"by": by, "references": whole}
    request = Request.of("analyze", settings, choices, own, sources=[*sources, *whole], fields=by)
    request.check_measures(references=whole)
    runs = request.corrected(request.runs(sources, some=True))
    result = analyze_runs(runs, request.settings)
    if by:
        from ..analysis.slices import slices_of_runs

        result = slices_of_runs(runs, by, request.settings).beside(result)
    complete = request.references(whole)
    if complete:
        from ..analysis.references import of_runs

        rows, notes = of_runs(runs, complete, request.settings)
        result = replace(result, full_benchmark=rows, notes=(*result.notes, *notes))
    return result


def compare(
    a: Source | Number | Sequence[Source | Number],
    b: Source | Number | Sequence[Source] | None = None,
    *,
    baseline: Source | None = None,
    models: Sequence[str] = (),
    by: Sequence[str] = (),
    questions: int = 0,
    references: Source | Sequence[Source] = (),
    looks: Looks | str | None = None,
    combine: bool = False,
    by_question: bool = False,
    fail_on: FailOn = "none",
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Comparison:
    """A − B, paired by question, for everything that both runs measured.

    Parameters
    ----------
    a
        A path, a Run or a DataFrame, of one model; without `b` all that holds A and B. Where the runs are not at hand:
        counts of right answers, ``(74, 100)``, or a bare score, ``0.71``, whose noise `references` names.
    b
        The run that A is compared with.
    baseline
        The run that every run of `a` is compared with, in place of `b`.
    models
        Names of A and B, where `a` holds more than two models; of counts and bare scores what they are called.
    by
        Properties of the questions, as a cluster's SPEC: also the differences of every slice; ``"auto"``: every field.
    questions
        List this many of the questions that flipped most, as `Comparison.questions`.
    references
        Complete runs, from which the difference on the whole benchmark follows where A answered a random part of it;
        or a noise profile that has its questions; of bare scores their benchmark's noise profile, by name or file.
    looks
        A is still running: correct for this number of repeated looks, or ``"anytime"``; the looks are kept in a file
        beside the run.
    combine
        Also combine all rows, of independent tasks or models, into one test.
    by_question
        Also keep A and B question by question, as `Comparison.by_question`.
    fail_on
        ``"regression"``: also test whether A is worse than B by more than `margin`, as `Comparison.gate`; a file that
        cannot be used is then an error.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `se`, `interval`, `test`, `adjust`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Comparison
        One difference for each task, metric and scorer that both have, then for each group of tasks.

    Raises
    ------
    InputError
        Input or settings that cannot be used, more than one run on a side, or no question in common.

    References
    ----------
    Miller (2024), arXiv:2411.00640, §4; Wang (2025), arXiv:2512.21326, §3.3; Bell & McCaffrey (2002) for CR2 and
    its degrees of freedom.
    """
    by, models = names(by), names(models)
    sides: list[Any] = [[x] if _number(x) is not None else listed(x) for x in ((a,) if b is None else (a, b))]
    sources, whole = [source for side in sides for source in side], listed(references)
    numbers, against = [_number(source) for source in sources], [] if baseline is None else listed(baseline)
    if "columns" in choices:
        choices["columns"] = of_sides(choices["columns"] or {}, sources)
    check_one_of("fail_on", fail_on, FailOn)
    check_count("questions", questions, least=0)
    extras = {"questions": questions or None, "by_question": by_question}
    own = extras | {"by": by, "looks": looks, "combine": combine, "baseline": against, "references": whole}
    form = "compare"
    pairs: list[tuple[Run, Run]] = []
    if any(number is not None for number in numbers):
        form = "counts" if all(isinstance(number, tuple) for number in numbers) else "profile"
    # a gate must not pass because the file with the regression could not be read
    read: dict[str, Any] = {"sources": (*sources, *against, *whole), "fields": by, "strict": fail_on == "regression"}
    request = Request.of("compare", settings, choices, own, form=form, **read)
    if request.settings.unpaired:
        check_obeyed("unpaired", extras)
    request.check_measures(references=whole, looks=looks, combine=combine, fail_on=fail_on != "none")
    if form != "compare":
        result = _of_numbers(numbers, models, whole, request)
    else:
        complete = request.references(whole)
        pairs = request.pair(sides, models, against)
        if request.labels:
            each = {id(run): run for pair in pairs for run in pair}
            corrected = dict(zip(each, request.corrected([*each.values()]), strict=True))
            pairs = [(corrected[id(first)], corrected[id(second)]) for first, second in pairs]
        result = _of_pairs(pairs, complete, request.settings, by, questions)
        if combine:
            from ..analysis.combine import combined

            result = combined(result, pairs)
        if looks is not None:
            result = _looked(result, pairs, complete, request.settings, looks)
        if by_question:
            from ..analysis.comparison import by_question as each_question

            result = replace(result, by_question=each_question(pairs))
    if fail_on == "regression":
        from ..analysis.gate import gated

        result = replace(result, gate=gated(result, pairs, settings=request.settings))
    return result


def _of_pairs(
    pairs: list[tuple[Run, Run]], references: list[Run], settings: Settings, by: Sequence[str], questions: int
) -> Comparison:
    """The comparison of all pairs, with its slices and what references say of whole benchmarks."""
    from ..analysis.comparison import compare_runs
    from ..data.native_values import agreed_pairs

    pairs[:], _ = agreed_pairs(pairs)
    result = compare_runs(pairs, settings, questions)
    if by:
        from ..analysis.slices import slices_of_pairs

        result = slices_of_pairs(pairs, by, settings).beside(result)
    if references:
        from ..analysis.references import of_pairs

        rows, notes = of_pairs(pairs, references, settings)
        result = replace(result, full_benchmark=rows, notes=(*result.notes, *notes))
    return result


def _looked(
    result: Comparison, pairs: list[tuple[Run, Run]], complete: list[Run], settings: Settings, looks: Looks | str
) -> Comparison:
    """The comparison corrected for the looks at A, which are kept beside its file."""
    from ..analysis import growing
    from ..analysis.sequential import StoppingRule

    if len(pairs) != 1 or not pairs[0][0].path or is_url(pairs[0][0].path):
        raise InputError(
            "`looks` is for one run that grows, in a local file or folder, and the one it is compared with"
        )
    if result.slices or result.combined:
        what, other = ("slices", "`by`") if result.slices else ("combined rows", "`combine`")
        raise InputError(f"`looks` corrects rows for repeated looks, but {what} are not: leave `looks` or {other} out")
    memory = growing.beside(pairs[0][0].path)
    looks_taken = growing.look(*pairs[0], settings, StoppingRule.parse("decided", looks=looks).looks, memory, complete)
    note = f"the looks at {pairs[0][0].model} are kept in {memory}"
    return growing.judged_by_looks(replace(result, notes=(*result.notes, note)), looks_taken, settings)


def _number(side: object) -> Number | None:
    """A bare score, or a count of right answers and the number of questions; None for anything else."""
    if isinstance(side, Real):
        return float(side)
    if not isinstance(side, tuple) or len(side) != 2:
        return None
    right, total = side
    counted = isinstance(total, Integral) and isinstance(right, Real) and float(right).is_integer()
    return (int(right), int(total)) if counted else None


def _of_numbers(
    numbers: Sequence[Number | None], models: Sequence[str], profiles: Sequence[Any], request: Request
) -> Comparison:
    """A − B of two counts, by Fisher's exact test, or of two bare scores, with the noise of their benchmark."""
    if len(models) not in (0, 2):
        raise InputError(f"`models` {','.join(models)}: name two models")
    called, settings = (models[0], models[1]) if models else ("A", "B"), request.settings
    counts = [number for number in numbers if isinstance(number, tuple)]
    if len(counts) == len(numbers):
        from ..analysis.combine import compare_counts
        from ..stats.combine import UNPAIRED

        if len(counts) != 2:
            raise InputError(f"{len(counts)} counts are given: compare two, as 74/100 66/100")
        row = compare_counts(counts[0], counts[1], called, settings)
        return Comparison(settings.to_dict(), (row,), (UNPAIRED,))
    scores = [number for number in numbers if isinstance(number, float)]
    if not len(scores) == len(numbers) == 2:
        raise InputError(
            "with the noise profile of a benchmark in `references`, A and B are two numbers, such as 0.71 and 0.68; "
            "for arrays of scores there is `estimate_difference`"
        )
    if len(profiles) != 1:
        of_one = "of bare numbers the noise comes from one profile: name one in `references`"
        raise InputError(of_one if profiles else _no_noise(scores))
    from ..leaderboard import profiles as noise

    profile = request.profile(profiles[0])
    row = noise.compare(profile, *scores, names=called, level=settings.level, margin=settings.margin)
    source = noise.sentence(profiles[0])
    return Comparison(settings.to_dict(), (row,), () if source is None else (source,))


def _no_noise(numbers: Sequence[float]) -> str:
    shares = [x / 100 if x > 1 else x for x in numbers]
    return (
        f"{' and '.join(f'{x:g}' for x in numbers)} are bare numbers, which say nothing of their noise. If you know "
        "how many questions there were, give the counts of right answers: of 500 questions "
        f"{' and '.join(f'{round(500 * x)}/500' for x in shares)}. If you know the benchmark, give scores in [0, 1] "
        "and name it: `references='gpqa_diamond'` (`profiles` lists the names). Best, give the runs themselves"
    )


def explain(
    a: Source | Sequence[Source],
    b: Source | Sequence[Source] | None = None,
    *,
    on: Sequence[str],
    categories: Sequence[str] = (),
    models: Sequence[str] = (),
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Explanation:
    """Regress the scores of a run, or the difference of two, on properties of the questions.

    Parameters
    ----------
    a
        A path or a Run, of one model; or, without `b`, of the two that are compared.
    b
        The run that A is compared with; None: the scores of `a` themselves.
    on
        Properties of the questions, as a cluster's SPEC; numbers as they are, categories against their most
        frequent value.
    categories
        Those of `on` whose numbers are names.
    models
        Names of A, or of A and B, where `a` holds more models.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `adjust`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Explanation
        The coefficients of each fit, with CR2 standard errors, degrees of freedom and intervals.

    Raises
    ------
    InputError
        Input or settings that cannot be used, or fields that explain nothing.

    References
    ----------
    Pustejovsky & Tipton (2018): CR2 and its degrees of freedom for any design matrix.
    """
    from ..analysis.explain import explain_runs

    on, sides = names(on), [listed(side) for side in ((a,) if b is None else (a, b))]
    sources = [source for side in sides for source in side]
    request = Request.of("explain", settings, choices, sources=sources, fields=on)
    if b is not None:
        runs = [*request.pair(sides, names(models))[0]]
    else:
        runs = request.runs(sources)
        if models or not len(runs) == len(sources) == 1:
            runs = of_models(runs, sources, names(models))
    return explain_runs(runs[0], runs[1] if len(runs) > 1 else None, on, request.settings, names(categories))


def arena(
    runs: Source | Sequence[Source],
    *,
    baseline_model: str | None = None,
    top: int | None = None,
    by: Sequence[str] = (),
    frontier: str | None = None,
    over: str | None = None,
    needed: bool = False,
    select: bool = False,
    jobs: int = 1,
    dask: str | None = None,
    strict: bool = False,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Arena:
    """Every pair of many runs, and the noise that is characteristic of each benchmark.

    Parameters
    ----------
    runs
        A path that holds several runs, or several paths or Runs.
    baseline_model
        A model that becomes B in all its pairs.
    top
        K, to test which models could be among the K best.
    by
        Properties of the questions, as a cluster's SPEC: also the models' means in every slice; ``"auto"``: every
        field.
    frontier
        A measure, such as ``"cost"``: also test which models are on the frontier of score and measure.
    over
        The runs are checkpoints: also compare each with the first and with the one before, in the order of the
        numbers behind this word in their names, or of this field, which has one number in each run. ``"step"`` reads
        ``step_1000``, ``checkpoint-500`` and ``global_step2000``.
    needed
        Also compute how many more questions or answers would show which models are worse than the best.
    select
        Also compute how much of the best model's lead comes from its having been chosen as the best of these.
    jobs
        Processes of this machine that read the files.
    dask
        Address of the scheduler of a Dask cluster whose workers read the files, in place of `jobs`.
    strict
        A path that cannot be used is an error; else `say` is told that it is left out.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `se`, `interval`, `test`, `adjust`, …), and how paths
        are read: see `Choices`.

    Returns
    -------
    Arena
        Models, pairs, benchmarks and questions; M models make M(M − 1)/2 pairs for each benchmark.

    Raises
    ------
    InputError
        Input or settings that cannot be used, or nothing that two runs share.

    References
    ----------
    Wang (2025), arXiv:2512.21326, §4.
    """
    from ..leaderboard.build import arena as compute
    from ..leaderboard.ranks import with_budget, with_frontier, with_selection

    by = names(by)
    if frontier is not None:
        choices["measures"] = tuple(dict.fromkeys((*names(choices.get("measures") or ()), SCORE, frontier)))
    sources = listed(runs)
    request = Request.of("arena", settings, choices, {"by": by}, sources=sources, fields=by, strict=strict)
    request.check_measures()
    check_count("top", top)
    check_count("jobs", jobs)
    if dask is not None and jobs > 1:
        raise InputError("`jobs` is for processes of this machine and `dask` for a cluster: give one of them")
    read_runs = request.corrected(request.joined(_read_many(sources, request, jobs, dask, over)))
    result = compute(read_runs, request.settings, baseline=baseline_model, top=top, by=by, over=over)
    if frontier is not None:
        result = with_frontier(result, frontier.removesuffix(HIGHER), request.settings.level)
    result = with_selection(result, request.settings.seed) if select else result
    return with_budget(result) if needed else result


def _read_many(
    sources: Sequence[Source], request: Request, jobs: int, dask: str | None, over: str | None = None
) -> list[Run]:
    """The runs of all sources in their order; the files by all workers at once, without those that cannot be used.

    What is read now has the field `over` where it can; runs that were read before may have it.
    """
    options = request.options
    along = options if over is None else replace(options, fields=(*options.fields, over))

    def watch(answers: Any, total: int) -> Any:
        return request.watched(answers, "reading", total)

    read_units = partial(workers.read_units, jobs=jobs, dask=dask, say=request.say, watch=watch)
    out: list[Run] = []
    for files, group in groupby(sources, key=is_path):
        places: list[Any] = list(group)
        if not files:
            read = [(source, options if isinstance(source, Run) else along) for source in places]
            out += [run for source, how in read for run in runs_of(source, how)]
            continue
        read_runs, errors = registry.read_what_can_be(places, along, read_units)
        if errors and options.strict:
            raise errors[0]
        for error in errors:
            request.say(f"left out: {error}")
        out += read_runs
    return out


def factors(
    runs: Source | Sequence[Source],
    factors: Mapping[str, str],
    *,
    more: int = 1000,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Factors:
    """How much of the noise comes from the prompt, the seed, the judge, over all answers of all runs.

    Parameters
    ----------
    runs
        A path, a Run or several of them; the same question in two tasks or runs is one question. Runs that are read
        already must have been read with their `factors`.
    factors
        Name of a source of noise → the column of the table, or argument of the task, that tells its levels apart; or
        ``"task"``, ``"model"``, ``"run"``; or ``"scorer"`` where several judges graded the same answers, which are then
        compared two by two (`Factors.judges`).
    more
        How many answers the advice is about.
    settings
        Only `missing` is obeyed. None: the defaults.
    **choices
        `missing`, and how paths are read: see `Choices`.

    Returns
    -------
    Factors
        Variance components, and where the next answers help most.

    Raises
    ------
    InputError
        More than one metric, or a column that a run does not have.

    References
    ----------
    Searle, Casella & McCulloch (1992), "Variance Components".
    """
    from ..analysis.factors import RUN_LEVEL, factors_of_runs

    check_kind("factors", factors, Mapping)
    columns = tuple(dict.fromkeys(column for column in factors.values() if column not in RUN_LEVEL))
    sources = listed(runs)
    request = Request.of("factors", settings, choices, sources=sources, factors=columns, apart=True)  # all count
    read_runs = request.runs(sources, some=True)
    result = factors_of_runs(read_runs, factors, more)
    return replace(result, notes=merge_notes(result.notes, *(run.notes for run in read_runs)))
