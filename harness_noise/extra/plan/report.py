"""Display of a plan: the design, and the differences that other designs would detect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...data.notes import texts
from ...errors import counted
from ...report import fmt
from ...report.columns import Column, Section, Summary
from ...results.rows import CANNOT
from ...stats.decision import WORDS
from .results import Plan, PlanLooks, PlugIn
from .stats import LabelPlan

if TYPE_CHECKING:
    from ...report.canvas import Picture


def summarise(plan: Plan, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return a plan as a `Summary` of tables and sentences."""
    digits = fmt.decimals(plan.effect / 3)
    several = len(plan.answers) > 1
    sections = [_answers(plan, digits)] if several else []
    sections += [_by_task(plan)] if plan.by_task else []
    if plan.labels is not None:
        sections.append(_labels(plan, plan.labels))
    design = _design(plan, digits)
    if plan.labels is not None:  # the design answers how many labels it takes without a judge
        design = replace(design, title="Without a judge", detail=True)
    if several:  # the table of the answers has the title of the comparison
        design = replace(design, title=f"{design.title or 'Design'}, K = {plan.repeats}", detail=True)
    sections += [design, replace(_grid(plan, digits), detail=True)]
    if plan.theory:
        sections.append(_theory(plan, digits))
    if plan.sequential is not None:
        sections.append(_looks_table(plan, plan.sequential, digits))
    labels = [note for note in plan.notes if note.code == "plan_of_labels"]
    found = [] if labels and brief else [_sentence(plan, digits), *_pilot_sentence(plan)]
    lead = (*texts(labels), *found)
    return Summary(tuple(sections), (), tuple(texts(note for note in plan.notes if note not in labels)), lead)


def _labels(plan: Plan, labels: LabelPlan) -> Section:
    """Return the table of the labels that people must give, with the judge's scores and without."""
    digits = fmt.decimals(labels.se / 3)
    rows = (
        (
            "with the judge's scores",
            f"{labels.n_judged:,} are not enough" if labels.n_labels is None else f"{labels.n_labels:,}",
        ),
        ("standard error with these", fmt.amount(plan, labels.se, digits)),
        ("without a judge", f"{labels.n_labels_alone:,}"),
    )
    return Section("", (Column("Labels", text=True), Column("")), rows)


def _answers(plan: Plan, digits: int) -> Section:
    """Return the table of questions and answers by K. Effect and power are shown if they differ, cost if known."""
    asked = [
        Column("questions", hint="of each model, that the effect takes with this many answers each"),
        Column("answers", hint="of each model: questions × K"),
    ]
    cells = [[str(row.repeats), _questions_text(plan, row.n_questions), f"{row.n_answers:,}"] for row in plan.answers]
    first, *others = plan.answers
    more: list[tuple[Column, list[str]]] = []
    if any(row.effect != first.effect for row in others):
        found = [fmt.amount(plan, row.effect, digits) for row in plan.answers]
        more.append((Column("detectable", hint="the true difference that is found with this power"), found))
    if any(row.power != first.power for row in others):
        more.append((Column("power", hint="the chance to find it"), [fmt.percent(row.power) for row in plan.answers]))
    if first.cost is not None:
        costs = [f"{row.cost:,.6g}" for row in plan.answers]
        more.append((Column("cost", hint="of all questions and all answers of all models"), costs))
    for column, values in more:
        asked.append(column)
        cells = [[*cell, value] for cell, value in zip(cells, values, strict=True)]
    columns = (Column("answers to each", hint="K, answers to each question"), *asked)
    return Section(plan.compared if plan.assurance is not None else "", columns, tuple(map(tuple, cells)))


def _pilot_sentence(plan: Plan) -> list[str]:
    """Return [sentence on the design with the pilot's K] if the plan has another K, else []."""
    rows = [row for row in plan.answers if row.repeats == plan.pilot_repeats != plan.repeats]
    if not rows:
        return []
    row = rows[0]
    clusters = "" if row.n_clusters is None else f"{counted(row.n_clusters, 'cluster')}, "
    found = f"{clusters}{counted(row.n_questions, 'question')}, {counted(row.n_answers, 'answer')} of each model"
    if row.n_questions == plan.n_questions:
        size = fmt.amount(plan, row.effect, fmt.decimals(plan.effect / 3))
        found = f"{100 * row.power:.0f}% power" if row.power != plan.power else f"a difference of {size}"
    return [f"With {_each(row.repeats)}, as in the pilot: {found}."]


