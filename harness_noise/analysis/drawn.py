"""The tests and intervals of one difference, which `choices` names: each from the difference and what it is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..arrays import FloatArray
from ..choices import BOOTSTRAP, BOOTSTRAP_T, BOOTSTRAP_TEST, INTERVALS, TESTS
from ..errors import InputError
from ..settings import Settings
from ..stats import decision
from ..stats.contrast import Design, in_order
from ..stats.decision import Differences, by_sign
from ..stats.intervals import Limits
from .sample import Sample

if TYPE_CHECKING:
    from ..stats.resampling import Distribution, Method


def _no_interval(level: float) -> Limits[float]:
    return Limits(math.nan, math.nan)


@dataclass(frozen=True, slots=True, eq=False)
class DrawnFrom:
    """The paired differences and their design, of unpaired runs the values and design of one."""

    d: FloatArray
    design: Design
    of: Sample

    def by_key(self) -> tuple[FloatArray, Design]:
        """Return the (n,) differences and their clusters in order of question names, for reproducible draws."""
        return in_order(self.d, self.design, self.of.by_key())


Samples: TypeAlias = Sequence[DrawnFrom]


class OneDifference:
    """One difference, what it is made of, and its resamples. The functions of `choices.TESTS` take it.

    Args:
        of: the difference and its noise.
        samples: the paired differences; of unpaired runs A's values and B's.
        settings: the test, the interval, the seed and the number of resamples.
    """

    def __init__(self, of: Differences, samples: Samples, settings: Settings) -> None:
        self.of, self.samples, self.settings = of, samples, settings

    @property
    def varies(self) -> bool:
        return not self.of.zero[0]

    @property
    def rng(self) -> np.random.Generator:
        """Random number generator, started anew from the settings' seed."""
        return np.random.default_rng(self.settings.seed)

    @cached_property
    def distribution(self) -> Distribution | None:
        """Bootstrap `Distribution` of the difference, scaled to its closed-form variance. None if not resampled."""
        from ..stats.resampling import bootstrap

        minus = self.samples[1].by_key() if len(self.samples) > 1 else None
        found = bootstrap(*self.samples[0].by_key(), self.settings.resamples, self.rng, minus=minus)
        if found is None or np.isnan(self.of.df[0]):
            return None
        return found.expanded(self.of.variance.item(), self.of.df.item())

    @cached_property
    def studentised(self) -> FloatArray | None:
        """(R,) t statistics of the resamples, each with its own standard error. None if it cannot be resampled."""
        from ..stats.resampling import studentised

        return studentised(*self.samples[0].by_key(), self.settings.resamples, self.rng)


def chosen_test(of: Differences, samples: Samples, settings: Settings) -> decision.Test:
    """Return the test and interval that the settings choose for one difference. Empty if its variance is unknown.

    Sign and permutation tests have no interval of their own, so they call a difference by p. So does the wild
    bootstrap, whose interval holds the nulls that it does not reject.
    """
    if np.isnan(of.variance[0]):
        return decision.Test()
    drawn = OneDifference(of, samples, settings)
    tested = TESTS[settings.test_of_difference]
    test: decision.Test = tested.call("of_difference", drawn)
    interval = settings.interval_of_difference
    if interval == tested.interval and settings.interval != interval:
        return test  # the test has its own interval already
    test = INTERVALS[interval].call("of_difference", drawn, test)
    return test


def test_of_t(drawn: OneDifference) -> decision.Test:
    """Return an empty test, which stands for the default, Student's t, of one difference."""
    return decision.Test()


def test_of_sign(drawn: OneDifference) -> decision.Test:
    """Return the sign test of one difference, from the numbers of questions that A and B lead on."""
    return by_sign(drawn.of)


def test_of_permutation(drawn: OneDifference) -> decision.Test:
    """Return the permutation test of one difference (null 0 only), which flips signs of whole clusters at random."""
    from ..stats.resampling import sign_flip_p

    p = np.array([sign_flip_p(*drawn.samples[0].by_key(), drawn.settings.resamples, drawn.rng)])
    return decision.Test(p, by_p=True, of_all=True)


