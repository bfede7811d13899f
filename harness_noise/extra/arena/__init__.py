"""Arenas: all pairs of many runs, who may be the best, and the noise of each benchmark, kept as its profile.

Source: Wang (2025), "Measuring all the noises of LLM evals", arXiv:2512.21326.
"""

from ...extras import Extra

EXTRA = Extra(
    functions={
        **dict.fromkeys(("arena", "profiles", "write_profile"), "api"),
        **dict.fromkeys(("NamedProfile", "Profile"), "profiles"),
        "write_tables": "tables",
        "Arena": "results",
    },
    results="results",
)
