"""Results of a run that was looked at while it grew, or that answered only some of the questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..data.scores import Measured
from .forms import row

STOPS = SEQUENTIAL = "sequential"
"""The test and the interval of a difference for which a run was stopped, and the field that has its records."""
KEYWORD = "looks"
"""The keyword of `compare` that asks for such records, whose extra shows them and corrects what they are of."""
KEPT_BESIDE = f".{KEYWORD}.json"
"""The ending of the file next to a run that keeps them."""


@dataclass(frozen=True, slots=True)
class _Object:
    """One object of the JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return this part of a result as a dictionary for JSON, None for what cannot be estimated."""
        return row(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequential(Measured, _Object):
    """A comparison, or a mean, that was looked at while it grew."""

    rule: str
    """group-sequential, confidence sequence (a look after every block), or se (until a standard error is reached)."""
    looks: int | str
    """Looks that were planned, or anytime."""
    look: int
    """Looks that were taken."""
    alpha_spent: float
    """Two-sided error that these looks may spend, all of it for a confidence sequence, none for the rule se."""
    n_asked: int
    n_total: int
    order_seed: int | None
    """Seed of the random order of questions (whole clusters), or of the harness's shuffle, null if that has none."""
    decision: str
    """A better, B better, equivalent within M, not separable (all was asked), cannot be decided (stopped for futility:
    the rest would not have decided it either), precise enough (the rule se), or not decided: it ended before the rule
    had decided."""
    estimate: float | None
    """Median-unbiased in the stage-wise ordering if a boundary was crossed or all was asked, else the mean."""
    ci_low: float | None
    """Limits that are valid after stopping: stage-wise where a boundary was crossed or all was asked, else repeated."""
    ci_high: float | None
    estimate_unadjusted: float | None
    """The estimate before that adjustment, which stopping early makes too extreme: the plain mean, or that of the
    regression on B and the references."""
    diff: float | None = None
    """A − B of the questions that both had answered, as a comparison of the two shows it, null for the rule se."""
    baseline: str | None = None
    """Hash of B's means of these questions and of their names, by which a comparison recognises B. null for the rule
    se."""
    clusters: str | None = None
    """Hash of which of these questions share a cluster, by which clusters that a comparison names are recognised. null
    for the rule se."""
    p_value: float | None = None
    """Two-sided p of no difference, corrected for the looks, null for the rule se.

    It is stage-wise if the rule stopped, else repeated (the level at which this look would have stopped).
    """
    futility: float | None = None
    """Predictive probability that the rest of the answers decides it, null if futility is off."""
    round: int = 1
    """The highest answer to a question that was asked for: 1 while every question is asked for the first time."""
    n_answers: int | None = None
    n_answers_total: int | None = None
    information: float | None = None
    """Share of the information of the full design that this look had."""
    level: float = 0.95
    """1 − the error of the whole procedure, and what the limits are of."""
    _zero_one: bool | None = field(default=None, repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """True if all questions and answers planned were asked, so that nothing was saved by stopping early."""
        if self.n_answers is None or self.n_answers_total is None:
            return self.n_asked >= self.n_total
        return self.n_answers >= self.n_answers_total


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn(_Object):
    """A task of which questions were asked that were drawn at random from all of them, whole clusters."""

    task: str
    n_asked: int
    n_total: int
    order_seed: int | None
    """Seed of the drawing, or of the harness's shuffle, null if that has none."""
    stopped_early: bool
    """True if the number was not fixed before: the run stopped when it was decided, or precise enough."""
    chances: Mapping[str, float] | None = None
    """Key of every question that was drawn → its probability, null if all are equal."""
    n_only: int | None = None
    """The number of those asked that meet `only`, null without conditions. The other numbers are of all questions."""


KINDS: Mapping[str, type[Any]] = {STOPS: Sequential, "drawn": Drawn}
"""Field of a result with what runs have recorded → the kind of one record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullBenchmark(_Object):
    """The mean over all N questions of a benchmark, estimated from a random subset of them and reference runs.

    Of a comparison with a run B that has answered them all, it is A's mean, estimated with B and the references, minus
    B's, which is known.
    """

    estimate: float | None = None
    """The plain mean of the part where that is too small for a regression (fewer than 30 questions or clusters)."""
    se: float | None = None
    """For these N questions: (1 − n_asked/N) of the variance of the residuals' mean."""
    ci_low: float | None = None
    ci_high: float | None = None
    n_asked: int
    n_asked_b: int | None = None
    """The questions that B has answered, if B has answered another subset, else null."""
    n_total: int
    r2: float | None = None
    """Share of the variance between A's question means that B and the references explain, cross-fitted.

    Below 0: none. null without a regression.
    """
    gain: float | None = None
    """Variance of the subset's plain mean over that of the regression estimate, null without a regression.

    At most 1: nothing gained.
    """
    references: tuple[str, ...]
    """The runs that predict."""
    diagnostics: tuple[str, ...] = ()
    """Codes, each explained in docs/diagnostics.md.

    With `zero_variance` there is neither `se` nor an interval: if all questions of the subset have the same score, it
    is unknown how far the others differ.
    """
    se_population: float | None = None
    """For other questions of the kind, too: with the variance that the mean of all N questions has."""
    ci_low_population: float | None = None
    ci_high_population: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FullRow(FullBenchmark):
    """One of several, with what it is of."""

    task: str
    metric: str
    scorer: str
    model: str
    """Name of the model, of a comparison both names, as in "new − old"."""
    _zero_one: bool | None = field(default=None, repr=False, compare=False)
    """As of other rows (`Measured`)."""
    _of_two: bool = field(default=False, repr=False, compare=False)
    """True if the row is of a difference of two runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(_Object):
    """Two runs compared in many random orders of their questions: how many of A's answers would have been enough."""

    orders: int
    n_total: int
    """Answers of A."""
    n_mean: float
    """Answers asked when it stopped, n_total if nothing was decided before."""
    n_median: int
    n_low: int
    """In a tenth of the orders so few were enough."""
    n_high: int
    """In a tenth of the orders as many were needed, or more."""
    decisions: Mapping[str, float]
    """Share of the orders that ended with each decision."""
