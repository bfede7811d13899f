"""The noise that a plan starts from: of runs that were made, or given as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..data.clusters import both_ways
from ..data.native_values import agreed
from ..data.scores import Run
from ..data.units import PERCENT, Scale
from ..errors import InputError
from ..results.rows import Difference, Estimate
from ..stats.data_limit import chi_square
from ..stats.planning import QUESTIONS, Units, Variances
from ..stats.tolerances import FEWEST_UNITS
from .ranges import Ends, score_range
from .sample import group_parts, group_shares, kernel, sample

if TYPE_CHECKING:
    from ..data.scores import Scores
    from ..settings import Settings

TWO_RUNS = "A − B of two runs"
ONE_RUN = "the mean of one run against a fixed number"
TWO_LIKE_THIS = "two runs like this one, as if unrelated"


@dataclass(frozen=True, slots=True)
class Noise:
    """Variances per question and what is known about them."""

    variances: Variances
    """The variances as estimated or as given."""
    split: bool = True
    """True if data and prediction noise are known apart. Otherwise `omega2` is the sum of both at one answer."""
    upper: Variances | None = None
    """The variances with the upper confidence limit of ω², None if nothing was estimated."""
    units: Units = QUESTIONS
    clustered: bool = False
    """ω² holds the clustering, and `units` are clusters."""
    pilot: str = ""
    """The data it was estimated from: "50 questions"."""
    compared: str = TWO_RUNS
    scale: tuple[float, float] | None = None
    diagnostics: tuple[str, ...] = ()
    n_questions: int = 0
    """The number of questions of the pilot."""
    r2: float | None = None
    """The share of the variance that a judge predicts, None if no labels correct one."""
    repeats: int | None = None
    """Answers per question of the pilot, None without a pilot or if its runs or questions differ in it."""
    zero_one: bool | None = None
    """The scores are 0 or 1, so that differences are shown in points. None: unknown."""

    @property
    def start(self) -> Variances:
        """The variances that a plan starts from."""
        return self.variances if self.upper is None else self.upper

    def amount(self, value: float) -> str:
        """Return a difference as text, in points if the scores are 0 or 1: "2 points", 0.02."""
        return (PERCENT if self.zero_one else Scale()).given(float(f"{value:.3g}"))

    def doubled(self) -> Noise:
        """Return the noise of two unrelated runs like this one: twice the variance, an upper bound for a paired
        comparison."""

        def twice(v: Variances) -> Variances:
            return Variances(2 * v.omega2, v.sigma2_a, v.sigma2_a)

        if self.compared != ONE_RUN:
            raise InputError("`two_like_this` makes two runs of one: name one run with `runs`")
        upper = None if self.upper is None else twice(self.upper)
        return replace(self, variances=twice(self.variances), upper=upper, compared=TWO_LIKE_THIS)


def from_numbers(omega2: float, sigma2: float | Sequence[float] | None) -> Noise:
    """Return noise from ω² and σ².

    Raises:
        InputError: numbers that are no variances.
    """
    pair = (
        [0.0] if sigma2 is None else [float(sigma2)] if isinstance(sigma2, (int, float)) else [float(s) for s in sigma2]
    )
    if len(pair) > 2 or not pair:
        raise InputError(f"`sigma2` takes one number or two, not {len(pair)}")
    if min(pair) < 0 or not all(map(math.isfinite, (*pair, omega2))):
        raise InputError("`omega2` and `sigma2` must be finite, and `sigma2` not negative")
    return Noise(Variances(float(omega2), pair[0], pair[-1]), split=sigma2 is not None)


def from_runs(sources: Sequence[Run | Estimate | Difference], settings: Settings, assurance: float) -> Noise:
    """Return noise of one run, of A − B, or of a result of either.

    Raises:
        InputError: more than two runs, several metrics, or a row without a standard error.
    """
    scale: tuple[float, float] | None
    if len(sources) == 1 and isinstance(sources[0], (Estimate, Difference)):
        row: Estimate | Difference = sources[0]
        each: list[Estimate] = []
        scale = row.range if isinstance(row, Estimate) else None
    else:
        runs = [source for source in sources if isinstance(source, Run)]
        row, each, scale = _measured(runs, settings)
    if row.estimand == "these_questions":
        raise InputError(
            f"{row.task}, {row.metric}: a plan is about new questions, and `questions_are='fixed'` leaves the noise "
            "between questions out: take the runs with the default"
        )
    if row.judge is not None:
        return _label_noise(row, scale, assurance)
    if row.se is None or row.se_total is None:
        raise InputError(f"{row.task}, {row.metric}: no standard error to plan with ({', '.join(row.diagnostics)})")
    n, two = row.n_questions, isinstance(row, Difference)
    split = row.var_data is not None and row.var_prediction is not None
    if row.var_data is None or row.var_prediction is None:
        # only the sum of both noises at one answer is known: promise nothing from more answers
        v = Variances(n * row.se_total**2, 0.0, 0.0 if two else None)
    elif not two:
        v = Variances(n * row.var_data, n * row.var_prediction)
    else:  # shares from each run, the sum from the questions they have in common
        parts = [of_run.n_questions * of_run.var_prediction for of_run in each if of_run.var_prediction is not None]
        share = parts[0] / sum(parts) if len(parts) == 2 and sum(parts) > 0 else 0.5
        total = n * row.var_prediction
        v = Variances(n * row.var_data, total * share, total * (1 - share))
    clustered = row.cluster is not None
    limit = row._data_limit
    more = math.nan if limit is None else (limit if split else limit.without_answers()).above(1 - assurance)
    upper = replace(v, omega2=v.omega2 + n * more) if math.isfinite(more) else None
    units, pilot = QUESTIONS, f"{n} questions"
    if clustered:
        G = row.n_clusters
        units = Units(n / G, min(1.0, ((row.df or G - 1) + 1) / G))
        pilot = f"{G} clusters of {n / G:.3g} questions"
    noise = Noise(v, split, upper, units, clustered, pilot, TWO_RUNS if two else ONE_RUN, scale, row.diagnostics, n)
    return replace(noise, repeats=_repeats(row), zero_one=row._zero_one)


def _repeats(row: Estimate | Difference) -> int | None:
    """Return the answers per question, where all questions of all runs have as many."""
    if isinstance(row, Difference):
        return row.repeats_a if row.repeats_a == row.repeats_b else None
    return row.repeats_max if row.repeats_min == row.repeats_max else None


def _label_noise(row: Estimate | Difference, scale: tuple[float, float] | None, assurance: float) -> Noise:
    """Return the noise of human labels and the share that the judge predicts, from a row that labels correct.

    Both from the variances of the corrected mean and of the labels alone: that of the labels is σ²/m.
    """
    judge, n = row.judge, row.n_questions
    gain = None if judge is None or judge.r2 is None else judge.gain
    if judge is None or gain is None or row.se is None or not 1 < judge.n_labelled < n:
        raise InputError(
            f"{row.task}, {row.metric}: what the judge predicts of the labels is not known here; a pilot has labels of "
            f"some of its questions, {FEWEST_UNITS} (clusters) at least, which differ"
        )
    m, two = judge.n_labelled, isinstance(row, Difference)
    variance = m * gain * row.se**2
    r2 = 1 - (row.se**2 / variance - 1 / n) / (1 / m - 1 / n)
    size = n / row.n_clusters if row.cluster is not None else 1.0
    upper = chi_square(variance, max(1.0, m / size - 1)).upper(1 - assurance)
    none = 0.0 if two else None
    return Noise(
        Variances(variance, 0.0, none),
        False,
        Variances(upper, 0.0, none),
        Units(size),
        row.cluster is not None,
        f"{m} labelled questions",
        TWO_RUNS if two else ONE_RUN,
        scale,
        row.diagnostics,
        n,
        min(1.0, max(0.0, r2)),
        zero_one=row._zero_one,
    )


def noise_by_task(sources: Sequence[Run | Estimate | Difference], settings: Settings) -> dict[str, tuple[int, float]]:
    """Return task → (its questions, its part of the prediction variance of the mean that a plan starts from).

    At one answer to each question, of both runs where there are two.

    Raises:
        InputError: it is not known what more answers gain, or repeats share more than their question.
    """
    from .mean import estimate_of

    if settings.repeats_are == "runs":
        raise InputError(
            "`answers` are spread over tasks as answers that are drawn one by one, and runs are shared by all tasks: "
            "leave `repeats_are='runs'` out"
        )
    runs, _ = agreed([source for source in sources if isinstance(source, Run)])
    key = _measured(runs, settings)[0].key
    out: dict[str, tuple[int, float]] = {}
    for run in runs:
        group = next((group for group in run.groups if (group.name, group.metric, group.scorer) == key), None)
        alone = [part for part in run.scores if part.key == key]
        parts = alone if group is None else group_parts(run, group) or []
        unknown = [part.task for part in parts if estimate_of([part], run, settings).var_prediction is None]
        if unknown:
            raise InputError(
                f"{unknown[0]}: what more answers gain is not known from {run.name}, so `answers` cannot be spread: a "
                "first run needs at least two answers to each question"
            )
        data = sample(parts, group_shares(parts, group))
        plan = data.design()
        c = kernel([data], [1.0], plan, settings).c
        noise = np.bincount(plan.strata, weights=plan.weights**2 * c.v, minlength=len(parts)).tolist()
        for part, variance in zip(parts, noise, strict=True):
            n, before = out.get(part.task, (0, 0.0))
            out[part.task] = max(n, len(part.questions)), before + variance
    return out


def _measured(
    runs: Sequence[Run], settings: Settings
) -> tuple[Estimate | Difference, list[Estimate], tuple[float, float] | None]:
    """Return the row to plan with, of one run or of A − B, the estimates of each run, and the metric's range."""
    from .comparison import compare_runs
    from .mean import analyze_runs

    settings.check("plan")
    runs, _ = agreed(runs)
    if len(runs) > 2:
        models = ", ".join(run.model for run in runs[:6])
        raise InputError(f"`runs` takes one run or two, not {len(runs)} ({models})")
    if any(both_ways(part.clusters) is not None for run in runs for part in run.scores):
        raise InputError(
            "a plan adds clusters of one kind, and these questions are clustered in two crossed ways: name the way "
            "that new questions would add to with `cluster`"
        )
    each = [row for row in analyze_runs(runs, settings).estimates if row.se_total is not None or row.judge]
    rows: Sequence[Estimate | Difference] = (
        each if len(runs) == 1 else compare_runs([(runs[0], runs[1])], settings).comparisons
    )
    row = _the_only(rows)
    wanted = row.key
    each = [of_run for of_run in each if of_run.key == wanted]
    parts: list[Scores] = [part for run in runs for part in run.scores if (part.metric, part.scorer) == wanted[1:]]
    return row, each, score_range([Ends.of([part]) for part in parts], settings)


def _the_only(rows: Sequence[Estimate | Difference]) -> Estimate | Difference:
    if len(rows) == 1:
        return rows[0]
    names = "; ".join(f"{row.task} / {row.metric} / {row.scorer}" for row in rows[:6]) or "none"
    raise InputError(
        f"a plan starts from one metric of one task; there are {len(rows)}: {names}. Name one with `tasks`, `metrics` "
        "and `scorers`"
    )
