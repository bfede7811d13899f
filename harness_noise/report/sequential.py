"""Display of looks, replays and random subsets of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import counted
from ..results.rows import CANNOT, NOT_DECIDED, Analysis
from . import fmt
from .columns import Column, Marks, Section, TextColumn, section

if TYPE_CHECKING:
    from ..results.arena import Arena, Budget
    from ..results.sequential import FullRow, Sequential


def look_section(rows: Sequence[Sequential], title: str = "Looks at a run that grows") -> Section:
    """Return the table of the looks at runs."""
    means = {row.rule == "se" for row in rows}
    what = "mean" if means == {True} else "A − B" if means == {False} else "estimate"
    meaning = "questions answered so far, of all (answers, if there are several per question)"
    columns = (
        TextColumn("Task", "task"),
        TextColumn("Metric", "metric"),
        Column("look", _look, "looks that were taken, and how many were planned"),
        Column("asked", _so_far, meaning),
        Column(
            what, "estimate", "corrected for stopping early (median-unbiased) if a boundary was crossed, else the mean"
        ),
        Column("interval", fmt.interval_of, "valid whenever the looks stop it"),
        Column("p", "p_value", "allowing for the looks"),
        Column("plain", "estimate_unadjusted", "mean, not corrected for the looks"),
        TextColumn("Decision", lambda row: fmt.plain(fmt.scale_of(row).verdict(row.decision))),
    )
    return section(title, rows, columns)


def _look(row: Sequential) -> str:
    return f"{row.look}" if row.looks == "anytime" else f"{row.look} of {fmt.plain(str(row.looks))}"


def stopping(table: Analysis, marks: Marks) -> tuple[list[Section], list[str], list[str]]:
    """Return tables of stopped runs and whole benchmarks, sentences on looks, and sentences on drawn questions."""
    sections = [look_section(table.sequential, "When the run stopped")] if table.sequential else []
    sections += [full_section(table.full_benchmark, marks)] if table.full_benchmark else []
    return sections, [stopped(row) for row in table.sequential], drawn(table)


def told(table: Analysis) -> list[str]:
    """Return sentences for a paper on what made a run stop, and on tasks of which a random subset was asked."""
    return [stopped(row) for row in table.sequential] + drawn(table)


def drawn(table: Analysis) -> list[str]:
    """Return sentences for a paper on tasks of which a random subset was asked."""
    return [
        f"{fmt.plain(row.task)}: {row.n_asked:,} of {row.n_total:,} questions, drawn at random"
        f"{', uncertain ones more often' * bool(row.chances)}{_seed(row.order_seed)}."
        for row in table.drawn
        if not row.stopped_early and row.n_asked < row.n_total
    ]


def stopped(row: Sequential) -> str:
    """Return a sentence for a paper on a run that stopped."""
    looks = f"look {_look(row)}"
    order = f"in random order{_seed(row.order_seed)}"
    if row.complete:
        how = f"all {counted(row.n_total, 'question')} were asked, {order}, {fmt.plain(row.rule)}, {looks}"
    else:
        word = row.decision if row.decision == NOT_DECIDED else "stopped early"
        how = f"{word} at {looks}, {fmt.plain(row.rule)}, after {_asked(row)} {order}"
    what = "mean" if row.rule == "se" else "A − B"
    plain = fmt.shown(row, row.estimate_unadjusted, mean=row.rule == "se", unit=True)
    rest = ": the rest cannot decide it" if row.decision == CANNOT else ""
    return (
        f"{what} = {fmt.shown(row, row.estimate, mean=row.rule == 'se', unit=True)}, {fmt.percent(row.level)} CI "
        + fmt.interval_of(row)
        + ("" if row.rule == "se" else ", both allowing for the looks")
        + f" (plain: {plain}) on {fmt.plain(row.task)} "
        + f"({fmt.metric_name(row.metric, row.scorer)}; {how}): "
        + f"{fmt.plain(fmt.scale_of(row).verdict(row.decision))}{rest}."
    )


def _so_far(row: Sequential) -> str:
    """Return "300 of 1,000", or, of several answers to each question, "1,200 of 5,000 answers"."""
    if row.n_answers is None or row.n_answers_total is None or row.n_answers_total <= row.n_total:
        return f"{row.n_asked:,} of {row.n_total:,}"
    return f"{row.n_answers:,} of {row.n_answers_total:,} answers"


def _asked(row: Sequential) -> str:
    """Return "300 of 1,000 questions", or "1,200 of 5,000 answers to 300 of 1,000 questions"."""
    questions = f"{row.n_asked:,} of {row.n_total:,}"
    return f"{questions if (so_far := _so_far(row)) == questions else f'{so_far} to {questions}'} questions"


def _seed(seed: int | None) -> str:
    return "" if seed is None else f" (seed {seed})"


def full_section(rows: Sequence[FullRow], marks: Marks) -> Section:
    """Return the table of whole benchmarks that were estimated from random subsets.

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
    """Return A − B on all questions, of which A and B have answered different random parts, "" for other rows."""
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


def budget_section(arena: Arena) -> Section:
    """Return the table of what it takes to show which models are worse than the best."""
    more = (
        "new questions needed for 80% power at the same K, if the true difference is the one observed. With "
        "clusters, in new clusters of the same size"
    )
    columns = (
        TextColumn("Task", "task"),
        TextColumn("Metric", "metric"),
        TextColumn("best", "best"),
        TextColumn("not shown to be worse", "model"),
        Column("ahead by", _ahead),
        Column("n", "n_questions", "questions that both have"),
        Column("K", "repeats", "answers per question"),
        Column("more questions", lambda row: _new_questions(row, arena), more),
        Column("or more answers", "more_repeats", "to each question (– if no number is enough, or it is unknown)"),
    )
    return section("What it takes to show a difference from the best", arena.budget, columns)


def _ahead(row: Budget) -> str:
    return fmt.shown(row, row.diff, digits=fmt.decimals(abs(row.diff) / 3 if row.diff else None))


def _new_questions(row: Budget, arena: Arena) -> str:
    """Return the number of questions to add, with the number of new clusters if they come in clusters."""
    if row.more_questions is None:
        return fmt.MISSING
    board = next(board for board in arena.boards if board.key == row.key)
    pair = board.pairs.find(row.best, row.model)
    if pair.cluster is None:
        return f"{row.more_questions:,}"
    return (
        f"{row.more_questions:,} ({counted(round(row.more_questions * pair.n_clusters / pair.n_questions), 'cluster')})"
    )
