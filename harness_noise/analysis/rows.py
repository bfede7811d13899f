"""Rows of results: what moments, an interval or a decision, and diagnostics make of a mean or a difference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from .. import extras
from ..arrays import FloatArray, blank, stacked
from ..data.scores import OnQuestions, Run
from ..results.diagnostics import OF_ALL_ANSWERS, SCORED
from ..results.rows import COULD, COULD_NOT, NO_RANGE, NOT_KNOWN, SCORED_DIFFERENTLY, Difference, difference
from ..settings import Settings
from ..stats import decision
from ..stats.contrast import Design
from ..stats.decision import Decision, Differences, Skew, detectable_distance, skew_of
from ..stats.intervals import Limits
from ..stats.missing import UNTOLD, Reach
from ..stats.moments import Moments, is_skewed, undefined_moments
from ..stats.pairs import Leads, Sides, difference_columns, noise_columns, sides_of

NOWHERE = Limits(math.nan, math.nan)


@dataclass(frozen=True, slots=True)
class Interval:
    """The confidence interval of one mean."""

    ends: Limits[float] = NOWHERE
    """NaN where there is none."""
    name: str = "none"
    moved: float = 0.0
    """Distance that the limit on the side of the long tail was moved, in standard errors."""


def mean_fields(
    key: tuple[str, str, str], run: Run, m: Moments, settings: Settings, interval: Interval, *, clustered: bool
) -> dict[str, Any]:
    """Return the fields of a mean's row: names, mean, standard errors, interval (none if it lacks the mean).

    An interval that does not hold its own estimate is never written, whatever made it.
    """
    task, metric, scorer = key
    interval = interval if interval.ends.hold(m.mean).all() else Interval()
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


NO_DIRECTION = "the run does not say whether higher or lower is better. Higher is taken to be better"


NO_WHOLE = extras.not_installed("the noise of a metric that is not a mean over questions")


def compared_fields(
    parts_a: Sequence[OnQuestions], parts_b: Sequence[OnQuestions], run_a: Run, run_b: Run
) -> dict[str, Any]:
    """Return fields of a difference: task, metric, scorer, higher_is_better, model_a, model_b, n_missing."""
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
class Filled:
    """A row with other scores in place of those that are missing."""

    rows: tuple[RowDecision, ...] = ()
    """The worst for A first, then the best, then others. Empty: it is not known what could be filled in."""
    reach: Reach = UNTOLD
    """Bounds of its test over all possible scores. If the test rises with the scores, the first two rows are its
    extremes."""
    ranged: bool = True
    """True if the range of the metric is known."""


@dataclass(frozen=True, slots=True)
class RowDecision:
    """A row before its verdict, which depends on the other rows of its family."""

    fields: Mapping[str, Any]
    """Fields of a `Difference` that are known by now. Numbers that are not given become null."""
    codes: frozenset[str]
    """Its diagnostics."""
    decision: Decision
    """The row's own decision, (1,)."""
    family: str = ""
    recorded: str = ""
    """The verdict of the rule that stopped a run, which stands unless the adjustment takes a difference back."""
    filled: Filled | None = None
    """None: nothing is missing, or all of it counts as wrong."""
    skew: Skew | None = None
    """Skewness of its paired differences by question (cluster), None if they are not a sample, or of several tasks."""

    @classmethod
    def of(cls, own: Decision, codes: Iterable[str], *, skew: Skew | None = None, **fields: Any) -> RowDecision:
        """Make an undecided row from a difference's test decision, its diagnostic codes and its named fields."""
        return cls(fields, frozenset(codes), own, skew=skew)

    def named(self, **fields: Any) -> RowDecision:
        """Return the row with these named fields added or replaced."""
        return replace(self, fields={**self.fields, **fields})


def _if_missing(row: RowDecision, code: int, size: int, settings: Settings) -> tuple[str | None, tuple[int, ...]]:
    """Return whether missing answers could change the verdict (a word, None: none missing), and other verdicts' codes.

    Its family may change, too: a difference must survive Bonferroni's adjustment, which is never less than Holm's.

    Args:
        row: the row.
        code: of its verdict.
        size: of its family.
        settings: level and adjustment.
    """
    if row.filled is None:
        return None, ()
    if not row.filled.rows:
        return (NOT_KNOWN if row.filled.ranged else NO_RANGE), ()
    reached: list[int] = []
    times = 1 if settings.adjust == "none" else size
    for other in row.filled.rows:
        own = other.decision
        shown = bool(own.separable[0])
        if code in (decision.A, decision.B):
            shown = shown and float(own.p[0]) * times < 1 - settings.level
        undecided = decision.EQUIVALENT if own.equivalent[0] else decision.SAME
        reached.append((decision.A if _a_ahead(other) else decision.B) if shown else undecided)
    if others := tuple(dict.fromkeys(found for found in reached if found != code)):
        return COULD, others
    # whether two limits lie within a margin hangs on more than one t
    if code not in (decision.A, decision.B) and settings.margin is not None:
        return NOT_KNOWN, ()
    reach = row.filled.reach
    known = reach.rises or _p_stays_on_side(row.filled, code, times, settings)
    # if nothing varies the sign test decides, which shows nothing with few clusters, however large t is beside it
    as_by_t = reach.p_flat * times < 1 - settings.level
    return (COULD_NOT if known and as_by_t else NOT_KNOWN), ()


