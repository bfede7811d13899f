"""Verdicts on pairs: a judge that prefers one of two answers, in one order or both, and strengths of many models.

Sources: Bradley & Terry (1952), Biometrika 39; Ford (1957), American Mathematical Monthly 64, on when strengths exist.
"""

from ...extras import Extra

EXTRA = Extra(
    functions={"pairs": "api", "JudgedPairs": "results"},
    results="results",
    commands={"pairs": "cli"},
)
