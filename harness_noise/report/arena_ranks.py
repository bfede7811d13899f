"""What a board's ranks say, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .columns import number, shorten

if TYPE_CHECKING:
    from ..results.arena import BenchmarkResult

SHOWN = 8
"""Models that a sentence names."""
NAME = 60


def rank_sentences(board: BenchmarkResult, name: str) -> list[str]:
    """Who may be among the best, how stable the order is, and on how many questions the best differ."""
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
        out.append(
            f"{name}: with other questions of the kind the order would be the same up to Kendall's τ = "
            f"{number(row.order_tau, 2)} (median over resampled questions), with the same model first in "
            f"{100 * row.same_best:.0f} % of cases."
        )
    if row.dead_for_top is not None and row.n_top is not None and row.n_questions:
        left = row.n_questions - row.dead_for_top
        out.append(
            f"{name}: the {row.n_top} models at the top score differently on {left} of {row.n_questions} questions "
            f"({100 * left / row.n_questions:.0f} %)."
        )
    return out


def _list(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "none") + more
