"""From the evidence of one difference to its interval and tests, and to its row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray, stacked
from ..data.scores import Group, Run, Scores, causes_of
from ..results.diagnostics import OF_ALL_ANSWERS
from ..results.rows import Difference, difference
from ..settings import Settings
from ..stats import decision
from ..stats.contrast import Design
from ..stats.decision import Decision, Differences, Skew, by_sign, skew_of
from ..stats.intervals import Limits
from ..stats.moments import Moments, is_skewed
from ..stats.pairs import Leads, Sides, difference_columns
from .ranges import Ends, score_range
from .sample import codes_of, own_group

if TYPE_CHECKING:
    from ..stats import resampling


@dataclass(frozen=True, slots=True)
class Compared:
    """What one row compares: a task of two runs, or the tasks of a group."""

    parts_a: Sequence[Scores]
    parts_b: Sequence[Scores]
    run_a: Run
    run_b: Run
    group: Group | None = None

    @property
    def parts(self) -> tuple[Scores, ...]:
        return (*self.parts_a, *self.parts_b)

    def bounds(self, settings: Settings) -> tuple[float, float] | None:
        """Lowest and highest value of the metric, by all scores of the two runs."""
        return score_range([Ends.of(self.parts_a), Ends.of(self.parts_b)], settings)

    def codes(self) -> set[str]:
        """The diagnostics that the scores of both runs bring along."""
        sides = ((self.parts_a, self.run_a), (self.parts_b, self.run_b))
        return set[str]().union(
            *(codes_of(parts, None if self.group is None else own_group(run, self.group)) for parts, run in sides)
        )

    def names(self) -> dict[str, Any]:
        """The fields of the row that say what it is about."""
        first = self.parts_a[0]
        higher = first.higher_is_better if first.higher_is_better is not None else self.parts_b[0].higher_is_better
        return {
            "task": first.task if self.group is None else self.group.name,
            "metric": first.metric,
            "scorer": first.scorer,
            "higher_is_better": higher,
            "unit": first.unit,
            "model_a": self.run_a.model,
            "model_b": self.run_b.model,
            "n_missing": sum(part.n_missing for part in self.parts),
            "missing": causes_of(self.parts),
        }


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the interval and the tests of one difference are computed from."""

    m: Moments
    settings: Settings
    of: Differences
    """The difference, (1,)."""
    samples: Sequence[tuple[FloatArray, Design]] = ()
    """The paired differences and their design; of unpaired runs the values and design of each."""

    @property
    def paired(self) -> bool:
        return len(self.samples) == 1

    def decide(self) -> Decision:
        """Interval, p-value and two one-sided tests of the chosen test."""
        return decision.decide(self.of, self.settings, None if self.m.variance is None else self._test())

    def _test(self) -> decision.Test:
        """The test and the interval that were asked for.

        Sign and permutation tests have no interval of their own, so they call a difference by p. So does the wild
        bootstrap, whose interval holds the nulls that it does not reject.
        """
        settings, varies = self.settings, not self.m.zero_variance
        test = decision.Test()
        if "bootstrap" in (settings.test, settings.interval) and varies:
            test = self._bootstrapped()
        if settings.interval == "bootstrap-t" and varies:
            test = replace(test, limits=self._studentised(), interval="bootstrap-t")
        if settings.test == "wild" and varies:
            from ..stats.resampling import by_wild, wild_test

            wild = wild_test(*self.samples[0], settings.resamples, np.random.default_rng(settings.seed))
            test = by_wild([(np.arange(1), wild)], 1, settings)
        elif settings.test == "sign":
            test = replace(by_sign(self.of.p_zero), limits=test.limits, interval=test.interval)
        elif settings.test == "permutation":
            from ..stats.resampling import sign_flip_p

            rng = np.random.default_rng(settings.seed)
            p = np.array([sign_flip_p(*self.samples[0], settings.resamples, rng)])
            test = replace(test, p=p, by_p=True, of_all=True)
        return test

    def _bootstrapped(self) -> decision.Test:
        """The bootstrap's interval, and its p if that is the test; read with the closed-form variance."""
        from ..stats.resampling import bootstrap

        rng, minus = np.random.default_rng(self.settings.seed), None if self.paired else self.samples[1]
        found = bootstrap(*self.samples[0], self.settings.resamples, rng, minus=minus)
        if found is None or self.m.variance is None or self.m.df is None:
            nothing = np.array([np.nan])
            return decision.Test(nothing, limits=lambda level: Limits(nothing, nothing), interval="bootstrap")
        return by_bootstrap(found.expanded(self.m.variance, self.m.df), self.settings)

    def _studentised(self) -> Callable[[float], Limits[FloatArray]]:
        """The ends of the bootstrap-t interval at any level; NaN where it cannot be resampled."""
        from ..stats.resampling import bootstrap_t, studentised

        t = studentised(*self.samples[0], self.settings.resamples, np.random.default_rng(self.settings.seed))
        mean, variance = self.m.mean or 0.0, self.m.variance or 0.0

        def limits(level: float) -> Limits[FloatArray]:
            ci = Limits(np.nan, np.nan) if t is None else bootstrap_t(mean, math.sqrt(variance), t, level)
            return Limits(np.array([ci.low]), np.array([ci.high]))

        return limits

    @property
    def is_skewed(self) -> bool:
        """Whether paired differences have a tail that a t interval does not allow for."""
        return self.paired and self.settings.questions_are != "fixed" and is_skewed(*self.samples[0])

    @cached_property
    def skew(self) -> Skew | None:
        """Skewness of the questions' (clusters') paired differences; None where there are none, or several tasks."""
        if not self.paired or self.settings.questions_are == "fixed" or self.samples[0][1].strata.any():
            return None
        d, plan = self.samples[0]
        return skew_of(np.bincount(plan.clusters, weights=d - d.mean()).astype(np.float64))


