"""What a board's ranks say, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .columns import number, shorten

if TYPE_CHECKING:
    from ..results.arena import BenchmarkResult

SHOWN = 8
"""Models that a sentence names."""
NAME = 60
SIMILAR = 0.7
"""Median Kendall τ, 17 pairs of models in 20 in the same order, from which a ranking is said to stay similar."""


def rank_sentences(board: BenchmarkResult, name: str) -> list[str]:
    """Which models may be among the best, how stable the ranking is, and on how many questions the best differ."""
    row = board.benchmark
    out = []
    asked = [item for item in board.models if item.in_top is not None]
    if asked:
        sure = [shorten(item.model, NAME) for item in asked if item.in_top == "yes"]
        maybe = [shorten(item.model, NAME) for item in asked if item.in_top == "maybe"]
        place = "the best" if row.n_top == 1 else f"among the {row.n_top} best"
        out.append(
            f"{name}: surely {place}: {_list(sure)}; perhaps: {_list(maybe)} "
            f"({100 * board.pairs.common['level']:g} %, all together)."
        )
    if row.order_tau is not None and row.same_best is not None:
        leaders = [shorten(item.model, NAME) for item in board.models if item.rank == 1]
        first = f"{_list(leaders)} is" if len(leaders) == 1 else "the same model is"
        out.append(
            f"{name}: when the questions are resampled, the ranking {_stays(row.order_tau)} (median Kendall τ "
            f"{number(row.order_tau, 2)}) and {first} first in {100 * row.same_best:.0f} % of resamples; that is "
            "stability, not a test."
        )
    if row.dead_for_top is not None and row.n_top is not None and row.n_questions:
        left = row.n_questions - row.dead_for_top
        out.append(
            f"{name}: the {row.n_top} models at the top score differently on {left} of {row.n_questions} questions "
            f"({100 * left / row.n_questions:.0f} %)."
        )
    return out


def _stays(tau: float) -> str:
    """What the median τ of the resamples says, in words."""
    return "stays similar" if tau >= SIMILAR else "changes"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "none") + more
