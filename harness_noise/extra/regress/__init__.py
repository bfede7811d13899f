"""Regressions of scores, or of the differences of two runs, on what is known of the questions."""

from ...extras import Calculation, Extra

EXTRA = Extra(
    functions={"regress": "api", "Regression": "results"},
    results="results",
    commands={"regress": "cli"},
    calculations={
        "regress": Calculation(
            obeys="level adjust missing cluster only tasks metrics scorers measures prices groups columns format_file "
            "follow_links apart as_repeats models",
            refusals={"": "a regression does not use {what}: leave it out"},
        ),
    },
)
