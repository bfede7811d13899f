"""Display of `factors`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...data.notes import texts
from ...errors import counted
from ...report import fmt
from ...report.columns import Column, Marks, Section, Summary, TextColumn, section
from .results import FactorRow, Factors, JudgePair


def of_factors(table: Factors, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return variance components by factor as a `Summary` of tables and sentences."""
    marks = Marks()

    def own(value: float | None) -> str:
        return fmt.number(value, fmt.decimals(value))

    def added(row: FactorRow) -> str:
        return fmt.shown(table, row.se, digits=fmt.decimals(row.se))

    def limits(row: FactorRow) -> str:
        return fmt.interval(row.var_low, row.var_high, fmt.decimals(row.var, row.var_high))

    gain = "how much `more` further answers (1,000) on new levels lower the variance of the mean"
    columns = [
        TextColumn("Source", "factor"),
        Column("variance", lambda row: own(row.var), "variance component of one answer"),
        Column("95% interval", limits, "of the variance component"),
        Column("share", lambda row: _share(row.share), "of the sum of all components"),
        Column(
            "SE",
            added,
            "what it adds to the standard error of the mean of all these answers",
        ),
        Column("df", "df", "degrees of freedom", 2),
        Column("levels", "levels", "how many of them there are"),
        Column("gain", lambda row: _share(row.gain), gain, 1),
        marks.column(),
    ]
    digits = fmt.decimals(max((row.se or 0.0 for row in table.factors), default=None))
    title = f"{counted(table.n_answers, 'answer')}, mean {fmt.shown(table, table.mean, mean=True, digits=digits)}"
    units = "SE in points" if fmt.scale_of(table) is fmt.PERCENT else ""
    sections = [replace(section(title, table.factors, columns), units=units)]
    if table.judges:
        sections.append(_judges(table.judges, marks))
    return Summary(tuple(sections), marks.legend(), tuple(texts(table.notes)), (table.advice,))


def _judges(rows: Sequence[JudgePair], marks: Marks) -> Section:
    """Return a table of pairs of judges: how far they agree and which of the two scores higher."""
    several = len({(row.task, row.run) for row in rows}) > 1
    columns = [
        *([TextColumn("Task", "task"), TextColumn("Model", "model")] if several else []),
        TextColumn("Judge A", "judge_a"),
        TextColumn("Judge B", lambda row: row.judge_b or ""),
        Column("answers", "n_answers", "answers that both have graded"),
        Column("agree", lambda row: _share(row.agreement), "how often two judges give one answer the same verdict"),
        Column("AC1", lambda row: fmt.with_error(row.ac1, row.ac1_se), "Gwet's AC1 ± SE: agreement beyond chance"),
        Column("A − B", "diff", "difference of their means on the same answers"),
        Column(f"{fmt.level_of(rows[-1:])} CI", "ci_low, ci_high", "of A − B"),
        Column("p", "p_adjusted", "of A − B, Holm"),
        marks.column(),
    ]
    return section("Judges of the same answers", rows, columns)


def _share(value: float | None) -> str:
    return fmt.MISSING if value is None else f"{100 * value:.1f}%"
