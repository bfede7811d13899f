"""Comparison of a run with a published number, on the same questions or on others.

On the **same questions** their noise cancels, and the estimand is these questions. What is left is the prediction noise
of the run's own mean and of the number: of scores in [0, 1] with mean p, K answers to each of n questions, that is at
most p(1 − p)/(n K), and nothing more is known of them. On **other questions** the number is a share of its own n, and
the limits of the difference are made of those of both means [Zou, eq. 3].

Sources:
  [Zou]  Zou & Donner (2008), Statistics in Medicine 27(10)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from ..analysis.mean import analyze_run
from ..analysis.rows import RowDecision, decide_rows
from ..arrays import FloatArray
from ..choices import T_TEST, T
from ..data.scores import Run
from ..errors import InputError, some_of
from ..results.rows import Comparison, Estimate
from ..settings import InPoints, Settings, check_unit
from ..stats.decision import Differences, Test, decide, p_beyond
from ..stats.intervals import Limits, critical, t_limits, wilson
from ..stats.tolerances import ROUNDING

DOUBTED = "not_these_questions"
NOT_THESE = (
    "the number is not a mean of right and wrong answers to these questions. Is it of others, or another metric?"
)


@dataclass(frozen=True, slots=True)
class Published:
    """A mean that is known as a number."""

    value: float
    n: int | None = None
    """Other questions that it was measured on, which have their own noise. None: it has no noise of its own."""
    answers: float | None = None
    """Answers to each of the same questions, infinite if greedy, None if it is of other questions."""

    def __post_init__(self) -> None:
        K = self.answers
        if K is not None and not (K >= 1 and (math.isinf(K) or float(K).is_integer())):
            raise InputError(f"`answers_b` {K:g} is not a number of answers to each question, 1 or more, or inf")

    def noise(self, row: Estimate, level: float) -> FloatArray:
        """Return (3,): the number's distances to its lower and upper limit, and SE, by `n` or answers, else zeros.

        Args:
            row: the mean that it is held against, which has a range.
            level: of the two distances.
        """
        low, high = row.range or (0.0, 1.0)
        width, share = high - low, (self.value - low) / (high - low)
        if self.answers is not None:
            se = width * math.sqrt(share * (1 - share) / (row.n_questions * self.answers))
            reach = float(critical(level)) * se
            return np.array([reach, reach, se])
        if self.n is None:
            return np.zeros(3)
        ends = wilson(share, self.n, float(critical(level)))
        return width * np.array([share - ends.low, ends.high - share, math.sqrt(share * (1 - share) / self.n)])

    def beside(self, row: Estimate, level: float) -> Estimate:
        """Return the row with the noise of (mean − published number) for its own. Unchanged without limits or range."""
        if row.mean is None or row.ci_low is None or row.ci_high is None or row.range is None:
            return row
        return distance_with_noise(row, self.noise(row, level), level, same_questions=self.answers is not None)

    def doubt(self, run: Run, row: Estimate) -> tuple[str, ...]:
        """Return a diagnostic if the run's own right-or-wrong questions cannot have this mean. Else or with `n`, ()."""
        part = next((part for part in run.scores if part.key == row.key), None)
        if self.answers is None or part is None or row.range is None:
            return ()
        low, high = row.range
        scores = part.values[~np.isnan(part.values)]
        if not np.isin(scores, (low, high)).all():
            return ()
        total = row.n_questions * (1 if self.answers == math.inf else self.answers)
        share, written = (self.value - low) / (high - low), Decimal(repr(self.value)).normalize().as_tuple().exponent
        rounding = 0.5 * 10.0 ** min(int(written), 0) / (high - low)
        return (DOUBTED,) if abs(round(share * total) / total - share) > rounding + ROUNDING else ()


def distance_with_noise(row: Estimate, noise: FloatArray, level: float, *, same_questions: bool) -> Estimate:
    """Return a mean's row, its SE, df and limits widened by the number's noise [Zou, eq. 3]. Unchanged without either.

    Args:
        row: the mean.
        noise: how far the number may be too high and too low, and its standard error.
        level: of the limits.
        same_questions: the number is of the same questions; its part then has no degrees of freedom to lose
            [Satterthwaite].
    """
    if row.mean is None or row.ci_low is None or row.ci_high is None:
        return row
    below, above, se = noise.tolist()
    if same_questions and row.se is not None and row.df is not None:
        variance = row.se**2 + se**2
        df = row.df * variance**2 / row.se**4 if row.se else math.inf
        ends = t_limits(row.mean, math.sqrt(variance), df, level)
        return replace(row, se=math.sqrt(variance), df=df, ci_low=float(ends.low), ci_high=float(ends.high))
    if not noise.any():
        return row
    low, high = math.hypot(row.mean - row.ci_low, above), math.hypot(row.ci_high - row.mean, below)
    both = None if row.se is None else math.hypot(row.se, se)
    return replace(row, ci_low=row.mean - low, ci_high=row.mean + high, se=both)


