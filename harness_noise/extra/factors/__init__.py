"""Noise by factor: how much of it comes from the prompt, the seed or the judge."""

from ...extras import Calculation, Extra

_SCORES = "{what} is about measures other than the score, and this is about scores: leave it out, or use `compare`"

EXTRA = Extra(
    functions={"factors": "api", "factor_noise": "api", "Factors": "results"},
    results="results",
    commands={"factors": "cli"},
    calculations={
        "factors": Calculation(
            obeys="missing only tasks metrics scorers groups columns format_file follow_links",
            refusals={
                "": "noise by factor does not use {what}: leave it out",
                **dict.fromkeys(("measures", "prices"), _SCORES),
                "cluster": "{what}: what questions share is a factor, `factors` NAME=COLUMN",
                "apart": "every run counts by itself here: leave {what} out",
                "as_repeats": "{what} hides which run an answer is of: name it as a factor, `factors={{'run': 'run'}}`",
            },
        ),
    },
)