def test_of_wild(drawn: OneDifference) -> decision.Test:
    """Return the wild cluster bootstrap test of one difference and its interval, unless t's interval is set."""
    from ..stats.resampling import by_wild, wild_test

    if not drawn.varies:
        return decision.Test()
    wild = wild_test(*drawn.samples[0].by_key(), drawn.settings.resamples, drawn.rng)
    return by_wild([(np.arange(1), wild)], 1, drawn.settings)


def test_of_bootstrap(drawn: OneDifference) -> decision.Test:
    """Return the bootstrap test of one difference, with BCa limits unless others are set. NaN if not resampled."""
    if not drawn.varies:
        return decision.Test()
    if drawn.distribution is None:
        return decision.Test(np.array([np.nan]), limits=_no_interval, interval=BOOTSTRAP.name)
    return by_bootstrap(drawn.distribution, drawn.settings)


def test_of_bootstrap_t(drawn: OneDifference) -> decision.Test:
    """Return the bootstrap-t test of one difference, no limits: p < 1 − level if its interval excludes the null."""
    from ..stats.resampling import bootstrap_t_p

    if not drawn.varies:
        return decision.Test()
    mean, se, t = drawn.of.diff.item(), math.sqrt(drawn.of.variance.item()), drawn.studentised

    def at(null: float) -> FloatArray:
        return np.array([math.nan if t is None else bootstrap_t_p(mean, se, t, null)])

    return decision.Test(at(0.0), at=at, by_p=True)


def limits_of_t(drawn: OneDifference, test: decision.Test) -> decision.Test:
    """Return the test unchanged: it has Student's t limits unless other limits are put into it."""
    return test


def limits_of_bootstrap(drawn: OneDifference, test: decision.Test) -> decision.Test:
    """Return the test with BCa bootstrap limits. NaN if it cannot be resampled, unchanged if nothing varies."""
    if not drawn.varies:
        return test
    found = drawn.distribution
    if found is None:
        p = np.array([np.nan]) if test.p is None else test.p
        return replace(test, p=p, limits=_no_interval, interval=BOOTSTRAP.name)
    return replace(test, limits=partial(found.interval, method="bca"), interval=BOOTSTRAP.name)


def limits_of_bootstrap_t(drawn: OneDifference, test: decision.Test) -> decision.Test:
    """Return the test with bootstrap-t limits, unchanged if nothing varies. Refuse scores and too few clusters.

    Raises:
        InputError: of a difference of scores, or of few clusters; it names another interval.
    """
    from ..stats.resampling import bootstrap_t

    of = drawn.of
    _check_measure(drawn.samples)
    if not drawn.varies:
        return test
    limits: Callable[[float], Limits[float]] = _no_interval
    if (t := drawn.studentised) is not None:
        limits = partial(bootstrap_t, of.diff.item(), math.sqrt(of.variance.item()), t)
    return replace(test, limits=limits, interval=BOOTSTRAP_T.name)


def _check_measure(samples: Samples) -> None:
    """Refuse bootstrap-t for a metric without a unit (a score, not a cost), or with too few clusters.

    Raises:
        InputError: it names another interval.
    """
    for side in samples:
        if side.of.parts[0].unit is None:
            raise InputError(
                f"{side.of.name}: `interval='bootstrap-t'` is for measures such as cost: scores have no tail that is "
                "longer than their range. Leave it out, or use `interval='bootstrap'`"
            )
        side.of.check_studentised(side.design)


def why_no_signs(of: Sample) -> str:
    """Return a message that a ratio of sums has no sign test, "" if the sign test applies."""
    return f"{of.name}: no question has a ratio of sums, so none has a sign: use `test='t'`" if of.ratio else ""


def by_bootstrap(distribution: Distribution, settings: Settings, method: Method = "bca") -> decision.Test:
    """Return a Test with the bootstrap's interval and p-value, each only if the settings choose it for that."""

    def at(null: float) -> FloatArray:
        return np.array([distribution.p_value(null, method)])

    tested = settings.test_of_difference == BOOTSTRAP_TEST.name
    p = at(0.0) if tested else None
    if settings.interval_of_difference != BOOTSTRAP.name:  # the interval is t's, and not this test's
        return decision.Test(p, at=at, by_p=True)
    limits = partial(distribution.interval, method=method)
    return decision.Test(p, at=at, by_p=tested, limits=limits, interval=BOOTSTRAP.name)