def _each(repeats: int) -> str:
    """Return "one answer to each", or words such as "5 answers to each"."""
    return "one answer to each" if repeats == 1 else f"{repeats} answers to each"


def _design(plan: Plan, digits: int) -> Section:
    """Return the table of the planned design, next to that by the pilot's estimate as it is."""
    other, size = plan.plug_in, f"{plan.cluster_size:.3g} questions" if plan.cluster_size else ""

    def both(name: str, text: Callable[[Plan | PlugIn], str]) -> tuple[str, str, str]:
        return name, text(plan), fmt.MISSING if other is None else text(other)

    rows = [] if plan.n_clusters is None else [both("clusters", lambda x: f"{x.n_clusters:,} of {size}")]
    rows += [
        both("questions", lambda x: f"{x.n_questions:,}"),
        both("answers per question, K", lambda _: str(plan.repeats)),
        both("effect", lambda x: fmt.amount(plan, x.effect, digits)),
        both("power", lambda x: f"{100 * x.power:.0f}%"),
        both("smallest detectable difference", lambda x: fmt.amount(plan, x.mde, digits)),
    ]
    if plan.omega2 is None:
        rows.append(both("variance per question, both noises", lambda x: _variance(x.variance)))
    else:
        upper = plan.omega2 if plan.omega2_upper is None else plan.omega2_upper
        rows.append(("data variance per question, ω²", _variance(upper), _variance(plan.omega2)))
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
    if other is None:  # the estimate itself answers nothing: it is one figure, not a column
        estimate = "" if plan.omega2 is None else f", the estimate itself {_variance(plan.omega2)}"
        told = f"{fmt.percent(plan.assurance)} assured"
        rows = [(name, value + estimate * name.endswith("ω²"), "") for name, value, _ in rows]
        return Section(plan.compared, (Column("Design", text=True), Column(told)), tuple(row[:2] for row in rows))
    columns = (
        Column("Design", text=True),
        Column(f"{fmt.percent(plan.assurance)} assured", hint="from the upper limit of the pilot's variance"),
        Column("estimate", hint="from the pilot's estimate, as if it were the truth"),
    )
    return Section(plan.compared, columns, tuple(rows))


