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
    notes={
        "missing_filled": "the scores with which a gate's pass was tried instead of missing ones",
        "vouched": "answers that are missing at random, by the user's word",
        "one_baseline": "the gate has one baseline run",
        "several_baselines": "the gate has several baseline runs",
        "beside_headline": "rows that do not decide",
        "not_judged": "rows that a gate does not judge",
        "alike_answers": "answers to each question that score alike, and may be copies",
        "flaky": "questions that a baseline gets right sometimes",
        "worse_unadjusted": "questions that are worse by an adjustment that does not decide",
        "ratio_from_file": "the file of thresholds says the ratio",
        "baseline_from": "where kept baseline runs are from",
        "not_kept": "a run that is not stored, and why",
        "kept_already": "a run that is stored already",
    },
)
