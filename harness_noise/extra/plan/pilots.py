"""The noise that a plan starts from: measured in runs, or given as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.ranges import Ends, score_range
from ...analysis.sample import group_parts, group_shares, kernel, sample
from ...data.clusters import split_crossed
from ...data.native_values import agree_on_metrics
from ...data.scores import Run
from ...errors import InputError, check_kind
from ...results.rows import Difference, Estimate
from ..row_noise import ONE_RUN, Noise, noise_of
from ..sizes import Variances

if TYPE_CHECKING:
    from ...data.scores import Scores
    from ...settings import Settings

TWO_LIKE_THIS = "two runs like this one, as if unrelated"


def from_numbers(omega2: float, sigma2: float | Sequence[float] | None) -> Noise:
    """Return a plan's noise from ω² and σ² (one, A's and B's, None: unknown). Refuse infinite ones, and a negative σ².

    Raises:
        InputError: numbers that are no variances.
    """
    check_kind("`omega2`", omega2, Real)
    check_kind("`sigma2`", sigma2, Real, Iterable, type(None))
    given: list[float] = [*sigma2] if isinstance(sigma2, Iterable) else [sigma2 or 0.0]
    for variance in given:
        check_kind("`sigma2`", variance, Real)
    pair = list(map(float, given))
    if len(pair) > 2 or not pair:
        raise InputError(f"`sigma2` takes one number or two, not {len(pair)}")
    if min(pair) < 0 or not all(map(math.isfinite, (*pair, omega2))):
        raise InputError("`omega2` and `sigma2` must be finite, and `sigma2` not negative")
    return Noise(Variances(float(omega2), pair[0], pair[-1]), split=sigma2 is not None)


def from_runs(sources: Sequence[Run | Estimate | Difference], settings: Settings, assurance: float) -> Noise:
    """Return a plan's noise, estimated from one or two runs or a result of them. Refuse fixed questions.

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
    noise = noise_of(row, each, scale, assurance)
    return _bounded(noise) if _is_plain(row, sources, settings) else noise


def _is_plain(row: Estimate | Difference, sources: Sequence[Run | Estimate | Difference], settings: Settings) -> bool:
    """Return True if a row is of one task's questions, equal in weight, paired, unclustered and without run effects.

    Its variance per question is then that of a single value, which the range bounds. A run effect moves all questions
    together: n times its part of the mean's variance has no bound.
    """
    if row.cluster is not None or row.weights is not None or settings.unpaired or settings.repeats_are == "runs":
        return False
    runs = [source for source in sources if isinstance(source, Run)]
    return bool(runs) and all(sum(part.key == row.key for part in run.scores) == 1 for run in runs)


def _bounded(noise: Noise) -> Noise:
    """Return the noise with no variance above what scores in [lo, hi] can have: (hi − lo)²/4, of A − B (hi − lo)².

    A value in an interval has at most the variance of a fair coin on its ends (Popoviciu), and A − B lies in one of
    twice the length. The mean of several answers lies in the same interval as one.
    """
    if noise.scale is None or noise.upper is None:
        return noise
    most = (noise.scale[1] - noise.scale[0]) ** 2 / (4 if noise.compared == ONE_RUN else 1)
    return replace(noise, variances=noise.variances.bounded(most), upper=noise.upper.bounded(most))


def doubled(noise: Noise) -> Noise:
    """Return the noise of two unrelated runs like this one: ω² doubled, σ² of each. Refuse the noise of two runs."""

    def twice(v: Variances) -> Variances:
        return Variances(2 * v.omega2, v.sigma2_a, v.sigma2_a, 2 * v.most)

    if noise.compared != ONE_RUN:
        raise InputError("`two_like_this` makes two runs of one: name one run with `runs`")
    upper = None if noise.upper is None else twice(noise.upper)
    return replace(noise, variances=twice(noise.variances), upper=upper, compared=TWO_LIKE_THIS)


def noise_by_task(sources: Sequence[Run | Estimate | Difference], settings: Settings) -> dict[str, tuple[int, float]]:
    """Return {task: (questions, its prediction variance in the mean, one answer each, runs summed)}. Refuse unknown.

    At one answer to each question, of both runs where there are two.

    Raises:
        InputError: it is not known what more answers gain, or repeats share more than their question.
    """
    from ...analysis.mean import estimate_of

    if settings.repeats_are == "runs":
        raise InputError(
            "`answers` are spread over tasks as answers that are drawn one by one, and runs are shared by all tasks: "
            "leave `repeats_are='runs'` out"
        )
    runs, _ = agree_on_metrics([source for source in sources if isinstance(source, Run)])
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
    """Return the row to plan by (mean, A − B), each run's own, the range or None. Refuse > 2 runs, crossed clusters.

    The row is of one run, or of A − B of two.
    """
    from ...analysis.comparison import compare_runs
    from ...analysis.mean import analyze_runs

    settings.check("plan")
    runs, _ = agree_on_metrics(runs)
    if len(runs) > 2:
        models = ", ".join(run.model for run in runs[:6])
        raise InputError(f"`runs` takes one run or two, not {len(runs)} ({models})")
    if any(split_crossed(part.clusters) is not None for run in runs for part in run.scores):
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
        f"a plan starts from one metric of one task. There are {len(rows)}: {names}. Name one with `tasks`, `metrics` "
        "and `scorers`"
    )
