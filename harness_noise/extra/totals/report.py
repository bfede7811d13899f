"""Display of totals."""

from __future__ import annotations

from dataclasses import replace

from ...errors import counted
from ...report import fmt
from ...report.columns import TASK, Column, Marks, Summary, TextColumn, section, significance_tone
from .results import RunMean, Total, TotalDifference, Totals, TotalsComparison

_BOUND = (
    "The SD of answers is the largest that independent answers can have. Repeated answers to the same questions have "
    "a smaller one. So an SD of runs below it does not show that runs differ by their answers alone."
)
ESTIMAND = "The figures hold for these questions, not for other questions of their kind."
_TONES = {"A better": "good", "B better": "bad"}


def of_totals(table: Totals, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return total scores of runs as a `Summary`: mean, spread, and where a further run would lie."""
    marks, rows, level = Marks(), table.totals, fmt.level_of(table.totals)
    several = len({row.model for row in rows}) > 1
    columns = [
        TextColumn("Model", lambda row: fmt.plain(row.model) if several else "", optional=True),
        *TASK,
        Column("runs", "n_runs", "runs of the configuration"),
        Column("Mean", lambda row: _level(row, row.mean), "mean of the runs"),
        Column(f"{level} CI", lambda row: _ends(row, row.ci_low, row.ci_high), "of the mean, by t with runs − 1 df"),
        Column("SD of runs", lambda row: fmt.amount(row, row.sd_runs), "standard deviation between runs"),
        Column(
            "SD of answers", _of_answers, "SD that independent answers alone would have (≤: at most)", 2, optional=True
        ),
        Column(
            "next run", lambda row: _ends(row, row.next_low, row.next_high), f"where one further run lies, with {level}"
        ),
        Column("n", lambda row: f"{row.n_questions:,}" if row.n_questions else "", "questions", 3, optional=True),
        marks.column(),
    ]
    sections = [replace(section("", rows, columns), units="")]  # a spread has its unit beside it
    if table.run_means:
        each = [
            TextColumn("Model", lambda row: fmt.plain(row.model) if several else "", optional=True),
            *TASK,
            TextColumn("Run", "run"),
            Column("Mean", lambda row: _level(row, row.mean), "over the questions that all runs have"),
            Column("n", "n_questions", "these questions"),
        ]
        sections.append(section("Each run", table.run_means, each))
    bound = [_BOUND] if any(row.at_most and row.sd_answers is not None for row in rows) else []
    lead = tuple(_sentence(row, several) for row in rows[:_MOST])
    return Summary(tuple(sections), marks.legend(), (*bound, ESTIMAND), lead)


_MOST = 8
"""Rows that are told in a sentence each."""


def _level(row: Total | RunMean, value: float | None) -> str:
    return fmt.mean_of(row, value, unit=True)


def _ends(row: Total, low: float | None, high: float | None) -> str:
    return fmt.interval_text(row, low, high, mean=True)


def _of_answers(row: Total) -> str:
    return f"{'≤ ' if row.at_most else ''}{fmt.amount(row, row.sd_answers)}" if row.sd_answers is not None else ""


def _sentence(row: Total, several: bool) -> str:
    """Return a sentence on one row: "gsm8k acc: 61 runs on the same questions, mean 86.0%, …"."""
    who = " ".join(filter(None, (row.model if several else "", fmt.what_of(row))))
    runs = counted(row.n_runs, "run")
    text = f"{who}: {runs} on the same questions, mean {_level(row, row.mean)}".removeprefix(": ")
    if row.next_low is None or row.next_high is None or row.next_worst is None:
        why = (
            "all totals are equal, so there is no interval"
            if row.n_runs > 1
            else "one run does not show how far runs differ"
        )
        return fmt.plain(f"{text}; {why}.")
    side, sure = "below" if row.higher_is_better is False else "above", fmt.percent(row.level)
    mean, further = _ends(row, row.ci_low, row.ci_high), _ends(row, row.next_low, row.next_high)
    return fmt.plain(
        f"{text} ({sure} CI {mean}), SD between runs {fmt.amount(row, row.sd_runs)}. A further run lies in {further} "
        f"with {sure} probability, and {side} {_level(row, row.next_worst)} with {sure} probability."
    )


def of_differences(table: TotalsComparison, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return differences of total scores as a `Summary` of tables and sentences."""
    marks, rows = Marks(), table.total_differences
    columns = [
        *TASK,
        Column("runs", lambda row: fmt.of_each(row.n_runs_a, row.n_runs_b), "runs of A : of B"),
        Column("A", lambda row: fmt.mean_of(row, row.mean_a, unit=True), "mean of A's runs"),
        Column("B", lambda row: fmt.mean_of(row, row.mean_b, unit=True), "mean of B's runs"),
        Column("A − B", "diff", "difference of the means"),
        Column(f"{fmt.level_of(rows)} CI", "ci_low, ci_high", "of A − B, by Welch's t"),
        Column("p", "p_value", "Welch's test", 2),
        Column("p adj.", "p_adjusted", "Holm over all rows", 1, tone=significance_tone),
        Column("SD of A, of B", _spreads, "standard deviation between runs", 3),
        Column("df", "df", "Welch's degrees of freedom", 4),
        TextColumn("Verdict", "verdict", "by p adj.", tone=lambda row: _TONES.get(row.verdict, "")),
        marks.column(),
    ]
    lead = tuple(_verdict(row) for row in rows[:_MOST])
    shown = section("", rows, columns)
    shown = replace(shown, units=shown.units.replace(" and SE", ""))
    return Summary((shown,), marks.legend(), (ESTIMAND,), lead)


def _spreads(row: TotalDifference) -> str:
    return ", ".join(fmt.amount(row, value) for value in (row.sd_a, row.sd_b))


def _verdict(row: TotalDifference) -> str:
    a, b = (row.model_a, row.model_b) if row.model_a != row.model_b else ("A", "B")
    if row.se is None:
        why = "the totals of each side are all equal, so there is no test"
        return fmt.plain(f"{fmt.what_of(row)}: whether {a} and {b} differ is not known: {why}.")
    shown = {"A better": f"{a} is better than {b}", "B better": f"{b} is better than {a}"}
    said = shown.get(row.verdict, f"{a} is not shown to differ from {b}")
    ends = "" if row.ci_low is None else f", {fmt.percent(row.level)} CI {fmt.interval_of(row)}"
    runs = f"{row.n_runs_a} and {row.n_runs_b} runs on the same questions"
    return fmt.plain(f"{fmt.what_of(row)}: {said}: A − B = {fmt.amount(row, row.diff)}{ends} ({runs}; Welch's t test).")
