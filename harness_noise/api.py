"""The public functions on runs: `read`, `analyze`, `compare`, `arena`; the commands are thin clients of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .analysis.comparison import compare_runs
from .analysis.mean import analyze_runs
from .analysis.slices import slices_of_pairs, slices_of_runs
from .data.scores import Run
from .io import registry as adapters
from .io.paths import PathInput
from .io.sources import Source, listed, names, only_run, reading, runs_of
from .results.arena import Arena
from .results.rows import Analysis, Comparison
from .settings import Adjust, Estimator, Interval, Missing, QuestionsAre, RepeatsAre, Settings, Test

if TYPE_CHECKING:
    import pandas as pd


def read(
    path: PathInput | pd.DataFrame,
    *,
    cluster: str | None = None,
    missing: Missing = "drop",
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    scorers: Sequence[str] = (),
    groups: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    apart: bool = False,
    factors: Sequence[str] = (),
    fields: Sequence[str] = (),
    strict: bool = False,
) -> list[Run]:
    """Read lm-eval outputs, Inspect logs or score tables.

    Parameters
    ----------
    path
        A file or a folder: a path, a URL that fsspec knows (``s3://``, ``gs://``, …) or a ``upath.UPath``; or a
        DataFrame (pandas, polars) with the columns of a score table.
    cluster
        What related questions share: a field, a dotted path, a Jinja template, ``"task"``, ``"none"`` or
        ``"auto"``; ``"A*B"`` for two crossed ways. None: the clusters that the run carries.
    missing
        Errored or missing answers: ``"drop"`` leaves them out, ``"zero"`` counts them as wrong.
    tasks, metrics, scorers
        Only these; globs for tasks. Empty: all.
    groups
        Name of a new group → glob of the tasks that it averages.
    columns
        Our name of a column (``"question"``, ``"score"``, …) → the file's.
    apart
        Every run by itself, in place of one run of each model in a folder.
    factors
        Columns of a table, or arguments of a task, that say what each answer was made with.
    fields
        Properties of the questions to be read along, as a cluster's SPEC, into `Questions.fields`.
    strict
        A file that cannot be used is an error also where others of the folder can; else it is left out with a note.

    Returns
    -------
    list of Run
        One for each model, or each run with `apart`; a list also of one.

    Raises
    ------
    InputError
        Nothing there can be used; says what and where.
    """
    options = reading(Settings(cluster=cluster, missing=missing), tasks, metrics, scorers, groups, columns, apart)
    return adapters.read(path, replace(options, factors=names(factors), fields=names(fields), strict=strict))


def analyze(
    run: Source | Sequence[Source],
    *,
    cluster: str | None = None,
    level: float = 0.95,
    se: Estimator = "cr2",
    interval: Interval = "auto",
    range: tuple[float, float] | None = None,
    repeats_are: RepeatsAre = "answers",
    questions_are: QuestionsAre = "population",
    missing: Missing = "drop",
    seed: int = 0,
    resamples: int = 10_000,
    by: Sequence[str] = (),
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    scorers: Sequence[str] = (),
    groups: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    apart: bool = False,
) -> Analysis:
    """The noise of every mean of one or several runs.

    Parameters
    ----------
    run
        A path, a Run, a DataFrame with a row for each answer, or several of them.
    cluster
        What related questions share: a field, a dotted path, a Jinja template, ``"task"``, ``"none"`` or
        ``"auto"``; ``"A*B"`` for two crossed ways. None: the clusters that the run carries.
    level
        Coverage of the confidence intervals, in (0, 1).
    se
        Variance estimator of the clusters' scores: ``"cr2"``; ``"cr0"`` as in the papers (ddof = 0), ``"cr1"``,
        or ``"cr3"``, the jackknife, for very unequal clusters.
    interval
        Interval of a mean; ``"auto"`` is Wilson's for a metric with a range, else t.
    range
        Lowest and highest value of the metric; None: what the run declares.
    repeats_are
        ``"answers"``: independent ones; ``"runs"``: seeds or prompts that move all questions together.
    questions_are
        ``"population"``: a sample of the questions that could be asked; ``"fixed"``: only these, judged from
        the repeats alone.
    missing
        Errored or missing answers: ``"drop"`` leaves them out, ``"zero"`` counts them as wrong.
    seed
        Of the resampling tests and intervals.
    resamples
        How many of them, 100 or more.
    by
        Properties of the questions, as a cluster's SPEC: the same slice by slice; ``"auto"``: every field.
    tasks, metrics, scorers
        Only these, where paths are given; globs for tasks. Empty: all.
    groups
        Name of a new group → glob of the tasks that it averages.
    columns
        Our name of a column (``"question"``, ``"score"``, …) → the file's.
    apart
        Every run by itself, in place of one run of each model in a folder.

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
    settings = Settings(
        cluster=cluster, level=level, se=se, interval=interval, range=range, repeats_are=repeats_are,
        questions_are=questions_are, missing=missing, seed=seed, resamples=resamples,
    )  # fmt: skip
    by = names(by)
    options = replace(reading(settings, tasks, metrics, scorers, groups, columns, apart), fields=by)
    runs = adapters.those_with(partial(runs_of, item, options) for item in listed(run))
    result = analyze_runs(runs, settings)
    return slices_of_runs(runs, by, settings).beside(result) if by else result


def compare(
    a: Source | Sequence[Source],
    b: Source | Sequence[Source],
    *,
    cluster: str | None = None,
    level: float = 0.95,
    se: Estimator = "cr2",
    interval: Interval = "auto",
    test: Test = "t",
    adjust: Adjust = "holm",
    margin: float | None = None,
    unpaired: bool = False,
    range: tuple[float, float] | None = None,
    repeats_are: RepeatsAre = "answers",
    runs_shared: bool = False,
    questions_are: QuestionsAre = "population",
    missing: Missing = "drop",
    seed: int = 0,
    resamples: int = 10_000,
    by: Sequence[str] = (),
    questions: int = 0,
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    scorers: Sequence[str] = (),
    groups: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    apart: bool = False,
) -> Comparison:
    """A − B, paired by question, for everything that both runs measured.

    Parameters
    ----------
    a
        A path, a Run or a DataFrame, of one model.
    b
        The run that it is compared with.
    cluster
        What related questions share: a field, a dotted path, a Jinja template, ``"task"``, ``"none"`` or
        ``"auto"``; ``"A*B"`` for two crossed ways. None: the clusters that the run carries.
    level
        Coverage of the confidence intervals, in (0, 1).
    se
        Variance estimator of the clusters' scores: ``"cr2"``; ``"cr0"`` as in the papers (ddof = 0), ``"cr1"``,
        or ``"cr3"``, the jackknife, for very unequal clusters.
    interval
        ``"auto"``: the test's own, else ``"t"`` with Bell & McCaffrey's degrees of freedom; or ``"bootstrap"``.
    test
        Of a difference: ``"t"``, ``"sign"``, ``"permutation"``, ``"bootstrap"``, or ``"wild"``, the wild cluster
        bootstrap, for few or very unequal clusters.
    adjust
        p-values over each family of rows: ``"holm"``, ``"bh"`` (Benjamini & Hochberg) or ``"none"``.
    margin
        Test equivalence within ±`margin`, on the metric's scale.
    unpaired
        Ignore which question is which: two samples of different questions.
    range
        Lowest and highest value of the metric; None: what the run declares.
    repeats_are
        ``"answers"``: independent ones; ``"runs"``: seeds or prompts that move all questions together.
    runs_shared
        With ``repeats_are="runs"``: run j of A and run j of B share their prompt, seed or judge.
    questions_are
        ``"population"``: a sample of the questions that could be asked; ``"fixed"``: only these, judged from
        the repeats alone.
    missing
        Errored or missing answers: ``"drop"`` leaves them out, ``"zero"`` counts them as wrong.
    seed
        Of the resampling tests and intervals.
    resamples
        How many of them, 100 or more.
    by
        Properties of the questions, as a cluster's SPEC: the same slice by slice; ``"auto"``: every field.
    questions
        List this many of the questions that flipped most, as `Comparison.flips`.
    tasks, metrics, scorers
        Only these, where paths are given; globs for tasks. Empty: all.
    groups
        Name of a new group → glob of the tasks that it averages.
    columns
        Our name of a column (``"question"``, ``"score"``, …) → the file's.
    apart
        Every run by itself, in place of one run of each model in a folder.

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
    settings = Settings(
        cluster=cluster, level=level, se=se, interval=interval, test=test, adjust=adjust, margin=margin,
        unpaired=unpaired, range=range, repeats_are=repeats_are, runs_shared=runs_shared, questions_are=questions_are,
        missing=missing, seed=seed, resamples=resamples,
    )  # fmt: skip
    by = names(by)
    options = replace(reading(settings, tasks, metrics, scorers, groups, columns, apart), fields=by)
    pairs = [(only_run(a, options), only_run(b, options))]
    result = compare_runs(pairs, settings, questions)
    return slices_of_pairs(pairs, by, settings).beside(result) if by else result


def arena(
    runs: Source | Sequence[Source],
    *,
    baseline_model: str | None = None,
    top: int | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    se: Estimator = "cr2",
    interval: Interval = "auto",
    test: Test = "t",
    adjust: Adjust = "holm",
    margin: float | None = None,
    range: tuple[float, float] | None = None,
    questions_are: QuestionsAre = "population",
    missing: Missing = "drop",
    seed: int = 0,
    resamples: int = 10_000,
    by: Sequence[str] = (),
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    scorers: Sequence[str] = (),
    groups: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    apart: bool = False,
) -> Arena:
    """Every pair of many runs, and the noise that is characteristic of each benchmark.

    Parameters
    ----------
    runs
        A path that holds several runs, or several paths or Runs.
    baseline_model
        A model that becomes B in all its pairs.
    top
        K, to ask which models may be among the K best.
    cluster
        What related questions share: a field, a dotted path, a Jinja template, ``"task"``, ``"none"`` or
        ``"auto"``; ``"A*B"`` for two crossed ways. None: the clusters that the run carries.
    level
        Coverage of the confidence intervals, in (0, 1).
    se
        Variance estimator of the clusters' scores: ``"cr2"``; ``"cr0"`` as in the papers (ddof = 0), ``"cr1"``,
        or ``"cr3"``, the jackknife, for very unequal clusters.
    interval
        Interval of a model's mean; ``"auto"`` is Wilson's for a metric with a range, else t.
    test
        Of a difference: ``"t"``, ``"sign"``, or ``"wild"``, the wild cluster bootstrap,
        for few or very unequal clusters.
    adjust
        p-values over the pairs of each benchmark: ``"holm"``, ``"bh"`` (Benjamini & Hochberg) or ``"none"``.
    margin
        Test equivalence within ±`margin`, on the metric's scale.
    range
        Lowest and highest value of the metric; None: what the run declares.
    questions_are
        ``"population"``: a sample of the questions that could be asked; ``"fixed"``: only these, judged from
        the repeats alone.
    missing
        Errored or missing answers: ``"drop"`` leaves them out, ``"zero"`` counts them as wrong.
    seed
        Of the resampling tests and intervals.
    resamples
        How many of them, 100 or more.
    by
        Properties of the questions, as a cluster's SPEC: the models' means slice by slice; ``"auto"``: every field.
    tasks, metrics, scorers
        Only these, where paths are given; globs for tasks. Empty: all.
    groups
        Name of a new group → glob of the tasks that it averages.
    columns
        Our name of a column (``"question"``, ``"score"``, …) → the file's.
    apart
        Every run by itself, in place of one run of each model in a folder.

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
    from .leaderboard.build import arena as compute

    settings = Settings(
        cluster=cluster, level=level, se=se, interval=interval, test=test, adjust=adjust, margin=margin, range=range,
        questions_are=questions_are, missing=missing, seed=seed, resamples=resamples,
    )  # fmt: skip
    by = names(by)
    options = replace(reading(settings, tasks, metrics, scorers, groups, columns, apart), fields=by)
    found = [item for source in listed(runs) for item in runs_of(source, options)]
    return compute(found, settings, baseline=baseline_model, top=top, by=by)
