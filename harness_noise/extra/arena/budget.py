"""Display of what it takes to show which models are worse than the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import counted
from ...report import fmt
from ...report.columns import Column, Section, TextColumn, section

if TYPE_CHECKING:
    from .results import Arena, Budget


def budget_section(arena: Arena) -> Section:
    """Return a table of `arena.budget`: how many more questions or answers would show rivals as worse than the best."""
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
    """Return the questions to add as text, "120 (12 clusters)" if they come in clusters, "–" if unknown."""
    if row.more_questions is None:
        return fmt.MISSING
    board = next(board for board in arena.boards if board.key == row.key)
    pair = board.pairs.find(row.best, row.model)
    if pair.cluster is None:
        return f"{row.more_questions:,}"
    return (
        f"{row.more_questions:,} ({counted(round(row.more_questions * pair.n_clusters / pair.n_questions), 'cluster')})"
    )
