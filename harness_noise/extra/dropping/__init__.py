"""Which of many models need no more answers: looks at all of them while they answer one order of questions.

Sources: Lan & DeMets (1983), Biometrika 70; Hwang, Shih & DeCani (1990), Statistics in Medicine 9.
"""

from ...extras import Extra, Switch

EXTRA = Extra(
    functions=dict.fromkeys(("drop_models", "drop_in_sequence"), "api") | {"Dropping": "results"},
    results="results",
    needs=("arena",),
    switches=(
        Switch(
            "--looks",
            "The models answer one order of questions step by step: say after each step who needs no more, in up to L "
            "looks, such as 20.",
            {"arena": "drop_models"},
            metavar="L",
            kind=str,
        ),
        Switch(
            "--n", "Questions that a model is asked at most.", {"arena": "drop_models"}, metavar="N", beside="--looks"
        ),
    ),
    notes={
        "looks_kept": "where looks are kept",
        "replayed": "looks at runs whose answers are all there",
    },
    routine_notes=("looks_kept",),
    words={"refuses them": " `arena --looks` refuses two such models."},
)
