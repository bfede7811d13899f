"""Stopping early: looks at a run before all its answers are there, with error rates that hold.

Sources: Lan & DeMets (1983), Biometrika 70; Jennison & Turnbull (2000); Waudby-Smith et al. (2024) for "anytime".
"""

from ...extras import Calculation, Extra, Keyword

_ESTIMATORS = {"se": "compare"}

EXTRA = Extra(
    functions=dict.fromkeys(("boundaries", "compare_in_sequence", "estimate_from_part"), "api"),
    keywords={
        "looks": Keyword(
            "asking",
            "compare",
            display="report",
            metavar="L",
            words="A is still running: correct for repeated looks, such as 5, or anytime.",
        )
    },
    words={"scored_differently": ", looks", "stopped_early": " They allow for the looks."},
    calculations={
        "looks": Calculation(
            obeys="level adjust margin repeats_are runs_shared range missing cluster chance only seed resamples",
            values={"weights": ("none",)},
            values_of=_ESTIMATORS,
            refusals={
                "": "repeated looks are corrected row by row, by the t test of a random sample of pairs, with limits "
                "of their own: leave {what} or `looks` out"
            },
        ),
        "compare_in_sequence": Calculation(
            obeys="level margin range missing seed",
            values_of=_ESTIMATORS,
            refusals={"": "a comparison in sequence does not use {what}: leave it out"},
        ),
        "boundaries": Calculation(obeys="level", refusals={"": "a boundary does not use {what}: leave it out"}),
        "estimate_from_part": Calculation(
            obeys="level range missing", refusals={"": "an estimate from a part does not use {what}: leave it out"}
        ),
    },
    notes={
        "no_looks": "what no look is taken at",
        "looks_at": "which run is A and which is B in the looks",
        "looks_kept": "where looks are kept",
        "decided_earlier": "a row that an earlier look decided",
    },
    routine_notes=("looks_kept",),
    needs=("references",),
)
