"""Display of random subsets of a benchmark, and of the whole that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import fmt
from .columns import Column, Marks, Section, TextColumn, section

if TYPE_CHECKING:
    from ..results.parts import FullRow
    from ..results.rows import Analysis


def drawn(table: Analysis) -> list[str]:
    """Return a paper's sentences on tasks with a random subset of questions, if the run did not stop early."""
    return [
        f"{fmt.plain(row.task)}: {row.n_asked:,} of {row.n_total:,} questions, drawn at random"
        f"{', uncertain ones more often' * bool(row.chances)}{seed_words(row.order_seed)}"
        f"{'' if row.n_only is None else f'; {row.n_only:,} of these {row.n_asked:,} meet the conditions'}."
        for row in table.drawn
        if not row.stopped_early and row.n_asked < row.n_total
    ]


def seed_words(seed: int | None) -> str:
    """Return " (seed 7)" for this seed, "" for None."""
    return "" if seed is None else f" (seed {seed})"


def full_section(rows: Sequence[FullRow], marks: Marks) -> Section:
    """Return the table (never None) of whole-benchmark means that were estimated from random subsets.

    `marks` gives the letters of the diagnostics."""

    def population(row: FullRow) -> str:
        ends = row.ci_low_population, row.ci_high_population
        return fmt.interval_text(row, *ends, mean=fmt.is_mean(row, "ci_low"))

    columns = (
        TextColumn("Task", "task"),
        TextColumn("Metric", "metric"),
        TextColumn("Model", "model"),
        Column("asked", _asked_of, "questions that were answered, by A and B if these differ, of all"),
        Column(
            "whole benchmark",
            "estimate",
            "estimate from the complete runs (and B), or the plain mean of a small subset",
        ),
        Column("SE", "se", "of the mean over all these questions"),
        Column("interval", fmt.interval_of, "of the mean over all these questions"),
        Column("population", population, "interval of the mean over all questions that could be asked", 1),
        Column("R²", _r2, "share of the variance between questions that is predicted", 2),
        Column("gain", _gain, "variance of the plain mean of the part over that of the estimate"),
        marks.column(),
    )
    return section("The whole benchmark, from a part of it", rows, columns)


def two_parts_words(row: FullRow) -> str:
    """Return a sentence with A − B on all questions, if A and B answered different subsets. Else ""."""
    if row.n_asked_b is None or row.estimate is None or row.ci_low is None:
        return ""
    ends = row.ci_low_population, row.ci_high_population
    wide = fmt.interval_text(row, *ends, mean=fmt.is_mean(row, "ci_low"))
    diff = f"{row.model} = {fmt.amount(row, row.estimate)}"
    these = f"{fmt.interval_of(row)} on these {row.n_total:,} questions"
    what = f"{row.task} {row.metric}: from both parts and the complete runs, {diff}"
    return fmt.plain(f"{what} {these}, {wide} on all that could be asked.")


def _asked_of(row: FullRow) -> str:
    both = f"{row.n_asked:,}" if row.n_asked_b is None else f"{row.n_asked:,} and {row.n_asked_b:,}"
    return f"{both} of {row.n_total:,}"


def _r2(row: FullRow) -> str:
    return fmt.MISSING if row.r2 is None else f"{max(0.0, row.r2):.2f}"


def _gain(row: FullRow) -> str:
    return f"{row.gain:.2f}" if row.gain is not None and row.gain > 1 else "none"
