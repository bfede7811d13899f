"""Display of a gate: one verdict line, one table with failures first, and JUnit's XML."""

from __future__ import annotations

from xml.etree import ElementTree

from ...data.notes import texts
from ...data.units import ROUNDING
from ...errors import counted
from ...report import fmt
from ...report.columns import TASK, Column, Marks, Section, Summary, section
from .results import CANNOT, FAIL, Gate, GateRow

VERDICTS = {True: "pass", False: "FAIL", None: "cannot judge"}
_P_IS = {
    "regression": "how often an estimate is this low by chance, if the loss is just what is allowed",
    "no-loss": "how often an estimate is this high by chance, if the loss is just what is not allowed",
}
TONES = {True: "good", False: "bad", None: "unsure"}


def summarise(gate: Gate, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return a gate's result as a `Summary`: outcome, table of rows, rule and notes."""
    marks = Marks()
    rows = [row for row in gate.rows if not row.question or _is_listed(row)]
    how = f"one-sided at {fmt.percent(gate.alpha)}"
    if gate.rule == "no-loss":
        how += ", each row by itself, as every row must pass"
    else:
        how += ", Holm over all rows" if gate.adjust == "holm" else ", unadjusted"
    why = Column("why", lambda row: fmt.plain(row.reason), text=True, optional=True, advice=True)
    columns = [
        Column("Verdict", _verdict, text=True, tone=lambda row: TONES[row.passed] if row.decides else ""),
        *TASK,
        Column("question", lambda row: fmt.plain(row.question), text=True, optional=True),
        Column("right", _right, "right answers of A, and of B", optional=True),
        Column("quantity", lambda row: row.quantity, "what is compared with what is required", text=True),
        Column("estimate", "estimate", "the quantity as it was measured"),
        Column("required", "threshold", "what the quantity must reach: A − B at least −M for a margin M"),
        Column(
            "limit",
            _limit,
            "the end of the quantity's interval that the rule reads (regression: the better, no-loss: the worse), not "
            "adjusted for the other rows",
            rank=1,
        ),
        Column("SE", "se", rank=3),
        Column("p", lambda row: fmt.p_text(row.p_value), _P_IS[gate.rule], rank=2),
        Column(
            "p adj.", lambda row: _adjusted(gate, row), "p adjusted for all rows: the verdict reads it", optional=True
        ),
        Column("n", lambda row: f"{row.n_questions:,}" if row.n_questions else fmt.MISSING, "questions", rank=1),
        Column("detects", "sees", "a loss here is shown with 80% power", optional=True),
        Column(
            "needs",
            lambda row: "" if row.n_needed is None else f"{row.n_needed:,}",
            "questions that would exclude the loss with 80% power, if nothing is lost",
            optional=True,
        ),
        *([why] if len(rows) > 1 else []),
        marks.column(),
    ]
    names = dict.fromkeys(("A", row.model) for row in gate.rows if row.model)
    names |= dict.fromkeys(("B", row.against) for row in gate.rows if row.against)
    named = len({name for _, name in names}) == len(names) < 3  # of two runs of one model the names say nothing
    title = fmt.plain(", ".join(f"{side} = {name}" for side, name in names)) if named else ""
    sections = [*([section(title, rows, columns)] if rows else []), *_self_test(gate)]
    lead = (fmt.plain(sentence(gate)), *map(fmt.plain, texts(gate.warnings)))
    tone = {"pass": "good", "fail": "bad"}.get(gate.outcome, "unsure")
    return Summary(
        tuple(sections),
        marks.legend(),
        (f"Rule {gate.rule}: {how}.", *map(fmt.plain, texts(gate.notes))),
        lead,
        (tone,),
    )


def sentence(gate: Gate) -> str:
    """Return a gate's outcome with its reason in one line."""
    judged = [row for row in gate.rows if row.decides and row.passed is not None]
    what = "question" if any(row.question for row in judged) else "row"
    rows = counted(len(judged), what)
    if gate.outcome == FAIL:
        text = _failed(gate)
    elif gate.outcome == CANNOT:
        text = gate.left_out[0] if gate.left_out else "no row"
        for row in sorted(gate.unjudged, key=lambda row: (row.estimate or 0.0) >= 0 or not row.question)[:1]:
            text = f"{row.name}: {row.reason or _undecided(row)}"
        more = len(gate.unjudged) + len(gate.left_out) - 1
        text += f"; and {more} more" if more > 0 else ""
    elif gate.rule == "no-loss":
        few = any("few_flips" in row.diagnostics for row in judged)
        errs = ". Few questions decide: this limit errs in about 4% of cases" if few else ""
        text = f"a loss{_allowed(gate)} is excluded in {rows}{errs}"
    else:
        proof = "" if what == "question" else NO_PROOF
        text = f"no loss{_allowed(gate)} is shown in {rows}{_though(judged, _allowed(gate))}{proof}{_worth(judged)}"
    lost = f". NOT judged: {', '.join(gate.left_out)}" if gate.left_out and gate.outcome != CANNOT else ""
    return f"{gate.outcome}: {text}{lost}"


NO_PROOF = ". That is not proof that there is none: the rule no-loss asks for proof"
"""What a pass by the rule regression does not show."""


def _though(judged: list[GateRow], allowed: str) -> str:
    """Return a clause on the rows whose estimate is beyond what is required, "" if there is none."""
    beyond = sum(_is_beyond(row) for row in judged)
    if not beyond:
        return ""
    return f", though the estimate is {'beyond it' if allowed else 'a loss'}" + (
        f" in {beyond}" if len(judged) > 1 else ""
    )


def _is_beyond(row: GateRow) -> bool:
    """Return True if the estimate itself does not reach what is required. False if one of the two is unknown."""
    if row.estimate is None or row.threshold is None:
        return False
    missing = row.threshold - row.estimate
    return (-missing if row.higher_is_better is False else missing) > ROUNDING


def _failed(gate: Gate) -> str:
    """Return words on the first row that fails, and how many others do."""
    first, others = gate.failing[0], len(gate.failing) - 1
    more = f" and {others} more" if others else ""
    p = ""
    if gate.rule == "regression" and first.p_adjusted is not None:
        p = f", p {fmt.equals_p(first.p_adjusted)}"
    if first.answers_a is not None:
        shown = f"{first.right_a} of {first.answers_a} right for {first.right_b} of {first.answers_b}"
        return f"{first.name}: {shown}{p}{more}"
    side = "above" if first.higher_is_better is False else "below"
    estimate, threshold = _with_unit(first, first.estimate), _threshold(first)
    return f"{first.name}: {first.quantity} = {estimate} is shown to be {side} {threshold}{p}{more}"


def _with_unit(row: GateRow, value: float | None) -> str:
    """Format a value with the scale of its row and its unit."""
    return fmt.shown(row, value, mean=fmt.is_mean(row, "estimate"), unit=True)


def _threshold(row: GateRow) -> str:
    """Format the threshold that a row must reach, in the digits that the user gave. "–" without one."""
    if row.threshold is None:
        return fmt.MISSING
    scale = fmt.scale_of(row)
    if row.quantity == "A" and scale.level:
        return f"{scale.times * row.threshold:.6g}{scale.level}".replace("-", "−")
    return scale.given(row.threshold)


def _allowed(gate: Gate) -> str:
    """Return words on the accepted loss: " beyond the margin of …", " beyond what is allowed" (if not A − B), or ""."""
    rows = [row for row in gate.rows if row.decides]
    if {row.quantity for row in rows} != {"A − B"}:
        return " beyond what is allowed"
    scales = {fmt.scale_of(row) for row in rows}
    scale = scales.pop() if len(scales) == 1 else fmt.Scale()
    return f" beyond the margin of {scale.given(gate.margin)}" if gate.margin else ""


def _worth(judged: list[GateRow]) -> str:
    """Return a clause on which losses the gate would detect with 80% power, or that none would be, or ""."""
    seen = sorted((row for row in judged if row.sees is not None), key=lambda row: row.sees or 0.0)
    blind = any(row.sees is None and row.se for row in judged)
    if not seen:
        return ". No loss that is possible would be shown with 80% power" if blind else ""
    low, high = (fmt.amount(row, row.sees) for row in (seen[0], seen[-1]))
    none = ", and in some rows none that is possible" * blind
    units = {fmt.scale_of(row).size for row in seen}
    low = low.removesuffix(units.pop()) if len(units) == 1 and low != high else low
    return f". A loss of {high if low == high else f'{low} to {high}'} in one row would be shown with 80% power{none}"


def _undecided(row: GateRow) -> str:
    needed = ""
    if row.n_needed is not None and row.n_needed > row.n_questions:
        needed = f": {counted(row.n_needed, 'question')} would exclude it, if nothing is lost"
    elif row.n_needed is not None:
        needed = f". If nothing were lost, {counted(row.n_needed, 'question')} would exclude it in 80% of cases"
        needed += f", and there are {row.n_questions:,}"
    if row.never:
        needed = (
            ". No number of questions would exclude it: the noise of what it is held against is too large by itself"
        )
    text = f"limit {_with_unit(row, row.limit)}, required {_threshold(row)}"
    return f"a loss is neither shown nor excluded ({text}{needed})"


def _verdict(row: GateRow) -> str:
    if not row.decides:
        return ""
    return "not decided" if row.passed is None and not row.reason else VERDICTS[row.passed]


def _limit(row: GateRow) -> str:
    return fmt.shown(row, row.limit, mean=fmt.is_mean(row, "limit"), bound=row.threshold)


def _self_test(gate: Gate) -> list[Section]:
    test = gate.self_test
    if test is None:
        return []
    digits, decides = fmt.decimals(test.sees[0].loss / 3 if test.sees else None), [x for x in gate.rows if x.decides]
    of = decides[0] if len({fmt.scale_of(row) for row in decides}) == 1 else None  # of other scales on the metric's own
    alarm = test.false_alarm
    lines = [("an identical model does not pass", fmt.MISSING if alarm is None else _share(alarm))]
    if test.n_needed is not None:
        lines.append(
            (
                "an identical model passes in 80% with",
                f"{counted(test.n_needed, 'question')}{_words_for_all_rows(gate)}",
            )
        )
    elif test.never:
        lines.append(("an identical model passes in 80% with", "no number of questions"))
    lines += [
        (f"a loss of {fmt.amount(of, seen.loss, digits)} in every row is detected", _share(seen.power))
        for seen in test.sees
    ]
    columns = (Column("What this gate is worth", lambda line: line[0], text=True), Column("", lambda line: line[1]))
    return [section("", lines, columns)]


def _share(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"


def _words_for_all_rows(gate: Gate) -> str:
    """Return " in all rows together" if several rows decide, else ""."""
    return " in all rows together" if sum(row.decides for row in gate.rows) > 1 else ""


def _right(row: GateRow) -> str:
    """Return the right answers of both runs as text, "3/10 : 9/10". "" for rows without counts."""
    return "" if row.answers_a is None else f"{row.right_a}/{row.answers_a} : {row.right_b}/{row.answers_b}"


def _is_listed(row: GateRow) -> bool:
    """Return True for a question that failed, or is not judged with fewer right answers or an unknown number."""
    return row.passed is False or (row.passed is None and (row.estimate is None or row.estimate < 0))


def _adjusted(gate: Gate, row: GateRow) -> str:
    return "" if gate.rule == "no-loss" else fmt.p_text(row.p_adjusted)


def junit(gate: Gate) -> str:
    """Return a gate's result as JUnit XML: a case for the gate, each deciding row, and (skipped) each row left out.

    The suite's output is the verdict, what puts it in doubt, and the notes, as on the screen.
    """
    rows = [row for row in gate.rows if row.decides]
    cases = [_case("gate", gate.outcome == "fail", gate.outcome == CANNOT, gate.sentence)]
    for row in rows:
        estimate, threshold = _with_unit(row, row.estimate), _threshold(row)
        said = row.reason or f"{row.quantity} = {estimate}, required {threshold}"
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
    output = (sentence(gate), *texts(gate.warnings), *texts(gate.notes))
    ElementTree.SubElement(suite, "system-out").text = "\n".join(map(fmt.plain, output))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _case(name: str, failed: bool, lost: bool, said: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="harness-noise", name=fmt.plain(name))
    if failed or lost:
        ElementTree.SubElement(case, "failure" if failed else "error", message=fmt.plain(said)).text = fmt.plain(said)
    return case
