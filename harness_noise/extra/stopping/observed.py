"""All that the questions that were asked so far say, for a look, and whether more repeats would pay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from ...analysis.difference import observed_pair, pair_kernel
from ...analysis.mean import estimate_of
from ...analysis.ranges import score_range
from ...analysis.sample import Sample, kernel, sample
from ...arrays import FloatArray
from ...data.native_values import are_zero_one
from ...data.scores import Group, Run, Scores
from ...data.units import PERCENT, Scale, decimals
from ...errors import InputError
from ...results.forms import finite
from ...settings import Settings
from ...stats.contrast import QuestionStats
from ...stats.decision import Differences
from ...stats.intervals import ExtendedSample
from ...stats.tolerances import FEWEST_UNITS, ROUNDING
from ..boundaries import normal_z, student_t

REPEATS_SHARE = 0.1
"""Share of V: prediction noise that is no more than this has no part in the standard error worth more answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The estimate of a difference A − B, or of a mean, from the questions asked so far, for a look."""

    task: str = ""
    metric: str = "score"
    scorer: str = "none"
    higher_is_better: bool | None = None
    zero_one: bool = False
    """The scores are 0 or 1, so that the message of a look is in points."""
    estimate: float | None
    """None, like `se`, where it is not identified: too few questions or clusters."""
    plain: float | None = None
    """The mean of the questions that were asked, where `estimate` is a regression's."""
    baseline: str | None = None
    """Hash of B's means of the questions that both have answered, None if the two are not compared again."""
    clusters: str | None = None
    """Hash of which of these questions share a cluster, None if the two are not compared again."""
    se: float | None
    df: float | None = None
    units: int
    """Clusters with a score, or questions without clusters."""
    far: ExtendedSample | None = None
    """The source of the limit away from 0, if few questions (clusters) differ."""
    bounds: tuple[float, float] | None = None
    """Lowest and highest value of the estimate, where they are known."""
    interval: tuple[float, float] | None = None
    """For a mean, the interval that `analyze` shows."""
    answers: int | None = None
    """Scored answers of A."""
    repeats: float = 1.0
    """Mean over A's questions of one over their number of answers."""
    prediction: float = 1.0
    """Share of A's prediction noise in the variance of a question's difference, with one answer of A.

    1 if it is unknown: then no look takes its share of the information for larger than it is.
    """
    residual: float | None = None
    """Variance of a regression's residuals over that of the differences, with one answer of A to each question, where
    the estimate is that regression's."""
    population: int | None = None
    """Questions that B has answered, of which A's are a subset. None: those that A is to be asked."""
    in_population: int | None = None
    """Questions among them that A has answered. None: all that A has answered."""

    @property
    def scale(self) -> Scale:
        """Scale on which messages show the numbers: points for 0/1 scores."""
        return PERCENT if self.zero_one else Scale()

    def amount(self, value: float) -> str:
        """Format a difference or standard error of this interim look with its unit."""
        return self.scale.text(value, decimals(self.se, value), unit=True)

    @property
    def z(self) -> float | None:
        """The z statistic with the p-value of the estimate's t statistic, None if not known."""
        if self.estimate is None or not self.se or self.df is None:
            return None
        return normal_z(self.estimate / self.se, self.df)

    def limits(self, low: float, high: float) -> tuple[float, float]:
        """Return (lower, upper): z shifts `low`, `high` turned to t, that many SE below the estimate, within its range.

        On the scale of t, away from 0 no nearer than those of the extended sample, and within the range.
        """
        assert self.estimate is not None
        assert self.se is not None
        assert self.df is not None
        ends = [self.estimate - self.se * student_t(shift, self.df) for shift in (low, high)]
        if self.far is not None and not np.isnan(self.far.mean).all():
            mean, variance, df = (float(np.asarray(x).item()) for x in (self.far.mean, self.far.variance, self.far.df))
            if self.estimate <= ROUNDING:
                ends[0] = min(ends[0], mean - math.sqrt(variance) * student_t(low, df))
            if self.estimate >= -ROUNDING:
                ends[1] = max(ends[1], mean - math.sqrt(variance) * student_t(high, df))
        lowest, highest = self.bounds or (-math.inf, math.inf)
        return max(lowest, ends[0]), min(highest, ends[1])


def observe_samples(a: Sample, b: Sample, settings: Settings, group: Group | None = None) -> Observed:
    """Return a look's estimate of A − B on questions that both have answered. Refuse fixed or unpaired ones.

    Args:
        a: of the run that grows.
        b: of the run that it is compared with, on the same questions.
        settings: the variance estimator and what repeats are; its level and margin do not count here.
        group: what the tasks are.

    Raises:
        InputError: `questions_are="fixed"` or `unpaired`, for which the order of the questions means nothing.
    """
    _check(settings)
    names = _names(a.parts, group, (*a.parts, *b.parts))
    if a.empty or b.empty:
        units = len(set(a.clusters)) if a.clusters is not None else len(a)
        return Observed(**names, estimate=None, se=None, units=units)
    noise, sides = pair_kernel(a, b, settings)
    bounds = score_range([side.ends for side in sides], settings)
    of, m = observed_pair(noise, bounds, settings)[1], noise.m
    equal = bool(m.zero_variance[0])
    width = None if bounds is None else bounds[1] - bounds[0]
    plain = Observed(
        **names,
        estimate=finite(m.mean.item()),
        se=_se_if_constant(of) if equal else finite(math.sqrt(m.variance.item())),
        df=math.inf if equal else finite(m.df.item()),
        units=int(m.n_clusters[0]),
        far=None if equal else of.far,
        bounds=None if width is None else (-width, width),
    )
    if plain.estimate is None or not plain.se or settings.repeats_are == "runs":
        return plain
    return _with_answers(plain, a.stats, b.stats, a.design().weights)