def _diff_if_missing(row: RowDecision) -> tuple[float, float] | None:
    """Return (lowest, highest) difference that the missing answers of a row allow, None if it is not known."""
    filled = () if row.filled is None or SCORED in row.codes else row.filled.rows[:2]
    ends = [other.fields["diff"] for other in filled]
    return None if not ends or None in ends else (min(ends), max(ends))


def _p_stays_on_side(filled: Filled, code: int, times: int, settings: Settings) -> bool:
    """Return True if p (if A or B is better: × `times`) stays on its side of the level, whatever missing scores are."""
    low, high = filled.reach.low, filled.reach.high
    nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    p_most, p_least = (2 * special.stdtr(filled.rows[0].fields["df"], -t) for t in (nearest, max(abs(low), abs(high))))
    alpha = 1 - settings.level
    return bool(p_most * times < alpha if code in (decision.A, decision.B) else p_least >= alpha)


def _a_ahead(row: RowDecision) -> bool:
    return bool(((row.fields["diff"] or 0.0) > 0) == (row.fields["higher_is_better"] is not False))


def decide_rows(rows: Sequence[RowDecision], settings: Settings) -> list[Difference]:
    """Adjust p-values within families, and return the rows as `Difference`s with their verdicts."""
    if not rows:
        return []
    ahead, families = [_a_ahead(row) for row in rows], Counter(row.family for row in rows)
    own = stacked([row.decision for row in rows])
    verdicts = decision.apply_adjustment(own, np.array(ahead, dtype=np.bool_), settings, [row.family for row in rows])
    out = []
    for i, row in enumerate(rows):
        withheld = SCORED in row.codes
        lost = {"not_after_adjustment"} if verdicts.lost_to_adjustment[i] and not withheld else set()
        code, size = int(verdicts.codes[i]), families[row.family]
        if_missing, others = (None, ()) if withheld else _if_missing(row, code, size, settings)
        fields = {
            **row.fields,
            **{name: float(column[i]) for name, column in own.numbers().items()},
            "verdict": _verdict(row, verdicts, i),
            "p_adjusted": float(verdicts.p_adjusted[i]),
            "interval": str(own.interval[i]),
            "if_missing": if_missing,
            "_diff_if_missing": _diff_if_missing(row),
            "_verdicts_if_missing": tuple(verdicts.words[other] for other in others),
            "diagnostics": tuple(sorted(row.codes | lost)),
        }
        out.append(difference(**fields))
    return out


def _verdict(row: RowDecision, verdicts: decision.Verdicts, i: int) -> str:
    """Return row i's verdict as text: withheld, else recorded (if adjustment leaves it), else that of the test."""
    if SCORED in row.codes:
        return SCORED_DIFFERENTLY
    if row.recorded and not verdicts.lost_to_adjustment[i]:
        return row.recorded
    word: str = verdicts.words[verdicts.codes[i]]
    return word


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """One difference as it is decided, and the other facts of its row."""

    m: Moments
    of: Differences
    test: decision.Test
    leads: Leads
    sides: Sides
    clustered: bool = False
    """True if the variance uses clusters."""
    paired: tuple[FloatArray, Design] | None = None
    """The paired differences and their design, where they are a sample of questions."""


def null_row(a: OnQuestions, b: OnQuestions, run_a: Run, run_b: Run, settings: Settings) -> RowDecision:
    """Return the row of a difference of which nothing is known: two metrics that nothing installed estimates."""
    unknown, none = np.full(1, math.nan), np.zeros(1, dtype=np.intp)
    m = undefined_moments(np.zeros(1), np.zeros(1))
    of = Differences(unknown, unknown, unknown, np.zeros(1, dtype=np.bool_), unknown)
    sides = sides_of([none, none], [none, none], [m, m], unknown)
    evidence = Evidence(m, of, decision.Test(), blank(Leads, 1), sides)
    return row_of(evidence, {"skipped_metric"}, settings, **compared_fields([a], [b], run_a, run_b))


def row_of(evidence: Evidence, codes: Iterable[str], settings: Settings, **fields: Any) -> RowDecision:
    """Return the row of a difference before its verdict. May add `few_flips`, `skewed` and drop `single_repeat`."""
    codes, skew = set(codes), None
    if evidence.of.far is not None and not np.isnan(evidence.of.far.mean[0]):
        codes.add("few_flips")
    if evidence.paired is not None:
        d, design = evidence.paired
        codes |= {"skewed"} if fields["unit"] is not None and is_skewed(d, design) else set()
        if not design.strata.any():
            skew = skew_of(np.bincount(design.clusters, weights=d - d.mean()).astype(np.float64))
    lower = fields["higher_is_better"] is False
    columns = difference_columns(evidence.m, evidence.leads, evidence.sides, evidence.clustered, lower=lower)
    numbers: dict[str, Any] = {name: column.item() for name, column in columns.items()}
    if OF_ALL_ANSWERS & codes:
        codes.discard("single_repeat")
        numbers["se_total"] = None
    numbers |= {"level": settings.level, "test": settings.test_of_difference, "estimand": settings.estimand}
    return RowDecision.of(decision.decide(evidence.of, settings, evidence.test), codes, skew=skew, **numbers | fields)