def check_value(number: Published, row: Estimate, name: str) -> None:
    """Refuse a published number that is not finite, or outside the metric's range.

    Raises:
        InputError: it is not finite or lies outside the range.
    """
    value = number.value
    if not math.isfinite(value):
        raise InputError(f"{name} {value} of {row.task} {row.metric} is not a number that a mean can reach")
    check_mean(name, value, row.range, row.metric)


def check_mean(name: str, value: float, scale: tuple[float, float] | None, metric: str) -> None:
    """Refuse a number outside the metric's range. The message suggests value/100 if that would fit.

    Args:
        name: of the parameter.
        value: on the metric's scale.
        scale: lowest and highest value of the metric; None: not known.
        metric: its name.

    Raises:
        InputError: names the range, and the share that a percentage may have meant.
    """
    check_unit(name, value, scale, metric)
    low, high = scale or (-math.inf, math.inf)
    if not low <= value <= high:
        meant, given = "", f"{value:g}"
        if isinstance(value, InPoints):  # "150%" was divided by 100 already
            given = value.as_typed
        elif low <= value / 100 <= high:
            meant = f". Did you mean {value / 100:g} ({value:g}%)?"
        raise InputError(f"`{name}` {given} is outside the range of {metric}, {low:g} to {high:g}{meant}")


def compare_number(run: Run, number: Published, settings: Settings) -> Comparison:
    """Return A − B of a run's one mean and a published number, of its questions or n others. Refuse several, no range.

    Args:
        run: A.
        number: B; of the same questions, or of its own number of others.
        settings: how to compute.

    Raises:
        InputError: several metrics that the number could be of, one without a known range, or a single answer to each
            question where the questions are the same.
    """
    if number.answers is not None:
        settings = replace(settings, questions_are="fixed")
    analysis = analyze_run(run, settings)
    keys = run.headline or {part.key for part in run.scores}
    rows = [row for row in analysis.estimates if row.key in keys] or list(analysis.estimates)
    if len(rows) != 1:
        which = some_of([f"{row.task} {row.metric}" for row in rows], 6, "; ")
        raise InputError(
            f"{number.value:g} is one number, and {run.name} has {which}: name one of each with `tasks`, `metrics` and "
            "`scorers`"
        )
    (row,) = rows
    check_value(number, row, "published number")
    if row.range is None:
        raise InputError(
            f"{row.task} {row.metric}: the noise of a published number is known only of scores in a known range: give "
            "it as `range=(LOW, HIGH)`"
        )
    own = decide_rows([_published_row(row, number, settings, number.doubt(run, row))], settings)
    return Comparison(settings.to_dict(), tuple(own), analysis.notes)


def _published_row(row: Estimate, number: Published, settings: Settings, doubt: tuple[str, ...]) -> RowDecision:
    """Return the row of A − B for a mean and a published number, before its verdict."""
    both, level = number.beside(row, settings.level), settings.level
    mean, low, high, se = (math.nan if x is None else x for x in (both.mean, both.ci_low, both.ci_high, both.se))
    df = math.inf if both.df is None else both.df

    def at(null: float) -> FloatArray:
        bound = number.value + null
        below, above = p_beyond(mean, high, df, level, bound), p_beyond(-mean, -low, df, level, -bound)
        return np.atleast_1d(np.minimum(1.0, 2 * np.minimum(below, above)))

    diff, none = np.array([mean - number.value]), np.array([math.nan])
    of = Differences(diff, np.array([se**2]), np.array([df]), np.array([False]), none)
    test = Test(at(0.0), at=at, by_p=True, limits=lambda _: Limits(low - number.value, high - number.value))
    test = replace(test, interval=T.name if number.answers is not None else row.interval)
    repeats = 1 if number.answers in (None, math.inf) else int(number.answers or 1)
    return RowDecision.of(
        decide(of, settings, test),
        {*row.diagnostics, *doubt},
        task=row.task,
        metric=row.metric,
        scorer=row.scorer,
        higher_is_better=row.higher_is_better,
        model_a=row.model,
        model_b=f"{f'{100 * number.value:g}%' if row._zero_one else f'{number.value:g}'} (published)",
        n_questions=row.n_questions,
        n_clusters=row.n_clusters,
        n_only_a=0 if number.answers is not None else row.n_questions,
        n_only_b=0 if number.answers is not None else number.n or 0,
        repeats_a=row.repeats_max,
        repeats_b=repeats,
        mean_a=mean,
        mean_b=number.value,
        diff=diff.item(),
        se=se,
        df=df,
        level=level,
        test=T_TEST.name,
        run_a=row.run,
        n_missing=row.n_missing,
        cluster=row.cluster,
        estimand=row.estimand,
        _zero_one=row._zero_one,
    )


def hint(value: float) -> str:
    """Return advice on the options `answers_b` and `n`, for a message about a bare published number."""
    return (
        f"{value:g} is a published number. If it is of the same questions, say how many answers it had to each: "
        "`answers_b=K` (inf if it was greedy). If it is of N other questions: `n=N`"
    )
