"""How a gate is shown: one verdict line, one table with what fails first, and JUnit's XML."""

from __future__ import annotations

from xml.etree import ElementTree

from ..results.gate import CANNOT, Gate, GateRow
from ..results.gate import gate_text as text
from . import fmt
from .columns import TASK, Column, Marks, Section, Summary, section

VERDICTS = {True: "pass", False: "FAIL", None: "cannot judge"}
TONES = {True: "good", False: "bad", None: "unsure"}


def summarise(gate: Gate) -> Summary:
    """The display form of a gate."""
    marks = Marks()
    how = f"one-sided at {fmt.percent(gate.alpha)}" + (
        ", Holm over all rows" if gate.adjust == "holm" else ", unadjusted"
    )
    columns = [
        Column("Verdict", _verdict, text=True, tone=lambda row: TONES[row.passed] if row.decides else ""),
        *TASK,
        Column("quantity", lambda row: row.quantity, "what is held against the threshold", text=True),
        Column("estimate", lambda row: _scaled(row, row.estimate)),
        Column("threshold", lambda row: _scaled(row, row.threshold), "what it must reach"),
        Column("limit", _limit, "the end of its interval that the rule reads", rank=1),
        Column("SE", lambda row: _scaled(row, row.se), rank=3),
        Column("p", lambda row: fmt.p_text(row.p_value), how, rank=2),
        Column("p adj.", lambda row: fmt.p_text(row.p_adjusted), "over all rows", optional=True),
        Column("n", lambda row: f"{row.n_questions:,}" if row.n_questions else fmt.MISSING, "questions", rank=1),
        Column("sees", lambda row: _scaled(row, row.sees), "a loss here is shown with 80 % power", optional=True),
        Column("needs", lambda row: "" if row.n_needed is None else f"{row.n_needed:,}",
               "questions that would exclude the loss with 80 % power, if nothing is lost", optional=True),
        Column("why", lambda row: fmt.plain(row.reason), text=True, optional=True),
        marks.column(),
    ]  # fmt: skip
    names = dict.fromkeys(("A", row.model) for row in gate.rows if row.model)
    names |= dict.fromkeys(("B", row.against) for row in gate.rows if row.against)
    named = len({name for _, name in names}) == len(names) < 3  # of two runs of one model the names say nothing
    title = fmt.plain(", ".join(f"{side} = {name}" for side, name in names)) if named else ""
    sections = [section(title, gate.rows, columns), *_self_test(gate), *_budget(gate)]
    lead = (fmt.plain(gate.sentence), *map(fmt.plain, gate.warnings))
    tone = {"pass": "good", "fail": "bad"}.get(gate.outcome, "unsure")
    return Summary(
        tuple(sections), marks.legend(), (f"Rule {gate.rule}: {how}.", *map(fmt.plain, gate.notes)), lead, (tone,)
    )


def _verdict(row: GateRow) -> str:
    if not row.decides:
        return ""
    return "not decided" if row.passed is None and not row.reason else VERDICTS[row.passed]


def _scaled(row: GateRow, value: float | None) -> str:
    return fmt.number(value, fmt.decimals(row.se, row.estimate))


def _limit(row: GateRow) -> str:
    if row.limit is None or row.threshold is None:
        return _scaled(row, row.limit)
    return fmt.limit(row.limit, fmt.decimals(row.se, row.estimate), row.threshold)


def _self_test(gate: Gate) -> list[Section]:
    test = gate.self_test
    if test is None:
        return []
    digits = fmt.decimals(test.sees[0].loss / 3 if test.sees else None)
    lines = [
        ("an identical model does not pass", fmt.MISSING if test.false_alarm is None else _share(test.false_alarm))
    ]
    lines += [
        (f"a loss of {fmt.number(seen.loss, digits)} in every row is seen", _share(seen.power)) for seen in test.sees
    ]
    lines += [(f"baseline run {fmt.plain(run.run)} against the others", run.outcome) for run in test.stored_runs]
    columns = (Column("What this gate is worth", lambda line: line[0], text=True), Column("", lambda line: line[1]))
    return [section("", lines, columns)]


def _share(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _budget(gate: Gate) -> list[Section]:
    """What the budget could show, row by row."""
    rows = [row for row in gate.rows if row.budget_sees is not None]
    if gate.budget is None or not rows:
        return []
    columns = [
        *TASK,
        Column("shows", lambda row: _scaled(row, row.budget_sees), "the loss, with 80 % power, at these runs' noise"),
        Column("assured", lambda row: _scaled(row, row.budget_sees_assured),
               "the same if the noise is as large as 80 % of such runs would leave possible"),
    ]  # fmt: skip
    return [section(f"What {gate.budget:,} questions could show (the outcome does not depend on it)", rows, columns)]


def junit(gate: Gate) -> str:
    """JUnit's XML: a test case for each row that decides, and one for the whole gate."""
    rows = [row for row in gate.rows if row.decides]
    cases = [_case("gate", gate.outcome == "fail", gate.outcome == CANNOT, gate.sentence)]
    for row in rows:
        said = row.reason or f"{row.quantity} = {text(row.estimate)}, threshold {text(row.threshold)}"
        cases.append(_case(row.name, row.passed is False, row.passed is None, said))
    for row in gate.lost:  # a case keeps its name whatever the reason
        case = _case(row.name, failed=False, lost=False, said="")
        ElementTree.SubElement(case, "skipped", message=fmt.plain(row.reason))
        cases.append(case)
    count = {kind: str(sum(case.find(kind) is not None for case in cases)) for kind in ("failure", "error", "skipped")}
    numbers = {"failures": count["failure"], "errors": count["error"], "skipped": count["skipped"]}
    named = {"name": "harness-noise gate", "tests": str(len(cases))}
    suite = ElementTree.Element("testsuite", named | numbers)
    suite.extend(cases)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _case(name: str, failed: bool, lost: bool, said: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="harness-noise", name=fmt.plain(name))
    if failed or lost:
        ElementTree.SubElement(case, "failure" if failed else "error", message=fmt.plain(said)).text = fmt.plain(said)
    return case
