"""The results by slice: means or differences of the questions that have one value of a field."""

from __future__ import annotations

from dataclasses import dataclass

from .rows import Difference, Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSlice(Estimate):
    """One mean, of the questions with one value of a field."""

    field: str
    """The SPEC."""
    value: str
    """The value; of a number, its range."""
    p_value: float | None
    """Of "the mean of this slice is that of all other questions"."""
    p_adjusted: float | None
    """Over all slices that are shown, by Benjamini–Hochberg."""
    shrunken: float | None
    """The mean drawn towards those of the other slices, as far as its noise makes it (empirical Bayes); null with
    fewer than four slices."""
    shrunken_ci_low: float | None
    shrunken_ci_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceSlice(Difference):
    """A − B on the questions with one value of a field; `p_adjusted` is over all slices, by Benjamini–Hochberg."""

    field: str
    value: str
    shrunken: float | None
    """The difference drawn towards those of the other slices; null with fewer than four slices."""
    shrunken_ci_low: float | None
    shrunken_ci_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heterogeneity:
    """Do the slices of one field differ at all?"""

    task: str
    metric: str
    scorer: str
    model_a: str
    model_b: str | None
    """null: the means of one run; else A − B."""
    field: str
    n_slices: int
    n_left_out: int
    """Questions without a value of the field."""
    statistic: float | None
    """Brown and Forsythe's F*, clustered; null where no two slices have two clusters, or nothing varies."""
    df: float | None
    df_residual: float | None
    p_value: float | None
    p_adjusted: float | None
    """Over all fields that are shown, by Benjamini–Hochberg."""
    spread: float | None
    """Standard deviation of the true slice means, as estimated; null with fewer than four slices."""
    diagnostics: tuple[str, ...] = ()
