"""The noise of a row: variances per question, from which power and numbers of questions are computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..data.units import PERCENT, Scale
from ..errors import InputError
from ..extras import explaining
from ..results.rows import Difference, Estimate
from .sizes import QUESTIONS, Units, Variances

TWO_RUNS = "A − B of two runs"
ONE_RUN = "the mean of one run against a fixed number"


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
    """The share of the variance that is predicted, None if no correction predicts one."""
    repeats: int | None = None
    """Answers per question of the pilot, None without a pilot or if its runs or questions differ in it."""
    zero_one: bool | None = None
    """The scores are 0 or 1, so that differences are shown in points. None: unknown."""

    @property
    def start(self) -> Variances:
        """Variances that a plan starts from: with ω² at its upper limit if that is known, else the estimates."""
        return self.variances if self.upper is None else self.upper

    def amount(self, value: float) -> str:
        """Format a difference as text: in points if scores are 0 or 1 ("2 points"), else as it is ("0.02")."""
        return (PERCENT if self.zero_one else Scale()).given(float(f"{value:.3g}"))


def noise_of(
    row: Estimate | Difference,
    each: Sequence[Estimate] = (),
    scale: tuple[float, float] | None = None,
    assurance: float = 0.8,
) -> Noise:
    """Return the variances per question behind a row, from which sizes are planned. Refuse a row without an SE.

    Args:
        row: the mean, or A − B.
        each: of a difference the means of both runs, if they are known.
        scale: the range of the metric.
        assurance: the level of the upper limit of ω².

    Raises:
        InputError: the row has no standard error.
    """
    if (module := explaining(row)) is not None:
        noise: Noise = module.noise(row, scale, assurance)
        return noise
    if row.se is None or row.se_total is None:
        why = f"no standard error to plan with ({', '.join(row.diagnostics)})"
        if isinstance(row, Difference) and row.unadjusted is not None:
            why = "a run that stopped early has no standard error to plan with. Plan from runs that were not stopped"
        raise InputError(f"{row.task}, {row.metric}: {why}")
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
    """Return the number of answers per question. None if questions or runs have different numbers."""
    if isinstance(row, Difference):
        return row.repeats_a if row.repeats_a == row.repeats_b else None
    return row.repeats_max if row.repeats_min == row.repeats_max else None
