"""The gate: is a run good enough to ship?"""

from ...extras import Calculation, Extra

_LABELS = "labels labels_scorer label_range labels_at_random"
_ITSELF = "every run counts by itself here: leave {what} out"
_SCORES = "{what} is about measures other than the score, and this is about scores: leave it out, or use `compare`"
EXTRA = Extra(
    functions={"gate": "api", "Gate": "results", "GateRow": "results"},
    results="results",
    commands={"gate": "cli"},
    calculations={
        "gate": Calculation(
            like="compare",  # it decides on its rows
            obeys=f"tasks metrics scorers groups columns format_file follow_links answers_b {_LABELS}",
            refusals={
                "": "{what} is for one run. A difference has t (with Bonett-Price if nothing varies) or bootstrap: "
                "use `interval='t'`",
                **dict.fromkeys(("as_repeats", "apart"), _ITSELF),
                **dict.fromkeys(("measures", "prices"), _SCORES),
            },
        ),
        "each": Calculation(
            obeys="level range missing only",
            refusals={"": "the test of each question does not use {what}: leave it out"},
        ),
    },
)
