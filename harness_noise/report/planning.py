"""How a plan is shown: the design, and what other designs would detect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..results.plan import Plan, PlugIn
from . import fmt
from .columns import Column, Section, Summary


def summarise(plan: Plan) -> Summary:
    """The display form of a plan."""
    digits = fmt.decimals(plan.effect / 3)
    sections = [_design(plan, digits), _grid(plan, digits)]
    if plan.by_task:
        sections.insert(1, _by_task(plan))
    if plan.theory:
        sections.append(_theory(plan, digits))
    if plan.sequential is not None:
        from .sequential import plan_section

        sections.append(plan_section(plan.sequential, plan.effect, digits))
    return Summary(tuple(sections), (), plan.notes, (_sentence(plan, digits),))


def _design(plan: Plan, digits: int) -> Section:
    """The plan, beside it the one that the pilot's point estimate gives."""
    other, size = plan.plug_in, f"{plan.cluster_size:.3g} questions" if plan.cluster_size else ""

    def both(name: str, text: Callable[[Plan | PlugIn], str]) -> tuple[str, str, str]:
        return name, text(plan), fmt.MISSING if other is None else text(other)

    rows = [] if plan.n_clusters is None else [both("clusters", lambda x: f"{x.n_clusters:,} of {size}")]
    rows += [
        both("questions", lambda x: f"{x.n_questions:,}"),
        both("answers per question, K", lambda _: str(plan.repeats)),
        both("effect", lambda x: fmt.number(x.effect, digits)),
        both("power", lambda x: f"{100 * x.power:.0f} %"),
        both("smallest detectable difference", lambda x: fmt.number(x.mde, digits)),
    ]
    if plan.omega2 is None:
        rows.append(both("variance per question, both noises", lambda x: f"{x.variance:.4g}"))
    else:
        upper = plan.omega2 if plan.omega2_upper is None else plan.omega2_upper
        rows.append(("data variance per question, ω²", f"{upper:.4g}", f"{plan.omega2:.4g}"))
    if plan.sigma2_a is not None:
        pair = "" if plan.sigma2_b is None else f" and {plan.sigma2_b:.4g}"
        text = f"{plan.sigma2_a:.4g}{pair}"
        rows.append(("prediction variance of an answer, σ²", text, text))
    if plan.best_repeats is not None:
        rows.append(("best K for the costs", str(plan.best_repeats), fmt.MISSING))
    if plan.cost is not None:
        rows.append(both("cost", lambda x: f"{x.cost:,.6g}"))
    if plan.assurance is None:
        return Section("", (Column("Design", text=True), Column("")), tuple(row[:2] for row in rows))
    columns = (
        Column("Design", text=True),
        Column(f"{fmt.percent(plan.assurance)} assured", hint="from the upper limit of the pilot's variance"),
        Column("estimate", hint="from the pilot's estimate, as if it were the truth"),
    )
    return Section(plan.compared, columns, tuple(rows))


def _size(plan: Plan, n: int) -> str:
    """Number of questions, with the number of clusters if they come in clusters."""
    return f"{n:,}" if plan.cluster_size is None else f"{n:,} ({round(n / plan.cluster_size):,} clusters)"


def _grid(plan: Plan, digits: int) -> Section:
    """Smallest detectable difference by questions (down) and answers per question (across)."""
    repeats = sorted({row.repeats for row in plan.table})
    cells = {(row.n_questions, row.repeats): fmt.number(row.mde, digits) for row in plan.table}
    sizes = sorted({row.n_questions for row in plan.table})
    columns = (Column("questions"), *(Column(f"K = {k}") for k in repeats))
    rows = tuple((_size(plan, n), *(cells[n, k] for k in repeats)) for n in sizes)
    return Section("Smallest detectable difference", columns, rows)


def _by_task(plan: Plan) -> Section:
    columns = (
        Column("Task", text=True),
        Column("questions"),
        Column("K", hint="answers to each question that make the mean most precise for so many in all"),
        Column("noise", hint="share of the prediction noise that is this task's, at one answer each"),
    )
    rows = tuple((row.task, str(row.n_questions), str(row.repeats), fmt.percent(row.share)) for row in plan.by_task)
    return Section("Answers by task", columns, rows)


def _theory(plan: Plan, digits: int) -> Section:
    columns = (
        Column("Theory", text=True),
        Column("Var[A − B]", hint="variance of the difference on one question"),
        Column("questions", hint=f"that it takes by this theory to find {fmt.number(plan.effect, digits)}"),
        Column("detectable", hint=f"smallest true difference found by this theory with {plan.n_questions:,} questions"),
    )
    rows = tuple(
        (row.theory, f"{row.variance:.4g}", f"{row.n_questions:,}", fmt.number(row.mde, digits)) for row in plan.theory
    )
    return Section("Without data", columns, rows)


def _sentence(plan: Plan, digits: int) -> str:
    clusters = "" if plan.n_clusters is None else f"{plan.n_clusters:,} clusters of {plan.cluster_size:.3g} questions, "
    return (
        f"With {clusters}{plan.n_questions:,} questions and K = {plan.repeats}, a true difference of "
        f"{fmt.number(plan.effect, digits)} is found with {100 * plan.power:.0f} % power "
        f"(two-sided t test, {fmt.degrees(plan.df)} df, α = {plan.alpha:g})."
    )


def draw(plan: Plan, path: Path) -> None:
    """Write the curve of the smallest detectable difference against questions, one line for each K, as SVG."""
    from ..io.atomic import write_text
    from .canvas import COLOURS, DASHES, MUTED, Axis, Drawing, svg

    digits = fmt.decimals(plan.effect / 3)
    sizes, values = [row.n_questions for row in plan.table], [*(row.mde for row in plan.table), plan.effect]
    drawing = Drawing(
        Axis(0.9 * min(sizes), 1.1 * max(sizes), "questions", log=True),
        Axis(0.9 * min(values), 1.1 * max(values), "smallest detectable difference", log=True),
    )
    drawing.line(
        [drawing.x.low, drawing.x.high], [plan.effect] * 2, MUTED, dash=DASHES[1], label="the effect asked for"
    )
    for i, k in enumerate(sorted({row.repeats for row in plan.table})):
        rows = sorted((row for row in plan.table if row.repeats == k), key=lambda row: row.n_questions)
        x, y = [row.n_questions for row in rows], [row.mde for row in rows]
        titles = [f"{row.n_questions:,} questions, K = {k}: {fmt.number(row.mde, digits)}" for row in rows]
        drawing.line(x, y, COLOURS[i % len(COLOURS)], dash=DASHES[i % len(DASHES)])
        drawing.points(x, y, i, f"K = {k}", titles)
    title = f"Smallest detectable difference, {100 * plan.power:.0f} % power, α = {plan.alpha:g}"
    write_text(path, svg(drawing.done("plan", title, _sentence(plan, digits))))