def _variance(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _questions_text(plan: Plan, n: int) -> str:
    """Format a number of questions: "400", or "400 (40 clusters)" if they come in clusters."""
    return f"{n:,}" if plan.cluster_size is None else f"{n:,} ({counted(round(n / plan.cluster_size), 'cluster')})"


def _grid(plan: Plan, digits: int) -> Section:
    """Return a table of the smallest detectable difference by questions (rows) and K (columns)."""
    repeats = sorted({row.repeats for row in plan.table})
    cells = {(row.n_questions, row.repeats): fmt.shown(plan, row.mde, digits=digits) for row in plan.table}
    sizes = sorted({row.n_questions for row in plan.table})
    columns = (Column("questions"), *(Column(f"K = {k}") for k in repeats))
    rows = tuple((_questions_text(plan, n), *(cells[n, k] for k in repeats)) for n in sizes)
    return Section(f"Smallest detectable difference{_in_points(plan)}", columns, rows)


def _in_points(plan: Plan) -> str:
    """Return the words "in points" with a semicolon before, for a title. "" on the metric's own scale."""
    return f"; in{size}" if (size := fmt.scale_of(plan).size) else ""


def _by_task(plan: Plan) -> Section:
    columns = (
        Column("Task", text=True),
        Column("questions"),
        Column("K", hint="answers to each question that make the mean most precise for so many in all"),
        Column("noise", hint="share of the prediction noise that is this task's, at one answer each"),
    )
    rows = tuple((row.task, str(row.n_questions), str(row.repeats), fmt.percent(row.share)) for row in plan.by_task)
    return Section("Answers by task", columns, rows)


def _looks_table(whole: Plan, plan: PlanLooks, digits: int) -> Section:
    """Return the table on a run that stops when decided: a line each for looks, questions, power and any replay."""
    looks = "after every block" if plan.looks == "anytime" else str(plan.looks)
    rows = [
        ("looks", looks),
        ("questions at most", f"{plan.n_max:,} (without looks {plan.n_fixed:,})"),
        ("power", f"{100 * plan.power:.0f}%"),
        ("questions on average, no difference", f"{round(plan.n_expected_none):,}"),
        (f"… a difference of {fmt.amount(whole, whole.effect, digits)}", f"{round(plan.n_expected_effect):,}"),
        (f"… a difference of {fmt.amount(whole, 2 * whole.effect, digits)}", f"{round(plan.n_expected_double):,}"),
    ]
    if plan.replay is not None:
        again = plan.replay
        undecided = sum(again.decisions.get(word, 0.0) for word in (WORDS[0], CANNOT))
        words = ", ".join(f"{word} {100 * share:.0f}%" for word, share in again.decisions.items())
        rows += [
            (f"these runs, in {again.orders:,} random orders", words),
            ("… it stopped after a median of", f"{again.n_median:,} of {again.n_total:,} answers"),
            ("… in 80% of the orders after", f"{again.n_low:,} to {again.n_high:,}"),
            ("… without a decision", f"{100 * undecided:.0f}% of the orders"),
        ]
    return Section("Stopping when it is decided", (Column("Design", text=True), Column("")), tuple(rows))


def _theory(plan: Plan, digits: int) -> Section:
    columns = (
        Column("Theory", text=True),
        Column("Var[A − B]", hint="variance of the difference on one question"),
        Column("questions", hint=f"that it takes by this theory to find {fmt.amount(plan, plan.effect, digits)}"),
        Column(
            "detectable",
            hint=f"smallest true difference found by this theory with {counted(plan.n_questions, 'question')}",
        ),
    )
    rows = tuple(
        (row.theory, f"{row.variance:.4g}", f"{row.n_questions:,}", fmt.amount(plan, row.mde, digits))
        for row in plan.theory
    )
    return Section("Without data", columns, rows)


def _sentence(plan: Plan, digits: int) -> str:
    clusters = (
        ""
        if plan.n_clusters is None
        else f"{counted(plan.n_clusters, 'cluster')} of {plan.cluster_size:.3g} questions, "
    )
    best = ", the best for the costs," if plan.best_repeats == plan.repeats else ","
    return (
        f"With {clusters}{counted(plan.n_questions, 'question')} and {_each(plan.repeats)}{best} a true difference of "
        f"{fmt.amount(plan, plan.effect, digits)} is found with {100 * plan.power:.0f}% power "
        f"(two-sided t test, {fmt.degrees(plan.df)} df, α = {plan.alpha:g})."
    )


def pictures(plan: Plan) -> list[Picture]:
    """Return [picture] of the smallest detectable difference against the number of questions, a curve for each K."""
    from ...report.canvas import COLOURS, DASHES, MUTED, Axis, Drawing

    digits = fmt.decimals(plan.effect / 3)
    scale = fmt.scale_of(plan)
    unit = f",{scale.size}" if scale.size else ""
    sizes, values = [row.n_questions for row in plan.table], [*(row.mde for row in plan.table), plan.effect]
    drawing = Drawing(
        Axis(0.9 * min(sizes), 1.1 * max(sizes), "questions", log=True),
        Axis(
            0.9 * min(values),
            1.1 * max(values),
            f"smallest detectable difference{unit}",
            log=True,
            times=scale.times,
        ),
    )
    drawing.line(
        [drawing.x.low, drawing.x.high], [plan.effect] * 2, MUTED, dash=DASHES[1], caption="the effect asked for"
    )
    for i, k in enumerate(sorted({row.repeats for row in plan.table})):
        rows = sorted((row for row in plan.table if row.repeats == k), key=lambda row: row.n_questions)
        x, y = [row.n_questions for row in rows], [row.mde for row in rows]
        titles = [
            f"{counted(row.n_questions, 'question')}, K = {k}: {fmt.amount(plan, row.mde, digits)}" for row in rows
        ]
        drawing.line(x, y, COLOURS[i % len(COLOURS)], dash=DASHES[i % len(DASHES)])
        drawing.points(x, y, i, f"K = {k}", titles)
    title = f"Smallest detectable difference, {100 * plan.power:.0f}% power, α = {plan.alpha:g}"
    return [drawing.done("plan", title, _sentence(plan, digits))]


def draw(plan: Plan, path: Path) -> list[Path]:
    """Write the picture of the plan as SVG to a path, and return [path]."""
    from ...io.atomic import write_text
    from ...report.canvas import svg

    write_text(path, svg(pictures(plan)[0]))
    return [path]
