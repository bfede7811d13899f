"""What a gate says of itself, also where it lets everything pass."""

from __future__ import annotations

from ..results.rows import Difference, Gate
from .columns import interval_words


def sentences(gate: Gate) -> list[str]:
    """The outcome with its test, then what was worse, what could change it, and what could not be judged."""
    how = "Holm over all rows" if gate.adjust == "holm" else "unadjusted (--adjust none)"
    kinds = dict.fromkeys(interval_words(row) for row in gate.rows if row.interval != "none")
    shown = ", ".join(list(kinds)[:4]) + (", …" if len(kinds) > 4 else "")
    test = f"one-sided at {100 * gate.alpha:g} %, {how}, by the intervals shown: {shown or 'none'}"
    rows = f"{len(gate.worse)} of {len(gate.rows)} rows shown to be worse by more than {gate.margin:g}"
    outcome = gate.outcome
    if outcome == "cannot judge":
        few = "no row" if len(gate.unjudged) == len(gate.rows) else "not every row"
        outcome = f"{few} could be judged, which is no pass (exit code 2)"
    lines = [f"--fail-on regression: {outcome}, {rows} ({test})"]
    lines += [
        f"--fail-on regression: the {row.n_missing:,} missing answers of {_name(row)} could change this: "
        "--missing zero counts them as wrong"
        for row in gate.rows
        if "missing_matters" in row.diagnostics
    ]
    for a, b in dict.fromkeys((row.model_a, row.model_b) for row in gate.worse):
        names = [_name(row) for row in gate.worse if (row.model_a, row.model_b) == (a, b)]
        lines.append(f"{a} is worse than {b} on {', '.join(names)}")
    odd = "its scores do not have the mean that the harness reports (mean_mismatch)"
    return lines + [
        f"--fail-on regression cannot judge {_name(row)}: "
        + (odd if "mean_mismatch" in row.diagnostics else "it has no interval")
        for row in gate.unjudged
    ]


def _name(row: Difference) -> str:
    return f"{row.task} {row.metric}".strip()