def by_bootstrap(
    found: resampling.Distribution, settings: Settings, method: resampling.Method = "bca"
) -> decision.Test:
    """The interval of one bootstrap distribution, and its p if the bootstrap is the test."""

    def limits(level: float) -> Limits[FloatArray]:
        ci = found.interval(level, method)
        return Limits(np.array([ci.low]), np.array([ci.high]))

    p = np.array([found.p_value(method=method)]) if settings.test == "bootstrap" else None
    if settings.interval_of_difference != "bootstrap":  # the interval is t's, and not this test's
        return decision.Test(p, by_p=True)
    return decision.Test(p, limits=limits, interval="bootstrap")


@dataclass(frozen=True, slots=True)
class RowDecision:
    """A row before its verdict, which depends on the other rows of its family."""

    fields: Mapping[str, Any]
    """Fields of a `Difference` that are known by now; numbers that are not given become null."""
    codes: frozenset[str]
    """Its diagnostics."""
    decision: Decision
    """What the row says for itself; (1,)."""
    family: str = ""
    skew: Skew | None = None
    """Skewness of its paired differences; None where they are no sample, or are unpaired."""

    @classmethod
    def of(cls, own: Decision, codes: Iterable[str], *, skew: Skew | None = None, **fields: Any) -> RowDecision:
        """The row of one decided difference, with these fields of a `Difference`."""
        return cls(fields, frozenset(codes), own, skew=skew)

    def named(self, **fields: Any) -> RowDecision:
        """The row with these fields, too."""
        return replace(self, fields={**self.fields, **fields})

    def decided(self, verdict: str, p_adjusted: float, codes: Iterable[str] = ()) -> Difference:
        """The row with its verdict."""
        numbers = {name: float(column[0]) for name, column in self.decision.numbers().items()}
        return difference(
            **dict(self.fields)
            | numbers
            | {
                "verdict": verdict,
                "p_adjusted": p_adjusted,
                "interval": str(self.decision.interval[0]),
                "diagnostics": tuple(sorted(self.codes.union(codes))),
            }
        )


def decided(rows: Sequence[RowDecision], settings: Settings) -> list[Difference]:
    """The rows with their adjusted p-values and the verdicts that follow from them."""
    if not rows:
        return []
    ahead = [((row.fields["diff"] or 0.0) > 0) == (row.fields["higher_is_better"] is not False) for row in rows]
    verdicts = decision.apply_adjustment(
        stacked([row.decision for row in rows]),
        np.array(ahead, dtype=np.bool_),
        settings,
        [row.family for row in rows],
    )
    return [
        row.decided(
            verdicts.words[verdicts.codes[i]],
            float(verdicts.p_adjusted[i]),
            ("not_after_adjustment",) if verdicts.lost_to_adjustment[i] else (),
        )
        for i, row in enumerate(rows)
    ]


def row_of(
    compared: Compared,
    evidence: Evidence,
    of: Leads,
    sides: Sides,
    codes: set[str],
    clustered: bool,
    **known: Any,
) -> RowDecision:
    """The row of a difference of means.

    Args:
        compared: the runs.
        evidence: what its interval and tests come from.
        of: who leads where.
        sides: what each run is by itself.
        codes: diagnostics beside those that the moments and the scores have.
        clustered: whether the variance knows clusters.
        **known: further fields.
    """
    m, settings = evidence.m, evidence.settings
    codes = codes.union(m.diagnostics, compared.codes())
    if evidence.of.far is not None and not np.isnan(evidence.of.far.mean[0]):
        codes.add("few_flips")
    if compared.parts_a[0].unit is not None and evidence.is_skewed:
        codes.add("skewed")
    columns = difference_columns(m.columns(), of, sides, clustered)
    numbers = {name: None if np.isnan(column[0]) else column.item() for name, column in columns.items()}
    if OF_ALL_ANSWERS & codes:
        codes.discard("single_repeat")
        numbers["se_total"] = None
    fields = numbers | {"level": settings.level, "test": settings.test, "estimand": settings.estimand}
    return RowDecision.of(evidence.decide(), codes, skew=evidence.skew, **fields | compared.names() | known)
