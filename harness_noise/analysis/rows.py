"""Rows of results: what moments, an interval or a decision, and diagnostics make of a mean or a difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import FloatArray, stacked
from ..data.scores import OnQuestions, Run
from ..results.diagnostics import OF_ALL_ANSWERS
from ..results.rows import Difference, difference
from ..settings import Settings
from ..stats import decision
from ..stats.contrast import Design
from ..stats.decision import Decision, Differences, Skew, detectable_distance, skew_of
from ..stats.intervals import Limits
from ..stats.moments import Moments, is_skewed
from ..stats.pairs import Leads, Sides, difference_columns, noise_columns

NOWHERE = Limits(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Interval:
    """The confidence interval of one mean."""

    ends: Limits[float] = NOWHERE
    """NaN where there is none."""
    name: str = "none"
    moved: float = 0.0
    """How far the end on the side of the long tail was moved, in standard errors."""


def mean_fields(
    key: tuple[str, str, str], run: Run, m: Moments, settings: Settings, interval: Interval, *, clustered: bool
) -> dict[str, Any]:
    """The fields of a row that follow from its task, metric and scorer, its moments and its interval."""
    task, metric, scorer = key
    noise = {name: column.item() for name, column in noise_columns(m, clustered).items()}
    return noise | {
        "task": task,
        "metric": metric,
        "scorer": scorer,
        "model": run.model,
        "run": run.name,
        "n_questions": int(m.n[0]),
        "n_clusters": int(m.n_clusters[0]),
        "mean": m.mean.item(),
        "ci_low": interval.ends.low,
        "ci_high": interval.ends.high,
        "level": settings.level,
        "df": m.df.item(),
        "interval": interval.name,
        "se_naive": math.sqrt(m.naive.item()),
        "n_effective": m.n[0] / noise["design_effect"] if noise["design_effect"] else None,
        "mde": detectable_distance(noise["se"], m.df.item(), settings.level),
    }


NO_DIRECTION = "the run does not say whether higher or lower is better; higher is taken to be better"


def about(parts_a: Sequence[OnQuestions], parts_b: Sequence[OnQuestions], run_a: Run, run_b: Run) -> dict[str, Any]:
    """The fields of a row that say what of two runs it compares."""
    first, other = parts_a[0], parts_b[0]
    return {
        "task": first.task,
        "metric": first.metric,
        "scorer": first.scorer,
        "higher_is_better": other.higher_is_better if first.higher_is_better is None else first.higher_is_better,
        "model_a": run_a.model,
        "model_b": run_b.model,
        "n_missing": sum(part.n_missing for part in (*parts_a, *parts_b)),
    }


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
    """Skewness of its paired differences by question (cluster); None where they are no sample, or of several tasks."""

    @classmethod
    def of(cls, own: Decision, codes: Iterable[str], *, skew: Skew | None = None, **fields: Any) -> RowDecision:
        """The row of one decided difference, with these fields of a `Difference`."""
        return cls(fields, frozenset(codes), own, skew=skew)

    def named(self, **fields: Any) -> RowDecision:
        """The row with these fields, too."""
        return replace(self, fields={**self.fields, **fields})


def decided(rows: Sequence[RowDecision], settings: Settings) -> list[Difference]:
    """The rows with their adjusted p-values and the verdicts that follow from them."""
    if not rows:
        return []
    ahead = [((row.fields["diff"] or 0.0) > 0) == (row.fields["higher_is_better"] is not False) for row in rows]
    own = stacked([row.decision for row in rows])
    verdicts = decision.apply_adjustment(own, np.array(ahead, dtype=np.bool_), settings, [row.family for row in rows])
    out = []
    for i, row in enumerate(rows):
        lost = {"not_after_adjustment"} if verdicts.lost_to_adjustment[i] else set()
        fields = {
            **row.fields,
            **{name: float(column[i]) for name, column in own.numbers().items()},
            "verdict": verdicts.words[verdicts.codes[i]],
            "p_adjusted": float(verdicts.p_adjusted[i]),
            "interval": str(own.interval[i]),
            "diagnostics": tuple(sorted(row.codes | lost)),
        }
        out.append(difference(**fields))
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """One difference as it is decided, and what its row says beside that."""

    m: Moments
    of: Differences
    test: decision.Test
    leads: Leads
    sides: Sides
    clustered: bool = False
    """Whether the variance knows clusters."""
    paired: tuple[FloatArray, Design] | None = None
    """The paired differences and their design, where they are a sample of questions."""


def row_of(evidence: Evidence, codes: Iterable[str], settings: Settings, **fields: Any) -> RowDecision:
    """The row of a difference, with these diagnostics and further fields."""
    codes, skew = set(codes), None
    if evidence.of.far is not None and not np.isnan(evidence.of.far.mean[0]):
        codes.add("few_flips")
    if evidence.paired is not None:
        d, plan = evidence.paired
        codes |= {"skewed"} if fields["unit"] is not None and is_skewed(d, plan) else set()
        if not plan.strata.any():
            skew = skew_of(np.bincount(plan.clusters, weights=d - d.mean()).astype(np.float64))
    lower = fields["higher_is_better"] is False
    columns = difference_columns(evidence.m, evidence.leads, evidence.sides, evidence.clustered, lower=lower)
    numbers: dict[str, Any] = {name: column.item() for name, column in columns.items()}
    if OF_ALL_ANSWERS & codes:
        codes.discard("single_repeat")
        numbers["se_total"] = None
    numbers |= {"level": settings.level, "test": settings.test, "estimand": settings.estimand}
    return RowDecision.of(decision.decide(evidence.of, settings, evidence.test), codes, skew=skew, **numbers | fields)