def _with_answers(plain: Observed, a: QuestionStats, b: QuestionStats, weights: FloatArray) -> Observed:
    """Return the interim look with A's number of answers, and answer noise's share of its variance (1 if not known).

    That share is known from questions with two answers of A; while there are too few, B's stand for them.

    Args:
        plain: A − B with its standard error.
        a: (n,) what A has answered by now.
        b: (n,) what B has answered to the same questions.
        weights: (n,) of the questions.
    """
    assert plain.se is not None
    fewer, share = 1 / a.count, 1.0
    for run in (a, b):
        twice = run.count >= 2
        if twice.sum() >= FEWEST_UNITS and (run is a or run.var[twice].any()):
            noise = float(run.var[twice].mean())
            w2 = weights**2
            at_one = plain.se**2 + noise * float(w2 @ (1 - fewer))
            share = min(1.0, noise * float(w2.sum()) / at_one)
            break
    return replace(plain, answers=int(a.count.sum()), repeats=float(fewer.mean()), prediction=share)


def _se_if_constant(of: Differences) -> float | None:
    """Return an SE for equal differences, by the sign test, or Bonett and Price's interval if all are 0, or None.

    The exact sign test says how likely that is; where all differences are 0, the interval of Bonett & Price.
    """
    p, mean = of.p_zero.item(), of.diff.item()
    if not math.isnan(p) and mean:
        return abs(mean) / max(1e-9, -float(special.ndtri(max(p / 2, 1e-298))))
    if of.small is None:
        return None
    ci = of.small(math.erf(math.sqrt(0.5)))  # ± one standard error
    return float((ci.high - ci.low).item() / 2)


def observe_mean(parts: Sequence[Scores], settings: Settings, group: Group | None = None) -> Observed:
    """Return an interim look's estimate of a mean over the questions answered so far. Refuse fixed or unpaired."""
    _check(settings)
    row = estimate_of(parts, Run(model="", name="", harness=""), settings, group=group)
    ci = None if row.ci_low is None or row.ci_high is None else (row.ci_low, row.ci_high)
    return Observed(
        **_names(parts, group, parts),
        estimate=row.mean,
        se=row.se or None,
        df=row.df,
        units=row.n_clusters,
        bounds=row.range,
        interval=ci,
    )


def _check(settings: Settings) -> None:
    for name, clash in (
        ("questions_are='fixed'", settings.questions_are == "fixed"),
        ("unpaired=True", settings.unpaired),
    ):
        if clash:
            raise InputError(
                f"{name}: stopping before all questions are asked takes the questions for a random sample, paired with "
                "those of the other run. Leave one of the two out"
            )


def _names(parts: Sequence[Scores], group: Group | None, every: Sequence[Scores]) -> dict[str, Any]:
    first = parts[0]
    return {
        "task": group.name if group is not None else first.task,
        "metric": first.metric,
        "scorer": first.scorer,
        "higher_is_better": first.higher_is_better,
        "zero_one": are_zero_one(every),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class EnoughRepeats:
    """Answer to whether more answers per question would pay."""

    enough: bool
    repeats: int
    """Answers per question by now."""
    share: float | None
    """var_prediction/K as a share of V, None if it is not identified."""
    message: str
    """One line for the user who watches the run."""


def repeats_enough(part: Scores, settings: Settings) -> EnoughRepeats:
    """Decide if more answers per question would hardly lower the noise, and return that with a sentence.

    It is decided over all questions.

    They do not where var_prediction/K is at most `REPEATS_SHARE` of V, or where the answers never differ. One answer
    per question says nothing, so K ≥ 2; a K chosen for a question by its own answers would bias the mean.

    Args:
        part: scores of one task over all questions, with the answers by now.
        settings: how V is computed.
    """
    data = sample([part], None)
    repeats = int(data.stats.count.max(initial=0))
    if data.empty:
        return EnoughRepeats(enough=False, repeats=repeats, share=None, message="no scores yet")
    noise = kernel([data], [1.0], data.design(), settings)
    text = f"{repeats} answers per question"
    if repeats >= 2 and "identical_repeats" in noise.codes:
        why = "the answers to a question never differ, so more of them say nothing"
        return EnoughRepeats(enough=True, repeats=repeats, share=None, message=f"{text}: {why}")
    share = finite(noise.m.var_prediction.item() / repeats / (noise.m.variance.item() or math.nan))
    if share is not None:
        text += f", of the variance {100 * share:.0f}% is prediction noise"
    enough = repeats >= 2 and share is not None and share <= REPEATS_SHARE
    return EnoughRepeats(enough=enough, repeats=repeats, share=share, message=f"{text}{': enough' * enough}")
