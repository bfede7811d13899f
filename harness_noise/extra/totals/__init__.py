"""Totals of runs: one score for each run of a configuration, and how far runs differ.

Source: Hahn & Meeker (1991), Statistical Intervals, §4.7, for one further run.
"""

from ...extras import Extra, Switch

EXTRA = Extra(
    functions=dict.fromkeys(("totals", "compare_totals", "gate_totals"), "api")
    | dict.fromkeys(("Totals", "TotalsComparison"), "results"),
    results="results",
    switches=(
        Switch(
            "--totals",
            "RUN is a table with one score for each run (run, score[, n]). analyze also takes answers: each repeat "
            "is a run.",
            {"analyze": "totals", "compare": "compare_totals", "gate": "gate_totals"},
        ),
    ),
)
