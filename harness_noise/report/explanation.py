"""How an explanation is shown: a table of coefficients for each regression, and a sentence for each field."""

from __future__ import annotations

from dataclasses import replace

from ..results.explanation import INTERCEPT, Coefficient, Explanation, Fit
from .columns import (
    MISSING,
    Column,
    Marks,
    Section,
    Summary,
    decimals,
    degrees,
    equals_p,
    interval,
    level_of,
    models_of,
    number,
    p_text,
    percent,
    plain,
    section,
    shorten,
    what_of,
)

OBSERVED = (
    "These are associations among the questions asked, each with the other fields held fixed, and no proof of a cause."
)
_ALONE = (
    "the coefficient rests on fewer than two clusters: no standard error. What to do: name a field that varies inside "
    "clusters, or one whose values several clusters share."
)
"""Advice on `too_few_clusters` here, where the field is as coarse as the clusters."""


def summarise(table: Explanation) -> Summary:
    """The display form of an explanation."""
    marks, sections, sentences = Marks(), [], []
    for fit in table.fits:
        rows = [row for row in table.coefficients if _regression(row) == _regression(fit)]
        sections.append(_section(fit, rows, marks))
        tested = [row for row in rows if row.field != INTERCEPT and row.p_adjusted is not None]
        significant = [row for row in tested if (row.p_adjusted or 0.0) < 1 - row.level]
        sentences += [_sentence(fit, row) for row in significant]
        if tested and not significant:
            fields = ", ".join(dict.fromkeys(plain(row.field) for row in tested))
            sentences.append(f"{plain(fit.task)}: no significant association of {models_of(fit)} with {fields}.")
    notes = tuple(
        (mark, code, _ALONE if code == "too_few_clusters" else meaning) for mark, code, meaning in marks.legend()
    )
    return Summary(tuple(sections), notes, (OBSERVED,) if sentences else (), tuple(sentences))


def _regression(row: Coefficient | Fit) -> tuple[str, str, str, str, str | None]:
    return row.task, row.metric, row.scorer, row.model_a, row.model_b


def _columns(rows: list[Coefficient], marks: Marks) -> list[Column]:
    def scaled(row: Coefficient, value: float | None) -> str:
        return number(value, decimals(row.se, row.coefficient))

    return [
        Column("Field", lambda row: plain(row.field), text=True),
        Column(
            "Value",
            lambda row: shorten(row.value or "", 40),
            "of a category, against its reference",
            text=True,
            optional=True,
        ),
        Column(
            "reference",
            lambda row: shorten(row.reference or "", 40),
            "the most frequent value",
            text=True,
            rank=4,
            optional=True,
        ),
        Column(
            "n",
            lambda row: "" if row.n_value is None else str(row.n_value),
            "questions that have the value",
            rank=3,
            optional=True,
        ),
        Column(
            "coefficient",
            lambda row: scaled(row, row.coefficient),
            "change per extra unit, or from the reference to this value",
        ),
        Column(
            f"{level_of(rows)} CI",
            lambda row: interval(row.ci_low, row.ci_high, decimals(row.se, row.coefficient)),
            "confidence interval of the coefficient",
        ),
        Column("SE", lambda row: scaled(row, row.se), "standard error of the coefficient (CR2)", rank=2),
        Column(
            "df",
            lambda row: MISSING if row.df is None else degrees(row.df),
            "degrees of freedom of this coefficient (Satterthwaite)",
            rank=1,
        ),
        Column("p", lambda row: p_text(row.p_value), "of a coefficient of 0", rank=5),
        Column(
            "p adj.",
            lambda row: MISSING if row.field == INTERCEPT else p_text(row.p_adjusted),
            "adjusted for all coefficients",
        ),
        marks.column(),
    ]


def _section(fit: Fit, rows: list[Coefficient], marks: Marks) -> Section:
    table = section("", rows, _columns(rows, marks))
    grouped = f" in {fit.n_clusters} clusters ({plain(fit.cluster)})" if fit.cluster else ""
    title = (
        f"{models_of(fit)}, {what_of(fit)}: {fit.n_questions} questions"
        f"{grouped}, R² {number(fit.r2, 3)}{', weighted by the number of answers' if fit.weighted else ''}"
    )
    letters = marks(fit.diagnostics, fit.cluster is not None)
    return replace(table, title=f"{title} {letters}" if letters else title)


def _sentence(fit: Fit, row: Coefficient) -> str:
    """ "Per extra unit of length, new's lead over old on table grows by 0.00046 ± 0.00012 (95 % CI …)"."""
    digits = decimals(row.se, row.coefficient)
    up = (row.coefficient or 0.0) > 0
    size = f"{number(abs(row.coefficient or 0.0), digits)} ± {number(row.se, digits)}"
    whose = f"{row.model_a}'s score" if row.model_b is None else f"{row.model_a}'s lead over {row.model_b}"
    if row.value is None:
        text = f"Per extra unit of {row.field}, {whose} on {fit.task} {'grows' if up else 'falls'} by {size}"
    else:
        text = f"{row.field} = {row.value}: {whose} on {fit.task} is {size} {'higher' if up else 'lower'}"
        text += f" than with {row.reference}"
    method = f"CR2{', clustered' if fit.cluster else ''}, t {degrees(row.df or 0.0)} df"
    limits = interval(row.ci_low, row.ci_high, digits)
    return plain(f"{text} ({percent(row.level)} CI {limits}, adjusted p {equals_p(row.p_adjusted)}; {method}).")
