"""Results of totals: the spread of the runs of a configuration, and the difference of two configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ...data.notes import Note
from ...data.scores import Measured
from ...results.diagnostics import Diagnostic, Severity, register
from ...results.forms import Document

register(
    Diagnostic(
        "single_run",
        Severity.STOP,
        "one run does not show how far runs differ, so there is no interval",
        "Give the totals of two runs or more.",
        page="One total of a configuration does not show how far its runs differ. Only the mean is given.",
    ),
    Diagnostic(
        "equal_totals",
        Severity.CARE,
        "all runs have the same total, which does not show how far further runs may differ, so there is no interval",
        "Check that the runs are not copies of one run, and give the totals of more runs.",
        page="All runs of a configuration have the same total. A spread of 0 does not show how far further runs may "
        "differ, so only the mean is given.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(Measured):
    """The totals of one configuration's runs, on the questions that the runs were asked."""

    model: str
    higher_is_better: bool | None = None
    """null: the table does not say, and it counts as true."""
    n_runs: int
    n_questions: int | None
    """Questions of each run, null if they are unknown."""
    mean: float
    se: float | None
    """Standard error of `mean`, √(sd²/R), null for one run, or if all totals are equal."""
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
    """Runs − 1."""
    sd_runs: float | None
    """Standard deviation between runs."""
    sd_answers: float | None
    """The SD that independent answers make: the most that they can (`at_most`), or an estimate from the answers.

    null if all totals are an end of the range: then they bound nothing.
    """
    at_most: bool
    """True if `sd_answers` is an upper bound, because only totals are known."""
    next_low: float | None
    """Lower limit of one further run, two-sided."""
    next_high: float | None
    next_worst: float | None
    """One-sided limit on the worse side: a further run is worse in 1 − `level` of cases."""
    range: tuple[float, float] | None = None
    estimand: str = "these_questions"
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMean(Measured):
    """The mean of one run, over the questions that all runs have."""

    model: str
    run: str
    """Its name, or the number of the repeat."""
    n_questions: int
    mean: float


@dataclass(frozen=True, slots=True, repr=False)
class Totals(Document):
    """Means and spreads of the runs of one or more configurations."""

    renderers: ClassVar[Mapping[str, str]] = {"summary": "harness_noise.extra.totals.report:of_totals"}
    kind: ClassVar[str] = "totals"
    always: ClassVar[tuple[str, ...]] = ("totals", "notes")
    if_any: ClassVar[tuple[str, ...]] = ("run_means",)

    settings: Mapping[str, Any]
    totals: tuple[Total, ...]
    run_means: tuple[RunMean, ...] = ()
    """Each run by itself, where runs were told apart by their answers."""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalDifference(Measured):
    """A − B of the means of two sets of runs, on the questions that both were asked."""

    model_a: str
    model_b: str
    higher_is_better: bool | None = None
    n_runs_a: int
    n_runs_b: int
    n_questions: int | None
    mean_a: float
    mean_b: float
    diff: float
    se: float | None
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
    """Welch's."""
    statistic: float | None
    p_value: float | None
    p_adjusted: float | None
    """Over all rows, Holm."""
    sd_a: float
    sd_b: float
    verdict: str
    """A better, B better, or not separable."""
    estimand: str = "these_questions"
    diagnostics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class TotalsComparison(Document):
    """Differences of two sets of totals."""

    renderers: ClassVar[Mapping[str, str]] = {"summary": "harness_noise.extra.totals.report:of_differences"}
    kind: ClassVar[str] = "total_differences"
    always: ClassVar[tuple[str, ...]] = ("total_differences", "notes")

    settings: Mapping[str, Any]
    total_differences: tuple[TotalDifference, ...]
    notes: tuple[Note, ...] = ()
