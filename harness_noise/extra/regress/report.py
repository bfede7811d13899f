"""Display of `regress`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ...errors import counted
from ...report import fmt
from ...report.columns import Column, Marks, Section, Summary, TextColumn, section, significance_tone
from ...results.diagnostics import SCORED
from .results import INTERCEPT, Coefficient, Fit, Regression

OBSERVED = (
    "These are associations among the questions asked, each with the other fields held fixed, and no proof of a cause."
)
_SCORING = "equal answers are scored differently, so the scoring differs, not the models"
_ALONE = (
    "the coefficient rests on fewer than two clusters: no standard error. What to do: name a field that varies inside "
    "clusters, or one whose values several clusters share."
)
"""Advice on `too_few_clusters` here, where the field is as coarse as the clusters."""


def of_regression(table: Regression, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return regressions as a `Summary` of tables and sentences."""
    marks, sections, sentences = Marks(), [], []
    for fit in table.fits:
        rows = [row for row in table.coefficients if _regression(row) == _regression(fit)]
        sections.append(_fit_section(fit, rows, marks))
        tested = [row for row in rows if row.field != INTERCEPT and row.p_adjusted is not None]
        if SCORED in fit.diagnostics:
            sentences.append(f"{fmt.plain(fit.task)}: no association of {fmt.models_of(fit)} is reported: {_SCORING}.")
            continue
        significant = [row for row in tested if significance_tone(row)]
        sentences += [_coefficient_sentence(fit, row) for row in significant]
        if tested and not significant:
            fields = ", ".join(dict.fromkeys(fmt.plain(row.field) for row in tested))
            linear = "" if all(row.value is not None for row in tested) else " linear"
            text = f"{fmt.plain(fit.task)}: no significant{linear} association of {fmt.models_of(fit)} with {fields}"
            sentences.append(f"{text}{' (a quadratic one is not tested)' if linear else ''}.")
    notes = tuple(one._replace(text=_ALONE) if one.code == "too_few_clusters" else one for one in marks.legend())
    return Summary(tuple(sections), notes, (OBSERVED,) if sentences else (), tuple(sentences))


def _regression(row: Coefficient | Fit) -> tuple[str, str, str, str, str | None]:
    return row.task, row.metric, row.scorer, row.model_a, row.model_b


def _fit_section(fit: Fit, rows: list[Coefficient], marks: Marks) -> Section:
    unit = "change per extra unit (linear), or from the reference to this value"
    category = partial(TextColumn, optional=True)
    columns = [
        TextColumn("Field", "field"),
        category("Value", lambda row: fmt.shorten(row.value or "", 40), "of a category, against its reference"),
        category("reference", lambda row: fmt.shorten(row.reference or "", 40), "the most frequent value", 4),
        Column("n", "n_value", "questions that have the value", 3, optional=True),
        Column("coefficient", "coefficient", unit),
        Column(f"{fmt.level_of(rows)} CI", "ci_low, ci_high", "confidence interval of the coefficient"),
        Column("SE", "se", "standard error of the coefficient (CR2)", 2),
        Column("df", "df", "degrees of freedom of this coefficient (Satterthwaite)", 1),
        Column("p", "p_value", "of a coefficient of 0", 5),
        Column("p adj.", "p_adjusted", "adjusted for all coefficients", tone=significance_tone),
        marks.column(),
    ]
    table = section("", rows, columns)
    grouped = f" in {counted(fit.n_clusters, 'cluster')} ({fmt.plain(fit.cluster)})" if fit.cluster else ""
    title = (
        f"{fmt.models_of(fit)}, {fmt.what_of(fit)}: {counted(fit.n_questions, 'question')}"
        f"{grouped}, R² {fmt.number(fit.r2, 3)}{', weighted by the number of answers' if fit.weighted else ''}"
    )
    return replace(table, title=f"{title} {marks(fit.diagnostics, fit.cluster is not None)}".rstrip())


def _coefficient_sentence(fit: Fit, row: Coefficient) -> str:
    """Return "Per extra unit of length, new's lead over old on table grows by 0.00046 ± SE …" for a coefficient."""
    up = (row.coefficient or 0.0) > 0
    size = f"{fmt.shown(row, abs(row.coefficient or 0.0))} ± {fmt.amount(row, row.se)}"
    whose = f"{row.model_a}'s score" if row.model_b is None else f"{row.model_a}'s lead over {row.model_b}"
    if row.value is None:
        text = f"Per extra unit of {row.field}, {whose} on {fit.task} {'grows' if up else 'falls'} by {size}"
    else:
        text = f"{row.field} = {row.value}: {whose} on {fit.task} is {size} {'higher' if up else 'lower'}"
        text += f" than with {row.reference}"
    method = f"CR2{', clustered' if fit.cluster else ''}, t {fmt.degrees(row.df or 0.0)} df"
    limits = fmt.interval_of(row)
    return fmt.plain(
        f"{text} ({fmt.percent(row.level)} CI {limits}, adjusted p {fmt.equals_p(row.p_adjusted)}; {method})."
    )
