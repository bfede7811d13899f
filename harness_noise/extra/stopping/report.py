"""Display of looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import counted
from ...report import fmt
from ...report.columns import Column, Section, TextColumn, section
from ...report.parts import seed_words
from ...results.rows import CANNOT, NOT_DECIDED

if TYPE_CHECKING:
    from ...results.parts import Sequential
    from ...results.rows import Difference


def stop_section(rows: Sequence[Sequential], title: str = "Looks at a run that grows") -> Section:
    """Return a table of the interim looks at growing runs: questions so far, estimate, boundary, decision."""
    means = {row.rule == "se" for row in rows}
    what = "mean" if means == {True} else "A − B" if means == {False} else "estimate"
    meaning = "questions answered so far, of all (answers, if there are several per question)"
    columns = (
        TextColumn("Task", "task"),
        TextColumn("Metric", "metric"),
        Column("look", _look, "looks that were taken, and how many were planned"),
        Column("asked", _so_far, meaning),
        Column(
            what, "estimate", "corrected for stopping early (median-unbiased) if a boundary was crossed, else the mean"
        ),
        Column("interval", fmt.interval_of, "valid whenever the looks stop it"),
        Column("p", "p_value", "allowing for the looks"),
        Column(
            "plain",
            "estimate_unadjusted",
            "without the correction for the looks: too extreme on average if they stop a run",
        ),
        TextColumn("Decision", lambda row: fmt.plain(fmt.scale_of(row).verdict(row.decision))),
    )
    return section(title, rows, columns)


def _look(row: Sequential) -> str:
    return f"{row.look}" if row.looks == "anytime" else f"{row.look} of {fmt.plain(str(row.looks))}"


REPORT_THESE = " Report these: they allow for the looks, and the plain difference, {}, does not."


def stopped(row: Sequential) -> str:
    """Return a sentence for a paper on looks at a run, stopped early or not: when, by which rule, and its result."""
    looks = f"look {_look(row)}"
    order = f"in random order{seed_words(row.order_seed)}"
    if row.complete:
        how = f"all {counted(row.n_total, 'question')} were asked, {order}, {fmt.plain(row.rule)}, {looks}"
    else:
        word = row.decision if row.decision == NOT_DECIDED else "stopped early"
        how = f"{word} at {looks}, {fmt.plain(row.rule)}, after {_progress_text(row)} {order}"
    what = "mean" if row.rule == "se" else "A − B"
    plain = fmt.shown(row, row.estimate_unadjusted, mean=row.rule == "se", unit=True)
    undecidable = "the rest of the answers cannot decide it"
    decided = undecidable if row.decision == CANNOT else fmt.plain(fmt.scale_of(row).verdict(row.decision))
    return (
        f"{what} = {fmt.shown(row, row.estimate, mean=row.rule == 'se', unit=True)}, {fmt.percent(row.level)} CI "
        + fmt.interval_of(row)
        + (f" (plain: {plain})" if row.rule == "se" else "")
        + f" on {fmt.plain(row.task)} ({fmt.metric_name(row.metric, row.scorer)}; {how}): {decided}."
        + ("" if row.rule == "se" else REPORT_THESE.format(plain))
    )


def answers_used(row: Difference, name_a: str, name_b: str) -> str:
    """Return which answers beyond the shared questions a difference that allows for looks uses, or ""."""
    more = max(row.n_only_a, row.n_only_b)
    if row.unadjusted is None or not more:
        return ""
    other, stopped = (name_a, name_b) if row.n_only_a > row.n_only_b else (name_b, name_a)
    total = counted(row.n_questions + more, "question")
    return (
        f"the looks' estimate, which uses the answers of {other} to all {total} as far as they predict those of "
        f"{stopped}"
    )


def beside_means(row: Difference) -> list[str]:
    """Return [sentence on why A − B is not the difference of the means shown], [] if it is."""
    if row.unadjusted is None or row.diff == row.unadjusted.diff:
        return []
    plain = fmt.shown(row, row.unadjusted.diff, mean=False, unit=True)
    shared = max(row.n_only_a, row.n_only_b) > 0
    of = f"the {counted(row.n_questions, 'question')} that both answered" if shared else "all answers"
    return [
        f"Report A − B, which allows for the looks. A and B are the means of {of}: their plain difference, {plain}, "
        "does not."
    ]


def _so_far(row: Sequential) -> str:
    """Return the progress as text: "300 of 1,000", or "1,200 of 5,000 answers" with several per question."""
    if row.n_answers is None or row.n_answers_total is None or row.n_answers_total <= row.n_total:
        return f"{row.n_asked:,} of {row.n_total:,}"
    return f"{row.n_answers:,} of {row.n_answers_total:,} answers"


def _progress_text(row: Sequential) -> str:
    """Return the progress as text: "300 of 1,000 questions", or "1,200 of 5,000 answers to 300 of …"."""
    questions = f"{row.n_asked:,} of {row.n_total:,}"
    return f"{questions if (so_far := _so_far(row)) == questions else f'{so_far} to {questions}'} questions"
