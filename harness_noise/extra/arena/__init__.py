"""Arenas: all pairs of many runs, who may be the best, and the noise of each benchmark, kept as its profile.

Source: Wang (2025), "Measuring all the noises of LLM evals", arXiv:2512.21326.
"""

from ...extras import Calculation, Extra, Keyword

EXTRA = Extra(
    functions={
        **dict.fromkeys(("arena", "profiles", "write_profile"), "api"),
        **dict.fromkeys(("NamedProfile", "Profile"), "profiles"),
        "write_tables": "tables",
        "Arena": "results",
    },
    results="results",
    commands={"arena": "cli"},
    keywords={"profile": Keyword("profiles", "profile")},
    listing="listing",
    words={
        "--complete": ", or a profile that has its questions (arena --write-profile FILE --with-questions)",
        "--profile": " (see list, arena)",
        "Tables of `analyze`": ", and of the models of `arena`",
        "Tables of `compare`": ", and of the pairs of `arena`",
        "difference": " and `arena`",
        "many runs": "compare them all pair by pair with `harness-noise arena {runs}`, ",
    },
    calculations={
        "arena": Calculation(
            like="all_pairs",
            obeys="tasks metrics scorers groups columns format_file measures prices follow_links apart as_repeats",
            refusals={
                "": "arena pairs models by question, takes repeats as independent answers and tests by t, sign or "
                "wild. For {what} use `compare` on the pairs that need it",
            },
        ),
    },
    notes={
        "not_in_arena": "a metric that an arena does not compare",
        "not_a_checkpoint": "a run that is no checkpoint",
        "selected": "how much of the best model's lead is selection",
    },
)
