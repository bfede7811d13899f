"""Display of verdicts on pairs."""

from __future__ import annotations

from dataclasses import replace

from ...errors import counted
from ...report import fmt
from ...report.columns import Column, Marks, Summary, TextColumn, section, significance_tone
from .results import JudgedPairs, ModelStrength, PairVerdicts

_MOST = 8
"""Pairs that are told in a sentence each."""
_SCALE = "Strengths are log-odds of the judge's average question, and are not comparable across benchmarks."


def of_pairs(table: JudgedPairs, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return win rates of pairs, with position bias and strengths, as a `Summary`."""
    marks, rows = Marks(), table.pairs
    orders = "mean points of A, ties half, after the orders are averaged"
    columns = [
        TextColumn("A", lambda row: fmt.plain(row.model_a)),
        TextColumn("B", lambda row: fmt.plain(row.model_b)),
        Column("win rate of A", lambda row: _share(row, row.win_rate), orders),
        Column(f"{fmt.level_of(rows)} CI", _interval, "of the win rate"),
        Column("p", lambda row: fmt.p_text(row.p_value), "of a win rate of one half", 3),
        Column("p adj.", lambda row: fmt.p_text(row.p_adjusted), "Holm over all pairs", 1, tone=significance_tone),
        Column("first ±", _position, "points of the answer that is shown first, less one half, ± SE", 2, optional=True),
        Column("turned", lambda row: _share(row, row.turned), "A wins in one order, B in the other", 2, optional=True),
        Column("tie once", lambda row: _share(row, row.tie_once), "a tie in one order only", 4, optional=True),
        Column("n", "n_questions", "questions", 3),
        Column("left out", _left_out, "questions with one order", 4, optional=True),
        marks.column(),
    ]
    models = [
        TextColumn("Model", lambda row: fmt.plain(row.model)),
        Column("Rank", _rank, "ranks that the model may have, by tests adjusted over all pairs"),
        Column("strength", lambda row: fmt.with_error(row.strength, row.se), "Bradley–Terry log-strength ± SE, mean 0"),
        Column("win rate", lambda row: _share(row, row.win_rate), "mean points of the model"),
        TextColumn("", lambda row: f"{row.beside} all that have a strength" if row.beside else "", optional=True),
        marks.column(),
    ]
    # a strength is neither a share nor in points
    sections = [replace(section("Models", table.models, models), units="")] if table.models else []
    lead = tuple(map(_sentence, rows[:_MOST])) if not table.models else (_best(table.models),)
    return Summary(
        (*sections, section("Pairs" if sections else "", rows, columns)), marks.legend(),
        (_SCALE,) if table.models else (), lead,
    )  # fmt: skip


def _share(row: PairVerdicts | ModelStrength, value: float | None) -> str:
    return fmt.mean_of(row, value, unit=True)


def _position(row: PairVerdicts) -> str:
    if row.position_bias is None:
        return ""
    sign = "" if row.position_bias < 0 else "+"
    return f"{sign}{fmt.shown(row, row.position_bias)} ± {fmt.shown(row, row.position_bias_se)}"


def _rank(row: ModelStrength) -> str:
    return fmt.MISSING if row.rank_low is None or row.rank_high is None else fmt.span(row.rank_low, row.rank_high)


def _interval(row: PairVerdicts) -> str:
    return fmt.interval_text(row, row.ci_low, row.ci_high, mean=True)


def _left_out(row: PairVerdicts) -> str:
    return f"{row.n_left_out:,}" if row.n_left_out else ""


def _sentence(row: PairVerdicts) -> str:
    a, b = row.model_a, row.model_b
    said = {"A better": f"{a} is better than {b}", "B better": f"{b} is better than {a}"}
    text = said.get(row.verdict, f"{a} is not shown to differ from {b}")
    ends = "" if row.ci_low is None else f", {fmt.percent(row.level)} CI {_interval(row)}"
    text += f": win rate of {row.model_a} {_share(row, row.win_rate)}{ends} ({counted(row.n_questions, 'question')})"
    if row.position_bias is not None and (row.position_p_value or 1.0) < 1 - row.level:
        which = "first" if row.position_bias > 0 else "second"
        text += f". The judge favours the answer shown {which}, by {fmt.amount(row, abs(row.position_bias))}"
    return fmt.plain(f"{text}.")


def _best(models: tuple[ModelStrength, ...]) -> str:
    """Return a sentence that names the models that may be the best, by their possible ranks."""
    best = [row.model for row in models if row.rank_low == 1]
    if not best:
        return "No model has a rank."
    above = [row.model for row in models if row.beside == "above"]
    beside = f"; {', '.join(above)} took every point and has no strength" if above else ""
    if len(best) == 1 and all(row.rank_low is not None for row in models):
        return fmt.plain(f"{best[0]} is the best of {len(models)} models.")
    return fmt.plain(f"{', '.join(best)} may be the best{beside}.")
