"""How an explanation is shown: a table of coefficients for each regression, and a sentence for each field."""

from __future__ import annotations

from ..results.explanation import INTERCEPT, Coefficient, Explanation, Fit
from .columns import (
    MISSING,
    Column,
    Section,
    Summary,
    decimals,
    degrees,
    drop_empty,
    interval,
    legend_of,
    marks_of,
    metric_name,
    number,
    p_text,
    plain,
    shorten,
)
from .words import NOTES

OBSERVED = (
    "These are associations among the questions asked, each with the other fields held fixed, and no proof of a cause."
)
_ALONE = (
    "the coefficient rests on fewer than two clusters: no standard error. What to do: name a field that varies inside "
    "clusters, or one whose values several clusters share."
)
"""Here a finer cluster is no help: the field is as coarse as the clusters, or coarser."""


def summarise(table: Explanation) -> Summary:
    """The display form of an explanation."""
    marks = marks_of([*(item.diagnostics for item in table.coefficients), *(item.diagnostics for item in table.fits)])
    sections, sentences = [], []
    for fit in table.fits:
        rows = [item for item in table.coefficients if _of(item) == _of(fit)]
        sections.append(_section(fit, rows, marks))
        asked = [item for item in rows if item.field != INTERCEPT and item.p_adjusted is not None]
        found = [item for item in asked if (item.p_adjusted or 0.0) < 1 - item.level]
        sentences += [_sentence(fit, item) for item in found]
        if asked and not found:
            fields = ", ".join(dict.fromkeys(plain(item.field) for item in asked))
            sentences.append(f"Nothing is shown to go with {explained(fit)} on {plain(fit.task)} among {fields}.")
    notes = tuple(
        (mark, code, _ALONE if code == "too_few_clusters" else meaning)
        for mark, code, meaning in legend_of(marks, table.fits)
    )
    return Summary(tuple(sections), notes, (OBSERVED,) if sentences else (), tuple(sentences))


def _of(item: Coefficient | Fit) -> tuple[str, str, str, str, str | None]:
    return item.task, item.metric, item.scorer, item.model_a, item.model_b


def explained(item: Coefficient | Fit) -> str:
    """What the regression is of."""
    return plain(item.model_a if item.model_b is None else f"{item.model_a} − {item.model_b}")


def _section(fit: Fit, rows: list[Coefficient], marks: dict[str, str]) -> Section:
    level = f"{100 * rows[0].level:g} %" if rows else "95 %"
    columns = (
        Column("Field", text=True),
        Column("Value", text=True, hint="of a category, against its reference"),
        Column("reference", text=True, hint="the most frequent value", rank=4),
        Column("n", hint="questions that have the value", rank=3),
        Column("coefficient", hint="what one unit more, or this value against the reference, goes with"),
        Column(f"{level} CI", hint="confidence interval of the coefficient"),
        Column("SE", hint="standard error of the coefficient (CR2)", rank=2),
        Column("df", hint="degrees of freedom of this coefficient (Satterthwaite)", rank=1),
        Column("p", hint="of a coefficient of 0", rank=5),
        Column("p adj.", hint="adjusted for all coefficients"),
        NOTES,
    )
    cells = []
    for item in rows:
        digits = decimals(item.se, item.coefficient)
        cells.append(
            (
                plain(item.field),
                shorten(item.value or "", 40),
                shorten(item.reference or "", 40),
                "" if item.n_value is None else str(item.n_value),
                number(item.coefficient, digits),
                interval(item.ci_low, item.ci_high, digits),
                number(item.se, digits),
                MISSING if item.df is None else degrees(item.df),
                p_text(item.p_value),
                MISSING if item.field == INTERCEPT else p_text(item.p_adjusted),
                " ".join(marks[code] for code in item.diagnostics),
            )
        )
    grouped = f" in {fit.n_clusters} clusters ({plain(fit.cluster)})" if fit.cluster else ""
    title = (
        f"{explained(fit)}, {plain(fit.task)} {metric_name(fit.metric, fit.scorer)}: {fit.n_questions} questions"
        f"{grouped}, R² {number(fit.r2, 3)}{', weighted by the number of answers' if fit.weighted else ''}"
    )
    title += "".join(f" {marks[code]}" for code in fit.diagnostics)
    return Section(title, *drop_empty(columns, cells, ("Value", "reference", "n", "")))


def _sentence(fit: Fit, item: Coefficient) -> str:
    digits = decimals(item.se, item.coefficient)
    p = p_text(item.p_adjusted)
    p = p if p.startswith("<") else f"= {p}"
    what = (
        f"One unit more of {item.field} goes with" if item.value is None
        else f"{item.field} = {item.value} against {item.reference} goes with"
    )  # fmt: skip
    clustered = ", clustered" if fit.cluster else ""
    return plain(
        f"{what} {number(item.coefficient, digits)} ± {number(item.se, digits)} of {explained(fit)} on {fit.task} "
        f"({100 * item.level:g} % CI {interval(item.ci_low, item.ci_high, digits)}, adjusted p {p}; CR2{clustered}, "
        f"t {degrees(item.df or 0.0)} df)."
    )
